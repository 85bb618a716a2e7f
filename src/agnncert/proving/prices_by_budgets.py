"""A lower bound on the price of an attack, from yes-or-no answers about budgets only."""

import math
from collections.abc import Callable

import numpy as np

from agnncert.certificates.budget import PRICED, Budget, Prices
from agnncert.certificates.votes import BoolArray, FloatArray

MOST_STEPS = 10_000
_OF_LABELS = ("flip_labels", "add_labels", "remove_labels")


def cheapest_by_budgets(may_win: Callable[[Budget], BoolArray], prices: Prices, shape: tuple[int, int]) -> FloatArray:
    """Returns a lower bound on the price at which rivals may win, shape ``[n, R]``.

    Whoever pays less than for one more change of some kind stays within the numbers of all kinds so far. So these grow
    one by one, the next cheapest first, until one rival of each target may win. For one kind of change and the
    cheapest rival of each target the bound is exact.

    Args:
        may_win: Which rivals may win within a budget, shape ``[n, R]``.
        prices: The price of each kind of change.
        shape: Number of targets ``n`` and of rivals ``R`` of each.
    """
    growing = _GrowingBudget(prices)
    cheapest = np.full(shape, np.inf)
    price = 0.0
    for _ in range(MOST_STEPS):
        cheapest[np.isinf(cheapest) & may_win(growing.budget())] = price
        following = growing.prices_of_one_more()
        price = min(following.values(), default=math.inf)
        if np.isfinite(cheapest.min(axis=1, initial=np.inf)).all() or not math.isfinite(price):
            return np.asarray(np.minimum(cheapest, price))
        growing.add_one(min(following, key=lambda name: following[name]))
    return np.asarray(np.minimum(cheapest, price))


class _GrowingBudget:
    """How many changes of each kind an attacker may have paid for so far; all that cost nothing."""

    def __init__(self, prices: Prices) -> None:
        self._each = {name: float(getattr(prices, name)) for name in (*PRICED, *_OF_LABELS, "target_features")}
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
