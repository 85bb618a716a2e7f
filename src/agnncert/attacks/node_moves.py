"""Edits worth trying against a node: new neighbours, injected nodes, deletions, features, by the group they reach."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import torch

from agnncert.attacks.arsenal import Arsenal
from agnncert.attacks.edits import NEW, Edit, Option
from agnncert.attacks.fresh_ids import FreshIds, pair_groups_of
from agnncert.attacks.scene import Ballots, Scene
from agnncert.attacks.trials import NodeStage
from agnncert.attacks.values import edge_values_to_try
from agnncert.budget import Budget
from agnncert.division import EdgeCentric, NodeCentric

Draft = tuple[Edit, list[int]]  # an edit, and the groups whose ballots it may move

NEIGHBOURS_PER_GROUP = 2
NODES_TO_CHANGE = 16
IDS_TO_TRY = 1024


class NodeMoves:
    """What can be done to one node after another."""

    def __init__(self, scene: Scene, arsenal: Arsenal) -> None:
        self.scene, self.arsenal, self.division = scene, arsenal, scene.built_in()
        self.near = scene.neighbours
        self.stage = NodeStage(scene.graph, self.division, self.near)
        self.alters = edge_values_to_try(scene)
        self.fresh = FreshIds(scene.graph.node_key, scene.has_ids(), IDS_TO_TRY)
        if isinstance(self.division, NodeCentric):
            self.fresh_groups = self.fresh.node_groups(self.division)

    def stage_of(self, row: int) -> NodeStage:
        """Where trials of this target are built."""
        return self.stage

    def fresh_of(self, row: int) -> FreshIds:
        """Ids that injected nodes can have."""
        return self.fresh

    def drafts(self, row: int, rivals: Sequence[int], budget: Budget) -> Iterator[Draft]:
        """Edits to try, within what the budget has a field for; injected nodes have no id yet."""
        if budget.add_edges:
            yield from self._new_neighbours(row, rivals)
        if budget.injected_edges:
            yield from self._injections(row, rivals, budget)
        if budget.delete_edges:
            yield from self._deletions(row)
        if budget.change_edges:
            yield from self._altered(row)
        if budget.delete_nodes:
            yield from ((Edit("delete_nodes", drop=(u,)), groups) for u, groups in self._influential(row))
        if budget.change_features:
            for u, groups in self._influential(row):
                yield from (
                    (Edit("change_features", paint=((u, r),)), groups)
                    for k in rivals
                    for r in self.arsenal.best[k][:2]
                )
        if budget.target_features:
            everywhere = (
                [self.stage.group_of[row]] if self.stage.gated else list(range(self.division.num_groups))
            )
            yield from (
                (Edit("target_features", paint=((row, r),)), everywhere)
                for k in rivals
                for r in self.arsenal.best[k][:2]
            )

    def _new_neighbours(self, row: int, rivals: Sequence[int]) -> Iterator[Draft]:
        joined = {row, *(u for group in self.near.groups(row) for u, _ in self.near.into(group, row))}
        for k in rivals:
            some = [
                int(u)
                for u in self.arsenal.strong[k][: 24 * self.division.num_groups]
                if int(u) not in joined
            ]
            for u, group in _first_in_each(some, self._groups_with(row, some)):
                yield Edit("add_edges", add=((u, row),)), [group]

    def _groups_with(self, row: int, others: list[int]) -> list[int]:
        if isinstance(self.division, NodeCentric):
            return [self.stage.group_of[u] for u in others]
        keys = self.scene.graph.node_key
        return pair_groups_of(
            self.division, keys[row], keys[torch.tensor(others, dtype=torch.int64)]
        ).tolist()

    def _injections(self, row: int, rivals: Sequence[int], budget: Budget) -> Iterator[Draft]:
        groups = range(self.division.num_groups)
        for k in rivals:
            for r in self.arsenal.best[k]:
                yield from (
                    (Edit("inject_nodes", add=((NEW, row),), new=r, new_group=i), [i]) for i in groups
                )
            if isinstance(self.division, EdgeCentric) and budget.edges_per_injected > 1:
                # A further edge of the injected node can reach the target through a neighbour of the target.
                r = self.arsenal.best[k][0]
                for i in self.near.groups(row):
                    through = dict.fromkeys(u for u, _ in self.near.into(i, row))
                    yield from (
                        (Edit("inject_nodes", add=((NEW, u),), new=r), [i]) for u in list(through)[:4]
                    )

    def _deletions(self, row: int) -> Iterator[Draft]:
        for group in self.near.groups(row):
            heard = list(dict.fromkeys(u for u, _ in self.near.into(group, row)))
            yield from ((Edit("delete_edges", remove=((u, row),)), [group]) for u in heard)
            if len(heard) > 1:
                yield Edit("delete_edges", units=len(heard), remove=tuple((u, row) for u in heard)), [group]
            further = {
                tuple(sorted((w, u)))
                for u in heard[:4]
                for w, _ in self.near.into(group, u)
                if row not in (u, w)
            }
            yield from ((Edit("delete_edges", remove=(pair,)), [group]) for pair in sorted(further)[:4])  # type: ignore[arg-type]

    def _altered(self, row: int) -> Iterator[Draft]:
        for group in self.near.groups(row):
            for u in dict.fromkeys(u for u, _ in self.near.into(group, row)):
                yield from (
                    (Edit("change_edges", alter=((u, row, value),)), [group]) for value in self.alters
                )

    def _influential(self, row: int) -> list[tuple[int, list[int]]]:
        """Nodes that can reach the target, nearest first, and where."""
        where: dict[int, list[int]] = {}
        for group in self.near.groups(row):
            for u in self.near.within(group, row)[1:]:
                where.setdefault(u, []).append(group)
        direct = {u for group in self.near.groups(row) for u, _ in self.near.into(group, row)}
        ordered = sorted(where.items(), key=lambda item: (item[0] not in direct, -len(item[1])))
        return ordered[:NODES_TO_CHANGE]

    def armed(
        self, row: int, options: Sequence[Option], before: Ballots, label: int, rival: int, budget: Budget
    ) -> list[Option]:
        """The options with injected nodes put together and given ids that lead their edges to the wanted groups."""
        rest = [option for option in options if option.edit.new is None]
        if len(rest) == len(options):
            return rest
        count = int(min(budget.inject_nodes, self.division.num_groups))
        direct, through = _split(options, before, label, rival, row)
        if isinstance(self.division, NodeCentric):
            return [*rest, *self._armed_by_node(direct, count)]
        return [*rest, *self._armed_by_pair(row, direct, through, count, budget)]

    def _armed_by_node(self, direct: dict[int, tuple[int, Option]], count: int) -> Iterator[Option]:
        ids, groups = self.fresh.ids, self.fresh_groups
        if not self.fresh.chosen:
            ids, groups = ids[:count], groups[:count]
        for new_id, group in zip(ids.tolist(), groups.tolist(), strict=True):
            if group in direct:
                yield _with_id(direct[group][1], new_id)
                if self.fresh.chosen:
                    del direct[group]  # one node for each group is enough

    def _armed_by_pair(
        self,
        row: int,
        direct: dict[int, tuple[int, Option]],
        through: dict[tuple[int, int], tuple[int, Option]],
        count: int,
        budget: Budget,
    ) -> Iterator[Option]:
        """Nodes one by one, each under the id whose edges gain the most where nothing has been moved yet."""
        assert isinstance(self.division, EdgeCentric)
        others = sorted({u for _, u in through})
        keys = self.scene.graph.node_key[torch.tensor([row, *others])]
        groups = self.fresh.pair_groups(self.division, keys)
        worth = np.full(self.division.num_groups, -1.0)
        for group, (gain, _) in direct.items():
            worth[group] = gain
        unused = np.ones(len(groups), dtype=bool)
        for turn in range(count):
            value = worth[groups[:, 0]].copy()
            for place, u in enumerate(others, start=1):
                for (group, via), (gain, _) in through.items():
                    if via == u and gain > 0 and worth[group] >= 0:
                        value += gain * ((groups[:, place] == group) & (groups[:, 0] != group))
            value[~unused] = -1
            pick = int(value.argmax()) if self.fresh.chosen else turn
            if pick >= len(groups) or worth[groups[pick, 0]] < 0:
                if self.fresh.chosen:
                    return
                continue
            unused[pick] = False
            base = direct[int(groups[pick, 0])][1]
            parts = {int(groups[pick, 0]): base}
            for place, u in enumerate(others, start=1):
                found = through.get((int(groups[pick, place]), u))
                room = len(parts) < budget.edges_per_injected
                if (
                    found
                    and room
                    and found[0] > 0
                    and int(groups[pick, place]) not in parts
                    and found[1].edit.new == base.edit.new
                ):
                    parts[int(groups[pick, place])] = found[1]
            for group in parts:
                worth[group] = -1
            add = tuple(pair for part in parts.values() for pair in part.edit.add)
            ballots = {group: part.ballots[group] for group, part in parts.items()}
            yield _with_id(Option(replace(base.edit, add=add), ballots), int(self.fresh.ids[pick]))


def _first_in_each(nodes: Sequence[int], groups: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The first few nodes of each group."""
    seen: dict[int, int] = {}
    for u, group in zip(nodes, groups, strict=True):
        seen[group] = seen.get(group, 0) + 1
        if seen[group] <= NEIGHBOURS_PER_GROUP:
            yield u, group


def _split(
    options: Sequence[Option], before: Ballots, label: int, rival: int, row: int
) -> tuple[dict[int, tuple[int, Option]], dict[tuple[int, int], tuple[int, Option]]]:
    """The best injection for each group, and through each neighbour of the target."""
    direct: dict[int, tuple[int, Option]] = {}
    through: dict[tuple[int, int], tuple[int, Option]] = {}
    for option in options:
        if option.edit.new is None:
            continue
        gain, group, via = (
            option.gain(before, label, rival),
            next(iter(option.ballots)),
            option.edit.add[0][1],
        )
        if via == row:
            if gain > direct.get(group, (-1, option))[0]:
                direct[group] = (gain, option)
        elif gain > through.get((group, via), (-1, option))[0]:
            through[group, via] = (gain, option)
    return direct, through


def _with_id(option: Option, new_id: int) -> Option:
    return Option(replace(option.edit, new_id=new_id), option.ballots)
