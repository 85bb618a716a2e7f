"""What the modules share: the radius of a vote, and the record of a broken certificate."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Broken:
    """A certificate, and an attack within it that changes the label.

    Attributes:
        method: The published method.
        rule: What its certificate says.
        certified: What it certifies in the example.
        attack: What the attacker does, which the certificate covers.
        before: Label without the attack.
        after: Label under the attack.
        why: Why the rule is wrong.
    """

    method: str
    rule: str
    certified: str
    attack: str
    before: int
    after: int
    why: str

    @property
    def is_false(self) -> bool:
        """Whether the certificate is refuted."""
        return self.before != self.after


def winner(votes: Sequence[int], num_classes: int) -> int:
    """Returns the class with most votes, the smaller one on a tie."""
    counts = [votes.count(label) for label in range(num_classes)]
    return counts.index(max(counts))


def radius(votes: Sequence[int], num_classes: int) -> int:
    """Returns how many votes may change before another class wins, which all the deterministic methods compute."""
    label = winner(votes, num_classes)
    margins = [
        votes.count(label) - votes.count(rival) - (rival < label) for rival in range(num_classes) if rival != label
    ]
    return min(margins) // 2


def amount(votes: Sequence[int], unit: str) -> str:
    """Returns what a vote between two classes certifies, in words: ``"2 edges (6:1 votes)"``."""
    most = radius(votes, 2)
    label = winner(votes, 2)
    plural = "" if most == 1 else "s"
    return f"{most} {unit}{plural} ({votes.count(label)}:{votes.count(1 - label)} votes)"
