"""Votes of some groups on some nodes, as a worker computes them from the parts that it reads, and stores them.

A task is named by groups and ranges of nodes. What it stores depends on nothing else, so it may be
done twice, anywhere, in any order.
"""

import gc
import hashlib
import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from agnncert.certificates.votes import IntArray
from agnncert.divisions.base import Division
from agnncert.engine.adapter import ModelAdapter
from agnncert.engine.range_votes import RangeVotes
from agnncert.engine.reach import SmallComponents
from agnncert.errors import GraphError, ModelContractError, WorkersError
from agnncert.models.digest import model_digest
from agnncert.storage import Arrays, read_sealed_bytes, sealed_parts
from agnncert_large.partitioned.graph import PartitionedGraph, open_partitioned
from agnncert_large.partitioned.limits import memory_left
from agnncert_large.partitioned.local_graphs import (
    LocalGraph,
    Span,
    around_span,
    narrow,
    read_span,
    subgraphs_of,
)
from agnncert_large.partitioned.places import Place

FORMAT = "agnncert-votes-of-parts"
VERSION = 1
_ARRAYS = ("size", "owner", "reached", "vote", "stable")


@dataclass(frozen=True)
class VoteWork:
    """What all tasks share.

    Attributes:
        graph: Where the graph lies.
        votes: Where votes are stored.
        division: The division.
        bound_model: The model, bound to features like those of the graph; ``None`` to list votes without classes.
        digest: Digest of the model.
        tolerance: As in ``compute_votes``.
        memory_limit: Bytes that a task may take.
        targets: Which nodes have a certificate; ``None`` for all.
        key: Digest of everything that votes depend on.
    """

    graph: Place
    votes: Place
    division: Division
    bound_model: ModelAdapter | None
    digest: str
    tolerance: float
    memory_limit: int
    targets: npt.NDArray[np.bool_] | None
    key: str

    def prepare(self) -> "Voting":
        """Opens the graph in a worker.

        Raises:
            ModelContractError: The model that arrived is another one than was sent.
        """
        if self.bound_model is not None and model_digest(self.bound_model.model) != self.digest:
            raise ModelContractError(
                "the model is another one on the worker than on the driver: its code differs. Install the same there."
            )
        return Voting(self, open_partitioned(self.graph))

    @property
    def dtype(self) -> torch.dtype:
        """Type in which the model computes."""
        return torch.float32 if self.bound_model is None else self.bound_model.dtype

    def file_of(self, task: "VoteTask", number: int) -> str:
        """Returns the name of the file with the votes of a task on one range."""
        return f"range={number:05d}/{task.name}.votes"

    def components_of(self, task: "VoteTask") -> str:
        """Returns the name of the file with the small components of a task."""
        return f"components/{task.name}.votes"

    def files_of(self, task: "VoteTask") -> list[str]:
        """Returns the names of all files of a task."""
        files = [self.file_of(task, number) for number in task.ranges]
        if self.division.divides_edges:
            files.append(self.components_of(task))
        return files

    def few_targets(self, num_nodes: int) -> bool:
        """Tells whether targets are few, as ``engine.union`` has it for the graph in memory."""
        return self.targets is not None and 2 * int(self.targets.sum()) < num_nodes

    def is_target(self, rows: range) -> npt.NDArray[np.bool_]:
        """Tells which nodes of some rows have a certificate."""
        if self.targets is None:
            return np.ones(len(rows), dtype=bool)
        return self.targets[rows.start : rows.stop]


class VoteTask(NamedTuple):
    """Groups, and ranges of nodes, whose votes are computed together.

    Attributes:
        groups: The groups.
        ranges: Numbers of the ranges.
        bytes: Memory that it takes, about.
    """

    groups: range
    ranges: range
    bytes: int

    @property
    def name(self) -> str:
        """What its files are called."""
        return f"groups={self.groups.start:05d}-{self.groups.stop:05d}"

    def __str__(self) -> str:
        groups = f"{self.groups.start} to {self.groups.stop - 1}"
        return f"groups {groups} on ranges {self.ranges.start} to {self.ranges.stop - 1}"


