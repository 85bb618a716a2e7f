"""``load_npz``: graphs for node classification in the ``.npz`` files that others publish."""

import os
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.sparse import csr_matrix
from torch_geometric.data import Data
from torch_geometric.utils import remove_self_loops, to_undirected

from agnncert.datasets.splits import split
from agnncert.errors import DatasetError, suggests_arguments

Arrays = Mapping[str, npt.NDArray[Any]]
_FEATURES = ("x", "features", "node_features")
_LABELS = ("labels", "y", "node_labels")
_EDGES = ("edge_index", "edges")
_PARTS = tuple(f"{name}_{part}" for name in ("adj", "attr") for part in ("data", "indices", "indptr", "shape"))
_READ = frozenset((*_FEATURES, "attr_matrix", *_LABELS, *_EDGES, *_PARTS))  # names of rows may be pickled: not read


@suggests_arguments
def load_npz(
    file: str | os.PathLike[str],
    *,
    seed: int = 0,
    undirected: bool = True,
    per_class: int | None = None,
    by: str | None = None,
) -> Data:
    """Loads a graph from an ``.npz`` file, and splits its nodes.

    Two layouts are read. Sparse matrices in parts, ``adj_data``, ``adj_indices``, ``adj_indptr``, ``adj_shape``, the
    same for ``attr`` (or ``attr_matrix``), and ``labels``. Or plain arrays: ``x`` (``features``, ``node_features``),
    ``edge_index`` (``edges``; with shape ``[2, n]`` or ``[n, 2]``) and ``y`` (``labels``, ``node_labels``).
    Features are taken as they stand; ``load_dataset("cora-ml")`` keeps only whether a word occurs.

    Args:
        file: The file. Pickled objects are never read: arrays of them are refused, or left out if nothing needs them.
        seed: Seed of the split, as in ``split``. Defaults to 0.
        undirected: Whether every edge leads both ways. Defaults to True. Self-loops are removed.
        per_class: As in ``split``. Defaults to 30/10/60 percent of the nodes.
        by: As in ``split``: ``"id"`` or ``"class"``.

    Returns:
        A ``Data`` with ``x``, ``edge_index``, ``y``, ``node_id`` (the rows of the file) and masks.

    Raises:
        DatasetError: There is no such file, or it has another layout; the message says what was found.
    """
    arrays, names = _read_arrays(Path(file))
    try:
        x = _features(arrays)
        edge_index = _edges(arrays)
        y = torch.from_numpy(_named(arrays, _LABELS).astype(np.int64))
    except KeyError as error:
        raise DatasetError(
            f"{file} has no {error.args[0]}: it holds {', '.join(sorted(names))}. load_npz.__doc__ says what is read."
        ) from None
    if not len(x) == len(y) > 0:
        raise DatasetError(f"{file} has {len(x)} rows of features and {len(y)} labels: expected one for each node.")
    if edge_index.numel() and not 0 <= int(edge_index.min()) <= int(edge_index.max()) < len(x):
        raise DatasetError(f"{file} joins node {int(edge_index.max())}, but it has {len(x)} rows of features.")
    edge_index, _ = remove_self_loops(edge_index)
    if undirected:
        edge_index = to_undirected(edge_index, num_nodes=len(x))
    data = Data(x=x, edge_index=edge_index, y=y, node_id=torch.arange(len(x)))
    masked = split(data, seed=seed, per_class=per_class, by=by)
    assert isinstance(masked, Data)
    return masked


def _read_arrays(file: Path) -> tuple[Arrays, list[str]]:
    """Returns the arrays that are used, and the names of all in the file."""
    if not file.is_file():
        raise DatasetError(f"there is no file {file}.")
    try:
        with np.load(file, allow_pickle=False) as stored:
            if not isinstance(stored, np.lib.npyio.NpzFile):
                raise DatasetError(f"{file} holds one array: expected an .npz file with several.")
            return {name: stored[name] for name in stored.files if name in _READ}, stored.files
    except ValueError as error:
        raise DatasetError(f"{file} cannot be read: {error}") from None
    except (OSError, EOFError, zipfile.BadZipFile) as error:
        raise DatasetError(f"{file} is no .npz file, or is damaged: {error}") from None


def _features(arrays: Arrays) -> torch.Tensor:
    is_sparse = "attr_data" in arrays
    matrix = _sparse(arrays, "attr").toarray() if is_sparse else _named(arrays, ("attr_matrix", *_FEATURES))
    if matrix.ndim != 2:
        raise DatasetError(f"features have shape {matrix.shape}: expected a row for each node.")
    return torch.from_numpy(matrix.astype(np.float32))


def _edges(arrays: Arrays) -> torch.Tensor:
    if "adj_data" in arrays:
        ends = np.stack(_sparse(arrays, "adj").nonzero())
    else:
        ends = _named(arrays, _EDGES)
        if ends.ndim == 2 and ends.shape[1] == 2 and ends.shape[0] != 2:
            ends = ends.T
    if ends.ndim != 2 or ends.shape[0] != 2:
        raise DatasetError(f"edges have shape {ends.shape}: expected [2, num_edges] or [num_edges, 2].")
    return torch.from_numpy(np.ascontiguousarray(ends, dtype=np.int64))


def _sparse(arrays: Arrays, name: str) -> Any:
    parts = tuple(_named(arrays, (f"{name}_{part}",)) for part in ("data", "indices", "indptr", "shape"))
    data, indices, indptr, shape = parts
    try:
        return csr_matrix((data, indices, indptr), shape=tuple(shape.tolist()))
    except (ValueError, IndexError) as error:
        raise DatasetError(f"{name}_data, {name}_indices and {name}_indptr are no sparse matrix: {error}.") from None


def _named(arrays: Arrays, names: tuple[str, ...]) -> npt.NDArray[Any]:
    """Returns the first of several arrays that is there."""
    for name in names:
        if name in arrays:
            return arrays[name]
    raise KeyError(" or ".join(names))
