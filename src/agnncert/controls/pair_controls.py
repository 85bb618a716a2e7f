"""Controls for decisions about pairs: own features alone, the number of common neighbours, and boosted trees on all.

Nothing is proved about the last two: they read the graph. The first one is the certified model without edges, with a
threshold of its own, so that reports have it already.
"""

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from agnncert.certificates.votes import FloatArray, IntArray
from agnncert.controls.api import PAIR_TREES
from agnncert.controls.table import Control
from agnncert.errors import missing
from agnncert.graphs.targets import CanonicalData
from agnncert.pairs.model import PairModel
from agnncert.pairs.targets import PairTargets, choose_pairs
from agnncert.pairs.voters import neighbours_of_pairs, unmasked

COUNT = "number of common neighbours"
NUM_TREES = 120


@dataclass(frozen=True)
class PairControls:
    """What the controls say about the targets.

    Attributes:
        own: Class of each target by its own features alone, with a threshold of their own.
        trees: Class of each target by boosted trees; None without training data.
        controls: The controls as a report shows them.
    """

    own: IntArray
    trees: IntArray | None
    controls: tuple[Control, ...]


def pair_controls(model: PairModel, data: CanonicalData, targets: IntArray, seed: int = 0) -> PairControls:
    """Returns controls of a model of pairs on some targets.

    Args:
        model: The trained model, whose prior is the control without a graph.
        data: The graph, with its pairs.
        targets: Places of the targets in ``edge_label_index``.
        seed: Of the trees, which learn from the validation pairs: those are what the votes were fitted on, too.

    Raises:
        MissingPackage: scikit-learn is not installed.
    """
    asked = choose_pairs(data, targets)
    own = own_scores(model, asked).argmax(axis=1)
    chances = _tree_chances(model, data, asked, seed)
    controls = []
    if model.num_classes == 2 and model.defence.trusted is None:
        count = _common(asked).astype(np.float64)
        controls.append(Control(COUNT, score=count, of_class=_class_of_many(model, data), reads_graph=True))
    if chances is None:
        return PairControls(own, None, tuple(controls))
    label = chances.argmax(axis=1)
    if model.num_classes == 2:
        controls.append(Control(PAIR_TREES, score=chances[:, 1], reads_graph=True))
    else:
        controls.append(Control(PAIR_TREES, label=label, reads_graph=True))
    return PairControls(own, label, tuple(controls))


@torch.no_grad()
def own_scores(model: PairModel, pairs: PairTargets) -> FloatArray:
    """Returns log-probabilities of each class by the prior alone, with its own threshold, shape ``[n, C]``.

    The prior reads the pair's own features; with trusted contacts also the edges that leave its first node.
    """
    exact = copy.deepcopy(model).double().eval()
    values = exact.with_own_edges(pairs.graph, pairs.ends, pairs.values, model.masked_pairs(pairs.ends))
    return np.asarray(exact.own_logits(pairs.graph, pairs.ends, values).numpy())


def _common(pairs: PairTargets) -> IntArray:
    voters = neighbours_of_pairs(pairs.graph, pairs.ends, unmasked(pairs.graph, pairs.ends[:0]), both=False)
    return np.bincount(voters.owner, minlength=len(pairs.ends))


def _class_of_many(model: PairModel, data: CanonicalData) -> int:
    """Returns the class whose validation pairs have more common neighbours on average.

    The class that votes are for is taken only where no validation pairs of both classes are known: a model whose own
    features suffice may vote for either.
    """
    known = _validation_pairs(data)
    if known is None or known.truth is None:
        return int(model.favoured)
    mean = [float(_common(known)[known.truth == k].mean()) for k in (0, 1)]
    return int(mean[1] >= mean[0])


def _validation_pairs(data: CanonicalData) -> PairTargets | None:
    """Returns the validation pairs, or ``None`` if those with a class are not of two classes."""
    val_mask: Any = getattr(data.data, "val_mask", None)
    if val_mask is None or getattr(data.data, "edge_label", None) is None or not bool(val_mask.any()):
        return None
    known = choose_pairs(data, val_mask)
    if known.truth is None or len(np.unique(known.truth[known.truth >= 0])) < 2:
        return None
    return known


def _tree_chances(model: PairModel, data: CanonicalData, asked: PairTargets, seed: int) -> FloatArray | None:
    """Returns the probability of each class by trees; None without validation pairs of two classes."""
    known = _validation_pairs(data)
    if known is None or known.truth is None:
        return None
    try:
        from sklearn.ensemble import HistGradientBoostingClassifier
    except ModuleNotFoundError as error:
        raise missing(error.name, "boosted trees as controls") from None
    labelled = known.truth >= 0
    trees = HistGradientBoostingClassifier(max_iter=NUM_TREES, random_state=seed)
    trees.fit(_table(model, known)[labelled], known.truth[labelled])
    chances = np.zeros((len(asked.ends), model.num_classes))
    chances[:, trees.classes_] = trees.predict_proba(_table(model, asked))
    return chances


def _table(model: PairModel, pairs: PairTargets) -> FloatArray:
    """Returns what trees read of each pair: its own scores and values, common neighbours and degrees."""
    return np.column_stack([*_columns(model, pairs)])


def _columns(model: PairModel, pairs: PairTargets) -> Iterator[Any]:
    graph = pairs.graph
    yield own_scores(model, pairs)
    yield pairs.values.double().numpy()
    yield _common(pairs)
    for end in graph.edge_index.long().numpy():
        degree = np.bincount(end, minlength=graph.num_nodes)
        yield degree[pairs.ends]
