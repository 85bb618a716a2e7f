"""What the explorer of a page needs: its controls, the theorem with its words, and the votes to count."""

from typing import Any

import numpy as np

from agnncert.certificates.votes import VoteRecord
from agnncert.divided.theorems.registry import theorem_of
from agnncert.divided.words import target_words
from agnncert.proving.evidence import PageRules
from agnncert.proving.theorems import count_votes
from agnncert.report.packing import Array, pack
from agnncert.report.summary import AttackUnit, Summary

DETAIL_BYTES = 2_600_000  # compressed; single votes beyond this stay out of the page, so that it opens anywhere
# Names of the fields of a budget.
_EDGES = (
    ("add_edges", "Edges added"),
    ("delete_edges", "Edges deleted"),
    ("change_edges", "Edges given another weight, attribute or number of copies"),
)
_NODES = (
    ("inject_nodes", "Nodes injected"),
    ("edges_per_injected", "… each with at most this many edges"),
    ("delete_nodes", "Nodes deleted"),
)
FEATURES = {
    "node": "Other nodes whose features change",
    "pair": "Other nodes whose features change",
    "graph": "Nodes whose features change",
}


def controls(task: str, unit: AttackUnit | None = None) -> list[dict[str, Any]]:
    """Returns the explorer's controls in groups. Only the node task has target features.

    Args:
        task: "node" or "graph".
        unit: May rename fields. Fields have their own names by default.
    """
    groups = {"Edges": _EDGES, "Nodes": _NODES, "Features": (("change_features", FEATURES[task]),)}
    names = {} if unit is None else unit.labels
    listed: list[dict[str, Any]] = [
        {
            "title": title,
            "controls": [{"field": f, "label": names.get(f, label), "kind": "count"} for f, label in fields],
        }
        for title, fields in groups.items()
    ]
    if task == "node":
        own = {"field": "target_features", "label": "The target’s own features may change too", "kind": "switch"}
        listed[-1]["controls"].append(own)
    return listed


def explorer_meta(summary: Summary, record: VoteRecord) -> dict[str, Any]:
    """Returns what the page's scripts need to know about the theorem and its words.

    ``absent`` is the class that empty groups vote for where there is one group per neighbour, else -1.
    """
    facts = record.facts
    unit = summary.context.unit
    voting_rule = record.voting_rule
    absent = -1
    if facts.per_neighbour and voting_rule.constant is not None:
        absent = voting_rule.constant
    presets = _presets(record) if unit is None else unit.presets
    rows = () if unit is None else unit.rows
    return {
        "theorem": record.theorem if summary.has_explorer else None,
        "by_neighbours": facts.by_neighbours,
        "own_features": facts.target_features,
        "stable_ids": record.ids == "node_id" or facts.per_neighbour,
        "per_neighbour": facts.per_neighbour,
        "one_way": facts.one_way,
        "voting_rule": {
            "class_prior": list(voting_rule.class_prior),
            "no_edge_prior": voting_rule.no_edge_prior,
            "absent": absent,
        },
        "parameters": dict(record.parameters),
        "num_groups": record.votes.num_groups,
        "slider_max": _slider_max(summary),
        "presets": [_preset("No attack"), *presets],
        "withstood": [*rows, *_withstood(record)],
        **target_words(record),
    }


def rules_meta(summary: Summary, rules: PageRules) -> dict[str, Any]:
    """Returns the same for rules that are not about votes of subgraphs."""
    task = summary.certificate.claim.task
    presets = [_preset(name, list(unlimited), **budget) for name, budget, unlimited in rules.presets]
    return {
        "theorem": rules.name,
        "slider_max": _slider_max(summary),
        "presets": [_preset("No attack"), *presets],
        "withstood": _named_rows(_single_rows(task)),
    }


def _slider_max(summary: Summary) -> dict[str, int]:
    """Returns the largest values of sliders: a little more than what charts show. More can be typed."""
    top = max(10, int(1.1 * min(summary.largest_radius, summary.shown_size)) + 1)
    fields = ("add_edges", "delete_edges", "change_edges", "inject_nodes", "delete_nodes", "change_features")
    return dict.fromkeys(fields, top) | {"edges_per_injected": min(top, 50)}


def _preset(name: str, unlimited: list[str] | None = None, **budget: int | bool) -> dict[str, Any]:
    return {"name": name, "budget": budget, "unlimited": unlimited or []}


