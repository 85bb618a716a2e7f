"""``edit_unit``: reports on C and C++ functions in the attacker's unit, edited statements."""

from agnncert.proving.certificate import Certificate
from agnncert.report.summary import AttackUnit
from agnncert_code.budgets import withstood

_FLOWS = ["add_edges", "delete_edges", "change_edges"]
_TEXT = (
    "These graphs are C and C++ functions, and their nodes are statements. A statement that is inserted, deleted or "
    "replaced is one edit; the flow between all others may change in any way, and order, layout, comments and braces "
    "cost nothing. The table states what is certified when an attacker edits this many statements in any mix, only "
    "inserts, or only deletes this many."
)
_LABELS = {
    "inject_nodes": "Statements inserted (nodes injected)",
    "edges_per_injected": "… each with at most this many edges",
    "delete_nodes": "Statements deleted (nodes deleted)",
}


def edits_done(count: int) -> str:
    """Returns what an attacker does who edits this many statements.

    Example:
        >>> edits_done(1), edits_done(3)
        ('edits any one statement', 'edits any 3 statements')
    """
    return "edits any one statement" if count == 1 else f"edits any {count:,} statements"


def edit_unit(certificate: Certificate, flows: bool = True) -> AttackUnit | None:
    """Returns the unit of edited statements for a report on functions, ``None`` if nothing is certified in that unit.

    Args:
        certificate: A certificate of functions.
        flows: Whether the graphs have edges that follow from the flow, as in ``edits``.
    """
    if certificate.claim.task != "graph":
        return None
    largest = {kind: withstood(certificate, kind, flows) for kind in ("edited", "inserted", "deleted")}
    if not (largest["edited"] >= 0).any():
        return None
    free_edges = _FLOWS if flows else []
    budgets: dict[str, dict[str, int]] = {
        "Statements moved": {},
        "One edited statement": {"inject_nodes": 1, "delete_nodes": 1},
        "Three edited statements": {"inject_nodes": 3, "delete_nodes": 3},
        "Three inserted statements": {"inject_nodes": 3},
    }
    unlimited = [*free_edges, "edges_per_injected"]
    return AttackUnit(
        targets="functions",
        title="In edited statements",
        text=_TEXT,
        column="Statements",
        withstood=largest,
        done=edits_done,
        presets=[{"name": name, "budget": budget, "unlimited": unlimited} for name, budget in budgets.items()],
        rows=[
            {"name": "Statements inserted", "field": "inject_nodes", "unlimited": unlimited},
            {"name": "Statements deleted", "field": "delete_nodes", "unlimited": free_edges},
        ],
        labels=_LABELS,
    )
