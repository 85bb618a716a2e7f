"""``VoteProblem``: attacks on a division, which know the votes of its subgraphs.

For an attack on one node it uses only the part of the graph that can reach the node, which ``Neighbours`` finds.
"""

import functools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from agnncert.attacks.neighbours import Neighbours
from agnncert.attacks.problem import Outcome, OutcomeTable, Problem, RowChange, RowOf
from agnncert.attacks.unused_ids import UnusedIds
from agnncert.certificates.ids import Id
from agnncert.certificates.votes import IntArray, apply_voting_rule
from agnncert.certificates.voting_rule import VotingRule
from agnncert.defence import GraphData, Model, as_defence
from agnncert.divided.defence import Divided
from agnncert.divisions.edge import EdgeCentric
from agnncert.divisions.node import NodeCentric
from agnncert.engine.adapter import bind
from agnncert.engine.arguments import require_order
from agnncert.engine.votes import EngineName, compute_votes
from agnncert.errors import SettingsError
from agnncert.graphs.canonical import canonical, canonical_set
from agnncert.graphs.graph import CanonicalGraph
from agnncert.graphs.perturbation import Perturbation
from agnncert.proving.theorems import Prior, margins

FEATURES_AT_ONCE = 20_000_000  # numbers in the features of all attacked graphs that are voted on together
SMALL = 64  # graphs of up to this many nodes are not cut down before voting


