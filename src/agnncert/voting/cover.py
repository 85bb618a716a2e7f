"""How many ballots of a target the worst k other nodes can reach, in the edge-centric division.

A node whose features change, or that is deleted, matters to a target only in subgraphs where both lie in one component;
their number is the node's *reach*. The exact worst case over sets of k nodes is a maximum-coverage problem; the sum of
the k largest reaches bounds it from above.
"""

import numpy as np
import torch

from agnncert.divisions import Pieces
from agnncert.proof.ballots import BoolArray, IntArray
from agnncert.voting.fast import components

Cover = tuple[IntArray, IntArray]

# At most so many pairs of nodes in one component are enumerated, small components first. In the components that are
# left, any one node counts as reaching every target.
MAX_PAIRS = 20_000_000


def node_cover(pieces: Pieces, rows: IntArray, num_nodes: int) -> Cover:
    """Cover table of each target: ``cover[ptr[j] + k - 1]`` bounds the ballots that k nodes reach.

    Args:
        pieces: The union of all subgraphs (at least where targets are).
        rows: Targets.
        num_nodes: Number of nodes of the graph.
    """
    label = components(pieces)
    node = pieces.node.numpy()
    target_of = np.full(num_nodes, -1, dtype=np.int64)
    target_of[rows] = np.arange(len(rows))
    size = np.bincount(label)
    small = _small_enough(size)

    is_target = target_of[node] >= 0
    cap = np.bincount(target_of[node[is_target]], minlength=len(rows))
    in_large = is_target & ~small[label]
    base = np.bincount(target_of[node[in_large]], minlength=len(rows))

    owner, reach = _reaches(label, node, target_of, size, is_target & small[label], num_nodes)
    return _ragged(owner, reach, cap, base)


def graph_cover(pieces: Pieces, batch: torch.Tensor) -> Cover:
    """Cover table of each graph: a node reaches the subgraphs in which it has an edge."""
    num_graphs = int(batch[-1]) + 1
    reach = np.bincount(pieces.node.numpy(), minlength=len(batch))
    seen = reach > 0
    cell = torch.unique_consecutive(pieces.cell)
    owner_of_cell = batch[pieces.node][torch.searchsorted(pieces.cell, cell)].numpy()
    cap = np.bincount(owner_of_cell, minlength=num_graphs)
    return _ragged(batch.numpy()[seen], reach[seen], cap, np.zeros(num_graphs, dtype=np.int64))


def _small_enough(size: IntArray) -> BoolArray:
    """Which components have all their pairs enumerated, given the size of each."""
    order = np.argsort(size, kind="stable")
    small = np.zeros(len(size), dtype=bool)
    small[order] = np.cumsum(size[order].astype(np.int64) ** 2) <= MAX_PAIRS
    return small


def _reaches(
    label: IntArray, node: IntArray, target_of: IntArray, size: IntArray, chosen: BoolArray, num_nodes: int
) -> tuple[IntArray, IntArray]:
    """For every pair (target, other node) that meets somewhere: the target, and in how many subgraphs they meet."""
    by_label = np.argsort(label, kind="stable")
    start = np.cumsum(size) - size
    mine = np.flatnonzero(chosen)
    mates = size[label[mine]]
    first = np.repeat(start[label[mine]] - (np.cumsum(mates) - mates), mates)
    other = node[by_label[first + np.arange(mates.sum())]]
    me = np.repeat(node[mine], mates)
    apart = me != other
    pair, times = np.unique(target_of[me[apart]] * num_nodes + other[apart], return_counts=True)
    return pair // num_nodes, times


def _ragged(owner: IntArray, reach: IntArray, cap: IntArray, base: IntArray) -> Cover:
    """Sums of the k largest reaches of each owner, at most ``cap``; a row ends where it stops growing, at ``cap``."""
    order = np.lexsort([-reach, owner])
    owner, reach = owner[order], reach[order]
    count = np.bincount(owner, minlength=len(cap))
    start = np.cumsum(count) - count
    running = np.cumsum(reach)
    before = np.concatenate([[0], running])[start]
    total = np.minimum(running - np.repeat(before, count) + np.repeat(base, count), np.repeat(cap, count))
    previous = np.concatenate([[-1], total[:-1]])
    previous[start[count > 0]] = -1
    grows = total > previous
    owner, total = owner[grows], total[grows]
    # Files promise that a row ends with the number of ballots. Some do not yet: where all components are large (one
    # node may reach them all), and where there is only a self-loop (no other node reaches the target).
    last = np.zeros(len(cap), dtype=np.int64)
    np.maximum.at(last, owner, total)
    short = np.flatnonzero(last < cap)
    owner, total = np.concatenate([owner, short]), np.concatenate([total, cap[short]])
    order = np.lexsort([total, owner])
    ptr = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(cap)))])
    return ptr.astype(np.int64), total[order].astype(np.int64)
