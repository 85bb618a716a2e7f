"""The subgraphs of some groups at a time: a graph's edges sorted by group once, and laid out range by range.

Groups do not depend on each other, so a vote never needs all subgraphs side by side. What is kept of a division is one
number per edge, its place in the shuffle; the rest is made anew for each range of groups and forgotten.

A share is what the groups of one range cast. Shares are merged into votes, in whatever order they come in.

Casting is independent per group, so a vote can be made of ranges of groups, one after the other in little memory or on
many machines::

    shuffle, features = Shuffle(graph, division, rows), fast.features_of(call, graph)
    shares = [cast_share(call, shuffle, groups, features, tolerance) for groups in shuffle.ranges(memory_limit)]
    listing = merged(shares, shuffle)
    tables = covers(shares, shuffle, listing)

Every range of groups, however the groups are cut into ranges, gives the same ballots; a share that is missing, or there
twice, is refused when they are merged. Shares hold numpy arrays only and can be sent or stored as they are.

The shares of a vote: cast here or by workers, range by range, and kept in a folder as they come in.
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
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from agnncert.certificates.votes import BoolArray, IntArray
from agnncert.divisions.base import DisjointUnion, Division, is_graph_task, is_per_neighbour, num_groups_in
from agnncert.divisions.edge import EdgeCentric
from agnncert.engine import cover, fast
from agnncert.engine.call import Caller
from agnncert.engine.cover import Cover, SmallComponents
from agnncert.engine.digest import model_digest
from agnncert.engine.fast import near_targets
from agnncert.engine.features import Features, SparseRows
from agnncert.engine.heap import kept_heap
from agnncert.engine.workers import Workers
from agnncert.errors import ModelContractError, SettingsError
from agnncert.graphs.graph import CanonicalGraph
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
        self.num_groups = num_groups_in(division, graph)
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
            pieces = self.division.pieces(self.graph, self._groups)  # type: ignore[attr-defined]
        else:
            edges, start = self.sorted_edges()
            sizes = torch.from_numpy(np.diff(start[groups.start : groups.stop + 1]))
            own = torch.repeat_interleave(torch.arange(groups.start, groups.stop), sizes)
            part = edges[start[groups.start] : start[groups.stop]].long()
            pieces = self.division.pieces(self.graph, own, part, groups)  # type: ignore[attr-defined]
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


Int32Array = npt.NDArray[np.int32]

LARGE_GROUP = 2**12  # ballots of a group that are worth a step of their own
TARGETS_AT_ONCE = 2**15


@dataclass(frozen=True)
class Share:
    """The listed ballots of some groups, by group.

    Attributes:
        groups: The groups.
        size: Number of listed ballots of each group, shape ``[len(groups)]``.
        owner: Target of each ballot, shape ``[m]``.
        reached: Whether a change can reach it through an edge, shape ``[m]``; ``None`` if that is so of all.
        ballot: The class voted for, shape ``[m]``; ``None`` as long as nobody was asked.
        stable: Whether it is beyond numerical doubt, shape ``[m]``; likewise.
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


@dataclass(frozen=True)
class Listing:
    """Which ballots of which target are stored one by one, sorted by target and group, and those that were cast."""

    indptr: IntArray
    group: Int32Array
    reached: BoolArray
    ballot: npt.NDArray[np.int16] | None = None
    stable: BoolArray | None = None

    @property
    def owner(self) -> IntArray:
        """The target of each."""
        return np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr))


def cast_share(
    call: Caller,
    shuffle: Shuffle,
    groups: range,
    features: Features,
    tolerance: float | None = None,
    memory_limit: int | None = None,
    tell: fast.Tell | None = None,
) -> Share:
    """Casts the ballots of a range of groups.

    Args:
        call: The model, bound to the graph.
        shuffle: The graph's edges by group, and the targets.
        groups: Which groups.
        features: From ``fast.features_of``; to be shared by all ranges, so that they are projected once.
        tolerance: As in ``cast``.
        memory_limit: Bytes that one chunk may take, about.
        tell: Told which share of the work is done.
    """
    pieces = shuffle.pieces(groups)
    share, copy = _found(shuffle, groups, pieces)
    layout = fast.Plan(shuffle.graph, pieces, features.sparse, tell)
    ballots, stable = fast.ballots(call, layout, features, tolerance, memory_limit)
    return replace(share, ballot=ballots[copy], stable=stable[copy])


