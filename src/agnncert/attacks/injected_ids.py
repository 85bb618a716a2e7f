"""Ids for injected nodes. Groups are hashes of ids, so an attacker who may choose ids chooses groups.

Wiring: under which id an injected node enters, so that its edges fall into the groups where they gain most.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from torch import Tensor

from agnncert.attacks.edits import NEW, Edit, Option
from agnncert.divisions import EdgeCentric, NodeCentric
from agnncert.graphs import hashing
from agnncert.proof.ballots import FloatArray, IntArray


class FreshIds:
    """Unused ids of one graph.

    Args:
        keys: Keys of its nodes.
        chosen: Whether nodes have ids of their own, so that new ones can be chosen; else row numbers go on.
        count: How many to look at.
    """

    def __init__(self, keys: Tensor, chosen: bool, count: int) -> None:
        self.chosen = chosen
        first = len(keys)
        some = np.arange(first, first + count + len(keys) if chosen else first + count, dtype=np.int64)
        self.ids: IntArray = some[~np.isin(some, keys.numpy())][:count]

    def node_groups(self, division: NodeCentric) -> IntArray:
        """Group of every id in the node-centric division, shape ``[count]``."""
        return hashing.node_groups(self.ids.view(np.uint64), division.num_groups, division.hash)

    def pair_groups(self, division: EdgeCentric, keys: Tensor) -> npt.NDArray[np.int64]:
        """Group of the pair of every id and every given key, shape ``[count, len(keys)]``."""
        mine = np.repeat(self.ids, len(keys)).view(np.uint64)
        theirs = np.tile(keys.numpy(), len(self.ids)).view(np.uint64)
        return hashing.edge_groups(mine, theirs, division.num_groups, division.hash).reshape(len(self.ids), len(keys))

    def complete(self, edits: Sequence[Edit]) -> list[Edit]:
        """The edits in an order in which their nodes can be injected; row numbers that were left out get a node too."""
        ordered = sorted(edits, key=lambda edit: int(edit.new_id or 0) if edit.new is not None else -1)
        used = {edit.new_id for edit in edits if edit.new is not None}
        if self.chosen or not used:
            return ordered
        gaps = [int(i) for i in self.ids if i < max(int(u) for u in used if u is not None) and int(i) not in used]
        ordered += [Edit("inject_nodes", new=0, new_id=i) for i in gaps]
        return sorted(ordered, key=lambda edit: int(edit.new_id or 0) if edit.new is not None else -1)


def pair_groups_of(division: EdgeCentric, key: Tensor, others: Tensor) -> IntArray:
    """Group of the pairs of one key and others in the edge-centric division, shape ``[len(others)]``."""
    theirs = others.contiguous().numpy().view(np.uint64)
    mine = np.repeat(key.reshape(1).numpy().view(np.uint64), len(theirs))
    return hashing.edge_groups(mine, theirs, division.num_groups, division.hash)


Priced = tuple[int, Option]  # what an option gains, and the option


class NodeWiring:
    """Edge-centric: every edge of an injected node falls into the group of its own pair.

    Args:
        groups: Group of every id's pair with the target, then with others, shape ``[num_ids, 1 + num_others]``.
        others: Neighbours of the target.
        direct: What an edge to the target gains, by group.
        through: What an edge to one of the others gains, by group and neighbour.
        num_groups: Number of groups.
        most: Edges that a node may bring.
    """

    def __init__(
        self,
        groups: IntArray,
        others: Sequence[int],
        direct: dict[int, Priced],
        through: dict[tuple[int, int], Priced],
        num_groups: int,
        most: float,
    ) -> None:
        self.groups, self.others, self.direct, self.through, self.most = groups, others, direct, through, most
        self.worth = np.full(num_groups, -1.0)  # below zero where a ballot has been moved already
        for group, (gain, _) in direct.items():
            self.worth[group] = gain
        self.used: list[int] = []

    def nodes(self, fresh: FreshIds, count: int) -> Iterator[Option]:
        """Nodes one by one, each under the id whose edges gain the most where nothing has been moved yet."""
        for turn in range(count):
            pick = int(self._values().argmax()) if fresh.chosen else turn  # row numbers must be taken in order
            if self.worth[self.groups[pick, 0]] < 0:
                if fresh.chosen:
                    return
                continue
            self.used.append(pick)
            parts = self._parts(pick)
            self.worth[list(parts)] = -1
            base = next(iter(parts.values()))
            add = tuple(pair for part in parts.values() for pair in part.edit.add)
            ballots = {group: part.ballots[group] for group, part in parts.items()}
            yield Option(replace(base.edit, add=add, new_id=int(fresh.ids[pick])), ballots)

    def _values(self) -> FloatArray:
        value = self.worth[self.groups[:, 0]].copy()
        for (group, via), (gain, _) in self.through.items():
            if gain > 0 and self.worth[group] >= 0 and self.most > 1:
                place = 1 + self.others.index(via)
                value += gain * ((self.groups[:, place] == group) & (self.groups[:, 0] != group))
        value[self.used] = -2
        return value

    def _parts(self, pick: int) -> dict[int, Option]:
        """What the edges of the node under one id do, by group; all have the features of the first."""
        first = int(self.groups[pick, 0])
        parts = {first: self.direct[first][1]}
        for place, u in enumerate(self.others, start=1):
            group = int(self.groups[pick, place])
            gain, option = self.through.get((group, u), (0, None))
            free = self.worth[group] >= 0 and group not in parts and len(parts) < self.most
            if option is not None and free and gain > 0 and option.edit.new == parts[first].edit.new:
                parts[group] = option
        return parts


def armed_by_node(best: dict[int, Priced], fresh: FreshIds, groups: IntArray, count: int) -> Iterator[Option]:
    """Node-centric: one injected node for each group, under an id of that group."""
    among = len(fresh.ids) if fresh.chosen else count  # row numbers must be taken in order
    wanted = dict(best)
    for new_id, group in zip(fresh.ids[:among].tolist(), groups[:among].tolist(), strict=True):
        if group in wanted:
            option = wanted[group][1]
            yield Option(replace(option.edit, new_id=new_id), option.ballots)
            if fresh.chosen:
                del wanted[group]


class GraphWiring:
    """Edge-centric graph task: any node of the graph may be joined, whichever falls into a wanted group.

    Args:
        groups: Group of every id's pair with every node, shape ``[num_ids, num_nodes]``.
        new: What one edge of an injected node gains, by its features and group.
        num_groups: Number of groups.
        most: Edges that a node may bring.
    """

    def __init__(self, groups: IntArray, new: Sequence[Priced], num_groups: int, most: int) -> None:
        self.groups, self.most = groups, most
        self.hits = np.zeros((len(groups), num_groups), dtype=bool)
        self.hits[np.arange(len(groups))[:, None], groups] = True
        self.gains: dict[int, FloatArray] = {}
        self.ballots: dict[tuple[int, int], int] = {}
        for gain, option in new:
            assert option.edit.new is not None
            group, ballot = next(iter(option.ballots.items()))
            self.gains.setdefault(option.edit.new, np.zeros(num_groups))[group] = max(gain, 0)
            self.ballots[option.edit.new, group] = ballot

    def nodes(self, fresh: FreshIds, count: int) -> Iterator[Option]:
        """Nodes one by one, each with the features and the id that gain the most where nothing has moved yet."""
        for turn in range(min(count, len(self.groups))):
            values = {r: np.sort(self.hits * worth, axis=1)[:, -self.most :].sum(1) for r, worth in self.gains.items()}
            r = max(values, key=lambda row: values[row].max())
            pick = int(values[r].argmax()) if fresh.chosen else turn  # row numbers must be taken in order
            gain = self.hits[pick] * self.gains[r]
            wanted = [int(group) for group in np.argsort(-gain, kind="stable")[: self.most] if gain[group] > 0]
            if not wanted:
                continue
            joined = (int(np.flatnonzero(self.groups[pick] == group)[0]) for group in wanted)
            add = tuple((NEW, u) for u in joined)
            yield Option(
                Edit("inject_nodes", add=add, new=r, new_id=int(fresh.ids[pick])),
                {group: self.ballots[r, group] for group in wanted},
            )
            self.hits[pick] = False
            for worth in self.gains.values():
                worth[wanted] = 0
