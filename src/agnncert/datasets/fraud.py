"""Graphs with a real adversary: Cresci-15, Ethereum phishing, Bitcoin-OTC and Tolokers.

Each reader takes the folder of the files and the seed of the split. Direction, sign and amounts are in ``edge_attr``,
see ``both_directions``, and ``edge_names`` has the names of its columns. Every value is transformed by itself, with
constants: with a statistic over all edges, one added edge would change the values of every other.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch_geometric.data import Data
from torch_geometric.utils import remove_self_loops, to_undirected

from agnncert.datasets.catalog import CRESCI
from agnncert.datasets.encoding import limit_of
from agnncert.datasets.relations import both_directions
from agnncert.datasets.splits import NODE_FRACTIONS, set_masks, stratified_split
from agnncert.errors import DatasetError, did_you_mean, missing

Array = npt.NDArray[Any]
YEAR = 31_556_952.0  # seconds
ZERO = {"ethereum-phishing": 1_514_764_800.0, "bitcoin-otc": 1_356_998_400.0}  # 2018-01-01 and 2013-01-01


def read_fraud(name: str, files: Sequence[Path], seed: int) -> Data:
    """The dataset ``name`` from its files, in the order of the catalogue."""
    readers = {
        "cresci-15": _cresci, "ethereum-phishing": _ethereum, "bitcoin-otc": _otc, "tolokers": _tolokers,
    }  # fmt: skip
    return readers[name](files, seed)


def trusted_edges(data: Data, trusted: str) -> torch.Tensor:
    """Which edges are trusted: those where a column is positive or before a number or date, in each direction that is.

    Args:
        data: A graph with ``edge_names``, of ``both_directions``, whose first value is 1 where there is an edge.
        trusted: Name of a column of one direction, or as in ``"time<2018-03-17"``.

    Raises:
        DatasetError: There is no such column, or it is compared with something else.
    """
    column, before, limit = (part.strip() for part in trusted.partition("<"))
    names = list(getattr(data, "edge_names", None) or ())
    if f"{column}, back" not in names:
        own = [name for name in names if f"{name}, back" in names]
        hint = did_you_mean(column, own) if own else "its edges have no values by name."
        raise DatasetError(f'trusted="{trusted}": {getattr(data, "name", "the data")} has no column "{column}": {hint}')
    there = data.edge_attr[:, [0, len(names) // 2]] > 0
    values = data.edge_attr[:, [names.index(column), names.index(f"{column}, back")]]
    clock = (ZERO[data.name], YEAR) if column == "time" and getattr(data, "name", "") in ZERO else None
    held = values < limit_of(trusted, limit, clock) if before else values > 0
    both: torch.Tensor = (held | ~there).all(dim=1)
    return both


def assemble_cresci(folder: Path) -> None:
    """Makes ``cresci15.npz`` of the tensors of the source, which are in the same folder."""
    arrays = {name: torch.load(folder / file, weights_only=True).numpy() for name, file in CRESCI.items()}
    types = {"numerical": "f4", "categorical": "f4", "label": "i1", "edge_type": "i1"}
    arrays["edges"] = arrays["edges"].T
    np.savez_compressed(
        folder / "cresci15.npz", **{name: array.astype(types.get(name, "i4")) for name, array in arrays.items()}
    )


def _table(file: Path, header: int | None = 0) -> Any:
    try:
        import pandas as pd
    except ModuleNotFoundError as error:
        raise missing(error.name, "reading tables") from None
    return pd.read_csv(file, header=header)


def _cresci(files: Sequence[Path], seed: int) -> Data:
    """Twitter accounts that follow each other."""
    with np.load(files[0]) as arrays:
        x = np.concatenate([arrays["numerical"], arrays["categorical"]], axis=1)
        y, ends = arrays["label"].astype(np.int64), np.unique(arrays["edges"].astype(np.int64), axis=0)
    follows = np.ones((len(ends), 1), np.float32)
    data = _graph(x, y, np.arange(len(y)), ends, follows, ["follows"], ["genuine", "bot"])
    return set_masks(data, stratified_split(data.y, NODE_FRACTIONS, seed))


def _ethereum(files: Sequence[Path], seed: int) -> Data:
    """Addresses and payments. The source's test part is kept; a seventh of its training part is for validation."""
    edges, nodes = (_table(file) for file in files)
    nodes = nodes.sort_values("id")
    columns = [
        np.ones(len(edges)), np.arcsinh(edges["amount"]), np.log(edges["n_transactions"]),
        (edges["timestamp"] - ZERO["ethereum-phishing"]) / YEAR,
    ]  # fmt: skip
    values, y = np.stack(columns, axis=1), nodes["label"].fillna(-1).to_numpy(np.int64)
    ids, names = nodes["id"].to_numpy(np.int64), ["payment", "amount", "transactions", "time"]
    ends = np.searchsorted(ids, edges[["from", "to"]].to_numpy(np.int64))
    data = _graph(np.ones((len(y), 1)), y, ids, ends, values, names, ["other", "phishing"])
    learned = torch.where(torch.tensor(nodes["is_train"].to_numpy(bool)), data.y, -1)
    train, val = stratified_split(learned, (6 / 7, 1 / 7), seed)
    test = torch.from_numpy(np.flatnonzero(nodes["is_test"].to_numpy(bool)))
    return set_masks(data, (train, val, test))


def _otc(files: Sequence[Path], seed: int) -> Data:
    """Traders and their ratings of each other."""
    ratings, truth = (_table(file, header=None) for file in files)
    ids, ends = np.unique(ratings[[0, 1]].to_numpy(np.int64), return_inverse=True)
    columns = [np.ones(len(ratings)), ratings[2] / 10, (ratings[3] - ZERO["bitcoin-otc"]) / YEAR]
    y = np.full(len(ids), -1)
    y[np.searchsorted(ids, truth[0])] = (truth[1] < 0).to_numpy(np.int64)
    ends, names = ends.reshape(-1, 2), ["rated", "rating", "time"]
    data = _graph(np.ones((len(y), 1)), y, ids, ends, np.stack(columns, axis=1), names, ["trusted", "fraudulent"])
    return set_masks(data, stratified_split(data.y, NODE_FRACTIONS, seed))


def _tolokers(files: Sequence[Path], seed: int) -> Data:
    """Crowd workers who worked on the same tasks. Seed k is the source's split k modulo 10."""
    with np.load(files[0]) as arrays:
        x, y, ends = arrays["node_features"], arrays["node_labels"], arrays["edges"]
        masks = [arrays[f"{part}_masks"][seed % 10] for part in ("train", "val", "test")]
    parts = [torch.from_numpy(np.flatnonzero(mask)) for mask in masks]
    data = _graph(x, y, np.arange(len(y)), ends, None, [], ["not banned", "banned"])
    return set_masks(data, parts)


def _graph(
    x: Array, y: Array, ids: Array, ends: Array, values: Array | None, names: list[str], classes: list[str]
) -> Data:
    edge_index = torch.from_numpy(np.ascontiguousarray(ends.T)).long()
    data = Data(x=torch.tensor(x).float(), y=torch.tensor(y).long(), node_id=torch.tensor(ids))
    if values is None:
        data.edge_index = to_undirected(remove_self_loops(edge_index)[0], num_nodes=len(y))
    else:
        data.edge_index, data.edge_attr = both_directions(edge_index, torch.from_numpy(values).float(), len(y))
        data.edge_names = [*names, *(f"{name}, back" for name in names)]
    data.class_names = classes
    return data
