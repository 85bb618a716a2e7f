"""Finds the least price of an attack that changes a label a second time.

This module shares no code with ``proving.prices``: instead of formulas it tries attacks one after the other in the
order of their price, and asks the recount about each. The first one that breaks a target is the cheapest.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any

import numpy as np

from agnncert.certificates.budget import PRICED, Budget, Prices
from agnncert.certificates.file import Contents
from agnncert.certificates.votes import BoolArray, FloatArray
from agnncert.verifier.kinds import checked

MOST_TRIES = 20_000
KINDS = (*PRICED, "edges_per_injected", "target_features")


def cheapest(contents: Contents, prices: Prices, label: int | None = None, tries: int = MOST_TRIES) -> FloatArray:
    """Returns what an attack on each target of a file costs at least, shape ``[n]``.

    It is infinite where no attack breaks the target, and a lower bound where ``tries`` do not suffice. Injected nodes
    all have as many edges. A prover who lets them have different numbers may find a lower price.

    Args:
        contents: The file.
        prices: What each kind of change costs.
        label: Asks about attacks that give targets this label instead of any other than their own.
        tries: Attacks to try.
    """
    breaks = _breaks(contents, label)
    shop = _Shop.of(prices)
    can_break = breaks(shop.budget([math.inf] * len(shop.priced)))
    cost = np.full(len(can_break), math.inf)
    is_open = can_break.copy()  # targets that some attack breaks, but none that was tried
    price = 0.0
    for price, amounts in itertools.islice(shop.attacks(), tries):
        if not is_open.any():
            break
        broken = is_open & breaks(shop.budget(amounts))
        cost[broken] = price
        is_open &= ~broken
    cost[is_open] = price
    return cost


@dataclass(frozen=True)
class _Shop:
    """What an attacker can buy.

    Attributes:
        prices: What each kind of change costs.
        priced: Kinds of changes that cost something. An attack is one amount of each of them.
        free: Kinds of changes that cost nothing, of which every attack makes any number.
    """

    prices: Prices
    priced: tuple[str, ...]
    free: tuple[str, ...]

    @classmethod
    def of(cls, prices: Prices) -> "_Shop":
        """Returns what can be bought at some prices. Edges of injected nodes are of no use without such nodes."""
        price_of = {kind: _price(prices, kind) for kind in KINDS}
        if math.isinf(prices.inject_nodes):
            del price_of["edges_per_injected"]
        return cls(
            prices=prices,
            priced=tuple(kind for kind, price in price_of.items() if 0 < price < math.inf),
            free=tuple(kind for kind, price in price_of.items() if price == 0),
        )

    def budget(self, amounts: Sequence[float]) -> Budget:
        """Returns the budget of an attack."""
        counts: dict[str, Any] = dict(zip(self.priced, amounts, strict=True)) | dict.fromkeys(self.free, math.inf)
        counts["target_features"] = counts.get("target_features", 0) > 0
        return Budget(edges_per_injected=0).but(**counts)

    def cost(self, amounts: Sequence[int]) -> float:
        """Returns what an attack costs."""
        number_of = dict(zip(self.priced, amounts, strict=True))
        edges_per_node = number_of.pop("edges_per_injected", 0)
        nodes = math.inf if "inject_nodes" in self.free else number_of.get("inject_nodes", 0)
        cost = sum(_price(self.prices, kind) * number for kind, number in number_of.items())
        if edges_per_node and nodes:
            cost += self.prices.injected_edges * edges_per_node * nodes
        return cost

    def attacks(self) -> Iterator[tuple[float, tuple[int, ...]]]:
        """Yields all attacks with their costs, the cheapest first."""
        nothing = (0,) * len(self.priced)
        waiting = [(0.0, nothing)]
        seen = {nothing}
        while waiting:
            cost, amounts = heappop(waiting)
            yield cost, amounts
            for larger in self._one_more(amounts):
                larger_cost = self.cost(larger)
                if larger not in seen and math.isfinite(larger_cost):
                    seen.add(larger)
                    heappush(waiting, (larger_cost, larger))

    def _one_more(self, amounts: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        """Yields the attacks with one change more. The target's own features change once."""
        for i, kind in enumerate(self.priced):
            if kind != "target_features" or amounts[i] == 0:
                yield (*amounts[:i], amounts[i] + 1, *amounts[i + 1 :])


def _price(prices: Prices, kind: str) -> float:
    """Returns the price of one change of a kind."""
    return float(prices.injected_edges if kind == "edges_per_injected" else getattr(prices, kind))


def _breaks(contents: Contents, label: int | None) -> Callable[[Budget], BoolArray]:
    """Returns a function from a budget to the targets whose label may change, or may become ``label``, ``[n]``."""
    checker = checked(contents)
    if label is None:
        return lambda budget: ~checker.holds(budget)
    return lambda budget: checker.possible(budget)[:, label]
