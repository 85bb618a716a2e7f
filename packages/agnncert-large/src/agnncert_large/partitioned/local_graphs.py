"""The part of a subgraph that a worker evaluates: what the votes of some targets in one group depend on.

Node-centric, only the nodes of a group send in its subgraph. So the votes of some targets depend on
the arcs that lead to them from the group, on the group's own nodes, and on the arcs among these.
Edge-centric, all nodes may send: the part is the group's subgraph.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from agnncert.certificates.votes import IntArray
from agnncert.divisions.base import Division
from agnncert.engine.adapter import ModelAdapter
from agnncert.engine.edges_by_group import EdgesByGroup, SortedEdges
from agnncert.engine.features import Features
from agnncert.engine.joined_features import JoinedFeatures
from agnncert.engine.range_votes import RangeVotes, compute_range_votes, list_range_votes
from agnncert.graphs.graph import CanonicalGraph
from agnncert_large.partitioned.graph import Arcs, PartitionedGraph

INT32 = np.iinfo(np.int32).max


@dataclass(frozen=True)
class LocalGraph:
    """A part of one subgraph.

    Attributes:
        group: Whose subgraph it is.
        graph: The part. Its features are in ``features`` only.
        features: Features of its nodes.
        row: Row of each of its nodes in the whole graph.
    """

    group: int
    graph: CanonicalGraph
    features: Features
    row: IntArray

    def votes(
        self,
        bound_model: ModelAdapter | None,
        division: Division,
        targets: IntArray,
        tolerance: float,
        few_targets: bool,
    ) -> RangeVotes:
        """Computes the listed votes of some of its nodes.

        Args:
            bound_model: The model; ``None`` to list votes without classes.
            division: The division.
            targets: Numbers of these nodes in ``row``, ascending.
            tolerance: As in ``compute_votes``.
            few_targets: Whether the targets of the whole graph are few (``EdgesByGroup``).
        """
        count = self.graph.num_edges
        start = np.zeros(division.num_groups + 1, dtype=np.int64)
        start[self.group + 1 :] = count
        everything = SortedEdges(torch.arange(count), start)
        edges = EdgesByGroup(self.graph, division, targets, sorted_edges=everything, few_targets=few_targets)
        groups = range(self.group, self.group + 1)
        if bound_model is None:
            return list_range_votes(edges, groups)
        return compute_range_votes(bound_model, edges, groups, self.features, tolerance)


@dataclass(frozen=True)
class Span:
    """Nodes of consecutive rows, with their features.

    Attributes:
        first: Row of the first.
        key: Key of each.
        features: Features of each, in the model's type.
    """

    first: int
    key: IntArray
    features: Features

    @property
    def rows(self) -> range:
        """Their rows."""
        return range(self.first, self.first + len(self.key))


def read_span(graph: PartitionedGraph, numbers: Sequence[int], dtype: torch.dtype) -> Span:
    """Reads the nodes of consecutive ranges.

    Args:
        graph: The graph.
        numbers: Numbers of the ranges.
        dtype: Type of the model.
    """
    nodes = [graph.nodes(k) for k in numbers]
    x = torch.empty(sum(map(len, nodes)), graph.num_features, dtype=dtype)
    start = 0
    for k in numbers:
        rows = graph.features(k)
        x[start : start + len(rows)] = rows
        start += len(rows)
    return Span(nodes[0].first, np.concatenate([part.key for part in nodes]), Features(x))


def around_span(graph: PartitionedGraph, group: int, span: Span, dtype: torch.dtype) -> LocalGraph:
    """Returns what the votes of a span's nodes in a group depend on (node-centric divisions).

    Its first nodes are those of the span, in order; the senders outside follow.
    """
    senders = graph.senders(group)
    arcs = graph.arcs(group, span.rows)
    inner = graph.arcs(group, kind="inner")
    is_outside = (inner.target < span.rows.start) | (inner.target >= span.rows.stop)
    arcs = Arcs.joined([arcs, inner.select(is_outside)])
    sends_outside = (senders.row < span.rows.start) | (senders.row >= span.rows.stop)
    outside = senders.row[sends_outside]
    count = len(span.key)
    parts = [span.features]
    if len(outside):
        chosen = torch.from_numpy(np.flatnonzero(sends_outside))
        parts.append(Features(senders.x.index_select(0, chosen).to(dtype)))

    def local(rows: IntArray) -> IntArray:
        inside = (rows >= span.rows.start) & (rows < span.rows.stop)
        number = count + np.searchsorted(outside, rows)
        number[inside] = rows[inside] - span.first
        return number

    key = np.concatenate([span.key, senders.key[sends_outside]])
    row = np.concatenate([np.arange(span.rows.start, span.rows.stop), outside])
    return _local(group, arcs, local(arcs.source), local(arcs.target), key, row, JoinedFeatures(parts))


def subgraphs_of(graph: PartitionedGraph, groups: range, dtype: torch.dtype) -> Iterator[LocalGraph]:
    """Yields the subgraphs of some groups of an edge-centric division; features are read once for all of them.

    Args:
        graph: The graph.
        groups: The groups.
        dtype: Type of the model.
    """
    arcs = [graph.arcs(group) for group in groups]
    ends = [np.unique(np.concatenate([part.source, part.target])) for part in arcs]
    keys = [np.empty(len(rows), dtype=np.int64) for rows in ends]
    x = [torch.empty(len(rows), graph.num_features, dtype=dtype) for rows in ends]
    for number, part in enumerate(graph.ranges):
        of_range = None
        for k, rows in enumerate(ends):
            begin, end = np.searchsorted(rows, [part.first, part.last + 1])
            if begin == end:
                continue
            if of_range is None:
                of_range = (graph.nodes(number).key, graph.features(number).to(dtype))
            chosen = rows[begin:end] - part.first
            keys[k][begin:end] = of_range[0][chosen]
            x[k][begin:end] = of_range[1].index_select(0, torch.from_numpy(chosen))
    for k, group in enumerate(groups):
        source, target = (np.searchsorted(ends[k], each) for each in (arcs[k].source, arcs[k].target))
        yield _local(group, arcs[k], source, target, keys[k], ends[k], Features(x[k]))


def _local(  # noqa: PLR0917 - parts of one graph
    group: int,
    arcs: Arcs,
    source: IntArray,
    target: IntArray,
    key: IntArray,
    row: IntArray,
    features: Features,
) -> LocalGraph:
    graph = CanonicalGraph(
        x=features.x,
        edge_index=torch.from_numpy(np.stack([source, target])),
        node_key=torch.from_numpy(key),
        edge_weight=arcs.values.get("edge_weight"),
        edge_attr=arcs.values.get("edge_attr"),
    )
    return LocalGraph(group, graph, features, row)


def narrow(rows: IntArray) -> npt.NDArray[np.int32]:
    """Returns numbers as int32."""
    assert not len(rows) or rows[-1] <= INT32
    return rows.astype(np.int32)
