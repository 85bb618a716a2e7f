"""Which cell an arc lies in, which copies there are and which of them vote: a division, one arc at a time.

The same as ``division.groups`` and ``division.pieces`` say about the whole graph; tests hold the two together.
"""

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from agnncert.divisions.base import is_per_neighbour, num_groups_in
from agnncert.divisions.edge import EdgeCentric
from agnncert.divisions.node import NodeCentric
from agnncert.errors import DivisionError
from agnncert.graphs.graph import CanonicalGraph, Task
from agnncert_live.nodes import OUTSIDE, Nodes, Union

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Cells:
    """What a division does with single arcs and nodes.

    Cells are numbered as in ``DisjointUnion``, except where every neighbour has a group of its own: there rows, which move
    when nodes come and go, do not number them, but slots of nodes do.

    Attributes:
        division: The division.
        task: ``"node"`` or ``"graph"``.
    """

    division: Any
    task: Task

    def __post_init__(self) -> None:
        if type(self.division) not in (EdgeCentric, NodeCentric):
            raise DivisionError(
                f"{self.division} cannot be kept current event by event: use EdgeCentric or NodeCentric."
            )

    @property
    def by_pair(self) -> bool:
        """Whether edges are divided by their pair of nodes."""
        return isinstance(self.division, EdgeCentric)

    @property
    def own_groups(self) -> bool:
        """Whether every neighbour has a group of its own."""
        return is_per_neighbour(self.division)

    @property
    def on_graphs(self) -> bool:
        """Whether graphs are classified."""
        return self.task == "graph"

    @property
    def gated(self) -> bool:
        """Whether features are visible in a node's own group only."""
        return bool(getattr(self.division, "gate_features", False)) and not self.on_graphs

    @property
    def keeps_loops(self) -> bool:
        """Whether self-loops are edges like others."""
        return bool(self.division.self_loops)

    @property
    def at_home(self) -> bool:
        """Whether every node has a copy in its own cell, also without arcs."""
        return self.gated or (self.on_graphs and not self.by_pair)

    def group_of_key(self, key: int) -> int:
        """Group of a node, where nodes are hashed; 0 elsewhere."""
        if self.by_pair or self.own_groups:
            return 0
        return _hashed(self.division.hash, b"agn-node", key) % int(self.division.num_groups)

    def of_node(self, nodes: Nodes, node: int) -> int:
        """The cell in which a node is at home."""
        if self.own_groups:
            return node
        return int(nodes.graph[node]) * self._stride + int(nodes.home[node])

    def of_arc(self, nodes: Nodes, source: int, head: int) -> int:
        """The cell of an arc."""
        if self.by_pair:
            if self.own_groups:
                return (min(source, head) << 32) | max(source, head)
            low, high = sorted((int(nodes.key[source]) % 2**64, int(nodes.key[head]) % 2**64))
            group = _hashed(self.division.hash, b"agn-edge", low, high) % int(self.division.num_groups)
            return int(nodes.graph[source]) * self._stride + group
        cell = self.of_node(nodes, source)
        return OUTSIDE if self.on_graphs and cell != self.of_node(nodes, head) else cell

    @property
    def _stride(self) -> int:
        return int(self.division.num_groups) if self.on_graphs else 0

    def votes(self, nodes: Nodes, union: Union, copies: Array) -> Array:
        """Which copies cast a ballot of their own (graph task: are in a subgraph that does)."""
        if self.on_graphs:
            inside: Array = union.cell[copies] != OUTSIDE
            return inside & (nodes.alive[union.node[copies]] if self.at_home else ~union.is_empty(copies))
        if self.by_pair:
            return ~union.is_empty(copies)
        hears: Array = union.arriving.length[copies] > 0
        return hears | self.is_home(nodes, union, copies) if self.gated else hears

    def is_home(self, nodes: Nodes, union: Union, copies: Array) -> Array:
        """Which copies lie in their node's own cell; only where nodes are hashed."""
        node = union.node[copies]
        home: Array = (nodes.home[node] == union.cell[copies]) & nodes.alive[node]
        return home

    def layout(self, graph: CanonicalGraph) -> tuple[Array, Array, Array, Array]:
        """Copies and arcs of a whole canonical graph, whose rows are the slots.

        Returns:
            Cell and node of each copy, the copies that each arc joins, and which edge of the graph each arc is.
        """
        groups = self.division.groups(graph)
        pieces = self.division.pieces(graph, groups)
        cell, node, ends, edge = (part.numpy() for part in (pieces.cell, pieces.node, pieces.edge_index, pieces.edge))
        if self.own_groups and self.by_pair:
            pair = np.sort(node[ends], axis=0).astype(np.int64)
            cell = np.empty(len(node), dtype=np.int64)
            cell[ends] = (pair[0] << 32) | pair[1]
        elif self.own_groups and self.on_graphs:
            cell = node.astype(np.int64)
        if self.on_graphs and not self.by_pair:  # arcs between groups: in the graph, in no subgraph
            out = np.flatnonzero(groups.numpy() < 0)
            lonely, where = np.unique(graph.edge_index[:, out].numpy(), return_inverse=True)
            ends = np.concatenate([ends, where.reshape(2, -1) + len(cell)], axis=1)
            cell = np.concatenate([cell, np.full(len(lonely), OUTSIDE)])
            node, edge = np.concatenate([node, lonely]), np.concatenate([edge, out])
        return cell, node, ends, edge

    def num_groups(self, graph: CanonicalGraph) -> int:
        """How many groups the graph has now."""
        return num_groups_in(self.division, graph)


def _hashed(name: str, tag: bytes, *keys: int) -> int:
    """As ``hashing.first8``, of one message."""
    message = tag + b"".join([(key % 2**64).to_bytes(8, "little") for key in keys])
    return int.from_bytes(hashlib.new(name, message, usedforsecurity=False).digest()[:8], "little")
