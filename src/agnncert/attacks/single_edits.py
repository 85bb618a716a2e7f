"""The greedy search that tries single edits on whole graphs, whatever the defence.

Each edit is tried alone. For each of the closest rivals, the edits that bring the rival nearest to the label are put
together, as many as the budget allows. Where every edit changes another vote, gains add up and this is the best attack
that can be made of these edits. Elsewhere it is a good guess.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import torch

from agnncert.attacks.problem import OutcomeTable, Problem, RowPair
from agnncert.attacks.results import AttackResult, best_of
from agnncert.attacks.unused_ids import UnusedIds
from agnncert.certificates.budget import Budget
from agnncert.certificates.ids import Id
from agnncert.certificates.votes import FloatArray, IntArray
from agnncert.graphs.perturbation import Perturbation

NUM_RIVALS = 2  # classes that a target is pushed to
MOST_TRIED = 64  # edits of one kind that are tried against one target
MOST_RANKED = 2000  # nodes that are ranked by how much they are of a class
REAL_FEATURES = 3  # feature rows of real nodes that are tried
Item = TypeVar("Item")


def closest_rivals(problem: Problem, outcome: OutcomeTable) -> list[int]:
    """Returns the classes closest to winning, at most two."""
    order = np.argsort(problem.gaps(outcome), kind="stable")[:-1]  # the winner comes last
    return order[:NUM_RIVALS].tolist()  # type: ignore[no-any-return]


class SingleEdits:
    """Attacks several targets at a time, so that what is tried against them is looked at together."""

    def __init__(self, problem: Problem, seed: int) -> None:
        self.problem = problem
        self.helpers = Helpers(problem, seed)
        self.seed = seed

    def attack(self, rows: IntArray, before: OutcomeTable, budgets: Sequence[Budget]) -> list[AttackResult]:
        """Returns one result for each target."""
        searches = []
        for row, outcome, budget in zip(rows.tolist(), before, budgets, strict=True):
            searches.append(_TargetSearch(self.problem, self.helpers, self.seed, row, outcome, budget))
        tried = [(search.row, Perturbation(**edit.change)) for search in searches for edit in search.edits]
        outcomes = self.problem.outcomes_after(tried)
        attacks = []
        first = 0
        for search in searches:
            last = first + len(search.edits)
            attacks += [(search.row, plan) for plan in search.plans(outcomes[first:last])]
            first = last
        return self._best_each(searches, attacks)

    def _best_each(
        self, searches: Sequence["_TargetSearch"], attacks: Sequence[tuple[int, Perturbation]]
    ) -> list[AttackResult]:
        """Returns the best result for each target; ``attacks`` has one plan for each of its rivals."""
        count = len(attacks) // max(1, len(searches))
        before = [search.before for search in searches for _ in range(count)]
        budgets = [search.budget for search in searches for _ in range(count)]
        results = self.problem.results(attacks, np.array(before), budgets, "greedy")
        return [best_of(results[start : start + count]) for start in range(0, len(results), count)]


class Helpers:
    """Nodes that promise to push a target to a class: those that are most of this class themselves."""

    def __init__(self, problem: Problem, seed: int) -> None:
        self.problem = problem
        self.random = np.random.default_rng(seed)

    @cached_property
    def _ranked(self) -> dict[int, list[int]]:
        """Rows of some nodes for each class, the most promising first (node task)."""
        rows = self.random.permutation(self.problem.num_targets)[:MOST_RANKED]
        scores = np.array([self.problem.scores(outcome) for outcome in self.problem.outcomes(rows)])
        ranked = {}
        for label in range(self.problem.num_classes):
            others = np.delete(scores, label, axis=1).max(axis=1, initial=0)
            order = np.argsort(others - scores[:, label], kind="stable")
            ranked[label] = rows[order].tolist()
        return ranked

    def of(self, label: int) -> list[int]:
        """Returns rows of nodes, the most promising first; none in the graph task."""
        if self.problem.task == "graph":
            return []
        return self._ranked[label]


@dataclass(frozen=True)
class WholeEdit:
    """One edit of a whole graph.

    Attributes:
        spends: The field of the budget of which it spends 1.
        about: Ids that no other edit may touch.
        change: Arguments of ``Perturbation``.
        is_repeatable: Whether it can be made again under other ids: a node is injected.
    """

    spends: str
    about: frozenset[Id]
    change: dict[str, Any]
    is_repeatable: bool = False


@dataclass
class _Plan:
    """A combination of edits.

    Attributes:
        left: What is left of each field of the budget.
        touched: Ids that an edit touches already.
        num_deleted: Number of deleted nodes.
        lists: Arguments of ``Perturbation`` that are lists, by name.
        mappings: Arguments of ``Perturbation`` that are mappings, by name.
    """

    left: dict[str, float]
    touched: set[Id] = field(default_factory=set)
    num_deleted: int = 0
    lists: dict[str, list[Any]] = field(default_factory=dict)
    mappings: dict[str, dict[Any, Any]] = field(default_factory=dict)

    def allows(self, edit: WholeEdit) -> bool:
        """Returns whether the budget and the edits so far leave room for one more."""
        return self.left[edit.spends] >= 1 and not edit.about & self.touched

    def add(self, edit: WholeEdit, change: dict[str, Any], number: int = 1) -> None:
        """Adds an edit that spends ``number``."""
        self.left[edit.spends] -= number
        self.touched |= edit.about
        if edit.spends == "delete_nodes":
            self.num_deleted += number
        for name, value in change.items():
            if isinstance(value, dict):
                self.mappings.setdefault(name, {}).update(value)
            else:
                self.lists.setdefault(name, []).extend(value)

    def perturbation(self) -> Perturbation:
        """Returns all edits as one change."""
        arguments: dict[str, Any] = {**self.lists, **self.mappings}
        return Perturbation(**arguments)


class _TargetSearch:
    """The edits of one target.

    Args:
        problem: Model, data and defence.
        helpers: Nodes to join to the target.
        seed: Seed of the choice of edits.
        row: Row of the target.
        before: Its outcome in the graph as given.
        budget: What the attacker may do.
    """

    def __init__(
        self, problem: Problem, helpers: Helpers, seed: int, row: int, before: OutcomeTable, budget: Budget
    ) -> None:
        graph = problem.graph_of(row)
        self.problem = problem
        self.helpers = helpers
        self.row = row
        self.before = before
        self.budget = budget
        self.random = np.random.default_rng([seed, row])
        self.rivals = closest_rivals(problem, before)
        self.ids = problem.ids(row)
        self.target = row if problem.task == "node" else None
        self.target_id = {self.ids[row]} if problem.task == "node" else set()
        self.added_values = problem.added_values()
        self.unused = UnusedIds(graph.node_key, problem.has_ids(row), 4 * MOST_TRIED)
        self._find_pairs_and_nodes()
        self.features = self._feature_rows()
        self.edits = list(self._edits())

    def _find_pairs_and_nodes(self) -> None:
        """Finds the pairs and nodes that can be changed: those at the target, or all of a target graph."""
        protected = self.problem.out_of_reach(self.row)
        if self.target is None:
            edge_index = self.problem.graph_of(self.row).edge_index
            near = set(range(len(self.ids)))
        else:
            arcs = [self.problem.edges_at([self.row], end) for end in (0, 1)]
            edge_index = self.problem.graph.edge_index[:, torch.cat(arcs)]
            near = set(edge_index.reshape(-1).tolist()) - {self.row}
        joined = {(min(u, v), max(u, v)) for u, v in edge_index.t().tolist()}
        self.joined = {frozenset(pair) for pair in joined}
        self.pairs = sorted(joined - protected.pairs)
        self.nodes = sorted(near - protected.nodes)

    def _feature_rows(self) -> list[list[float]]:
        """Returns features for injected and changed nodes: extreme ones, and those of promising nodes."""
        x = self.problem.graph_of(self.row).x
        largest, smallest = self.problem.extreme_features(self.row)
        rows = [largest, smallest]
        if len(self.problem.feature_scales()) > 1:
            rows.append(-largest)
        promising = [node for rival in self.rivals for node in self.helpers.of(rival)[:1]]
        real = list(dict.fromkeys([*promising, *range(len(x))]))[:REAL_FEATURES]
        rows += [x[node] for node in real]
        return [features.tolist() for features in rows]

    def _edits(self) -> Iterator[WholeEdit]:
        """Yields edits to try separately."""
        yield from self._edits_of_edges()
        yield from self._edits_of_nodes()
        if self.budget.add_edges:
            for u, v in self._free_pairs():
                pair = (self.ids[u], self.ids[v])
                yield self._edit("add_edges", pair, {"add_edges": [pair], "added_values": self.added_values})
        if self.budget.target_features and self.target is not None:
            name = self.ids[self.row]
            for features in self.features:
                yield WholeEdit("target_features", frozenset([name]), {"change_features": {name: features}})
        if self.budget.inject_nodes:
            for features in self.features:
                change = self._injected(features, self.unused.ids.tolist()[:1])
                yield WholeEdit("inject_nodes", frozenset(), change, is_repeatable=True)

    def _edits_of_edges(self) -> Iterator[WholeEdit]:
        values = self.problem.extreme_edge_values() if self.budget.change_edges else []
        for u, v in self._some(self.pairs):
            pair = (self.ids[u], self.ids[v])
            if self.budget.delete_edges:
                yield self._edit("delete_edges", pair, {"delete_edges": [pair]})
            for value in values:
                yield self._edit("change_edges", pair, {"change_edges": [(*pair, value)]})

    def _edits_of_nodes(self) -> Iterator[WholeEdit]:
        can_delete = self.budget.delete_nodes and (self.target is not None or len(self.ids) > 1)
        for node in self._some(self.nodes):
            name = self.ids[node]
            if can_delete:
                yield WholeEdit("delete_nodes", frozenset([name]), {"delete_nodes": [name]})
            if self.budget.change_features:
                for features in self.features:
                    yield WholeEdit("change_features", frozenset([name]), {"change_features": {name: features}})

    def _edit(self, spends: str, pair: tuple[Id, Id], change: dict[str, Any]) -> WholeEdit:
        return WholeEdit(spends, frozenset(pair) - self.target_id, change)

    def _injected(self, features: Sequence[float], ids: Sequence[Id]) -> dict[str, Any]:
        """Returns injected nodes with these ids, each joined to the target, or to nodes of a target graph."""
        new = {"inject_nodes": {name: features for name in ids}}
        ends = [self.row] if self.target is not None else list(range(len(self.ids)))
        ends = ends[: int(min(self.budget.edges_per_injected, len(ends)))]
        edges = [(name, self.ids[end]) for name in ids for end in ends]
        return {**new, "add_edges": edges, "added_values": self.added_values}

    def _free_pairs(self) -> list[RowPair]:
        """Returns pairs to join: the target and the most promising nodes for each rival, and random pairs."""
        size = len(self.ids)
        pairs: dict[RowPair, None] = {}
        for rival in self.rivals:
            free = (node for node in self.helpers.of(rival) if self._is_free(self.row, node))
            pairs.update(dict.fromkeys((self.row, node) for _, node in zip(range(MOST_TRIED // 4), free, strict=False)))
        for v in self._some(range(size)):
            u = self.row if self.target is not None else int(self.random.integers(size))
            if self._is_free(u, v):
                pairs[u, v] = None
        return list(pairs)[:MOST_TRIED]

    def _is_free(self, u: int, v: int) -> bool:
        return u != v and frozenset((u, v)) not in self.joined

    def _some(self, items: Sequence[Item]) -> list[Item]:
        """Returns at most this many items as are tried of one kind, drawn at random."""
        return [items[place] for place in self.random.permutation(len(items))[:MOST_TRIED].tolist()]

    def plans(self, alone: OutcomeTable) -> list[Perturbation]:
        """Returns the best combination for each rival; nothing at all if there is one class alone.

        Args:
            alone: The outcome after each edit alone.
        """
        scores = np.array([self.problem.scores(outcome) for outcome in alone], dtype=np.float64)
        if not self.rivals:
            return [Perturbation()]
        return [self._plan(self._gains(scores, rival)) for rival in self.rivals]

    def _gains(self, scores: FloatArray, rival: int) -> FloatArray:
        """Returns how much nearer each edit alone brings a rival to the label."""
        if not len(scores):
            return np.zeros(0)
        before = self.problem.scores(self.before)
        label = self.problem.winner(self.before)
        gains: FloatArray = (scores[:, rival] - scores[:, label]) - float(before[rival] - before[label])
        return gains

    def _plan(self, gains: FloatArray) -> Perturbation:
        """Returns the combination of the edits with the largest gains. Edits with a negative gain are left out."""
        spent = {edit.spends for edit in self.edits}
        plan = _Plan({name: float(getattr(self.budget, name)) for name in spent})
        for place in np.argsort(-gains, kind="stable").tolist():
            edit = self.edits[place]
            if gains[place] < 0 or not plan.allows(edit):
                continue
            would_empty_graph = self.target is None and plan.num_deleted + 1 >= len(self.ids)
            if edit.spends == "delete_nodes" and would_empty_graph:
                continue
            if edit.is_repeatable:
                number = int(min(plan.left[edit.spends], len(self.unused.ids)))
                (features,) = edit.change["inject_nodes"].values()
                plan.add(edit, self._injected(features, self.unused.ids.tolist()[:number]), number)
            else:
                plan.add(edit, edit.change)
        return plan.perturbation()
