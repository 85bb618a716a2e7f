"""Counts the paths over which nodes reach targets, for noise that intercepts messages."""

from dataclasses import dataclass

import numpy as np

from agnncert.certificates.votes import IntArray
from agnncert.errors import SettingsError
from agnncert.graphs.graph import CanonicalGraph
from agnncert_peers.draws import runs
from agnncert_peers.interception_noise import InterceptionNoise, Sources

_MOST_PATHS = 5_000_000  # that are followed at once, and that may lead to one target


@dataclass(frozen=True)
class _Incoming:
    """Nodes that edges come from, grouped by the node that they lead to.

    Attributes:
        source: Where each edge comes from.
        first: Edges to node ``u`` are ``first[u]:first[u + 1]``.
    """

    source: IntArray
    first: IntArray

    @classmethod
    def of(cls, graph: CanonicalGraph) -> "_Incoming":
        source, head = graph.edge_index.numpy()
        order = np.argsort(head, kind="stable")
        return cls(source[order], np.searchsorted(head[order], np.arange(graph.num_nodes + 1)))


def find_sources(graph: CanonicalGraph, rows: IntArray, noise: InterceptionNoise) -> Sources:
    """Finds the nodes that reach each target most often, with their paths: see ``Sources``.

    Args:
        graph: A canonical graph; every copy of an edge can be deleted on its own.
        rows: Rows of the targets.
        noise: Says how far paths lead, and which nodes it intercepts least.

    Raises:
        SettingsError: There are more than five million paths to one target.
    """
    incoming = _Incoming.of(graph)
    lists: list[IntArray] = []
    at_once = len(rows)
    begin = 0
    while begin < len(rows):
        counts = _count_paths(incoming, rows[begin : begin + at_once], noise.hops)
        if counts is not None:
            lists += [_most_dangerous(paths, noise) for paths in counts]
            begin += at_once
            continue
        if at_once == 1:
            raise SettingsError(
                f"more than {_MOST_PATHS:,} paths of up to {noise.hops} edges lead to the node in row "
                f"{rows[begin]}: leave it out of the targets, or take a model with fewer hops."
            )
        at_once = max(1, at_once // 8)
    start = np.cumsum([0, *map(len, lists)], dtype=np.int64)
    none = np.empty((0, noise.hops), dtype=np.int64)
    return Sources(start, np.concatenate([none, *lists]))


def _count_paths(incoming: _Incoming, rows: IntArray, hops: int) -> list[IntArray] | None:
    """Counts paths of each length from each node that reaches a target, for each target.

    Args:
        incoming: Edges by the node that they lead to.
        rows: Rows of the targets.
        hops: Length of the longest paths.

    Returns:
        For each target, one line for each node that reaches it, shape ``[nodes, hops]``; ``None`` if there are too
        many paths.
    """
    followed = rows[:, None]  # one path in each line, backwards from its target
    target = np.arange(len(rows))
    ends = []
    for length in range(hops):
        begin = incoming.first[followed[:, -1]]
        degree = incoming.first[followed[:, -1] + 1] - begin
        if degree.sum() > _MOST_PATHS:
            return None
        onward = incoming.source[runs(begin, degree)]
        target = np.repeat(target, degree)
        followed = np.repeat(followed, degree, axis=0)
        is_new = (followed != onward[:, None]).all(axis=1)  # no path passes a node twice
        target = target[is_new]
        followed = np.column_stack([followed, onward])[is_new]
        ends.append(np.stack([target, followed[:, -1], np.full(len(target), length)]))
    target_of_path, node_of_path, length_of_path = np.concatenate(ends, axis=1)
    reached, line = np.unique(np.stack([target_of_path, node_of_path]), axis=1, return_inverse=True)
    paths = np.zeros((reached.shape[1], hops), dtype=np.int64)
    np.add.at(paths, (line.reshape(-1), length_of_path), 1)
    return np.split(paths, np.searchsorted(reached[0], np.arange(1, len(rows))))


def _most_dangerous(paths: IntArray, noise: InterceptionNoise) -> IntArray:
    """Returns the lines that matter for one target: see ``Sources``."""
    silences = noise.silences(paths)
    order = np.lexsort([*paths.T, silences])
    enough = int((np.cumprod(silences[order]) > 0.5).sum()) + 1
    return paths[order[:enough]]
