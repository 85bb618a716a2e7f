"""What the explorer and the view of one target offer for each kind of division."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from agnncert.proof.evidence import BallotEvidence
from agnncert.proof.rules import RULES
from agnncert.report.edit_words import LABELS, edit_presets, edit_rows
from agnncert.report.summary import Summary
from agnncert.report.vote_words import empty_words
from agnncert.report.words import TARGETS, division_words, step_words

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


def _features_label(task: str) -> str:
    return "Other nodes whose features change" if task == "node" else "Nodes whose features change"


def controls(task: str, functions: bool = False) -> list[dict[str, Any]]:
    """The explorer's controls in groups. In the graph task no node is the target, so none is asked about.

    Args:
        task: ``"node"`` or ``"graph"``.
        functions: Whether the targets are functions, whose nodes are statements.
    """
    groups = {"Edges": _EDGES, "Nodes": _NODES, "Features": (("change_features", _features_label(task)),)}
    listed: list[dict[str, Any]] = [
        {"title": title, "controls": [_count(f, LABELS.get(f, label) if functions else label) for f, label in fields]}
        for title, fields in groups.items()
    ]
    if task == "node":
        own = {"field": "target_features", "label": "The target’s own features may change too", "kind": "switch"}
        listed[-1]["controls"].append(own)
    return listed


def _count(field: str, label: str) -> dict[str, Any]:
    return {"field": field, "label": label, "kind": "count"}


def explorer_meta(summary: Summary, evidence: BallotEvidence) -> dict[str, Any]:
    """What the page's scripts need to know about the rule and its words."""
    rule = RULES[evidence.rule]
    return {
        "rule": evidence.rule,
        "by_neighbours": rule.by_neighbours,
        "own_features": rule.target_features,
        "stable_ids": evidence.ids == "node_id" or rule.own_groups,
        "own_groups": rule.own_groups,
        "one_way": rule.one_way,
        "vote": _vote(evidence),
        "parameters": dict(evidence.parameters),
        "num_groups": evidence.votes.num_groups,
        "slider_max": _slider_max(summary),
        "presets": [_preset("No attack"), *(edit_presets(summary) or _presets(evidence))],
        "withstood": [*edit_rows(summary), *_withstood(evidence)],
        **(TARGETS[rule.task] | division_words(evidence.rule).target | empty_words(evidence)),
    }


def _vote(evidence: BallotEvidence) -> dict[str, Any]:
    """What is there before any ballot is cast; ``absent`` is the class of empty groups that are beyond number."""
    vote = evidence.vote
    own = RULES[evidence.rule].own_groups and vote.constant is not None
    return {
        "class_prior": list(vote.class_prior),
        "edgeless_prior": vote.edgeless_prior,
        "absent": vote.constant if own else -1,
        "unusual": bool(vote.prior) or RULES[evidence.rule].own_groups,
    }


def _slider_max(summary: Summary) -> dict[str, int]:
    """Sliders end a little beyond the point where the last target falls."""
    ends = [float(summary.certificate.radius.max(initial=0))]
    if summary.structure is not None:
        ends.append(float(summary.structure.max(initial=0)))
    if summary.added is not None and np.isfinite(summary.added).any():
        ends.append(float(summary.added[np.isfinite(summary.added)].max()))
    top = max(10, int(1.1 * max(ends)) + 1)
    fields = ("add_edges", "delete_edges", "change_edges", "inject_nodes", "delete_nodes", "change_features")
    return dict.fromkeys(fields, top) | {"edges_per_injected": min(top, 50)}


def _preset(name: str, unlimited: list[str] | None = None, **budget: int | bool) -> dict[str, Any]:
    return {"name": name, "budget": budget, "unlimited": unlimited or []}


def _presets(evidence: BallotEvidence) -> list[dict[str, Any]]:
    """A few budgets to start from, those that the rule can say something about."""
    rule, kinds = RULES[evidence.rule], division_words(evidence.rule).presets
    presets = []
    if "edges" in kinds:
        presets.append(_preset("Three new edges", add_edges=3))
    if rule.division.whole_graph:
        newcomers = "fake accounts" if rule.task == "node" else "new nodes"
        presets.append(_preset(f"Three {newcomers}, any edges", ["edges_per_injected"], inject_nodes=3))
        if rule.by_neighbours:
            others = _all_but_additions(evidence)
            presets.append(_preset("Anything but new neighbours", others))
            presets.append(_preset("Three new neighbours and anything else", others, add_edges=3))
        else:
            presets.append(_preset("All edges", ["add_edges", "delete_edges", "change_edges"]))
    if "features" in kinds:
        presets.append(_preset("Three nodes’ features", change_features=3))
    if rule.target_features:
        presets.append(_preset("Its own features", target_features=True))
    return presets


def _all_but_additions(evidence: BallotEvidence) -> list[str]:
    """Fields of a budget that bring a target no new neighbour; nodes can be deleted only where ids tell them apart."""
    deletions = ["delete_nodes"] if evidence.ids == "node_id" else []
    return ["delete_edges", "change_edges", "change_features", *deletions]


def _row(name: str, field: str, unlimited: Sequence[str] = ()) -> dict[str, Any]:
    return {"name": name, "field": field, "unlimited": list(unlimited)}


def _withstood(evidence: BallotEvidence) -> list[dict[str, Any]]:
    """The rows of "what this target withstands": one field of the budget each."""
    rule = RULES[evidence.rule]
    rows = [
        _row("Edges added", "add_edges"),
        _row("Edges deleted", "delete_edges"),
        _row("Nodes injected, with any number of edges", "inject_nodes", ["edges_per_injected"]),
        _row("Nodes deleted", "delete_nodes"),
        _row(_features_label(rule.task), "change_features"),
    ]
    if rule.task == "node":
        rows.append(_row("Its own features change", "target_features"))
    if rule.by_neighbours:
        others = _all_but_additions(evidence)
        rows.append(_row("New neighbours, and everything else without limit", "add_edges", others))
    return rows


def radius_sentence(summary: Summary) -> str:
    """What the radius of one target means; the page puts the number in."""
    words = f"Its label withstands every attack of a size up to {{radius}} ({step_words(summary)[1]})."
    if summary.structure is None:
        return words
    return (
        f"{words} If edges and nodes are only added and deleted, and none is given other values: up to {{structure}}."
    )