class VoteProblem(Problem):
    """Computes the votes of all subgraphs of attacked graphs.

    An outcome is the vote of each subgraph and, if the prior follows the prediction without edges, that prediction in a
    last column. If every neighbour, edge or node has a subgraph of its own, an outcome is the number of votes for each
    class.

    Args:
        model: A trained module in eval mode, as ``certify`` takes it.
        data: A ``Data`` (its nodes are the targets) or a list of ``Data`` (the graphs are).
        defence: A division, or a division with a voting rule.
        voting_rule: The voting rule. Defaults to the one of the defence, or to ``VotingRule()``.

    Attributes:
        division: How the defence divides the graph.
        voting_rule: How votes are added up.
        bound_model: The model, bound to the graph.
        per_neighbour: Whether every neighbour, edge or node has a subgraph of its own.
    """

    def __init__(self, model: Model, data: GraphData, defence: Any, voting_rule: VotingRule | None = None) -> None:
        require_order(model, data, defence)
        divided: Divided = as_defence(defence).with_voting_rule(voting_rule)  # type: ignore[assignment]
        self.division = divided.division
        super().__init__(model, data, divided, self.division.self_loops)
        self.bound_model = bind(model, self.graph, self.task)
        self.per_neighbour = self.division.is_per_neighbour
        theorem = self.division.theorem(self.task)
        self.voting_rule = (divided.voting_rule or VotingRule()).under(theorem, self.num_classes)

    @property
    def num_classes(self) -> int:
        """Number of classes."""
        return self.bound_model.num_classes

    @property
    def num_groups(self) -> int:
        """Votes of each target, or the most that one has if every neighbour has a group of its own."""
        if not self.per_neighbour:
            return self.division.num_groups
        if self.task == "graph":
            return self.division.num_groups_in(self.graph)
        return int(torch.bincount(self.graph.edge_index.view(-1), minlength=1).max()) + 1

    @property
    def most_changes(self) -> int:
        """Twice the number of votes: enough to change every one of them."""
        return 2 * self.num_groups

    @functools.cached_property
    def neighbours(self) -> Neighbours:
        """Which node gets messages from which, in each subgraph (node task, built-in divisions)."""
        return Neighbours(self.graph, self.built_in())

    @property
    def looks_into_subgraphs(self) -> bool:
        """Whether it is known which subgraphs an edit touches."""
        is_built_in = isinstance(self.division, EdgeCentric | NodeCentric)
        return is_built_in and not self.per_neighbour and not self.division.edges_only

    def subgraph_problem(self) -> "VoteProblem":
        """Returns this problem if it is known which subgraphs an edit touches."""
        if self.looks_into_subgraphs:
            return self
        others = 'use "greedy", "random" or "exhaustive".'
        if self.per_neighbour:
            raise SettingsError(f"this attack does not know {self.division}: {others}")
        raise SettingsError(
            "this attack works with EdgeCentric and NodeCentric only, not with "
            f"{type(self.division).__name__}: {others}"
        )

    def built_in(self) -> EdgeCentric | NodeCentric:
        """Returns the division; raises SettingsError unless it is an ``EdgeCentric`` or ``NodeCentric``."""
        division: Any = self.subgraph_problem().division
        return division  # type: ignore[no-any-return]

    @property
    def reads_edge_values(self) -> bool:
        """Whether the model reads the weights or attributes that ``change_edges`` changes."""
        return next(iter(self.graph.edge_values), "") in self.bound_model.edge_inputs

    def ids_to_inject(self, row: int) -> tuple[Id, ...]:
        """Returns one unused id for each group if ids decide about groups (node-centric), else the first unused ids."""
        if not isinstance(self.division, NodeCentric) or not self.has_ids(row):
            return super().ids_to_inject(row)
        unused = UnusedIds(self.graph_of(row).node_key, True, 20 * self.num_groups)
        _, first = np.unique(unused.node_groups(self.division), return_index=True)
        return tuple(unused.ids[first].tolist())

    def winner(self, outcome: Outcome) -> int:
        """Returns the voted label of one target. Ties go to the smaller class."""
        return int(self.scores(outcome).argmax())

    def scores(self, outcome: Outcome) -> IntArray:
        """Returns the votes of one target for each class, those of a prior included, abstentions left out."""
        if self.per_neighbour:
            return outcome
        votes = outcome[: self.num_groups]
        no_edge = outcome[self.num_groups :]
        counts = np.bincount(votes[votes >= 0], minlength=self.num_classes)
        return np.asarray(counts + self._prior(1, no_edge)[0])

    def gaps(self, outcome: Outcome) -> IntArray:
        """Returns for each class how many votes it may gain on the winner without being elected."""
        label = self.winner(outcome)
        nothing = np.zeros(1, dtype=np.int64)
        gaps: IntArray = margins(self.scores(outcome)[None], np.array([label]), nothing)[0]
        gaps[label] = gaps.max() + 1
        return gaps

    def moved(self, before: Outcome, after: Outcome) -> int:
        """Returns how many votes differ; of votes that were added up, at least this many."""
        if self.per_neighbour:
            return int(np.abs(before - after).sum() + 1) // 2
        return int((before[: self.num_groups] != after[: self.num_groups]).sum())

    def outcomes(self, rows: IntArray) -> OutcomeTable:
        """Returns the votes of some targets in the graph as given, one row for each."""
        if not len(rows):
            return self._no_votes()
        if self.task == "node":
            return self._votes(self.graph, rows)
        graphs = [self.data[int(row)] for row in rows]
        return self._votes(canonical_set(graphs, self.keeps_self_loops), np.arange(len(rows)))

    def outcomes_after(self, attacks: Sequence[RowChange]) -> OutcomeTable:
        """Returns the votes of one target in each of many attacked graphs, one row for each.

        In the node task the attacked graph is cut down to what can reach the target in any subgraph. All of it is voted
        on in ``outcomes_in_whole_graph``.
        """
        is_known = self.division.divides_edges or self.division.divides_nodes
        is_reach_unknown = not is_known or self.division.edges_only
        if self.task == "node" and is_reach_unknown:
            parts = [self.outcomes_in_whole_graph([row], change) for row, change in attacks]
        else:
            parts = [self._votes_side_by_side(batch) for batch in self._batches(attacks)]
        return np.concatenate([self._no_votes(), *parts])

    def outcomes_in_whole_graph(
        self, rows: Sequence[int], change: Perturbation, engine: EngineName = "fast"
    ) -> OutcomeTable:
        """Returns the votes of some targets in one attacked graph, all of it, one row for each."""
        if self.task == "graph":
            graphs = [change.apply(self.data[int(row)]) for row in rows]
            return self._votes(canonical_set(graphs, self.keeps_self_loops), np.arange(len(rows)), engine)
        attacked = change.apply(self.data)
        row_of = RowOf(attacked)
        positions = np.array([row_of[self._ids[int(row)]] for row in rows], dtype=np.int64)
        return self._votes(canonical(attacked, self.keeps_self_loops), positions, engine)

    def _no_votes(self) -> OutcomeTable:
        if self.per_neighbour:
            return np.empty((0, self.num_classes), dtype=np.int64)
        num_columns = self.num_groups + bool(self.voting_rule.no_edge_prior)
        return np.empty((0, num_columns), dtype=np.int16)

    def _votes(self, graph: CanonicalGraph, rows: IntArray, engine: EngineName = "fast") -> OutcomeTable:
        """Returns votes, and in a last column the class that a prior follows; or their sums, if neighbours vote."""
        positions = np.asarray(rows, dtype=np.int64)
        votes, _ = compute_votes(self.bound_model, graph, self.division, positions, engine)
        counted, followed = apply_voting_rule(votes, self.voting_rule)
        if self.per_neighbour:
            no_edge = followed.get("no_edge", np.empty(0))
            return counted.counts + self._prior(len(rows), no_edge, counted.num_groups)
        columns = [counted.dense()]
        if "no_edge" in followed:
            columns.append(followed["no_edge"])
        return np.column_stack(columns)

    def _prior(self, num_targets: int, no_edge: OutcomeTable, num_groups: int = 0) -> IntArray:
        """Returns the votes of the prior; ``no_edge`` is empty unless the prior follows it."""
        shape = (num_targets, self.num_classes)
        known = (no_edge, np.ones(num_targets, dtype=bool)) if len(no_edge) else ()
        return Prior.of(self.voting_rule, self.per_neighbour, num_groups, shape, *known).votes

    def _batches(self, attacks: Sequence[RowChange]) -> Iterator[list[tuple[int, Data]]]:
        """Yields rows of targets with their attacked graphs, in batches that fit into memory."""
        batch: list[tuple[int, Data]] = []
        size = 0
        attacked_whole: dict[int, Data] = {}  # what a change makes of the whole graph serves all targets
        for row, change in attacks:
            graph = self._within_reach(row, change) if self.task == "node" else self.data[row]
            if graph is self.data:
                if id(change) not in attacked_whole:
                    attacked_whole[id(change)] = change.apply(graph)
                attacked = attacked_whole[id(change)]
            else:
                attacked = change.apply(graph)
            if batch and size + attacked.x.numel() > FEATURES_AT_ONCE:
                yield batch
                batch = []
                size = 0
                attacked_whole = {}
            batch.append((row, attacked))
            size += attacked.x.numel()
        if batch:
            yield batch

    def _votes_side_by_side(self, batch: Sequence[tuple[int, Data]]) -> OutcomeTable:
        """Returns votes on many attacked graphs in one call.

        Groups depend on ids alone, so no graph disturbs another.
        """
        graphs = {id(attacked): attacked for _, attacked in batch}
        joined = canonical_set(list(graphs.values()), self.keeps_self_loops)
        if self.task == "graph":
            return self._votes(joined, np.arange(len(batch)))
        row_of = {}
        for (key, graph), start in zip(graphs.items(), joined.starts.tolist(), strict=True):
            row_of[key] = RowOf(graph, start)
        positions = [row_of[id(graph)][self._ids[row]] for row, graph in batch]
        distinct, position = np.unique(positions, return_inverse=True)
        return self._votes(replace(joined, task="node", batch=None), distinct)[position]

    def _within_reach(self, row: int, change: Perturbation) -> Data:
        """Returns all that can reach the target in some subgraph after a change, and what it names (node task)."""
        if self.graph.num_nodes <= SMALL:
            return self.data_of(row)
        named = self.rows_named(change)
        if self.per_neighbour:  # a vote looks at one neighbour
            return self.part({row, *self.adjacent([row]), *named})
        # What reaches the target over an added edge reaches an end of an added edge without it.
        reach = {row, *named}
        for node in {row, *self.rows_with_ids(end for pair in change.add_edges for end in pair)}:
            reach |= self.neighbours.reaching(node)
        return self.part(reach)
