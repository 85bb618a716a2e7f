import pytest
from torch_geometric.data import Data

from agnncert.datasets import GraphSet, load_dataset


@pytest.fixture(scope="module")
def knn() -> Data:
    return load_dataset("digits-knn")


@pytest.fixture(scope="module")
def grid() -> GraphSet:
    return load_dataset("digits-grid")
