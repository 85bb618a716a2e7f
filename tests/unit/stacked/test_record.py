"""What a record of stacked votes refuses, each fault alone in a record that makes sense otherwise."""

from dataclasses import replace

import numpy as np
import pytest

from agnncert.errors import CertificateError
from agnncert.stacked.record import LARGEST_GATE, LARGEST_SCORE, LARGEST_SECOND, LARGEST_SLACK, STEPS, StackedRecord


def record(**changes):
    """Two targets with one and two neighbours, three votes and three classes."""
    plain = StackedRecord(
        prior=np.array([[5, -7, 0], [0, STEPS, 1]]),
        gate=np.full((2, 3), STEPS),
        indptr=np.array([0, 1, 3]),
        which=np.array([0, 2, 1]),
        table=np.array([[STEPS, 0, 0], [0, 0, 0], [10, 20, 30]], dtype=np.int32),
        targets_per_node=np.array([2, 1], dtype=np.int32),
    )
    return replace(plain, **changes)


MEAN = {"gated": True, "pseudo": STEPS, "pseudo_votes": (1, 2, 3)}
TWO_LEVELS = {"second": STEPS // 2}


def table(*rows):
    return np.array(rows, dtype=np.int32)


def gates(value):
    return np.full((2, 3), value)


RIGHT = {
    "plain": {},
    "mean": MEAN,
    "two levels": TWO_LEVELS,
    "a whole vote, shared out": {"table": table([1, STEPS - 2, 1], [0, 0, 0], [0, 0, STEPS])},
    "largest score": {"prior": np.array([[LARGEST_SCORE, 0, 0], [0, -LARGEST_SCORE, 0]])},
    "largest gate": {"gate": gates(LARGEST_GATE), "gated": True},
    "votes that nobody casts": {"which": np.array([1, 1, 1])},
    "no edges": {"gate": gates(0)},
    "largest pseudo-count": {**MEAN, "pseudo": LARGEST_SCORE, "pseudo_votes": (0, 0, LARGEST_SCORE)},
    "largest second": {"second": LARGEST_SECOND, "slack": LARGEST_SLACK},
    "largest slack": {"slack": STEPS},
    "different gates of classes in a sum": {"gate": np.array([[1, 2, 3], [0, 0, 9]]), "gated": True},
}
WRONG = {
    "one vote above one": ({"table": table([STEPS, 0, 1], [0, 0, 0], [10, 20, 30])}, "more than one vote"),
    "the last vote above one": ({"table": table([0, 0, 0], [0, 0, 0], [STEPS, STEPS, 0])}, "more than one vote"),
    "one negative part": ({"table": table([STEPS, 0, 0], [0, -1, 0], [10, 20, 30])}, "table has an entry of -1"),
    "one negative part that makes up for more than one": (
        {"table": table([STEPS, 1, -1], [0, 0, 0], [0, 0, 0])}, "table has an entry of -1",
    ),
    "one score too large": ({"prior": np.array([[LARGEST_SCORE + 1, 0, 0], [0, 0, 0]])}, "prior has an entry of"),
    "one score too small": ({"prior": np.array([[0, 0, 0], [0, 0, -LARGEST_SCORE - 1]])}, "prior has an entry of"),
    "one negative gate": ({"gate": np.array([[1, 1, 1], [1, -1, 1]]), "gated": True}, "gate has an entry of -1"),
    "one gate too large": ({"gate": np.array([[1, LARGEST_GATE + 1, 1], [1, 1, 1]]), "gated": True}, "gate has an entry of"),
    "a vote that is not there": ({"which": np.array([0, 3, 1])}, "a vote that is not there"),
    "a vote before the first": ({"which": np.array([0, -1, 1])}, "which has an entry of -1"),
    "lists that begin late": ({"indptr": np.array([1, 1, 3])}, "do not fit together"),
    "lists that end early": ({"indptr": np.array([0, 1, 2])}, "do not fit together"),
    "lists that go back": ({"indptr": np.array([0, 4, 3])}, "do not fit together"),
    "one list too few": ({"indptr": np.array([0, 3])}, "indptr has the shape"),
    "fewer neighbours of nodes": ({"targets_per_node": np.array([1, 1], dtype=np.int32)}, "neighbours of do not fit"),
    "nodes with no target": ({"targets_per_node": np.array([3, 0], dtype=np.int32)}, "targets_per_node has an entry of 0"),
    "smaller numbers first": ({"targets_per_node": np.array([1, 2], dtype=np.int32)}, "neighbours of do not fit"),
    "no slack": ({"slack": 0}, "a setting is out of range"),
    "too much slack": ({"slack": STEPS + 1}, "a setting is out of range"),
    "a column below none": ({"trusted": -2}, "a setting is out of range"),
    "a column beyond all": ({"trusted": 2**31}, "a setting is out of range"),
    "negative second": ({"second": -1}, "a setting is out of range"),
    "too much second": ({"second": LARGEST_SECOND + 1}, "a setting is out of range"),
    "a fraction": ({"slack": 1.0}, "not a whole number"),
    "a fraction among pseudo-votes": ({**MEAN, "pseudo_votes": (1, 2.0, 3)}, "not a whole number"),
    "yes as a number": ({"by_edge": 1}, "not a whole number"),
    "other ids": ({"ids": "names"}, "ids are"),
    "no pseudo-votes": ({**MEAN, "pseudo_votes": ()}, "do not belong together"),
    "pseudo-votes of a sum": ({"pseudo_votes": (1, 2, 3)}, "do not belong together"),
    "a pseudo-count too large": ({**MEAN, "pseudo": LARGEST_SCORE + 1}, "do not belong together"),
    "a negative pseudo-count": ({**MEAN, "pseudo": -1}, "do not belong together"),
    "one negative pseudo-vote": ({**MEAN, "pseudo_votes": (1, -2, 3)}, "pseudo-count are out of range"),
    "one pseudo-vote too large": ({**MEAN, "pseudo_votes": (1, LARGEST_SCORE + 1, 3)}, "pseudo-count are out of range"),
    "gates that nobody computed": ({"gate": gates(STEPS - 1)}, "neither all one vote nor all zero"),
    "some gates of one": ({"gate": np.array([[STEPS] * 3, [0] * 3])}, "neither all one vote nor all zero"),
    "two levels of a mean": ({**TWO_LEVELS, **MEAN}, "two levels go with a plain sum"),
    "two levels by edge": ({**TWO_LEVELS, "by_edge": True}, "two levels go with a plain sum"),
    "two levels with gates": ({**TWO_LEVELS, "gated": True}, "two levels go with a plain sum"),
    "two levels with trusted edges": ({**TWO_LEVELS, "trusted": 0}, "none is trusted"),
    "two levels with more slack": ({**TWO_LEVELS, "slack": LARGEST_SLACK + 1}, "none is trusted"),
    "different gates in a mean": ({**MEAN, "gate": np.array([[1, 2, 1], [1, 1, 1]])}, "gates of classes may differ"),
    "different gates by edge": (
        {"by_edge": True, "gated": True, "gate": np.array([[1, 1, 1], [1, 1, 2]])}, "gates of classes may differ",
    ),
    "scores of another type": ({"prior": np.zeros((2, 3))}, "prior is of type"),
    "votes of another type": ({"table": np.zeros((3, 3), dtype=np.int64)}, "table is of type"),
    "votes for fewer classes": ({"table": np.zeros((3, 2), dtype=np.int32)}, "table has the shape"),
    "gates of fewer targets": ({"gate": np.full((1, 3), STEPS)}, "gate has the shape"),
    "one class": (
        {"prior": np.zeros((2, 1), dtype=np.int64), "gate": np.full((2, 1), STEPS), "table": np.zeros((3, 1), dtype=np.int32)},
        "not two classes",
    ),
    "a list of lists": ({"which": np.array([[0, 2, 1]])}, "which has 2 dimensions"),
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
def test_what_makes_sense_is_accepted_up_to_its_limits(name):
    made = record(**RIGHT[name])
    again = StackedRecord.load(made.tensors(), made.settings())
    assert again.settings() == made.settings()
    assert all((again.tensors()[key] == array).all() for key, array in made.tensors().items())


@pytest.mark.parametrize("name", WRONG)
def test_one_fault_is_refused_by_its_name(name):
    changes, reason = WRONG[name]
    with pytest.raises(CertificateError, match=reason):
        record(**changes)


def test_more_neighbours_than_can_be_counted_exactly_are_refused():
    many = 2**17
    lists = {
        "prior": np.full((1, 2), LARGEST_SCORE), "gate": np.full((1, 2), LARGEST_GATE), "gated": True,
        "which": np.zeros(many, dtype=np.int64), "targets_per_node": np.ones(many, dtype=np.int32),
        "table": np.zeros((1, 2), dtype=np.int32), "indptr": np.array([0, many]),
    }  # fmt: skip
    record(**lists)  # a sum is far from the limit
    with pytest.raises(CertificateError, match="too many neighbours"):
        record(**lists, pseudo=LARGEST_SCORE, pseudo_votes=(0, 0))


def test_the_pseudo_count_is_part_of_what_is_counted_exactly():
    """Four times the score times the divisor of 2**32 + 2**30 stays within 2**61, or is one step beyond."""
    nobody = {
        "gate": np.zeros((1, 2), dtype=np.int64), "gated": True, "which": np.zeros(0, dtype=np.int64), "indptr": np.array([0, 0]),
        "targets_per_node": np.zeros(0, dtype=np.int32), "table": np.zeros((0, 2), dtype=np.int32),
        "pseudo": 2**30, "pseudo_votes": (0, 0),
    }  # fmt: skip
    largest = 2**59 // (5 * 2**30) - 2  # without the slack of score and gate
    record(**nobody, prior=np.array([[largest, 0]]))
    with pytest.raises(CertificateError, match="too many neighbours"):
        record(**nobody, prior=np.array([[largest + 1, 0]]))
