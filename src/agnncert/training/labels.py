"""Labels and splits that training needs, checked."""

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from agnncert.certificates.votes import IntArray
from agnncert.errors import DatasetError
from agnncert.graphs.labels import class_numbers


def checked_labels(y: Any, total: int, rows: IntArray, num_classes: int) -> Tensor:
    """Returns the labels of all rows as int64; those of ``rows`` are checked.

    Raises:
        DatasetError: There are none, or one of them is not a class of the model.
    """
    if y is None:
        raise DatasetError("the graph has no labels y: training needs them.")
    labels = class_numbers(y, total)
    if labels is None:
        raise DatasetError(
            f"labels y have shape {tuple(torch.as_tensor(y).shape)}: expected one class number per row, integers of "
            f"shape [{total}]. Of one-hot rows, y.argmax(1) is the class."
        )
    used = labels[torch.from_numpy(rows)]
    wrong = rows[((used < 0) | (used >= num_classes)).numpy()]
    if len(wrong):
        raise DatasetError(
            f"row {wrong[0]} has label {int(labels[wrong[0]])}, but the model has classes 0 to {num_classes - 1}: "
            "leave rows without a label out of training and validation, and give the model as many classes as the data."
        )
    return labels


def masked_rows(data: Data, name: str) -> IntArray:
    """Returns the rows of the nodes in a mask; raises ``DatasetError`` if it is missing or empty."""
    mask = getattr(data, name, None)
    if mask is None:
        raise DatasetError(
            f"the graph has no {name}: training needs train_mask and val_mask, such as load_dataset gives."
        )
    flags = torch.as_tensor(mask)
    if flags.shape != (data.num_nodes,):
        hint = f" It holds several splits: choose one, {name}[:, 0]." if flags.dim() == 2 else ""
        pairs = getattr(data, "edge_label_index", None)
        if pairs is not None and flags.shape == pairs.shape[1:]:
            hint = " It is a mask of pairs, which only PairVotes decides about."
        raise DatasetError(
            f"{name} has shape {tuple(flags.shape)}, but there are {data.num_nodes} nodes: a mask says True or False "
            f"for each.{hint}"
        )
    if not bool(((flags == 0) | (flags == 1)).all()):
        raise DatasetError(f"{name} holds other numbers than 0 and 1: a mask says True or False for each node.")
    rows = np.flatnonzero(flags.bool().numpy())
    if len(rows) == 0:
        raise DatasetError(f"{name} is empty: training needs at least one node in train_mask and one in val_mask.")
    return rows


def part_rows(data: Any, name: str) -> Tensor:
    """Returns the positions of the graphs in a part of a set; raises ``DatasetError`` if it is missing or empty."""
    rows = getattr(data, name, None)
    if rows is None or len(rows) == 0:
        raise DatasetError(
            f'the graphs have no "{name}" part: training needs GraphSet(graphs, train=…, val=…), such as '
            "load_dataset gives."
        )
    return torch.as_tensor(np.asarray(rows), dtype=torch.int64)
