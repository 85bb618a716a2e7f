"""``NoisyUnion``: runs a model on many noisy versions of one graph at once, as one disjoint union."""

import numpy as np
import torch
from torch import Tensor

from agnncert.certificates.votes import BoolArray, IntArray
from agnncert.engine.adapter import ModelAdapter
from agnncert.engine.features import Features, SparseRows
from agnncert.engine.union import CHUNK_ROWS
from agnncert.errors import ModelContractError
from agnncert.graphs.graph import CanonicalGraph


class NoisyUnion:
    """Predicts on disjoint unions of copies of one graph's nodes, each copy with edges of its own.

    Args:
        bound_model: The model, bound to the graph.
        graph: A canonical graph.
    """

    def __init__(self, bound_model: ModelAdapter, graph: CanonicalGraph) -> None:
        self.bound_model = bound_model
        self.edge_index: IntArray = graph.edge_index.numpy()
        x = graph.x.to(bound_model.dtype)
        self._features = Features(x, SparseRows.of(x))
        self._values = bound_model.edge_values(graph)

    def no_edge(self) -> IntArray:
        """Returns the prediction of every node without edges."""
        nodes = np.arange(self._features.x.size(0))
        no_ends = np.empty((2, 0), dtype=np.int64)
        no_arcs = np.empty(0, dtype=np.int64)
        return self.labels_in_parts(nodes, no_ends, no_arcs, part=nodes)

    def logits_without_edges(self) -> Tensor:
        """Returns the logits of every node from its own features, without edges."""
        no_edges = torch.empty((2, 0), dtype=torch.int64)
        no_values = self.values(np.empty(0, dtype=np.int64))
        logits: Tensor = self.bound_model(self._features.x, no_edges, no_values)
        return logits

    def values(self, arc: IntArray) -> dict[str, Tensor]:
        """Returns the weights and attributes of some edges of the graph, as far as the model takes them."""
        positions = torch.from_numpy(arc)
        return {name: value.index_select(0, positions) for name, value in self._values.items()}

    def labels(
        self,
        node: IntArray,
        edge_index: IntArray,
        values: dict[str, Tensor],
        *,
        batch: IntArray | None = None,
        hidden: BoolArray | None = None,
        added: Tensor | None = None,
    ) -> IntArray:
        """Predicts on one union: a label of every copy, or of every graph of ``batch``.

        Args:
            node: Which node each copy is of.
            edge_index: Edges between copies, shape ``[2, m]``.
            values: Edge values, from :meth:`values`.
            batch: Graph task: the graph that each copy belongs to.
            hidden: Which copies have zeros as features. Defaults to none.
            added: Logits that are added to those of each copy. Defaults to none.
        """
        blank = None if hidden is None else torch.from_numpy(hidden)
        x = self._features.rows(torch.from_numpy(node), blank)
        return self.labels_of(x, edge_index, values, batch=batch, added=added)

    def labels_of(
        self,
        x: Tensor,
        edge_index: IntArray,
        values: dict[str, Tensor],
        *,
        batch: IntArray | None = None,
        added: Tensor | None = None,
    ) -> IntArray:
        """Predicts as :meth:`labels` does, with other features ``x`` than the graph has."""
        edges = torch.from_numpy(np.ascontiguousarray(edge_index))
        graph_of_copy = None if batch is None else torch.from_numpy(batch)
        logits = self.bound_model(x, edges, values, graph_of_copy)
        if added is not None:
            logits = logits + added
        if not bool(torch.isfinite(logits).all()):
            raise ModelContractError(
                "the model returned logits that are not finite on a noisy graph: its prediction there is undefined, "
                "and samples cannot be counted. Look for a division by a degree or a norm that can be 0."
            )
        label: IntArray = logits.argmax(dim=1).numpy()
        return label

    def labels_in_parts(self, node: IntArray, edge_index: IntArray, arc: IntArray, part: IntArray) -> IntArray:
        """Predicts the label of every copy in a union of many parts, a chunk of whole parts at a time.

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
            last_row = min(begin + CHUNK_ROWS, len(node)) - 1
            end = int(np.searchsorted(part, part[last_row], side="right"))
            first_edge, end_edge = np.searchsorted(edge_part, [part[begin], part[end - 1] + 1])
            edges = slice(first_edge, end_edge)
            label[begin:end] = self.labels(node[begin:end], edge_index[:, edges] - begin, self.values(arc[edges]))
            begin = end
        return label
