"""The rules by which ballots are counted.

``RULES`` has one name per division and task, with the facts that everyone may use. A rule says what a division's
theorem speaks about, not what the theorem is: ``theorems`` proves with it, ``recount`` counts again in separate code,
and files, claims and reports read the facts from here.

:class:`VotingRule` says what an empty group casts, and how many votes each class starts with. It is fixed before any
ballot is seen and stands in the certificate, so no attack can move it.
"""

import math
import re
import reprlib
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

from agnncert.certificates.budget import COUNTS
from agnncert.errors import CertificateError, SettingsError

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
class Rule:
    """What is known about a rule in addition to its theorem.

    Attributes:
        task: ``"node"`` or ``"graph"``.
        division: What is known about the division.
        by_neighbours: Whether every ballot beyond the reached ones costs a new neighbour of the target.
        target_features: Whether changes of the target's own features are covered.
        uses_cover: Whether ballots come with a cover table: how many of them the worst k nodes reach.
        most_unreached: How many of a target's listed ballots may be ones that the graph does not reach; None for any.
        parameters: Names of the whole numbers that the theorem needs.
        prices: Budget fields for which a user's own division may state how many ballots one unit moves.
        empty: What empty groups may cast, the usual first: ``"edgeless"``, ``"abstain"``, ``"class"``.
        edgeless_prior: Whether a prior may follow the prediction without edges of each target.
        per_neighbour: Whether every neighbour (or pair, or node) has its own group, so that ballots come and go with
            them, and no ids are needed to tell groups.
    """

    task: str
    division: DivisionFacts
    by_neighbours: bool = False
    target_features: bool = False
    uses_cover: bool = False
    most_unreached: int | None = None
    parameters: tuple[str, ...] = ()
    prices: tuple[str, ...] = ()
    empty: tuple[str, ...] = ("abstain", "class")
    edgeless_prior: bool = False
    per_neighbour: bool = False

    @property
    def one_way(self) -> bool:
        """Whether ballots come with flags: of which of them the pair has one direction only."""
        return self.per_neighbour and self.division.by_pair

    @property
    def hubs(self) -> bool:
        """Whether ballots come with a list of how many targets the other nodes are neighbours of."""
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
    "one ballot; an edge moves as many as there are feature groups, the features of a node as many as there are edge "
    "groups",
    covers="Edges between existing nodes, and features of existing nodes, changed in one attack.",
)
_CUSTOM = DivisionFacts("custom", "one ballot; the division states how many each change moves")

_PAIRS = DivisionFacts("agnncert", _EDGE.unit, whole_graph=True, by_pair=True)
_NEIGHBOURS = DivisionFacts("agnncert", _WHATEVER_DEGREE, whole_graph=True, by_pair=True)
_NODES = DivisionFacts(
    "agnncert",
    "one node injected, deleted or given other features, whatever its degree; edges do not count",
    whole_graph=True,
)

_GRID = ("edge_groups", "feature_groups")
_ANY_VOTE: dict[str, Any] = {"empty": ("edgeless", "abstain", "class"), "edgeless_prior": True}
_OWN: dict[str, Any] = {"per_neighbour": True, "most_unreached": 0}
_ALL_CAST: dict[str, Any] = {"empty": ("abstain",)}  # no group is known to be empty

RULES = {
    "edge-centric/node": Rule("node", _EDGE, by_neighbours=True, uses_cover=True, most_unreached=0, **_ANY_VOTE),
    "node-centric/node": Rule("node", _NODE, by_neighbours=True, most_unreached=0, **_ANY_VOTE),
    "gated/node": Rule("node", _GATED, by_neighbours=True, target_features=True, most_unreached=1),
    "edge-centric/graph": Rule("graph", _EDGE, uses_cover=True, most_unreached=0),
    "node-centric/graph": Rule("graph", _NODE),
    "gnncert-e/node": Rule("node", _GNNCERT_E, **_ALL_CAST),
    "gnncert-n/node": Rule("node", _GNNCERT_N, target_features=True, **_ALL_CAST),
    "gnncert-en/node": Rule("node", _GNNCERT_EN, target_features=True, parameters=_GRID, **_ALL_CAST),
    "gnncert-e/graph": Rule("graph", _GNNCERT_E, **_ALL_CAST),
    "gnncert-n/graph": Rule("graph", _GNNCERT_N, **_ALL_CAST),
    "gnncert-en/graph": Rule("graph", _GNNCERT_EN, parameters=_GRID, **_ALL_CAST),
    "custom/node": Rule("node", _CUSTOM, target_features=True, prices=(*COUNTS, "target_features"), **_ALL_CAST),
    "custom/graph": Rule("graph", _CUSTOM, prices=COUNTS, **_ALL_CAST),
    "per-neighbour/node": Rule("node", _NODE, by_neighbours=True, edgeless_prior=True, **_OWN),
    "per-pair/node": Rule("node", _NEIGHBOURS, by_neighbours=True, edgeless_prior=True, **_OWN),
    "per-neighbour/graph": Rule("graph", _NODES, **_OWN),
    "per-pair/graph": Rule("graph", _PAIRS, uses_cover=True, **_OWN),
}

