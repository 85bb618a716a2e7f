"""Canonical data and its targets.

``CanonicalData`` holds data that was checked and put into canonical form once; its targets can then be asked for any
number of times. ``Targets`` is what every defence certifies: the canonical graph, the rows of the targets, their ids
and their true classes. ``Entries`` lists the non-zero features of sparse data, which are found in one pass.
"""

import hashlib
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from agnncert.certificates.ids import id_array
from agnncert.errors import GraphError
from agnncert.graphs.canonical import BLOCK, canonical, canonical_set
from agnncert.graphs.checks import WIDE
from agnncert.graphs.digest import graph_digest
from agnncert.graphs.graph import CanonicalGraph, Task
from agnncert.graphs.node_ids import listed_ids
from agnncert.graphs.task import infer_task

Rows = npt.NDArray[np.int64]
SPARSE_BELOW = 0.1  # share of non-zeros below which a sparse product is faster than a dense one on a CPU
CHUNK = 2**18  # numbers that are searched at once: they stay in the processor's cache


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
        return {"graph": self.digest, **({"encoding": self.encoding} if self.encoding else {})}

    @cached_property
    def degree(self) -> Rows:
        """Number of distinct neighbours of each target node, or of undirected edges of each target graph."""
        nodes, of_graph = self.graph.num_nodes, self.task == "graph"
        batch = None if self.graph.batch is None else self.graph.batch.numpy()
        degree = np.zeros(len(self.rows) if of_graph else nodes, dtype=np.int64)
        for low, high in _distinct_pairs(self.graph.edge_index, nodes):
            if batch is not None:
                degree += np.bincount(batch[low], minlength=len(degree))
            else:
                degree += np.bincount(low, minlength=nodes) + np.bincount(high[high != low], minlength=nodes)
        return degree if of_graph else degree[self.rows]


def _distinct_pairs(edge_index: Tensor, num_nodes: int) -> Iterator[tuple[Rows, Rows]]:
    """Blocks of distinct pairs of joined nodes, regardless of direction: the smaller and the larger row of each."""
    pairs = np.empty(edge_index.size(1), dtype=np.int64)
    blocks = [slice(first, first + BLOCK) for first in range(0, len(pairs), BLOCK)]
    for block in blocks:
        src, dst = edge_index[:, block].numpy()
        pairs[block] = np.minimum(src, dst).astype(np.int64) * num_nodes + np.maximum(src, dst)
    pairs.sort()
    last = -1
    for block in blocks:
        part = pairs[block]
        yield np.divmod(part[np.diff(part, prepend=last) > 0], num_nodes)
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
    entries: "Entries | None" = None
    _kept: dict[tuple[bytes, bool], Targets] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, data: Any, targets: Any = None, compact: bool = False) -> Self:
        """Checks data and puts it into canonical form.

        Args:
            data: The graph or graphs.
            targets: Graph task: mask or row numbers of the graphs to join. Defaults to all.
            compact: As in ``canonical``; also searches for non-zero features, which engines need.

        Raises:
            GraphError: The data cannot be used, or it does not contain the targets.
        """
        task = infer_task(data)
        total = len(data) if task == "graph" else int(data.num_nodes)
        rows = target_rows(targets, total)
        if task == "graph":
            return cls(data, task, total, canonical_set([data[int(k)] for k in rows], keep_self_loops=True), rows)
        entries = find_entries(data.x) if compact else None
        finite = entries is not None and entries.finite
        graph = canonical(data, keep_self_loops=True, compact=compact, finite=finite)
        return cls(data, task, total, graph, np.arange(0), entries)

    def targets(self, targets: Any = None, self_loops: bool = False) -> Targets:
        """The targets and their graph. The same arguments return the same object.

        Args:
            targets: Mask or row numbers. Defaults to all.
            self_loops: Whether the division keeps self-loops.
        """
        rows = target_rows(targets, self.total)
        key = (rows.tobytes(), self_loops)
        if key not in self._kept:
            graph = self._whole if self.task == "node" else self._joined(rows)
            graph = graph if self_loops else graph.without_self_loops()
            positions = rows if self.task == "node" else np.arange(len(rows))
            ids, truth = _target_ids(self.data, rows, self.task), _target_truth(self.data, rows, self.task)
            encoding = getattr(self.data, "encoding", None)
            text = encoding if isinstance(encoding, str | None) else encoding.to_json()  # text, if read from disk
            made_by = "" if text is None else hashlib.sha256(text.encode()).hexdigest()
            self._kept[key] = Targets(self.task, graph, rows, positions, ids, truth, made_by)
        return self._kept[key]

    def _joined(self, rows: Rows) -> CanonicalGraph:
        """The graphs of some rows, joined; equal to ``canonical_set`` of these graphs."""
        if np.array_equal(rows, self._inside):
            return self._whole
        place = np.full(self.total, -1)
        place[self._inside] = np.arange(len(self._inside))
        if len(rows) == 0 or (place[rows] < 0).any():
            return canonical_set([self.data[int(k)] for k in rows], keep_self_loops=True)
        return self._whole.select(torch.from_numpy(place[rows]))


