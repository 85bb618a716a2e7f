"""Weights of label votes as whole numbers: ridge regression on node vectors, with a cap for each target.

What a target's score gives to a label is a row of ``Z (Z'Z + penalty)^-1 Z'``. It depends on node vectors and on which
nodes are candidates, and on no label.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from agnncert.labels.record import STEPS
from agnncert.labels.vectors import Spectrum, Table

FACTORS_PER_DF = 3  # directions that are kept for each degree of freedom
LARGEST = 2**15 - 1
BOX_STEPS = 60
PAIRS_AT_ONCE = 2**23

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Weighting:
    """How weights are made.

    Attributes:
        candidate: Rows of the candidates, ascending, shape ``[m]``.
        is_all: Whether all nodes are candidates, so that weights do not depend on who has a label.
        df: Degrees of freedom.
        rank: Position of the weight that counts as one vote, counted from the largest; 1 for no cap.
        box: Whether weights are fitted within the cap instead of cut off at it.
    """

    candidate: Rows
    is_all: bool
    df: float
    rank: int
    box: bool = False


def make_weights(spectrum: Spectrum, targets: Rows, weighting: Weighting) -> dict[str, npt.NDArray[np.generic]]:
    """Returns the arrays ``left``, ``right``, ``cap``, ``weights`` and ``own`` of a record.

    Args:
        spectrum: Node vectors.
        targets: Rows of the targets, shape ``[n]``.
        weighting: How weights are made.
    """
    own = _positions(targets, weighting.candidate)
    fitted = _fitted(spectrum, weighting)
    if weighting.box:
        boxed = _boxed(fitted, targets, own, weighting)
        empty = np.zeros((len(targets), 0), dtype=np.int16)
        nobody = np.zeros((len(weighting.candidate), 0), dtype=np.int16)
        ones = np.ones(len(targets), dtype=np.int64)
        return {"left": empty, "right": nobody, "cap": ones, "weights": boxed, "own": own}
    left = _whole(fitted.scaled[targets], by_row=True)
    right = _whole(fitted.scaled[weighting.candidate], by_row=False)
    none = np.zeros((len(targets), 0), dtype=np.int8)
    return {"left": left, "right": right, "cap": _caps(left, right, own, weighting.rank), "weights": none, "own": own}


@dataclass(frozen=True)
class _Fitted:
    """Node vectors whose products are weights, and what they were made from.

    Attributes:
        scaled: Vectors of all nodes, the product of two of which is a weight, shape ``[num_nodes, d]``.
        vectors: The same before they were scaled.
        penalty: The penalty of the ridge regression.
    """

    scaled: Table
    vectors: Table
    penalty: float


def _fitted(spectrum: Spectrum, weighting: Weighting) -> _Fitted:
    """Fits the ridge regression: on all nodes, or on the candidates with a penalty in proportion to their number."""
    penalty = spectrum.penalty(weighting.df)
    spread = spectrum.spread
    vectors = spectrum.vectors
    if not weighting.is_all:
        penalty *= len(weighting.candidate) / len(vectors)
        labelled = vectors[weighting.candidate]
        spread, directions = np.linalg.eigh(labelled.T @ labelled)
        order = np.argsort(-spread, kind="stable")
        spread = np.maximum(spread[order], 0.0)
        vectors = vectors @ directions[:, order]
    kept = min(int(np.ceil(FACTORS_PER_DF * weighting.df)), int((spread > 1e-9 * spread[0]).sum()))
    vectors = vectors[:, :kept]
    return _Fitted(vectors / np.sqrt(spread[:kept] + penalty), vectors, penalty)


def _whole(table: Table, by_row: bool) -> npt.NDArray[np.int16]:
    """Returns a table as whole numbers of 16 bits. Each row may have a scale of its own, or all have the same."""
    largest = np.abs(table).max(axis=1, keepdims=True, initial=0) if by_row else np.abs(table).max(initial=0)
    scaled: Table = table * (LARGEST / np.maximum(largest, 1e-300))
    return np.rint(scaled).astype(np.int16)


def _caps(left: npt.NDArray[np.int16], right: npt.NDArray[np.int16], own: Rows, rank: int) -> Rows:
    """Returns the product that counts as one vote: the one at ``rank`` by size, for each target, at least 1."""
    caps = np.ones(len(left), dtype=np.int64)
    wide = right.T.astype(np.float64)
    for part in _parts(len(left), len(right)):
        products = np.abs(left[part].astype(np.float64) @ wide)
        _silence(products, own[part])
        caps[part] = np.maximum(_at_rank(products, rank), 1.0).astype(np.int64)
    return caps


def _at_rank(sizes: Table, rank: int) -> Table:
    place = max(sizes.shape[1] - rank, 0)
    return np.asarray(np.partition(sizes, place, axis=1)[:, place])


def _silence(table: Table, own: Rows) -> None:
    """Sets the entry of each target for itself to 0."""
    inside = np.flatnonzero(own >= 0)
    table[inside, own[inside]] = 0.0


def _boxed(fitted: _Fitted, targets: Rows, own: Rows, weighting: Weighting) -> npt.NDArray[np.int8]:
    """Returns weights that are fitted within the cap, by accelerated projected gradients, in steps of one vote."""
    of_candidates = fitted.vectors[weighting.candidate]
    step = 1.0 / (float(np.linalg.norm(of_candidates, 2)) ** 2 + fitted.penalty)
    whole = np.zeros((len(targets), len(weighting.candidate)), dtype=np.int8)
    for part in _parts(len(targets), len(weighting.candidate)):
        wanted = fitted.vectors[targets[part]] @ of_candidates.T
        weights = fitted.scaled[targets[part]] @ fitted.scaled[weighting.candidate].T
        _silence(weights, own[part])
        cap = np.maximum(_at_rank(np.abs(weights), weighting.rank), 1e-12)[:, None]
        weights = np.clip(weights, -cap, cap)
        ahead = weights
        momentum = 1.0
        for _ in range(BOX_STEPS):
            gradient = (ahead @ of_candidates) @ of_candidates.T + fitted.penalty * ahead - wanted
            moved = np.clip(ahead - step * gradient, -cap, cap)
            _silence(moved, own[part])
            following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
            ahead = moved + (momentum - 1) / following * (moved - weights)
            weights = moved
            momentum = following
        whole[part] = np.clip(np.floor(weights / cap * STEPS), -STEPS, STEPS).astype(np.int8)
    return whole


def _positions(targets: Rows, candidate: Rows) -> Rows:
    """Returns the position of each target among the candidates, -1 if it is none."""
    if not len(candidate):
        return np.full(len(targets), -1)
    place = np.minimum(np.searchsorted(candidate, targets), len(candidate) - 1)
    return np.where(candidate[place] == targets, place, -1)


def _parts(num_targets: int, num_candidates: int) -> list[slice]:
    at_once = max(1, PAIRS_AT_ONCE // max(num_candidates, 1))
    return [slice(k, min(k + at_once, num_targets)) for k in range(0, num_targets, at_once)]