def empty_share(shuffle: Shuffle, groups: range) -> Share:
    """The share of some groups before anybody votes: who has a ballot of his own, and who reaches whom."""
    return _found(shuffle, groups, shuffle.pieces(groups))[0]


def _found(shuffle: Shuffle, groups: range, pieces: DisjointUnion) -> tuple[Share, IntArray]:
    """A share without ballots, and the copy (or cell) that casts each of them."""
    graph, division, num_groups = shuffle.graph, shuffle.division, shuffle.num_groups
    on_graphs = is_graph_task(graph)
    if on_graphs:
        cell, first = np.unique(pieces.cell.numpy(), return_index=True)
        owner, group = cell // num_groups, cell % num_groups
        copy = np.argsort(group, kind="stable")
        owner, group, reached = owner[copy], group[copy], pieces.reached.numpy()[first][copy]
    else:
        owner = targets_of(shuffle.rows, graph.num_nodes)[pieces.node.numpy()]
        copy = np.flatnonzero(pieces.votes.numpy() & (owner >= 0))
        owner, group, reached = owner[copy], pieces.cell.numpy()[copy], pieces.reached.numpy()[copy]
    small, reach = None, None
    if isinstance(division, EdgeCentric):
        if on_graphs:
            reach = np.bincount(pieces.node.numpy(), minlength=graph.num_nodes).astype(np.int32)
        elif not is_per_neighbour(division):
            small = cover.small_components(pieces)
    share = Share(
        groups,
        np.bincount(group - groups.start, minlength=len(groups)),
        owner.astype(np.int32),
        None if reached.all() else reached,
        small=small,
        reach=reach,
    )
    return share, copy


def targets_of(rows: IntArray, num_nodes: int) -> Int32Array:
    """Which target each node is, -1 if it is none."""
    target_of = np.full(num_nodes, -1, dtype=np.int32)
    target_of[rows] = np.arange(len(rows))
    return target_of


def merged(shares: Sequence[Share], shuffle: Shuffle) -> Listing:
    """All ballots, sorted by target and group.

    Raises:
        ValueError: A group is in no share or in several, so that a ballot would be missing or counted twice.
    """
    shares, num_targets = _in_order(shares, shuffle.num_groups), len(shuffle.rows)
    voted = all(share.ballot is not None for share in shares)
    counts = np.zeros(num_targets, dtype=np.int64)
    for share in shares:
        counts += np.bincount(share.owner, minlength=num_targets)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    total, place = int(indptr[-1]), indptr[:-1].copy()
    listing = Listing(
        indptr,
        np.empty(total, dtype=np.int32),
        np.ones(total, dtype=bool),
        np.empty(total, dtype=np.int16) if voted else None,
        np.empty(total, dtype=bool) if voted else None,
    )
    pieces = [piece for share in shares for piece in _pieces(share)]
    blocks = _blocks(pieces, num_targets)

    def fill(parts: tuple[slice, ...]) -> None:
        for piece, part in zip(pieces, parts, strict=True):
            here = _places(piece, part, place)
            groups = np.arange(piece.groups.start, piece.groups.stop, dtype=np.int32)
            listing.group[here] = groups[0] if len(groups) == 1 else np.repeat(groups, piece.size)
            for name in ("reached", "ballot", "stable"):
                values, into = getattr(piece, name), getattr(listing, name)
                if values is not None and into is not None:
                    into[here] = values[part]

    if len(blocks) == 1:
        fill(blocks[0])
    else:  # each writes to places of its own
        with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
            list(pool.map(fill, blocks))
    return listing


def _pieces(share: Share) -> list[Share]:
    """The share group by group, if its groups are large, and else as it is."""
    if len(share.groups) <= 1 or len(share.owner) < LARGE_GROUP * len(share.groups):
        return [share]
    named = {name: getattr(share, name) for name in ("owner", "reached", "ballot", "stable")}
    pieces = []
    for k, ends in enumerate(pairwise([0, *np.cumsum(share.size).tolist()])):
        own: dict[str, Any] = {name: None if array is None else array[slice(*ends)] for name, array in named.items()}
        pieces.append(replace(share, groups=share.groups[k : k + 1], size=share.size[k : k + 1], **own))
    return pieces


