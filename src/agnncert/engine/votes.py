"""``compute_votes``: the votes of all targets, by one process or by workers, stored as they come if asked for."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

import numpy as np
import torch

from agnncert.certificates.votes import IntArray, Votes
from agnncert.divisions.base import Division
from agnncert.engine import fast, naive
from agnncert.engine.adapter import ModelAdapter
from agnncert.engine.checkpoint import StoredRanges
from agnncert.engine.edges_by_group import EdgesByGroup
from agnncert.engine.features import Features, SparseRows
from agnncert.engine.kept_arrays import KeptArrays
from agnncert.engine.range_votes import (
    RangeVotes,
    abstaining,
    all_listed,
    compute_range_votes,
    list_range_votes,
    merge_ranges,
    no_reach,
    reach_of_ranges,
)
from agnncert.engine.reach import ReachTable
from agnncert.engine.rounding import Predictions
from agnncert.engine.worker_job import VoteJob, compute_part
from agnncert.engine.workers import Workers
from agnncert.errors import ModelContractError, SettingsError, did_you_mean
from agnncert.graphs.entries import Entries
from agnncert.graphs.graph import CanonicalGraph
from agnncert.progress import ReportProgress

EngineName = Literal["fast", "naive"]
ENGINES: tuple[EngineName, ...] = ("fast", "naive")
PARTS_PER_WORKER = 4  # so that one that is slow, or dies, does not keep the others waiting for long


@dataclass(frozen=True)
class Execution:
    """How votes are computed; the votes themselves do not depend on it.

    Attributes:
        memory_limit: Bytes that one chunk of work may take, about. ``None`` chooses what is fastest.
        report_progress: Called now and then with the fraction of the votes that has been computed.
        workers: Who computes, with the fast engine and a division that has a disjoint union. Defaults to this process.
        stored: Where the votes of each range are stored; like ``workers``, with the fast engine only.
        entries: The features that are not zero, if they have been searched for before.
    """

    memory_limit: int | None = None
    report_progress: ReportProgress | None = None
    workers: Workers | None = None
    stored: StoredRanges | None = None
    entries: Entries | None = None


_BY_DEFAULT = Execution()


@torch.no_grad()
def compute_votes(
    bound_model: ModelAdapter,
    graph: CanonicalGraph,
    division: Division,
    rows: IntArray,
    engine: EngineName = "fast",
    tolerance: float | None = None,
    *,
    edges_by_group: EdgesByGroup | None = None,
    execution: Execution = _BY_DEFAULT,
) -> tuple[Votes, ReachTable]:
    """Computes the votes of the targets, and their reach tables (which are empty where the division needs none).

    Args:
        bound_model: The model, bound to the graph.
        graph: A canonical graph; in the graph task the joined targets.
        division: How to divide it.
        rows: Node task: rows of the targets. Graph task: all graphs of ``graph``, in order.
        engine: "fast" or "naive"; the votes are the same.
        tolerance: Relative distance by which two computations of the same logits may always differ. ``None`` spares
            the work of finding out which votes are stable, where nobody asks.
        edges_by_group: The graph's edges by group, if they have been found before.
        execution: Limits, workers and what else does not change the votes. By default this process computes them in
            the fastest way, and stores nothing.

    Raises:
        SettingsError: The engine is unknown, or cannot use workers or a checkpoint.
        ModelContractError: The model failed, or (naive engine) looks beyond the edges of a node.
    """
    _require_engine(engine, division, in_ranges=execution.workers is not None or execution.stored is not None)
    if division.edges_only:
        engine = "naive"  # a model that mixes nodes would see the whole union
    bound_model = replace(bound_model)  # without what was derived from the model before: it may have been trained since
    if execution.report_progress is not None:
        execution.report_progress(0.0)
    if not division.has_disjoint_union:
        votes = _own_division_votes(bound_model, graph, division, rows, engine, tolerance, execution=execution)
        return votes, no_reach(len(rows))
    if edges_by_group is None:
        edges_by_group = EdgesByGroup(graph, division, rows)
    if engine == "naive":
        return _naive_votes(bound_model, edges_by_group, tolerance, execution)
    return _fast_votes(bound_model, edges_by_group, tolerance, execution)


def _require_engine(engine: str, division: Division, in_ranges: bool) -> None:
    """Refuses an engine that is unknown, or that cannot compute votes range by range if that is asked for."""
    if engine not in ENGINES:
        raise SettingsError(f'unknown engine "{engine}": {did_you_mean(str(engine), ENGINES)}')
    if in_ranges and (engine == "naive" or not division.has_disjoint_union):
        raise SettingsError(
            "workers= and checkpoint= are for the fast engine and the library's own divisions, whose groups vote "
            f"apart from each other: leave them out with {division} and engine={engine!r}."
        )


def _own_division_votes(
    bound_model: ModelAdapter,
    graph: CanonicalGraph,
    division: Division,
    rows: IntArray,
    engine: EngineName,
    tolerance: float | None,
    *,
    execution: Execution,
) -> Votes:
    """Computes the votes of a user's own division: only its subgraphs are known, so every vote is listed."""
    if engine == "fast":
        table = fast.own_division_table(bound_model, graph, division, rows, tolerance, execution.memory_limit)
    else:
        table = naive.table(bound_model, graph, division, rows, tolerance, execution.report_progress)
    return all_listed(len(rows), table.vote.shape[1], bound_model.num_classes, table)