def prepared(data: Any, targets: Any = None, compact: bool = False) -> CanonicalData:
    """``data`` itself if it is a ``CanonicalData``, else ``CanonicalData.of`` with the same arguments."""
    return data if isinstance(data, CanonicalData) else CanonicalData.of(data, targets, compact)


def target_rows(targets: object, total: int) -> Rows:
    """Row numbers from a mask, row numbers, or ``None`` for all rows."""
    if targets is None:
        return np.arange(total, dtype=np.int64)
    if isinstance(targets, str):
        raise GraphError(f'targets="{targets}": pass the mask itself, such as data.test_mask, or row numbers.')
    if isinstance(targets, Tensor):  # numpy has no bfloat16
        targets = targets.detach().cpu()
        targets = targets.float() if targets.dtype == torch.bfloat16 else targets
    rows = np.asarray(targets)
    rows = rows.reshape(1) if rows.ndim == 0 else rows
    if rows.dtype == bool:
        if rows.shape != (total,):
            raise GraphError(f"the target mask has shape {rows.shape}, the data has {total} rows: they must agree.")
        return np.flatnonzero(rows).astype(np.int64)
    if rows.ndim != 1 or (rows.size and not np.issubdtype(rows.dtype, np.integer)):
        hint = " If it is a mask, make it one: targets.bool()." if rows.shape == (total,) else ""
        raise GraphError(
            f"targets must be a mask or row numbers, got an array of {rows.dtype} with shape {rows.shape}.{hint}"
        )
    rows = rows.astype(np.int64)
    outside = rows[(rows < 0) | (rows >= total)]
    if outside.size:
        raise GraphError(f"targets name row {outside[0]}, but the data has rows 0 to {total - 1}.")
    if len(np.unique(rows)) != len(rows):
        mask = len(rows) == total and set(np.unique(rows)) <= {0, 1}
        hint = " If 0 and 1 are meant as a mask, make it one: targets.bool()." if mask else ""
        raise GraphError(f"targets name a row twice: give each target once.{hint}")
    return rows


def _target_ids(data: Any, rows: Rows, task: Task) -> npt.NDArray[Any]:
    """Ids of the targets: from ``node_id`` if the data has it, else row numbers."""
    ids = None if task == "graph" else getattr(data, "node_id", None)
    if ids is None:
        return rows
    listed = listed_ids(ids)
    if isinstance(listed, np.ndarray) and listed.dtype == np.int64:  # canonical as they are
        return listed[rows]
    return id_array(listed[rows] if isinstance(listed, np.ndarray) else [listed[row] for row in rows.tolist()])


def _target_truth(data: Any, rows: Rows, task: Task) -> Rows | None:
    """True classes of the targets, -1 for a graph without a class; ``None`` if no target has one."""
    if task == "graph":
        known = graph_classes([data[int(k)] for k in rows]).numpy()
        return known if (known >= 0).any() else None
    y = getattr(data, "y", None)
    classes = None if y is None else class_numbers(y, int(data.num_nodes))
    return None if classes is None else classes.numpy()[rows]


