"""Recall and false positives of one class, group by group: by degree, by age, by whatever a column says.

One number for all targets hides that fraud with few partners is hardly found, or that one group of
honest customers is bothered more than another. An attacker can widen such a gap: ``gap`` says how far
at most. Of each group are counted how many targets one attack can break, so the bounds hold for every
attack within the budget.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from agnncert.certificates.budget import Budget
from agnncert.certificates.votes import BoolArray, IntArray
from agnncert.errors import SettingsError, suggests_arguments
from agnncert.proving.words import LOWER, UPPER, plain_percent

if TYPE_CHECKING:
    from agnncert.proving.certificate import Certificate

MOST_GROUPS = 50
RECALL, FALSE_POSITIVES = "recall", "false positives"
_DEGREES = (0, 5, 20, 50, 200)  # the last degree of each group but the last


@dataclass(frozen=True)
class Rate:
    """A share of a group: without an attack, and what an attack leaves at least and reaches at most.

    Attributes:
        targets: Targets that the share is about.
        now: The share without an attack; NaN if there are no targets.
        least: The smallest share after an attack.
        most: The largest one.
    """

    targets: int
    now: float
    least: float
    most: float


@dataclass(frozen=True)
class Group:
    """What becomes of one group.

    Attributes:
        name: Its name.
        recall: Share of the group's targets of the class that get its label.
        false_positives: Share of the group's other targets that get it.
    """

    name: str
    recall: Rate
    false_positives: Rate


@dataclass(frozen=True)
class Groups:
    """Recall and false positives of one class in several groups; ``print`` shows a table.

    Attributes:
        positive: What the class is called.
        at: The size or budget of the attack, as text.
        groups: The groups.
        together: Whether one attacked graph spends the budget on all of a group, or each target is attacked by itself.
    """

    positive: str
    at: str
    groups: tuple[Group, ...]
    together: bool

    def gap(self, of: str = RECALL) -> tuple[float, float]:
        """Returns the largest difference between two groups: without an attack, and after one at most.

        Args:
            of: "recall" or "false positives".
        """
        if of not in (RECALL, FALSE_POSITIVES):
            raise SettingsError(f'of={of!r:.60}: expected "{RECALL}" or "{FALSE_POSITIVES}".')
        rates = [each.recall if of == RECALL else each.false_positives for each in self.groups]
        rates = [rate for rate in rates if rate.targets]
        if len(rates) < 2:
            return 0.0, 0.0
        now = max(rate.now for rate in rates) - min(rate.now for rate in rates)
        pairs = ((a, b) for k, a in enumerate(rates) for m, b in enumerate(rates) if k != m)
        return now, max(a.most - b.least for a, b in pairs)

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Returns titles and rows as text, with bounds rounded to the safe side."""
        titles = ["group", self.positive, "detected", "at least", "others", f"taken for {self.positive}", "at most"]
        rows = [
            [
                each.name,
                f"{each.recall.targets:,}",
                _text(each.recall.now, LOWER),
                _text(each.recall.least, LOWER),
                f"{each.false_positives.targets:,}",
                _text(each.false_positives.now, UPPER),
                _text(each.false_positives.most, UPPER),
            ]
            for each in self.groups
        ]
        return titles, rows

    def to_json(self) -> dict[str, Any]:
        """Returns everything as JSON values."""
        return {
            "class": self.positive,
            "at": self.at,
            "together": self.together,
            "groups": [
                {"group": each.name, "recall": _json(each.recall), "false_positives": _json(each.false_positives)}
                for each in self.groups
            ],
            "gaps": {
                name.replace(" ", "_"): dict(zip(("now", "at_most"), self.gap(name), strict=True))
                for name in (RECALL, FALSE_POSITIVES)
            },
        }

    def __str__(self) -> str:
        titles, rows = self.table()
        widths = [max(len(row[k]) for row in (titles, *rows)) for k in range(len(titles))]
        lines = []
        for row in (titles, *rows):
            first, *others = (cell.ljust(width) if k == 0 else cell.rjust(width)
                              for k, (cell, width) in enumerate(zip(row, widths, strict=True)))  # fmt: skip
            lines.append("  ".join([first, *others]))
        for name in (RECALL, FALSE_POSITIVES):
            now, most = self.gap(name)
            lines.append(
                f"gap of {name}: {plain_percent(now, UPPER)} without an attack, at most {plain_percent(most, UPPER)} "
                f"after one of {self.at}"
            )
        return "\n".join(lines)


@dataclass(frozen=True)
class Amounts:
    """How much money is behind what is found; ``print`` shows it.

    Attributes:
        positive: What the class to be found is called.
        at: The size or budget of the attack, as text.
        total: Sum over all targets of the class.
        found: Sum over those that get its label without an attack.
        certified: Sum over those that get it whatever an attack does to each of them.
        unknown: Targets of the class whose amount is missing; they count as nothing.
    """

    positive: str
    at: str
    total: float
    found: float
    certified: float
    unknown: int

    def __str__(self) -> str:
        text = (
            f"amount behind {self.positive}: {self.total:,.2f}; found without an attack {self.found:,.2f}, "
            f"certified to stay found after one of {self.at}: {self.certified:,.2f}"
        )
        return text if not self.unknown else f"{text} ({self.unknown:,} without an amount)"


