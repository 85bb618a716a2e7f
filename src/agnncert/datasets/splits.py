"""``GraphSet`` (a list of graphs with a split), seeded splits, the inductive view, and the digest of a dataset."""

import copy
import hashlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from agnncert.errors import DatasetError, suggests_arguments
from agnncert.graphs.digest import digest_by_keys, digests_beyond_keys
from agnncert.graphs.labels import class_numbers, graph_classes
from agnncert.graphs.targets import CanonicalData, prepared
from agnncert.graphs.task import infer_task

if TYPE_CHECKING:
    from agnncert.datasets.encoding import Encoding


class GraphSet(list[Data]):
    """A list of ``Data``, one per graph, with a split into training, validation and test graphs.

    Attributes:
        train: Positions of the training graphs, ascending, as an int64 tensor.
        val: Those of the validation graphs.
        test: Those of the test graphs.
        y: Class of every graph, shape ``[num_graphs]``, or ``-1`` where unknown.
        num_classes: Number of classes.
        class_names: Names of the classes, or None.
        name: Name of the dataset.
        encoding: How the columns of a table became features, or None.
        edge_names: Names of the columns of ``edge_attr``, or None.
        repeated_edges: Rows of a table of edges that joined a pair again.

    Example:
        >>> listed = [Data(x=torch.ones(2, 3), y=torch.tensor([k % 2])) for k in range(4)]
        >>> graphs = GraphSet(listed, train=[0, 1], test=[3])
        >>> graphs
        GraphSet(graphs, 4 graphs, 3 features, 2 classes, train/val/test 2/0/1)
        >>> [int(g.y) for g in graphs.index_select(graphs.test)]
        [1]
    """

    def __init__(
        self,
        graphs: Iterable[Data],
        train: Sequence[int] | Tensor = (),
        val: Sequence[int] | Tensor = (),
        test: Sequence[int] | Tensor = (),
        *,
        num_classes: int | None = None,
        class_names: list[str] | None = None,
        name: str = "graphs",
    ) -> None:
        super().__init__(graphs)
        if not self:
            raise DatasetError("a graph set needs at least one graph.")
        self.train = _positions(train, len(self))
        self.val = _positions(val, len(self))
        self.test = _positions(test, len(self))
        listed = torch.cat(self.split)
        if len(torch.unique(listed)) < len(listed):
            raise DatasetError("a graph is in two parts of the split: train, val and test must not overlap.")
        self.y = graph_classes(self)
        self.num_classes = int(self.y.max()) + 1 if num_classes is None else num_classes
        self.class_names = class_names
        self.name = name
        self.encoding: Encoding | None = None
        self.edge_names: list[str] | None = None
        self.repeated_edges = 0

    @property
    def split(self) -> tuple[Tensor, Tensor, Tensor]:
        """The training, validation and test part."""
        return self.train, self.val, self.test

    @property
    def num_features(self) -> int:
        """Features per node."""
        return int(self[0].num_features)

    def index_select(self, index: Sequence[int] | Tensor) -> list[Data]:
        """Returns the graphs at these positions, as a plain list."""
        return [self[int(k)] for k in index]

    def __repr__(self) -> str:
        parts = "/".join(str(len(part)) for part in self.split)
        return (
            f"GraphSet({self.name}, {len(self)} graphs, {self.num_features} features, "
            f"{self.num_classes} classes, train/val/test {parts})"
        )


def _positions(part: Sequence[int] | Tensor, total: int) -> Tensor:
    index = torch.as_tensor(np.asarray(part, dtype=np.int64)).sort().values
    outside = index[(index < 0) | (index >= total)]
    if len(outside):
        raise DatasetError(f"a split names graph {int(outside[0])}, but the set has graphs 0 to {total - 1}.")
    return index


MASKS = ("train_mask", "val_mask", "test_mask")
PAIRS = ("edge_label_index", "edge_label", "edge_label_attr")  # what data has whose targets are pairs of nodes
NODE_FRACTIONS = (0.3, 0.1, 0.6)
GRAPH_FRACTIONS = (0.5, 0.2, 0.3)


