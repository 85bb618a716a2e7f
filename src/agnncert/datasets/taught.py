"""Taught data: some of its labels are a teacher's. ``agnncert.teaching`` makes it; everything else asks here."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from agnncert.datasets.splits import MASKS, seen_nodes
from agnncert.datasets.teaching_record import Teaching
from agnncert.errors import DatasetError, SettingsError
from agnncert.graphs.targets import CanonicalData, target_rows


def teaching_of(data: Data | Sequence[Data] | CanonicalData) -> Teaching | None:
    """Returns how data was taught, or ``None`` if all its labels were given."""
    plain = data.data if isinstance(data, CanonicalData) else data
    teaching: Teaching | None = getattr(plain, "teaching", None)
    return teaching


def given_rows(data: Data) -> Tensor:
    """Returns the training nodes whose label was given, ascending: all of them unless the data was taught."""
    train = data.train_mask.bool()
    if teaching_of(data) is not None:
        train = train & ~data.taught_mask
    rows: Tensor = train.nonzero().view(-1)
    return rows


def require_true_labels(data: Data | Sequence[Data] | CanonicalData, targets: Any) -> None:
    """Refuses targets whose label is a teacher's, because labels are compared with ``y``.

    Args:
        data: Any data.
        targets: Mask or row numbers; ``None`` stands for all.

    Raises:
        DatasetError: Some of the targets were taught.
    """
    if teaching_of(data) is None:
        return
    plain: Any = data.data if isinstance(data, CanonicalData) else data
    rows = torch.from_numpy(target_rows(targets, plain.num_nodes))
    num_taught = int(plain.taught_mask[rows].sum())
    if num_taught:
        raise DatasetError(
            f"{num_taught:,} of the {len(rows):,} targets have a label that the teacher gave them, and to agree with a "
            "teacher is not to be right: certify the data as it was before teach(), or nodes that it has not taught."
        )


def settings_for_taught(settings: Mapping[str, Any], teaching: Teaching) -> dict[str, Any]:
    """Returns settings of ``fit`` for taught data: the protocol is the teacher's unless another one is given.

    Raises:
        SettingsError: The student would see the test nodes.
    """
    protocol = settings.get("protocol", teaching.protocol)
    if protocol == "transductive":
        raise SettingsError(
            'protocol="transductive": a student of a teacher that reads edges would see the test nodes in training, '
            'and what it has memorised about them is no robustness. Use "held-out" or "inductive".'
        )
    return {**settings, "protocol": protocol}


def teaching_of_model(model: Any) -> Teaching | None:
    """Returns how the training data of a model, or of a module in it, was taught; ``None`` if nothing says so."""
    modules = model.modules() if isinstance(model, torch.nn.Module) else [model]
    for module in modules:
        record = getattr(module, "training_record", None)
        if isinstance(record, Mapping) and "teaching" in record:
            return Teaching.from_json(record["teaching"])
    return None


def unlabelled_nodes(data: Data) -> Tensor:
    """Returns a mask of the nodes that are in no part: training may see them, and nobody has labelled them."""
    unlabelled: Tensor = seen_nodes(data) & ~(data.train_mask.bool() | data.val_mask.bool())
    return unlabelled


def can_be_taught(data: Data, targets: Any = None) -> bool:
    """Returns whether a teacher has anybody to label, without labelling a target.

    Args:
        data: A graph for node classification.
        targets: Mask or row numbers of the nodes that are to be classified later. Defaults to the test nodes.
    """
    if teaching_of(data) is not None or any(getattr(data, name, None) is None for name in MASKS):
        return False
    if not bool(data.test_mask.any()):
        return False
    unlabelled = unlabelled_nodes(data)
    rows = target_rows(data.test_mask if targets is None else targets, int(data.num_nodes))
    return bool(unlabelled.any()) and not bool(unlabelled[rows].any())


def with_taught_rows(data: Data) -> Data:
    """Returns data whose training part has all nodes that a teacher labels, as the shape of a taught model may need.

    No label is changed: this is for building a model, not for training one.
    """
    rows = copy.copy(data)
    rows.train_mask = seen_nodes(data) & ~data.val_mask.bool()
    return rows
