"""Attacks on graph votes: the items that can lose most are changed, which no other attack within the budget outdoes.

What is found is applied to the graph, and the label is computed there by the defence itself.
"""

from collections.abc import Mapping, Sequence
from itertools import count, islice
from typing import Any

import numpy as np

from agnncert.attacks.problem import OwnAttack
from agnncert.attacks.results import AttackResult, best_of
from agnncert.attacks.score_problem import ScoreProblem
from agnncert.certificates.budget import Budget
from agnncert.certificates.votes import IntArray
from agnncert.graph_votes.model import GraphModel
from agnncert.graph_votes.seen import Shape
from agnncert.graph_votes.worst import Change, OneGraph
from agnncert.graphs.perturbation import Perturbation

KIND = "greedy"
UNKNOWN = 12_345.0  # no known type of nodes has it in all its columns


class GraphProblem(ScoreProblem):
    """Attacks on graphs that are classified by graph votes."""

    model: GraphModel

    def own_attacks(self) -> Mapping[str, OwnAttack]:
        """Returns the one attack, which draws no random numbers; none for nodes, which have no items."""
        return {KIND: self._attack_each} if self.task == "graph" else {}

    def _attack_each(self, rows: IntArray, budgets: Sequence[Budget]) -> list[AttackResult]:
        """Returns the worst attack on each graph."""
        before = self.outcomes(rows)
        results = []
        for row, budget, old in zip(rows.tolist(), budgets, before, strict=True):
            changes = list(self.worst_changes(row, budget, self.winner(old)))
            attacks = [(row, change) for change in changes]
            old_of_each = np.repeat(old[None], len(attacks), axis=0)
            results.append(best_of(self.results(attacks, old_of_each, [budget] * len(attacks), KIND)))
        return results

    def worst_changes(self, row: int, budget: Budget, label: int) -> list[Perturbation]:
        """Returns the change that gains each rival most."""
        canonical = self.graph_of(row).without_self_loops()
        x = canonical.x.numpy()
        graph = OneGraph(self.model, Shape.of(canonical, 1), x)
        rivals = [rival for rival in range(self.num_classes) if rival != label]
        changes = (graph.worst(label, rival, budget) for rival in rivals)
        return [self._perturbation(change, row, x) for change in changes]

    def _perturbation(self, change: Change, row: int, x: Any) -> Perturbation:
        """Returns a change in the ids of the graph as given."""
        ids = self.ids(row)
        free = (number for number in count(len(ids)) if number not in set(ids))
        new = islice(free, len(change.injected))
        return Perturbation(
            add_edges=[(ids[u], ids[v]) for u, v in change.joined],
            delete_edges=[(ids[u], ids[v]) for u, v in change.separated],
            change_features={ids[node]: self._features(x[node], kind) for node, kind in change.altered},
            delete_nodes=[ids[node] for node in change.deleted],
            inject_nodes={node: self._features(x[0], kind) for node, kind in zip(new, change.injected, strict=True)},
        )

    def _features(self, before: Any, kind: int) -> list[float]:
        """Returns the features of a node of a type; what is measured stays as it is."""
        types = self.model.types
        after = np.array(before, dtype=np.float64)
        after[types.columns] = types.rows[kind] if kind < len(types.rows) else UNKNOWN
        return [float(value) for value in after]
