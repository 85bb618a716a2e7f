"""The fast engine: the votes of ``naive`` for the price of a few forward passes.

A node without an edge in a subgraph votes there as it votes without any edge. So only copies of nodes *with* an edge
are evaluated, all subgraphs side by side in one disjoint union. All other votes are the prediction without edges. The
union is cut between subgraphs into chunks that do not depend on each other.

Nor are all subgraphs needed side by side: votes are computed range by range, some groups at a time. What is kept of a
division is one number per edge, its place when edges are sorted by group (``EdgesByGroup``). The rest is computed for
each range and dropped. The votes do not depend on how groups are cut into ranges. ``merge_ranges`` refuses a range that
is missing or repeated. ``RangeVotes`` holds numpy arrays only and can be sent or stored.
"""

from collections.abc import Iterator

import numpy as np
import torch

from agnncert.certificates.votes import ABSTAIN, IntArray
from agnncert.divisions.base import Division
from agnncert.engine.adapter import ModelAdapter, no_edges
from agnncert.engine.edges_by_group import EdgesByGroup as EdgesByGroup
from agnncert.engine.features import Features
from agnncert.engine.rounding import Predictions, predict
from agnncert.engine.union import SubgraphUnion, chunk_batch, chunk_inputs, chunk_rows, side_by_side
from agnncert.graphs.graph import CanonicalGraph, one_graph

NO_EDGE_ROWS = 2**17  # targets without edges that are evaluated together, likewise


def no_edge_votes(
    call: ModelAdapter,
    graph: CanonicalGraph,
    features: Features,
    rows: IntArray,
    tolerance: float | None,
    memory_limit: int | None = None,
) -> Predictions:
    """Votes of the targets without edges, some of them at a time."""
    step = NO_EDGE_ROWS if memory_limit is None else chunk_rows(call, graph, memory_limit)
    none = no_edges(graph, call.takes)
    parts = [
        predict(call, tolerance, features.rows(torch.from_numpy(rows[first : first + step])), *none)
        for first in range(0, max(len(rows), 1), step)
    ]
    return np.concatenate([b for b, _ in parts]), np.concatenate([s for _, s in parts])


def union_votes(
    call: ModelAdapter,
    layout: SubgraphUnion,
    features: Features,
    tolerance: float | None,
    memory_limit: int | None = None,
) -> Predictions:
    """The vote of each node in each subgraph where it has an edge; in the graph task, of each subgraph with nodes."""
    on_graphs = layout.graph.task == "graph"
    parts = []
    for chunk in layout.chunks(chunk_rows(call, layout.graph, memory_limit)):
        node, blank, edge_index, values = chunk_inputs(call, layout, chunk)
        batch = chunk_batch(layout, chunk) if on_graphs else None
        parts.append(predict(call, tolerance, features.rows(node, blank), edge_index, values, batch))
    if not parts:
        return np.empty(0, dtype=np.int16), np.empty(0, dtype=bool)
    return np.concatenate([b for b, _ in parts]), np.concatenate([s for _, s in parts])


def own_division_table(
    call: ModelAdapter,
    graph: CanonicalGraph,
    division: Division,
    rows: IntArray,
    tolerance: float | None,
    memory_limit: int | None,
) -> Predictions:
    """Votes of a division without ``pieces``, many subgraphs at a time; shape ``[num_targets, num_groups]``."""
    on_graphs = graph.task == "graph"
    votes = np.full((len(rows), division.num_groups), ABSTAIN, dtype=np.int16)
    stable = np.ones(votes.shape, dtype=bool)
    limit = chunk_rows(call, graph, memory_limit)
    for places, parts in _packed(_subgraphs(graph, division, rows), limit):
        x, edge_index, values, batch = side_by_side(call, parts)
        vote, sure = predict(call, tolerance, x, edge_index, values, batch if on_graphs else None)
        starts = torch.searchsorted(batch, torch.arange(len(parts))).tolist()
        for k, ((row, alike), start) in enumerate(zip(places, starts, strict=True)):
            if on_graphs:
                votes[row, alike], stable[row, alike] = vote[k], sure[k]
                continue
            here = rows + start
            abstain = parts[k].abstain
            silent = np.zeros(len(rows), dtype=bool) if abstain is None else abstain.numpy()[rows]
            votes[:, alike] = np.where(silent, ABSTAIN, vote[here])[:, None]
            stable[:, alike] = (silent | sure[here])[:, None]
    return votes, stable


Place = tuple[int, IntArray]  # a target and the groups that see the same subgraph


def _subgraphs(graph: CanonicalGraph, division: Division, rows: IntArray) -> Iterator[tuple[Place, CanonicalGraph]]:
    wholes = [one_graph(graph, k) for k in range(len(rows))] if graph.task == "graph" else [graph]
    for row, whole in enumerate(wholes):
        groups = division.groups(whole)
        same = division.same_as(whole, groups).numpy()
        for group in np.unique(same).tolist():
            part = division.subgraph(whole, groups, group)
            if part.x.size(0):
                yield (row, np.flatnonzero(same == group)), part


def _packed(
    items: Iterator[tuple[Place, CanonicalGraph]], limit: int
) -> Iterator[tuple[list[Place], list[CanonicalGraph]]]:
    places: list[Place] = []
    parts: list[CanonicalGraph] = []
    total = 0
    for place, part in items:
        if parts and total + part.x.size(0) > limit:
            yield places, parts
            places, parts, total = [], [], 0
        places.append(place)
        parts.append(part)
        total += part.x.size(0)
    if parts:
        yield places, parts
