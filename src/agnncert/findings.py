"""``Findings``: what a check of a certificate has found so far. It needs neither torch nor what proves statements."""

from dataclasses import dataclass, field


@dataclass
class Findings:
    """What came of comparing a certificate with a graph and a model.

    Attributes:
        wrong: What contradicts the certificate. The certificate is refuted unless this is empty.
        checked: What was compared and agrees.
        not_checked: What was not compared, and how it could be.
        compared: "data", "model" or both, if all of them was compared.
        notes_compared: Whether the notes of the claim were compared with the defence.
    """

    wrong: list[str] = field(default_factory=list)
    checked: list[str] = field(default_factory=list)
    not_checked: list[str] = field(default_factory=list)
    compared: list[str] = field(default_factory=list)
    notes_compared: bool = False
