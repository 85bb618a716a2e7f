"""Ids, keys and groups: the documented encoding, which must never change."""

import hashlib
import itertools
import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agnncert.errors import DivisionError, IdError
from agnncert.graphs import hashing
from agnncert.graphs.hashing import HASHES, check_settings, edge_groups, first8, id_keys, node_groups
from tests.support.graphs import twin_of

IDS = st.lists(
    st.integers(-(2**70), 2**70) | st.text(st.characters(exclude_categories=["Cs"]), max_size=6),
    min_size=1,
    max_size=8,
    unique_by=str,
)


def plain_key(node_id: int | str) -> bytes:
    """The documented encoding once more, written for one id and nothing else."""
    text = str(node_id)
    try:
        if str(int(text)) == text:
            return int(text).to_bytes(8, "little", signed=True)
    except (ValueError, OverflowError):
        pass
    return hashlib.md5(b"agn-text" + text.encode()).digest()[:8]


def plain_group(message: bytes, num_groups: int, name: str) -> int:
    return int.from_bytes(hashlib.new(name, message).digest()[:8], "little") % num_groups


def number(key: bytes) -> int:
    return int.from_bytes(key, "little")


# The encoding is what it says it is


@settings(deadline=None)
@given(ids=IDS)
def test_keys_follow_the_documented_encoding(ids: list[int | str]) -> None:
    assert id_keys(ids).tolist() == [number(plain_key(node_id)) for node_id in ids]


@settings(deadline=None)
@given(ids=IDS, num_groups=st.integers(1, 1000), name=st.sampled_from(HASHES))
def test_node_groups_follow_the_documented_encoding(ids: list[int | str], num_groups: int, name: str) -> None:
    expected = [plain_group(b"agn-node" + plain_key(node_id), num_groups, name) for node_id in ids]
    assert node_groups(id_keys(ids), num_groups, name).tolist() == expected


@settings(deadline=None)
@given(ids=IDS, num_groups=st.integers(1, 1000), name=st.sampled_from(HASHES))
def test_edge_groups_follow_the_documented_encoding(ids: list[int | str], num_groups: int, name: str) -> None:
    keys = id_keys(ids)
    rows = np.array(list(itertools.product(range(len(ids)), repeat=2)))
    expected = []
    for u, v in rows:
        low, high = sorted((plain_key(ids[u]), plain_key(ids[v])), key=number)
        expected.append(plain_group(b"agn-edge" + low + high, num_groups, name))
    assert edge_groups(keys[rows[:, 0]], keys[rows[:, 1]], num_groups, name).tolist() == expected


GOLDEN_IDS: list[int | str] = [0, 1, -5, 2**63 - 1, -(2**63), 2**63, "alice", "Zoë 🦉", "01", "", "1.0"]
GOLDEN_KEYS = [
    0,
    1,
    18446744073709551611,
    9223372036854775807,
    9223372036854775808,
    8452366491347785632,
    2026525658427522583,
    9076234800203098109,
    18141514210299560219,
    13569344260499763451,
    14042340312110927603,
]
GOLDEN_NODE_GROUPS = {
    "md5": [28, 93, 278, 196, 51, 78, 177, 68, 129, 147, 77],
    "sha1": [255, 65, 266, 32, 238, 19, 30, 171, 299, 0, 50],
    "sha256": [164, 203, 218, 105, 134, 243, 39, 112, 116, 112, 4],
    "blake2b": [15, 56, 167, 178, 296, 270, 224, 42, 298, 94, 273],
}
GOLDEN_EDGE_GROUPS = {
    "md5": [138, 110, 197, 224, 194, 45, 275, 279, 272, 61, 243],
    "sha1": [289, 288, 210, 125, 143, 98, 0, 299, 104, 34, 229],
    "sha256": [33, 81, 193, 139, 212, 271, 74, 205, 271, 261, 129],
    "blake2b": [269, 208, 172, 187, 242, 76, 156, 108, 189, 33, 190],
}


def test_keys_never_change_between_releases() -> None:
    assert id_keys(GOLDEN_IDS).tolist() == GOLDEN_KEYS


