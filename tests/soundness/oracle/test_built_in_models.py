"""Every built-in model: the fast engine computes the votes of the naive one and of the reference, and projects features once.

Tests are parametrised over ``MODELS``: a new model is covered as soon as it has a name.
"""

import inspect
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from agnncert.divisions.edge import EdgeCentric, PerEdge
from agnncert.divisions.node import GatedNodeCentric, NodeCentric, PerNeighbour
from agnncert.engine.features import Features, LazyRows
from agnncert.models.build import MODELS, build_model
from agnncert.models.gnn import ARCHITECTURES
from tests.support.checks import check_engines_agree, votes_of
from tests.support.graphs import random_data
from tests.support.models import CLASSES, settled

NODE_DIVISIONS = [EdgeCentric(5), NodeCentric(5), GatedNodeCentric(5), PerNeighbour(), PerEdge()]
GRAPH_DIVISIONS = [EdgeCentric(5), NodeCentric(5)]
OPTIONS = [
    {},
    {"norm": "batch_norm", "jk": "cat", "act": "elu"},
    {"norm": "layer_norm", "jk": "max"},
    {"scale": "standard"},
]
NUM_WORDS = 40


def valued(seed: int, directed: bool = False) -> Data:
    """A graph with edge weights and attributes, so that every model finds what it reads."""
    data = random_data(seed, directed=directed, largest=12, smallest=6, density=0.4)
    random = np.random.default_rng(seed)
    data.edge_weight = torch.from_numpy(random.random(data.num_edges) + 0.2)
    data.edge_attr = torch.from_numpy(random.normal(size=(data.num_edges, 2)))
    return data


def called(model, data: Data, task: str, with_edges: bool = True) -> torch.Tensor:
    """Logits of a graph, with what the model reads of its edges."""
    edges = slice(None) if with_edges else slice(0)
    named = inspect.signature(model.forward).parameters
    values = {key: data[key][edges] for key in ("edge_weight", "edge_attr") if key in named}
    if task == "graph":
        values["batch"] = torch.zeros(data.num_nodes, dtype=torch.int64)
    return model(data.x, data.edge_index[:, edges], **values)


@torch.no_grad()
def built(name: str, data: Data | list[Data], **options):
    """A built-in model with the first random weights for which labels differ, and differ without edges."""
    graphs, task = ([data], "node") if isinstance(data, Data) else (data, "graph")
    for seed in range(100):
        model = settled(build_model, name, data, seed=seed, hidden_channels=4, heads=2, out_channels=CLASSES, **options)
        labels = torch.cat([called(model, graph, task).argmax(dim=1) for graph in graphs])
        bare = torch.cat([called(model, graph, task, with_edges=False).argmax(dim=1) for graph in graphs])
        depends_on_edges = not torch.equal(labels, bare)
        if len(labels.unique()) > 1 and depends_on_edges == ARCHITECTURES[name].uses_edges:
            return model
    raise AssertionError(f"{name} gives one label to everything")


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("division", NODE_DIVISIONS, ids=str)
def test_votes_of_nodes(name, options, division):
    for directed in (False, True):
        data = valued(2, directed)
        model = built(name, data, **options)
        check_engines_agree(model, data, division)
        check_engines_agree(model, data, division, rows=[3, 1], memory_limit=1)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("options", [*OPTIONS, {"readout": "sum"}, {"readout": "max"}], ids=str)
@pytest.mark.parametrize("division", GRAPH_DIVISIONS, ids=str)
def test_votes_of_graphs(name, options, division):
    graphs = [valued(seed) for seed in (2, 3, 5)]
    model = built(name, graphs, **options)
    check_engines_agree(model, graphs, division)
    check_engines_agree(model, graphs, replace(division, num_groups=20), memory_limit=1)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("division", NODE_DIVISIONS, ids=str)
def test_votes_of_nodes_with_wide_sparse_features(name, division):
    data = valued(2)
    data.x = torch.zeros(data.num_nodes, NUM_WORDS, dtype=torch.float64)
    data.x[torch.arange(data.num_nodes), torch.arange(data.num_nodes) * 3 % NUM_WORDS] = 1.0
    check_engines_agree(built(name, data), data, division)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("division", NODE_DIVISIONS, ids=str)
def test_the_comparison_is_not_between_constants(name, division):
    data = valued(2)
    votes = votes_of(built(name, data), data, division)
    assert len({*votes.vote.tolist(), *votes.default.tolist()}) > 1
    if ARCHITECTURES[name].uses_edges:
        assert (votes.vote != votes.default[votes.owner]).any()


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("task", ["node", "graph"])
@torch.no_grad()
def test_features_enter_through_a_linear_map(name, task):
    data = valued(2)
    model = built(name, data if task == "node" else [data, valued(3)])
    features = Features(data.x)
    rows = features.rows(torch.arange(data.num_nodes))
    assert isinstance(rows, LazyRows)
    lazy = data.clone()
    lazy.x = rows
    torch.testing.assert_close(called(model, lazy, task), called(model, data, task))
    assert rows._copied is None, (
        "the model reads the features of every copy of a node: each subgraph would hold its own"
    )
    assert features._projections, "the product with the first weight is computed once for all subgraphs"
