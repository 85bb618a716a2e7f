"""The sentences of a claim about a vote. Each follows from the rule and a few facts, from nothing else.

Claim: what a certificate proves, in words, with everything that it rests on.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from agnncert import __version__
from agnncert.errors import CertificateError

_WHATEVER_DEGREE = (
    "one edge added, deleted or changed, or one node injected, deleted or given other features, whatever its degree"
)
_UNITS = {
    "edge-centric": (
        "one edge added, deleted or changed; a node that is injected, deleted or given other features counts "
        "once for each of its edges"
    ),
    "node-centric": _WHATEVER_DEGREE,
    "gated": f"{_WHATEVER_DEGREE}; the target's own features count like those of any other node",
    "gnncert-e": "one edge between existing nodes added, deleted or changed",
    "gnncert-n": "one existing node given other features",
    "gnncert-en": (
        "one ballot; an edge moves as many as there are feature groups, the features of a node as many as "
        "there are edge groups"
    ),
    "custom": "one ballot; the division states how many each change moves",
}

_EDGES = "Edges added or deleted anywhere, and edges given another weight, attribute or number of copies."
_NODES = "Nodes injected with any features, each with as many edges as the budget allows, or with any number."
_OTHERS = "Nodes deleted with all their edges, and features of other nodes changed to anything."
_MIX = "Any mix of these in one attack: ask holds_against(Budget(...))."
_PRICE_NAMES = {
    "add_edges": "an added edge",
    "delete_edges": "a deleted edge",
    "change_edges": "a changed edge",
    "inject_nodes": "an injected node",
    "edges_per_injected": "an edge of an injected node",
    "delete_nodes": "a deleted node",
    "change_features": "a node with other features",
    "target_features": "the target's own features",
}


@dataclass(frozen=True)
class Vote:
    """The facts that the sentences follow from.

    Attributes:
        division: First part of the rule's name, such as ``"edge-centric"``.
        task: ``"node"`` or ``"graph"``.
        by_row: Whether row numbers stand in for ids.
        tolerance: How far apart two evaluations of a score may lie.
        model_digest: SHA-256 of the model, or empty.
        parameters: Whole numbers of the rule.
    """

    division: str
    task: str
    by_row: bool
    tolerance: float
    model_digest: str
    parameters: dict[str, int]

    @property
    def own_features(self) -> bool:
        """Whether the target's own features are covered; of a graph, the features of any node are."""
        covered = self.division in ("gated", "gnncert-n", "gnncert-en")
        return self.task == "graph" or covered or "target_features" in self.parameters

    @property
    def divides_whole_graph(self) -> bool:
        """Whether this is one of the divisions that cover edges, nodes and features alike."""
        return self.division in ("edge-centric", "node-centric", "gated")

    def unit(self) -> str:
        """What one step of the radius counts."""
        return _UNITS[self.division]

    def covers(self) -> Iterator[str]:
        """The changes that are covered."""
        if self.divides_whole_graph:
            yield _EDGES
            yield _NODES + (" They are appended after the existing rows." if self.by_row else "")
            yield "Features of other nodes changed to anything." if self.by_row else _OTHERS
            yield _MIX
        elif self.division == "gnncert-e":
            yield "Edges between existing nodes added, deleted or changed."
        elif self.division == "gnncert-n":
            yield "Features of existing nodes changed to anything."
        elif self.division == "gnncert-en":
            yield "Edges between existing nodes, and features of existing nodes, changed in one attack."
        else:
            named = [(words, self.parameters[name]) for name, words in _PRICE_NAMES.items() if name in self.parameters]
            prices = [f"{words} moves at most {price}" for words, price in named]
            yield f"In ballots: {', '.join(prices)}." if prices else "Nothing beyond the unchanged graph."

    def assumes(self) -> Iterator[str]:
        """What must be true."""
        if self.task == "node":
            yield "The target is not deleted and keeps its id."
        if not self.own_features:
            yield "The target's own features are unchanged."
        yield "An edge is an unordered pair of nodes; a new direction of an old pair counts as an added edge."
        if self.by_row:
            yield "Row numbers are the ids of the nodes: injected nodes come last, and no node is deleted."
        else:
            yield "Ids are unique and stay with their nodes; only the id of a deleted node may be used again."
        named = f" with SHA-256 {self.model_digest}" if self.model_digest else ""
        yield f"The model{named} and the division are the ones that cast these ballots, in evaluation mode."
        yield from self._locality()
        if self.tolerance > 0:
            yield (
                f"No score moves by more than {self.tolerance:g} of the largest when the same subgraph is "
                "evaluated again, on any machine; ballots closer to a tie than twice that are conceded "
                "to the attacker."
            )
        else:
            yield "Evaluating the same subgraph again gives the same ballot, on any machine."

    def _locality(self) -> Iterator[str]:
        if self.division == "custom":
            yield "The division's own statement of how many ballots a change moves is true."
        elif self.divides_whole_graph and self.task == "node":
            yield "The model predicts a node from its own features and from nodes whose messages reach it."
        elif self.divides_whole_graph:
            yield "The model sees one subgraph at a time: the nodes of that subgraph and no others."

    def not_proved(self) -> Iterator[str]:
        """What is not proved."""
        yield "That the label is correct: only that it stays the same."
        yield "Anything about attacks on the training data: the model is taken as it is."
        if not self.own_features:
            yield "Changes of the target's own features: they reach every subgraph and are never certified."
        if self.by_row:
            yield "Deletion of nodes: without a node_id in the data it renames all later rows."
        if self.divides_whole_graph and self.task == "node" and self.division != "gated":
            yield (
                "That the graph mattered: a radius at or above the target's degree means that the label is "
                "the one predicted without any edges."
            )
        if not self.divides_whole_graph:
            yield "Any change that is not listed as covered."


