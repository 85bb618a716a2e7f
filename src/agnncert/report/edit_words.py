"""Certificates of C and C++ functions in the attacker's unit, edited statements: beside the claim, not in its place."""

from typing import Any

from agnncert.report.summary import Shares, Summary

SIZES = (0, 1, 2, 3, 5, 10, 20, 50)
_FLOWS = ["add_edges", "delete_edges", "change_edges"]
LABELS = {
    "inject_nodes": "Statements inserted (nodes injected)",
    "edges_per_injected": "… each with at most this many edges",
    "delete_nodes": "Statements deleted (nodes deleted)",
}


def edits_done(count: int) -> str:
    """What an attacker does who edits so many statements.

    Example:
        >>> edits_done(1), edits_done(3)
        ('edits any one statement', 'edits any 3 statements')
    """
    return "edits any one statement" if count == 1 else f"edits any {count:,} statements"


def edits_table(summary: Summary) -> dict[str, Any]:
    """Shares at a few numbers of edited, inserted and deleted statements; empty for other data."""
    curves = summary.edits
    if not curves:
        return {}
    last = max(int(curve.size[-1]) for curve in curves.values())
    sizes = [size for size in SIZES if size <= last]
    rows = [[str(size), *(_percent(curves[kind], size) for kind in curves)] for size in sizes]
    return {"names": list(curves), "rows": rows}


def _percent(curve: Shares, size: int) -> str:
    # beyond its end a curve goes on with those that withstand any number
    share = curve.at(min(size, curve.size[-1]))
    return f"{100 * share:.1f}\u00a0%"


def edit_presets(summary: Summary) -> list[dict[str, Any]]:
    """Budgets of the explorer in edited statements; empty for other data."""
    if not summary.edits:
        return []
    unlimited = [*(_FLOWS if _flows(summary) else []), "edges_per_injected"]
    named: dict[str, dict[str, int]] = {
        "Statements moved": {},
        "One edited statement": {"inject_nodes": 1, "delete_nodes": 1},
        "Three edited statements": {"inject_nodes": 3, "delete_nodes": 3},
        "Three inserted statements": {"inject_nodes": 3},
    }
    return [{"name": name, "budget": budget, "unlimited": unlimited} for name, budget in named.items()]


def edit_rows(summary: Summary) -> list[dict[str, Any]]:
    """Rows of what one function withstands; empty for other data."""
    if not summary.edits:
        return []
    flows = _FLOWS if _flows(summary) else []
    return [
        {"name": "Statements inserted", "field": "inject_nodes", "unlimited": [*flows, "edges_per_injected"]},
        {"name": "Statements deleted", "field": "delete_nodes", "unlimited": flows},
    ]


def _flows(summary: Summary) -> bool:
    return summary.context.statements == "flow"


def kept_edits(curve: Shares, most: float) -> int:
    """The largest number of edits that leaves most of what holds without any; at least one."""
    kept = curve.size[curve.share >= most * curve.share[0]]
    return max(1, int(kept[-1]))
