"""``compute_votes``: the votes of all targets, by one process or by workers, kept on disk as they come if asked for."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch

from agnncert.certificates.votes import IntArray, Votes
from agnncert.divisions.base import Division
from agnncert.engine import fast, naive
from agnncert.engine.adapter import ModelAdapter
from agnncert.engine.checkpoint import StoredRanges
from agnncert.engine.edges_by_group import EdgesByGroup
from agnncert.engine.features import Features, SparseRows
from agnncert.engine.range_votes import (
    RangeVotes,
    abstaining,
    compute_range_votes,
    list_range_votes,
    merge_ranges,
    no_reach,
    reach_of_ranges,
)
from agnncert.engine.reach import ReachTable
from agnncert.engine.worker_job import VoteJob, compute_part
from agnncert.engine.workers import Workers
from agnncert.errors import ModelContractError, SettingsError, did_you_mean
from agnncert.graphs.graph import CanonicalGraph
from agnncert.graphs.targets import Entries
from agnncert.progress import ReportProgress

EngineName = Literal["fast", "naive"]
ENGINES: tuple[EngineName, ...] = ("fast", "naive")
PARTS_PER_WORKER = 4  # so that one that is slow, or dies, does not keep the others waiting for long


@torch.no_grad()
def compute_votes(
    call: ModelAdapter,
    graph: CanonicalGraph,
    division: Division,
    rows: IntArray,
    engine: EngineName = "fast",
    tolerance: float | None = None,
    memory_limit: int | None = None,
    report_progress: ReportProgress | None = None,
    edges_by_group: EdgesByGroup | None = None,
    workers: Workers | None = None,
    stored: StoredRanges | None = None,
    entries: Entries | None = None,
) -> tuple[Votes, ReachTable]:
    """Votes of the targets, and their reach tables (empty where the division needs none).

    Args:
        call: The model, bound to the graph.
        graph: A canonical graph; in the graph task the joined targets.
        division: How to divide it.
        rows: Node task: rows of the targets. Graph task: all graphs of ``graph``, in order.
        engine: "fast" or "naive"; the votes are the same.
        tolerance: Relative distance that two computations of the same logits may lie apart at least; ``None`` spares
            the work of finding out which votes are stable, where nobody asks.
        memory_limit: Bytes that one chunk of work may take, about; ``None`` chooses what is fastest.
        report_progress: Called now and then with the fraction of the votes that has been cast.
        edges_by_group: The graph's edges by group, if these have been found before.
        workers: Who casts, with the fast engine and a division that offers ``pieces``; this process when not given.
        stored: Where the votes of each range are stored; like ``workers``, with the fast engine only.
        entries: The features that are not zero, if these have been sought before.
    """
    if engine not in ENGINES:
        raise SettingsError(f'unknown engine "{engine}": {did_you_mean(str(engine), ENGINES)}')
    if (workers is not None or stored is not None) and (engine == "naive" or not division.has_disjoint_union):
        raise SettingsError(
            "workers= and checkpoint= are for the fast engine and the library's own divisions, whose groups vote "
            f"apart from each other: leave them out with {division} and engine={engine!r}."
        )
    engine = "naive" if division.edges_only else engine  # a model that mixes nodes would see the whole union
    call = replace(call)  # nothing that was derived from the model before: it may have been trained since
    if report_progress is not None:
        report_progress(0.0)
    if not division.has_disjoint_union:
        votes = _all_listed(call, graph, division, rows, engine, tolerance, memory_limit, report_progress)
        return votes, no_reach(len(rows))
    edges_by_group = edges_by_group or EdgesByGroup(graph, division, rows)
    if engine == "naive":
        parts = [list_range_votes(edges_by_group, groups) for groups in edges_by_group.ranges(memory_limit)]
        votes = _naive_votes(
            call, edges_by_group, merge_ranges(parts, edges_by_group, call.num_classes), tolerance, report_progress
        )
        return votes, reach_of_ranges(parts, edges_by_group, votes)
    x, known = graph.x.to(call.dtype), edges_by_group.whole_union
    sparse = SparseRows.of(x, entries if x is graph.x else None) if known is None else known.sparse
    features, default = Features(x, sparse, most_kept=memory_limit), None
    if not edges_by_group.on_graphs and not division.gates_features:
        default = fast.no_edge_votes(call, graph, features, rows, tolerance, memory_limit)
    parts = _compute_all_ranges(
        call, edges_by_group, features, tolerance, memory_limit, report_progress, workers, stored
    )
    del features  # and with them the projections, before votes are sorted
    votes = merge_ranges(parts, edges_by_group, call.num_classes, default)
    # Reach tables need nothing else of the ranges, and merge_ranges votes are large.
    parts = [replace(part, owner=part.owner[:0].copy(), reached=None, vote=None, stable=None) for part in parts]
    return votes, reach_of_ranges(parts, edges_by_group, votes)


def structure(
    graph: CanonicalGraph, division: Division, rows: IntArray, memory_limit: int | None = None
) -> dict[str, npt.NDArray[Any]]:
    """What ``compute_votes`` finds out about the graph alone, by the names that evidence uses; arguments as there."""
    if division.has_disjoint_union:
        edges_by_group = EdgesByGroup(graph, division, rows)
        parts = [list_range_votes(edges_by_group, groups) for groups in edges_by_group.ranges(memory_limit)]
        votes = merge_ranges(parts, edges_by_group)
        reach_ptr, table = reach_of_ranges(parts, edges_by_group, votes)
    else:
        votes, (reach_ptr, table) = _every_group(len(rows), division.num_groups), no_reach(len(rows))
    listed = {name: getattr(votes, name) for name in ("indptr", "group", "reached")}
    pairs = pair_facts(graph, division, rows, votes.indptr, votes.group)
    return {**listed, "reach_ptr": reach_ptr, "reach": table, **pairs}


def pair_facts(
    graph: CanonicalGraph, division: Division, rows: IntArray, indptr: IntArray, group: npt.NDArray[np.int32]
) -> dict[str, npt.NDArray[Any]]:
    """The arrays ``one_way`` and ``targets_per_node`` of the evidence, as far as its rule needs them.

    Args:
        graph: A canonical graph; in the graph task the joined targets.
        division: How it is divided.
        rows: Node task: rows of the targets.
        indptr: Where the listed votes of each target begin.
        group: Group of each listed vote.
    """
    if not division.is_per_neighbour:
        return {}
    facts: dict[str, npt.NDArray[Any]] = {}
    edge_centric = division.family == "edge-centric"
    if edge_centric:
        owner = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
        facts["one_way"] = _one_way(graph, division, owner, group.astype(np.int64))
    if graph.task == "node":
        facts["targets_per_node"] = _targets_per_node(graph, edge_centric, torch.from_numpy(rows))
    return facts


def _one_way(graph: CanonicalGraph, division: Division, owner: IntArray, group: IntArray) -> npt.NDArray[np.bool_]:
    """Whether the pair of each vote has arcs in one direction only, so that a new direction would alter it."""
    source, head = graph.edge_index
    cell, most = division.groups(graph), division.num_groups_in(graph)
    wanted = torch.from_numpy(group)
    if graph.task == "graph":
        cell, wanted = graph.graph_of_node[source] * most + cell, torch.from_numpy(owner) * most + wanted
    size = int(cell.max()) + 1 if len(cell) else 1
    up, down = torch.zeros(size, dtype=torch.bool), torch.zeros(size, dtype=torch.bool)
    up[cell[source <= head]] = True
    down[cell[source >= head]] = True
    return (up ^ down)[wanted].numpy()


def _targets_per_node(graph: CanonicalGraph, both_ways: bool, targets: torch.Tensor) -> npt.NDArray[np.int32]:
    """Of how many targets each other node is a neighbour, the largest numbers first; zeros are left out.

    If the attacker spares the targets, only the other nodes can be deleted or given other features.
    """
    is_target = torch.zeros(len(graph.x), dtype=torch.bool)
    is_target[targets] = True
    source, head = graph.edge_index
    if both_ways:
        source, head = torch.cat([source, head]), torch.cat([head, source])
    reaches = ~is_target[source] & is_target[head]
    pairs = torch.unique(source[reaches].long() * len(graph.x) + head[reaches])
    counts = torch.bincount(torch.div(pairs, len(graph.x), rounding_mode="floor"))
    return torch.sort(counts[counts > 0], descending=True).values.numpy().astype(np.int32)


def _naive_votes(
    call: ModelAdapter,
    edges_by_group: EdgesByGroup,
    votes: Votes,
    tolerance: float | None,
    report_progress: ReportProgress | None,
) -> Votes:
    """Listed votes cast by the naive engine; also checks that every vote that is not listed equals the default."""
    graph, division, rows = edges_by_group.graph, edges_by_group.division, edges_by_group.rows
    default = abstaining(len(rows))
    table, stable = naive.table(call, graph, division, rows, tolerance, report_progress)
    if not edges_by_group.on_graphs and not division.gates_features:
        vote, sure = naive.no_edge_votes(call, graph, tolerance)
        default = vote[rows], sure[rows]
    owner = votes.owner
    unlisted = np.ones(table.shape, dtype=bool)
    unlisted[owner, votes.group] = False
    differs = unlisted & (table != default[0][:, None]) & stable & default[1][:, None]
    if differs.any():
        target, group = np.argwhere(differs)[0]
        raise ModelContractError(
            f"target {rows[target]} votes {table[target, group]} in subgraph {group}, where it has no edge, but "
            f"{default[0][target]} without any edges: the model looks beyond the edges of a node, and nothing can be "
            "proved about it."
        )
    vote, sure = table[owner, votes.group], stable[owner, votes.group]
    return replace(votes, default=default[0], default_stable=default[1], vote=vote, stable=sure)


def _all_listed(
    call: ModelAdapter,
    graph: CanonicalGraph,
    division: Division,
    rows: IntArray,
    engine: EngineName,
    tolerance: float | None,
    memory_limit: int | None,
    report_progress: ReportProgress | None,
) -> Votes:
    """A user's own division: only its subgraphs are known, so every vote is listed."""
    if engine == "fast":
        table, stable = fast.own_division_table(call, graph, division, rows, tolerance, memory_limit)
    else:
        table, stable = naive.table(call, graph, division, rows, tolerance, report_progress)
    votes = _every_group(len(rows), table.shape[1], call.num_classes)
    return replace(votes, vote=table.reshape(-1), stable=stable.reshape(-1))


