"""Tiny graphs and models for the smoothing defences."""

import numpy as np
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GCN, GCNConv, GraphSAGE, SAGEConv, global_mean_pool
from torch_geometric.utils import to_undirected

from agnncert.models.build import build_from_config


class NodeModel(torch.nn.Module):
    def __init__(self, conv, features, classes, **options):
        super().__init__()
        self.first = conv(features, 8, **options)
        self.second = conv(8, classes, **options)

    def forward(self, x, edge_index):
        return self.second(self.first(x, edge_index).relu(), edge_index)


class GraphModel(NodeModel):
    def forward(self, x, edge_index, batch):
        return global_mean_pool(super().forward(x, edge_index), batch)


class PlainModel(torch.nn.Module):
    """Two rounds of sums over neighbours, without what layers of PyG do beside."""

    def __init__(self, features, classes):
        super().__init__()
        self.first, self.second = torch.nn.Linear(features, 8), torch.nn.Linear(8, classes)

    def forward(self, x, edge_index):
        source, head = edge_index
        hidden = self.first(x.index_add(0, head, x[source])).tanh()
        return self.second(hidden.index_add(0, head, hidden[source]))


class WeightedModel(torch.nn.Module):
    def __init__(self, features, classes):
        super().__init__()
        self.conv = GCNConv(features, classes)

    def forward(self, x, edge_index, edge_weight):
        return self.conv(x, edge_index, edge_weight)


def random_graph(num_nodes, num_pairs, features=5, seed=0, binary=False):
    rng = np.random.default_rng(seed)
    ends = torch.from_numpy(rng.integers(0, num_nodes, size=(2, num_pairs)))
    edge_index = to_undirected(ends[:, ends[0] != ends[1]], num_nodes=num_nodes)
    x = torch.from_numpy(rng.normal(size=(num_nodes, features)))
    return Data(
        x=(x > 0).double() if binary else x,
        edge_index=edge_index,
        node_id=torch.from_numpy(rng.permutation(num_nodes) + 100),
    )


def node_model(conv=GCNConv, features=5, classes=3, seed=0, **options):
    torch.manual_seed(seed)
    return NodeModel(conv, features, classes, **options).double().eval()


def plain_model(features=5, classes=3, seed=0):
    """For tests that ask nothing about models: it is called in a fifth of the time, and unknown to the audit as well."""
    torch.manual_seed(seed)
    return PlainModel(features, classes).double().eval()


def known_model(conv=GCNConv, seed=0):
    """Gives the logits of ``node_model``, made of layers that the audit knows, which takes a fifth of the time."""
    torch.manual_seed(seed)
    return {GCNConv: GCN, SAGEConv: GraphSAGE}[conv](5, 8, 2, 3).double().eval()


def known_graph_model(seed=0):
    """A classifier of graphs whose audit is as cheap."""
    how = {"in_channels": 5, "out_channels": 3, "hidden_channels": 8, "num_layers": 2, "seed": seed}
    return build_from_config({"name": "sage", "task": "graph", **how}).double().eval()


def graph_model(conv=SAGEConv, features=5, classes=3, seed=0):
    torch.manual_seed(seed)
    return GraphModel(conv, features, classes).double().eval()
