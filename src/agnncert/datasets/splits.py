"""Stratified, seeded splits with the paper's proportions; independent of torch's random state."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

NODE_FRACTIONS = (0.3, 0.1, 0.6)
GRAPH_FRACTIONS = (0.5, 0.2, 0.3)


def stratified_split(y: Tensor, fractions: Sequence[float], seed: int) -> tuple[Tensor, ...]:
    """Splits positions into parts so that every class is spread over the parts in the same proportions.

    Args:
        y: Classes, shape ``[n]``; negative entries are unlabelled and go nowhere.
        fractions: Share of each part; they sum to 1.
        seed: Which split; the same on every machine.

    Returns:
        Positions of each part, ascending. Every class has at least one member in the first part.

    Example:
        >>> train, test = stratified_split(torch.tensor([0, 0, 0, 0, 1, 1, 1, 1]), (0.5, 0.5), seed=0)
        >>> len(train), len(test)
        (4, 4)
    """
    rng = np.random.default_rng(seed)
    labels = y.numpy()
    parts: list[list[np.ndarray[tuple[int], np.dtype[np.int64]]]] = [[] for _ in fractions]
    for label in np.unique(labels[labels >= 0]):
        members = rng.permutation(np.flatnonzero(labels == label))
        cuts = np.rint(np.cumsum(fractions)[:-1] * len(members)).astype(int)
        for part, piece in zip(parts, np.split(members, np.maximum(cuts, 1)), strict=True):
            part.append(piece)
    return tuple(torch.from_numpy(np.sort(np.concatenate([*part, np.empty(0, int)]))) for part in parts)


def set_masks(data: Data, parts: Sequence[Tensor]) -> Data:
    """Gives ``data`` its ``train_mask``, ``val_mask`` and ``test_mask`` from the positions of each part."""
    for name, part in zip(("train_mask", "val_mask", "test_mask"), parts, strict=True):
        data[name] = torch.zeros(data.num_nodes, dtype=torch.bool).index_fill_(0, part, True)
    return data
