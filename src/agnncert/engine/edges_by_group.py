"""``EdgesByGroup``: the edges of a graph sorted by group, so that subgraphs can be laid out some groups at a time.

All that is kept of a division is one number per edge, its position when edges are sorted by group. The rest is computed
for each range of groups and dropped.
"""

from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from agnncert.certificates.votes import IntArray
from agnncert.divisions.base import Division
from agnncert.divisions.union import DisjointUnion
from agnncert.engine.union import SubgraphUnion, are_few, near
from agnncert.graphs.graph import CanonicalGraph

BLOCK = 2**20  # edges that are sorted together
BYTES_PER_EDGE = 128  # memory that the union takes per edge, about: ends, copies, and their numbers
EDGES_AT_ONCE = 2**21  # edges of a range of groups when no memory limit is given: a quarter of a gigabyte


class SortedEdges(NamedTuple):
    """Edges sorted by group.

    Attributes:
        edge: Positions of the edges in the graph, group after group and ascending within each.
        start: Where each group begins in ``edge``, and where the last one ends, shape ``[num_groups + 1]``.
    """

    edge: Tensor
    start: IntArray


class EdgesByGroup:
    """The edges of a graph by group.

    Args:
        graph: A canonical graph; in the graph task the joined targets.
        division: A division that has a disjoint union.
        rows: Node task: rows of the targets. Parts of a subgraph that are connected to no target are left out. Graph
            task: all graphs of ``graph``, in order.
        whole_union: The union of all subgraphs of the same graph, division and rows, if it has been made before.
        sorted_edges: ``sorted_edges()`` of the same graph and division, if they have been sorted before.
        few_targets: Whether targets are so few that parts without one are left out. Defaults to what the graph says; of
            a part of a graph, the whole graph decides.

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
        sorted_edges: SortedEdges | None = None,
        few_targets: bool | None = None,
    ) -> None:
        self.graph = graph
        self.division = division
        self.rows = rows
        self.num_groups = division.num_groups_in(graph)
        self.on_graphs = graph.task == "graph"
        self.few_targets = are_few(len(rows), graph) if few_targets is None else few_targets
        self.whole_union = whole_union
        self._sorted = sorted_edges
        self._groups: Tensor | None = None
        if whole_union is None and sorted_edges is None:
            self._groups = division.groups(graph)
            if graph.num_edges > EDGES_AT_ONCE:
                self.sorted_edges()  # before anything else is computed: meanwhile the groups take memory

    def ranges(self, memory_limit: int | None = None) -> list[range]:
        """Returns all groups in ranges whose union fits a memory limit in bytes; a range has at least one group.

        Without a limit, a range has about ``EDGES_AT_ONCE`` edges.
        """
        most_edges = EDGES_AT_ONCE if memory_limit is None else max(1, memory_limit // BYTES_PER_EDGE)
        if self.whole_union is not None or self.graph.edge_index.size(1) <= most_edges:
            return [range(self.num_groups)]
        start = self.sorted_edges().start
        cuts = [0]
        while cuts[-1] < self.num_groups:
            first = cuts[-1]
            last = int(np.searchsorted(start, start[first] + most_edges, side="right")) - 1
            cuts.append(min(max(last, first + 1), self.num_groups))
        return [range(first, end) for first, end in pairwise(cuts)]

    def union(self, groups: range) -> DisjointUnion:
        """Returns the disjoint union of the subgraphs of some groups."""
        if self.whole_union is not None:
            assert len(groups) == self.num_groups
            return self.whole_union.union
        if len(groups) == self.num_groups and self._groups is not None:
            union = self.division.disjoint_union(self.graph, self._groups)
        else:
            edges, start = self.sorted_edges()
            sizes = torch.from_numpy(np.diff(start[groups.start : groups.stop + 1]))
            group_of_edge = torch.repeat_interleave(torch.arange(groups.start, groups.stop), sizes)
            edges = edges[start[groups.start] : start[groups.stop]].long()
            union = self.division.disjoint_union(self.graph, group_of_edge, edges, groups)
        return near(union, self.rows) if self.few_targets else union

    def groups_of(self, wanted: Iterable[int]) -> Tensor:
        """Returns the group of every edge; edges in groups that are not wanted may have −1 instead."""
        if self._groups is not None:
            return self._groups
        edges, start = self.sorted_edges()
        fits_int16 = self.num_groups <= torch.iinfo(torch.int16).max
        groups = torch.full((self.graph.num_edges,), -1, dtype=torch.int16 if fits_int16 else torch.int32)
        for index in wanted:
            groups[edges[start[index] : start[index + 1]].long()] = index
        return groups

    def sorted_edges(self) -> SortedEdges:
        """Returns the edges sorted by group; edges in no group are left out."""
        if self._sorted is None:
            assert self._groups is not None
            self._sorted = sort_by_group(self._groups, self.num_groups)
            self._groups = None  # as large as half the edges, and no longer needed
        return self._sorted


def sort_by_group(groups: Tensor, num_groups: int) -> SortedEdges:
    """Sorts edges by group, block by block, so that little memory is needed besides the result.

    Args:
        groups: Group of every edge; edges in no group (−1) are left out.
        num_groups: Number of groups.
    """
    # Number 0 stands for edges in no group, which come first and are cut off at the end.
    width = max(BLOCK, num_groups)
    blocks = [slice(first, first + width) for first in range(0, len(groups), width)]
    group = groups.numpy()
    counts = np.zeros(num_groups + 1, dtype=np.int64)
    for block in blocks:
        counts += np.bincount(group[block] + 1, minlength=num_groups + 1)
    start = np.concatenate([[0], np.cumsum(counts)])
    next_position = start[:-1].copy()
    sorts_by_counting = num_groups < np.iinfo(np.uint16).max  # what numpy does with short integers
    edges = np.empty(len(group), dtype=np.int32 if len(group) <= np.iinfo(np.int32).max else np.int64)
    for block in blocks:
        number = group[block] + 1
        order = np.argsort(number.astype(np.uint16) if sorts_by_counting else number, kind="stable")
        number = number[order]
        count = np.bincount(number, minlength=num_groups + 1)
        rank_in_group = np.arange(len(number)) - (np.cumsum(count) - count)[number]
        edges[next_position[number] + rank_in_group] = order + block.start
        next_position += count
    return SortedEdges(torch.from_numpy(edges[start[1] :]), start[1:] - start[1])
