"""Votes with a prior: every attack on tiny graphs, every reading of what is unstable, and no certified label flips."""

import dataclasses
import itertools
import random

import numpy as np
import pytest

from agnncert.certificates.budget import Budget
from agnncert.certificates.votes import ABSTAIN
from agnncert.certificates.voting_rule import VotingRule
from agnncert.divided.evidence import VoteEvidence
from agnncert.verifier import recount
from agnncert.verifier.limits import limits_under
from agnncert.verifier.piles import sort_votes
from tests.support import tiny, voted
from tests.support.harness import KINDS, Score, budget_of, random_cell
from tests.support.tiny import Cell
from tests.support.voted import (
    CLASSES,
    Table,
    all_reached,
    check_radii,
    evidence,
    random_table,
    random_vote,
    run,
    run_cell,
    views_under,
    winner,
)

GRAPHS = {
    "edge-centric/node": 30,
    "node-centric/node": 40,
    "gated/node": 30,
    "edge-centric/graph": 50,
    "node-centric/graph": 60,
}


@pytest.mark.parametrize("theorem", KINDS)
def test_no_mixed_attack_flips_a_certified_label_whatever_the_vote(theorem):
    score = run(KINDS[theorem], seed=21, graphs=GRAPHS[theorem], cells=4)
    assert score.false == 0, score.examples[0]
    assert score.attacks > 8_000
    assert score.certified > 0.85 * score.robust > 400  # and few labels that no attack can flip are missed


# What an attacker can do with given votes, exactly


def some_votes() -> list[VotingRule]:
    numbers = (-3, -1, 0, 1, 2, 4)
    lists = [list(prior) for prior in itertools.product((-1, 0, 2), repeat=CLASSES)]
    return [VotingRule("abstain", prior) for prior in [*numbers, *lists]]


@pytest.mark.parametrize("size", [1, 2, 3])
def test_the_radius_is_exact_for_every_vote(size):
    seen = set()
    for voting_rule in some_votes():
        every = itertools.product(range(ABSTAIN, CLASSES), repeat=size)
        no_edge = range(CLASSES if voting_rule.no_edge_prior else 1)
        seen |= check_radii([Table(b, (True,) * size, f0) for b, f0 in itertools.product(every, no_edge)], voting_rule)
    assert seen == set(range(size + 1))


def test_half_the_margin_would_be_too_small_with_a_prior():
    """One abstaining vote against two votes from the start: it may do what it wants."""
    proof = all_reached([Table((ABSTAIN,), (True,))], VotingRule("abstain", [0, 0, 2]))
    assert proof.label_and_radius()[1].tolist() == [1]


def test_unstable_votes_and_an_unstable_prior_are_conceded_exactly():
    rng, certified, missed = random.Random(3), 0, 0
    alike: dict[tuple[int, int], list[Table]] = {}  # with the same number of votes and the same prior
    for _ in range(800):
        size, prior = rng.choice([1, 2, 3, 4]), rng.choice([-2, -1, 1, 2, 3, 4])
        table = Table(
            tuple(rng.choice([0, 0, 0, 1, 2, ABSTAIN]) for _ in range(size)),
            tuple(rng.random() < 0.8 for _ in range(size)),
            rng.randrange(CLASSES),
            rng.random() < 0.5,
        )
        alike.setdefault((size, prior), []).append(table)
    for ((size, prior), tables), changes in itertools.product(alike.items(), range(3)):
        voting_rule, budget = VotingRule("abstain", prior), Budget(delete_edges=changes)
        proof = all_reached(tables, voting_rule)
        answer = proof.holds(budget).tolist()
        assert sort_and_ask(proof, budget) == answer
        for table, holds in zip(tables, answer, strict=True):
            moves = itertools.combinations(range(size), min(changes, size))
            robust = not any(table.breaks(voting_rule, frozenset(moved)) for moved in moves)
            assert robust or not holds, (table, voting_rule, changes)
            certified += holds
            missed += robust and not holds
    # Conceding a prior in doubt assumes that it may be for any rival and against the label; nothing is lost by that.
    assert certified > 400
    assert missed == 0


def sort_and_ask(proof: VoteEvidence, budget: Budget) -> list[bool]:
    (piles,) = sort_votes(proof)
    return recount.holds(piles, limits_under(piles, budget)).tolist()


# Emptiness is a matter of the target


