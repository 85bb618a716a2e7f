"""Counts the votes that a live graph keeps, incrementally per node, and computes labels and radii with the prover."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agnncert.certificates.theorem_facts import facts_of
from agnncert.certificates.votes import ABSTAIN, MOST_PER_NEIGHBOUR, Votes
from agnncert.certificates.voting_rule import VotingRule
from agnncert.divided.evidence import VoteEvidence
from agnncert.divided.theorems.registry import theorem_of
from agnncert.engine.reach import ReachTable, sums_of_largest
from agnncert.proving.theorems import REACHED, UNLISTED, UNREACHED, Facts, Prior, weighed
from agnncert_live.reach import Reach
from agnncert_live.rows import grown
from agnncert_live.store import Store

Array = npt.NDArray[Any]

# What is known of a copy whose vote is counted.
_COUNTED = 1
_STABLE = 2
_REACHED = 4
_ONE_WAY = 8


class LabelsAndRadii(NamedTuple):
    """The label and the radius of some targets, each of shape ``[n]``."""

    label: Array
    radius: Array


class NoEdgePredictions(NamedTuple):
    """The class of each target where it has no edge, and whether it is stable, each of shape ``[n]``."""

    vote: Array
    stable: Array


@dataclass
class Tier:
    """Stable listed votes of one tier (reached, unreached, or of pairs with one direction) by slot.

    Attributes:
        votes: How many there are for each class, shape ``[slots, num_classes]``.
        size: How many there are, abstentions included, shape ``[slots]``.
    """

    votes: Array
    size: Array

    def grow(self, slots: int) -> None:
        """Makes room for more slots."""
        self.votes = grown(self.votes, slots)
        self.size = grown(self.size, slots)


class RunningCounts:
    """Stable votes of every target node by class, kept current vote by vote.

    Attributes:
        num_listed: How many votes of each node are listed, by slot.
        num_unstable: How many of them are not stable. Targets that have any are counted by the evidence itself.
        tiers: The other votes.
    """

    def __init__(self, counter: "VoteCounter") -> None:
        self.counter = counter
        self.store = counter.store
        slots = len(self.store.nodes.alive)
        self._one_way = facts_of(counter.theorem).one_way
        names = [REACHED]
        if self.store.subgraphs.gated:
            names.append(UNREACHED)
        if self._one_way:
            names.append(UNLISTED)
        self.num_listed = np.zeros(slots, dtype=np.int32)
        self.num_unstable = np.zeros(slots, dtype=np.int32)
        self.tiers = {
            name: Tier(np.zeros((slots, counter.num_classes), dtype=np.int32), np.zeros(slots, dtype=np.int32))
            for name in names
        }
        self._flags = np.zeros(len(self.store.union.subgraph_index), dtype=np.uint8)

    def remove(self, copies: Array) -> None:
        """Stops counting the votes of some copies, each named once, before any of them is altered."""
        self._grow()
        is_counted = (self._flags[copies] & _COUNTED) > 0
        self._count(copies[is_counted], -1)
        self._flags[copies] = 0

    def add(self, copies: Array, is_target: Array) -> None:
        """Counts the votes of some copies, each named once, as far as they vote and belong to targets."""
        self._grow()
        store = self.store
        copies = copies[is_target[store.union.node[copies]]]
        copies = copies[store.subgraphs.has_vote(store.nodes, store.union, copies)]
        flags = np.full(len(copies), _COUNTED | _REACHED, dtype=np.uint8)
        flags[store.stable[copies]] |= _STABLE
        has_arriving = store.union.arriving.length[copies] > 0
        if store.subgraphs.gated:
            flags[~has_arriving] &= ~np.uint8(_REACHED)
        if self._one_way:
            has_leaving = store.union.leaving.length[copies] > 0
            flags[has_arriving != has_leaving] |= _ONE_WAY
        self._flags[copies] = flags
        self._count(copies, 1)

    def _grow(self) -> None:
        self._flags = grown(self._flags, len(self.store.union.subgraph_index))
        slots = len(self.store.nodes.alive)
        if len(self.num_listed) >= slots:
            return
        self.num_listed = grown(self.num_listed, slots)
        self.num_unstable = grown(self.num_unstable, slots)
        for tier in self.tiers.values():
            tier.grow(slots)

    def _count(self, copies: Array, sign: int) -> None:
        flags = self._flags[copies]
        node = self.store.union.node[copies]
        np.add.at(self.num_listed, node, sign)
        stable = (flags & _STABLE) > 0
        np.add.at(self.num_unstable, node[~stable], sign)
        is_reached = (flags & _REACHED) > 0
        is_one_way = (flags & _ONE_WAY) > 0
        is_in_tier = {REACHED: is_reached, UNREACHED: ~is_reached, UNLISTED: is_one_way}
        for name, tier in self.tiers.items():
            chosen = is_in_tier[name] & stable
            owner = node[chosen]
            vote = self.store.vote[copies[chosen]]
            np.add.at(tier.size, owner, sign)
            is_class = vote >= 0
            np.add.at(tier.votes, (owner[is_class], vote[is_class]), sign)

    def labels_and_radii(self, targets: Array) -> LabelsAndRadii:
        """Returns label and radius of some targets. The radius is not yet cut at a number of groups that grows."""
        label = np.zeros(len(targets), dtype=np.int64)
        radius = np.zeros(len(targets), dtype=np.int64)
        all_stable = self.num_unstable[targets] == 0
        if all_stable.any():
            label[all_stable], radius[all_stable] = self._with_stable_votes(targets[all_stable])
        if not all_stable.all():
            evidence = self.counter.evidence(targets[~all_stable])
            label[~all_stable], radius[~all_stable] = evidence.label_and_radius()
        return LabelsAndRadii(label, radius)

    def _with_stable_votes(self, targets: Array) -> LabelsAndRadii:
        """Returns label and radius of targets whose listed votes are all stable."""
        counter = self.counter
        number = len(targets)
        votes_by_tier = np.zeros((3, number, counter.num_classes), dtype=np.int64)
        size_by_tier = np.zeros((3, number), dtype=np.int64)
        for name in (REACHED, UNREACHED):
            if name in self.tiers:
                votes_by_tier[name] = self.tiers[name].votes[targets]
                size_by_tier[name] = self.tiers[name].size[targets]
        no_edge = counter.no_edge_predictions(targets)
        unlisted = counter.num_groups - self.num_listed[targets].astype(np.int64)
        empty = _empty_group_votes(counter.voting_rule, no_edge)
        has_class = empty.vote >= 0
        votes_of_unlisted = np.zeros((number, counter.num_classes), dtype=np.int64)
        votes_of_unlisted[has_class, empty.vote[has_class]] = unlisted[has_class]
        everything = votes_by_tier.sum(axis=0) + votes_of_unlisted
        votes_by_tier[UNLISTED] = np.where(empty.stable[:, None], votes_of_unlisted, 0)
        size_by_tier[UNLISTED] = np.where(empty.stable, unlisted, 0)
        counts = weighed(counter.num_groups, everything, votes_by_tier, size_by_tier, self._prior(no_edge))
        facts = self._facts(targets, size_by_tier[REACHED])
        return LabelsAndRadii(counts.label, theorem_of(counter.theorem).radius(counts, facts))

    def _prior(self, no_edge: NoEdgePredictions) -> Prior:
        counter = self.counter
        shape = (len(no_edge.vote), counter.num_classes)
        is_per_neighbour = self.store.subgraphs.is_per_neighbour
        if counter.voting_rule.no_edge_prior:
            return Prior.of(counter.voting_rule, is_per_neighbour, counter.num_groups, shape, *no_edge)
        return Prior.of(counter.voting_rule, is_per_neighbour, counter.num_groups, shape)

    def _facts(self, targets: Array, num_reached: Array) -> Facts:
        constant = self.counter.voting_rule.constant
        one_way = None
        one_way_size = None
        if self._one_way:
            one_way = self.tiers[UNLISTED].votes[targets].astype(np.int64)
            one_way_size = self.tiers[UNLISTED].size[targets].astype(np.int64)
        return Facts(
            num_reached=num_reached,
            reach_ptr=np.zeros(len(targets) + 1, dtype=np.int64),
            reach=np.zeros(0, dtype=np.int32),
            absent=-1 if constant is None else constant,
            one_way=one_way,
            one_way_size=one_way_size,
        )


def _empty_group_votes(voting_rule: VotingRule, no_edge: NoEdgePredictions) -> NoEdgePredictions:
    """Returns how empty groups of each target vote."""
    if voting_rule.constant is None:
        return no_edge
    number = len(no_edge.vote)
    return NoEdgePredictions(np.full(number, voting_rule.constant), np.ones(number, dtype=bool))


class Listed(NamedTuple):
    """Copies (graph task: one of each subgraph) whose votes are listed, and the position of the target of each."""

    copies: Array
    owner: Array


class VotesOfCopies(NamedTuple):
    """The votes of some targets as a certificate holds them, and the copy of each listed vote."""

    votes: Votes
    copies: Array


class VoteCounter:
    """Counts votes of a store's targets: nodes by slot, or graphs by number.

    Attributes:
        store: The graph and its votes.
        theorem: The theorem that applies to its division.
        voting_rule: How votes are added up.
        num_classes: Number of classes.
        ids: How nodes are known, "node_id" or "row".
        num_groups: Number of groups, or the largest number that counts where every neighbour has one of its own.
    """

    def __init__(self, store: Store, theorem: str, voting_rule: VotingRule, num_classes: int, ids: str) -> None:
        self.store = store
        self.theorem = theorem
        self.voting_rule = voting_rule
        self.num_classes = num_classes
        self.ids = ids
        self.num_groups = MOST_PER_NEIGHBOUR
        if not store.subgraphs.is_per_neighbour:
            self.num_groups = store.subgraphs.num_groups
        self._reach = Reach(store.union, None)

    def listed(self, targets: Array) -> Listed:
        """Returns the copies whose votes are listed."""
        if self.store.subgraphs.of_graphs:
            return self._listed_of_graphs(targets)
        copies, lengths = self.store.union.of_node.gather(targets)
        owner = np.repeat(np.arange(len(targets)), lengths)
        return self._with_vote(copies, owner)

    def _listed_of_graphs(self, graphs: Array) -> Listed:
        nodes, graph_of_node = self._nodes_of_graphs(graphs)
        copies, lengths = self.store.union.of_node.gather(nodes)
        members = self._with_vote(copies, np.repeat(graph_of_node, lengths))
        _, first = np.unique(self.store.union.subgraph_index[members.copies], return_index=True)
        return Listed(members.copies[first], members.owner[first])

    def _nodes_of_graphs(self, graphs: Array) -> tuple[Array, Array]:
        """Returns the slots of the nodes of some graphs, and the position of the graph of each."""
        slot_of = self.store.nodes.slot_of
        slots = [np.fromiter(slot_of[graph].values(), dtype=np.int64) for graph in graphs.tolist()]
        sizes = [len(slots_of_graph) for slots_of_graph in slots]
        return np.concatenate([*slots, np.zeros(0, dtype=np.int64)]), np.repeat(np.arange(len(graphs)), sizes)

    def _with_vote(self, copies: Array, owner: Array) -> Listed:
        has_vote = self.store.subgraphs.has_vote(self.store.nodes, self.store.union, copies)
        return Listed(copies[has_vote].astype(np.int64), owner[has_vote])

    def votes(self, targets: Array, group: Array | None = None, num_groups: int | None = None) -> VotesOfCopies:
        """Returns votes as they were computed.

        Args:
            targets: Slots of nodes, or numbers of graphs.
            group: Number of the group of every copy; numbers that only count when not given.
            num_groups: How many groups there are.
        """
        listed = self.listed(targets)
        group_of_copy = self.store.union.subgraph_index if group is None else group
        order = np.lexsort([group_of_copy[listed.copies], listed.owner])
        copies = listed.copies[order]
        owner = listed.owner[order]
        votes_per_target = np.bincount(owner, minlength=len(targets))
        indptr = np.concatenate([[0], np.cumsum(votes_per_target)]).astype(np.int64)
        number = group_of_copy[copies]
        if group is None:
            number = np.arange(len(owner)) - indptr[owner]
        no_edge = self.no_edge_predictions(targets)
        votes = Votes(
            num_groups=self.num_groups if num_groups is None else num_groups,
            num_classes=self.num_classes,
            default=no_edge.vote,
            default_stable=no_edge.stable,
            indptr=indptr,
            group=number.astype(np.int32),
            vote=self.store.vote[copies],
            stable=self.store.stable[copies],
            reached=self._is_reached(copies),
        )
        return VotesOfCopies(votes, copies)

    def no_edge_predictions(self, targets: Array) -> NoEdgePredictions:
        """Returns how targets vote where they have no edge."""
        if self.store.subgraphs.of_graphs or self.store.subgraphs.gated:
            number = len(targets)
            return NoEdgePredictions(np.full(number, ABSTAIN, dtype=np.int16), np.ones(number, dtype=bool))
        return NoEdgePredictions(self.store.no_edge[targets], self.store.no_edge_stable[targets])

    def _is_reached(self, copies: Array) -> Array:
        subgraphs = self.store.subgraphs
        if subgraphs.gated:
            has_arriving: Array = self.store.union.arriving.length[copies] > 0
            return has_arriving
        if subgraphs.of_graphs and not subgraphs.by_pair and self.store.union.members is not None:
            smallest = 1 if subgraphs.keeps_loops else 2
            return np.asarray(self._nodes_in_subgraph(copies) >= smallest)
        return np.ones(len(copies), dtype=bool)

    def _nodes_in_subgraph(self, copies: Array) -> Array:
        """Returns the number of living nodes in the subgraph of each copy."""
        union = self.store.union
        assert union.members is not None
        members, lengths = union.members.gather(union.subgraph_index[copies])
        alive = self.store.nodes.alive[union.node[members]]
        place = np.repeat(np.arange(len(copies)), lengths)
        return np.bincount(place, weights=alive, minlength=len(copies))

    def evidence(self, targets: Array, with_reach: bool = False) -> VoteEvidence:
        """Returns the evidence about some targets.

        Args:
            targets: Slots of nodes, or numbers of graphs.
            with_reach: Whether to find out how many votes other nodes reach, which labels and radii do not depend on.
                If not, a crude table says that one node reaches all.
        """
        votes, copies = self.votes(targets)
        facts = facts_of(self.theorem)
        if with_reach and facts.uses_reach:
            reach = self._exact_reach(targets, copies, votes.owner)
        else:
            reach = _crude_reach(votes, facts.uses_reach)
        of_pairs: dict[str, Any] = {}
        if facts.one_way:
            union = self.store.union
            no_arriving = union.arriving.length[copies] == 0
            no_leaving = union.leaving.length[copies] == 0
            of_pairs["one_way"] = no_arriving != no_leaving
        if facts.targets_per_node:
            of_pairs["targets_per_node"] = np.zeros(0, dtype=np.int32)
        return VoteEvidence.from_votes(votes, self.theorem, self.voting_rule, reach, ids=self.ids, **of_pairs)

    def _exact_reach(self, targets: Array, copies: Array, owner: Array) -> ReachTable:
        """Returns the table of ``engine.reach`` for a few targets."""
        if self.store.subgraphs.of_graphs:
            target, votes_reached = self._reach_in_graphs(targets)
        else:
            target, votes_reached = self._reach_of_other_nodes(targets, copies, owner)
        num_listed = np.bincount(owner, minlength=len(targets))
        return sums_of_largest(target, votes_reached, num_listed, np.zeros(len(targets), dtype=np.int64))

    def _reach_in_graphs(self, graphs: Array) -> tuple[Array, Array]:
        """Returns, for each node with an edge, its graph and the number of subgraphs in which it has one."""
        union = self.store.union
        nodes, graph_of_node = self._nodes_of_graphs(graphs)
        copies, lengths = union.of_node.gather(nodes)
        has_vote = self.store.subgraphs.has_vote(self.store.nodes, union, copies)
        place = np.repeat(np.arange(len(nodes)), lengths)
        votes_reached = np.bincount(place[has_vote], minlength=len(nodes))
        reaches_any = votes_reached > 0
        return graph_of_node[reaches_any], votes_reached[reaches_any]

    def _reach_of_other_nodes(self, targets: Array, copies: Array, owner: Array) -> tuple[Array, Array]:
        """Returns, for each pair of a target and a node that reaches it, the target and the number of votes reached."""
        components = [self._reach.component(copies[k : k + 1]) for k in range(len(copies))]
        target = np.repeat(owner, [len(component) for component in components])
        members = np.concatenate([*components, np.zeros(0, dtype=np.int64)])
        node = self.store.union.node[members].astype(np.int64)
        is_other = node != targets[target]
        pairs, votes_reached = np.unique(target[is_other] * (1 << 32) + node[is_other], return_counts=True)
        return pairs >> 32, votes_reached


def _crude_reach(votes: Votes, uses_reach: bool) -> ReachTable:
    """Returns a table that says that one node reaches all reached votes of a target."""
    num_reached = np.bincount(votes.owner[votes.reached], minlength=votes.num_targets)
    is_listed = (num_reached > 0) & uses_reach
    return ReachTable(np.concatenate([[0], np.cumsum(is_listed)]), num_reached[is_listed])
