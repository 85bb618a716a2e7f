"""What derives its statements again."""

from agnncert.verifier.theorems.theorem import Recount, of_any_tier


class _LesserEnd(Recount):
    def effect(self, piles, attack):
        nodes = attack.touched_nodes + attack.inject_nodes
        return of_any_tier(attack.add_edges + attack.delete_edges + attack.change_edges, nodes == 0)


THEOREMS = {"node": _LesserEnd()}
