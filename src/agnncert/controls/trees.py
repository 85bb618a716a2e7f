"""Boosted trees as controls: on a node's own features, and on these with aggregates of its neighbourhood.

Nothing is proved about them. They are what a fraud team has today, so a certified model should be seen beside them.
"""

import logging
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from agnncert.certificates.votes import FloatArray, IntArray
from agnncert.controls.table import Control
from agnncert.errors import missing
from agnncert.graphs.targets import CanonicalData
from agnncert.study import part_rows

log = logging.getLogger(__name__)

OWN_TREES = "boosted trees on own features"
NEIGHBOURHOOD_TREES = "boosted trees on own features and neighbourhood aggregates"
DAILY_TREES = "boosted trees on own features, neighbourhood and daily aggregates"
TREES = 200  # at most; how many are used is chosen on the validation part
TREES_AT_ONCE = 20
MOST_FEATURES = 300  # those that differ most between classes in the training part
SMALLEST_LEAF = 20  # training targets
MOST_WORK = 200_000_000  # training targets times features times classes; more targets are not drawn


def tree_controls(
    data: CanonicalData,
    targets: IntArray,
    num_classes: int,
    seed: int = 0,
    training: CanonicalData | None = None,
    daily: tuple[FloatArray, FloatArray] | None = None,
) -> list[Control]:
    """Trains boosted trees on the training part, and returns their scores or labels of the targets.

    The number of trees is the one with the smallest loss on the validation part, if there is one.

    Args:
        data: The data, with labels and a training part unless ``training`` has them.
        targets: Rows of the targets.
        num_classes: How many classes there are.
        seed: Of the trees.
        training: What training may see, if it is not all of the data: a graph as it was at an earlier time.
        daily: What each node did on its busiest days, a row for each node, where edges stand for events: in what
            training may see, and in the data. The aggregates have these columns, too.

    Returns:
        Two controls; none for graph classification, or without labels in the training part.

    Raises:
        MissingPackage: scikit-learn is not installed.
    """
    if data.task != "node":
        return []
    seen = data if training is None else training
    train, val = (_labelled(seen, name) for name in ("train", "val"))
    if len(train) == 0 or len(np.unique(_labels(seen)[train])) < 2:
        return []
    learnt = _tables(seen.data, None if daily is None else daily[0])
    asked = learnt if seen is data else _tables(data.data, None if daily is None else daily[1])
    y = _labels(seen)
    controls = []
    for name, table in learnt.items():
        known = [_Part(table[rows], y[rows]) for rows in (train, val)]
        chances = _chances(known[0], known[1], asked[name][targets], num_classes, seed)
        reads_graph = name != OWN_TREES
        if num_classes == 2:
            controls.append(Control(name, score=chances[:, 1], reads_graph=reads_graph))
        else:
            controls.append(Control(name, label=chances.argmax(axis=1), reads_graph=reads_graph))
    return controls


class _Part(NamedTuple):
    """Rows of a table, and their classes."""

    table: FloatArray
    y: IntArray


def _tables(graph: Data, daily: FloatArray | None) -> dict[str, FloatArray]:
    """Returns what each of the controls reads of every node."""
    own = np.asarray(_features(graph).numpy(), dtype=np.float64)
    around = np.concatenate([own, neighbourhood(graph)], axis=1)
    if daily is None:
        return {OWN_TREES: own, NEIGHBOURHOOD_TREES: around}
    return {OWN_TREES: own, DAILY_TREES: np.concatenate([around, daily], axis=1)}


def neighbourhood(graph: Data) -> FloatArray:
    """Returns aggregates of each node's neighbourhood, one row for each node.

    They are the number of incoming and outgoing edges, mean and largest value of each feature of the neighbours, and
    sum, mean, smallest and largest value of each value of the edges. Edges count in both directions.
    """
    x = _features(graph)
    num_nodes = len(x)
    source, target = graph.edge_index.cpu()
    columns = [torch.bincount(end, minlength=num_nodes).double()[:, None] for end in (source, target)]
    both = torch.cat([source, target]), torch.cat([target, source])
    pairs = torch.unique(torch.stack(both), dim=1)
    columns += _aggregated(x[pairs[0]], pairs[1], num_nodes, ("mean", "amax"))
    columns += edge_aggregates(graph)
    return np.asarray(torch.cat(columns, dim=1).numpy(), dtype=np.float64)


def edge_aggregates(graph: Data) -> list[Tensor]:
    """Returns sum, mean, smallest and largest value of each value of a node's edges, those that leave and that arrive.

    Each has a row for each node, and a column for each value of an edge. There are none if edges have no values.
    """
    values = _edge_values(graph)
    if values is None:
        return []
    columns = []
    for end in graph.edge_index.cpu():
        columns += _aggregated(values, end, int(graph.num_nodes), ("sum", "mean", "amin", "amax"))
    return columns


