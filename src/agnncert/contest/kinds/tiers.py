"""Votes of a fixed number of groups (Theorems 3 to 6, GNNCert, own divisions) as a contest."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from agnncert.certificates.budget import Budget
from agnncert.certificates.votes import VoteRecord
from agnncert.contest.form import Attacker, Factors, Limit, Pool, Target, Unit, Vector
from agnncert.contest.kinds.kind import (
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

# Which counts allow how many moves, and which of them by the reach table of the target.
AMOUNTS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "edge-centric/node": {ANY: ("add_edges", "joined"), OF_REACHED: ("surplus", "delete_edges", "change_edges")},
    "edge-centric/graph": {ANY: ("add_edges", "injected_edges"), OF_REACHED: ("delete_edges", "change_edges")},
    "node-centric/node": {ANY: ("add_edges", "joined"), OF_REACHED: ("delete_edges", "change_edges", *OLD_NODES)},
    "gated/node": {
        ANY: ("add_edges", "joined"),
        OF_LISTED: ("target_features",),
        OF_REACHED: ("delete_edges", "change_edges", *OLD_NODES),
    },
    "node-centric/graph": {ANY: ("inject_nodes",), OF_LISTED: OLD_NODES, OF_REACHED: EDGES},
    "gnncert-e/node": {ANY: EDGES},
    "gnncert-e/graph": {ANY: EDGES},
    "gnncert-n/node": {ANY: ("change_features", "target_features")},
    "gnncert-n/graph": {ANY: ("change_features",)},
    "gnncert-en/node": {ANY: ("cells",)},
    "gnncert-en/graph": {ANY: ("cells",)},
}
WITH_REACH = ("edge-centric/node", "edge-centric/graph")
NEW_NEIGHBOURS = ("edge-centric/node", "node-centric/node", "gated/node")  # an added edge is one of the target
OF_OLD_EDGES = ("gnncert-e", "gnncert-en")
OF_OLD_NODES = ("gnncert-n", "gnncert-en")


class TierVotes(Kind):
    """Votes of groups, in tiers: those that the graph reaches, other listed ones, and all others."""

    def __init__(self, record: VoteRecord) -> None:
        self.record = record
        self.covers = frozenset(covered_fields(record))
        self.largest_size = record.votes.num_groups
        shared = record.theorem in NEW_NEIGHBOURS
        kinds = [*_amounts(record), *([ELSEWHERE] if shared else [])]
        extensions = ["tables"] if record.theorem in WITH_REACH else []
        extensions += ["together"] if shared else []
        self.form = Form(
            {move: MOVES[move] for move in [*kinds, MISREAD]},
            {GRAPH: attacker_of(record), STEPS: _of_any_change(kinds)},
            tuple(extensions),
        )

    def is_covered(self, budget: Budget) -> bool:
        """Returns whether the theorem says something about a budget: of an own division only what it has stated."""
        is_custom = self.record.theorem.startswith("custom")
        if is_custom and budget.injected_edges and "edges_per_injected" not in self.record.parameters:
            return False
        return super().is_covered(budget)

    def counts(self, budget: Budget) -> Mapping[str, float]:
        """Returns what is counted of a budget, with the cells of GNNCert-EN's grid."""
        return counts_of(budget) | cells(self.record, budget)

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


def attacker_of(record: VoteRecord, phase: Factors | None = None) -> Attacker:
    """Returns the attacker whose budget is that of the theorem."""
    limits = Limits()
    shared = record.theorem in NEW_NEIGHBOURS
    for move, counts in _amounts(record).items():
        moves = [move, ELSEWHERE] if shared and move == ANY else [move]
        if move == OF_REACHED and record.theorem in WITH_REACH:
            limits.allow(moves, counts, reach=OLD_NODES)
        else:
            limits.allow(moves, counts)
    limits.allow([MISREAD], [MACHINES])
    places = Limit((ANY,), {"new_places": 1})
    return limits.attacker(phase=phase, shared=places if shared else None)


def _of_any_change(kinds: Iterable[str]) -> Attacker:
    return Limits().allow(kinds, [STEPS]).allow([MISREAD], [MACHINES]).attacker()


def _amounts(record: VoteRecord) -> Mapping[str, Iterable[str] | Factors]:
    """Returns how many moves each count allows."""
    if not record.theorem.startswith("custom"):
        return AMOUNTS[record.theorem]
    names = {name.replace("edges_per_injected", "injected_edges"): price for name, price in record.parameters.items()}
    return {ANY: {name: price for name, price in names.items() if price}}


def covered_fields(record: VoteRecord) -> Iterator[str]:
    """Yields fields of a budget about which the theorem says something."""
    division, task = record.theorem.split("/")
    keeps_ids = record.ids == "node_id"
    fields: set[str] = set()
    if division == "custom":
        fields.update(record.parameters)
    if division in OF_OLD_EDGES:
        fields.update(EDGES)
    if division in OF_OLD_NODES:
        fields.add("change_features")
    if division not in ("custom", *OF_OLD_EDGES, *OF_OLD_NODES):
        fields.update(GRAPH_FIELDS)
    if division in ("gated", *OF_OLD_NODES):
        fields.add("target_features")
    if task == "graph":
        fields.discard("target_features")
    yield from (name for name in fields if keeps_ids or name != "delete_nodes")


def cells(record: VoteRecord, budget: Budget) -> dict[str, float]:
    """Returns in how many groups of GNNCert-EN's grid the changes lie: edges in rows, features in columns."""
    if not record.theorem.startswith("gnncert-en"):
        return {}
    rows, columns = record.parameters["edge_groups"], record.parameters["feature_groups"]
    changed = budget.add_edges + budget.delete_edges + budget.change_edges
    features = budget.change_features + budget.target_features
    return {"cells": rows * columns - max(rows - changed, 0) * max(columns - features, 0)}


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


def but_additions(record: VoteRecord) -> Budget:
    """Returns any number of deletions and changes. Without ids, no node is deleted."""
    return Budget(
        delete_edges=math.inf,
        change_edges=math.inf,
        delete_nodes=math.inf if record.ids == "node_id" else 0,
        change_features=math.inf,
    )
