import pytest
import torch
from torch_geometric.data import Data

from agnncert.datasets.splits import GraphSet

CHAIN = torch.tensor([[0, 1, 2, 3, 4, 1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 0, 1, 2, 3, 4]])  # 0-1-2-3-4-5, and 6 alone


@pytest.fixture
def data() -> Data:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(7, 5, generator=generator)
    return Data(x=x, edge_index=CHAIN, y=torch.tensor([0, 1, 2, 0, 1, 2, 0]))


@pytest.fixture
def graphs() -> GraphSet:
    generator = torch.Generator().manual_seed(1)
    sizes = [(3, [[0, 1], [1, 0]]), (4, [[0, 1, 2], [1, 2, 3]]), (1, [[], []])]
    return GraphSet(
        Data(x=torch.randn(n, 5, generator=generator), edge_index=torch.tensor(e).long(), y=torch.tensor([k % 2]))
        for k, (n, e) in enumerate(sizes)
    )
