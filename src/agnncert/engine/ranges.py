"""Votes range by range: the subgraphs of some groups at a time, and how the ranges are merged.

Groups do not depend on each other, so a vote never needs all subgraphs side by side. What is kept of a division is one
number per edge, its place when edges are sorted by group; the rest is computed for each range of groups and dropped.

The votes do not depend on how the groups are cut into ranges. ``merged`` refuses a range that is missing or repeated.
``RangeVotes`` holds numpy arrays only and can be sent or stored.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from agnncert.certificates.votes import ABSTAIN, BoolArray, IntArray, Votes
from agnncert.divisions.base import DisjointUnion, Division
from agnncert.engine import cover, fast
from agnncert.engine.call import Caller
from agnncert.engine.cover import Cover, SmallComponents
from agnncert.engine.features import Features
from agnncert.engine.rounding import Predictions
from agnncert.graphs.graph import CanonicalGraph
from agnncert.progress import ReportProgress

BLOCK = 2**20  # edges that are sorted together
BYTES_PER_EDGE = 128  # that laying out a subgraph takes, about: ends, copies, and their numbers
EDGES_AT_ONCE = 2**21  # of a range of groups when no memory limit is given: a quarter of a gigabyte


class Shuffle:
    """The edges of a graph by group.

    Args:
        graph: A canonical graph; in the graph task the joined targets.
        division: A division that offers ``pieces``.
        rows: Node task: rows of the targets; parts of a subgraph that are connected to no target are left out. Graph
            task: all graphs of ``graph``, in order.
        laid_out: All subgraphs, if they have been laid out before.
        by_group: ``sorted_edges()`` of the same graph and division, if they have been sorted before.

    Attributes:
        num_groups: Number of groups, whether they have edges or not.
        on_graphs: Whether this is the graph task.
    """

    def __init__(
        self,
        graph: CanonicalGraph,
        division: Division,
        rows: IntArray,
        laid_out: DisjointUnion | None = None,
        by_group: tuple[Tensor, IntArray] | None = None,
    ) -> None:
        self.graph, self.division, self.rows = graph, division, rows
        self.num_groups, self.on_graphs = division.num_groups_in(graph), graph.task == "graph"
        self._laid_out = laid_out
        known = laid_out is not None or by_group is not None
        self._groups: Tensor | None = None if known else division.groups(graph)
        self._sorted = by_group

    def ranges(self, memory_limit: int | None = None) -> list[range]:
        """All groups in runs that can be laid out within a memory limit (bytes); a run has one group at least."""
        everything = range(self.num_groups)
        most = EDGES_AT_ONCE if memory_limit is None else max(1, memory_limit // BYTES_PER_EDGE)
        if self._laid_out is not None or self.graph.edge_index.size(1) <= most:
            return [everything]
        start = self.sorted_edges()[1]
        cuts, first = [0], 0
        while first < self.num_groups:
            last = int(np.searchsorted(start, start[first] + most, side="right")) - 1
            first = min(max(last, first + 1), self.num_groups)
            cuts.append(first)
        return [range(a, b) for a, b in pairwise(cuts)]

    def pieces(self, groups: range) -> DisjointUnion:
        """The subgraphs of some groups, side by side."""
        if self._laid_out is not None:
            assert len(groups) == self.num_groups
            return self._laid_out
        if len(groups) == self.num_groups and self._groups is not None:
            pieces = self.division.disjoint_union(self.graph, self._groups)
        else:
            edges, start = self.sorted_edges()
            sizes = torch.from_numpy(np.diff(start[groups.start : groups.stop + 1]))
            own = torch.repeat_interleave(torch.arange(groups.start, groups.stop), sizes)
            part = edges[start[groups.start] : start[groups.stop]].long()
            pieces = self.division.disjoint_union(self.graph, own, part, groups)
        return fast.near_targets(pieces, self.graph, self.rows)

    def groups_of(self, wanted: list[int]) -> Tensor:
        """Group of every edge, as far as it is one of those wanted; −1 elsewhere."""
        if self._groups is not None:
            return self._groups
        edges, start = self.sorted_edges()
        groups = torch.full((self.graph.edge_index.size(1),), -1, dtype=torch.int32)
        for index in wanted:
            groups[edges[start[index] : start[index + 1]].long()] = index
        return groups

    def sorted_edges(self) -> tuple[Tensor, IntArray]:
        """Positions of the edges, group after group, and where each group begins."""
        if self._sorted is None:
            assert self._groups is not None
            self._sorted = by_group(self._groups, self.num_groups)
            self._groups = None  # as large as half the edges, and no longer needed
        return self._sorted


def by_group(groups: Tensor, num_groups: int) -> tuple[Tensor, IntArray]:
    """Positions of edges, group after group and ascending within each, and where each group begins.

    Edges in no group (−1) are left out.
    """
    group = groups.numpy()
    width = max(BLOCK, num_groups)
    blocks = [slice(first, first + width) for first in range(0, len(group), width)]
    counts = np.zeros(num_groups + 1, dtype=np.int64)  # first those in no group
    for block in blocks:
        counts += np.bincount(group[block] + 1, minlength=num_groups + 1)
    start = np.concatenate([[0], np.cumsum(counts)])
    place = start[:-1].copy()
    small = num_groups < np.iinfo(np.uint16).max  # then numpy sorts by counting
    edges = np.empty(len(group), dtype=np.int32 if len(group) <= np.iinfo(np.int32).max else np.int64)
    for block in blocks:
        here = group[block] + 1
        order = np.argsort(here.astype(np.uint16) if small else here, kind="stable")
        here = here[order]
        number = np.bincount(here, minlength=num_groups + 1)
        edges[place[here] + np.arange(len(here)) - (np.cumsum(number) - number)[here]] = order + block.start
        place += number
    return torch.from_numpy(edges[start[1] :]), start[1:] - start[1]


@dataclass(frozen=True)
class RangeVotes:
    """The listed votes of a range of groups, group after group.

    Attributes:
        groups: The groups.
        size: Number of listed ballots of each group, shape ``[len(groups)]``.
        owner: Target of each ballot, shape ``[m]``.
        reached: Whether a change can reach it through an edge, shape ``[m]``; ``None`` if that is so of all.
        ballot: The class voted for, shape ``[m]``; ``None`` before the model is called.
        stable: Whether it is beyond numerical doubt, shape ``[m]``; likewise ``None``.
        small: Edge-centric, node task: the small components, from which cover tables are made.
        reach: Edge-centric, graph task: in how many subgraphs each node has an edge, shape ``[num_nodes]``.
    """

    groups: range
    size: IntArray
    owner: npt.NDArray[np.int32]
    reached: BoolArray | None = None
    ballot: npt.NDArray[np.int16] | None = None
    stable: BoolArray | None = None
    small: SmallComponents | None = None
    reach: npt.NDArray[np.int32] | None = None


def cast_range(
    call: Caller,
    shuffle: Shuffle,
    groups: range,
    features: Features,
    tolerance: float | None = None,
    memory_limit: int | None = None,
    report_progress: ReportProgress | None = None,
) -> RangeVotes:
    """Casts the votes of a range of groups.

    Args:
        call: The model, bound to the graph.
        shuffle: The graph's edges by group, and the targets.
        groups: Which groups.
        features: From ``fast.features_of``; shared by all ranges, so that they are projected once.
        tolerance: As in ``cast``.
        memory_limit: Bytes that one chunk may take, about.
        report_progress: Called with the fraction of the work that is done.
    """
    union = shuffle.pieces(groups)
    listed, copy = _found(shuffle, groups, union)
    layout = fast.Plan(shuffle.graph, union, features.sparse, report_progress)
    ballots, stable = fast.ballots(call, layout, features, tolerance, memory_limit)
    return replace(listed, ballot=ballots[copy], stable=stable[copy])


def list_range(shuffle: Shuffle, groups: range) -> RangeVotes:
    """The votes of a range of groups before the model is called: which targets have one, and who reaches whom."""
    return _found(shuffle, groups, shuffle.pieces(groups))[0]


def _found(shuffle: Shuffle, groups: range, union: DisjointUnion) -> tuple[RangeVotes, IntArray]:
    """The votes of a range before the model is called, and the copy (graph task: subgraph) that casts each of them."""
    num_nodes, reach, small = len(shuffle.graph.x), None, None
    edge_centric, own_groups = shuffle.division.family == "edge-centric", shuffle.division.is_per_neighbour
    if shuffle.on_graphs:
        cell, first = np.unique(union.cell.numpy(), return_index=True)
        owner, group = np.divmod(cell, shuffle.num_groups)
        copy = np.argsort(group, kind="stable")
        owner, group, reached = owner[copy], group[copy], union.reached.numpy()[first][copy]
        reach = np.bincount(union.node.numpy(), minlength=num_nodes).astype(np.int32) if edge_centric else None
    else:
        owner = targets_of(shuffle.rows, num_nodes)[union.node.numpy()]
        copy = np.flatnonzero(union.votes.numpy() & (owner >= 0))
        owner, group, reached = owner[copy], union.cell.numpy()[copy], union.reached.numpy()[copy]
        small = cover.small_components(union) if edge_centric and not own_groups else None
    size = np.bincount(group - groups.start, minlength=len(groups))
    shown = None if reached.all() else reached
    return RangeVotes(groups, size, owner.astype(np.int32), shown, small=small, reach=reach), copy


def targets_of(rows: IntArray, num_nodes: int) -> npt.NDArray[np.int32]:
    """Which target each node is, -1 if it is none."""
    target_of = np.full(num_nodes, -1, dtype=np.int32)
    target_of[rows] = np.arange(len(rows))
    return target_of


def merged(
    parts: Sequence[RangeVotes], shuffle: Shuffle, num_classes: int = 0, default: Predictions | None = None
) -> Votes:
    """The votes of all ranges, sorted by target and group.

    Args:
        parts: The ranges, in any order.
        shuffle: The graph's edges by group, and the targets.
        num_classes: Number of classes.
        default: What empty groups cast, and whether that is stable. Defaults to abstaining.

    Raises:
        ValueError: A group is in no range or in several, so that a vote would be missing or counted twice.
    """
    parts, num_targets = _in_order(parts, shuffle.num_groups), len(shuffle.rows)
    counts = np.zeros(num_targets, dtype=np.int64)
    for part in parts:
        counts += np.bincount(part.owner, minlength=num_targets)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    total, place = int(indptr[-1]), indptr[:-1].copy()  # the next free place of each target
    votes = Votes(
        shuffle.num_groups,
        num_classes,
        *(abstaining(num_targets) if default is None else default),
        indptr,
        np.empty(total, dtype=np.int32),
        *abstaining(total),
        np.ones(total, dtype=bool),
    )
    for part in parts:
        count = np.bincount(part.owner, minlength=num_targets)
        order = torch.argsort(torch.from_numpy(part.owner), stable=True).numpy()  # by target, then by group
        here = np.arange(len(order)) + np.repeat(place - (np.cumsum(count) - count), count)
        place += count
        votes.group[here] = np.repeat(np.arange(part.groups.start, part.groups.stop, dtype=np.int32), part.size)[order]
        for name in ("reached", "ballot", "stable"):
            values = getattr(part, name)
            if values is not None:
                getattr(votes, name)[here] = values[order]
    return votes


def abstaining(number: int) -> Predictions:
    """Ballots for nobody, beyond doubt."""
    return np.full(number, ABSTAIN, dtype=np.int16), np.ones(number, dtype=bool)


def _in_order(parts: Sequence[RangeVotes], num_groups: int) -> list[RangeVotes]:
    parts = sorted(parts, key=lambda part: part.groups.start)
    ends = [0, *(part.groups.stop for part in parts)]
    starts = [*(part.groups.start for part in parts), num_groups]
    if starts != ends:
        raise ValueError(
            f"{num_groups} groups are to be merged, and there are votes of {[str(part.groups) for part in parts]}: "
            "each group must be in one of them."
        )
    return parts


def covers(parts: Sequence[RangeVotes], shuffle: Shuffle, votes: Votes) -> Cover:
    """The cover tables of the targets; empty where the division needs none."""
    division, rows = shuffle.division, shuffle.rows
    if division.family != "edge-centric" or (division.is_per_neighbour and not shuffle.on_graphs):
        return no_cover(len(rows))  # … or a node reaches one vote of a target, its own
    parts, cap = _in_order(parts, shuffle.num_groups), np.diff(votes.indptr)
    if shuffle.on_graphs:
        reach = np.sum([part.reach for part in parts if part.reach is not None], axis=0)
        return cover.cover_of_graphs(reach, shuffle.graph.graph_of_node.numpy(), cap)
    small = [part.small for part in parts if part.small is not None]
    return cover.cover_of_nodes(small, targets_of(rows, len(shuffle.graph.x)), cap)


def no_cover(num_targets: int) -> Cover:
    """Empty tables."""
    return np.zeros(num_targets + 1, dtype=np.int64), np.zeros(0, dtype=np.int64)
