"""True classes in the forms in which data comes: whole numbers, one for each node or graph.

The entries of a feature matrix that are not zero, if these are few: found in one walk through the matrix.

Bag-of-words features are zeros but for one per cent. What is done with the others alone, a check or a product, costs
next to nothing; to find them takes as long as to read the matrix, so that is done once.

``CanonicalData`` data is checked and brought into canonical form once, and asked for its targets any number of times.

All that certifies works on ``Targets``: the canonical graph, the rows of the targets, and what is known about each.
"""

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
from agnncert.graphs.graph import (
    BLOCK,
    CanonicalGraph,
    Task,
    canonical,
    canonical_set,
    graph_digest,
    infer_task,
    listed_ids,
)


def class_numbers(y: Any, total: int, what: str = "labels y") -> Tensor | None:
    """Labels as int64, shape ``[total]``; ``None`` if there are several for each row, as in multi-label data.

    A column ``[total, 1]`` and floats that are whole numbers are taken as what they mean; NaN becomes -1, unknown.

    Args:
        y: The labels, a tensor or anything that becomes one.
        total: Number of nodes or graphs.
        what: What errors call them.

    Raises:
        GraphError: They are not one whole number for each row.
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
    """Class of every graph, shape ``[num_graphs]``; -1 where there is none, or more than one.

    Raises:
        GraphError: A class is no whole number.
    """
    values = [getattr(graph, "y", None) for graph in graphs]
    single = torch.tensor([math.nan if y is None else _only(y) for y in values], dtype=torch.float64)
    classes = class_numbers(single, len(values), "labels y of the graphs")
    assert classes is not None
    return classes


def _only(y: Any) -> float:
    """The one number in a tensor, an array or a list; NaN if there are several."""
    values = torch.as_tensor(y)
    return float(values) if values.numel() == 1 else math.nan


# Below this share of non-zeros a sparse product beats the dense one on a CPU.
SPARSE_BELOW = 0.1
ROWS_AT_ONCE = 2**18  # numbers that are looked at together: they stay in the processor's cache
_OF_NUMPY = (torch.float32, torch.float64)


@dataclass(frozen=True)
class Entries:
    """What is not zero in a matrix, or nothing if that is too much.

    Attributes:
        place: Where, counted row by row, ascending.
        value: What stands there.
        few: Whether these are all of them; else there are too many, and none is listed.
    """

    place: npt.NDArray[np.int64]
    value: Tensor
    few: bool = True

    @classmethod
    def of(cls, x: Tensor) -> Self:
        """The entries of a matrix, if they are few enough to gain from it."""
        most = int(SPARSE_BELOW * x.numel())
        some = x[:: max(1, x.size(0) // 64)] if x.numel() else x
        crowded = torch.count_nonzero(some) > SPARSE_BELOW / 2 * some.numel() and _are_more(x, most)
        found = cls.all_of(x[:0] if crowded else x, most)
        return found if x.numel() and not crowded and len(found.place) <= most else cls.all_of(x[:0], few=False)

    @classmethod
    def all_of(cls, x: Tensor, most: float = math.inf, few: bool = True) -> Self:
        """All entries, however many; the search ends when they are more than ``most``."""
        flat, count = x.detach().cpu().contiguous().view(-1), 0
        places, values = [np.zeros(0, dtype=np.int64)], [flat[:0]]
        for first in range(0, len(flat), ROWS_AT_ONCE):
            part = flat[first : first + ROWS_AT_ONCE]
            # numpy compares twice as fast as torch, but does not have all of its types
            here = np.flatnonzero(part.numpy() != 0 if part.dtype in _OF_NUMPY else (part != 0).numpy())
            values.append(part.index_select(0, torch.from_numpy(here)))  # as long as the block is in the cache
            places.append(here + first)
            count += len(here)
            if count > most:
                break
        return cls(np.concatenate(places), torch.cat(values), few)

    @property
    def finite(self) -> bool:
        """Whether the matrix is known to hold nothing but numbers: no NaN, no infinity."""
        return self.few and bool(torch.isfinite(self.value).all())


def _are_more(x: Tensor, most: int) -> bool:
    """Whether more than so many entries are not zero: counted, which is much faster than to list them."""
    flat, count = x.detach().cpu().contiguous().view(-1), 0
    for part in torch.split(flat, ROWS_AT_ONCE):
        here = part.numpy() != 0 if part.dtype in _OF_NUMPY else (part != 0).numpy()
        count += int(np.count_nonzero(here))
        if count > most:
            return True
    return False


def sought(x: Any) -> Entries | None:
    """The entries of features as a user gave them, if they can be used as they are."""
    usable = isinstance(x, Tensor) and x.layout == torch.strided and x.dim() == 2 and x.dtype in _OF_NUMPY
    return Entries.of(x) if usable and x.device.type == "cpu" else None


Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Targets:
    """The targets, and the canonical graph in which they stand.

    Attributes:
        task: ``"node"`` or ``"graph"``.
        graph: Node task: the whole graph. Graph task: the target graphs joined into one, in order.
        rows: Row of each target in the data, shape ``[n]``.
        places: Position of each target in ``graph``: its node, or its number among the joined graphs, shape ``[n]``.
        ids: Ids of the targets, or their rows where there are none, in canonical form: an array of int64 if that holds
            all of them, else of Python's integers and strings, shape ``[n]``.
        truth: True class of each, shape ``[n]``, negative where it is unknown; ``None`` if the data has none.
    """

    task: Task
    graph: CanonicalGraph
    rows: Rows
    places: Rows
    ids: npt.NDArray[Any]
    truth: Rows | None

    @property
    def id_kind(self) -> str:
        """``"node_id"`` if nodes keep their identity through changes, ``"row"`` if row numbers stand in."""
        return "node_id" if self.graph.stable_ids else "row"

    @cached_property
    def digest(self) -> str:
        """sha256 of the graph."""
        return graph_digest(self.graph)

    @cached_property
    def degree(self) -> Rows:
        """Distinct neighbours of each target node, or edges of each target graph."""
        nodes, of_graph = self.graph.num_nodes, self.task == "graph"
        batch = None if self.graph.batch is None else self.graph.batch.numpy()
        degree = np.zeros(len(self.rows) if of_graph else nodes, dtype=np.int64)
        for low, high in _distinct_pairs(self.graph.edge_index, nodes):
            if batch is not None:
                degree += np.bincount(batch[low], minlength=len(degree))
            else:
                degree += np.bincount(low, minlength=nodes) + np.bincount(high[high != low], minlength=nodes)
        return degree if of_graph else degree[self.rows]


@dataclass(frozen=True)
class CanonicalData:
    """A graph, or graphs, checked and brought into canonical form.

    Attributes:
        data: What it was made from.
        task: ``"node"`` or ``"graph"``.
        total: Number of nodes or graphs in the data.
        entries: The features that are not zero, if they were sought.
    """

    data: Any
    task: Task
    total: int
    _whole: CanonicalGraph  # canonical, self-loops kept: a division decides about those
    _inside: Rows  # graph task: which graphs of the data are joined in _whole
    entries: Entries | None = None
    _kept: dict[tuple[Any, ...], Targets] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, data: Any, targets: Any = None, compact: bool = False) -> Self:
        """Prepares data; of a set of graphs only the targets, if these are all that will be asked for.

        Args:
            data: The graph or graphs.
            targets: Graph task: mask or row numbers.
            compact: As in ``canonical``; and features that are not zero are sought, as they will be needed.

        Raises:
            GraphError: The data cannot be used as it is, or the targets are not in it.
        """
        task = infer_task(data)
        total = len(data) if task == "graph" else int(data.num_nodes)
        rows = target_rows(targets, total)
        if task == "node":
            entries = sought(data.x) if compact else None
            finite = entries is not None and entries.finite
            graph = canonical(data, keep_self_loops=True, compact=compact, finite=finite)
            return cls(data, task, total, graph, np.arange(0), entries)
        return cls(data, task, total, canonical_set([data[int(k)] for k in rows], keep_self_loops=True), rows)

    def targets(self, targets: Any = None, self_loops: bool = False) -> Targets:
        """The targets and their graph; the same object if it is asked for again with the same arguments.

        Args:
            targets: Mask or row numbers; all when not given.
            self_loops: Whether the division keeps self-loops.
        """
        rows = target_rows(targets, self.total)
        key = (rows.tobytes(), self_loops)
        if key not in self._kept:
            graph = self._whole if self.task == "node" else self._joined(rows)
            graph = graph if self_loops else graph.without_self_loops()
            places = rows if self.task == "node" else np.arange(len(rows))
            ids, truth = target_ids(self.data, rows, self.task), target_truth(self.data, rows, self.task)
            self._kept[key] = Targets(self.task, graph, rows, places, ids, truth)
        return self._kept[key]

    def _joined(self, rows: Rows) -> CanonicalGraph:
        """The graphs of some rows out of all that were joined: equal to joining these alone."""
        if np.array_equal(rows, self._inside):
            return self._whole
        place = np.full(self.total, -1)
        place[self._inside] = np.arange(len(self._inside))
        if len(rows) == 0 or (place[rows] < 0).any():
            return canonical_set([self.data[int(k)] for k in rows], keep_self_loops=True)
        return self._whole.select(torch.from_numpy(place[rows]))


def prepared(data: Any, targets: Any = None, compact: bool = False) -> CanonicalData:
    """Prepares data, unless that has been done already; arguments as in ``CanonicalData.of``."""
    return data if isinstance(data, CanonicalData) else CanonicalData.of(data, targets, compact)


def target_rows(targets: object, total: int) -> Rows:
    """Row numbers from a mask, an index, or ``None`` for all."""
    if targets is None:
        return np.arange(total, dtype=np.int64)
    if isinstance(targets, str):
        raise GraphError(f'targets="{targets}": pass the mask itself, such as data.test_mask, or row numbers.')
    if isinstance(targets, Tensor):  # some of whose types numpy does not have
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


def target_ids(data: Any, rows: Rows, task: Task) -> npt.NDArray[Any]:
    """Ids of the targets: those of ``node_id`` if there are any, else row numbers."""
    ids = None if task == "graph" else getattr(data, "node_id", None)
    if ids is None:
        return rows
    listed = listed_ids(ids)
    return id_array(listed[rows] if isinstance(listed, np.ndarray) else [listed[row] for row in rows.tolist()])


def target_truth(data: Any, rows: Rows, task: Task) -> Rows | None:
    """True classes of the targets, -1 for a graph without one; ``None`` if the data has none."""
    if task == "graph":
        known = graph_classes([data[int(k)] for k in rows]).numpy()
        return known if (known >= 0).any() else None
    y = getattr(data, "y", None)
    classes = None if y is None else class_numbers(y, int(data.num_nodes))
    return None if classes is None else classes.numpy()[rows]


def _distinct_pairs(edge_index: Tensor, num_nodes: int) -> Iterator[tuple[Rows, Rows]]:
    """The two ends of every pair of nodes that an edge joins, whichever way, some pairs at a time."""
    pairs = np.empty(edge_index.size(1), dtype=np.int64)
    blocks = [slice(first, first + BLOCK) for first in range(0, len(pairs), BLOCK)]
    for block in blocks:
        source, head = edge_index[:, block].numpy()
        pairs[block] = np.minimum(source, head).astype(np.int64) * num_nodes + np.maximum(source, head)
    pairs.sort()
    last = -1
    for block in blocks:
        part = pairs[block]
        yield np.divmod(part[np.diff(part, prepend=last) > 0], num_nodes)
        last = int(part[-1])