def class_numbers(y: Any, total: int, what: str = "labels y") -> Tensor | None:
    """Labels as int64, shape ``[total]``; ``None`` for multi-label data.

    Shape ``[total, 1]`` and whole floats are accepted; NaN becomes -1, which means unknown. Raises GraphError, which
    calls the labels ``what``, if they are not one whole number for each of ``total`` rows.
    """
    try:
        labels = torch.as_tensor(y).detach().cpu()
    except (TypeError, ValueError, RuntimeError):
        raise GraphError(f"{what} are a {type(y).__name__}: expected a tensor with one class for each row.") from None
    labels = labels.squeeze(1) if labels.dim() == 2 and labels.size(1) == 1 else labels
    if labels.dim() != 1 and labels.size(0) == total:
        return None
    if labels.shape != (total,):
        raise GraphError(f"{what} have shape {tuple(labels.shape)}, but there are {total} rows: one class for each.")
    if labels.is_complex():
        raise GraphError(f"{what} are complex numbers: classes are whole numbers from 0 on.")
    if labels.is_floating_point():
        labels = torch.where(labels.isnan(), -1.0, labels)
        odd = (labels != labels.round()).nonzero().view(-1)
        if len(odd):
            raise GraphError(
                f"{what} are no classes: row {int(odd[0])} has {float(labels[odd[0]]):g}, and classes are whole "
                "numbers from 0 on. (Numbers to be predicted cannot be certified; leave y out if it is something else.)"
            )
    return labels.long()


def graph_classes(graphs: Iterable[Any]) -> Tensor:
    """Class of every graph, shape ``[num_graphs]``; -1 for graphs with no class or several classes.

    Raises:
        GraphError: A class is not a whole number.
    """
    given = [getattr(graph, "y", None) for graph in graphs]
    values = [torch.empty(0) if y is None else torch.as_tensor(y) for y in given]
    single = [float(value) if value.numel() == 1 else math.nan for value in values]
    classes = class_numbers(torch.tensor(single, dtype=torch.float64), len(single), "labels y of the graphs")
    assert classes is not None
    return classes


@dataclass(frozen=True)
class Entries:
    """The non-zero entries of a matrix, unless there are too many.

    Attributes:
        position: Position of each entry, counted row by row, ascending.
        value: Value of each entry.
        is_sparse: Whether all non-zero entries are listed; otherwise there are too many, and none is listed.
    """

    position: Rows
    value: Tensor
    is_sparse: bool = True

    @classmethod
    def of(cls, x: Tensor) -> Self:
        """The non-zero entries of a matrix, if a sparse product is worth it."""
        return cls.all_of(x, int(SPARSE_BELOW * x.numel()) if x.numel() else -1)

    @classmethod
    def all_of(cls, x: Tensor, most: float = math.inf) -> Self:
        """All non-zero entries; none if there are more than ``most``."""
        flat = x.detach().cpu().contiguous().view(-1)
        count, places, values = 0, [np.zeros(0, dtype=np.int64)], [flat[:0]]
        for first in range(0, len(flat), CHUNK):
            part = flat[first : first + CHUNK]
            # numpy compares twice as fast as torch, but it does not have all types.
            here = np.flatnonzero(part.numpy() != 0 if part.dtype in WIDE else (part != 0).numpy())
            values.append(part.index_select(0, torch.from_numpy(here)))  # while the chunk is in the cache
            places.append(here + first)
            count += len(here)
            if count > most:
                break
        few = count <= most
        return cls(np.concatenate(places if few else places[:1]), torch.cat(values if few else values[:1]), few)

    @property
    def finite(self) -> bool:
        """Whether all entries are listed and finite, so that the matrix is known to be finite."""
        return self.is_sparse and bool(torch.isfinite(self.value).all())


def find_entries(x: Any) -> Entries | None:
    """The non-zero entries of features as the user gave them; ``None`` if the features are not a dense CPU matrix."""
    usable = isinstance(x, Tensor) and x.layout == torch.strided and x.dim() == 2 and x.dtype in WIDE
    return Entries.of(x) if usable and x.device.type == "cpu" else None
