"""``Finding``: one thing that breaks the guarantee, and the words for what the probes find."""

from dataclasses import dataclass

from agnncert.auditing.constructed_graphs import EXTRAS

ALL_ATTACKS = ("edges", "nodes", "features")


@dataclass(frozen=True)
class Finding:
    """One thing that breaks the guarantee.

    Attributes:
        where: Name of the layer, or of the probe.
        what: The layer with the setting at fault, or what was done to the graph.
        why: Why it breaks the guarantee.
        remedy: What to do.
        leaves: Attacks for which the guarantee still holds.
        alone: Whether the fault lies only in evaluating several graphs at once, which ``engine="naive"`` does not do.
    """

    where: str
    what: str
    why: str
    remedy: str
    leaves: tuple[str, ...] = ()
    alone: bool = False


@dataclass(frozen=True)
class Reason:
    """What a probe did to a graph, what that showed, and what to do about it."""

    what: str
    why: str
    remedy: str


_ELSEWHERE = "moved the output of nodes it is not connected to"
_MIXING = "Remove whatever looks at all nodes at once (norms over nodes, virtual nodes, global pooling or attention)."
_REASONS = {
    "features": Reason("other features elsewhere", _ELSEWHERE, _MIXING),
    "overflow": Reason(
        "infinite features elsewhere",
        "0 times infinity is NaN: features that overflow spoil nodes they are not connected to",
        "Multiply by a sparse adjacency matrix, or choose with torch.where instead of multiplying by zeros.",
    ),
    "values": Reason(
        "other edge values elsewhere",
        _ELSEWHERE,
        "Treat edge values edge by edge or node by node: no maximum, norm, softmax or ranking over all edges.",
    ),
    "edges": Reason(
        "other edges elsewhere", _ELSEWHERE, "Remove whatever counts, ranks or sums up all edges or nodes at once."
    ),
    "places": Reason(
        "edges at other places of the list",
        "moved the output of nodes whose own edges kept their order",
        "Let nothing depend on the place of an edge in the list (edge dropout, neighbour sampling, weights by number).",
    ),
    "numbers": Reason(
        "more nodes and edges elsewhere",
        _ELSEWHERE,
        "Remove whatever depends on the number or the rows of all nodes or edges (sizes, padding, positions).",
    ),
    "many": Reason(
        "many times as many nodes and edges elsewhere",
        _ELSEWHERE,
        "Remove whatever depends on the number of all nodes or edges, or on the largest degree.",
    ),
    "rows": Reason(
        "nodes and edges in another order",
        "the output depends on the order",
        "Use aggregations that do not depend on order, and nothing that depends on the row of a node.",
    ),
    "memory": Reason(
        "another graph in between", "the model remembers earlier graphs", "Switch off caching between calls."
    ),
    "chance": Reason(
        "the same graph twice", "gives two different outputs", "Call model.eval(), and switch off sampling and dropout."
    ),
    "alone": Reason("nodes without edges one by one", _ELSEWHERE, _MIXING),
    "outgoing": Reason(
        "arcs that leave a node",
        "moved the output of the node that they leave",
        "Use EdgeCentric, or layers that read incoming edges only.",
    ),
    "batch": Reason(
        "other graphs in one batch",
        "graphs of a batch influence each other",
        'Evaluate one graph at a time: certify(..., engine="naive").',
    ),
    "not finite": Reason(
        "the graph as it is",
        "gives scores that are not finite (NaN or infinite), so there is no best class",
        "Look for overflow, logarithms of 0 and divisions by 0 in forward, or scale the features.",
    ),
}
for _name in EXTRAS:
    _REASONS[f"one {_name}"] = Reason(
        f"one {_name} more elsewhere",
        _ELSEWHERE,
        "Remove whatever asks about the graph as a whole (its size, largest degree, direction, doubled edges).",
    )
_RANGES = "Remove whatever asks about all {} at once (their largest, mean, spread or sign), and scale by fixed numbers."
_REASONS["row"] = Reason("one lone node of other features elsewhere", _ELSEWHERE, _RANGES.format("features"))
_REASONS["edge value"] = Reason("one edge of other values elsewhere", _ELSEWHERE, _RANGES.format("edge values"))


def finding_of(reason: str, leaves: tuple[str, ...] = (), alone: bool = False) -> Finding:
    """Returns the finding for the name of a reason, with its description and remedy.

    Args:
        reason: The name. What follows ": " says more about what was done.
        leaves: Attacks for which the guarantee still holds.
        alone: Whether the fault lies only in evaluating several graphs at once.
    """
    name, _, more = reason.partition(": ")
    words = _REASONS[name]
    what = f"{words.what}, {more}" if more else words.what
    return Finding("behaviour", what, words.why, words.remedy, leaves, alone)
