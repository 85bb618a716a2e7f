"""The votes counted a second time, for the verifier.

This module shares no code with ``theorems`` and ``evidence``, which made the statements, and works differently on
purpose: it spells out what each division covers instead of reading it from the table in ``rules``, and finds the worst
attack by moving votes pile by pile, the most harmful ones first, instead of by a closed formula.

A file lists few votes and counts the others, so nothing here is laid out per subgraph or per class: time and memory
follow the number of listed votes and targets.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from agnncert.certificates.budget import COUNTS, Budget
from agnncert.certificates.votes import VoteRecord, Votes
from agnncert.verifier import recount_per_neighbour as own
from agnncert.verifier.recount_per_neighbour import covered_by, product

Numbers = npt.NDArray[Any]

VOTES_AT_ONCE = 150_000


@dataclass(frozen=True)
class Limits:
    """How many votes of each target can move: at all, outside the reached ones, among the unlisted ones.

    ``covered`` is False where the division's theorem says nothing about the attack.
    """

    all: Numbers
    beyond: Numbers
    unlisted: Numbers
    covered: Numbers


@dataclass(frozen=True)
class Piles:
    """The votes of some targets, sorted by tier: 0 reached, 1 listed but not reached, 2 unlisted.

    A *rival* is a class that might win instead of a target's label. Of classes with equally many votes in every pile
    only the one that lacks least is kept. In particular one class stands for all those without votes.

    Attributes:
        votes: The votes of all targets.
        targets: Which of the targets are sorted here.
        label: Winner of the votes as cast, and of the prior, shape ``[n]``.
        num_reached: Votes in the first tier, stable or not, shape ``[n]``.
        owner: Whose rival it is: a number below ``n``, ascending, shape ``[r]``.
        rival: Its class, shape ``[r]``.
        lead: Votes by which the winner is ahead of each rival, priors included, when all unstable votes and a prior
            in doubt go to that rival, less one if the rival wins ties, shape ``[r]``.
        two: Stable votes in each tier that gain the rival two when moved (they were for the winner), ``[3, r]``.
        one: Stable votes in each tier that gain it one (they were for a third class, or abstained), ``[3, r]``.
        one_way: Of both kinds, how many are of pairs that have one direction only, where pairs have groups of their
            own, shape ``[2, r]``.
    """

    record: VoteRecord
    targets: slice
    label: Numbers
    num_reached: Numbers
    owner: Numbers
    rival: Numbers
    lead: Numbers
    two: Numbers
    one: Numbers
    one_way: Numbers

    def radius(self) -> Numbers:
        """How many votes may change, the most harmful first, before another class wins; -1 if one already may."""
        if own.is_per_neighbour(self.record):
            return own.radius(self, altering=True)
        radius = np.full(len(self.label), self.record.votes.num_groups)
        two, one = self.two.sum(axis=0), self.one.sum(axis=0)
        # Each of the first votes gains the rival two; once they are used up, each of the others gains it one.
        by_twos, after_twos = np.floor_divide(self.lead, 2), two + (self.lead - 2 * two)
        moved = np.where(self.lead < 2 * two, by_twos, after_twos)
        moved = np.where(self.lead >= 2 * two + one, math.inf, moved)
        harmful = np.isfinite(moved)
        np.minimum.at(radius, self.owner[harmful], moved[harmful].astype(np.int64))
        return np.asarray(np.maximum(radius, -1))

    def holds(self, limits: Limits | own.Changes) -> npt.NDArray[np.bool_]:
        """Whether no allowed choice of moved votes lets another class win, shape ``[n]``."""
        return np.asarray(limits.covered & ~self.marked(self.wins(limits)))

    def structure_radius(self) -> Numbers | None:
        """As :meth:`radius`, of edges and nodes added and deleted alone; None where that is not stated."""
        return own.radius(self, altering=False) if own.is_per_neighbour(self.record) else None

    def wins(self, limits: Limits | own.Changes) -> npt.NDArray[np.bool_]:
        """Which rivals win if as many votes move as ``limits`` allow, shape ``[r]``."""
        if isinstance(limits, own.Changes):
            return np.asarray(own.gain(self, limits) > self.lead)
        allowed = (limit[self.owner] for limit in (limits.all, limits.beyond, limits.unlisted))
        return np.asarray(self.gain(slice(None), *allowed) > self.lead)

    def marked(self, rivals: Numbers) -> npt.NDArray[np.bool_]:
        """Which targets have one of the rivals that are marked, shape ``[n]``."""
        marked = np.zeros(len(self.label), dtype=bool)
        marked[self.owner[rivals]] = True
        return marked

    @cached_property
    def tiers(self) -> list[int]:
        """The tiers that hold any votes of interest."""
        return [tier for tier in (0, 1, 2) if self.two[tier].any() or self.one[tier].any()]

    def gain(self, rivals: Numbers | slice, in_all: Numbers, beyond: Numbers, unlisted: Numbers) -> Numbers:
        """The most that each rival can gain on the winner if at most these numbers of votes move, one per rival.

        Votes that gain two are moved before those that gain one. Since the limits lie one within the other, it
        does not matter from which tier: whichever are moved first, equally many can be moved.
        """
        gain = np.zeros(len(in_all))
        for worth, piles in ((2, self.two), (1, self.one)):
            for tier in self.tiers:
                moved = np.minimum(piles[tier, rivals], in_all)
                if tier > 0:
                    moved = np.minimum(moved, beyond)
                    if tier > 1:
                        moved = np.minimum(moved, unlisted)
                        unlisted = unlisted - moved
                    beyond = beyond - moved
                in_all = in_all - moved
                gain += worth * moved
        return gain


def sort_votes(record: VoteRecord) -> Iterator[Piles]:
    """Sorts all votes into piles, some targets at a time."""
    return (sort_part(record, targets) for targets in parts_of(record))


def parts_of(record: VoteRecord) -> list[slice]:
    """Consecutive targets that are sorted together, so that memory follows no more than a few votes."""
    n = len(record.votes.default)
    entries = record.votes.indptr + np.arange(n + 1)  # each target also has unlisted votes
    parts, start = [], 0
    while start < n:
        stop = int(np.searchsorted(entries, entries[start] + VOTES_AT_ONCE, side="right")) - 1
        stop = min(max(stop, start + 1), n)
        parts.append(slice(start, stop))
        start = stop
    return parts


def sort_part(record: VoteRecord, targets: slice) -> Piles:
    """Sorts the votes of consecutive targets into piles."""
    votes, n = record.votes, targets.stop - targets.start
    ends = votes.indptr[targets.start : targets.stop + 1]
    listed, of_target = slice(ends[0], ends[-1]), np.repeat(np.arange(n), np.diff(ends))
    owner, vote, stable, tier, number = _heaps(votes, targets, listed, of_target)

    voting = (vote >= 0) & (number > 0)
    voted = owner[voting] * votes.num_classes + vote[voting]
    pair = _distinct(voted)
    pair = _distinct(np.concatenate([pair, *_without_votes(record, targets, pair)]))
    voter, choice = pair // votes.num_classes, pair % votes.num_classes
    place = np.searchsorted(pair, voted)
    cast = _add_up(place, number[voting], len(pair))
    firm = _add_up(tier[voting] * len(pair) + place, np.where(stable, number, 0)[voting], 3 * len(pair)).reshape(3, -1)
    prior, followed, in_doubt = _priors(record, targets, voter, choice)
    label = _winners(voter, choice, cast + prior + followed, n)
    own = choice == label[voter]
    for_label, label_prior = firm[:, own], prior[own]  # each target has one label
    size = _add_up(tier * n + owner, np.where(stable, number, 0), 3 * n).reshape(3, n)

    who, which, firm, prior = voter[~own], choice[~own], firm[:, ~own], prior[~own]
    unstable = votes.num_groups - size.sum(axis=0)
    ahead = label_prior[who] - prior - in_doubt[who]
    lead = (for_label.sum(axis=0) - unstable)[who] - firm.sum(axis=0) + ahead - (which < label[who])
    turnable = _one_way(record, listed, of_target, label, who, which)
    constant = which == (record.voting_rule.empty if isinstance(record.voting_rule.empty, int) else -1)
    kept = _least_of_equals(who, lead, [*firm, *turnable, constant])
    who, which, firm, lead, turnable = who[kept], which[kept], firm[:, kept], lead[kept], turnable[:, kept]
    reached = _add_up(owner, np.where(tier == 0, number, 0), n)
    two, one = for_label[:, who].astype(np.float64), (size - for_label)[:, who].astype(np.float64) - firm
    return Piles(record, targets, label, reached, who, which, lead, two, one, turnable)


def _heaps(votes: Votes, targets: slice, listed: slice, of_target: Numbers) -> tuple[Numbers, ...]:
    """Votes of a target that are alike, put together: owner, class, whether stable, tier, and how many they are.

    The unlisted votes of a target are one heap, whatever the listed ones are.
    """
    classes, n = votes.num_classes + 1, targets.stop - targets.start  # one more: none at all
    kind = of_target * classes + votes.vote[listed]
    kind = np.sort((kind * 2 + votes.stable[listed]) * 2 + ~votes.reached[listed])
    first = np.flatnonzero(np.concatenate([[True], kind[1:] != kind[:-1]])[: len(kind)])
    number, kind = np.diff(first, append=len(kind)), kind[first] + 4
    owner, vote = kind // (4 * classes), kind // 4 % classes - 1
    unlisted = votes.num_groups - np.diff(votes.indptr[targets.start : targets.stop + 1])
    return (
        np.concatenate([owner, np.arange(n)]),
        np.concatenate([vote, votes.default[targets]]),
        np.concatenate([kind // 2 % 2 == 1, votes.default_stable[targets]]),
        np.concatenate([kind % 2, np.full(n, 2)]),
        np.concatenate([number, unlisted]),
    )


def _distinct(numbers: Numbers) -> Numbers:
    """The numbers, ascending and each of them once; numpy's own ``unique`` takes several times as long."""
    ordered = np.sort(numbers)
    return np.asarray(ordered[np.concatenate([[True], ordered[1:] != ordered[:-1]])[: len(ordered)]])


