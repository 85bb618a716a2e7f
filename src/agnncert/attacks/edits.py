"""Edits: small changes, and the votes that they lead to.

A greedy attack tries thousands of edits. Each is tried only in the subgraphs that it touches, and only the part of a
subgraph that the vote depends on is built: in the node task the nodes that can reach the target, in the graph task the
whole subgraph. ``NodeSubgraphs`` and ``GraphSubgraphs`` build these parts; ``VoteQueue`` runs the model on them in
batches. These votes only guide the search: the votes of a result are computed on the attacked graph.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch_geometric.nn import MessagePassing

from agnncert.attacks.neighbours import InEdge
from agnncert.attacks.vote_problem import VoteProblem
from agnncert.certificates.ids import Id
from agnncert.certificates.votes import ABSTAIN
from agnncert.divisions.node import NodeCentric
from agnncert.engine.features import Features
from agnncert.engine.rounding import stable_predictions
from agnncert.engine.union import CHUNK_ROWS
from agnncert.graphs.perturbation import Perturbation

INJECTED = -1  # stands for the row of the node that an edit injects
ADDED = -1  # stands for the number of an edge that an edit adds

RowPair = tuple[int, int]


@dataclass(frozen=True)
class Edit:
    """One small change. Nodes are rows of the graph, features are rows of ``AdversarialFeatures``.

    Attributes:
        field: The field of the budget it spends.
        add_edges: Pairs to join.
        delete_edges: Pairs to separate.
        change_edges: Pairs and the weight, attribute or number of copies to give them.
        delete_nodes: Nodes to delete.
        change_features: Nodes and the features to give them.
        injected: Features of the injected node, whose row is ``INJECTED``; ``None`` if there is none.
        injected_group: Its group, in the node-centric division.
        injected_id: Its id.
    """

    field: str
    add_edges: tuple[RowPair, ...] = ()
    delete_edges: tuple[RowPair, ...] = ()
    change_edges: tuple[tuple[int, int, Any], ...] = ()
    delete_nodes: tuple[int, ...] = ()
    change_features: tuple[tuple[int, int], ...] = ()
    injected: int | None = None
    injected_group: int = -1
    injected_id: int | None = None

    @property
    def units(self) -> int:
        """How much it spends; only edges are deleted several at a time."""
        return max(1, len(self.delete_edges))

    @property
    def nodes(self) -> set[int]:
        """Existing nodes that it changes or joins."""
        ends = (end for pair in (*self.add_edges, *self.delete_edges, *self.change_edges) for end in pair[:2])
        return {*ends, *self.delete_nodes, *(node for node, _ in self.change_features)} - {INJECTED}


@dataclass(frozen=True)
class TriedEdit:
    """An edit and the votes that it leads to, by group."""

    edit: Edit
    votes: Mapping[int, int]

    def gain(self, before: Sequence[int], label: int, rival: int) -> int:
        """How many votes ``rival`` gains on ``label``, compared with the votes ``before`` the edit."""
        weight = {label: -1, rival: 1}
        return sum(weight.get(new, 0) - weight.get(before[group], 0) for group, new in self.votes.items())


def perturbation_of(edits: Sequence[Edit], ids: Sequence[Id], features: Sequence[Sequence[float]]) -> Perturbation:
    """All edits in one perturbation; ``ids`` are those of all rows, ``features`` those of ``AdversarialFeatures``."""

    def id_of(row: int, edit: Edit) -> Id:
        if row != INJECTED:
            return ids[row]
        assert edit.injected_id is not None, "an injected node needs an id"
        return edit.injected_id

    return Perturbation(
        add_edges=[(id_of(u, edit), id_of(v, edit)) for edit in edits for u, v in edit.add_edges],
        delete_edges=list(dict.fromkeys((ids[u], ids[v]) for edit in edits for u, v in edit.delete_edges)),
        change_edges=[(ids[u], ids[v], value) for edit in edits for u, v, value in edit.change_edges],
        inject_nodes={id_of(INJECTED, edit): features[edit.injected] for edit in edits if edit.injected is not None},
        delete_nodes=[ids[node] for edit in edits for node in edit.delete_nodes],
        change_features={ids[node]: features[row] for edit in edits for node, row in edit.change_features},
    )


def _both_ways(pairs: Iterable[RowPair]) -> list[RowPair]:
    return [edge for u, v in pairs for edge in ((u, v), (v, u))]


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
    edges: list[tuple[int, int, int]]


class NodeSubgraphs:
    """What the votes of node targets depend on.

    Args:
        problem: Model, data and a built-in division; node task.
    """

    first_row = 0  # row of the first node among those of all graphs

    def __init__(self, problem: VoteProblem) -> None:
        division = problem.built_in()
        self.neighbours = problem.neighbours
        self.node_centric = division.family == "node-centric"
        self.gated = division.gates_features
        self.group_of = division.node_groups(problem.graph).tolist() if isinstance(division, NodeCentric) else []
        self.hops = _hops(problem.model)

    def edited(self, group: int, target: int, edit: Edit) -> Subgraph | None:
        """What the target's vote in one group depends on after an edit; ``None`` if it abstains there.

        In the edge-centric division all pairs that the edit adds are assumed to be in this group.
        """
        deleted = set(_both_ways(edit.delete_edges))
        added: dict[int, list[InEdge]] = {}
        for src, dst in _both_ways(edit.add_edges):
            if not self.node_centric or self._group(src, edit) == group:
                added.setdefault(dst, []).append((src, ADDED))
        nodes, position, distance = [target], {target: 0}, [0]
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
        if self.gated and len(nodes) == 1 and self.group_of[target] != group:
            return None
        return Subgraph(nodes, [self.gated and self._group(node, edit) != group for node in nodes], edges)

    def _group(self, node: int, edit: Edit) -> int:
        return edit.injected_group if node == INJECTED else self.group_of[node]


def _hops(model: Any) -> float:
    """Hops that a vote depends on: one for each layer, one more for degrees; infinite if no layer can be counted."""
    modules = model.modules() if isinstance(model, torch.nn.Module) else ()
    layers = sum(isinstance(module, MessagePassing) for module in modules)
    return layers + 1 if layers else float("inf")


class GraphSubgraphs:
    """What the votes of one whole graph depend on.

    Args:
        problem: Model, data and a built-in division; graph task.
        row: Position of the graph.
    """

    def __init__(self, problem: VoteProblem, row: int) -> None:
        division, joined, graph = problem.built_in(), problem.graph, problem.graph_of(row)
        self.graph, self.first_row = graph, int(joined.starts[row])
        self.group_of = division.node_groups(graph).tolist() if isinstance(division, NodeCentric) else []
        self.node_centric = division.family == "node-centric"
        self.edges: list[list[tuple[int, int, int]]] = [[] for _ in range(division.num_groups)]
        self.members: list[list[int]] = [[] for _ in range(division.num_groups)]
        number = (joined.graph_of_node[joined.edge_index[0]] == row).nonzero().view(-1).tolist()
        groups = division.groups(graph).tolist()
        for edge, (u, v), group in zip(number, graph.edge_index.t().tolist(), groups, strict=True):
            if group >= 0:
                self.edges[group].append((u, v, edge))
        for node, group in enumerate(self.group_of):
            self.members[group].append(node)
        if not self.node_centric:
            self.members = [sorted({end for edge in edges for end in edge[:2]}) for edges in self.edges]

    def groups_of(self, node: int) -> list[int]:
        """Groups whose subgraph a node is in."""
        if self.node_centric:
            return [self.group_of[node]]
        return [group for group, members in enumerate(self.members) if node in members]

    def edited(self, group: int, target: int, edit: Edit) -> Subgraph | None:
        """The subgraph of one group after an edit; ``None`` if no node is left in it."""
        deleted, gone = set(_both_ways(edit.delete_edges)), set(edit.delete_nodes)
        edges = [*self.edges[group], *((u, v, ADDED) for u, v in _both_ways(edit.add_edges))]
        edges = [edge for edge in edges if edge[:2] not in deleted and not gone & {*edge[:2]}]
        if self.node_centric:
            nodes = [node for node in self.members[group] if node not in gone]
            nodes += [INJECTED] if edit.injected is not None and edit.injected_group == group else []
            inside = set(nodes)
            edges = [edge for edge in edges if inside.issuperset(edge[:2])]
        else:
            nodes = sorted({end for edge in edges for end in edge[:2]})
        position = {node: k for k, node in enumerate(nodes)}
        placed = [(position[u], position[v], edge) for u, v, edge in edges]
        return Subgraph(nodes, [False] * len(nodes), placed) if nodes else None


class VoteQueue:
    """Collects edited subgraphs and runs the model on them in batches; ``features`` are what edits give to nodes."""

    def __init__(self, problem: VoteProblem, features: Tensor) -> None:
        self.call, self.graph, self.num_nodes = problem.bound_model, problem.graph, int(problem.graph.num_nodes)
        self.features = Features(torch.cat([problem.graph.x, features]).to(self.call.dtype))
        self.changed_value = next(iter(self.graph.edge_values), None)
        self._votes: list[int] = []
        self._waiting: list[tuple[int, int, Subgraph, Edit]] = []  # place of the vote, first row, subgraph, edit
        self._num_rows = 0

    def add(self, subgraphs: NodeSubgraphs | GraphSubgraphs, group: int, target: int, edit: Edit) -> int:
        """Queues one subgraph and returns the position of its vote in ``votes``."""
        subgraph = subgraphs.edited(group, target, edit)
        self._votes.append(ABSTAIN)
        if subgraph is not None:
            if self._num_rows > CHUNK_ROWS:
                self._run()
            self._waiting.append((len(self._votes) - 1, subgraphs.first_row, subgraph, edit))
            self._num_rows += len(subgraph.nodes)
        return len(self._votes) - 1

    def votes(self) -> list[int]:
        """Returns all votes, in the order in which subgraphs were added, and begins anew."""
        self._run()
        votes = self._votes
        self._votes = []
        return votes

    @torch.no_grad()
    def _run(self) -> None:
        if not self._waiting:
            return
        rows, starts, hidden = list[int](), list[int](), list[bool]()
        edges: list[tuple[int, int, int]] = []
        changed: list[tuple[int, Any]] = []  # places in ``edges``, and their new values
        for _, first_row, subgraph, edit in self._waiting:
            start = len(rows)
            starts.append(start)
            given = {INJECTED: edit.injected, **dict(edit.change_features)}
            for node in subgraph.nodes:
                features = given.get(node)
                rows.append(first_row + node if features is None else self.num_nodes + features)
            hidden += subgraph.hidden
            values = {edge: value for u, v, value in edit.change_edges for edge in ((u, v), (v, u))}
            for u, v, edge in subgraph.edges:
                value, copies = values.get((subgraph.nodes[u], subgraph.nodes[v])), 1
                if value is not None and self.changed_value is None:
                    copies = int(value)  # edges have no values here, so they are copied instead
                elif value is not None:
                    changed.append((len(edges), value))
                edges += [(start + u, start + v, edge)] * copies
        x = self.features.rows(torch.tensor(rows), torch.tensor(hidden) if any(hidden) else None)
        ends = torch.tensor(edges, dtype=torch.int64).view(-1, 3).t()
        first = torch.tensor(starts)
        sizes = torch.diff(first, append=torch.tensor([len(rows)]))
        batch = torch.repeat_interleave(torch.arange(len(first)), sizes) if self.call.task == "graph" else None
        logits = self.call(x, ends[:2], self._values(ends[2], changed), batch)
        votes = stable_predictions(logits if batch is not None else logits[first], 0.0)[0].tolist()
        for (place, *_), vote in zip(self._waiting, votes, strict=True):
            self._votes[place] = vote
        self._waiting, self._num_rows = [], 0

    def _values(self, edge: Tensor, changed: Sequence[tuple[int, Any]]) -> dict[str, Tensor]:
        """Weights and attributes of all queued edges; those of added edges are 1."""
        values = {}
        for name in self.call.edge_inputs:
            known = self.graph.edge_values[name]
            ones = torch.ones(1, *known.shape[1:], dtype=known.dtype)
            values[name] = torch.cat([known, ones])[torch.where(edge == ADDED, len(known), edge)]
            if name == self.changed_value:
                for place, value in changed:
                    values[name][place] = torch.as_tensor(value, dtype=known.dtype)
        return values
