"""Counting predictions under noise, batch by batch, so that a run can stop anywhere and go on later.

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

from agnncert.baselines.bernoulli import ESTIMATION, SELECTION, stream
from agnncert.errors import CertificateError, SettingsError
from agnncert.progress import OnProgress, Progress
from agnncert.proof.ballots import IntArray
from agnncert.storage import read_sealed, write_sealed
from agnncert.workers import Here, Workers

FORMAT = "agnncert-counts"
VERSION = 1
_SAVE_EVERY_SECONDS = 10.0


class Sampler(Protocol):
    """Draws noisy inputs and counts the predictions on them."""

    num_targets: int
    num_classes: int
    batch: int

    def counts(self, rng: np.random.Generator, first: int, last: int) -> IntArray:
        """Class counts of samples ``first`` to ``last - 1`` of a batch, shape ``[targets, classes]``.

        Draws the whole batch, so that sample ``i`` is the same one whichever part is counted.
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

    def done(self, stage: int) -> int:
        """Samples counted so far, for selection or for estimation."""
        return self.selected if stage == SELECTION else self.estimated

    def plus(self, stage: int, counts: IntArray, samples: int) -> "SampleCounts":
        """These counts and those of further samples."""
        if stage == SELECTION:
            return replace(self, selection=self.selection + counts, selected=self.selected + samples)
        return replace(self, estimation=self.estimation + counts, estimated=self.estimated + samples)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the counts to a sealed file, replacing it only when the new one is complete."""
        file = Path(path).resolve()
        file.parent.mkdir(parents=True, exist_ok=True)
        facts = {"selected": self.selected, "estimated": self.estimated, "key": self.key}
        arrays = {"selection": self.selection, "estimation": self.estimation}
        write_sealed(file, {"format": FORMAT, "version": VERSION, **facts}, arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "SampleCounts":
        """Reads what :meth:`save` wrote.

        Raises:
            CertificateError: The file is not one of these, was altered, or is of another version.
        """
        try:
            header, arrays = read_sealed(Path(path), FORMAT, VERSION, "file of sample counts")
            facts = {name: header[name] for name in ("selected", "estimated", "key")}
            return cls(arrays["selection"].astype(np.int64), arrays["estimation"].astype(np.int64), **facts)
        except (CertificateError, KeyError) as error:
            raise CertificateError(
                f"{path} does not hold sample counts of this version: {error} Delete it, or name another file."
            ) from error


def collect(
    sampler: Sampler,
    n0: int,
    n: int,
    seed: int,
    key: dict[str, Any],
    checkpoint: str | os.PathLike[str] | None = None,
    progress: OnProgress | None = None,
    workers: Workers | None = None,
) -> SampleCounts:
    """Counts of ``n0`` selection and ``n`` estimation samples, going on from ``checkpoint`` if it exists.

    Args:
        sampler: Draws and counts.
        n0: Samples that choose labels.
        n: Samples that bound probabilities.
        seed: Seed of all draws.
        key: Everything else that the samples depend on, as JSON values.
        checkpoint: File to resume from and to write to, about every ten seconds and at the end.
        progress: Called after each batch.
        workers: Who draws and counts; this process when not given.
    """
    n0, n, seed = int(n0), int(n), int(seed)  # from numpy's integers, which JSON does not know
    key = json.loads(json.dumps({**key, "seed": seed, "batch": sampler.batch}))
    # In a worker the sampler's arrays lie in Ray's store, where nobody may write; it has tables of its own to fill.
    prepare = _as_it_is if workers is None else copy.deepcopy
    none = np.zeros((sampler.num_targets, sampler.num_classes), dtype=np.int64)
    counts = _resumed(checkpoint, key, n0, n) or SampleCounts(none, none, key=key)
    begin = saved = time.monotonic()
    before = counts.selected + counts.estimated
    try:
        for stage, total in ((SELECTION, n0), (ESTIMATION, n)):
            batches = _batches(sampler.batch, counts.done(stage), total, stage, seed)
            for batch, found in in_order((workers or Here()).run(sampler, prepare, count_batch, batches), batches):
                counts = counts.plus(stage, found, batch.last - batch.first)
                if progress:
                    done = counts.selected + counts.estimated
                    left = (time.monotonic() - begin) / (done - before) * (n0 + n - done)
                    progress(Progress("samples", done, n0 + n, left))
                if checkpoint and time.monotonic() - saved > _SAVE_EVERY_SECONDS:
                    counts.save(checkpoint)
                    saved = time.monotonic()
    finally:  # whatever stopped the run, what has been counted is kept
        if checkpoint:
            counts.save(checkpoint)
    return counts


class Batch(NamedTuple):
    """Samples ``first`` to ``last - 1`` of one batch: what they are depends on nothing else."""

    seed: int
    stage: int
    number: int
    first: int
    last: int


def _batches(size: int, done: int, total: int, stage: int, seed: int) -> list[Batch]:
    """What is left of a stage."""
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
    """Draws one batch and counts the predictions; what a worker does."""
    return sampler.counts(stream(batch.seed, batch.stage, batch.number), batch.first, batch.last)


def in_order(results: Iterable[tuple[Batch, IntArray]], batches: list[Batch]) -> Iterator[tuple[Batch, IntArray]]:
    """Results as their batches are ordered, whoever was quicker: counts always end with a whole batch."""
    early: dict[Batch, IntArray] = {}
    place = 0
    for batch, counts in results:
        early[batch] = counts
        while place < len(batches) and batches[place] in early:
            yield batches[place], early.pop(batches[place])
            place += 1


def _resumed(checkpoint: str | os.PathLike[str] | None, key: dict[str, Any], n0: int, n: int) -> SampleCounts | None:
    if checkpoint is None or not Path(checkpoint).exists():
        return None
    counts = SampleCounts.load(checkpoint)
    differing = sorted(name for name in key.keys() | counts.key.keys() if key.get(name) != counts.key.get(name))
    if differing:
        raise SettingsError(
            f"{checkpoint} holds samples of another run: {', '.join(differing)} differ. Mixing them would "
            "void the certificate; delete the file or name another."
        )
    if counts.selected > n0 or counts.estimated > n:
        raise SettingsError(
            f"{checkpoint} already holds {counts.selected} + {counts.estimated} samples, more than n0={n0} and "
            f"n={n}: ask for at least as many, or name another file."
        )
    return counts


def check_samples(n0: int, n: int, seed: int) -> None:
    """Refuses numbers of samples and seeds that make no sense.

    Raises:
        SettingsError: Says which number, and what was expected.
    """
    for name, value, least in (("n0", n0, 1), ("n", n, 1), ("seed", seed, 0)):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
            expected = "number from 0 on" if name == "seed" else "number of samples, at least 1"
            raise SettingsError(f"{name}={value!r}: expected a whole {expected}.")
