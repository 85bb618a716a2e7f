"""How many votes of a target the worst k other nodes can reach, in the edge-centric division.

A node whose features change, or that is deleted, matters to a target only in subgraphs where both lie in one component;
their number is the node's *reach*. The exact worst case over sets of k nodes is a maximum-coverage problem; the sum of
the k largest reaches bounds it from above.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from agnncert.certificates.votes import BoolArray, IntArray
from agnncert.divisions.union import DisjointUnion

# At most this many pairs of nodes in one component are enumerated, small components first. In the components that are
# left, any one node counts as reaching every target.
MAX_PAIRS = 20_000_000
PAIRS_AT_ONCE = 2**21  # pairs that are enumerated at a time


class ReachTable(NamedTuple):
    """Bounds on the votes that other nodes reach, one row per target.

    Attributes:
        ptr: The row of target ``j`` is ``reach[ptr[j]:ptr[j + 1]]``.
        reach: Entry ``k - 1`` of a row bounds the votes that k nodes reach. Beyond its end the bound does not grow.
    """

    ptr: IntArray
    reach: IntArray


@dataclass(frozen=True)
class SmallComponents:
    """Components of some subgraphs that are small enough to have their pairs enumerated, as far as these can tell.

    Attributes:
        size: Number of nodes of each component, in the order of subgraphs and of nodes, shape ``[k]``.
        node: Their nodes, component by component.
    """

    size: npt.NDArray[np.int32]
    node: npt.NDArray[np.int32]


def components(union: DisjointUnion) -> IntArray:
    """Returns the connected component of every copy in a union; edges connect in both directions."""
    source, head = union.edge_index.numpy()
    num_copies = len(union.subgraph_index)
    ones = np.ones(len(source), dtype=np.int8)
    adjacency = coo_matrix((ones, (source, head)), (num_copies, num_copies))
    _, label = connected_components(adjacency, directed=False)
    return label.astype(np.int64)  # type: ignore[no-any-return]


def small_components(union: DisjointUnion) -> SmallComponents:
    """Returns the small components of some subgraphs.

    Components are small as long as all smaller ones together stay within a limit, which holds for all subgraphs of the
    graph. These are some of them: what exceeds the limit here exceeds it among all of them as well, and is left out.
    """
    component = components(union)
    size = np.bincount(component)
    is_small = _small_enough(size)
    by_component = np.argsort(component, kind="stable")
    kept = by_component[is_small[component[by_component]]]
    node = union.node.numpy()[kept]
    return SmallComponents(size[is_small].astype(np.int32), node.astype(np.int32))


def joined_small(parts: Sequence[SmallComponents]) -> SmallComponents:
    """Returns the small components of all subgraphs, given those of some subgraphs at a time, in their order."""
    size = np.concatenate([np.zeros(0, dtype=np.int32), *(part.size for part in parts)])
    node = np.concatenate([np.zeros(0, dtype=np.int32), *(part.node for part in parts)])
    is_small = _small_enough(size)
    return SmallComponents(size[is_small], node[np.repeat(is_small, size)])


def reach_of_nodes(parts: Sequence[SmallComponents], target_of: npt.NDArray[np.int32], cap: IntArray) -> ReachTable:
    """Returns the reach tables of target nodes.

    Args:
        parts: The small components of all subgraphs, some subgraphs at a time, in their order.
        target_of: Number of the target that each node is, -1 if it is none.
        cap: Number of reached votes of each target.
    """
    small = joined_small(parts)
    size, node = small.size, small.node
    target = target_of[node]
    votes_looked_into = np.bincount(target[target >= 0], minlength=len(cap))
    pairs = _meeting_pairs(size, node, target, len(target_of))
    del size, node, target
    owner, reach = _reaches(pairs, len(target_of))
    del pairs
    return sums_of_largest(owner, reach, cap, base=cap - votes_looked_into)


def reach_of_graphs(reach: npt.NDArray[np.integer], batch: IntArray, cap: IntArray) -> ReachTable:
    """Returns the reach tables of target graphs: a node reaches the subgraphs in which it has an edge.

    Args:
        reach: Number of subgraphs in which each node has an edge.
        batch: Graph of each node.
        cap: Number of subgraphs in which each graph has an edge.
    """
    has_edge = reach > 0
    base = np.zeros(len(cap), dtype=np.int64)
    return sums_of_largest(batch[has_edge], reach[has_edge].astype(np.int64), cap, base)


def _small_enough(size: npt.NDArray[np.integer]) -> BoolArray:
    """Tells which components have all their pairs enumerated: the smallest, and of one size the first.

    Args:
        size: Number of nodes of each component.
    """
    number_of_size = np.bincount(size)
    pairs_up_to_size = np.cumsum(number_of_size * np.arange(len(number_of_size)) ** 2)
    first_beyond = int(
        np.searchsorted(pairs_up_to_size, MAX_PAIRS, side="right")
    )  # the first size of which not all fit
    is_small = np.asarray(size < first_beyond)
    if first_beyond < len(number_of_size):
        room = (MAX_PAIRS - int(pairs_up_to_size[first_beyond - 1])) // first_beyond**2
        is_small[np.flatnonzero(size == first_beyond)[:room]] = True
    return is_small


def _meeting_pairs(
    size: npt.NDArray[np.int32], node: npt.NDArray[np.int32], owner: npt.NDArray[np.int32], num_nodes: int
) -> IntArray:
    """Returns ``target * num_nodes + other node`` for each meeting of two nodes in a subgraph, ascending.

    Args:
        size: Number of nodes of each component.
        node: Their nodes, component by component.
        owner: Number of the target that each of these is, -1 if it is none.
        num_nodes: Number of nodes of the graph.
    """
    start = np.cumsum(size, dtype=np.int64) - size
    pairs = np.empty(int((size * (size.astype(np.int64) - 1)).sum()), dtype=np.int64)  # as many as there can be
    end = 0
    for num_members in np.flatnonzero(np.bincount(size)).tolist():
        is_other = ~np.eye(num_members, dtype=bool)
        starts = start[size == num_members]
        for some in np.array_split(starts, 1 + len(starts) * num_members**2 // PAIRS_AT_ONCE):
            member = some[:, None] + np.arange(num_members)
            target = owner[member].astype(np.int64)[:, :, None]
            other = node[member][:, None, :]
            met = (target * num_nodes + other)[(target >= 0) & is_other]
            pairs[end : end + len(met)] = met
            end += len(met)
    pairs = pairs[:end]
    pairs.sort()
    return pairs


def _reaches(pairs: IntArray, num_nodes: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Returns the target of every pair (target, other node) that meets, and in how many subgraphs they meet.

    Both fit int32: there are fewer targets, and at most ``MAX_PAIRS`` meetings.

    Args:
        pairs: As :func:`_meeting_pairs` returns them. They are written to.
        num_nodes: Number of nodes of the graph.
    """
    is_first = np.ones(len(pairs), dtype=bool)
    is_first[1:] = pairs[1:] != pairs[:-1]
    first = np.flatnonzero(is_first)
    reach = np.diff(first, append=len(pairs)).astype(np.int32)
    del first
    pairs //= num_nodes
    return pairs[is_first].astype(np.int32), reach


