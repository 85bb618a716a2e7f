"""The ballots counted a second time, for the verifier.

This module shares no code with ``theorems`` and ``evidence``, which made the statements, and works differently on
purpose: it spells out what each division covers instead of reading it from the table in ``rules``, lays out ballots one
by one, and finds the worst attack by trying how many ballots are moved in each tier instead of by a closed formula.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from agnncert.proof.ballots import Ballots
from agnncert.proof.budget import COUNTS, Budget

Numbers = npt.NDArray[Any]

BALLOTS_AT_ONCE = 10_000_000


@dataclass(frozen=True)
class Limits:
    """How many ballots of each target can move: at all, outside the reached ones, among the unlisted ones.

    ``covered`` is False where the division's theorem says nothing about the attack.
    """

    all: Numbers
    beyond: Numbers
    unlisted: Numbers
    covered: Numbers


@dataclass(frozen=True)
class Piles:
    """The ballots of some targets, sorted by tier: 0 reached, 1 listed but not reached, 2 unlisted.

    Attributes:
        ballots: The ballots of all targets.
        targets: Which of the targets are sorted here.
        label: Winner of the ballots as cast, shape ``[n]``.
        lead: Votes by which the winner is ahead of each class when all unstable ballots go to that class,
            less one if the class wins ties; shape ``[n, C]``.
        for_class: Stable ballots for each class in each tier, shape ``[n, 3, C]``.
        size: Stable ballots in each tier, abstentions included, shape ``[n, 3]``.
        num_reached: Ballots in the first tier, stable or not, shape ``[n]``.
    """

    ballots: Ballots
    targets: slice
    label: Numbers
    lead: Numbers
    for_class: Numbers
    size: Numbers
    num_reached: Numbers

    def radius(self) -> Numbers:
        """How many ballots may change, each closing a lead by two, before another class wins; -1 if one already may."""
        radius = np.full(len(self.label), self.ballots.votes.num_groups)
        for k in range(self.lead.shape[1]):
            rival = self.label != k
            radius[rival] = np.minimum(radius[rival], np.floor_divide(self.lead[rival, k], 2))
        return np.asarray(np.maximum(radius, -1))

    def holds(self, limits: Limits) -> npt.NDArray[np.bool_]:
        """Whether no allowed choice of moved ballots lets another class win, shape ``[n]``."""
        safe = limits.covered.copy()
        two = np.take_along_axis(self.for_class, self.label[:, None, None], axis=2)[:, :, 0]
        for k in range(self.lead.shape[1]):
            rival = self.label != k
            one = self.size - two - self.for_class[:, :, k]
            safe &= ~rival | (self.lead[:, k] >= self._worst(two, one, limits))
        return np.asarray(safe)

    def _worst(self, two: Numbers, one: Numbers, limits: Limits) -> Numbers:
        """The largest gain of a rival on the winner.

        Args:
            two: Ballots in each tier that gain two when moved (they were for the winner), shape ``[n, 3]``.
            one: Ballots in each tier that gain one, same shape. The others gain nothing.
            limits: How many can move.
        """
        worst = np.zeros(len(self.label))
        for middle in range(int(self.size[:, 1].max(initial=0)) + 1):
            possible = (middle <= self.size[:, 1]) & (middle <= limits.beyond) & (middle <= limits.all)
            most = np.minimum(self.size[:, 2], np.minimum(limits.unlisted, limits.beyond - middle))
            most = np.maximum(np.minimum(most, limits.all - middle), 0)
            left = limits.all - middle
            # The gain is concave in the number of unlisted ballots moved, and bends only at these numbers.
            for bend in (0, most, two[:, 2], two[:, 2] + one[:, 2], left - two[:, 0], left - two[:, 0] - one[:, 0]):
                outside = np.clip(bend, 0, most)
                gain = _top(two[:, 0], one[:, 0], left - outside)
                gain = gain + _top(two[:, 1], one[:, 1], middle) + _top(two[:, 2], one[:, 2], outside)
                worst = np.where(possible, np.maximum(worst, gain), worst)
        return worst


def _top(two: Numbers, one: Numbers, moved: Any) -> Numbers:
    """The gain from the ``moved`` ballots of a pile that gain most."""
    return np.asarray(2 * np.minimum(moved, two) + np.minimum(np.maximum(moved - two, 0), one))


def sort_ballots(ballots: Ballots) -> Iterator[Piles]:
    """Lays out all ballots and sorts them into piles, some targets at a time."""
    step = max(1, BALLOTS_AT_ONCE // ballots.votes.num_groups)
    for start in range(0, ballots.num_targets, step):
        yield _sort(ballots, slice(start, min(start + step, ballots.num_targets)))


def _sort(ballots: Ballots, targets: slice) -> Piles:
    votes, n = ballots.votes, targets.stop - targets.start
    ballot = np.tile(votes.default[targets, None], (1, votes.num_groups))
    stable = np.tile(votes.default_stable[targets, None], (1, votes.num_groups))
    tier = np.full(ballot.shape, 2, dtype=np.int8)
    for_targets = votes.indptr[targets.start : targets.stop + 1]
    listed = slice(for_targets[0], for_targets[-1])
    place = np.repeat(np.arange(n), np.diff(for_targets)), votes.group[listed]
    ballot[place], stable[place] = votes.ballot[listed], votes.stable[listed]
    tier[place] = np.where(votes.reached[listed], 0, 1)

    columns = votes.num_classes + 1  # column 0 is for abstentions
    pile = (np.arange(n)[:, None] * 3 + tier) * columns + ballot + 1
    counted = np.bincount(pile[stable], minlength=n * 3 * columns).reshape(n, 3, columns)
    cast = np.bincount(pile.ravel(), minlength=n * 3 * columns).reshape(n, 3, columns).sum(axis=1)[:, 1:]
    label = np.zeros(n, dtype=np.int64)
    for k in range(votes.num_classes):  # a later class must be strictly ahead: ties stay with the smaller one
        label[cast[:, k] > cast[np.arange(n), label]] = k
    firm = counted.sum(axis=1)[:, 1:]
    lead = firm[np.arange(n), label][:, None] - firm - (~stable).sum(axis=1)[:, None]
    lead -= label[:, None] > np.arange(votes.num_classes)
    size = counted.sum(axis=2)
    return Piles(ballots, targets, label, lead, counted[:, :, 1:], size, (tier == 0).sum(axis=1))


def limits(piles: Piles, budget: Budget, **instead: Numbers) -> Limits:
    """How many ballots an attacker can move, by the theorem of the division.

    Args:
        piles: The targets.
        budget: What the attacker may do.
        **instead: Fields of the budget that differ by target, each of shape ``[n]``.
    """
    attack = {name: getattr(budget, name) + np.zeros(len(piles.label)) for name in COUNTS} | instead
    division, task = piles.ballots.rule.split("/")
    own = 1 if budget.target_features else 0
    if division == "edge-centric":
        bound = _edge_centric(piles, attack, task)
    elif division in ("node-centric", "gated"):
        bound = _node_centric(piles, attack, task, own)
    else:
        bound = _by_price(piles.ballots, division, attack, own)
    if own and (task == "graph" or division in ("edge-centric", "node-centric", "gnncert-e")):
        bound.covered[:] = False
    if piles.ballots.ids == "row":
        bound.covered[attack["delete_nodes"] > 0] = False
    return bound


def _edge_centric(piles: Piles, attack: dict[str, Numbers], task: str) -> Limits:
    """Each edge moves one ballot; deleted and changed nodes move those that the cover table states.

    Beyond the reached ballots, a node task needs a new neighbour for each ballot and a graph task a new edge.
    """
    brought = _product(attack["inject_nodes"], attack["edges_per_injected"])
    new = attack["add_edges"] + (np.minimum(brought, attack["inject_nodes"]) if task == "node" else brought)
    nodes = attack["delete_nodes"] + attack["change_features"]
    moved = brought + attack["add_edges"] + attack["delete_edges"] + attack["change_edges"]
    return _limits(moved + _covered(piles, nodes), new, new)


def _node_centric(piles: Piles, attack: dict[str, Numbers], task: str, own: int) -> Limits:
    """Each edge and each node moves one ballot; in which tier depends on the task."""
    nodes = attack["delete_nodes"] + attack["change_features"]
    edges = attack["add_edges"] + attack["delete_edges"] + attack["change_edges"]
    if task == "graph":
        touched = nodes + attack["inject_nodes"]
        return _limits(touched + edges, touched, attack["inject_nodes"])
    joined = np.where(attack["edges_per_injected"] > 0, attack["inject_nodes"], 0)
    new = joined + attack["add_edges"]
    return _limits(joined + edges + np.minimum(nodes, piles.num_reached) + own, new + own, new)


def _by_price(ballots: Ballots, division: str, attack: dict[str, Numbers], own: int) -> Limits:
    """Any ballot may move, and each change has a price: GNNCert's divisions and users' own."""
    edges = attack["add_edges"] + attack["delete_edges"] + attack["change_edges"]
    features, no_nodes = attack["change_features"] + own, attack["inject_nodes"] + attack["delete_nodes"] == 0
    if division == "gnncert-e":
        return _limits(edges, edges, edges, no_nodes & (features == own))
    if division == "gnncert-n":
        return _limits(features, features, features, no_nodes & (edges == 0))
    if division == "gnncert-en":
        height, width = ballots.parameters["edge_groups"], ballots.parameters["feature_groups"]
        untouched = np.maximum(height - edges, 0) * np.maximum(width - features, 0)
        moved = height * width - untouched
        return _limits(moved, moved, moved, no_nodes)
    units = attack | {"edges_per_injected": _product(attack["inject_nodes"], attack["edges_per_injected"])}
    units["target_features"] = np.full(len(edges), float(own))
    moved, covered = np.zeros(len(edges)), np.ones(len(edges), dtype=bool)
    for name, amount in units.items():
        price = ballots.parameters.get(name)
        if price is None:
            covered &= amount == 0
        elif price > 0:
            moved += amount * price
    return _limits(moved, moved, moved, covered)


def _limits(moved: Numbers, beyond: Numbers, unlisted: Numbers, covered: Numbers | None = None) -> Limits:
    return Limits(moved, beyond, unlisted, np.ones(len(moved), dtype=bool) if covered is None else covered)


def _product(a: Numbers, b: Numbers) -> Numbers:
    return np.array([x * y if x and y else 0.0 for x, y in zip(a.tolist(), b.tolist(), strict=True)])


def _covered(piles: Piles, nodes: Numbers) -> Numbers:
    """How many ballots that many nodes reach at worst: one row of the cover table per target."""
    cover = piles.ballots.cover
    ends = piles.ballots.cover_ptr[piles.targets.start : piles.targets.stop + 1].tolist()
    reached = []
    for start, stop, k in zip(ends[:-1], ends[1:], nodes.tolist(), strict=True):
        reached.append(cover[start + int(min(k, stop - start)) - 1] if k and stop > start else 0)
    return np.array(reached, dtype=np.float64)


def right_neighbours(piles: Piles, stated: Numbers) -> npt.NDArray[np.bool_]:
    """Whether the stated number of new neighbours, with unlimited changes elsewhere, is withstood and one more not."""
    if piles.ballots.rule.endswith("/graph"):
        return np.asarray(stated == -1)
    deleted = math.inf if piles.ballots.ids == "node_id" else 0
    rest = Budget(delete_edges=math.inf, change_edges=math.inf, delete_nodes=deleted, change_features=math.inf)
    whole = (stated >= -1) & ((stated == np.floor(stated)) | np.isinf(stated))
    amount = np.where(whole, stated, 0)
    withstands = (amount < 0) | piles.holds(limits(piles, rest, add_edges=np.maximum(amount, 0)))
    withstands_more = piles.holds(limits(piles, rest, add_edges=np.where(np.isinf(amount), 0, amount + 1)))
    return np.asarray(whole & withstands & (np.isinf(amount) | ~withstands_more))


def prices(piles: Piles, budget: Budget) -> Numbers:
    """The fewest new neighbours with which each target breaks; infinite if the whole budget does not break it.

    Zero for divisions in which any ballot can move without new neighbours. If the attacker may delete or change targets
    themselves, these are the prices of the other targets, see :func:`broken`.
    """
    if budget.target_features:
        budget = budget.but(target_features=False, change_features=budget.change_features + 1)
    full = limits(piles, budget)
    fails = ~piles.holds(full)
    if piles.ballots.rule not in ("edge-centric/node", "node-centric/node", "gated/node") or not fails.any():
        return np.where(fails, 0.0, math.inf)
    low, high = np.zeros(len(fails)), np.minimum(full.beyond, piles.ballots.votes.num_groups)
    while (low < high).any():
        middle = np.floor((low + high) / 2)
        within = Limits(full.all, np.minimum(full.beyond, middle), np.minimum(full.unlisted, middle), full.covered)
        enough = ~piles.holds(within)
        low, high = np.where(enough, low, np.minimum(middle + 1, high)), np.where(enough, middle, high)
    return np.where(fails, low, math.inf)


def broken(task: str, budget: Budget, prices: Numbers, fails: Numbers) -> int:
    """How many targets one attacked graph can break: the cheapest ones first, while new neighbours last.

    Args:
        task: ``"node"`` or ``"graph"``; an attacked graph is one target of a graph task.
        budget: What the attacker may do.
        prices: As from :func:`prices`, shape ``[n]``.
        fails: Targets that do not hold against ``budget`` one by one, shape ``[n]``.
    """
    if task == "graph":
        return int(fails.any())
    touched = budget.delete_nodes + min(budget.change_features + 1, fails.sum()) if budget.target_features else 0.0
    brings_edges = budget.inject_nodes and budget.edges_per_injected  # asked because 0 times infinity is NaN
    left = 2 * budget.add_edges + (budget.inject_nodes * budget.edges_per_injected if brings_edges else 0)
    bought = 0
    for price in sorted(prices[np.isfinite(prices)].tolist()):
        if price > left:
            break
        left, bought = left - price, bought + 1
    return int(min(len(prices), bought + touched))
