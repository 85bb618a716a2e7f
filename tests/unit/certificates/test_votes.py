"""Votes: one default and the exceptions, counted and written out."""

import numpy as np
import pytest

from agnncert.certificates.votes import ABSTAIN, Votes


@pytest.fixture
def votes() -> Votes:
    """Three targets, five groups, three classes: one votes by default, one abstains by default, one lists all."""
    return Votes(
        num_groups=5,
        num_classes=3,
        default=np.array([2, ABSTAIN, 0], dtype=np.int16),
        default_stable=np.array([True, True, False]),
        indptr=np.array([0, 2, 3, 8]),
        group=np.array([1, 4, 0, 0, 1, 2, 3, 4], dtype=np.int32),
        vote=np.array([0, ABSTAIN, 1, 2, 2, 1, 1, ABSTAIN], dtype=np.int16),
        stable=np.array([True, True, False, True, True, True, False, True]),
        reached=np.array([True, False, True, True, True, True, True, True]),
    )


def test_the_table_has_the_default_everywhere_but_where_a_vote_is_listed(votes):
    assert votes.dense().tolist() == [[2, 0, 2, 2, -1], [1, -1, -1, -1, -1], [2, 2, 1, 1, -1]]
    assert votes.dense().dtype == np.int16


def test_counts_are_those_of_the_table_without_abstentions(votes):
    expected = [[(row == k).sum() for k in range(3)] for row in votes.dense()]
    assert votes.counts.tolist() == expected == [[1, 0, 3], [0, 1, 0], [0, 2, 2]]


def test_owners_and_unlisted_votes(votes):
    assert votes.num_targets == 3
    assert votes.owner.tolist() == [0, 0, 1, 2, 2, 2, 2, 2]
    assert votes.num_unlisted.tolist() == [3, 4, 0]


def test_a_tally_counts_only_what_it_is_asked_to(votes):
    nothing = np.zeros(8, dtype=bool)
    assert votes.count_by_class(votes.stable, np.zeros(3, dtype=bool)).tolist() == [[1, 0, 0], [0, 0, 0], [0, 1, 2]]
    assert votes.count_by_class(nothing, np.ones(3, dtype=bool)).tolist() == [[0, 0, 3], [0, 0, 0], [0, 0, 0]]
    assert votes.count_by_class(nothing, np.array([False, True, True])).sum() == 0


def test_several_votes_of_one_target_for_one_class_all_count(votes):
    assert votes.count_by_class()[2].tolist() == [0, 2, 2], "repeated indices are added up, not overwritten"


def test_random_tables_survive_being_stored_as_exceptions():
    random = np.random.default_rng(0)
    for _ in range(20):
        table = random.integers(-1, 4, size=(6, 7))
        default = random.integers(-1, 4, size=6)
        listed = [np.flatnonzero(row != d) for row, d in zip(table, default, strict=True)]
        votes = Votes(
            num_groups=7,
            num_classes=4,
            default=default.astype(np.int16),
            default_stable=np.ones(6, dtype=bool),
            indptr=np.concatenate([[0], np.cumsum([len(groups) for groups in listed])]),
            group=np.concatenate(listed).astype(np.int32),
            vote=np.concatenate([row[g] for row, g in zip(table, listed, strict=True)]).astype(np.int16),
            stable=np.ones(sum(map(len, listed)), dtype=bool),
            reached=np.ones(sum(map(len, listed)), dtype=bool),
        )
        assert np.array_equal(votes.dense(), table)
        assert votes.counts.tolist() == [[(row == k).sum() for k in range(4)] for row in table]
