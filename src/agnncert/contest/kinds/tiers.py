"""Votes of a fixed number of groups as a contest: each vote is in a tier, and moves alter the votes of some tiers."""

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import ClassVar

from agnncert.certificates.budget import Budget
from agnncert.certificates.votes import VoteRecord
from agnncert.contest.form import Attacker, Factors, Limit, Pool, Target, Unit, Vector
from agnncert.contest.kinds.kind import (
    COUNTED,
    GRAPH,
    GRAPH_FIELDS,
    MACHINES,
    MISREAD,
    STEPS,
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

REACHED, LISTED, UNLISTED = range(3)  # tiers of votes
ANY, ELSEWHERE, OF_LISTED, OF_REACHED = "any_vote", "reached_by_new_edge", "listed_vote", "reached_vote"
HITS = {ANY: (REACHED, LISTED, UNLISTED), ELSEWHERE: (REACHED,), OF_LISTED: (REACHED, LISTED), OF_REACHED: (REACHED,)}
MOVES = {
    ANY: "a change alters one vote, whether the graph reaches it or not",
    ELSEWHERE: "an edge that is added elsewhere alters a vote that the graph reaches already",
    OF_LISTED: "a change alters one vote of a group that holds something of the graph",
    OF_REACHED: "a change alters one vote that the graph reaches",
    MISREAD: "another machine reads a vote near a tie otherwise",
}
EDGES = ("add_edges", "delete_edges", "change_edges")
OLD_NODES = ("delete_nodes", "change_features")
Amounts = Mapping[str, Iterable[str] | Factors]  # by move: the counts that allow one each, or their factors


class VotesInTiers(TheoremAsContest):
    """A theorem about votes of a fixed number of groups.

    Attributes:
        covers: Fields of a budget about which it says something.
        with_reach: Whether a node that is deleted or altered alters the votes that it reaches, by the reach table.
        at_target: Whether a vote that the graph does not reach is altered by an edge at the target only, so that an
            edge that is added elsewhere alters reached ones.
        further_counts: What it counts beyond ``COUNTED``, in words.
    """

    covers: ClassVar[tuple[str, ...]] = GRAPH_FIELDS
    with_reach: ClassVar[bool] = False
    at_target: ClassVar[bool] = False
    further_counts: ClassVar[Mapping[str, str]] = {}

    @abstractmethod
    def amounts(self, record: VoteRecord) -> Amounts:
        """Returns how many moves each count of a budget allows. Nodes of the reach table are apart."""

    def covered(self, record: VoteRecord) -> tuple[str, ...]:
        """Returns fields of a budget about which something is said of these votes."""
        return self.covers

    def is_covered(self, record: VoteRecord, budget: Budget) -> bool:
        """Returns whether something is said about a budget whose fields are covered."""
        return True

    def counts(self, record: VoteRecord, budget: Budget) -> Mapping[str, float]:
        """Returns further counts of a budget, by name."""
        return {}

    def kind(self, record: VoteRecord) -> "TierVotes":
        """Returns votes that are counted by this theorem as a contest."""
        return TierVotes(record, self)


class TierVotes(Kind):
    """Votes of groups, in tiers: those that the graph reaches, other listed ones, and all others."""

    def __init__(self, record: VoteRecord, theorem: VotesInTiers) -> None:
        self.record, self.theorem = record, theorem
        keeps_ids = record.ids == "node_id"
        self.covers = frozenset(name for name in theorem.covered(record) if keeps_ids or name != "delete_nodes")
        self.largest_size = record.votes.num_groups
        self._amounts = theorem.amounts(record)
        kinds = [*self._amounts, *([ELSEWHERE] if theorem.at_target else [])]
        extensions = ["tables"] if theorem.with_reach else []
        extensions += ["together"] if theorem.at_target else []
        self.form = Form(
            {move: MOVES[move] for move in [*kinds, MISREAD]},
            {GRAPH: self.attacker(), STEPS: _of_any_change(kinds)},
            tuple(extensions),
        )

    def attacker(self, phase: Factors | None = None) -> Attacker:
        """Returns the attacker whose budget is that of the theorem."""
        limits = Limits(words={**self.theorem.further_counts, **COUNTED})
        for move, counts in self._amounts.items():
            moves = [move, ELSEWHERE] if self.theorem.at_target and move == ANY else [move]
            if move == OF_REACHED and self.theorem.with_reach:
                limits.allow(moves, counts, reach=OLD_NODES)
            else:
                limits.allow(moves, counts)
        limits.allow([MISREAD], [MACHINES])
        places = Limit((ANY,), {"new_places": 1})
        return limits.attacker(phase=phase, shared=places if self.theorem.at_target else None)

    def is_covered(self, budget: Budget) -> bool:
        """Returns whether the theorem says something about a budget."""
        return super().is_covered(budget) and self.theorem.is_covered(self.record, budget)

    def counts(self, budget: Budget) -> Mapping[str, float]:
        """Returns what is counted of a budget, with what only this theorem counts."""
        return {**counts_of(budget), **self.theorem.counts(self.record, budget)}

    def target(self, place: int) -> Target:
        """Returns one target: its votes by tier and class, and its reach table."""
        record, votes = self.record, self.record.votes
        start, stop = votes.indptr[place], votes.indptr[place + 1]
        listed: Counter[tuple[int, int, bool]] = Counter()
        for row in range(start, stop):
            tier = REACHED if votes.reached[row] else LISTED
            listed[tier, int(votes.vote[row]), bool(votes.stable[row])] += 1
        if stop - start < votes.num_groups:
            rest = UNLISTED, int(votes.default[place]), bool(votes.default_stable[place])
            listed[rest] += votes.num_groups - int(stop - start)
        fixed, unsure = prior_of(record, place)
        moves = self.form.moves
        pools = tier_pools(votes.num_classes, listed, moves)
        pools += [misread_pool(votes.num_classes, 1, unsure_votes(votes.num_classes, listed)), *unsure]
        tables = {"reach": reach_row(record, place)} if "tables" in self.form.extensions else {}
        return target_of(str(place), fixed, pools, tables=tables)


def _of_any_change(kinds: Iterable[str]) -> Attacker:
    return Limits().allow(kinds, [STEPS]).allow([MISREAD], [MACHINES]).attacker()


def tier_pools(classes: int, listed: Mapping[tuple[int, int, bool], int], moves: Iterable[str]) -> list[Pool]:
    """Returns stable votes as units, a pool for each tier."""
    pools = []
    for tier in (REACHED, LISTED, UNLISTED):
        found = ((k, count) for (of, k, stable), count in sorted(listed.items()) if of == tier and stable)
        units = tuple(vote(classes, k, count) for k, count in found)
        hit_by = {move: becomes_any(classes) for move in moves if tier in HITS.get(move, ())}
        if hit_by:
            pools.append(Pool(hit_by, units))
        elif units:
            raise AssertionError("votes that no move reaches")
    return pools


def unsure_votes(classes: int, listed: Mapping[tuple[int, int, bool], int]) -> tuple[Unit, ...]:
    """Returns the votes near a tie, as they were read."""
    unsure: Counter[int] = Counter()
    for (_, k, stable), count in listed.items():
        if not stable:
            unsure[k] += count
    return tuple(vote(classes, k, count) for k, count in sorted(unsure.items()))


def misread_pool(classes: int, worth: int, units: tuple[Unit, ...]) -> Pool:
    """Returns votes that another machine may read as votes for any class."""
    return Pool({MISREAD: becomes_any(classes, worth)}, units)


def prior_of(record: VoteRecord, place: int) -> tuple[Vector, list[Pool]]:
    """Returns what classes have before any vote, and a prediction that another machine may read otherwise."""
    classes, rule = record.votes.num_classes, record.voting_rule
    fixed = rule.class_prior or all_of(classes, 0)
    if record.no_edge is None or record.no_edge_stable is None:
        return fixed, []
    number, of = rule.no_edge_prior, int(record.no_edge[place])
    follows = one_of(classes, of, number)
    if record.no_edge_stable[place]:
        return tuple(a + b for a, b in zip(fixed, follows, strict=True)), []
    return fixed, [misread_pool(classes, abs(number), (Unit(1, follows),))]


def reach_row(record: VoteRecord, place: int) -> Vector:
    """Returns how many votes the worst 1, 2, 3, ... nodes reach."""
    row = record.reach[record.reach_ptr[place] : record.reach_ptr[place + 1]]
    return tuple(int(x) for x in row)
