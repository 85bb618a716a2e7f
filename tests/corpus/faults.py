"""The ways in which a certificate can be false, each with its reason. Every fault alters one draft of a true file."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..support.ballot_alterations import mend_cover
from ..support.forging import Draft, derive, ids_of, set_ids, state_exclusions


class DoesNotApply(Exception):
    """The fault cannot be made in this file."""


@dataclass(frozen=True)
class Fault:
    """One way of being false.

    Attributes:
        why: Why the file is false, for a reader.
        says: Part of the reason that this library's verifier gives.
        alter: Alters the draft; raises :class:`DoesNotApply` where that is impossible.
        found_with: What a checker needs to see it: ``"file"``, ``"graph"`` or ``"model"``.
        understates: Whether what is stated is true, but less than what follows; a checker of soundness alone may accept.
        rules: Rules, or golden files, that the fault is made in.
    """

    why: str
    says: str
    alter: Callable[[Draft], None]
    rules: tuple[str, ...]
    found_with: str = "file"
    understates: bool = False


def need(condition: Any) -> None:
    """Raises :class:`DoesNotApply` unless the condition is met."""
    if not condition:
        raise DoesNotApply


def first(where: Any) -> int:
    """The first place that is marked."""
    places = np.flatnonzero(where)
    need(len(places))
    return int(places[0])


def restate(draft: Draft) -> None:
    """Lets every statement and every word follow from the altered evidence, and from the altered facts of the claim."""
    need(derive(draft))


def as_if(draft: Draft, alter: Callable[[Draft], None]) -> None:
    """States what would follow from other evidence than the one in the file."""
    other = draft.copy()
    alter(other)
    restate(other)
    stated = [name for name in draft.arrays if not name.startswith(("evidence.", "target"))]
    same = all(np.array_equal(draft.arrays[name], other.arrays[name]) for name in stated)
    need(not same or draft.header["statements"] != other.header["statements"])
    draft.arrays |= {name: other.arrays[name] for name in stated}
    draft.header["statements"] = other.header["statements"]


# Statements


def radius_too_large(draft: Draft) -> None:
    radius = draft.arrays["radius"]
    radius[first((radius >= 0) & (radius < draft.settings.get("num_groups", 1)))] += 1


def radius_where_nothing_is_proved(draft: Draft) -> None:
    draft.arrays["radius"][first(draft.arrays["radius"] < 0)] = 0


def radius_too_small(draft: Draft) -> None:
    draft.arrays["radius"][first(draft.arrays["radius"] > 0)] -= 1


def another_label(draft: Draft) -> None:
    label = draft.arrays["label"]
    label[0] = (label[0] + 1) % draft.settings.get("num_classes", 2)


def answer_too_good(draft: Draft) -> None:
    holds = draft.arrays["holds"]
    holds.reshape(-1)[first(~holds)] = True


def answer_too_weak(draft: Draft) -> None:
    holds = draft.arrays["holds"]
    holds.reshape(-1)[first(holds)] = False


def everything_holds(draft: Draft) -> None:
    need(not draft.arrays["holds"].all())
    draft.arrays["holds"][:] = True


def too_few_broken(draft: Draft) -> None:
    broken = [statement["broken_at_most"] for statement in draft.header["statements"]]
    draft.header["statements"][first(np.array(broken) > 0)]["broken_at_most"] -= 1


def none_broken(draft: Draft) -> None:
    need(any(statement["broken_at_most"] for statement in draft.header["statements"]))
    for statement in draft.header["statements"]:
        statement["broken_at_most"] = 0


def one_more_excluded(draft: Draft) -> None:
    state_exclusions(draft)
    label = draft.arrays["label"]
    for statement in draft.header["statements"]:
        for k, number in enumerate(statement.get("excluded", ())):
            if number < (label != k).sum():
                statement["excluded"][k] += 1
                return
    raise DoesNotApply


def all_others_excluded(draft: Draft) -> None:
    state_exclusions(draft)
    before = [list(statement.get("excluded", ())) for statement in draft.header["statements"]]
    for statement in draft.header["statements"]:
        for k in range(len(statement.get("excluded", ()))):
            statement["excluded"][k] = int((draft.arrays["label"] != k).sum())
    need(before != [statement.get("excluded", []) for statement in draft.header["statements"]])


def one_more_neighbour(draft: Draft) -> None:
    new = draft.arrays["new_neighbours"]
    new[first((new >= 0) & np.isfinite(new))] += 1


def any_number_of_neighbours(draft: Draft) -> None:
    new = draft.arrays["new_neighbours"]
    new[first(np.isfinite(new))] = np.inf


def structure_radius_too_large(draft: Draft) -> None:
    radius = draft.arrays["structure_radius"]
    radius[first((radius >= 0) & (radius < draft.settings["num_groups"]))] += 1


# What a prover with one mistake would state


def all_stable(draft: Draft) -> None:
    draft["stable"][:], draft["default_stable"][:] = True, True


def rounding_ignored(draft: Draft) -> None:
    as_if(draft, all_stable)


def ties_ignored(draft: Draft) -> None:
    """Adds the one vote that a class which wins ties is ahead."""
    radius, counted = draft.arrays["radius"], as_counts(draft)
    label = draft.arrays["label"]
    ahead = np.take_along_axis(counted, label[:, None], axis=1) - counted
    for k in np.flatnonzero((radius >= 0) & (radius < draft.settings["num_groups"])):
        rivals = np.delete(np.arange(counted.shape[1]), label[k])
        if (ahead[k, rivals] // 2).min() > radius[k] >= 0 and stable_only(draft, int(k)):
            radius[k] = (ahead[k, rivals] // 2).min()
            return
    raise DoesNotApply


def as_counts(draft: Draft) -> Any:
    """Votes per target and class, as cast."""
    n, classes = draft.num_targets, draft.settings["num_classes"]
    counts = np.zeros((n, classes), dtype=np.int64)
    for owner, ballot in zip(draft.owner, draft["ballot"], strict=True):
        if ballot >= 0:
            counts[owner, ballot] += 1
    unlisted = draft.settings["num_groups"] - np.diff(draft["indptr"])
    for k, ballot in enumerate(draft["default"]):
        if ballot >= 0:
            counts[k, ballot] += unlisted[k]
    return counts


def stable_only(draft: Draft, target: int) -> bool:
    """Whether all ballots of a target are stable."""
    listed = slice(draft["indptr"][target], draft["indptr"][target + 1])
    return bool(draft["stable"][listed].all() and draft["default_stable"][target])


def a_node_reaches_one_ballot(draft: Draft) -> None:
    need(len(draft["cover"]))
    as_if(draft, lambda other: mend_cover(other, 1))


def second_directions_ignored(draft: Draft) -> None:
    as_if(draft, lambda other: other.__setitem__("one_way", np.zeros_like(other["one_way"])))


def hubs_ignored(draft: Draft) -> None:
    as_if(draft, lambda other: other.__setitem__("hubs", other["hubs"][:0]))


def prior_doubled(draft: Draft) -> None:
    def alter(other: Draft) -> None:
        prior = other.settings["vote"]["prior"]
        need(prior)
        other.settings["vote"]["prior"] = 2 * prior if isinstance(prior, int) else [2 * number for number in prior]

    as_if(draft, alter)


# Words


def assumption_left_out(draft: Draft) -> None:
    draft.claim["assumes"].pop(0)


def covers_the_target(draft: Draft) -> None:
    draft.claim["covers"].append("Features of the target changed to anything.")


def says_labels_are_correct(draft: Draft) -> None:
    draft.claim["not_proved"].pop(0)


def another_unit(draft: Draft) -> None:
    draft.claim["unit"] = "one node injected, whatever its degree, and any number of edges"


def rows_in_words_only(draft: Draft) -> None:
    draft.claim["ids"] = "row" if draft.claim["ids"] == "node_id" else "node_id"


def tolerance_in_words_only(draft: Draft) -> None:
    draft.claim["tolerance"] = 0.0


def deterministic(draft: Draft) -> None:
    draft.claim["guarantee"], draft.claim["alpha"] = "deterministic", None


def smaller_alpha(draft: Draft) -> None:
    draft.claim["alpha"] = draft.claim["alpha"] / 10


# Evidence that no division can have


def ballot_twice(draft: Draft) -> None:
    row = first(np.diff(draft["indptr"]) > 1)
    start = draft["indptr"][row]
    draft["group"][start + 1] = draft["group"][start]


def ballot_for_no_class(draft: Draft) -> None:
    draft["ballot"][0] = draft.settings["num_classes"]


def group_beyond_the_last(draft: Draft) -> None:
    draft["group"][draft["indptr"][1:][first(np.diff(draft["indptr"]))] - 1] = draft.settings["num_groups"]


def ballot_not_reached(draft: Draft) -> None:
    draft["reached"][:2] = False


def cover_shrinks(draft: Draft) -> None:
    row = first(np.diff(draft["cover_ptr"]) > 1)
    draft["cover"][draft["cover_ptr"][row]] = draft["cover"][draft["cover_ptr"][row + 1] - 1] + 1


def cover_ends_early(draft: Draft) -> None:
    row = first(np.diff(draft["cover_ptr"]) > 0)
    draft["cover"][draft["cover_ptr"][row + 1] - 1] -= 1


def hubs_ascend(draft: Draft) -> None:
    draft["hubs"] = np.array([1, 2])


def hubs_of_nobody(draft: Draft) -> None:
    draft["hubs"] = np.append(draft["hubs"], 0)


def defaults_differ(draft: Draft) -> None:
    draft["default"][0] = 0 if draft["default"][0] < 0 else -1


def edgeless_differs(draft: Draft) -> None:
    draft["edgeless"][0] = (draft["edgeless"][0] + 1) % draft.settings["num_classes"]


def edgeless_flags_differ(draft: Draft) -> None:
    draft["edgeless_stable"][0] = not draft["edgeless_stable"][0]


def stray_structure_radius(draft: Draft) -> None:
    draft.arrays["structure_radius"] = draft.arrays["radius"] + 1


def no_structure_radius(draft: Draft) -> None:
    del draft.arrays["structure_radius"]


def rule_of_another_division(draft: Draft) -> None:
    draft.settings["rule"] = {
        "node-centric/node": "gnncert-n/node",
        "edge-centric/node": "gnncert-e/node",
        "node-centric/graph": "gnncert-n/graph",
        "edge-centric/graph": "gnncert-e/graph",
    }[draft.settings["rule"]]
    draft["cover"], draft["cover_ptr"] = draft["cover"][:0], np.zeros_like(draft["cover_ptr"])
    draft["default"][:] = -1
    draft.settings["vote"] = {"empty": "abstain", "prior": 0}
    restate(draft)


def more_groups_than_the_division(draft: Draft) -> None:
    draft.settings["num_groups"] += 100
    restate(draft)


def a_target_twice(draft: Draft) -> None:
    ids = ids_of(draft)
    set_ids(draft, [ids[1], *ids[1:]])


def a_row_twice(draft: Draft) -> None:
    draft.arrays["row"][0] = draft.arrays["row"][1]


def a_negative_row(draft: Draft) -> None:
    draft.arrays["row"][0] = -1


def one_target_too_few(draft: Draft) -> None:
    for name in ("row", "label", "radius", "new_neighbours", "truth", "degree", "structure_radius"):
        if name in draft.arrays:
            draft.arrays[name] = draft.arrays[name][:-1]
    draft.arrays["holds"] = draft.arrays["holds"][:, :-1]
    set_ids(draft, ids_of_all_but_one(draft))


def ids_of_all_but_one(draft: Draft) -> list[int | str]:
    """The ids without the last one, read before lengths disagree."""
    return [int(value) for value in draft.arrays["target"][:-1]]


# What only the graph shows


def exchanged_ids(draft: Draft) -> None:
    one, two, *rest = ids_of(draft)
    set_ids(draft, [two, one, *rest])


def labels_called_true(draft: Draft) -> None:
    need((draft.arrays["truth"] != draft.arrays["label"]).any())
    draft.arrays["truth"] = draft.arrays["label"].copy()


def larger_degrees(draft: Draft) -> None:
    draft.arrays["degree"] = draft.arrays["degree"] + 10


def another_graph(draft: Draft) -> None:
    draft.claim["digests"]["graph"] = "0" * 64


def rows_called_ids(draft: Draft) -> None:
    need(draft.settings["ids"] == "row")
    draft.claim["ids"] = draft.settings["ids"] = "node_id"
    restate(draft)


def a_listed_ballot_left_out(draft: Draft) -> None:
    row = first(np.diff(draft["indptr"]) > 1)
    place = draft["indptr"][row]
    for name in ("group", "ballot", "stable", "reached", "one_way"):
        if draft.has(name):
            draft[name] = np.delete(draft[name], place)
    draft["indptr"] = draft["indptr"] - (np.arange(draft.num_targets + 1) > row)
    if len(draft["cover"]):
        mend_cover(draft)
    restate(draft)


def a_smaller_cover(draft: Draft) -> None:
    before = draft["cover"].copy()
    mend_cover(draft, 1)
    need(not np.array_equal(before, draft["cover"]))
    restate(draft)


def fewer_hubs(draft: Draft) -> None:
    need(len(draft["hubs"]))
    draft["hubs"] = draft["hubs"][1:]
    restate(draft)


def hidden_directions(draft: Draft) -> None:
    need(draft["one_way"].any())
    draft["one_way"][:] = False
    restate(draft)


# What only the model shows


def one_other_ballot(draft: Draft) -> None:
    draft["ballot"][0] = (draft["ballot"][0] + 1) % draft.settings["num_classes"]
    restate(draft)


def unanimous(draft: Draft) -> None:
    draft["ballot"][:] = draft["ballot"][0]
    restate(draft)


def an_invented_abstention(draft: Draft) -> None:
    draft["ballot"][first(draft["ballot"] >= 0)] = -1
    restate(draft)


def another_default(draft: Draft) -> None:
    draft["default"][0] = (draft["default"][0] + 1) % draft.settings["num_classes"]
    restate(draft)


def another_edgeless_prediction(draft: Draft) -> None:
    draft["edgeless"][0] = (draft["edgeless"][0] + 1) % draft.settings["num_classes"]
    restate(draft)


def edgeless_in_doubt(draft: Draft) -> None:
    draft["edgeless_stable"][0] = not draft["edgeless_stable"][0]
    restate(draft)


def no_tolerance(draft: Draft) -> None:
    draft.claim["tolerance"] = 0.0
    restate(draft)


def another_model(draft: Draft) -> None:
    draft.claim["digests"]["model"] = "0" * 64
    restate(draft)


VOTES = ("edge-centric/node", "node-centric/graph")
EVERY = ("edge-centric/node", "node-centric/node", "gated/node", "edge-centric/graph", "node-centric/graph",
         "gnncert-e/node", "gnncert-n/graph", "gnncert-en/node", "custom/node", "custom/graph", "per-neighbour/node",
         "per-pair/node", "per-neighbour/graph", "per-pair/graph")  # fmt: skip
OF_NODES = ("edge-centric/node", "node-centric/node", "gated/node", "per-neighbour/node", "per-pair/node")
PER = ("per-neighbour/node", "per-pair/node", "per-neighbour/graph", "per-pair/graph")
_FOLLOWS = "does not follow from the ballots"
_WORDS = "is not what its evidence allows it to say"

FAULTS = {
    "radius-too-large": Fault(
        "A radius is one larger than what the ballots prove.",
        f"radius of 1 targets {_FOLLOWS}",
        radius_too_large,
        EVERY,
    ),
    "radius-where-nothing-is-proved": Fault(
        "A radius of 0 is stated where ballots close to a tie may decide, so that nothing is proved.",
        f"radius of 1 targets {_FOLLOWS}",
        radius_where_nothing_is_proved,
        ("node-centric/node", "gnncert-e/node"),
    ),
    "radius-too-small": Fault(
        "A radius is one smaller than what follows.",
        f"radius of 1 targets {_FOLLOWS}",
        radius_too_small,
        ("edge-centric/node", "per-pair/node"),
        understates=True,
    ),
    "another-label": Fault(
        "A label is not the class with most votes.", f"label of 1 targets {_FOLLOWS}", another_label, VOTES
    ),
    "answer-too-good": Fault(
        "One target is said to hold against a stated budget against which it does not.",
        "answer for Budget(",
        answer_too_good,
        EVERY,
    ),
    "excluded-once-too-often": Fault(
        "One more target than follows is said to be safe from a label under a stated budget.",
        "gives no label",
        one_more_excluded,
        ("edge-centric/node", "node-centric/graph", "per-neighbour/node", "stacked-sum", "rs"),
    ),
    "no-label-is-possible": Fault(
        "No target is said to get another label under any stated budget.",
        "gives no label",
        all_others_excluded,
        ("gated/node", "per-pair/graph", "stacked-two-levels"),
    ),
    "everything-holds": Fault(
        "All targets are said to hold against all stated budgets.",
        "answer for Budget(",
        everything_holds,
        ("node-centric/node", "per-pair/graph"),
    ),
    "answer-too-weak": Fault(
        "One target is said not to hold against a stated budget against which it does.",
        "answer for Budget(",
        answer_too_weak,
        ("gated/node",),
        understates=True,
    ),
    "too-few-broken": Fault(
        "One target less than what follows is said to break in one attacked graph.",
        "the stated number of targets",
        too_few_broken,
        OF_NODES,
    ),
    "none-broken": Fault(
        "No target is said to break, whatever the stated budget.",
        "the stated number of targets",
        none_broken,
        ("edge-centric/node", "node-centric/graph"),
    ),
    "one-more-new-neighbour": Fault(
        "One new neighbour more than what follows is said to be withstood.",
        "number of new neighbours",
        one_more_neighbour,
        OF_NODES,
    ),
    "any-number-of-new-neighbours": Fault(
        "Any number of new neighbours is said to be withstood.",
        "number of new neighbours",
        any_number_of_neighbours,
        ("node-centric/node", "edge-centric/graph"),
    ),
    "structure-radius-too-large": Fault(
        "The radius against added and deleted edges and nodes is one too large.",
        f"structure radius of 1 targets {_FOLLOWS}",
        structure_radius_too_large,
        PER,
    ),
    "rounding-ignored": Fault(
        "The statements are those of ballots that are all far from a tie; some of these are not.",
        "does not follow",
        rounding_ignored,
        ("edge-centric/node", "node-centric/node", "per-neighbour/node", "gnncert-en/node"),
    ),
    "ties-ignored": Fault(
        "A radius forgets that a rival with a smaller class number wins ties.",
        f"radius of 1 targets {_FOLLOWS}",
        ties_ignored,
        ("gnncert-e/node", "custom/graph"),
    ),
    "a-node-reaches-one-ballot": Fault(
        "The statements count one ballot for each deleted or altered node, however many it reaches.",
        "does not follow",
        a_node_reaches_one_ballot,
        ("edge-centric/node", "edge-centric/graph", "per-pair/graph"),
    ),
    "second-directions-ignored": Fault(
        "The statements forget that an added edge may give an old pair its second direction.",
        "does not follow",
        second_directions_ignored,
        ("per-pair/node", "per-pair/graph"),
    ),
    "hubs-ignored": Fault(
        "The number of broken targets forgets that one node may be a neighbour of many targets.",
        "the stated number of targets",
        hubs_ignored,
        ("per-neighbour/node", "per-pair/node"),
    ),
    "prior-doubled": Fault(
        "The statements count the votes that are there from the start twice.",
        "does not follow",
        prior_doubled,
        ("edge-centric/node voted", "node-centric/node voted", "per-pair/node voted"),
    ),
    "assumption-left-out": Fault(
        "The claim leaves an assumption out.", f'"assumes" {_WORDS}', assumption_left_out, VOTES
    ),
    "covers-the-target": Fault(
        "The claim says that the target's own features may change.",
        f'"covers" {_WORDS}',
        covers_the_target,
        ("edge-centric/node", "node-centric/node"),
    ),
    "labels-called-correct": Fault(
        "The claim no longer says that labels may be wrong.", f'"not_proved" {_WORDS}', says_labels_are_correct, VOTES
    ),
    "another-unit": Fault(
        "One step of the radius is said to be more than it is.",
        f'"unit" {_WORDS}',
        another_unit,
        ("edge-centric/node", "gnncert-e/node"),
    ),
    "ids-in-words-only": Fault(
        "The claim speaks of other ids than the evidence.",
        f'"ids" {_WORDS}',
        rows_in_words_only,
        ("node-centric/node",),
    ),
    "tolerance-in-words-only": Fault(
        "The claim's number for rounding is not the one in its sentences.",
        f'"assumes" {_WORDS}',
        tolerance_in_words_only,
        ("node-centric/node",),
    ),
    "deterministic": Fault(
        "Random samples are called a deterministic guarantee.", f'"guarantee" {_WORDS}', deterministic, ("samples",)
    ),
    "smaller-alpha": Fault(
        "The claim's error probability is smaller than that of the bounds.",
        f'"alpha" {_WORDS}',
        smaller_alpha,
        ("samples",),
    ),
    "ballot-twice": Fault("One subgraph casts two ballots.", "does not ascend", ballot_twice, VOTES),
    "ballot-for-no-class": Fault(
        "A ballot is for a class that does not exist.", '"ballot" has values', ballot_for_no_class, VOTES
    ),
    "group-beyond-the-last": Fault(
        "A ballot is of a subgraph that does not exist.",
        '"group" has values',
        group_beyond_the_last,
        ("node-centric/node",),
    ),
    "ballot-not-reached": Fault(
        "A listed ballot is said to be out of reach, under a rule that lists only what is reached.",
        "reached",
        ballot_not_reached,
        ("edge-centric/node", "per-neighbour/node"),
    ),
    "cover-shrinks": Fault(
        "More nodes are said to reach fewer ballots.", '"cover" decreases', cover_shrinks, ("edge-centric/node",)
    ),
    "cover-ends-early": Fault(
        "All nodes together are said to reach fewer ballots than there are.",
        'last entry of each row of "cover"',
        cover_ends_early,
        ("edge-centric/graph",),
    ),
    "hubs-ascend": Fault(
        "The nodes with most targets do not come first.", '"hubs" must descend', hubs_ascend, ("per-pair/node",)
    ),
    "hubs-of-nobody": Fault(
        "A node is listed as a neighbour of no target.", '"hubs" must descend', hubs_of_nobody, ("per-neighbour/node",)
    ),
    "defaults-differ": Fault(
        "Empty subgraphs are said to cast one and the same ballot, and do not.",
        "empty groups are said to cast",
        defaults_differ,
        ("gated/node", "edge-centric/graph"),
    ),
    "edgeless-differs": Fault(
        "The prior follows another prediction than the one that empty subgraphs cast.",
        "empty groups are said to cast the edgeless",
        edgeless_differs,
        ("node-centric/node voted",),
    ),
    "edgeless-flags-differ": Fault(
        "The prior follows a prediction that is close to a tie, and empty subgraphs cast it as one that is not, or the other way round.",
        "empty groups are said to cast the edgeless",
        edgeless_flags_differ,
        ("node-centric/node voted",),
    ),
    "stray-structure-radius": Fault(
        "A radius against structure alone is stated under a rule that has none.",
        "a radius against structure alone",
        stray_structure_radius,
        ("node-centric/node", "edge-centric/graph"),
    ),
    "no-structure-radius": Fault(
        "No radius against structure alone is stated under a rule that has one.",
        "a radius against structure alone",
        no_structure_radius,
        ("per-pair/node",),
        understates=True,
    ),
    "rule-of-another-division": Fault(
        "The ballots are counted by the theorem of another division.",
        "goes with the rule",
        rule_of_another_division,
        ("node-centric/node", "edge-centric/graph"),
    ),
    "more-groups-than-the-division": Fault(
        "There are said to be more subgraphs than the division makes.",
        "does not have",
        more_groups_than_the_division,
        ("node-centric/node", "edge-centric/graph"),
    ),
    "a-target-twice": Fault("One target is named twice.", '"target" names a target twice', a_target_twice, VOTES),
    "a-row-twice": Fault("One row is named twice.", '"row" names a target twice', a_row_twice, ("node-centric/node",)),
    "a-negative-row": Fault(
        "A row is negative, and would be counted from the end.", "negative row", a_negative_row, ("node-centric/node",)
    ),
    "one-target-too-few": Fault(
        "There are ballots of a target about which nothing is stated.",
        "but evidence about",
        one_target_too_few,
        ("node-centric/node",),
    ),
    "exchanged-ids": Fault(
        "Two targets bear each other's ids.",
        "id of 2 targets is not that of the graph",
        exchanged_ids,
        ("edge-centric-node", "gated-node", "rs"),
        "graph",
    ),
    "labels-called-true": Fault(
        "The labels are passed off as true classes.",
        "true class of",
        labels_called_true,
        ("edge-centric-node", "node-centric-graph", "bi-rs"),
        "graph",
    ),
    "larger-degrees": Fault("Degrees are invented.", "degree of", larger_degrees, ("node-centric-node",), "graph"),
    "another-graph": Fault(
        "The file speaks about another graph.",
        "the graph is not the one that was certified",
        another_graph,
        ("per-pair-node", "sparse-rs"),
        "graph",
    ),
    "rows-called-ids": Fault(
        "Row numbers are passed off as ids, so that deleted nodes would be covered.",
        'the data says by "row"',
        rows_called_ids,
        ("node-centric-node",),
        "graph",
    ),
    "a-listed-ballot-left-out": Fault(
        "A subgraph in which a target has an edge is not listed, so that its ballot seems to be out of reach.",
        "subgraphs in which targets have edges",
        a_listed_ballot_left_out,
        ("edge-centric-node", "node-centric-node", "per-pair-node"),
        "graph",
    ),
    "a-smaller-cover": Fault(
        "A node is said to reach fewer ballots than it does.",
        "subgraphs in which targets have edges",
        a_smaller_cover,
        ("edge-centric-graph", "per-pair-graph"),
        "graph",
    ),
    "fewer-hubs": Fault(
        "A node that is a neighbour of many targets is left out.",
        "subgraphs in which targets have edges",
        fewer_hubs,
        ("per-pair-node",),
        "graph",
    ),
    "hidden-directions": Fault(
        "Pairs with one direction are said to have both, so that none can be given its second.",
        "subgraphs in which targets have edges",
        hidden_directions,
        ("per-pair-node",),
        "graph",
    ),
    "one-other-ballot": Fault(
        "One ballot is not the one that the model casts.",
        "listed ballots are not those",
        one_other_ballot,
        ("edge-centric-node", "node-centric-graph", "gnncert-n-node", "per-pair-graph"),
        "model",
    ),
    "unanimous": Fault(
        "All listed ballots are said to agree.",
        "listed ballots are not those",
        unanimous,
        ("node-centric-node", "gated-node"),
        "model",
    ),
    "an-invented-abstention": Fault(
        "A subgraph is said to have cast nothing.",
        "listed ballots are not those",
        an_invented_abstention,
        ("edge-centric-graph", "node-centric-node"),
        "model",
    ),
    "another-default": Fault(
        "A target's prediction without edges is another one.",
        "default ballots are not those",
        another_default,
        ("edge-centric-node",),
        "model",
    ),
    "another-edgeless-prediction": Fault(
        "The prior follows a prediction that the model does not make.",
        "predictions without edges",
        another_edgeless_prediction,
        ("edge-centric-prior", "per-neighbour-node"),
        "model",
    ),
    "edgeless-in-doubt": Fault(
        "A prediction far from a tie is said to be close to one.",
        "close to a tie",
        edgeless_in_doubt,
        ("edge-centric-prior",),
        "model",
    ),
    "no-tolerance": Fault(
        "Scores are said to be the same on every machine, to the last bit.",
        "claim assumes that no score moves",
        no_tolerance,
        ("edge-centric-node",),
        "model",
    ),
    "another-model": Fault(
        "The file speaks about another model.",
        "the model is not the one that was certified",
        another_model,
        ("gated-node", "rs"),
        "model",
    ),
}
