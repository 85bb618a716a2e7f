"""Votes of target nodes, added up while ballots come, go and change: labels and radii without counting anew."""

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from agnncert.live.counting import Counter
from agnncert.live.nodes import grown
from agnncert.proof.ballots import Ballots
from agnncert.proof.own_groups import own_groups_radius
from agnncert.proof.prior import Prior
from agnncert.proof.rules import RULES
from agnncert.proof.theorems import REACHED, UNLISTED, UNREACHED, Facts, certified_radius, weighed

Array = npt.NDArray[Any]

_COUNTED, _STABLE, _REACHED, _ONE_WAY = 1, 2, 4, 8  # what is known of a copy whose ballot is counted


class Tallies:
    """Stable votes of every target node by class, kept current ballot by ballot.

    Attributes:
        listed: How many ballots of each node are listed, by slot.
        unsure: How many of them are not stable; targets that have any are counted by the evidence itself.
        votes: Stable listed ballots per tier (reached, unreached, of pairs with one direction) and class.
        size: How many those are, abstentions included.
    """

    def __init__(self, counter: Counter) -> None:
        self.counter, self.store = counter, counter.store
        slots, classes = len(self.store.nodes.alive), counter.num_classes
        self._one_way = RULES[counter.rule].one_way
        tiers = [REACHED, *([UNREACHED] if self.store.cells.gated else []), *([UNLISTED] if self._one_way else [])]
        self.listed, self.unsure = np.zeros(slots, dtype=np.int32), np.zeros(slots, dtype=np.int32)
        self.votes = {tier: np.zeros((slots, classes), dtype=np.int32) for tier in tiers}
        self.size = {tier: np.zeros(slots, dtype=np.int32) for tier in tiers}
        self._known = np.zeros(len(self.store.union.cell), dtype=np.uint8)

    def remove(self, copies: Array) -> None:
        """No longer counts the ballots of some copies, each named once; before any of them is altered."""
        self._grow()
        self._count(copies[(self._known[copies] & _COUNTED) > 0], -1)
        self._known[copies] = 0

    def add(self, copies: Array, is_target: Array) -> None:
        """Counts the ballots of some copies, each named once, as far as they vote and belong to targets."""
        self._grow()
        store = self.store
        copies = copies[is_target[store.union.node[copies]]]
        copies = copies[store.cells.votes(store.nodes, store.union, copies)]
        known = np.full(len(copies), _COUNTED | _REACHED, dtype=np.uint8)
        known[store.stable[copies]] |= _STABLE
        hears = store.union.arriving.length[copies] > 0
        if store.cells.gated:
            known[~hears] &= ~np.uint8(_REACHED)
        if self._one_way:
            known[hears != (store.union.leaving.length[copies] > 0)] |= _ONE_WAY
        self._known[copies] = known
        self._count(copies, 1)

    def _grow(self) -> None:
        self._known = grown(self._known, len(self.store.union.cell))
        if len(self.listed) < len(self.store.nodes.alive):
            slots = len(self.store.nodes.alive)
            self.listed, self.unsure = grown(self.listed, slots), grown(self.unsure, slots)
            self.votes = {tier: grown(table, slots) for tier, table in self.votes.items()}
            self.size = {tier: grown(table, slots) for tier, table in self.size.items()}

    def _count(self, copies: Array, by: int) -> None:
        known, node = self._known[copies], self.store.union.node[copies]
        np.add.at(self.listed, node, by)
        stable = (known & _STABLE) > 0
        np.add.at(self.unsure, node[~stable], by)
        reached = (known & _REACHED) > 0
        for tier in self.votes:
            inside = {REACHED: reached, UNREACHED: ~reached, UNLISTED: (known & _ONE_WAY) > 0}[tier] & stable
            ballot = self.store.ballot[copies[inside]]
            np.add.at(self.size[tier], node[inside], by)
            cast = ballot >= 0
            np.add.at(self.votes[tier], (node[inside][cast], ballot[cast]), by)

    def labels_and_radii(self, targets: Array) -> tuple[Array, Array]:
        """Label and radius of some targets; the radius before it is cut at a number of groups that grows."""
        label, radius = np.zeros(len(targets), dtype=np.int64), np.zeros(len(targets), dtype=np.int64)
        sure = self.unsure[targets] == 0
        if sure.any():
            label[sure], radius[sure] = self._of_sure(targets[sure])
        if not sure.all():
            label[~sure], radius[~sure] = self.counter.evidence(targets[~sure]).label_and_radius()
        return label, radius

    def _of_sure(self, targets: Array) -> tuple[Array, Array]:
        counter, number, classes = self.counter, len(targets), self.counter.num_classes
        by_tier, size = np.zeros((3, number, classes), dtype=np.int64), np.zeros((3, number), dtype=np.int64)
        for tier in (REACHED, UNREACHED):
            if tier in self.votes:
                by_tier[tier], size[tier] = self.votes[tier][targets], self.size[tier][targets]
        edgeless, edgeless_stable = counter.defaults(targets)
        default, sure = edgeless, edgeless_stable
        if counter.vote.constant is not None:
            default, sure = np.full(number, counter.vote.constant), np.ones(number, dtype=bool)
        unlisted = counter.num_groups - self.listed[targets].astype(np.int64)
        votes = np.zeros((number, classes), dtype=np.int64)
        votes[default >= 0, default[default >= 0]] = unlisted[default >= 0]
        everything = by_tier.sum(axis=0) + votes
        by_tier[UNLISTED], size[UNLISTED] = np.where(sure[:, None], votes, 0), np.where(sure, unlisted, 0)
        follows = bool(counter.vote.edgeless_prior)
        ballots = SimpleNamespace(
            vote=counter.vote,
            rule=counter.rule,
            votes=SimpleNamespace(num_classes=classes, num_groups=counter.num_groups),
            edgeless=edgeless if follows else None,
            edgeless_stable=edgeless_stable if follows else None,
        )
        prior = Prior.of(cast(Ballots, ballots), slice(0, number))
        tally = weighed(counter.num_groups, everything, by_tier, size, prior)
        if not self.store.cells.own_groups:
            return tally.label, certified_radius(tally)
        none = np.zeros(number + 1, dtype=np.int64)
        facts = Facts(
            num_reached=size[REACHED],
            cover_ptr=none,
            cover=np.zeros(0, dtype=np.int32),
            absent=-1 if counter.vote.constant is None else counter.vote.constant,
            one_way=self.votes[UNLISTED][targets].astype(np.int64) if self._one_way else None,
            one_way_size=self.size[UNLISTED][targets].astype(np.int64) if self._one_way else None,
        )
        return tally.label, own_groups_radius(tally, facts)
