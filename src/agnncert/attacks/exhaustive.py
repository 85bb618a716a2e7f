"""Exhaustive attacks: everything that a small budget allows on a tiny graph."""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from agnncert.attacks.injected_ids import FreshIds
from agnncert.attacks.problem import Ballots, Scene, edge_values_to_try
from agnncert.attacks.results import AttackResult
from agnncert.divisions import NodeCentric
from agnncert.errors import BudgetError, GraphError
from agnncert.graphs.perturbation import Id, Pair, Perturbation, keys_of
from agnncert.proof.budget import Budget

ATTACKS_AT_ONCE = 500


def exhaustive(
    scene: Scene,
    targets: Any,
    budget: Budget | Sequence[Budget],
    *,
    features: Sequence[Sequence[float]] | None = None,
    ids: Sequence[Id] | None = None,
    limit: int = 20_000,
) -> list[AttackResult]:
    """Tries every set of edges, nodes and edges of injected nodes that the budget allows.

    Features and ids have no end, so these come from lists: all combinations of what is listed are tried.

    Args:
        scene: Model, data and division; a tiny graph, any division.
        targets: Rows, a mask, or ``None`` for all.
        budget: What the attacker may do to each target, or one budget for each.
        features: Feature rows to give to nodes; the largest and the smallest values of the data when not given.
        ids: Ids for injected nodes; if not given, one for each group (node-centric) or the first few unused ones.
        limit: Refuse to try more attacks than this against one target.

    Raises:
        BudgetError: There are more attacks than ``limit``.
    """
    rows = scene.rows(targets)
    before = scene.votes(rows)
    found = []
    for row, ballots, one in zip(rows.tolist(), before, scene.budgets(budget, rows), strict=True):
        space = _Space.of(scene, row, features, ids)
        _require_few(space.count(one), limit, one)
        best, tried = _Best(scene, ballots), 0
        changes = space.attacks(one)
        while some := list(itertools.islice(changes, ATTACKS_AT_ONCE)):
            best.look(some, scene.recast([(row, change) for change in some]))
            tried += len(some)
        result = scene.results([(row, best.change)], ballots[None], "exhaustive", best.after[None])[0]
        found.append(replace(result, tried=tried))
    return found


def _require_few(count: float, limit: int, budget: Budget) -> None:
    if count > limit:
        shown = "endless" if count == math.inf else f"{count:,.0f}"
        raise BudgetError(
            f"{budget} allows {shown} attacks on this graph, more than the limit of {limit:,}: take a smaller "
            'budget or a smaller graph, or another attack ("greedy" knows where to look).'
        )


class _Best:
    """The attack that changed the label, else the one that moved the most ballots."""

    def __init__(self, scene: Scene, before: Ballots) -> None:
        self.scene, self.before, self.after = scene, before, before
        self.change = Perturbation()
        self.score = (False, 0)

    def look(self, changes: Sequence[Perturbation], after: Ballots) -> None:
        """Keeps the best of these, if it beats the best so far."""
        label = self.scene.winner(self.before)
        for change, ballots in zip(changes, after, strict=True):
            moved = int((ballots != self.before).sum())
            if moved <= self.score[1] and self.score[0]:
                continue
            score = (self.scene.winner(ballots) != label, moved)
            if score > self.score:
                self.score, self.change, self.after = score, change, ballots