def _blocks(pieces: Sequence[Share], num_targets: int) -> list[tuple[slice, ...]]:
    """Runs of targets, as the part of each piece that is theirs: few enough for their ballots to stay in the cache."""
    alone = all(len(piece.groups) == 1 and (piece.owner[1:] > piece.owner[:-1]).all() for piece in pieces)
    if not alone:
        return [(slice(None),) * len(pieces)]
    ends = [*range(0, num_targets, TARGETS_AT_ONCE), num_targets]
    cuts = [[slice(*cut) for cut in pairwise(np.searchsorted(piece.owner, ends).tolist())] for piece in pieces]
    return list(zip(*cuts, strict=True))


def _in_order(shares: Sequence[Share], num_groups: int) -> list[Share]:
    shares = sorted(shares, key=lambda share: share.groups.start)
    ends = [0, *(share.groups.stop for share in shares)]
    starts = [*(share.groups.start for share in shares), num_groups]
    if starts != ends:
        raise ValueError(
            f"{num_groups} groups are to be merged, and there are shares of {[str(share.groups) for share in shares]}: "
            "each group must be in one of them."
        )
    return shares


def _places(share: Share, part: slice, place: IntArray) -> IntArray:
    """Where each ballot of a part of a share goes; ``place``, the next free one of each target, moves on."""
    owner = share.owner[part]
    if len(share.groups) == 1:  # a target votes once in a group
        here = place[owner]
        place[owner] = here + 1
        return here
    order = np.argsort(owner, kind="stable")
    number = np.bincount(owner, minlength=len(place))
    here = np.empty(len(owner), dtype=np.int64)
    here[order] = place[owner[order]] + np.arange(len(owner)) - (np.cumsum(number) - number)[owner[order]]
    place += number
    return here


def without_ballots(share: Share) -> Share:
    """What is left to do with a share once it is merged: all that cover tables need of it."""
    return replace(share, owner=share.owner[:0].copy(), reached=None, ballot=None, stable=None)


def covers(shares: Sequence[Share], shuffle: Shuffle, listing: Listing) -> Cover:
    """The cover tables of the targets; empty where the division needs none."""
    graph, division, rows = shuffle.graph, shuffle.division, shuffle.rows
    if not isinstance(division, EdgeCentric) or (is_per_neighbour(division) and not is_graph_task(graph)):
        return no_cover(len(rows))  # … or a node reaches one ballot of a target, its own
    shares, cap = _in_order(shares, shuffle.num_groups), np.diff(listing.indptr)
    if is_graph_task(graph):
        reach = np.sum([share.reach for share in shares if share.reach is not None], axis=0)
        return cover.cover_of_graphs(reach, graph.graph_of_node.numpy(), cap)
    small = [share.small for share in shares if share.small is not None]
    return cover.cover_of_nodes(small, targets_of(rows, graph.num_nodes), cap)


def no_cover(num_targets: int) -> Cover:
    """Empty tables."""
    return np.zeros(num_targets + 1, dtype=np.int64), np.zeros(0, dtype=np.int64)


FORMAT = "agnncert-share"
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
class Booth:
    """A job as a worker holds it."""

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