def sums_of_largest(
    owner: npt.NDArray[np.integer], reach: npt.NDArray[np.integer], cap: IntArray, base: IntArray
) -> ReachTable:
    """Returns the sums of the k largest reaches of each owner, at most ``cap``.

    A row ends where it stops growing, with its cap.

    Args:
        owner: Target of each reach.
        reach: The reaches.
        cap: Number of votes of each target.
        base: What is added to every entry of a row: votes that any one node may reach.
    """
    num_targets = len(cap)
    most = int(reach.max(initial=0))
    key = owner.astype(np.int64)  # by owner, and the largest reach first
    key *= most + 1
    key += most
    key -= reach
    key.sort()
    owner = (key // (most + 1)).astype(owner.dtype)
    key %= most + 1
    np.subtract(most, key, out=key)
    total = np.cumsum(key, out=key)
    count = np.bincount(owner, minlength=num_targets)
    start = np.cumsum(count) - count
    total_before = np.concatenate([[0], total])[start]
    total += np.repeat(base - total_before, count)
    np.minimum(total, np.repeat(cap, count), out=total)
    grows = np.ones(len(total), dtype=bool)
    grows[1:] = total[1:] > total[:-1]
    grows[start[count > 0]] = True
    owner, total = owner[grows], total[grows]
    return _ending_with_cap(owner, total, cap)


def _ending_with_cap(owner: npt.NDArray[np.integer], total: IntArray, cap: IntArray) -> ReachTable:
    """Appends the number of votes to rows that do not end with it, as files promise that every row does.

    Such rows are those of targets all of whose components are large (one node may reach them all), and of targets that
    only have a self-loop (no other node reaches them).
    """
    count = np.bincount(owner, minlength=len(cap))
    end = np.cumsum(count)
    last = np.where(count > 0, np.append(total, 0)[end - 1], 0)
    is_short = last < cap
    total = np.insert(total, end[is_short], cap[is_short])
    ptr = np.concatenate([[0], np.cumsum(count + is_short)])
    return ReachTable(ptr.astype(np.int64), total.astype(np.int64, copy=False))
