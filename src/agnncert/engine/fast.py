"""The fast engine: the votes of ``naive`` for the price of a few forward passes.

A node without an edge in a subgraph votes there as it votes without any edge. So only copies of nodes *with* an edge
are evaluated, all subgraphs side by side in one disjoint union. All other votes are the prediction without edges. The
union is cut between subgraphs into chunks that do not depend on each other.

Nor are all subgraphs needed side by side: votes are computed range by range, some groups at a time. What is kept of a
division is one number per edge, its place when edges are sorted by group (``EdgesByGroup``). The rest is computed for
each range and dropped. The votes do not depend on how groups are cut into ranges. ``merged`` refuses a range that is
missing or repeated. ``RangeVotes`` holds numpy arrays only and can be sent or stored.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from agnncert.certificates.votes import ABSTAIN, BoolArray, IntArray, Votes
from agnncert.divisions.base import DisjointUnion, Division
from agnncert.engine import reach as reach_tables
from agnncert.engine.call import ModelAdapter, no_edges
from agnncert.engine.features import Features, SparseRows
from agnncert.engine.reach import ReachTable, SmallComponents
from agnncert.engine.rounding import Predictions, guarded
from agnncert.graphs.graph import CanonicalGraph, one_graph
from agnncert.progress import ReportProgress

# Copies per chunk when no memory limit is given: hidden layers of a chunk then stay in the processor's cache.
CHUNK_ROWS = 6144
NO_EDGE_ROWS = 2**17  # targets without edges that are evaluated together, likewise


@dataclass(frozen=True)
class Plan:
    """The subgraphs of a division laid out for evaluation; made once, used for any number of models.

    ``report_progress`` is called after each chunk with the fraction of all copies that has been evaluated.
    """

    graph: CanonicalGraph
    pieces: DisjointUnion
    sparse: SparseRows | None
    report_progress: ReportProgress | None = None

    def near(self, rows: IntArray) -> "Plan":
        """Without the parts of the union that are connected to none of these rows of the graph."""
        return replace(self, pieces=near_targets(self.pieces, self.graph, rows))

    def chunks(self, rows: int) -> Iterator["Chunk"]:
        """The union in runs of whole subgraphs of about ``rows`` copies (one subgraph may be larger)."""
        cell = self.pieces.cell
        edge_cell = cell[self.pieces.edge_index[0]]
        ends = torch.cat([(cell[1:] != cell[:-1]).nonzero().view(-1) + 1, torch.tensor([len(cell)])])
        begin = 0
        for end in ends.tolist():
            if end > begin and (end - begin >= rows or end == len(cell)):
                span = cell[[begin, end - 1]]
                first = int(torch.searchsorted(edge_cell, span[0]))
                last = int(torch.searchsorted(edge_cell, span[1], right=True))
                yield Chunk(slice(begin, end), slice(first, last))
                begin = end
                if self.report_progress is not None:
                    self.report_progress(end / len(cell))


@dataclass(frozen=True)
class Chunk:
    """Some whole subgraphs: a run of copies and the run of edges between them."""

    copies: slice
    edges: slice


def plan(graph: CanonicalGraph, division: Division, dtype: torch.dtype = torch.float32) -> Plan:
    """Lays out all subgraphs of a built-in division side by side, for a model that computes in this type."""
    return Plan(graph, division.disjoint_union(graph, division.groups(graph)), SparseRows.of(graph.x.to(dtype)))


def chunk_rows(call: ModelAdapter, graph: CanonicalGraph, memory_limit: int | None) -> int:
    """How many copies fit a memory limit (bytes), supposing that a dozen tensors of the widest layer live at once."""
    if memory_limit is None:
        return CHUNK_ROWS
    parameters: Iterable[Tensor] = getattr(call.model, "parameters", list)()
    width = max([graph.x.size(1), *(max(p.shape, default=1) for p in parameters)])
    return int(max(1, memory_limit // (12 * width * call.dtype.itemsize)))


def no_edge_votes(
    call: ModelAdapter,
    graph: CanonicalGraph,
    features: Features,
    rows: IntArray,
    tolerance: float | None,
    memory_limit: int | None = None,
) -> Predictions:
    """Votes of the targets without edges, some of them at a time."""
    step = NO_EDGE_ROWS if memory_limit is None else chunk_rows(call, graph, memory_limit)
    none = no_edges(graph, call.takes)
    parts = [
        guarded(call, tolerance, features.rows(torch.from_numpy(rows[first : first + step])), *none)
        for first in range(0, max(len(rows), 1), step)
    ]
    return np.concatenate([b for b, _ in parts]), np.concatenate([s for _, s in parts])


def votes(
    call: ModelAdapter, layout: Plan, features: Features, tolerance: float | None, memory_limit: int | None = None
) -> Predictions:
    """The vote of each node in each subgraph where it has an edge; in the graph task, of each subgraph with nodes."""
    on_graphs = layout.graph.task == "graph"
    parts = []
    for chunk in layout.chunks(chunk_rows(call, layout.graph, memory_limit)):
        node, blank, edge_index, values = inputs(call, layout, chunk)
        batch = _batch(layout, chunk) if on_graphs else None
        parts.append(guarded(call, tolerance, features.rows(node, blank), edge_index, values, batch))
    if not parts:
        return np.empty(0, dtype=np.int16), np.empty(0, dtype=bool)
    return np.concatenate([b for b, _ in parts]), np.concatenate([s for _, s in parts])


def inputs(call: ModelAdapter, layout: Plan, chunk: Chunk) -> tuple[Tensor, Tensor | None, Tensor, dict[str, Tensor]]:
    """What the model is called on for one chunk: node of each row, rows that are blank, edges, and their values."""
    pieces = layout.pieces
    blank = None if pieces.blank is None else pieces.blank[chunk.copies]
    edge_index = pieces.edge_index[:, chunk.edges] - chunk.copies.start
    return pieces.node[chunk.copies], blank, edge_index, call.edge_values(layout.graph, pieces.edge[chunk.edges])


def custom_table(
    call: ModelAdapter,
    graph: CanonicalGraph,
    division: Division,
    rows: IntArray,
    tolerance: float | None,
    memory_limit: int | None,
) -> Predictions:
    """Votes of a division without ``pieces``, many subgraphs at a time; shape ``[num_targets, num_groups]``."""
    on_graphs = graph.task == "graph"
    votes = np.full((len(rows), division.num_groups), ABSTAIN, dtype=np.int16)
    stable = np.ones(votes.shape, dtype=bool)
    limit = chunk_rows(call, graph, memory_limit)
    for places, parts in _packed(_subgraphs(graph, division, rows), limit):
        x, edge_index, values, batch = side_by_side(call, parts)
        vote, sure = guarded(call, tolerance, x, edge_index, values, batch if on_graphs else None)
        starts = torch.searchsorted(batch, torch.arange(len(parts))).tolist()
        for k, ((row, alike), start) in enumerate(zip(places, starts, strict=True)):
            if on_graphs:
                votes[row, alike], stable[row, alike] = vote[k], sure[k]
                continue
            here = rows + start
            abstain = parts[k].abstain
            silent = np.zeros(len(rows), dtype=bool) if abstain is None else abstain.numpy()[rows]
            votes[:, alike] = np.where(silent, ABSTAIN, vote[here])[:, None]
            stable[:, alike] = (silent | sure[here])[:, None]
    return votes, stable


def side_by_side(
    call: ModelAdapter, parts: Sequence[CanonicalGraph]
) -> tuple[Tensor, Tensor, dict[str, Tensor], Tensor]:
    """Features, edges and edge values of several graphs in one, as a model takes them, and the graph of each node."""
    sizes = torch.tensor([part.x.size(0) for part in parts])
    starts = (torch.cumsum(sizes, 0) - sizes).tolist()
    edge_index = torch.cat([part.edge_index + start for part, start in zip(parts, starts, strict=True)], dim=1)
    valued = [call.edge_values(part) for part in parts]
    values = {name: torch.cat([value[name] for value in valued]) for name in call.takes}
    batch = torch.repeat_interleave(torch.arange(len(parts)), sizes)
    return torch.cat([part.x for part in parts]).to(call.dtype), edge_index, values, batch


Place = tuple[int, IntArray]  # a target and the groups that see the same subgraph


def _subgraphs(graph: CanonicalGraph, division: Division, rows: IntArray) -> Iterator[tuple[Place, CanonicalGraph]]:
    wholes = [one_graph(graph, k) for k in range(len(rows))] if graph.task == "graph" else [graph]
    for row, whole in enumerate(wholes):
        groups = division.groups(whole)
        same = division.same_as(whole, groups).numpy()
        for group in np.unique(same).tolist():
            part = division.subgraph(whole, groups, group)
            if part.x.size(0):
                yield (row, np.flatnonzero(same == group)), part


def _packed(
    items: Iterator[tuple[Place, CanonicalGraph]], limit: int
) -> Iterator[tuple[list[Place], list[CanonicalGraph]]]:
    places: list[Place] = []
    parts: list[CanonicalGraph] = []
    total = 0
    for place, part in items:
        if parts and total + part.x.size(0) > limit:
            yield places, parts
            places, parts, total = [], [], 0
        places.append(place)
        parts.append(part)
        total += part.x.size(0)
    if parts:
        yield places, parts


def _batch(layout: Plan, chunk: Chunk) -> Tensor:
    batch: Tensor = torch.unique_consecutive(layout.pieces.cell[chunk.copies], return_inverse=True)[1]
    return batch


def near_targets(pieces: DisjointUnion, graph: CanonicalGraph, rows: IntArray) -> DisjointUnion:
    """Without the parts of a union that are connected to no target, if targets are few enough for that to pay."""
    if graph.task == "graph" or 2 * len(rows) >= len(graph.x):
        return pieces
    return _near(pieces, torch.from_numpy(rows))


def _near(pieces: DisjointUnion, targets: Tensor) -> DisjointUnion:
    """The part of a union that lies in one component with some copy of a target."""
    label = torch.from_numpy(reach_tables.components(pieces))
    wanted = torch.zeros(int(label.max()) + 1 if len(label) else 0, dtype=torch.bool)
    wanted[label[torch.isin(pieces.node, targets)]] = True
    keep = wanted[label]
    keep_edge = keep[pieces.edge_index[0]]
    position = torch.cumsum(keep, 0) - 1
    blank = None if pieces.blank is None else pieces.blank[keep]
    return DisjointUnion(
        pieces.cell[keep], pieces.node[keep], position[pieces.edge_index[:, keep_edge]], pieces.edge[keep_edge],
        pieces.votes[keep], pieces.reached[keep], blank,
    )  # fmt: skip


# Range by range

BLOCK = 2**20  # edges that are sorted together
BYTES_PER_EDGE = 128  # that laying out a subgraph takes, about: ends, copies, and their numbers
EDGES_AT_ONCE = 2**21  # of a range of groups when no memory limit is given: a quarter of a gigabyte


class EdgesByGroup:
    """The edges of a graph by group.

    Args:
        graph: A canonical graph; in the graph task the joined targets.
        division: A division that offers ``pieces``.
        rows: Node task: rows of the targets; parts of a subgraph that are connected to no target are left out. Graph
            task: all graphs of ``graph``, in order.
        laid_out: All subgraphs, if they have been laid out before (``plan`` of the same graph, division and rows).
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
        laid_out: Plan | None = None,
        by_group: tuple[Tensor, IntArray] | None = None,
    ) -> None:
        self.graph, self.division, self.rows = graph, division, rows
        self.num_groups, self.on_graphs = division.num_groups_in(graph), graph.task == "graph"
        self.laid_out = laid_out
        known = laid_out is not None or by_group is not None
        self._groups: Tensor | None = None if known else division.groups(graph)
        self._sorted = by_group

    def ranges(self, memory_limit: int | None = None) -> list[range]:
        """All groups in runs that can be laid out within a memory limit (bytes); a run has one group at least."""
        everything = range(self.num_groups)
        most = EDGES_AT_ONCE if memory_limit is None else max(1, memory_limit // BYTES_PER_EDGE)
        if self.laid_out is not None or self.graph.edge_index.size(1) <= most:
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
        if self.laid_out is not None:
            assert len(groups) == self.num_groups
            return self.laid_out.pieces
        if len(groups) == self.num_groups and self._groups is not None:
            pieces = self.division.disjoint_union(self.graph, self._groups)
        else:
            edges, start = self.sorted_edges()
            sizes = torch.from_numpy(np.diff(start[groups.start : groups.stop + 1]))
            own = torch.repeat_interleave(torch.arange(groups.start, groups.stop), sizes)
            part = edges[start[groups.start] : start[groups.stop]].long()
            pieces = self.division.disjoint_union(self.graph, own, part, groups)
        return near_targets(pieces, self.graph, self.rows)

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
        size: Number of listed votes of each group, shape ``[len(groups)]``.
        owner: Target of each vote, shape ``[m]``.
        reached: Whether a change can reach it through an edge, shape ``[m]``; ``None`` if that is so of all.
        vote: The class voted for, shape ``[m]``; ``None`` before the model is called.
        stable: Whether it is beyond numerical doubt, shape ``[m]``; likewise ``None``.
        small: Edge-centric, node task: the small components, from which reach tables are made.
        reach: Edge-centric, graph task: in how many subgraphs each node has an edge, shape ``[num_nodes]``.
    """

    groups: range
    size: IntArray
    owner: npt.NDArray[np.int32]
    reached: BoolArray | None = None
    vote: npt.NDArray[np.int16] | None = None
    stable: BoolArray | None = None
    small: SmallComponents | None = None
    reach: npt.NDArray[np.int32] | None = None


def cast_range(
    call: ModelAdapter,
    shuffle: EdgesByGroup,
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
        features: Features of the graph in the model's type; shared by all ranges, so that they are projected once.
        tolerance: As in ``cast``.
        memory_limit: Bytes that one chunk may take, about.
        report_progress: Called with the fraction of the work that is done.
    """
    union = shuffle.pieces(groups)
    listed, copy = _found(shuffle, groups, union)
    layout = Plan(shuffle.graph, union, features.sparse, report_progress)
    vote, stable = votes(call, layout, features, tolerance, memory_limit)
    return replace(listed, vote=vote[copy], stable=stable[copy])


def list_range(shuffle: EdgesByGroup, groups: range) -> RangeVotes:
    """The votes of a range of groups before the model is called: which targets have one, and who reaches whom."""
    return _found(shuffle, groups, shuffle.pieces(groups))[0]


def _found(shuffle: EdgesByGroup, groups: range, union: DisjointUnion) -> tuple[RangeVotes, IntArray]:
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
        small = reach_tables.small_components(union) if edge_centric and not own_groups else None
    size = np.bincount(group - groups.start, minlength=len(groups))
    shown = None if reached.all() else reached
    return RangeVotes(groups, size, owner.astype(np.int32), shown, small=small, reach=reach), copy


def targets_of(rows: IntArray, num_nodes: int) -> npt.NDArray[np.int32]:
    """Which target each node is, -1 if it is none."""
    target_of = np.full(num_nodes, -1, dtype=np.int32)
    target_of[rows] = np.arange(len(rows))
    return target_of


def merged(
    parts: Sequence[RangeVotes], shuffle: EdgesByGroup, num_classes: int = 0, default: Predictions | None = None
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
        owner = torch.tensor(part.owner)  # a copy: arrays that come from other processes may be read-only
        order = torch.argsort(owner, stable=True).numpy()  # by target, then by group
        here = np.arange(len(order)) + np.repeat(place - (np.cumsum(count) - count), count)
        place += count
        votes.group[here] = np.repeat(np.arange(part.groups.start, part.groups.stop, dtype=np.int32), part.size)[order]
        for name in ("reached", "vote", "stable"):
            values = getattr(part, name)
            if values is not None:
                getattr(votes, name)[here] = values[order]
    return votes


def abstaining(number: int) -> Predictions:
    """Votes for nobody, beyond doubt."""
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


def covers(parts: Sequence[RangeVotes], shuffle: EdgesByGroup, votes: Votes) -> ReachTable:
    """The reach tables of the targets; empty where the division needs none."""
    division, rows = shuffle.division, shuffle.rows
    if division.family != "edge-centric" or (division.is_per_neighbour and not shuffle.on_graphs):
        return no_reach(len(rows))  # … or a node reaches one vote of a target, its own
    parts, cap = _in_order(parts, shuffle.num_groups), np.diff(votes.indptr)
    if shuffle.on_graphs:
        reach = np.sum([part.reach for part in parts if part.reach is not None], axis=0)
        return reach_tables.reach_of_graphs(reach, shuffle.graph.graph_of_node.numpy(), cap)
    small = [part.small for part in parts if part.small is not None]
    return reach_tables.reach_of_nodes(small, targets_of(rows, len(shuffle.graph.x)), cap)


def no_reach(num_targets: int) -> ReachTable:
    """Empty tables."""
    return np.zeros(num_targets + 1, dtype=np.int64), np.zeros(0, dtype=np.int64)
