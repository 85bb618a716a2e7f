"""Derives every statement about votes a second time, for the verifier.

This module shares no code with ``proving``, which made the statements, and works differently on purpose. The votes of a
target are sorted into ``piles``, ``limits`` says what an attack can do to them, and the worst attack is found by moving
votes pile by pile, the most harmful ones first, instead of by a closed formula.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from agnncert.certificates.budget import Budget
from agnncert.certificates.votes import BoolArray, FloatArray, IntArray, VoteRecord
from agnncert.verifier import recount_per_neighbour as per_neighbour
from agnncert.verifier.effects import Changes, Limits
from agnncert.verifier.limits import limits_under
from agnncert.verifier.piles import Piles
from agnncert.verifier.theorems.registry import recount_of


def radius(piles: Piles) -> IntArray:
    """Returns how many votes may change, the most harmful first, before another class wins, shape ``[n]``.

    It is -1 where another class may win already, and ``num_groups`` where no change of votes makes one win.
    """
    if piles.record.facts.per_neighbour:
        return per_neighbour.radius(piles, altering=True)
    twos = piles.for_label.sum(axis=0)
    ones = piles.for_others.sum(axis=0)
    # Each of the first votes gains the rival two. Once they are used up, each of the others gains it one.
    by_twos = np.floor_divide(piles.lead, 2)
    after_twos = twos + (piles.lead - 2 * twos)
    survived = np.where(piles.lead < 2 * twos, by_twos, after_twos)
    may_win = piles.lead < 2 * twos + ones
    radius = np.full(piles.num_targets, piles.record.votes.num_groups)
    np.minimum.at(radius, piles.owner[may_win], survived[may_win].astype(np.int64))
    return np.asarray(np.maximum(radius, -1))


def structure_radius(piles: Piles) -> IntArray | None:
    """Returns the radius against edges and nodes added and deleted alone, shape ``[n]``; None where none is stated."""
    if piles.record.facts.per_neighbour:
        return per_neighbour.radius(piles, altering=False)
    return None


def holds(piles: Piles, limits: Limits | Changes) -> BoolArray:
    """Tells whether no other class wins, whichever votes are moved within the limits, shape ``[n]``."""
    return limits.covered & ~piles.targets_of(_winning_rivals(piles, limits))


def _winning_rivals(piles: Piles, limits: Limits | Changes) -> BoolArray:
    """Tells which rivals can win, shape ``[r]``."""
    if isinstance(limits, Changes):
        return per_neighbour.gain(piles, limits) > piles.lead
    return _gain(piles, limits.select(piles.owner)) > piles.lead


def _gain(piles: Piles, limits: Limits) -> FloatArray:
    """Returns the most that each rival can gain on the label if votes move within the limits, shape ``[r]``.

    Votes that gain two are moved before those that gain one. Since the limits lie one within the other, it does not
    matter from which tier: whichever are moved first, equally many can be moved.

    Args:
        piles: The targets.
        limits: How many votes can move for each rival, shape ``[r]``.
    """
    gain = np.zeros(len(piles.owner))
    left = limits
    for worth, votes in ((2, piles.for_label), (1, piles.for_others)):
        for tier in piles.tiers:
            moved = np.minimum(votes[tier], left.within(tier))
            left = left.after(tier, moved)
            gain += worth * moved
    return gain


def right_neighbours(piles: Piles, stated: FloatArray) -> BoolArray:
    """Tells whether each stated number of new neighbours is the largest that is certified, shape ``[n]``.

    All that is not added may change without limit at the same time. In the graph task the number must be -1.
    """
    if piles.record.task == "graph":
        return np.asarray(stated == -1)
    budget = _anything_but_additions(piles)
    is_possible = (stated >= -1) & ((stated == np.floor(stated)) | np.isinf(stated))
    is_finite = ~np.isinf(stated)
    number = np.where(is_possible, np.maximum(stated, 0), 0)
    one_more = np.where(is_possible & is_finite, stated + 1, 0)
    survives = (stated < 0) | holds(piles, limits_under(piles, budget, add_edges=number))
    survives_more = is_finite & holds(piles, limits_under(piles, budget, add_edges=one_more))
    return np.asarray(is_possible & survives & ~survives_more)


def _anything_but_additions(piles: Piles) -> Budget:
    """Returns a budget of any number of deletions and changes. Without ids, no theorem covers a deleted node."""
    return Budget(
        delete_edges=math.inf,
        change_edges=math.inf,
        delete_nodes=math.inf if piles.record.ids == "node_id" else 0,
        change_features=math.inf,
    )


@dataclass(frozen=True)
class Answers:
    """What follows for each target from a budget, shape ``[n]`` each.

    Attributes:
        holds: Whether the label stays.
        new_neighbours_needed: The fewest new neighbours with which the target breaks if all else is spent on it.
        changes_needed: The fewest changes at the target that break it. Only stated where every neighbour has a group
            of its own, otherwise None.
    """

    holds: BoolArray
    new_neighbours_needed: FloatArray
    changes_needed: FloatArray | None


def answers(piles: Piles, budget: Budget) -> Answers:
    """Returns what follows for each target from a budget."""
    limits = limits_under(piles, budget)
    wins = _winning_rivals(piles, limits)
    if budget.target_features:
        new_neighbours = new_neighbours_needed(piles, budget)
    else:
        new_neighbours = _new_neighbours_needed(piles, limits, wins)
    return Answers(
        holds=limits.covered & ~piles.targets_of(wins),
        new_neighbours_needed=new_neighbours,
        changes_needed=per_neighbour.changes_needed(piles, limits) if isinstance(limits, Changes) else None,
    )


def join_answers(parts: Sequence[Answers]) -> Answers:
    """Returns the answers about all targets, in the order of the parts. There may be none."""
    changes = [part.changes_needed for part in parts if part.changes_needed is not None]
    return Answers(
        holds=np.concatenate([np.zeros(0, dtype=bool), *(part.holds for part in parts)]),
        new_neighbours_needed=np.concatenate([np.zeros(0), *(part.new_neighbours_needed for part in parts)]),
        changes_needed=np.concatenate(changes) if changes else None,
    )


def new_neighbours_needed(piles: Piles, budget: Budget) -> FloatArray:
    """Returns the fewest new neighbours with which each target breaks, shape ``[n]``.

    It is infinite where the whole budget does not break the target, and 0 in divisions in which any vote can move
    without new neighbours. If the attacker may delete or change targets, these are the numbers of the other targets:
    see :func:`broken`.
    """
    if budget.target_features:
        budget = budget.but(target_features=False, change_features=budget.change_features + 1)
    limits = limits_under(piles, budget)
    return _new_neighbours_needed(piles, limits, _winning_rivals(piles, limits))


def _new_neighbours_needed(piles: Piles, limits: Limits | Changes, wins: BoolArray) -> FloatArray:
    """As :func:`new_neighbours_needed`, given what the attacker can do at most, and which rivals then win."""
    if isinstance(limits, Changes):
        return per_neighbour.new_neighbours_needed(piles, limits)
    if not recount_of(piles.record.theorem).by_neighbours:
        fails = ~limits.covered | piles.targets_of(wins)
        return np.where(fails, 0.0, math.inf)
    winners = piles.select(np.flatnonzero(wins))
    # Each further vote beyond the reached ones gains a rival two, then one, then nothing. So half the missing gain is
    # the least number of them. Where it does not suffice, each of the remaining ones gains one.
    half = np.ceil(_missing_gain(winners, limits, np.zeros(len(winners.owner))) / 2)
    needed_to_win = half + _missing_gain(winners, limits, half)
    needed = np.where(limits.covered, math.inf, 0.0)
    np.minimum.at(needed, winners.owner, needed_to_win)
    return needed


def _missing_gain(piles: Piles, limits: Limits, new_neighbours: FloatArray) -> FloatArray:
    """Returns what each rival lacks of winning if that many new neighbours come, and no more, shape ``[r]``."""
    of_rivals = limits.select(piles.owner)
    fewer = replace(
        of_rivals,
        unreached=np.minimum(of_rivals.unreached, new_neighbours),
        unlisted=np.minimum(of_rivals.unlisted, new_neighbours),
    )
    return np.maximum(piles.lead + 1 - _gain(piles, fewer), 0)


def broken(record: VoteRecord, budget: Budget, answers: Answers) -> int:
    """Returns how many targets one attacked graph can break: the cheapest ones first, while the budget lasts.

    Args:
        record: The votes. In the graph task an attacked graph is one target.
        budget: What the attacker may do.
        answers: What follows from the budget for all targets.
    """
    fails = ~answers.holds
    if record.task == "graph":
        return int(fails.any())
    # Each added edge brings two targets a new neighbour, and each edge of an injected node brings one target one.
    injected_edges = _injected_edges(budget)
    num_broken = _affordable(answers.new_neighbours_needed, 2 * budget.add_edges + injected_edges)
    if budget.target_features:
        num_changed = min(budget.change_features + 1, int(fails.sum()))
        return int(min(record.num_targets, num_broken + budget.delete_nodes + num_changed))
    if record.targets_per_node is not None and answers.changes_needed is not None:
        edges = budget.add_edges + budget.delete_edges + budget.change_edges
        nodes = min(budget.delete_nodes + budget.change_features, len(record.targets_per_node))
        at_neighbours = int(record.targets_per_node[: int(nodes)].sum())
        affordable = _affordable(answers.changes_needed, 2 * edges + injected_edges + at_neighbours)
        num_broken = min(num_broken, affordable)
    return num_broken


def _injected_edges(budget: Budget) -> float:
    if budget.inject_nodes == 0 or budget.edges_per_injected == 0:
        return 0  # 0 times infinity is NaN
    return budget.inject_nodes * budget.edges_per_injected


def _affordable(prices: FloatArray, total: float) -> int:
    """Returns how many targets can be paid for, the cheapest first."""
    number = 0
    left = total
    for price, targets in zip(*np.unique(prices[np.isfinite(prices)], return_counts=True), strict=True):
        cost = int(price) * int(targets)
        if cost > left:
            return number + int(left // price)
        left -= cost
        number += int(targets)
    return number
