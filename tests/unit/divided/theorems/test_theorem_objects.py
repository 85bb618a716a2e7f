"""Every theorem has one object that proves with it, and an object that lacks a part cannot be made."""

from types import SimpleNamespace

import pytest

from agnncert.addons import addons
from agnncert.divided.theorems.moving_votes import AnyVotes, MovingVotes, VotesInTiers
from agnncert.divided.theorems.node_centric import NodeCentricNode
from agnncert.divided.theorems.own_votes import OwnVotes
from agnncert.divided.theorems.registry import theorem_of
from agnncert.errors import AgnncertError, DivisionError
from tests.support.theorems import THEOREMS


@pytest.mark.parametrize("name", THEOREMS)
def test_the_object_of_a_theorem_is_found_by_its_name(name):
    theorem = theorem_of(name)
    assert (theorem.name, theorem.facts) == (name, THEOREMS[name])
    assert isinstance(theorem, OwnVotes) == THEOREMS[name].per_neighbour
    assert theorem.has_structure_radius == THEOREMS[name].per_neighbour


@pytest.mark.parametrize("name", ["", "edge-centric", "edge-centric/pair", "gated/graph", "mine/node"])
def test_a_name_that_is_no_theorem_is_refused(name):
    with pytest.raises(AgnncertError, match=r"unknown theorem.*Valid: .*edge-centric/node"):
        theorem_of(name)


def test_a_theorem_of_which_only_the_facts_are_known_is_refused(monkeypatch):
    monkeypatch.delitem(addons("agnncert.theorems"), "gated")
    with pytest.raises(DivisionError, match=r"'gated/node'.*under \[agnncert\.theorems\] in the entry points"):
        theorem_of("gated/node")


@pytest.mark.parametrize(
    ("of", "missing"), [(MovingVotes, "price_of_rival"), (VotesInTiers, "offers"), (AnyVotes, "price_of_number")]
)
def test_a_theorem_without_prices_does_not_get_those_of_another_one(of, missing):
    with pytest.raises(TypeError, match=f"abstract.*{missing}"):
        type("New", (of,), {"limits": NodeCentricNode.limits})()


def test_the_deed_of_an_own_division_is_one_that_it_states_a_price_for():
    deed = theorem_of("custom/node").deed(SimpleNamespace(parameters={"delete_nodes": 2}))
    assert (deed.one, deed.price) == ("deletes any one node", 2)
    assert theorem_of("custom/node").deed(SimpleNamespace(parameters={})).price == 1
