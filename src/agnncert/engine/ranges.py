"""Votes range by range: the subgraphs of some groups at a time, and how the ranges are merged.

Groups do not depend on each other, so a vote never needs all subgraphs side by side. What is kept of a division is one
number per edge, its place when edges are sorted by group; the rest is computed for each range of groups and dropped.
Ranges are cast one after the other in little memory, or on many machines::

    shuffle, features = Shuffle(graph, division, rows), fast.features_of(call, graph)
    parts = [cast_range(call, shuffle, groups, features, tolerance) for groups in shuffle.ranges(memory_limit)]
    votes = merged(parts, shuffle, call.num_classes, default)
    tables = covers(parts, shuffle, votes)

The votes do not depend on how the groups are cut into ranges. ``merged`` refuses a range that is missing or repeated.
``RangeVotes`` holds numpy arrays only and can be sent or stored.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from agnncert.certificates.votes import ABSTAIN, BoolArray, IntArray, Votes
from agnncert.divisions.base import DisjointUnion, Division, is_graph_task
from agnncert.engine import cover, fast, naive
from agnncert.engine.call import Caller, Predictions
from agnncert.engine.cover import Cover, SmallComponents
from agnncert.engine.digest import model_digest
from agnncert.engine.fast import near_targets
from agnncert.engine.features import Features, SparseRows
from agnncert.engine.heap import kept_heap
from agnncert.engine.workers import Workers
from agnncert.errors import ModelContractError, SettingsError, did_you_mean
from agnncert.graphs.graph import CanonicalGraph
from agnncert.graphs.targets import Entries
from agnncert.progress import ReportProgress
from agnncert.storage import read_sealed, write_sealed

BLOCK = 2**20  # edges that are sorted together
BYTES_PER_EDGE = 128  # that laying out a subgraph takes, about: ends, copies, and their numbers
EDGES_AT_ONCE = 2**21  # of a range of groups when no memory limit is given: a quarter of a gigabyte


class Shuffle:
    """The edges of a graph by group.

    Args:
        graph: A canonical graph; in the graph task the joined targets.
        division: A division that offers ``pieces``.
        rows: Node task: rows of the targets; parts of a subgraph that are connected to no target are left out. Graph
            task: all graphs of ``graph``, in order.
        laid_out: All subgraphs, if they have been laid out before.
        by_group: ``sorted_edges()`` of the same graph and division, if they have been sorted before.

    Attributes:
        num_groups: Number of groups, whether they have edges or not.
        on_graphs: Whether this is the graph task.
    """

    def __init__(
        self,
        graph: CanonicalGraph,
        division: Division,
        rows: IntArray,
        laid_out: DisjointUnion | None = None,
        by_group: tuple[Tensor, IntArray] | None = None,
    ) -> None:
        self.graph, self.division, self.rows = graph, division, rows
        self.num_groups, self.on_graphs = division.num_groups_in(graph), is_graph_task(graph)
        self._laid_out = laid_out
        known = laid_out is not None or by_group is not None
        self._groups: Tensor | None = None if known else division.groups(graph)
        self._sorted = by_group

    def ranges(self, memory_limit: int | None = None) -> list[range]:
        """All groups in runs that can be laid out within a memory limit (bytes); a run has one group at least."""
        everything = range(self.num_groups)
        most = EDGES_AT_ONCE if memory_limit is None else max(1, memory_limit // BYTES_PER_EDGE)
        if self._laid_out is not None or self.graph.edge_index.size(1) <= most:
            return [everything]
        start = self.sorted_edges()[1]
        cuts, first = [0], 0
        while first < self.num_groups:
            last = int(np.searchsorted(start, start[first] + most, side="right")) - 1
            first = min(max(last, first + 1), self.num_groups)
            cuts.append(first)
        return [range(a, b) for a, b in pairwise(cuts)]

    def pieces(self, groups: range) -> DisjointUnion:
        """The subgraphs of some groups, side by side."""
        if self._laid_out is not None:
            assert len(groups) == self.num_groups
            return self._laid_out
        if len(groups) == self.num_groups and self._groups is not None:
            pieces = self.division.disjoint_union(self.graph, self._groups)
        else:
            edges, start = self.sorted_edges()
            sizes = torch.from_numpy(np.diff(start[groups.start : groups.stop + 1]))
            own = torch.repeat_interleave(torch.arange(groups.start, groups.stop), sizes)
            part = edges[start[groups.start] : start[groups.stop]].long()
            pieces = self.division.disjoint_union(self.graph, own, part, groups)
        return near_targets(pieces, self.graph, self.rows)

    def groups_of(self, wanted: list[int]) -> Tensor:
        """Group of every edge, as far as it is one of those wanted; −1 elsewhere."""
        if self._groups is not None:
            return self._groups
        edges, start = self.sorted_edges()
        groups = torch.full((self.graph.edge_index.size(1),), -1, dtype=torch.int32)
        for index in wanted:
            groups[edges[start[index] : start[index + 1]].long()] = index
        return groups

    def sorted_edges(self) -> tuple[Tensor, IntArray]:
        """Positions of the edges, group after group, and where each group begins."""
        if self._sorted is None:
            assert self._groups is not None
            self._sorted = by_group(self._groups, self.num_groups)
            self._groups = None  # as large as half the edges, and no longer needed
        return self._sorted


def by_group(groups: Tensor, num_groups: int) -> tuple[Tensor, IntArray]:
    """Positions of edges, group after group and ascending within each, and where each group begins.

    Edges in no group (−1) are left out.
    """
    group = groups.numpy()
    width = max(BLOCK, num_groups)
    blocks = [slice(first, first + width) for first in range(0, len(group), width)]
    counts = np.zeros(num_groups + 1, dtype=np.int64)  # first those in no group
    for block in blocks:
        counts += np.bincount(group[block] + 1, minlength=num_groups + 1)
    start = np.concatenate([[0], np.cumsum(counts)])
    place = start[:-1].copy()
    small = num_groups < np.iinfo(np.uint16).max  # then numpy sorts by counting
    edges = np.empty(len(group), dtype=np.int32 if len(group) <= np.iinfo(np.int32).max else np.int64)
    for block in blocks:
        here = group[block] + 1
        order = np.argsort(here.astype(np.uint16) if small else here, kind="stable")
        here = here[order]
        number = np.bincount(here, minlength=num_groups + 1)
        edges[place[here] + np.arange(len(here)) - (np.cumsum(number) - number)[here]] = order + block.start
        place += number
    return torch.from_numpy(edges[start[1] :]), start[1:] - start[1]


EngineName = Literal["fast", "naive"]
ENGINES: tuple[EngineName, ...] = ("fast", "naive")
Int32Array = npt.NDArray[np.int32]

LARGE_GROUP = 2**12  # ballots of a group that are worth a step of their own
TARGETS_AT_ONCE = 2**15


@dataclass(frozen=True)
class RangeVotes:
    """The listed votes of a range of groups, group after group.

    Attributes:
        groups: The groups.
        size: Number of listed ballots of each group, shape ``[len(groups)]``.
        owner: Target of each ballot, shape ``[m]``.
        reached: Whether a change can reach it through an edge, shape ``[m]``; ``None`` if that is so of all.
        ballot: The class voted for, shape ``[m]``; ``None`` before the model is called.
        stable: Whether it is beyond numerical doubt, shape ``[m]``; likewise ``None``.
        small: Edge-centric, node task: the small components, from which cover tables are made.
        reach: Edge-centric, graph task: in how many subgraphs each node has an edge, shape ``[num_nodes]``.
    """

    groups: range
    size: IntArray
    owner: Int32Array
    reached: BoolArray | None = None
    ballot: npt.NDArray[np.int16] | None = None
    stable: BoolArray | None = None
    small: SmallComponents | None = None
    reach: Int32Array | None = None


def cast_range(
    call: Caller,
    shuffle: Shuffle,
    groups: range,
    features: Features,
    tolerance: float | None = None,
    memory_limit: int | None = None,
    report_progress: ReportProgress | None = None,
) -> RangeVotes:
    """Casts the votes of a range of groups.

    Args:
        call: The model, bound to the graph.
        shuffle: The graph's edges by group, and the targets.
        groups: Which groups.
        features: From ``fast.features_of``; to be shared by all ranges, so that they are projected once.
        tolerance: As in ``cast``.
        memory_limit: Bytes that one chunk may take, about.
        report_progress: Called with the fraction of the work that is done.
    """
    union = shuffle.pieces(groups)
    listed, copy = _found(shuffle, groups, union)
    layout = fast.Plan(shuffle.graph, union, features.sparse, report_progress)
    ballots, stable = fast.ballots(call, layout, features, tolerance, memory_limit)
    return replace(listed, ballot=ballots[copy], stable=stable[copy])


def list_range(shuffle: Shuffle, groups: range) -> RangeVotes:
    """The votes of a range of groups before the model is called: which targets have one, and who reaches whom."""
    return _found(shuffle, groups, shuffle.pieces(groups))[0]


def _found(shuffle: Shuffle, groups: range, union: DisjointUnion) -> tuple[RangeVotes, IntArray]:
    """The votes of a range before the model is called, and the copy (graph task: subgraph) that casts each of them."""
    graph, division, num_groups = shuffle.graph, shuffle.division, shuffle.num_groups
    on_graphs = shuffle.on_graphs
    if on_graphs:
        cell, first = np.unique(union.cell.numpy(), return_index=True)
        owner, group = cell // num_groups, cell % num_groups
        copy = np.argsort(group, kind="stable")
        owner, group, reached = owner[copy], group[copy], union.reached.numpy()[first][copy]
    else:
        owner = targets_of(shuffle.rows, graph.x.size(0))[union.node.numpy()]
        copy = np.flatnonzero(union.votes.numpy() & (owner >= 0))
        owner, group, reached = owner[copy], union.cell.numpy()[copy], union.reached.numpy()[copy]
    small, reach = None, None
    if division.family == "edge-centric":
        if on_graphs:
            reach = np.bincount(union.node.numpy(), minlength=graph.num_nodes).astype(np.int32)
        elif not division.is_per_neighbour:
            small = cover.small_components(union)
    listed = RangeVotes(
        groups,
        np.bincount(group - groups.start, minlength=len(groups)),
        owner.astype(np.int32),
        None if reached.all() else reached,
        small=small,
        reach=reach,
    )
    return listed, copy


def targets_of(rows: IntArray, num_nodes: int) -> Int32Array:
    """Which target each node is, -1 if it is none."""
    target_of = np.full(num_nodes, -1, dtype=np.int32)
    target_of[rows] = np.arange(len(rows))
    return target_of


def merged(
    parts: Sequence[RangeVotes], shuffle: Shuffle, num_classes: int = 0, default: Predictions | None = None
) -> Votes:
    """The votes of all ranges, sorted by target and group.

    Args:
        parts: The ranges, in any order.
        shuffle: The graph's edges by group, and the targets.
        num_classes: Number of classes.
        default: What empty groups cast, and whether that is stable. Defaults to abstaining.

    Raises:
        ValueError: A group is in no range or in several, so that a vote would be missing or counted twice.
    """
    parts, num_targets = _in_order(parts, shuffle.num_groups), len(shuffle.rows)
    counts = np.zeros(num_targets, dtype=np.int64)
    for part in parts:
        counts += np.bincount(part.owner, minlength=num_targets)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    total, place = int(indptr[-1]), indptr[:-1].copy()
    votes = Votes(
        shuffle.num_groups,
        num_classes,
        *(_abstaining(num_targets) if default is None else default),
        indptr,
        np.empty(total, dtype=np.int32),
        *_abstaining(total),
        np.ones(total, dtype=bool),
    )
    chunks = [chunk for part in parts for chunk in _by_group_if_large(part)]
    blocks = _blocks(chunks, num_targets)

    def fill(spans: tuple[slice, ...]) -> None:
        for chunk, span in zip(chunks, spans, strict=True):
            here = _places(chunk, span, place)
            groups = np.arange(chunk.groups.start, chunk.groups.stop, dtype=np.int32)
            votes.group[here] = groups[0] if len(groups) == 1 else np.repeat(groups, chunk.size)
            for name in ("reached", "ballot", "stable"):
                values = getattr(chunk, name)
                if values is not None:
                    getattr(votes, name)[here] = values[span]

    if len(blocks) == 1:
        fill(blocks[0])
    else:  # each writes to places of its own
        with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
            list(pool.map(fill, blocks))
    return votes


def _by_group_if_large(part: RangeVotes) -> list[RangeVotes]:
    """The votes group by group if the groups are large; otherwise unchanged."""
    if len(part.groups) <= 1 or len(part.owner) < LARGE_GROUP * len(part.groups):
        return [part]
    named = {name: getattr(part, name) for name in ("owner", "reached", "ballot", "stable")}
    chunks = []
    for k, ends in enumerate(pairwise([0, *np.cumsum(part.size).tolist()])):
        own: dict[str, Any] = {name: None if array is None else array[slice(*ends)] for name, array in named.items()}
        chunks.append(replace(part, groups=part.groups[k : k + 1], size=part.size[k : k + 1], **own))
    return chunks


def _blocks(chunks: Sequence[RangeVotes], num_targets: int) -> list[tuple[slice, ...]]:
    """Runs of targets, as the span of each chunk that is theirs: few enough for their votes to stay in the cache."""
    alone = all(len(chunk.groups) == 1 and (chunk.owner[1:] > chunk.owner[:-1]).all() for chunk in chunks)
    if not alone:
        return [(slice(None),) * len(chunks)]
    ends = [*range(0, num_targets, TARGETS_AT_ONCE), num_targets]
    cuts = [[slice(*cut) for cut in pairwise(np.searchsorted(chunk.owner, ends).tolist())] for chunk in chunks]
    return list(zip(*cuts, strict=True))


def _in_order(parts: Sequence[RangeVotes], num_groups: int) -> list[RangeVotes]:
    parts = sorted(parts, key=lambda part: part.groups.start)
    ends = [0, *(part.groups.stop for part in parts)]
    starts = [*(part.groups.start for part in parts), num_groups]
    if starts != ends:
        raise ValueError(
            f"{num_groups} groups are to be merged, and there are votes of {[str(part.groups) for part in parts]}: "
            "each group must be in one of them."
        )
    return parts


def _places(chunk: RangeVotes, span: slice, place: IntArray) -> IntArray:
    """Where each vote of a span goes; ``place``, the next free place of each target, moves on."""
    owner = chunk.owner[span]
    if len(chunk.groups) == 1:  # a target votes once in a group
        here = place[owner]
        place[owner] = here + 1
        return here
    order = np.argsort(owner, kind="stable")
    number = np.bincount(owner, minlength=len(place))
    here = np.empty(len(owner), dtype=np.int64)
    here[order] = place[owner[order]] + np.arange(len(owner)) - (np.cumsum(number) - number)[owner[order]]
    place += number
    return here


def covers(parts: Sequence[RangeVotes], shuffle: Shuffle, votes: Votes) -> Cover:
    """The cover tables of the targets; empty where the division needs none."""
    graph, division, rows = shuffle.graph, shuffle.division, shuffle.rows
    if division.family != "edge-centric" or (division.is_per_neighbour and not shuffle.on_graphs):
        return no_cover(len(rows))  # … or a node reaches one vote of a target, its own
    parts, cap = _in_order(parts, shuffle.num_groups), np.diff(votes.indptr)
    if shuffle.on_graphs:
        reach = np.sum([part.reach for part in parts if part.reach is not None], axis=0)
        return cover.cover_of_graphs(reach, graph.graph_of_node.numpy(), cap)
    small = [part.small for part in parts if part.small is not None]
    return cover.cover_of_nodes(small, targets_of(rows, graph.num_nodes), cap)


def no_cover(num_targets: int) -> Cover:
    """Empty tables."""
    return np.zeros(num_targets + 1, dtype=np.int64), np.zeros(0, dtype=np.int64)


FORMAT = "agnncert-votes"
VERSION = 1
PARTS_PER_WORKER = 4  # so that one that is slow, or dies, does not keep the others waiting for long
_ARRAYS = ("size", "owner", "reached", "ballot", "stable", "reach")


@dataclass(frozen=True)
class Job:
    """What a worker needs to cast any range of groups: numpy arrays, so that they are sent without a copy."""

    arrays: dict[str, npt.NDArray[Any]]
    plain: dict[str, Any]
    edges: npt.NDArray[Any]
    start: IntArray
    division: Division
    rows: IntArray
    call: Caller
    digest: str
    tolerance: float | None
    memory_limit: int | None


@dataclass(frozen=True)
class WorkerState:
    """A job with tensors instead of arrays; each worker makes one."""

    call: Caller
    shuffle: Shuffle
    features: Features
    tolerance: float | None
    memory_limit: int | None


def job_of(call: Caller, shuffle: Shuffle, tolerance: float | None, memory_limit: int | None) -> Job:
    """The job of casting the ballots of a graph."""
    fields = vars(shuffle.graph)
    arrays = {name: value.detach().cpu().numpy() for name, value in fields.items() if isinstance(value, torch.Tensor)}
    plain = {name: value for name, value in fields.items() if name not in arrays}
    edges, start = shuffle.sorted_edges()
    return Job(
        arrays, plain, edges.numpy(), start, shuffle.division, shuffle.rows, replace(call), model_digest(call.model),
        tolerance, memory_limit,
    )  # fmt: skip


def worker_state(job: Job) -> WorkerState:
    """The state of a worker, made once per job.

    Raises:
        ModelContractError: The model that arrived is another one than was sent.
    """
    if model_digest(job.call.model) != job.digest:
        raise ModelContractError(
            "the model is another one on the worker than on the driver: its code differs. Install the same there."
        )
    fields: dict[str, Any] = {name: _tensor(array) for name, array in job.arrays.items()}
    graph = CanonicalGraph(**fields, **job.plain)
    shuffle = Shuffle(graph, job.division, job.rows, by_group=(_tensor(job.edges), job.start))
    x = graph.x.to(job.call.dtype)
    features = fast.features_of(job.call, graph, SparseRows.of(x), job.memory_limit)
    return WorkerState(job.call, shuffle, features, job.tolerance, job.memory_limit)


@torch.no_grad()
def cast_in_worker(state: WorkerState, groups: range) -> RangeVotes:
    """Casts the votes of a range of groups in a worker."""
    with kept_heap():
        return cast_range(state.call, state.shuffle, groups, state.features, state.tolerance, state.memory_limit)


def parts_of(shuffle: Shuffle, memory_limit: int | None, kept: Sequence[RangeVotes], at_least: int) -> list[range]:
    """The groups that are not in ``kept``, in ranges that fit into memory, ``at_least`` so many if it can be."""
    if shuffle.num_groups == 0:
        return [range(0)]
    ranges = shuffle.ranges(memory_limit)
    longest = max(1, shuffle.num_groups // max(at_least, 1))
    cuts = {cut for groups in ranges for cut in (*groups[::longest], groups.stop)}
    cuts |= {end for part in kept for end in (part.groups.start, part.groups.stop)}
    done = {group for part in kept for group in part.groups}
    return [range(a, b) for a, b in pairwise(sorted(cuts | {0, shuffle.num_groups})) if a not in done]


class StoredRanges:
    """Votes in a folder, one sealed file per range of groups, so that an interrupted run can go on.

    Args:
        folder: The folder; made if it is not there.
        key: Everything that the ballots depend on, as JSON values.

    Raises:
        SettingsError: The folder holds votes of another run.
    """

    def __init__(self, folder: Path, key: dict[str, Any]) -> None:
        self.folder = folder
        self.key = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()
        if folder.exists() and not folder.is_dir():
            raise SettingsError(
                f"checkpoint={str(folder)!r}: a division keeps its ballots in a folder; this is a file."
            )
        folder.mkdir(parents=True, exist_ok=True)

    def load(self) -> list[RangeVotes]:
        """The ranges that are stored."""
        return [self._read(file) for file in sorted(self.folder.glob("groups-*.votes"))]

    def save(self, part: RangeVotes) -> None:
        """Stores a range."""
        arrays = {name: getattr(part, name) for name in _ARRAYS if getattr(part, name) is not None}
        if part.small is not None:
            arrays |= {"small.size": part.small.size, "small.node": part.small.node}
        ends = [part.groups.start, part.groups.stop]
        header = {"format": FORMAT, "version": VERSION, "groups": ends, "key": self.key}
        write_sealed(self.folder / f"groups-{ends[0]:09d}-{ends[1]:09d}.votes", header, arrays, SettingsError)

    def clear(self) -> None:
        """Deletes the files: the certificate holds all votes."""
        for file in self.folder.glob("groups-*.votes"):
            file.unlink()
        if not any(self.folder.iterdir()):
            self.folder.rmdir()

    def _read(self, file: Path) -> RangeVotes:
        header, arrays = read_sealed(file, FORMAT, VERSION, "file of votes", SettingsError)
        if header.get("key") != self.key:
            raise SettingsError(
                f"{self.folder} holds ballots of another vote (another graph, model, division, targets or tolerance): "
                "delete the folder, or name another."
            )
        small = None
        if "small.size" in arrays:
            small = SmallComponents(arrays["small.size"], arrays["small.node"])
        own = {name: arrays[name] for name in _ARRAYS if name in arrays}
        return RangeVotes(groups=range(*header["groups"]), small=small, **own)


def cast_all_ranges(
    call: Caller,
    shuffle: Shuffle,
    features: Features,
    tolerance: float | None,
    memory_limit: int | None,
    report_progress: ReportProgress | None,
    workers: Workers | None = None,
    stored: StoredRanges | None = None,
) -> list[RangeVotes]:
    """The votes of all groups, range by range; arguments as in :func:`cast` and :func:`cast_range`."""
    votes = stored.load() if stored is not None else []
    at_least = 1 if workers is None else PARTS_PER_WORKER * workers.parts_at_once()
    parts = parts_of(shuffle, memory_limit, votes, at_least)
    total, done = max(shuffle.num_groups, 1), sum(len(part.groups) for part in votes)

    def within(groups: range) -> ReportProgress | None:
        return None if report_progress is None else lambda part: report_progress((done + part * len(groups)) / total)

    results: Iterator[tuple[range, RangeVotes]]
    if workers is None:
        # One after the other on all cores: laying out the next range meanwhile made both wait for each other.
        results = ((g, cast_range(call, shuffle, g, features, tolerance, memory_limit, within(g))) for g in parts)
    else:
        job = job_of(call, shuffle, tolerance, memory_limit)
        results = workers.run(job, worker_state, cast_in_worker, parts)
    with kept_heap() if workers is None and len(parts) > 1 else nullcontext():
        for groups, part in results:
            if stored is not None:
                stored.save(part)
            votes.append(part)
            done += len(groups)
            if report_progress is not None:
                report_progress(done / total)
    return votes


def _tensor(array: npt.NDArray[Any]) -> torch.Tensor:
    """An array as a tensor on the same memory; of a store that nobody may write to, and nobody does."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return torch.from_numpy(array)


