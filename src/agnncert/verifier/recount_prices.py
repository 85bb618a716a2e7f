"""The least price of an attack that changes a label, found a second time.

Shares no code with ``proving.prices``: instead of formulas it tries attacks one after the other in the order of their
price, and asks the recount about each. The first one that breaks a target is the cheapest.
"""

import math
from collections.abc import Callable
from heapq import heappop, heappush

import numpy as np

from agnncert.certificates.budget import PRICED, Budget, Prices
from agnncert.certificates.file import Contents
from agnncert.certificates.votes import BoolArray, FloatArray
from agnncert.verifier.kinds import checker_of

MOST_TRIES = 20_000
KINDS = (*PRICED, "edges_per_injected", "target_features")


def cheapest(contents: Contents, prices: Prices, label: int | None = None, tries: int = MOST_TRIES) -> FloatArray:
    """What each target of a file costs at least, shape ``[n]``; where ``tries`` did not suffice, a lower bound.

    Injected nodes all have as many edges. A prover who lets them have different numbers may find a lower price.

    Args:
        contents: The file.
        prices: What each kind of change costs.
        label: Asks about attacks that give targets this label.
        tries: Attacks to try.
    """
    breaks = _breaks(contents, label)
    dear = [kind for kind in KINDS if 0 < _price(prices, kind) < math.inf and _useful(prices, kind)]
    free = [kind for kind in KINDS if _price(prices, kind) == 0 and _useful(prices, kind)]
    everything = _budget(dear, [math.inf] * len(dear), free)
    found = np.where(breaks(everything), math.inf, math.nan)  # NaN: nothing breaks it
    heap, seen, price = [(0.0, (0,) * len(dear))], {(0,) * len(dear)}, 0.0
    for _ in range(tries):
        if not heap or not np.isinf(found).any():
            break
        price, numbers = heappop(heap)
        found[np.isinf(found) & breaks(_budget(dear, list(numbers), free))] = price
        for place, kind in enumerate(dear):
            more = (*numbers[:place], numbers[place] + 1, *numbers[place + 1 :])
            cost = _cost(prices, dict(zip(dear, more, strict=True)), free)
            if more not in seen and math.isfinite(cost) and not (kind == "target_features" and more[place] > 1):
                seen.add(more)
                heappush(heap, (cost, more))
    return np.where(np.isnan(found), math.inf, np.where(np.isinf(found), price, found))


def _price(prices: Prices, kind: str) -> float:
    return float(getattr(prices, "injected_edges" if kind == "edges_per_injected" else kind))


def _useful(prices: Prices, kind: str) -> bool:
    return kind != "edges_per_injected" or math.isfinite(prices.inject_nodes)


def _cost(prices: Prices, numbers: dict[str, int], free: list[str]) -> float:
    edges = numbers.pop("edges_per_injected", 0)
    nodes = math.inf if "inject_nodes" in free else numbers.get("inject_nodes", 0)
    for_edges = prices.injected_edges * edges * nodes if edges and nodes else 0.0
    return for_edges + sum(_price(prices, kind) * number for kind, number in numbers.items())


def _budget(dear: list[str], numbers: list[float], free: list[str]) -> Budget:
    amounts = dict(zip(dear, numbers, strict=True)) | dict.fromkeys(free, math.inf)
    return Budget().but(**{**amounts, "target_features": amounts.get("target_features", 0) > 0})


def _breaks(contents: Contents, label: int | None) -> Callable[[Budget], BoolArray]:
    """Returns a function from a budget to the targets whose label may change, or may become ``label``, ``[n]``."""
    checker = checker_of(contents.kind)
    if label is None:
        return checker.breaks(contents)
    return lambda budget: checker.possible(contents, budget)[:, label]
