"""Cuts the votes of a graph in parts into tasks that fit into memory.

What a task takes is bounded by counts that the manifest states: the rows of every part, and for each
range of nodes the most arcs that any group has there. So a hub makes its own range expensive, and no other.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch

from agnncert.divisions.base import Division
from agnncert.engine.adapter import ModelAdapter
from agnncert.errors import GraphError
from agnncert_large.partitioned.graph import PartitionedGraph
from agnncert_large.partitioned.voting import VoteTask, cut

BYTES_PER_ARC = 200  # of a group's arcs at work: ends, copies and their numbers
BYTES_PER_VOTE = 16  # of a listed vote, which is kept, joined and written
LAYERS_AT_ONCE = 6  # rows of the widest layer that are held for each copy of a node
MESSAGES_AT_ONCE = 3  # of them for each arc
BYTES_UNPACKED = 64  # of a row of a part, beside what lies in the file: numbers and ids are compressed there
TIMES_READ = 3  # of the bytes of a part while it is read: as a file, as a table, as an array


@dataclass(frozen=True)
class Sizes:
    """What decides how much memory a task takes.

    Attributes:
        num_features: Number of features.
        width: Entries of the widest layer.
        itemsize: Bytes of an entry.
    """

    num_features: int
    width: int
    itemsize: int

    @classmethod
    def of(cls, graph: PartitionedGraph, bound_model: ModelAdapter | None) -> "Sizes":
        """Returns the sizes of a graph and a model."""
        if bound_model is None:
            return cls(graph.num_features, 1, 4)
        parameters: Iterable[torch.Tensor] = getattr(bound_model.model, "parameters", list)()
        widest = max([1, *(max(each.shape, default=1) for each in parameters if each.dim() > 1)])
        return cls(graph.num_features, widest, bound_model.dtype.itemsize)

    @property
    def per_node(self) -> int:
        """Bytes of a node of a span: its features, their projection, key and bounds."""
        return (self.num_features + self.width) * self.itemsize + 80

    @property
    def per_copy(self) -> int:
        """Bytes of a node that is evaluated."""
        return LAYERS_AT_ONCE * self.width * self.itemsize

    @property
    def per_arc(self) -> int:
        """Bytes of an arc along which something is sent."""
        return BYTES_PER_ARC + MESSAGES_AT_ONCE * self.width * self.itemsize

    def of_senders(self, rows: float, arcs: float) -> float:
        """Returns bytes of the senders of a group.

        Args:
            rows: How many there are.
            arcs: Number of arcs among them.
        """
        return rows * (2 * self.per_node + self.per_copy) + arcs * self.per_arc

    def of_range(self, rows: float, arcs: float, most: float) -> float:
        """Returns bytes of a range of nodes.

        Args:
            rows: Number of nodes.
            arcs: Number of arcs that lead to them.
            most: Number of those in one group.
        """
        return rows * self.per_node + most * self.per_arc + (arcs + rows) * BYTES_PER_VOTE


def plan(graph: PartitionedGraph, sizes: Sizes, division: Division, memory: int, at_least: int) -> list[VoteTask]:
    """Cuts the votes of a graph into tasks that fit into memory.

    Args:
        graph: The graph.
        sizes: The sizes.
        division: The division.
        memory: Bytes that a task may take.
        at_least: How many tasks there should be, if there are that many groups.

    Raises:
        GraphError: The part of a single group does not fit.
    """
    if graph.by_sender:
        return _plan_by_spans(graph, sizes, division, memory, at_least)
    return _plan_by_groups(graph, sizes, division, memory, at_least)


def _plan_by_spans(
    graph: PartitionedGraph, sizes: Sizes, division: Division, memory: int, at_least: int
) -> list[VoteTask]:
    senders = sizes.of_senders(_most_rows(graph, "senders"), _most_rows(graph, "inner"))
    fixed = int(senders) + _reading(graph)
    counts = zip(graph.ranges, graph.arcs_on, graph.most_arcs_on, strict=True)
    sizes_of_ranges = [int(sizes.of_range(part.rows, arcs, most)) for part, arcs, most in counts]
    needed = fixed + max(sizes_of_ranges)
    if needed > memory:
        raise GraphError(
            f"a task needs {needed:,} bytes for the senders of one group and one range of nodes, and may "
            f"take {memory:,}: give memory_limit={needed}, or divide the graph into more groups."
        )
    spans = packed(sizes_of_ranges, memory - fixed)
    blocks = max(1, -(-at_least // len(spans)))
    step = max(1, division.num_groups // blocks)
    tasks = []
    for ranges in spans:
        size = fixed + sum(sizes_of_ranges[ranges.start : ranges.stop])
        tasks += [VoteTask(groups, ranges, size) for groups in cut(division.num_groups, step)]
    return tasks


def packed(sizes: Sequence[int], room: int) -> list[range]:
    """Returns consecutive numbers in ranges whose sizes fit into some room, as few as possible.

    Example:
        >>> packed([3, 3, 9, 1, 1], 9)
        [range(0, 2), range(2, 3), range(3, 5)]
    """
    spans = []
    first, total = 0, 0
    for number, size in enumerate(sizes):
        if number > first and total + size > room:
            spans.append(range(first, number))
            first, total = number, 0
        total += size
    return [*spans, range(first, len(sizes))]


def _plan_by_groups(
    graph: PartitionedGraph, sizes: Sizes, division: Division, memory: int, at_least: int
) -> list[VoteTask]:
    arcs = _most_rows(graph, "arcs")
    ends = min(2 * arcs, graph.num_nodes)
    held = ends * (graph.num_features * sizes.itemsize + 24 + BYTES_PER_VOTE) + arcs * 24
    at_work = ends * (sizes.per_node + sizes.per_copy) + arcs * sizes.per_arc + _reading(graph)
    needed = held + at_work
    if needed > memory:
        raise GraphError(
            f"in the edge-centric division all nodes of a subgraph may send, so a task holds a whole "
            f"subgraph: {needed:,} bytes, and it may take {memory:,}. Give memory_limit={needed}, or "
            "divide the graph into more groups."
        )
    step = max(1, min((memory - at_work) // max(1, held), division.num_groups // max(1, at_least)))
    everything = range(len(graph.ranges))
    return [VoteTask(groups, everything, at_work + step * held) for groups in cut(division.num_groups, step)]


def _most_rows(graph: PartitionedGraph, kind: str) -> int:
    """Returns the rows of the group with the most."""
    groups = range(len(graph.manifest[kind]))
    return max(sum(part.rows for part in graph.parts_of(kind, group)) for group in groups)


def _reading(graph: PartitionedGraph) -> int:
    """Returns the bytes that reading a part takes beside what is kept of it."""
    parts = [*graph.feature_ranges, *graph.ranges]
    for kind in ("arcs", "inner", "senders"):
        parts += [part for group in range(len(graph.manifest[kind])) for part in graph.parts_of(kind, group)]
    return TIMES_READ * max(part.bytes + part.rows * BYTES_UNPACKED for part in parts)
