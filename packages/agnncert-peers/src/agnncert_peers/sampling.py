"""Random draws whose cost is proportional to what they change, and ``Pairs``, the edges of a graph that they act on.

Noise deletes or adds each edge independently of all others: one coin is tossed for each pair of nodes. Nearly all coins
change nothing, so only those that do are drawn.

Running a model on many noisy graphs at once: as one disjoint union of graphs made of copies of one graph's nodes.

Counting predictions under noise, batch by batch, so that a run can stop anywhere and go on later.

Sample ``i`` of a run depends on the seed and on ``i`` alone. So a run that was interrupted and resumed, or extended by
more samples, has the same counts as one that was never interrupted.
"""

import copy
import json
import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from agnncert.certificates.votes import IntArray
from agnncert.engine.adapter import ModelAdapter
from agnncert.engine.features import Features, SparseRows
from agnncert.engine.union import CHUNK_ROWS
from agnncert.engine.workers import Here, Workers
from agnncert.errors import CertificateError, GraphError, ModelContractError, SettingsError
from agnncert.graphs.graph import CanonicalGraph
from agnncert.progress import OnProgress, Progress
from agnncert.storage import read_sealed, write_sealed

SELECTION, ESTIMATION, TRAINING = 0, 1, 2


def stream(seed: int, stage: int, batch: int) -> np.random.Generator:
    """The random numbers of one batch: they depend on these three numbers and on nothing drawn before."""
    return np.random.default_rng(np.random.SeedSequence([seed, stage, batch]))


def successes(rng: np.random.Generator, length: int, p: float) -> IntArray:
    """Positions of the successes in ``length`` independent trials, each with probability ``p``; ascending.

    The distance from one success to the next is geometric, so only successes are drawn and the cost is proportional to
    their number. They are distributed exactly as those of ``length`` separate coins, which they would not be if
    a number of positions were drawn and duplicates rejected.

    Example:
        >>> successes(np.random.default_rng(0), 5, 1.0)
        array([0, 1, 2, 3, 4])
    """
    if p <= 0 or length <= 0:
        return np.empty(0, dtype=np.int64)
    if p >= 1:
        return np.arange(length, dtype=np.int64)
    parts: list[IntArray] = []
    last = -1
    while last < length:
        expected = (length - last) * p
        steps = rng.geometric(p, size=int(expected + 4 * np.sqrt(expected) + 16))
        steps = np.minimum(steps, length + 1)  # how far a step leads past the end does not matter, but it may overflow
        parts.append(last + np.cumsum(steps))
        last = int(parts[-1][-1])
    positions = np.concatenate(parts)
    return positions[: np.searchsorted(positions, length)]


def pair_at(place: IntArray) -> tuple[IntArray, IntArray]:
    """The pair ``i < j`` at each place of the list (0,1), (0,2), (1,2), (0,3), (1,3), (2,3), …

    The first ``n (n - 1) / 2`` places are the pairs of ``n`` nodes.

    Example:
        >>> pair_at(np.arange(6))
        (array([0, 0, 1, 0, 1, 2]), array([1, 2, 2, 3, 3, 3]))
    """
    j = ((1 + np.sqrt(8.0 * place + 1)) / 2).astype(np.int64)
    j -= j * (j - 1) // 2 > place  # the square root may be off by one either way
    j += (j + 1) * j // 2 <= place
    return place - j * (j - 1) // 2, j


