"""PyTorch Geometric's layers, in the order that pays: project the features first, pass messages afterwards.

A mean or a sum commutes with a linear map, so the outcome is that of PyG's own layer, and weights can be
exchanged with it. But wide features are multiplied once per node instead of being carried along every edge.
"""

from typing import Any, cast

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


def make_layer(
    name: str, in_channels: int, out_channels: int, hidden_channels: int, heads: int, logits: bool
) -> nn.Module:
    """One layer of the model called ``name``; in a GAT, one that returns ``logits`` averages its heads."""
    layer: Any
    if name in ("gcn", "resgcn"):
        layer = GCNConv(in_channels, out_channels)
    elif name == "sage":
        layer = ProjectedSAGEConv(in_channels, out_channels)
    elif name == "gat":
        width = out_channels if logits else out_channels // heads
        layer = GATConv(in_channels, width, heads=heads, concat=not logits)
    elif name == "gin":
        # A sum grows with the degree. Normalised, node by node, one network serves full graph and subgraphs;
        # without that, training on Cora-ML failed altogether.
        layer = ProjectedGINConv(
            nn.Sequential(
                nn.Linear(in_channels, hidden_channels),
                nn.LayerNorm(hidden_channels),
                nn.ReLU(),
                nn.Linear(hidden_channels, out_channels),
            )
        )
    else:
        layer = nn.Linear(in_channels, out_channels)
    return cast(nn.Module, layer)