@dataclass(frozen=True)
class Claim:
    """What is proved, in which unit, under which assumptions, and what is not.

    Attributes:
        task: ``"node"`` or ``"graph"``.
        method: Name of the defence, such as ``"agnncert"`` or ``"bi-rs"``.
        division: The division with its settings, as printed; empty if the method divides nothing.
        num_groups: Number of subgraphs, hence ballots per target; 0 if the method divides nothing.
        guarantee: ``"deterministic"`` or ``"probabilistic"``.
        unit: What one step of the radius counts.
        covers: Changes that the statements speak about.
        assumes: What must be true for the statements to hold.
        not_proved: What a reader might expect, but is not proved.
        ids: ``"node_id"`` if nodes keep their identity through changes, ``"row"`` if row numbers stand in.
        tolerance: Ballots whose two best scores lie closer than twice this are conceded to the attacker.
        alpha: Error probability of a probabilistic guarantee, else None.
        alpha_scope: What ``alpha`` is spent on: ``"each target"`` or ``"all targets together"``; else empty.
        digests: SHA-256 of the graph, the model, the division, … by name.
        notes: Further remarks of whoever made the certificate.
        library_version: Version of the library that made it.
    """

    task: str
    method: str
    division: str
    num_groups: int
    guarantee: str
    unit: str
    covers: tuple[str, ...]
    assumes: tuple[str, ...]
    not_proved: tuple[str, ...]
    ids: str = "node_id"
    tolerance: float = 0.0
    alpha: float | None = None
    alpha_scope: str = ""
    digests: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    library_version: str = ""

    def __str__(self) -> str:
        lines = [f"One step of the radius: {self.unit}."]
        for title, sentences in (
            ("Covered:", self.covers),
            ("Assumed:", self.assumes),
            ("Not proved:", self.not_proved),
            ("Notes:", self.notes),
        ):
            lines += [title, *(f"  - {sentence}" for sentence in sentences)] if sentences else []
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """This claim in JSON's terms; :meth:`from_json` is the way back."""
        return {name: list(v) if isinstance(v, tuple) else v for name, v in asdict(self).items()}

    @classmethod
    def from_json(cls, stored: Any) -> "Claim":
        """The claim that :meth:`to_json` described.

        Raises:
            CertificateError: A field is missing, unknown, or of a wrong type.
        """
        expected = {f.name for f in fields(cls)}
        if not isinstance(stored, dict) or set(stored) != expected:
            found = sorted(stored) if isinstance(stored, dict) else type(stored).__name__
            raise CertificateError(f"the claim has the fields {found}: expected {sorted(expected)}.")
        for name, value in stored.items():
            if not _FITS[name](value):
                raise CertificateError(f'the claim\'s "{name}" is {value!r}, which makes no sense.')
        values: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in stored.items()}
        return cls(**values)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


_FITS: dict[str, Any] = {
    "task": lambda v: v in ("node", "graph"),
    "guarantee": lambda v: v in ("deterministic", "probabilistic"),
    "ids": lambda v: v in ("node_id", "row"),
    "num_groups": lambda v: isinstance(v, int) and not isinstance(v, bool) and v >= 0,
    "tolerance": lambda v: _is_number(v) and 0 <= v < float("inf"),
    "alpha": lambda v: v is None or (_is_number(v) and 0 < v < 1),
    "digests": lambda v: isinstance(v, dict) and all(isinstance(text, str) for text in v.values()),
    **dict.fromkeys(("covers", "assumes", "not_proved", "notes"), _are_texts),
    **dict.fromkeys(("method", "division", "unit", "alpha_scope", "library_version"), lambda v: isinstance(v, str)),
}


def make_claim(
    *,
    rule: str,
    division: str,
    num_groups: int,
    task: str | None = None,
    ids: str = "node_id",
    tolerance: float = 0.0,
    digests: Mapping[str, str] | None = None,
    parameters: Mapping[str, int] | None = None,
    notes: tuple[str, ...] = (),
    library_version: str | None = None,
) -> Claim:
    """The claim of a vote, in words that follow from the rule alone, so that a verifier can compare them.

    Args:
        rule: Which theorem applies, a key of :data:`~agnncert.proof.rules.RULES`.
        division: The division with its settings, as printed.
        num_groups: Number of subgraphs.
        task: ``"node"`` or ``"graph"``; what the rule says when not given.
        ids: ``"node_id"`` or ``"row"``.
        tolerance: How far apart two evaluations of a score may lie.
        digests: SHA-256 by name; ``"model"`` is quoted in the assumptions.
        parameters: Whole numbers of the rule.
        notes: Further remarks, stored as they are.
        library_version: Version to name; this library's own when not given.
    """
    name, _, rule_task = rule.partition("/")
    digests = dict(digests or {})
    words = Vote(name, task or rule_task, ids == "row", tolerance, digests.get("model", ""), dict(parameters or {}))
    return Claim(
        task=words.task,
        method=name if name == "custom" else "gnncert" if name.startswith("gnncert") else "agnncert",
        division=division,
        num_groups=num_groups,
        guarantee="deterministic",
        unit=words.unit(),
        covers=tuple(words.covers()),
        assumes=tuple(words.assumes()),
        not_proved=tuple(words.not_proved()),
        ids=ids,
        tolerance=tolerance,
        digests=digests,
        notes=notes,
        library_version=__version__ if library_version is None else library_version,
    )
