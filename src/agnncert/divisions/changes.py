"""What a change touches: the nodes, pairs and groups that theorems count, and changes that no theorem covers."""

import numpy as np

from agnncert.errors import NotCovered
from agnncert.graphs import hashing
from agnncert.graphs.graph import CanonicalGraph
from agnncert.graphs.node_ids import node_keys
from agnncert.graphs.perturbation import Perturbation, keys_of, pair_keys


def touched_nodes(change: Perturbation) -> set[int]:
    """Returns the keys of the nodes that a change injects, deletes or gives other features."""
    return {*keys_of(change.inject_nodes), *keys_of(change.delete_nodes), *keys_of(change.change_features)}


def touched_pairs(change: Perturbation) -> list[tuple[int, int]]:
    """Returns the keys of the pairs of nodes between which a change adds, deletes or alters an edge."""
    altered = [(u, v) for u, v, _ in change.change_edges]
    return pair_keys([*change.add_edges, *change.delete_edges, *altered])


def touched_edge_groups(change: Perturbation, num_groups: int, hash: str) -> set[int]:
    """Returns the groups of the pairs of :func:`touched_pairs` where edges are divided by their pair of ids."""
    pairs = touched_pairs(change)
    if not pairs:
        return set()
    keys = np.array(pairs, dtype=np.int64).view(np.uint64)
    return set(hashing.edge_groups(keys[:, 0].copy(), keys[:, 1].copy(), num_groups, hash).tolist())


def require_covered(change: Perturbation, graph: CanonicalGraph, target: int | None, target_features: bool) -> None:
    """Checks that the edge- and node-centric theorems say something about a change.

    Args:
        change: What the attacker does.
        graph: The graph before the change.
        target: Row of the target node, or ``None`` in the graph task.
        target_features: Whether the division covers changes of the target's own features.

    Raises:
        NotCovered: They say nothing about it.
    """
    if change.delete_nodes and not graph.stable_ids:
        raise NotCovered(
            "the change deletes nodes of a graph whose ids are row numbers: all later nodes are renamed. "
            "Give it node_id."
        )
    if target is None:
        return
    # Another node may share the target's key: then too much is refused, never too little.
    target_key = int(node_keys(graph)[target])
    if target_key in keys_of(change.delete_nodes):
        raise NotCovered("the change deletes the target itself: no certificate speaks of a node that is gone.")
    if target_key in keys_of(change.change_features) and not target_features:
        raise NotCovered(
            "the change alters the target's own features, which take part in every vote of the target. "
            "GatedNodeCentric covers this."
        )
