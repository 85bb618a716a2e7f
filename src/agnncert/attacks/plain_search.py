"""Attacks that look at labels alone, whatever the defence: ``random``, and ``exhaustive`` for tiny graphs.

A random attack spends the whole budget, half of it close to the target. All other attacks should do better.
"""

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from agnncert.attacks.problem import OutcomeTable, Problem, RowPair
from agnncert.attacks.results import AttackResult, best_of
from agnncert.certificates.budget import Budget
from agnncert.certificates.ids import Id
from agnncert.defence import TargetChoice
from agnncert.errors import BudgetError
from agnncert.graphs.perturbation import Pair, Perturbation

ATTACKS_AT_ONCE = 500
MOST_ATTACKS = 20_000  # against one target, if all are tried
TRIES = 3  # attacks drawn at random for each target


def random(
    problem: Problem, targets: TargetChoice, budget: Budget | Sequence[Budget], *, seed: int = 0
) -> list[AttackResult]:
    """Draws three attacks at random for each target and keeps the best.

    Args:
        problem: Model, data and any defence.
        targets: Rows, a mask, or ``None`` for all.
        budget: What the attacker may do to each target, or one budget for each.
        seed: Seed. Defaults to 0.
    """
    rows = problem.rows(targets)
    budgets = problem.budgets(budget, rows)
    before = problem.outcomes(rows)
    shared = _Draws(problem, 0) if problem.task == "node" else None
    attacks = []
    allowed_each = []
    for row, allowed in zip(rows.tolist(), budgets, strict=True):
        draws = shared or _Draws(problem, row)
        target = row if problem.task == "node" else None
        generator = np.random.default_rng([seed, row])
        for _ in range(TRIES):
            attacks.append((row, draws.perturbation(target, allowed, generator)))
            allowed_each.append(allowed)
    results = problem.results(attacks, before.repeat(TRIES, axis=0), allowed_each, "random")
    return [best_of(results[start : start + TRIES]) for start in range(0, len(results), TRIES)]


def exhaustive(problem: Problem, targets: TargetChoice, budget: Budget | Sequence[Budget]) -> list[AttackResult]:
    """Tries every set of edges, nodes and edges of injected nodes that the budget allows.

    Features are the extreme ones of the problem: 10 × the largest and the smallest values of the data, in most cases.
    Injected nodes have one id for each group (node-centric), or the first five unused ones. All combinations of them
    are tried.

    Args:
        problem: Model, data and any defence, on a tiny graph.
        targets: Rows, a mask, or ``None`` for all.
        budget: What the attacker may do to each target, or one budget for each.

    Raises:
        BudgetError: There are more than 20,000 attacks against one target.
    """
    rows = problem.rows(targets)
    budgets = problem.budgets(budget, rows)
    before = problem.outcomes(rows)
    attacks = []
    for row, allowed in zip(rows.tolist(), budgets, strict=True):
        choices = _Choices.of(problem, row)
        count = choices.count(allowed)
        if count > MOST_ATTACKS:
            shown = "infinitely many" if count == math.inf else f"{count:,.0f}"
            raise BudgetError(
                f"{allowed} allows {shown} attacks on this graph, more than the limit of {MOST_ATTACKS:,}: use a "
                'smaller budget, a smaller graph, or the attack "greedy".'
            )
        attacks.append(choices.attacks(allowed))
    return _best(problem, rows.tolist(), before, budgets, attacks)


class _Draws:
    """Draws perturbations of one graph. ``target`` is the row of a target node, or ``None`` for the whole graph."""

    def __init__(self, problem: Problem, row: int) -> None:
        graph = problem.graph_of(row)
        protected = problem.out_of_reach(row)
        self.ids = problem.ids(row)
        self.has_ids = problem.has_ids(row)
        self.keys = set(graph.node_key.tolist())
        self.features = graph.x
        self.scales = problem.feature_scales()
        self.size = len(self.ids)
        self.most = problem.most_changes
        self.edge_values = problem.extreme_edge_values()
        self.added_values = problem.added_values()
        self.fixed_nodes = protected.nodes
        self.joined = {(min(u, v), max(u, v)) for u, v in graph.edge_index.t().tolist()}
        self.pairs = sorted(self.joined - protected.pairs)
        self.pairs_at: dict[int | None, list[RowPair]] = {}
        for pair in self.pairs:
            for end in dict.fromkeys(pair):
                self.pairs_at.setdefault(end, []).append(pair)

    def perturbation(self, target: int | None, budget: Budget, random: np.random.Generator) -> Perturbation:
        """A random perturbation that spends as much of the budget as the graph allows."""

        def at_most(amount: float) -> int:
            return int(min(amount, self.most))

        others = [node for node in self._nodes(target, random) if node != target and node not in self.fixed_nodes]
        spare = len(others) if target is not None else max(len(others) - 1, 0)  # a graph keeps one of its nodes
        deleted = set(others[: min(at_most(budget.delete_nodes), spare)])
        changed = [u for u in reversed(others) if u not in deleted][: at_most(budget.change_features)]
        num_removed = at_most(budget.delete_edges)
        num_altered = at_most(budget.change_edges)
        touched = self._joined_pairs(target, random, num_removed + num_altered, deleted)
        removed = touched[:num_removed]
        altered = touched[num_removed:] if self.edge_values else []
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
            added_values=self.added_values,
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
        return (row * float(random.choice(self.scales))).tolist()


