"""Tiny graphs in which every neighbour, pair or node has a group of its own: every attack, against what is certified."""

import dataclasses
import itertools
import random
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass

import numpy as np

from agnncert.certificates.votes import ABSTAIN, Votes
from agnncert.certificates.voting_rule import VotingRule
from agnncert.divided.evidence import VoteEvidence
from tests.support import tiny
from tests.support.harness import Score, budget_of, possible_priors, random_cell
from tests.support.tiny import Cell, Tiny

CLASSES = 3
THEOREMS = ("per-neighbour/node", "per-pair/node", "per-neighbour/graph", "per-pair/graph")
Views = dict[Hashable, Hashable]  # what each vote is a function of, by the neighbour, pair or node that it belongs to


def views(theorem: str, graph: Tiny, target: int = 0) -> Views:
    x = graph.features
    if theorem == "per-neighbour/node":
        # A self-loop at u would be in u's group too, and v would hear it: the division drops self-loops.
        loops = {u: a for u, v, a in graph.by_head.get(None, ())}
        return {u: (x[target], x[u], a, loops.get(u)) for u, _, a in graph.by_head.get(target, ())}
    if theorem == "per-neighbour/graph":
        return dict(x)
    pairs = {p: (s, x[p[0]], x[p[1]]) for p, s in graph.pairs.items()}
    return {p: view for p, view in pairs.items() if target in p} if theorem == "per-pair/node" else pairs


@dataclass(frozen=True)
class PairVotes:
    """One target: votes by name, which are stable, and the prediction without edges."""

    cast: dict[Hashable, int]
    stable: dict[Hashable, bool]
    no_edge: int = 0
    no_edge_stable: bool = True

    def priors(self, voting_rule: VotingRule) -> list[list[int]]:
        """Every prior that some machine may see, the one that was seen first."""
        return possible_priors(voting_rule, self.no_edge, self.no_edge_stable, CLASSES)

    def label(self, voting_rule: VotingRule) -> int:
        return winner(list(self.cast.values()), self.priors(voting_rule)[0], voting_rule)

    def breaks(self, voting_rule: VotingRule, lost: frozenset, altered: frozenset, new: int) -> bool:
        """Whether another class wins if the worst happens to altered, new and unstable votes, and to the prior."""
        return self.winners(voting_rule, lost, altered, new) != {self.label(voting_rule)}

    def winners(self, voting_rule: VotingRule, lost: frozenset, altered: frozenset, new: int) -> set[int]:
        """All classes that win, each with the votes, and the prior in doubt, that suit it or another class best."""
        return self.winners_of_all(voting_rule, [(lost, altered, new)])

    def winners_of_all(self, voting_rule: VotingRule, changes: Iterable["Change"]) -> set[int]:
        """All classes that win after one of several changes; many of them leave the same votes as they are."""
        left = set()
        for lost, altered, new in changes:
            kept = [n for n in self.cast if n not in lost]
            fixed = [self.cast[n] for n in kept if n not in altered and self.stable[n]]
            left.add((tuple(sorted(fixed)), len(kept) - len(fixed) + new))
        priors = self.priors(voting_rule)
        return {
            winner([*fixed, *[k] * free], prior, voting_rule)
            for fixed, free in left
            for prior in priors
            for k in range(CLASSES)
        }


def winner(votes: list[int], prior: list[int], voting_rule: VotingRule) -> int:
    scores = [prior[k] + votes.count(k) for k in range(CLASSES)]
    if voting_rule.constant in range(CLASSES):
        scores[voting_rule.constant] -= len(votes)
    return scores.index(max(scores))


def random_vote(rng: random.Random, theorem: str) -> VotingRule:
    empty = rng.choice(["abstain", "abstain", 0, 1, 2])
    numbers = [-1, 0, 1, 1, 2, 3, 5]
    if theorem.endswith("/node") and rng.random() < 0.6:
        return VotingRule(empty, rng.choice(numbers))
    return VotingRule(empty, [rng.choice(numbers) for _ in range(CLASSES)])


def random_votes(rng: random.Random, theorem: str, graph: Tiny, target: int, unstable: float) -> PairVotes:
    lean, by_view = rng.randrange(CLASSES), {}

    def draw() -> tuple[int, bool]:
        return (lean if rng.random() < 0.6 else rng.randrange(CLASSES)), rng.random() >= unstable

    drawn = {name: by_view.setdefault(view, draw()) for name, view in views(theorem, graph, target).items()}
    no_edge = draw()
    return PairVotes({n: b for n, (b, _) in drawn.items()}, {n: s for n, (_, s) in drawn.items()}, *no_edge)


def targets_per_node(theorem: str, graph: Tiny, targets: list[int]) -> list[int]:
    """Of how many targets each other node is a neighbour."""
    met = [n for v in targets for n in views(theorem, graph, v)]
    others = [[u for u in (n if isinstance(n, tuple) else (n,)) if u not in targets] for n in met]
    counts = [sum(u in ends for ends in others) for u in graph.features]
    return sorted((count for count in counts if count), reverse=True)


