"""Holds facts about the theorems by which votes are counted, and finds them by name.

Facts say what a theorem speaks about, not what it proves: files, claims and reports read them, and everyone may use
them. A theorem has three parts, each in a file of its own, and each found by the name of its division: its facts, what
proves with it (``divided.theorems``), and what counts again (``verifier.theorems``).
"""

import math
import re
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from agnncert.addons import ADD_ON_DIVISIONS, addons
from agnncert.certificates.task import Task
from agnncert.errors import CertificateError, did_you_mean, missing

# What one step of the radius counts where edges and nodes weigh the same.
WHATEVER_DEGREE = (
    "one edge added, deleted or changed, or one node injected, deleted or given other features, whatever its degree"
)
EACH_EDGE = (
    "one edge added, deleted or changed; a node that is injected, deleted or given other features "
    "counts once for each of its edges"
)


@dataclass(frozen=True)
class TheoremFacts:
    """What is known about a theorem, in addition to what it proves.

    Attributes:
        name: Name of the division and of the task, such as ``"edge-centric/node"``.
        unit: What one step of the radius counts.
        method: Name of the defence that it belongs to.
        whole_graph: Whether edges, nodes and features are divided, so that changes of all of them
            are covered.
        covers: A sentence that says what is covered. It is empty where ``whole_graph`` or stated
            prices decide that.
        by_pair: Whether edges are divided by their pair of nodes.
        by_neighbours: Whether every vote beyond the reached ones costs a new neighbour of the
            target.
        target_features: Whether changes of the target's own features are covered.
        uses_reach: Whether votes come with a reach table: how many of them the worst k nodes reach.
        most_unreached: How many of a target's listed votes may be ones that the graph does not
            reach, None for any number.
        parameters: Names of the whole numbers that the theorem needs.
        prices: Budget fields for which a user's own division may state how many votes one unit
            moves.
        empty: What empty groups may vote for, the default first: ``"no_edge"``, ``"abstain"``,
            ``"class"``.
        no_edge_prior: Whether a prior may follow the prediction without edges of each target.
        per_neighbour: Whether every neighbour (or pair, or node) has its own group, so that votes
            come and go with them, and no ids are needed to tell groups.
        views: Whether models that are trained apart may vote on its subgraphs.
    """

    name: str
    unit: str
    method: str = "agnncert"
    whole_graph: bool = False
    covers: str = ""
    by_pair: bool = False
    by_neighbours: bool = False
    target_features: bool = False
    uses_reach: bool = False
    most_unreached: int | None = None
    parameters: tuple[str, ...] = ()
    prices: tuple[str, ...] = ()
    empty: tuple[str, ...] = ("abstain", "class")
    no_edge_prior: bool = False
    per_neighbour: bool = False
    views: bool = False

    @property
    def task(self) -> Task:
        """What its targets are: ``"node"`` or ``"graph"``."""
        return "node" if self.name.endswith("/node") else "graph"

    @property
    def one_way(self) -> bool:
        """Whether votes come with flags: of which of them the pair has one direction only."""
        return self.per_neighbour and self.by_pair

    @property
    def targets_per_node(self) -> bool:
        """Whether votes come with a list of how many targets the other nodes are neighbours of."""
        return self.per_neighbour and self.task == "node"

    @property
    def knows_empty_groups(self) -> bool:
        """Whether it is known which groups are empty."""
        return self.empty != NOTHING


ANYTHING = ("no_edge", "abstain", "class")  # what empty groups may vote for
NOTHING = ("abstain",)  # no group is known to be empty

# What an edge-centric division proves for a model that mixes nodes: one changed pair moves one vote.
EDGES_ONLY = {"add_edges": 1, "delete_edges": 1, "change_edges": 1}

_NUMBER = r"([1-9]\d{0,18})"
_HASH = "hash=(?:md5|sha1|sha256|blake2b), key=u64le"
# How divisions of this library and of its add-ons print. Whatever looks otherwise is somebody's own.
_SHAPE = re.compile(rf"[a-z][a-z-]*\(T={_NUMBER}(?:x{_NUMBER})?, {_HASH}(?:, [a-z][a-z -]*)*\)")


