"""Counting stacked votes again: how much work it is, and that blocks of work change no answer."""

import sys

import numpy as np
import pytest

from agnncert.certificates.budget import Budget
from agnncert.stacked.evidence import StackedEvidence
from agnncert.stacked.record import STEPS
from agnncert.verifier import recount_stacked as recount

ANY_DELETIONS = Budget(add_edges=1, delete_edges=np.inf)


def evidence_of(degrees, second=0, pseudo=0, seed=0):
    """Targets with this many neighbours each, and votes that are drawn at random."""
    rng = np.random.default_rng(seed)
    number = len(degrees)
    table = (rng.dirichlet(np.ones(3), 50)[:, :2] * STEPS).astype(np.int32)
    which = rng.integers(0, 50, sum(degrees))
    return StackedEvidence(
        prior=(rng.normal(0, 2, (number, 2)) * STEPS).astype(np.int64),
        gate=np.full((number, 2), STEPS),
        indptr=np.concatenate([[0], np.cumsum(degrees)]).astype(np.int64),
        which=which,
        table=table,
        targets_per_node=np.ones(len(which), dtype=np.int32),
        gated=bool(pseudo),
        pseudo=pseudo,
        pseudo_votes=(pseudo // 3, pseudo // 4) if pseudo else (),
        second=second,
    )


def count_calls(work):
    """Runs a function and returns how many functions were called in the meantime, those of numpy included."""
    calls = 0

    def count(frame, event, argument):
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(before)
    return calls


@pytest.mark.parametrize("pseudo", [0, STEPS])
def test_a_target_with_many_neighbours_is_not_looked_at_once_for_each_of_them(pseudo):
    evidence = evidence_of([20_000], pseudo=pseudo)
    tables = recount.tables_of(evidence)
    assert count_calls(lambda: recount.holds(evidence, tables, ANY_DELETIONS)) < 2_000


def test_targets_with_other_radii_are_not_looked_at_once_for_each_radius():
    """With two levels, a forger who states many radii must not make the verifier look at all targets for each."""
    number = 400
    evidence = evidence_of([3] * number, second=STEPS // 3)
    (table,) = recount.tables_of(evidence)
    looked_at = 0
    whole = recount.DegreeTable.survives_second

    def counted(self, edges, nodes):
        nonlocal looked_at
        looked_at += self.num_targets
        return whole(self, edges, nodes)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recount.DegreeTable, "survives_second", counted)
        recount.right_radius([table], np.arange(number), structure=True)
    assert looked_at == 2 * number  # the stated radius, and the next one


@pytest.mark.parametrize("pseudo", [0, STEPS])
@pytest.mark.parametrize("block", [1, 7, 100])
def test_blocks_change_no_answer(monkeypatch, block, pseudo):
    evidence = evidence_of([0, 1, 1, 5, 9, 9, 40] * 9, pseudo=pseudo)
    monkeypatch.setattr(recount, "BLOCK", block)
    tables = recount.tables_of(evidence)
    _, radius = evidence.label_and_radius()
    structure = evidence.structure_radius()
    assert recount.right_radius(tables, radius, structure=False).all()
    assert recount.right_radius(tables, structure, structure=True).all()
    assert not recount.right_radius(tables, structure + 1, structure=True).any()
    for budget in (ANY_DELETIONS, Budget(delete_edges=7, change_features=2), Budget(add_edges=2, delete_nodes=3)):
        holds = evidence.holds(budget)
        assert (recount.holds(evidence, tables, budget) == holds).all()
        assert holds.any()
        assert not holds.all()
