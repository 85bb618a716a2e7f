"""What was requested of the threshold of a certificate, and on how many targets it was chosen.

A certificate about a threshold states what its user requested: a share of false positives or a
number of alerts, with a confidence if targets were kept for this. The verifier derives from these
numbers whether the confidence follows (``verifier/recount_threshold``); the prover chose by them
(``proving/guaranteed_rate``).
"""

from dataclasses import asdict, dataclass, fields
from typing import Any

from agnncert.errors import CertificateError

MOST_COUNTED = 1_000_000  # targets that a threshold is chosen on


@dataclass(frozen=True)
class ThresholdRecord:
    """How a threshold was chosen: what was requested, and what was found.

    Attributes:
        positive: The class to be found. All others are the other classes.
        counted: How many targets the request was counted on.
        allowed: How many of these may get the positive label.
        flagged: How many of these get it without an attack, at most: votes that rounding could
            change count as if they were against the target.
        false_positive_rate: The requested share; ``None`` if a number of alerts was requested.
        confidence: The probability with which the share holds for targets to come. ``None`` if the
            targets that were counted are those of the validation part, and nothing is guaranteed.
        split_by: How the split was drawn: by "id", "class" or "time". Empty if nobody says.
        as_of: Date of the data, as the user stated it. Empty if nobody says.
    """

    positive: int
    counted: int
    allowed: int
    flagged: int
    false_positive_rate: float | None = None
    confidence: float | None = None
    split_by: str = ""
    as_of: str = ""

    @property
    def is_guaranteed(self) -> bool:
        """Whether the share holds for targets to come, with a confidence."""
        return self.confidence is not None

    def request(self) -> str:
        """Returns what was requested, in a few words."""
        dated = f", as of {self.as_of}" if self.as_of else ""
        if self.false_positive_rate is None:
            return f"at most {self.allowed:,} of {self.counted:,} validation targets{dated}"
        rate = f"at most {_percent(self.false_positive_rate)} false positives"
        if self.is_guaranteed:
            return f"{rate} with {_percent(self.confidence)} confidence, by {self.counted:,} kept targets{dated}"
        return f"{rate}, by {self.counted:,} validation targets{dated}"

    def in_words(self, name: str) -> str:
        """Returns what was requested, and what follows from it, in a sentence.

        Args:
            name: What the positive class is called.
        """
        dated = f", with data as of {self.as_of}" if self.as_of else ""
        if self.is_guaranteed:
            return (
                f"Without an attack at most {_percent(self.false_positive_rate)} of the targets of other "
                f"classes get the label {name}, with {_percent(self.confidence)} confidence: of "
                f"{self.counted:,} that were kept for the threshold {self.flagged:,} get it, and "
                f"{self.allowed:,} may{dated}."
            )
        if self.false_positive_rate is not None:
            return (
                f"The threshold was chosen so that at most {_percent(self.false_positive_rate)} of "
                f"{self.counted:,} validation targets of other classes get the label {name} without an "
                f"attack ({self.flagged:,} do){dated}: an estimate for other targets, and no bound."
            )
        return (
            f"The threshold was chosen so that at most {self.allowed:,} of {self.counted:,} validation "
            f"targets get the label {name} without an attack ({self.flagged:,} do){dated}."
        )

    def assumptions(self) -> tuple[str, ...]:
        """Returns what the guarantee rests on; nothing if there is none."""
        if not self.is_guaranteed:
            return ()
        by_time = " The split was cut by time, so that this is not to be expected." if self.split_by == "time" else ""
        return (
            f"The {self.counted:,} targets that were kept for the threshold were used for nothing else, neither in "
            "training nor for another choice, and they and the targets to come are exchangeable, as in a random "
            "draw. A split by time, or behaviour that changes, breaks this: watch the confirmed "
            f"cases.{by_time}",
        )

    def not_proved(self) -> tuple[str, ...]:
        """Returns what a reader might expect of the threshold, but is not proved."""
        if self.is_guaranteed:
            return ("That the rate of the threshold holds while the graph is attacked: its confidence is about labels "
                    "without an attack.",)  # fmt: skip
        return ("That the rate of the threshold holds for other targets than those of the validation part.",)

    def to_json(self) -> dict[str, Any]:
        """Returns this record as JSON values. :meth:`from_json` is the inverse."""
        return asdict(self)

    @classmethod
    def from_json(cls, stored: Any) -> "ThresholdRecord":
        """Returns the record that a file states. The file is not trusted.

        Raises:
            CertificateError: A field is missing, unknown or of a wrong type, or the numbers contradict each other.
        """
        expected = [each.name for each in fields(cls)]
        if not isinstance(stored, dict) or sorted(stored) != sorted(expected):
            raise CertificateError(f"how the threshold was chosen is not said by the fields {expected}.")
        for name in ("positive", "counted", "allowed", "flagged"):
            value = stored[name]
            if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MOST_COUNTED:
                raise CertificateError(f'the threshold\'s "{name}" is {value!r:.60}, which makes no sense.')
        for name in ("false_positive_rate", "confidence"):
            if stored[name] is not None and not _is_share(stored[name]):
                raise CertificateError(f'the threshold\'s "{name}" is {stored[name]!r:.60}: expected a share.')
        for name in ("split_by", "as_of"):
            if not isinstance(stored[name], str) or len(stored[name].splitlines()) > 1 or len(stored[name]) > 100:
                raise CertificateError(f'the threshold\'s "{name}" is {stored[name]!r:.60}: expected a short text.')
        return cls(**stored)


def _is_share(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1


def _percent(share: float | None) -> str:
    """Returns a share that a user typed, as it was typed: never rounded."""
    return f"{100 * (share or 0):.10g} %"
