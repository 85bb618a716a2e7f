"""Random attacks: spend the whole budget, half of it close to the target. What every other attack must beat."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from agnncert.attacks.problem import Scene, edge_values_to_try
from agnncert.attacks.results import AttackResult, best_of
from agnncert.errors import SettingsError
from agnncert.graphs.perturbation import Id, Perturbation
from agnncert.proof.budget import Budget

Pair = tuple[int, int]


def random(
    scene: Scene, targets: Any, budget: Budget | Sequence[Budget], *, seed: int = 0, tries: int = 3
) -> list[AttackResult]:
    """Draws attacks at random and keeps the best.

    Args:
        scene: Model, data and division; any division.
        targets: Rows, a mask, or ``None`` for all.
        budget: What the attacker may do to each target, or one budget for each.
        seed: Seed.
        tries: Attacks drawn for each target.
    """
    if tries < 1:
        raise SettingsError(f"tries={tries}: expected a whole number from 1 on.")
    rows = scene.rows(targets)
    before = scene.votes(rows)
    maps = {-1: _Map(scene, 0)} if scene.task == "node" else {}
    attacks = []
    for row, one in zip(rows.tolist(), scene.budgets(budget, rows), strict=True):
        here = maps[-1] if scene.task == "node" else _Map(scene, row)
        generator = np.random.default_rng([seed, row])
        attacks += [(row, here.draw(row if scene.task == "node" else None, one, generator)) for _ in range(tries)]
    results = scene.results(attacks, before.repeat(tries, axis=0), "random")
    return [best_of(results[start : start + tries]) for start in range(0, len(results), tries)]


class _Map:
    """The nodes and pairs of one graph."""

    def __init__(self, scene: Scene, row: int) -> None:
        graph = scene.graph
        self.ids, self.has_ids = scene.ids(row), scene.has_ids(row)
        self.size, self.num_groups = len(self.ids), scene.num_groups
        arcs, offset = graph.edge_index, 0
        if scene.task == "graph":
            offset = int(graph.starts[row])
            arcs = arcs[:, graph.batch[arcs[0]] == row] - offset
        self.pairs = sorted({(min(u, v), max(u, v)) for u, v in arcs.t().tolist()})
        self.joined = set(self.pairs)
        self.features = graph.x[offset : offset + self.size]
        self.keys = set(graph.node_key[offset : offset + self.size].tolist())
        self.alters = edge_values_to_try(scene)
        self.at: dict[int, list[Pair]] = {}
        for pair in self.pairs:
            for end in dict.fromkeys(pair):
                self.at.setdefault(end, []).append(pair)

    def draw(self, target: int | None, budget: Budget, random: np.random.Generator) -> Perturbation:
        """A random perturbation that spends as much of the budget as the graph allows."""
        cap = 2 * self.num_groups  # of each kind, twice as many as there are ballots to move
        others = [node for node in self._some_nodes(target, random, 2 * cap) if node != target]
        keep = 0 if target is not None else 1
        deleted = set(others[: int(min(budget.delete_nodes, cap, max(len(others) - keep, 0)))])
        changed = [u for u in reversed(others) if u not in deleted][: int(min(budget.change_features, cap))]
        near = [pair for pair in self.at.get(-1 if target is None else target, ()) if not deleted & {*pair}]
        touched = self._some_pairs(
            near, random, int(min(budget.delete_edges, cap)) + int(min(budget.change_edges, cap)), deleted
        )
        removed = touched[: int(min(budget.delete_edges, cap))]
        altered = touched[len(removed) :] if self.alters else []
        injected = self._injected(target, budget, random, cap, deleted)
        features = {self.ids[u]: self._features(random) for u in changed}
        if budget.target_features and target is not None:
            features[self.ids[target]] = self._features(random)
        return Perturbation(
            add_edges=[*self._added(target, int(min(budget.add_edges, cap)), random, deleted), *injected[1]],
            delete_edges=[(self.ids[u], self.ids[v]) for u, v in removed],
            change_edges=[
                (self.ids[u], self.ids[v], self.alters[int(random.integers(len(self.alters)))]) for u, v in altered
            ],
            inject_nodes=injected[0],
            delete_nodes=[self.ids[u] for u in sorted(deleted)],
            change_features=features,
        )

    def _some_nodes(self, target: int | None, random: np.random.Generator, count: int) -> list[int]:
        """Neighbours of the target and other nodes, mixed, without repetition."""
        close = [u for pair in self.at.get(-1 if target is None else target, ()) for u in pair]
        anyone = random.integers(0, self.size, count).tolist()
        mixed = [
            node for two in zip(random.permutation(close or anyone).tolist(), anyone, strict=False) for node in two
        ]
        return list(dict.fromkeys([*mixed, *anyone]))

    def _some_pairs(self, near: list[Pair], random: np.random.Generator, count: int, deleted: set[int]) -> list[Pair]:
        far = [self.pairs[int(k)] for k in random.permutation(len(self.pairs))[:count]] if count else []
        mixed = [near[int(k)] for k in random.permutation(len(near))[: (count + 1) // 2]]
        return [pair for pair in dict.fromkeys([*mixed, *far]) if not deleted & {*pair}][:count]

    def _added(
        self, target: int | None, count: int, random: np.random.Generator, deleted: set[int]
    ) -> list[tuple[Id, Id]]:
        new: set[Pair] = set()
        for turn in range(4 * count):
            u = int(random.integers(self.size)) if target is None or turn % 2 else target
            v = int(random.integers(self.size))
            pair = (min(u, v), max(u, v))
            if len(new) < count and u != v and pair not in self.joined and not deleted & {u, v}:
                new.add(pair)
        return [(self.ids[u], self.ids[v]) for u, v in sorted(new)]

    def _injected(
        self, target: int | None, budget: Budget, random: np.random.Generator, cap: int, deleted: set[int]
    ) -> tuple[dict[Id, list[float]], list[tuple[Id, Id]]]:
        count, most = (
            int(min(budget.inject_nodes, cap)),
            int(min(budget.edges_per_injected, cap, self.size - len(deleted))),
        )
        nodes: dict[Id, list[float]] = {}
        edges: list[tuple[Id, Id]] = []
        while len(nodes) < count:
            new = int(random.integers(self.size, 2**31)) if self.has_ids else self.size + len(nodes)
            if new in self.keys or new in nodes:
                continue
            nodes[new] = self._features(random)
            ends = [
                u
                for u in random.permutation(self.size)[: most + len(deleted) + 1].tolist()
                if u not in deleted and u != target
            ]
            if target is not None:
                ends = [target, *ends]
            edges += [(new, self.ids[u]) for u in ends[:most]]
        return nodes, edges

    def _features(self, random: np.random.Generator) -> list[float]:
        """Those of some node, sometimes magnified."""
        row = self.features[int(random.integers(self.size))]
        return (row * float(random.choice([1.0, 10.0]))).tolist()  # type: ignore[no-any-return]
