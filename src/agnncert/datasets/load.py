"""``load_dataset``: loads a graph with labels, ids and splits by name.

The public datasets are read with PyTorch Geometric's classes, which download missing files. This module adds error
messages for missing files, checks the checksum of pickles before they are read, and compares the size of a dataset
with the published one. Two datasets need no download: they are made of the handwritten digits in scikit-learn.
"""

import hashlib
import logging
import os
import urllib.error
import urllib.request
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import torch_geometric.datasets as pyg
from torch_geometric.data import Data
from torch_geometric.utils import remove_self_loops, to_undirected

from agnncert.addons import addons
from agnncert.datasets.catalog import PICKLES_SHA256, SOURCES, DatasetInfo, Source, dataset_info, default_root
from agnncert.datasets.splits import GRAPH_FRACTIONS, NODE_FRACTIONS, GraphSet, set_masks, stratified_split
from agnncert.errors import DatasetError, MissingPackage, missing
from agnncert.graphs.disk import is_graph_folder, open_graph

_log = logging.getLogger(__name__)

_CONNECT_SECONDS = 10

# Features that span orders of magnitude (from -538 to 798 here) are compressed entry by entry. A scaler fitted on the
# whole dataset would let one attacked graph change the features of all others.
_COMPRESSED = ("proteins",)

NEIGHBOURS = 6  # of every image in digits-knn
LIT = 4  # a pixel of intensity 4 to 16 is lit in digits-grid
SIDE = 8


def load_dataset(name: str, root: str | os.PathLike[str] | None = None, seed: int = 0) -> Data | GraphSet:
    """Loads a dataset by name; ``agnncert.datasets.DATASETS`` lists them.

    Edges are undirected: each pair once in both directions, sorted, without self-loops. Features are as published
    (Cora-ML, Amazon-C and Coauthor-Physics: zeros and ones, as PyG reads them). They are not scaled: with a statistic
    over all nodes, such as a column's mean, one attacked node would change the input of every other.

    Args:
        name: For example ``"cora-ml"`` (node classification) or ``"proteins"`` (graph classification).
        root: Folder with the datasets, in PyTorch Geometric's layout. Defaults to a folder in the user's cache.
            Missing files are downloaded.
        seed: Seed of the split: stratified, 30/10/60 % of the nodes or 50/20/30 % of the graphs. For ``"big-vul"``
            80/10/10 %, and the seed of the sampled functions. ``"amazon2m"`` has its published split; for the synthetic
            ``"amazon2m-like"`` the seed of the generated graph.

    Returns:
        A ``Data`` with ``train_mask``, ``val_mask``, ``test_mask``, ``node_id``, ``num_classes`` and ``name``, or a
        ``GraphSet``, whose graphs have a ``node_id`` each.

    Raises:
        DatasetError: The name is unknown, or files are missing and cannot be downloaded.
        MissingPackage: The dataset belongs to an add-on package that is not installed.

    Example:
        >>> data = load_dataset("digits-knn")
        >>> data.num_nodes, data.num_classes, int(data.train_mask.sum())
        (1797, 10, 539)
    """
    info = dataset_info(name)
    folder = default_root() if root is None else Path(root)
    if info.addon:
        point = addons("agnncert.datasets").get(name)
        if point is None:
            raise MissingPackage(f"{name} needs the package {info.addon}, which is not installed.", name=info.addon)
        return point.load()(folder, seed)
    if name.startswith("amazon2m"):
        return _large(name, folder, seed)
    if info.download:
        graphs = [_simple(graph) for graph in load_public(info, folder)]
        for graph in graphs if name in _COMPRESSED else ():
            graph.x = torch.asinh(graph.x)
    else:
        graphs = [digits_knn()] if name == "digits-knn" else digits_grid()
    if info.task == "node":
        data = graphs[0]
        data.name, data.num_classes = info.name, info.classes
        return set_masks(data, stratified_split(data.y, NODE_FRACTIONS, seed))
    y = torch.tensor([int(graph.y) for graph in graphs])
    train, val, test = stratified_split(y, GRAPH_FRACTIONS, seed)
    return GraphSet(graphs, train, val, test, num_classes=info.classes, name=info.name)


