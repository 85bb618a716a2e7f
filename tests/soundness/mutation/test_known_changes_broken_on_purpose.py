"""Mistakes in what a known change costs a target, and in whose changes count."""

from agnncert.divided import evidence as divided
from agnncert.graphs import perturbation
from agnncert.proving import certificate
from agnncert.stacked import evidence as stacked
from tests.soundness.laws import test_known_changes as laws
from tests.support.mutations import each_mistake
from tests.unit.graphs import test_between as units


def divisions_hold() -> None:
    laws.hold_what_they_say("few groups")


def two_levels_hold() -> None:
    laws.hold_what_they_say("stacked, two levels")


def neighbours_hold() -> None:
    laws.hold_what_they_say("per neighbour")


def trusted() -> None:
    laws.test_a_certificate_that_trusts_edges_refuses_a_change_that_it_cannot_judge()


def costs() -> None:
    units.test_the_cost_at_a_node_counts_its_edges_and_all_that_may_be_its_neighbours()


MISTAKES = [
    ("edges far away do not matter to a division", divisions_hold, divided, "return self.proof.only_target_matters", "return True"),
    ("nor to two levels of votes", two_levels_hold, stacked, "return not self.second", "return True"),
    ("a graph with trusted edges is judged", trusted, stacked, "return self.trusted < 0\n\n    @property\n    def entries", "return True\n\n    @property\n    def entries"),
    ("another budget's answer is taken", neighbours_hold, certificate, "holds |= here & self.holds_against(cost)", "holds |= self.holds_against(cost)"),
    ("a node that is gone keeps its label", neighbours_hold, perturbation, "return None", "return Budget()"),
    ("added edges at a target are free", neighbours_hold, perturbation, "add_edges=self.added[target]", "add_edges=0"),
    ("new neighbours are free", neighbours_hold, perturbation, "inject_nodes=new_nodes,", "inject_nodes=0,"),
    ("other nodes keep their features", neighbours_hold, perturbation, "total.change_features - own,", "0,"),
    ("deleted edges are free", costs, perturbation, "delete_edges=self.lost[target]", "delete_edges=0"),
    ("the target keeps its features", costs, perturbation, "target_features=own", "target_features=False"),
]  # fmt: skip


@each_mistake(MISTAKES)
def test_a_mistake_is_noticed(monkeypatch, mistake):
    mistake.turns_red(monkeypatch)
