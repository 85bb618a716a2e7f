"""Every theorem is stated a second time, and says of itself what the facts say of which claims are made."""

import numpy as np
import pytest

from agnncert.addons import addons
from agnncert.certificates.budget import Budget
from agnncert.divided.theorems.registry import theorem_of
from agnncert.errors import AgnncertError, CertificateError
from agnncert.verifier.effects import Changes
from agnncert.verifier.limits import limits_under
from agnncert.verifier.piles import sort_votes
from agnncert.verifier.theorems.registry import recount_of
from tests.support.certificates import random_evidence
from tests.support.theorems import THEOREMS


@pytest.mark.parametrize("name", THEOREMS)
def test_a_theorem_and_its_recount_are_two_objects_that_agree_with_the_facts(name):
    recount, facts = recount_of(name), THEOREMS[name]
    assert not isinstance(recount, type(theorem_of(name)))
    assert recount.covers_target == (facts.target_features and facts.task == "node")
    assert recount.by_neighbours == (facts.by_neighbours and not facts.per_neighbour)
    (piles,) = sort_votes(random_evidence(np.random.default_rng(0), name))
    assert isinstance(limits_under(piles, Budget(add_edges=1)), Changes) == facts.per_neighbour


def test_a_name_that_is_no_theorem_is_refused():
    with pytest.raises(AgnncertError, match="unknown theorem"):
        recount_of("edge-centric/pair")


def test_a_theorem_that_nothing_states_again_is_refused(monkeypatch):
    monkeypatch.delitem(addons("agnncert.theorem_recounts"), "gated")
    with pytest.raises(CertificateError, match=r"'gated/node'.*under \[agnncert\.theorem_recounts\]"):
        recount_of("gated/node")
