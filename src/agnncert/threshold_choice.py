"""On which targets a threshold is chosen, and how many of them may be flagged, from what a user requests."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from agnncert.certificates.class_names import class_number, stated_names
from agnncert.certificates.threshold_record import MOST_COUNTED, ThresholdRecord
from agnncert.certificates.votes import IntArray
from agnncert.datasets.drawn_splits import RECORD as SPLIT_BY
from agnncert.datasets.threshold_part import (
    PART,
    RECORD,
    RULE,
    KeptRule,
    kept_of,
    kept_record,
    known_rows,
    labels_of,
    rarest,
    require_disjoint,
)
from agnncert.defence import AlertLimit, OperatingPoint, require_limit
from agnncert.errors import DatasetError, SettingsError
from agnncert.proving.guaranteed_rate import most_flagged, needed, smallest_rate


@dataclass(frozen=True)
class Request:
    """What a user requests of a threshold.

    Attributes:
        false_positive_rate: Share of the targets of other classes that may get the positive label.
        alerts: Number of validation targets that may get it. Either this or the rate is given.
        confidence: With which probability the rate is to hold for targets to come; ``None`` for an estimate.
        positive: The class to be found, by number or by name; ``None`` for the rarest.
        as_of: Date of the data, as certificates state it.
    """

    false_positive_rate: float | None = None
    alerts: int | None = None
    confidence: float | None = None
    positive: int | str | None = None
    as_of: str | None = None

    def __post_init__(self) -> None:
        require_limit(self.false_positive_rate, self.alerts)
        if self.as_of is not None and (not isinstance(self.as_of, str) or not self.as_of.isprintable()):
            raise SettingsError(f"as_of={self.as_of!r:.60}: expected a date as text.")
        if self.confidence is None:
            return
        is_number = isinstance(self.confidence, int | float) and not isinstance(self.confidence, bool)
        if not is_number or not 0.5 <= self.confidence < 1:
            raise SettingsError(f"confidence={self.confidence!r:.60}: expected a number from .5 to below 1, as in .95.")
        if not self.false_positive_rate:
            raise SettingsError(
                "confidence= is about a rate, and no rate of 0 can be guaranteed: pass false_positive_rate=0.01."
            )

    def limit(self, data: Any) -> AlertLimit:
        """Returns how many of which targets may be flagged.

        Raises:
            DatasetError: There are no labels, no validation part, or nothing was kept for the threshold.
            SettingsError: The class makes no sense, or too few targets were kept.
        """
        rows = _validation(data)
        truth = _labels(data)
        if (truth[rows] < 0).any():
            raise DatasetError("a threshold is chosen by the classes y of validation targets, and one has none.")
        rule: KeptRule | None = getattr(data, RULE, None)
        positive = class_number(self.positive, stated_names(data))
        if positive is None:
            positive = rarest(truth[rows]) if rule is None else rule.positive
        num_others = int((truth[rows] != positive).sum())
        most = int((self.false_positive_rate or 0) * num_others) if self.alerts is None else self.alerts
        if self.confidence is None:
            return AlertLimit(positive, self.alerts is None, most)
        kept = _kept(data, truth, positive, rule)
        return AlertLimit(positive, True, most, kept, self._most_kept(len(kept)))

    def _most_kept(self, kept: int) -> int:
        """Returns how many of those that were kept may be flagged, or says how many would have to be kept."""
        assert self.false_positive_rate is not None
        assert self.confidence is not None
        most = most_flagged(kept, self.false_positive_rate, self.confidence)
        if most >= 0:
            return most
        number = needed(self.false_positive_rate, self.confidence)
        least = 100 * smallest_rate(kept, self.confidence)
        raise SettingsError(
            f"{kept:,} targets of other classes were kept for the threshold. To guarantee at most "
            f"{100 * self.false_positive_rate:g} % with {100 * self.confidence:g} % confidence, {number:,} are needed. "
            "Keep a larger share (keep_for_threshold) or have more accounts checked, or request a larger rate: these "
            f"few guarantee {least:.1f} % at best."
        )

    def record(self, data: Any, limit: AlertLimit, point: OperatingPoint) -> ThresholdRecord:
        """Returns what certificates say about how the threshold was chosen."""
        if limit.kept is not None:
            counted, allowed = len(limit.kept), limit.most_kept
        else:
            truth = _labels(data)[_validation(data)]
            counted = int((truth != limit.positive).sum()) if limit.of_others else len(truth)
            allowed = min(limit.most, counted)
        return ThresholdRecord(
            positive=limit.positive,
            counted=counted,
            allowed=allowed,
            flagged=point.flagged,
            false_positive_rate=None if self.false_positive_rate is None else float(self.false_positive_rate),
            confidence=None if self.confidence is None else float(self.confidence),
            split_by=getattr(data, SPLIT_BY, None) or "",
            as_of=self.as_of or "",
        )


def counted_rows(data: Any, record: ThresholdRecord) -> IntArray:
    """Returns the rows of the targets that a threshold was chosen on, in the data that it was chosen on.

    Raises:
        DatasetError: The data has no such part, or no labels.
    """
    rows = known_rows(data, PART) if record.is_guaranteed else _validation(data)
    if record.false_positive_rate is None:
        return rows
    truth = _labels(data)[rows]
    return np.asarray(rows[(truth != record.positive) & (truth >= 0)])


def _validation(data: Any) -> IntArray:
    try:
        rows = known_rows(data, "val")
    except DatasetError:
        rows = np.zeros(0, dtype=np.int64)
    if not len(rows):
        raise DatasetError(
            "a threshold is chosen on validation targets: the data has no val_mask (of graphs: val), or an empty one."
        )
    return rows


def _labels(data: Any) -> IntArray:
    try:
        return labels_of(data)
    except DatasetError:
        raise DatasetError("a threshold is chosen by the classes y of the targets, and the data has none.") from None


def _kept(data: Any, truth: IntArray, positive: int, rule: KeptRule | None) -> IntArray:
    """Returns the rows of the targets that were kept for the threshold.

    Raises:
        DatasetError: None were kept, or they are in another part too.
        SettingsError: They were kept for another class.
    """
    if kept_of(data) is None:
        raise DatasetError(
            "confidence= needs targets that were used for nothing else, and none were kept: data = "
            "ac.keep_for_threshold(data, share=0.5) before fit, or --set keep=0.5 of agnncert train."
        )
    require_disjoint(data)
    if rule is not None and rule.positive != positive:
        raise SettingsError(
            f"the targets that were kept are those of other classes than {rule.positive}, and the class to be found is "
            f"{positive}: keep them for this class, keep_for_threshold(data, …, positive={positive}), and train again."
        )
    rows = known_rows(data, PART)
    kept = np.asarray(rows[(truth[rows] != positive) & (truth[rows] >= 0)])
    if len(kept) > MOST_COUNTED:
        raise SettingsError(
            f"{len(kept):,} targets were kept: expected at most {MOST_COUNTED:,}. Keep a smaller share."
        )
    return kept


def require_kept_in_training(model: Any, data: Any) -> None:
    """Refuses a model that was trained without keeping the targets that a threshold is to be guaranteed on.

    A model without a record of its training passes: the claim then rests on its user's word.

    Raises:
        DatasetError: The record of its training says that others were kept, or none.
    """
    modules = model.modules() if isinstance(model, torch.nn.Module) else [model]
    records = (getattr(module, "training_record", None) for module in modules)
    whole = next((record for record in records if isinstance(record, Mapping)), None)  # parts have their own
    if whole is not None and whole.get(RECORD) != kept_record(data):
        raise DatasetError(
            "the model was trained without keeping these targets for the threshold, so that it knows some of them: "
            "call keep_for_threshold first, and pass what it returns to fit and to choose_threshold."
        )