def test_a_subgraph_that_wakes_up_far_from_the_target_changes_nothing():
    """v, p, q and two groups, no edge: everything is empty. A node is injected at p in group 0 and at q in group 1."""
    kind, voting_rule = KINDS["edge-centric/node"], VotingRule("abstain", [0, 2, 0])
    graph = tiny.Tiny(dict.fromkeys(range(3), 0), {}, dict.fromkeys(range(3), 0), {}, num_groups=2)
    joined = {(1, 3): (True, True, 0), (2, 3): (True, True, 0)}
    attacked = dataclasses.replace(
        graph, features=graph.features | {3: 7}, pairs=joined, pair_group={(1, 3): 0, (2, 3): 1}
    )
    table = Table((ABSTAIN, ABSTAIN), (True, True), no_edge=0)
    proof = evidence(voting_rule, kind, graph, [0], [table])
    assert proof.label_and_radius()[0].tolist() == [1]
    assert proof.holds(Budget(inject_nodes=1, edges_per_injected=2)).tolist() == [True]
    assert views_under(voting_rule, kind, attacked, 0) == [None, None]  # v still has no edge anywhere: it abstains
    # If a group were empty only as long as its subgraph has no edge, v would now cast its prediction without edges twice.
    awake = (table.no_edge, table.no_edge)
    assert winner(awake, voting_rule.class_prior) == 0


def test_a_node_that_the_target_only_speaks_to_can_still_empty_its_group():
    """0 -> 1 is the only edge: 0 hears nothing, but has an edge. Without node 1 it has none, and the group is empty."""
    kind, voting_rule = KINDS["edge-centric/node"], VotingRule(1, [1, 0, 0])
    graph = tiny.Tiny({0: 0, 1: 0}, {(0, 1): (True, False, 0)}, {0: 0, 1: 0}, {(0, 1): 0}, 1, directed=True)
    gone = dataclasses.replace(graph, features={0: 0}, pairs={})
    assert views_under(voting_rule, kind, graph, 0) != views_under(voting_rule, kind, gone, 0) == [None]
    table = Table((0,), (True,), no_edge=0)
    assert table.breaks(VotingRule(1, [0, 0, 0]), frozenset({0}))
    weak = VotingRule(1, [0, 0, 0])
    honest = evidence(weak, kind, graph, [0], [table])
    assert honest.holds(Budget(delete_nodes=1)).tolist() == [False]
    # A reach table that follows arcs as messages do would not count node 1, and certify what that deletion breaks.
    blind = dataclasses.replace(honest, reach_ptr=np.array([0, 2]), reach=np.array([0, 1], dtype=np.int32))
    assert blind.holds(Budget(delete_nodes=1)).tolist() == [True]


# Broken proofs. Each must be caught by the same harness that the real ones pass.


def immovable_prior_in_doubt(voting_rule, kind, graph, targets, tables):
    return evidence(voting_rule, kind, graph, targets, [dataclasses.replace(t, no_edge_stable=True) for t in tables])


def nothing_unstable(voting_rule, kind, graph, targets, tables):
    firm = (True,) * graph.num_groups
    return evidence(voting_rule, kind, graph, targets, [dataclasses.replace(t, stable=firm) for t in tables])


def one_vote_too_many(voting_rule, kind, graph, targets, tables):
    """The prior counted once more for the label of each target."""
    return _with_prior_for_label(evidence(voting_rule, kind, graph, targets, tables), 1)


def _with_prior_for_label(proof: VoteEvidence, more: int):
    class Generous(VoteEvidence):
        def _block(self, part):
            counted, facts = super()._block(part)
            return dataclasses.replace(counted, margin=counted.margin + more), facts

    fields = {field.name: getattr(proof, field.name) for field in dataclasses.fields(proof)}
    return Generous(**fields)


def abstentions_cannot_wake(voting_rule, kind, graph, targets, tables):
    """Groups that abstain because they are empty are left out of what can move."""

    class Asleep(VoteEvidence):
        def _block(self, part):
            counted, facts = super()._block(part)
            size = counted.size.copy()
            size[2] = counted.votes[2].sum(axis=1)
            return dataclasses.replace(counted, size=size), facts

    proof = evidence(voting_rule, kind, graph, targets, tables)
    return Asleep(**{field.name: getattr(proof, field.name) for field in dataclasses.fields(proof)})