def _naive_votes(
    bound_model: ModelAdapter, edges_by_group: EdgesByGroup, tolerance: float | None, execution: Execution
) -> tuple[Votes, ReachTable]:
    """Computes votes with the naive engine."""
    ranges = [list_range_votes(edges_by_group, groups) for groups in edges_by_group.ranges(execution.memory_limit)]
    listing = merge_ranges(ranges, edges_by_group, bound_model.num_classes)
    graph, division, rows = edges_by_group.graph, edges_by_group.division, edges_by_group.rows
    table = naive.table(bound_model, graph, division, rows, tolerance, execution.report_progress)
    default = abstaining(len(rows))
    if not edges_by_group.on_graphs and not division.gates_features:
        of_all_nodes = naive.no_edge_votes(bound_model, graph, tolerance)
        default = Predictions(of_all_nodes.vote[rows], of_all_nodes.stable[rows])
    _require_default_votes(table, listing, default, rows)
    owner = listing.owner
    votes = replace(
        listing,
        default=default.vote,
        default_stable=default.stable,
        vote=table.vote[owner, listing.group],
        stable=table.stable[owner, listing.group],
    )
    return votes, reach_of_ranges(ranges, edges_by_group, votes)


def _require_default_votes(table: Predictions, listing: Votes, default: Predictions, rows: IntArray) -> None:
    """Checks that every vote that is not listed equals the default.

    Args:
        table: All votes, shape ``[num_targets, num_groups]``.
        listing: Which votes are listed.
        default: What each target votes without edges.
        rows: Rows of the targets.

    Raises:
        ModelContractError: A target votes otherwise in a subgraph where it has no edge.
    """
    is_unlisted = np.ones(table.vote.shape, dtype=bool)
    is_unlisted[listing.owner, listing.group] = False
    differs = is_unlisted & (table.vote != default.vote[:, None]) & table.stable & default.stable[:, None]
    if differs.any():
        target, group = np.argwhere(differs)[0]
        raise ModelContractError(
            f"target {rows[target]} votes {table.vote[target, group]} in subgraph {group}, where it has no edge, but "
            f"{default.vote[target]} without any edges: the model looks beyond the edges of a node, and nothing can be "
            "proved about it."
        )


def _fast_votes(
    bound_model: ModelAdapter, edges_by_group: EdgesByGroup, tolerance: float | None, execution: Execution
) -> tuple[Votes, ReachTable]:
    """Computes votes with the fast engine."""
    graph = edges_by_group.graph
    features = _features_of(bound_model, edges_by_group, execution)
    default = None
    if not edges_by_group.on_graphs and not edges_by_group.division.gates_features:
        default = fast.no_edge_votes(
            bound_model, graph, features, edges_by_group.rows, tolerance, execution.memory_limit
        )
    ranges = _compute_ranges(bound_model, edges_by_group, features, tolerance, execution)
    del features  # and with them the projections, before votes are sorted
    votes = merge_ranges(ranges, edges_by_group, bound_model.num_classes, default)
    # Reach tables need nothing else of the ranges, and merged votes are large.
    ranges = [
        replace(part, size=part.size[:0].copy(), owner=part.owner[:0].copy(), reached=None, vote=None, stable=None)
        for part in ranges
    ]
    return votes, reach_of_ranges(ranges, edges_by_group, votes)


