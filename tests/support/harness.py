"""Runs every attack on a tiny graph and compares what it changes with what the library's theorems allow."""

import dataclasses
import itertools
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from agnncert.certificates.budget import Budget, Prices
from agnncert.certificates.votes import ABSTAIN, Votes
from agnncert.certificates.voting_rule import VotingRule
from agnncert.divided.evidence import VoteEvidence
from agnncert.divided.theorems.registry import theorem_of
from agnncert.proving.theorems import Amounts, Counts, Facts, Limits, count_votes, withstands
from tests.support import tiny
from tests.support.tiny import Cell, Tiny


@dataclass(frozen=True)
class Kind:
    """A division and task: its rule, its views, and which groups an attacker's new ids choose."""

    theorem: str
    views: Callable[[Tiny, int], list]
    edge_groups: bool
    node_groups: bool

    @property
    def is_node_task(self) -> bool:
        return self.theorem.endswith("/node")


KINDS = {
    kind.theorem: kind
    for kind in (
        Kind("edge-centric/node", tiny.edge_views, True, False),
        Kind("node-centric/node", tiny.node_views, False, True),
        Kind("gated/node", tiny.gated_views, False, True),
        Kind("edge-centric/graph", tiny.edge_graph_views, True, False),
        Kind("node-centric/graph", tiny.node_graph_views, False, True),
    )
}


def tiers(kind: Kind, graph: Tiny, target: int) -> list[int]:
    """0 reached, 1 listed but not reached, 2 unlisted, for every group."""
    listed: set[int] = set()
    if kind.theorem == "edge-centric/node":
        reached = {graph.pair_group[p] for p in graph.pairs if target in p}
    elif kind.theorem == "edge-centric/graph":
        reached = {graph.pair_group[p] for p in graph.pairs}
    elif kind.theorem == "node-centric/graph":
        here = [graph.node_group[u] for u in graph.features]
        listed = set(here)
        reached = {i for i in listed if graph.loops or here.count(i) > 1}
    else:
        reached = {i for i, heads in enumerate(graph.heads) if target in heads}
        if kind.theorem == "gated/node":
            listed = {graph.node_group[target]}
    return [0 if i in reached else 1 if i in listed else 2 for i in range(graph.num_groups)]


def cover_row(kind: Kind, graph: Tiny, target: int, num_reached: int) -> list[int]:
    """The exact coverage of the worst k nodes, by trying all of them."""
    if not kind.theorem.startswith("edge-centric") or not num_reached:
        return []
    others = [u for u in graph.features if u != target or not kind.is_node_task]
    reach = {u: _groups_reached(kind, graph, target, u) for u in others}
    row = [
        max(len(set().union(*(reach[u] for u in chosen))) for chosen in itertools.combinations(others, size))
        for size in range(1, len(others) + 1)
    ]
    return [*row, num_reached]


def _groups_reached(kind: Kind, graph: Tiny, target: int, node: int) -> set[int]:
    if kind.is_node_task:
        views = kind.views(graph, target)
        return {i for i, (nodes, _) in enumerate(views) if any(u == node for u, _ in nodes)}
    return {graph.pair_group[p] for p in graph.pairs if node in p}


def evidence(
    kind: Kind, graph: Tiny, targets: list[int], tables: list[list[int]], ids: str = "node_id"
) -> VoteEvidence:
    """One row per target, with the votes of ``tables``; votes of the unlisted groups must be alike."""
    levels_of = {v: tiers(kind, graph, v) for v in targets}
    levels = [levels_of[v] for v in targets]
    listed = [[i for i, tier in enumerate(level) if tier < 2] for level in levels]
    default = [
        next((table[i] for i in range(graph.num_groups) if level[i] == 2), ABSTAIN)
        for table, level in zip(tables, levels, strict=True)
    ]
    rows_of = {v: cover_row(kind, graph, v, level.count(0)) for v, level in levels_of.items()}
    rows = [rows_of[v] for v in targets]
    flat = [(j, i) for j, groups in enumerate(listed) for i in groups]
    votes = Votes(
        num_groups=graph.num_groups,
        num_classes=3,
        default=np.array(default, dtype=np.int16),
        default_stable=np.ones(len(targets), dtype=bool),
        indptr=np.cumsum([0, *map(len, listed)]),
        group=np.array([i for _, i in flat], dtype=np.int32),
        vote=np.array([tables[j][i] for j, i in flat], dtype=np.int16),
        stable=np.ones(len(flat), dtype=bool),
        reached=np.array([levels[j][i] == 0 for j, i in flat], dtype=bool),
    )
    reach = np.array([entry for row in rows for entry in row], dtype=np.int32)
    return VoteEvidence(votes, kind.theorem, np.cumsum([0, *map(len, rows)]), reach, ids)


