"""The pairs that a certificate is about, as PyG names them: ``edge_label_index`` and ``edge_label``."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from agnncert.errors import DatasetError, GraphError
from agnncert.graphs.graph import CanonicalGraph, Task
from agnncert.graphs.targets import CanonicalData, Rows, Targets, target_rows
from agnncert.pairs.record import BETWEEN


@dataclass(frozen=True)
class PairTargets:
    """Some pairs of nodes of a graph.

    Attributes:
        nodes: The graph, and all its nodes.
        ends: Rows of both nodes of each pair, shape ``[n, 2]``.
        rows: Place of each pair in the list that it was chosen from, shape ``[n]``.
        truth: True class of each pair, negative where it is unknown, shape ``[n]``; None if there are no classes.
        values: The pair's own values (``edge_label_attr``), shape ``[n, A]``; A is 0 if there are none.
    """

    nodes: Targets
    ends: Rows
    rows: Rows
    truth: Rows | None
    values: Tensor

    @property
    def graph(self) -> CanonicalGraph:
        """The graph, without self-loops."""
        return self.nodes.graph

    @property
    def task(self) -> Task:
        """``"pair"``."""
        return "pair"

    @property
    def id_kind(self) -> str:
        """``"node_id"`` if nodes have stable ids, ``"row"`` if row numbers are the ids."""
        return self.nodes.id_kind

    @property
    def digests(self) -> dict[str, str]:
        """What a claim says about the data."""
        return self.nodes.digests

    @property
    def degree(self) -> None:
        """Pairs have no degree."""

    @cached_property
    def ids(self) -> npt.NDArray[Any]:
        """The ids of both nodes of each pair, as "u – v", shape ``[n]``."""
        named = [str(each) for each in self.nodes.ids.tolist()]
        return np.array([f"{named[u]}{BETWEEN}{named[v]}" for u, v in self.ends.tolist()], dtype=object)


def choose_pairs(data: CanonicalData, targets: Any) -> PairTargets:
    """Returns the pairs that ``targets`` names.

    Args:
        data: The graph. Its ``edge_label_index``, ``edge_label`` and ``edge_label_attr`` are read if it has them.
        targets: Pairs of rows of nodes, shape ``[2, n]``; or a mask or places in ``edge_label_index``. Defaults to all
            of ``edge_label_index``.

    Raises:
        GraphError: The pairs lie outside the graph, join a node to itself, or are named twice.
        DatasetError: The data lists no pairs, and none are given.
    """
    nodes = data.targets(None)
    _require_plain_ids(nodes)
    listed = listed_pairs(data.data)
    given = None if targets is None else torch.as_tensor(np.asarray(targets))
    if given is None or given.dim() != 2:
        if listed is None:
            raise DatasetError(
                "the data lists no pairs: pass targets=edge_label_index, shape [2, n], or set data.edge_label_index."
            )
        rows = target_rows(targets, len(listed))
        return _pairs(data, nodes, listed[rows], rows, known=True)
    if given.size(0) != 2 or given.is_floating_point() or given.dtype == torch.bool:
        raise GraphError(f"targets has shape {list(given.shape)}: pairs are row numbers of shape [2, n].")
    ends = given.long().T.numpy()
    places = _places(ends, listed, len(nodes.ids))
    if places is None:
        return _pairs(data, nodes, ends, np.arange(len(ends)), known=False)
    return _pairs(data, nodes, ends, places, known=True)


def pairs_of_file(data: CanonicalData, ends: Rows, rows: Rows) -> PairTargets:
    """Returns the pairs that a file names, at the places where ``certify`` would say that they stand.

    A pair may be listed more than once, each time with values of its own. The file says which of them was certified.

    Args:
        data: The graph, whose list may be another one than that of the file.
        ends: Rows of both nodes of each pair, all in the graph, shape ``[n, 2]``.
        rows: Places of the pairs, as the file states them, shape ``[n]``.
    """
    listed = listed_pairs(data.data)
    if listed is None or rows.max(initial=-1) >= len(listed) or not np.array_equal(listed[rows], ends):
        return choose_pairs(data, ends.T)
    return choose_pairs(data, rows)


def listed_pairs(data: Any) -> Rows | None:
    """Returns the pairs of ``edge_label_index``, shape ``[m, 2]``; None if the data has no such list.

    Raises:
        GraphError: It is no list of pairs.
    """
    index = getattr(data, "edge_label_index", None)
    if index is None:
        return None
    if not isinstance(index, Tensor) or index.dim() != 2 or index.size(0) != 2 or index.is_floating_point():
        raise GraphError("edge_label_index must hold row numbers of nodes, shape [2, m], as PyG has it.")
    return np.asarray(index.T.long().numpy())


def pair_classes(data: Any, number: int) -> Rows | None:
    """Returns the classes of ``edge_label``, shape ``[m]``; None if the data has none.

    Raises:
        GraphError: There is not one whole number for each pair.
    """
    label = getattr(data, "edge_label", None)
    if label is None:
        return None
    classes = np.asarray(label)
    if classes.shape != (number,) or (classes != np.floor(classes)).any():
        raise GraphError(f"edge_label must hold one class for each of {number} pairs, found shape {classes.shape}.")
    return classes.astype(np.int64)


def require_one_label_both_ways(data: CanonicalData) -> None:
    """Refuses (u, v) and (v, u) with the same values and different classes, for decisions without a direction.

    Raises:
        DatasetError: There are such pairs: a decision would be wrong about one of them.
    """
    listed = listed_pairs(data.data)
    classes = None if listed is None else pair_classes(data.data, len(listed))
    if listed is None or classes is None:
        return
    every = _pairs(data, data.targets(None), listed, np.arange(len(listed)), known=True)
    first_row: dict[tuple[int, int], int] = {}
    for row in np.flatnonzero(classes >= 0).tolist():
        u, v = listed[row].tolist()
        first = first_row.setdefault((min(u, v), max(u, v)), row)
        if classes[first] == classes[row] or not torch.equal(every.values[first], every.values[row]):
            continue
        names = [str(each) for each in every.nodes.ids[[u, v]].tolist()]
        raise DatasetError(
            f'the pairs in rows {first + 1} ("{names[1]}" and "{names[0]}") and {row + 1} ("{names[0]}" and '
            f'"{names[1]}") have the same nodes and values but different labels, and decisions have no direction: one '
            "of the two would always be wrong. Pass directed=True to PairVotes (--set directed=true), or correct a "
            "label."
        )


def _pairs(data: CanonicalData, nodes: Targets, ends: Rows, rows: Rows, known: bool) -> PairTargets:
    """Returns pairs that make sense; ``known`` says that ``rows`` are places in ``edge_label_index``."""
    _require_sense(ends, len(nodes.ids))
    listed = listed_pairs(data.data)
    classes = None
    values = torch.zeros((len(ends), 0))
    if known and listed is not None:
        classes = pair_classes(data.data, len(listed))
        attr = getattr(data.data, "edge_label_attr", None)
        if attr is not None:
            if len(attr) != len(listed) or not bool(attr.isfinite().all()):
                raise GraphError("edge_label_attr must hold finite values, one row for each pair of edge_label_index.")
            values = attr.reshape(len(listed), -1)[torch.from_numpy(rows)]
    return PairTargets(nodes, ends, rows, None if classes is None else classes[rows], values)


def _require_sense(ends: Rows, num_nodes: int) -> None:
    outside = ends[(ends < 0) | (ends >= num_nodes)]
    if outside.size:
        raise GraphError(f"a pair names row {outside[0]}, but the graph has rows 0 to {num_nodes - 1}.")
    same = ends[ends[:, 0] == ends[:, 1]]
    if len(same):
        raise GraphError(f"a pair joins row {same[0, 0]} to itself: a decision is about two nodes. Leave it out.")
    if len(np.unique(ends, axis=0)) != len(ends):
        raise GraphError("a pair is named twice: give each pair once. (u, v) and (v, u) are two pairs.")


def _require_plain_ids(nodes: Targets) -> None:
    odd = [each for each in nodes.ids.tolist() if isinstance(each, str) and BETWEEN in each]
    if odd:
        raise GraphError(
            f'the id {odd[0]!r:.60} contains "{BETWEEN}", which stands between the two ids of a pair: two pairs could '
            "have the same name. Use other ids."
        )


def _places(ends: Rows, listed: Rows | None, num_nodes: int) -> Rows | None:
    """Returns where pairs stand in a list, shape ``[n]``; None if one of them does not, or they are no row numbers."""
    if listed is None or not len(listed) or ends.min(initial=0) < 0 or ends.max(initial=0) >= num_nodes:
        return None
    keys = listed[:, 0] * num_nodes + listed[:, 1]
    order = np.argsort(keys, kind="stable")
    asked = ends[:, 0] * num_nodes + ends[:, 1]
    place = order[np.minimum(np.searchsorted(keys[order], asked), len(keys) - 1)]
    return place if bool((keys[place] == asked).all()) and len(np.unique(place)) == len(place) else None
