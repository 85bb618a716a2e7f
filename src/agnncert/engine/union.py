"""The subgraphs of a division side by side in one disjoint union, and the chunks in which it is evaluated."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from agnncert.certificates.votes import IntArray
from agnncert.divisions.base import DisjointUnion, Division
from agnncert.engine import reach as reach_tables
from agnncert.engine.adapter import ModelAdapter
from agnncert.engine.features import SparseRows
from agnncert.graphs.graph import CanonicalGraph
from agnncert.progress import ReportProgress

# Copies per chunk when no memory limit is given: hidden layers of a chunk then stay in the processor's cache.
CHUNK_ROWS = 6144


@dataclass(frozen=True)
class SubgraphUnion:
    """The subgraphs of a division laid out for evaluation; made once, used for any number of models.

    ``report_progress`` is called after each chunk with the fraction of all copies that has been evaluated.
    """

    graph: CanonicalGraph
    union: DisjointUnion
    sparse: SparseRows | None
    report_progress: ReportProgress | None = None

    def near(self, rows: IntArray) -> "SubgraphUnion":
        """Without the parts of the union that are connected to none of these rows of the graph."""
        return replace(self, union=near_targets(self.union, self.graph, rows))

    def chunks(self, rows: int) -> Iterator["Chunk"]:
        """The union in runs of whole subgraphs of about ``rows`` copies (one subgraph may be larger)."""
        cell = self.union.subgraph_index
        edge_cell = cell[self.union.edge_index[0]]
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


def union_of_subgraphs(graph: CanonicalGraph, division: Division, dtype: torch.dtype = torch.float32) -> SubgraphUnion:
    """Lays out all subgraphs of a built-in division side by side, for a model that computes in this type."""
    return SubgraphUnion(
        graph, division.disjoint_union(graph, division.groups(graph)), SparseRows.of(graph.x.to(dtype))
    )


def chunk_rows(call: ModelAdapter, graph: CanonicalGraph, memory_limit: int | None) -> int:
    """How many copies fit a memory limit (bytes), supposing that a dozen tensors of the widest layer live at once."""
    if memory_limit is None:
        return CHUNK_ROWS
    parameters: Iterable[Tensor] = getattr(call.model, "parameters", list)()
    width = max([graph.x.size(1), *(max(p.shape, default=1) for p in parameters)])
    return int(max(1, memory_limit // (12 * width * call.dtype.itemsize)))


def chunk_inputs(
    call: ModelAdapter, layout: SubgraphUnion, chunk: Chunk
) -> tuple[Tensor, Tensor | None, Tensor, dict[str, Tensor]]:
    """What the model is called on for one chunk: node of each row, rows that are blank, edges, and their values."""
    union = layout.union
    blank = None if union.blank is None else union.blank[chunk.copies]
    edge_index = union.edge_index[:, chunk.edges] - chunk.copies.start
    return union.node[chunk.copies], blank, edge_index, call.edge_values(layout.graph, union.edge[chunk.edges])


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


def chunk_batch(layout: SubgraphUnion, chunk: Chunk) -> Tensor:
    """Number of the subgraph of each copy within the chunk."""
    batch: Tensor = torch.unique_consecutive(layout.union.subgraph_index[chunk.copies], return_inverse=True)[1]
    return batch


def near_targets(union: DisjointUnion, graph: CanonicalGraph, rows: IntArray) -> DisjointUnion:
    """Without the parts of a union that are connected to no target, if targets are few enough for that to pay."""
    if graph.task == "graph" or 2 * len(rows) >= len(graph.x):
        return union
    return _near(union, torch.from_numpy(rows))


def _near(union: DisjointUnion, targets: Tensor) -> DisjointUnion:
    """The part of a union that lies in one component with some copy of a target."""
    label = torch.from_numpy(reach_tables.components(union))
    wanted = torch.zeros(int(label.max()) + 1 if len(label) else 0, dtype=torch.bool)
    wanted[label[torch.isin(union.node, targets)]] = True
    keep = wanted[label]
    keep_edge = keep[union.edge_index[0]]
    position = torch.cumsum(keep, 0) - 1
    blank = None if union.blank is None else union.blank[keep]
    return DisjointUnion(
        union.subgraph_index[keep], union.node[keep], position[union.edge_index[:, keep_edge]], union.edge[keep_edge],
        union.votes[keep], union.reached[keep], blank,
    )  # fmt: skip