def random_table(rng: random.Random, kind: Kind, graph: Tiny, target: int, num_classes: int) -> list[int]:
    """Votes that some in-local function casts: equal views vote alike, empty ones abstain."""
    by_view: dict[object, int] = {None: ABSTAIN}
    lean = rng.randrange(num_classes)  # most votes agree, or nothing would ever be certified
    views = kind.views(graph, target)
    for view in views:
        by_view.setdefault(view, lean if rng.random() < 0.7 else rng.randrange(num_classes))
    return [by_view[view] for view in views]


def budget_of(cell: Cell, unlimited: tuple[str, ...] = ()) -> Budget:
    counts = {
        "add_edges": cell.add,
        "delete_edges": cell.delete,
        "change_edges": cell.change,
        "inject_nodes": cell.inject,
        "edges_per_injected": cell.edges_each,
        "delete_nodes": cell.delete_nodes,
        "change_features": cell.features,
    }
    return Budget(**counts | dict.fromkeys(unlimited, math.inf), target_features=cell.own)


def priced(cell: Cell) -> tuple[Prices, float]:
    """Some prices, and what they make of the attacks of a cell."""
    rng = random.Random(repr(dataclasses.replace(cell, spare=frozenset())))
    names = {"add": "add_edges", "delete": "delete_edges", "change": "change_edges", "inject": "inject_nodes", "delete_nodes": "delete_nodes", "features": "change_features", "own": "target_features"}  # fmt: skip
    each = {name: rng.choice([1, 1, 2, 3, 5]) for name in names.values()}
    prices = Prices(**each, injected_edges=rng.choice([0, 1, 2]))
    price = sum(each[name] * getattr(cell, field) for field, name in names.items())
    return prices, price + prices.injected_edges * cell.inject * cell.edges_each


CUT = 3_000  # attacks tried in one cell; a cell that has more is not exhausted, and not counted as attained or not


def changes(kind: Kind, graph: Tiny, cell: Cell, targets: list[int], cut: int = CUT) -> tuple[int, dict]:
    """For every target the maximal sets of votes that some attack changes, and the number of attacks tried."""
    clean = {v: kind.views(graph, v) for v in targets}
    moved_sets: dict[int, set[frozenset[int]]] = {v: set() for v in targets}
    tried = 0
    every_attack = tiny.attacks(graph, cell, kind.edge_groups, kind.node_groups)
    for attacked, deleted, altered in itertools.islice(every_attack, cut):
        tried += 1
        for v in targets:
            if kind.is_node_task and (
                v in deleted or len(altered - {v}) > cell.features or (v in altered and not cell.own)
            ):
                continue
            views = kind.views(attacked, v)
            moved_sets[v].add(frozenset([i for i in range(graph.num_groups) if views[i] != clean[v][i]]))
    return tried, {v: {s for s in sets if not any(s < other for other in sets)} for v, sets in moved_sets.items()}


def flips(table: list[int], moved: frozenset[int], num_classes: int = 3) -> bool:
    """Whether the worst votes in the moved groups change the winner."""
    label = winner(table, num_classes)
    kept = [b for i, b in enumerate(table) if i not in moved]
    return any(winner(kept + [rival] * (len(table) - len(kept)), num_classes) != label for rival in range(num_classes))


def winner(table: list[int], num_classes: int = 3) -> int:
    counts = [table.count(k) for k in range(num_classes)]
    return counts.index(max(counts))


Decide = Callable[[Counts, Limits], np.ndarray]


@dataclass
class Score:
    """What a run of the harness saw."""

    attacks: int = 0
    cells: int = 0
    attained: int = 0  # cells in which some attack moves as many votes as the theorem allows
    exceeded: int = 0
    certified: int = 0
    robust: int = 0  # vote tables that no attack of the cell flips
    false: int = 0
    escaped: int = 0  # classes that some attack of the cell makes win, though they are said to be impossible
    won: int = 0  # classes that some attack of the cell makes win, the label included
    named: int = 0  # classes that are said to be possible
    dearer: int = 0  # tables that some attack of the cell flips, though it costs less than the stated price
    examples: list = field(default_factory=list)

    def __iadd__(self, other: "Score") -> "Score":
        for name in self.__dataclass_fields__.keys() - {"examples"}:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.examples += other.examples
        return self

    def compare_all(self, proof: VoteEvidence, cell: Cell, won: list[set[int]], examples: list[tuple]) -> None:
        """Compares the classes that attacks of a cell make win with those said to be possible, and prices with its own."""
        prices, paid = priced(cell)
        possible, price = proof.possible(budget_of(cell)), proof.cheapest(prices)
        for classes, marks, least, example in zip(won, possible, price, examples, strict=True):
            named = set(np.flatnonzero(marks).tolist())
            self.won, self.named = self.won + len(classes), self.named + len(named)
            self.dearer += len(classes) > 1 and paid < least
            if classes - named:
                self.escaped += len(classes - named)
                self.examples.append((*example, classes, named))


