"""Theorem 13: no attack costs less than the price that is stated, and some attack costs exactly that."""

import itertools
import math
import random
from dataclasses import replace

import numpy as np
import pytest

from agnncert.certificates.budget import Budget, Prices
from agnncert.certificates.file import read_contents
from agnncert.proving.prices import _cheapest_mix, _Movable
from agnncert.stacked.evidence import Leads, StackedEvidence, Touched
from agnncert.stacked.record import STEPS
from agnncert.verifier import recount_prices
from tests.soundness.laws.test_stacked_votes import attacks, draw, joined, scores, winner
from tests.support.certificates import certificate_of, random_evidence, random_vote
from tests.support.cheapest import check_prices, random_prices
from tests.support.theorems import THEOREMS


@pytest.mark.parametrize("theorem", THEOREMS)
def test_the_price_of_a_target_is_that_of_the_cheapest_attack(theorem):
    assert check_prices(theorem) > 20


@pytest.mark.parametrize("theorem", THEOREMS)
def test_the_verifier_finds_the_same_price(theorem, tmp_path):
    rng, numbers, telling = random.Random(5), np.random.default_rng(5), 0
    for _ in range(3):
        classes = rng.choice([2, 3])
        proof = random_evidence(
            numbers,
            theorem,
            20,
            num_groups=6,
            num_classes=classes,
            unstable=0.05,
            voting_rule=random_vote(numbers, theorem, classes),
        )
        certificate_of(proof).save(tmp_path / "a.cert", [])
        contents = read_contents(tmp_path / "a.cert")
        for _ in range(3):
            prices = random_prices(rng, theorem)
            stated, again = proof.cheapest(prices), recount_prices.cheapest(contents, prices, tries=200)
            last = again[np.isfinite(again)].max(initial=0)  # where tries may have ended
            sure, uneven = (
                (again < last) | np.isinf(again),
                math.isfinite(prices.inject_nodes) and prices.injected_edges,
            )
            if uneven or (theorem == "per-pair/graph" and prices.delete_nodes < prices.change_features < math.inf):
                assert (stated <= again)[sure].all(), prices
            else:
                assert (stated == again)[sure].all(), prices
                assert (stated >= again).all(), prices
            telling += int((sure & (stated > 0) & np.isfinite(stated)).sum())
            wanted = rng.randrange(classes)
            of_label = proof.cheapest(prices, wanted)
            exactly = recount_prices.cheapest(contents, prices, wanted, tries=40)
            sure = exactly < exactly[np.isfinite(exactly)].max(initial=0)
            assert (of_label <= exactly)[sure].all()  # what it costs to beat the label, and perhaps others as well
            assert (of_label >= stated)[proof.label_and_radius()[0] != wanted].all()
    assert telling


@pytest.mark.parametrize("num_groups", [1, 2, 3])
@pytest.mark.parametrize("theorem", ["edge-centric/node", "node-centric/node", "gated/node", "node-centric/graph"])
def test_the_verifier_finds_the_same_price_where_all_votes_may_have_to_move(theorem, num_groups, tmp_path):
    """With few groups and a prior, often no number of votes suffices, and no vote may be counted twice."""
    numbers, without_end = np.random.default_rng(11), 0
    own = 1 if theorem == "gated/node" else math.inf
    for prices in (
        Prices(add_edges=2, target_features=own),
        Prices(inject_nodes=3, target_features=own, delete_edges=1),
    ):
        for _ in range(4):
            vote = random_vote(numbers, theorem, 2)
            proof = random_evidence(numbers, theorem, 40, num_groups=num_groups, num_classes=2, voting_rule=vote)
            certificate_of(proof).save(tmp_path / "a.cert", [])
            again = recount_prices.cheapest(read_contents(tmp_path / "a.cert"), prices, tries=100)
            assert proof.cheapest(prices).tolist() == again.tolist()
            without_end += int(np.isinf(again).sum())
    assert without_end


def cheapest_mix_by_trying(votes, strong: float, weak: float, already_moved: int, least: int) -> float:
    """Tries every number of strong changes, and every number of votes that move."""
    lacking, weak_for_label, weak_others, strong_for_label, strong_others = votes
    best = math.inf
    for number in range(least, 25):
        of_label = weak_for_label + min(number, strong_for_label)
        of_others = weak_others + min(number, strong_others)
        enough = [moved for moved in range(of_others + 1) if moved + min(moved, of_label) >= lacking]
        if enough:
            weakly = max(enough[0] - number - already_moved, 0)
            best = min(best, (strong * number if number else 0) + (weak * weakly if weakly else 0))
    return best


