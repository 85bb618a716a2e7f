"""Datasets that need no download: two of the handwritten digits in scikit-learn, and two that are generated."""

import numpy as np
import numpy.typing as npt
import torch
from torch_geometric.data import Data
from torch_geometric.utils import to_undirected

from agnncert.errors import missing

NEIGHBOURS = 6  # of every image in digits-knn
LIT = 4  # a pixel of intensity 4 to 16 is lit in digits-grid
SIDE = 8  # pixels
CIRCLES = 4  # of friends


def accounts(size: int = 5000, seed: int = 0) -> Data:
    """Generates accounts, joined by payments, of which about 3 % are fraud. Nothing in them is real.

    Features say little about an account: they are noise but for its age, and slightly more payments at night and abroad
    if it is fraud. Most payments of a fraud account go to young accounts, and most payments of others do not.

    Args:
        size: Number of accounts.
        seed: Seed of everything that is drawn.
    """
    random = np.random.default_rng(seed)
    is_fraud = random.random(size) < 0.03
    is_young = random.random(size) < 0.2
    x = random.normal(size=(size, 4))
    x[:, 0] += np.where(is_young, -2, 2)  # age, then payments at night, abroad, and on weekends
    x[:, 1] += 0.5 * is_fraud
    x[:, 2] += 0.3 * is_fraud
    num_payments = random.poisson(np.where(is_fraud, 24, 6)) + 2
    payer = np.repeat(np.arange(size), num_payments)
    to_young = random.random(len(payer)) < np.where(is_fraud[payer], 0.85, 0.1)
    old_payee = random.choice(np.flatnonzero(~is_fraud & ~is_young), len(payer))
    young_payee = random.choice(np.flatnonzero(~is_fraud & is_young), len(payer))
    edges = np.stack([payer, np.where(to_young, young_payee, old_payee)])
    return Data(
        x=torch.from_numpy(x).float(),
        edge_index=to_undirected(torch.from_numpy(edges[:, edges[0] != edges[1]]), num_nodes=size),
        y=torch.from_numpy(is_fraud.astype(np.int64)),
        node_id=torch.arange(size),
        class_names=["genuine", "fraud"],
    )


def circles(size: int = 1000, seed: int = 0) -> Data:
    """Generates people in four circles of friends. Nothing in them is real.

    Features say something about a person's circle, and who knows whom says more: six of seven
    friendships are within a circle.

    Args:
        size: Number of people.
        seed: Seed of everything that is drawn.
    """
    random = np.random.default_rng(seed)
    circle = random.integers(CIRCLES, size=size)
    x = random.normal(size=(size, CIRCLES))
    x[np.arange(size), circle] += 1.5
    person = np.repeat(np.arange(size), random.poisson(12, size) + 1)
    anybody = random.integers(size, size=len(person))
    members = [np.flatnonzero(circle == k) for k in range(CIRCLES)]
    from_circle = np.array([random.choice(members[k]) for k in circle[person]])
    friend = np.where(random.random(len(person)) < 0.8, from_circle, anybody)
    edges = np.stack([person, friend])
    return Data(
        x=torch.from_numpy(x).float(),
        edge_index=to_undirected(torch.from_numpy(edges[:, person != friend]), num_nodes=size),
        y=torch.from_numpy(circle),
        node_id=torch.arange(size),
        class_names=["north", "east", "south", "west"],
    )


def digits_knn() -> Data:
    """Loads one node per image, joined to the nearest images. Features are the pixels.

    The edges follow from the features, so this is a demonstration, not a benchmark: certificates speak about attacks on
    these edges, not about images that change and would be joined to others. ``computed_edges`` says so.
    """
    pixels, labels = _digits()
    source = np.repeat(np.arange(len(pixels)), NEIGHBOURS)
    edges = np.stack([source, _nearest(pixels, NEIGHBOURS).ravel()])
    return Data(
        x=torch.from_numpy(pixels / 16).float(),
        edge_index=to_undirected(torch.from_numpy(edges), num_nodes=len(pixels)),
        y=torch.from_numpy(labels),
        node_id=torch.arange(len(pixels)),
        computed_edges="each image is joined to the nearest ones by its pixels",
    )


def digits_grid() -> list[Data]:
    """Loads one graph per image: its lit pixels, each joined to the lit pixels around it.

    Features of a node are its intensity and its one-hot row and column. Its id is its position.
    """
    pixels, labels = _digits()
    return [_grid(image, int(label)) for image, label in zip(pixels, labels, strict=True)]


def _digits() -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Loads the pixels of each image, and its digit."""
    try:
        from sklearn.datasets import load_digits
    except ModuleNotFoundError as error:
        raise missing(error.name, "a set of digits") from None
    pixels, labels = load_digits(return_X_y=True)
    return pixels, labels.astype(np.int64)


def _nearest(points: npt.NDArray[np.float64], count: int) -> npt.NDArray[np.int64]:
    """Returns the ``count`` nearest other points of every point. Ties go to the smaller row.

    Pixels are small integers, so distances are exact and the graph is the same on every machine.
    """
    length = (points**2).sum(axis=1)
    distance = length[:, None] + length - 2 * points @ points.T
    np.fill_diagonal(distance, distance.max() + 1)
    rank = distance * len(points) + np.arange(len(points))
    return np.argpartition(rank, count, axis=1)[:, :count]


def _grid(image: npt.NDArray[np.float64], label: int) -> Data:
    """Returns the graph of one image."""
    position = np.flatnonzero(image >= LIT)
    row, column = np.divmod(position, SIDE)
    node_at = np.full((SIDE + 1, SIDE + 1), -1)  # with a margin of unlit pixels, also at index -1
    node_at[row, column] = np.arange(len(position))
    pairs = []
    for down, right in ((0, 1), (1, -1), (1, 0), (1, 1)):  # half of the eight; the other half is their mirror image
        neighbour = node_at[row + down, column + right]
        lit = np.flatnonzero(neighbour >= 0)
        pairs.append(np.stack([lit, neighbour[lit]]))
    unit = np.eye(SIDE)
    features = np.column_stack([image[position] / 16, unit[row], unit[column]])
    return Data(
        x=torch.from_numpy(features).float(),
        edge_index=to_undirected(torch.from_numpy(np.concatenate(pairs, axis=1)), num_nodes=len(position)),
        y=torch.tensor([label]),
        node_id=torch.from_numpy(position),
    )