@dataclass
class _Best:
    """The best attack on one target so far.

    Attributes:
        rank: Whether it changed the label, and how far it came.
        change: What it changes.
        tried: Number of attacks that were tried.
    """

    rank: tuple[bool, float] = (False, 0)
    change: Perturbation = field(default_factory=Perturbation)
    tried: int = 0


def _best(
    problem: Problem,
    rows: list[int],
    before: OutcomeTable,
    budgets: Sequence[Budget],
    attacks_each: list[Iterator[Perturbation]],
) -> list[AttackResult]:
    """Returns for each target the attack that changed the label, else the one that came furthest."""
    labels = [problem.winner(outcome) for outcome in before]
    best = [_Best() for _ in rows]
    # Targets take turns, since what is tried against several of them is applied once.
    turns = (pair for turn in itertools.zip_longest(*attacks_each) for pair in enumerate(turn) if pair[1] is not None)
    while batch := list(itertools.islice(turns, ATTACKS_AT_ONCE)):
        shared: dict[str, Perturbation] = {}  # one object for equal changes; all of a change is in its text
        attacks = [(rows[k], shared.setdefault(repr(change), change)) for k, change in batch]
        outcomes = problem.outcomes_after(attacks)
        for (k, change), after in zip(batch, outcomes, strict=True):
            rank = (problem.winner(after) != labels[k], problem.moved(before[k], after))
            best[k].tried += 1
            if rank > best[k].rank:
                best[k].rank = rank
                best[k].change = change
    attacks = [(row, one.change) for row, one in zip(rows, best, strict=True)]
    results = problem.results(attacks, before, budgets, "exhaustive")
    return [replace(result, tried=one.tried) for result, one in zip(results, best, strict=True)]


@dataclass(frozen=True)
class _Choices:
    """What an attacker of one target can choose from.

    Attributes:
        nodes: Nodes that an injected node can be joined to, the target not among them.
        open_nodes: Those of them that can be deleted or given other features.
        target: The target node; ``None`` if the graph is the target.
        joined: Pairs whose edges can be deleted or changed.
        free: Pairs that can be joined.
        edge_values: What a changed edge can carry.
        added_values: What an added edge carries, by name, where it is not 1.
        features: Feature rows of injected and changed nodes.
        ids: Ids of injected nodes.
        any_order: Whether an injected node can have any of them; else they are row numbers, to be used in their order.
    """

    nodes: tuple[Id, ...]
    open_nodes: tuple[Id, ...]
    target: Id | None
    joined: tuple[Pair, ...]
    free: tuple[Pair, ...]
    edge_values: tuple[Any, ...]
    added_values: Mapping[str, Any]
    features: tuple[Sequence[float], ...]
    ids: tuple[Id, ...]
    any_order: bool

    @classmethod
    def of(cls, problem: Problem, row: int) -> "_Choices":
        """Returns what the attacker of the target ``row`` can choose from."""
        graph = problem.graph_of(row)
        names = problem.ids(row)
        protected = problem.out_of_reach(row)
        edges = {(min(u, v), max(u, v)) for u, v in graph.edge_index.t().tolist()}
        changeable = edges - protected.pairs
        joined = []
        free = []
        for v in range(len(names)):
            for u in range(v + 1):
                if (u, v) not in edges and (u != v or problem.keeps_self_loops):
                    free.append((names[u], names[v]))
                if (u, v) in changeable:
                    joined.append((names[u], names[v]))
        target = names[row] if problem.task == "node" else None
        fixed = {target, *(names[node] for node in protected.nodes)}
        return cls(
            nodes=tuple(name for name in names if name != target),
            open_nodes=tuple(name for name in names if name not in fixed),
            target=target,
            joined=tuple(joined),
            free=tuple(free),
            edge_values=tuple(problem.extreme_edge_values()),
            added_values=problem.added_values(),
            features=tuple(features.tolist() for features in problem.extreme_features(row)),
            ids=problem.ids_to_inject(row),
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
        for add, remove, alter, drop, features, target_features, (new, links) in parts:
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
                change_features=dict((*features, *target_features)),
                added_values=self.added_values,
            )

    def _changes(self, budget: Budget) -> list["_Subsets"]:
        """What may be done to existing nodes and edges, one kind of change after another."""
        return [
            _Subsets(self.free, budget.add_edges),
            _Subsets(self.joined, budget.delete_edges),
            _Subsets(self.joined, budget.change_edges, self.edge_values),
            _Subsets(self.open_nodes, budget.delete_nodes),
            _Subsets(self.open_nodes, budget.change_features, self.features),
            _Subsets(() if self.target is None else (self.target,), budget.target_features, self.features),
        ]

    @property
    def _ends(self) -> tuple[Id, ...]:
        """Nodes that an injected node can be joined to."""
        return self.nodes if self.target is None else (*self.nodes, self.target)

    def _injections(self, budget: Budget) -> Iterator[tuple[dict[Id, Sequence[float]], list[Pair]]]:
        """Injected nodes with their features, and their edges."""
        links = list(_Subsets(self._ends, budget.edges_per_injected)) if budget.inject_nodes else []
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