def _every_group(num_targets: int, num_groups: int, num_classes: int = 0) -> Votes:
    """Votes of which all are listed, before the model is called."""
    group = np.tile(np.arange(num_groups, dtype=np.int32), num_targets)
    indptr, reached = np.arange(num_targets + 1) * num_groups, np.ones(len(group), dtype=bool)
    return Votes(num_groups, num_classes, *abstaining(num_targets), indptr, group, *abstaining(len(group)), reached)


def _compute_all_ranges(
    call: ModelAdapter,
    edges_by_group: EdgesByGroup,
    features: Features,
    tolerance: float | None,
    memory_limit: int | None,
    report_progress: ReportProgress | None,
    workers: Workers | None = None,
    stored: StoredRanges | None = None,
) -> list[RangeVotes]:
    """The votes of all groups, range by range; arguments as in :func:`compute_votes`."""
    votes = stored.load() if stored is not None else []
    at_least = 1 if workers is None else PARTS_PER_WORKER * workers.parts_at_once()
    parts = ranges_to_compute(edges_by_group, memory_limit, votes, at_least)
    total, done = max(edges_by_group.num_groups, 1), sum(len(part.groups) for part in votes)

    def within(groups: range) -> ReportProgress | None:
        return None if report_progress is None else lambda part: report_progress((done + part * len(groups)) / total)

    results: Iterator[tuple[range, RangeVotes]]
    if workers is None:
        # One after the other on all cores: laying out the next range meanwhile made both wait for each other.
        results = (
            (g, compute_range_votes(call, edges_by_group, g, features, tolerance, memory_limit, within(g)))
            for g in parts
        )
    else:
        results = workers.run(
            VoteJob.of(call, edges_by_group, tolerance, memory_limit), VoteJob.caster, compute_part, parts
        )
    for groups, part in results:
        if stored is not None:
            stored.save(part)
        votes.append(part)
        done += len(groups)
        if report_progress is not None:
            report_progress(done / total)
    return votes


def ranges_to_compute(
    edges_by_group: EdgesByGroup, memory_limit: int | None, kept: Sequence[RangeVotes], at_least: int
) -> list[range]:
    """The groups that are not in ``kept``, in ranges that fit into memory, ``at_least`` so many if it can be."""
    if edges_by_group.num_groups == 0:
        return [range(0)]
    ranges = edges_by_group.ranges(memory_limit)
    longest = max(1, edges_by_group.num_groups // max(at_least, 1))
    cuts = {cut for groups in ranges for cut in (*groups[::longest], groups.stop)}
    cuts |= {end for part in kept for end in (part.groups.start, part.groups.stop)}
    done = {group for part in kept for group in part.groups}
    return [range(a, b) for a, b in pairwise(sorted(cuts | {0, edges_by_group.num_groups})) if a not in done]
