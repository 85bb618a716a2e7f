"""Controls for decisions about pairs."""

import numpy as np
import pytest
import torch

import agnncert as ac
from agnncert.controls.api import PAIR_TREES
from agnncert.controls.pair_controls import COUNT, pair_controls
from agnncert.graphs.targets import prepared
from tests.support.pair_data import links


def counted(data, model):
    targets = np.flatnonzero(data.test_mask)
    shown = pair_controls(model, prepared(data), targets).controls
    return next(control for control in shown if control.name == COUNT)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("favoured", [0, 1])
def test_common_neighbours_speak_for_the_class_that_has_more_of_them(turned, favoured):
    """Which class the votes of a model are for says nothing about that if its own features suffice."""
    data = links()
    if turned:
        data.edge_label = 1 - data.edge_label
    model = ac.fit(None, data, ac.PairVotes(epochs=1))
    model.favoured.fill_(favoured)
    linked = 0 if turned else 1
    assert counted(data, model).of_class == linked


def test_without_validation_pairs_common_neighbours_speak_for_the_class_that_votes_are_for():
    data = links()
    model = ac.fit(None, data, ac.PairVotes(epochs=1))
    data.val_mask = torch.zeros_like(data.val_mask)
    for favoured in (0, 1):
        model.favoured.fill_(favoured)
        assert counted(data, model).of_class == favoured


def test_no_class_of_the_pairs_asked_about_enters_their_trees():
    """The trees are what users compare with: labels of test pairs would make them look better than they are."""
    data = links()
    model = ac.fit(None, data, ac.PairVotes(epochs=1))
    targets = np.flatnonzero(data.test_mask)
    before = pair_controls(model, prepared(data), targets)
    data.edge_label[data.test_mask] = 1 - data.edge_label[data.test_mask]
    after = pair_controls(model, prepared(data), targets)
    assert [control.name for control in after.controls] == [COUNT, PAIR_TREES]
    assert np.array_equal(before.trees, after.trees)
    for one, other in zip(before.controls, after.controls, strict=True):
        assert np.array_equal(one.score, other.score), one.name
    data.edge_label[data.val_mask] = 1 - data.edge_label[data.val_mask]
    assert not np.array_equal(pair_controls(model, prepared(data), targets).trees, before.trees)
