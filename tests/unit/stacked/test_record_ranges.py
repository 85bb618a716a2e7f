"""Counts that contradict themselves are refused, one check after the other."""

from dataclasses import replace

import numpy as np
import pytest

from agnncert.errors import CertificateError
from agnncert.stacked.record import LARGEST_GATE, LARGEST_SCORE, STEPS, StackedRecord

SMALLEST = np.iinfo(np.int64).min


def record_of(**fields):
    """Two targets with two and one neighbours."""
    return StackedRecord(
        **{
            "prior": np.array([[3, -2], [0, 5]]) * STEPS,
            "gate": np.full((2, 2), STEPS),
            "indptr": np.array([0, 2, 3]),
            "which": np.array([0, 1, 1]),
            "table": np.array([[STEPS, 0], [STEPS // 2, STEPS // 3]], dtype=np.int32),
            "targets_per_node": np.array([2, 1], dtype=np.int32),
            **fields,
        }
    )


def ints(*rows):
    return np.array(rows, dtype=np.int64)


WRONG = {
    "a row of votes above one": ({"table": np.array([[1, 0], [STEPS // 2, STEPS // 2 + 1]], dtype=np.int32)}, "one vote"),
    "all rows above one": ({"table": np.array([[STEPS, 1], [1, STEPS]], dtype=np.int32)}, "one vote"),
    "a negative vote": ({"table": np.array([[-1, 0], [0, 0]], dtype=np.int32)}, "table has an entry of -1"),
    "a score too large": ({"prior": ints([LARGEST_SCORE + 1, 0], [0, 0])}, "prior has an entry of"),
    "a score too small": ({"prior": ints([-LARGEST_SCORE - 1, 0], [0, 0])}, "prior has an entry of"),
    "the smallest whole number": ({"prior": ints([SMALLEST, 0], [0, 0])}, "prior has an entry of"),
    "nothing but the smallest number": ({"prior": np.full((2, 2), SMALLEST)}, "prior has an entry of"),
    "a negative gate": ({"gate": ints([-1, -1], [1, 1]), "gated": True}, "gate has an entry of"),
    "a gate too large": ({"gate": np.full((2, 2), LARGEST_GATE + 1), "gated": True}, "gate has an entry of"),
    "the smallest gate": ({"gate": np.full((2, 2), SMALLEST), "gated": True}, "gate has an entry of"),
    "a gate that nobody computed": ({"gate": ints([STEPS, 0], [STEPS, 0])}, "neither all one vote nor all zero"),
    "a vote that is not there": ({"which": np.array([0, 1, 2])}, "not there"),
    "a list too long": ({"indptr": np.array([0, 2, 4])}, "do not fit together"),
    "more neighbours than nodes": ({"targets_per_node": np.array([2, 2], dtype=np.int32)}, "neighbours"),
    "a pseudo-count without votes": ({"pseudo": STEPS}, "pseudo-count"),
    "a negative vote in advance": ({"pseudo": STEPS, "pseudo_votes": (-1, 0), "gated": True}, "pseudo-count"),
    "a pseudo-count too large": ({"pseudo": LARGEST_SCORE + 1, "pseudo_votes": (0, 0), "gated": True}, "pseudo-count"),
    "no slack": ({"slack": 0}, "out of range"),
    "a whole vote of slack and more": ({"slack": STEPS + 1}, "out of range"),
    "two levels of a mean": ({"second": 9, "pseudo": 1, "pseudo_votes": (0, 0), "gated": True}, "two levels"),
    "gates that differ in a mean": (
        {"gate": ints([1, 2], [1, 1]), "pseudo": 1, "pseudo_votes": (0, 0), "gated": True}, "gates of classes"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_makes_no_sense_is_refused(name):
    fields, says = WRONG[name]
    with pytest.raises(CertificateError, match=says):
        record_of(**fields)


def test_the_extremes_are_allowed():
    record = record_of()
    for prior in (LARGEST_SCORE, -LARGEST_SCORE):
        assert replace(record, prior=np.full((2, 2), prior)).num_targets == 2
    assert replace(record, gate=np.full((2, 2), LARGEST_GATE), gated=True).uses_votes
    assert not replace(record, gate=np.zeros((2, 2), dtype=np.int64)).uses_votes
    assert replace(record, table=np.array([[STEPS, 0], [0, STEPS]], dtype=np.int32)).num_classes == 2
