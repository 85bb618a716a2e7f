"""The judge is not blind: it finds every kind of lie, and lets pass what changes no statement."""

import numpy as np
import pytest

from agnncert.verdict import Verdict
from tests.support.alterations import EARLY, LATE
from tests.support.forgers_world import Pointless, all_cases, world_of
from tests.support.judging import forge, lies, same

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