def stratified_split(y: Tensor, fractions: Sequence[float], seed: int) -> tuple[Tensor, ...]:
    """Splits positions into parts with the same proportions of classes.

    Args:
        y: Classes, shape ``[n]``. Negative entries are unlabelled and in no part.
        fractions: Share of each part. They sum to 1.
        seed: Seed of the split, which is the same on every machine.

    Returns:
        Positions of each part, ascending. Every class has at least one member in the first part.

    Example:
        >>> train, test = stratified_split(torch.tensor([0, 0, 0, 0, 1, 1, 1, 1]), (0.5, 0.5), seed=0)
        >>> len(train), len(test)
        (4, 4)
    """
    rng = np.random.default_rng(seed)
    labels = y.numpy()
    parts = [[np.empty(0, np.int64)] for _ in fractions]  # the members of each class in each part
    for label in np.unique(labels[labels >= 0]):
        members = rng.permutation(np.flatnonzero(labels == label))
        cuts = np.rint(np.cumsum(fractions)[:-1] * len(members)).astype(int)
        for part, chunk in zip(parts, np.split(members, np.maximum(cuts, 1)), strict=True):
            part.append(chunk)
    return tuple(torch.from_numpy(np.sort(np.concatenate(part))) for part in parts)


def per_class_split(y: Tensor, per_class: int, seed: int) -> tuple[Tensor, ...]:
    """Splits positions as others do who use few labels.

    There are as many training as validation nodes of each class, and a tenth of the others to test. The remaining nodes
    are in no part. Their labels are not used. In inductive training they are seen, without labels.

    Args:
        y: Classes, shape ``[n]``. Negative entries are unlabelled and in no part.
        per_class: Training nodes of each class, and validation nodes of each class.
        seed: Seed of the split, which is the same on every machine.

    Returns:
        Positions of training, validation and test nodes, ascending.

    Raises:
        DatasetError: A class has too few nodes.

    Example:
        >>> train, val, test = per_class_split(torch.arange(100) % 2, 10, seed=0)
        >>> len(train), len(val), len(test)
        (20, 20, 6)
    """
    rng = np.random.default_rng(seed)
    labels = y.numpy()
    pairs = [np.empty((2, 0), dtype=np.int64)]  # of training and validation nodes
    for label in np.unique(labels[labels >= 0]):
        members = rng.permutation(np.flatnonzero(labels == label))
        if len(members) <= 2 * per_class:
            raise DatasetError(
                f"class {label} has {len(members)} nodes: {per_class} to train and {per_class} to validate leave none "
                "to test. Choose fewer per class."
            )
        pairs.append(members[: 2 * per_class].reshape(2, per_class))
    train, val = np.concatenate(pairs, axis=1)
    others = rng.permutation(np.setdiff1d(np.flatnonzero(labels >= 0), np.concatenate([train, val])))
    test = others[: max(1, round(len(others) / 10))]
    return tuple(torch.from_numpy(np.sort(part)) for part in (train, val, test))


def split_by_time(
    times: "np.ndarray[tuple[int], np.dtype[np.float64]]", y: Tensor, fractions: Sequence[float]
) -> tuple[Tensor, ...]:
    """Splits positions by time, the earliest first. Positions of the same time are in the same part.

    Args:
        times: Time of each position, shape ``[n]``.
        y: Classes, shape ``[n]``. Negative entries are unlabelled and in no part.
        fractions: Share of each part. They sum to 1.

    Returns:
        Positions of each part, ascending. Nothing in a later part is as early as the last of an earlier part.

    Raises:
        DatasetError: The training part lacks a class, or a part has nothing.

    Example:
        >>> split_by_time(np.array([3.0, 1.0, 2.0, 4.0]), torch.tensor([0, 0, 1, 1]), (0.5, 0.25, 0.25))
        (tensor([1, 2]), tensor([0]), tensor([3]))
    """
    rows = np.flatnonzero(y.numpy() >= 0)
    part_of_row = rows
    if len(rows):
        last = np.rint(np.cumsum(fractions)[:-1] * len(rows)).astype(int) - 1  # of each part but the last, in order
        last_times = np.sort(times[rows])[np.maximum(last, 0)]
        part_of_row = np.searchsorted(last_times, times[rows], side="left")
    parts = tuple(torch.from_numpy(rows[part_of_row == k]) for k in range(len(fractions)))
    num_missing = len(torch.unique(y[y >= 0])) - len(torch.unique(y[parts[0]]))
    if num_missing or not all(len(part) for part in parts):
        sizes = "/".join(str(len(part)) for part in parts)
        raise DatasetError(
            f"split by time, train/val/test have {sizes} rows, and the training part lacks {num_missing} class(es): "
            "use another column, or state the parts in a split column."
        )
    return parts


