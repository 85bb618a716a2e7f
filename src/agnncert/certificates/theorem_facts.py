"""Holds facts about the theorems by which votes are counted.

``THEOREMS`` has one entry for each division and task, with facts that everyone may use. They say what a theorem speaks
about, not what it proves: ``proving.theorems`` proves with it, and ``verifier.limits`` states it again in other code.
Files, claims and reports read the facts from here.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from agnncert.certificates.budget import COUNTS

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
        covers: A sentence that says what is covered. It is empty where ``whole_graph`` or stated prices decide that.
        by_pair: Whether edges are divided by their pair of nodes.
    """

    method: str
    unit: str
    whole_graph: bool = False
    covers: str = ""
    by_pair: bool = False


@dataclass(frozen=True)
class TheoremFacts:
    """What is known about a theorem, in addition to what it proves.

    Attributes:
        task: ``"node"`` or ``"graph"``.
        division: What is known about the division.
        by_neighbours: Whether every vote beyond the reached ones costs a new neighbour of the target.
        target_features: Whether changes of the target's own features are covered.
        uses_reach: Whether votes come with a reach table: how many of them the worst k nodes reach.
        most_unreached: How many of a target's listed votes may be ones that the graph does not reach, None for any
            number.
        parameters: Names of the whole numbers that the theorem needs.
        prices: Budget fields for which a user's own division may state how many votes one unit moves.
        empty: What empty groups may vote for, the default first: ``"no_edge"``, ``"abstain"``, ``"class"``.
        no_edge_prior: Whether a prior may follow the prediction without edges of each target.
        per_neighbour: Whether every neighbour (or pair, or node) has its own group, so that votes come and go with
            them, and no ids are needed to tell groups.
    """

    task: str
    division: DivisionFacts
    by_neighbours: bool = False
    target_features: bool = False
    uses_reach: bool = False
    most_unreached: int | None = None
    parameters: tuple[str, ...] = ()
    prices: tuple[str, ...] = ()
    empty: tuple[str, ...] = ("abstain", "class")
    no_edge_prior: bool = False
    per_neighbour: bool = False

    @property
    def one_way(self) -> bool:
        """Whether votes come with flags: of which of them the pair has one direction only."""
        return self.per_neighbour and self.division.by_pair

    @property
    def targets_per_node(self) -> bool:
        """Whether votes come with a list of how many targets the other nodes are neighbours of."""
        return self.per_neighbour and self.task == "node"


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
    "one vote; an edge moves as many as there are feature groups, the features of a node as many as there are edge "
    "groups",
    covers="Edges between existing nodes, and features of existing nodes, changed in one attack.",
)
_CUSTOM = DivisionFacts("custom", "one vote; the division states how many each change moves")

_PAIRS = DivisionFacts("agnncert", _EDGE.unit, whole_graph=True, by_pair=True)
_NEIGHBOURS = DivisionFacts("agnncert", _WHATEVER_DEGREE, whole_graph=True, by_pair=True)
_NODES = DivisionFacts(
    "agnncert",
    "one node injected, deleted or given other features, whatever its degree; edges do not count",
    whole_graph=True,
)

_GRID = ("edge_groups", "feature_groups")
_ANYTHING = ("no_edge", "abstain", "class")  # what empty groups may vote for
_NOTHING = ("abstain",)  # no group is known to be empty

THEOREMS = {
    "edge-centric/node": TheoremFacts(
        "node", _EDGE, by_neighbours=True, uses_reach=True, most_unreached=0, empty=_ANYTHING, no_edge_prior=True
    ),
    "node-centric/node": TheoremFacts(
        "node", _NODE, by_neighbours=True, most_unreached=0, empty=_ANYTHING, no_edge_prior=True
    ),
    "gated/node": TheoremFacts("node", _GATED, by_neighbours=True, target_features=True, most_unreached=1),
    "edge-centric/graph": TheoremFacts("graph", _EDGE, uses_reach=True, most_unreached=0),
    "node-centric/graph": TheoremFacts("graph", _NODE),
    "gnncert-e/node": TheoremFacts("node", _GNNCERT_E, empty=_NOTHING),
    "gnncert-n/node": TheoremFacts("node", _GNNCERT_N, target_features=True, empty=_NOTHING),
    "gnncert-en/node": TheoremFacts("node", _GNNCERT_EN, target_features=True, parameters=_GRID, empty=_NOTHING),
    "gnncert-e/graph": TheoremFacts("graph", _GNNCERT_E, empty=_NOTHING),
    "gnncert-n/graph": TheoremFacts("graph", _GNNCERT_N, empty=_NOTHING),
    "gnncert-en/graph": TheoremFacts("graph", _GNNCERT_EN, parameters=_GRID, empty=_NOTHING),
    "custom/node": TheoremFacts(
        "node", _CUSTOM, target_features=True, prices=(*COUNTS, "target_features"), empty=_NOTHING
    ),
    "custom/graph": TheoremFacts("graph", _CUSTOM, prices=COUNTS, empty=_NOTHING),
    "per-neighbour/node": TheoremFacts(
        "node", _NODE, by_neighbours=True, most_unreached=0, no_edge_prior=True, per_neighbour=True
    ),
    "per-pair/node": TheoremFacts(
        "node", _NEIGHBOURS, by_neighbours=True, most_unreached=0, no_edge_prior=True, per_neighbour=True
    ),
    "per-neighbour/graph": TheoremFacts("graph", _NODES, most_unreached=0, per_neighbour=True),
    "per-pair/graph": TheoremFacts("graph", _PAIRS, uses_reach=True, most_unreached=0, per_neighbour=True),
}

