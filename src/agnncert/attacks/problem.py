"""``Problem``: a model, its data and a division, which every attack is given.

``Problem`` computes the votes of attacked graphs and turns them into results. For an attack on one node it uses only
the part of the graph that can reach the node, which ``Neighbours`` finds.
"""

import functools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch_geometric.data import Data

from agnncert.certificates.budget import Budget
from agnncert.certificates.ids import Id, encode_id
from agnncert.certificates.votes import IntArray, apply_voting_rule
from agnncert.certificates.voting_rule import VotingRule
from agnncert.divisions.base import Division, require_division
from agnncert.divisions.edge import EdgeCentric
from agnncert.divisions.node import NodeCentric
from agnncert.engine.adapter import bind
from agnncert.engine.arguments import require_order
from agnncert.engine.votes import EngineName, compute_votes
from agnncert.errors import BudgetError, GraphError, ModelContractError, SettingsError
from agnncert.graphs.canonical import canonical, canonical_set
from agnncert.graphs.graph import CanonicalGraph, Task, one_graph
from agnncert.graphs.node_ids import exact_ids
from agnncert.graphs.perturbation import Pair, Perturbation
from agnncert.graphs.targets import target_rows
from agnncert.graphs.task import infer_task
from agnncert.proving.theorems import Prior, margins

VoteTable = npt.NDArray[Any]  # of int16
RowChange = tuple[int, Perturbation]  # row of a target, and what to change in order to attack it

FEATURES_AT_ONCE = 20_000_000  # numbers in the features of all attacked graphs that are voted on together
SMALL = 64  # graphs of up to this many nodes are not cut down before voting
COPIES = 20  # an extreme number of copies of an edge, where edges have neither weights nor attributes


@dataclass(frozen=True)
class AttackResult:
    """What an attack did to one target. ``label_after`` was voted on the attacked graph.

    Attributes:
        target: Id of the node, or position of the graph.
        row: Row of the node in the data, or position of the graph.
        kind: Which attack found it.
        perturbation: What was changed; ``perturbed(data)`` is the attacked graph.
        cost: The smallest budget that allows it.
        label_before: Voted label of the graph as given.
        label_after: Voted label of the attacked graph.
        votes_moved: Votes of the target that differ between the two.
        tried: Number of attacked graphs that were voted on.
    """

    target: Id
    row: int
    kind: str
    perturbation: Perturbation
    cost: Budget
    label_before: int
    label_after: int
    votes_moved: int
    tried: int = 1

    @property
    def succeeded(self) -> bool:
        """Whether the voted label changed."""
        return self.label_before != self.label_after

    def perturbed(self, data: Any) -> Data:
        """The attacked graph: of ``data`` itself, or of the target among a list of graphs."""
        return self.perturbation.apply(data if isinstance(data, Data) else data[self.row])


def cost_of(perturbation: Perturbation, target: Id | None) -> Budget:
    """The smallest budget that allows a perturbation of a target node, or with ``None`` of a whole graph.

    Changed features of the target are ``target_features``.
    """
    cost = perturbation.cost()
    if target is None or not perturbation.change_features:
        return cost
    if encode_id(target) not in map(encode_id, perturbation.change_features):
        return cost
    return cost.but(change_features=cost.change_features - 1, target_features=True)


def best_of(results: Sequence[AttackResult]) -> AttackResult:
    """The result that changed the label, else the one that moved the most votes; ``tried`` is added up."""
    best = max(results, key=lambda result: (result.succeeded, result.votes_moved))
    return replace(best, tried=sum(result.tried for result in results))


