"""``GraphSet`` (a list of graphs with a split), seeded splits, the inductive view, and the digest of a dataset."""

import copy
import hashlib
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch_geometric.data import Data

from agnncert.datasets.drawn_splits import BY_CLASS, BY_ID, RECORD, checked_way
from agnncert.errors import DatasetError, suggests_arguments
from agnncert.graphs.digest import digest_by_keys, digests_beyond_keys
from agnncert.graphs.graph_ids import content_ids, stated_id
from agnncert.graphs.hashing import Keys, id_keys, keys_of_encoded, places
from agnncert.graphs.labels import class_numbers, graph_classes
from agnncert.graphs.node_ids import exact_ids
from agnncert.graphs.targets import CanonicalData, prepared
from agnncert.graphs.task import infer_task

if TYPE_CHECKING:
    from agnncert.datasets.encoding import Encoding


log = logging.getLogger(__name__)


class GraphSet(list[Data]):
    """A list of ``Data``, one per graph, with a split into training, validation and test graphs.

    Attributes:
        train: Positions of the training graphs, ascending, as an int64 tensor.
        val: Those of the validation graphs.
        test: Those of the test graphs.
        threshold: Those that are kept for a threshold (``keep_for_threshold``), or None.
        threshold_rule: Which ones these are, or None.
        split_by: How the split was drawn: by "id", "class" or "time". None if it was not drawn here.
        y: Class of every graph, shape ``[num_graphs]``, or ``-1`` where unknown.
        num_classes: Number of classes.
        classes_counted: Whether that number was counted in the labels, because it was not stated.
        class_names: Names of the classes, or None.
        name: Name of the dataset.
        encoding: How the columns of a table became features, or None.
        encoding_fitted: Whether columns of features were chosen by what these graphs hold.
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
        self.set_split((train, val, test))
        self.threshold: Tensor | None = None
        self.threshold_rule: object = None
        self.y = graph_classes(self)
        self.num_classes = int(self.y.max()) + 1 if num_classes is None else num_classes
        self.classes_counted = num_classes is None
        self.class_names = class_names
        self.name = name
        self.encoding: Encoding | None = None
        self.encoding_fitted = False
        self.edge_names: list[str] | None = None
        self.repeated_edges = 0

    def set_split(self, parts: Sequence[Sequence[int] | Tensor], by: str | None = None) -> "GraphSet":
        """Sets the positions of the training, validation and test part, and how they were drawn; returns this set.

        Raises:
            DatasetError: A position does not exist, or is in two parts.
        """
        train, val, test = (_positions(part, len(self)) for part in parts)
        listed = torch.cat([train, val, test])
        if len(torch.unique(listed)) < len(listed):
            raise DatasetError("a graph is in two parts of the split: train, val and test must not overlap.")
        self.train, self.val, self.test = train, val, test
        self.split_by = by
        return self

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
MOST_NAMED = 10  # classes in a warning


def split_by_id(keys: Sequence[Keys], y: Tensor, fractions: Sequence[float], seed: int) -> tuple[Tensor, ...]:
    """Splits positions by the hash of their ids and a seed.

    Whether a position is in a part depends on its own id, on the seed, and on whether it has a
    label: on nothing about any other position, and not on which label it is.

    Args:
        keys: Columns of keys, each of shape ``[n]``: one for nodes or graphs, two for pairs.
        y: Classes, shape ``[n]``. Negative entries are unlabelled and in no part.
        fractions: Share of each part. They sum to 1.
        seed: Seed of the split, which is the same on every machine.

    Returns:
        Positions of each part, ascending. Shares of classes are as they happen to come out.

    Example:
        >>> from agnncert.graphs.hashing import id_keys
        >>> split_by_id([id_keys(range(8))], torch.zeros(8), (0.5, 0.5), seed=0)
        (tensor([0, 1, 2, 4, 6, 7]), tensor([3, 5]))
    """
    part_of = parts_by_id(keys, y.numpy(), fractions, seed)
    parts = tuple(torch.from_numpy(np.flatnonzero(part_of == k)) for k in range(len(fractions)))
    _warn_of_absent_classes(y, parts[0])
    return parts


def parts_by_id(
    keys: Sequence[Keys], y: npt.NDArray[np.int64], fractions: Sequence[float], seed: int
) -> npt.NDArray[np.int64]:
    """Returns the part of every position, -1 for none; arguments are those of :func:`split_by_id`."""
    part_of = np.searchsorted(np.cumsum(fractions)[:-1], places(keys, seed), side="right")
    part_of[y < 0] = -1
    return part_of


def _warn_of_absent_classes(y: Tensor, train: Tensor) -> None:
    """Logs a warning if a class is not in the training part. Another draw would follow the labels."""
    absent = np.setdiff1d(np.unique(y[y >= 0].numpy()), np.unique(y[train].numpy())).tolist()
    if not absent:
        return
    listed = ", ".join(map(str, absent[:MOST_NAMED])) + (", …" if len(absent) > MOST_NAMED else "")
    log.warning(
        "nothing of %d class(es) (%s) is in the training part, so that a model does not learn them: the "
        "split is drawn by ids, whatever the labels are, and they are rare. Label more of them, or "
        'state the parts yourself. A split by class has some of each (by="class" of ac.split, '
        "--set split_by=class in commands), but is refused where labels may be poisoned.",
        len(absent),
        listed,
    )


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


def set_masks(data: Data, parts: Sequence[Tensor], by: str | None = None) -> Data:
    """Gives ``data`` its ``train_mask``, ``val_mask`` and ``test_mask`` from the positions of each part.

    Args:
        data: The graph.
        parts: Positions of the training, validation and test nodes.
        by: How the split was drawn, which ``split_by`` then says. Defaults to ``None``: it was not drawn.
    """
    for name, part in zip(MASKS, parts, strict=True):
        data[name] = torch.zeros(data.num_nodes, dtype=torch.bool).index_fill_(0, part, True)
    data[RECORD] = by
    return data


@suggests_arguments
def split(
    data: Data | Sequence[Data],
    *,
    seed: int = 0,
    fractions: Sequence[float] | None = None,
    per_class: int | None = None,
    by: str | None = None,
) -> "Data | GraphSet":
    """Splits a graph's nodes, or graphs, into a training, a validation and a test part.

    By default the part of a node follows from its own id and the seed, so that no change of anything else moves it:
    neither a label, nor a node or edge more or less. Defences against poisoned training data require this.

    Args:
        data: A ``Data`` with ``y``, or a list of ``Data`` with one class each. It is not changed. Rows whose label is
            negative or NaN are unlabelled, and in no part.
        seed: Seed of the split, which is the same on every machine. Defaults to 0.
        fractions: Shares of the three parts, which sum to 1. Defaults to .3, .1 and .6 of the nodes, or .5, .2 and .3
            of the graphs.
        per_class: For few labels: this many training and this many validation nodes of each class, and a tenth of the
            other nodes to test. It excludes ``fractions``, is for nodes only, and is drawn by class.
        by: ``"id"``: by the hash of ``node_id`` (row numbers if there is none), or of ``graph_id`` (what a graph holds
            if there is none). Parts have about these shares. ``"class"``: at random, with exactly these shares of each
            class; one changed label then moves others. Defaults to ``"id"``, and to ``"class"`` with ``per_class``.

    Returns:
        A copy of the ``Data`` with ``train_mask``, ``val_mask`` and ``test_mask``, or a ``GraphSet``. ``split_by`` says
        how the split was drawn.

    Raises:
        DatasetError: There are no labels, a class is too small, or the arguments make no sense.
        IdError: An id occurs twice, or is no id.

    Example:
        >>> data = Data(x=torch.ones(20, 1), edge_index=torch.empty(2, 0).long(), y=torch.arange(20) % 2)
        >>> split(data, seed=1, by="class").test_mask.sum()
        tensor(12)
    """
    if fractions is not None and per_class is not None:
        raise DatasetError("fractions and per_class both say how large the parts are: leave one of the two out.")
    if fractions is not None:
        _require_shares(fractions)
    if per_class is not None and by not in (None, BY_CLASS):
        raise DatasetError(f"per_class takes so many nodes of each class, and by={by!r:.60} does not look at classes.")
    by = checked_way(by or (BY_ID if per_class is None else BY_CLASS))
    if infer_task(data) == "graph":
        return _split_graphs(data, fractions or GRAPH_FRACTIONS, per_class, seed, by)
    labels = _split_labels(data)
    if per_class is not None:
        parts = per_class_split(labels, _at_least_one(per_class), seed)
    else:
        parts = drawn_parts(labels, fractions or NODE_FRACTIONS, seed, by, lambda: node_columns(data))
    return set_masks(copy.copy(data), parts, by)


def drawn_parts(
    y: Tensor, fractions: Sequence[float], seed: int, by: str, columns: Callable[[], Sequence[Keys]]
) -> tuple[Tensor, ...]:
    """Splits positions by ids or by class.

    Args:
        y: Classes, shape ``[n]``. Negative entries are unlabelled and in no part.
        fractions: Share of each part. They sum to 1.
        seed: Seed of the split.
        by: ``"id"`` or ``"class"``.
        columns: Returns the columns of keys; asked only if the split is by ids.
    """
    if by == BY_CLASS:
        return stratified_split(y, fractions, seed)
    return split_by_id(columns(), y, fractions, seed)


def node_columns(data: Data) -> list[Keys]:
    """Returns the column of keys of a graph's nodes."""
    return [keys_of_encoded(exact_ids(data))]