def _features_of(bound_model: ModelAdapter, edges_by_group: EdgesByGroup, execution: Execution) -> Features:
    """Returns the features of a graph in the model's type, in compressed rows if they are sparse."""
    graph = edges_by_group.graph
    x = graph.x.to(bound_model.dtype)
    if edges_by_group.whole_union is not None:
        sparse = edges_by_group.whole_union.sparse
    else:
        sparse = SparseRows.of(x, execution.entries if x is graph.x else None)
    return Features(x, sparse, most_kept=execution.memory_limit)


def _compute_ranges(
    bound_model: ModelAdapter,
    edges_by_group: EdgesByGroup,
    features: Features,
    tolerance: float | None,
    execution: Execution,
) -> list[RangeVotes]:
    """Computes the votes of all groups, range by range, and stores each range if asked for."""
    workers = execution.workers
    stored = execution.stored
    finished = [] if stored is None else stored.load()
    at_least = 1 if workers is None else PARTS_PER_WORKER * workers.parts_at_once()
    ranges = ranges_to_compute(edges_by_group, execution.memory_limit, finished, at_least)
    num_groups = max(edges_by_group.num_groups, 1)
    done = sum(len(part.groups) for part in finished)
    results: Iterator[tuple[range, RangeVotes]]
    if workers is None:
        results = _compute_here(bound_model, edges_by_group, features, tolerance, execution, ranges)
    else:
        job = VoteJob.of(bound_model, edges_by_group, tolerance, execution.memory_limit)
        results = workers.run(job, VoteJob.prepare, compute_part, ranges)
    of_votes, of_reach = KeptArrays(), KeptArrays()
    for groups, part in results:
        if stored is not None:
            stored.save(part)
        finished.append(part.kept_in(of_votes, of_reach))
        done += len(groups)
        if execution.report_progress is not None:
            execution.report_progress(done / num_groups)
    return finished


def _compute_here(
    bound_model: ModelAdapter,
    edges_by_group: EdgesByGroup,
    features: Features,
    tolerance: float | None,
    execution: Execution,
    ranges: Sequence[range],
) -> Iterator[tuple[range, RangeVotes]]:
    """Computes the votes of some ranges in this process and yields each range with its votes.

    One range after the other takes all cores: laying out the next range meanwhile made both wait for each other.
    """
    num_groups = max(edges_by_group.num_groups, 1)
    done = edges_by_group.num_groups - sum(len(groups) for groups in ranges)
    for groups in ranges:
        progress = _progress_within(execution.report_progress, done, len(groups), num_groups)
        votes = compute_range_votes(
            bound_model, edges_by_group, groups, features, tolerance, execution.memory_limit, report_progress=progress
        )
        yield groups, votes
        done += len(groups)


def _progress_within(report_progress: ReportProgress | None, done: int, size: int, total: int) -> ReportProgress | None:
    """Returns a function that reports the progress of a part of the work as progress of the whole.

    Args:
        report_progress: Reports the progress of the whole.
        done: Groups that were done before.
        size: Groups of the part.
        total: All groups.
    """
    if report_progress is None:
        return None
    return lambda fraction: report_progress((done + fraction * size) / total)


def ranges_to_compute(
    edges_by_group: EdgesByGroup, memory_limit: int | None, finished: Sequence[RangeVotes], at_least: int
) -> list[range]:
    """Returns the groups that are not finished, in ranges that fit into memory.

    Args:
        edges_by_group: The graph's edges by group.
        memory_limit: Bytes that the union of a range may take, about.
        finished: The votes that are there already.
        at_least: How many ranges there should be, if there are that many groups.
    """
    num_groups = edges_by_group.num_groups
    if num_groups == 0:
        return [range(0)]
    longest = max(1, num_groups // max(at_least, 1))
    cuts = {0, num_groups}
    for groups in edges_by_group.ranges(memory_limit):
        cuts.update(groups[::longest])
        cuts.add(groups.stop)
    for part in finished:
        cuts.add(part.groups.start)
        cuts.add(part.groups.stop)
    is_finished = {group for part in finished for group in part.groups}
    return [range(first, end) for first, end in pairwise(sorted(cuts)) if first not in is_finished]