@pytest.mark.parametrize("name", HASHES)
def test_groups_never_change_between_releases(name: str) -> None:
    keys = id_keys(GOLDEN_IDS)
    assert node_groups(keys, 300, name).tolist() == GOLDEN_NODE_GROUPS[name]
    assert edge_groups(keys, np.roll(keys, 1), 300, name).tolist() == GOLDEN_EDGE_GROUPS[name]


def test_md5_is_the_default() -> None:
    keys = id_keys(range(50))
    assert node_groups(keys, 300).tolist() == node_groups(keys, 300, "md5").tolist()
    assert edge_groups(keys, keys, 300).tolist() == edge_groups(keys, keys, 300, "md5").tolist()


# A group depends on the node or edge itself and on nothing else


@pytest.mark.parametrize("name", HASHES)
def test_growing_shrinking_or_reordering_the_graph_moves_no_group(name: str) -> None:
    keys = id_keys([*range(40_000), "alice"])  # more than two chunks
    nodes, edges = node_groups(keys, 300, name), edge_groups(keys, keys[::-1].copy(), 300, name)
    rows = np.random.default_rng(0).permutation(len(keys))[:3000]
    assert np.array_equal(node_groups(keys[rows], 300, name), nodes[rows])
    assert np.array_equal(edge_groups(keys[rows], keys[::-1][rows], 300, name), edges[rows])
    assert id_keys(["alice"])[0] == keys[-1]


@settings(deadline=None)
@given(pairs=st.lists(st.tuples(*[st.integers(0, 2**64 - 1)] * 2), min_size=1), name=st.sampled_from(HASHES))
def test_both_directions_of_an_edge_share_a_group(pairs: list[tuple[int, int]], name: str) -> None:
    u, v = np.array(pairs, dtype=np.uint64).T
    assert edge_groups(u, v, 10**6, name).tolist() == edge_groups(v, u, 10**6, name).tolist()


def test_nodes_and_self_loops_are_hashed_apart() -> None:
    keys = id_keys(range(1000))
    same = node_groups(keys, 300) == edge_groups(keys, keys, 300)
    assert same.mean() < 0.05


@pytest.mark.parametrize("name", HASHES)
def test_one_group_takes_everything(name: str) -> None:
    keys = id_keys(range(10))
    assert node_groups(keys, 1, name).tolist() == [0] * 10
    assert edge_groups(keys, keys, 1, name).tolist() == [0] * 10


@pytest.mark.parametrize("name", HASHES)
def test_nothing_in_nothing_out(name: str) -> None:
    keys = id_keys([])
    assert keys.dtype == np.uint64
    assert node_groups(keys, 7, name).shape == edge_groups(keys, keys, 7, name).shape == (0,)
    assert id_keys(np.array([])).shape == (0,)


@pytest.mark.parametrize("name", HASHES)
def test_groups_are_about_equally_full(name: str) -> None:
    keys = id_keys(range(60_000))
    for groups in (node_groups(keys, 60, name), edge_groups(keys, np.roll(keys, 1), 60, name)):
        sizes = np.bincount(groups, minlength=60)
        chi_square = ((sizes - 1000) ** 2 / 1000).sum()
        assert 20 < chi_square < 120  # 59 expected; either end is over 3.5 standard deviations away


def test_groups_are_int64_from_zero_to_the_number_of_groups() -> None:
    groups = node_groups(id_keys(range(1000)), np.int32(7))
    assert groups.dtype == np.int64
    assert set(groups.tolist()) == set(range(7))


# Ids in all their forms


@pytest.mark.parametrize(
    "same", [["3", "-5", "0"], np.array([3, -5, 0], dtype=">i8"), np.array([3, "-5", 0], dtype=object)]
)
def test_an_integer_has_the_same_key_as_a_number_and_as_text(same: Any) -> None:
    assert id_keys(same).tolist() == id_keys([3, -5, 0]).tolist()


def test_integers_beyond_int64_have_the_key_of_their_decimal_text() -> None:
    big = np.array([1, 2**63, 2**64 - 1], dtype=np.uint64)
    assert id_keys(big).tolist() == id_keys([1, str(2**63), 2**64 - 1]).tolist()
    assert id_keys([2**200, -(2**63) - 1]).tolist() == [number(plain_key(text)) for text in (2**200, -(2**63) - 1)]


