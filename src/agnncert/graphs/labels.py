"""True classes in the forms in which data comes: whole numbers, one for each node or graph."""

import math
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from agnncert.errors import GraphError


def class_numbers(y: Any, total: int, what: str = "labels y") -> Tensor | None:
    """Labels as int64, shape ``[total]``; ``None`` if there are several for each row, as in multi-label data.

    A column ``[total, 1]`` and floats that are whole numbers are taken as what they mean; NaN becomes -1, unknown.

    Args:
        y: The labels, a tensor or anything that becomes one.
        total: Number of nodes or graphs.
        what: What errors call them.

    Raises:
        GraphError: They are not one whole number for each row.
    """
    try:
        labels = torch.as_tensor(y).detach().cpu()
    except (TypeError, ValueError, RuntimeError):
        raise GraphError(f"{what} are a {type(y).__name__}: expected a tensor with one class for each row.") from None
    labels = labels.squeeze(1) if labels.dim() == 2 and labels.size(1) == 1 else labels
    if labels.dim() != 1 and labels.size(0) == total:
        return None
    if labels.shape != (total,):
        raise GraphError(f"{what} have shape {tuple(labels.shape)}, but there are {total} rows: one class for each.")
    if labels.is_complex():
        raise GraphError(f"{what} are complex numbers: classes are whole numbers from 0 on.")
    if labels.is_floating_point():
        labels = torch.where(labels.isnan(), -1.0, labels)
        odd = (labels != labels.round()).nonzero().view(-1)
        if len(odd):
            raise GraphError(
                f"{what} are no classes: row {int(odd[0])} has {float(labels[odd[0]]):g}, and classes are whole "
                "numbers from 0 on. (Numbers to be predicted cannot be certified; leave y out if it is something else.)"
            )
    return labels.long()


def graph_classes(graphs: Iterable[Any]) -> Tensor:
    """Class of every graph, shape ``[num_graphs]``; -1 where there is none, or more than one.

    Raises:
        GraphError: A class is no whole number.
    """
    values = [getattr(graph, "y", None) for graph in graphs]
    single = torch.tensor([math.nan if y is None else _only(y) for y in values], dtype=torch.float64)
    classes = class_numbers(single, len(values), "labels y of the graphs")
    assert classes is not None
    return classes


def _only(y: Any) -> float:
    """The one number in a tensor, an array or a list; NaN if there are several."""
    values = torch.as_tensor(y)
    return float(values) if values.numel() == 1 else math.nan
