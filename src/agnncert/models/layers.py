"""PyTorch Geometric's layers, in the order that pays: project the features first, pass messages afterwards.

A mean or a sum commutes with a linear map, so the outcome is that of PyG's own layer, and weights can be
exchanged with it. But wide features are multiplied once per node instead of being carried along every edge.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.nn import GATConv, GCNConv, GINConv, SAGEConv


class ProjectedSAGEConv(SAGEConv):  # type: ignore[misc]
    """``SAGEConv`` with mean aggregation: the mean of projections instead of the projection of the mean."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """New features of every node, shape ``[num_nodes, out_channels]``."""
        projected = F.linear(x, self.lin_l.weight)
        mean = self.propagate(edge_index, x=(projected, projected), size=None)
        # The bias is added after the mean, as in SAGEConv: a node without neighbours gets it too.
        out: Tensor = mean + self.lin_l.bias + self.lin_r(x)
        return out


class ProjectedGINConv(GINConv):  # type: ignore[misc]
    """``GINConv`` whose network begins with a linear layer, which is applied before the sum."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """New features of every node, shape ``[num_nodes, out_channels]``."""
        first, *rest = self.nn
        projected = F.linear(x, first.weight)
        out: Tensor = self.propagate(edge_index, x=(projected, projected), size=None)
        out = out + (1 + self.eps) * projected + first.bias
        for layer in rest:
            out = layer(out)
        return out


class Dropout(nn.Dropout):
    """``nn.Dropout`` with eight random bits per entry: on a CPU the usual one takes 40 % of a training step.

    The rate is rounded to a multiple of 1/256.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Entries dropped at random while training, the others scaled up to keep the mean."""
        dropped = round(256 * self.p)
        if not self.training or dropped == 0:
            return x
        words = torch.empty(x.numel() // 8 + 1, dtype=torch.int64).random_(-(2**63), None)
        keep = words.view(torch.uint8)[: x.numel()].view_as(x) >= dropped
        return x * keep * (256 / (256 - dropped))


def make_layer(name: str, in_channels: int, out_channels: int, heads: int, logits: bool) -> Any:
    """One layer of the model called ``name``; one that returns ``logits`` averages its heads."""
    if name in ("gcn", "resgcn"):
        return GCNConv(in_channels, out_channels)
    if name == "sage":
        return ProjectedSAGEConv(in_channels, out_channels)
    if name == "gat":
        width = out_channels if logits else out_channels // heads
        return GATConv(in_channels, width, heads=heads, concat=not logits)
    if name == "gin":
        network = nn.Sequential(
            nn.Linear(in_channels, out_channels), nn.ReLU(), nn.Linear(out_channels, out_channels)
        )
        return ProjectedGINConv(network)
    return nn.Linear(in_channels, out_channels)