def test_the_cheapest_mix_of_changes_is_among_the_few_that_are_tried():
    """Votes for the label are among those not for the rival. Prices that are whole or not, nothing or infinite."""
    rng, finite = random.Random(3), 0
    for _ in range(8_000):
        weak_for_label, strong_for_label = rng.randrange(6), rng.randrange(6)
        votes = (
            rng.randrange(1, 15), weak_for_label, weak_for_label + rng.randrange(5), strong_for_label,
            strong_for_label + rng.randrange(5),
        )  # fmt: skip
        strong, weak = rng.choice([0, 1, 2, 3.5, 7, math.inf]), rng.choice([0, 1, 2, 5, math.inf])
        already, least = rng.randrange(votes[2] + 1), rng.randrange(2)
        arrays = _Movable(*(np.array([float(number)]) for number in votes))
        stated = float(_cheapest_mix(arrays, strong, weak, np.array([float(already)]), least)[0])
        assert stated == cheapest_mix_by_trying(votes, strong, weak, already, least), (
            votes,
            strong,
            weak,
            already,
            least,
        )
        finite += math.isfinite(stated)
    assert finite > 3_000


def repeated(evidence: StackedEvidence, count: int) -> StackedEvidence:
    """The same target this many times."""
    return replace(
        evidence, prior=evidence.prior.repeat(count, axis=0), gate=evidence.gate.repeat(count, axis=0),
        indptr=np.arange(count + 1) * len(evidence.which), which=np.tile(evidence.which, count),
        targets_per_node=evidence.targets_per_node * count,
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["sum", "gated", "mean", "mean by edge"])
def test_no_attack_on_stacked_votes_costs_less_and_the_bound_of_theorem_10_is_met(kind):
    finite = 0
    for seed in range(50):
        rng, evidence, prior, gate, pseudo, extra, votes = draw(seed, kind)
        new, lost, altered = (rng.choice([1, 2, 3, 0.5]) for _ in range(3))
        prices = Prices(add_edges=new, delete_edges=lost, change_features=altered)
        (stated,) = evidence.cheapest(prices)
        tried = np.array(list(itertools.product(range(4), repeat=3)))  # each on a target of its own, all alike
        breaks = ~Leads(repeated(evidence, len(tried))).withstands(Touched(*tried.T))
        best = min((tried[breaks] @ [new, lost, altered]).tolist(), default=math.inf)
        assert stated <= best
        if stated < 4 * min(new, lost, altered) and kind != "mean by edge":
            assert stated == best
        finite += 0 < stated < math.inf
        label = winner(scores(prior, gate, pseudo, extra, votes)[0])
        for i, gone, other in itertools.product(range(2), repeat=3):
            if i * new + gone * lost + other * altered < stated:
                for after in attacks(votes, len(prior), i, gone, other):
                    assert winner(scores(prior, gate, pseudo, extra, after)[0]) == label
    assert finite > 15


def near_a_tie() -> None:
    """A lead of two votes, give or take a few steps: prices count what another machine may round as budgets do."""
    drawn = next(one for seed in range(99) if len((one := draw(seed, "sum")[1]).which) == 3)
    leads = Leads(drawn)
    lead = leads.score[0] - leads.score[0].max()
    for shift in range(-14, 15):
        away = np.where(np.arange(drawn.num_classes) == leads.label[0], 0, -lead // STEPS - 2 * STEPS + shift)
        evidence = replace(drawn, prior=drawn.prior + away)
        (most,) = evidence.max_certified("add_edges", Budget())
        assert evidence.cheapest(Prices(add_edges=1)).tolist() == [most + 1]


def test_prices_count_rounding_as_budgets_do():
    near_a_tie()


def two_levels() -> StackedEvidence:
    return replace(joined("sum", 3), second=STEPS // 3)


def test_the_price_with_two_levels_is_that_of_the_cheapest_edges_and_nodes():
    evidence = two_levels()
    prices = Prices(add_edges=2, delete_nodes=3, change_features=5)
    stated, best = evidence.cheapest(prices), np.full(evidence.num_targets, np.inf)
    for edges, nodes, other in itertools.product(range(6), range(5), range(4)):
        cost = 2 * edges + 3 * nodes + 5 * other
        broken = ~evidence.holds(Budget(add_edges=edges, delete_nodes=nodes, change_features=other))
        best = np.where(broken, np.minimum(best, cost), best)
    assert (stated <= best).all()
    assert (stated == best)[stated < 12].all()
    assert ((stated > 0) & (stated < 12)).sum() > 20
    # Nodes that cost nothing come in any number; nobody pays for what is out of reach.
    assert set(evidence.cheapest(Prices(delete_nodes=0)).tolist()) <= {0.0, math.inf}
    assert (evidence.cheapest(Prices()) == np.where(evidence.holds(Budget()), math.inf, 0)).all()


def test_what_nothing_is_proved_about_breaks_a_target_at_its_price():
    proof = random_evidence(np.random.default_rng(2), "node-centric/node", unstable=0)
    assert set(proof.cheapest(Prices(target_features=7)).tolist()) == {7.0}
    by_row = random_evidence(np.random.default_rng(2), "node-centric/node", unstable=0, ids="row")
    assert set(by_row.cheapest(Prices(delete_nodes=4)).tolist()) == {4.0}
    assert set(two_levels().cheapest(Prices(target_features=2)).tolist()) <= {0.0, 2.0}
