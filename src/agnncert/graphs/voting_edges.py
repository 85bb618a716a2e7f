"""Finds the edges at a node, with ids and values as the user gave them: what explanations name."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from agnncert.certificates.ids import encode_id
from agnncert.errors import GraphError, IdError
from agnncert.explanation import VotingEdge
from agnncert.graphs.graph import edge_values_of
from agnncert.graphs.node_ids import exact_ids


def ids_of_nodes(data: Any) -> list[Any]:
    """Returns the id of every node in canonical form: from ``node_id``, or its row."""
    ids = exact_ids(data)
    return ids.tolist() if isinstance(ids, np.ndarray) else list(ids)


def row_of_target(data: Any, task: str, target: Any) -> int:
    """Returns the row of a node, by its id, or of a graph, by its number.

    Raises:
        IdError: There is no such node or graph.
    """
    plain = target.item() if hasattr(target, "item") else target
    if task == "graph":
        if type(plain) is not int or not 0 <= plain < len(data):
            raise IdError(f"there is no graph {plain!r:.60}: graphs are known by their number, 0 to {len(data) - 1}.")
        return plain
    ids = ids_of_nodes(data)
    try:
        return ids.index(encode_id(plain))
    except ValueError as error:
        raise IdError(f"there is no node {plain!r:.60}: the graph has {len(ids):,}, by their ids.") from error


class EdgesOfNode:
    """The edges between a node and its neighbours, by neighbour.

    Args:
        data: The graph.
        row: Row of the node.
    """

    def __init__(self, data: Any, row: int) -> None:
        if data.edge_index is None:
            raise GraphError("the graph has no edge_index: nothing can be explained by edges.")
        self.ids = ids_of_nodes(data)
        self.row = row
        self.data = data
        source, head = data.edge_index.long()
        self._arriving = self._by_neighbour((head == row) & (source != row), source)
        self._leaving = self._by_neighbour((source == row) & (head != row), head)

    @staticmethod
    def _by_neighbour(mask: Tensor, other_end: Tensor) -> dict[int, list[int]]:
        """Returns the positions of some edges, by the row of their other end."""
        positions: dict[int, list[int]] = {}
        for position in mask.nonzero().view(-1).tolist():
            positions.setdefault(int(other_end[position]), []).append(position)
        return positions

    def between(self, neighbours: Iterable[int], leaving: bool = True) -> tuple[VotingEdge, ...]:
        """Returns the edges between the node and some neighbours, by their rows.

        Args:
            neighbours: Rows of the neighbours.
            leaving: Whether edges that leave the node count, too.
        """
        edges = []
        for other in neighbours:
            positions = list(self._arriving.get(other, ()))
            if leaving:
                positions += self._leaving.get(other, ())
            edges += edges_at(self.data, self.ids, positions)
        return tuple(edges)

    def pairs(self, neighbours: Iterable[int]) -> tuple[tuple[Any, Any], ...]:
        """Returns the pairs of ids of the node and some neighbours."""
        return tuple((self.ids[other], self.ids[self.row]) for other in neighbours)


def edges_at(data: Any, ids: list[Any], positions: Iterable[int]) -> list[VotingEdge]:
    """Returns edges by their columns in ``edge_index``, in ascending order."""
    values = edge_values_of(data)
    edges = []
    for position in sorted(positions):
        source, head = data.edge_index[:, position].tolist()
        own = {
            name: tuple(torch.as_tensor(value[position]).double().reshape(-1).tolist())
            for name, value in values.items()
        }
        edges.append(VotingEdge(ids[source], ids[head], own, position))
    return edges
