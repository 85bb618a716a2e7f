"""Counts predictions under noise, batch by batch, so that a run can stop anywhere and go on later.

Sample ``i`` of a run depends on the seed and on ``i`` alone. So a run that was interrupted and resumed, or extended by
more samples, has the same counts as one that was never interrupted.
"""

import copy
import json
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch

from agnncert.certificates.votes import IntArray
from agnncert.engine.workers import Here, Workers
from agnncert.errors import CertificateError, SettingsError
from agnncert.progress import OnProgress, Progress
from agnncert.storage import read_sealed, write_sealed
from agnncert_peers.draws import ESTIMATION, SELECTION, stream

FORMAT = "agnncert-counts"
VERSION = 1
_SAVE_EVERY_SECONDS = 10.0


class Sampler(Protocol):
    """Draws noisy inputs and counts the predictions on them."""

    num_targets: int
    num_classes: int
    batch: int

    def counts(self, rng: np.random.Generator, first: int, last: int) -> IntArray:
        """Counts the classes of samples ``first`` to ``last - 1`` of a batch, shape ``[targets, classes]``.

        The whole batch is drawn, so that sample ``i`` is the same one whichever part is counted.
        """


@dataclass(frozen=True)
class SampleCounts:
    """Class counts so far.

    Attributes:
        selection: Counts of the samples that choose labels, shape ``[num_targets, num_classes]``.
        estimation: Counts of the samples that bound probabilities, same shape.
        selected: How many samples ``selection`` counts.
        estimated: How many samples ``estimation`` counts.
        key: Everything that the samples depend on; counts with different keys must not be mixed.
    """

    selection: IntArray
    estimation: IntArray
    selected: int = 0
    estimated: int = 0
    key: dict[str, Any] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """Number of samples of both kinds."""
        return self.selected + self.estimated

    def done(self, stage: int) -> int:
        """Returns the number of samples counted so far, for selection or for estimation."""
        return self.selected if stage == SELECTION else self.estimated

    def plus(self, stage: int, counts: IntArray, samples: int) -> "SampleCounts":
        """Returns these counts and those of further samples."""
        if stage == SELECTION:
            return replace(self, selection=self.selection + counts, selected=self.selected + samples)
        return replace(self, estimation=self.estimation + counts, estimated=self.estimated + samples)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the counts to a sealed file, replacing it only when the new one is complete."""
        file = Path(path).resolve()
        file.parent.mkdir(parents=True, exist_ok=True)
        facts = {"selected": self.selected, "estimated": self.estimated, "key": self.key}
        header = {"format": FORMAT, "version": VERSION, **facts}
        write_sealed(file, header, {"selection": self.selection, "estimation": self.estimation})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "SampleCounts":
        """Reads what :meth:`save` wrote.

        Raises:
            CertificateError: The file is not one of these, was altered, or is of another version.
        """
        try:
            header, arrays = read_sealed(Path(path), FORMAT, VERSION, "file of sample counts")
            selection = arrays["selection"].astype(np.int64)
            estimation = arrays["estimation"].astype(np.int64)
            return cls(selection, estimation, header["selected"], header["estimated"], header["key"])
        except (CertificateError, KeyError) as error:
            raise CertificateError(
                f"{path} does not hold sample counts of this version: {error} Delete it, or name another file."
            ) from error


def collect(
    sampler: Sampler,
    selection: int,
    estimation: int,
    seed: int,
    key: dict[str, Any],
    *,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: OnProgress | None = None,
    workers: Workers | None = None,
) -> SampleCounts:
    """Draws and counts samples, going on from ``checkpoint`` if it exists.

    Args:
        sampler: Draws and counts.
        selection: Number of samples that choose labels.
        estimation: Number of samples that bound probabilities.
        seed: Seed of all draws.
        key: Everything else that the samples depend on, as JSON values.
        checkpoint: File to resume from and to write to, about every ten seconds and at the end. Defaults to none.
        progress: Called after each batch.
        workers: Who draws and counts. Defaults to this process.

    Raises:
        SettingsError: The checkpoint holds samples of another run, or more than were asked for.
    """
    # From numpy's integers, which JSON does not know.
    selection = int(selection)
    estimation = int(estimation)
    seed = int(seed)
    key = json.loads(json.dumps({**key, "seed": seed, "batch": sampler.batch}))
    # In a worker the sampler's arrays lie in Ray's store, where nobody may write; it has tables of its own to fill.
    prepare = _as_it_is if workers is None else copy.deepcopy
    counts = _resumed(checkpoint, key, selection, estimation) or _nothing_counted(sampler, key)
    report = _ProgressOfSamples(progress, counts.total, selection + estimation)
    saved = time.monotonic()
    try:
        for stage, wanted in ((SELECTION, selection), (ESTIMATION, estimation)):
            batches = _batches(sampler.batch, counts.done(stage), wanted, stage, seed)
            results = (workers or Here()).run(sampler, prepare, count_batch, batches)
            for batch, of_batch in in_order(results, batches):
                counts = counts.plus(stage, of_batch, batch.last - batch.first)
                report(counts.total)
                if checkpoint and time.monotonic() - saved > _SAVE_EVERY_SECONDS:
                    counts.save(checkpoint)
                    saved = time.monotonic()
    finally:  # whatever stopped the run, what has been counted is kept
        if checkpoint:
            counts.save(checkpoint)
    return counts


def _nothing_counted(sampler: Sampler, key: dict[str, Any]) -> SampleCounts:
    none = np.zeros((sampler.num_targets, sampler.num_classes), dtype=np.int64)
    return SampleCounts(none, none, key=key)


class _ProgressOfSamples:
    """Says how many samples are counted, and how long the rest will take at the speed of this run.

    Args:
        progress: Called with each report; nobody if it is ``None``.
        before: Number of samples that an earlier run had counted.
        wanted: Number of samples at the end.
    """

    def __init__(self, progress: OnProgress | None, before: int, wanted: int) -> None:
        self._progress = progress
        self._before = before
        self._wanted = wanted
        self._begin = time.monotonic()

    def __call__(self, counted: int) -> None:
        if self._progress is None:
            return
        seconds_each = (time.monotonic() - self._begin) / (counted - self._before)
        seconds_left = seconds_each * (self._wanted - counted)
        self._progress(Progress("samples", counted, self._wanted, seconds_left))


class Batch(NamedTuple):
    """Samples ``first`` to ``last - 1`` of one batch: what they are depends on nothing else."""

    seed: int
    stage: int
    number: int
    first: int
    last: int


def _batches(size: int, done: int, total: int, stage: int, seed: int) -> list[Batch]:
    """Lists what is left of a stage."""
    left = []
    while done < total:
        number, first = divmod(done, size)
        last = min(size, first + total - done)
        left.append(Batch(seed, stage, number, first, last))
        done += last - first
    return left


def _as_it_is(sampler: Sampler) -> Sampler:
    return sampler


@torch.no_grad()
def count_batch(sampler: Sampler, batch: Batch) -> IntArray:
    """Draws one batch and counts the predictions. This is what a worker does."""
    random = stream(batch.seed, batch.stage, batch.number)
    return sampler.counts(random, batch.first, batch.last)


def in_order(results: Iterable[tuple[Batch, IntArray]], batches: list[Batch]) -> Iterator[tuple[Batch, IntArray]]:
    """Yields results in the order of their batches, whoever was quicker, so that counts end with a whole batch."""
    early: dict[Batch, IntArray] = {}
    place = 0
    for batch, counts in results:
        early[batch] = counts
        while place < len(batches) and batches[place] in early:
            yield batches[place], early.pop(batches[place])
            place += 1


def _resumed(
    checkpoint: str | os.PathLike[str] | None, key: dict[str, Any], selection: int, estimation: int
) -> SampleCounts | None:
    """Reads the counts of a checkpoint; ``None`` if there is none."""
    if checkpoint is None or not Path(checkpoint).exists():
        return None
    counts = SampleCounts.load(checkpoint)
    differing = sorted(name for name in key.keys() | counts.key.keys() if key.get(name) != counts.key.get(name))
    if differing:
        raise SettingsError(
            f"{checkpoint} holds samples of another run: {', '.join(differing)} differ. Mixing them would "
            "void the certificate; delete the file or name another."
        )
    if counts.selected > selection or counts.estimated > estimation:
        raise SettingsError(
            f"{checkpoint} already holds {counts.selected} + {counts.estimated} samples, more than the {selection} + "
            f"{estimation} that are asked for: ask for at least as many, or name another file."
        )
    return counts


def check_samples(selection: int, samples: int, seed: int) -> None:
    """Refuses numbers of samples and seeds that make no sense.

    Raises:
        SettingsError: Says which number, and what was expected.
    """
    for name, value in (("selection", selection), ("samples", samples)):
        if not _is_whole(value) or value < 1:
            raise SettingsError(f"{name}={value!r}: expected a whole number of samples, at least 1.")
    if not _is_whole(seed) or seed < 0:
        raise SettingsError(f"seed={seed!r}: expected a whole number from 0 on.")


def _is_whole(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)
