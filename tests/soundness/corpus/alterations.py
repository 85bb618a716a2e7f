"""How the draft of a true file is altered, so that it becomes false in one way."""

from collections.abc import Callable
from typing import Any

import numpy as np

from agnncert.stacked.claim import EDGE_BLIND_PREMISES
from tests.soundness.forger.forging import Draft, derive, ids_of, set_ids, state_exclusions
from tests.soundness.forger.vote_alterations import mend_cover


class DoesNotApply(Exception):
    """The fault cannot be made in this file."""


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
    for owner, vote in zip(draft.owner, draft["vote"], strict=True):
        if vote >= 0:
            counts[owner, vote] += 1
    unlisted = draft.settings["num_groups"] - np.diff(draft["indptr"])
    for k, vote in enumerate(draft["default"]):
        if vote >= 0:
            counts[k, vote] += unlisted[k]
    return counts


def stable_only(draft: Draft, target: int) -> bool:
    """Whether all votes of a target are stable."""
    listed = slice(draft["indptr"][target], draft["indptr"][target + 1])
    return bool(draft["stable"][listed].all() and draft["default_stable"][target])


def a_node_reaches_one_vote(draft: Draft) -> None:
    need(len(draft["reach"]))
    as_if(draft, lambda other: mend_cover(other, 1))


def second_directions_ignored(draft: Draft) -> None:
    as_if(draft, lambda other: other.__setitem__("one_way", np.zeros_like(other["one_way"])))


def hubs_ignored(draft: Draft) -> None:
    as_if(draft, lambda other: other.__setitem__("targets_per_node", other["targets_per_node"][:0]))


def prior_doubled(draft: Draft) -> None:
    def alter(other: Draft) -> None:
        prior = other.settings["voting_rule"]["prior"]
        need(prior)
        other.settings["voting_rule"]["prior"] = (
            2 * prior if isinstance(prior, int) else [2 * number for number in prior]
        )

    as_if(draft, alter)


# Words


def edges_at_any_time(draft: Draft) -> None:
    draft.claim["assumes"][:2] = EDGE_BLIND_PREMISES


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


def vote_twice(draft: Draft) -> None:
    row = first(np.diff(draft["indptr"]) > 1)
    start = draft["indptr"][row]
    draft["group"][start + 1] = draft["group"][start]


def vote_for_no_class(draft: Draft) -> None:
    draft["vote"][0] = draft.settings["num_classes"]


def group_beyond_the_last(draft: Draft) -> None:
    draft["group"][draft["indptr"][1:][first(np.diff(draft["indptr"]))] - 1] = draft.settings["num_groups"]


def vote_not_reached(draft: Draft) -> None:
    draft["reached"][:2] = False


def cover_shrinks(draft: Draft) -> None:
    row = first(np.diff(draft["reach_ptr"]) > 1)
    draft["reach"][draft["reach_ptr"][row]] = draft["reach"][draft["reach_ptr"][row + 1] - 1] + 1


def cover_ends_early(draft: Draft) -> None:
    row = first(np.diff(draft["reach_ptr"]) > 0)
    draft["reach"][draft["reach_ptr"][row + 1] - 1] -= 1


def hubs_ascend(draft: Draft) -> None:
    draft["targets_per_node"] = np.array([1, 2])


def hubs_of_nobody(draft: Draft) -> None:
    draft["targets_per_node"] = np.append(draft["targets_per_node"], 0)


def defaults_differ(draft: Draft) -> None:
    draft["default"][0] = 0 if draft["default"][0] < 0 else -1


def no_edge_differs(draft: Draft) -> None:
    draft["no_edge"][0] = (draft["no_edge"][0] + 1) % draft.settings["num_classes"]


def no_edge_flags_differ(draft: Draft) -> None:
    draft["no_edge_stable"][0] = not draft["no_edge_stable"][0]


def stray_structure_radius(draft: Draft) -> None:
    draft.arrays["structure_radius"] = draft.arrays["radius"] + 1


def no_structure_radius(draft: Draft) -> None:
    del draft.arrays["structure_radius"]


def rule_of_another_division(draft: Draft) -> None:
    draft.settings["theorem"] = {
        "node-centric/node": "gnncert-n/node",
        "edge-centric/node": "gnncert-e/node",
        "node-centric/graph": "gnncert-n/graph",
        "edge-centric/graph": "gnncert-e/graph",
    }[draft.settings["theorem"]]
    draft["reach"], draft["reach_ptr"] = draft["reach"][:0], np.zeros_like(draft["reach_ptr"])
    draft["default"][:] = -1
    draft.settings["voting_rule"] = {"empty": "abstain", "prior": 0}
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


def a_listed_vote_left_out(draft: Draft) -> None:
    row = first(np.diff(draft["indptr"]) > 1)
    place = draft["indptr"][row]
    for name in ("group", "vote", "stable", "reached", "one_way"):
        if draft.has(name):
            draft[name] = np.delete(draft[name], place)
    draft["indptr"] = draft["indptr"] - (np.arange(draft.num_targets + 1) > row)
    if len(draft["reach"]):
        mend_cover(draft)
    restate(draft)


def a_smaller_cover(draft: Draft) -> None:
    before = draft["reach"].copy()
    mend_cover(draft, 1)
    need(not np.array_equal(before, draft["reach"]))
    restate(draft)


def fewer_targets_per_node(draft: Draft) -> None:
    need(len(draft["targets_per_node"]))
    draft["targets_per_node"] = draft["targets_per_node"][1:]
    restate(draft)


def hidden_directions(draft: Draft) -> None:
    need(draft["one_way"].any())
    draft["one_way"][:] = False
    restate(draft)


# What only the model shows


def one_other_vote(draft: Draft) -> None:
    draft["vote"][0] = (draft["vote"][0] + 1) % draft.settings["num_classes"]
    restate(draft)


def unanimous(draft: Draft) -> None:
    draft["vote"][:] = draft["vote"][0]
    restate(draft)


def an_invented_abstention(draft: Draft) -> None:
    draft["vote"][first(draft["vote"] >= 0)] = -1
    restate(draft)


def another_default(draft: Draft) -> None:
    draft["default"][0] = (draft["default"][0] + 1) % draft.settings["num_classes"]
    restate(draft)


def another_no_edge_prediction(draft: Draft) -> None:
    draft["no_edge"][0] = (draft["no_edge"][0] + 1) % draft.settings["num_classes"]
    restate(draft)


def no_edge_in_doubt(draft: Draft) -> None:
    draft["no_edge_stable"][0] = not draft["no_edge_stable"][0]
    restate(draft)


def no_tolerance(draft: Draft) -> None:
    draft.claim["tolerance"] = 0.0
    restate(draft)


def another_model(draft: Draft) -> None:
    draft.claim["digests"]["model"] = "0" * 64
    restate(draft)
