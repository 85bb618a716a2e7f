"""Counts the votes that a live graph keeps, incrementally per node, and computes labels and radii with the prover."""

from typing import Any

import numpy as np
import numpy.typing as npt

from agnncert.certificates.theorem_facts import THEOREMS
from agnncert.certificates.votes import ABSTAIN, MOST_PER_NEIGHBOUR, Votes
from agnncert.certificates.voting_rule import VotingRule
from agnncert.engine.reach import sums_of_largest
from agnncert.proving.evidence import VoteEvidence, radius_of
from agnncert.proving.theorems import REACHED, UNLISTED, UNREACHED, Facts, Prior, weighed
from agnncert_live.casting import Reach
from agnncert_live.nodes import grown
from agnncert_live.store import Store

Array = npt.NDArray[Any]

_COUNTED, _STABLE, _REACHED, _ONE_WAY = 1, 2, 4, 8  # what is known of a copy whose vote is counted


class Tallies:
    """Stable votes of every target node by class, kept current vote by vote.

    Attributes:
        listed: How many votes of each node are listed, by slot.
        unsure: How many of them are not stable; targets that have any are counted by the evidence itself.
        votes: Stable listed votes per tier (reached, unreached, of pairs with one direction) and class.
        size: How many those are, abstentions included.
    """

    def __init__(self, counter: "Counter") -> None:
        self.counter, self.store = counter, counter.store
        slots, classes = len(self.store.nodes.alive), counter.num_classes
        self._one_way = THEOREMS[counter.theorem].one_way
        tiers = [REACHED, *([UNREACHED] if self.store.cells.gated else []), *([UNLISTED] if self._one_way else [])]
        self.listed, self.unsure = np.zeros(slots, dtype=np.int32), np.zeros(slots, dtype=np.int32)
        self.votes = {tier: np.zeros((slots, classes), dtype=np.int32) for tier in tiers}
        self.size = {tier: np.zeros(slots, dtype=np.int32) for tier in tiers}
        self._known = np.zeros(len(self.store.union.cell), dtype=np.uint8)

    def remove(self, copies: Array) -> None:
        """No longer counts the votes of some copies, each named once; before any of them is altered."""
        self._grow()
        self._count(copies[(self._known[copies] & _COUNTED) > 0], -1)
        self._known[copies] = 0

    def add(self, copies: Array, is_target: Array) -> None:
        """Counts the votes of some copies, each named once, as far as they vote and belong to targets."""
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
            vote = self.store.vote[copies[inside]]
            np.add.at(self.size[tier], node[inside], by)
            cast = vote >= 0
            np.add.at(self.votes[tier], (node[inside][cast], vote[cast]), by)

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
        no_edge, no_edge_stable = counter.defaults(targets)
        default, sure = no_edge, no_edge_stable
        if counter.voting_rule.constant is not None:
            default, sure = np.full(number, counter.voting_rule.constant), np.ones(number, dtype=bool)
        unlisted = counter.num_groups - self.listed[targets].astype(np.int64)
        votes = np.zeros((number, classes), dtype=np.int64)
        votes[default >= 0, default[default >= 0]] = unlisted[default >= 0]
        everything = by_tier.sum(axis=0) + votes
        by_tier[UNLISTED], size[UNLISTED] = np.where(sure[:, None], votes, 0), np.where(sure, unlisted, 0)
        known = (no_edge, no_edge_stable) if counter.voting_rule.no_edge_prior else ()
        prior = Prior.of(
            counter.voting_rule, self.store.cells.own_groups, counter.num_groups, (number, classes), *known
        )
        tally = weighed(counter.num_groups, everything, by_tier, size, prior)
        none = np.zeros(number + 1, dtype=np.int64)
        facts = Facts(
            num_reached=size[REACHED],
            reach_ptr=none,
            reach=np.zeros(0, dtype=np.int32),
            absent=-1 if counter.voting_rule.constant is None else counter.voting_rule.constant,
            one_way=self.votes[UNLISTED][targets].astype(np.int64) if self._one_way else None,
            one_way_size=self.size[UNLISTED][targets].astype(np.int64) if self._one_way else None,
        )
        return tally.label, radius_of(counter.theorem, tally, facts)


