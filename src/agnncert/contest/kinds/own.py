"""Votes of which every neighbour, pair or node has one of its own (Theorem 9) as a contest."""

from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping
from typing import ClassVar

from agnncert.certificates.budget import Budget
from agnncert.certificates.votes import VoteRecord
from agnncert.contest.form import Attacker, Effect, Limit, Pool, Target, Vector
from agnncert.contest.kinds.kind import (
    EVERYWHERE,
    GRAPH,
    GRAPH_FIELDS,
    MACHINES,
    MISREAD,
    STEPS,
    STRUCTURE,
    Form,
    Kind,
    Limits,
    all_of,
    becomes_any,
    counts_of,
    one_of,
    target_of,
    vote,
)
from agnncert.contest.kinds.theorem import TheoremAsContest
from agnncert.contest.kinds.tiers import misread_pool, prior_of, reach_row

ALTER, REMOVE, ADD, JOIN = "alter", "remove", "add", "join"
MOVES = {
    ALTER: "a vote becomes any other one",
    REMOVE: "a vote is gone",
    ADD: "an added edge brings a vote, or the second direction of a pair, whose vote then becomes any other one",
    JOIN: "a new node brings a vote",
    MISREAD: "another machine reads a vote near a tie otherwise",
}


class VotesThatComeAndGo(TheoremAsContest):
    """A theorem about votes of which every neighbour, pair or node has one of its own.

    Attributes:
        of_nodes: Whether the targets are nodes, which share the changes of one graph.
        by_pair: Whether a vote belongs to a pair, which an added edge may give its second direction.
        adds: Whether an added edge brings a vote.
        with_reach: Whether a node that is deleted or altered alters the votes that it reaches, by the reach table.
    """

    of_nodes: ClassVar[bool] = True
    by_pair: ClassVar[bool] = False
    adds: ClassVar[bool] = True
    with_reach: ClassVar[bool] = False

    @abstractmethod
    def limits(self) -> Limits:
        """Returns how many of the moves ``ALTER``, ``REMOVE``, ``ADD`` and ``JOIN`` each count of a budget allows."""

    def kind(self, record: VoteRecord) -> "OwnVotes":
        """Returns votes that are counted by this theorem as a contest."""
        return OwnVotes(record, self)


class OwnVotes(Kind):
    """Votes that come and go with neighbours, pairs or nodes."""

    def __init__(self, record: VoteRecord, theorem: VotesThatComeAndGo) -> None:
        self.record, self.theorem = record, theorem
        self.covers = frozenset(GRAPH_FIELDS)
        self.largest_size = record.votes.num_groups
        empty = record.voting_rule.constant
        self.empty = -1 if empty is None else empty
        self.moves = [ALTER, REMOVE, *([ADD] if theorem.adds else []), JOIN]
        structure = [move for move in self.moves if move != ALTER]
        attackers = {
            GRAPH: self._attacker(Limit((ADD, JOIN), {"new_places": 1})),
            STEPS: self._sized(self.moves),
            STRUCTURE: self._sized(structure),
        }
        extensions = ["tables"] if theorem.with_reach else []
        if theorem.of_nodes:
            extensions.append("together")
            attackers[EVERYWHERE] = self._attacker(Limit(tuple(self.moves), {"places": 1}))
        self.form = Form({move: MOVES[move] for move in [*self.moves, MISREAD]}, attackers, tuple(extensions))

    def _attacker(self, shared: Limit) -> Attacker:
        """Returns the attacker of the theorem; with what all targets share in the node task."""
        limits = self.theorem.limits().allow([MISREAD], [MACHINES])
        return limits.attacker(shared=shared if self.theorem.of_nodes else None)

    def _sized(self, moves: list[str]) -> Attacker:
        limits = Limits().allow(moves, [STEPS]).allow([MISREAD], [MACHINES])
        if ALTER not in moves:
            limits.allow([ALTER])
        return limits.attacker()

    def counts(self, budget: Budget) -> Mapping[str, float]:
        """Returns what is counted of a budget, with the targets that the changes arrive at."""
        return counts_of(budget) | {"places": self._places(budget)}

    def _places(self, budget: Budget) -> float:
        hubs = self.record.targets_per_node
        if hubs is None:
            return 0
        nodes = int(min(budget.delete_nodes + budget.change_features, len(hubs)))
        edges = budget.add_edges + budget.delete_edges + budget.change_edges
        return 2 * edges + budget.injected_edges + int(hubs[:nodes].sum())

    def target(self, place: int) -> Target:
        """Returns one target: its votes, those of pairs with one direction apart."""
        record, votes = self.record, self.record.votes
        classes = votes.num_classes
        rows = range(votes.indptr[place], votes.indptr[place + 1])
        found: Counter[tuple[str, int]] = Counter()
        for row in rows:
            one_way = record.one_way is not None and record.one_way[row]
            pool = MISREAD if not votes.stable[row] else ADD if one_way else ALTER
            found[pool, int(votes.vote[row])] += 1
        units = {
            pool: tuple(vote(classes, k, count) for (of, k), count in sorted(found.items()) if of == pool)
            for pool in (ALTER, ADD, MISREAD)
        }
        prior, unsure = prior_of(record, place)
        hit_by = {ALTER: becomes_any(classes), REMOVE: Effect(self._empty_votes(1), all_of(classes, 0))}
        by_new = hit_by | ({ADD: becomes_any(classes)} if self.theorem.by_pair else {})
        pools = [
            Pool(hit_by, units[ALTER]),
            Pool(by_new, units[ADD]),
            misread_pool(classes, 1, units[MISREAD]),
            *unsure,
        ]
        fixed = tuple(a + b for a, b in zip(prior, self._empty_votes(-len(rows)), strict=True))
        comes = Effect(self._empty_votes(-1), all_of(classes, 1))
        new = {move: comes for move in (ADD, JOIN) if move in self.moves}
        tables = {"reach": reach_row(record, place)} if "tables" in self.form.extensions else {}
        return target_of(str(place), fixed, pools, new, tables=tables)

    def _empty_votes(self, number: int) -> Vector:
        """Returns votes of empty groups, counted from all groups being empty."""
        classes = self.record.votes.num_classes
        return one_of(classes, self.empty, number) if self.empty >= 0 else all_of(classes, 0)
