"""Tiny graphs in which every neighbour, pair or node has a group of its own: every attack, against what is certified."""

import dataclasses
import itertools
import random
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass

import numpy as np

from agnncert.certificates.voting_rule import VotingRule
from agnncert.certificates.votes import ABSTAIN, Votes
from agnncert.proving.evidence import BallotEvidence
from tests.support import tiny
from tests.support.harness import Score, budget_of, random_cell
from tests.support.tiny import Cell, Tiny

CLASSES = 3
RULES = ("per-neighbour/node", "per-pair/node", "per-neighbour/graph", "per-pair/graph")
Views = dict[Hashable, Hashable]  # what each ballot is a function of, by the neighbour, pair or node that it belongs to


def views(rule: str, graph: Tiny, target: int = 0) -> Views:
    x = graph.features
    if rule == "per-neighbour/node":
        # A self-loop at u would be in u's group too, and v would hear it: the division drops self-loops.
        loops = {u: a for u, v, a in graph.by_head.get(None, ())}
        return {u: (x[target], x[u], a, loops.get(u)) for u, _, a in graph.by_head.get(target, ())}
    if rule == "per-neighbour/graph":
        return dict(x)
    pairs = {p: (s, x[p[0]], x[p[1]]) for p, s in graph.pairs.items()}
    return {p: view for p, view in pairs.items() if target in p} if rule == "per-pair/node" else pairs


@dataclass(frozen=True)
class PairBallots:
    """One target: ballots by name, which are stable, and the prediction without edges."""

    cast: dict[Hashable, int]
    stable: dict[Hashable, bool]
    edgeless: int = 0
    edgeless_stable: bool = True

    def priors(self, vote: VotingRule) -> list[list[int]]:
        """Every prior that some machine may see, the one that was seen first."""
        if vote.class_prior:
            return [list(vote.class_prior)]
        doubtful = [] if self.edgeless_stable else range(CLASSES)
        return [[vote.edgeless_prior * (k == f0) for k in range(CLASSES)] for f0 in (self.edgeless, *doubtful)]

    def label(self, vote: VotingRule) -> int:
        return winner(list(self.cast.values()), self.priors(vote)[0], vote)

    def breaks(self, vote: VotingRule, lost: frozenset, altered: frozenset, new: int) -> bool:
        """Whether another class wins if the worst happens to altered, new and unstable ballots, and to the prior."""
        return self.winners(vote, lost, altered, new) != {self.label(vote)}

    def winners(self, vote: VotingRule, lost: frozenset, altered: frozenset, new: int) -> set[int]:
        """All classes that win, each with the ballots, and the prior in doubt, that suit it or another class best."""
        return self.winners_of_all(vote, [(lost, altered, new)])

    def winners_of_all(self, vote: VotingRule, changes: Iterable["Change"]) -> set[int]:
        """All classes that win after one of several changes; many of them leave the same ballots as they are."""
        left = set()
        for lost, altered, new in changes:
            kept = [n for n in self.cast if n not in lost]
            fixed = [self.cast[n] for n in kept if n not in altered and self.stable[n]]
            left.add((tuple(sorted(fixed)), len(kept) - len(fixed) + new))
        priors = self.priors(vote)
        return {
            winner([*fixed, *[k] * free], prior, vote)
            for fixed, free in left
            for prior in priors
            for k in range(CLASSES)
        }


def winner(ballots: list[int], prior: list[int], vote: VotingRule) -> int:
    scores = [prior[k] + ballots.count(k) for k in range(CLASSES)]
    if vote.constant in range(CLASSES):
        scores[vote.constant] -= len(ballots)
    return scores.index(max(scores))


def random_vote(rng: random.Random, rule: str) -> VotingRule:
    empty = rng.choice(["abstain", "abstain", 0, 1, 2])
    numbers = [-1, 0, 1, 1, 2, 3, 5]
    if rule.endswith("/node") and rng.random() < 0.6:
        return VotingRule(empty, rng.choice(numbers))
    return VotingRule(empty, [rng.choice(numbers) for _ in range(CLASSES)])


def random_ballots(rng: random.Random, rule: str, graph: Tiny, target: int, unstable: float) -> PairBallots:
    lean, by_view = rng.randrange(CLASSES), {}

    def draw() -> tuple[int, bool]:
        return (lean if rng.random() < 0.6 else rng.randrange(CLASSES)), rng.random() >= unstable

    drawn = {name: by_view.setdefault(view, draw()) for name, view in views(rule, graph, target).items()}
    edgeless = draw()
    return PairBallots({n: b for n, (b, _) in drawn.items()}, {n: s for n, (_, s) in drawn.items()}, *edgeless)


def hubs(rule: str, graph: Tiny, targets: list[int]) -> list[int]:
    """Of how many targets each other node is a neighbour."""
    met = [n for v in targets for n in views(rule, graph, v)]
    others = [[u for u in (n if isinstance(n, tuple) else (n,)) if u not in targets] for n in met]
    counts = [sum(u in ends for ends in others) for u in graph.features]
    return sorted((count for count in counts if count), reverse=True)