def graph_columns(graphs: Sequence[Data]) -> list[Keys]:
    """Returns the column of keys of graphs: of ``graph_id``, or of what each graph holds.

    Raises:
        DatasetError: Some graphs have a ``graph_id`` and others do not.
        IdError: An id occurs twice, or is no id.
    """
    stated = [stated_id(graph, row) for row, graph in enumerate(graphs)]
    known = [each for each in stated if each is not None]
    if known and len(known) < len(stated):
        raise DatasetError(
            f"{len(stated) - len(known)} of {len(stated)} graphs have no graph_id: give every graph one, or none."
        )
    return [id_keys(known or content_ids(graphs))]


def _split_graphs(
    graphs: Sequence[Data], fractions: Sequence[float], per_class: int | None, seed: int, by: str
) -> GraphSet:
    if per_class is not None:
        raise DatasetError("per_class is for nodes: give the shares of graphs in each part, fractions=(.5, .2, .3).")
    labels = graph_classes(graphs)
    if not bool((labels >= 0).any()):
        raise DatasetError("no graph has a label y: a split is of labelled graphs.")
    parts = drawn_parts(labels, fractions, seed, by, lambda: graph_columns(graphs))
    divided = copy.copy(graphs) if isinstance(graphs, GraphSet) else GraphSet(list(graphs))
    return divided.set_split(parts, by)


