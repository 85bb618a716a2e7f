"""Ids for injected nodes. Groups are hashes of ids, so an attacker who may choose ids chooses groups.

``UnusedIds`` lists the ids to choose from. The rest finds, for each of the three cases, under which ids injected nodes
gain the most ballots: by the group of the node itself (node-centric), or by the groups of the pairs that it makes
with a target node and its neighbours, or with the nodes of a target graph (edge-centric).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
from torch import Tensor

from agnncert.attacks.edits import INJECTED, Edit, TriedEdit
from agnncert.divisions import EdgeCentric, NodeCentric
from agnncert.graphs import hashing
from agnncert.proof.ballots import FloatArray, IntArray

Priced = tuple[int, TriedEdit]  # what an edit gains, and the edit


class UnusedIds:
    """Ids that no node of one graph has.

    Args:
        keys: Keys of its nodes. Of an integer the key tells the id, so what is listed is unused; an id that only shares
            the key of a text is left out too, which no attack misses: it would lead to the groups of that text.
        any_order: Whether any unused id can be given to a new node. In a graph without ``node_id`` row numbers are the
            ids, and a new node gets the next one.
        count: How many ids to list.

    Attributes:
        ids: The ids, ascending.
    """

    def __init__(self, keys: Tensor, any_order: bool, count: int) -> None:
        self.any_order = any_order
        first = len(keys)
        ids = np.arange(first, first + count + len(keys) if any_order else first + count, dtype=np.int64)
        self.ids: IntArray = ids[~np.isin(ids, keys.numpy())][:count]

    def node_groups(self, division: NodeCentric) -> IntArray:
        """Group of every id in the node-centric division, shape ``[count]``."""
        return hashing.node_groups(self.ids.view(np.uint64), division.num_groups, division.hash)

    def pair_groups(self, division: EdgeCentric, keys: Tensor) -> IntArray:
        """Group of the pair of every id and every given key, shape ``[count, len(keys)]``."""
        return pair_groups(division, self.ids, keys)

    def without_gaps(self, edits: Sequence[Edit]) -> list[Edit]:
        """The edits in the order of their ids; if ids are row numbers, nodes are injected for those left out."""
        used = {edit.injected_id for edit in edits if edit.injected_id is not None}
        filled = list(edits)
        if not self.any_order and used:
            left_out = [i for i in self.ids.tolist() if i < max(used) and i not in used]
            filled += [Edit("inject_nodes", injected=0, injected_id=i) for i in left_out]
        return sorted(filled, key=lambda edit: -1 if edit.injected_id is None else edit.injected_id)


def pair_groups(division: EdgeCentric, ids: IntArray, keys: Tensor) -> IntArray:
    """Group of the pair of every id (or key) and every given key, shape ``[len(ids), len(keys)]``."""
    mine = np.repeat(ids, len(keys)).view(np.uint64)
    theirs = np.tile(keys.numpy(), len(ids)).view(np.uint64)
    return hashing.edge_groups(mine, theirs, division.num_groups, division.hash).reshape(len(ids), len(keys))


def ids_by_group(unused: UnusedIds, groups: IntArray, best: Mapping[int, Priced], count: int) -> Iterator[TriedEdit]:
    """Node-centric: one injected node for each group, under an id of that group.

    Args:
        unused: Ids to choose from.
        groups: Group of each id.
        best: The best injection for each group.
        count: Nodes that may be injected.
    """
    among = len(unused.ids) if unused.any_order else count
    served: set[int] = set()
    for new_id, group in zip(unused.ids[:among].tolist(), groups[:among].tolist(), strict=True):
        if group in best and group not in served:
            tried = best[group][1]
            yield TriedEdit(replace(tried.edit, injected_id=new_id), tried.ballots)
            if unused.any_order:
                served.add(group)


def ids_at_node(
    unused: UnusedIds,
    groups: IntArray,
    neighbours: Sequence[int],
    direct: Mapping[int, Priced],
    through: Mapping[tuple[int, int], Priced],
    num_groups: int,
    most: float,
    count: int,
) -> Iterator[TriedEdit]:
    """Edge-centric, node task: an injected node is joined to the target, and to neighbours of the target.

    Every edge of the injected node falls into the group of its own pair. The nodes come one by one, each under the id
    whose edges gain the most where nothing has moved yet; all edges of a node have the features of the first.

    Args:
        unused: Ids to choose from.
        groups: Group of every id's pair with the target, then with the neighbours, shape ``[num_ids, 1 + neighbours]``.
        neighbours: Neighbours of the target.
        direct: What an edge to the target gains, by group.
        through: What an edge to a neighbour gains, by group and neighbour; only those that gain something.
        num_groups: Number of groups.
        most: Edges that a node may bring.
        count: Nodes that may be injected.
    """
    worth = np.full(num_groups, -1.0)  # of an edge to the target, by group; below zero where it can gain nothing
    for group, (gain, _) in direct.items():
        worth[group] = gain
    used: list[int] = []
    for turn in range(count):
        pick = turn
        if unused.any_order:
            value = worth[groups[:, 0]]
            for (group, neighbour), (gain, _) in through.items():
                if worth[group] >= 0:
                    falls_there = groups[:, 1 + neighbours.index(neighbour)] == group
                    value += gain * (falls_there & (groups[:, 0] != group))
            value[used] = -2
            pick = int(value.argmax())
        first = int(groups[pick, 0])
        if worth[first] < 0:
            if unused.any_order:
                return
            continue
        used.append(pick)
        parts = {first: direct[first][1]}
        for neighbour, group in zip(neighbours, groups[pick, 1:].tolist(), strict=True):
            if (group, neighbour) in through and worth[group] >= 0 and group not in parts and len(parts) < most:
                tried = through[group, neighbour][1]
                if tried.edit.injected == parts[first].edit.injected:
                    parts[group] = tried
        worth[list(parts)] = -1
        edges = tuple(pair for part in parts.values() for pair in part.edit.add_edges)
        ballots = {group: part.ballots[group] for group, part in parts.items()}
        yield TriedEdit(replace(parts[first].edit, add_edges=edges, injected_id=int(unused.ids[pick])), ballots)


def ids_in_graph(
    unused: UnusedIds, groups: IntArray, new: Sequence[Priced], num_groups: int, most: int, count: int
) -> Iterator[TriedEdit]:
    """Edge-centric, graph task: an injected node is joined to any nodes whose pair falls into a wanted group.

    The nodes come one by one, each with the features and the id that gain the most where nothing has moved yet.

    Args:
        unused: Ids to choose from.
        groups: Group of every id's pair with every node, shape ``[num_ids, num_nodes]``.
        new: What one edge of an injected node gains, by its features and group.
        num_groups: Number of groups.
        most: Edges that a node may bring.
        count: Nodes that may be injected.
    """
    available = np.zeros((len(groups), num_groups), dtype=bool)  # groups that a node under each id can reach
    available[np.arange(len(groups))[:, None], groups] = True
    gains: dict[int, FloatArray] = {}
    ballots: dict[tuple[int, int], int] = {}
    for gain, tried in new:
        assert tried.edit.injected is not None
        group, ballot = next(iter(tried.ballots.items()))
        gains.setdefault(tried.edit.injected, np.zeros(num_groups))[group] = max(gain, 0)
        ballots[tried.edit.injected, group] = ballot
    for turn in range(min(count, len(groups))):
        values = {row: np.sort(available * gain, axis=1)[:, -most:].sum(1) for row, gain in gains.items()}
        features = max(values, key=lambda row: values[row].max())
        pick = int(values[features].argmax()) if unused.any_order else turn
        gain_here = available[pick] * gains[features]
        wanted = [int(group) for group in np.argsort(-gain_here, kind="stable")[:most] if gain_here[group] > 0]
        if not wanted:
            continue
        edges = tuple((INJECTED, int(np.flatnonzero(groups[pick] == group)[0])) for group in wanted)
        edit = Edit("inject_nodes", add_edges=edges, injected=features, injected_id=int(unused.ids[pick]))
        yield TriedEdit(edit, {group: ballots[features, group] for group in wanted})
        available[pick] = False
        for left in gains.values():
            left[wanted] = 0