def evidence(vote: VotingRule, rule: str, graph: Tiny, targets: list[int], tables: list[PairBallots]) -> BallotEvidence:
    """One row for each target."""
    names = [list(table.cast) for table in tables]
    constant = ABSTAIN if vote.constant is None else vote.constant
    flat = [(j, i, name) for j, row in enumerate(names) for i, name in enumerate(row)]
    votes = Votes(
        num_groups=max(1, *map(len, names)) + 2,  # some more, as a graph has that is larger than a neighbourhood
        num_classes=CLASSES,
        default=np.full(len(targets), constant, dtype=np.int16),
        default_stable=np.ones(len(targets), dtype=bool),
        indptr=np.cumsum([0, *map(len, names)]),
        group=np.array([i for _, i, _ in flat], dtype=np.int32),
        ballot=np.array([tables[j].cast[name] for j, _, name in flat], dtype=np.int16),
        stable=np.array([tables[j].stable[name] for j, _, name in flat], dtype=bool),
        reached=np.ones(len(flat), dtype=bool),
    )
    extra = {}
    if vote.edgeless_prior:
        extra["edgeless"] = np.array([table.edgeless for table in tables], dtype=np.int16)
        extra["edgeless_stable"] = np.array([table.edgeless_stable for table in tables])
    if rule.startswith("per-pair"):
        extra["one_way"] = np.array([graph.pairs[name][0] != graph.pairs[name][1] for *_, name in flat], dtype=bool)
    if rule.endswith("/node"):
        extra["hubs"] = np.array(hubs(rule, graph, targets), dtype=np.int32)
    rows = [degrees(graph)] * len(targets) if rule == "per-pair/graph" else [[]] * len(targets)
    cover = np.array([entry for row in rows for entry in row], dtype=np.int32)
    return BallotEvidence(votes, rule, np.cumsum([0, *map(len, rows)]), cover, vote=vote, **extra)


def degrees(graph: Tiny) -> list[int]:
    """How many pairs the worst k nodes are in, at most: sums of the largest degrees."""
    if not graph.pairs:
        return []
    ordered = sorted((sum(u in p for p in graph.pairs) for u in graph.features), reverse=True)
    sums = itertools.accumulate(d for d in ordered if d)
    return [*(min(total, len(graph.pairs)) for total in sums), len(graph.pairs)]


Change = tuple[frozenset, frozenset, int]  # names of lost and of altered ballots, and how many are new


def change_of(clean: Views, attacked: Views) -> Change:
    lost = frozenset([n for n in clean if n not in attacked])
    altered = frozenset([n for n in clean if n in attacked and attacked[n] != clean[n]])
    return lost, altered, len(attacked) - len(clean) + len(lost)


def run_cell(
    vote: VotingRule,
    rule: str,
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
    on_nodes = rule.endswith("/node")
    targets = list(graph.features) if on_nodes else [0]
    clean = {v: views(rule, graph, v) for v in targets}
    seen: dict[int, set[Change]] = {v: set() for v in targets}
    score = Score()
    for attacked, deleted, altered in itertools.islice(tiny.attacks(graph, cell, False, False, True), cut):
        score.attacks += 1
        for v in targets:
            if not (on_nodes and (v in deleted or v in altered)):
                seen[v].add(change_of(clean[v], views(rule, attacked, v)))
    owners = [v for v in targets for _ in range(tables_each)]
    tables = [random_ballots(rng, rule, graph, v, unstable) for v in owners]
    proof = make(vote, rule, graph, owners, tables)
    held = proof.holds(budget_of(cell)) if holds is None else holds(proof, cell)
    rows = list(zip(owners, tables, strict=True))
    won = [{table.label(vote)} | table.winners_of_all(vote, seen[v]) for v, table in rows]
    if all_answers:
        score.compare_all(proof, cell, won, [(vote, rule, graph, cell, *row) for row in rows])
    for (v, table), certified, classes in zip(rows, held, won, strict=True):
        broken = len(classes) > 1
        score.certified += bool(certified)
        score.robust += not broken
        if certified and broken:
            score.false += 1
            score.examples.append((vote, rule, graph, cell, v, table))
    return score


def random_graph(rng: random.Random, rule: str, loops: bool = True) -> Tiny:
    """A random graph; most nodes have features of their own, so that their ballots may differ."""
    loops = loops and rule.startswith("per-pair") and rng.random() < 0.3
    graph = tiny.random_tiny(rng, rng.choice([2, 3, 3, 4, 4]), 1, directed=rng.random() < 0.5, loops=loops)
    return dataclasses.replace(graph, features={u: 10 * rng.randrange(4) for u in graph.features})


def run(rule: str, seed: int, graphs: int, cells: int, **options) -> Score:
    """Random graphs, votes and mixed budgets, every attack."""
    rng, score = random.Random(seed), Score()
    for _ in range(graphs):
        graph, vote = random_graph(rng, rule), random_vote(rng, rule)
        for _ in range(cells):
            cell = random_cell(rng, rng.choice([1, 2, 2, 3] if len(graph.features) < 4 else [1, 2]))
            score += run_cell(vote, rule, graph, Cell(**{**cell.__dict__, "own": False}), rng, **options)
    return score