def evidence(
    voting_rule: VotingRule, theorem: str, graph: Tiny, targets: list[int], tables: list[PairVotes]
) -> VoteEvidence:
    """One row for each target."""
    names = [list(table.cast) for table in tables]
    constant = ABSTAIN if voting_rule.constant is None else voting_rule.constant
    flat = [(j, i, name) for j, row in enumerate(names) for i, name in enumerate(row)]
    votes = Votes(
        num_groups=max(1, *map(len, names)) + 2,  # some more, as a graph has that is larger than a neighbourhood
        num_classes=CLASSES,
        default=np.full(len(targets), constant, dtype=np.int16),
        default_stable=np.ones(len(targets), dtype=bool),
        indptr=np.cumsum([0, *map(len, names)]),
        group=np.array([i for _, i, _ in flat], dtype=np.int32),
        vote=np.array([tables[j].cast[name] for j, _, name in flat], dtype=np.int16),
        stable=np.array([tables[j].stable[name] for j, _, name in flat], dtype=bool),
        reached=np.ones(len(flat), dtype=bool),
    )
    extra = {}
    if voting_rule.no_edge_prior:
        extra["no_edge"] = np.array([table.no_edge for table in tables], dtype=np.int16)
        extra["no_edge_stable"] = np.array([table.no_edge_stable for table in tables])
    if theorem.startswith("per-pair"):
        extra["one_way"] = np.array([graph.pairs[name][0] != graph.pairs[name][1] for *_, name in flat], dtype=bool)
    if theorem.endswith("/node"):
        extra["targets_per_node"] = np.array(targets_per_node(theorem, graph, targets), dtype=np.int32)
    rows = [degrees(graph)] * len(targets) if theorem == "per-pair/graph" else [[]] * len(targets)
    reach = np.array([entry for row in rows for entry in row], dtype=np.int32)
    return VoteEvidence(votes, theorem, np.cumsum([0, *map(len, rows)]), reach, voting_rule=voting_rule, **extra)


def degrees(graph: Tiny) -> list[int]:
    """How many pairs the worst k nodes are in, at most: sums of the largest degrees."""
    if not graph.pairs:
        return []
    ordered = sorted((sum(u in p for p in graph.pairs) for u in graph.features), reverse=True)
    sums = itertools.accumulate(d for d in ordered if d)
    return [*(min(total, len(graph.pairs)) for total in sums), len(graph.pairs)]


Change = tuple[frozenset, frozenset, int]  # names of lost and of altered votes, and how many are new


def change_of(clean: Views, attacked: Views) -> Change:
    lost = frozenset([n for n in clean if n not in attacked])
    altered = frozenset([n for n in clean if n in attacked and attacked[n] != clean[n]])
    return lost, altered, len(attacked) - len(clean) + len(lost)


def run_cell(
    voting_rule: VotingRule,
    theorem: str,
    graph: Tiny,
    cell: Cell,
    rng: random.Random,
    tables_each: int = 6,
    unstable: float = 0.1,
    cut: int = 3_000,
    make: Callable = evidence,
    holds: Callable | None = None,
    all_answers: bool = False,
) -> Score:
    """All attacks of one budget on one graph; ``make`` and ``holds`` can be replaced by what proves too much.

    With ``all_answers``, possible classes and prices are compared, too.
    """
    on_nodes = theorem.endswith("/node")
    targets = list(graph.features) if on_nodes else [0]
    clean = {v: views(theorem, graph, v) for v in targets}
    seen: dict[int, set[Change]] = {v: set() for v in targets}
    score = Score()
    for attacked, deleted, altered in itertools.islice(tiny.attacks(graph, cell, False, False, True), cut):
        score.attacks += 1
        for v in targets:
            if not (on_nodes and (v in deleted or v in altered)):
                seen[v].add(change_of(clean[v], views(theorem, attacked, v)))
    owners = [v for v in targets for _ in range(tables_each)]
    tables = [random_votes(rng, theorem, graph, v, unstable) for v in owners]
    proof = make(voting_rule, theorem, graph, owners, tables)
    held = proof.holds(budget_of(cell)) if holds is None else holds(proof, cell)
    rows = list(zip(owners, tables, strict=True))
    won = [{table.label(voting_rule)} | table.winners_of_all(voting_rule, seen[v]) for v, table in rows]
    if all_answers:
        score.compare_all(proof, cell, won, [(voting_rule, theorem, graph, cell, *row) for row in rows])
    for (v, table), certified, classes in zip(rows, held, won, strict=True):
        broken = len(classes) > 1
        score.certified += bool(certified)
        score.robust += not broken
        if certified and broken:
            score.false += 1
            score.examples.append((voting_rule, theorem, graph, cell, v, table))
    return score


def random_graph(rng: random.Random, theorem: str, loops: bool = True) -> Tiny:
    """A random graph; most nodes have features of their own, so that their votes may differ."""
    loops = loops and theorem.startswith("per-pair") and rng.random() < 0.3
    graph = tiny.random_tiny(rng, rng.choice([2, 3, 3, 4, 4]), 1, directed=rng.random() < 0.5, loops=loops)
    return dataclasses.replace(graph, features={u: 10 * rng.randrange(4) for u in graph.features})


def run(theorem: str, seed: int, graphs: int, cells: int, **options) -> Score:
    """Random graphs, votes and mixed budgets, every attack."""
    rng, score = random.Random(seed), Score()
    for _ in range(graphs):
        graph, voting_rule = random_graph(rng, theorem), random_vote(rng, theorem)
        for _ in range(cells):
            cell = random_cell(rng, rng.choice([1, 2, 2, 3] if len(graph.features) < 4 else [1, 2]))
            score += run_cell(voting_rule, theorem, graph, Cell(**{**cell.__dict__, "own": False}), rng, **options)
    return score
