"""``Problem``: a model, its data and a division, which every attack is given.

``Problem`` computes the votes of attacked graphs and turns them into results. For an attack on one node it uses only
the part of the graph that can reach the node, which ``Neighbours`` finds.
"""

import functools
from collections import ChainMap, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch_geometric.data import Data

from agnncert.attacks.results import AttackResult, cost_of
from agnncert.certificates.budget import Budget
from agnncert.certificates.ids import Id, encode_id
from agnncert.certificates.votes import IntArray, under_vote
from agnncert.certificates.voting_rule import VotingRule
from agnncert.divisions.base import Division, require_division
from agnncert.divisions.edge import EdgeCentric
from agnncert.divisions.node import NodeCentric
from agnncert.engine.call import bind, require_order
from agnncert.engine.ranges import EngineName, cast
from agnncert.errors import BudgetError, GraphError, ModelContractError, SettingsError
from agnncert.graphs import hashing
from agnncert.graphs.graph import CanonicalGraph, Task, canonical, canonical_set, exact_ids, infer_task, one_graph
from agnncert.graphs.perturbation import Pair, Perturbation, distinct_pairs, keys_of
from agnncert.graphs.targets import target_rows
from agnncert.proving.theorems import Prior, margins

VoteTable = npt.NDArray[Any]  # of int16
RowChange = tuple[int, Perturbation]  # row of a target, and what to change in order to attack it

