"""The settings of label votes."""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np

from agnncert.errors import SettingsError, did_you_mean

PRESETS = ("few", "many")
CANDIDATES = ("labelled", "all")
MOST_NEIGHBOUR_VOTES = 2**13
CHOSEN_BY_LABELS = ("auto", "validation", "best", "cv")


@dataclass(frozen=True)
class LabelSettings:
    """How training labels vote.

    Attributes:
        preset: How many changed labels the votes are for: ``"few"`` (1 or 2) or ``"many"`` (20 and more). It sets
            ``df`` and ``rank`` from the number of labels. Defaults to ``"many"``.
        candidates: ``"labelled"``: only the nodes of ``train_mask`` vote, and flipped labels are covered. ``"all"``:
            every node may vote, and labels that are added and removed are covered, too. Defaults to ``"labelled"``.
        df: Degrees of freedom of the votes. Defaults to that of the preset.
        rank: Position of the weight that counts as one vote, counted from the largest; larger ones are cut off. 1 cuts
            off nothing. Defaults to that of the preset.
        num_labels: With ``candidates="all"``, the number of labels that the preset is for. It must be known beforehand:
            an attacker who adds labels would choose the settings.
        num_classes: Number of classes. Defaults to ``data.num_classes``. It is never counted from labels.
        box: Whether weights are fitted within the cap, instead of cut off at it. It takes longer, and the file holds
            all weights. Defaults to False.
        abstain: Lead, in votes, below which a target abstains. Defaults to 0.
        advance: Votes that each class has in advance. Defaults to none.
        neighbour_votes: How many votes each neighbour casts for the class that its own labels elect. Weights then read
            own features and no edge, so that labels and edges may be attacked together; 0 ignores all edges. Defaults
            to None: weights read edges, which are trusted.
        audited: Rows whose training labels no attacker can change, or the name of a mask in the data. None by default.
        prices: What changing the label of each node costs, in units of ``Prices(flip_labels=…)``: whole numbers from
            1 on, or the name of such a tensor in the data. Defaults to 1 for all.
    """

    preset: Literal["few", "many"] = "many"
    candidates: Literal["labelled", "all"] = "labelled"
    df: float | None = None
    rank: int | None = None
    num_labels: int | None = None
    num_classes: int | None = None
    box: bool = False
    abstain: float = 0
    advance: tuple[float, ...] = ()
    neighbour_votes: float | None = None
    audited: str | tuple[int, ...] | None = None
    prices: str | tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        for name, known in (("preset", PRESETS), ("candidates", CANDIDATES)):
            if getattr(self, name) not in known:
                value = str(getattr(self, name))
                raise SettingsError(f'LabelVotes has no {name} "{value:.60}": {did_you_mean(value, known)}')
        for name in ("df", "rank", "neighbour_votes"):
            if getattr(self, name) in CHOSEN_BY_LABELS:
                raise SettingsError(
                    f"LabelVotes({name}={getattr(self, name)!r}): a value that is chosen by labels, validation labels "
                    "included, would change with them, and no proof would hold. Pass a number or a preset."
                )
        _require_number("df", self.df, 0, whole=False)
        for name in ("rank", "num_labels"):
            _require_number(name, getattr(self, name), 1)
        _require_number("num_classes", self.num_classes, 2)
        _require_number("abstain", self.abstain, 0, whole=False)
        _require_number("neighbour_votes", self.neighbour_votes, 0, whole=False)
        if type(self.box) is not bool:
            raise SettingsError(f"LabelVotes(box={self.box!r:.60}): expected true or false.")
        object.__setattr__(self, "advance", tuple(float(votes) for votes in self.advance))
        if not all(map(math.isfinite, self.advance)):
            raise SettingsError(f"LabelVotes(advance={self.advance!r:.60}): expected a finite number for each class.")
        for name in ("audited", "prices"):
            object.__setattr__(self, name, _whole_numbers(name, getattr(self, name)))
        self._check_neighbour_votes()

    def _check_neighbour_votes(self) -> None:
        if self.neighbour_votes is None:
            return
        if self.neighbour_votes > MOST_NEIGHBOUR_VOTES:
            raise SettingsError(
                f"LabelVotes(neighbour_votes={self.neighbour_votes!r:.60}): expected at most {MOST_NEIGHBOUR_VOTES:,}."
            )
        if self.box:
            raise SettingsError(
                "LabelVotes(box=True, neighbour_votes=…): weights within a box are fitted for many nodes at once, so "
                "that one may differ by a step where other nodes are neighbours. Leave box out."
            )
        if self.prices is not None:
            raise SettingsError(
                "LabelVotes(prices=…, neighbour_votes=…): where neighbours vote, nothing is proved about labels of "
                "different prices. Leave one of them out."
            )

    def resolved(self, num_labels: int, num_nodes: int, num_classes: int) -> Self:
        """Returns the settings with df, rank and number of classes filled in.

        Args:
            num_labels: Number of training labels. Only where no label can be added or removed does it count.
            num_nodes: Number of nodes.
            num_classes: Number of classes.

        Raises:
            SettingsError: A preset would have to follow from how many labels there are, which is under attack.
        """
        df = self.df
        rank = self.rank
        if df is None or rank is None:
            number = num_labels
            stretch = 1.0
            if self.candidates == "all":
                if self.num_labels is None:
                    raise SettingsError(
                        'LabelVotes(candidates="all") covers labels that are added and removed, so the preset must not '
                        "follow from how many there are: pass num_labels=…, a number that is known beforehand, or df= "
                        "and rank=."
                    )
                number = self.num_labels
                stretch = num_nodes / number
            usual_df, usual_rank = _preset(self.preset, number, num_classes)
            df = usual_df if df is None else df
            rank = max(1, round(usual_rank * stretch)) if rank is None else rank
        return replace(self, df=float(df), rank=int(rank), num_classes=num_classes)

    def __str__(self) -> str:
        words: list[str] = [self.candidates]
        words += [self.preset] if self.df is None or self.rank is None else [f"df={self.df:g}", f"rank={self.rank}"]
        words += ["box"] if self.box else []
        words += [] if self.neighbour_votes is None else [f"neighbour_votes={self.neighbour_votes:g}"]
        words += [f"abstain={self.abstain:g}"] if self.abstain else []
        words += ["advance=" + "/".join(f"{votes:g}" for votes in self.advance)] if self.advance else []
        for name, what in (("audited", self.audited), ("prices", self.prices)):
            if what is not None:
                words.append(f"{name}={what}" if isinstance(what, str) else f"{len(what):,} {name}")
        return f"label-votes({', '.join(words)})"


