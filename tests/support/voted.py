"""Votes with a prior on tiny graphs: every attack, every reading of unstable votes, against what is certified."""

import dataclasses
import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from agnncert.certificates.votes import ABSTAIN, Votes
from agnncert.certificates.voting_rule import VotingRule
from agnncert.divided.evidence import VoteEvidence
from agnncert.verifier import recount
from agnncert.verifier.piles import sort_votes
from tests.support import tiny
from tests.support.harness import CUT, Kind, Score, budget_of, cover_row, possible_priors, random_cell, tiers
from tests.support.tiny import Cell, Tiny

CLASSES = 3
Views = Callable[[Kind, Tiny, int], list]


@dataclass(frozen=True)
class Table:
    """Votes of one target, which of them are stable, and the prediction without edges."""

    record: tuple[int, ...]
    stable: tuple[bool, ...]
    no_edge: int = 0
    no_edge_stable: bool = True

    def priors(self, voting_rule: VotingRule) -> list[list[int]]:
        """Every prior that some machine may see, the one that was seen first."""
        return possible_priors(voting_rule, self.no_edge, self.no_edge_stable, CLASSES)

    def label(self, voting_rule: VotingRule) -> int:
        return winner(self.record, self.priors(voting_rule)[0])

    def breaks(self, voting_rule: VotingRule, moved: frozenset[int]) -> bool:
        """Whether another class wins if moved and unstable votes are the worst, and an unstable prior too."""
        return self.winners(voting_rule, moved) != {self.label(voting_rule)}

    def winners(self, voting_rule: VotingRule, moved: frozenset[int]) -> set[int]:
        """All classes that win, each with the votes, and the prior in doubt, that suit it or another class best."""
        fixed = [b for i, b in enumerate(self.record) if i not in moved and self.stable[i]]
        free = len(self.record) - len(fixed)
        return {winner([*fixed, *[k] * free], prior) for prior in self.priors(voting_rule) for k in range(CLASSES)}


def winner(record, prior) -> int:
    scores = [prior[k] + record.count(k) for k in range(CLASSES)]
    return scores.index(max(scores))


def views_under(voting_rule: VotingRule, kind: Kind, graph: Tiny, target: int) -> list:
    """What each vote is a function of: nothing, where the group is empty for the target and casts a constant."""
    views = kind.views(graph, target)
    if voting_rule.empty == "no_edge" or (voting_rule.empty is None and kind.is_node_task):
        return views
    return [None if tier == 2 else view for view, tier in zip(views, tiers(kind, graph, target), strict=True)]


def random_vote(rng: random.Random, kind: Kind) -> VotingRule:
    """A vote that fits the rule; priors are small, may be negative, and often tie."""
    plain_node = kind.theorem in ("edge-centric/node", "node-centric/node")
    empty = rng.choice(["abstain", 0, 1, 2] + (["no_edge"] * 2 if plain_node else []))
    numbers = [-2, -1, 0, 1, 1, 2, 3, 5]
    if plain_node and rng.random() < 0.6:
        return VotingRule(empty, rng.choice(numbers))
    return VotingRule(empty, [rng.choice(numbers) for _ in range(CLASSES)])


def random_table(
    rng: random.Random, voting_rule: VotingRule, kind: Kind, graph: Tiny, target: int, unstable: float
) -> Table:
    """Votes that some in-local function casts under this vote."""
    lean = rng.randrange(CLASSES)

    def draw() -> tuple[int, bool]:
        return (lean if rng.random() < 0.6 else rng.randrange(CLASSES)), rng.random() >= unstable

    constant = ABSTAIN if voting_rule.constant is None else voting_rule.constant
    cast: dict[object, tuple[int, bool]] = {None: (constant, True)}
    no_edge = draw()
    if kind.is_node_task and kind.theorem != "gated/node":
        cast[tiny.rooted(graph, (), target)] = no_edge
    views = views_under(voting_rule, kind, graph, target)
    drawn = [cast.setdefault(view, draw()) for view in views]
    return Table(tuple(b for b, _ in drawn), tuple(s for _, s in drawn), *no_edge)


