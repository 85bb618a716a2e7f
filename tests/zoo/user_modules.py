"""Modules as users write them: none of them knows this library, and each treats its input in its own way."""

import torch
import torch.nn.functional as F
from torch import nn
from torch_geometric.nn import GATConv, GCNConv, GINEConv, GraphConv, JumpingKnowledge, SAGEConv, global_add_pool
from torch_geometric.utils import softmax

from tests.support.models import CLASSES, FEATURES, HIDDEN


class Weighted(nn.Module):
    """Takes edge weights."""

    def __init__(self):
        super().__init__()
        self.first, self.second = GCNConv(FEATURES, HIDDEN), GraphConv(HIDDEN, CLASSES)

    def forward(self, x, edge_index, edge_weight=None):
        return self.second(self.first(x, edge_index, edge_weight).tanh(), edge_index, edge_weight)


class Attributed(nn.Module):
    """Takes edge attributes."""

    def __init__(self):
        super().__init__()
        self.first = GINEConv(nn.Linear(FEATURES, HIDDEN), edge_dim=2)
        self.second = GATConv(HIDDEN, CLASSES, edge_dim=2)

    def forward(self, x, edge_index, edge_attr):
        return self.second(self.first(x, edge_index, edge_attr).tanh(), edge_index, edge_attr)


class WeightedReadout(nn.Module):
    """Graph task with edge weights."""

    def __init__(self):
        super().__init__()
        self.conv = GraphConv(FEATURES, CLASSES)

    def forward(self, x, edge_index, batch, edge_weight=None):
        return global_add_pool(self.conv(x, edge_index, edge_weight).tanh(), batch)


class Jumping(nn.Module):
    """Joins all layers by JumpingKnowledge."""

    def __init__(self, mode="lstm"):
        super().__init__()
        self.convs = nn.ModuleList([SAGEConv(FEATURES, HIDDEN), SAGEConv(HIDDEN, HIDDEN)])
        self.jump = JumpingKnowledge(mode, channels=HIDDEN, num_layers=2)
        self.out = nn.Linear(2 * HIDDEN if mode == "cat" else HIDDEN, CLASSES)

    def forward(self, x, edge_index):
        layers = []
        for conv in self.convs:
            x = conv(x, edge_index).tanh()
            layers.append(x)
        return self.out(self.jump(layers))


class Residual(nn.Module):
    """Adds its input to what the first layer makes of it, and normalises."""

    def __init__(self):
        super().__init__()
        self.first, self.second = GCNConv(FEATURES, FEATURES), GCNConv(FEATURES, FEATURES)
        self.norm, self.out = nn.BatchNorm1d(FEATURES), nn.Linear(2 * FEATURES, CLASSES)

    def forward(self, x, edge_index):
        hidden = x + self.norm(self.first(x, edge_index)).tanh()
        hidden = hidden + self.second(hidden, edge_index).tanh()
        return self.out(torch.cat([x, hidden], dim=-1))


class NotLinearFirst(nn.Module):
    """Squashes its input before anything linear happens."""

    def __init__(self):
        super().__init__()
        self.conv = GCNConv(FEATURES, CLASSES)

    def forward(self, x, edge_index):
        return self.conv(F.normalize(x.sin() * 3, dim=-1), edge_index)


class Matmul(nn.Module):
    """Multiplies by bare parameters, once with @, once with torch.mm, once with a bias."""

    def __init__(self):
        super().__init__()
        self.own, self.other = (nn.Parameter(torch.empty(FEATURES, CLASSES)) for _ in range(2))
        self.bias = nn.Parameter(torch.empty(CLASSES))

    def forward(self, x, edge_index):
        heard = torch.zeros_like(x).index_add(0, edge_index[1], x[edge_index[0]])
        return x @ self.own + torch.mm(x, self.other).sin() + torch.addmm(self.bias, heard, self.other)


class FreshWeight(nn.Module):
    """Its weight is computed anew in every call."""

    def __init__(self):
        super().__init__()
        self.weight, self.scale = nn.Parameter(torch.empty(CLASSES, FEATURES)), nn.Parameter(torch.empty(1))

    def forward(self, x, edge_index):
        hidden = F.linear(x, self.weight * self.scale)
        return hidden + torch.zeros_like(hidden).index_add(0, edge_index[1], (x @ self.weight.t())[edge_index[0]])


class SharedTwice(nn.Module):
    """The same layer sees the input and then what it made of it; so does a second one."""

    def __init__(self):
        super().__init__()
        self.mix, self.side = nn.Linear(FEATURES, FEATURES), nn.Linear(FEATURES, FEATURES, bias=False)
        self.out = SAGEConv(FEATURES, CLASSES)

    def forward(self, x, edge_index):
        return self.out(self.mix(self.mix(x).tanh()) + self.side(x) * self.mix(x), edge_index)


class SparseProduct(nn.Module):
    """Multiplies by the adjacency as a sparse matrix, before and after a layer."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(FEATURES, CLASSES)

    def forward(self, x, edge_index):
        ones = torch.ones(edge_index.size(1), dtype=x.dtype)
        adjacency = torch.sparse_coo_tensor(edge_index.flip(0), ones, (x.size(0),) * 2, check_invariants=True)
        return self.lin(x + torch.sparse.mm(adjacency, x)) + adjacency @ self.lin(x)


class DenseProduct(nn.Module):
    """Builds a dense adjacency."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(FEATURES, CLASSES)

    def forward(self, x, edge_index):
        count = x.shape[0]
        dense = torch.zeros(count, count, dtype=x.dtype, device=x.device)
        dense[edge_index[1], edge_index[0]] = 1.0
        return self.lin(x).tanh() + dense.mm(self.lin(x))


class ByHand(nn.Module):
    """Attention written out, with slices, views and a loop over heads."""

    def __init__(self):
        super().__init__()
        self.query, self.value = nn.Linear(FEATURES, 2 * CLASSES), nn.Linear(FEATURES, 2 * CLASSES)

    def forward(self, x, edge_index):
        source, head = edge_index
        query, value = (layer(x).view(-1, 2, CLASSES) for layer in (self.query, self.value))
        out = self.value(x)[:, :CLASSES] + x[:, :1]
        for k in range(2):
            score = softmax((query[head, k] * value[source, k]).sum(-1), head, num_nodes=x.size(0))
            out = out.index_add(0, head, score[:, None] * value[source, k])
        return out


class WritesInput(nn.Module):
    """Clips its input in place, without taking the result."""

    def __init__(self):
        super().__init__()
        self.lin, self.conv = nn.Linear(FEATURES, FEATURES), GCNConv(FEATURES, CLASSES)

    def forward(self, x, edge_index):
        x.relu_()
        return self.conv(self.lin(x).tanh() + x, edge_index)


class ScalesInput(WritesInput):
    """Writes into its input so that a second call would see other features."""

    def forward(self, x, edge_index):
        before = self.lin(x)
        x *= 2
        x[:, 0] = 1.0
        return self.conv(self.lin(x).tanh() + before, edge_index)


NODE_MODULES = (
    Jumping, Residual, NotLinearFirst, Matmul, FreshWeight, SharedTwice, SparseProduct, DenseProduct, ByHand, WritesInput, ScalesInput,
)  # fmt: skip
