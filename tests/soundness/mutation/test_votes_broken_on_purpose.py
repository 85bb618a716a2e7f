"""Votes with a prior, and groups of neighbours: with a rule broken on purpose, the check that guards it turns red."""

import itertools
import random
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from agnncert.certificates.votes import ABSTAIN
from agnncert.certificates.voting_rule import VotingRule
from agnncert.divided import evidence as certifier
from agnncert.divided import evidence as proving
from agnncert.divided.theorems import moving_votes
from agnncert.divided.theorems.registry import theorem_of
from agnncert.divisions.node import PerNeighbour
from agnncert.errors import AgnncertError
from agnncert.proving import per_neighbour as own_theorems
from agnncert.proving import theorems as rules
from agnncert_peers.testing import views
from tests.support import own_groups, tiny, voted
from tests.support.harness import KINDS
from tests.support.mutations import turns_red
from tests.support.tiny import Cell
from tests.support.woken_subgraphs import check_waking

# The checks, on fixed examples


def priors(theorem="node-centric/node", empty="abstain", prior=3):
    """No attack, and no other reading of what is unstable, flips a label that a vote with a prior certifies."""
    rng = random.Random(9)
    for _ in range(25):
        graph = tiny.random_tiny(rng, 3, 3, directed=False, loops=False)
        for cell in (Cell(), Cell(add=1), Cell(delete=1)):
            score = voted.run_cell(VotingRule(empty, prior), KINDS[theorem], graph, cell, rng, unstable=0.2)
            assert not score.false, score.examples[0]


def neighbours(theorem, cell, empty="abstain", prior=1):
    """The same where every neighbour has a group of its own."""
    rng = random.Random(9)
    for _ in range(60):
        graph = tiny.random_tiny(rng, rng.choice([3, 4]), 1, directed=True, loops=False)
        graph = replace(graph, features={u: 10 * u for u in graph.features})
        score = own_groups.run_cell(VotingRule(empty, prior), theorem, graph, cell, rng, unstable=0.15)
        assert not score.false, score.examples[0]


def loops_of_neighbours():
    """A self-loop at a neighbour would alter its vote: the division must not keep self-loops."""
    data = Data(x=torch.tensor([[1.0], [2.0]]), edge_index=torch.tensor([[1, 0], [0, 1]]))
    looped = data.clone()
    looped.edge_index = torch.tensor([[1, 0, 1], [0, 1, 1]])
    assert list(views(PerNeighbour(), data, "node")) == list(views(PerNeighbour(), looped, "node"))


def prior_radius():
    """The radius with a prior is exact, counted in either way."""
    for prior in itertools.product((-1, 0, 2), repeat=3):
        every = itertools.product(range(ABSTAIN, 3), repeat=2)
        voted.check_radii([voted.Table(votes, (True, True)) for votes in every], VotingRule("abstain", list(prior)))


# The mistakes


def change_prior(patch, alter):
    plain = rules.Prior.of
    patch.setattr(rules.Prior, "of", lambda *args: alter(plain(*args)))


def trust_a_prior_in_doubt(patch):
    change_prior(patch, lambda p: replace(p, certain=p.votes, followed=0 * p.followed, in_doubt=0 * p.in_doubt))


def concede_only_the_winners_share(patch):
    """An unstable prior is taken from the label, but not given to the rival."""
    change_prior(patch, lambda p: replace(p, in_doubt=0 * p.in_doubt))


def forget_the_prior_in_the_label(patch):
    plain = rules.count_votes

    def count_votes(votes, prior=None):
        return replace(plain(votes, prior), label=plain(votes).label)

    patch.setattr(proving, "count_votes", count_votes)


