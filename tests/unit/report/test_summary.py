"""The curves against the plain definition."""

import numpy as np
import pytest

from agnncert.proving.certificate import Certificate
from agnncert.report.summary import ReportContext, changes_only, over_degree, over_size, summarise
from tests.support.synthetic import made_up_certificate


def test_a_share_is_the_counted_targets_that_withstand_the_size() -> None:
    rng = np.random.default_rng(0)
    radius, correct = rng.integers(-1, 9, 50), rng.random(50) < 0.6
    curve = over_size(radius, correct, 12)
    assert curve.share.tolist() == [(correct & (radius >= m)).mean() for m in range(13)]


def test_a_target_that_withstands_any_size_is_in_the_curve_to_its_end() -> None:
    assert over_size(np.array([np.inf, 1.0]), np.ones(2, dtype=bool), 5).share.tolist() == [1, 1, 0.5, 0.5, 0.5, 0.5]


@pytest.mark.parametrize("most_points", [500, 7])
def test_over_degree_never_shows_more_than_is_certified(most_points: int) -> None:
    rng = np.random.default_rng(1)
    radius, degree, correct = rng.integers(-1, 30, 300), rng.integers(0, 12, 300), rng.random(300) < 0.7
    curve = over_degree(radius, degree, correct, most_points)
    exact = most_points > len(np.unique(radius / np.maximum(degree, 1)))
    for x in [0.05, 0.1, 0.33, 0.5, 1, 1.7, 2, 5, 29]:
        truly = (correct & (radius >= 0) & (radius >= x * degree)).mean()
        without_edges = (correct & (radius >= 0) & (degree == 0)).mean()
        assert curve.at(x) <= truly
        assert not exact or curve.at(x) == pytest.approx(max(truly, without_edges))


def test_beyond_its_end_a_curve_promises_nothing() -> None:
    assert over_size(np.array([3]), np.array([True]), 4).at(5) == 0


def test_steps_at_which_nothing_happens_can_go() -> None:
    curve = over_size(np.array([4, 4, 9]), np.ones(3, dtype=bool), 12)
    short = changes_only(curve)
    assert short.size.tolist() == [0, 5, 10, 12]
    assert [short.share[np.searchsorted(short.size, m, side="right") - 1] for m in range(13)] == curve.share.tolist()


def test_no_targets_give_an_empty_curve_not_an_error() -> None:
    assert over_size(np.zeros(0), np.zeros(0, dtype=bool), 1).share.tolist() == [0, 0]


def test_the_curve_of_a_report_is_the_certified_accuracy_of_its_certificate() -> None:
    certificate, _ = made_up_certificate(np.random.default_rng(2), "edge-centric/node", 40, 30, 3, unstable=0.02)
    truth = np.arange(40) % 3
    summary = summarise(certificate, ReportContext(truth=truth))
    sizes = np.arange(summary.last_size + 1)
    assert summary.certified.share.tolist() == certificate.certified_accuracy(truth, sizes).tolist()
    assert summary.certified.share[-1] == 0, "the curve ends where nothing is certified any more"


def test_truth_and_degree_of_the_certificate_are_used_unless_others_are_given() -> None:
    made, degree = made_up_certificate(np.random.default_rng(3), "gated/node", 10, 30, 3)
    certificate = Certificate(made.claim, made.evidence, made.target, truth=made.label, degree=degree)
    assert summarise(certificate, None).counted.all()
    assert summarise(certificate, None).degree.tolist() == degree.tolist()
    assert not summarise(certificate, ReportContext(truth=(made.label + 1) % 3)).counted.any()