def run_cell(
    kind: Kind,
    graph: Tiny,
    cell: Cell,
    rng: random.Random,
    unlimited: tuple[str, ...] = (),
    tables_each: int = 6,
    cut: int = CUT,
    decide: Decide = withstands,
    theorem: Callable[[Amounts, Facts], Limits] | None = None,
) -> Score:
    """Compares one budget on one graph. ``decide`` and ``theorem`` can be replaced by broken ones."""
    targets = list(graph.features) if kind.is_node_task else [0]
    tried, moved_sets = changes(kind, graph, cell, targets, cut)
    score = Score(attacks=tried)
    owners = [v for v in targets for _ in range(tables_each)]
    tables = [random_table(rng, kind, graph, v, 3) for v in owners]
    proof = evidence(kind, graph, owners, tables)
    counted, facts = count_votes(proof.votes), proof._block(slice(0, proof.num_targets))[1]
    attack = Amounts.of(budget_of(cell, unlimited))
    reach = (theorem or theorem_of(kind.theorem).limits_under)(attack, facts)
    for j, v in enumerate(targets):
        limits = [float(limit[j * tables_each]) for limit in (reach.all, reach.beyond_reached, reach.unlisted)]
        _compare_counts(
            score, tiers(kind, graph, v), limits, moved_sets[v], tried < cut, (kind.theorem, graph, cell, v)
        )
    held = decide(counted, reach)
    if theorem is None and decide is withstands:
        assert held.tolist() == proof.holds(budget_of(cell, unlimited)).tolist()
    for v, table, holds in zip(owners, tables, held, strict=True):
        broken = any(flips(table, moved) for moved in moved_sets[v])
        score.certified += bool(holds)
        score.robust += not broken
        if holds and broken:
            score.false += 1
            score.examples.append((kind.theorem, graph, cell, v, table))
    return score


def _compare_counts(
    score: Score, level: list[int], limits: list[float], moved_sets: set, exhausted: bool, where: tuple
) -> None:
    most = min(limits[0], level.count(0) + min(limits[1], level.count(1) + min(limits[2], level.count(2))))
    seen = 0
    for moved in moved_sets:
        amounts = [len(moved), sum(level[i] > 0 for i in moved), sum(level[i] == 2 for i in moved)]
        seen = max(seen, len(moved))
        if any(amount > limit for amount, limit in zip(amounts, limits, strict=True)):
            score.exceeded += 1
            score.examples.append((*where, moved, limits))
    score.cells += exhausted
    score.attained += exhausted and seen == most


def random_cell(rng: random.Random, units: int) -> Cell:
    """A mixed budget of this many units."""
    names = ["add", "delete", "change", "inject", "delete_nodes", "features"]
    amounts = dict.fromkeys(names, 0)
    for _ in range(units):
        amounts[rng.choice(names)] += 1
    amounts["inject"] = min(amounts["inject"], 1 if units > 2 else 2)
    return Cell(
        **amounts, edges_each=rng.choice([0, 1, 1, 2, 2, 3]) if amounts["inject"] else 0, own=rng.random() < 0.3
    )


def run(kind: Kind, seed: int, graphs: int, cells: int, **options) -> Score:
    """Random graphs, random mixed budgets, every attack."""
    rng, score = random.Random(seed), Score()
    for _ in range(graphs):
        graph = tiny.random_tiny(
            rng, rng.choice([2, 3, 3, 4]), rng.choice([2, 3, 4]), directed=rng.random() < 0.3, loops=rng.random() < 0.3
        )
        for _ in range(cells):
            cell = random_cell(rng, rng.choice([1, 2, 2, 3] if len(graph.features) < 4 else [1, 2]))
            if cell.own and kind.theorem != "gated/node":
                cell = Cell(**{**cell.__dict__, "own": False})
            score += run_cell(kind, graph, cell, rng, **options)
    return score


def possible_priors(voting_rule: VotingRule, no_edge: int, is_stable: bool, num_classes: int) -> list[list[int]]:
    """Every prior that some machine may see, the one that was seen first.

    Args:
        voting_rule: Whose prior it is.
        no_edge: The prediction without edges, which the prior may follow.
        is_stable: Whether all machines predict it.
        num_classes: How many classes there are.
    """
    if voting_rule.class_prior:
        return [list(voting_rule.class_prior)]
    doubtful = [] if is_stable else range(num_classes)
    return [[voting_rule.no_edge_prior * (k == label) for k in range(num_classes)] for label in (no_edge, *doubtful)]
