"""Certify a model of your own: any torch module that passes messages along edges.

`certify` needs `forward(x, edge_index)` with one row of logits per node, in eval mode. `audit` says beforehand whether
the module can be certified, and which layers are the problem if it cannot.
"""

import torch
from torch import Tensor, nn
from torch_geometric.nn import PairNorm, SAGEConv

import agnncert as ac


class TwoHops(nn.Module):
    """Two layers of GraphSAGE."""

    def __init__(self, num_features: int, num_classes: int) -> None:
        super().__init__()
        self.first = SAGEConv(num_features, 32)
        self.second = SAGEConv(32, num_classes)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Logits, one row per node."""
        hidden: Tensor = self.first(x, edge_index).relu()
        return self.second(hidden, edge_index)


class Normalised(TwoHops):
    """The same with PairNorm, which mixes all nodes: one edge could change every vote."""

    def __init__(self, num_features: int, num_classes: int) -> None:
        super().__init__(num_features, num_classes)
        self.norm = PairNorm()

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Logits, one row per node."""
        hidden: Tensor = self.norm(self.first(x, edge_index)).relu()
        return self.second(hidden, edge_index)


data = ac.load_dataset("digits-knn")
division = ac.NodeCentric(60)
torch.manual_seed(0)
model = TwoHops(data.num_features, 10)
ac.fit(model, data, division, epochs=10, lr=0.03)  # or your own training loop

certificate = ac.certify(model, data, division, targets=data.test_mask)
print("certified accuracy at sizes 0, 5, 10:", certificate.certified_accuracy(data.y, sizes=[0, 5, 10]))

try:
    ac.certify(Normalised(data.num_features, 10).eval(), data, division)
except ac.errors.ModelContractError as error:
    print(f"\nRefused: {error}")
