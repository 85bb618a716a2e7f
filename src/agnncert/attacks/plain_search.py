"""Attacks that do not use the division: ``random``, and ``exhaustive`` for tiny graphs.

A random attack spends the whole budget, half of it close to the target. All other attacks should do better.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from torch import Tensor

from agnncert.attacks.candidates import UnusedIds
from agnncert.attacks.problem import AttackResult, Problem, VoteTable, best_of
from agnncert.certificates.budget import Budget
from agnncert.certificates.ids import Id
from agnncert.divisions.node import NodeCentric
from agnncert.errors import BudgetError
from agnncert.graphs.perturbation import Pair, Perturbation

RowPair = tuple[int, int]
ATTACKS_AT_ONCE = 500
MOST_ATTACKS = 20_000  # against one target, if all are tried
TRIES = 3  # attacks drawn at random for each target


def random(problem: Problem, targets: Any, budget: Budget | Sequence[Budget], *, seed: int = 0) -> list[AttackResult]:
    """Draws three attacks at random for each target and keeps the best.

    Args:
        problem: Model, data and division; any division.
        targets: Rows, a mask, or ``None`` for all.
        budget: What the attacker may do to each target, or one budget for each.
        seed: Seed.
    """
    rows = problem.rows(targets)
    before = problem.votes(rows)
    shared = _Draws(problem, 0) if problem.task == "node" else None
    attacks = []
    for row, allowed in zip(rows.tolist(), problem.budgets(budget, rows), strict=True):
        draws = shared or _Draws(problem, row)
        target = row if problem.task == "node" else None
        generator = np.random.default_rng([seed, row])
        attacks += [(row, draws.perturbation(target, allowed, generator)) for _ in range(TRIES)]
    results = problem.results(attacks, before.repeat(TRIES, axis=0), "random")
    return [best_of(results[start : start + TRIES]) for start in range(0, len(results), TRIES)]


def exhaustive(problem: Problem, targets: Any, budget: Budget | Sequence[Budget]) -> list[AttackResult]:
    """Tries every set of edges, nodes and edges of injected nodes that the budget allows.

    Features are 10 × the largest and the smallest values of the data. Injected nodes have one id for each group
    (node-centric), or the first five unused ones. All combinations of them are tried.

    Args:
        problem: Model, data and division; a tiny graph, any division.
        targets: Rows, a mask, or ``None`` for all.
        budget: What the attacker may do to each target, or one budget for each.

    Raises:
        BudgetError: There are more than 20,000 attacks against one target.
    """
    rows = problem.rows(targets)
    before = problem.votes(rows)
    attacks = []
    for row, allowed in zip(rows.tolist(), problem.budgets(budget, rows), strict=True):
        choices = _Choices.of(problem, row)
        if (count := choices.count(allowed)) > MOST_ATTACKS:
            shown = "infinitely many" if count == math.inf else f"{count:,.0f}"
            raise BudgetError(
                f"{allowed} allows {shown} attacks on this graph, more than the limit of {MOST_ATTACKS:,}: use a "
                'smaller budget, a smaller graph, or the attack "greedy".'
            )
        attacks.append(choices.attacks(allowed))
    return _best(problem, rows.tolist(), before, attacks)


class _Draws:
    """Draws perturbations of one graph. ``target`` is the row of a target node, or ``None`` for the whole graph."""

    def __init__(self, problem: Problem, row: int) -> None:
        graph = problem.graph_of(row)
        self.ids, self.has_ids = problem.ids(row), problem.has_ids(row)
        self.keys = set(graph.node_key.tolist())
        self.features, self.size = graph.x, len(self.ids)
        self.most = 2 * problem.num_groups  # changes of each kind at most: enough to change every vote
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
        """Neighbours of the target and random nodes in turn, each once."""
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
        return (row * float(random.choice([1.0, 10.0]))).tolist()


def _best(problem: Problem, rows: list[int], old: VoteTable, tries: list[Iterator[Perturbation]]) -> list[AttackResult]:
    """For each target the attack that changed the label, else the one that moved the most votes."""
    labels = [problem.winner(votes) for votes in old]
    scores, best, tried = [(False, 0)] * len(rows), [Perturbation()] * len(rows), [0] * len(rows)
    # Targets take turns, since what is tried against several of them is applied once.
    turns = (pair for turn in itertools.zip_longest(*tries) for pair in enumerate(turn) if pair[1] is not None)
    while batch := list(itertools.islice(turns, ATTACKS_AT_ONCE)):
        known: dict[str, Perturbation] = {}  # one object for equal changes; all of a change is in its text
        votes = problem.recast([(rows[k], known.setdefault(repr(change), change)) for k, change in batch])
        for (k, change), after in zip(batch, votes, strict=True):
            this = (problem.winner(after) != labels[k], int((after != old[k]).sum()))
            if this > scores[k]:
                scores[k], best[k] = this, change
            tried[k] += 1
    results = problem.results(list(zip(rows, best, strict=True)), old, "exhaustive")
    return [replace(result, tried=count) for result, count in zip(results, tried, strict=True)]


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
    def of(cls, problem: Problem, row: int) -> "_Choices":
        graph, names = problem.graph_of(row), problem.ids(row)
        edges = {frozenset(edge) for edge in graph.edge_index.t().tolist()}
        pairs = [(u, v) for v in range(len(names)) for u in range(v + 1)]
        free = [(u, v) for u, v in pairs if frozenset((u, v)) not in edges and (u != v or problem.loops)]
        target = names[row] if problem.task == "node" else None
        return cls(
            nodes=tuple(name for name in names if name != target),
            target=target,
            joined=tuple((names[u], names[v]) for u, v in pairs if frozenset((u, v)) in edges),
            free=tuple((names[u], names[v]) for u, v in free),
            edge_values=tuple(problem.extreme_edge_values()),
            features=((10 * graph.x.amax(0)).tolist(), (10 * graph.x.amin(0)).tolist()),
            ids=_ids(problem, graph.node_key, row),
            any_order=problem.has_ids(row),
        )

    def count(self, budget: Budget) -> float:
        """An upper bound on the number of ``attacks``, which leaves out contradictory ones."""
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
                    for joined in itertools.product(links, repeat=count):
                        pairs = [(name, end) for name, ends in zip(names, joined, strict=True) for end in ends]
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
        for subset in itertools.chain.from_iterable(itertools.combinations(self.items, size) for size in self._sizes):
            if self.values is None:
                yield subset
            else:
                for given in itertools.product(self.values, repeat=len(subset)):
                    yield tuple(zip(subset, given, strict=True))


def _ids(problem: Problem, keys: Tensor, row: int) -> tuple[Id, ...]:
    """One unused id for each group if ids decide about groups (node-centric), else the first five unused ids."""
    if not isinstance(problem.division, NodeCentric) or not problem.has_ids(row):
        return tuple(UnusedIds(keys, problem.has_ids(row), 5).ids.tolist())
    unused = UnusedIds(keys, True, 20 * problem.num_groups)
    _, first = np.unique(unused.node_groups(problem.division), return_index=True)
    return tuple(unused.ids[first].tolist())
