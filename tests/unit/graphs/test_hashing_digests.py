import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agnncert.graphs.hashing import HASHES, first8

U64 = st.integers(0, 2**64 - 1)
MESSAGES = st.integers(1, 6).flatmap(lambda width: st.lists(st.tuples(*[U64] * width), min_size=1, max_size=5))


def by_hashlib(name: str, message: tuple[int, ...]) -> int:
    text = b"".join(word.to_bytes(8, "little") for word in message)
    return int.from_bytes(hashlib.new(name, text).digest()[:8], "little")


@pytest.mark.parametrize("name", HASHES)
@settings(deadline=None)
@given(messages=MESSAGES)
def test_every_digest_is_that_of_hashlib(name: str, messages: list[tuple[int, ...]]) -> None:
    columns = np.array(messages, dtype=np.uint64).T
    assert first8(name, list(columns)).tolist() == [by_hashlib(name, message) for message in messages]


@pytest.mark.parametrize("name", HASHES)
@pytest.mark.parametrize("width", [2, 3])
def test_ten_thousand_random_messages_behind_a_shared_tag_match_hashlib(name: str, width: int) -> None:
    words = np.random.default_rng(0).integers(0, 2**64, (width, 10_000), dtype=np.uint64)
    words[0] = 0x0123456789ABCDEF
    digests = first8(name, [words[0, :1], *words[1:]])
    assert digests.tolist() == [by_hashlib(name, message) for message in zip(*words.tolist(), strict=True)]


@pytest.mark.parametrize("name", HASHES)
def test_no_message_gives_no_digest(name: str) -> None:
    empty = np.empty(0, dtype=np.uint64)
    assert first8(name, [np.ones(1, dtype=np.uint64), empty]).shape == (0,)


@pytest.mark.parametrize("name", HASHES)
def test_the_message_is_left_as_it_was(name: str) -> None:
    columns = [np.arange(3, dtype=np.uint64), np.arange(3, dtype=np.uint64)]
    first8(name, columns)
    assert all(column.tolist() == [0, 1, 2] for column in columns)
