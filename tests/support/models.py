"""Tiny models in float64, with weights large enough that votes differ from subgraph to subgraph."""

import copy
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn import GATConv, GCNConv, GINConv, SAGEConv, global_add_pool, global_max_pool, global_mean_pool

from agnncert.models.gnn import normalised

FEATURES, HIDDEN, CLASSES = 3, 4, 3
KINDS = ("gcn", "sage", "gat", "gin")
READOUTS = {"mean": global_mean_pool, "sum": global_add_pool, "max": global_max_pool}


def conv(kind: str, width_in: int, width_out: int) -> nn.Module:
    if kind == "gin":
        return GINConv(nn.Sequential(nn.Linear(width_in, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, width_out)))
    if kind == "gcn":
        return GCNConv(width_in, width_out, normalize=False)  # edges are normalised once for all layers
    return {"sage": SAGEConv, "gat": GATConv}[kind](width_in, width_out)


class NodeModel(nn.Module):
    """Two layers of one kind."""

    def __init__(self, kind: str, width: int = FEATURES) -> None:
        super().__init__()
        self.kind = kind
        self.first = conv(kind, width, HIDDEN)
        self.second = conv(kind, HIDDEN, CLASSES)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        edges = normalised(edge_index, None, x) if self.kind == "gcn" else (edge_index,)
        return self.second(self.first(x, *edges).tanh(), *edges)


class GraphModel(nn.Module):
    """Two layers and a readout."""

    def __init__(self, kind: str, width: int = FEATURES, readout: str = "mean") -> None:
        super().__init__()
        self.body = NodeModel(kind, width)
        self.head = nn.Linear(CLASSES, CLASSES)
        self.readout = READOUTS[readout]

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        return self.head(self.readout(self.body(x, edge_index), batch))


class Once(nn.Module):
    """Computes once what it says without edges: where groups are many, it is asked for that again and again."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model, self.known = model, {}
        self.eval()

    def __deepcopy__(self, memo: dict) -> "Once":
        return Once(copy.deepcopy(self.model, memo))  # what is known holds for these weights only

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        if edge_index.numel():
            return self.model(x, edge_index)
        asked = x.clone().numpy().tobytes()
        if asked not in self.known:
            self.known[asked] = self.model(x, edge_index)
        return self.known[asked].clone()


def settled(make: Any, *args: Any, seed: int = 0, **kwargs: Any) -> Any:
    """Builds a module with reproducible, large weights, in float64 and eval mode."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = make(*args, **kwargs).double().eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.copy_(torch.randn_like(parameter))
    return model


def build(kind: str, task: str, seed: int = 0, width: int = FEATURES, readout: str = "mean") -> Any:
    if task == "node":
        return settled(NodeModel, kind, width, seed=seed)
    return settled(GraphModel, kind, width, readout, seed=seed)