def reach(kind: Kind, graph: Tiny, target: int, num_reached: int) -> list[int]:
    """The exact coverage of the worst k nodes, where a node reaches what it is connected to in either direction.

    A group stops being empty for a target with its first edge, and is empty again without its last one, also if that
    edge points away: so a deleted node matters to a target that hears nothing of it.
    """
    both_ways = dataclasses.replace(graph, pairs={p: (True, True, s[2]) for p, s in graph.pairs.items()})
    return cover_row(kind, both_ways, target, num_reached)


def evidence(voting_rule: VotingRule, kind: Kind, graph: Tiny, targets: list[int], tables: list[Table]) -> VoteEvidence:
    """One row for each target."""
    levels_of = {v: tiers(kind, graph, v) for v in targets}
    levels = [levels_of[v] for v in targets]
    flat = [(j, i) for j, level in enumerate(levels) for i, tier in enumerate(level) if tier < 2]
    constant = voting_rule.constant
    default = [(t.no_edge, t.no_edge_stable) if constant is None else (constant, True) for t in tables]
    rows_of = {v: reach(kind, graph, v, level.count(0)) for v, level in levels_of.items()}
    rows = [rows_of[v] for v in targets]
    votes = Votes(
        num_groups=graph.num_groups,
        num_classes=CLASSES,
        default=np.array([vote for vote, _ in default], dtype=np.int16),
        default_stable=np.array([stable for _, stable in default]),
        indptr=np.cumsum([0, *(sum(tier < 2 for tier in level) for level in levels)]),
        group=np.array([i for _, i in flat], dtype=np.int32),
        vote=np.array([tables[j].record[i] for j, i in flat], dtype=np.int16),
        stable=np.array([tables[j].stable[i] for j, i in flat], dtype=bool),
        reached=np.array([levels[j][i] == 0 for j, i in flat], dtype=bool),
    )
    flat_rows = np.array([entry for row in rows for entry in row], dtype=np.int32)
    no_edge = {}
    if voting_rule.no_edge_prior:
        no_edge["no_edge"] = np.array([t.no_edge for t in tables], dtype=np.int16)
        no_edge["no_edge_stable"] = np.array([t.no_edge_stable for t in tables])
    return VoteEvidence(
        votes, kind.theorem, np.cumsum([0, *map(len, rows)]), flat_rows, voting_rule=voting_rule, **no_edge
    )


def run_cell(
    voting_rule: VotingRule,
    kind: Kind,
    graph: Tiny,
    cell: Cell,
    rng: random.Random,
    tables_each: int = 6,
    unstable: float = 0.1,
    cut: int = CUT,
    make: Callable = evidence,
    all_answers: bool = False,
) -> Score:
    """All attacks of one budget on one graph. ``make`` can be replaced by something that proves too much.

    With ``all_answers``, possible classes and prices are compared, too.
    """
    targets = list(graph.features) if kind.is_node_task else [0]
    clean = {v: views_under(voting_rule, kind, graph, v) for v in targets}
    moved: dict[int, set[frozenset[int]]] = {v: set() for v in targets}
    score = Score()
    every_attack = tiny.attacks(graph, cell, kind.edge_groups, kind.node_groups)
    for attacked, deleted, altered in itertools.islice(every_attack, cut):
        score.attacks += 1
        for v in targets:
            own = kind.is_node_task and v in altered
            if kind.is_node_task and (v in deleted or len(altered - {v}) > cell.features or (own and not cell.own)):
                continue
            views = views_under(voting_rule, kind, attacked, v)
            moved[v].add(frozenset([i for i, view in enumerate(views) if view != clean[v][i]]))
    worst = {v: {s for s in sets if not any(s < other for other in sets)} for v, sets in moved.items()}
    owners = [v for v in targets for _ in range(tables_each)]
    tables = [random_table(rng, voting_rule, kind, graph, v, unstable) for v in owners]
    proof = make(voting_rule, kind, graph, owners, tables)
    rows = list(zip(owners, tables, strict=True))
    won = [
        {table.label(voting_rule)}.union(*(table.winners(voting_rule, which) for which in worst[v]))
        for v, table in rows
    ]
    if all_answers:
        score.compare_all(proof, cell, won, [(voting_rule, kind.theorem, graph, cell, *row) for row in rows])
    for (v, table), holds, classes in zip(rows, proof.holds(budget_of(cell)), won, strict=True):
        broken = len(classes) > 1
        score.certified += bool(holds)
        score.robust += not broken
        if holds and broken:
            score.false += 1
            score.examples.append((voting_rule, kind.theorem, graph, cell, v, table))
    return score


