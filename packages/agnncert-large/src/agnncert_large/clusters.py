"""Cluster-GCN training: steps on parts of a graph that does not fit into one pass.

METIS computes the clusters from the whole graph. They only decide which edges a training step sees; certificates do not
depend on them. METIS needs about a hundred bytes per directed edge. Of a graph with more than ``METIS_EDGES`` of them
it gets a sample in which every node keeps some edges, so that memory stays bounded.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch_geometric.data import Data

from agnncert.errors import SettingsError, missing
from agnncert.graphs.graph import CanonicalGraph
from agnncert.training.losses import TrainingStep
from agnncert.training.node_objectives import NodeObjective, SampledNodeObjective

Edges = npt.NDArray[np.int64]

METIS_EDGES = 24_000_000  # directed edges that METIS gets at most
_BLOCK = 1 << 22


def partition(data: Data, num_parts: int) -> list[Tensor]:
    """Splits the nodes into parts of about the same size with few edges between them.

    Args:
        data: One graph.
        num_parts: Number of parts, from 1 to the number of nodes.

    Returns:
        Row numbers of the nodes of each part, ascending; every node is in exactly one. Empty parts are left out. The
        same graph always gives the same parts.

    Raises:
        SettingsError: ``num_parts`` is not valid.
        MissingPackage: pymetis is not installed.
    """
    total = int(data.num_nodes)
    if not 1 <= num_parts <= total:
        raise SettingsError(f"num_parts is {num_parts}: expected a number from 1 to {total}, the number of nodes.")
    if num_parts == 1:
        return [torch.arange(total)]
    try:
        import pymetis
    except ModuleNotFoundError as error:
        raise missing(error.name, "cutting a graph into clusters") from None
    tails, heads = _sample(data.edge_index.numpy(), total)
    degree = np.bincount(tails, minlength=total)
    starts = np.concatenate([[0], np.cumsum(degree)])
    if hasattr(pymetis, "CSRAdjacency"):
        _, part_of_node = pymetis.part_graph(num_parts, pymetis.CSRAdjacency(starts, heads))
    else:  # before 2025
        _, part_of_node = pymetis.part_graph(num_parts, xadj=starts, adjncy=heads)
    parts = np.asarray(part_of_node)
    order = torch.from_numpy(np.argsort(parts, kind="stable"))
    sizes = np.bincount(parts, minlength=num_parts).tolist()
    return [rows for rows in torch.split(order, sizes) if len(rows)]


def _sample(edge_index: Edges, total: int) -> Edges:
    """Returns pairs of nodes in both directions, each once, sorted; a sample if there are more than ``METIS_EDGES``.

    The probability to keep a pair falls with the degrees of its ends, so that every node keeps some.
    """
    num_edges = edge_index.shape[1]
    keeps_all = num_edges <= METIS_EDGES
    degree = np.bincount(edge_index.reshape(-1), minlength=total)
    edges_per_node = METIS_EDGES / (2 * max(1, total))
    share = edges_per_node / np.maximum(degree, 1)
    random = np.random.default_rng(0)
    kept = [np.zeros(0, dtype=np.int64)]
    for start in range(0, num_edges, _BLOCK):
        tails, heads = edge_index[:, start : start + _BLOCK].astype(np.int64)
        low = np.minimum(tails, heads)
        high = np.maximum(tails, heads)
        is_kept = low != high
        if not keeps_all:
            is_kept &= random.random(len(low)) < share[low] + share[high]
        kept.append(low[is_kept] * total + high[is_kept])
    low, high = np.divmod(_distinct(np.concatenate(kept)), total)
    both_ways = np.concatenate([low * total + high, high * total + low])
    return np.stack(np.divmod(_distinct(both_ways), total))


def _distinct(keys: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Returns the keys in ascending order, each once. The given array is sorted in place."""
    if not len(keys):
        return keys
    keys.sort()  # np.unique takes many times as long
    is_first = np.concatenate([[True], keys[1:] != keys[:-1]])
    return np.asarray(keys[is_first])


MakeObjective = Callable[[CanonicalGraph, Tensor, Tensor], NodeObjective | SampledNodeObjective]


class _Part(NamedTuple):
    """A few clusters together.

    Attributes:
        nodes: Their nodes, ascending.
        graph: The graph on these.
        positions: Where wanted nodes are among ``nodes``.
    """

    nodes: Tensor
    graph: CanonicalGraph
    positions: Tensor


