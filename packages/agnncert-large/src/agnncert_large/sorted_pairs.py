"""``SortedPairs``: edges that do not fit into memory, sorted in a database by dst, then by src.

A pair of rows is the number dst × number of nodes + src. Pairs come back a range of these numbers at a time.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from agnncert.datasets.table_edges import Values as Weights
from agnncert.datasets.table_edges import distinct
from agnncert.datasets.table_roles import Rows
from agnncert.datasets.table_store import TableStore
from agnncert.errors import DatasetError
from agnncert_large.disk import GraphWriter

PAIRS_IN_MEMORY = 1 << 23
_LARGEST_NODES = 3_000_000_000  # the square of which is below 2 to the power of 63


class SortedPairs:
    """Pairs of rows in a store.

    Args:
        store: The store.
        name: What its table is called, an identifier of SQL.
        num_nodes: Number of rows.
        expected: Approximate number of pairs.
        weighted: Whether each pair has a weight.
    """

    def __init__(self, store: TableStore, name: str, num_nodes: int, expected: int, weighted: bool = False) -> None:
        if num_nodes > _LARGEST_NODES:
            raise DatasetError(f"{num_nodes} nodes: at most {_LARGEST_NODES} are supported.")
        parts = max(1, -(-expected // PAIRS_IN_MEMORY))
        self.num_nodes = num_nodes
        self.weighted = weighted
        self._bounds = [int(row) * num_nodes for row in np.linspace(0, num_nodes, parts + 1).astype(np.int64)]
        self._store = store
        self._name = name
        store.run(f"CREATE TABLE {name} (key BIGINT{', weight FLOAT' if weighted else ''})")

    def add(self, src: Rows, dst: Rows, weight: Weights | None = None) -> None:
        """Adds pairs; self-loops are left out."""
        import pyarrow as pa

        kept = np.flatnonzero(src != dst)
        columns: dict[str, Any] = {"key": dst[kept] * self.num_nodes + src[kept]}
        if weight is not None:
            columns["weight"] = weight[kept]
        self._store.run(f"INSERT INTO {self._name} SELECT * FROM piece", piece=pa.table(columns))

    def sorted(self) -> Iterator[tuple[Rows, Weights | None]]:
        """Yields the numbers of all pairs in ascending order, each once, a range of them at a time.

        Raises:
            DatasetError: The same pair has two weights.
        """
        weights = ", min(weight) AS least, max(weight) AS most" if self.weighted else ""
        for first, end in pairwise(self._bounds):
            found = self._store.table(
                f"SELECT key{weights} FROM {self._name} WHERE key >= {first} AND key < {end} GROUP BY key ORDER BY key"
            )
            keys = found["key"].to_numpy()
            if not self.weighted:
                yield keys, None
                continue
            least, most = found["least"].to_numpy(), found["most"].to_numpy()
            for place in np.flatnonzero(least != most)[:1]:
                distinct(keys[[place, place]], np.array([least[place], most[place]]), self.num_nodes)  # raises
            yield keys, least


def write_edges(writer: GraphWriter, pairs: SortedPairs) -> int:
    """Writes ``edge_index``, and ``edge_weight`` if pairs have weights; returns the number of edges."""
    count = sum(len(keys) for keys, _ in pairs.sorted())
    edge_index = writer.array("edge_index", (2, count), torch.int64)
    weight = writer.array("edge_weight", (count,), torch.float32) if pairs.weighted else None
    start = 0
    for keys, weights in pairs.sorted():
        span = slice(start, start + len(keys))
        dst, src = np.divmod(keys, pairs.num_nodes)
        edge_index[0, span] = src
        edge_index[1, span] = dst
        if weight is not None and weights is not None:
            weight[span] = weights
        start += len(keys)
    return count
