"""What a certificate of label votes counts: whole factors of the votes, and the training labels.

:class:`LabelRecord` only holds data and checks that it makes sense: ``labels.evidence`` proves with it,
``verifier.recount_labels`` counts again.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from agnncert.certificates.record import Array, Record

IntArray = npt.NDArray[np.int64]

STEPS = 127  # of one vote: the largest weight that a label can have
MOST_PAIRS = 2**33  # of a target and a candidate, so that the work of a verifier is bounded
MOST_FACTORS = 2**12  # products of int16 then stay below 2**42, and float64 adds them up exactly
LARGEST_ADVANCE = 2**40
LARGEST_PRICE = 2**20
MOST_CLASSES = 2**12


@dataclass(frozen=True)
class LabelRecord(Record):
    """Votes of ``m`` training labels for ``n`` targets. Checked on construction.

    The weight of a candidate for a target is ``clamp(floor(left · right * STEPS / cap), ±STEPS)``, and 0 for the
    target itself. If ``weights`` is not empty, it holds the weights themselves, and there are no factors. The score of
    a class is what it has in advance, and the weights of the candidates with this label. The largest score wins, the
    smaller class on a tie.

    Attributes:
        left: Factors of each target, shape ``[n, d]``; ``[n, 0]`` if there are ``weights``.
        right: Factors of each candidate, shape ``[m, d]``.
        cap: The product that is a whole vote, at least 1, shape ``[n]``.
        weights: Weights without factors, from -127 to 127, shape ``[n, m]``; ``[n, 0]`` if there are factors.
        candidate: Row of each candidate in the data, ascending, shape ``[m]``.
        own: Position of each target among the candidates, -1 if it is none, shape ``[n]``.
        label_of: Training label of each candidate, -1 for none, shape ``[m]``.
        audited: Which labels no attacker can change, shape ``[m]``.
        price: What changing each label costs, in units of the price of its kind, at least 1, shape ``[m]``.
        classes: Number of classes.
        advance: What each class has in advance, in steps, shape ``[C]``.
        least_lead: Lead in steps below which a target abstains.
        candidates: ``"all"`` nodes, or those that are ``"labelled"``.
        df: Degrees of freedom of the weights.
        rank: Position of the weight that counts as one vote, counted from the largest.
        box: Whether weights were fitted within the cap, or cut off at it.
        ids: ``"node_id"`` if nodes have ids, ``"row"`` if row numbers stand in.
    """

    left: npt.NDArray[np.int16]
    right: npt.NDArray[np.int16]
    cap: IntArray
    weights: npt.NDArray[np.int8]
    candidate: IntArray
    own: IntArray
    label_of: npt.NDArray[np.int16]
    audited: npt.NDArray[np.bool_]
    price: npt.NDArray[np.int32]
    classes: int
    advance: tuple[int, ...]
    least_lead: int = 0
    candidates: Literal["all", "labelled"] = "labelled"
    df: float = 1.0
    rank: int = 1
    box: bool = False
    ids: str = "node_id"

    called: ClassVar[str] = "the label votes"
    arrays: ClassVar[Mapping[str, Array]] = {
        "left": Array(np.int16, "n factors"),
        "right": Array(np.int16, "m factors"),
        "cap": Array(np.int64, "n", 1, 2**53 - 1),
        "weights": Array(np.int8, "n weights", -STEPS),
        "candidate": Array(np.int64, "m", 0),
        "own": Array(np.int64, "n", -1),
        "label_of": Array(np.int16, "m", -1),
        "audited": Array(np.bool_, "m"),
        "price": Array(np.int32, "m", 1, LARGEST_PRICE),
    }
    lists: ClassVar[tuple[str, ...]] = ("advance",)

    def checks(self) -> tuple[Callable[[], str], ...]:
        """Returns what numbers and settings have to fulfil together."""
        return (self._wrong_weights, self._wrong_settings, self._wrong_labels, self._wrong_candidates)

    def _wrong_weights(self) -> str:
        n = self.num_targets
        m = self.num_candidates
        d = self.left.shape[1]
        num_weights = self.weights.shape[1]
        if num_weights not in (0, m):
            return f"a target has {num_weights} weights, and there are {m} candidates"
        if (num_weights > 0) == (d > 0) and m:
            return "there must be factors or weights, and not both"
        if d > MOST_FACTORS or n * m > MOST_PAIRS:
            return f"there are {n:,} targets, {m:,} candidates and {d:,} factors, which is too many"
        return ""

    def _wrong_settings(self) -> str:
        whole = (self.num_classes, self.least_lead, self.rank, *self.advance)
        if any(type(number) is not int for number in whole) or type(self.box) is not bool:
            return "a setting is not a whole number"
        if self.candidates not in ("all", "labelled") or self.ids not in ("node_id", "row"):
            return "candidates or ids are called otherwise than they can be"
        if not 2 <= self.num_classes <= MOST_CLASSES or len(self.advance) != self.num_classes:
            return "the number of classes is out of range, or is not that of the numbers in advance"
        if not 0 <= self.least_lead <= LARGEST_ADVANCE or any(abs(each) > LARGEST_ADVANCE for each in self.advance):
            return "a lead or a number in advance is out of range"
        if type(self.df) is not float or not 0 < self.df < 2**31 or not 1 <= self.rank < 2**31:
            return "degrees of freedom or rank are out of range"
        return ""

    def _wrong_labels(self) -> str:
        if (self.label_of >= self.num_classes).any():
            return "a training label is no class"
        if self.candidates == "labelled" and (self.label_of < 0).any():
            return "a candidate has no label, but only labelled ones are candidates"
        return ""

    def _wrong_candidates(self) -> str:
        m = len(self.candidate)
        if (np.diff(self.candidate) <= 0).any():
            return "candidates are not in ascending rows"
        if self.candidates == "all" and not np.array_equal(self.candidate, np.arange(m)):
            return "all nodes are candidates, but some are left out"
        if (self.own >= m).any():
            return "a target is at a position among the candidates that does not exist"
        return ""

    @property
    def num_classes(self) -> int:
        """Number of classes ``C``."""
        return self.classes

    @property
    def num_targets(self) -> int:
        """Number of targets ``n``."""
        return len(self.left)

    @property
    def num_candidates(self) -> int:
        """Number of candidates ``m``."""
        return len(self.candidate)