def _presets(record: VoteRecord) -> list[dict[str, Any]]:
    """Returns a few budgets to start from, all of which the theorem covers."""
    facts = record.facts
    kinds = theorem_of(record.theorem).words.presets
    presets = []
    if "edges" in kinds:
        presets.append(_preset("Three new edges", add_edges=3))
    if facts.whole_graph:
        newcomers = "fake accounts" if facts.task == "node" else "new nodes"
        presets.append(_preset(f"Three {newcomers}, any edges", ["edges_per_injected"], inject_nodes=3))
        if facts.by_neighbours:
            others = _all_but_additions(record)
            presets.append(_preset("Anything but new neighbours", others))
            presets.append(_preset("Three new neighbours and anything else", others, add_edges=3))
        else:
            presets.append(_preset("All edges", ["add_edges", "delete_edges", "change_edges"]))
    if "features" in kinds:
        presets.append(_preset("Three nodes’ features", change_features=3))
    if facts.target_features:
        presets.append(_preset("Its own features", target_features=True))
    return presets


def _all_but_additions(record: VoteRecord) -> list[str]:
    """Returns the fields of a budget that bring a target no new neighbour.

    Nodes can be deleted only where ids tell them apart.
    """
    deletions = ["delete_nodes"] if record.ids == "node_id" else []
    return ["delete_edges", "change_edges", "change_features", *deletions]


def _withstood(record: VoteRecord) -> list[dict[str, Any]]:
    """Returns rows of the table of one target: how much of one field of the budget it is certified against."""
    facts = record.facts
    rows = _single_rows(facts.task)
    if facts.by_neighbours:
        rows.append(("New neighbours, and everything else without limit", "add_edges", _all_but_additions(record)))
    return _named_rows(rows)


def _single_rows(task: str) -> list[tuple[str, str, list[str]]]:
    """Returns one row for each kind of change: its name, its field, and the fields without a limit."""
    rows: list[tuple[str, str, list[str]]] = [
        ("Edges added", "add_edges", []),
        ("Edges deleted", "delete_edges", []),
        ("Nodes injected, with any number of edges", "inject_nodes", ["edges_per_injected"]),
        ("Nodes deleted", "delete_nodes", []),
        (FEATURES[task], "change_features", []),
    ]
    if task == "node":
        rows.append(("Its own features change", "target_features", []))
    return rows


def _named_rows(rows: list[tuple[str, str, list[str]]]) -> list[dict[str, Any]]:
    return [{"name": name, "field": field, "unlimited": unlimited} for name, field, unlimited in rows]


def count_arrays(summary: Summary) -> dict[str, Array]:
    """Returns what the explorer counts: stable votes by tier, how far nodes reach, and what a prior follows."""
    record = summary.votes
    if record is None:
        return {}
    votes = record.votes
    counted = count_votes(votes)
    reached, unreached, _ = counted.votes
    arrays: dict[str, Array] = {
        "default": votes.default,
        "default_stable": votes.default_stable,
        "num_listed": np.diff(votes.indptr),
        "num_reached": np.bincount(votes.owner[votes.reached], minlength=votes.num_targets),
        "size": counted.size.ravel(),
        "votes_reached": reached.ravel(),
        "reach_len": np.diff(record.reach_ptr),
        "reach": record.reach,
    }
    if unreached.any():
        arrays["votes_unreached"] = unreached.ravel()
    if record.one_way is not None:
        one_way = votes.stable & record.one_way
        arrays["one_way_votes"] = votes.count_by_class(one_way, np.zeros(votes.num_targets, dtype=bool)).ravel()
        arrays["one_way_size"] = np.bincount(votes.owner[one_way], minlength=votes.num_targets)
    known = {name: getattr(record, name) for name in ("no_edge", "no_edge_stable", "targets_per_node")}
    return arrays | {name: array for name, array in known.items() if array is not None}


def vote_arrays(record: VoteRecord, num_targets: int) -> dict[str, Array]:
    """Returns every listed vote of the first ``num_targets`` targets. Groups are steps from one to the next."""
    votes = record.votes
    one_way = np.zeros(len(votes.vote), dtype=bool) if record.one_way is None else record.one_way
    last = votes.indptr[num_targets]
    group = votes.group[:last].astype(np.int64)
    starts = votes.indptr[:num_targets][np.diff(votes.indptr[: num_targets + 1]) > 0]
    step = np.diff(group, prepend=-1)
    step[starts] = group[starts] + 1
    return {
        "listed_len": np.diff(votes.indptr[: num_targets + 1]),
        "group_step": step,
        "vote": votes.vote[:last],
        "flags": votes.stable[:last].astype(np.int64) + 2 * votes.reached[:last] + 4 * one_way[:last],
    }


def num_detailed(record: VoteRecord, limit: int = DETAIL_BYTES) -> int:
    """Returns how many targets' single votes fit into ``limit`` compressed bytes, from the first target on."""
    count = record.num_targets
    while count:
        size = len(pack(vote_arrays(record, count))[1])
        if size <= limit:
            break
        count = min(int(count * 0.97 * limit / size), count - 1)
    return count
