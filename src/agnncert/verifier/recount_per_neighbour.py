"""The part of the recount for divisions that use one group per neighbour, pair or node (``T=inf``).

Shares no code with ``per_neighbour``, and works differently: instead of closed formulas it tries the numbers at which a
gain bends, and searches radii and prices by bisection.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from agnncert.certificates.votes import VoteRecord

if TYPE_CHECKING:
    from agnncert.verifier.recount import Piles

Numbers = npt.NDArray[Any]

BEYOND_ALL = 2.0**40  # more changes than there can be votes and votes in a prior


@dataclass(frozen=True)
class Changes:
    """What happens to the votes of each target.

    At most ``new`` votes come to be, ``removed`` ones go and ``altered`` ones may become anything, of the last two
    ``both`` together; of the new ones at most ``turned`` are second directions of pairs that have one. ``covered`` is
    False where nothing is proved.
    """

    new: Numbers
    removed: Numbers
    altered: Numbers
    both: Numbers
    turned: Numbers
    covered: Numbers


def is_per_neighbour(record: VoteRecord) -> bool:
    """Whether every neighbour, pair or node has its own group."""
    return record.theorem.startswith("per-")


def changes(piles: "Piles", attack: dict[str, Numbers], division: str, task: str, covered: bool) -> Changes:
    """What each change does to the one vote that it is about; a node of a graph is in a vote for each of its pairs.

    A pair that is added is a new vote or, if it has one direction and votes belong to pairs, alters one.
    """
    brought = product(attack["inject_nodes"], attack["edges_per_injected"])
    new = attack["add_edges"] + np.minimum(brought, attack["inject_nodes"])
    removed = attack["delete_edges"] + attack["delete_nodes"]
    altered = attack["change_edges"] + attack["change_features"]
    both = removed + altered
    turned = attack["add_edges"] if division == "per-pair" else np.zeros(len(piles.label))
    if task == "graph" and division == "per-neighbour":
        new, removed, altered = attack["inject_nodes"], attack["delete_nodes"], attack["change_features"]
        both = removed + altered
    elif task == "graph":
        gone, other = attack["delete_nodes"], attack["change_features"]
        new = attack["add_edges"] + brought
        altered = attack["change_edges"] + covered_by(piles, other)
        both = attack["delete_edges"] + attack["change_edges"] + covered_by(piles, gone + other)
        removed = both  # as many as are not altered
    return Changes(new, removed, altered, both, turned, np.full(len(turned), covered))


def absent(piles: "Piles") -> tuple[Numbers, Numbers]:
    """Whether empty groups cast the label, and whether they cast the rival, shape ``[r]`` each."""
    empty = piles.record.voting_rule.empty
    cast = empty if isinstance(empty, int) else -1  # they abstain: that is no class
    return piles.label[piles.owner] == cast, piles.rival == cast


def gain(piles: "Piles", changes: Changes) -> Numbers:
    """The most that each rival gains on the winner, shape ``[r]``."""
    return _by_touching(piles, changes) + _by_adding(piles, changes)


def _by_touching(piles: "Piles", changes: Changes) -> Numbers:
    """What is gained by votes that go or are altered.

    Tries how many of the winner's votes are altered, and how many go or stay: what is gained bends at a few numbers
    only, so one of these is best.
    """
    two, one = piles.two[0], piles.one[0]
    limits = (changes.removed, changes.altered, changes.both)
    removed, altered, both = (np.minimum(part[piles.owner], two + one) for part in limits)
    of_label, of_rival = absent(piles)
    best, most = np.zeros(len(piles.owner)), np.minimum(two, altered)
    bends = (0, two, altered, altered - one, two - removed, two - both + altered, both - one - removed, both - altered)
    for bend in bends if most.any() else (0,):
        mine = np.minimum(np.maximum(bend, 0), most)
        others = np.minimum(altered - mine, one)
        left = np.minimum(removed, both - mine - others)
        mine_gone = np.minimum(left, two - mine)
        others_gone = np.minimum(left - mine_gone, one - others)
        # What is gone votes as an empty group does: for nobody, for the winner, or for the rival.
        gone = np.where(of_label, 0, np.where(of_rival, 2 * mine_gone + others_gone, mine_gone))
        best = np.maximum(best, 2 * mine + others + gone)
    return best


def _by_adding(piles: "Piles", changes: Changes) -> Numbers:
    """What new votes gain, and what is gained on top if added edges alter pairs that have one direction, instead of
    adding votes. Only what is not removed or altered anyway, ``both`` in number, gains more by being turned.
    """
    of_label, of_rival = absent(piles)
    worth = np.where(of_label, 2, np.where(of_rival, 0, 1))
    new, turned, both = (part[piles.owner] for part in (changes.new, changes.turned, changes.both))
    winners, others = piles.one_way
    by_winners = np.clip(np.minimum(turned, winners), 0, np.maximum(piles.two[0] - both, 0))
    by_all = np.clip(np.minimum(turned, winners + others), 0, np.maximum(piles.two[0] + piles.one[0] - both, 0))
    return product(new, worth) + np.where(worth < 2, by_winners, 0) + np.where(worth < 1, by_all, 0)


def radius(piles: "Piles", altering: bool) -> Numbers:
    """Certified number of changes of any kind, with or without changes that alter a vote, shape ``[n]``."""
    most = np.full(len(piles.label), piles.record.votes.num_groups)

    def breaks(number: Numbers) -> Numbers:
        return _gain_of_any(piles, number, altering) > piles.lead

    first = _first(breaks, len(piles.owner))
    ends = np.isfinite(first)
    np.minimum.at(most, piles.owner[ends], first[ends].astype(np.int64) - 1)
    return np.asarray(np.maximum(most, -1))


def _gain_of_any(piles: "Piles", number: Numbers, altering: bool) -> Numbers:
    """The most that each rival gains by this many changes, all of which may be of the kind that gains most."""
    of_label, of_rival = absent(piles)
    touching = altering | of_rival  # if empty groups cast the rival, a vote that goes is as good as altered
    twos = np.where(touching, piles.two[0], piles.one_way[0])
    ones = np.where(touching, piles.one[0], piles.one_way[1])
    twos, ones = np.where(of_label, math.inf, twos), np.where(of_rival, ones, math.inf)
    first = np.minimum(number, twos)
    return np.asarray(2 * first + np.minimum(number - first, ones))


def new_needed(piles: "Piles", full: Changes) -> Numbers:
    """The fewest new neighbours with which each target breaks if all else is spent on it; infinite if none do."""
    touched = _by_touching(piles, full)

    def breaks(number: Numbers) -> Numbers:
        fewer = replace(full, new=np.minimum(full.new, number), turned=np.minimum(full.turned, number))
        return ~full.covered | piles.marked(touched + _by_adding(piles, fewer) > piles.lead)

    return _first(breaks, len(piles.label))


def touches_needed(piles: "Piles", full: Changes) -> Numbers:
    """The fewest changes at a target that may break it, if those come first that may gain two; infinite if none do."""
    of_label, of_rival = absent(piles)
    altered, both, new, turned = (part[piles.owner] for part in (full.altered, full.both, full.new, full.turned))
    twos = np.where(of_rival, both, altered) + np.minimum(turned, piles.one_way[0])
    twos = np.minimum(twos, piles.two[0]) + np.where(of_label, new, 0)
    wins = piles.wins(full)

    def breaks(number: Numbers) -> Numbers:
        return np.asarray(wins & (number + np.minimum(number, twos) > piles.lead))

    cheapest = np.where(full.covered, math.inf, 0.0)
    np.minimum.at(cheapest, piles.owner, _first(breaks, len(piles.owner)))
    return cheapest


def _first(breaks: Callable[[Numbers], Numbers], size: int) -> Numbers:
    """The least number, from 0 on, at which each of some monotone tests is true; infinite if none is. By bisection."""
    low, high = np.full(size, -1.0), np.full(size, BEYOND_ALL)
    never = ~breaks(high)
    while (unsure := ~never & (high - low > 1)).any():  # most numbers are small: at first, each step only doubles
        middle = np.where(unsure, np.minimum(np.floor((low + high) / 2), 2 * low + 2), high)
        true = breaks(middle)
        low, high = np.where(unsure & ~true, middle, low), np.where(unsure & true, middle, high)
    return np.where(never, math.inf, high)


def product(a: Numbers, b: Numbers) -> Numbers:
    """The product; nothing of infinitely many is nothing."""
    none = (a == 0) | (b == 0)
    return np.where(none, 0.0, np.where(none, 1.0, a) * np.where(none, 1.0, b))


def covered_by(piles: "Piles", nodes: Numbers) -> Numbers:
    """How many votes that many nodes reach at worst: one row of the reach table per target."""
    ends = piles.record.reach_ptr[piles.targets.start : piles.targets.stop + 1]
    rows = piles.record.reach[ends[0] : ends[-1]]  # of these targets: the whole table may be long
    entry = np.minimum(nodes, np.diff(ends)).astype(np.int64)  # 0 if there are no nodes, or nothing to reach
    some, covered = entry > 0, np.zeros(len(entry))
    covered[some] = rows[(ends[:-1] - ends[0] + entry - 1)[some]]
    return covered
