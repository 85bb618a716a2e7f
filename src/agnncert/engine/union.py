"""The subgraphs of a division side by side in one disjoint union, and the chunks in which it is evaluated."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
from torch import Tensor

from agnncert.certificates.votes import IntArray
from agnncert.divisions.base import Division
from agnncert.divisions.union import DisjointUnion
from agnncert.engine import reach
from agnncert.engine.adapter import ModelAdapter
from agnncert.engine.features import SparseRows
from agnncert.graphs.graph import CanonicalGraph
from agnncert.progress import ReportProgress

# Copies per chunk when no memory limit is given: hidden layers of a chunk then stay in the processor's cache.
CHUNK_ROWS = 6144
TENSORS_AT_ONCE = 12  # tensors of the width of the widest layer that are supposed to be in memory at once


@dataclass(frozen=True)
class Chunk:
    """Some whole subgraphs of a union.

    Attributes:
        copies: The run of copies that they consist of.
        edges: The run of edges between these copies.
    """

    copies: slice
    edges: slice


@dataclass(frozen=True)
class SubgraphUnion:
    """A graph with the disjoint union of its subgraphs, which can be evaluated with any number of models.

    Attributes:
        graph: The graph.
        union: The disjoint union of its subgraphs.
        sparse: The features in compressed rows, or ``None`` if they are dense.
        report_progress: Called after each chunk with the fraction of all copies that has been evaluated.
    """

    graph: CanonicalGraph
    union: DisjointUnion
    sparse: SparseRows | None
    report_progress: ReportProgress | None = None

    def near(self, rows: IntArray) -> "SubgraphUnion":
        """Returns the same union without the parts that are connected to none of these rows of the graph."""
        return replace(self, union=near_targets(self.union, self.graph, rows))

    def chunks(self, rows: int) -> Iterator[Chunk]:
        """Yields the union in runs of whole subgraphs of about ``rows`` copies (one subgraph may be larger)."""
        subgraph = self.union.subgraph_index
        subgraph_of_edge = subgraph[self.union.edge_index[0]]
        num_copies = len(subgraph)
        last_copies = (subgraph[1:] != subgraph[:-1]).nonzero().view(-1)
        ends = [*(last_copies + 1).tolist(), num_copies]
        begin = 0
        for end in ends:
            is_full = end - begin >= rows or end == num_copies
            if end == begin or not is_full:
                continue
            first, last = subgraph[[begin, end - 1]]
            first_edge = int(torch.searchsorted(subgraph_of_edge, first))
            end_edge = int(torch.searchsorted(subgraph_of_edge, last, right=True))
            yield Chunk(slice(begin, end), slice(first_edge, end_edge))
            begin = end
            if self.report_progress is not None:
                self.report_progress(end / num_copies)


def union_of_subgraphs(graph: CanonicalGraph, division: Division, dtype: torch.dtype = torch.float32) -> SubgraphUnion:
    """Returns the union of all subgraphs of a division.

    Args:
        graph: The graph.
        division: A division that has a disjoint union.
        dtype: Type that the model computes in.
    """
    union = division.disjoint_union(graph, division.groups(graph))
    return SubgraphUnion(graph, union, SparseRows.of(graph.x.to(dtype)))


def chunk_rows(bound_model: ModelAdapter, graph: CanonicalGraph, memory_limit: int | None) -> int:
    """Returns how many copies a chunk may have within a memory limit in bytes; ``CHUNK_ROWS`` without a limit."""
    if memory_limit is None:
        return CHUNK_ROWS
    parameters: Iterable[Tensor] = getattr(bound_model.model, "parameters", list)()
    widest = max([graph.x.size(1), *(max(parameter.shape, default=1) for parameter in parameters)])
    return int(max(1, memory_limit // (TENSORS_AT_ONCE * widest * bound_model.dtype.itemsize)))


class ChunkInputs(NamedTuple):
    """What a model is called on for one chunk.

    Attributes:
        node: Node of each row.
        blank: Whether the features of each row are hidden; ``None`` if none are.
        edge_index: Edges between rows.
        values: What the edges carry, by name.
    """

    node: Tensor
    blank: Tensor | None
    edge_index: Tensor
    values: dict[str, Tensor]


def chunk_inputs(bound_model: ModelAdapter, subgraphs: SubgraphUnion, chunk: Chunk) -> ChunkInputs:
    """Returns what the model is called on for one chunk."""
    union = subgraphs.union
    return ChunkInputs(
        node=union.node[chunk.copies],
        blank=None if union.blank is None else union.blank[chunk.copies],
        edge_index=union.edge_index[:, chunk.edges] - chunk.copies.start,
        values=bound_model.edge_values(subgraphs.graph, union.edge[chunk.edges]),
    )


def chunk_batch(subgraphs: SubgraphUnion, chunk: Chunk) -> Tensor:
    """Returns the number of the subgraph of each copy of a chunk, counted from 0 within the chunk."""
    batch: Tensor = torch.unique_consecutive(subgraphs.union.subgraph_index[chunk.copies], return_inverse=True)[1]
    return batch


class JoinedInputs(NamedTuple):
    """Several graphs in one, as a model takes them.

    Attributes:
        x: Features.
        edge_index: Edges.
        values: What the edges carry, by name.
        batch: Graph of each node.
    """

    x: Tensor
    edge_index: Tensor
    values: dict[str, Tensor]
    batch: Tensor


def side_by_side(bound_model: ModelAdapter, graphs: Sequence[CanonicalGraph]) -> JoinedInputs:
    """Joins graphs into one, as a model takes them."""
    sizes = torch.tensor([graph.x.size(0) for graph in graphs])
    starts = (torch.cumsum(sizes, 0) - sizes).tolist()
    values = [bound_model.edge_values(graph) for graph in graphs]
    return JoinedInputs(
        x=torch.cat([graph.x for graph in graphs]).to(bound_model.dtype),
        edge_index=torch.cat([graph.edge_index + start for graph, start in zip(graphs, starts, strict=True)], dim=1),
        values={name: torch.cat([of_graph[name] for of_graph in values]) for name in bound_model.edge_inputs},
        batch=torch.repeat_interleave(torch.arange(len(graphs)), sizes),
    )


def near_targets(union: DisjointUnion, graph: CanonicalGraph, rows: IntArray) -> DisjointUnion:
    """Returns a union without the parts that are connected to no target, if targets are few enough for that to pay.

    Args:
        union: The union.
        graph: The graph.
        rows: Rows of the targets.
    """
    return near(union, rows) if are_few(len(rows), graph) else union


def are_few(num_targets: int, graph: CanonicalGraph) -> bool:
    """Tells whether targets are so few that it pays to leave out what is connected to none (node task)."""
    return graph.task == "node" and 2 * num_targets < len(graph.x)


def near(union: DisjointUnion, rows: IntArray) -> DisjointUnion:
    """Returns the part of a union that lies in one component with some copy of a target."""
    targets = torch.from_numpy(rows)
    component = torch.from_numpy(reach.components(union))
    has_target = torch.zeros(int(component.max()) + 1 if len(component) else 0, dtype=torch.bool)
    has_target[component[torch.isin(union.node, targets)]] = True
    keep = has_target[component]
    keep_edge = keep[union.edge_index[0]]
    position = torch.cumsum(keep, 0) - 1
    return DisjointUnion(
        subgraph_index=union.subgraph_index[keep],
        node=union.node[keep],
        edge_index=position[union.edge_index[:, keep_edge]],
        edge=union.edge[keep_edge],
        votes=union.votes[keep],
        reached=union.reached[keep],
        blank=None if union.blank is None else union.blank[keep],
    )
