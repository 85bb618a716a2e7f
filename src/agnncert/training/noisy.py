"""Training for a smoothing defence: each step sees the graph, or its batch of graphs, under noise sampled anew."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch_geometric.data import Data

from agnncert.baselines.smoothing import Smoothing
from agnncert.graphs.graph import one_graph
from agnncert.training.node_objective import NodeObjective
from agnncert.training.objective import Terms, TrainingStep, class_weights
from agnncert.training.sampled_subgraphs import SampledGraphObjective
from agnncert.training.settings import FitSettings
from agnncert.voting.call import Caller
from agnncert.voting.lazy_rows import SparseRows


@dataclass(frozen=True)
class NoisyNodeObjective:
    """Loss of a node classifier on one noisy graph per step.

    Attributes:
        plain: The same loss on the graph as it is.
        defence: Samples the noise.
    """

    plain: NodeObjective
    defence: Smoothing

    def steps(self) -> Iterator[TrainingStep]:
        """One step on all nodes."""
        yield self.backward

    def backward(self) -> float:
        """Adds the gradient of the loss under noise to the parameters; returns that loss."""
        graph = self.defence.noisy(self.plain.graph)
        sparse = self.plain.sparse
        if graph.x is not self.plain.graph.x:
            sparse = SparseRows.of(graph.x.to(self.plain.call.dtype))
        return replace(self.plain, graph=graph, sparse=sparse).backward()


def noisy_graphs(
    call: Caller, joined: Data, y: Tensor, defence: Smoothing, settings: FitSettings
) -> SampledGraphObjective:
    """Loss of a graph classifier on one noisy version of each graph per step."""
    terms = Terms(0.0, 1.0, 1, class_weights(y, call) if settings["balance_classes"] else None)
    graphs = tuple(one_graph(joined, k) for k in range(len(y)))
    groups = tuple(graph.edge_index[0] for graph in graphs)  # of the right shape; noise has no groups
    return SampledGraphObjective(call, graphs, groups, y, _NoiseAsDivision(defence), terms, settings["batch_size"])


class _NoiseAsDivision:
    """A smoothing defence that acts like a division: its only subgraph is a noisy version of the graph."""

    num_groups = 1

    def __init__(self, defence: Smoothing) -> None:
        self.defence = defence

    def groups(self, graph: Data) -> Tensor:
        return torch.zeros(graph.num_edges, dtype=torch.int64)

    def subgraph(self, graph: Data, groups: Tensor, index: int) -> Data:
        noisy: Data = self.defence.noisy(graph)
        return noisy

    def votes_moved(self, change: object, graph: Data, target: int | None) -> int:
        return 1
