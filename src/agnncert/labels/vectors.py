"""Node vectors for label votes: own features, two hops and PageRank, or own features alone.

No label is an argument of anything here, and no edge one of :func:`own_spectrum`.

Three blocks, each reduced to 256 columns, centred, with rows of length 1: the features, the features after two steps of
the normalised adjacency, and after ten steps of personalised PageRank. The last one is there once more, not centred.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch

from agnncert.errors import GraphError

Table = npt.NDArray[np.float64]

WIDTH = 256  # columns of each block
ALPHA = 0.1  # share of a node's own features in each step of PageRank
STEPS_OF_PAGERANK = 10
WEIGHTS = {"own": 0.5, "two hops": 0.7, "pagerank": 1.0, "pagerank, not centred": 0.3}
OWN_NOT_CENTRED = 0.3  # weight of own features that are not centred, beside 1 for those that are
POWER_STEPS = 3  # of the search for the leading columns
SPARE = 16  # columns more in that search


@dataclass(frozen=True)
class Spectrum:
    """Node vectors in the directions in which they vary most.

    Attributes:
        vectors: Coordinates of all nodes, the direction with the largest spread first, shape ``[num_nodes, w]``.
        spread: Sum of squares in each direction, shape ``[w]``.
    """

    vectors: Table
    spread: Table

    def penalty(self, df: float) -> float:
        """Returns the penalty of a ridge regression on all nodes with so many degrees of freedom.

        Raises:
            GraphError: The vectors do not vary in so many directions.
        """
        positive = self.spread[self.spread > 1e-9 * self.spread.max(initial=0)]
        if df >= len(positive):
            raise GraphError(
                f"df={df:g}: the node vectors of this graph vary in {len(positive)} directions only. Pass a smaller "
                "one, LabelVotes(df=…)."
            )
        low, high = 1e-12, float(positive.max()) * len(positive) * 10
        for _ in range(100):
            middle = float(np.sqrt(low * high))
            is_too_free = float((positive / (positive + middle)).sum()) > df
            low, high = (middle, high) if is_too_free else (low, middle)
        return low


def node_spectrum(x: torch.Tensor, edge_index: torch.Tensor) -> Spectrum:
    """Returns the vectors of all nodes. The same graph gives the same numbers on the same machine.

    Args:
        x: Features, shape ``[num_nodes, num_features]``.
        edge_index: Edges, in one direction or both, shape ``[2, num_edges]``.
    """
    features = _unit_rows(x.to(torch.float64).numpy())
    walk = _normalised(edge_index.numpy(), len(features))
    pagerank = features
    for _ in range(STEPS_OF_PAGERANK):
        pagerank = (1 - ALPHA) * (walk @ pagerank) + ALPHA * features
    long_walk = _reduced(_unit_rows(pagerank))
    blocks = {
        "own": _centred(_reduced(features)),
        "two hops": _centred(_reduced(_unit_rows(walk @ (walk @ features)))),
        "pagerank": _centred(long_walk),
        "pagerank, not centred": _unit_rows(long_walk),
    }
    return _spectrum([WEIGHTS[name] * block for name, block in blocks.items()])


def own_spectrum(x: torch.Tensor) -> Spectrum:
    """Returns vectors of all nodes that read no edge: their own features, centred, and once more not centred.

    Args:
        x: Features, shape ``[num_nodes, num_features]``.
    """
    features = _reduced(_unit_rows(x.to(torch.float64).numpy()))
    return _spectrum([_centred(features), OWN_NOT_CENTRED * _unit_rows(features)])


def _spectrum(blocks: list[Table]) -> Spectrum:
    """Returns the columns of several tables in the directions in which they vary most."""
    joined = np.hstack(blocks)
    spread, directions = np.linalg.eigh(joined.T @ joined)
    order = np.argsort(-spread, kind="stable")
    return Spectrum(joined @ directions[:, order], np.maximum(spread[order], 0.0))


def _unit_rows(table: Table) -> Table:
    length = np.linalg.norm(table, axis=1, keepdims=True)
    return np.asarray(table / np.maximum(length, 1e-9))


def _centred(table: Table) -> Table:
    return _unit_rows(table - table.mean(axis=0))


def _normalised(edge_index: npt.NDArray[np.int64], num_nodes: int) -> sp.csr_matrix:
    """Returns D^-1/2 (A + I) D^-1/2 of the undirected graph without weights."""
    ones = np.ones(edge_index.shape[1])
    arcs = sp.coo_matrix((ones, (edge_index[0], edge_index[1])), shape=(num_nodes, num_nodes)).tocsr()
    joined = ((arcs + arcs.T) > 0).astype(np.float64)
    joined.setdiag(1.0)
    scale = sp.diags(np.asarray(joined.sum(axis=1)).ravel() ** -0.5)
    return (scale @ joined @ scale).tocsr()


def _reduced(table: Table) -> Table:
    """Returns the leading :data:`WIDTH` columns of a table, by a randomised search whose random numbers are fixed."""
    width = table.shape[1]
    if width <= WIDTH:
        return table
    start = np.random.default_rng(0).standard_normal((width, min(WIDTH + SPARE, width)))
    basis = np.linalg.qr(table @ start)[0]
    for _ in range(POWER_STEPS):
        basis = np.linalg.qr(table @ np.linalg.qr(table.T @ basis)[0])[0]
    rows, lengths, _ = np.linalg.svd(basis.T @ table, full_matrices=False)
    return np.asarray((basis @ rows[:, :WIDTH]) * lengths[:WIDTH])
