"""``load_dataset``: loads a graph with labels, ids and splits by name.

Missing files of the public datasets are downloaded. The checksum of pickles is checked before they are read, and the
size of a dataset is compared with the published one. Three datasets need no download: two are made of the handwritten
digits in scikit-learn, and one is generated.
"""

import gzip
import hashlib
import logging
import os
import re
import urllib.request
from collections.abc import Iterable
from http.client import HTTPException
from pathlib import Path
from pickle import UnpicklingError
from tempfile import TemporaryDirectory
from zipfile import BadZipFile, ZipFile

import numpy as np
import numpy.typing as npt
import torch
from torch_geometric.data import Data
from torch_geometric.io import read_npz, read_planetoid_data
from torch_geometric.utils import remove_self_loops, to_undirected

from agnncert.addons import addons
from agnncert.datasets.catalog import FRAUD, SHA256, SOURCES, DatasetInfo, Source, dataset_info, default_root
from agnncert.datasets.fraud import assemble_cresci, read_fraud
from agnncert.datasets.splits import (
    GRAPH_FRACTIONS,
    NODE_FRACTIONS,
    GraphSet,
    per_class_split,
    set_masks,
    stratified_split,
)
from agnncert.datasets.tables import read_tu, tu_files
from agnncert.errors import DatasetError, MissingPackage, missing

_log = logging.getLogger(__name__)

_SECONDS = 10  # without an answer, after which a download is given up

# Features that span orders of magnitude (from -538 to 798 here) are compressed entry by entry. A scaler fitted on the
# whole dataset would let one attacked graph change the features of all others.
_COMPRESSED = ("proteins",)

NEIGHBOURS = 6  # of every image in digits-knn
LIT = 4  # a pixel of intensity 4 to 16 is lit in digits-grid
SIDE = 8


