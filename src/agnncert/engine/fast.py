"""The fast engine: the votes of ``naive`` for the price of a few forward passes.

A node without an edge in a subgraph votes there as it votes without any edge. So only copies of nodes *with* an edge
are evaluated, all subgraphs side by side in one disjoint union. All other votes are the prediction without edges. The
union is cut between subgraphs into chunks that do not depend on each other.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch

from agnncert.certificates.votes import ABSTAIN, IntArray
from agnncert.divisions.base import Division
from agnncert.engine.adapter import ModelAdapter, no_edges
from agnncert.engine.exact_votes import LEFT, Decisions, Inputs, decide_at_first, decide_rest
from agnncert.engine.features import Features
from agnncert.engine.rounding import Predictions, predict
from agnncert.engine.union import Chunk, SubgraphUnion, chunk_batch, chunk_inputs, chunk_rows, side_by_side
from agnncert.graphs.graph import CanonicalGraph, one_graph

NO_EDGE_ROWS = 2**17  # targets without edges that are evaluated together when no memory limit is given


def no_edge_votes(
    bound_model: ModelAdapter,
    graph: CanonicalGraph,
    features: Features,
    rows: IntArray,
    tolerance: float | None,
    memory_limit: int | None = None,
) -> Predictions:
    """Computes the votes of the targets without edges, some targets at a time.

    Args:
        bound_model: The model, bound to the graph.
        graph: The graph.
        features: Its features in the model's type.
        rows: Rows of the targets.
        tolerance: As in ``compute_votes``.
        memory_limit: As in ``compute_votes``.
    """
    step = NO_EDGE_ROWS if memory_limit is None else chunk_rows(bound_model, graph, memory_limit)
    edge_index, values = no_edges(graph, bound_model.edge_inputs)
    parts = []
    for first in range(0, max(len(rows), 1), step):
        some = torch.from_numpy(rows[first : first + step])
        parts.append(predict(bound_model, tolerance, features.rows(some), edge_index, values))
    return Predictions.concatenate(parts)


def union_votes(
    bound_model: ModelAdapter,
    subgraphs: SubgraphUnion,
    features: Features,
    tolerance: float | None,
    memory_limit: int | None = None,
) -> Predictions:
    """Computes the votes of a union, one for each copy; in the graph task, one for each of its subgraphs.

    Args:
        bound_model: The model, bound to the graph.
        subgraphs: The union.
        features: Features of the graph in the model's type.
        tolerance: As in ``compute_votes``.
        memory_limit: As in ``compute_votes``.
    """
    chunks = subgraphs.chunks(chunk_rows(bound_model, subgraphs.graph, memory_limit))
    if tolerance is None or bound_model.rounding == "watched":
        return Predictions.concatenate(
            predict(bound_model, tolerance, *model_inputs(bound_model, subgraphs, features, chunk)) for chunk in chunks
        )
    at_first = [
        decide_at_first(bound_model, tolerance, model_inputs(bound_model, subgraphs, features, chunk))
        for chunk in chunks
    ]
    if not at_first:
        return Predictions.concatenate([])
    decisions = Decisions.concatenate(at_first)
    # The few votes that are left to float64 in each chunk are decided together.
    if bool((decisions.by == LEFT).any()):
        whole = Chunk(slice(0, len(subgraphs.union.node)), slice(0, subgraphs.union.edge_index.size(1)))
        inputs = model_inputs(bound_model, subgraphs, features, whole)
        decisions = decide_rest(bound_model, tolerance, decisions, inputs)
    return Predictions.of(decisions)


def model_inputs(bound_model: ModelAdapter, subgraphs: SubgraphUnion, features: Features, chunk: Chunk) -> Inputs:
    """Returns what the model is called on for one chunk, with features that are copied when they are asked for."""
    inputs = chunk_inputs(bound_model, subgraphs, chunk)
    batch = chunk_batch(subgraphs, chunk) if subgraphs.graph.task == "graph" else None
    return Inputs(features.rows(inputs.node, inputs.blank), inputs.edge_index, inputs.values, batch)


@dataclass(frozen=True)
class _Subgraph:
    """A subgraph of a division that has no disjoint union.

    Attributes:
        target: Graph task: number of the graph; 0 in the node task.
        groups: The groups that see this very subgraph.
        graph: The subgraph.
    """

    target: int
    groups: IntArray
    graph: CanonicalGraph


def own_division_table(
    bound_model: ModelAdapter,
    graph: CanonicalGraph,
    division: Division,
    rows: IntArray,
    tolerance: float | None,
    memory_limit: int | None,
) -> Predictions:
    """Computes all votes of a division without a disjoint union, many subgraphs at a time.

    The arguments are those of ``compute_votes``. Votes have shape ``[num_targets, num_groups]``.
    """
    on_graphs = graph.task == "graph"
    table = np.full((len(rows), division.num_groups), ABSTAIN, dtype=np.int16)
    stable = np.ones(table.shape, dtype=bool)
    limit = chunk_rows(bound_model, graph, memory_limit)
    for subgraphs in _packed(_subgraphs(graph, division, rows), limit):
        inputs = side_by_side(bound_model, [subgraph.graph for subgraph in subgraphs])
        batch = inputs.batch if on_graphs else None
        predictions = predict(bound_model, tolerance, inputs.x, inputs.edge_index, inputs.values, batch)
        if on_graphs:
            for number, subgraph in enumerate(subgraphs):
                table[subgraph.target, subgraph.groups] = predictions.vote[number]
                stable[subgraph.target, subgraph.groups] = predictions.stable[number]
            continue
        starts = torch.searchsorted(inputs.batch, torch.arange(len(subgraphs))).tolist()
        for subgraph, start in zip(subgraphs, starts, strict=True):
            vote = predictions.vote[rows + start]
            is_stable = predictions.stable[rows + start]
            if subgraph.graph.abstain is not None:
                abstains = subgraph.graph.abstain.numpy()[rows]
                vote = np.where(abstains, ABSTAIN, vote)
                is_stable = abstains | is_stable
            table[:, subgraph.groups] = vote[:, None]
            stable[:, subgraph.groups] = is_stable[:, None]
    return Predictions(table, stable)


def _subgraphs(graph: CanonicalGraph, division: Division, rows: IntArray) -> Iterator[_Subgraph]:
    """Yields all different subgraphs that have nodes."""
    graphs = [one_graph(graph, target) for target in range(len(rows))] if graph.task == "graph" else [graph]
    for target, whole in enumerate(graphs):
        groups = division.groups(whole)
        same_as = division.same_as(whole, groups).numpy()
        for group in np.unique(same_as).tolist():
            part = division.subgraph(whole, groups, group)
            if part.x.size(0):
                yield _Subgraph(target, np.flatnonzero(same_as == group), part)


def _packed(subgraphs: Iterator[_Subgraph], limit: int) -> Iterator[list[_Subgraph]]:
    """Yields subgraphs in packs of at most ``limit`` nodes; a pack has at least one subgraph."""
    pack: list[_Subgraph] = []
    num_nodes = 0
    for subgraph in subgraphs:
        size = subgraph.graph.x.size(0)
        if pack and num_nodes + size > limit:
            yield pack
            pack = []
            num_nodes = 0
        pack.append(subgraph)
        num_nodes += size
    if pack:
        yield pack
