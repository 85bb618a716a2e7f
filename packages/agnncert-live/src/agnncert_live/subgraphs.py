"""``Subgraphs``: a division edge by edge. It says in which subgraph a single edge lies, and which copies vote."""

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from agnncert.divisions.edge import EdgeCentric, PerEdge
from agnncert.divisions.node import GatedNodeCentric, NodeCentric, PerNeighbour
from agnncert.errors import DivisionError
from agnncert.graphs.graph import CanonicalGraph, Task
from agnncert_live.nodes import Nodes
from agnncert_live.union import OUTSIDE, Union

Array = npt.NDArray[Any]

LiveDivision = EdgeCentric | PerEdge | NodeCentric | GatedNodeCentric | PerNeighbour

_PAIR_BITS = 32  # the subgraph of a pair of nodes has the smaller slot above these bits, and the larger one in them
_LARGER_SLOT = 2**_PAIR_BITS - 1


def subgraph_of_pair(u: int, v: int) -> int:
    """Returns the index of the subgraph that belongs to a pair of nodes alone, by their slots."""
    return (min(u, v) << _PAIR_BITS) | max(u, v)


def pair_of_subgraph(subgraph: Array) -> tuple[Array, Array]:
    """Returns the slots of the two nodes to which subgraphs belong, the smaller ones first."""
    return subgraph >> _PAIR_BITS, subgraph & _LARGER_SLOT


@dataclass(frozen=True)
class Layout:
    """The union of all subgraphs of a whole graph.

    Attributes:
        subgraph_index: Subgraph of each copy.
        node: Row of the node of each copy.
        ends: Copies that each arc joins, shape ``[2, m]``.
        edge: Which edge of the graph each arc is.
    """

    subgraph_index: Array
    node: Array
    ends: Array
    edge: Array