def amounts_found(
    certificate: "Certificate", amounts: Sequence[float], positive: int, at: float | Budget, truth: IntArray
) -> Amounts:
    """Returns how much money is behind what is found, and stays found.

    Each target is attacked by itself with the whole budget, so the certified sum is a lower bound for one attacked
    graph too. Arguments as for :func:`by_group`; an amount that is NaN is missing.

    Raises:
        SettingsError: There are not as many amounts as targets, or one is negative or infinite.
    """
    values = np.asarray(amounts, dtype=float)
    if values.shape != (certificate.num_targets,) or (values < 0).any() or np.isinf(values).any():
        raise SettingsError(f"amounts: expected {certificate.num_targets:,} numbers from 0 on, one for each target.")
    is_class = truth == positive
    is_found = is_class & (certificate.label == positive)
    possible = certificate.possible(at)
    stays = is_found & possible[:, positive] & (possible.sum(axis=1) == 1)
    size = str(at) if isinstance(at, Budget) else f"size {at:g}"
    return Amounts(
        positive=certificate.class_word(positive),
        at=size,
        total=float(np.nansum(values[is_class])),
        found=float(np.nansum(values[is_found])),
        certified=float(np.nansum(values[stays])),
        unknown=int(np.isnan(values[is_class]).sum()),
    )


def _text(share: float, bound: int) -> str:
    return "–" if share != share else plain_percent(share, bound)


def _json(rate: Rate) -> dict[str, Any]:
    return {name: None if value != value else value for name, value in vars(rate).items()}


def by_group(
    certificate: "Certificate", groups: Sequence[Any], positive: int, at: float | Budget, truth: IntArray
) -> Groups:
    """Returns recall and false positives of a class, group by group.

    Args:
        certificate: The certificate.
        groups: The group of each target, in the order of the targets. ``None`` leaves a target out.
        positive: The class.
        at: A size, for which each target is attacked by itself, or a budget, spent once in one graph.
        truth: True class of each target, negative where it is unknown.

    Raises:
        SettingsError: There are not as many groups as targets, or far too many different ones.
    """
    given = list(groups)
    if len(given) != certificate.num_targets:
        raise SettingsError(f"{len(given):,} groups for {certificate.num_targets:,} targets: give one for each.")
    names = list(dict.fromkeys(each for each in given if each is not None))
    names.sort(key=lambda each: each.first if isinstance(each, Range) else -math.inf)  # others as they come
    if len(names) > MOST_GROUPS:
        raise SettingsError(
            f"there are {len(names):,} different groups, at most {MOST_GROUPS} make a table: put numbers into a few "
            "ranges, ac.ranges(values)."
        )
    possible = certificate.possible(at)
    is_flagged = certificate.label == positive
    may_be, may_not_be = possible[:, positive], possible.sum(axis=1) > possible[:, positive]

    def most_broken(which: BoolArray) -> int:
        if not isinstance(at, Budget):
            return int(which.sum())
        return certificate.broken_at_most(at, which) if which.any() else 0

    def rate(whom: BoolArray) -> Rate:
        number = int(whom.sum())
        if not number:
            return Rate(0, *[float("nan")] * 3)
        now = int((whom & is_flagged).sum())
        lost = most_broken(whom & is_flagged & may_not_be)
        won = most_broken(whom & ~is_flagged & may_be)
        return Rate(number, now / number, (now - lost) / number, (now + won) / number)

    found = []
    for name in names:
        of_group = np.fromiter((each == name for each in given), dtype=bool)
        recall = rate(of_group & (truth == positive))
        found.append(Group(str(name), recall, rate(of_group & (truth >= 0) & (truth != positive))))
    size = str(at) if isinstance(at, Budget) else f"size {at:g}"
    return Groups(certificate.class_word(positive), size, tuple(found), isinstance(at, Budget))


class Range(NamedTuple):
    """A range of numbers, as the name of a group.

    Attributes:
        first: Where it begins, for the order of groups.
        name: What it is called.
    """

    first: float
    name: str

    def __str__(self) -> str:
        return self.name


def degree_groups(degree: IntArray) -> list[Range]:
    """Returns the range of degrees that each target is in.

    Example:
        >>> [str(each) for each in degree_groups(np.array([0, 3, 5, 21, 900]))]
        ['none', '1 to 5', '1 to 5', '21 to 50', 'more than 200']
    """
    firsts = [0, *(last + 1 for last in _DEGREES)]
    named = [Range(first, f"{first} to {last}") for first, last in zip(firsts, _DEGREES, strict=False)]
    named = [Range(0, "none"), *named[1:], Range(firsts[-1], f"more than {_DEGREES[-1]}")]
    return [named[place] for place in np.searchsorted(_DEGREES, degree, side="left").tolist()]


@suggests_arguments
def ranges(values: Any, number: int = 4, of: Any = None) -> list[Range | None]:
    """Puts numbers, such as ages or amounts, into a few ranges with about as many targets each.

    Args:
        values: The numbers. What is missing is in no range.
        number: How many ranges, at most. Defaults to 4.
        of: Other numbers, such as those of an earlier certificate, whose ranges are used. Defaults to ``values``.

    Example:
        >>> [str(each) for each in ranges([1, 2, 3, 4, float("nan"), 30], number=2)]
        ['up to 3', 'up to 3', 'up to 3', 'above 3', 'None', 'above 3']
    """
    numbers = np.asarray(values, dtype=float)
    is_known = np.isfinite(numbers)
    shown = numbers if of is None else np.asarray(of, dtype=float)
    shown = shown[np.isfinite(shown)]
    if not len(shown):
        return [None] * len(numbers)
    lasts = np.unique(np.quantile(shown, np.arange(1, number) / number, method="lower")).tolist()
    named = [Range(-math.inf, f"up to {lasts[0]:.6g}")]
    named += [Range(low, f"{low:.6g} to {high:.6g}") for low, high in pairwise(lasts)]
    named.append(Range(lasts[-1], f"above {lasts[-1]:.6g}"))
    places = np.searchsorted(lasts, np.where(is_known, numbers, 0.0), side="left").tolist()
    return [named[place] if known else None for place, known in zip(places, is_known.tolist(), strict=True)]