class TaskReport(NamedTuple):
    """What a task says about itself.

    Attributes:
        bytes_read: Bytes that it has read.
        seconds: Processor time that it has taken.
        process: Number of the process that did it, and the machine.
        votes: How many votes it has listed.
    """

    bytes_read: int
    seconds: float
    process: str
    votes: int


@dataclass
class Voting:
    """Computes votes in a worker. The features of the last ranges are kept, with their projections.

    Attributes:
        work: What all tasks share.
        graph: The graph.
    """

    work: VoteWork
    graph: PartitionedGraph
    _span: tuple[range, Span] | None = None

    @torch.no_grad()
    def do(self, task: VoteTask) -> TaskReport:
        """Computes and stores the votes of a task."""
        self._require_memory(task)
        begun, read = time.process_time(), self.graph.place.seen.bytes_read
        votes = 0
        kept: dict[int, list[RangeVotes]] = {number: [] for number in task.ranges}
        small: list[SmallComponents] = []
        for local, targets in self._local_graphs(task):
            cast = local.votes(
                self.work.bound_model,
                self.work.division,
                targets,
                self.work.tolerance,
                self.work.few_targets(self.graph.num_nodes),
            )
            if cast.small is not None:
                node = narrow_any(local.row[cast.small.node])
                small.append(SmallComponents(cast.small.size, node))
            row = local.row[targets[cast.owner]]
            votes += len(row)
            for number in task.ranges:
                kept[number].append(self._on_range(number, cast, row))
        for number, parts in kept.items():
            self._save(self.work.file_of(task, number), _joined(task.groups, parts))
        if self.work.division.divides_edges:
            self._save_components(task, small)
        took = time.process_time() - begun
        return TaskReport(self.graph.place.seen.bytes_read - read, took, _process(), votes)

    def _require_memory(self, task: VoteTask) -> None:
        """Refuses a task that does not fit into what this process may still take."""
        left = memory_left()
        if left is not None and task.bytes > left and self._span is not None:
            self._span = None  # features that are kept are part of what a task takes
            gc.collect()
            left = memory_left()
        if left is not None and task.bytes > left:
            raise WorkersError(
                f"{task} take about {task.bytes:,} bytes, and this worker has {left:,} left: give "
                f"memory_limit={left * 3 // 4}, so that tasks are smaller, or workers with more memory."
            )

    def _local_graphs(self, task: VoteTask) -> Iterator[tuple[LocalGraph, IntArray]]:
        """Yields what the votes of each group depend on, with the targets among its nodes."""
        if not self.graph.by_sender:
            yield from self._subgraphs(task)
            return
        span = self._span_of(task.ranges)
        targets = np.flatnonzero(self.work.is_target(span.rows))
        for group in task.groups:
            yield around_span(self.graph, group, span, self.work.dtype), targets

    def _span_of(self, ranges: range) -> Span:
        if self._span is None or self._span[0] != ranges:
            self._span = None  # before the next one is read
            self._span = (ranges, read_span(self.graph, ranges, self.work.dtype))
        return self._span[1]

    def _subgraphs(self, task: VoteTask) -> Iterator[tuple[LocalGraph, IntArray]]:
        """Yields the subgraphs of an edge-centric division with the targets among their nodes."""
        for local in subgraphs_of(self.graph, task.groups, self.work.dtype):
            is_target = np.ones(len(local.row), dtype=bool)
            if self.work.targets is not None:
                is_target = self.work.targets[local.row]
            yield local, np.flatnonzero(is_target)

    def _on_range(self, number: int, votes: RangeVotes, row: IntArray) -> RangeVotes:
        """Returns the votes on the targets of one range, which are numbered from 0."""
        part = self.graph.ranges[number]
        begin, end = np.searchsorted(row, [part.first, part.last + 1])  # a group's votes are by row
        is_target = self.work.is_target(range(part.first, part.last + 1))
        number_of = np.cumsum(is_target) - 1
        some = slice(int(begin), int(end))
        return replace(
            votes,
            size=np.array([end - begin]),
            owner=number_of[row[some] - part.first].astype(np.int32),
            reached=None if votes.reached is None else votes.reached[some],
            vote=None if votes.vote is None else votes.vote[some],
            stable=None if votes.stable is None else votes.stable[some],
            small=None,
        )

    def _save(self, name: str, votes: RangeVotes) -> None:
        arrays = {each: getattr(votes, each) for each in _ARRAYS if getattr(votes, each) is not None}
        self._write(name, arrays, {"groups": [votes.groups.start, votes.groups.stop]})

    def _save_components(self, task: VoteTask, small: list[SmallComponents]) -> None:
        empty = np.zeros(0, dtype=np.int32)
        arrays = {
            "size": np.concatenate([empty, *(part.size for part in small)]),
            "node": np.concatenate([empty, *(part.node for part in small)]),
        }
        self._write(self.work.components_of(task), arrays, {"groups": [task.groups.start, task.groups.stop]})

    def _write(self, name: str, arrays: Arrays, settings: Mapping[str, Any]) -> None:
        write_arrays(self.work.votes, name, arrays, {**settings, "key": self.work.key})


