"""Edges that are more than memory: brought in piece by piece, brought out sorted, each pair once.

Pairs of rows become one number each, head times the number of nodes plus source. Numbers are spread over files by
their range, so that each file fits into memory and is sorted by itself. Edges come out in the order that certificates
are made in where ids are row numbers: by head, then by source.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch

from agnncert.errors import DatasetError
from agnncert.graphs.disk import GraphWriter

Rows = npt.NDArray[np.int64]
Weights = npt.NDArray[np.float32]

PAIRS_IN_MEMORY = 1 << 23
_LARGEST_NODES = 3_000_000_000  # the square of which is below 2 to the power of 63


class PairFiles:
    """Pairs of rows on disk, in files by range.

    Args:
        folder: Where the files are put; the caller removes it.
        num_nodes: Rows are from 0 on, below this.
        expected: About how many pairs there will be.
        weighted: Whether each pair has a weight.
    """

    def __init__(self, folder: Path, num_nodes: int, expected: int, weighted: bool = False) -> None:
        if num_nodes > _LARGEST_NODES:
            raise DatasetError(f"{num_nodes} nodes: pairs of more than {_LARGEST_NODES} cannot be told apart here.")
        folder.mkdir(parents=True)
        parts = max(1, -(-expected // PAIRS_IN_MEMORY))
        self.num_nodes = num_nodes
        self._files = [folder / f"{part}.pairs" for part in range(parts)]
        heads = np.linspace(0, num_nodes, parts + 1).astype(np.int64)[1:-1]
        self._bounds = heads * num_nodes
        self._weighted = weighted

    def add(self, source: Rows, head: Rows, weight: Weights | None = None) -> None:
        """Takes in some pairs; self-loops are left out."""
        kept = np.flatnonzero(source != head)
        keys = head[kept] * self.num_nodes + source[kept]
        if weight is None:
            keys.sort()
            pieces: list[tuple[Rows, Weights | None]] = [(keys, None)]
        else:
            order = np.argsort(keys, kind="stable")
            pieces = [(keys[order], weight[kept][order])]
        for sorted_keys, weights in pieces:
            cuts = np.searchsorted(sorted_keys, self._bounds)
            for part, span in enumerate(zip([0, *cuts], [*cuts, len(keys)], strict=True)):
                if span[0] < span[1]:
                    self._append(self._files[part], sorted_keys[slice(*span)])
                    if weights is not None:
                        self._append(self._files[part].with_suffix(".weights"), weights[slice(*span)])

    def sorted(self) -> Iterator[tuple[Rows, Weights | None]]:
        """The numbers of all pairs in ascending order, each once, a file at a time.

        Raises:
            DatasetError: The same pair has two weights.
        """
        for file in self._files:
            if not file.exists():
                continue
            keys = np.fromfile(file, dtype=np.int64)
            weights = None
            if self._weighted:
                order = np.argsort(keys, kind="stable")
                keys, weights = keys[order], np.fromfile(file.with_suffix(".weights"), dtype=np.float32)[order]
            else:
                keys.sort()
            fresh = np.ones(len(keys), dtype=bool)
            fresh[1:] = keys[1:] != keys[:-1]
            if weights is not None and (odd := np.flatnonzero(~fresh[1:] & (weights[1:] != weights[:-1]))).size:
                head, source = divmod(int(keys[odd[0]]), self.num_nodes)
                raise DatasetError(
                    f"nodes {source} and {head} (counted from 0) are joined twice, with different weights: keep one of "
                    "the rows, or pass directed=True if the two directions differ."
                )
            yield keys[fresh], None if weights is None else weights[fresh]

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
    """Writes ``edge_index``, and ``edge_weight`` if pairs have weights; returns the number of edges.

    Files are read twice: once to count what is left when repetitions are gone, once to write it.
    """
    count = sum(len(keys) for keys, _ in pairs.sorted())
    edge_index = writer.array("edge_index", (2, count), torch.int64)
    weight = writer.array("edge_weight", (count,), torch.float32) if pairs._weighted else None
    start = 0
    for keys, weights in pairs.sorted():
        span = slice(start, start + len(keys))
        edge_index[1, span], edge_index[0, span] = np.divmod(keys, pairs.num_nodes)
        if weight is not None and weights is not None:
            weight[span] = weights
        start += len(keys)
    return count