def _aggregated(values: Tensor, owner: Tensor, num_nodes: int, how: tuple[str, ...]) -> list[Tensor]:
    index = owner[:, None].expand_as(values)
    empty = torch.zeros(num_nodes, values.shape[1], dtype=torch.float64)
    return [empty.scatter_reduce(0, index, values, reduce=each, include_self=False) for each in how]


def _features(graph: Data) -> Tensor:
    x: Tensor = graph.x
    return (x.to_dense() if x.layout != torch.strided else x).detach().cpu().double()


def _edge_values(graph: Data) -> Tensor | None:
    """Returns weights and attributes of the edges as columns, None if they have none."""
    values = [getattr(graph, name, None) for name in ("edge_weight", "edge_attr")]
    known = [value.detach().cpu().double().reshape(len(value), -1) for value in values if value is not None]
    return torch.cat(known, dim=1) if known else None


def _labels(data: CanonicalData) -> IntArray:
    return np.asarray(data.data.y.cpu(), dtype=np.int64).reshape(-1)


def _labelled(data: CanonicalData, part: str) -> IntArray:
    """Returns the rows of a part whose class is known; none if there is no such part."""
    rows = part_rows(data, part)
    if rows is None or getattr(data.data, "y", None) is None:
        return np.zeros(0, dtype=np.int64)
    return rows[_labels(data)[rows] >= 0]


def _chances(train: _Part, validation: _Part, asked: FloatArray, num_classes: int, seed: int) -> FloatArray:
    """Returns the probability of each class for each row of ``asked``, shape ``[n, num_classes]``."""
    try:
        from sklearn.ensemble import HistGradientBoostingClassifier
    except ModuleNotFoundError as error:
        raise missing(error.name, "boosted trees as controls") from None
    columns = _can_split(train.table)
    columns = columns[_most_different(train.table[:, columns], train.y)]
    if not len(columns):  # nothing to tell targets by: the frequency of each class
        share = np.bincount(train.y, minlength=num_classes) / len(train.y)
        return np.tile(share, (len(asked), 1))
    rows = _few_enough(len(train.y), len(columns) * num_classes, seed)
    model = HistGradientBoostingClassifier(
        min_samples_leaf=SMALLEST_LEAF, early_stopping=False, warm_start=True, random_state=seed
    )
    learnt = _Part(train.table[rows][:, columns], train.y[rows])
    best = _grown(model, learnt, _Part(validation.table[:, columns], validation.y))
    chances = np.zeros((len(asked), num_classes))
    stages = islice(model.staged_predict_proba(asked[:, columns]), best, None)
    chances[:, model.classes_] = next(stages)
    return chances


def _grown(model: Any, train: _Part, validation: _Part) -> int:
    """Adds trees until the loss on validation targets no longer falls, and returns the place of the last one to use."""
    for number in range(TREES_AT_ONCE, TREES + 1, TREES_AT_ONCE):
        model.set_params(max_iter=number).fit(*train)
        best = _best_number(model, validation)
        if best < number - TREES_AT_ONCE:
            break
    return best


def _can_split(table: FloatArray) -> IntArray:
    """Returns the columns that a tree can split: those whose most frequent value leaves enough for a leaf."""
    usable = []
    for column in range(table.shape[1]):
        _, count = np.unique(table[:, column], return_counts=True)
        if len(table) - count.max(initial=0) >= SMALLEST_LEAF:
            usable.append(column)
    return np.array(usable, dtype=np.int64)


def _most_different(table: FloatArray, y: IntArray) -> IntArray:
    """Returns the columns whose means differ most between classes, against how much they vary within (F statistic)."""
    if table.shape[1] <= MOST_FEATURES:
        return np.arange(table.shape[1])
    centred = table - table.mean(axis=0)
    between = np.zeros(table.shape[1])
    for k in np.unique(y):
        of_class = centred[y == k]
        between += len(of_class) * of_class.mean(axis=0) ** 2
    within = (centred**2).sum(axis=0) - between
    statistic = between / np.maximum(within, 1e-12)
    return np.sort(np.argsort(-statistic, kind="stable")[:MOST_FEATURES])


def _few_enough(total: int, work: int, seed: int) -> IntArray:
    """Returns places of training targets, drawn at random if all of them would take too long."""
    most = max(1_000, MOST_WORK // work)
    if total <= most:
        return np.arange(total)
    log.info("boosted trees learn from %s of %s training targets", f"{most:,}", f"{total:,}")
    return np.sort(np.random.default_rng(seed).permutation(total)[:most])


def _best_number(model: Any, validation: _Part) -> int:
    """Returns the place of the last tree to use: where the loss on validation targets is smallest."""
    known = np.isin(validation.y, model.classes_)
    if not known.any():
        return int(model.n_iter_) - 1
    place = np.searchsorted(model.classes_, validation.y[known])
    losses = []
    for stage in model.staged_predict_proba(validation.table[known]):
        chance = stage[np.arange(len(place)), place]
        losses.append(-np.log(np.maximum(chance, 1e-12)).mean())
    return int(np.argmin(losses))
