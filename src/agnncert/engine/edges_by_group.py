"""``EdgesByGroup``: the edges of a graph sorted by group, so that subgraphs can be laid out some groups at a time."""

from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from agnncert.certificates.votes import IntArray
from agnncert.divisions.base import DisjointUnion, Division
from agnncert.engine.union import SubgraphUnion, near_targets
from agnncert.graphs.graph import CanonicalGraph

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
        whole_union: All subgraphs, if they have been laid out before (``plan`` of the same graph, division and rows).
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
        whole_union: SubgraphUnion | None = None,
        by_group: tuple[Tensor, IntArray] | None = None,
    ) -> None:
        self.graph, self.division, self.rows = graph, division, rows
        self.num_groups, self.on_graphs = division.num_groups_in(graph), graph.task == "graph"
        self.whole_union = whole_union
        known = whole_union is not None or by_group is not None
        self._groups: Tensor | None = None if known else division.groups(graph)
        self._sorted = by_group

    def ranges(self, memory_limit: int | None = None) -> list[range]:
        """All groups in runs that can be laid out within a memory limit (bytes); a run has one group at least."""
        everything = range(self.num_groups)
        most = EDGES_AT_ONCE if memory_limit is None else max(1, memory_limit // BYTES_PER_EDGE)
        if self.whole_union is not None or self.graph.edge_index.size(1) <= most:
            return [everything]
        start = self.sorted_edges()[1]
        cuts, first = [0], 0
        while first < self.num_groups:
            last = int(np.searchsorted(start, start[first] + most, side="right")) - 1
            first = min(max(last, first + 1), self.num_groups)
            cuts.append(first)
        return [range(a, b) for a, b in pairwise(cuts)]

    def union(self, groups: range) -> DisjointUnion:
        """The subgraphs of some groups, side by side."""
        if self.whole_union is not None:
            assert len(groups) == self.num_groups
            return self.whole_union.union
        if len(groups) == self.num_groups and self._groups is not None:
            union = self.division.disjoint_union(self.graph, self._groups)
        else:
            edges, start = self.sorted_edges()
            sizes = torch.from_numpy(np.diff(start[groups.start : groups.stop + 1]))
            own = torch.repeat_interleave(torch.arange(groups.start, groups.stop), sizes)
            part = edges[start[groups.start] : start[groups.stop]].long()
            union = self.division.disjoint_union(self.graph, own, part, groups)
        return near_targets(union, self.graph, self.rows)

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
            self._sorted = sort_by_group(self._groups, self.num_groups)
            self._groups = None  # as large as half the edges, and no longer needed
        return self._sorted


def sort_by_group(groups: Tensor, num_groups: int) -> tuple[Tensor, IntArray]:
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
