"""Counting predictions under noise, batch by batch, so that a run can stop anywhere and go on later.

Sample ``i`` of a run depends on the seed and on ``i`` alone. So a run that was interrupted and resumed, or extended by
more samples, has the same counts as one that was never interrupted.
"""

import json
import os
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from agnncert.baselines.bernoulli import ESTIMATION, SELECTION, stream
from agnncert.errors import CertificateError, SettingsError
from agnncert.progress import OnProgress, Progress
from agnncert.proof.ballots import IntArray
from agnncert.storage import read_sealed, write_sealed

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
            CertificateError: The file is not one of these, was altered, or was written by an older version.
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
    """
    n0, n, seed = int(n0), int(n), int(seed)  # from numpy's integers, which JSON does not know
    key = json.loads(json.dumps({**key, "seed": seed, "batch": sampler.batch}))
    none = np.zeros((sampler.num_targets, sampler.num_classes), dtype=np.int64)
    counts = _resumed(checkpoint, key, n0, n) or SampleCounts(none, none, key=key)
    begin = saved = time.monotonic()
    before = counts.selected + counts.estimated
    try:
        for stage, total in ((SELECTION, n0), (ESTIMATION, n)):
            while counts.done(stage) < total:
                counts = _one_batch(sampler, counts, stage, total, seed)
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


def _one_batch(sampler: Sampler, counts: SampleCounts, stage: int, total: int, seed: int) -> SampleCounts:
    done = counts.done(stage)
    batch, first = divmod(done, sampler.batch)
    last = min(sampler.batch, first + total - done)
    return counts.plus(stage, sampler.counts(stream(seed, stage, batch), first, last), last - first)


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
