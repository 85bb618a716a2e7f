"""``ac.monitor``: whether a rate still holds, from confirmed cases as they come in.

A threshold with a guarantee rests on accounts that are like those it was chosen on. Whether they still
are is seen on confirmed cases: honest accounts that were flagged although they are honest, and fraud
that was missed. The monitor bets against the rate. Its wealth is, for bets b on a grid, the mean of
prod(1 + b (hit - rate)). While every case is a hit with a chance of at most ``rate``, whatever came
before, this is a supermartingale that starts at 1, so that it ever reaches 1 / d with a probability of
d at most (Ville's inequality). So one may look after every case, and stop at any time.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from agnncert.errors import SettingsError, suggests_arguments
from agnncert.proving.words import plain_percent

# Bets, as shares of the largest one that a case which is no hit can lose everything by.
_BETS = (0.025, 0.05, 0.1, 0.2, 0.3, 0.5)


@dataclass
class Monitor:
    """Bets against a rate, case by case; ``ac.monitor`` makes one and feeds it.

    Attributes:
        rate: The rate that is to hold: of false positives among confirmed honest cases, or of misses
            among confirmed fraud.
        confidence: With which probability there is never an alarm while the rate holds.
        cases: How many cases have been noted.
        hits: How many of them were hits.
        alarm_at: Number of the case at which the alarm was raised; ``None`` if there was none. An alarm
            stays.
    """

    rate: float
    confidence: float = 0.95
    cases: int = 0
    hits: int = 0
    alarm_at: int | None = None
    _logs: list[float] = field(default_factory=lambda: [0.0] * len(_BETS), repr=False)

    def __post_init__(self) -> None:
        for name in ("rate", "confidence"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1:
                raise SettingsError(f"{name}={value!r:.60}: expected a number between 0 and 1.")

    def note(self, hit: bool) -> bool:
        """Notes a confirmed case. Returns whether there is an alarm.

        Args:
            hit: Whether the case is one of those that the rate is about: an honest account that was
                flagged, or fraud that was missed.
        """
        for place, share in enumerate(_BETS):
            self._logs[place] += math.log1p(share / self.rate * (bool(hit) - self.rate))
        self.cases += 1
        self.hits += bool(hit)
        if self.alarm_at is None and self.wealth >= 1 / (1 - self.confidence):
            self.alarm_at = self.cases
        return self.alarm_at is not None

    @property
    def wealth(self) -> float:
        """What a stake of 1 against the rate has become; from ``1 / (1 - confidence)`` on it is an alarm."""
        top = max(self._logs)
        log_mean = top + math.log(sum(math.exp(each - top) for each in self._logs) / len(self._logs))
        return math.exp(min(log_mean, 700.0))

    @property
    def share(self) -> float:
        """Share of the cases that were hits; NaN if there are none yet."""
        return self.hits / self.cases if self.cases else math.nan

    def to_json(self) -> dict[str, Any]:
        """Returns where it stands, as JSON values."""
        return {
            "rate": self.rate,
            "confidence": self.confidence,
            "cases": self.cases,
            "hits": self.hits,
            "wealth": self.wealth,
            "alarm_at": self.alarm_at,
        }

    def __str__(self) -> str:
        requested = f"requested at most {plain_percent(self.rate)}"
        if not self.cases:
            return f"no confirmed case yet, {requested}"
        text = f"{self.hits:,} of {self.cases:,} confirmed cases ({plain_percent(self.share)}), {requested}"
        if self.alarm_at is None:
            return f"{text}: no alarm"
        return f"{text}: ALARM at case {self.alarm_at:,}, the rate does not hold any more"


@suggests_arguments
def monitor(hits: Iterable[Any], rate: float, *, confidence: float = 0.95) -> Monitor:
    """Watches whether a rate still holds, from confirmed cases in the order in which they were decided.

    If it holds, there is never an alarm with probability ``confidence``, however often one looks. The cases must not be
    chosen by the decision: who has only alerts looked into sees false positives and nothing else. Confirm a random
    sample, too.

    Args:
        hits: For each confirmed case whether it is one of those that the rate is about. For false positives: confirmed
            honest accounts, and whether each was flagged. For recall: confirmed fraud, and whether each was missed.
        rate: The rate that is to hold, such as that of ``choose_threshold``, or 1 minus the recall.
        confidence: Probability that there is no alarm while the rate holds. Defaults to 0.95.

    Returns:
        The monitor, which ``note(hit)`` feeds on.

    Raises:
        SettingsError: A rate or confidence is not between 0 and 1, or a case is neither true nor false.

    Example:
        >>> print(monitor([False] * 9 + [True], rate=0.1))
        1 of 10 confirmed cases (10.0%), requested at most 10.0%: no alarm
        >>> monitor([True, False] * 20, rate=0.1).alarm_at
        7
    """
    watched = Monitor(rate, confidence)
    for hit in hits:
        if hit not in (0, 1):
            raise SettingsError(f"a confirmed case is {hit!r:.60}: expected True or False.")
        watched.note(bool(hit))
    return watched