@torch.no_grad()
def cast(
    call: Caller,
    graph: CanonicalGraph,
    division: Division,
    rows: IntArray,
    engine: EngineName = "fast",
    tolerance: float | None = None,
    memory_limit: int | None = None,
    layout: fast.Plan | None = None,
    report_progress: ReportProgress | None = None,
    shuffle: Shuffle | None = None,
    workers: Workers | None = None,
    stored: StoredRanges | None = None,
    entries: Entries | None = None,
) -> tuple[Votes, Cover]:
    """Votes of the targets, and their cover tables (empty where the division needs none).

    Args:
        call: The model, bound to the graph.
        graph: A canonical graph; in the graph task the joined targets.
        division: How to divide it.
        rows: Node task: rows of the targets. Graph task: all graphs of ``graph``, in order.
        engine: "fast" or "naive"; the ballots are the same.
        tolerance: Relative distance that two computations of the same logits may lie apart at least; ``None`` spares
            the work of finding out which ballots are stable, where nobody asks.
        memory_limit: Bytes that one chunk of work may take, about; ``None`` chooses what is fastest.
        layout: ``fast.plan`` of the same graph, division and targets, if it has been made before.
        report_progress: Called now and then with the fraction of the votes that has been cast.
        shuffle: The graph's edges by group, if these have been found before.
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
    if not division.has_disjoint_union:
        votes = _all_listed(call, graph, division, rows, engine, tolerance, memory_limit, report_progress)
        return votes, no_cover(len(rows))
    shuffle = shuffle or Shuffle(graph, division, rows, None if layout is None else layout.pieces)
    if engine == "naive":
        parts = [list_range(shuffle, groups) for groups in shuffle.ranges(memory_limit)]
        votes = _naive_votes(call, shuffle, merged(parts, shuffle, call.num_classes), tolerance, report_progress)
        return votes, covers(parts, shuffle, votes)
    x = graph.x.to(call.dtype)
    sparse = SparseRows.of(x, entries if x is graph.x else None) if layout is None else layout.sparse
    features, default = fast.features_of(call, graph, sparse, memory_limit), None
    if not shuffle.on_graphs and not division.gates_features:
        default = fast.edgeless_ballots(call, graph, features, rows, tolerance, memory_limit)
    parts = cast_all_ranges(call, shuffle, features, tolerance, memory_limit, report_progress, workers, stored)
    del features  # and with them the projections, before votes are sorted
    votes = merged(parts, shuffle, call.num_classes, default)
    # Cover tables need nothing else of the ranges, and merged votes are large.
    parts = [replace(part, owner=part.owner[:0].copy(), reached=None, ballot=None, stable=None) for part in parts]
    return votes, covers(parts, shuffle, votes)


def structure(
    graph: CanonicalGraph, division: Division, rows: IntArray, memory_limit: int | None = None
) -> dict[str, npt.NDArray[Any]]:
    """What ``cast`` finds out about the graph alone, by the names that evidence uses; arguments as there."""
    if division.has_disjoint_union:
        shuffle = Shuffle(graph, division, rows)
        parts = [list_range(shuffle, groups) for groups in shuffle.ranges(memory_limit)]
        votes = merged(parts, shuffle)
        cover_ptr, table = covers(parts, shuffle, votes)
    else:
        votes, (cover_ptr, table) = _every_group(len(rows), division.num_groups), no_cover(len(rows))
    listed = {name: getattr(votes, name) for name in ("indptr", "group", "reached")}
    pairs = cover.pair_facts(graph, division, rows, votes.indptr, votes.group)
    return {**listed, "cover_ptr": cover_ptr, "cover": table, **pairs}


def _naive_votes(
    call: Caller, shuffle: Shuffle, votes: Votes, tolerance: float | None, report_progress: ReportProgress | None
) -> Votes:
    """Listed votes cast by the naive engine; also checks that every vote that is not listed equals the default."""
    graph, division, rows = shuffle.graph, shuffle.division, shuffle.rows
    default = _abstaining(len(rows))
    ballots, stable = _naive_table(call, graph, division, rows, tolerance, report_progress)
    if not shuffle.on_graphs and not division.gates_features:
        vote, sure = naive.edgeless_ballots(call, graph, tolerance)
        default = vote[rows], sure[rows]
    owner = votes.owner
    unlisted = np.ones(ballots.shape, dtype=bool)
    unlisted[owner, votes.group] = False
    differs = unlisted & (ballots != default[0][:, None]) & stable & default[1][:, None]
    if differs.any():
        target, group = np.argwhere(differs)[0]
        raise ModelContractError(
            f"target {rows[target]} votes {ballots[target, group]} in subgraph {group}, where it has no edge, but "
            f"{default[0][target]} without any edges: the model looks beyond the edges of a node, and nothing can be "
            "proved about it."
        )
    ballot, sure = ballots[owner, votes.group], stable[owner, votes.group]
    return replace(votes, default=default[0], default_stable=default[1], ballot=ballot, stable=sure)


def _naive_table(
    call: Caller,
    graph: CanonicalGraph,
    division: Division,
    rows: IntArray,
    tolerance: float | None,
    report_progress: ReportProgress | None,
) -> Predictions:
    table = naive.graph_table if is_graph_task(graph) else naive.node_table
    return table(call, graph, division, rows, tolerance, report_progress)


def _all_listed(
    call: Caller,
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
        ballots, stable = fast.custom_table(call, graph, division, rows, tolerance, memory_limit)
    else:
        ballots, stable = _naive_table(call, graph, division, rows, tolerance, report_progress)
    votes = _every_group(len(rows), ballots.shape[1], call.num_classes)
    return replace(votes, ballot=ballots.reshape(-1), stable=stable.reshape(-1))


def _every_group(num_targets: int, num_groups: int, num_classes: int = 0) -> Votes:
    """Votes of which all are listed, before the model is called."""
    group = np.tile(np.arange(num_groups, dtype=np.int32), num_targets)
    indptr, reached = np.arange(num_targets + 1) * num_groups, np.ones(len(group), dtype=bool)
    return Votes(num_groups, num_classes, *_abstaining(num_targets), indptr, group, *_abstaining(len(group)), reached)


def _abstaining(number: int) -> Predictions:
    return np.full(number, ABSTAIN, dtype=np.int16), np.ones(number, dtype=bool)