def booth_of(job: Job) -> Booth:
    """What a worker makes of a job, once.

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
    return Booth(job.call, shuffle, features, job.tolerance, job.memory_limit)


@torch.no_grad()
def cast_range(booth: Booth, groups: range) -> Share:
    """What a worker does with a range of groups."""
    with kept_heap():
        return cast_share(booth.call, booth.shuffle, groups, booth.features, booth.tolerance, booth.memory_limit)


def parts_of(shuffle: Shuffle, memory_limit: int | None, kept: Sequence[Share], at_least: int) -> list[range]:
    """The groups that no share has yet, in ranges that fit into memory, ``at_least`` so many if it can be."""
    if shuffle.num_groups == 0:
        return [range(0)]
    ranges = shuffle.ranges(memory_limit)
    longest = max(1, shuffle.num_groups // max(at_least, 1))
    cuts = {cut for groups in ranges for cut in (*groups[::longest], groups.stop)}
    cuts |= {end for share in kept for end in (share.groups.start, share.groups.stop)}
    done = {group for share in kept for group in share.groups}
    return [range(a, b) for a, b in pairwise(sorted(cuts | {0, shuffle.num_groups})) if a not in done]


class KeptShares:
    """Shares in a folder, one sealed file each, so that a vote that was stopped goes on where it was.

    Args:
        folder: The folder; made if it is not there.
        key: Everything that the ballots depend on, as JSON values.

    Raises:
        SettingsError: The folder holds shares of another vote.
    """

    def __init__(self, folder: Path, key: dict[str, Any]) -> None:
        self.folder = folder
        self.key = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()
        if folder.exists() and not folder.is_dir():
            raise SettingsError(
                f"checkpoint={str(folder)!r}: a division keeps its ballots in a folder; this is a file."
            )
        folder.mkdir(parents=True, exist_ok=True)

    def load(self) -> list[Share]:
        """Those that are there already."""
        return [self._read(file) for file in sorted(self.folder.glob("groups-*.share"))]

    def save(self, share: Share) -> None:
        """Keeps one more."""
        arrays = {name: getattr(share, name) for name in _ARRAYS if getattr(share, name) is not None}
        if share.small is not None:
            arrays |= {"small.size": share.small.size, "small.node": share.small.node}
        ends = [share.groups.start, share.groups.stop]
        header = {"format": FORMAT, "version": VERSION, "groups": ends, "key": self.key}
        write_sealed(self.folder / f"groups-{ends[0]:09d}-{ends[1]:09d}.share", header, arrays, SettingsError)

    def clear(self) -> None:
        """Forgets all of them: the vote is complete, and its certificate holds the ballots."""
        for file in self.folder.glob("groups-*.share"):
            file.unlink()
        if not any(self.folder.iterdir()):
            self.folder.rmdir()

    def _read(self, file: Path) -> Share:
        header, arrays = read_sealed(file, FORMAT, VERSION, "share of a vote", SettingsError)
        if header.get("key") != self.key:
            raise SettingsError(
                f"{self.folder} holds ballots of another vote (another graph, model, division, targets or tolerance): "
                "delete the folder, or name another."
            )
        small = None
        if "small.size" in arrays:
            small = SmallComponents(arrays["small.size"], arrays["small.node"])
        own = {name: arrays[name] for name in _ARRAYS if name in arrays}
        return Share(groups=range(*header["groups"]), small=small, **own)


def gathered(
    call: Caller,
    shuffle: Shuffle,
    features: Features,
    tolerance: float | None,
    memory_limit: int | None,
    tell: fast.Tell | None,
    workers: Workers | None = None,
    keep: KeptShares | None = None,
) -> list[Share]:
    """The shares of all groups.

    Args:
        call: The model, bound to the graph.
        shuffle: The graph's edges by group, and the targets.
        features: Those of the graph, for what is cast in this process.
        tolerance: As in ``cast``.
        memory_limit: Likewise.
        tell: Told which share of the groups has been cast.
        workers: Who casts; this process when not given.
        keep: Where shares are kept.
    """
    shares = keep.load() if keep is not None else []
    at_least = 1 if workers is None else PARTS_PER_WORKER * workers.parts_at_once()
    parts = parts_of(shuffle, memory_limit, shares, at_least)
    total, done = max(shuffle.num_groups, 1), sum(len(share.groups) for share in shares)

    def told(groups: range) -> fast.Tell | None:
        return None if tell is None else lambda part: tell((done + part * len(groups)) / total)

    results: Iterator[tuple[range, Share]]
    if workers is None:
        # One after the other on all cores: laying out the next range meanwhile made both wait for each other.
        results = ((g, cast_share(call, shuffle, g, features, tolerance, memory_limit, told(g))) for g in parts)
    else:
        results = workers.run(job_of(call, shuffle, tolerance, memory_limit), booth_of, cast_range, parts)
    with kept_heap() if workers is None and len(parts) > 1 else nullcontext():
        for groups, share in results:
            if keep is not None:
                keep.save(share)
            shares.append(share)
            done += len(groups)
            if tell is not None:
                tell(done / total)
    return shares


def _tensor(array: npt.NDArray[Any]) -> torch.Tensor:
    """An array as a tensor on the same memory; of a store that nobody may write to, and nobody does."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return torch.from_numpy(array)
