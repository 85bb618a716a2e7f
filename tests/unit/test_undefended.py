"""Labels of any defence on any graph, and of a model without a defence."""

from pathlib import Path

import numpy as np
import pytest
import torch

import agnncert as ac
from agnncert.errors import SettingsError
from tests.support.neighbour_graphs import GraphListener, NodeListener, PlainListener, town, towns


def test_an_undefended_label_is_the_models_own_on_the_whole_graph():
    data = town(weights=True)
    model = NodeListener(seed=1)
    own = model(data.x, data.edge_index, data.edge_weight).argmax(dim=1).numpy()
    assert (ac.labels_of(model, data, ac.Undefended()) == own).all()
    assert (ac.labels_of(model, data, ac.Undefended(), [3, 1]) == own[[3, 1]]).all()


def test_graphs_are_labelled_too():
    model, data = GraphListener(seed=1), towns()
    batch = torch.zeros(10, dtype=torch.int64)
    own = [int(model(graph.x, graph.edge_index, batch).argmax()) for graph in data]
    assert ac.labels_of(model, data, ac.Undefended()).tolist() == own


def test_scores_keep_the_distances_of_logits_and_count_from_zero():
    data = town()
    model = PlainListener(seed=1)
    logits = model(data.x, data.edge_index).detach().numpy()
    scores = ac.Undefended().scores(model, data)
    assert scores.dtype == np.int64
    assert (scores >= 0).all()
    assert np.allclose((scores - scores[:, :1]) / 2**20, logits - logits[:, :1], atol=2e-6)


def test_labels_of_a_defence_are_those_of_its_certificate():
    model, data = NodeListener(seed=1), town()
    for defence in (ac.NodeCentric(5), ac.PerNeighbour()):
        assert (ac.labels_of(model, data, defence) == ac.certify(model, data, defence).label).all()


def test_nothing_is_certified_without_a_defence():
    with pytest.raises(SettingsError, match="nothing is proved about a model without a defence"):
        ac.certify(NodeListener(), town(), ac.Undefended())
    with pytest.raises(SettingsError, match="is no defence"):
        ac.labels_of(NodeListener(), town(), "undefended")


def test_no_subpackage_hides_a_public_name_once_it_is_imported():
    packages = {file.parent.name for file in Path(ac.__file__).parent.glob("*/__init__.py")}
    assert packages & set(ac.__all__) == set()