@dataclass(frozen=True)
class PrintedForm:
    """One way in which a division prints, and which theorems it then has.

    Attributes:
        pattern: A regular expression for the whole of it. Its groups are numbers of groups.
        theorems: Names of its theorems, by task.
        parameters: The parameters that the theorem then has.
        sides: Names of the parameters that the numbers of groups are instead, where they form a grid.
    """

    pattern: str
    theorems: Mapping[str, str]
    parameters: Mapping[str, int] = field(default_factory=dict)
    sides: tuple[str, ...] = ()

    def mismatch(
        self,
        facts: TheoremFacts,
        division: str,
        num_groups: int,
        parameters: Mapping[str, int],
    ) -> str:
        """Returns why a theorem does not belong to a division of this form, empty if it does."""
        expected = self.theorems.get(facts.task)
        if expected is None:
            return f"the division {division} has no theorem for the {facts.task} task"
        if facts.name != expected:
            return f'the division {division} has the theorem "{expected}", not "{facts.name}"'
        printed = re.fullmatch(self.pattern, division)
        numbers = [int(number) for number in printed.groups()] if printed else []
        if not numbers:  # one group for each neighbour
            return ""
        expected_parameters = dict(zip(self.sides, numbers, strict=True)) if self.sides else self.parameters
        if parameters != expected_parameters or math.prod(numbers) != num_groups:
            return f"the division {division} does not have {num_groups} groups and the parameters {dict(parameters)}"
        return ""


def numbered(name: str, *endings: str, sides: int = 1) -> str:
    """Returns the pattern of a division with a number of groups and a hash.

    Args:
        name: What it begins with.
        endings: What may stand at its end, nothing by default.
        sides: How many numbers of groups there are.
    """
    numbers = "x".join([_NUMBER] * sides)
    return rf"{name}\(T={numbers}, {_HASH}(?:{'|'.join(endings)})\)"


@dataclass(frozen=True)
class DivisionFacts:
    """What is known about a division.

    Attributes:
        theorems: Facts about its theorems.
        forms: How divisions print that begin with its name. One of a user's own has none.
    """

    theorems: tuple[TheoremFacts, ...]
    forms: tuple[PrintedForm, ...] = ()


def _division(name: str) -> DivisionFacts | None:
    """Returns what is known about a division, or None if no installed package knows the name.

    Raises:
        MissingPackage: An add-on package that is not installed has it.
    """
    point = addons("agnncert.theorem_facts").get(name)
    if point is not None:
        facts: DivisionFacts = point.load()
        return facts
    if name in ADD_ON_DIVISIONS:
        raise missing(*ADD_ON_DIVISIONS[name])
    return None


def known_theorems() -> dict[str, TheoremFacts]:
    """Returns the facts about every theorem of all installed packages, by name."""
    divisions = [point.load() for point in addons("agnncert.theorem_facts").values()]
    return {facts.name: facts for division in divisions for facts in division.theorems}


def facts_of(theorem: object) -> TheoremFacts:
    """Returns the facts about a theorem.

    Raises:
        MissingPackage: An add-on package that is not installed has it.
        CertificateError: Nothing here knows the theorem.
    """
    name = theorem if isinstance(theorem, str) else ""
    division = _division(name.partition("/")[0])
    for facts in division.theorems if division else ():
        if facts.name == name:
            return facts
    valid = did_you_mean(str(theorem)[:40], known_theorems())
    raise CertificateError(f"unknown theorem {reprlib.repr(theorem)}: {valid}")


def division_words(division: str) -> str:
    """Returns how a division is called where people read it.

    One vote per neighbour or edge has a name of its own.

    Args:
        division: The printed form, as claims state it.

    Example:
        >>> division_words("node-centric(T=inf)")
        'per-neighbour'
        >>> division_words("edge-centric(T=inf, self-loops kept)")
        'per-edge, self-loops kept'
    """
    for printed, name in (("node-centric(T=inf", "per-neighbour"), ("edge-centric(T=inf", "per-edge")):
        if division.startswith(printed):
            return name + division.removeprefix(printed).removesuffix(")")
    return division


def theorem_mismatch(theorem: str, division: str, num_groups: int, parameters: Mapping[str, int]) -> str:
    """Returns why a theorem does not belong to a division that prints as ``division``, empty if it does.

    A built-in division has one theorem for each task. Whatever prints in another way is somebody's own division, and
    all that is known about it are the prices that it states.

    Raises:
        MissingPackage: The theorem, or the division, is one of an add-on package that is not installed.

    Example:
        >>> theorem_mismatch("gated/node", "node-centric(T=60, hash=md5, key=u64le)", 60, {})
        'the division node-centric(T=60, hash=md5, key=u64le) has the theorem "node-centric/node", not "gated/node"'
    """
    facts = facts_of(theorem)
    known = _division(division.partition("(")[0])
    forms = known.forms if known else ()
    for form in forms:
        if re.fullmatch(form.pattern, division):
            return form.mismatch(facts, division, num_groups, parameters)
    if forms and _SHAPE.fullmatch(division):
        return f"no built-in division prints as {division}"
    if facts.prices:
        return ""
    return f'only the theorem "custom/{facts.task}" goes with a division that is not built in: {division!r:.99}'
