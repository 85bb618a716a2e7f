"""Over how many edges messages travel: layers are counted as they are run, wherever a count is used."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric import nn as pyg
from torch_geometric.data import Data

import agnncert as ac
from agnncert.attacks.api import problem_of
from agnncert.attacks.edited_subgraphs import NodeSubgraphs
from agnncert.auditing.known_layers import KNOWN, by_construction
from agnncert.certificates.votes import Votes
from agnncert.engine import exact_votes
from agnncert.engine.adapter import bind
from agnncert.engine.exact_votes import rounding_of
from agnncert.engine.spot_check import Sample, spot_check
from agnncert.engine.votes import compute_votes
from agnncert.errors import ModelContractError
from agnncert.graphs.canonical import canonical
from agnncert.models import message_hops
from agnncert.models.message_hops import hops_as_run, hops_of
from agnncert.models.wrappers import Fallback
from agnncert_peers.exact import exact_robustness
from tests.support.small_graphs import node_model, random_graph

WIDTH, CLASSES = 3, 2


def path(num_nodes: int) -> Data:
    """A path, each edge in both directions, with a feature that nothing but its row has."""
    ends = torch.stack([torch.arange(num_nodes - 1), torch.arange(1, num_nodes)])
    x = torch.randn(num_nodes, WIDTH, generator=torch.Generator().manual_seed(1))
    edges = torch.cat([ends, ends.flip(0)], dim=1)
    return Data(x=x, edge_index=edges, y=torch.arange(num_nodes) % CLASSES, node_id=torch.arange(num_nodes))


def built(name: str, depth: int, **settings: object) -> nn.Module:
    options: dict[str, object] = {"hidden_channels": 4, "num_layers": depth, "out_channels": CLASSES}
    data = random_graph(5, 5)
    data.x = torch.rand(5, WIDTH)
    data.edge_attr = torch.rand(data.edge_index.size(1), 2)
    return ac.build_model(name, data, **(options | settings))


def tied(model: nn.Module) -> nn.Module:
    """The same stack, whose inner layers are one layer."""
    for k in range(2, len(model.convs) - 1):
        model.convs[k] = model.convs[1]
    return model


def untied(model: nn.Module) -> nn.Module:
    """A copy whose layers are modules of their own."""
    other = copy.deepcopy(model)
    for k, layer in enumerate(model.convs):
        other.convs[k] = copy.deepcopy(layer)
    return other


def stack_in_stack() -> nn.Module:
    model = pyg.GraphSAGE(WIDTH, 4, 3, CLASSES)
    model.convs[1] = pyg.GraphSAGE(4, 4, 2, 4)
    return model


def k_hops_in_stack() -> nn.Module:
    model = pyg.GCN(WIDTH, 4, 3, CLASSES)
    model.convs[1] = pyg.TAGConv(4, 4, K=2)
    return model


@torch.no_grad()
def logits_of(model: nn.Module, inputs: exact_votes.Inputs) -> torch.Tensor:
    logits: torch.Tensor = model(inputs.x, inputs.edge_index, **inputs.values)
    return logits


class CalledTwice(nn.Module):
    """A model of somebody's own whose ``forward`` calls one layer twice."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.begin = pyg.SAGEConv(WIDTH, CLASSES)
        self.again = pyg.SAGEConv(CLASSES, CLASSES)

    def forward(self, x, edge_index):
        return self.again(self.again(self.begin(x, edge_index), edge_index), edge_index)


