"""Facts of every division fit together: names, forms in which it prints, and what its votes look like."""

import re

import pytest

from agnncert.addons import addons
from tests.support.theorems import THEOREMS

DIVISIONS = {name: point.load() for name, point in addons("agnncert.theorem_facts").items()}


@pytest.mark.parametrize("name", DIVISIONS)
def test_theorems_of_a_division_begin_with_its_name(name):
    assert {facts.name for facts in DIVISIONS[name].theorems} <= {f"{name}/node", f"{name}/graph"}


@pytest.mark.parametrize("name", DIVISIONS)
def test_every_form_in_which_a_division_prints_has_a_theorem_for_each_task(name):
    for form in DIVISIONS[name].forms:
        assert form.pattern.startswith(rf"{name}\(")
        assert re.compile(form.pattern).groups == (len(form.sides) or int("inf" not in form.pattern))
        assert {task: THEOREMS[theorem].task for task, theorem in form.theorems.items()} == {
            "node": "node",
            "graph": "graph",
        }


def test_every_theorem_but_those_of_own_divisions_belongs_to_a_form():
    named = {
        theorem for division in DIVISIONS.values() for form in division.forms for theorem in form.theorems.values()
    }
    assert {name for name, facts in THEOREMS.items() if not facts.prices} == named - {"custom/node", "custom/graph"}


@pytest.mark.parametrize("theorem", THEOREMS)
def test_a_claim_says_what_is_covered_in_exactly_one_way(theorem):
    facts = THEOREMS[theorem]
    assert facts.whole_graph + bool(facts.covers) + bool(facts.prices) == 1
