"""Every mutation is planted somewhere, and one that breaks nothing of the library is not taken for a killed one."""

import ast
from collections import Counter
from pathlib import Path

import pytest

from agnncert.certificates import theorem_facts
from agnncert.certificates.budget import Budget
from agnncert.divided import evidence
from agnncert.divided.theorems import moving_votes
from agnncert.proving import theorems
from tests.soundness.mutation import random_mutations
from tests.support.checks import check_radius
from tests.support.mutations import LIBRARY, ROOT, Mistake, Planted, Unreached, plant_text, turns_red

MODULES = sorted([*Path(__file__).parent.glob("test_*.py"), *(ROOT / "packages").glob("*/tests/test_*on_purpose.py")])


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.stem)
def test_every_mutation_of_a_module_is_planted(module):
    tree = ast.parse(module.read_text(encoding="utf-8"))
    names = Counter(node.id for node in ast.walk(tree) if isinstance(node, ast.Name))
    mutations = [
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.args.args and node.args.args[0].arg == "patch"
    ]
    assert [name for name in mutations if not names[name]] == []


def always_zero(counted):
    return 0 * counted.label


def test_a_name_that_the_library_imported_before_is_not_reached(monkeypatch):
    """``moving_votes`` has its own name for the function, so patching ``theorems`` breaks nothing but what tests call."""

    def where_nobody_looks(patch):
        patch.setattr(theorems, "certified_radius", always_zero)

    def red_by_itself():
        theorems.certified_radius(theorems.count_votes)  # a test calls it, the library does not

    with pytest.raises(Unreached, match=r"theorems\.certified_radius"):
        turns_red(monkeypatch, where_nobody_looks, red_by_itself, AttributeError)


def test_a_name_that_the_library_calls_is_reached(monkeypatch):
    turns_red(monkeypatch, lambda patch: patch.setattr(moving_votes, "certified_radius", always_zero), check_radius)


def test_a_constant_counts_if_its_module_reads_it(monkeypatch):
    planted = Planted(monkeypatch)
    planted.setattr(evidence, "__doc__", "only people read this")
    with pytest.raises(Unreached):
        planted.require_reached()
    planted.setattr(theorems, "UNLISTED", 2)
    planted.require_reached()


def test_a_replaced_text_is_seen_under_every_name(monkeypatch):
    check_radius()
    plant_text(monkeypatch, theorems, "margin -= wins_ties", "margin -= 0 * wins_ties")
    with pytest.raises(AssertionError):
        check_radius()
    monkeypatch.undo()
    check_radius()


def test_a_mistake_that_its_check_does_not_notice_is_reported(monkeypatch):
    unseen = Mistake("nothing", check_radius, theorems, "margin -= wins_ties", "margin -= 1 * wins_ties")
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        unseen.turns_red(monkeypatch)


def test_a_check_that_fails_without_the_mistake_is_reported(monkeypatch):
    def fails_anyway():
        raise AssertionError("anyway")

    with pytest.raises(AssertionError, match="anyway"):
        Mistake("a tie", fails_anyway, theorems, "margin -= wins_ties", "pass").turns_red(monkeypatch)


def test_a_text_outside_of_functions_is_refused(monkeypatch):
    with pytest.raises(AssertionError, match="not inside a function"):
        plant_text(monkeypatch, theorem_facts, "EDGES_ONLY = {", "EDGES_ONLY = AGAIN = {")


def test_the_library_is_what_was_imported():
    assert all(module.__file__.startswith(LIBRARY) for module in (evidence, theorems))
    assert Budget.__module__ == "agnncert.certificates.budget"


def test_random_mutations_name_files_and_tests_that_are_there():
    named = [random_mutations.source_of(file) for file in random_mutations.TESTS]
    tests = {test for tests in random_mutations.TESTS.values() for test in tests}
    assert [path for path in (*named, *(ROOT / test for test in tests)) if not path.exists()] == []
