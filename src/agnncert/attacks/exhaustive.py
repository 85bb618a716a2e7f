"""The exhaustive attack: tries everything that a small budget allows on a tiny graph."""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from torch import Tensor

from agnncert.attacks.injected_ids import UnusedIds
from agnncert.attacks.problem import Ballots, Problem
from agnncert.attacks.results import AttackResult
from agnncert.divisions import NodeCentric
from agnncert.errors import BudgetError, GraphError
from agnncert.graphs.perturbation import Pair, Perturbation
from agnncert.proof.budget import Budget
from agnncert.proof.ids import Id, encode_ids, refuse_duplicates

ATTACKS_AT_ONCE = 500


def exhaustive(
    problem: Problem,
    targets: Any,
    budget: Budget | Sequence[Budget],
    *,
    features: Sequence[Sequence[float]] | None = None,
    ids: Sequence[Id] | None = None,
    limit: int = 20_000,
) -> list[AttackResult]:
    """Tries every set of edges, nodes and edges of injected nodes that the budget allows.

    There are infinitely many features and ids, so these come from lists: all combinations of listed ones are tried.

    Args:
        problem: Model, data and division; a tiny graph, any division.
        targets: Rows, a mask, or ``None`` for all.
        budget: What the attacker may do to each target, or one budget for each.
        features: Feature rows to give to nodes; the largest and the smallest values of the data when not given.
        ids: Ids for injected nodes; if not given, one for each group (node-centric) or the first few unused ones.
        limit: Refuse to try more attacks than this against one target.

    Raises:
        BudgetError: There are more attacks than ``limit``.
    """
    rows = problem.rows(targets)
    before = problem.votes(rows)
    results = []
    for row, ballots, allowed in zip(rows.tolist(), before, problem.budgets(budget, rows), strict=True):
        choices = _Choices.of(problem, row, features, ids)
        if (count := choices.count(allowed)) > limit:
            shown = "endless" if count == math.inf else f"{count:,.0f}"
            raise BudgetError(
                f"{allowed} allows {shown} attacks on this graph, more than the limit of {limit:,}: take a smaller "
                'budget or a smaller graph, or another attack ("greedy" knows where to look).'
            )
        results.append(_best(problem, row, ballots, choices.attacks(allowed)))
    return results


def _best(problem: Problem, row: int, before: Ballots, changes: Iterator[Perturbation]) -> AttackResult:
    """The attack that changed the label, else the one that moved the most ballots."""
    label, tried = problem.winner(before), 0
    score, best, best_ballots = (False, 0), Perturbation(), before
    while batch := list(itertools.islice(changes, ATTACKS_AT_ONCE)):
        for change, after in zip(batch, problem.recast([(row, change) for change in batch]), strict=True):
            this = (problem.winner(after) != label, int((after != before).sum()))
            if this > score:
                score, best, best_ballots = this, change, after
        tried += len(batch)
    result = problem.results([(row, best)], before[None], "exhaustive", best_ballots[None])[0]
    return replace(result, tried=tried)


