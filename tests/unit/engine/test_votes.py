"""What ``cast`` refuses, and what it returns where there is little to vote on."""

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.data import Data

import agnncert as ac
from agnncert.divisions.base import Division
from agnncert.divisions.edge import EdgeCentric
from agnncert.divisions.node import GatedNodeCentric, NodeCentric
from agnncert.engine.adapter import bind
from agnncert.engine.votes import compute_votes
from agnncert.errors import DivisionError, ModelContractError, SettingsError
from agnncert.graphs.canonical import canonical, canonical_set
from tests.support.checks import votes_of
from tests.support.graphs import make_data
from tests.support.models import build

DATA = make_data([(0, 1), (1, 0), (1, 2), (2, 1)], 4)


def test_an_unknown_engine_is_met_with_the_nearest():
    graph = canonical(DATA)
    with pytest.raises(SettingsError, match='unknown engine "fats": did you mean "fast"'):
        compute_votes(bind(build("gcn", "node"), graph, "node"), graph, EdgeCentric(3), np.arange(4), "fats")


@pytest.mark.parametrize("tolerance", [-1, -1e-9, float("nan"), float("inf"), True, "x", [0.1]], ids=repr)
def test_a_tolerance_that_makes_no_sense_is_refused(tolerance):
    with pytest.raises(SettingsError, match=r"tolerance=.* expected a finite number from 0 on"):
        ac.certify(build("gcn", "node").eval(), DATA, EdgeCentric(3), tolerance=tolerance)


class Mixes(nn.Module):
    """Looks at the number of edges of the whole graph."""

    def forward(self, x, edge_index):
        sign = torch.full((len(x),), 1.0 if edge_index.size(1) else -1.0, dtype=x.dtype)
        return torch.stack([sign, -sign], dim=1)


@pytest.mark.parametrize("division", [EdgeCentric(3), NodeCentric(3)], ids=str)
def test_the_oracle_notices_a_model_that_looks_beyond_the_edges_of_a_node(division):
    with pytest.raises(ModelContractError, match="looks beyond the edges of a node"):
        votes_of(Mixes(), DATA, division, "naive")


class Forgetful(Division):
    """Leaves out the weights of the edges it keeps."""

    num_groups = 1

    def groups(self, graph):
        return torch.zeros(graph.num_edges, dtype=torch.int64)

    def subgraph(self, graph, groups, index):
        return graph.with_other_edges(graph.edge_index)

    def votes_moved(self, change, graph, target):
        return 1


class Weighted(nn.Module):
    def forward(self, x, edge_index, edge_weight):
        return x


@pytest.mark.parametrize("engine", ["fast", "naive"])
def test_a_division_that_leaves_out_edge_weights_is_named(engine):
    data = DATA.clone()
    data.edge_weight = torch.ones(4)
    with pytest.raises(DivisionError, match=r"subgraph\(\) left out edge_weight"):
        votes_of(Weighted(), data, Forgetful(), engine)


@pytest.mark.parametrize("engine", ["fast", "naive"])
def test_a_division_that_returns_a_data_is_told_what_to_return(engine):
    class ReturnsData(Forgetful):
        def subgraph(self, graph, groups, index):
            return Data(x=graph.x, edge_index=graph.edge_index)

    with pytest.raises(DivisionError, match=r"subgraph\(\) returned a Data: expected a CanonicalGraph"):
        votes_of(build("gcn", "node"), DATA, ReturnsData(), engine)


def test_unstable_votes_are_marked_alike_by_both_engines():
    data, model = DATA.clone(), build("gcn", "node")
    graph = canonical(data)
    call = bind(model, graph, "node")
    for tolerance in (0.0, 0.05, 0.5, 10.0):
        fast, slow = (
            compute_votes(call, graph, EdgeCentric(3), np.arange(4), e, tolerance)[0] for e in ("fast", "naive")
        )
        assert np.array_equal(fast.stable, slow.stable)
        assert np.array_equal(fast.default_stable, slow.default_stable)
    assert not fast.stable.any()
    assert not fast.default_stable.any()


@pytest.mark.parametrize("division", [EdgeCentric(3), NodeCentric(3), GatedNodeCentric(3)], ids=str)
@pytest.mark.parametrize("engine", ["fast", "naive"])
def test_no_targets_give_no_votes(division, engine):
    votes = votes_of(build("gcn", "node"), DATA, division, engine, rows=np.array([], dtype=np.int64))
    assert votes.num_targets == 0
    assert votes.counts.shape == (0, 3)


def test_a_cover_table_comes_with_the_edge_centric_division_only():
    graph, joined = canonical(DATA), canonical_set([DATA])
    node, whole = bind(build("gcn", "node"), graph, "node"), bind(build("gcn", "graph"), joined, "graph")
    assert len(compute_votes(node, graph, EdgeCentric(3), np.arange(4))[1][1]) > 0
    assert len(compute_votes(whole, joined, EdgeCentric(3), np.arange(1))[1][1]) > 0
    assert len(compute_votes(node, graph, NodeCentric(3), np.arange(4))[1][1]) == 0
    assert len(compute_votes(node, graph, Forgetful(), np.arange(4))[1][1]) == 0


def test_votes_are_cast_without_tracking_gradients():
    graph = canonical(DATA)
    call = bind(build("gcn", "node"), graph, "node")
    with torch.enable_grad():
        compute_votes(call, graph, EdgeCentric(3), np.arange(4))
    assert all(p.grad is None for p in call.model.parameters())
