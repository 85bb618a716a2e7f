"""``PairFiles``: sorts edges on disk that do not fit into memory.

A pair of rows becomes the number dst × number of nodes + src, and numbers are distributed over files by their range, so
that each file fits into memory. Edges are sorted by dst, then by src.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from agnncert.datasets.table_edges import Values as Weights
from agnncert.datasets.table_edges import distinct
from agnncert.datasets.table_roles import Rows
from agnncert.errors import DatasetError
from agnncert_large.disk import GraphWriter

PAIRS_IN_MEMORY = 1 << 23
_LARGEST_NODES = 3_000_000_000  # the square of which is below 2 to the power of 63


class PairFiles:
    """Pairs of rows on disk, in files by range.

    Args:
        folder: A new folder for the files, which the caller removes.
        num_nodes: Number of rows.
        expected: Approximate number of pairs.
        weighted: Whether each pair has a weight.
    """

    def __init__(self, folder: Path, num_nodes: int, expected: int, weighted: bool = False) -> None:
        if num_nodes > _LARGEST_NODES:
            raise DatasetError(f"{num_nodes} nodes: at most {_LARGEST_NODES} are supported.")
        folder.mkdir(parents=True)
        parts = max(1, -(-expected // PAIRS_IN_MEMORY))
        self.num_nodes = num_nodes
        self._files = [folder / f"{part}.pairs" for part in range(parts)]
        self._bounds = np.linspace(0, num_nodes, parts + 1).astype(np.int64)[1:-1] * num_nodes
        self.weighted = weighted

    def add(self, src: Rows, dst: Rows, weight: Weights | None = None) -> None:
        """Adds pairs; self-loops are left out."""
        kept = np.flatnonzero(src != dst)
        keys = dst[kept] * self.num_nodes + src[kept]
        if weight is None:
            keys.sort()
        else:
            order = np.argsort(keys, kind="stable")
            keys = keys[order]
            weight = weight[kept][order]
        cuts = np.searchsorted(keys, self._bounds)
        for file, start, end in zip(self._files, [0, *cuts], [*cuts, len(keys)], strict=True):
            if start < end:
                self._append(file, keys[start:end])
                if weight is not None:
                    self._append(file.with_suffix(".weights"), weight[start:end])

    def sorted(self) -> Iterator[tuple[Rows, Weights | None]]:
        """Yields the numbers of all pairs in ascending order, each once, a file at a time.

        Raises:
            DatasetError: The same pair has two weights.
        """
        for file in self._files:
            if not file.exists():
                continue
            keys = np.fromfile(file, dtype=np.int64)
            weights = None
            if self.weighted:
                weights = np.fromfile(file.with_suffix(".weights"), dtype=np.float32)
            yield distinct(keys, weights, self.num_nodes)

    def remove(self) -> None:
        """Deletes the files."""
        for file in self._files:
            file.unlink(missing_ok=True)
            file.with_suffix(".weights").unlink(missing_ok=True)

    @staticmethod
    def _append(file: Path, array: npt.NDArray[np.generic]) -> None:
        with file.open("ab") as opened:
            array.tofile(opened)


def write_edges(writer: GraphWriter, pairs: PairFiles) -> int:
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