class Problem:
    """Model, data and division of an attack. One object serves any number of attacks.

    Args:
        model: A trained module in eval mode, as ``certify`` takes it.
        data: A ``Data`` (its nodes are the targets) or a list of ``Data`` (the graphs are).
        division: How the defence divides it.
        vote: The voting rule. Defaults to ``VotingRule()``.

    Attributes:
        task: "node" or "graph".
        graph: The canonical graph; in the graph task all graphs joined.
        call: The model, bound to it.
    """

    def __init__(self, model: Any, data: Any, division: Division, voting_rule: VotingRule | None = None) -> None:
        require_order(model, data, division)
        if getattr(model, "training", False):
            raise ModelContractError("the model is in training mode, where labels are random: call model.eval().")
        require_division(division)
        self.model, self.data, self.division = model, data, division
        self.task: Task = infer_task(data)
        self.loops = division.self_loops
        self.graph = canonical(data, self.loops) if self.task == "node" else canonical_set(data, self.loops)
        self.call = bind(model, self.graph, self.task)
        self._ids = _ids_of(data) if self.task == "node" else []
        self.voting_rule = (voting_rule or VotingRule()).under(division.theorem(self.task), self.call.num_classes)
        self.per_neighbour = division.is_per_neighbour

    @property
    def num_targets(self) -> int:
        """Nodes, or graphs, that can be attacked."""
        return int(self.graph.num_nodes) if self.task == "node" else len(self.data)

    @property
    def num_groups(self) -> int:
        """Votes of each target, or the most that one has if every neighbour has a group of its own."""
        if not self.per_neighbour:
            return self.division.num_groups
        if self.task == "graph":
            return self.division.num_groups_in(self.graph)
        return int(torch.bincount(self.graph.edge_index.view(-1), minlength=1).max()) + 1

    @functools.cached_property
    def neighbours(self) -> "Neighbours":
        """Which node gets messages from which, in each subgraph (node task, built-in divisions)."""
        return Neighbours(self.graph, self.built_in())

    def built_in(self) -> EdgeCentric | NodeCentric:
        """The division; raises SettingsError unless it is an ``EdgeCentric`` or ``NodeCentric`` with finite T."""
        if self.per_neighbour:
            raise SettingsError(f'this attack does not know {self.division}: use "greedy", "random" or "exhaustive".')
        if isinstance(self.division, EdgeCentric | NodeCentric) and not self.division.edges_only:
            return self.division
        raise SettingsError(
            f"this attack works with EdgeCentric and NodeCentric only, not with {type(self.division).__name__}: "
            'use "random" or "exhaustive".'
        )

    def rows(self, targets: Any) -> IntArray:
        """Rows of the targets, from a mask, row numbers, or ``None`` for all."""
        return target_rows(targets, self.num_targets)

    def budgets(self, budget: Budget | Sequence[Budget], rows: IntArray) -> list[Budget]:
        """One budget for each target; raises BudgetError if their number is wrong or one is not valid here."""
        budgets = list(budget) if isinstance(budget, Sequence) else [budget] * len(rows)
        if len(budgets) != len(rows):
            raise BudgetError(f"{len(budgets)} budgets were given for {len(rows)} targets: pass one, or one for each.")
        for row, allowed in zip(rows.tolist(), budgets, strict=True):
            if not isinstance(allowed, Budget):
                raise BudgetError(f"expected a Budget, got {type(allowed).__name__}: write Budget(add_edges=…).")
            if allowed.delete_nodes and not self.has_ids(row):
                raise BudgetError(
                    "the budget deletes nodes, but the graph has no node_id: every later node would change its "
                    "identity with its row. Give the graph ids."
                )
            if allowed.target_features and self.task == "graph":
                raise BudgetError("target_features needs a target node; for graphs use change_features.")
        return budgets

    def has_ids(self, row: int = 0) -> bool:
        """Whether the data (in the graph task, the graph ``row``) has ``node_id``."""
        return getattr(self.data_of(row), "node_id", None) is not None

    def ids(self, row: int = 0) -> list[Id]:
        """Canonical ids of all nodes; in the graph task, of the graph ``row``."""
        return self._ids if self.task == "node" else _ids_of(self.data[row])

    def data_of(self, row: int) -> Data:
        """The graph of a target, as given."""
        return self.data if self.task == "node" else self.data[row]

    def graph_of(self, row: int) -> CanonicalGraph:
        """The graph of a target in canonical form."""
        return self.graph if self.task == "node" else one_graph(self.graph, row)

    def extreme_edge_values(self) -> list[Any]:
        """Extreme weights, attributes or numbers of copies to give to an edge; none if the model reads none."""
        name, given = next(iter(self.graph.edge_values.items()), (None, None))
        if given is None:
            return [COPIES]
        if name not in self.call.edge_inputs or not given.numel():
            return []
        values = given.float()
        largest = 10 * max(1.0, float(values.abs().max()))
        width = values[0].numel()
        return [largest, -largest, 0.0] if values.dim() == 1 else [[sign * largest] * width for sign in (1.0, -1.0)]

    def winner(self, votes: VoteTable) -> int:
        """The voted label of one target; ties go to the smaller class."""
        return int(self.counts(votes).argmax())

    def counts(self, votes: VoteTable) -> IntArray:
        """Votes of one target for each class, those of a prior included, abstentions left out."""
        if self.per_neighbour:
            return votes  # scores already
        cast, followed = votes[: self.num_groups], votes[self.num_groups :]
        counts = np.bincount(cast[cast >= 0], minlength=self.call.num_classes)
        return np.asarray(counts + self._prior(1, followed)[0])

    def gaps(self, votes: VoteTable) -> IntArray:
        """For each class how many votes it may gain on the winner without being elected, shape ``[num_classes]``.

        The winner's own entry is larger than any gap, so that sorting puts the closest rival first and the winner last.
        """
        counts, label = self.counts(votes), self.winner(votes)
        gaps: IntArray = margins(counts[None], np.array([label]), np.zeros(1, dtype=np.int64))[0]
        gaps[label] = gaps.max() + 1
        return gaps

    def votes(self, rows: IntArray) -> VoteTable:
        """Votes of some targets in the graph as given, shape ``[len(rows), num_groups]``."""
        if not len(rows):
            return self._no_votes()
        if self.task == "node":
            return self._cast(self.graph, rows)
        return self._cast(canonical_set([self.data[int(k)] for k in rows], self.loops), np.arange(len(rows)))

    def recast(self, attacks: Sequence[RowChange]) -> VoteTable:
        """Votes of one target in each of many attacked graphs, shape ``[len(attacks), num_groups]``.

        In the node task the attacked graph is cut down to what can reach the target in any subgraph;
        ``recast_whole`` votes on all of it.
        """
        if self.task == "node" and (self.division.family is None or self.division.edges_only):
            parts = [self.recast_whole([row], change) for row, change in attacks]
        else:
            parts = [self._cast_side_by_side(batch) for batch in self._batches(attacks)]
        return np.concatenate([self._no_votes(), *parts])

    def recast_whole(self, rows: Sequence[int], change: Perturbation, engine: EngineName = "fast") -> VoteTable:
        """Votes of some targets in one attacked graph, all of it, shape ``[len(rows), num_groups]``."""
        if self.task == "graph":
            attacked = canonical_set([change.apply(self.data[int(k)]) for k in rows], self.loops)
            return self._cast(attacked, np.arange(len(rows)), engine)
        changed = change.apply(self.data)
        row_of = _RowOf(changed)
        where = np.array([row_of[self._ids[int(row)]] for row in rows], dtype=np.int64)
        return self._cast(canonical(changed, self.loops), where, engine)

    def results(self, attacks: Sequence[RowChange], before: VoteTable, kind: str) -> list[AttackResult]:
        """One result for each attack, voted on the attacked graph; ``before`` are the votes as they were."""
        ids = self._ids if self.task == "node" else list(range(self.num_targets))
        return [
            AttackResult(
                target=ids[row],
                row=int(row),
                kind=kind,
                perturbation=change,
                cost=cost_of(change, ids[row] if self.task == "node" else None),
                label_before=self.winner(old),
                label_after=self.winner(new),
                votes_moved=self._moved(old, new),
            )
            for (row, change), old, new in zip(attacks, before, self.recast(attacks), strict=True)
        ]

    def part(self, nodes: Iterable[int]) -> Data:
        """Some nodes with the edges between them, in the order of their rows and under their ids (node task)."""
        rows, inside = torch.tensor(sorted(nodes)), torch.zeros(self.graph.num_nodes, dtype=torch.bool)
        inside[rows] = True
        near = self._edges_at(rows.tolist(), 1).sort().values
        part = self.graph.with_nodes(rows, near[inside[self.graph.edge_index[0, near]]])
        ids = [self._ids[u] for u in rows.tolist()]
        return Data(x=part.x, edge_index=part.edge_index, node_id=ids, **part.edge_values)

    def _no_votes(self) -> VoteTable:
        if self.per_neighbour:
            return np.empty((0, self.call.num_classes), dtype=np.int64)
        return np.empty((0, self.num_groups + bool(self.voting_rule.no_edge_prior)), dtype=np.int16)

    def _cast(self, graph: CanonicalGraph, rows: IntArray, engine: EngineName = "fast") -> VoteTable:
        """Votes, and in a last column the class that a prior follows; or scores, if neighbours have groups."""
        votes = compute_votes(self.call, graph, self.division, np.asarray(rows, dtype=np.int64), engine)[0]
        counted, followed = apply_voting_rule(votes, self.voting_rule)
        if self.per_neighbour:
            return counted.counts + self._prior(len(rows), followed.get("no_edge", np.empty(0)), counted.num_groups)
        return np.column_stack([counted.dense(), *[followed[name] for name in ("no_edge",) if name in followed]])

    def _prior(self, num_targets: int, no_edge: VoteTable, num_groups: int = 0) -> IntArray:
        """Votes of the prior; ``no_edge`` is empty unless the prior follows it."""
        known = (no_edge, np.ones(num_targets, dtype=bool)) if len(no_edge) else ()
        shape = num_targets, self.call.num_classes
        return Prior.of(self.voting_rule, self.per_neighbour, num_groups, shape, *known).votes

    def _moved(self, old: VoteTable, new: VoteTable) -> int:
        """Votes that differ; of scores, at least so many."""
        if self.per_neighbour:
            return int(np.abs(old - new).sum() + 1) // 2
        return int((old[: self.num_groups] != new[: self.num_groups]).sum())

    def _batches(self, attacks: Sequence[RowChange]) -> Iterator[list[tuple[int, Data]]]:
        """Rows of targets with their attacked graphs, in batches that fit into memory."""
        batch: list[tuple[int, Data]] = []
        size, known = 0, dict[int, Data]()
        for row, change in attacks:
            graph = self._within_reach(row, change) if self.task == "node" else self.data[row]
            key = id(change) if graph is self.data else 0  # what it makes of the whole graph serves all targets
            attacked = known[key] = known[key] if key and key in known else change.apply(graph)
            if batch and size + attacked.x.numel() > FEATURES_AT_ONCE:
                yield batch
                batch, size, known = [], 0, {}
            batch.append((row, attacked))
            size += attacked.x.numel()
        if batch:
            yield batch

    def _cast_side_by_side(self, batch: Sequence[tuple[int, Data]]) -> VoteTable:
        """Votes on many attacked graphs in one call. Groups depend on ids alone, so no graph disturbs another."""
        graphs = {id(attacked): attacked for _, attacked in batch}
        joined = canonical_set(list(graphs.values()), self.loops)
        if self.task == "graph":
            return self._cast(joined, np.arange(len(batch)))
        row_of = {key: _RowOf(graphs[key], start) for key, start in zip(graphs, joined.starts.tolist(), strict=True)}
        rows, place = np.unique([row_of[id(graph)][self._ids[row]] for row, graph in batch], return_inverse=True)
        return self._cast(replace(joined, task="node", batch=None), rows)[place]

    def _within_reach(self, row: int, change: Perturbation) -> Data:
        """All that can reach the target in some subgraph after the change, and what the change names (node task)."""
        if self.graph.num_nodes <= SMALL:
            return self.data
        altered = [(u, v) for u, v, _ in change.change_edges]
        pairs = [*change.delete_edges, *altered, *((u, u) for u in (*change.delete_nodes, *change.change_features))]
        joined = {row, *self._rows_in(change.add_edges)}
        if self.per_neighbour:  # a vote looks at one neighbour
            arcs = torch.cat([self._edges_at([row], end) for end in (0, 1)])
            reach = set(self.graph.edge_index[:, arcs].view(-1).tolist())
        else:  # what reaches the target over an added edge reaches an end of an added edge without it
            reach = set().union(*map(self.neighbours.reaching, joined))
        return self.part({*reach, *joined, *self._rows_in(pairs)})

    @functools.cached_property
    def _sorted_edges(self) -> list[tuple[torch.Tensor, list[int]]]:
        """Edges sorted by the node that they start at, and where those of each node begin; the same by their end."""
        ends, size = self.graph.edge_index, self.graph.num_nodes
        starts = [[0, *torch.bincount(end, minlength=size).cumsum(0).tolist()] for end in ends]
        return list(zip(ends.argsort(stable=True), starts, strict=True))

    def _edges_at(self, nodes: Iterable[int], end: int) -> torch.Tensor:
        """Edges that start (0) or end (1) at some nodes."""
        edges, start = self._sorted_edges[end]
        return torch.cat([edges[start[node] : start[node + 1]] for node in nodes])

    @functools.cached_property
    def _row_of(self) -> dict[Id, int]:
        return {name: row for row, name in enumerate(self._ids)}

    def _rows_in(self, pairs: Iterable[Pair]) -> set[int]:
        """Rows of the nodes in some pairs; injected nodes have none."""
        rows = (self._row_of.get(encode_id(end)) for end in {end for pair in pairs for end in pair})
        return {row for row in rows if row is not None}


