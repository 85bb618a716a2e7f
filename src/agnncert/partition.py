"""Partitions of a graph for Cluster-GCN training, where the graph does not fit into one pass.

For training only. A partition depends on the whole graph, so one added edge could move any node to another
part: certification never uses one.
"""

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import remove_self_loops, to_undirected

from agnncert.errors import SettingsError


def partition(data: Data, num_parts: int) -> list[Tensor]:
    """Splits the nodes into parts of about the same size with few edges between them.

    Args:
        data: One graph.
        num_parts: Number of parts, from 1 to the number of nodes.

    Returns:
        Row numbers of the nodes of each part, ascending; every node is in exactly one. Parts that the
        partitioner leaves empty are left out. The same graph always gives the same parts.

    Raises:
        SettingsError: ``num_parts`` makes no sense, or pymetis is not installed.
    """
    total = int(data.num_nodes)
    if not 1 <= num_parts <= total:
        raise SettingsError(
            f"num_parts is {num_parts}: expected a number from 1 to {total}, the number of nodes."
        )
    if num_parts == 1:
        return [torch.arange(total)]
    try:
        import pymetis
    except ImportError:
        raise SettingsError('partitions need pymetis: pip install "agnncert[clusters]".') from None
    tails, heads = to_undirected(remove_self_loops(data.edge_index)[0], num_nodes=total)  # sorted by tail
    starts = np.concatenate([[0], np.cumsum(np.bincount(tails.numpy(), minlength=total))])
    _, part_of = pymetis.part_graph(num_parts, xadj=starts.tolist(), adjncy=heads.tolist())
    parts = torch.tensor(part_of)
    return [rows for rows in ((parts == k).nonzero().view(-1) for k in range(num_parts)) if len(rows)]
