"""The fast engine: the ballots of ``naive`` for the price of a few forward passes.

A node without an edge in a subgraph votes there as it votes without any edge. So only copies of nodes *with* an edge
are evaluated, all subgraphs side by side in one disjoint union, and all other ballots are the edgeless prediction. The
union is cut between subgraphs into chunks that do not depend on each other.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from agnncert.certificates.votes import ABSTAIN, IntArray
from agnncert.divisions.base import DisjointUnion, Division
from agnncert.engine.call import Caller, no_edges
from agnncert.engine.features import Features, SparseRows
from agnncert.engine.rounding import Predictions, guarded
from agnncert.graphs.graph import CanonicalGraph, one_graph
from agnncert.progress import ReportProgress

# Copies per chunk when no memory limit is given: hidden layers of a chunk then stay in the processor's cache.
CHUNK_ROWS = 6144
EDGELESS_ROWS = 2**17  # targets without edges that are evaluated together, likewise


@dataclass(frozen=True)
class Plan:
    """The subgraphs of a division laid out for evaluation; made once, used for any number of models.

    ``report_progress`` is called after each chunk with the fraction of all copies that has been evaluated.
    """

    graph: CanonicalGraph
    pieces: DisjointUnion
    sparse: SparseRows | None
    report_progress: ReportProgress | None = None

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


def plan(
    graph: CanonicalGraph, division: Division, rows: IntArray | None = None, dtype: torch.dtype = torch.float32
) -> Plan:
    """Lays out all subgraphs of a built-in division side by side.

    Args:
        graph: A canonical graph.
        division: A division that offers ``pieces``.
        rows: Node task: rows of the targets. Parts of the union that are connected to no target are left out.
        dtype: Type in which the model computes.
    """
    pieces = division.disjoint_union(graph, division.groups(graph))
    pieces = pieces if rows is None else near_targets(pieces, graph, rows)
    return Plan(graph, pieces, SparseRows.of(graph.x.to(dtype)))


def chunk_rows(call: Caller, graph: CanonicalGraph, memory_limit: int | None) -> int:
    """How many copies fit a memory limit (bytes), supposing that a dozen tensors of the widest layer live at once."""
    if memory_limit is None:
        return CHUNK_ROWS
    parameters: Iterable[Tensor] = getattr(call.model, "parameters", list)()
    width = max([graph.x.size(1), *(max(p.shape, default=1) for p in parameters)])
    return int(max(1, memory_limit // (12 * width * call.dtype.itemsize)))


def features_of(
    call: Caller, graph: CanonicalGraph, sparse: SparseRows | None = None, memory_limit: int | None = None
) -> Features:
    """The features of a graph as the model's type has them, to be projected once for all ranges of groups.

    Where projections would go beyond a memory limit (bytes), each chunk projects its own rows.
    """
    return Features(graph.x.to(call.dtype), sparse, most_kept=memory_limit)


def edgeless_ballots(
    call: Caller,
    graph: CanonicalGraph,
    features: Features,
    rows: IntArray,
    tolerance: float | None,
    memory_limit: int | None = None,
) -> Predictions:
    """Ballots of the targets without edges, some of them at a time."""
    step = EDGELESS_ROWS if memory_limit is None else chunk_rows(call, graph, memory_limit)
    none = no_edges(graph, call.takes)
    parts = [
        guarded(call, tolerance, features.rows(torch.from_numpy(rows[first : first + step])), *none)
        for first in range(0, max(len(rows), 1), step)
    ]
    return np.concatenate([b for b, _ in parts]), np.concatenate([s for _, s in parts])


def ballots(
    call: Caller, layout: Plan, features: Features, tolerance: float | None, memory_limit: int | None = None
) -> Predictions:
    """Ballots of all copies or, in the graph task, of the cells that are not empty, ascending."""
    on_graphs = layout.graph.task == "graph"
    parts = [
        guarded(call, tolerance, *_inputs(call, layout, features, chunk), _batch(layout, chunk) if on_graphs else None)
        for chunk in layout.chunks(chunk_rows(call, layout.graph, memory_limit))
    ]
    if not parts:
        return np.empty(0, dtype=np.int16), np.empty(0, dtype=bool)
    return np.concatenate([b for b, _ in parts]), np.concatenate([s for _, s in parts])


def evaluate(call: Caller, layout: Plan, features: Features, chunk: Chunk, batch: Tensor | None = None) -> Tensor:
    """Logits of one chunk: of its copies, or of its cells when ``batch`` says which copy belongs to which."""
    return call(*_inputs(call, layout, features, chunk), batch)


def _inputs(call: Caller, layout: Plan, features: Features, chunk: Chunk) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
    pieces = layout.pieces
    blank = None if pieces.blank is None else pieces.blank[chunk.copies]
    x = features.rows(pieces.node[chunk.copies], blank)
    edge_index = pieces.edge_index[:, chunk.edges] - chunk.copies.start
    return x, edge_index, call.edge_values(layout.graph, pieces.edge[chunk.edges])


def custom_table(
    call: Caller,
    graph: CanonicalGraph,
    division: Division,
    rows: IntArray,
    tolerance: float | None,
    memory_limit: int | None,
) -> Predictions:
    """Ballots of a division without ``pieces``, many subgraphs at a time; shape ``[num_targets, num_groups]``."""
    on_graphs = graph.task == "graph"
    ballots = np.full((len(rows), division.num_groups), ABSTAIN, dtype=np.int16)
    stable = np.ones(ballots.shape, dtype=bool)
    limit = chunk_rows(call, graph, memory_limit)
    for places, parts in _packed(_subgraphs(graph, division, rows), limit):
        sizes = torch.tensor([part.x.size(0) for part in parts])
        starts = torch.cumsum(sizes, 0) - sizes
        x = torch.cat([part.x for part in parts]).to(call.dtype)
        edge_index = torch.cat([p.edge_index + s for p, s in zip(parts, starts.tolist(), strict=True)], dim=1)
        valued = [call.edge_values(part) for part in parts]
        values = {name: torch.cat([value[name] for value in valued]) for name in call.takes}
        batch = torch.repeat_interleave(torch.arange(len(parts)), sizes) if on_graphs else None
        vote, sure = guarded(call, tolerance, x, edge_index, values, batch)
        for k, ((row, alike), start) in enumerate(zip(places, starts.tolist(), strict=True)):
            if on_graphs:
                ballots[row, alike], stable[row, alike] = vote[k], sure[k]
                continue
            here = rows + start
            abstain = parts[k].abstain
            silent = np.zeros(len(rows), dtype=bool) if abstain is None else abstain.numpy()[rows]
            ballots[:, alike] = np.where(silent, ABSTAIN, vote[here])[:, None]
            stable[:, alike] = (silent | sure[here])[:, None]
    return ballots, stable


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


def components(pieces: DisjointUnion) -> IntArray:
    """Connected component of every copy in the union, edges taken in both directions."""
    source, head = pieces.edge_index.numpy()
    ones, size = np.ones(len(source), dtype=np.int8), len(pieces.cell)
    _, label = connected_components(coo_matrix((ones, (source, head)), (size, size)), directed=False)
    return label.astype(np.int64)  # type: ignore[no-any-return]


def near_targets(pieces: DisjointUnion, graph: CanonicalGraph, rows: IntArray) -> DisjointUnion:
    """Without the parts of a union that are connected to no target, if targets are few enough for that to pay."""
    if graph.task == "graph" or 2 * len(rows) >= len(graph.x):
        return pieces
    return _near(pieces, torch.from_numpy(rows))


def _near(pieces: DisjointUnion, targets: Tensor) -> DisjointUnion:
    """The part of a union that lies in one component with some copy of a target."""
    label = torch.from_numpy(components(pieces))
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
