"""A lower bound on the price of an attack, from yes-or-no answers about budgets alone."""

import math
from collections.abc import Callable

import numpy as np

from agnncert.certificates.budget import PRICED, Budget, Prices
from agnncert.certificates.votes import BoolArray, FloatArray

MOST_STEPS = 10_000


def cheapest_by_budgets(broken: Callable[[Budget], BoolArray], prices: Prices, num_targets: int) -> FloatArray:
    """Returns a lower bound on the price of breaking each target, shape ``[n]``.

    Whoever pays less than for one more change of some kind stays within the numbers of all kinds so far. So these grow
    one by one, the next cheapest first. For one kind of change the bound is exact.

    Args:
        broken: Which targets may break within a budget, shape ``[n]``.
        prices: The price of each kind of change.
        num_targets: Number of targets ``n``.
    """
    growing = _GrowingBudget(prices)
    cheapest = np.full(num_targets, np.inf)
    price = 0.0
    for _ in range(MOST_STEPS):
        is_broken = broken(growing.budget())
        cheapest[np.isinf(cheapest) & is_broken] = price
        following = growing.prices_of_one_more()
        price = min(following.values(), default=math.inf)
        if np.isfinite(cheapest).all() or not math.isfinite(price):
            return cheapest
        growing.add_one(min(following, key=lambda name: following[name]))
    return np.asarray(np.minimum(cheapest, price))


class _GrowingBudget:
    """How many changes of each kind an attacker may have paid for so far; all that cost nothing."""

    def __init__(self, prices: Prices) -> None:
        self._each = {name: float(getattr(prices, name)) for name in (*PRICED, "target_features")}
        self._each["edges_per_injected"] = float(prices.injected_edges)
        self._price_of_node = float(prices.inject_nodes)  # whoever buys edges of a node pays for the node first
        self._number = {name: math.inf if price == 0 else 0.0 for name, price in self._each.items()}

    def budget(self) -> Budget:
        """Returns what the attacker may do."""
        own_features = self._number["target_features"] > 0
        return Budget().but(**{**self._number, "target_features": own_features})

    def prices_of_one_more(self) -> dict[str, float]:
        """Returns what must be paid for one more change of each kind, with all before it of the same kind."""
        following = {}
        for name, price in self._each.items():
            is_used_up = name == "target_features" and self._number[name] > 0
            if price == 0 or is_used_up:
                continue
            before = self._price_of_node if name == "edges_per_injected" else 0.0
            following[name] = before + price * (self._number[name] + 1)
        return following

    def add_one(self, name: str) -> None:
        """Allows one more change of a kind."""
        self._number[name] += 1