FEATURES_AT_ONCE = 20_000_000  # numbers in the features of all attacked graphs that are voted on together
SMALL = 64  # graphs of up to this many nodes are not cut down before voting
COPIES = 20  # an extreme number of copies of an edge, where edges have neither weights nor attributes


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

    def __init__(self, model: Any, data: Any, division: Division, vote: VotingRule | None = None) -> None:
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
        self.vote = (vote or VotingRule()).under(division.rule(self.task), self.call.num_classes)
        self.own_groups = division.is_per_neighbour

    @property
    def num_targets(self) -> int:
        """Nodes, or graphs, that can be attacked."""
        return int(self.graph.num_nodes) if self.task == "node" else len(self.data)

    @property
    def num_groups(self) -> int:
        """Ballots of each target, or the most that one has if every neighbour has a group of its own."""
        if not self.own_groups:
            return self.division.num_groups
        if self.task == "graph":
            return self.division.num_groups_in(self.graph)
        return int(torch.bincount(self.graph.edge_index.view(-1), minlength=1).max()) + 1

    @functools.cached_property
    def neighbours(self) -> "Neighbours":
        """Which node gets messages from which, in each subgraph (node task, built-in divisions)."""
        return Neighbours(self.graph, self.built_in(), self._ids)

    def built_in(self) -> EdgeCentric | NodeCentric:
        """The division; raises SettingsError unless it is an ``EdgeCentric`` or ``NodeCentric`` with finite T."""
        if self.own_groups:
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
        if name not in self.call.takes or not given.numel():
            return []
        values = given.float()
        largest = 10 * max(1.0, float(values.abs().max()))
        width = values[0].numel()
        return [largest, -largest, 0.0] if values.dim() == 1 else [[sign * largest] * width for sign in (1.0, -1.0)]

    def winner(self, ballots: VoteTable) -> int:
        """The voted label of one target; ties go to the smaller class."""
        return int(self.counts(ballots).argmax())

    def counts(self, ballots: VoteTable) -> IntArray:
        """Votes of one target for each class, those of a prior included, abstentions left out."""
        if self.own_groups:
            return ballots  # scores already
        cast, followed = ballots[: self.num_groups], ballots[self.num_groups :]
        counts = np.bincount(cast[cast >= 0], minlength=self.call.num_classes)
        return np.asarray(counts + self._prior(1, followed)[0])

    def gaps(self, ballots: VoteTable) -> IntArray:
        """For each class how many votes it may gain on the winner without being elected, shape ``[num_classes]``.

        The winner's own entry is larger than any gap, so that sorting puts the closest rival first and the winner last.
        """
        counts, label = self.counts(ballots), self.winner(ballots)
        gaps: IntArray = margins(counts[None], np.array([label]), np.zeros(1, dtype=np.int64))[0]
        gaps[label] = gaps.max() + 1
        return gaps

    def votes(self, rows: IntArray) -> VoteTable:
        """Ballots of some targets in the graph as given, shape ``[len(rows), num_groups]``."""
        if not len(rows):
            return self._no_ballots()
        if self.task == "node":
            return self._cast(self.graph, rows)
        return self._cast(canonical_set([self.data[int(k)] for k in rows], self.loops), np.arange(len(rows)))

    def recast(self, attacks: Sequence[RowChange]) -> VoteTable:
        """Ballots of one target in each of many attacked graphs, shape ``[len(attacks), num_groups]``.

        In the node task the attacked graph is cut down to what can reach the target in any subgraph;
        ``recast_whole`` votes on all of it.
        """
        if self.task == "node" and (self.division.family is None or self.division.edges_only):
            parts = [self.recast_whole([row], change) for row, change in attacks]
        else:
            parts = [self._cast_side_by_side(batch) for batch in self._batches(attacks)]
        return np.concatenate([self._no_ballots(), *parts])

    def recast_whole(self, rows: Sequence[int], change: Perturbation, engine: EngineName = "fast") -> VoteTable:
        """Ballots of some targets in one attacked graph, all of it, shape ``[len(rows), num_groups]``."""
        if self.task == "graph":
            attacked = canonical_set([change.apply(self.data[int(k)]) for k in rows], self.loops)
            return self._cast(attacked, np.arange(len(rows)), engine)
        changed = change.apply(self.data)
        where = _rows_of([self._ids[int(row)] for row in rows], changed)
        return self._cast(canonical(changed, self.loops), where, engine)

    def results(
        self, attacks: Sequence[RowChange], before: VoteTable, kind: str, after: VoteTable | None = None
    ) -> list[AttackResult]:
        """One result for each attack, voted on the attacked graph.

        Args:
            attacks: Target rows and what to change.
            before: Ballots of the same targets before the attack.
            kind: Name of the attack.
            after: Ballots after it, if they have been cast.
        """
        after = self.recast(attacks) if after is None else after
        ids = self._ids if self.task == "node" else list(range(self.num_targets))
        # Targets may share a perturbation, and a large one: its cost is counted once.
        cost = {key: change.cost() for key, change in {id(change): change for _, change in attacks}.items()}
        return [
            AttackResult(
                target=ids[row],
                row=int(row),
                kind=kind,
                perturbation=change,
                cost=cost_of(change, ids[row] if self.task == "node" else None, cost[id(change)]),
                label_before=self.winner(old),
                label_after=self.winner(new),
                ballots_moved=self._moved(old, new),
            )
            for (row, change), old, new in zip(attacks, before, after, strict=True)
        ]

    def part(self, nodes: Iterable[int]) -> Data:
        """Some nodes with the edges between them, in the order of their rows and under their ids (node task)."""
        rows = torch.tensor(sorted(nodes))
        inside = torch.zeros(self.graph.num_nodes, dtype=torch.bool)
        inside[rows] = True
        part = self.graph.with_nodes(rows, inside[self.graph.edge_index].all(0))
        ids = [self._ids[u] for u in rows.tolist()]
        return Data(x=part.x, edge_index=part.edge_index, node_id=ids, **part.edge_values)

    def _no_ballots(self) -> VoteTable:
        if self.own_groups:
            return np.empty((0, self.call.num_classes), dtype=np.int64)
        return np.empty((0, self.num_groups + bool(self.vote.edgeless_prior)), dtype=np.int16)

    def _cast(self, graph: CanonicalGraph, rows: IntArray, engine: EngineName = "fast") -> VoteTable:
        """Ballots, and in a last column the class that a prior follows; or scores, if neighbours have groups."""
        votes = cast(self.call, graph, self.division, np.asarray(rows, dtype=np.int64), engine)[0]
        counted, followed = under_vote(votes, self.vote)
        if self.own_groups:
            return counted.counts + self._prior(len(rows), followed.get("edgeless", np.empty(0)), counted.num_groups)
        return np.column_stack([counted.dense(), *[followed[name] for name in ("edgeless",) if name in followed]])

    def _prior(self, num_targets: int, edgeless: VoteTable, num_groups: int = 0) -> IntArray:
        """Votes of the prior; ``edgeless`` is empty unless the prior follows it."""
        known = (edgeless, np.ones(num_targets, dtype=bool)) if len(edgeless) else ()
        shape = num_targets, self.call.num_classes
        return Prior.of(self.vote, self.own_groups, num_groups, shape, *known).votes

    def _moved(self, old: VoteTable, new: VoteTable) -> int:
        """Ballots that differ; of scores, at least so many."""
        if self.own_groups:
            return int(np.abs(old - new).sum() + 1) // 2
        return int((old[: self.num_groups] != new[: self.num_groups]).sum())

    def _batches(self, attacks: Sequence[RowChange]) -> Iterator[list[tuple[int, Data]]]:
        """Rows of targets with their attacked graphs, in batches that fit into memory."""
        if self.task == "node" and not self.own_groups:
            self.neighbours.look_up_groups([pair for _, change in attacks for pair in distinct_pairs(change.add_edges)])
        batch: list[tuple[int, Data]] = []
        size = 0
        for row, change in attacks:
            attacked = change.apply(self._within_reach(row, change) if self.task == "node" else self.data[row])
            if batch and size + attacked.x.numel() > FEATURES_AT_ONCE:
                yield batch
                batch, size = [], 0
            batch.append((row, attacked))
            size += attacked.x.numel()
        if batch:
            yield batch

    def _cast_side_by_side(self, batch: Sequence[tuple[int, Data]]) -> VoteTable:
        """Votes on many attacked graphs in one call. Groups depend on ids alone, so no graph disturbs another."""
        joined = canonical_set([attacked for _, attacked in batch], self.loops)
        if self.task == "graph":
            return self._cast(joined, np.arange(len(batch)))
        rows = [
            start + int(_rows_of([self._ids[row]], attacked)[0])
            for start, (row, attacked) in zip(joined.starts.tolist(), batch, strict=True)
        ]
        return self._cast(replace(joined, task="node", batch=None), np.array(rows))

    def _within_reach(self, row: int, change: Perturbation) -> Data:
        """What can reach the target in some subgraph after the change, and what the change names (node task)."""
        if self.graph.num_nodes <= SMALL:
            return self.data
        if self.own_groups:  # a ballot looks at one neighbour
            at_target = self.graph.edge_index[:, (self.graph.edge_index == row).any(0)]
            return self.part({row, *at_target.view(-1).tolist(), *self._named(change)})
        return self.part({*self.neighbours.reaching(row, distinct_pairs(change.add_edges)), *self._named(change)})

    @functools.cached_property
    def _row_of(self) -> dict[Id, int]:
        return {name: row for row, name in enumerate(self._ids)}

    def _named(self, change: Perturbation) -> Iterator[int]:
        """Rows of all nodes that a change names."""
        altered = [(u, v) for u, v, _ in change.change_edges]
        pairs = [*change.add_edges, *change.delete_edges, *altered]
        for node in {*change.delete_nodes, *change.change_features, *(end for pair in pairs for end in pair)}:
            row = self._row_of.get(encode_id(node))
            if row is not None:  # an injected node has none
                yield row