def test_two_ids_may_share_a_key_and_are_not_refused() -> None:
    assert len(set(id_keys(["x", twin_of("x")]).tolist())) == 1


def test_texts_that_look_alike_but_differ_stay_apart() -> None:
    composed, decomposed = "\u00e9", "e\u0301"
    assert len(set(id_keys([composed, decomposed, "e", "E", "e\0"]).tolist())) == 5


def test_keys_share_no_memory_with_the_ids() -> None:
    ids = np.arange(3)
    keys = id_keys(ids)
    ids[0] = 99
    assert keys.tolist() == [0, 1, 2]


# Mistakes are named


def test_ids_of_another_kind_and_duplicates_are_refused() -> None:
    for ids, message in (
        ([7, "7"], "rows 0 and 1"),
        ([4, 1.0], "row 1"),
        (np.arange(4).reshape(2, 2), "one dimension"),
    ):
        with pytest.raises(IdError, match=message):
            id_keys(ids)


@pytest.mark.parametrize("num_groups", [0, -1, 1.5, 2.0, True, "3", None, float("nan"), 2**31])
def test_a_senseless_number_of_groups_is_refused(num_groups: Any) -> None:
    keys = id_keys([1])
    for call in (
        lambda: check_settings(num_groups, "md5"),
        lambda: node_groups(keys, num_groups),
        lambda: edge_groups(keys, keys, num_groups),
    ):
        with pytest.raises(DivisionError, match="num_groups"):
            call()


def test_an_unknown_hash_is_met_with_the_nearest_one() -> None:
    keys = id_keys([1])
    for call in (lambda: node_groups(keys, 3, "sha265"), lambda: edge_groups(keys, keys, 3, "sha265")):
        with pytest.raises(DivisionError, match='did you mean "sha256"'):
            call()


def test_groups_are_not_computed_from_raw_ids() -> None:
    keys = id_keys([1, 2])
    with pytest.raises(IdError, match="id_keys"):
        node_groups(np.array([1, 2]), 3)
    with pytest.raises(IdError, match="id_keys"):
        edge_groups(keys, np.array([1.0, 2.0]), 3)
    with pytest.raises(IdError, match="two endpoints"):
        edge_groups(keys, keys[:1], 3)


# Large graphs


@pytest.mark.parametrize(("name", "count"), [("md5", 500_000), ("sha1", 200_000), ("blake2b", 200_000)])
def test_memory_beyond_the_result_does_not_grow_with_the_edges(name: str, count: int) -> None:
    keys = id_keys(np.arange(count))
    tracemalloc.start()
    groups = edge_groups(keys, keys[::-1], 300, name)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak - groups.nbytes < 8 * 2**20


ON_ARRAYS = {"md5": hashing._md5}
U64 = st.integers(0, 2**64 - 1)
MESSAGES = st.integers(1, 6).flatmap(lambda width: st.lists(st.tuples(*[U64] * width), min_size=1, max_size=5))


def by_hashlib(name: str, message: tuple[int, ...]) -> int:
    text = b"".join(word.to_bytes(8, "little") for word in message)
    return int.from_bytes(hashlib.new(name, text).digest()[:8], "little")


@pytest.mark.parametrize("name", HASHES)
@settings(deadline=None)
@given(messages=MESSAGES)
def test_every_digest_is_that_of_hashlib(name: str, messages: list[tuple[int, ...]]) -> None:
    columns = list(np.array(messages, dtype=np.uint64).T)
    known = [by_hashlib(name, message) for message in messages]
    assert first8(name, columns).tolist() == known
    if name in ON_ARRAYS:  # which many messages take
        assert ON_ARRAYS[name](columns).tolist() == known


@pytest.mark.parametrize("name", ON_ARRAYS)
@pytest.mark.parametrize("count", [hashing.MANY - 1, hashing.MANY])
def test_few_and_many_messages_have_the_same_digests(name: str, count: int) -> None:
    words = np.random.default_rng(1).integers(0, 2**64, (2, count), dtype=np.uint64)
    assert np.array_equal(first8(name, list(words)), ON_ARRAYS[name](list(words)))


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