MODELS = {
    **{f"PyG's {kind.__name__} of {k}": (kind(WIDTH, 4, k, CLASSES), k) for kind in (pyg.GCN, pyg.GraphSAGE, pyg.GIN) for k in (1, 2, 5)},
    **{f"{name} of {k}": (built(name, k), k) for name in ("gcn", "sage", "gat", "gin", "resgcn", "rgcn") for k in (1, 3)},
    **{f"{kind.__name__} tied": (tied(kind(WIDTH, 4, 6, CLASSES)), 6) for kind in (pyg.GCN, pyg.GraphSAGE, pyg.GIN, pyg.GAT)},
    **{f"{name} tied": (tied(built(name, 6)), 6) for name in ("gcn", "sage", "gat", "gin", "resgcn")},
    "jumping": (pyg.GraphSAGE(WIDTH, 4, 2, CLASSES, jk="cat"), 2),
    "SGConv": (pyg.SGConv(WIDTH, CLASSES, K=4), 4),
    "TAGConv": (pyg.TAGConv(WIDTH, CLASSES, K=3), 3),
    "APPNP": (pyg.APPNP(K=5, alpha=0.1), 5),
    "GATConv": (pyg.GATConv(WIDTH, CLASSES), 1),
    "GATv2Conv": (pyg.GATv2Conv(WIDTH, CLASSES), 1),
    "GraphConv": (pyg.GraphConv(WIDTH, CLASSES), 1),
    "SAGEConv": (pyg.SAGEConv(WIDTH, CLASSES), 1),
    "GINConv": (pyg.GINConv(nn.Linear(WIDTH, CLASSES)), 1),
    "GCNConv": (pyg.GCNConv(WIDTH, CLASSES), 1),
    "no edges": (built("mlp", 3), 0),
    "a stack in a stack": (stack_in_stack(), 4),
    "K hops in a stack": (k_hops_in_stack(), 4),
    "two models": (Fallback(pyg.GCN(WIDTH, 4, 3, CLASSES), built("mlp", 2)), 3),
    "two tied models": (Fallback(tied(pyg.GCN(WIDTH, 4, 6, CLASSES)), built("mlp", 2)), 6),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_layers_of_known_models_are_counted_as_they_are_run(name):
    model, hops = MODELS[name]
    assert by_construction(model.eval())
    assert hops_of(model) == hops


@pytest.mark.parametrize("name", MODELS)
def test_the_part_within_the_hops_gives_the_logits_of_the_whole_graph(name):
    model, hops = MODELS[name]
    model = copy.deepcopy(model).double().eval()
    data = path(2 * hops + 7)
    values = {"edge_attr": torch.rand(data.num_edges, 2, dtype=torch.float64)} if "rgcn" in name else {}
    inputs = exact_votes.Inputs(data.x.double(), data.edge_index, values, None)
    rows = torch.arange(data.num_nodes) == hops + 3
    part = exact_votes._part_of(inputs, rows, hops_of(model))
    assert part.inputs.x.size(0) < data.num_nodes
    found, expected = logits_of(model, part.inputs)[part.rows], logits_of(model, inputs)[rows]
    assert torch.allclose(found, expected, rtol=1e-9, atol=1e-9)


def test_every_known_layer_that_passes_messages_has_a_count():
    """A layer that becomes known must get a count, or its rows are computed from the whole graph."""
    passing = {kind for kind in KNOWN if issubclass(kind, pyg.MessagePassing)}
    counted = {*message_hops._LAYERS_OF_ONE_HOP, *message_hops._LAYERS_OF_K_HOPS}
    assert passing == counted


def test_nothing_is_known_of_a_model_of_somebodys_own():
    assert hops_of(node_model()) is None
    assert hops_of(CalledTwice()) is None
    assert hops_of(lambda x, edge_index: x) is None
    assert hops_of(type("Own", (pyg.GCN,), {})(WIDTH, 4, 2, CLASSES)) is None


def test_without_a_count_float64_sees_the_whole_graph():
    data = path(9)
    inputs = exact_votes.Inputs(data.x, data.edge_index, {}, None)
    part = exact_votes._part_of(inputs, torch.arange(9) == 4, None)
    assert part.inputs is inputs
    assert part.rows.tolist() == [4]


def test_calls_of_a_layer_are_counted_where_its_model_is_of_somebodys_own():
    model, data = CalledTwice().eval(), path(8)
    hooks = [len(layer._propagate_forward_pre_hooks) for layer in (model.begin, model.again)]
    assert hops_as_run(model, lambda: model(data.x, data.edge_index)) == 3
    assert [len(layer._propagate_forward_pre_hooks) for layer in (model.begin, model.again)] == hooks
    assert hops_as_run(nn.Linear(3, 2), lambda: None) == 0
    assert hops_as_run(lambda x, edge_index: x, lambda: None) is None


@pytest.mark.parametrize("kind", [pyg.GCN, pyg.GraphSAGE, pyg.GIN])
@pytest.mark.parametrize("seed", range(3))
def test_a_tied_stack_votes_as_its_untied_copy_does_where_float64_decides(kind, seed):
    torch.manual_seed(seed)
    model = tied(kind(WIDTH, 8, 9, CLASSES)).eval()
    with torch.no_grad():
        for weight in model.parameters():  # so that far features decide
            weight.mul_(3)
    data = path(40)
    graph = canonical(data)
    is_left = torch.arange(40) % 9 == 4
    inputs = exact_votes.Inputs(graph.x, graph.edge_index, {}, None)
    found = []
    for each in (model, untied(model)):
        bound = bind(each, graph, "node")
        assert rounding_of(bound, graph, is_known=True) == "float32"
        by = torch.where(is_left, exact_votes.LEFT, exact_votes.BY_FLOAT32).to(torch.int8)
        decisions = exact_votes.Decisions(torch.zeros(40, dtype=torch.int16), by)
        found.append(exact_votes.decide_rest(bound, 0.0, decisions, inputs))
    assert torch.equal(found[0].vote, found[1].vote)
    assert torch.equal(found[0].by, found[1].by)
    whole = logits_of(copy.deepcopy(model).double(), inputs._replace(x=graph.x.double())).argmax(dim=1)
    assert torch.equal(found[0].vote[is_left].long(), whole[is_left])


@pytest.mark.parametrize("name", ["PyG's GCN of 5", "GCN tied", "SGConv", "TAGConv", "K hops in a stack"])
def test_attacks_see_as_far_as_messages_travel(name):
    model, hops = MODELS[name]
    subgraphs = NodeSubgraphs(problem_of(model.eval(), path(20), ac.EdgeCentric(2)))
    assert subgraphs.hops == hops + 1


def test_attacks_see_as_far_as_a_model_of_somebodys_own_calls_its_layers():
    assert NodeSubgraphs(problem_of(CalledTwice().eval(), path(20), ac.EdgeCentric(2))).hops == 4


@pytest.mark.parametrize("name", ["GraphSAGE tied", "SGConv", "own"])
def test_exact_robustness_counts_the_hops_of_its_own_accord(name):
    """With too few hops it would refuse, or call a label robust that a farther edge changes."""
    model, hops = (CalledTwice(), 3) if name == "own" else MODELS[name]
    model = copy.deepcopy(model).double().eval()
    data = path(9)
    data.x = data.x.double()
    assert exact_robustness(model, data, [4]).outcome == exact_robustness(model, data, [4], hops=hops).outcome


def test_the_spot_check_blames_a_model_that_was_read_for_nothing():
    data = path(12)
    graph, division = canonical(data), ac.EdgeCentric(3)
    model = pyg.GCN(WIDTH, 4, 2, CLASSES).eval()
    bound = bind(model, graph, "node")
    rows = np.arange(12)
    votes, _ = compute_votes(bound, graph, division, rows, "fast", 0.0)
    wrong: Votes = replace(votes, default=1 - votes.default, vote=1 - votes.vote)
    pairs = np.array([[k, group] for k in range(12) for group in range(3)])
    subgraphs = {k: division.subgraph(graph, division.groups(graph), k) for k in range(3)}
    given = {"rows": rows, "ids": rows}
    for rounding, expected in (("float32", "the fault is in agnncert"), ("watched", "looks beyond the edges")):
        with pytest.raises(ModelContractError, match=expected):
            spot_check(wrong, Sample(pairs, subgraphs), replace(bound, rounding=rounding), graph, division, **given)