def do_task(voting: Voting, task: VoteTask) -> TaskReport:
    """Computes and stores the votes of a task in a worker."""
    return voting.do(task)


def narrow_any(rows: IntArray) -> npt.NDArray[np.int32]:
    """Returns rows as int32, in any order."""
    narrow(rows.max(keepdims=True) if len(rows) else rows)
    return rows.astype(np.int32)


def _joined(groups: range, parts: list[RangeVotes]) -> RangeVotes:
    """Returns the votes of several groups on one range."""

    def column(name: str) -> Any:
        columns = [getattr(part, name) for part in parts]
        return None if any(each is None for each in columns) else np.concatenate(columns)

    reached = None
    if any(part.reached is not None for part in parts):
        flags = [np.ones(len(part.owner), bool) if part.reached is None else part.reached for part in parts]
        reached = np.concatenate(flags)
    return RangeVotes(groups, column("size"), column("owner"), reached, column("vote"), column("stable"))


def load_votes(work: VoteWork, task: VoteTask, number: int) -> RangeVotes:
    """Reads the votes of a task on one range.

    Raises:
        GraphError: They are missing, damaged, or those of another run.
    """
    header, arrays = read_arrays(work.votes, work.file_of(task, number), work.key)
    present: dict[str, Any] = {name: arrays[name] for name in _ARRAYS if name in arrays}
    return RangeVotes(groups=range(*header["groups"]), **present)


def load_components(work: VoteWork, task: VoteTask) -> SmallComponents:
    """Reads the small components of a task."""
    _, arrays = read_arrays(work.votes, work.components_of(task), work.key)
    return SmallComponents(arrays["size"], arrays["node"])


def write_arrays(place: Place, name: str, arrays: Arrays, header: Mapping[str, Any]) -> None:
    """Writes arrays to a sealed file of a place."""
    stated = {"format": FORMAT, "version": VERSION, **header}
    place.write(name, b"".join(sealed_parts(stated, arrays, GraphError)))


def read_arrays(place: Place, name: str, key: str) -> tuple[dict[str, Any], Arrays]:
    """Reads a sealed file of a place.

    Raises:
        GraphError: It is missing, damaged, or of another run.
    """
    where = f"{place}/{name}"
    try:
        content = place.read(name)
    except FileNotFoundError:
        raise GraphError(f"{where} is missing: votes were deleted. Certify again.") from None
    what = "file of votes"
    header, arrays = read_sealed_bytes(content, where, FORMAT, VERSION, what, GraphError)
    if header.get("key") != key:
        raise GraphError(
            f"{where} holds votes of another run (another graph, model, division, targets or "
            "tolerance): delete the folder, or name another."
        )
    return header, arrays


def digest_of(facts: Mapping[str, Any]) -> str:
    """Returns the sha256 of JSON values."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def cut(total: int, step: int) -> list[range]:
    """Returns the numbers up to a total in ranges of some length."""
    cuts = [*range(0, total, max(1, step)), total]
    return [range(first, end) for first, end in pairwise(cuts)]


def _process() -> str:
    import os
    import socket

    return f"{socket.gethostname()}:{os.getpid()}"