@dataclass(frozen=True)
class ClusterObjective:
    """The objective of a node classifier on a few clusters at a time.

    Attributes:
        graph: The canonical graph.
        y: Label of every node.
        rows: Nodes to train on.
        clusters: Nodes of each cluster, from ``partition``.
        per_step: Clusters that a step joins, with all edges among them, in a new random order in every epoch.
        make: Makes the objective of one part from its graph, its labels and its training rows.
    """

    graph: CanonicalGraph
    y: Tensor
    rows: Tensor
    clusters: list[Tensor]
    per_step: int
    make: MakeObjective

    def steps(self) -> Iterator[TrainingStep]:
        """Yields one step per ``per_step`` clusters, in random order. Clusters without a training node give no step."""
        order = torch.randperm(len(self.clusters))
        for part in self._parts(order, self.rows):
            yield self.make(part.graph, self.y[part.nodes], part.positions).backward

    def scored(self, rows: Tensor) -> Iterator[tuple[CanonicalGraph, Tensor, Tensor]]:
        """Yields the parts with some of ``rows``, each with their positions in it and their labels."""
        for part in self._parts(torch.arange(len(self.clusters)), rows):
            yield part.graph, part.positions, self.y[part.nodes[part.positions]]

    def _parts(self, order: Tensor, wanted: Tensor) -> Iterator[_Part]:
        """Yields a part for every ``per_step`` clusters that hold some of the wanted nodes."""
        is_wanted = torch.zeros(self.graph.num_nodes, dtype=torch.bool)
        is_wanted[wanted] = True
        incoming = Incoming.of(self.graph)
        for numbers in torch.split(order, self.per_step):
            nodes = torch.cat([self.clusters[k] for k in numbers.tolist()]).sort().values
            positions = is_wanted[nodes].nonzero().view(-1)
            if len(positions):
                yield _Part(nodes, induced(self.graph, nodes, incoming), positions)


def cluster_objective(
    graph: CanonicalGraph, y: Tensor, rows: Tensor, num_clusters: int, per_step: int, make: MakeObjective
) -> ClusterObjective:
    """Cuts a graph into clusters; see ``partition`` and ``ClusterObjective``."""
    return ClusterObjective(graph, y, rows, partition(graph, num_clusters), per_step, make)


@dataclass(frozen=True)
class Incoming:
    """Positions of the incoming edges of each node, which are consecutive in a canonical graph.

    Attributes:
        start: Position of the first one, shape ``[num_nodes]``; 0 for nodes without any.
        count: Number of incoming edges, shape ``[num_nodes]``.
        place: Scratch, -1 everywhere, shape ``[num_nodes]``.
    """

    start: Tensor
    count: Tensor
    place: Tensor

    @classmethod
    def of(cls, graph: CanonicalGraph) -> "Incoming":
        """Finds the positions in one pass."""
        heads = graph.edge_index[1]
        count = torch.bincount(heads, minlength=graph.num_nodes)
        first_of_all = torch.ones(min(1, len(heads)), dtype=torch.bool)
        is_first = torch.cat([first_of_all, heads[1:] != heads[:-1]])
        begins = is_first.nonzero().view(-1)
        start = torch.zeros(graph.num_nodes, dtype=torch.int64)
        start[heads[begins]] = begins
        return cls(start, count, torch.full((graph.num_nodes,), -1, dtype=torch.int64))

    def edges(self, nodes: Tensor) -> Tensor:
        """Returns the positions of all incoming edges of some nodes, ascending."""
        nodes = nodes[torch.argsort(self.start[nodes])]
        count = self.count[nodes]
        before = torch.cumsum(count, 0) - count
        shift = torch.repeat_interleave(self.start[nodes] - before, count)
        return shift + torch.arange(len(shift))


def induced(graph: CanonicalGraph, nodes: Tensor, incoming: Incoming | None = None) -> CanonicalGraph:
    """Returns the canonical subgraph on some nodes (ascending). Nodes keep their keys, hence edges their groups."""
    incoming = incoming or Incoming.of(graph)
    place = incoming.place
    place[nodes] = torch.arange(len(nodes))
    edges = incoming.edges(nodes)
    edges = edges[place[graph.edge_index[0, edges]] >= 0]
    part = graph.with_edges(edges)
    part = replace(part, x=graph.x[nodes], edge_index=place[part.edge_index], node_key=graph.node_key[nodes])
    place[nodes] = -1
    return part
