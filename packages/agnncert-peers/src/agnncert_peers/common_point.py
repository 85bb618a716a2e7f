"""All rows of a comparison at one operating point: the same false positive rate, without an attack. Two classes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from agnncert.certificates.votes import IntArray
from agnncert.controls.operating_point import alerts_like, average_precision, roc_auc

Row = dict[str, Any]
COLUMNS = ("recall_at_point", "roc_auc", "average_precision")


@dataclass(frozen=True)
class CommonPoint:
    """The operating point that all rows are compared at.

    Attributes:
        positive: The class to be found: the rarer one of the targets, and class 1 if both are as frequent.
        false_positive_rate: Share of the other class that gets the positive label.
    """

    positive: int
    false_positive_rate: float

    def __str__(self) -> str:
        return f"{100 * self.false_positive_rate:.1f} % false positives of class {self.positive}"


def at_one_point(truth: IntArray, rows: Sequence[Row], rate: float | None) -> tuple[CommonPoint | None, list[Row]]:
    """Returns the point, and the rows with recall at it, the area under the ROC curve, and the average precision.

    Scores are taken out of the rows. What has no scores, or not for all targets with a class, has None. Without two
    classes there is no point.

    Args:
        truth: True classes of the targets.
        rows: The rows, each with ``score``: how much speaks for class 1, or None.
        rate: The false positive rate. Defaults to that of the first row that is no control, with its own labels.
    """
    scores = [row.get("score") for row in rows]
    plain = [{name: value for name, value in row.items() if name != "score"} for row in rows]
    known = truth >= 0
    support = np.bincount(truth[known], minlength=2)
    if len(support) != 2 or not support.all():
        return None, plain
    positive = int(support[1] <= support[0])
    point = CommonPoint(positive, _rate_of_first(rows, positive) if rate is None else float(rate))
    is_positive = truth[known] == positive
    for row, score in zip(plain, scores, strict=True):
        row |= dict.fromkeys(COLUMNS)
        if score is None or np.isnan(score[known]).any():
            continue
        towards = score[known] if positive == 1 else -score[known]
        weight = alerts_like(towards, ~is_positive, point.false_positive_rate * float((~is_positive).sum()))
        row["recall_at_point"] = float(weight[is_positive].mean())
        row["roc_auc"] = roc_auc(towards, is_positive)
        row["average_precision"] = average_precision(towards, is_positive)
    return point, plain


def _rate_of_first(rows: Sequence[Row], positive: int) -> float:
    """Returns the false positive rate of the first defence, or of the first row if there is none."""
    defences = [row for row in rows if not row["control"]] or list(rows)
    rates = defences[0]["false_positive_rate"][0]
    return float(rates[positive] or 0.0) if rates is not None else 0.0
