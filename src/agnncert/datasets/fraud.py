"""Graphs with a real adversary: Cresci-15, Ethereum phishing, Bitcoin-OTC and Tolokers.

Each reader takes the files and the seed of the split. Direction, sign and amounts are in ``edge_attr``,
see ``both_directions``, and ``edge_names`` has the names of its columns. Every value is transformed by itself, with
constants: with a statistic over all edges, one added edge would change the values of every other.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import remove_self_loops, to_undirected

from agnncert.datasets.catalog import CRESCI
from agnncert.datasets.drawn_splits import BY_CLASS
from agnncert.datasets.encoding import Clock, limit_of
from agnncert.datasets.relations import both_directions
from agnncert.datasets.splits import NODE_FRACTIONS, drawn_parts, node_columns, set_masks, stratified_split
from agnncert.errors import DatasetError, did_you_mean, missing

if TYPE_CHECKING:
    from pandas import DataFrame
else:
    DataFrame = Any

Array = npt.NDArray[Any]
YEAR = 31_556_952.0  # seconds
ETHEREUM_FRACTIONS = (6 / 7, 1 / 7)  # of the source's training part: training and validation
ZERO = {"ethereum-phishing": 1_514_764_800.0, "bitcoin-otc": 1_356_998_400.0}  # 2018-01-01 and 2013-01-01


def read_fraud(name: str, files: Sequence[Path], seed: int) -> Data:
    """Reads the dataset ``name`` from its files, in the order of the catalogue."""
    readers = {
        "cresci-15": _read_cresci,
        "ethereum-phishing": _read_ethereum,
        "bitcoin-otc": _read_bitcoin_otc,
        "tolokers": _read_tolokers,
    }
    return readers[name](files, seed)


def split_of_fraud(data: Data, seed: int, by: str) -> Data:
    """Draws what the source leaves open of the split of ``read_fraud``, by ids or by class, and returns the data."""
    if data.name == "tolokers":
        return data  # all parts are the source's
    if data.name == "ethereum-phishing":
        training_y = torch.where(data.train_mask | data.val_mask, data.y, -1)
        train, val = drawn_parts(training_y, ETHEREUM_FRACTIONS, seed, by, lambda: node_columns(data))
        return set_masks(data, (train, val, data.test_mask.nonzero().view(-1)), by)
    return set_masks(data, drawn_parts(data.y, NODE_FRACTIONS, seed, by, lambda: node_columns(data)), by)


def trusted_edges(data: Data, trusted: str) -> Tensor:
    """Returns a mask of trusted edges: those where a column is positive, or before a number or date.

    An edge that stands for one in each direction is trusted if both are.

    Args:
        data: A graph with ``edge_names``, of ``both_directions``, whose first value is 1 where there is an edge.
        trusted: Name of a column of one direction, or as in ``"time<2018-03-17"``.

    Raises:
        DatasetError: There is no such column, or it is compared with something else.
    """
    column, less_than, limit = (part.strip() for part in trusted.partition("<"))
    names = list(getattr(data, "edge_names", None) or ())
    if f"{column}, back" not in names:
        one_way = [name for name in names if f"{name}, back" in names]
        hint = did_you_mean(column, one_way) if one_way else "its edges have no values by name."
        raise DatasetError(f'trusted="{trusted}": {getattr(data, "name", "the data")} has no column "{column}": {hint}')
    is_there = data.edge_attr[:, [0, len(names) // 2]] > 0
    values = data.edge_attr[:, [names.index(column), names.index(f"{column}, back")]]
    is_trusted = values > 0
    if less_than:
        is_trusted = values < limit_of(trusted, limit, _clock_of(data, column))
    in_both_directions: Tensor = (is_trusted | ~is_there).all(dim=1)
    return in_both_directions


def _clock_of(data: Data, column: str) -> Clock | None:
    """Returns how a column counts time, or ``None`` if it does not."""
    name = getattr(data, "name", "")
    if column != "time" or name not in ZERO:
        return None
    return Clock(start=ZERO[name], unit=YEAR)


def assemble_cresci(folder: Path) -> None:
    """Makes ``cresci15.npz`` of the tensors of the source, which are in the same folder."""
    types = {"numerical": "f4", "categorical": "f4", "label": "i1", "edge_type": "i1"}
    arrays = {}
    for name, file in CRESCI.items():
        array = torch.load(folder / file, weights_only=True).numpy()
        if name == "edges":
            array = array.T
        arrays[name] = array.astype(types.get(name, "i4"))
    np.savez_compressed(folder / "cresci15.npz", **arrays)


def _read_csv(file: Path, header: int | None = 0) -> DataFrame:
    try:
        import pandas as pd
    except ModuleNotFoundError as error:
        raise missing(error.name, "reading tables") from None
    return pd.read_csv(file, header=header)


def _read_cresci(files: Sequence[Path], seed: int) -> Data:
    """Reads Twitter accounts, joined if one follows the other."""
    with np.load(files[0]) as arrays:
        x = np.concatenate([arrays["numerical"], arrays["categorical"]], axis=1)
        y = arrays["label"].astype(np.int64)
        ends = np.unique(arrays["edges"].astype(np.int64), axis=0)
    data = _graph(x, y, ids=np.arange(len(y)), classes=["genuine", "bot"])
    _set_directed_edges(data, ends, {"follows": np.ones(len(ends), np.float32)})
    return set_masks(data, stratified_split(data.y, NODE_FRACTIONS, seed), BY_CLASS)


def _read_ethereum(files: Sequence[Path], seed: int) -> Data:
    """Reads Ethereum addresses, joined by payments.

    The source's test part is kept. A seventh of its training part is for validation.
    """
    edges = _read_csv(files[0])
    nodes = _read_csv(files[1]).sort_values("id")
    ids = nodes["id"].to_numpy(np.int64)
    y = nodes["label"].fillna(-1).to_numpy(np.int64)
    data = _graph(np.ones((len(y), 1)), y, ids, classes=["other", "phishing"])
    ends = np.searchsorted(ids, edges[["from", "to"]].to_numpy(np.int64))
    columns = {
        "payment": np.ones(len(edges)),
        "amount": np.arcsinh(edges["amount"]),
        "transactions": np.log(edges["n_transactions"]),
        "time": (edges["timestamp"] - ZERO["ethereum-phishing"]) / YEAR,
    }
    _set_directed_edges(data, ends, columns)
    training_y = torch.where(torch.tensor(nodes["is_train"].to_numpy(bool)), data.y, -1)
    train, val = stratified_split(training_y, ETHEREUM_FRACTIONS, seed)
    test = torch.from_numpy(np.flatnonzero(nodes["is_test"].to_numpy(bool)))
    return set_masks(data, (train, val, test), BY_CLASS)


def _read_bitcoin_otc(files: Sequence[Path], seed: int) -> Data:
    """Reads the Bitcoin-OTC traders, joined by their ratings of each other."""
    ratings = _read_csv(files[0], header=None)
    truth = _read_csv(files[1], header=None)
    ids, ends = np.unique(ratings[[0, 1]].to_numpy(np.int64), return_inverse=True)
    y = np.full(len(ids), -1)
    y[np.searchsorted(ids, truth[0])] = (truth[1] < 0).to_numpy(np.int64)
    data = _graph(np.ones((len(y), 1)), y, ids, classes=["trusted", "fraudulent"])
    columns = {
        "rated": np.ones(len(ratings)),
        "rating": ratings[2] / 10,
        "time": (ratings[3] - ZERO["bitcoin-otc"]) / YEAR,
    }
    _set_directed_edges(data, ends.reshape(-1, 2), columns)
    return set_masks(data, stratified_split(data.y, NODE_FRACTIONS, seed), BY_CLASS)


def _read_tolokers(files: Sequence[Path], seed: int) -> Data:
    """Reads crowd workers, joined if they worked on the same tasks. Seed k is the source's split k modulo 10."""
    with np.load(files[0]) as arrays:
        x = arrays["node_features"]
        y = arrays["node_labels"]
        ends = arrays["edges"]
        masks = [arrays[f"{part}_masks"][seed % 10] for part in ("train", "val", "test")]
    data = _graph(x, y, ids=np.arange(len(y)), classes=["not banned", "banned"])
    data.edge_index = to_undirected(remove_self_loops(_edge_index(ends))[0], num_nodes=len(y))
    return set_masks(data, [torch.from_numpy(np.flatnonzero(mask)) for mask in masks])


def _graph(x: Array, y: Array, ids: Array, classes: list[str]) -> Data:
    """Returns a graph without edges."""
    data = Data(x=torch.tensor(x).float(), y=torch.tensor(y).long(), node_id=torch.tensor(ids))
    data.class_names = classes
    return data


def _edge_index(ends: Array) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(ends.T)).long()


def _set_directed_edges(data: Data, ends: Array, columns: dict[str, Any]) -> None:
    """Gives the graph its edges in both directions, with their values as ``edge_attr``.

    Args:
        data: The graph.
        ends: Rows of src and dst of each edge, shape ``[m, 2]``.
        columns: Values of each edge, by name.
    """
    values = torch.from_numpy(np.stack(list(columns.values()), axis=1)).float()
    data.edge_index, data.edge_attr = both_directions(_edge_index(ends), values, data.num_nodes)
    data.edge_names = [*columns, *(f"{name}, back" for name in columns)]
