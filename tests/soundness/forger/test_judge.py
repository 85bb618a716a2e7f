"""The judge is not blind: it finds every kind of lie, and lets pass what changes no statement."""

import numpy as np
import pytest

from agnncert.certificates.claim import EDGES_GIVEN, FEATURES_FIXED, SPLIT_GIVEN
from agnncert.verdict import Verdict
from tests.soundness.forger.alterations import EARLY, LATE
from tests.soundness.forger.judging import forge, lies, same
from tests.soundness.forger.world import Pointless, all_cases, all_golden_cases, world_of

SILENT = Verdict(True, (), ())
# These change what a reader is told only sometimes: they leave something out, or state something else that is true.
SOMETIMES_TRUE = {
    "no_truth", "no_degree", "fewer_targets", "no_targets", "other_order", "no_statements", "other_budgets", "borrowed",
    "merged", "sampling", "noise", "division_text", "another_kind", "tolerance", "larger_budget",
    "any_header", "any_statement", "any_array", "retyped_ids", "another_vote", "exclusions",
}  # fmt: skip
ALWAYS_TRUE = {"no_truth", "no_degree", "other_order", "no_statements"}


@pytest.mark.parametrize("alteration", sorted((EARLY | LATE).keys() - ALWAYS_TRUE))
def test_the_judge_finds_a_lie(alteration):
    tried, found = 0, 0
    for k, name in enumerate(all_cases()):
        world, rng = world_of(name), np.random.default_rng(k)
        try:
            draft = forge(world, rng, [(alteration, (EARLY | LATE)[alteration])])
        except Pointless:
            continue
        if not same(draft, world.honest):
            wrong = lies(world, draft, SILENT)
            assert wrong or alteration in SOMETIMES_TRUE, f"{alteration} of {name} went unnoticed"
            tried, found = tried + 1, found + bool(wrong)
            if found == 3:
                return
    assert tried
    assert found or alteration == "no_targets"


@pytest.mark.parametrize("alteration", ["no_truth", "no_degree", "fewer_targets", "other_order", "no_statements"])
@pytest.mark.parametrize("name", ["edge", "node", "gated", "gnncert-e", "edges-only"])
def test_the_judge_lets_pass_what_leaves_something_out(name, alteration):
    world = world_of(name)
    draft = forge(world, np.random.default_rng(1), [(alteration, (EARLY | LATE)[alteration])])
    assert not same(draft, world.honest)
    assert lies(world, draft, SILENT) == []


def test_an_honest_certificate_under_another_division_is_no_lie_but_its_votes_under_this_one_are():
    world = world_of("node")
    other = world.stranger(next(name for name in world.strangers if name.startswith("division")))
    assert lies(world, other) == []
    mixed = other.copy()
    mixed.claim["division"] = world.honest.claim["division"]
    assert lies(world, mixed)


@pytest.mark.parametrize("name", all_golden_cases())
def test_a_stored_file_is_no_lie_with_or_without_premises_that_reading_adds_but_with_any_other_assumption(name):
    world = world_of(name)
    assert lies(world, world.honest) == []
    added = {EDGES_GIVEN, *SPLIT_GIVEN.values()}
    older = world.honest.copy()
    older.claim["assumes"] = [sentence for sentence in older.claim["assumes"] if sentence not in added]
    assert lies(world, older) == []
    for place, sentence in enumerate(older.claim["assumes"]):
        for others in ([], [sentence.replace(" ", "  ", 1)], [sentence, "Nobody attacks."], [sentence, EDGES_GIVEN]):
            forged = older.copy()
            forged.claim["assumes"][place : place + 1] = others
            is_older = others[1:] == [EDGES_GIVEN] and sentence == FEATURES_FIXED
            assert any("claim.assumes" in where for where in lies(world, forged)) != is_older, others


@pytest.mark.parametrize("name", ["golden stacked-trusted-values", "golden stacked-sum"])
def test_radii_may_be_smaller_where_they_are_of_a_mean_and_larger_nowhere(name):
    world = world_of(name)
    for by in (-1, 1):
        draft = world.honest.copy()
        draft.arrays["radius"][0] += by
        may_be = by < 0 and draft.settings["pseudo"] > 0
        assert ("radius" in lies(world, draft)) != may_be