MUTANTS = {
    "a prior in doubt taken as immovable": ("node-centric/node", VotingRule("abstain", 3), immovable_prior_in_doubt),
    "a negative prior in doubt taken as immovable": ("edge-centric/node", VotingRule(2, -2), immovable_prior_in_doubt),
    "unstable votes taken as stable": ("edge-centric/node", VotingRule("abstain", 2), nothing_unstable),
    "the tie lost": ("edge-centric/graph", VotingRule(1, [2, 0, 2]), one_vote_too_many),
    "empty groups that cannot wake": ("edge-centric/node", VotingRule("abstain", [0, 1, 1]), abstentions_cannot_wake),
    "empty groups of a graph that cannot wake": ("node-centric/graph", VotingRule("abstain", [1, 0, 0]), abstentions_cannot_wake),
}  # fmt: skip


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_broken_proof_is_caught(mutant):
    theorem, voting_rule, broken = MUTANTS[mutant]
    honest, score, rng = Score(), Score(), random.Random(5)
    for _ in range(60):
        graph = tiny.random_tiny(rng, 3, rng.choice([2, 3, 4]), directed=False, loops=False)
        for cell in (Cell(), Cell(inject=1, edges_each=2), Cell(add=1), Cell(delete_nodes=1)):
            seed = rng.random()
            honest += run_cell(voting_rule, KINDS[theorem], graph, cell, random.Random(seed), unstable=0.2)
            score += run_cell(voting_rule, KINDS[theorem], graph, cell, random.Random(seed), unstable=0.2, make=broken)
        assert honest.false == 0
        if score.false:
            return
    pytest.fail(f"{score.certified} certificates with {mutant}, none of them false")


def test_waking_by_subgraph_instead_of_by_target_is_caught(monkeypatch):
    """The proof stays as it is, but a group counts as empty only while its whole subgraph has no edge."""

    def awake(voting_rule, kind, graph, target):
        pairs = {graph.pair_group[pair] for pair in graph.pairs}
        return [view if i in pairs else None for i, view in enumerate(kind.views(graph, target))]

    monkeypatch.setattr(voted, "views_under", awake)
    rng, false = random.Random(6), 0
    for _ in range(40):
        graph = tiny.random_tiny(rng, 3, 2, directed=False, loops=False)
        graph = dataclasses.replace(graph, pairs={})  # the proof has no place for votes of such groups
        cell = Cell(inject=1, edges_each=2)
        false += run_cell(VotingRule("abstain", [0, 2, 0]), KINDS["edge-centric/node"], graph, cell, rng).false
    assert false


# Many targets, one attacked graph


@pytest.mark.parametrize("theorem", ["edge-centric/node", "node-centric/node", "gated/node"])
def test_no_attack_breaks_more_targets_than_the_bound(theorem):
    rng, kind = random.Random(31), KINDS[theorem]
    tried = attained = telling = 0
    for _ in range(25):
        graph = tiny.random_tiny(rng, rng.choice([3, 4]), rng.choice([2, 3, 4]), rng.random() < 0.3, loops=False)
        targets = sorted(rng.sample(list(graph.features), rng.choice([2, 3])))
        voting_rule = random_vote(rng, kind)
        tables = [random_table(rng, voting_rule, kind, graph, v, 0.05) for v in targets]
        proof = evidence(voting_rule, kind, graph, targets, tables)
        clean = {v: views_under(voting_rule, kind, graph, v) for v in targets}
        for _ in range(3):
            cell = dataclasses.replace(random_cell(rng, rng.choice([1, 2])), own=False, spare=frozenset(targets))
            bound, worst = proof.broken_at_most(budget_of(cell)), 0
            every_attack = tiny.attacks(graph, cell, kind.edge_groups, kind.node_groups)
            for attacked, _, _ in itertools.islice(every_attack, 1_500):
                broken = 0
                for v, table in zip(targets, tables, strict=True):
                    views = views_under(voting_rule, kind, attacked, v)
                    broken += table.breaks(
                        voting_rule, frozenset(i for i, view in enumerate(views) if view != clean[v][i])
                    )
                worst = max(worst, broken)
            assert worst <= bound, (voting_rule, graph, cell, tables)
            tried, attained, telling = tried + 1, attained + (worst == bound), telling + (bound < len(targets))
    assert attained > 0.5 * tried
    assert telling > 0.15 * tried
