"""The training objective of a node classifier on a graph and all its subgraphs, for the price of a few plain steps.

The sum over T subgraphs is exact. It is computed as three terms: the whole graph, the ballots of nodes that have an
edge in a subgraph (all these subgraphs side by side), and the edgeless prediction, which every other ballot of a node
equals. The product of all features with the first layer is formed and differentiated once per step.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch_geometric.data import Data

from agnncert.divisions import Division, has_own_groups
from agnncert.errors import SettingsError
from agnncert.training.objective import TrainingStep, backward_each, class_weights, row_losses
from agnncert.training.settings import FitSettings, Weights
from agnncert.voting import fast
from agnncert.voting.call import Caller, no_edges
from agnncert.voting.lazy_rows import Features, SparseRows


@dataclass(frozen=True)
class NodeObjective:
    """Loss of a node classifier on the graph and, if it is divided, on all its subgraphs.

    Attributes:
        call: The model, bound to the graph.
        graph: The canonical graph.
        y: Label of every node.
        rows: Nodes to train on.
        layout: All subgraphs side by side, or ``None`` to train on the whole graph only.
        sparse: The features in compressed rows, if they are sparse.
        factors: Of the mean loss on the whole graph, of the loss of each copy of a node in a subgraph, and of the loss
            of each node's edgeless prediction.
        class_weight: How much each class counts, if not all the same.
    """

    call: Caller
    graph: Data
    y: Tensor
    rows: Tensor
    layout: fast.Plan | None
    sparse: SparseRows | None
    factors: tuple[float, Tensor, Tensor]
    class_weight: Tensor | None = None

    @classmethod
    def of(
        cls, call: Caller, graph: Data, y: Tensor, rows: Tensor, division: Division | None, settings: FitSettings
    ) -> "NodeObjective":
        """The objective for a division that offers ``pieces``, or (``None``) for the whole graph alone.

        "paper" sums the mean losses on the graph and on each of its T subgraphs; a ballot that abstains has no loss.
        "balanced" averages each of the three terms by itself: over the nodes, over the ballots that see an edge, and
        over the ballots that see none.

        Raises:
            SettingsError: Nothing is left to train on.
        """
        weights = settings["weights"] or Weights()
        per_class = class_weights(y[rows], call) if settings["balance_classes"] else None
        if division is None:
            none, sparse = torch.empty(0), SparseRows.of(graph.x.to(call.dtype))
            return cls(call, graph, y, rows, None, sparse, (1.0, none, none), per_class)
        layout = fast.plan(graph, division, rows.numpy(), call.dtype)
        if layout.pieces.blank is not None and not (weights.full or weights.ballots):
            raise SettingsError(
                f"{weights}: where features are gated a ballot without an edge abstains: weigh another term."
            )
        factors = _factors(layout, rows, division, settings["objective"], weights, call.dtype)
        return cls(call, graph, y, rows, layout, layout.sparse, factors, per_class)

    def steps(self) -> Iterator[TrainingStep]:
        """One step on all nodes."""
        yield self.backward

    def backward(self) -> float:
        """Adds the gradient of the objective to the parameters; returns its value."""
        features = Features(self.graph.x.to(self.call.dtype), self.sparse, cut=True)
        loss = backward_each(self._terms(features))
        features.finish_backward()
        return loss

    def _terms(self, features: Features) -> Iterator[Tensor]:
        full, ballots, edgeless = self.factors
        y = self.y[self.rows]
        if full:
            values = self.call.edge_values(self.graph)
            logits = self.call(features.rows(torch.arange(self.graph.num_nodes)), self.graph.edge_index, values)
            yield full * row_losses(logits[self.rows], y, self.class_weight).mean()
        if self.layout is None:
            return
        if bool(edgeless.any()):
            logits = self.call(features.rows(self.rows), *no_edges(self.graph, self.call.takes))
            yield edgeless @ row_losses(logits, y, self.class_weight)
        if bool(ballots.any()):
            for chunk in self.layout.chunks(fast.CHUNK_ROWS):
                counted = ballots[chunk.copies]
                used = counted.nonzero().view(-1)
                if len(used) == 0:
                    continue
                logits = fast.evaluate(self.call, self.layout, features, chunk)[used]
                target = self.y[self.layout.pieces.node[chunk.copies][used]]
                yield counted[used] @ row_losses(logits, target, self.class_weight)


def _factors(
    layout: fast.Plan, rows: Tensor, division: Division, objective: str | None, weights: Weights, dtype: torch.dtype
) -> tuple[float, Tensor, Tensor]:
    """Factors of the three terms; see ``NodeObjective.factors``."""
    pieces = layout.pieces
    is_trained_on = torch.zeros(layout.graph.num_nodes, dtype=torch.bool)
    is_trained_on[rows] = True
    listed = (pieces.votes & is_trained_on[pieces.node]).to(dtype)
    count = torch.zeros(layout.graph.num_nodes, dtype=dtype).index_add_(0, pieces.node, listed)
    gated = pieces.blank is not None  # then a ballot without an edge abstains, and nothing is trained on it
    if gated:
        unlisted = torch.zeros(len(rows), dtype=dtype)
    elif has_own_groups(division):  # empty groups abstain, but the prior votes for the edgeless prediction
        unlisted = torch.ones(len(rows), dtype=dtype)
    else:
        unlisted = division.num_groups - count[rows]
    if objective == "paper":
        parts = listed / len(rows), unlisted / len(rows)
    else:
        parts = listed / listed.sum().clamp(min=1), unlisted / unlisted.sum().clamp(min=1)
    return weights.full, weights.ballots * parts[0], weights.edgeless * parts[1]