def _add_up(place: Numbers, number: Numbers, length: int) -> Numbers:
    """Sums of numbers by place. They are votes of one target, 2**31 at most, so that floats hold them exactly."""
    return np.bincount(place, weights=number, minlength=length).astype(np.int64)


def _priors(record: VoteRecord, targets: slice, voter: Numbers, choice: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    """Votes that each of some classes of some targets starts with: certain ones, and ones in doubt; and how many of a
    target's are in doubt.
    """
    certain, followed = _same_for_all(record)[choice], np.zeros(len(choice), dtype=np.int64)
    in_doubt = np.zeros(targets.stop - targets.start, dtype=np.int64)
    starts_with = record.voting_rule.prior
    if record.no_edge is None or record.no_edge_stable is None or isinstance(starts_with, tuple):
        return certain, followed, in_doubt
    stable = record.no_edge_stable[targets]
    favoured = np.where(record.no_edge[targets][voter] == choice, starts_with, 0)
    in_doubt[~stable] = abs(starts_with)
    return certain + np.where(stable[voter], favoured, 0), np.where(stable[voter], 0, favoured), in_doubt


def _same_for_all(record: VoteRecord) -> Numbers:
    """Votes that each class starts with, whatever the target.

    Where every neighbour has its own group, empty groups are beyond number: instead of their votes, one vote of
    their class is taken away for each group that is not empty. All ``num_groups`` are counted elsewhere.
    """
    starts_with, constant = record.voting_rule.prior, record.voting_rule.empty
    classes = np.zeros(record.votes.num_classes, dtype=np.int64)
    if isinstance(starts_with, tuple):
        classes += np.array(starts_with)
    if own.is_per_neighbour(record) and isinstance(constant, int):
        classes[constant] -= record.votes.num_groups
    return classes


def _without_votes(record: VoteRecord, targets: slice, pair: Numbers) -> list[Numbers]:
    """Classes without votes but that may win all the same, as pairs ``target * num_classes + class``.

    These are the class of the prior, and of the others the two that come first in order of their prior, the smaller one
    if it is the same: one of them may be the label, and the other one then comes closest to it.

    Args:
        votes: The votes.
        targets: Which targets.
        pair: The classes that somebody voted for, ascending.
    """
    n, classes = targets.stop - targets.start, record.votes.num_classes
    by_prior = np.lexsort((np.arange(classes), -_same_for_all(record)))
    rank = np.empty(classes, dtype=np.int64)
    rank[by_prior] = np.arange(classes)
    found = []
    if record.no_edge is not None:
        found.append(np.arange(n) * classes + record.no_edge[targets].astype(np.int64))
    if own.is_per_neighbour(record) and isinstance(record.voting_rule.empty, int):
        found.append(
            np.arange(n) * classes + record.voting_rule.empty
        )  # every vote that goes becomes one of this class
    taken = _distinct(np.concatenate([pair, *found]))
    for _ in range(2):
        target, missing = _first_missing(taken // classes, rank[taken % classes], n, classes)
        found.append(target * classes + by_prior[missing])
        taken = np.concatenate([taken, found[-1]])
    return found


def _first_missing(target: Numbers, rank: Numbers, n: int, classes: int) -> tuple[Numbers, Numbers]:
    """The smallest rank below ``classes`` that each of ``n`` targets does not have, with its target; some have all."""
    ordered = np.sort(target * classes + rank)
    target, rank = ordered // classes, ordered % classes
    starts = np.searchsorted(target, np.arange(n))
    in_a_row = rank == np.arange(len(target)) - starts[target]  # 0, 1, 2, … without a gap
    smallest = np.bincount(target[in_a_row], minlength=n)
    with_gap = np.flatnonzero(smallest < classes)
    return with_gap, smallest[with_gap]


def _winners(voter: Numbers, choice: Numbers, score: Numbers, n: int) -> Numbers:
    """The class with the best score of each target, the smaller one if several have it; targets and classes ascend."""
    if not n:
        return np.zeros(0, dtype=np.int64)
    best = np.maximum.reduceat(score, np.searchsorted(voter, np.arange(n)))
    winners = np.flatnonzero(score == best[voter])
    return np.asarray(choice[winners[np.searchsorted(voter[winners], np.arange(n))]])


def _one_way(
    record: VoteRecord, listed: slice, of_target: Numbers, label: Numbers, who: Numbers, which: Numbers
) -> Numbers:
    """Stable votes of pairs with one direction: for the winner, and for neither it nor the rival, ``[2, r]``."""
    if record.one_way is None:
        return np.zeros((2, len(who)))
    votes = record.votes
    flagged = record.one_way[listed] & votes.stable[listed]
    choice, target = votes.vote[listed][flagged].astype(np.int64), of_target[flagged]
    in_all = np.bincount(target, minlength=len(label))
    for_label = np.bincount(target[choice == label[target]], minlength=len(label))
    pair, number = np.unique((target * votes.num_classes + choice)[choice >= 0], return_counts=True)
    wanted = who * votes.num_classes + which
    place = np.searchsorted(pair, wanted)
    for_rival = np.where(np.append(pair, -1)[place] == wanted, np.append(number, 0)[place], 0)
    return np.stack([for_label[who], in_all[who] - for_label[who] - for_rival]).astype(np.float64)


def _least_of_equals(who: Numbers, lead: Numbers, piles: list[Numbers]) -> Numbers:
    """Places of the rivals to keep: of those of one target with equal piles, the one that lacks least."""
    piles = [pile for pile in piles if len(pile) and pile.min() < pile.max()]  # what is the same tells nobody apart
    order = np.lexsort((lead, *piles, who))
    first = np.arange(len(order)) == 0
    for key in (who, *piles):
        ordered = key[order]
        first[1:] |= ordered[1:] != ordered[:-1]
    return np.asarray(order[first])


def limits(piles: Piles, budget: Budget, **instead: Numbers) -> Limits | own.Changes:
    """How many votes an attacker can move, by the theorem of the division.

    Args:
        piles: The targets.
        budget: What the attacker may do.
        **instead: Fields of the budget that differ by target, each of shape ``[n]``.
    """
    attack = {name: getattr(budget, name) + np.zeros(len(piles.label)) for name in COUNTS} | instead
    division, task = piles.record.theorem.split("/")
    itself = 1 if budget.target_features else 0
    if own.is_per_neighbour(piles.record):
        return own.changes(piles, attack, division, task, covered=not itself)
    if division == "edge-centric":
        bound = _edge_centric(piles, attack, task)
    elif division in ("node-centric", "gated"):
        bound = _node_centric(piles, attack, task, itself)
    else:
        bound = _by_price(piles.record, division, attack, itself)
    if itself and (task == "graph" or division in ("edge-centric", "node-centric", "gnncert-e")):
        bound.covered[:] = False
    if piles.record.ids == "row":
        bound.covered[attack["delete_nodes"] > 0] = False
    return bound


def _edge_centric(piles: Piles, attack: dict[str, Numbers], task: str) -> Limits:
    """Each edge moves one vote; deleted and changed nodes move those that the reach table states.

    Beyond the reached votes, a node task needs a new neighbour for each vote and a graph task a new edge.
    """
    brought = product(attack["inject_nodes"], attack["edges_per_injected"])
    new = attack["add_edges"] + (np.minimum(brought, attack["inject_nodes"]) if task == "node" else brought)
    nodes = attack["delete_nodes"] + attack["change_features"]
    moved = brought + attack["add_edges"] + attack["delete_edges"] + attack["change_edges"]
    return _limits(moved + covered_by(piles, nodes), new, new)


def _node_centric(piles: Piles, attack: dict[str, Numbers], task: str, own: int) -> Limits:
    """Each edge and each node moves one vote; in which tier depends on the task."""
    nodes = attack["delete_nodes"] + attack["change_features"]
    edges = attack["add_edges"] + attack["delete_edges"] + attack["change_edges"]
    if task == "graph":
        touched = nodes + attack["inject_nodes"]
        return _limits(touched + edges, touched, attack["inject_nodes"])
    joined = np.where(attack["edges_per_injected"] > 0, attack["inject_nodes"], 0)
    new = joined + attack["add_edges"]
    return _limits(joined + edges + np.minimum(nodes, piles.num_reached) + own, new + own, new)


def _by_price(record: VoteRecord, division: str, attack: dict[str, Numbers], own: int) -> Limits:
    """Any vote may move, and each change has a price: GNNCert's divisions and users' own."""
    edges = attack["add_edges"] + attack["delete_edges"] + attack["change_edges"]
    features, no_nodes = attack["change_features"] + own, attack["inject_nodes"] + attack["delete_nodes"] == 0
    if division == "gnncert-e":
        return _limits(edges, edges, edges, no_nodes & (features == own))
    if division == "gnncert-n":
        return _limits(features, features, features, no_nodes & (edges == 0))
    if division == "gnncert-en":
        height, width = record.parameters["edge_groups"], record.parameters["feature_groups"]
        untouched = np.maximum(height - edges, 0) * np.maximum(width - features, 0)
        moved = height * width - untouched
        return _limits(moved, moved, moved, no_nodes)
    units = attack | {"edges_per_injected": product(attack["inject_nodes"], attack["edges_per_injected"])}
    units["target_features"] = np.full(len(edges), float(own))
    moved, covered = np.zeros(len(edges)), np.ones(len(edges), dtype=bool)
    for name, amount in units.items():
        price = record.parameters.get(name)
        if price is None:
            covered &= amount == 0
        elif price > 0:
            moved += amount * price
    return _limits(moved, moved, moved, covered)


def _limits(moved: Numbers, beyond: Numbers, unlisted: Numbers, covered: Numbers | None = None) -> Limits:
    return Limits(moved, beyond, unlisted, np.ones(len(moved), dtype=bool) if covered is None else covered)


def right_neighbours(piles: Piles, stated: Numbers) -> npt.NDArray[np.bool_]:
    """Whether the stated number of new neighbours is the largest that is certified with unlimited changes elsewhere."""
    if piles.record.theorem.endswith("/graph"):
        return np.asarray(stated == -1)
    deleted = math.inf if piles.record.ids == "node_id" else 0
    rest = Budget(delete_edges=math.inf, change_edges=math.inf, delete_nodes=deleted, change_features=math.inf)
    whole = (stated >= -1) & ((stated == np.floor(stated)) | np.isinf(stated))
    amount = np.where(whole, stated, 0)
    withstands = (amount < 0) | piles.holds(limits(piles, rest, add_edges=np.maximum(amount, 0)))
    withstands_more = piles.holds(limits(piles, rest, add_edges=np.where(np.isinf(amount), 0, amount + 1)))
    return np.asarray(whole & withstands & (np.isinf(amount) | ~withstands_more))


def prices(piles: Piles, budget: Budget) -> Numbers:
    """The fewest new neighbours with which each target breaks; infinite if the whole budget does not break it.

    Zero for divisions in which any vote can move without new neighbours. If the attacker may delete or change targets
    themselves, these are the prices of the other targets, see :func:`broken`.
    """
    if budget.target_features:
        budget = budget.but(target_features=False, change_features=budget.change_features + 1)
    full = limits(piles, budget)
    return _prices(piles, full, piles.wins(full))


def _prices(piles: Piles, full: Limits | own.Changes, wins: Numbers) -> Numbers:
    """As :func:`prices`, given what the attacker can do at most, and which rivals then win."""
    if isinstance(full, own.Changes):
        return own.new_needed(piles, full)
    fails = ~full.covered | piles.marked(wins)
    if piles.record.theorem not in ("edge-centric/node", "node-centric/node", "gated/node"):
        return np.where(fails, 0.0, math.inf)
    # Each further vote beyond the reached ones gains a rival two, then one, then nothing. So half the missing gain is
    # the least number of them; where it does not suffice, the remaining ones gain one each.
    rivals = np.flatnonzero(wins)
    owner = piles.owner[rivals]

    def missing(beyond: Numbers) -> Numbers:
        within = np.minimum(full.beyond[owner], beyond), np.minimum(full.unlisted[owner], beyond)
        return np.asarray(np.maximum(piles.lead[rivals] + 1 - piles.gain(rivals, full.all[owner], *within), 0))

    half = np.ceil(missing(np.zeros(len(rivals))) / 2)
    cheapest = np.where(full.covered, math.inf, 0.0)
    np.minimum.at(cheapest, owner, half + missing(half))
    return cheapest


def statements(piles: Piles, budget: Budget) -> tuple[Numbers, Numbers, Numbers | None]:
    """Whether each target holds against a budget, and its price as from :func:`prices`.

    Where every neighbour has its own group, also the fewest changed neighbours with which each target breaks.
    """
    full = limits(piles, budget)
    wins = piles.wins(full)
    price = prices(piles, budget) if budget.target_features else _prices(piles, full, wins)
    touches = own.touches_needed(piles, full) if isinstance(full, own.Changes) else None
    return full.covered & ~piles.marked(wins), price, touches


def broken(
    record: VoteRecord, budget: Budget, prices: Numbers, fails: Numbers, touch_prices: Numbers | None = None
) -> int:
    """How many targets one attacked graph can break: the cheapest ones first, while new neighbours last.

    Args:
        votes: The votes; an attacked graph is one target of a graph task.
        budget: What the attacker may do.
        prices: As from :func:`prices`, shape ``[n]``.
        fails: Targets that do not hold against ``budget`` one by one, shape ``[n]``.
        touch_prices: As from :func:`statements`, where every neighbour has its own group.
    """
    if record.theorem.endswith("/graph"):
        return int(fails.any())
    touched = budget.delete_nodes + min(budget.change_features + 1, fails.sum()) if budget.target_features else 0.0
    brings_edges = budget.inject_nodes and budget.edges_per_injected  # asked because 0 times infinity is NaN
    left = 2 * budget.add_edges + (budget.inject_nodes * budget.edges_per_injected if brings_edges else 0)
    bought = _bought(prices, left)
    if record.targets_per_node is not None and touch_prices is not None and not budget.target_features:
        edges = budget.add_edges + budget.delete_edges + budget.change_edges
        nodes = min(budget.delete_nodes + budget.change_features, len(record.targets_per_node))
        brought = budget.inject_nodes * budget.edges_per_injected if brings_edges else 0
        bought = min(
            bought, _bought(touch_prices, 2 * edges + brought + int(record.targets_per_node[: int(nodes)].sum()))
        )
    return int(min(len(prices), bought + touched))


def _bought(prices: Numbers, left: float) -> int:
    """How many targets can be broken with this many changes at targets, the cheapest first."""
    bought = 0
    for price, number in zip(*np.unique(prices[np.isfinite(prices)], return_counts=True), strict=True):
        cost = int(price) * int(number)
        if cost > left:
            return bought + int(left // price)
        left, bought = left - cost, bought + int(number)
    return bought
