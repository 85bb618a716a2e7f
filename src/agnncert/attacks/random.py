"""Random attacks: spend the whole budget, half of it close to the target. Every other attack should beat them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from agnncert.attacks.problem import Problem
from agnncert.attacks.results import AttackResult, best_of
from agnncert.errors import SettingsError
from agnncert.graphs.perturbation import Pair, Perturbation
from agnncert.proof.budget import Budget
from agnncert.proof.ids import Id

RowPair = tuple[int, int]


def random(
    problem: Problem, targets: Any, budget: Budget | Sequence[Budget], *, seed: int = 0, tries: int = 3
) -> list[AttackResult]:
    """Draws attacks at random and keeps the best.

    Args:
        problem: Model, data and division; any division.
        targets: Rows, a mask, or ``None`` for all.
        budget: What the attacker may do to each target, or one budget for each.
        seed: Seed.
        tries: Attacks drawn for each target.
    """
    if tries < 1:
        raise SettingsError(f"tries={tries}: expected a whole number from 1 on.")
    rows = problem.rows(targets)
    before = problem.votes(rows)
    shared = _Draws(problem, 0) if problem.task == "node" else None
    attacks = []
    for row, allowed in zip(rows.tolist(), problem.budgets(budget, rows), strict=True):
        draws = shared or _Draws(problem, row)
        target = row if problem.task == "node" else None
        generator = np.random.default_rng([seed, row])
        attacks += [(row, draws.perturbation(target, allowed, generator)) for _ in range(tries)]
    results = problem.results(attacks, before.repeat(tries, axis=0), "random")
    return [best_of(results[start : start + tries]) for start in range(0, len(results), tries)]


class _Draws:
    """Draws perturbations of one graph. ``target`` is the row of a target node, or ``None`` for the whole graph."""

    def __init__(self, problem: Problem, row: int) -> None:
        graph = problem.graph_of(row)
        self.ids, self.has_ids = problem.ids(row), problem.has_ids(row)
        self.keys = set(graph.node_key.tolist())
        self.features, self.size = graph.x, len(self.ids)
        self.most = 2 * problem.num_groups  # changes of each kind at most: more than there are ballots to move
        self.edge_values = problem.extreme_edge_values()
        self.pairs = sorted({(min(u, v), max(u, v)) for u, v in graph.edge_index.t().tolist()})
        self.joined = set(self.pairs)
        self.pairs_at: dict[int | None, list[RowPair]] = {}
        for pair in self.pairs:
            for end in dict.fromkeys(pair):
                self.pairs_at.setdefault(end, []).append(pair)

    def perturbation(self, target: int | None, budget: Budget, random: np.random.Generator) -> Perturbation:
        """A random perturbation that spends as much of the budget as the graph allows."""

        def at_most(amount: float) -> int:
            return int(min(amount, self.most))

        others = [node for node in self._nodes(target, random) if node != target]
        spare = len(others) if target is not None else max(len(others) - 1, 0)  # a graph keeps one of its nodes
        deleted = set(others[: min(at_most(budget.delete_nodes), spare)])
        changed = [u for u in reversed(others) if u not in deleted][: at_most(budget.change_features)]
        num_removed, num_altered = at_most(budget.delete_edges), at_most(budget.change_edges)
        touched = self._joined_pairs(target, random, num_removed + num_altered, deleted)
        removed, altered = touched[:num_removed], touched[num_removed:] if self.edge_values else []
        injected, new_edges = self._injected(
            target, at_most(budget.inject_nodes), at_most(budget.edges_per_injected), random, deleted
        )
        features = {self.ids[u]: self._features(random) for u in changed}
        if budget.target_features and target is not None:
            features[self.ids[target]] = self._features(random)
        return Perturbation(
            add_edges=[*self._added(target, at_most(budget.add_edges), random, deleted), *new_edges],
            delete_edges=self._named(removed),
            change_edges=[
                (u, v, self.edge_values[int(random.integers(len(self.edge_values)))]) for u, v in self._named(altered)
            ],
            inject_nodes=injected,
            delete_nodes=[self.ids[u] for u in sorted(deleted)],
            change_features=features,
        )

    def _named(self, pairs: Sequence[RowPair]) -> list[Pair]:
        return [(self.ids[u], self.ids[v]) for u, v in pairs]

    def _nodes(self, target: int | None, random: np.random.Generator) -> list[int]:
        """Neighbours of the target and other nodes in turn, each once."""
        close = [u for pair in self.pairs_at.get(target, ()) for u in pair]
        anyone = random.integers(0, self.size, 2 * self.most).tolist()
        pairs = zip(random.permutation(close or anyone).tolist(), anyone, strict=False)
        return list(dict.fromkeys([*(node for pair in pairs for node in pair), *anyone]))

    def _joined_pairs(
        self, target: int | None, random: np.random.Generator, count: int, deleted: set[int]
    ) -> list[RowPair]:
        """Pairs with an edge, half of them at the target."""
        near = [pair for pair in self.pairs_at.get(target, ()) if not deleted & {*pair}]
        far = [self.pairs[int(k)] for k in random.permutation(len(self.pairs))[:count]] if count else []
        mixed = [near[int(k)] for k in random.permutation(len(near))[: (count + 1) // 2]]
        return [pair for pair in dict.fromkeys([*mixed, *far]) if not deleted & {*pair}][:count]

    def _added(self, target: int | None, count: int, random: np.random.Generator, deleted: set[int]) -> list[Pair]:
        new: set[RowPair] = set()
        for turn in range(4 * count):
            u = int(random.integers(self.size)) if target is None or turn % 2 else target
            v = int(random.integers(self.size))
            pair = (min(u, v), max(u, v))
            if len(new) < count and u != v and pair not in self.joined and not deleted & {u, v}:
                new.add(pair)
        return self._named(sorted(new))

    def _injected(
        self, target: int | None, count: int, most: int, random: np.random.Generator, deleted: set[int]
    ) -> tuple[dict[Id, list[float]], list[Pair]]:
        """Injected nodes with their features, and their edges."""
        most = min(most, self.size - len(deleted))
        nodes: dict[Id, list[float]] = {}
        edges: list[Pair] = []
        while len(nodes) < count:
            new = int(random.integers(self.size, 2**31)) if self.has_ids else self.size + len(nodes)
            if new in self.keys or new in nodes:
                continue
            nodes[new] = self._features(random)
            drawn = random.permutation(self.size)[: most + len(deleted) + 1].tolist()
            ends = [u for u in drawn if u not in deleted and u != target]
            if target is not None:
                ends = [target, *ends]
            edges += [(new, self.ids[u]) for u in ends[:most]]
        return nodes, edges

    def _features(self, random: np.random.Generator) -> list[float]:
        """Features of a random node, sometimes magnified."""
        row = self.features[int(random.integers(self.size))]
        return (row * float(random.choice([1.0, 10.0]))).tolist()  # type: ignore[no-any-return]
