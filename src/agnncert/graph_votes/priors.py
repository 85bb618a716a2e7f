"""Trees over what is trusted, and counting: what graph votes say of a graph in advance.

How good they are follows from graphs that they were not grown on: each tree leaves some graphs out, and a score of a
graph is that of the trees that have not seen it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from agnncert.certificates.votes import BoolArray, IntArray
from agnncert.errors import DatasetError, missing
from agnncert.graph_votes.record import STEPS, Trusted
from agnncert.graph_votes.seen import ROUNDS, Shape, Types, of_nodes, of_size, of_structure, of_surroundings
from agnncert.graph_votes.trees import SHARES, Trees

SMOOTH = 0.02  # is added to shares, so that their logarithms are finite
TREES = 200
LEAST_SEEN = 10  # nodes of training graphs with a colour, for it to be known
MOST_COLOURS = 500  # of each round
DENSE = 4.5  # edges per node, both ways, from which on long cycles take too long to count


@dataclass(frozen=True)
class Fitted:
    """Graphs whose classes are known, with what is counted in them.

    Attributes:
        shape: The structure of all graphs.
        x: Features of all nodes.
        y: The class of each graph, shape ``[n]``.
        num_classes: Number of classes.
        is_training: Whether each graph is in the training part, else in the validation part.
        seed: Seed of trees and votes.
        nodes: Node task: rows of the nodes whose classes are known, shape ``[n]``; None for graphs.
    """

    shape: Shape
    x: npt.NDArray[np.floating[Any]]
    y: IntArray
    num_classes: int
    is_training: BoolArray
    seed: int
    nodes: IntArray | None = None

    @property
    def size(self) -> IntArray:
        """The plainest count: nodes of each graph, or neighbours of each node, shape ``[n, 1]``."""
        if self.nodes is None:
            return of_size(self.shape)
        return self.shape.degree[self.nodes, None]


@dataclass(frozen=True)
class Prior:
    """Trees over what is trusted.

    Attributes:
        name: What they look at, in words.
        trees: The trees; one leaf if nothing is trusted.
        looks: Whether they look at more than the number of nodes.
        out_of_bag: Shares of each class by trees that have not seen the graph, in steps, shape ``[n, C]``.
    """

    name: str
    trees: Trees
    looks: bool
    out_of_bag: IntArray

    @property
    def label(self) -> IntArray:
        """The class of each graph by trees that have not seen it, shape ``[n]``."""
        return np.asarray(self.out_of_bag.argmax(axis=1))


def vocabulary(shape: Shape) -> tuple[IntArray, IntArray]:
    """Returns the colours that are known, round after round, and where each round begins."""
    known: list[IntArray] = []
    for number in range(1, ROUNDS + 1):
        colour, times = np.unique(shape.colours[number], return_counts=True)
        often = np.argsort(-times, kind="stable")[:MOST_COLOURS]
        often = often[times[often] >= LEAST_SEEN]
        known.append(np.sort(colour[often].view(np.int64)))
    begin = np.cumsum([0, *(len(part) for part in known)]).astype(np.int64)
    return np.concatenate(known), begin


def longest_cycle(shape: Shape) -> int:
    """Returns up to how many edges cycles are counted: fewer where nodes have many edges."""
    return 4 if shape.pairs.shape[1] > DENSE / 2 * shape.num_nodes else 6


def priors(fitted: Fitted, trusted: Trusted, seen: IntArray) -> list[Prior]:
    """Returns counting, and the best of a few forests over all that is trusted.

    Args:
        fitted: The graphs.
        trusted: What is trusted.
        seen: What the trees may look at, besides the number of nodes.
    """
    if trusted == "none":
        return [_constant(fitted)]
    counting = _counting(fitted)
    if trusted == "count":
        return [counting]
    return [counting, max(_forests(fitted, seen), key=lambda prior: float((prior.label == fitted.y).mean()))]


def _constant(fitted: Fitted) -> Prior:
    """Returns a score that is the same for all graphs."""
    leaf = Trees(
        root=np.zeros(1, dtype=np.int32),
        column=np.full(1, -1, dtype=np.int32),
        threshold=np.zeros(1, dtype=np.int32),
        left=np.full(1, -1, dtype=np.int32),
        right=np.full(1, -1, dtype=np.int32),
        share=np.zeros((1, fitted.num_classes), dtype=np.int16),
    )
    shares = np.zeros((len(fitted.y), fitted.num_classes), dtype=np.int64)
    return Prior("nothing", leaf, looks=False, out_of_bag=shares)


def _counting(fitted: Fitted) -> Prior:
    """Returns a rule by the number of nodes: a tree with as many leaves as there are classes."""
    from sklearn.tree import DecisionTreeClassifier

    size = fitted.size
    tree = DecisionTreeClassifier(
        max_leaf_nodes=max(2, fitted.num_classes), min_samples_leaf=5, random_state=fitted.seed
    )
    tree.fit(size, fitted.y)
    one = type("OneTree", (), {"estimators_": [tree]})()
    trees = Trees.of(one, tree.classes_.astype(np.int64), fitted.num_classes)
    name = "the number of nodes" if fitted.nodes is None else "the number of neighbours"
    return Prior(name, trees, looks=False, out_of_bag=trees.shares(size))


def _forests(fitted: Fitted, seen: IntArray) -> Iterator[Prior]:
    """Yields forests with different leaves; how good each is follows from graphs that its trees have not seen."""
    try:
        from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
    except ImportError as error:
        raise missing("sklearn", "growing the trees of graph votes") from error

    how: dict[str, Any] = {"bootstrap": True, "oob_score": True, "random_state": fitted.seed}
    candidates = (
        ExtraTreesClassifier(TREES, min_samples_leaf=1, **how),
        ExtraTreesClassifier(TREES, min_samples_leaf=3, **how),
        RandomForestClassifier(TREES, min_samples_leaf=3, **how),
    )
    for forest in candidates:
        forest.fit(seen.astype(np.float32), fitted.y)
        shares = np.zeros((len(fitted.y), fitted.num_classes), dtype=np.int64)
        classes = forest.classes_.astype(np.int64)
        shares[:, classes] = np.round(SHARES * np.nan_to_num(forest.oob_decision_function_))
        trees = Trees.of(forest, classes, fitted.num_classes)
        yield Prior("all that is trusted", trees, looks=True, out_of_bag=shares)


def score_of_shares() -> IntArray:
    """Returns the score of each share, in steps: its logarithm."""
    shares = np.arange(SHARES + 1) / SHARES
    return np.round(STEPS * np.log(shares + SMOOTH)).astype(np.int64)


def require_classes(y: IntArray) -> None:
    """Refuses graphs of a single class.

    Raises:
        DatasetError: There is nothing to learn.
    """
    if len(np.unique(y)) < 2:
        raise DatasetError("all training and validation graphs have the same class: there is nothing to learn.")


def seen_by(fitted: Fitted, trusted: Trusted, types: Types, longest: int) -> IntArray:
    """Returns what trees may look at, apart from colours, for each graph or node."""
    shape, x = fitted.shape, fitted.x
    if fitted.nodes is not None:
        return of_surroundings(shape)[fitted.nodes]
    if trusted == "structure":
        return of_structure(shape, longest)
    if trusted == "nodes":
        return of_nodes(types, x, Shape(shape.num_graphs, shape.batch, np.zeros((2, 0), dtype=np.int64)))
    return of_size(shape)
