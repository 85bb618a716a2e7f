"""Labels as whole numbers, from the forms in which data has them."""

import math
from collections.abc import Iterable

import torch
from torch import Tensor
from torch_geometric.data import Data

from agnncert.errors import GraphError

CLASSES_COUNTED = "classes_counted"  # attribute of data whose num_classes was counted in its labels


def stated_classes(data: object) -> int | None:
    """Returns the number of classes that somebody stated; ``None`` if it was counted, or would have to be.

    Who counts reads every label. A label that an attacker wrote, or one of a node that is in no part, counts too.
    """
    stated = getattr(data, "num_classes", None)
    return None if not stated or getattr(data, CLASSES_COUNTED, False) else int(stated)


def class_numbers(y: object, total: int, what: str = "labels y") -> Tensor | None:
    """Returns labels as int64, shape ``[total]``.

    Shape ``[total, 1]`` and whole floats are accepted. NaN becomes -1, which means unknown.

    Args:
        y: The labels.
        total: Number of rows of the data.
        what: What errors call the labels.

    Returns:
        The labels, or ``None`` for multi-label data.

    Raises:
        GraphError: The labels are not one whole number for each row.
    """
    try:
        labels = torch.as_tensor(y).detach().cpu()
    except (TypeError, ValueError, RuntimeError):
        raise GraphError(f"{what} are a {type(y).__name__}: expected a tensor with one class for each row.") from None
    if labels.dim() == 2 and labels.size(1) == 1:
        labels = labels.squeeze(1)
    if labels.dim() != 1 and labels.size(0) == total:
        return None
    if labels.shape != (total,):
        raise GraphError(f"{what} have shape {tuple(labels.shape)}, but there are {total} rows: one class for each.")
    if labels.is_complex():
        raise GraphError(f"{what} are complex numbers: classes are whole numbers from 0 on.")
    if labels.is_floating_point():
        labels = torch.where(labels.isnan(), -1.0, labels)
        _require_whole(labels, what)
    return labels.long()


def _require_whole(labels: Tensor, what: str) -> None:
    """Refuses floats that are not whole numbers."""
    fractional = (labels != labels.round()).nonzero().view(-1)
    if len(fractional):
        row = int(fractional[0])
        raise GraphError(
            f"{what} are no classes: row {row} has {float(labels[row]):g}, and classes are whole "
            "numbers from 0 on. (Numbers to be predicted cannot be certified; leave y out if it is something else.)"
        )


def graph_classes(graphs: Iterable[Data]) -> Tensor:
    """Returns the class of every graph, shape ``[num_graphs]``; -1 for graphs with no class or several classes.

    Raises:
        GraphError: A class is not a whole number.
    """
    labels = torch.tensor([_single_label(graph) for graph in graphs], dtype=torch.float64)
    classes = class_numbers(labels, len(labels), "labels y of the graphs")
    assert classes is not None
    return classes


def _single_label(graph: Data) -> float:
    """Returns the label of a graph; NaN if it has none or several."""
    y = getattr(graph, "y", None)
    if y is None:
        return math.nan
    label = torch.as_tensor(y)
    return float(label) if label.numel() == 1 else math.nan
