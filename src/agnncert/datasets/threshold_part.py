"""``keep_for_threshold``: known targets that are kept for nothing but the choice of a threshold.

A rate of false positives can be guaranteed on targets that had no part in training or in any other
choice. Only those of other classes than the one to be found are needed: all known fraud may train.
"""

import copy
import hashlib
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from agnncert.certificates.class_names import class_number, stated_names
from agnncert.certificates.votes import IntArray
from agnncert.datasets.splits import PAIRS, GraphSet, graph_columns, node_columns
from agnncert.errors import DatasetError, SettingsError, suggests_arguments
from agnncert.graphs.hashing import Keys, places
from agnncert.graphs.labels import class_numbers, graph_classes
from agnncert.graphs.task import infer_task

MASK, PART, RULE = "threshold_mask", "threshold", "threshold_rule"
RECORD = "kept_for_threshold"  # of a model's record of training
_SEED = 0x7468726573686F6C  # apart from seeds of splits, so that the two draws are independent


@dataclass(frozen=True)
class KeptRule:
    """Which known targets are kept for the threshold: a share of those of other classes, by hash of the id.

    A target that is kept under a rule was not trained on by a model that was trained under the same
    rule, though it may have become known later.

    Attributes:
        share: The share that is kept.
        positive: The class to be found, of which nothing is kept.
        seed: Seed of the draw.
    """

    share: float
    positive: int
    seed: int

    def to_json(self) -> dict[str, Any]:
        """Returns this rule as JSON values."""
        return asdict(self)


@suggests_arguments
def keep_for_threshold(
    data: Data | GraphSet, share: float, *, positive: int | str | None = None, seed: int = 0
) -> Data | GraphSet:
    """Keeps a share of the known targets for the threshold, so that its rate can be guaranteed.

    Call it before ``fit``, and train on what it returns: training and validation targets that are
    kept are in neither part any more. ``choose_threshold(…, confidence=0.95)`` counts on them. Which
    ones are kept follows from their ids, so that the same call keeps them on next month's data too.

    Args:
        data: A graph with ``y``, ``train_mask`` and ``val_mask``, or a ``GraphSet``. It is not changed.
        share: Share of the known targets of other classes, between 0 and 1. At a false positive rate of
            10 % at least 29 have to be kept, at 5 % 59, at 1 % 299 (for 95 % confidence); ten times as
            many, and the threshold comes close to the rate.
        positive: The class to be found, by number or by name. Defaults to the rarest of those known.
        seed: Seed of the draw. Defaults to 0.

    Returns:
        A copy with ``threshold_mask`` (of a ``GraphSet``: ``threshold``) and ``threshold_rule``.

    Raises:
        DatasetError: There are no labels or parts, or something was kept already.
        SettingsError: The share or the class makes no sense.

    Example: ``data = ac.keep_for_threshold(data, 0.5, positive="fraud")``, then ``model = ac.fit(…, data, …)`` and
    ``ac.choose_threshold(model, data, defence, false_positive_rate=0.1, confidence=0.95)``.
    """
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share < 1:
        raise SettingsError(f"share={share!r:.60}: expected a number between 0 and 1.")
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise SettingsError(f"seed={seed!r:.60}: expected a whole number from 0 on.")
    is_graph_task = infer_task(data) == "graph"
    if is_graph_task and not isinstance(data, GraphSet):
        raise DatasetError("a list of graphs has no parts: split it first, ac.split(graphs).")
    if any(getattr(data, name, None) is not None for name in (MASK, PART)):
        raise DatasetError("targets are kept for a threshold already: call keep_for_threshold once, on the data.")
    if getattr(data, PAIRS[0], None) is not None:
        raise DatasetError("pairs cannot be kept for a threshold: PairVotes chooses its own on validation pairs.")
    parts = [known_rows(data, name) for name in ("train", "val")]
    labels = labels_of(data)
    known = np.concatenate(parts)
    if (labels[known] < 0).any():
        raise DatasetError("a training or validation target has no class: it is none of the known.")
    chosen = class_number(positive, stated_names(data))
    chosen = rarest(labels[known]) if chosen is None else chosen
    is_kept = places(_key_columns(data), _SEED ^ seed) < share
    is_kept &= labels != chosen
    kept = known[is_kept[known]]
    left = [part[~is_kept[part]] for part in parts]
    if not all(map(len, left)):
        raise DatasetError(f"share={share:g} would keep a whole part, and leave nothing to train or to validate with.")
    return _with_parts(data, left, np.sort(kept), KeptRule(float(share), chosen, seed))