def place_of_pair(i: IntArray, j: IntArray) -> IntArray:
    """The place of the pair ``i < j`` in the list of ``pair_at``."""
    return np.asarray(j * (j - 1) // 2 + i)


def runs(starts: npt.NDArray[np.int64], counts: npt.NDArray[np.int64]) -> IntArray:
    """Runs ``starts[k], starts[k] + 1, …`` of ``counts[k]`` numbers each, one after the other.

    Example:
        >>> runs(np.array([5, 9]), np.array([2, 3]))
        array([ 5,  6,  9, 10, 11])
    """
    ends = np.cumsum(counts)
    return np.asarray(np.repeat(starts - ends + counts, counts) + np.arange(ends[-1] if len(ends) else 0))


@dataclass(frozen=True)
class Pairs:
    """Pairs ``low < high`` of joined nodes, ascending by ``(low, high)``, and the directed edges of each.

    Attributes:
        num_nodes: Number of nodes.
        low: Smaller row of each pair, shape ``[m]``.
        high: Larger row, shape ``[m]``.
        arc: Positions in ``edge_index``, grouped by pair.
        arc_start: Edges of pair ``k`` are ``arc[arc_start[k]:arc_start[k + 1]]``, shape ``[m + 1]``.
        first: Pairs whose smaller row is ``u`` are ``first[u]:first[u + 1]``, shape ``[num_nodes + 1]``.
    """

    num_nodes: int
    low: IntArray
    high: IntArray
    arc: IntArray
    arc_start: IntArray
    first: IntArray

    @classmethod
    def of(cls, graph: CanonicalGraph) -> "Pairs":
        """The pairs of a graph without self-loops."""
        source, head = graph.edge_index.numpy()
        code = np.minimum(source, head) * graph.num_nodes + np.maximum(source, head)
        arc = np.argsort(code, kind="stable")
        codes, counts = np.unique(code, return_counts=True)
        low, high = np.divmod(codes, graph.num_nodes)
        return cls(
            num_nodes=int(graph.num_nodes),
            low=low,
            high=high,
            arc=arc,
            arc_start=np.concatenate([[0], np.cumsum(counts)]),
            first=np.searchsorted(low, np.arange(graph.num_nodes + 1)),
        )

    def __len__(self) -> int:
        return len(self.low)

    @cached_property
    def arc_count(self) -> IntArray:
        """Directed edges of each pair, shape ``[m]``."""
        return np.diff(self.arc_start)

    def arcs(self, pair: IntArray) -> tuple[IntArray, IntArray]:
        """Directed edges of pairs: the entry of ``pair`` each belongs to, and its place in ``edge_index``."""
        counts = self.arc_count[pair]
        return np.repeat(np.arange(len(pair)), counts), self.arc[runs(self.arc_start[pair], counts)]


def require_simple(graph: CanonicalGraph, pairs: Pairs, what: str) -> None:
    """Refuses graphs whose adjacency is not a symmetric matrix of zeros and ones; flips are defined on no others.

    Raises:
        GraphError: Some pair is joined in one direction only, or more than once.
    """
    source, head = graph.edge_index.numpy()
    forward = np.bincount(
        np.repeat(np.arange(len(pairs)), pairs.arc_count)[source[pairs.arc] < head[pairs.arc]], minlength=len(pairs)
    )
    bad = np.flatnonzero((pairs.arc_count != 2) | (forward != 1))
    if len(bad):
        u, v = int(pairs.low[bad[0]]), int(pairs.high[bad[0]])
        raise GraphError(
            f"{what} flips edges of an undirected graph, but {len(bad)} pair(s) are joined in one direction "
            f"only or more than once (first: rows {u} and {v}). Apply "
            "torch_geometric.transforms.ToUndirected() before training and certifying."
        )


class BatchedCalls:
    """A model that predicts on unions of noisy versions of one graph.

    Args:
        call: The model, bound to the graph.
        graph: A canonical graph.
    """

    def __init__(self, call: ModelAdapter, graph: CanonicalGraph) -> None:
        self.call = call
        self.edge_index: IntArray = graph.edge_index.numpy()
        x = graph.x.to(call.dtype)
        self._features = Features(x, SparseRows.of(x))
        self._values = call.edge_values(graph)

    def no_edge(self) -> IntArray:
        """Prediction of every node without edges."""
        nodes = np.arange(self._features.x.size(0))
        return self.labels_in_parts(nodes, np.empty((2, 0), dtype=np.int64), np.empty(0, dtype=np.int64), nodes)

    def logits_without_edges(self) -> Tensor:
        """Logits of every node from its own features, without edges."""
        none = torch.empty((2, 0), dtype=torch.int64)
        logits: Tensor = self.call(self._features.x, none, self.values(np.empty(0, dtype=np.int64)))
        return logits

    def values(self, arc: IntArray) -> dict[str, Tensor]:
        """Weights and attributes of some edges of the graph, as far as the model takes them."""
        return {name: value.index_select(0, torch.from_numpy(arc)) for name, value in self._values.items()}

    def labels(
        self,
        node: IntArray,
        edge_index: IntArray,
        values: dict[str, Tensor],
        batch: IntArray | None = None,
        hidden: npt.NDArray[np.bool_] | None = None,
        added: Tensor | None = None,
    ) -> IntArray:
        """Predictions on one union: of every copy, or of every graph of ``batch``.

        Args:
            node: Which node each copy is of.
            edge_index: Edges between copies, shape ``[2, m]``.
            values: Edge values, from :meth:`values`.
            batch: Graph task: the graph that each copy belongs to.
            hidden: Which copies have zeros as features; none when not given.
            added: Logits that are added to those of each copy.
        """
        blank = None if hidden is None else torch.from_numpy(hidden)
        return self.labels_of(self._features.rows(torch.from_numpy(node), blank), edge_index, values, batch, added)

    def labels_of(
        self,
        x: Tensor,
        edge_index: IntArray,
        values: dict[str, Tensor],
        batch: IntArray | None = None,
        added: Tensor | None = None,
    ) -> IntArray:
        """As :meth:`labels`, with other features ``x`` than the graph has."""
        edges = torch.from_numpy(np.ascontiguousarray(edge_index))
        logits = self.call(x, edges, values, None if batch is None else torch.from_numpy(batch))
        logits = logits if added is None else logits + added
        if not bool(torch.isfinite(logits).all()):
            raise ModelContractError(
                "the model returned logits that are not finite on a noisy graph: its prediction there is undefined, "
                "and samples cannot be counted. Look for a division by a degree or a norm that can be 0."
            )
        label: IntArray = logits.argmax(dim=1).numpy()
        return label

    def labels_in_parts(self, node: IntArray, edge_index: IntArray, arc: IntArray, part: IntArray) -> IntArray:
        """Predictions of every copy in a union of many parts, a chunk of whole parts at a time.

        Args:
            node: Which node each copy is of, shape ``[p]``.
            edge_index: Edges between copies of the same part, ascending by part, shape ``[2, m]``.
            arc: Which edge of the graph each one is, shape ``[m]``.
            part: Part of each copy, ascending, shape ``[p]``.
        """
        label = np.empty(len(node), dtype=np.int64)
        edge_part = part[edge_index[0]]
        begin = 0
        while begin < len(node):
            end = int(np.searchsorted(part, part[min(begin + CHUNK_ROWS, len(node)) - 1], side="right"))
            edges = slice(*np.searchsorted(edge_part, [part[begin], part[end - 1] + 1]))
            label[begin:end] = self.labels(node[begin:end], edge_index[:, edges] - begin, self.values(arc[edges]))
            begin = end
        return label


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


def check_samples(selection: int, samples: int, seed: int) -> None:
    """Refuses numbers of samples and seeds that make no sense.

    Raises:
        SettingsError: Says which number, and what was expected.
    """
    for name, value, least in (("selection", selection, 1), ("samples", samples, 1), ("seed", seed, 0)):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
            expected = "number from 0 on" if name == "seed" else "number of samples, at least 1"
            raise SettingsError(f"{name}={value!r}: expected a whole {expected}.")
