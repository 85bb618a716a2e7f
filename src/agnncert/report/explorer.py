"""What the explorer and the view of one target offer for each kind of division."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from agnncert.proof.evidence import BallotEvidence
from agnncert.proof.rules import RULES
from agnncert.report.summary import Summary
from agnncert.report.words import step_words

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

_ALL_BUT_ADDITIONS = ["delete_edges", "change_edges", "change_features"]

_WORDS = {
    "node": {
        "listed_short": "in subgraphs with its edges",
        "listed_sentence": "Its neighbours fall into {count} of the subgraphs: {groups}.",
        "none_listed_sentence": "It has an edge in none of the subgraphs.",
        "default_sentence": "In {count} further subgraphs it has no edge and casts its default ballot, "
        "from its features alone: {ballot}.",
        "grid_sentence": "Framed: the node has an edge there. Pale: its default ballot.",
        "reached_title": "Has an edge there",
        "neighbours_title": "New neighbours withstood",
        "degree_title": "Degree",
    },
    "gated": {
        "listed_sentence": "Its neighbours and itself fall into {count} of the subgraphs: {groups}.",
        "none_listed_sentence": "It is heard in none of the subgraphs.",
        "default_sentence": "{count} further subgraphs know nothing about it and abstain.",
        "listed_short": "in subgraphs that know it",
    },
    "graph": {
        "listed_short": "in subgraphs with a part of the graph",
        "listed_sentence": "Its parts fall into {count} of the subgraphs: {groups}.",
        "none_listed_sentence": "No subgraph holds any part of it.",
        "default_sentence": "{count} further subgraphs are empty and abstain.",
        "grid_sentence": "Framed: edges can change there. Grey: empty, no vote.",
        "reached_title": "Can hold an edge",
        "neighbours_title": "Injected nodes withstood",
        "degree_title": "Edges",
    },
    "all": {
        "listed_short": "listed one by one",
        "listed_sentence": "All {count} are listed.",
        "none_listed_sentence": "No ballot is listed.",
        "default_sentence": "{count} further subgraphs cast its default ballot: {ballot}.",
        "reached_title": "Can be moved",
    },
}


def controls(task: str) -> list[dict[str, Any]]:
    """The explorer's controls in groups. In the graph task no node is the target, so none is asked about."""
    features = [
        ("change_features", "Other nodes whose features change" if task == "node" else "Nodes whose features change")
    ]
    groups = {"Edges": _EDGES, "Nodes": _NODES, "Features": features}
    listed: list[dict[str, Any]] = [
        {"title": title, "controls": [{"field": f, "label": label, "kind": "count"} for f, label in fields]}
        for title, fields in groups.items()
    ]
    if task == "node":
        own = {"field": "target_features", "label": "The target’s own features may change too", "kind": "switch"}
        listed[-1]["controls"].append(own)
    return listed


def explorer_meta(summary: Summary, evidence: BallotEvidence) -> dict[str, Any]:
    """What the page's scripts need to know about the rule and its words."""
    rule = RULES[evidence.rule]
    return {
        "rule": evidence.rule,
        "by_neighbours": rule.by_neighbours,
        "own_features": rule.target_features,
        "stable_ids": evidence.ids == "node_id",
        "parameters": dict(evidence.parameters),
        "num_groups": evidence.votes.num_groups,
        "slider_max": _slider_max(summary),
        "presets": _presets(evidence),
        "withstood": _withstood(evidence),
        **_words(evidence.rule),
    }


def _words(rule: str) -> dict[str, str]:
    method, task = rule.split("/")
    words = _WORDS["node"] | (_WORDS["graph"] if task == "graph" else {})
    if method == "gated":
        words |= _WORDS["gated"]
    if method.startswith(("gnncert", "custom")):
        words |= _WORDS["all"]
    return words


def _slider_max(summary: Summary) -> dict[str, int]:
    """Sliders end a little beyond the point where the last target falls."""
    ends = [float(summary.certificate.radius.max(initial=0))]
    if summary.added is not None and np.isfinite(summary.added).any():
        ends.append(float(summary.added[np.isfinite(summary.added)].max()))
    top = max(10, int(1.1 * max(ends)) + 1)
    fields = ("add_edges", "delete_edges", "change_edges", "inject_nodes", "delete_nodes", "change_features")
    return dict.fromkeys(fields, top) | {"edges_per_injected": min(top, 50)}


def _preset(name: str, unlimited: list[str] | None = None, **budget: int | bool) -> dict[str, Any]:
    return {"name": name, "budget": budget, "unlimited": unlimited or []}


def _presets(evidence: BallotEvidence) -> list[dict[str, Any]]:
    """A few budgets to start from, those that the rule can say something about."""
    method, task = evidence.rule.split("/")
    deletions = ["delete_nodes"] if evidence.ids == "node_id" else []
    presets = [_preset("No attack")]
    if method in ("edge-centric", "node-centric", "gated", "gnncert-e", "gnncert-en", "custom"):
        presets.append(_preset("Three new edges", add_edges=3))
    if method in ("edge-centric", "node-centric", "gated"):
        presets.append(
            _preset(
                "Three fake accounts, any edges" if task == "node" else "Three new nodes, any edges",
                ["edges_per_injected"],
                inject_nodes=3,
            )
        )
        if task == "node":
            presets.append(_preset("Anything but new neighbours", _ALL_BUT_ADDITIONS + deletions))
            presets.append(
                _preset("Three new neighbours and anything else", _ALL_BUT_ADDITIONS + deletions, add_edges=3)
            )
        else:
            presets.append(_preset("All edges", ["add_edges", "delete_edges", "change_edges"]))
    if method in ("gnncert-n", "gnncert-en"):
        presets.append(_preset("Three nodes’ features", change_features=3))
    if RULES[evidence.rule].target_features:
        presets.append(_preset("Its own features", target_features=True))
    return presets


def _row(name: str, field: str, unlimited: Sequence[str] = ()) -> dict[str, Any]:
    return {"name": name, "field": field, "unlimited": list(unlimited)}


def _withstood(evidence: BallotEvidence) -> list[dict[str, Any]]:
    """The rows of "what this target withstands": one field of the budget each."""
    task = RULES[evidence.rule].task
    rows = [
        _row("Edges added", "add_edges"),
        _row("Edges deleted", "delete_edges"),
        _row("Nodes injected, with any number of edges", "inject_nodes", ["edges_per_injected"]),
        _row("Nodes deleted", "delete_nodes"),
        _row(
            "Other nodes whose features change" if task == "node" else "Nodes whose features change", "change_features"
        ),
    ]
    if task == "node":
        rows.append(_row("Its own features change", "target_features"))
    if RULES[evidence.rule].by_neighbours:
        deletions = ["delete_nodes"] if evidence.ids == "node_id" else []
        rows.append(
            _row("New neighbours, and everything else without limit", "add_edges", _ALL_BUT_ADDITIONS + deletions)
        )
    return rows


def radius_sentence(summary: Summary) -> str:
    """What the radius of one target means; the page puts the number in."""
    return f"Its label withstands every attack of a size up to {{radius}} ({step_words(summary)[1]})."
