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
from typing import Any

import numpy as np
import torch
from torch_geometric.nn import MessagePassing

from agnncert.certificates.votes import BoolArray, FloatArray, IntArray
from agnncert.engine.adapter import ModelAdapter, bind
from agnncert.engine.features import Features, SparseRows
from agnncert.engine.union import CHUNK_ROWS
from agnncert.errors import ModelContractError, SettingsError
from agnncert.graphs.canonical import canonical
from agnncert.graphs.digest import graph_digest
from agnncert.graphs.graph import CanonicalGraph
from agnncert.graphs.targets import target_rows
from agnncert.graphs.task import infer_task
from agnncert.models.digest import model_digest
from agnncert.progress import OnProgress, follow
from agnncert.storage import write_atomic
from agnncert_peers.draws import runs
from agnncert_peers.pairs import Pairs, require_simple

ROBUST, BROKEN, UNDECIDED = "robust", "broken", "undecided"


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
        """Share of all targets that have this outcome and, if true classes are known, are correct."""
        right = np.ones(len(self.row), dtype=bool) if self.correct is None else self.correct
        return float((np.array(self.outcome) == outcome)[right].sum() / max(len(self.row), 1))

    def __str__(self) -> str:
        edges = "1 edge" if self.size == 1 else f"{self.size} edges"
        counted = "" if self.correct is None else "correct and "
        low, unknown = self.share(ROBUST), self.share(UNDECIDED)
        share = f"{low:.1%}" if not unknown else f"between {low:.1%} and {low + unknown:.1%}"
        what = f"undefended: {counted}exactly robust against {edges} added or deleted"
        return f"{what} for {share} of {len(self.row)} targets"


