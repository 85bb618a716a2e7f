"""Votes of known models: decided in float32 or float64 by a bound, or unstable."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric import nn as pyg
from torch_geometric.data import Data

from agnncert.certifier import certify
from agnncert.divisions.edge import EdgeCentric
from agnncert.divisions.node import NodeCentric
from agnncert.engine import exact_votes
from agnncert.engine.adapter import bind
from agnncert.engine.bounded_model import BoundedModel
from agnncert.engine.error_bounds import SINGLE
from agnncert.engine.exact_votes import BY_FLOAT32, BY_FLOAT64, UNSTABLE, decide, rounding_of
from agnncert.engine.features import Features
from agnncert.engine.votes import compute_votes
from agnncert.graphs.canonical import canonical, canonical_set
from agnncert.models.build import build_model
from tests.support.graphs import random_data
from tests.support.hubs import OwnMean


def bound_to(model, data):
    graph = canonical(data)
    adapter = bind(model.eval(), graph, "node")
    return replace(adapter, rounding=rounding_of(adapter, graph, is_known=True)), graph


def decided(model, data, tolerance=0.0):
    adapter, graph = bound_to(model, data)
    with torch.no_grad():
        return decide(adapter, tolerance, graph.x.to(adapter.dtype), graph.edge_index, adapter.edge_values(graph))


def two_scores(lead: float, size: float = 1.0) -> tuple[nn.Module, Data]:
    """A model of one row whose two scores lie ``lead`` apart."""
    data = Data(x=torch.tensor([[1.0, 0.0]]), edge_index=torch.zeros(2, 0, dtype=torch.int64), y=torch.tensor([0]))
    model = build_model("mlp", data, num_layers=1, out_channels=2)
    with torch.no_grad():
        model.convs[0].weight.copy_(torch.tensor([[size, 0.0], [size, 0.0]]))
        model.convs[0].bias.copy_(torch.tensor([0.0, lead]))
    return model, data


@pytest.mark.parametrize(("lead", "by"), [(1e-3, BY_FLOAT32), (1e-7, BY_FLOAT64), (0.0, UNSTABLE)])
def test_float32_decides_large_leads_and_float64_small_ones(lead, by):
    model, data = two_scores(lead)
    votes = decided(model, data)
    assert votes.by.tolist() == [by]
    if lead:
        assert votes.vote.tolist() == [1]


def test_a_lead_within_the_tolerance_is_not_stable():
    model, data = two_scores(1e-3)
    assert decided(model, data, tolerance=1e-4).by.tolist() == [BY_FLOAT32]
    assert decided(model, data, tolerance=4.9e-4).by.tolist() == [BY_FLOAT32]
    assert decided(model, data, tolerance=5.1e-4).by.tolist() == [UNSTABLE]


@pytest.mark.parametrize("size", [float("inf"), float("nan"), 3e38])
def test_numbers_that_are_not_finite_or_may_overflow_decide_nothing(size):
    model, data = two_scores(1e-3, size)
    graph = canonical(data)
    logits = BoundedModel(model, SINGLE)(graph.x, graph.edge_index, {})
    assert not bool(torch.isfinite(logits.bounds.error).any())
    if size != 3e38:
        assert decided(model, data).by.tolist() == [UNSTABLE]


def test_reduced_products_of_matrices_are_not_used():
    model, data = two_scores(1e-3)
    torch.set_float32_matmul_precision("medium")
    try:
        assert decided(model, data).by.tolist() == [BY_FLOAT64]
    finally:
        torch.set_float32_matmul_precision("highest")
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert decided(model, data).by.tolist() == [BY_FLOAT32]
        graph = canonical(data)
        assert BoundedModel(model, SINGLE)(graph.x, graph.edge_index, {}).values.dtype == torch.float32


@pytest.mark.parametrize("kind", ["tf32", "bf16"])
def test_products_that_are_reduced_by_the_newer_setting_are_not_used(kind):
    """PyTorch then refuses to say what its older setting is."""
    model, data = two_scores(1e-3)
    settings = torch.backends.mkldnn.matmul
    before = settings.fp32_precision
    settings.fp32_precision = kind
    try:
        assert decided(model, data).by.tolist() == [BY_FLOAT64]
    finally:
        settings.fp32_precision = before
    assert decided(model, data).by.tolist() == [BY_FLOAT32]


def test_how_votes_are_decided_depends_on_the_layers():
    data = random_data(3)
    expected = {"gcn": "float32", "sage": "float32", "gin": "float32", "resgcn": "float32", "mlp": "float32"}
    for name, rounding in (expected | {"gat": "float64"}).items():
        assert bound_to(build_model(name, data, out_channels=2), data)[0].rounding == rounding, name
    width = data.x.size(1)
    assert bound_to(pyg.GCN(width, 4, 2, 2), data)[0].rounding == "float32"
    assert bound_to(pyg.GCN(width, 4, 2, 2, act="silu"), data)[0].rounding == "float32"
    assert bound_to(pyg.GCN(width, 4, 2, 2, act="mish"), data)[0].rounding == "watched"
    assert bound_to(pyg.GAT(width, 4, 2, 2, v2=True), data)[0].rounding == "watched"
    assert bound_to(pyg.GraphSAGE(width, 4, 2, 2, aggr="max"), data)[0].rounding == "watched"
    assert bound_to(build_model("gcn", data, out_channels=2).double(), data)[0].rounding == "float64"
    graph = canonical(data)
    adapter = bind(build_model("gcn", data, out_channels=2).eval(), graph, "node")
    assert rounding_of(adapter, graph, is_known=False) == "watched"


def test_half_precision_is_watched():
    data = random_data(3)
    model = build_model("gcn", data, out_channels=2)
    model.convs[0].bias.data = model.convs[0].bias.data.half()
    graph = canonical(data)
    adapter = replace(bind(build_model("gcn", data, out_channels=2).eval(), graph, "node"), model=model)
    assert rounding_of(adapter, graph, is_known=True) == "watched"


def test_negative_weights_of_edges_are_bounded_nowhere_near_them():
    edges = torch.tensor([[0, 1, 2, 3, 5], [1, 2, 3, 4, 6]])
    weight = torch.tensor([-1.0, 1.0, 1.0, 1.0, 1.0])
    data = Data(x=torch.eye(7), edge_index=edges, edge_weight=weight)
    model = build_model("gcn", Data(x=data.x, edge_index=edges, y=torch.arange(7) % 2), num_layers=1)
    by = decided(model, data).by
    assert by.tolist()[1:3] == [UNSTABLE] * 2
    assert (by[[0, 3, 4, 5, 6]] != UNSTABLE).all()


@pytest.mark.parametrize("name", ["gcn", "sage", "gin", "resgcn"])
@pytest.mark.parametrize("task", ["node", "graph"])
def test_the_part_of_a_graph_that_float64_sees_is_all_that_matters(name, task):
    """Where float32 decides nothing, rows are decided from the part around them, as they are from the whole graph."""
    data = random_data(5, largest=40, smallest=40)
    data.edge_index = torch.unique(torch.randint(0, 40, (2, 50), generator=torch.Generator().manual_seed(1)), dim=1)
    options = {"task": "graph"} if task == "graph" else {}
    model = build_model(name, data, hidden_channels=8, num_layers=2, out_channels=3, **options).eval()
    batch = torch.arange(40) // 10 if task == "graph" else None
    edges = data.edge_index
    if batch is not None:
        edges = edges[:, batch[edges[0]] == batch[edges[1]]]
    inputs = exact_votes.Inputs(data.x.float(), edges, {}, batch)
    whole = copy.deepcopy(model).double()
    with torch.no_grad():
        args = () if batch is None else (batch,)
        expected = whole(inputs.x.double(), edges, *args)
        for seed in range(5):
            rows = torch.rand(len(expected), generator=torch.Generator().manual_seed(seed)) < 0.1
            if not bool(rows.any()):
                continue
            part = exact_votes._part_of(inputs, rows, exact_votes.hops_of(model))
            some = part.inputs
            assert task == "graph" or len(some.x) < 40
            args = () if some.batch is None else (some.batch,)
            found = whole(some.x.double(), some.edge_index, *args)[part.rows]
            assert torch.allclose(found, expected[rows], rtol=1e-12, atol=1e-12)


def test_lazy_rows_are_projected_once_and_give_the_same_votes():
    data = random_data(7, largest=30, smallest=30)
    adapter, graph = bound_to(build_model("gcn", data, out_channels=3), data)
    features = Features(graph.x.to(adapter.dtype))
    index = torch.arange(30).flip(0)
    plain = decide(adapter, 0.0, graph.x.to(adapter.dtype)[index], graph.edge_index, {})
    lazy = decide(adapter, 0.0, features.rows(index), graph.edge_index, {})
    assert torch.equal(plain.vote, lazy.vote)
    assert {key[2] for key in features._bounded} == {torch.float32, torch.float64}
    assert len(features._bounded) == 2


@pytest.mark.parametrize("division", [EdgeCentric(4), NodeCentric(4)])
@pytest.mark.parametrize("name", ["gcn", "sage", "gin", "gat"])
def test_both_engines_decide_alike(name, division):
    data = random_data(11, largest=30, smallest=30, density=0.2)
    adapter, graph = bound_to(build_model(name, data, hidden_channels=8, out_channels=3), data)
    rows = np.arange(30)
    fast, naive = (compute_votes(adapter, graph, division, rows, engine, 1e-6)[0] for engine in ("fast", "naive"))
    for field in ("vote", "stable", "default", "default_stable"):
        assert np.array_equal(getattr(fast, field), getattr(naive, field)), field


def test_three_layers_of_attention_on_long_rows_are_decided():
    """Bounds that multiply norms of weights in each layer exceed every lead here, even in float64."""
    random = torch.Generator().manual_seed(0)
    data = random_data(5, largest=60, smallest=60, density=0.1)
    data.x = (torch.rand(60, 400, generator=random) < 0.5).float()
    torch.manual_seed(0)
    model = build_model("gat", data, num_layers=3, hidden_channels=16, out_channels=3)
    with torch.no_grad():
        for layer in model.convs:
            layer.att_src.mul_(8.0)
            layer.att_dst.mul_(8.0)
            layer.lin.weight.mul_(2.0)
    by_float64 = decided(model, data).by == BY_FLOAT64
    assert int(by_float64.sum()) > 50


def test_the_claim_says_what_decided():
    data = random_data(13, largest=20, smallest=20)
    data.node_id = torch.arange(20)
    for name, rounding, words in (
        ("gcn", "float32", "decided in float32 where the lead exceeds twice a proved bound"),
        ("gat", "float64", "decided in float64 where the lead exceeds twice a proved bound"),
    ):
        claim = certify(build_model(name, data, out_channels=2).eval(), data, EdgeCentric(3)).claim
        assert claim.rounding == rounding
        assert any(words in sentence for sentence in claim.assumes)
        assert any("products of matrices as sums of products" in sentence for sentence in claim.assumes)
    data.x = data.x[:, :1]
    watched = certify(OwnMean().eval(), data, EdgeCentric(3)).claim
    assert watched.rounding == "watched"
    assert any("a sum over more than 1,000 edges" in sentence for sentence in watched.assumes)


@pytest.mark.parametrize("name", ["gcn", "sage", "gin", "resgcn", "mlp", "GCN", "GraphSAGE", "GIN"])
@pytest.mark.parametrize("kind", ["directed", "both ways", "loops", "no edges"])
def test_rows_in_blocks_have_the_votes_of_rows_together(name, kind):
    """Whichever rows send, and whatever layers keep of earlier ones."""
    random = torch.Generator().manual_seed(3)
    edges = torch.unique(torch.randint(0, 30, (2, 60), generator=random), dim=1)
    edges = edges[:, (edges[0] != edges[1]) & (edges[0] < 12)]
    edges = {
        "directed": edges,
        "both ways": torch.unique(torch.cat([edges, edges.flip(0)], dim=1), dim=1),
        "loops": torch.cat([edges, torch.arange(5, 25).repeat(2, 1)], dim=1),
        "no edges": edges[:, :0],
    }[kind]
    data = Data(x=torch.randn(30, 6, generator=random), edge_index=edges, y=torch.arange(30) % 3)
    torch.manual_seed(0)
    if name in ("GCN", "GraphSAGE", "GIN"):
        model = getattr(pyg, name)(6, 8, 3, 3, jk="cat").eval()
    else:
        model = build_model(name, data, hidden_channels=8, num_layers=3, jk="max").eval()
    whole = BoundedModel(model, SINGLE)(data.x, edges, {})
    values = torch.full_like(whole.values, torch.nan)
    error = torch.full_like(whole.bounds.error, torch.nan)
    seen = []

    def finish(rows, logits):
        seen.append(torch.arange(30)[rows])
        values[rows] = logits.values
        error[rows] = logits.bounds.error

    BoundedModel(model, SINGLE).in_blocks(data.x, edges, {}, None, finish, block_rows=4)
    assert torch.cat(seen).sort().values.tolist() == list(range(30))
    assert len(seen) >= 30 // 4
    assert torch.allclose(values, whole.values, rtol=1e-5, atol=1e-5)
    assert torch.allclose(error, whole.bounds.error, rtol=1e-3)
    with torch.no_grad():
        assert torch.allclose(values, model(data.x, edges), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("task", ["node", "graph"])
def test_votes_that_float32_leaves_are_decided_together(task, monkeypatch):
    """All chunks at once, some rows at a time: the votes are those of rows one subgraph at a time."""
    monkeypatch.setattr(exact_votes._Margin, "in_single", _leave_half)
    monkeypatch.setattr(exact_votes, "ROWS_IN_DOUBLE", 5)
    monkeypatch.setattr("agnncert.engine.union.CHUNK_ROWS", 16)
    if task == "node":
        data = random_data(11, largest=30, smallest=30, density=0.2)
        adapter, graph = bound_to(build_model("gcn", data, hidden_channels=8, out_channels=3), data)
        rows = np.arange(30)
    else:
        graphs = [random_data(seed, largest=9, smallest=5, density=0.4) for seed in range(6)]
        joined = canonical_set(graphs)
        model = build_model("gcn", graphs, hidden_channels=8, out_channels=3, task="graph").eval()
        adapter = bind(model, joined, "graph")
        adapter, graph = replace(adapter, rounding=rounding_of(adapter, joined, is_known=True)), joined
        rows = np.arange(6)
    assert adapter.rounding == "float32"
    for division in (EdgeCentric(4), NodeCentric(4)):
        fast, naive = (compute_votes(adapter, graph, division, rows, engine, 1e-6)[0] for engine in ("fast", "naive"))
        assert fast.stable.all()
        assert np.array_equal(fast.vote, naive.vote)


def _leave_half(self, logits):
    """Leaves every other row to float64, with a wrong class for now."""
    by = torch.full((len(logits.values),), BY_FLOAT32, dtype=torch.int8)
    by[::2] = exact_votes.LEFT
    vote = logits.values.argmax(dim=1)
    vote[::2] = (vote[::2] + 1) % 3
    return exact_votes.Decisions(vote, by)