# What an edge-centric division proves for a model that mixes nodes: one changed pair moves one ballot, and no more.
EDGES_ONLY = {"add_edges": 1, "delete_edges": 1, "change_edges": 1}

_PRINTED = re.compile(
    r"(edge-centric|node-centric|gnncert-e|gnncert-n|gnncert-en)\(T=([1-9]\d{0,18})(?:x([1-9]\d{0,18}))?, "
    r"hash=(?:md5|sha1|sha256|blake2b), key=u64le(, gated features)?(?:, self-loops kept)?(, edges only)?\)"
)


_PRINTED_OWN = re.compile(r"(edge|node)-centric\(T=inf(, self-loops kept)?\)")


def why_not(rule: str, division: str, num_groups: int, parameters: dict[str, Any]) -> str:
    """Why a rule does not belong to a division that prints as ``division``; empty if it does.

    A built-in division has one theorem per task. Anything else that prints in another way is somebody's own, and all
    that is known about it are the prices that it states.

    Example:
        >>> why_not("gated/node", "node-centric(T=60, hash=md5, key=u64le)", 60, {})
        'the division node-centric(T=60, hash=md5, key=u64le) goes with the rule "node-centric/node", not "gated/node"'
    """
    task, printed = RULES[rule].task, _PRINTED.fullmatch(division)
    own = _PRINTED_OWN.fullmatch(division)
    if own is not None and not (own[1] == "node" and own[2]):
        right = f"{'per-pair' if own[1] == 'edge' else 'per-neighbour'}/{task}"
        return "" if rule == right else f'the division {division} goes with the rule "{right}", not "{rule}"'
    if printed is None:
        any_other = f"custom/{task}"
        wrong = f'only the rule "{any_other}" goes with a division that is not built in: {division!r:.99}'
        return "" if rule == any_other else wrong
    name, *sides = printed.groups()[:3]
    numbers = [int(side) for side in sides if side]
    right = "gated" if printed[4] and task == "node" else name
    if rule == f"custom/{task}" and name == "edge-centric" and printed[5]:
        wanted = EDGES_ONLY
    elif not printed[5] and rule == f"{right}/{task}":
        wanted = dict(zip(_GRID, numbers, strict=False)) if name == "gnncert-en" else {}
    else:
        return f'the division {division} goes with the rule "{right}/{task}", not "{rule}"'
    if parameters != wanted or math.prod(numbers) != num_groups or len(numbers) != (2 if name == "gnncert-en" else 1):
        return f"the division {division} does not have {num_groups} groups and the parameters {parameters}"
    return ""


LARGEST_PRIOR = 2**30
LARGEST_CLASS = 2**15 - 2


