"""Running a model on many noisy graphs at once: as one disjoint union of graphs made of copies of one graph's nodes."""

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from agnncert.errors import ModelContractError
from agnncert.proof.ballots import IntArray
from agnncert.voting.call import Caller
from agnncert.voting.fast import CHUNK_ROWS
from agnncert.voting.lazy_rows import Features, SparseRows


class BatchedCalls:
    """A model that predicts on unions of noisy versions of one graph.

    Args:
        call: The model, bound to the graph.
        graph: A canonical graph.
    """

    def __init__(self, call: Caller, graph: Data) -> None:
        self.call = call
        self.edge_index: IntArray = graph.edge_index.numpy()
        x = graph.x.to(call.dtype)
        self._features = Features(x, SparseRows.of(x))
        self._values = call.edge_values(graph)

    def edgeless(self) -> IntArray:
        """Prediction of every node without edges."""
        nodes = np.arange(self._features.x.size(0))
        return self.labels_in_parts(nodes, np.empty((2, 0), dtype=np.int64), np.empty(0, dtype=np.int64), nodes)

    def values(self, arc: IntArray) -> dict[str, Tensor]:
        """Weights and attributes of some edges of the graph, as far as the model takes them."""
        return {name: value.index_select(0, torch.from_numpy(arc)) for name, value in self._values.items()}

    def labels(
        self, node: IntArray, edge_index: IntArray, values: dict[str, Tensor], batch: IntArray | None = None
    ) -> IntArray:
        """Predictions on one union: of every copy, or of every graph of ``batch``.

        Args:
            node: Which node each copy is of.
            edge_index: Edges between copies, shape ``[2, m]``.
            values: Edge values, from :meth:`values`.
            batch: Graph task: the graph that each copy belongs to.
        """
        return self.labels_of(self._features.rows(torch.from_numpy(node)), edge_index, values, batch)

    def labels_of(
        self, x: Tensor, edge_index: IntArray, values: dict[str, Tensor], batch: IntArray | None = None
    ) -> IntArray:
        """As :meth:`labels`, with other features ``x`` than the graph has."""
        edges = torch.from_numpy(np.ascontiguousarray(edge_index))
        logits = self.call(x, edges, values, None if batch is None else torch.from_numpy(batch))
        if not bool(torch.isfinite(logits).all()):
            raise ModelContractError(
                "the model returned logits that are not finite on a noisy graph: its prediction there is undefined, "
                "and samples cannot be counted. Look for a division by a degree or a norm that can be 0."
            )
        label: IntArray = logits.argmax(dim=1).numpy()
        return label

    def labels_in_parts(self, node: IntArray, edge_index: IntArray, arc: IntArray, part: IntArray) -> IntArray:
        """Predictions of every copy in a union of many parts, a chunk of whole parts at a time.

        Args:
            node: Which node each copy is of, shape ``[p]``.
            edge_index: Edges between copies of the same part, ascending by part, shape ``[2, m]``.
            arc: Which edge of the graph each one is, shape ``[m]``.
            part: Part of each copy, ascending, shape ``[p]``.
        """
        label = np.empty(len(node), dtype=np.int64)
        edge_part = part[edge_index[0]]
        begin = 0
        while begin < len(node):
            end = int(np.searchsorted(part, part[min(begin + CHUNK_ROWS, len(node)) - 1], side="right"))
            edges = slice(*np.searchsorted(edge_part, [part[begin], part[end - 1] + 1]))
            label[begin:end] = self.labels(node[begin:end], edge_index[:, edges] - begin, self.values(arc[edges]))
            begin = end
        return label
