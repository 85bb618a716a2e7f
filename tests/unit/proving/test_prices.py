"""What changes cost an attacker."""

import math

import pytest

from agnncert.proving.prices import pay


@pytest.mark.parametrize("price", [0, 0.5, 3, math.inf])
def test_no_changes_cost_nothing_and_changes_without_number_more_than_anything(price):
    assert pay(price, [-math.inf, -1, 0]).tolist() == [0, 0, 0]
    assert pay(price, [1, 4]).tolist() == [price, 4 * price]
    assert pay(price, math.inf) == math.inf