def _large(name: str, root: Path, seed: int) -> Data:
    """A graph on disk: the real one, or a synthetic one, which is generated at the first call."""
    from agnncert.datasets.large import generate_amazon2m_like, load_amazon2m

    if name == "amazon2m":
        return load_amazon2m(root)
    place = root / f"{name}-seed{seed}"
    if not is_graph_folder(place):
        _log.info("generating %s, which is kept in %s", name, place)
        generate_amazon2m_like(place, 1 / int(name.removeprefix("amazon2m-like").removeprefix("-") or 1), seed)
    return open_graph(place)


def _simple(graph: Data) -> Data:
    """Features, labels, undirected edges without duplicates, and ids."""
    if graph.x is None:
        raise DatasetError("a graph of this dataset has no node features.")
    edge_index = to_undirected(remove_self_loops(graph.edge_index)[0], num_nodes=graph.num_nodes)
    return Data(x=graph.x.float(), edge_index=edge_index, y=graph.y.long(), node_id=torch.arange(graph.num_nodes))


def load_public(info: DatasetInfo, root: Path) -> list[Data]:
    """The graphs of a public dataset (one, for the node task), as read by PyG's class."""
    source = SOURCES[info.name]
    missing = source.missing(root)
    if missing:
        _require_network(info, source, root)
    before = set(source.raw(root).glob("*"))
    try:
        dataset = _read(source, root)
    except DatasetError:
        raise
    except BaseException as error:
        for file in set(source.raw(root).glob("*")) - before:  # remove incomplete downloads
            with suppress(OSError):
                file.unlink()
        if not isinstance(error, Exception):
            raise
        if missing:
            raise _unreachable(info, source, root, error) from error
        raise DatasetError(
            f"the files of {info.name} in {source.raw(root)} cannot be read ({type(error).__name__}: "
            f"{error}). Delete that folder and {source.raw(root).parent / 'processed'}, then load it again."
        ) from error
    graphs = list(dataset)
    _compare_size(info, graphs, int(dataset.num_classes), source.raw(root))
    return graphs


class _Checked:
    """Mixin of PyG dataset classes: checks pickles before reading them, and writes the processed file atomically.

    Two processes may load the same dataset for the first time at once.
    """

    _workspace: str | None = None

    @property
    def processed_dir(self) -> str:
        return self._workspace or super().processed_dir  # type: ignore[misc]

    def _process(self: Any) -> None:
        if not all(os.path.exists(path) for path in self.processed_paths):
            os.makedirs(self.processed_dir, exist_ok=True)
            self.process()

    def process(self: Any) -> None:
        check_pickles(Path(path) for path in self.raw_paths)
        final = Path(self.processed_dir)
        with TemporaryDirectory(dir=final.parent) as workspace:
            self._workspace = workspace
            super().process()  # type: ignore[misc]
            self._workspace = None
            for file in Path(workspace).iterdir():
                os.replace(file, final / file.name)


def check_pickles(paths: Iterable[Path]) -> None:
    """Raises DatasetError if a file of ``paths`` is a pickle with another checksum than the published file."""
    for path in paths:
        expected = PICKLES_SHA256.get(path.name)
        if expected is not None and hashlib.sha256(path.read_bytes()).hexdigest() != expected:
            raise DatasetError(
                f"{path} is not the published file (its sha256 differs). It is a Python pickle, and reading a pickle "
                "can run any code inside it, so it was not opened. Delete it and load the dataset again."
            )


def _read(source: Source, root: Path) -> Any:
    cls = getattr(pyg, source.kind)
    options = {"use_node_attr": True} if source.kind == "TUDataset" else {}
    return type(cls.__name__, (_Checked, cls), {})(str(root), source.pyg_name, **options)


def _require_network(info: DatasetInfo, source: Source, root: Path) -> None:
    _log.info("downloading %s from %s", info.name, source.url)
    try:
        probe = urllib.request.Request(source.url, method="HEAD")
        urllib.request.urlopen(probe, timeout=_CONNECT_SECONDS).close()
    except urllib.error.HTTPError:
        pass  # the server answers; the download will show whether it has the file
    except OSError as error:
        raise _unreachable(info, source, root, error) from None


