"""What a guaranteed threshold promises of targets to come."""

import re

import numpy as np
import pytest
from scipy.stats import beta

from agnncert.certificates.threshold_record import ThresholdRecord
from agnncert.proving.measures import measured
from agnncert.proving.promise import least_times, promise
from agnncert.proving.words import Deed

APPENDS = Deed("deletes one pair", "deletes {size} pairs", none="appends any rows")
CHANGES = Deed("changes one edge", "changes {size} edges")


def record(confidence=0.95, split_by="id"):
    return ThresholdRecord(1, 100, 4, 3, false_positive_rate=0.1, confidence=confidence, split_by=split_by)


def measures_of(caught, known, others=20):
    """Measures of a class 1 of which so many keep their label for certain."""
    truth = np.array([1] * known + [0] * others)
    possible = np.ones((known + others, 2), dtype=bool)
    possible[:caught, 0] = False
    return measured(possible, truth)


@pytest.mark.parametrize(("caught", "known", "confidence"), [(16, 17, 0.9), (58, 60, 0.95), (200, 300, 0.99)])
def test_the_recall_is_the_exact_bound_rounded_down(caught, known, confidence):
    said = promise(record(confidence), APPENDS, measures_of(caught, known), "fraud")
    stated = float(re.search(r"At least ([\d.]+)", said)[1]) / 100
    exact = beta.ppf(1 - confidence, caught, known - caught + 1)  # Clopper and Pearson
    assert exact - 0.001 < stated <= exact
    assert f"{caught} of {known} known ones" in said
    assert (
        "when an attacker appends any rows, and without an attack at most 10\N{NO-BREAK SPACE}% of the others" in said
    )
    assert f"{100 * confidence:g}\N{NO-BREAK SPACE}% confidence" in said


def test_other_attackers_act_once_at_least():
    assert (least_times(APPENDS), least_times(CHANGES)) == (0, 1)
    assert "when an attacker changes one edge" in promise(record(), CHANGES, measures_of(30, 30), "fraud")


def test_nothing_is_promised_without_a_guarantee_a_known_target_or_one_that_is_caught():
    assert promise(None, APPENDS, measures_of(30, 30), "fraud") == ""
    assert promise(record(confidence=None), APPENDS, measures_of(30, 30), "fraud") == ""
    assert promise(record(), APPENDS, measures_of(0, 0), "fraud") == ""
    assert promise(record(), APPENDS, measures_of(0, 30), "fraud") == ""


def test_a_split_by_time_is_named():
    assert "cut by time" in promise(record(split_by="time"), APPENDS, measures_of(30, 30), "fraud")
    assert "cut by time" not in promise(record(), APPENDS, measures_of(30, 30), "fraud")