def load_dataset(
    name: str, root: str | os.PathLike[str] | None = None, seed: int = 0, split: str | None = None
) -> Data | GraphSet:
    """Loads a dataset by name; ``agnncert.datasets.DATASETS`` lists them.

    Edges are undirected: each pair once in both directions, sorted, without self-loops. Direction, sign and amounts are
    in ``edge_attr``, and ``edge_names`` has the names of its columns. Features are as published
    (Cora-ML, Amazon-C and Coauthor-Physics: zeros and ones, as PyG reads them). They are not scaled: with a statistic
    over all nodes, such as a column's mean, one attacked node would change the input of every other.

    Args:
        name: For example ``"cora-ml"`` (node classification) or ``"proteins"`` (graph classification).
        root: Folder with the datasets, in PyTorch Geometric's layout. Defaults to a folder in the user's cache.
            Missing files are downloaded.
        seed: Seed of the split: stratified, 30/10/60 % of the nodes or 50/20/30 % of the graphs. ``"tolokers"`` has ten
            splits, and ``"ethereum-phishing"`` a test part of its own. For ``"big-vul"`` 80/10/10 %, and the seed of
            the sampled functions.
        split: Node task: ``"20-per-class"`` for 20 training and 20 validation nodes of each class and a tenth of the
            others to test, as other certified defences are measured (any number). The rest is in no part. Meant for
            ``fit(..., protocol="held-out")``, which sees the rest without labels.

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
    info, per_class = dataset_info(name), _per_class(name, split)
    folder = default_root() if root is None else Path(root)
    if info.addon:
        point = addons("agnncert.datasets").get(name)
        if point is None:
            raise MissingPackage(f"{name} needs the package {info.addon}, which is not installed.", name=info.addon)
        return point.load()(folder, seed)
    if info.download:
        graphs = _public(info, folder, seed)
        for graph in graphs if name in _COMPRESSED else ():
            graph.x = torch.asinh(graph.x)
    else:
        graphs = digits_grid() if name == "digits-grid" else [digits_knn() if name == "digits-knn" else accounts()]
    if info.task == "node":
        data = graphs[0]
        data.name, data.num_classes = info.name, info.classes
        if name in FRAUD:  # with a split of its own
            return data
        if per_class:
            return set_masks(data, per_class_split(data.y, per_class, seed))
        return set_masks(data, stratified_split(data.y, NODE_FRACTIONS, seed))
    y = torch.tensor([int(graph.y) for graph in graphs])
    train, val, test = stratified_split(y, GRAPH_FRACTIONS, seed)
    return GraphSet(graphs, train, val, test, num_classes=info.classes, name=info.name)


def _per_class(name: str, split: str | None) -> int:
    """Training nodes of each class that a split names, 0 for the usual split; raises DatasetError for other names."""
    if split is None:
        return 0
    found, info = re.fullmatch(r"([1-9]\d*)-per-class", split), dataset_info(name)
    if found is None:
        raise DatasetError(f'no split is called "{split}": expected "20-per-class", or another number.')
    if info.task == "graph" or info.addon or name in FRAUD:
        raise DatasetError(
            f'{name} has no split "{split}": it is for node classification on a graph without own parts.'
        )
    return int(found[1])


def _public(info: DatasetInfo, root: Path, seed: int) -> list[Data]:
    """The graphs of a public dataset (one, for the node task)."""
    source = SOURCES[info.name]
    if source.missing(root):
        _download(info, source, root)
    try:
        check_files(source.paths(root))
        if source.kind == "fraud":
            graphs, classes = [read_fraud(info.name, source.paths(root), seed)], info.classes
        else:
            graphs, classes = _read(source, source.raw(root))
    except DatasetError:
        raise
    except Exception as error:
        raise DatasetError(
            f"the files of {info.name} in {source.raw(root)} cannot be read ({type(error).__name__}: {error}). "
            "Delete that folder, then load it again."
        ) from error
    unit, size = ("nodes", graphs[0].num_nodes) if info.task == "node" else ("graphs", len(graphs))
    actual, expected = (size, classes, graphs[0].num_features), (info.size, info.classes, info.features)
    if actual != expected:
        raise DatasetError(
            f"the files in {source.raw(root)} are not {info.name} as published: {unit}, classes, features are "
            f"{actual}, expected {expected}. They may be truncated or a cleaned variant: delete the folder and load "
            "it again."
        )
    return graphs


def _read(source: Source, raw: Path) -> tuple[list[Data], int]:
    """The graphs with undirected edges and ids, and the number of classes."""
    if source.kind == "tu":
        graphs, names = read_tu(tu_files(raw))
        return graphs, len(names)
    if source.kind == "planetoid":
        graph = read_planetoid_data(str(raw), source.folder)
    else:
        graph = read_npz(str(raw / source.files[0]))
    edge_index = to_undirected(remove_self_loops(graph.edge_index)[0], num_nodes=graph.num_nodes)
    ids = torch.arange(graph.num_nodes)
    data = Data(x=graph.x.float(), edge_index=edge_index, y=graph.y.long(), node_id=ids)
    return [data], int(data.y.max()) + 1


def _download(info: DatasetInfo, source: Source, root: Path) -> None:
    """Downloads the missing files; they are moved into their folder after all of them have arrived."""
    _log.info("downloading %s from %s", info.name, source.url)
    wanted, archive = source.missing(root), source.url.endswith(".zip")
    root.mkdir(parents=True, exist_ok=True)
    try:
        with TemporaryDirectory(dir=root) as folder:
            draft = Path(folder)
            for file in [f"{source.folder}.zip"] if archive else source.remote or wanted:
                with urllib.request.urlopen(source.url.format(file), timeout=_SECONDS) as answer:
                    (draft / file).write_bytes(answer.read())
            if archive:
                ZipFile(draft / f"{source.folder}.zip").extractall(draft)
            if info.name == "cresci-15":
                assemble_cresci(draft)
            elif source.remote:
                for file, remote in zip(source.files, source.remote, strict=True):
                    os.replace(draft / remote, draft / file)
            found = {path.name: path for path in draft.rglob("*")}
            source.raw(root).mkdir(parents=True, exist_ok=True)
            for file in wanted:
                os.replace(found[file], source.raw(root) / file)
    except (OSError, HTTPException, BadZipFile, KeyError, UnpicklingError) as error:
        cause = getattr(error, "reason", None) or error or type(error).__name__
        raise DatasetError(
            f"{info.name} is not on this machine and cannot be downloaded ({cause}).\n"
            f"  missing: {', '.join(wanted)}\n"
            f"  folder:  {source.raw(root)}\n"
            f"  source:  {source.url}\n"
            "Put the files into that folder, or pass root=... if they are elsewhere. "
            '"digits-knn", "digits-grid" and "accounts-generated" need no download.'
        ) from error


def check_files(paths: Iterable[Path]) -> None:
    """Raises DatasetError if the content of a file differs from that of the published one, as far as it is known."""
    for path in paths:
        expected = SHA256.get(path.name.removesuffix(".gz"))
        if expected is not None and hashlib.sha256(_content(path)).hexdigest() != expected:
            raise DatasetError(
                f"{path} is not the published file (its sha256 differs), so it was not read; reading a pickle can run "
                "any code inside it. Delete it and load the dataset again."
            )


def _content(path: Path) -> bytes:
    """The bytes of a file without compression; of an npz file, all arrays by name."""
    if path.suffix == ".gz":
        return gzip.decompress(path.read_bytes())
    if path.suffix != ".npz":
        return path.read_bytes()
    with np.load(path) as arrays:
        known = {name: arrays[name] for name in sorted(arrays.files)}
    return b"".join(f"{name}:{a.dtype.str}:{a.shape};".encode() + a.tobytes() for name, a in known.items())


def accounts(size: int = 5000, seed: int = 0) -> Data:
    """Generated accounts, joined by payments; about 3 % of them are fraud. Nothing in them is real.

    Features say little about an account: they are noise but for its age, and slightly more payments at night and abroad
    if it is fraud. Most payments of a fraud account go to young accounts, and most payments of others do not.
    """
    random = np.random.default_rng(seed)
    fraud, young = random.random(size) < 0.03, random.random(size) < 0.2
    x = random.normal(size=(size, 4))
    x[:, 0] += np.where(young, -2, 2)  # age, then payments at night, abroad, and on weekends
    x[:, 1] += 0.5 * fraud
    x[:, 2] += 0.3 * fraud
    payer = np.repeat(np.arange(size), random.poisson(np.where(fraud, 24, 6)) + 2)
    to_young = random.random(len(payer)) < np.where(fraud[payer], 0.85, 0.1)
    payees = [random.choice(np.flatnonzero(~fraud & (young == kind)), len(payer)) for kind in (False, True)]
    edges = np.stack([payer, np.where(to_young, payees[1], payees[0])])
    return Data(
        x=torch.from_numpy(x).float(),
        edge_index=to_undirected(torch.from_numpy(edges[:, edges[0] != edges[1]]), num_nodes=size),
        y=torch.from_numpy(fraud.astype(np.int64)),
        node_id=torch.arange(size),
        class_names=["genuine", "fraud"],
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
