"""Why GNNCert-N loses when it is taught: the lessons that are compared."""

import torch
from torch_geometric.data import Data

from experiments.benchmarks.taught_gnncert import with_equal_classes


def test_as_many_taught_labels_of_each_class_are_kept_and_all_given_ones():
    given = torch.tensor([0, 1, 2])
    labels = torch.tensor([0] * 9 + [1] * 4 + [2] * 2)
    taught = Data(y=torch.cat([given, labels, torch.tensor([0, 0])]), num_nodes=20, num_classes=3)
    taught.taught_mask = torch.tensor([False] * 3 + [True] * 15 + [False] * 2)
    taught.train_mask = torch.tensor([True] * 18 + [False] * 2)
    fewer = with_equal_classes(taught, seed=0)
    assert torch.bincount(fewer.y[fewer.taught_mask]).tolist() == [2, 2, 2]
    assert fewer.train_mask[:3].all()
    assert not fewer.train_mask[18:].any()
    assert torch.equal(fewer.train_mask[3:], fewer.taught_mask[3:])
    assert taught.taught_mask.sum() == 15
