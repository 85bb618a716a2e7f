"""Which classes a target may get, and blocks of targets: the verifier's own versions against the prover's."""

import numpy as np
import pytest

from agnncert.verifier.blocks import cut
from agnncert.verifier.leaders import may_win
from tests.unit.proving.test_evidence import EVERYBODY, Voters

UNDER_A_FIRM_CLASS = Voters(np.array([[0, 0, 0, 1, 1, 1, 2]]), np.array([[False] * 3 + [True] * 3 + [False]]))


@pytest.mark.parametrize("number", range(6))
def test_every_class_that_some_change_of_votes_lets_win_is_named(number):
    named = may_win(EVERYBODY.labels(), 3, lambda leader: EVERYBODY.stays_ahead(slice(None), number, leader))
    assert not (EVERYBODY.winners(number) & ~named).any()
    assert (named == EVERYBODY.possible(number)).all()


def test_a_class_behind_one_that_gets_ahead_of_the_label_is_not_named():
    proof = UNDER_A_FIRM_CLASS
    named = may_win(proof.labels(), 3, lambda leader: proof.stays_ahead(slice(None), 2, leader))
    assert named.tolist() == [[True, True, False]]


def test_where_nothing_is_proved_every_class_is_named():
    nothing = np.zeros((2, 3), dtype=bool)
    assert may_win(np.array([0, 2]), 3, lambda leader: nothing).all()


@pytest.mark.parametrize("at_once", [1, 4, 100])
def test_every_target_is_in_one_block_and_only_single_ones_are_too_large(at_once):
    entries = np.array([3, 0, 9, 1, 1, 2, 0])
    blocks = cut(entries, at_once)
    assert np.concatenate([np.arange(7)[block] for block in blocks]).tolist() == list(range(7))
    assert all(entries[block].sum() <= at_once or len(entries[block]) == 1 for block in blocks)
    assert cut(entries[:0], at_once) == []
