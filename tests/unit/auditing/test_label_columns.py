"""A column that is another name of the label is found, and one that is not is left alone."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import agnncert as ac
from agnncert.auditing import label_columns
from agnncert.auditing.label_columns import column_that_is_the_label
from agnncert.errors import DatasetError
from tests.support.mutations import plant_text

CLASSES = np.array([0, 0, 1, 1, 2, 2])
COLUMNS = {
    "drawn": (np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), False),
    "constant": (np.full(6, 4.0), False),
    "class": (CLASSES * 3.0 - 1, True),
    "one class against the rest": (np.array([0.0, 0.0, 7.0, 7.0, 0.0, 0.0]), True),
    "all but one": (np.array([0.0, 1.0, 7.0, 7.0, 3.0, 3.0]), False),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_is_the_label_if_it_is_the_same_within_each_class_and_not_for_all(name):
    column, is_label = COLUMNS[name]
    values = np.stack([COLUMNS["drawn"][0], column], axis=1)
    assert column_that_is_the_label(values, CLASSES) == (1 if is_label else None)


def refuses_the_label_among_features():
    rng = np.random.default_rng(0)
    y = torch.from_numpy(rng.integers(0, 2, 80))
    x = torch.from_numpy(rng.normal(size=(80, 3))).float()
    edges = torch.from_numpy(rng.integers(0, 80, (2, 300)))
    data = Data(x=x, y=y, edge_index=edges, train_mask=torch.ones(80, dtype=torch.bool))
    data.x[:, 2] = 5 - 3 * y
    with pytest.raises(DatasetError, match="column 2 of the features is the same for all training labels of a class"):
        ac.fit(None, data, ac.LabelVotes(df=2.0, rank=1, num_classes=2))


def test_label_votes_refuse_the_label_among_features():
    refuses_the_label_among_features()


@pytest.mark.parametrize(
    ("old", "new"),
    [("(low == high).all(axis=0)", "(low > high).all(axis=0)"), ("if tells.any() else None", "if False else None")],
)
def test_label_votes_without_this_check_are_noticed(monkeypatch, old, new):
    plant_text(monkeypatch, label_columns, old, new)
    with pytest.raises(pytest.fail.Exception):
        refuses_the_label_among_features()
