"""Claim: what a certificate proves, in words, with everything that it rests on."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from agnncert import __version__
from agnncert.claim_words import Vote
from agnncert.errors import CertificateError


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
    **dict.fromkeys(
        ("method", "division", "unit", "alpha_scope", "library_version"), lambda v: isinstance(v, str)
    ),
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
        rule: Which theorem applies, a key of :data:`~agnncert.theorems.RULES`.
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
    words = Vote(
        name, task or rule_task, ids == "row", tolerance, digests.get("model", ""), dict(parameters or {})
    )
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
