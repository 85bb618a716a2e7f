"""Sums of so many terms that rounding noise says nothing about them.

Errors of a sum of equal terms all point in one direction, in any order of the terms. They grow with the number of
terms, and noise does not: a hub of 2,000 equal messages was seen to drift further than noise moved it. So the guard
vouches for no vote that a longer sum may reach. In a module that nobody has read, it may reach all that is connected.
"""

import numpy as np
import torch
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from agnncert.engine.features import LazyRows

MOST_MESSAGES = 1_000  # terms of a sum over edges, or over the nodes of a graph, which may be added one after the other
MOST_FEATURES = 4_096  # terms of a product of a row with a weight, which is added up in several parts


def rows_with_long_sums(x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor | None:
    """Returns which rows of logits may depend on a sum of too many terms; ``None`` if none does.

    Args:
        x: Features.
        edge_index: Edges.
        batch: Graph task: the graph of every node, ascending. Rows are graphs then.
    """
    is_long = _features_not_zero(x) > MOST_FEATURES
    for end in edge_index:
        is_long |= torch.bincount(end.long(), minlength=x.size(0)) > MOST_MESSAGES
    if batch is None:
        return _connected(is_long, edge_index) if bool(is_long.any()) else None
    size = torch.bincount(batch)
    long_graphs = size > MOST_MESSAGES
    long_graphs[batch[is_long]] = True
    return long_graphs if bool(long_graphs.any()) else None


def _features_not_zero(x: Tensor) -> Tensor:
    """Returns how many features of each row are not zero, or the number of all features if it is small enough."""
    if x.size(1) <= MOST_FEATURES:
        return torch.full((x.size(0),), x.size(1))
    if isinstance(x, LazyRows):
        x = x.features.copy(x.index)
    return (x != 0).sum(dim=1).cpu()


def _connected(start: Tensor, edge_index: Tensor) -> Tensor:
    """Returns which nodes are connected with some node of a set, whichever way edges point."""
    source, head = edge_index.cpu().numpy()
    ones = np.ones(len(source), dtype=np.int8)
    _, label = connected_components(coo_matrix((ones, (source, head)), (len(start), len(start))), directed=False)
    component = torch.from_numpy(label.astype(np.int64))
    is_reached = torch.zeros(int(component.max()) + 1, dtype=torch.bool)
    is_reached[component[start]] = True
    return is_reached[component]