@dataclass(frozen=True)
class _Space:
    """All that can be done to one graph."""

    nodes: tuple[Id, ...]  # the target is not among them
    target: Id | None
    pairs: tuple[Pair, ...]
    free: tuple[Pair, ...]
    values: tuple[Any, ...]
    features: tuple[Sequence[float], ...]
    ids: tuple[Id, ...]
    in_order: bool  # ids are row numbers, to be used in their order

    @classmethod
    def of(cls, scene: Scene, row: int, features: Any, ids: Sequence[Id] | None) -> "_Space":
        graph, names = scene.graph, scene.ids(row)
        arcs, x, keys = graph.edge_index, graph.x, graph.node_key
        if scene.task == "graph":
            start = int(graph.starts[row])
            inside = graph.batch[arcs[0]] == row
            arcs, x, keys = (arcs[:, inside] - start, x[start : start + len(names)], keys[start : start + len(names)])
        joined = {frozenset(arc) for arc in arcs.t().tolist()}
        everyone = [(u, v) for v in range(len(names)) for u in range(v + 1)]
        target = names[row] if scene.task == "node" else None
        return cls(
            nodes=tuple(name for name in names if name != target),
            target=target,
            pairs=tuple((names[u], names[v]) for u, v in everyone if frozenset((u, v)) in joined),
            free=tuple(
                (names[u], names[v]) for u, v in everyone if frozenset((u, v)) not in joined and (u != v or scene.loops)
            ),
            values=tuple(edge_values_to_try(scene)),
            features=tuple(_extremes(x) if features is None else _checked(features, x.size(1))),
            ids=tuple(_ids(scene, keys, row) if ids is None else _unused(ids, keys)),
            in_order=not scene.has_ids(row),
        )

    def count(self, budget: Budget) -> float:
        """How many attacks there are at most."""
        if budget.inject_nodes == math.inf:
            return math.inf
        return float(
            _subsets(len(self.free), budget.add_edges)
            * _subsets(len(self.pairs), budget.delete_edges)
            * _subsets(len(self.pairs), budget.change_edges, len(self.values))
            * _subsets(len(self.nodes), budget.delete_nodes)
            * _subsets(len(self.nodes), budget.change_features, len(self.features))
            * (1 + len(self.features) * (budget.target_features and self.target is not None))
            * self._count_injected(budget)
        )

    def _count_injected(self, budget: Budget) -> int:
        if not budget.inject_nodes:
            return 1
        each = len(self.features) * _subsets(len(self.nodes) + (self.target is not None), budget.edges_per_injected)
        return sum(math.comb(len(self.ids), k) * each**k for k in range(int(budget.inject_nodes) + 1))

    def attacks(self, budget: Budget) -> Iterator[Perturbation]:
        """All of them, without those that name a deleted node twice over."""
        parts = itertools.product(
            _sets(self.free, budget.add_edges),
            _sets(self.pairs, budget.delete_edges),
            _valued(self.pairs, budget.change_edges, self.values),
            _sets(self.nodes, budget.delete_nodes),
            _valued(self.nodes, budget.change_features, self.features),
            [None, *(self.features if budget.target_features and self.target is not None else ())],
            list(self._injections(budget)),
        )
        for add, remove, alter, drop, paint, own, (new, links) in parts:
            named = [end for pair in (*add, *remove, *links, *(pair for pair, _ in alter)) for end in pair] + [
                node for node, _ in paint
            ]
            alone = self.target is None and len(drop) == len(self.nodes)
            if set(drop) & set(named) or {*remove} & {pair for pair, _ in alter} or alone:
                continue
            painted = dict(paint) if own is None or self.target is None else {**dict(paint), self.target: own}
            yield Perturbation(
                add_edges=[*add, *links],
                delete_edges=remove,
                change_edges=[(u, v, value) for (u, v), value in alter],
                inject_nodes=new,
                delete_nodes=drop,
                change_features=painted,
            )

    def _injections(self, budget: Budget) -> Iterator[tuple[dict[Id, Sequence[float]], list[Pair]]]:
        ends = [*self.nodes, *([] if self.target is None else [self.target])]
        links = _sets(ends, budget.edges_per_injected)
        for count in range(int(min(budget.inject_nodes, len(self.ids))) + 1):
            for names in [self.ids[:count]] if self.in_order else itertools.combinations(self.ids, count):
                for looks in itertools.product(self.features, repeat=count):
                    for chosen in itertools.product(links, repeat=count):
                        pairs = [(name, end) for name, some in zip(names, chosen, strict=True) for end in some]
                        yield dict(zip(names, looks, strict=True)), pairs


def _subsets(total: int, most: float, options: int = 1) -> int:
    return sum(math.comb(total, size) * options**size for size in range(int(min(most, total)) + 1))


def _sets(items: Sequence[Any], most: float) -> list[tuple[Any, ...]]:
    sizes = range(int(min(most, len(items))) + 1)
    return [chosen for size in sizes for chosen in itertools.combinations(items, size)]


def _valued(items: Sequence[Any], most: float, values: Sequence[Any]) -> list[tuple[tuple[Any, Any], ...]]:
    return [
        tuple(zip(chosen, given, strict=True))
        for chosen in _sets(items, most)
        for given in itertools.product(values, repeat=len(chosen))
    ]


def _extremes(x: Any) -> list[list[float]]:
    return [(10 * x.amax(0)).tolist(), (10 * x.amin(0)).tolist()]


def _checked(features: Sequence[Sequence[float]], width: int) -> list[Sequence[float]]:
    for row in features:
        if len(row) != width or not np.isfinite(np.asarray(row, dtype=np.float64)).all():
            raise GraphError(f"a feature row to inject has {len(row)} entries: expected {width} finite numbers.")
    return list(features)


def _ids(scene: Scene, keys: Any, row: int) -> list[Id]:
    count = 20 * scene.num_groups if scene.has_ids(row) else 5
    fresh = FreshIds(keys, scene.has_ids(row), count)
    if not isinstance(scene.division, NodeCentric) or not fresh.chosen:
        return fresh.ids[: min(count, 5)].tolist()  # type: ignore[no-any-return]
    groups = fresh.node_groups(scene.division)
    return [int(fresh.ids[np.flatnonzero(groups == group)[0]]) for group in np.unique(groups)]


def _unused(ids: Sequence[Id], keys: Any) -> list[Id]:
    living = set(keys.tolist())
    taken = [name for name, key in zip(ids, keys_of(ids), strict=True) if key in living]
    if taken:
        raise BudgetError(f"the id {taken[0]!r} belongs to a living node: nodes can be injected under unused ids only.")
    return list(ids)
