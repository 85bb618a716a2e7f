"""What one vote depends on after an edit.

A greedy attack tries thousands of edits. Each is tried only in the subgraphs that it touches, and only the part of a
subgraph that the vote depends on is built: in the node task the nodes that can reach the target, in the graph task the
whole subgraph.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import torch

from agnncert.attacks.edits import INJECTED, Edit, RowPair
from agnncert.attacks.neighbours import InEdge
from agnncert.attacks.vote_problem import VoteProblem
from agnncert.divisions.node import NodeCentric
from agnncert.models.message_hops import hops_as_run

ADDED = -1  # stands for the number of an edge that an edit adds

NumberedEdge = tuple[int, int, int]  # the two ends, and the number of the edge in the graph


@dataclass(frozen=True)
class Subgraph:
    """What one vote depends on.

    Attributes:
        nodes: Rows of its nodes; in the node task the target comes first.
        hidden: Whether the features of each node are hidden.
        edges: Positions of the two ends in ``nodes``, and the number of the edge in the graph.
    """

    nodes: list[int]
    hidden: list[bool]
    edges: list[NumberedEdge]


def _both_ways(pairs: Iterable[RowPair]) -> list[RowPair]:
    return [edge for u, v in pairs for edge in ((u, v), (v, u))]


class NodeSubgraphs:
    """What the votes of node targets depend on.

    Args:
        problem: Model, data and a built-in division; node task.
    """

    first_row = 0  # row of the first node among those of all graphs

    def __init__(self, problem: VoteProblem) -> None:
        division = problem.built_in()
        self.neighbours = problem.neighbours
        self.node_centric = division.divides_nodes
        self.gated = division.gates_features
        self.group_of = division.node_groups(problem.graph).tolist() if isinstance(division, NodeCentric) else []
        self.hops = _hops(problem)

    def edited(self, group: int, target: int, edit: Edit) -> Subgraph | None:
        """Returns what the target's vote in one group depends on after an edit; ``None`` if it abstains there.

        In the edge-centric division all pairs that the edit adds are assumed to be in this group.
        """
        added = self._added_into(group, edit)
        deleted = set(_both_ways(edit.delete_edges))
        nodes = [target]
        position = {target: 0}
        distance = [0]
        edges = []
        for here, dst in enumerate(nodes):
            if distance[here] >= self.hops:
                break
            for src, edge in (*self.neighbours.edges_into(group, dst), *added.get(dst, ())):
                if (src, dst) in deleted or src in edit.delete_nodes:
                    continue
                if src not in position:
                    position[src] = len(nodes)
                    nodes.append(src)
                    distance.append(distance[here] + 1)
                edges.append((position[src], here, edge))
        if not self.gated:
            return Subgraph(nodes, [False] * len(nodes), edges)
        if len(nodes) == 1 and self.group_of[target] != group:
            return None
        return Subgraph(nodes, [self._group(node, edit) != group for node in nodes], edges)

    def _added_into(self, group: int, edit: Edit) -> dict[int, list[InEdge]]:
        """Returns the edges that an edit adds in one group, by the node that they end at."""
        added: dict[int, list[InEdge]] = {}
        for src, dst in _both_ways(edit.add_edges):
            if not self.node_centric or self._group(src, edit) == group:
                added.setdefault(dst, []).append((src, ADDED))
        return added

    def _group(self, node: int, edit: Edit) -> int:
        return edit.injected_group if node == INJECTED else self.group_of[node]


@torch.no_grad()
def _hops(problem: VoteProblem) -> float:
    """Returns the hops that a vote depends on: those of messages, and one more for degrees.

    The number is infinite if messages cannot be counted.
    """
    call, graph = problem.bound_model, problem.graph
    x = graph.x.to(call.dtype)
    hops = hops_as_run(problem.model, lambda: call.run(x, graph.edge_index, call.edge_values(graph), None))
    return float("inf") if hops is None else hops + 1


class GraphSubgraphs:
    """What the votes of one whole graph depend on.

    Args:
        problem: Model, data and a built-in division; graph task.
        row: Position of the graph.
    """

    def __init__(self, problem: VoteProblem, row: int) -> None:
        division = problem.built_in()
        joined = problem.graph
        self.graph = problem.graph_of(row)
        self.first_row = int(joined.starts[row])
        self.group_of = division.node_groups(self.graph).tolist() if isinstance(division, NodeCentric) else []
        self.node_centric = division.divides_nodes
        self.edges: list[list[NumberedEdge]] = [[] for _ in range(division.num_groups)]
        is_here = joined.graph_of_node[joined.edge_index[0]] == row
        numbers = is_here.nonzero().view(-1).tolist()
        ends = self.graph.edge_index.t().tolist()
        groups = division.groups(self.graph).tolist()
        for number, (u, v), group in zip(numbers, ends, groups, strict=True):
            if group >= 0:
                self.edges[group].append((u, v, number))
        self.members = self._members()

    def _members(self) -> list[list[int]]:
        """Returns the nodes of each subgraph."""
        if not self.node_centric:
            return [_ends(edges) for edges in self.edges]
        members: list[list[int]] = [[] for _ in self.edges]
        for node, group in enumerate(self.group_of):
            members[group].append(node)
        return members

    def groups_of(self, node: int) -> list[int]:
        """Returns the groups whose subgraph a node is in."""
        if self.node_centric:
            return [self.group_of[node]]
        return [group for group, members in enumerate(self.members) if node in members]

    def edited(self, group: int, target: int, edit: Edit) -> Subgraph | None:
        """Returns the subgraph of one group after an edit; ``None`` if no node is left in it."""
        edges = self._edges_left(group, edit)
        if self.node_centric:
            nodes = self._nodes_left(group, edit)
            inside = set(nodes)
            edges = [(u, v, number) for u, v, number in edges if u in inside and v in inside]
        else:
            nodes = _ends(edges)
        if not nodes:
            return None
        position = {node: k for k, node in enumerate(nodes)}
        placed = [(position[u], position[v], number) for u, v, number in edges]
        return Subgraph(nodes, [False] * len(nodes), placed)

    def _edges_left(self, group: int, edit: Edit) -> list[NumberedEdge]:
        """Returns the edges of a group after an edit, with those that it adds."""
        deleted = set(_both_ways(edit.delete_edges))
        gone = set(edit.delete_nodes)
        edges = [*self.edges[group], *((u, v, ADDED) for u, v in _both_ways(edit.add_edges))]
        return [(u, v, number) for u, v, number in edges if (u, v) not in deleted and u not in gone and v not in gone]

    def _nodes_left(self, group: int, edit: Edit) -> list[int]:
        """Returns the nodes of a group after an edit, with the one that it injects there."""
        nodes = [node for node in self.members[group] if node not in edit.delete_nodes]
        if edit.injected is not None and edit.injected_group == group:
            nodes.append(INJECTED)
        return nodes


def _ends(edges: Iterable[NumberedEdge]) -> list[int]:
    """Returns the nodes that edges join, ascending."""
    return sorted({end for u, v, _ in edges for end in (u, v)})