def _ids_of(data: Data) -> list[Id]:
    ids = exact_ids(data)
    return ids.tolist() if isinstance(ids, np.ndarray) else ids


class _RowOf(dict[Id, int]):
    """Row of each node of an attacked graph by its id, counted from ``start``."""

    def __init__(self, data: Data, start: int = 0) -> None:
        super().__init__((name, row) for row, name in enumerate(_ids_of(data), start))

    def __missing__(self, target: Id) -> int:
        raise GraphError("the attack deletes its own target, which then has no label.")


InEdge = tuple[int, int]  # the node that an edge comes from, and the number of the edge in the graph
GroupNode = tuple[int, int]  # a group, and a node in its subgraph


class Neighbours:
    """Which node gets messages from which inside each subgraph (node task).

    A node *hears* the nodes that send it messages. All nodes that can reach it over any hops can change its vote.
    """

    def __init__(self, graph: CanonicalGraph, division: EdgeCentric | NodeCentric) -> None:
        self._edges_into: dict[GroupNode, list[InEdge]] = defaultdict(list)
        self._heard_by: dict[GroupNode, list[int]] = defaultdict(list)
        self._groups: dict[int, set[int]] = defaultdict(set)
        # The edge-centric theorem also covers models that send messages against the direction of edges.
        both_ways = division.family == "edge-centric"
        edges = zip(*graph.edge_index.tolist(), division.groups(graph).tolist(), strict=True)
        for edge, (u, v, group) in enumerate(edges):
            self._edges_into[group, v].append((u, edge))
            for sender, listener in [(u, v), (v, u)] if both_ways else [(u, v)]:
                self._heard_by[group, listener].append(sender)
                self._groups[listener].add(group)

    def edges_into(self, group: int, node: int) -> list[InEdge]:
        """Edges that end at ``node`` in one subgraph."""
        return self._edges_into.get((group, node), [])

    def senders(self, group: int, node: int) -> list[int]:
        """Where those edges come from, each node once."""
        return list(dict.fromkeys(u for u, _ in self.edges_into(group, node)))

    def groups(self, node: int) -> list[int]:
        """Subgraphs in which something reaches ``node``, ascending."""
        return sorted(self._groups.get(node, ()))

    def reaching_in(self, group: int, node: int) -> list[int]:
        """All nodes that can reach ``node`` in one subgraph, nearest first, itself included."""
        seen = {node: None}
        for here in (queue := [node]):
            for other in self._heard_by.get((group, here), ()):
                if other not in seen:
                    seen[other] = None
                    queue.append(other)
        return list(seen)

    def reaching(self, node: int) -> set[int]:
        """All nodes that can reach ``node`` in some subgraph, itself included."""
        return {node}.union(*(self.reaching_in(group, node) for group in self.groups(node)))
