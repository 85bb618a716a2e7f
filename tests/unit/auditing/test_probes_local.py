"""The zoo of local layers and models: all are accepted, and the fast engine casts the votes of the naive one."""

import warnings

import pytest
import torch
from torch_geometric.data import Data

from agnncert.auditing.model_audit import audit
from agnncert.divisions.edge import EdgeCentric
from agnncert.divisions.node import NodeCentric
from tests.support.checks import votes_of
from tests.zoo.local import CONVS, GRAPH_MODELS, MODELS, NORMS, STACKS, zoo_data

DIVISIONS = (NodeCentric(4), EdgeCentric(4))
WHOLE = zoo_data()
BARE = Data(x=WHOLE.x, edge_index=WHOLE.edge_index, node_id=WHOLE.node_id)
GRAPHS = [zoo_data(seed, nodes=12, pairs=20) for seed in range(5)]
NODE_ZOO = {**CONVS, **NORMS, **MODELS, **STACKS}


def made(make):
    """The model with weights of its own, in evaluation mode."""
    with torch.random.fork_rng(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        return make().eval()


def check_welcome(model, data, task, number):
    # Every second model meets the other division first: all are asked about both, and vote in one of them.
    for division in DIVISIONS:
        report = audit(model, data, division, task=task)
        assert report.ok, str(report)
    division = DIVISIONS[number % 2]
    fast, naive = (votes_of(model, data, division, engine) for engine in ("fast", "naive"))
    assert (fast.dense() == naive.dense()).all()
    assert (fast.default == naive.default).all()


@pytest.mark.parametrize("name", NODE_ZOO)
def test_local_models_of_nodes_are_welcome(name):
    data = BARE if name in STACKS else WHOLE
    check_welcome(made(NODE_ZOO[name]), data, "node", list(NODE_ZOO).index(name))


@pytest.mark.parametrize("name", GRAPH_MODELS)
def test_models_of_graphs_are_welcome(name):
    check_welcome(made(GRAPH_MODELS[name]), GRAPHS, "graph", list(GRAPH_MODELS).index(name))


def test_the_zoo_is_large():
    assert len(NODE_ZOO) + len(GRAPH_MODELS) >= 60


def test_models_are_welcome_without_data_too():
    for name in ("GCNConv", "SAGEConv max, projected", "GATConv of heads", "TAGConv", "FiLMConv"):
        assert audit(made(CONVS[name]), division=NodeCentric(4)).ok
