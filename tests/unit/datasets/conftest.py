import pytest
from torch_geometric.data import Data

from agnncert.datasets.load import load_dataset
from agnncert.datasets.splits import GraphSet


@pytest.fixture(scope="module")
def knn() -> Data:
    return load_dataset("digits-knn")


@pytest.fixture(scope="module")
def grid() -> GraphSet:
    return load_dataset("digits-grid")
