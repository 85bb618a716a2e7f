"""Cluster-GCN training: steps on parts of a graph that does not fit into one pass.

METIS makes the clusters, and they depend on the whole graph: one added edge can move any node to another cluster. That
does no harm, because they only decide which edges a step of training sees: certification never uses them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.utils import remove_self_loops, to_undirected

from agnncert.errors import SettingsError
from agnncert.extras import missing
from agnncert.graphs.graph import select_edges
from agnncert.training.node_objective import NodeObjective
from agnncert.training.objective import TrainingStep
from agnncert.training.sampled_subgraphs import SampledNodeObjective


def partition(data: Data, num_parts: int) -> list[Tensor]:
    """Splits the nodes into parts of about the same size with few edges between them.

    Args:
        data: One graph.
        num_parts: Number of parts, from 1 to the number of nodes.

    Returns:
        Row numbers of the nodes of each part, ascending; every node is in exactly one. Parts that the
        partitioner leaves empty are left out. The same graph always gives the same parts.

    Raises:
        SettingsError: ``num_parts`` makes no sense.
        MissingPackage: pymetis is not installed.
    """
    total = int(data.num_nodes)
    if not 1 <= num_parts <= total:
        raise SettingsError(f"num_parts is {num_parts}: expected a number from 1 to {total}, the number of nodes.")
    if num_parts == 1:
        return [torch.arange(total)]
    try:
        import pymetis
    except ModuleNotFoundError as error:
        raise missing(error.name, "cutting a graph into clusters") from None
    tails, heads = to_undirected(remove_self_loops(data.edge_index)[0], num_nodes=total)  # sorted by tail
    starts = np.concatenate([[0], np.cumsum(np.bincount(tails.numpy(), minlength=total))])
    _, part_of = pymetis.part_graph(num_parts, xadj=starts.tolist(), adjncy=heads.tolist())
    parts = torch.tensor(part_of)
    return [rows for rows in ((parts == k).nonzero().view(-1) for k in range(num_parts)) if len(rows)]


MakeObjective = Callable[[Data, Tensor, Tensor], NodeObjective | SampledNodeObjective]


@dataclass(frozen=True)
class ClusterObjective:
    """The objective of a node classifier on a few clusters at a time.

    Attributes:
        graph: The canonical graph.
        y: Label of every node.
        rows: Nodes to train on.
        clusters: Nodes of each cluster, from ``partition``.
        per_step: How many clusters a step puts together, with all edges among them. Which ones is sampled anew in
            every epoch.
        make: Makes the objective of one part from its graph, its labels and its training rows.
    """

    graph: Data
    y: Tensor
    rows: Tensor
    clusters: list[Tensor]
    per_step: int
    make: MakeObjective

    def steps(self) -> Iterator[TrainingStep]:
        """One step per ``per_step`` clusters, in random order; clusters without a training node give no step."""
        trains = torch.zeros(self.graph.num_nodes, dtype=torch.bool)
        trains[self.rows] = True
        for chosen in torch.split(torch.randperm(len(self.clusters)), self.per_step):
            nodes = torch.cat([self.clusters[k] for k in chosen.tolist()]).sort().values
            rows = trains[nodes].nonzero().view(-1)
            if len(rows):
                yield self.make(induced(self.graph, nodes), self.y[nodes], rows).backward


def induced(graph: Data, nodes: Tensor) -> Data:
    """The part of a canonical graph on some nodes (ascending), canonical too.

    Nodes keep their keys, hence edges their groups.
    """
    place = torch.full((graph.num_nodes,), -1, dtype=torch.int64)
    place[nodes] = torch.arange(len(nodes))
    kept = (place[graph.edge_index] >= 0).all(0)
    part = Data(x=graph.x[nodes], **select_edges(graph, kept))
    part.edge_index = place[part.edge_index]
    part.node_key, part.stable_ids, part.task = graph.node_key[nodes], graph.stable_ids, graph.task
    return part
