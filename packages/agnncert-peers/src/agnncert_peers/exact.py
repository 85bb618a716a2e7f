"""How robust an undefended model really is: every change of one or two edges that can matter is tried.

A model of h hops computes the label of a target from the features of the nodes within h hops and from the edges at
these; a node at h hops counts by its features and by how many edges it has. So a pair of nodes that gains or loses an
edge matters only if one of its ends is within h hops; and if that end is at h hops, it does not matter which one of the
farther nodes the other end is. For two changes: if both matter, the first can be chosen such that it touches these
nodes, and the second then touches those of the changed graph. All others need not be tried, and each change is tried on
the part of the graph that the label depends on.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch_geometric.data import Data

from agnncert.certificates.votes import BoolArray, FloatArray, IntArray
from agnncert.defence import TargetChoice
from agnncert.engine.adapter import ModelAdapter, bind
from agnncert.engine.features import Features, SparseRows
from agnncert.engine.union import CHUNK_ROWS
from agnncert.errors import ModelContractError, SettingsError
from agnncert.evaluation_mode import require_evaluation_mode
from agnncert.graphs.canonical import canonical
from agnncert.graphs.digest import graph_digest
from agnncert.graphs.graph import CanonicalGraph
from agnncert.graphs.targets import target_rows
from agnncert.graphs.task import infer_task
from agnncert.models.digest import model_digest
from agnncert.models.message_hops import hops_as_run
from agnncert.progress import OnProgress, follow
from agnncert.storage import parse_json, write_atomic
from agnncert_peers.draws import runs
from agnncert_peers.pairs import Pairs, require_simple

# What becomes of the label of a target.
ROBUST = "robust"
BROKEN = "broken"
UNDECIDED = "undecided"


@dataclass(frozen=True)
class ExactRobustness:
    """What became of the labels of an undefended model.

    Attributes:
        size: Edges added or deleted.
        row: Rows of the targets, shape ``[n]``.
        label: Label of the graph as given, shape ``[n]``.
        outcome: ``"robust"`` if no change alters the label, ``"broken"`` if one does, ``"undecided"`` if the limit was
            reached before all were tried; one for each target.
        correct: Whether the label is the true class, shape ``[n]``; ``None`` without true classes.
    """

    size: int
    row: IntArray
    label: IntArray
    outcome: tuple[str, ...]
    correct: BoolArray | None = None

    def share(self, outcome: str) -> float:
        """Returns the share of all targets that have this outcome and, if true classes are known, are correct."""
        counted = np.array(self.outcome) == outcome
        if self.correct is not None:
            counted &= self.correct
        return float(counted.sum() / max(len(self.row), 1))

    def __str__(self) -> str:
        edges = "1 edge" if self.size == 1 else f"{self.size} edges"
        counted = "" if self.correct is None else "correct and "
        low = self.share(ROBUST)
        unknown = self.share(UNDECIDED)
        share = f"between {low:.1%} and {low + unknown:.1%}" if unknown else f"{low:.1%}"
        what = f"undefended: {counted}exactly robust against {edges} added or deleted"
        return f"{what} for {share} of {len(self.row)} targets"


@torch.no_grad()
def exact_robustness(
    model: torch.nn.Module,
    data: Data,
    targets: TargetChoice = None,
    *,
    size: int = 1,
    hops: int | None = None,
    limit: int = 2_000_000,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: OnProgress | None = None,
) -> ExactRobustness:
    """Tries every way to add or delete up to ``size`` edges, for each target node, on the model as it is.

    It takes seconds for each target on graphs of a few thousand nodes at size 1: pass a sample of targets.

    Args:
        model: A trained module in eval mode that gets no edge weights or attributes.
        data: A ``Data``, undirected; node task.
        targets: Mask or row numbers. Defaults to all.
        size: 1 or 2.
        hops: How many hops away the model reads. Defaults to how often its layers pass messages.
        limit: Attacked graphs that are tried for one target at most. At size 2 the changes that bring the label
            closest to another one come first.
        checkpoint: File that keeps the outcome of each target; an interrupted run, called again, goes on from it.
        progress: Called after each target.

    Raises:
        SettingsError: The data are graphs to classify, or ``size``, ``hops`` or ``checkpoint`` do not fit.
        GraphError: The graph is directed, or a pair is joined twice.
        ModelContractError: The model depends on what is more than ``hops`` hops away.
    """
    if size not in (1, 2):
        raise SettingsError(f"size={size}: exhaustive search is possible for 1 or 2 edges. Use ac.attack for more.")
    if infer_task(data) != "node":
        raise SettingsError("exact_robustness is for target nodes of one graph: pass a Data.")
    graph = canonical(data)
    require_simple(graph, Pairs.of(graph), "exact_robustness")
    bound_model = _bound(model, graph)
    if hops is None:
        hops = hops_as_run(model, lambda: bound_model(graph.x.to(bound_model.dtype), graph.edge_index, {})) or 0
    if hops < 1:
        raise SettingsError(f"hops={hops}: state how many hops away the model reads, from 1 on.")
    rows = target_rows(targets, graph.num_nodes)
    key = {"graph": graph_digest(graph), "model": model_digest(model), "size": size, "hops": hops, "limit": limit}
    outcomes = _resumed(checkpoint, key)
    search = _Search(bound_model, graph, hops, limit)
    logits = bound_model(graph.x.to(bound_model.dtype), graph.edge_index, {})
    report_progress = follow(progress, "exact robustness", len(rows))
    for done, row in enumerate(rows.tolist(), 1):
        if str(row) not in outcomes:
            search.require_local(row, logits[row])
            outcomes[str(row)] = search.outcome(row, int(logits[row].argmax()), size)
            if checkpoint is not None:
                write_atomic(checkpoint, json.dumps({"key": key, "outcomes": outcomes}) + "\n")
        report_progress(done / len(rows))
    label = logits.argmax(1).numpy()[rows]
    outcome_of_row = tuple(outcomes[str(row)] for row in rows.tolist())
    return ExactRobustness(size, rows, label, outcome_of_row, _correct(data, rows, label))


def _bound(model: torch.nn.Module, graph: CanonicalGraph) -> ModelAdapter:
    """Binds a model to a graph; refuses one that is in training mode or needs values of edges."""
    require_evaluation_mode(model)
    bound_model = bind(model, graph, "node")
    if bound_model.edge_inputs:
        raise SettingsError(f"an added edge has no {' or '.join(bound_model.edge_inputs)}: drop it from the data.")
    return bound_model


def _correct(data: Data, rows: IntArray, label: IntArray) -> BoolArray | None:
    """Tells which labels are the true classes; ``None`` without true classes."""
    truth = getattr(data, "y", None)
    if truth is None:
        return None
    return np.asarray(truth.view(-1).numpy()[rows] == label)


def _resumed(checkpoint: str | os.PathLike[str] | None, key: dict[str, Any]) -> dict[str, str]:
    """Reads the outcomes that a checkpoint holds, by row."""
    if checkpoint is None or not Path(checkpoint).exists():
        return {}
    try:
        stored = parse_json(Path(checkpoint).read_text(encoding="utf-8"))
        stored_key = dict(stored["key"])
        outcomes = dict(stored["outcomes"])
    except (ValueError, KeyError, TypeError) as error:
        raise SettingsError(
            f"{checkpoint} holds no outcomes of exact_robustness: {error}. Name another file."
        ) from error
    differing = sorted(name for name in key if stored_key.get(name) != key[name])
    if differing:
        raise SettingsError(f"{checkpoint} is of another run: {', '.join(differing)} differ. Name another file.")
    return outcomes


class _Attempts(NamedTuple):
    """Pairs of nodes to join or to separate, on the part of the graph that the label then depends on.

    Attributes:
        nodes: The nodes of that part, the target first.
        flips: The pairs, one for each copy of the part, shape ``[copies, 2]``.
    """

    nodes: IntArray
    flips: IntArray


class _Scan(NamedTuple):
    """What became of all changes of one edge.

    Attributes:
        outcome: Whether one of them alters the label.
        tried: The pairs that were tried, with the lead of the label, shape ``[tried, 3]``; empty unless it is robust.
    """

    outcome: str
    tried: FloatArray


_NOTHING_TRIED = np.empty((0, 3))


class _Search:
    """Tries changes of edges on one graph."""

    def __init__(self, bound_model: ModelAdapter, graph: CanonicalGraph, hops: int, limit: int) -> None:
        self.bound_model = bound_model
        self.hops = hops
        self.limit = limit
        self.num_nodes = int(graph.num_nodes)
        x = graph.x.to(bound_model.dtype)
        self.features = Features(x, SparseRows.of(x))
        self._place = np.full(self.num_nodes, -1)
        self._set_edges(graph.edge_index.numpy())

    def _set_edges(self, edges: IntArray) -> None:
        self.source, self.head = edges[:, np.argsort(edges[1], kind="stable")]
        self.first = np.searchsorted(self.head, np.arange(self.num_nodes + 1))

    def _arcs_into(self, nodes: IntArray) -> IntArray:
        return runs(self.first[nodes], self.first[nodes + 1] - self.first[nodes])

    def _ball(self, node: int, radius: int) -> IntArray:
        """Returns the nodes within this many hops, the nearest first."""
        seen = [np.array([node])]
        is_new = np.ones(self.num_nodes, dtype=bool)
        for _ in range(radius):
            is_new[seen[-1]] = False
            met = self.source[self._arcs_into(seen[-1])]
            seen.append(np.unique(met[is_new[met]]))
        return np.concatenate(seen)

    def require_local(self, row: int, logits: torch.Tensor) -> None:
        """Raises ModelContractError if the label of a target cannot be computed from the part around it."""
        num_near = len(self._ball(row, self.hops))
        unchanged = _Attempts(self._ball(row, self.hops + 1), flips=np.array([[row, row]]))
        local_logits = self._logits([unchanged], num_near)[0]
        if not np.allclose(local_logits, logits.numpy(), rtol=1e-4, atol=1e-4):
            raise ModelContractError(
                f"the prediction in row {row} depends on more than what is {self.hops} hops away: pass the number of "
                "hops, and a model that looks at a node only through the edges that lead to it."
            )

    def outcome(self, row: int, label: int, size: int) -> str:
        """Finds out what becomes of one target."""
        self.left = self.limit
        scan = self._scan(row, label)
        if size == 1 or scan.outcome != ROBUST:
            return scan.outcome
        edges = np.stack([self.source, self.head])
        by_lead = np.argsort(scan.tried[:, 2], kind="stable")
        for u, v in scan.tried[by_lead, :2].astype(np.int64).tolist():
            self._set_edges(_flip(edges, u, v))
            scan = self._scan(row, label)
            if scan.outcome != ROBUST:
                break
        self._set_edges(edges)
        return scan.outcome

    def _scan(self, row: int, label: int) -> _Scan:
        """Tries every change of one edge that can matter."""
        tried = [_NOTHING_TRIED]
        for batch in self._batches(row):
            logits = self._logits(batch)
            if (logits.argmax(axis=1) != label).any():
                return _Scan(BROKEN, _NOTHING_TRIED)
            rival = np.delete(logits, label, axis=1).max(axis=1, initial=-np.inf)
            lead = logits[:, label] - rival
            flips = np.concatenate([attempts.flips for attempts in batch])
            tried.append(np.column_stack([flips, lead]))
            self.left -= len(lead)
            if self.left < 0:
                return _Scan(UNDECIDED, _NOTHING_TRIED)
        return _Scan(ROBUST, np.concatenate(tried))

    def _batches(self, row: int) -> Iterator[list[_Attempts]]:
        """Yields what to try, as much at a time as the model sees at once."""
        batch: list[_Attempts] = []
        num_rows = 0
        for attempts in self._attempts(row):
            batch.append(attempts)
            num_rows += len(attempts.nodes) * len(attempts.flips)
            if num_rows > CHUNK_ROWS:
                yield batch
                batch = []
                num_rows = 0
        if batch:
            yield batch

    def _attempts(self, row: int) -> Iterator[_Attempts]:
        """Yields all pairs whose change can matter, each with the part of the graph that the label depends on."""
        inner = self._ball(row, self.hops - 1)
        near = self._ball(row, self.hops)
        around = self._ball(row, self.hops + 1)
        is_far = np.bincount(around, minlength=self.num_nodes) == 0
        for k, other in enumerate([*around, *np.flatnonzero(is_far)]):
            is_near = k < len(near)
            is_first_far = k == len(around)
            if is_near or is_first_far or len(around) == self.num_nodes:
                ends = near[:k]  # a pair of near nodes is tried once; the first far node stands for all others
            else:  # nodes at h hops can only be separated from it
                joined = self.source[self._arcs_into(np.array([other]))]
                ends = np.union1d(inner, np.intersect1d(near, joined))
            ball = self._ball(other, self.hops)
            nodes = np.concatenate([around, np.sort(ball[is_far[ball]])])
            step = max(1, CHUNK_ROWS // len(nodes))
            for begin in range(0, len(ends), step):
                here = ends[begin : begin + step]
                yield _Attempts(nodes, np.column_stack([here, np.full(len(here), other)]))

    def _logits(self, batch: list[_Attempts], visible: int | None = None) -> FloatArray:
        """Computes logits of the target with each pair joined or separated, shape ``[copies, classes]``.

        Args:
            batch: What to try.
            visible: Only this many of the first nodes have features. Defaults to all.
        """
        rows = []
        edges = []
        targets = []
        start = 0
        for attempts in batch:
            offset = start + len(attempts.nodes) * np.arange(len(attempts.flips))
            rows.append(np.tile(attempts.nodes, len(attempts.flips)))
            edges.append(self._changed_edges(attempts, offset))
            targets.append(offset)
            start += len(attempts.nodes) * len(attempts.flips)
        blank = None if visible is None else torch.arange(start) >= visible
        x = self.features.rows(torch.from_numpy(np.concatenate(rows)), blank)
        logits = self.bound_model(x, torch.from_numpy(np.concatenate(edges, axis=1)), {})
        return np.asarray(logits[torch.from_numpy(np.concatenate(targets))].numpy())

    def _changed_edges(self, attempts: _Attempts, offset: IntArray) -> IntArray:
        """Returns the edges of all copies of a part; ``offset`` is the row where each copy begins."""
        nodes = attempts.nodes
        self._place[:] = -1
        self._place[nodes] = np.arange(len(nodes))
        arcs = self._arcs_into(nodes)
        arcs = arcs[self._place[self.source[arcs]] >= 0]
        ends = self._place[np.stack([self.source[arcs], self.head[arcs]])]
        source, head = ends
        low, high = self._place[attempts.flips].T[:, :, None]
        struck = ((source == low) & (head == high)) | ((source == high) & (head == low))  # [copies, num_arcs]
        copy, arc = (~struck).nonzero()
        kept = ends[:, arc] + offset[copy]
        is_pair = (low != high)[:, 0]
        joining = np.flatnonzero(~struck.any(axis=1) & is_pair)
        added = self._place[attempts.flips[joining]].T + offset[joining]
        return np.concatenate([kept, added, added[::-1]], axis=1)


def _flip(edges: IntArray, u: int, v: int) -> IntArray:
    """Returns the edges with this pair joined, or separated if it was joined."""
    struck = ((edges[0] == u) & (edges[1] == v)) | ((edges[0] == v) & (edges[1] == u))
    if struck.any():
        return edges[:, ~struck]
    return np.column_stack([edges, [u, v], [v, u]])
