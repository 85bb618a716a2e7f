"""Facts about the theorems by which votes are counted.

``THEOREMS`` has one name per division and task, with the facts that everyone may use. They say what a theorem speaks
about, not what it proves: ``proving.theorems`` proves with it, ``verifier.recount`` counts again in separate code, and
files, claims and reports read the facts from here.
"""

import math
import re
from dataclasses import dataclass
from typing import Any

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
        covers: A sentence that says what is covered; empty where ``whole_graph`` or the stated prices decide that.
        by_pair: Whether edges are divided by their pair of nodes.
    """

    method: str
    unit: str
    whole_graph: bool = False
    covers: str = ""
    by_pair: bool = False


@dataclass(frozen=True)
class TheoremFacts:
    """What is known about a rule in addition to its theorem.

    Attributes:
        task: ``"node"`` or ``"graph"``.
        division: What is known about the division.
        by_neighbours: Whether every vote beyond the reached ones costs a new neighbour of the target.
        target_features: Whether changes of the target's own features are covered.
        uses_reach: Whether votes come with a reach table: how many of them the worst k nodes reach.
        most_unreached: How many of a target's listed votes may be ones that the graph does not reach; None for any.
        parameters: Names of the whole numbers that the theorem needs.
        prices: Budget fields for which a user's own division may state how many votes one unit moves.
        empty: What empty groups may cast, the usual first: ``"no_edge"``, ``"abstain"``, ``"class"``.
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
_ANY_VOTE: dict[str, Any] = {"empty": ("no_edge", "abstain", "class"), "no_edge_prior": True}
_OWN: dict[str, Any] = {"per_neighbour": True, "most_unreached": 0}
_ALL_CAST: dict[str, Any] = {"empty": ("abstain",)}  # no group is known to be empty

THEOREMS = {
    "edge-centric/node": TheoremFacts(
        "node", _EDGE, by_neighbours=True, uses_reach=True, most_unreached=0, **_ANY_VOTE
    ),
    "node-centric/node": TheoremFacts("node", _NODE, by_neighbours=True, most_unreached=0, **_ANY_VOTE),
    "gated/node": TheoremFacts("node", _GATED, by_neighbours=True, target_features=True, most_unreached=1),
    "edge-centric/graph": TheoremFacts("graph", _EDGE, uses_reach=True, most_unreached=0),
    "node-centric/graph": TheoremFacts("graph", _NODE),
    "gnncert-e/node": TheoremFacts("node", _GNNCERT_E, **_ALL_CAST),
    "gnncert-n/node": TheoremFacts("node", _GNNCERT_N, target_features=True, **_ALL_CAST),
    "gnncert-en/node": TheoremFacts("node", _GNNCERT_EN, target_features=True, parameters=_GRID, **_ALL_CAST),
    "gnncert-e/graph": TheoremFacts("graph", _GNNCERT_E, **_ALL_CAST),
    "gnncert-n/graph": TheoremFacts("graph", _GNNCERT_N, **_ALL_CAST),
    "gnncert-en/graph": TheoremFacts("graph", _GNNCERT_EN, parameters=_GRID, **_ALL_CAST),
    "custom/node": TheoremFacts(
        "node", _CUSTOM, target_features=True, prices=(*COUNTS, "target_features"), **_ALL_CAST
    ),
    "custom/graph": TheoremFacts("graph", _CUSTOM, prices=COUNTS, **_ALL_CAST),
    "per-neighbour/node": TheoremFacts("node", _NODE, by_neighbours=True, no_edge_prior=True, **_OWN),
    "per-pair/node": TheoremFacts("node", _NEIGHBOURS, by_neighbours=True, no_edge_prior=True, **_OWN),
    "per-neighbour/graph": TheoremFacts("graph", _NODES, **_OWN),
    "per-pair/graph": TheoremFacts("graph", _PAIRS, uses_reach=True, **_OWN),
}

# What an edge-centric division proves for a model that mixes nodes: one changed pair moves one vote, and no more.
EDGES_ONLY = {"add_edges": 1, "delete_edges": 1, "change_edges": 1}

_PRINTED = re.compile(
    r"(edge-centric|node-centric|gnncert-e|gnncert-n|gnncert-en)\(T=([1-9]\d{0,18})(?:x([1-9]\d{0,18}))?, "
    r"hash=(?:md5|sha1|sha256|blake2b), key=u64le(, gated features)?(?:, self-loops kept)?(, edges only)?\)"
)


_PRINTED_OWN = re.compile(r"(edge|node)-centric\(T=inf(, self-loops kept)?\)")


def why_not(theorem: str, division: str, num_groups: int, parameters: dict[str, Any]) -> str:
    """Why a rule does not belong to a division that prints as ``division``; empty if it does.

    A built-in division has one theorem per task. Anything else that prints in another way is somebody's own, and all
    that is known about it are the prices that it states.

    Example:
        >>> why_not("gated/node", "node-centric(T=60, hash=md5, key=u64le)", 60, {})
        'the division node-centric(T=60, hash=md5, key=u64le) has the theorem "node-centric/node", not "gated/node"'
    """
    task, printed = THEOREMS[theorem].task, _PRINTED.fullmatch(division)
    own = _PRINTED_OWN.fullmatch(division)
    if own is not None and not (own[1] == "node" and own[2]):
        right = f"{'per-pair' if own[1] == 'edge' else 'per-neighbour'}/{task}"
        return "" if theorem == right else f'the division {division} has the theorem "{right}", not "{theorem}"'
    if printed is None:
        any_other = f"custom/{task}"
        wrong = f'only the theorem "{any_other}" goes with a division that is not built in: {division!r:.99}'
        return "" if theorem == any_other else wrong
    name, *sides = printed.groups()[:3]
    numbers = [int(side) for side in sides if side]
    right = "gated" if printed[4] and task == "node" else name
    if theorem == f"custom/{task}" and name == "edge-centric" and printed[5]:
        wanted = EDGES_ONLY
    elif not printed[5] and theorem == f"{right}/{task}":
        wanted = dict(zip(_GRID, numbers, strict=False)) if name == "gnncert-en" else {}
    else:
        return f'the division {division} has the theorem "{right}/{task}", not "{theorem}"'
    if parameters != wanted or math.prod(numbers) != num_groups or len(numbers) != (2 if name == "gnncert-en" else 1):
        return f"the division {division} does not have {num_groups} groups and the parameters {parameters}"
    return ""