def _split_labels(data: Data) -> Tensor:
    """Returns the labels of a graph's nodes.

    Raises:
        DatasetError: There are none, or several for each node.
    """
    if data.y is None:
        raise DatasetError("the data has no labels y: a split is of labelled nodes.")
    labels = class_numbers(data.y, int(data.num_nodes or 0))
    if labels is None:
        raise DatasetError(
            f"labels y have shape {tuple(torch.as_tensor(data.y).shape)}: expected one class number for each node. Of "
            "one-hot rows, y.argmax(1) is the class."
        )
    if not bool((labels >= 0).any()):
        raise DatasetError("no node has a label from 0 on: a split is of labelled nodes.")
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

    These are all but test nodes and nodes that are kept for a threshold or, without a ``test_mask``, training and
    validation nodes.
    """
    test_mask: Tensor | None = getattr(data, "test_mask", None)
    if test_mask is not None:
        kept: Tensor | None = getattr(data, "threshold_mask", None)
        return ~test_mask.bool() if kept is None else ~(test_mask.bool() | kept.bool())
    seen: Tensor = data.train_mask | data.val_mask
    return seen


@suggests_arguments
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


@suggests_arguments
def dataset_digest(data: Data | GraphSet | CanonicalData) -> str:
    """Returns the sha256 of ids, features, edges, labels, pairs to be classified, and split."""
    dataset = data.data if isinstance(data, CanonicalData) else data
    if isinstance(dataset, GraphSet):
        labels_and_split = {"y": dataset.y, "train": dataset.train, "val": dataset.val, "test": dataset.test}
        if dataset.threshold is not None:
            labels_and_split["threshold"] = dataset.threshold
    else:
        labels_and_split = {name: dataset[name] for name in ("y", *PAIRS, *MASKS, "threshold_mask") if name in dataset}
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
