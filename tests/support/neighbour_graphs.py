"""Small graphs in which neighbours matter, and models that listen to them."""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv, global_mean_pool

import agnncert as ac
from agnncert.models.gnn import normalised

CLASSES = 3
DIVISIONS = {"E": ac.EdgeCentric, "N": ac.NodeCentric}
MIXED = ac.Budget(
    add_edges=2, delete_edges=1, change_edges=1, inject_nodes=1, edges_per_injected=3, delete_nodes=1, change_features=1
)
# So small that every attack of one can be tried on a town.
BUDGETS = [
    ac.Budget(add_edges=2, delete_edges=1),
    ac.Budget(delete_edges=math.inf),
    ac.Budget(add_edges=1, change_features=1),
    ac.Budget(inject_nodes=1, edges_per_injected=2),
    ac.Budget(delete_nodes=1, change_edges=1),
]


class Listener(nn.Module):
    """Votes for the largest feature of a node and its neighbours; with a ``seed``, in two layers and distorted."""

    def __init__(self, seed: int | None = None, layer: type[nn.Module] = GCNConv) -> None:
        super().__init__()
        how = {"normalize": False} if layer is GCNConv else {}  # edges are normalised once for all layers
        self.layers = nn.ModuleList(layer(CLASSES, CLASSES, **how) for _ in range(1 if seed is None else 2))
        torch.manual_seed(seed or 0)
        with torch.no_grad():
            for name, value in self.named_parameters():
                value.copy_(torch.zeros_like(value) if "bias" in name else torch.eye(CLASSES))
                value.add_(torch.randn_like(value), alpha=0.0 if seed is None else 0.4)
        self.double().eval()

    def embed(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None) -> Tensor:
        if isinstance(self.layers[0], GCNConv):
            edge_index, edge_weight = normalised(edge_index, edge_weight, x)
        given = () if edge_weight is None else (edge_weight,)
        for k, layer in enumerate(self.layers):
            x = layer(x.tanh() if k else x, edge_index, *given)
        return x


class NodeListener(Listener):
    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        return self.embed(x, edge_index, edge_weight)


class PlainListener(Listener):
    """Takes no weights."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.embed(x, edge_index, None)


class GraphListener(Listener):
    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor, edge_weight: Tensor | None = None) -> Tensor:
        return global_mean_pool(self.embed(x, edge_index, edge_weight), batch)


def town(count: int = 20, degree: float = 3.0, seed: int = 0, ids: bool = True, weights: bool = False) -> Data:
    """Nodes of three classes that mostly know their own kind."""
    random = np.random.default_rng(seed)
    y = random.integers(0, CLASSES, count)
    same = y[:, None] == y[None, :]
    joined = np.triu(random.random((count, count)) < np.where(same, 1.6, 0.4) * degree / count, 1)
    u, v = np.nonzero(joined)
    x = np.eye(CLASSES)[y] + random.normal(0, 0.25, (count, CLASSES))
    data = Data(
        x=torch.from_numpy(x),
        edge_index=torch.from_numpy(np.stack([np.concatenate([u, v]), np.concatenate([v, u])])),
        y=torch.from_numpy(y),
    )
    if ids:
        data.node_id = torch.from_numpy(random.permutation(1000)[:count])
    if weights:
        data.edge_weight = torch.ones(data.num_edges, dtype=torch.float64)
    return data


def towns(total: int = 6, count: int = 10, seed: int = 0, ids: bool = True) -> list[Data]:
    """Graphs whose class is that of most of their nodes."""
    made = [town(count, seed=100 * seed + k, ids=ids) for k in range(total)]
    for graph in made:
        graph.y = torch.bincount(graph.y, minlength=CLASSES).argmax().view(1)
    return made


def fits(cost: ac.Budget, budget: ac.Budget) -> bool:
    """Whether ``budget`` allows an attack that costs ``cost``."""
    return budget.allows(cost)


def setting(task: str, division: str, num_groups: int = 7, **kwargs: Any) -> tuple[nn.Module, Any, Any]:
    """Model, data and division."""
    model, data = (NodeListener(), town(**kwargs)) if task == "node" else (GraphListener(), towns(**kwargs))
    return model, data, DIVISIONS[division](num_groups)