@dataclass(frozen=True)
class _Choices:
    """What an attacker of one target can choose from."""

    nodes: tuple[Id, ...]  # the target is not among them
    target: Id | None
    joined: tuple[Pair, ...]
    free: tuple[Pair, ...]
    edge_values: tuple[Any, ...]
    features: tuple[Sequence[float], ...]
    ids: tuple[Id, ...]
    any_order: bool  # else ids are row numbers, to be used in their order

    @classmethod
    def of(cls, problem: Problem, row: int, features: Any, ids: Sequence[Id] | None) -> "_Choices":
        graph, names = problem.graph_of(row), problem.ids(row)
        arcs = {frozenset(arc) for arc in graph.edge_index.t().tolist()}
        pairs = [(u, v) for v in range(len(names)) for u in range(v + 1)]
        free = [(u, v) for u, v in pairs if frozenset((u, v)) not in arcs and (u != v or problem.loops)]
        target = names[row] if problem.task == "node" else None
        extremes = [(10 * graph.x.amax(0)).tolist(), (10 * graph.x.amin(0)).tolist()]
        return cls(
            nodes=tuple(name for name in names if name != target),
            target=target,
            joined=tuple((names[u], names[v]) for u, v in pairs if frozenset((u, v)) in arcs),
            free=tuple((names[u], names[v]) for u, v in free),
            edge_values=tuple(problem.extreme_edge_values()),
            features=tuple(extremes if features is None else _checked(features, graph.x.size(1))),
            ids=tuple(_usual_ids(problem, graph.node_key, row) if ids is None else _unused(ids, names)),
            any_order=problem.has_ids(row),
        )

    def count(self, budget: Budget) -> float:
        """An upper bound on the number of ``attacks``: contradictory ones, which that leaves out, are counted too."""
        if budget.inject_nodes == math.inf:
            return math.inf
        each = len(self.features) * _Subsets(self._ends, budget.edges_per_injected).count()
        injections = sum(math.comb(len(self.ids), k) * each**k for k in range(int(budget.inject_nodes) + 1))
        return float(injections * math.prod(subsets.count() for subsets in self._changes(budget)))

    def attacks(self, budget: Budget) -> Iterator[Perturbation]:
        """All attacks within the budget, except those that change what they delete, or delete all nodes of a graph."""
        parts = itertools.product(*self._changes(budget), self._injections(budget))
        for add, remove, alter, drop, features, own_features, (new, links) in parts:
            altered = {pair for pair, _ in alter}
            named = {end for pair in (*add, *remove, *links, *altered) for end in pair} | {node for node, _ in features}
            nothing_left = self.target is None and len(drop) == len(self.nodes)
            if named.intersection(drop) or altered.intersection(remove) or nothing_left:
                continue
            yield Perturbation(
                add_edges=[*add, *links],
                delete_edges=remove,
                change_edges=[(u, v, value) for (u, v), value in alter],
                inject_nodes=new,
                delete_nodes=drop,
                change_features=dict((*features, *own_features)),
            )

    def _changes(self, budget: Budget) -> list["_Subsets"]:
        """What may be done to existing nodes and edges, one kind of change after another."""
        return [
            _Subsets(self.free, budget.add_edges),
            _Subsets(self.joined, budget.delete_edges),
            _Subsets(self.joined, budget.change_edges, self.edge_values),
            _Subsets(self.nodes, budget.delete_nodes),
            _Subsets(self.nodes, budget.change_features, self.features),
            _Subsets(() if self.target is None else (self.target,), budget.target_features, self.features),
        ]

    @property
    def _ends(self) -> tuple[Id, ...]:
        """Nodes that an injected node can be joined to."""
        return self.nodes if self.target is None else (*self.nodes, self.target)

    def _injections(self, budget: Budget) -> Iterator[tuple[dict[Id, Sequence[float]], list[Pair]]]:
        """Injected nodes with their features, and their edges."""
        links = list(_Subsets(self._ends, budget.edges_per_injected))
        for count in range(int(min(budget.inject_nodes, len(self.ids))) + 1):
            for names in itertools.combinations(self.ids, count) if self.any_order else [self.ids[:count]]:
                for rows in itertools.product(self.features, repeat=count):
                    for chosen in itertools.product(links, repeat=count):
                        pairs = [(name, end) for name, ends in zip(names, chosen, strict=True) for end in ends]
                        yield dict(zip(names, rows, strict=True)), pairs


@dataclass(frozen=True)
class _Subsets:
    """All sets of at most ``most`` items; with ``values``, in all ways to give one of these to each item."""

    items: Sequence[Any]
    most: float
    values: Sequence[Any] | None = None

    @property
    def _sizes(self) -> range:
        return range(int(min(self.most, len(self.items))) + 1)

    def count(self) -> int:
        options = 1 if self.values is None else len(self.values)
        return sum(math.comb(len(self.items), size) * options**size for size in self._sizes)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        for chosen in itertools.chain.from_iterable(itertools.combinations(self.items, size) for size in self._sizes):
            if self.values is None:
                yield chosen
            else:
                for given in itertools.product(self.values, repeat=len(chosen)):
                    yield tuple(zip(chosen, given, strict=True))


def _checked(features: Sequence[Sequence[float]], width: int) -> Sequence[Sequence[float]]:
    for row in features:
        if len(row) != width or not np.isfinite(np.asarray(row, dtype=np.float64)).all():
            raise GraphError(f"a feature row to inject has {len(row)} entries: expected {width} finite numbers.")
    return features


def _usual_ids(problem: Problem, keys: Tensor, row: int) -> list[Id]:
    """One unused id for each group if ids decide about groups (node-centric), else the first five unused ids."""
    if not isinstance(problem.division, NodeCentric) or problem.own_groups or not problem.has_ids(row):
        return UnusedIds(keys, problem.has_ids(row), 5).ids.tolist()  # type: ignore[no-any-return]
    unused = UnusedIds(keys, True, 20 * problem.num_groups)
    _, first = np.unique(unused.node_groups(problem.division), return_index=True)
    return unused.ids[first].tolist()  # type: ignore[no-any-return]


def _unused(ids: Sequence[Id], names: Sequence[Id]) -> Sequence[Id]:
    encoded, living = encode_ids(ids), set(names)
    refuse_duplicates(encoded)
    for name, known in zip(ids, encoded, strict=True):
        if known in living:
            raise BudgetError(f"the id {name!r} belongs to a living node: nodes can be injected under unused ids only.")
    return ids
