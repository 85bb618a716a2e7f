"""How often labels of new data are right, where the data says so."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from agnncert.cli.score_step import Scored, _in_numbers_of_run


@pytest.mark.parametrize(
    ("truth", "right"),
    [(None, None), ([-1, -1, -1], None), ([0, 1, -1], (1, 2)), ([0, 0, 1], (3, 3)), ([1, 1, 0], (0, 3))],
)
def test_labels_are_compared_where_the_class_is_known(truth, right):
    certificate = SimpleNamespace(label=np.array([0, 0, 1]))
    known = None if truth is None else np.array(truth)
    assert Scored(Path("scores.csv"), certificate, None, known).right == right


def test_classes_are_told_by_their_names():
    data = SimpleNamespace(y=torch.tensor([0, 1, 2, -1]), class_names=["fraud", "honest", "unheard of"])
    assert _in_numbers_of_run(data, ("honest", "fraud")).tolist() == [1, 0, -1, -1]
    assert _in_numbers_of_run(data, ()).tolist() == [0, 1, 2, -1]
