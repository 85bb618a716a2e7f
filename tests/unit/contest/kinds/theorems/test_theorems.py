"""What each theorem about votes says as a contest: found by its name, and which moves a change allows."""

import numpy as np
import pytest

from agnncert.addons import addons
from agnncert.certificates.budget import Budget
from agnncert.certificates.theorem_facts import facts_of, known_theorems
from agnncert.contest.kinds.kind import GRAPH, GRAPH_FIELDS
from agnncert.contest.kinds.theorem import TheoremAsContest, contest_of
from agnncert.contest.kinds.tiers import ANY
from agnncert.errors import CertificateError
from tests.support.certificates import random_evidence

FIELDS = (*GRAPH_FIELDS, "target_features")


@pytest.mark.parametrize("theorem", sorted(known_theorems()))
def test_every_theorem_about_votes_has_a_form(theorem):
    assert isinstance(contest_of(theorem), TheoremAsContest)


def test_a_theorem_without_a_form_says_where_to_name_one(monkeypatch):
    monkeypatch.delitem(addons("agnncert.theorem_contests"), "gated")
    with pytest.raises(CertificateError, match=r"'gated/node' has no form .*under \[agnncert\.theorem_contests\]"):
        contest_of("gated/node")


@pytest.mark.parametrize("theorem", sorted(known_theorems()))
def test_something_is_said_of_the_same_changes_as_the_certificate_covers(theorem):
    evidence = random_evidence(np.random.default_rng(1), theorem)
    kind = contest_of(theorem).kind(evidence)
    for name in FIELDS:
        budget = Budget(edges_per_injected=1, **{name: True if name == "target_features" else 1})
        if name == "target_features" and facts_of(theorem).task == "graph":
            continue  # a graph has no features of its own
        assert (kind.attack(budget) is not None) == evidence.holds(budget).any(), name


def test_a_division_of_ones_own_pays_what_it_states():
    evidence = random_evidence(np.random.default_rng(1), "custom/node")
    limits = contest_of("custom/node").kind(evidence).form.attackers[GRAPH].limits
    (paid,) = (limit.at_most for limit in limits if ANY in limit.moves)
    stated = {name.replace("edges_per_injected", "injected_edges"): n for name, n in evidence.parameters.items() if n}
    assert paid == stated
    assert stated
