"""What a record declares of its arrays and settings is what it takes, reads and writes."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from agnncert.certificates.record import Array, Record
from agnncert.errors import CertificateError


@dataclass(frozen=True)
class Lists(Record):
    """Lists of small numbers."""

    ends: np.ndarray
    pairs: np.ndarray
    factors: tuple[int, ...] = ()
    blind: bool = False

    called = "the lists"
    arrays: ClassVar = {"ends": Array(np.int64, "n+1"), "pairs": Array(np.int8, "n 2", -1, 3)}
    stated_later: ClassVar = {"blind": False}
    lists = ("factors",)

    def checks(self):
        return (lambda: "it begins late" if self.ends[0] else "",)


RIGHT = {"ends": np.array([0, 1, 2]), "pairs": np.array([[0, 3], [-1, 1]], dtype=np.int8)}
WRONG = {
    "no array": ("ends", [0, 1, 2], "ends is a list"),
    "another type": ("ends", np.array([0.0, 1.0, 2.0]), "ends is of type float64, expected int64"),
    "another number of dimensions": ("pairs", np.zeros(2, dtype=np.int8), "pairs has 1 dimensions, expected 2"),
    "another size than an earlier array says": ("pairs", np.zeros((3, 2), dtype=np.int8), r"expected \[n 2\]"),
    "another size than a number says": ("pairs", np.zeros((2, 3), dtype=np.int8), r"expected \[n 2\]"),
    "no room for one more": ("ends", np.zeros(0, dtype=np.int64), r"expected \[n\+1\]"),
    "too small": (
        "pairs",
        np.array([[0, 0], [0, -2]], dtype=np.int8),
        "pairs has an entry of -2, expected at least -1",
    ),
    "too large": ("pairs", np.array([[4, 0], [0, 0]], dtype=np.int8), "pairs has an entry of 4, expected at most 3"),
    "what only its own check finds": ("ends", np.array([1, 1, 2]), "it begins late"),
}


@pytest.mark.parametrize("what", WRONG)
def test_arrays_of_another_form_are_refused(what):
    name, array, says = WRONG[what]
    with pytest.raises(CertificateError, match=says):
        Lists(**{**RIGHT, name: array})


def test_the_smallest_number_of_a_type_is_too_small_although_its_absolute_value_is_negative():
    with pytest.raises(CertificateError, match="an entry of -128"):
        Lists(RIGHT["ends"], np.full((2, 2), -128, dtype=np.int8))


def test_a_record_is_read_as_it_was_written_and_leaves_out_what_files_did_not_state_at_first():
    record = Lists(**RIGHT, factors=(2, 3))
    assert record.settings() == {"factors": [2, 3]}
    again = Lists.load(record.tensors(), record.settings())
    assert (again.factors, again.blind) == ((2, 3), False)
    assert Lists(**RIGHT, blind=True).settings() == {"factors": [], "blind": True}


@pytest.mark.parametrize(
    ("tensors", "settings", "says"),
    [
        (RIGHT, {}, "factors.* is missing or was not expected"),
        (RIGHT, {"factors": [], "more": 1}, "more.* is missing or was not expected"),
        ({"ends": RIGHT["ends"]}, {"factors": []}, "pairs.* is missing or was not expected"),
        (RIGHT, {"factors": "12"}, "factors is '12', expected a list"),
    ],
)
def test_parts_that_are_missing_unknown_or_no_list_are_refused(tensors, settings, says):
    with pytest.raises(CertificateError, match=says):
        Lists.load(tensors, settings)
