"""Edges of a user's table: each pair once, with its values, and what was left out."""

import logging
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from agnncert.datasets.columns import Table
from agnncert.datasets.table_roles import Rows
from agnncert.errors import DatasetError

_log = logging.getLogger(__name__)
Values = npt.NDArray[np.float32]
Mask = npt.NDArray[np.bool_]
TRUSTED = "trusted"  # name of the mark of trusted edges
REPEATED = ("sum", "mean")  # what becomes of the values of repeated edges


@dataclass(frozen=True)
class EdgeRows:
    """Edges as a table lists them.

    Attributes:
        ends: Rows of the nodes at both ends, shape ``[2, num_edges]``.
        weights: Weights, shape ``[num_edges, 1]``, or ``None``.
        attributes: Attributes, shape ``[num_edges, num_attributes]``, or ``None``.
    """

    ends: Rows
    weights: Values | None = None
    attributes: Values | None = None

    @property
    def values(self) -> Values | None:
        """Weights and attributes in one matrix, weights first, or ``None`` without both."""
        parts = [part for part in (self.weights, self.attributes) if part is not None]
        return np.hstack(parts) if parts else None

    def selected(self, kept: Mask) -> "EdgeRows":
        """Returns some of the edges."""
        return EdgeRows(
            self.ends[:, kept],
            None if self.weights is None else self.weights[kept],
            None if self.attributes is None else self.attributes[kept],
        )

    def with_marks(self, trusted: Mask) -> "EdgeRows":
        """Returns the edges with a mark of trusted ones as their last attribute."""
        columns = [] if self.attributes is None else [self.attributes]
        marks = trusted[:, None].astype(np.float32)
        return replace(self, attributes=np.hstack([*columns, marks]))


@dataclass(frozen=True)
class JoinedEdges:
    """Edges of a graph, each pair once and sorted.

    Attributes:
        edge_index: Rows of src and dst, shape ``[2, num_edges]``.
        values: Values of each edge, or ``None``.
        count: Rows of the table that each edge stands for.
        num_repeated: Rows of the table that join a pair again.
    """

    edge_index: Rows
    values: Values | None
    count: Rows
    num_repeated: int


def without_repeated_trusted(table: Table, edges: EdgeRows, trusted: Mask, num_nodes: int) -> EdgeRows:
    """Returns the edges without those that join a trusted pair again, so that nobody alters it by joining it again.

    The others get a mark of trusted ones as their last attribute.

    Args:
        table: The table of edges.
        edges: Its rows.
        trusted: Which rows are trusted.
        num_nodes: Number of nodes.
    """
    pair = edges.ends.min(axis=0) * num_nodes + edges.ends.max(axis=0)
    kept: Mask = trusted | ~np.isin(pair, pair[trusted])
    num_trusted = int(trusted.sum())
    num_left_out = int((~kept).sum())
    _log.info("%s: %s of %s edges are trusted", table.path.name, f"{num_trusted:,}", f"{len(trusted):,}")
    if num_left_out:
        _log.warning(
            "%s: %s other edges join a trusted pair again and are left out", table.path.name, f"{num_left_out:,}"
        )
    return edges.with_marks(trusted).selected(kept)


def joined_edges(
    table: Table, edges: EdgeRows, num_nodes: int, *, directed: bool = False, repeated: str | None = None
) -> JoinedEdges:
    """Returns the edges of a graph, and logs what was left out.

    Args:
        table: The table of edges.
        edges: Its rows.
        num_nodes: Number of nodes.
        directed: Whether edges are directed. If not, each pair is joined in both directions.
        repeated: Whether the values of repeated edges are added up (``"sum"``) or averaged (``"mean"``).

    Raises:
        DatasetError: An edge is repeated with other values, and ``repeated`` is not given.
    """
    ends = edges.ends
    values = edges.values
    num_loops = int((ends[0] == ends[1]).sum())
    if num_loops:
        _log.warning("%s: %d self-loop(s) left out", table.path.name, num_loops)
    num_repeated = _num_repeated(ends, num_nodes, directed)
    if num_repeated:
        how = "count once" if values is None else f"are joined by their {repeated or 'equal values'}"
        _log.warning(
            "%s: %s of %s edges repeat an earlier pair and %s",
            table.path.name,
            f"{num_repeated:,}",
            f"{ends.shape[1] - num_loops:,}",
            how,
        )
    if not directed:
        ends = np.hstack([ends, ends[::-1]])
        values = None if values is None else np.tile(values, (2, 1))
    is_edge = ends[0] != ends[1]
    keys = (ends[0] * num_nodes + ends[1])[is_edge]
    _, count = np.unique(keys, return_counts=True)
    keys, values = distinct(keys, None if values is None else values[is_edge], num_nodes, repeated)
    return JoinedEdges(np.stack(np.divmod(keys, num_nodes)), values, count, num_repeated)


def _num_repeated(ends: Rows, num_nodes: int, directed: bool) -> int:
    """Returns how many edges join a pair again. Self-loops do not count."""
    low, high = ends if directed else (ends.min(axis=0), ends.max(axis=0))
    pairs = (low * num_nodes + high)[low != high]
    return len(pairs) - len(np.unique(pairs))


def distinct(
    keys: Rows, values: Values | None, num_nodes: int, repeated: str | None = None
) -> tuple[Rows, Values | None]:
    """Returns pairs of rows in ascending order, each once, with their values.

    Args:
        keys: Each pair as one number, first row × ``num_nodes`` + second row.
        values: Weight of each pair, or a row of values, or ``None``.
        num_nodes: Number of nodes.
        repeated: Whether the values of a repeated pair are added up (``"sum"``) or averaged (``"mean"``).

    Raises:
        DatasetError: The same pair has two values, and ``repeated`` is not given.
    """
    if values is None:
        keys = np.sort(keys)
    else:
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        values = values[order]
    is_again = keys[1:] == keys[:-1]
    starts = np.flatnonzero(np.append(np.ones(min(1, len(keys)), bool), ~is_again))
    if values is None:
        return keys[starts], None
    if repeated is not None and len(keys):
        return keys[starts], _combined(values, starts, repeated)
    differs = (values[1:] != values[:-1]).reshape(max(len(keys) - 1, 0), -1).any(axis=1)
    contradictions = np.flatnonzero(is_again & differs)
    if contradictions.size:
        first, second = divmod(int(keys[contradictions[0]]), num_nodes)
        raise DatasetError(
            f"the nodes in rows {first + 1} and {second + 1} of the table of nodes are joined twice, with different "
            'weights or attributes: pass repeated="sum" or "mean" (--set repeated=sum), or directed=True (--set '
            "directed=true) if the two directions differ, or keep one of the edges."
        )
    return keys[starts], values[starts]


def _combined(values: Values, starts: Rows, repeated: str) -> Values:
    """Returns the sum or mean of the values of each pair, whose first row is in ``starts``."""
    totals = np.add.reduceat(values.astype(np.float64), starts, axis=0)
    if repeated == "mean":
        counts = np.diff(np.append(starts, len(values)))
        totals = totals / counts.reshape((-1,) + (1,) * (values.ndim - 1))
    return totals.astype(np.float32)
