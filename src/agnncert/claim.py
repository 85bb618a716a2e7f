"""Claim: what a certificate proves, in words, with everything that it rests on."""

from dataclasses import asdict, dataclass, field, fields
from typing import Any

GUARANTEES = ("deterministic", "probabilistic")


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

    def to_json(self) -> dict[str, Any]:
        """This claim in JSON's terms; :meth:`from_json` is the way back."""
        return {name: list(v) if isinstance(v, tuple) else v for name, v in asdict(self).items()}

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> "Claim":
        """The claim that :meth:`to_json` described."""
        names = {f.name for f in fields(cls)}
        return cls(**{k: tuple(v) if isinstance(v, list) else v for k, v in stored.items() if k in names})