def half_the_margin_with_a_prior(patch):
    def radius(counted):
        return np.maximum(np.where(counted.is_label, 99, counted.margin).min(axis=1) // 2, -1)

    patch.setattr(moving_votes, "certified_radius", radius)


def margin_without_votes_of_the_winner(patch):
    """Forgets that a changed vote for the winner also loses it a vote."""
    patch.setattr(
        moving_votes, "certified_radius", lambda counted: np.where(counted.is_label, 2, counted.margin).min(axis=1)
    )


def empty_is_a_matter_of_the_subgraph(patch):
    """Empty groups cast the constant only as long as no subgraph has an edge."""
    plain = certifier.apply_voting_rule
    patch.setattr(
        certifier,
        "apply_voting_rule",
        lambda votes, voting_rule: (votes, {}) if len(votes.group) else plain(votes, voting_rule),
    )


def forget_one_way_pairs(patch):
    patch.setattr(own_theorems, "_one_way", lambda counted, facts: (np.zeros((len(counted.label), 1)),) * 2)


def change_touches(patch, theorem, alter):
    owner = type(theorem_of(theorem))
    plain = owner.touches
    patch.setattr(owner, "touches", lambda self, attack, facts: alter(plain(self, attack, facts)))


def take_fewer_copies_for_a_deletion(patch, theorem="per-pair/node"):
    change_touches(patch, theorem, lambda touches: replace(touches, altered=0 * touches.altered))


def forget_new_neighbours(patch):
    change_touches(patch, "per-neighbour/node", lambda touches: replace(touches, new=0 * touches.new))


def count_empty_groups(patch):
    """As many votes of the constant as the graph has nodes, instead of one less for each that is not empty."""
    change_prior(patch, lambda p: replace(p, certain=np.maximum(p.certain, 0)))


def keep_loops_of_neighbours(patch):
    patch.setattr(PerNeighbour, "self_loops", True)


MUTATIONS = [
    ("prior in doubt", trust_a_prior_in_doubt, priors),
    ("prior in doubt", trust_a_prior_in_doubt, lambda: priors("edge-centric/node", 2, -2)),
    ("prior in doubt", concede_only_the_winners_share, priors),
    ("prior", forget_the_prior_in_the_label, prior_radius),
    ("prior", half_the_margin_with_a_prior, prior_radius),
    ("prior", margin_without_votes_of_the_winner, prior_radius),
    ("emptiness", empty_is_a_matter_of_the_subgraph, check_waking),
    ("prior in doubt", trust_a_prior_in_doubt, lambda: neighbours("per-neighbour/node", Cell(), prior=3)),
    ("one-way pairs", forget_one_way_pairs, lambda: neighbours("per-pair/node", Cell(add=1))),
    ("copies", take_fewer_copies_for_a_deletion, lambda: neighbours("per-pair/node", Cell(change=1))),
    ("copies", lambda patch: take_fewer_copies_for_a_deletion(patch, "per-neighbour/node"), lambda: neighbours("per-neighbour/node", Cell(change=1))),
    ("new neighbours", forget_new_neighbours, lambda: neighbours("per-neighbour/node", Cell(add=1))),
    ("emptiness", count_empty_groups, lambda: neighbours("per-neighbour/node", Cell(delete=1), 1, [0, 1, 0])),
    ("self-loops", keep_loops_of_neighbours, loops_of_neighbours),
]  # fmt: skip


@pytest.mark.parametrize(("theorem", "mistake", "check"), MUTATIONS, ids=lambda part: getattr(part, "__name__", part))
def test_a_broken_rule_turns_its_check_red(monkeypatch, theorem, mistake, check):
    with monkeypatch.context() as patch:
        turns_red(patch, mistake, check, (AssertionError, AgnncertError))


UNBROKEN = {
    "priors": lambda: [priors(), priors("edge-centric/node", 2, -2)],
    "radius with a prior": prior_radius,
    "waking": check_waking,
    "own groups": lambda: [neighbours(theorem, Cell(**{kind: 1})) for theorem in ("per-pair/node", "per-neighbour/node") for kind in ("add", "change")],
    "own groups, a constant": lambda: neighbours("per-neighbour/node", Cell(delete=1), 1, [0, 1, 0]),
    "self-loops": loops_of_neighbours,
}  # fmt: skip


@pytest.mark.parametrize("name", UNBROKEN)
def test_with_nothing_broken_every_check_is_green(name):
    UNBROKEN[name]()