def _with_parts(data: Data | GraphSet, left: list[IntArray], kept: IntArray, rule: KeptRule) -> Data | GraphSet:
    """Returns a copy of the data with smaller training and validation parts and a part for the threshold."""
    changed: Any = copy.copy(data)
    if isinstance(changed, GraphSet):
        changed.set_split((*map(torch.from_numpy, left), changed.test), changed.split_by)
        changed.threshold = torch.from_numpy(kept)
    else:
        for name, rows in zip(("train_mask", "val_mask", MASK), (*left, kept), strict=True):
            changed[name] = torch.zeros(int(data.num_nodes), dtype=torch.bool)  # type: ignore[union-attr]
            changed[name][torch.from_numpy(rows)] = True
    setattr(changed, RULE, rule)
    return changed


def known_rows(data: Any, part: str) -> IntArray:
    """Returns the rows of the nodes, or graphs, in a part: "train", "val" or "threshold".

    Raises:
        DatasetError: There is no such part, or it does not fit the data.
    """
    if isinstance(data, Data):
        mask = getattr(data, f"{part}_mask", None)
        if mask is None or torch.as_tensor(mask).shape != (data.num_nodes,):
            raise DatasetError(f"the data has no {part}_mask with an entry for each node.")
        return np.flatnonzero(torch.as_tensor(mask).bool().numpy())
    rows = getattr(data, part, None)
    if rows is None:
        raise DatasetError(f'the graphs have no "{part}" part: ac.split(graphs) gives them one.')
    return np.asarray(rows, dtype=np.int64)


def labels_of(data: Any) -> IntArray:
    """Returns the class of every node or graph, negative where it is unknown."""
    if not isinstance(data, Data):
        return graph_classes(data).numpy()
    labels = None if data.y is None else class_numbers(data.y, int(data.num_nodes or 0))
    if labels is None:
        raise DatasetError("the data has no labels y with one class for each node.")
    return labels.numpy()


def rarest(labels: IntArray) -> int:
    """Returns the rarest class; of two classes the second if both are as frequent.

    Example:
        >>> rarest(np.array([0, 0, 1])), rarest(np.array([0, 0])), rarest(np.array([2, 2, 0, 1, 1]))
        (1, 1, 0)
    """
    count = np.bincount(labels[labels >= 0], minlength=2)
    if len(count) == 2:
        return int(2 * count[1] <= count.sum())
    return int(np.where(count == 0, count.sum() + 1, count).argmin())


def kept_of(data: Any) -> Tensor | None:
    """Returns a mask of the nodes, or positions of the graphs, that are kept for the threshold; None if none are."""
    kept: Tensor | None = getattr(data, MASK if isinstance(data, Data) else PART, None)
    return kept


def kept_record(data: Any) -> dict[str, Any] | None:
    """Returns what a model's record of training says about targets that were kept for a threshold.

    Returns:
        The rule, or a digest of the ids if a mask of the user's own says who is kept; ``None`` if nothing is kept.
    """
    kept = kept_of(data)
    if kept is None:
        return None
    rule: KeptRule | None = getattr(data, RULE, None)
    if rule is not None:
        return rule.to_json()
    keys = _key_columns(data)[0][known_rows(data, PART)]
    return {"sha256": hashlib.sha256(np.sort(keys).astype("<u8").tobytes()).hexdigest()}


def _key_columns(data: Any) -> list[Keys]:
    """Returns the column of keys of the nodes or graphs of data."""
    return node_columns(data) if isinstance(data, Data) else graph_columns(data)


def require_disjoint(data: Any) -> None:
    """Refuses targets that are kept for the threshold and in another part as well.

    Raises:
        DatasetError: Says how many.
    """
    kept = known_rows(data, PART)
    both = sum(len(np.intersect1d(kept, known_rows(data, name))) for name in ("train", "val"))
    if both:
        raise DatasetError(
            f"{both} targets are kept for the threshold and for training or validation too: a rate can only be "
            "guaranteed on targets that were used for nothing else."
        )