@dataclass(frozen=True)
class VotingRule:
    """How ballots are added up; ``VotingRule()`` is the plain vote.

    Attributes:
        empty: What a group casts in which no edge brings the target a message (graph task: which has no edge or no
            node): ``"edgeless"`` for the prediction without edges, ``"abstain"``, or a class number. Defaults to
            ``"edgeless"`` in the node task, and to ``"abstain"`` in the graph task and where features are gated.
        prior: Votes added before counting: a whole number, for the target's prediction without edges, or a list with
            one number per class. Negative numbers are allowed.

    Example:
        >>> VotingRule(empty="abstain", prior=5)
        VotingRule(empty='abstain', prior=5)
        >>> VotingRule(empty=1, prior=[0, 12]).prior
        (0, 12)
    """

    empty: str | int | None = None
    prior: int | tuple[int, ...] = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "empty", _empty(self.empty))
        object.__setattr__(self, "prior", _prior(self.prior))

    @property
    def edgeless_prior(self) -> int:
        """Votes for the prediction without edges; 0 if the prior is the same for all targets."""
        return self.prior if isinstance(self.prior, int) else 0

    @property
    def class_prior(self) -> tuple[int, ...]:
        """Votes for each class, the same for all targets; empty if there are none."""
        return self.prior if isinstance(self.prior, tuple) else ()

    @property
    def constant(self) -> int | None:
        """The class, or -1 for nothing, that empty groups cast for all targets; None if it is the edgeless one."""
        return None if self.empty in (None, "edgeless") else -1 if self.empty == "abstain" else int(self.empty)

    def under(self, rule: str, num_classes: int) -> "VotingRule":
        """The same voting rule with its defaults filled in.

        Args:
            rule: A key of :data:`~agnncert.certificates.rules.RULES`.
            num_classes: Number of classes.

        Raises:
            SettingsError: The division of ``rule`` cannot vote in this way.
        """
        facts = RULES[rule]
        empty = facts.empty[0] if self.empty is None else self.empty
        prior = 0 if isinstance(self.prior, tuple) and not any(self.prior) else self.prior
        if ("class" if isinstance(empty, int) else empty) not in facts.empty:
            raise SettingsError(f"VotingRule(empty={empty!r}): {_WHY_NOT_EMPTY.get(rule, _USUAL_REASON[facts.task])}")
        if isinstance(empty, int) and empty >= num_classes:
            raise SettingsError(f"VotingRule(empty={empty}): the classes are 0 to {num_classes - 1}.")
        if isinstance(prior, tuple) and len(prior) != num_classes:
            raise SettingsError(
                f"VotingRule(prior=…) has {len(prior)} numbers: expected one for each of {num_classes} classes."
            )
        if isinstance(prior, int) and prior and not facts.edgeless_prior:
            raise SettingsError(
                f"VotingRule(prior={prior}): {_WHY_NOT_PRIOR.get(rule, _NO_EDGELESS)} Pass one number per class."
            )
        return replace(self, empty=empty, prior=prior)

    def to_json(self) -> dict[str, Any]:
        """This vote in JSON's terms; :meth:`from_json` is the way back."""
        return {"empty": self.empty, "prior": self.prior if isinstance(self.prior, int) else list(self.prior)}

    @classmethod
    def from_json(cls, stored: Any, rule: str, num_classes: int) -> "VotingRule":
        """The vote that a file describes, which is not trusted.

        Raises:
            CertificateError: It is not how this library writes a vote under this rule.
        """
        try:
            if not isinstance(stored, dict) or set(stored) != {"empty", "prior"}:
                raise SettingsError('expected "empty" and "prior".')
            vote = cls(**stored).under(rule, num_classes)
            if vote.to_json() != stored or any(isinstance(value, bool) for value in _values(stored)):
                raise SettingsError("it is not spelled out.")
        except SettingsError as error:
            raise CertificateError(f"the vote {reprlib.repr(stored)} makes no sense: {error}") from error
        return vote


_NO_EDGELESS = "there is no edgeless prediction of a graph, or in a division of which only the ballots are known."
_WHY_NOT_PRIOR = {"gated/node": "it would follow the target's own features, which this division protects."}
_USUAL_REASON = {
    "node": "with one group per neighbour all other groups are empty, and nothing outweighs them. Let them abstain, "
    "and give a prior.",
    "graph": "a graph has no edgeless prediction: use a class, or let empty groups abstain.",
}
_WHY_NOT_EMPTY = {
    "gated/node": "groups that hide the target's features cannot cast what follows from them: use a class, or abstain.",
    **{
        rule: "no group of this division counts as empty: all ballots are cast. Leave it out."
        for rule in RULES
        if rule.startswith(("gnncert", "custom"))
    },
}


def _empty(empty: Any) -> str | int | None:
    if isinstance(empty, Integral) and not isinstance(empty, bool) and 0 <= int(empty) <= LARGEST_CLASS:
        return int(empty)
    if empty is None or (isinstance(empty, str) and empty in ("edgeless", "abstain")):
        return empty
    raise SettingsError(f'VotingRule(empty={empty!r:.60}): expected "edgeless", "abstain" or the number of a class.')


def _prior(prior: Any) -> int | tuple[int, ...]:
    if _is_whole(prior):
        return int(prior)
    numbers = list(prior) if hasattr(prior, "__iter__") and not isinstance(prior, (str, bytes, dict)) else None
    if numbers is None or not numbers or not all(map(_is_whole, numbers)):
        raise SettingsError(
            f"VotingRule(prior={prior!r:.60}): expected a whole number, or a list with one for each class, none beyond "
            f"{LARGEST_PRIOR:,}."
        )
    return tuple(map(int, numbers))


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and abs(int(value)) <= LARGEST_PRIOR


def _values(stored: dict[str, Any]) -> list[Any]:
    prior = stored["prior"]
    return [stored["empty"], *(prior if isinstance(prior, list) else [prior])]