def set_masks(data: Data, parts: Sequence[Tensor]) -> Data:
    """Gives ``data`` its ``train_mask``, ``val_mask`` and ``test_mask`` from the positions of each part."""
    for name, part in zip(MASKS, parts, strict=True):
        data[name] = torch.zeros(data.num_nodes, dtype=torch.bool).index_fill_(0, part, True)
    return data


@suggests_arguments
def split(
    data: Data | Sequence[Data],
    *,
    seed: int = 0,
    fractions: Sequence[float] | None = None,
    per_class: int | None = None,
) -> "Data | GraphSet":
    """Splits a graph's nodes, or graphs, into a training, a validation and a test part, by classes and at random.

    Args:
        data: A ``Data`` with ``y``, or a list of ``Data`` with one class each. It is not changed. Rows whose label is
            negative or NaN are unlabelled, and in no part.
        seed: Seed of the split, which is the same on every machine. Defaults to 0.
        fractions: Shares of the three parts, which sum to 1. Each part has the same proportions of classes. Defaults
            to .3, .1 and .6 of the nodes, or .5, .2 and .3 of the graphs.
        per_class: For few labels: this many training and this many validation nodes of each class, and a tenth of the
            other nodes to test. It excludes ``fractions``, and is for nodes only.

    Returns:
        A copy of the ``Data`` with ``train_mask``, ``val_mask`` and ``test_mask``, or a ``GraphSet``.

    Raises:
        DatasetError: There are no labels, a class is too small, or the shares make no sense.

    Example:
        >>> data = Data(x=torch.ones(20, 1), edge_index=torch.empty(2, 0).long(), y=torch.arange(20) % 2)
        >>> split(data, seed=1).test_mask.sum()
        tensor(12)
    """
    if fractions is not None and per_class is not None:
        raise DatasetError("fractions and per_class both say how large the parts are: leave one of the two out.")
    if fractions is not None:
        _require_shares(fractions)
    if infer_task(data) == "graph":
        return _split_graphs(data, fractions or GRAPH_FRACTIONS, per_class, seed)
    labels = _split_labels(data)
    if per_class is not None:
        parts = per_class_split(labels, _at_least_one(per_class), seed)
    else:
        parts = stratified_split(labels, fractions or NODE_FRACTIONS, seed)
    return set_masks(copy.copy(data), parts)


def _split_graphs(graphs: Sequence[Data], fractions: Sequence[float], per_class: int | None, seed: int) -> GraphSet:
    if per_class is not None:
        raise DatasetError("per_class is for nodes: give the shares of graphs in each part, fractions=(.5, .2, .3).")
    labels = graph_classes(graphs)
    if not bool((labels >= 0).any()):
        raise DatasetError("no graph has a label y: a split by classes needs them.")
    return GraphSet(list(graphs), *stratified_split(labels, fractions, seed))