# What an edge-centric division proves for a model that mixes nodes: one changed pair moves one vote, and no more.
EDGES_ONLY = {"add_edges": 1, "delete_edges": 1, "change_edges": 1}

# How built-in divisions print: those with a fixed number of groups, and those with one for each neighbour.
_PRINTED = re.compile(
    r"(?P<name>edge-centric|node-centric|gnncert-e|gnncert-n|gnncert-en)"
    r"\(T=(?P<rows>[1-9]\d{0,18})(?:x(?P<columns>[1-9]\d{0,18}))?, "
    r"hash=(?:md5|sha1|sha256|blake2b), key=u64le"
    r"(?P<gated>, gated features)?(?:, self-loops kept)?(?P<edges_only>, edges only)?\)"
)
_PRINTED_PER_NEIGHBOUR = {
    "edge-centric(T=inf)": "per-pair",
    "edge-centric(T=inf, self-loops kept)": "per-pair",
    "node-centric(T=inf)": "per-neighbour",
}


def division_words(division: str) -> str:
    """Returns how a division is called where people read it: one vote per neighbour or edge has a name of its own.

    Args:
        division: The printed form, as claims state it.

    Example:
        >>> division_words("node-centric(T=inf)"), division_words("edge-centric(T=inf, self-loops kept)")
        ('per-neighbour', 'per-edge, self-loops kept')
    """
    for printed, name in (("node-centric(T=inf", "per-neighbour"), ("edge-centric(T=inf", "per-edge")):
        if division.startswith(printed):
            return name + division.removeprefix(printed).removesuffix(")")
    return division


def theorem_mismatch(theorem: str, division: str, num_groups: int, parameters: Mapping[str, int]) -> str:
    """Returns why a theorem does not belong to a division that prints as ``division``. It is empty if it does.

    A built-in division has one theorem for each task. Whatever prints in another way is somebody's own division, and
    all that is known about it are the prices that it states.

    Example:
        >>> theorem_mismatch("gated/node", "node-centric(T=60, hash=md5, key=u64le)", 60, {})
        'the division node-centric(T=60, hash=md5, key=u64le) has the theorem "node-centric/node", not "gated/node"'
    """
    task = THEOREMS[theorem].task
    if division in _PRINTED_PER_NEIGHBOUR:
        return _name_mismatch(theorem, division, f"{_PRINTED_PER_NEIGHBOUR[division]}/{task}")
    printed = _PRINTED.fullmatch(division)
    if printed is not None:
        return _printed_mismatch(theorem, division, printed, num_groups, parameters)
    if theorem == f"custom/{task}":
        return ""
    return f'only the theorem "custom/{task}" goes with a division that is not built in: {division!r:.99}'


def _name_mismatch(theorem: str, division: str, expected: str) -> str:
    if theorem == expected:
        return ""
    return f'the division {division} has the theorem "{expected}", not "{theorem}"'


def _printed_mismatch(
    theorem: str, division: str, printed: re.Match[str], num_groups: int, parameters: Mapping[str, int]
) -> str:
    """As :func:`theorem_mismatch`, for a division that prints as a built-in one with a fixed number of groups."""
    task = THEOREMS[theorem].task
    name = printed["name"]
    sides = [int(side) for side in (printed["rows"], printed["columns"]) if side is not None]
    expected_sides = 2 if name == "gnncert-en" else 1
    expected = f"{name}/{task}"
    expected_parameters: Mapping[str, int] = {}
    if (printed["gated"] and name != "node-centric") or (printed["edges_only"] and name != "edge-centric"):
        return f"no built-in division prints as {division}"
    if printed["gated"] and task == "node":
        expected = "gated/node"
    if printed["edges_only"]:
        expected = f"custom/{task}"
        expected_parameters = EDGES_ONLY
    if name == "gnncert-en":
        expected_parameters = dict(zip(_GRID, sides, strict=False))
    mismatch = _name_mismatch(theorem, division, expected)
    if mismatch:
        return mismatch
    if parameters != expected_parameters or math.prod(sides) != num_groups or len(sides) != expected_sides:
        return f"the division {division} does not have {num_groups} groups and the parameters {dict(parameters)}"
    return ""