def run(kind: Kind, seed: int, graphs: int, cells: int, **options) -> Score:
    """Random graphs, votes and mixed budgets, every attack."""
    rng, score = random.Random(seed), Score()
    for _ in range(graphs):
        graph = tiny.random_tiny(
            rng,
            rng.choice([2, 3, 3, 4]),
            rng.choice([1, 2, 3, 4]),
            directed=rng.random() < 0.3,
            loops=rng.random() < 0.3,
        )
        voting_rule = random_vote(rng, kind)
        for _ in range(cells):
            cell = random_cell(rng, rng.choice([1, 2, 2, 3] if len(graph.features) < 4 else [1, 2]))
            if cell.own and kind.theorem != "gated/node":
                cell = Cell(**{**cell.__dict__, "own": False})
            score += run_cell(voting_rule, kind, graph, cell, rng, **options)
    return score


# Given votes


def all_reached(tables: list[Table], voting_rule: VotingRule) -> VoteEvidence:
    """A node-centric vote of targets with equally many votes, all of which are reached."""
    size, num = len(tables[0].record), len(tables)
    votes = Votes(
        num_groups=size,
        num_classes=CLASSES,
        default=np.full(num, ABSTAIN, dtype=np.int16),
        default_stable=np.ones(num, dtype=bool),
        indptr=np.arange(num + 1) * size,
        group=np.tile(np.arange(size, dtype=np.int32), num),
        vote=np.array([table.record for table in tables], dtype=np.int16).reshape(-1),
        stable=np.array([table.stable for table in tables], dtype=bool).reshape(-1),
        reached=np.ones(size * num, dtype=bool),
    )
    followed = {
        "no_edge": np.array([table.no_edge for table in tables], dtype=np.int16),
        "no_edge_stable": np.array([table.no_edge_stable for table in tables]),
    }
    none = np.zeros(num + 1, dtype=np.int64), np.zeros(0, dtype=np.int32)
    return VoteEvidence(
        votes, "node-centric/node", *none, voting_rule=voting_rule, **(followed if voting_rule.no_edge_prior else {})
    )


def check_radii(tables: list[Table], voting_rule: VotingRule) -> set[int]:
    """Radii are exact, in both halves: one more changed vote may elect another class, and not one less."""
    size, proof = len(tables[0].record), all_reached(tables, voting_rule)
    labels, radii = (part.tolist() for part in proof.label_and_radius())
    (piles,) = sort_votes(proof)
    assert (piles.label.tolist(), recount.radius(piles).tolist()) == (labels, radii)
    for table, label, radius in zip(tables, labels, radii, strict=True):
        assert label == table.label(voting_rule)
        harmful = [
            number
            for number in range(size + 1)
            if any(table.breaks(voting_rule, frozenset(moved)) for moved in itertools.combinations(range(size), number))
        ]
        assert radius == (min(harmful) - 1 if harmful else size), (voting_rule, table)
    return set(radii)
