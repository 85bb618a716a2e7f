"""The least price of breaking a target, by trying every small attack: what ``cheapest`` is compared with."""

import itertools
import math
import random
from dataclasses import replace

import numpy as np

from agnncert.certificates.budget import COUNTS, Prices
from agnncert.divided.evidence import VoteEvidence
from agnncert.proving.theorems import Amounts
from tests.support.certificates import random_evidence, random_vote
from tests.support.theorems import THEOREMS

MOST = 4  # changes of each kind
MORE_PARAMETERS = {"delete_nodes": 3, "change_features": 1, "target_features": 2}  # of a user's own division
KINDS = ("add_edges", "delete_edges", "change_edges", "inject_nodes", "delete_nodes", "change_features", "target_features")  # fmt: skip


def random_prices(rng: random.Random, theorem: str) -> Prices:
    """Prices of up to three kinds of changes; all others are out of reach."""
    kinds = [
        kind for kind in KINDS if kind != "target_features" or THEOREMS[theorem].target_features or rng.random() < 0.1
    ]
    if theorem.startswith("gnncert") and rng.random() < 0.8:  # they cover few
        ends = {"gnncert-e": ("edges",), "gnncert-n": ("features",)}.get(theorem.split("/")[0], ("edges", "features"))
        kinds = [kind for kind in kinds if kind.endswith(ends)]
    chosen = rng.sample(kinds, min(len(kinds), rng.choice([1, 2, 2, 3])))
    if rng.random() < 0.15 and "inject_nodes" in kinds:
        chosen = ["add_edges", "inject_nodes"]
    prices = {kind: rng.choice([1, 1, 2, 3, 5, 0.5] + [0] * (kind != "inject_nodes")) for kind in chosen}
    if "inject_nodes" in prices:
        prices["injected_edges"] = rng.choice([0, 0, 1, 2, 4])
    return Prices(**prices)


def tried(proof: VoteEvidence, prices: Prices) -> tuple[np.ndarray, float]:
    """The least price among small attacks, and up to which price all attacks were tried."""
    block = slice(0, proof.num_targets)
    counted, facts = proof._block(block)
    best, horizon = np.full(proof.num_targets, np.inf), math.inf
    kinds = [kind for kind in KINDS if math.isfinite(getattr(prices, kind))]
    choices = []
    for kind in kinds:
        price = getattr(prices, kind)
        if kind == "target_features":
            choices.append([(0, 0), (1, 0)])
        elif kind == "inject_nodes":  # with how many edges in all; halves and quarters are exact
            edges = [math.inf] if prices.injected_edges == 0 else range(5)
            choices.append([(0, 0), *((number, total) for number in (1, 2, 4) for total in edges)])
            horizon = min(
                horizon, 3 * price, price + prices.injected_edges * 5 or math.inf if prices.injected_edges else math.inf
            )
        else:
            choices.append([(number, 0) for number in ([0, math.inf] if price == 0 else range(MOST + 1))])
            horizon = min(horizon, price * (MOST + 1) or math.inf)
    for choice in itertools.product(*choices):
        amounts, cost = dict.fromkeys(COUNTS, 0.0), 0.0
        for kind, (number, edges) in zip(kinds, choice, strict=True):
            cost += getattr(prices, kind) * number if number and getattr(prices, kind) else 0
            amounts[kind] = number
            if edges:
                cost += prices.injected_edges * edges if prices.injected_edges else 0
                amounts["edges_per_injected"] = edges / number
        own = bool(amounts.pop("target_features", 0))
        attack = Amounts(**{name: np.asarray(float(amounts[name])) for name in COUNTS}, target_features=own)
        best = np.where(proof.proof.withstands(counted, attack, facts), best, np.minimum(best, cost))
    return best, horizon


def check_prices(theorem: str, rounds: int = 12, seed: int = 3, exact: bool = True) -> int:
    """Compares prices with what trying gives; how many were finite and not zero."""
    rng, numbers, telling = random.Random(f"{seed} {theorem}"), np.random.default_rng(seed), 0
    for _ in range(rounds):
        classes = rng.choice([2, 3])
        voting_rule = random_vote(numbers, theorem, classes)
        proof = random_evidence(
            numbers, theorem, 25, num_groups=6, num_classes=classes, unstable=0.08, voting_rule=voting_rule
        )
        if theorem == "custom/node" and rng.random() < 0.5:
            proof = replace(proof, parameters=proof.parameters | MORE_PARAMETERS)
        prices = random_prices(rng, theorem)
        stated, (best, horizon) = proof.cheapest(prices), tried(proof, prices)
        assert (stated <= best + 1e-9).all(), (voting_rule, prices)  # never dearer than an attack that exists
        known = (stated < horizon) & exact
        bound = theorem == "per-pair/graph" and prices.delete_nodes < prices.change_features < math.inf
        assert bound or (stated[known] >= best[known] - 1e-9).all(), (voting_rule, prices)
        telling += int((np.isfinite(stated) & (stated > 0)).sum())
    return telling
