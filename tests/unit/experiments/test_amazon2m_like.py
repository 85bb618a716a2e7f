"""The synthetic graph: of the wanted size, with communities, hubs and features that tell something; and seeded."""

import numpy as np
import pytest
import torch

import agnncert as ac
from experiments.benchmarks import amazon2m_like as generated
from experiments.benchmarks.amazon2m_like import CLASSES, EDGES, FEATURES, NODES, generate_amazon2m_like

SCALE = 1 / 1024


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    folder = tmp_path_factory.mktemp("generated") / "g"
    generate_amazon2m_like(folder, SCALE)
    return ac.open_graph(folder)


def test_it_has_the_size_that_was_asked_for(graph):
    assert graph.num_nodes == round(NODES * SCALE)
    assert graph.num_edges == 2 * round(EDGES * SCALE)
    assert (graph.num_features, graph.num_classes) == (FEATURES, CLASSES)
    assert torch.equal(torch.unique(graph.y), torch.arange(CLASSES))
    masks = torch.stack([graph.train_mask, graph.val_mask, graph.test_mask])
    assert torch.equal(masks.sum(0), torch.ones(graph.num_nodes, dtype=torch.int64))
    assert masks[0].float().mean() == pytest.approx(0.08, abs=0.02)


def test_it_says_that_it_is_synthetic(graph):
    assert graph.name == "amazon2m-like (synthetic, 1/1024 of the size)"
    assert "nothing about the real Amazon2M follows" in graph.synthetic


def test_edges_are_simple_undirected_and_in_the_order_of_certificates(graph):
    source, head = graph.edge_index.numpy()
    key, mirrored = head * graph.num_nodes + source, source * graph.num_nodes + head
    assert (source != head).all()
    assert (np.diff(key) > 0).all()
    assert np.array_equal(np.sort(mirrored), key)
    assert torch.equal(ac.graphs.canonical.canonical(graph).edge_index, graph.edge_index)


def test_degrees_have_a_heavy_tail(graph):
    degree = torch.bincount(graph.edge_index[0], minlength=graph.num_nodes).float()
    assert degree.max() > 8 * degree.mean() > 12 * degree.median()


def test_neighbours_and_features_tell_something_about_the_class(graph):
    source, head = graph.edge_index
    alike = (graph.y[source] == graph.y[head]).float().mean()
    by_chance = (torch.bincount(graph.y).float() / graph.num_nodes).square().sum()
    assert alike > 5 * by_chance
    centre = torch.stack([graph.x[graph.train_mask & (graph.y == k)].mean(0).nan_to_num() for k in range(CLASSES)])
    nearest = torch.cdist(graph.x[graph.test_mask], centre).argmin(1)
    right = (nearest == graph.y[graph.test_mask]).float().mean()
    assert 3 * by_chance < right < 0.9


def test_the_same_seed_gives_the_same_graph_and_another_another(graph, tmp_path, monkeypatch):
    generate_amazon2m_like(tmp_path / "again", SCALE)
    generate_amazon2m_like(tmp_path / "other", SCALE, seed=1)
    assert ac.dataset_digest(ac.open_graph(tmp_path / "again")) == ac.dataset_digest(graph)
    assert ac.dataset_digest(ac.open_graph(tmp_path / "other")) != ac.dataset_digest(graph)


@pytest.mark.parametrize("scale", [0, -1, 1e-6, 100, float("nan")])
def test_a_senseless_scale_is_refused(tmp_path, scale):
    with pytest.raises(ac.errors.DatasetError, match="scale="):
        generate_amazon2m_like(tmp_path / "g", scale)


def test_more_edges_than_there_is_room_for_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(generated, "EDGES", EDGES * 60)
    with pytest.raises(ac.errors.DatasetError, match="have no room"):
        generate_amazon2m_like(tmp_path / "g", 1 / 2560)
    assert list(tmp_path.iterdir()) == []
