"""What changes cost an attacker."""

import math
from dataclasses import replace

import numpy as np
import pytest

from agnncert.certificates.budget import Prices
from agnncert.certificates.theorem_facts import THEOREMS
from agnncert.errors import DivisionError
from agnncert.proving import theorems
from agnncert.proving.per_neighbour import PER_NEIGHBOUR
from agnncert.proving.prices import pay
from tests.support.certificates import random_evidence


@pytest.mark.parametrize("price", [0, 0.5, 3, math.inf])
def test_no_changes_cost_nothing_and_changes_without_number_more_than_anything(price):
    assert pay(price, [-math.inf, -1, 0]).tolist() == [0, 0, 0]
    assert pay(price, [1, 4]).tolist() == [price, 4 * price]
    assert pay(price, math.inf) == math.inf


ALIKE = {
    "node-centric/node": "offers",
    "gnncert-n/node": "price_of_number",
    "per-neighbour/node": "cheapest_per_neighbour",
}


@pytest.mark.parametrize("like", ALIKE)
def test_a_theorem_without_prices_does_not_get_those_of_another_one(like, monkeypatch):
    """A contributor added a theorem everywhere but in the prices, with facts and limits like those of a known one."""
    name = f"gnncert-new{like[9:]}" if like.startswith("gnncert") else f"new-{like}"
    monkeypatch.setitem(THEOREMS, name, THEOREMS[like])
    for table in (theorems.LIMITS, PER_NEIGHBOUR):
        if like in table:
            monkeypatch.setitem(table, name, table[like])
    proof = random_evidence(np.random.default_rng(0), like, unstable=0)
    added = replace(proof, theorem=name)
    assert (added.label_and_radius()[1] == proof.label_and_radius()[1]).all()
    assert np.isfinite(proof.cheapest(Prices(1, 1, 1, 1, 1, 1))).any()
    with pytest.raises(DivisionError, match=rf"theorem '{name}' is not known.*in {ALIKE[like]}\(\)"):
        added.cheapest(Prices(1, 1, 1, 1, 1, 1))
