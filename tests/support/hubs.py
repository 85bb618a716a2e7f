"""Hubs whose neighbours send equal messages: float32 sums drift in one direction, in every order."""

import copy
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from agnncert.models.build import build_model


class OwnMean(nn.Module):
    """A module that nobody has read: the mean of what neighbours send, by a loop over edges that torch runs in order."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(2, 1))
        self.bias = nn.Parameter(torch.zeros(2))

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        source, head = edge_index
        sent = nn.functional.linear(x, self.weight)
        total = torch.zeros(len(x), 2, dtype=x.dtype).index_add(0, head, sent[source])
        degree = torch.bincount(head, minlength=len(x)).clamp(min=1).to(x.dtype)
        return total / degree[:, None] + self.bias


class Hub(NamedTuple):
    """A hub, node 0, for whose two classes exact arithmetic and float32 disagree.

    Attributes:
        model: The model.
        data: The graph.
        exact: The class with the larger score in exact arithmetic.
    """

    model: Any
    data: Data
    exact: int


@torch.no_grad()
def hub(in_degree: int, weight: float, known: bool) -> Hub:
    """Returns a hub with a rival class that lies between what float32 computes and the truth.

    Args:
        in_degree: Number of neighbours that send the same message.
        weight: What their feature, 0.1, is multiplied with.
        known: Whether the model is the library's GraphSAGE, else ``OwnMean``.
    """
    num_nodes = in_degree + 1
    source = torch.arange(1, num_nodes)
    data = Data(x=torch.full((num_nodes, 1), 0.1), edge_index=torch.stack([source, torch.zeros_like(source)]))
    data.y = torch.arange(num_nodes) % 2
    data.node_id = torch.arange(num_nodes)
    if known:
        model = build_model("sage", data, num_layers=1, out_channels=2).eval()
        weights, bias = model.convs[0].lin_l.weight, model.convs[0].lin_l.bias
    else:
        model = OwnMean().eval()
        weights, bias = model.weight, model.bias
    for parameter in model.parameters():
        parameter.zero_()
    weights[0, 0] = weight
    double = copy.deepcopy(model).double()
    computed = float(model(data.x, data.edge_index)[0, 0])
    exact = float(double(data.x.double(), data.edge_index)[0, 0])
    bias[1] = exact + 0.05 * (computed - exact)
    scores = copy.deepcopy(model).double()(data.x.double(), data.edge_index)[0]
    return Hub(model, data, int(scores.argmax()))
