"""Canonical data and its targets.

``CanonicalData`` holds data that was checked and put into canonical form once; its targets can then be asked for any
number of times. ``Targets`` is what every defence certifies: the canonical graph, the rows of the targets, their ids
and their true classes.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, Self, TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch_geometric.data import Data

from agnncert.certificates.ids import id_array
from agnncert.errors import GraphError
from agnncert.graphs.canonical import BLOCK, canonical, canonical_set
from agnncert.graphs.digest import graph_digest
from agnncert.graphs.entries import Entries, find_entries
from agnncert.graphs.graph import CanonicalGraph, Task
from agnncert.graphs.labels import class_numbers, graph_classes
from agnncert.graphs.node_ids import listed_ids
from agnncert.graphs.task import infer_task

Rows = npt.NDArray[np.int64]
TargetChoice: TypeAlias = Tensor | npt.ArrayLike | None  # a mask, row numbers, or None for all rows


class AnyTargets(Protocol):
    """What is certified, whatever its kind: nodes or graphs (``Targets``), or pairs of nodes (``PairTargets``)."""

    @property
    def task(self) -> Task:
        """What the targets are."""

    @property
    def graph(self) -> CanonicalGraph:
        """The graph that contains them."""

    @property
    def rows(self) -> Rows:
        """Place of each target in the data, shape ``[n]``."""

    @property
    def ids(self) -> npt.NDArray[Any]:
        """What each target is called, shape ``[n]``."""

    @property
    def truth(self) -> Rows | None:
        """True class of each target, negative where unknown, shape ``[n]``; ``None`` if the data has no classes."""

    @property
    def degree(self) -> Rows | None:
        """Number of neighbours or edges of each target, shape ``[n]``; ``None`` if such targets have none."""

    @property
    def id_kind(self) -> str:
        """``"node_id"`` if nodes have stable ids, ``"row"`` if row numbers are the ids."""

    @property
    def digests(self) -> dict[str, str]:
        """What a claim says about the data: digests of the graph and, if there is one, of the encoding."""


@dataclass(frozen=True)
class Targets:
    """The targets and the canonical graph that contains them.

    Attributes:
        task: ``"node"`` or ``"graph"``.
        graph: Node task: the whole graph. Graph task: the target graphs joined into one, in order.
        rows: Row of each target in the data, shape ``[n]``.
        positions: Position of each target in ``graph``: its node, or its number among the joined graphs, shape ``[n]``.
        ids: Ids of the targets in canonical form, or their rows if the data has no ids, shape ``[n]``. The array has
            type int64 if all ids fit, else it holds Python integers and strings.
        truth: True class of each target, shape ``[n]``, negative where unknown; ``None`` if the data has no classes.
        encoding: sha256 of how the features were made from a table; empty if the data does not say.
    """

    task: Task
    graph: CanonicalGraph
    rows: Rows
    positions: Rows
    ids: npt.NDArray[Any]
    truth: Rows | None
    encoding: str = ""

    @property
    def id_kind(self) -> str:
        """``"node_id"`` if nodes have stable ids, ``"row"`` if row numbers are the ids."""
        return "node_id" if self.graph.stable_ids else "row"

    @cached_property
    def digest(self) -> str:
        """sha256 of the graph."""
        return graph_digest(self.graph)

    @property
    def digests(self) -> dict[str, str]:
        """What a claim says about the data: digests of the graph and, if there is one, of the encoding."""
        digests = {"graph": self.digest}
        if self.encoding:
            digests["encoding"] = self.encoding
        return digests

    @cached_property
    def degree(self) -> Rows:
        """Number of distinct neighbours of each target node, or of undirected edges of each target graph."""
        if self.graph.batch is not None:
            return self._edges_of_graphs(self.graph.batch.numpy())
        num_nodes = self.graph.num_nodes
        degree = np.zeros(num_nodes, dtype=np.int64)
        for low, high in _distinct_pairs(self.graph.edge_index, num_nodes):
            degree += np.bincount(low, minlength=num_nodes)
            degree += np.bincount(high[high != low], minlength=num_nodes)
        return degree[self.rows]

    def _edges_of_graphs(self, batch: Rows) -> Rows:
        """Returns the number of undirected edges of each joined graph."""
        num_edges = np.zeros(len(self.rows), dtype=np.int64)
        for low, _ in _distinct_pairs(self.graph.edge_index, self.graph.num_nodes):
            num_edges += np.bincount(batch[low], minlength=len(num_edges))
        return num_edges


def _distinct_pairs(edge_index: Tensor, num_nodes: int) -> Iterator[tuple[Rows, Rows]]:
    """Yields blocks of distinct pairs of joined nodes, regardless of direction: the smaller and the larger row."""
    pairs = np.empty(edge_index.size(1), dtype=np.int64)
    blocks = [slice(first, first + BLOCK) for first in range(0, len(pairs), BLOCK)]
    for block in blocks:
        src, dst = edge_index[:, block].numpy()
        pairs[block] = np.minimum(src, dst).astype(np.int64) * num_nodes + np.maximum(src, dst)
    pairs.sort()
    last = -1
    for block in blocks:
        part = pairs[block]
        is_new = np.diff(part, prepend=last) > 0
        yield np.divmod(part[is_new], num_nodes)
        last = int(part[-1])


@dataclass(frozen=True)
class CanonicalData:
    """A graph, or graphs, checked and put into canonical form.

    Attributes:
        data: The data as given.
        task: ``"node"`` or ``"graph"``.
        total: Number of nodes or graphs in the data.
        entries: The non-zero features, if they were searched for.
    """

    data: Any
    task: Task
    total: int
    _whole: CanonicalGraph  # with self-loops, because divisions differ in whether they keep them
    _inside: Rows  # graph task: rows of the graphs that are joined in _whole
    entries: Entries | None = None
    _kept: dict[tuple[bytes, bool], Targets] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, data: Data | Sequence[Data], targets: TargetChoice = None, compact: bool = False) -> Self:
        """Checks data and puts it into canonical form.

        Args:
            data: The graph or graphs.
            targets: Graph task: mask or row numbers of the graphs to join. Defaults to all.
            compact: As in ``canonical``; also searches for non-zero features, which engines need.

        Raises:
            GraphError: The data cannot be used, or it does not contain the targets.
        """
        task = infer_task(data)
        if isinstance(data, Data):
            total = int(data.num_nodes or 0)
            target_rows(targets, total)  # refuses targets that the data does not contain, before any work is done
            entries = find_entries(data.x) if compact else None
            finite = entries is not None and entries.finite
            graph = canonical(data, keep_self_loops=True, compact=compact, finite=finite)
            return cls(data, task, total, graph, np.arange(0), entries)
        rows = target_rows(targets, len(data))
        joined = canonical_set([data[int(k)] for k in rows], keep_self_loops=True)
        return cls(data, task, len(data), joined, rows)

    def targets(self, targets: TargetChoice = None, self_loops: bool = False) -> Targets:
        """Returns the targets and their graph. The same arguments return the same object.

        Args:
            targets: Mask or row numbers. Defaults to all.
            self_loops: Whether the division keeps self-loops.

        Raises:
            GraphError: The data does not contain the targets.
        """
        rows = target_rows(targets, self.total)
        key = (rows.tobytes(), self_loops)
        if key not in self._kept:
            self._kept[key] = self._targets_of(rows, self_loops)
        return self._kept[key]

    def _targets_of(self, rows: Rows, self_loops: bool) -> Targets:
        graph = self._whole if self.task == "node" else self._joined(rows)
        return Targets(
            task=self.task,
            graph=graph if self_loops else graph.without_self_loops(),
            rows=rows,
            positions=rows if self.task == "node" else np.arange(len(rows)),
            ids=_target_ids(self.data, rows, self.task),
            truth=_target_truth(self.data, rows, self.task),
            encoding=_encoding_digest(self.data),
        )

    def _joined(self, rows: Rows) -> CanonicalGraph:
        """Returns the graphs of some rows, joined; it equals ``canonical_set`` of these graphs."""
        if np.array_equal(rows, self._inside):
            return self._whole
        number = np.full(self.total, -1)
        number[self._inside] = np.arange(len(self._inside))
        if len(rows) == 0 or (number[rows] < 0).any():
            return canonical_set([self.data[int(k)] for k in rows], keep_self_loops=True)
        return self._whole.select(torch.from_numpy(number[rows]))


def prepared(
    data: Data | Sequence[Data] | CanonicalData, targets: TargetChoice = None, compact: bool = False
) -> CanonicalData:
    """Returns ``data`` itself if it is a ``CanonicalData``, else ``CanonicalData.of`` with the same arguments."""
    return data if isinstance(data, CanonicalData) else CanonicalData.of(data, targets, compact)


def target_rows(targets: object, total: int) -> Rows:
    """Returns row numbers from a mask, row numbers, or ``None`` for all rows.

    Args:
        targets: Mask, row numbers or ``None``.
        total: Number of rows of the data.

    Raises:
        GraphError: The targets are none of these, lie outside the data, or name a row twice.
    """
    if targets is None:
        return np.arange(total, dtype=np.int64)
    if isinstance(targets, str):
        raise GraphError(f'targets="{targets}": pass the mask itself, such as data.test_mask, or row numbers.')
    rows = _as_array(targets)
    if rows.dtype == bool:
        if rows.shape != (total,):
            raise GraphError(f"the target mask has shape {rows.shape}, the data has {total} rows: they must agree.")
        return np.flatnonzero(rows).astype(np.int64)
    if rows.ndim != 1 or (rows.size and not np.issubdtype(rows.dtype, np.integer)):
        hint = " If it is a mask, make it one: targets.bool()." if rows.shape == (total,) else ""
        if rows.ndim == 2 and len(rows) == 2:
            hint = " Pairs of nodes are the targets of PairVotes: no other defence decides about them."
        raise GraphError(
            f"targets must be a mask or row numbers, got an array of {rows.dtype} with shape {rows.shape}.{hint}"
        )
    rows = rows.astype(np.int64)
    _require_distinct_rows(rows, total)
    return rows


def require_some(targets: TargetChoice) -> None:
    """Refuses a choice of no target at all, such as a mask that is False everywhere.

    Raises:
        GraphError: The mask or list of row numbers is empty.
    """
    if targets is None or isinstance(targets, str):
        return
    rows = _as_array(targets)
    if rows.dtype == bool and not rows.any():
        raise GraphError("targets is a mask that is False everywhere: nothing would be certified. Choose some targets.")
    if not rows.size:
        raise GraphError("targets is empty: nothing would be certified. Leave it out for all targets.")


def _as_array(targets: object) -> npt.NDArray[Any]:
    """Returns targets as an array; a single number is an array of one."""
    if isinstance(targets, Tensor):
        targets = targets.detach().cpu()
        if targets.dtype == torch.bfloat16:  # which numpy does not have
            targets = targets.float()
    rows = np.asarray(targets)
    return rows.reshape(1) if rows.ndim == 0 else rows


def _require_distinct_rows(rows: Rows, total: int) -> None:
    """Refuses row numbers that lie outside the data, or that occur twice."""
    outside = rows[(rows < 0) | (rows >= total)]
    if outside.size:
        raise GraphError(f"targets name row {outside[0]}, but the data has rows 0 to {total - 1}.")
    if len(np.unique(rows)) != len(rows):
        looks_like_mask = len(rows) == total and set(np.unique(rows)) <= {0, 1}
        hint = " If 0 and 1 are meant as a mask, make it one: targets.bool()." if looks_like_mask else ""
        raise GraphError(f"targets name a row twice: give each target once.{hint}")


def _encoding_digest(data: Any) -> str:
    """Returns the sha256 of how the features were made from a table; empty if the data does not say."""
    encoding = getattr(data, "encoding", None)
    if encoding is None:
        return ""
    text = encoding if isinstance(encoding, str) else encoding.to_json()  # text, if the data was read from disk
    return hashlib.sha256(text.encode()).hexdigest()


def _target_ids(data: Any, rows: Rows, task: Task) -> npt.NDArray[Any]:
    """Returns the ids of the targets: from ``node_id`` if the data has it, else row numbers."""
    ids = None if task == "graph" else getattr(data, "node_id", None)
    if ids is None:
        return rows
    listed = listed_ids(ids)
    if not isinstance(listed, np.ndarray):
        return id_array([listed[row] for row in rows.tolist()])
    if listed.dtype == np.int64:  # canonical as they are
        return listed[rows]
    return id_array(listed[rows])


def _target_truth(data: Any, rows: Rows, task: Task) -> Rows | None:
    """Returns the true classes of the targets, -1 for a graph without a class; ``None`` if no target has one."""
    if task == "graph":
        of_graphs = graph_classes([data[int(k)] for k in rows]).numpy()
        return of_graphs if (of_graphs >= 0).any() else None
    y = getattr(data, "y", None)
    if y is None:
        return None
    classes = class_numbers(y, int(data.num_nodes))
    return None if classes is None else classes.numpy()[rows]
