"""Edits worth trying against a node: neighbours, injected nodes, deletions, features, by the group they reach."""

from collections.abc import Iterator, Sequence

import torch

from agnncert.attacks.adversarial_features import Arsenal
from agnncert.attacks.edits import NEW, Edit, Option
from agnncert.attacks.injected_ids import FreshIds, NodeWiring, Priced, armed_by_node, pair_groups_of
from agnncert.attacks.problem import Scene, edge_values_to_try
from agnncert.attacks.try_edits import NodeStage
from agnncert.divisions import EdgeCentric, NodeCentric
from agnncert.proof.budget import Budget

Draft = tuple[Edit, list[int]]  # an edit, and the groups whose ballots it may move

NEIGHBOURS_PER_GROUP = 2
NODES_TO_CHANGE = 16
IDS_TO_TRY = 512


class NodeMoves:
    """What can be done to one node after another."""

    def __init__(self, scene: Scene, arsenal: Arsenal) -> None:
        self.scene, self.arsenal, self.division = scene, arsenal, scene.built_in()
        self.near = scene.neighbours
        self.stage = NodeStage(scene)
        self.alters = edge_values_to_try(scene)
        self.fresh = FreshIds(scene.graph.node_key, scene.has_ids(), IDS_TO_TRY)

    def stage_of(self, row: int) -> NodeStage:
        """Where trials of this target are built."""
        return self.stage

    def fresh_of(self, row: int) -> FreshIds:
        """Ids that injected nodes can have."""
        return self.fresh

    def drafts(self, row: int, rivals: Sequence[int], budget: Budget) -> Iterator[Draft]:
        """Edits to try, within what the budget has a field for; injected nodes have no id yet."""
        looks = [r for k in rivals for r in self.arsenal.best[k][:2]]
        if budget.add_edges:
            yield from self._new_neighbours(row, rivals)
        if budget.injected_edges:
            yield from self._injections(row, rivals, budget)
        if budget.delete_edges:
            yield from self._deletions(row)
        if budget.change_edges:
            yield from self._altered(row)
        for u, groups in self._influential(row) if budget.delete_nodes or budget.change_features else ():
            if budget.delete_nodes:
                yield Edit("delete_nodes", drop=(u,)), groups
            if budget.change_features:
                yield from ((Edit("change_features", paint=((u, r),)), groups) for r in looks)
        if budget.target_features:
            own = [self.stage.group_of[row]] if self.stage.gated else list(range(self.division.num_groups))
            yield from ((Edit("target_features", paint=((row, r),)), own) for r in looks)

    def _new_neighbours(self, row: int, rivals: Sequence[int]) -> Iterator[Draft]:
        joined = {row, *(u for group in self.near.groups(row) for u in self.near.heard(group, row))}
        for k in rivals:
            strong = self.arsenal.strong[k][: 24 * self.division.num_groups].tolist()
            some = [u for u in strong if u not in joined]
            for u, group in _first_in_each(some, self._groups_with(row, some)):
                yield Edit("add_edges", add=((u, row),)), [group]

    def _groups_with(self, row: int, others: list[int]) -> list[int]:
        """Group in which the target would hear each of these nodes."""
        if isinstance(self.division, NodeCentric):
            return [self.stage.group_of[u] for u in others]
        keys = self.scene.graph.node_key
        theirs = keys[torch.tensor(others, dtype=torch.int64)]
        found: list[int] = pair_groups_of(self.division, keys[row], theirs).tolist()
        return found

    def _injections(self, row: int, rivals: Sequence[int], budget: Budget) -> Iterator[Draft]:
        for k in rivals:
            for r in self.arsenal.best[k]:
                for i in range(self.division.num_groups):
                    yield Edit("inject_nodes", add=((NEW, row),), new=r, new_group=i), [i]
            if isinstance(self.division, EdgeCentric) and budget.edges_per_injected > 1:
                # A further edge of the injected node can reach the target through a neighbour of the target.
                for i in self.near.groups(row):
                    for u in self.near.heard(i, row)[:4]:
                        yield Edit("inject_nodes", add=((NEW, u),), new=self.arsenal.best[k][0]), [i]

    def _deletions(self, row: int) -> Iterator[Draft]:
        for group in self.near.groups(row):
            heard = self.near.heard(group, row)
            yield from ((Edit("delete_edges", remove=((u, row),)), [group]) for u in heard)
            if len(heard) > 1:
                everything = tuple((u, row) for u in heard)
                yield Edit("delete_edges", units=len(heard), remove=everything), [group]
            beyond = ((u, w) for u in heard[:4] for w in self.near.heard(group, u) if w not in (u, row))
            further = {(min(pair), max(pair)) for pair in beyond}
            yield from ((Edit("delete_edges", remove=(pair,)), [group]) for pair in sorted(further)[:4])

    def _altered(self, row: int) -> Iterator[Draft]:
        for group in self.near.groups(row):
            for u in self.near.heard(group, row):
                for value in self.alters:
                    yield Edit("change_edges", alter=((u, row, value),)), [group]

    def _influential(self, row: int) -> list[tuple[int, list[int]]]:
        """Nodes that can reach the target, its neighbours first, and where."""
        where: dict[int, list[int]] = {}
        for group in self.near.groups(row):
            for u in self.near.within(group, row)[1:]:
                where.setdefault(u, []).append(group)
        direct = {u for group in self.near.groups(row) for u in self.near.heard(group, row)}
        ordered = sorted(where.items(), key=lambda item: (item[0] not in direct, -len(item[1])))
        return ordered[:NODES_TO_CHANGE]

    def armed(
        self, row: int, options: Sequence[Option], before: Sequence[int], label: int, rival: int, budget: Budget
    ) -> list[Option]:
        """The options, with injected nodes under ids that lead their edges to the wanted groups."""
        rest = [option for option in options if option.edit.new is None]
        new = [(option.gain(before, label, rival), option) for option in options if option.edit.new is not None]
        if not new:
            return rest
        count = int(min(budget.inject_nodes, self.division.num_groups))
        direct, through = _split(new, row)
        if isinstance(self.division, NodeCentric):
            groups = self.fresh.node_groups(self.division)
            return [*rest, *armed_by_node(direct, self.fresh, groups, count)]
        others = sorted({u for _, u in through})
        keys = self.scene.graph.node_key[torch.tensor([row, *others])]
        groups = self.fresh.pair_groups(self.division, keys)
        wiring = NodeWiring(groups, others, direct, through, self.division.num_groups, budget.edges_per_injected)
        return [*rest, *wiring.nodes(self.fresh, count)]


def _first_in_each(nodes: Sequence[int], groups: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The first few nodes of each group."""
    seen: dict[int, int] = {}
    for u, group in zip(nodes, groups, strict=True):
        seen[group] = seen.get(group, 0) + 1
        if seen[group] <= NEIGHBOURS_PER_GROUP:
            yield u, group


def _split(new: Sequence[Priced], row: int) -> tuple[dict[int, Priced], dict[tuple[int, int], Priced]]:
    """The best injection for each group: joined to the target, and to each of its neighbours."""
    direct: dict[int, Priced] = {}
    through: dict[tuple[int, int], Priced] = {}
    for gain, option in new:
        group, via = next(iter(option.ballots)), option.edit.add[0][1]
        if via == row:
            direct[group] = max(direct.get(group, (-1, option)), (gain, option), key=lambda item: item[0])
        else:
            place = (group, via)
            through[place] = max(through.get(place, (-1, option)), (gain, option), key=lambda item: item[0])
    return {group: found for group, found in direct.items() if found[0] >= 0}, through