@torch.no_grad()
def exact_robustness(
    model: Any,
    data: Any,
    targets: Any = None,
    *,
    size: int = 1,
    hops: int | None = None,
    limit: int = 2_000_000,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: OnProgress | None = None,
) -> ExactRobustness:
    """Tries every way to add or delete up to ``size`` edges, for each target node, on the model as it is.

    Takes seconds for each target on graphs of a few thousand nodes at size 1: pass a sample of targets.

    Args:
        model: A trained module in eval mode that gets no edge weights or attributes.
        data: A ``Data``, undirected; node task.
        targets: Mask or row numbers. Defaults to all.
        size: 1 or 2.
        hops: How many hops away the model reads. Defaults to its number of message-passing layers.
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
    if getattr(model, "training", False):
        raise ModelContractError("the model is in training mode, where labels are random: call model.eval().")
    graph = canonical(data)
    require_simple(graph, Pairs.of(graph), "exact_robustness")
    call, rows = bind(model, graph, "node"), target_rows(targets, graph.num_nodes)
    if call.edge_inputs:
        raise SettingsError(f"an added edge has no {' or '.join(call.edge_inputs)}: drop it from the data.")
    if hops is None:
        hops = sum(isinstance(module, MessagePassing) for module in model.modules())
    if hops < 1:
        raise SettingsError(f"hops={hops}: state how many hops away the model reads, from 1 on.")
    search = _Search(call, graph, hops, limit)
    whole = call(graph.x.to(call.dtype), graph.edge_index, {})
    key = {"graph": graph_digest(graph), "model": model_digest(model), "size": size, "hops": hops, "limit": limit}
    known = _resumed(checkpoint, key)
    report_progress = follow(progress, "exact robustness", len(rows))
    for done, row in enumerate(rows.tolist(), 1):
        if str(row) not in known:
            search.require_local(row, whole[row])
            known[str(row)] = search.outcome(row, int(whole[row].argmax()), size)
            if checkpoint is not None:
                write_atomic(checkpoint, json.dumps({"key": key, "outcomes": known}) + "\n")
        report_progress(done / len(rows))
    label = whole.argmax(1).numpy()[rows]
    truth = getattr(data, "y", None)
    right = None if truth is None else np.asarray(truth.view(-1).numpy()[rows] == label)
    return ExactRobustness(size, rows, label, tuple(known[str(row)] for row in rows.tolist()), right)


def _resumed(checkpoint: str | os.PathLike[str] | None, key: dict[str, Any]) -> dict[str, str]:
    if checkpoint is None or not Path(checkpoint).exists():
        return {}
    try:
        stored = json.loads(Path(checkpoint).read_text(encoding="utf-8"))
        found, outcomes = stored["key"], dict(stored["outcomes"])
    except (ValueError, KeyError, TypeError) as error:
        raise SettingsError(
            f"{checkpoint} holds no outcomes of exact_robustness: {error}. Name another file."
        ) from error
    if differing := sorted(name for name in key if found.get(name) != key[name]):
        raise SettingsError(f"{checkpoint} is of another run: {', '.join(differing)} differ. Name another file.")
    return outcomes


class _Search:
    """Tries changes of edges on one graph."""

    def __init__(self, call: ModelAdapter, graph: CanonicalGraph, hops: int, limit: int) -> None:
        self.call, self.hops, self.limit, self.num_nodes = call, hops, limit, int(graph.num_nodes)
        x = graph.x.to(call.dtype)
        self.features = Features(x, SparseRows.of(x))
        self._place = np.full(self.num_nodes, -1)
        self._set_edges(graph.edge_index.numpy())

    def _set_edges(self, edges: IntArray) -> None:
        self.source, self.head = edges[:, np.argsort(edges[1], kind="stable")]
        self.first = np.searchsorted(self.head, np.arange(self.num_nodes + 1))

    def _arcs_into(self, nodes: IntArray) -> IntArray:
        return runs(self.first[nodes], self.first[nodes + 1] - self.first[nodes])

    def _ball(self, node: int, radius: int) -> IntArray:
        """Nodes within so many hops, the nearest first."""
        seen, is_new = [np.array([node])], np.ones(self.num_nodes, dtype=bool)
        for _ in range(radius):
            is_new[seen[-1]] = False
            met = self.source[self._arcs_into(seen[-1])]
            seen.append(np.unique(met[is_new[met]]))
        return np.concatenate(seen)

    def require_local(self, row: int, logits: torch.Tensor) -> None:
        """Raises ModelContractError if the label of a target cannot be computed from the part around it."""
        num_near = len(self._ball(row, self.hops))
        found = self._logits([(self._ball(row, self.hops + 1), np.array([[row, row]]))], num_near)[0]
        if not np.allclose(found, logits.numpy(), rtol=1e-4, atol=1e-4):
            raise ModelContractError(
                f"the prediction in row {row} depends on more than what is {self.hops} hops away: pass the number of "
                "hops, and a model that looks at a node only through the edges that lead to it."
            )

    def outcome(self, row: int, label: int, size: int) -> str:
        """What becomes of one target."""
        self.left = self.limit
        decided, tried = self._scan(row, label)
        if size == 1 or decided != ROBUST:
            return decided
        edges = np.stack([self.source, self.head])
        for u, v in tried[np.argsort(tried[:, 2], kind="stable"), :2].astype(np.int64).tolist():
            self._set_edges(_flip(edges, u, v))
            decided, _ = self._scan(row, label)
            if decided != ROBUST:
                break
        self._set_edges(edges)
        return decided

    def _scan(self, row: int, label: int) -> tuple[str, FloatArray]:
        """Whether one change alters the label; what was tried, with the lead of the label, shape ``[tried, 3]``."""
        tried = [np.empty((0, 3))]
        for pairs in self._batches(row):
            logits = self._logits(pairs)
            if (logits.argmax(axis=1) != label).any():
                return BROKEN, tried[0]
            lead = logits[:, label] - np.delete(logits, label, axis=1).max(axis=1, initial=-np.inf)
            tried.append(np.column_stack([np.concatenate([flips for _, flips in pairs]), lead]))
            self.left -= len(lead)
            if self.left < 0:
                return UNDECIDED, tried[0]
        return ROBUST, np.concatenate(tried)

    def _batches(self, row: int) -> Iterator[list[tuple[IntArray, IntArray]]]:
        """Pairs to change, ``[copies, 2]``, each with the nodes that the label then depends on, the target first."""
        inner, near, around = (self._ball(row, self.hops + more) for more in (-1, 0, 1))
        batch, num_rows, far = [], 0, np.bincount(around, minlength=self.num_nodes) == 0
        for k, other in enumerate([*around, *np.flatnonzero(far)]):
            if k < len(near) or k == len(around) or len(around) == self.num_nodes:
                ends = near[:k]  # a pair of near nodes is tried once; the first far node stands for all others
            else:  # nodes at h hops can only be separated from it
                ends = np.union1d(inner, np.intersect1d(near, self.source[self._arcs_into(np.array([other]))]))
            nodes = np.concatenate([around, np.sort((ball := self._ball(other, self.hops))[far[ball]])])
            step = max(1, CHUNK_ROWS // len(nodes))
            for begin in range(0, len(ends), step):
                flips = np.column_stack([ends[begin : begin + step], np.full(len(ends[begin : begin + step]), other)])
                batch.append((nodes, flips))
                num_rows += len(nodes) * len(flips)
                if num_rows > CHUNK_ROWS:
                    yield batch
                    batch, num_rows = [], 0
        if batch:
            yield batch

    def _logits(self, parts: list[tuple[IntArray, IntArray]], visible: int | None = None) -> FloatArray:
        """Logits of the target, the first node, with each pair joined or separated, shape ``[copies, classes]``.

        Only the first ``visible`` nodes have features; all when not given.
        """
        rows, edges, targets, start = [], [], [], 0
        for nodes, flips in parts:
            self._place[:] = -1
            self._place[nodes] = np.arange(len(nodes))
            arcs = self._arcs_into(nodes)
            arcs = arcs[self._place[self.source[arcs]] >= 0]
            one, two = ends = self._place[np.stack([self.source[arcs], self.head[arcs]])]
            low, high = self._place[flips].T[:, :, None]
            struck = ((one == low) & (two == high)) | ((one == high) & (two == low))  # [copies, num_arcs]
            offset = start + len(nodes) * np.arange(len(flips))
            copy, arc = (~struck).nonzero()
            new = np.flatnonzero(~struck.any(axis=1) & (low != high)[:, 0])
            added = self._place[flips[new]].T + offset[new]
            edges += [ends[:, arc] + offset[copy], added, added[::-1]]
            rows.append(np.tile(nodes, len(flips)))
            targets.append(offset)
            start += len(nodes) * len(flips)
        blank = None if visible is None else torch.arange(start) >= visible
        x = self.features.rows(torch.from_numpy(np.concatenate(rows)), blank)
        logits = self.call(x, torch.from_numpy(np.concatenate(edges, axis=1)), {})
        return np.asarray(logits[torch.from_numpy(np.concatenate(targets))].numpy())


def _flip(edges: IntArray, u: int, v: int) -> IntArray:
    """The edges with this pair joined, or separated if it was joined."""
    struck = ((edges[0] == u) & (edges[1] == v)) | ((edges[0] == v) & (edges[1] == u))
    return edges[:, ~struck] if struck.any() else np.column_stack([edges, [u, v], [v, u]])