def _ids_of(data: Data) -> list[Id]:
    ids = exact_ids(data)
    return ids.tolist() if isinstance(ids, np.ndarray) else ids


def _rows_of(ids: Sequence[Id], data: Data) -> IntArray:
    """Rows of the nodes with these ids."""
    row_of = {name: row for row, name in enumerate(_ids_of(data))}
    if any(name not in row_of for name in ids):
        raise GraphError("the attack deletes its own target, which then has no label.")
    return np.array([row_of[name] for name in ids], dtype=np.int64)


InEdge = tuple[int, int]  # the node that an edge comes from, and the number of the edge in the graph
GroupNode = tuple[int, int]  # a group, and a node in its subgraph


class Neighbours:
    """Which node gets messages from which inside each subgraph (node task), before an attack and after one.

    A node *hears* the nodes that send it messages. All nodes that can reach it over any hops can change its vote.

    Attributes:
        row_of: Row of every node, by its id in canonical form.
    """

    def __init__(self, graph: CanonicalGraph, division: EdgeCentric | NodeCentric, ids: Sequence[Id]) -> None:
        self.division = division
        self.row_of = {name: row for row, name in enumerate(ids)}
        self._edges_into: dict[GroupNode, list[InEdge]] = defaultdict(list)
        self._heard_by: dict[GroupNode, list[int]] = defaultdict(list)
        self._groups: dict[int, set[int]] = defaultdict(set)
        self._group_of_pair: dict[Pair, int] = {}
        # The edge-centric theorem also covers models that send messages against the direction of edges.
        both_ways = division.family == "edge-centric"
        for edge, (u, v, group) in enumerate(
            zip(*graph.edge_index.tolist(), division.groups(graph).tolist(), strict=True)
        ):
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

    def reaching_in(self, group: int, node: int, added: Mapping[GroupNode, Sequence[int]] | None = None) -> list[int]:
        """All nodes that can reach ``node`` in one subgraph, nearest first, itself included."""
        seen = {node: None}
        for here in (queue := [node]):
            for other in (*self._heard_by.get((group, here), ()), *(added or {}).get((group, here), ())):
                if other not in seen:
                    seen[other] = None
                    queue.append(other)
        return list(seen)

    def reaching(self, node: int, pairs: Sequence[Pair] = ()) -> set[int]:
        """Rows of all nodes that can reach ``node`` in some subgraph once pairs of ids have been joined."""
        added = self._heard_by_added(pairs)
        groups = {*self.groups(node), *(group for group, listener in added if listener == node)}
        seen = {node}.union(*(self.reaching_in(group, node, added) for group in groups))
        return {row for row in seen if row >= 0}  # injected nodes are negative

    def look_up_groups(self, pairs: Sequence[Pair]) -> None:
        """Hashes many pairs at once, which is faster than one by one."""
        edges = [edge for u, v in pairs for edge in ((u, v), (v, u)) if edge not in self._group_of_pair]
        if not edges:
            return
        names = list(dict.fromkeys(name for edge in edges for name in edge))
        key = dict(zip(names, keys_of(names), strict=True))
        keys = np.array([(key[u], key[v]) for u, v in edges], dtype=np.int64).view(np.uint64)
        settings = self.division.num_groups, self.division.hash
        if self.division.family == "node-centric":
            groups = hashing.node_groups(keys[:, 0].copy(), *settings)
        else:
            groups = hashing.edge_groups(keys[:, 0].copy(), keys[:, 1].copy(), *settings)
        self._group_of_pair.update(zip(edges, groups.tolist(), strict=True))

    def _heard_by_added(self, pairs: Sequence[Pair]) -> dict[GroupNode, list[int]]:
        """Nodes heard by each node in each subgraph because of new pairs; injected nodes get negative numbers."""
        self.look_up_groups(pairs)
        injected = dict.fromkeys(name for pair in pairs for name in pair if name not in self.row_of)
        node_of = ChainMap(self.row_of, {name: -1 - k for k, name in enumerate(injected)})
        heard_by: dict[GroupNode, list[int]] = defaultdict(list)
        for pair in pairs:
            for src, dst in (pair, pair[::-1]):
                heard_by[self._group_of_pair[src, dst], node_of[dst]].append(node_of[src])
        return heard_by
