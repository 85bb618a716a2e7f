"""How many votes of a target the worst k other nodes can reach, in the edge-centric division.

A node whose features change, or that is deleted, matters to a target only in subgraphs where both lie in one component;
their number is the node's *reach*. The exact worst case over sets of k nodes is a maximum-coverage problem; the sum of
the k largest reaches bounds it from above.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from agnncert.certificates.votes import BoolArray, IntArray
from agnncert.divisions.base import DisjointUnion

ReachTable = tuple[IntArray, IntArray]

# At most so many pairs of nodes in one component are enumerated, small components first. In the components that are
# left, any one node counts as reaching every target.
MAX_PAIRS = 20_000_000
PAIRS_AT_ONCE = 2**21


@dataclass(frozen=True)
class SmallComponents:
    """Components of some subgraphs that are small enough to have their pairs enumerated, as far as these can tell.

    Attributes:
        size: Number of nodes of each, in the order of subgraphs and of nodes, shape ``[k]``.
        node: Their nodes, component by component.
    """

    size: npt.NDArray[np.int32]
    node: npt.NDArray[np.int32]


def components(union: DisjointUnion) -> IntArray:
    """Connected component of every copy in the union, edges taken in both directions."""
    source, head = union.edge_index.numpy()
    ones, size = np.ones(len(source), dtype=np.int8), len(union.subgraph_index)
    _, label = connected_components(coo_matrix((ones, (source, head)), (size, size)), directed=False)
    return label.astype(np.int64)  # type: ignore[no-any-return]


def small_components(union: DisjointUnion) -> SmallComponents:
    """The small components of some subgraphs.

    Which ones are small is decided over all subgraphs together, smallest first. Those that go beyond the limit among
    some of the subgraphs do so among all of them, and whatever comes after them does, too: they need not be kept.
    """
    label = components(union)
    size = np.bincount(label)
    small = _small_enough(size)
    by_label = np.argsort(label, kind="stable")
    kept = small[label[by_label]]
    node = union.node.numpy()[by_label[kept]]
    return SmallComponents(size[small].astype(np.int32), node.astype(np.int32))


def reach_of_nodes(parts: Sequence[SmallComponents], target_of: npt.NDArray[np.int32], cap: IntArray) -> ReachTable:
    """Reach table of each target: ``reach[ptr[j] + k - 1]`` bounds the votes that k nodes reach.

    Args:
        parts: The small components of all subgraphs, some subgraphs at a time, in their order.
        target_of: Which target each node is, -1 if it is none.
        cap: Number of reached votes of each target.
    """
    size = np.concatenate([np.zeros(0, dtype=np.int32), *(part.size for part in parts)])
    node = np.concatenate([np.zeros(0, dtype=np.int32), *(part.node for part in parts)])
    small = _small_enough(size)
    node, size = node[np.repeat(small, size)], size[small]
    owner = target_of[node]
    base = cap - np.bincount(owner[owner >= 0], minlength=len(cap))  # votes in components that are not looked into
    owner, reach = _reaches(size, node, owner, len(target_of))
    return sums_of_largest(owner, reach, cap, base)


def reach_of_graphs(reach: npt.NDArray[np.integer], batch: IntArray, cap: IntArray) -> ReachTable:
    """Reach table of each graph: a node reaches the subgraphs in which it has an edge.

    Args:
        reach: Number of subgraphs in which each node has an edge.
        batch: Graph of each node.
        cap: Number of subgraphs in which each graph has an edge.
    """
    seen = reach > 0
    return sums_of_largest(batch[seen], reach[seen].astype(np.int64), cap, np.zeros(len(cap), dtype=np.int64))


def _small_enough(size: npt.NDArray[np.integer]) -> BoolArray:
    """Which components have all their pairs enumerated, given the size of each: the smallest, and the first of them."""
    number = np.bincount(size)
    pairs = np.cumsum(number * np.arange(len(number)) ** 2)
    beyond = int(np.searchsorted(pairs, MAX_PAIRS, side="right"))  # the first size of which not all fit
    small = np.asarray(size < beyond)
    if beyond < len(number):
        room = (MAX_PAIRS - int(pairs[beyond - 1])) // beyond**2
        small[np.flatnonzero(size == beyond)[:room]] = True
    return small


def _reaches(
    size: npt.NDArray[np.int32], node: npt.NDArray[np.int32], owner: npt.NDArray[np.int32], num_nodes: int
) -> tuple[IntArray, IntArray]:
    """For every pair (target, other node) that meets somewhere: the target, and in how many subgraphs they meet.

    Args:
        size: Number of nodes of each component.
        node: Their nodes, component by component.
        owner: Which target each of these is, -1 if it is none.
        num_nodes: Number of nodes of the graph.
    """
    start = np.cumsum(size, dtype=np.int64) - size
    found = [np.zeros(0, dtype=np.int64)]
    for members in np.flatnonzero(np.bincount(size)).tolist():
        apart, alike = ~np.eye(members, dtype=bool), start[size == members]
        for part in np.array_split(alike, 1 + len(alike) * members**2 // PAIRS_AT_ONCE):
            entry = part[:, None] + np.arange(members)
            me, mates = owner[entry].astype(np.int64)[:, :, None], node[entry][:, None, :]
            found.append((me * num_nodes + mates)[(me >= 0) & apart])
    pair = np.concatenate(found)
    del found
    pair.sort()
    first = np.flatnonzero(np.concatenate([[True], pair[1:] != pair[:-1]])[: len(pair)])
    return pair[first] // num_nodes, np.diff(first, append=len(pair))


def sums_of_largest(owner: IntArray, reach: IntArray, cap: IntArray, base: IntArray) -> ReachTable:
    """Sums of the k largest reaches of each owner, at most ``cap``; a row ends where it stops growing, at ``cap``."""
    most = int(reach.max(initial=0))
    key = owner * (most + 1) + (most - reach)  # by owner, and the largest reach first
    key.sort()
    owner, total = key // (most + 1), np.cumsum(most - key % (most + 1))
    del key
    count = np.bincount(owner, minlength=len(cap))
    start = np.cumsum(count) - count
    total += np.repeat(base - np.concatenate([[0], total])[start], count)
    np.minimum(total, np.repeat(cap, count), out=total)
    grows = np.ones(len(total), dtype=bool)
    grows[1:] = total[1:] > total[:-1]
    grows[start[count > 0]] = True
    total = total[grows]
    # Files promise that a row ends with the number of votes. Some do not yet: where all components are large (one
    # node may reach them all), and where there is only a self-loop (no other node reaches the target).
    count = np.bincount(owner[grows], minlength=len(cap))
    end = np.cumsum(count)
    last = np.where(count > 0, np.append(total, 0)[end - 1], 0)
    short = last < cap
    total = np.insert(total, end[short], cap[short])
    return np.concatenate([[0], np.cumsum(count + short)]).astype(np.int64), total.astype(np.int64, copy=False)