def _preset(name: str, num_labels: int, num_classes: int) -> tuple[float, int]:
    """Returns degrees of freedom and rank of a preset."""
    if name == "few":
        df = _within(num_labels / 20, 3 * num_classes, 120)
        return float(df), int(_within(num_labels / 15, 10, 30))
    df = _within(num_labels / 45, 3 * num_classes, 80)
    return float(df), int(_within(num_labels / 10, 15, 100))


def _within(value: float, low: float, high: float) -> int:
    return int(min(max(value, low), max(low, high)))


def _require_number(name: str, value: Any, least: float, whole: bool = True) -> None:
    """Refuses a setting that is no number, or too small."""
    if value is None:
        return
    kinds = (int, np.integer) if whole else (int, float, np.integer, np.floating)
    is_number = isinstance(value, kinds) and not isinstance(value, bool)
    if not is_number or not least <= value < math.inf or (name == "df" and not value):
        kind = "a whole number" if whole else "a number"
        above = "above" if name == "df" else "of at least"
        raise SettingsError(f"LabelVotes({name}={value!r:.60}): expected {kind} {above} {least:g}.")


def _whole_numbers(name: str, given: Any) -> str | tuple[int, ...] | None:
    """Returns rows or prices as a tuple; a mask as the rows where it is true; a name as it is."""
    if given is None or isinstance(given, str):
        return given
    if not isinstance(given, Iterable):
        raise SettingsError(f"LabelVotes({name}={given!r:.60}): expected whole numbers, or the name of a tensor.")
    numbers = np.asarray(given)
    if numbers.dtype == bool and name == "audited":
        numbers = np.flatnonzero(numbers)
    if numbers.ndim != 1 or (numbers.size and numbers.dtype.kind not in "iu"):
        raise SettingsError(f"LabelVotes({name}=…): expected a list of whole numbers, got {numbers.dtype} numbers.")
    return tuple(numbers.tolist())
