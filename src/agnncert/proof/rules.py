"""The rules by which ballots are counted: one name per division and task, with the facts that everyone may use.

A rule says what a division's theorem speaks about, not what the theorem is: ``theorems`` proves with it, ``recount``
counts again in code of its own, and files, claims and reports read the facts from here.
"""

from dataclasses import dataclass

from agnncert.proof.budget import COUNTS

_WHATEVER_DEGREE = (
    "one edge added, deleted or changed, or one node injected, deleted or given other features, whatever its degree"
)


@dataclass(frozen=True)
class DivisionFacts:
    """What is known about a division, whatever the task.

    Attributes:
        method: Name of the defence that it belongs to.
        unit: What one step of the radius counts.
        whole_graph: Whether it divides edges, nodes and features, so that changes of all of them are covered.
        covers: A sentence that says what is covered; empty where ``whole_graph`` or the stated prices decide that.
    """

    method: str
    unit: str
    whole_graph: bool = False
    covers: str = ""


@dataclass(frozen=True)
class Rule:
    """What is known about a rule besides its theorem.

    Attributes:
        task: ``"node"`` or ``"graph"``.
        division: What is known about the division.
        by_neighbours: Whether every ballot beyond the reached ones costs a new neighbour of the target.
        target_features: Whether changes of the target's own features are covered.
        uses_cover: Whether ballots come with a cover table: how many of them the worst k nodes reach.
        most_unreached: How many of a target's listed ballots may be ones that the graph does not reach; None for any.
        parameters: Names of the whole numbers that the theorem needs.
        prices: Budget fields for which a user's own division may state how many ballots one unit moves.
    """

    task: str
    division: DivisionFacts
    by_neighbours: bool = False
    target_features: bool = False
    uses_cover: bool = False
    most_unreached: int | None = None
    parameters: tuple[str, ...] = ()
    prices: tuple[str, ...] = ()


_EDGE = DivisionFacts(
    "agnncert",
    "one edge added, deleted or changed; a node that is injected, deleted or given other features counts once for each "
    "of its edges",
    whole_graph=True,
)
_NODE = DivisionFacts("agnncert", _WHATEVER_DEGREE, whole_graph=True)
_GATED = DivisionFacts(
    "agnncert", f"{_WHATEVER_DEGREE}; the target's own features count like those of any other node", whole_graph=True
)
_GNNCERT_E = DivisionFacts(
    "gnncert",
    "one edge between existing nodes added, deleted or changed",
    covers="Edges between existing nodes added, deleted or changed.",
)
_GNNCERT_N = DivisionFacts(
    "gnncert", "one existing node given other features", covers="Features of existing nodes changed to anything."
)
_GNNCERT_EN = DivisionFacts(
    "gnncert",
    "one ballot; an edge moves as many as there are feature groups, the features of a node as many as there are edge "
    "groups",
    covers="Edges between existing nodes, and features of existing nodes, changed in one attack.",
)
_CUSTOM = DivisionFacts("custom", "one ballot; the division states how many each change moves")

_GRID = ("edge_groups", "feature_groups")

RULES = {
    "edge-centric/node": Rule("node", _EDGE, by_neighbours=True, uses_cover=True, most_unreached=0),
    "node-centric/node": Rule("node", _NODE, by_neighbours=True, most_unreached=0),
    "gated/node": Rule("node", _GATED, by_neighbours=True, target_features=True, most_unreached=1),
    "edge-centric/graph": Rule("graph", _EDGE, uses_cover=True, most_unreached=0),
    "node-centric/graph": Rule("graph", _NODE),
    "gnncert-e/node": Rule("node", _GNNCERT_E),
    "gnncert-n/node": Rule("node", _GNNCERT_N, target_features=True),
    "gnncert-en/node": Rule("node", _GNNCERT_EN, target_features=True, parameters=_GRID),
    "gnncert-e/graph": Rule("graph", _GNNCERT_E),
    "gnncert-n/graph": Rule("graph", _GNNCERT_N),
    "gnncert-en/graph": Rule("graph", _GNNCERT_EN, parameters=_GRID),
    "custom/node": Rule("node", _CUSTOM, target_features=True, prices=(*COUNTS, "target_features")),
    "custom/graph": Rule("graph", _CUSTOM, prices=COUNTS),
}
