"""From checked columns to tensors: nodes, edges, classes and splits of a user's tables."""

import logging
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from agnncert.datasets.columns import Table, shortlist
from agnncert.datasets.splits import stratified_split
from agnncert.errors import did_you_mean
from agnncert.hashing import encode_ids

_log = logging.getLogger(__name__)

Key = tuple[str, str]  # graph and node; in the node task the graph is ""
_PARTS = {"train": 0, "val": 1, "valid": 1, "validation": 1, "test": 2}


def node_rows(table: Table, column: str, owner: str | None) -> dict[Key, int]:
    """Row of every node; ``owner`` is the column that says which graph a row belongs to, if many."""
    if len(table) == 0:
        raise table.error("there is a header but no row: a graph needs nodes.")
    table.require(column)
    keys = list(zip(_owners(table, owner), table.filled(column), strict=True))
    require_unique(table, column, [node if owner is None else f"{node} of {graph}" for graph, node in keys])
    return {key: row for row, key in enumerate(keys)}


def edge_rows(
    table: Table,
    ends: tuple[str, str],
    weight: str | None,
    row_of: dict[Key, int],
    owner: str | None,
    directed: bool,
) -> tuple[Tensor, Tensor | None]:
    """Edges as row numbers of their nodes, simple and sorted, and their weights if there is such a column."""
    owners = _owners(table, owner)
    pairs, unknown = [], []
    for column in ends:
        table.require(column)
        keys = list(zip(owners, table.filled(column), strict=True))
        unknown += [(k, f'"{key[1]}" (row {k})') for k, key in enumerate(keys, start=1) if key not in row_of]
        pairs.append([row_of.get(key, -1) for key in keys])
    if unknown:
        where = "the table of nodes" if owner is None else "that graph in the table of nodes"
        raise table.error(
            f"{len(unknown)} end(s) of edges are ids that are not in {where}: "
            f"{shortlist([text for _, text in sorted(unknown)])}. "
            "Add the nodes, or remove the edges."
        )
    weights = table.numbers([weight], "weight")[:, 0] if weight else np.ones(len(table), np.float32)
    edges, weights = _simple(table, np.array(pairs, dtype=np.int64), weights, directed)
    return torch.from_numpy(edges), torch.from_numpy(weights) if weight else None


def class_rows(table: Table, column: str) -> tuple[Tensor, list[str]]:
    """Class of every row (-1: unlabelled) and the names of the classes, in order."""
    entries = table.text(column)
    found = {entry for entry in entries if entry != ""}
    if not found:
        raise table.error(f'column "{column}" is empty. Pass label=None if there are no labels.')
    numeric = all(entry.isascii() and entry.removeprefix("-").isdigit() for entry in found)
    names = sorted(found, key=int) if numeric else sorted(found)
    index = {entry: k for k, entry in enumerate(names)}
    return torch.tensor([index.get(entry, -1) for entry in entries]), names


def split_rows(
    table: Table, column: str, y: Tensor, fractions: Sequence[float], seed: int
) -> tuple[Tensor, ...]:
    """Rows of the training, validation and test part: as the column says, or drawn if it is not there."""
    if column not in table.columns:
        return stratified_split(y, fractions, seed)
    entries = [entry.strip().lower() for entry in table.text(column)]
    odd = sorted(set(entries) - _PARTS.keys() - {""})
    if odd:
        raise table.error(
            f'column "{column}" says "{odd[0]}": {did_you_mean(odd[0], ("train", "val", "test"))}'
        )
    part_of = torch.tensor([_PARTS.get(entry, -1) for entry in entries])
    blind = (((part_of == 0) | (part_of == 1)) & (y < 0)).nonzero().view(-1) + 1
    if len(blind):
        raise table.error(
            f"{shortlist(blind.tolist(), 'row')}: for training or validation but without a label. "
            "Label them, or leave their split empty."
        )
    return tuple((part_of == k).nonzero().view(-1) for k in range(3))


def require_unique(table: Table, column: str, entries: Sequence[str]) -> None:
    """Raises, naming a few, if an entry occurs twice."""
    first: dict[str, int] = {}
    double = [
        (entry, row) for row, entry in enumerate(entries, start=1) if first.setdefault(entry, row) != row
    ]
    if double:
        shown = [f'"{entry}" (rows {first[entry]} and {row})' for entry, row in double]
        raise table.error(
            f'{len(double)} id(s) in column "{column}" occur twice: {shortlist(shown)}. An id must stand for '
            "one thing only, or one could pass for another."
        )


def node_ids(names: list[str]) -> Tensor | list[str]:
    """Ids as a tensor of numbers if all of them are whole numbers, else as text."""
    encoded = encode_ids(names)
    return torch.from_numpy(encoded) if isinstance(encoded, np.ndarray) else names


def _owners(table: Table, owner: str | None) -> list[str]:
    return [""] * len(table) if owner is None else table.filled(owner)


def _simple(
    table: Table, pairs: npt.NDArray[np.int64], weights: npt.NDArray[np.float32], directed: bool
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float32]]:
    """Without self-loops and repetitions, both ways unless directed, sorted."""
    rows = np.flatnonzero(pairs[0] != pairs[1])
    if len(rows) < len(table):
        _log.warning("%s: %d self-loop(s) left out", table.path.name, len(table) - len(rows))
    pairs, weights = pairs[:, rows], weights[rows]
    if not directed:
        pairs = np.concatenate([pairs, pairs[::-1]], axis=1)
        weights, rows = np.tile(weights, 2), np.tile(rows, 2)
    order = np.lexsort([rows, pairs[1], pairs[0]])
    pairs, weights, rows = pairs[:, order], weights[order], rows[order]
    repeated = (pairs[:, 1:] == pairs[:, :-1]).all(axis=0)
    conflict = np.flatnonzero(repeated & (weights[1:] != weights[:-1]))
    if len(conflict):
        first = int(conflict[0])
        tail = "" if directed else ", or pass directed=True if the two directions differ"
        raise table.error(
            f"rows {rows[first] + 1} and {rows[first + 1] + 1} join the same two nodes with different "
            f"weights. Keep one of them{tail}."
        )
    keep = np.flatnonzero(np.concatenate([np.ones(min(1, len(rows)), bool), ~repeated]))
    return np.ascontiguousarray(pairs[:, keep]), weights[keep]
