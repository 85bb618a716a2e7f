"""What a node id is: one canonical form for integers and texts of any length, and a digest that tells all of them apart."""

import hashlib
from typing import Any

import numpy as np
import pytest

from agnncert.certificates.ids import encode_id, encode_ids, id_array, order_of
from agnncert.errors import IdError
from agnncert.graphs.hashing import id_digest, refuse_duplicates, row_digest
from tests.support.graphs import twin_of


@pytest.mark.parametrize(
    "same",
    [
        ["3", "-5", "0"],
        [np.int8(3), np.int64(-5), np.str_("0")],
        (3, -5, 0),
        np.array([3, -5, 0], dtype=np.int32),
        np.array([3, -5, 0], dtype=">i8"),
        np.array(["3", "-5", "0"]),
        np.array([3, "-5", 0], dtype=object),
    ],
)
def test_an_integer_is_the_same_id_as_a_number_and_as_text(same: Any) -> None:
    assert list(encode_ids(same)) == [3, -5, 0]


@pytest.mark.parametrize("text", ["01", "+1", "1.0", " 1", "1\n", "1_0", "-0", "", "١", "²", "9" * 1300])
def test_other_texts_stay_texts(text: str) -> None:
    assert encode_ids([text]) == [text]


def test_integers_beyond_int64_stay_exact_and_are_the_same_id_as_their_text() -> None:
    big = [1, 2**63, 2**64 - 1]
    for given in (big, tuple(big), np.array(big, dtype=np.uint64), np.array(big, dtype=object), [str(n) for n in big]):
        assert encode_ids(given) == big
    assert encode_ids([-(2**4000), str(2**4000)]) == [-(2**4000), 2**4000]


def test_a_kind_of_text_of_its_own_is_what_it_holds_and_not_what_it_prints() -> None:
    class Loud(str):
        def __str__(self) -> str:
            return self.upper()

    assert encode_ids([Loud("red")]) == ["red"]
    assert type(encode_id(Loud("red"))) is type(encode_id(np.str_("red"))) is str


def test_ids_in_an_array_lose_nothing() -> None:
    assert id_array(["1", 2]).dtype == np.int64
    ids = [7, "a", "a\0", "", 2**63, "x" * 70_000]
    assert id_array(ids).tolist() == ids
    assert id_array([]).shape == (0,)
    assert id_array(["ab", "cd"]).shape == (2,)


DIFFERENT = [
    [], [0], [1], [1, 2], [2, 1], [256], ["a"], ["a", ""], ["", "a"], ["ab"], ["a", "b"], ["a\0"], ["\0a"], [7, "a"], [2**63],
    [-(2**63) - 1], ["x"], [twin_of("x")], ["\u00e9"], ["e\u0301"], ["07"],
]  # fmt: skip


def test_other_ids_have_other_digests() -> None:
    digests = [id_digest(encode_ids(ids)) for ids in DIFFERENT] + [row_digest(count) for count in range(4)]
    assert len(set(digests)) == len(digests)
    assert id_digest(encode_ids(["1", 2])) == id_digest(encode_ids(np.array([1, 2], dtype=np.int32)))
    assert id_digest(encode_ids([2**63, "a"])) == id_digest(encode_ids([str(2**63), "a"]))


def test_the_digest_of_ids_is_written_as_documented() -> None:
    numbers = b"".join(n.to_bytes(8, "little", signed=True) for n in (-1, 5))
    assert id_digest(encode_ids([-1, 5])) == hashlib.sha256(b"agnncert-ids:int64:2;" + numbers).hexdigest()
    texts = b"".join(len(t).to_bytes(8, "little") + t for t in (b"-1", "\u00e9\0".encode()))
    assert id_digest(encode_ids([-1, "\u00e9\0"])) == hashlib.sha256(b"agnncert-ids:text:2;" + texts).hexdigest()
    assert row_digest(12) == hashlib.sha256(b"agnncert-ids:row:12;").hexdigest()


def test_ids_of_both_kinds_can_be_sorted() -> None:
    assert sorted(["b", 2**70, "a", -3, 5], key=order_of) == [-3, 5, 2**70, "a", "b"]


def test_encoding_twice_changes_nothing() -> None:
    once = encode_ids([2**63, "a", 7])
    assert encode_ids(once) == once


# Mistakes are named


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([7, 3, 7], "id 7 appears at rows 0 and 2"),
        (np.array([7, 3, 7]), "id 7 appears at rows 0 and 2"),
        ([1, "x", "1"], "id 1 appears at rows 0 and 2"),
        (["1", 1], "1 and '1' are the same id"),
        (["a", "b", "a"], "id 'a' appears at rows 0 and 2"),
        ([2**63, str(2**63)], f"id {2**63} appears at rows 0 and 1"),
        ([0, 0, 1, 1, 2, 2, 3, 3, 4, 4], "and 2 more ids are repeated"),
    ],
)
def test_duplicate_ids_are_refused_by_name(ids: Any, message: str) -> None:
    with pytest.raises(IdError) as error:
        refuse_duplicates(encode_ids(ids))
    assert message in str(error.value)


@pytest.mark.parametrize(
    "bad", [True, np.True_, 1.0, np.float64(2), float("nan"), None, b"a", np.bytes_(b"a"), (1,), "\ud800", 2**5000]
)
def test_an_id_of_another_kind_is_refused_with_its_row(bad: Any) -> None:
    with pytest.raises(IdError, match="row 1"):
        encode_ids([4, bad])


@pytest.mark.parametrize(
    "ids",
    [
        np.array([1.0, 2.0]),
        np.array([True, False]),
        np.array([b"a"]),
        np.arange(4).reshape(2, 2),
        np.array(3),
        "abc",
        b"abc",
        {1, 2},
        {1: 2},
        None,
        7,
    ],
)
def test_a_container_that_cannot_hold_ids_is_refused(ids: Any) -> None:
    with pytest.raises(IdError, match="node id"):
        refuse_duplicates(encode_ids(ids))
