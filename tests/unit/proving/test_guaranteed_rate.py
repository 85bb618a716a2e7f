"""How many kept targets may be flagged: the exact binomial, computed twice, and a guarantee that holds."""

from fractions import Fraction
from math import comb

import numpy as np
import pytest

from agnncert.certificates.threshold_record import ThresholdRecord
from agnncert.proving import guaranteed_rate
from agnncert.proving.guaranteed_rate import largest_rate, most_flagged, needed, smallest_rate
from agnncert.verifier.recount_threshold import wrong_threshold
from tests.support.mutations import text_turns_red

RATES = ("0.001", "0.01", "0.05", "0.1", "0.3", "0.9")
CONFIDENCES = ("0.5", "0.8", "0.95", "0.999")


def exactly(kept, rate, confidence) -> list[bool]:
    """For which numbers of flagged targets the guarantee follows, in whole numbers."""
    chance, limit = Fraction(rate), 1 - Fraction(confidence)
    success, failure = chance.numerator, chance.denominator - chance.numerator
    below, follows = 0, []
    for k in range(kept):
        below += comb(kept, k) * success**k * failure ** (kept - k)
        follows.append(below * limit.denominator <= limit.numerator * chance.denominator**kept)
    return follows


def record(kept, allowed, rate, confidence, **more) -> ThresholdRecord:
    return ThresholdRecord(1, kept, allowed, allowed, float(rate), float(confidence), **more)


@pytest.mark.parametrize("confidence", CONFIDENCES)
@pytest.mark.parametrize("rate", RATES)
def test_prover_and_verifier_agree_with_fractions(rate, confidence):
    for kept in (1, 2, 7, 28, 29, 46, 150, 299, 400):
        most = most_flagged(kept, float(rate), float(confidence))
        follows = exactly(kept, rate, confidence)
        assert most == sum(follows) - 1  # the probability grows with k, so those that follow come first
        for k in range(max(most - 1, 0), min(most + 3, kept)):
            is_wrong = bool([*wrong_threshold(record(kept, k, rate, confidence), 2)])
            assert is_wrong == (not follows[k])


def test_so_many_have_to_be_kept_at_least():
    assert [needed(rate, 0.95) for rate in (0.1, 0.05, 0.01)] == [29, 59, 299]
    for rate in (0.001, 0.03, 0.5):
        for confidence in (0.5, 0.9, 0.999):
            number = needed(rate, confidence)
            assert most_flagged(number, rate, confidence) >= 0
            assert number == 1 or most_flagged(number - 1, rate, confidence) < 0
            assert smallest_rate(number, confidence) <= rate
    assert smallest_rate(0, 0.95) == 1


def test_large_numbers_are_counted_in_time_and_on_the_safe_side():
    most = most_flagged(1_000_000, 0.1, 0.95)
    assert 99_000 < most < 99_600
    assert not [*wrong_threshold(record(1_000_000, most, 0.1, 0.95), 2)]
    assert [*wrong_threshold(record(1_000_000, most + 1, 0.1, 0.95), 2)]


def violated(kept, rate, confidence, draws, seed):
    """In which share of draws the rate of targets to come exceeds what was requested; scores are uniform."""
    random = np.random.default_rng(seed)
    allowed = most_flagged(kept, rate, confidence)
    scores = np.sort(random.random((draws, kept)), axis=1)
    threshold = scores[:, kept - 1 - allowed]
    return float((1 - threshold > rate).mean())


def guarantee_holds() -> None:
    for kept, rate in ((46, 0.1), (93, 0.05), (473, 0.01)):  # chances of just below 5 %
        assert violated(kept, rate, 0.95, 4000, seed=96) <= 0.05 + 3 * (0.05 * 0.95 / 4000) ** 0.5


def test_the_guarantee_holds_over_draws_and_one_more_breaks_it(monkeypatch):
    guarantee_holds()
    text_turns_red(monkeypatch, guaranteed_rate, "most = k", "most = k + 1", guarantee_holds)


def test_a_sum_that_leaves_a_term_out_is_noticed(monkeypatch):
    law = lambda: test_prover_and_verifier_agree_with_fractions("0.1", "0.95")  # noqa: E731
    law()
    text_turns_red(monkeypatch, guaranteed_rate, "below += term", "below = term", law)


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (ThresholdRecord(2, 100, 4, 4, 0.1, 0.95), "about class 2"),
        (ThresholdRecord(1, 100, 4, 5, 0.1, 0.95), "5 targets are flagged"),
        (ThresholdRecord(1, 100, 5, 5, 0.1, 0.95), "does not follow"),
        (ThresholdRecord(1, 100, 100, 5, 0.1, 0.95), "guarantees nothing"),
        (ThresholdRecord(1, 100, 4, 4, None, 0.95), "no rate"),
        (ThresholdRecord(1, 100, 4, 4, 0.1, 0.3), "does not follow"),
        (ThresholdRecord(1, 100, 11, 3, 0.1), "more than the requested share"),
    ],
)
def test_wrong_records_are_refused(record, said):
    assert said in " ".join(wrong_threshold(record, 2))


def test_what_is_right_passes():
    assert not [*wrong_threshold(None, 2)]
    assert not [*wrong_threshold(ThresholdRecord(1, 100, 4, 2, 0.1, 0.95), 2)]
    assert not [*wrong_threshold(ThresholdRecord(1, 100, 10, 3, 0.1), 2)]
    assert not [*wrong_threshold(ThresholdRecord(1, 100, 100, 3), 2)]


@pytest.mark.parametrize(("hits", "cases"), [(0, 1), (0, 29), (5, 50), (48, 49), (200, 1000)])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
def test_at_the_largest_rate_so_few_hits_have_just_the_chance_that_is_left(hits, cases, confidence):
    rate = largest_rate(hits, cases, confidence)
    chance = sum(comb(cases, k) * rate**k * (1 - rate) ** (cases - k) for k in range(hits + 1))
    assert chance == pytest.approx(1 - confidence, rel=1e-6)