def _unreachable(info: DatasetInfo, source: Source, root: Path, error: Exception) -> DatasetError:
    cause = getattr(error, "reason", None) or error or type(error).__name__
    return DatasetError(
        f"{info.name} is not on this machine and cannot be downloaded ({cause}).\n"
        f"  missing: {', '.join(source.missing(root))}\n"
        f"  folder:  {source.raw(root)}\n"
        f"  source:  {source.url}\n"
        "Put the files into that folder, or pass root=... if they are elsewhere. "
        '"digits-knn" and "digits-grid" need no download.'
    )


def _compare_size(info: DatasetInfo, graphs: list[Data], classes: int, folder: Path) -> None:
    unit, size = ("nodes", graphs[0].num_nodes) if info.task == "node" else ("graphs", len(graphs))
    actual = (size, classes, graphs[0].num_features)
    expected = (info.size, info.classes, info.features)
    if actual != expected:
        raise DatasetError(
            f"the files in {folder} are not {info.name} as published: {unit}, classes, features are {actual}, expected "
            f"{expected}. They may be truncated or a cleaned variant: delete the folder and load it again."
        )


def digits_knn() -> Data:
    """One node per image, joined to the nearest images; features are the pixels.

    The edges follow from the features, so this is a demonstration, not a benchmark.
    """
    pixels, labels = _digits()
    source = np.repeat(np.arange(len(pixels)), NEIGHBOURS)
    edges = np.stack([source, _nearest(pixels, NEIGHBOURS).ravel()])
    return Data(
        x=torch.from_numpy(pixels / 16).float(),
        edge_index=to_undirected(torch.from_numpy(edges), num_nodes=len(pixels)),
        y=torch.from_numpy(labels),
        node_id=torch.arange(len(pixels)),
    )


def digits_grid() -> list[Data]:
    """One graph per image: its lit pixels, each joined to the lit pixels around it.

    Features of a node are its intensity and its one-hot row and column; its id is its position.
    """
    pixels, labels = _digits()
    return [_grid(image, int(label)) for image, label in zip(pixels, labels, strict=True)]


def _digits() -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    try:
        from sklearn.datasets import load_digits
    except ModuleNotFoundError as error:
        raise missing(error.name, "a set of digits") from None
    pixels, labels = load_digits(return_X_y=True)
    return pixels, labels.astype(np.int64)


def _nearest(points: npt.NDArray[np.float64], count: int) -> npt.NDArray[np.int64]:
    """The ``count`` nearest other points of every point; ties go to the smaller row.

    Pixels are small integers, so distances are exact and the graph is the same on every machine.
    """
    length = (points**2).sum(axis=1)
    distance = length[:, None] + length - 2 * points @ points.T
    np.fill_diagonal(distance, distance.max() + 1)
    rank = distance * len(points) + np.arange(len(points))
    return np.argpartition(rank, count, axis=1)[:, :count]


def _grid(image: npt.NDArray[np.float64], label: int) -> Data:
    position = np.flatnonzero(image >= LIT)
    row, column = np.divmod(position, SIDE)
    place = np.full((SIDE + 1, SIDE + 1), -1)  # with a margin of unlit pixels, also at index -1
    place[row, column] = np.arange(len(position))
    steps = ((0, 1), (1, -1), (1, 0), (1, 1))  # half of the eight; the other half is their mirror image
    around = [place[row + down, column + right] for down, right in steps]
    pairs = [np.stack([np.flatnonzero(other >= 0), other[other >= 0]]) for other in around]
    unit = np.eye(SIDE)
    features = np.column_stack([image[position] / 16, unit[row], unit[column]])
    return Data(
        x=torch.from_numpy(features).float(),
        edge_index=to_undirected(torch.from_numpy(np.concatenate(pairs, axis=1)), num_nodes=len(position)),
        y=torch.tensor([label]),
        node_id=torch.from_numpy(position),
    )
