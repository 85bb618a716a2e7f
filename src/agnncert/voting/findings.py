"""What an audit can find, and the words in which it says so."""

from dataclasses import dataclass

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


_ELSEWHERE = "moved the output of nodes it is not connected to"
_REASONS = {
    "features": (
        "other features elsewhere",
        _ELSEWHERE,
        "Remove whatever looks at all nodes at once (norms over nodes, virtual nodes, global pooling or attention).",
    ),
    "overflow": (
        "infinite features elsewhere",
        "0 times infinity is NaN: features that overflow spoil nodes they are not connected to",
        "Multiply by a sparse adjacency matrix, or choose with torch.where instead of multiplying by zeros.",
    ),
    "values": (
        "other edge values elsewhere",
        _ELSEWHERE,
        "Treat edge values edge by edge or node by node: no maximum, norm, softmax or ranking over all edges.",
    ),
    "edges": (
        "other edges elsewhere",
        _ELSEWHERE,
        "Remove whatever counts, ranks or sums up all edges or nodes at once.",
    ),
    "places": (
        "edges at other places of the list",
        "moved the output of nodes whose own edges kept their order",
        "Let nothing depend on the place of an edge in the list (edge dropout, neighbour sampling, weights by number).",
    ),
    "numbers": (
        "more nodes and edges elsewhere",
        _ELSEWHERE,
        "Remove whatever depends on the number or the rows of all nodes or edges (sizes, padding, positions).",
    ),
    "rows": (
        "nodes and edges in another order",
        "the output depends on the order",
        "Use aggregations that do not depend on order, and nothing that depends on the row of a node.",
    ),
    "memory": ("another graph in between", "the model remembers earlier graphs", "Switch off caching between calls."),
    "chance": (
        "the same graph twice",
        "gives two different outputs",
        "Call model.eval(), and switch off sampling and dropout.",
    ),
    "alone": (
        "nodes without edges one by one",
        _ELSEWHERE,
        "Remove whatever looks at all nodes at once (norms over nodes, virtual nodes, global pooling or attention).",
    ),
    "outgoing": (
        "arcs that leave a node",
        "moved the output of the node that they leave",
        "Use EdgeCentric, or layers that read incoming edges only.",
    ),
    "batch": (
        "other graphs in one batch",
        "graphs of a batch influence each other",
        'Evaluate one graph at a time: certify(..., engine="naive").',
    ),
    "not finite": (
        "the graph as it is",
        "gives scores that are not finite (NaN or infinite), so there is no best class",
        "Look for overflow, logarithms of 0 and divisions by 0 in forward, or scale the features.",
    ),
}


def finding(reason: str, leaves: tuple[str, ...] = (), alone: bool = False) -> Finding:
    """What to say about one thing that a probe has found."""
    return Finding("behaviour", *_REASONS[reason], leaves, alone)