class Counter:
    """Counts votes of a store's targets: nodes by slot, or graphs by number.

    Attributes:
        store: The graph and its votes.
        rule: The rule of its division.
        vote: What empty groups cast, and the prior.
        ids: How nodes are known.
    """

    def __init__(self, store: Store, theorem: str, voting_rule: VotingRule, num_classes: int, ids: str) -> None:
        self.store, self.theorem, self.voting_rule, self.num_classes, self.ids = (
            store,
            theorem,
            voting_rule,
            num_classes,
            ids,
        )
        division = store.cells.division
        self.reach = Reach(store.union, None)
        self.num_groups = MOST_PER_NEIGHBOUR if store.cells.own_groups else int(division.num_groups)

    def listed(self, targets: Array) -> tuple[Array, Array]:
        """Copies (graph task: one of each cell) whose votes are listed, and the target of each as a position."""
        store = self.store
        if not store.cells.on_graphs:
            copies, lengths = store.union.of_node.gather(targets)
            owner = np.repeat(np.arange(len(targets)), lengths)
        else:
            slots = [np.fromiter(store.nodes.slot_of[graph].values(), dtype=np.int64) for graph in targets.tolist()]
            of_graph = np.repeat(np.arange(len(targets)), [len(one) for one in slots])
            copies, lengths = store.union.of_node.gather(np.concatenate([*slots, np.zeros(0, dtype=np.int64)]))
            owner = np.repeat(of_graph, lengths)
        votes = store.cells.votes(store.nodes, store.union, copies)
        copies, owner = copies[votes], owner[votes]
        if store.cells.on_graphs:
            _, first = np.unique(store.union.cell[copies], return_index=True)
            copies, owner = copies[first], owner[first]
        return copies.astype(np.int64), owner

    def votes(self, targets: Array, group: Array | None = None, num_groups: int | None = None) -> tuple[Votes, Array]:
        """Votes as cast, and the copy of each listed one.

        Args:
            targets: Slots of nodes, or numbers of graphs.
            group: Number of the group of every copy; numbers that only count when not given.
            num_groups: How many groups there are.
        """
        copies, owner = self.listed(targets)
        number = self.store.union.cell[copies] if group is None else group[copies]
        order = np.lexsort([number, owner])
        copies, owner, number = copies[order], owner[order], number[order]
        indptr = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(targets)))]).astype(np.int64)
        if group is None:
            number = np.arange(len(owner)) - indptr[owner]
        default, sure = self.defaults(targets)
        cast = Votes(
            num_groups=self.num_groups if num_groups is None else num_groups,
            num_classes=self.num_classes,
            default=default,
            default_stable=sure,
            indptr=indptr,
            group=number.astype(np.int32),
            vote=self.store.vote[copies],
            stable=self.store.stable[copies],
            reached=self._reached(copies),
        )
        return cast, copies

    def defaults(self, targets: Array) -> tuple[Array, Array]:
        """What targets cast where they have no edge."""
        if self.store.cells.on_graphs or self.store.cells.gated:
            return np.full(len(targets), ABSTAIN, dtype=np.int16), np.ones(len(targets), dtype=bool)
        return self.store.no_edge[targets], self.store.no_edge_stable[targets]

    def _reached(self, copies: Array) -> Array:
        store = self.store
        if store.cells.gated:
            hears: Array = store.union.arriving.length[copies] > 0
            return hears
        if store.cells.on_graphs and not store.cells.by_pair and store.union.members is not None:
            least = 1 if store.cells.keeps_loops else 2
            return np.asarray(self._size_of_cell(copies) >= least)
        return np.ones(len(copies), dtype=bool)

    def _size_of_cell(self, copies: Array) -> Array:
        """Living nodes in the cell of each copy."""
        union = self.store.union
        assert union.members is not None
        inside, lengths = union.members.gather(union.cell[copies])
        alive = self.store.nodes.alive[union.node[inside]]
        return np.bincount(np.repeat(np.arange(len(copies)), lengths), weights=alive, minlength=len(copies))

    def evidence(self, targets: Array, with_reach: bool = False) -> VoteEvidence:
        """Evidence about some targets.

        Args:
            targets: Slots of nodes, or numbers of graphs.
            with_cover: Whether to find out how many votes other nodes reach, which labels and radii do not depend on;
                else a crude table says that one node reaches all.
        """
        cast, copies = self.votes(targets)
        facts = THEOREMS[self.theorem]
        reached = np.bincount(cast.owner[cast.reached], minlength=len(targets))
        covers = (reached > 0) & facts.uses_reach
        reach = np.concatenate([[0], np.cumsum(covers)]), reached[covers]
        if with_reach and facts.uses_reach:
            reach = self._reach(targets, copies, cast.owner)
        of_pairs: dict[str, Any] = {}
        if facts.one_way:
            union = self.store.union
            of_pairs["one_way"] = (union.arriving.length[copies] == 0) != (union.leaving.length[copies] == 0)
        if facts.targets_per_node:
            of_pairs["targets_per_node"] = np.zeros(0, dtype=np.int32)
        return VoteEvidence.from_votes(cast, self.theorem, self.voting_rule, reach, ids=self.ids, **of_pairs)

    def _reach(self, targets: Array, copies: Array, owner: Array) -> tuple[Array, Array]:
        """The exact table of ``engine/reach``, for a few targets."""
        union = self.store.union
        if self.store.cells.on_graphs:  # a node reaches the subgraphs in which it has an edge
            slots = [
                np.fromiter(self.store.nodes.slot_of[graph].values(), dtype=np.int64) for graph in targets.tolist()
            ]
            nodes = np.concatenate(slots)
            inside, lengths = union.of_node.gather(nodes)
            votes = self.store.cells.votes(self.store.nodes, union, inside)
            reach = np.bincount(np.repeat(np.arange(len(nodes)), lengths)[votes], minlength=len(nodes))
            of_graph = np.repeat(np.arange(len(targets)), [len(one) for one in slots])
            pairs = of_graph[reach > 0], reach[reach > 0]
        else:
            mates = [self.reach.component(copies[k : k + 1]) for k in range(len(copies))]
            me = np.repeat(owner, [len(one) for one in mates])
            other = union.node[np.concatenate([*mates, np.zeros(0, dtype=np.int64)])].astype(np.int64)
            apart = other != targets[me]
            met, times = np.unique(me[apart] * (1 << 32) + other[apart], return_counts=True)
            pairs = met >> 32, times
        cap = np.bincount(owner, minlength=len(targets))
        return sums_of_largest(pairs[0], pairs[1], cap, np.zeros(len(targets), dtype=np.int64))
