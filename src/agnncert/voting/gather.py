"""The shares of a vote: cast here or by workers, range by range, and kept in a folder as they come in."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy.typing as npt
import torch
from torch_geometric.data import Data

from agnncert.divisions import Division
from agnncert.errors import ModelContractError, SettingsError
from agnncert.proof.ballots import IntArray
from agnncert.storage import read_sealed, write_sealed
from agnncert.voting import fast
from agnncert.voting.call import Caller
from agnncert.voting.cover import SmallComponents
from agnncert.voting.digest import model_digest
from agnncert.voting.heap import kept_heap
from agnncert.voting.lazy_rows import Features, SparseRows
from agnncert.voting.shares import Share, cast_share
from agnncert.voting.shuffle import Shuffle
from agnncert.workers import Workers

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
    fields = shuffle.graph.to_dict()
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
    graph = Data(**{name: _tensor(array) for name, array in job.arrays.items()}, **job.plain)
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