def _split_labels(data: Data) -> Tensor:
    """Returns the labels of a graph's nodes.

    Raises:
        DatasetError: There are none, or several for each node.
    """
    if data.y is None:
        raise DatasetError("the data has no labels y: a split by classes needs them.")
    labels = class_numbers(data.y, int(data.num_nodes or 0))
    if labels is None:
        raise DatasetError(
            f"labels y have shape {tuple(torch.as_tensor(data.y).shape)}: expected one class number for each node. Of "
            "one-hot rows, y.argmax(1) is the class."
        )
    if not bool((labels >= 0).any()):
        raise DatasetError("no node has a label from 0 on: a split by classes needs them.")
    return labels


def _require_shares(fractions: Sequence[float]) -> None:
    if len(fractions) != 3 or not all(share > 0 for share in fractions) or abs(sum(fractions) - 1) > 1e-9:
        raise DatasetError(f"fractions={fractions!r}: expected three positive shares that sum to 1.")


def _at_least_one(per_class: int) -> int:
    if not isinstance(per_class, int) or isinstance(per_class, bool) or per_class < 1:
        raise DatasetError(f"per_class={per_class!r}: expected a whole number of at least 1.")
    return per_class


def seen_nodes(data: Data) -> Tensor:
    """Returns a mask of the nodes that inductive training may see.

    These are all but test nodes or, without a ``test_mask``, training and validation nodes.
    """
    test_mask: Tensor | None = getattr(data, "test_mask", None)
    if test_mask is not None:
        return ~test_mask.bool()
    seen: Tensor = data.train_mask | data.val_mask
    return seen


def inductive_view(data: Data, validation: bool = True) -> Data:
    """Returns the graph without its test nodes, for inductive training. Nodes in no part stay, without their labels.

    In transductive training the test nodes are part of the training graph (without their labels), so the model can
    memorise them. In inductive training it cannot: train on this view, certify on ``data``.

    Args:
        data: A graph for node classification with ``train_mask`` and ``val_mask``.
        validation: Whether validation nodes stay. A model trained with them has seen their features, so a prior chosen
            on them suits them better than the test nodes. ``fit(..., protocol="held-out")`` trains without them.

    Returns:
        The subgraph without test nodes or, without a ``test_mask``, that of training and validation nodes. Nodes keep
        their ``node_id``, hence their groups.

    Raises:
        DatasetError: ``data`` is of another task, or has no split.
    """
    if not isinstance(data, Data):
        raise DatasetError("an inductive view is for node classification: graphs of a graph task are separate already.")
    missing = [name for name in ("train_mask", "val_mask") if name not in data]
    if missing:
        raise DatasetError(f"the data has no {' and no '.join(missing)}: without a split there is no training part.")
    seen = seen_nodes(data)
    if not validation:
        seen = seen & ~data.val_mask.bool()
    ids = getattr(data, "node_id", None)
    if ids is None or isinstance(ids, Tensor):
        return data.subgraph(seen)
    unnamed = copy.copy(data)  # PyG selects from tensors only
    del unnamed.node_id
    view = unnamed.subgraph(seen)
    view.node_id = [name for name, keep in zip(ids, seen.tolist(), strict=True) if keep]
    return view


def dataset_digest(data: Data | GraphSet | CanonicalData) -> str:
    """Returns the sha256 of ids, features, edges, labels, pairs to be classified, and split."""
    dataset = data.data if isinstance(data, CanonicalData) else data
    if isinstance(dataset, GraphSet):
        labels_and_split = {"y": dataset.y, "train": dataset.train, "val": dataset.val, "test": dataset.test}
    else:
        labels_and_split = {name: dataset[name] for name in ("y", *PAIRS, *MASKS) if name in dataset}
    graph = prepared(data, compact=True).targets().graph
    digests = [digest_by_keys(graph), *digests_beyond_keys(graph)]
    digest = hashlib.sha256("".join(digests).encode())
    for name, given in labels_and_split.items():
        value = torch.as_tensor(given)
        is_float = value.is_floating_point() and name in PAIRS
        plain = value.detach().cpu().double() if is_float else value.detach().cpu().long()
        content = plain.numpy().astype("<f8" if is_float else "<i8").tobytes()
        digest.update(f"{name}:{tuple(value.shape)};".encode() + content)
    return digest.hexdigest()
