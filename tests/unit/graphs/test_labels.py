"""Labels in the forms in which data comes, and what is said about those that are none."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import agnncert as ac
from agnncert.graphs.labels import class_numbers, graph_classes
from tests.support.labelled import labelled_graph

DIVISION = ac.NodeCentric(5)
Y = torch.tensor([0, 2, 1])


@pytest.mark.parametrize(
    "y", [Y, Y.view(3, 1), Y.float(), Y.double().view(3, 1), Y.numpy(), Y.tolist(), Y.to(torch.uint8)], ids=repr
)
def test_one_class_for_each_row_however_it_is_written(y):
    found = class_numbers(y, 3)
    assert (found.tolist(), found.dtype) == ([0, 2, 1], torch.int64)


def test_nan_is_an_unknown_class_and_several_columns_are_none():
    assert class_numbers(torch.tensor([1.0, float("nan")]), 2).tolist() == [1, -1]
    assert class_numbers(torch.eye(3), 3) is None


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (torch.tensor([0.0, 0.25, 1.0]), "row 1 has 0.25, and classes are whole numbers"),
        (torch.tensor([0, 1]), r"shape \(2,\), but there are 3 rows"),
        (torch.tensor([0, 1, 2], dtype=torch.complex64), "complex"),
        (["a", "b", "c"], "are a list"),
    ],
)
def test_what_is_no_class_is_named(y, message):
    with pytest.raises(ac.errors.GraphError, match=message):
        class_numbers(y, 3)


@pytest.mark.parametrize("y", [1, 1.0, np.int64(1), torch.tensor(1), torch.tensor([[1]]), [1]], ids=repr)
def test_the_class_of_a_graph_may_be_any_single_number(y):
    assert graph_classes([Data(y=y), Data(), Data(y=torch.tensor([0, 1]))]).tolist() == [1, -1, -1]


def test_certify_and_fit_take_a_column_of_labels_and_cut_nothing_off():
    data = labelled_graph(18)
    y, data.y = data.y, data.y.view(-1, 1).float()
    model = ac.fit(ac.build_model("gcn", data, hidden_channels=8), data, DIVISION, epochs=1)
    assert model.config["out_channels"] == 3
    assert ac.certify(model, data, DIVISION).truth.tolist() == y.tolist()
    data.y = data.y + 0.5
    for call in (lambda: ac.certify(model, data, DIVISION), lambda: ac.fit(model, data, DIVISION, epochs=1)):
        with pytest.raises(ac.errors.GraphError, match="no classes: row 0 has"):
            call()


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (torch.ones(7, dtype=torch.bool), r"train_mask has shape \(7,\), but there are 18 nodes"),
        (torch.ones(18, 10, dtype=torch.bool), r"several splits: choose one, train_mask\[:, 0\]"),
        (torch.arange(18), "train_mask holds other numbers than 0 and 1"),
    ],
)
def test_a_mask_that_is_none_is_named(mask, message):
    data = labelled_graph(18)
    data.train_mask = mask
    with pytest.raises(ac.errors.DatasetError, match=message):
        ac.fit(ac.build_model("gcn", data), data, DIVISION, epochs=1)


def test_a_mask_of_pairs_is_refused_for_nodes_and_called_a_mask_of_pairs():
    data = labelled_graph(18)
    data.edge_label_index = torch.tensor([[0, 1, 2], [3, 4, 5]])
    data.train_mask = torch.ones(3, dtype=torch.bool)
    with pytest.raises(ac.errors.DatasetError, match="a mask of pairs, which only PairVotes decides about"):
        ac.fit(ac.build_model("gcn", data), data, DIVISION, epochs=1)