@dataclass(frozen=True)
class Subgraphs:
    """The subgraph of a single edge, and which copies vote: the same as the division says about a whole graph.

    Subgraphs are numbered as in ``DisjointUnion``. With one group per neighbour, slots of nodes number the subgraphs,
    because rows change when nodes are added and deleted.

    Attributes:
        division: The division.
        task: ``"node"`` or ``"graph"``.

    Raises:
        DivisionError: The division cannot be kept up to date edge by edge.
    """

    division: LiveDivision
    task: Task

    def __post_init__(self) -> None:
        known = (EdgeCentric, PerEdge, NodeCentric, GatedNodeCentric, PerNeighbour)
        if type(self.division) not in known or self.division.edges_only:
            raise DivisionError(
                f"{self.division} cannot be kept current event by event: use EdgeCentric or NodeCentric."
            )

    @property
    def by_pair(self) -> bool:
        """Whether edges are divided by their pair of nodes."""
        return bool(self.division.divides_edges)

    @property
    def is_per_neighbour(self) -> bool:
        """Whether every neighbour has a group of its own."""
        return bool(self.division.is_per_neighbour)

    @property
    def of_graphs(self) -> bool:
        """Whether graphs are classified."""
        return self.task == "graph"

    @property
    def gated(self) -> bool:
        """Whether features are visible in a node's own group only."""
        return self.division.gates_features and not self.of_graphs

    @property
    def keeps_loops(self) -> bool:
        """Whether self-loops are edges like others."""
        return bool(self.division.self_loops)

    @property
    def keeps_home_copies(self) -> bool:
        """Whether every node has a copy in its own subgraph, also without arcs."""
        return self.gated or (self.of_graphs and not self.by_pair)

    @property
    def num_groups(self) -> int:
        """Number of groups that the division hashes into."""
        division: Any = self.division
        return int(division.num_groups)

    def group_of_key(self, key: int) -> int:
        """Returns the group of a node, where nodes are hashed; 0 elsewhere."""
        if self.by_pair or self.is_per_neighbour:
            return 0
        return _hashed(self._hash_name, b"agn-node", key) % self.num_groups

    def of_node(self, nodes: Nodes, node: int) -> int:
        """Returns the subgraph of a node's own group."""
        if self.is_per_neighbour:
            return node
        return self._first_of_graph(nodes, node) + int(nodes.home[node])

    def of_arc(self, nodes: Nodes, source: int, head: int) -> int:
        """Returns the subgraph of an arc, or ``OUTSIDE``."""
        if self.by_pair:
            return self._of_pair(nodes, source, head)
        subgraph = self.of_node(nodes, source)
        if self.of_graphs and subgraph != self.of_node(nodes, head):
            return OUTSIDE
        return subgraph

    def _of_pair(self, nodes: Nodes, source: int, head: int) -> int:
        if self.is_per_neighbour:
            return subgraph_of_pair(source, head)
        keys = sorted(int(nodes.key[node]) % 2**64 for node in (source, head))
        group = _hashed(self._hash_name, b"agn-edge", *keys) % self.num_groups
        return self._first_of_graph(nodes, source) + group

    def _first_of_graph(self, nodes: Nodes, node: int) -> int:
        """Returns the number of the first subgraph of the graph in which a node lies."""
        if not self.of_graphs:
            return 0
        return int(nodes.graph[node]) * self.num_groups

    @property
    def _hash_name(self) -> str:
        division: Any = self.division
        return str(division.hash)

    def has_vote(self, nodes: Nodes, union: Union, copies: Array) -> Array:
        """Returns which copies have a vote of their own (graph task: are in a subgraph that has one)."""
        if self.of_graphs:
            inside: Array = union.subgraph_index[copies] != OUTSIDE
            if self.keeps_home_copies:
                return inside & nodes.alive[union.node[copies]]
            return inside & ~union.is_empty(copies)
        if self.by_pair:
            return ~union.is_empty(copies)
        is_reached: Array = union.arriving.length[copies] > 0
        if self.gated:
            return is_reached | self.is_home(nodes, union, copies)
        return is_reached

    def is_home(self, nodes: Nodes, union: Union, copies: Array) -> Array:
        """Returns which copies lie in their node's own subgraph; only where nodes are hashed."""
        node = union.node[copies]
        home: Array = (nodes.home[node] == union.subgraph_index[copies]) & nodes.alive[node]
        return home

    def layout(self, graph: CanonicalGraph) -> Layout:
        """Returns the copies and arcs of a whole canonical graph, whose rows are the slots."""
        groups = self.division.groups(graph)
        union = self.division.disjoint_union(graph, groups)
        inside = Layout(
            subgraph_index=union.subgraph_index.numpy(),
            node=union.node.numpy(),
            ends=union.edge_index.numpy(),
            edge=union.edge.numpy(),
        )
        numbered = self._numbered_by_slots(inside)
        if self.of_graphs and not self.by_pair:
            return _with_outside(numbered, graph, np.flatnonzero(groups.numpy() < 0))
        return numbered

    def _numbered_by_slots(self, layout: Layout) -> Layout:
        """Returns the layout with subgraphs numbered by slots, where every neighbour has a group of its own."""
        subgraph_index = layout.subgraph_index
        if self.is_per_neighbour and self.by_pair:
            pair = np.sort(layout.node[layout.ends], axis=0).astype(np.int64)
            subgraph_index = np.empty(len(layout.node), dtype=np.int64)
            subgraph_index[layout.ends] = (pair[0] << _PAIR_BITS) | pair[1]
        elif self.is_per_neighbour and self.of_graphs:
            subgraph_index = layout.node.astype(np.int64)
        return Layout(subgraph_index, layout.node, layout.ends, layout.edge)


def _with_outside(layout: Layout, graph: CanonicalGraph, edges: Array) -> Layout:
    """Returns the layout with edges that lie in the graph and in no subgraph."""
    nodes, place = np.unique(graph.edge_index[:, edges].numpy(), return_inverse=True)
    ends = place.reshape(2, -1) + len(layout.subgraph_index)
    return Layout(
        subgraph_index=np.concatenate([layout.subgraph_index, np.full(len(nodes), OUTSIDE)]),
        node=np.concatenate([layout.node, nodes]),
        ends=np.concatenate([layout.ends, ends], axis=1),
        edge=np.concatenate([layout.edge, edges]),
    )


def _hashed(name: str, tag: bytes, *keys: int) -> int:
    """Returns the same number as ``hashing.first8``, for one message."""
    message = tag + b"".join([(key % 2**64).to_bytes(8, "little") for key in keys])
    return int.from_bytes(hashlib.new(name, message, usedforsecurity=False).digest()[:8], "little")
