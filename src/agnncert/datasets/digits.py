"""Two datasets without a download: the handwritten digits inside scikit-learn (1,797 of 8 x 8 pixels)."""

import numpy as np
import numpy.typing as npt
import torch
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

from agnncert.errors import DatasetError

NEIGHBOURS = 6  # of every image in digits-knn
LIT = 4  # a pixel of intensity 4 to 16 is lit in digits-grid
SIDE = 8


def digits_knn() -> Data:
    """One node per image, joined to the images nearest to it (in either direction); features are the pixels.

    The edges follow from the features, so they add less than citations do: a demonstration, not a benchmark.
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
    """One graph per image: its lit pixels, each joined to the lit ones around it.

    Features of a node are its intensity and, one-hot, its row and column; its id is its position.
    """
    pixels, labels = _digits()
    return [_grid(image, int(label)) for image, label in zip(pixels, labels, strict=True)]


def _digits() -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    try:
        from sklearn.datasets import load_digits
    except ImportError:
        raise DatasetError(
            'the digits ship inside scikit-learn, which is not installed: pip install "agnncert[data]".'
        ) from None
    pixels, labels = load_digits(return_X_y=True)
    return pixels, labels.astype(np.int64)


def _nearest(points: npt.NDArray[np.float64], count: int) -> npt.NDArray[np.int64]:
    """The ``count`` nearest other points of every point; ties go to the smaller row.

    Pixels are small integers, so the distances are exact and the graph is the same on every machine.
    """
    length = (points**2).sum(axis=1)
    distance = length[:, None] + length - 2 * points @ points.T
    np.fill_diagonal(distance, distance.max() + 1)
    rank = distance * len(points) + np.arange(len(points))
    return np.argpartition(rank, count, axis=1)[:, :count]


def _grid(image: npt.NDArray[np.float64], label: int) -> Data:
    position = np.flatnonzero(image >= LIT)
    row, column = np.divmod(position, SIDE)
    place = np.full((SIDE + 1, SIDE + 1), -1)  # a margin of unlit pixels; index -1 wraps round into it
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
