"""How a model is called, and what is said when it cannot be."""

import contextlib

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

import agnncert as ac
from agnncert.divisions.edge import EdgeCentric
from agnncert.divisions.node import GatedNodeCentric, NodeCentric
from agnncert.engine.adapter import bind
from agnncert.engine.rounding import stable_predictions
from agnncert.engine.votes import compute_votes
from agnncert.errors import ModelContractError
from agnncert.graphs.canonical import canonical, canonical_set
from tests.support.checks import votes_of
from tests.support.graphs import random_data


def graph(**values):
    return canonical(Data(x=torch.randn(4, 3), edge_index=torch.tensor([[0, 1, 2], [1, 0, 3]]), **values))


class Returns(nn.Module):
    """Returns whatever it was told to."""

    def __init__(self, output):
        super().__init__()
        self.output = output

    def forward(self, x, edge_index):
        return self.output(x)


@pytest.mark.parametrize(
    ("output", "message"),
    [
        (
            lambda x: x[0],
            r"returned shape \(3,\), torch.float32 for one node, expected logits of shape \[num_nodes, num_classes\]",
        ),
        (lambda x: x.new_zeros(5, 3), r"returned shape \(5, 3\)"),
        (lambda x: x.sum(), r"returned shape \(\)"),
        (lambda x: x.long(), "torch.int64"),
        (lambda x: (x, x), "returned tuple"),
        (lambda x: None, "returned NoneType"),
        (lambda x: x[:, :1], "1 output class; a vote needs .* at least two"),
        (lambda x: x[:, :0], "0 output class"),
        (lambda x: x @ torch.zeros(7, 2), r"failed on a single node .* shape \[1, 3\]: RuntimeError"),
    ],
)
def test_outputs_that_are_not_logits_are_named(output, message):
    with pytest.raises(ModelContractError, match=message):
        bind(Returns(output), graph(), "node")


def test_a_wrong_number_of_rows_is_named_even_if_one_row_was_right():
    call = bind(Returns(lambda x: x.mean(0, keepdim=True)), graph(), "node")
    with pytest.raises(ModelContractError, match=r"returned shape \(1, 3\) for 4 node\(s\).* expected \[4, 3\]"):
        call(graph().x, graph().edge_index, {})


def test_a_number_of_classes_that_changes_is_named():
    call = bind(Returns(lambda x: x.new_zeros(len(x), 2 if len(x) == 1 else 5)), graph(), "node")
    with pytest.raises(ModelContractError, match="after 2 classes before"):
        call(graph().x, graph().edge_index, {})


def test_a_graph_model_without_a_batch_argument_returns_one_row_for_a_graph():
    joined = canonical_set([Data(x=torch.randn(2, 3), edge_index=torch.empty(2, 0, dtype=torch.int64))])
    with pytest.raises(ModelContractError, match=r"\(2, 3\) for one graph of 2 nodes.* a model of nodes.* no batch"):
        bind(Returns(lambda x: x), joined, "graph")


@pytest.mark.parametrize("thing", [None, "gcn", torch.ones(3)], ids=["None", "str", "tensor"])
def test_things_that_cannot_be_called_are_named(thing):
    with pytest.raises(ModelContractError, match=f"expected a torch.nn.Module, got {type(thing).__name__}"):
        bind(thing, graph(), "node")


@pytest.mark.parametrize("layer", [0, 1])
def test_a_model_on_another_device_is_refused_whichever_layer_it_is(layer):
    model = nn.ModuleList([GCNConv(3, 3), GCNConv(3, 3)])
    model[layer].to("meta")
    with pytest.raises(
        ModelContractError, match=rf"{layer}\.\w+ on the meta device, so it has no weights: .*load its weights"
    ):
        bind(model, graph(), "node")


def test_a_buffer_on_another_device_is_refused():
    model = Returns(lambda x: x)
    model.register_buffer("mean", torch.zeros(3, device="meta"))
    with pytest.raises(ModelContractError, match="mean on the meta device"):
        bind(model, graph(), "node")


@pytest.mark.parametrize(
    "model", [GCNConv(-1, 2), nn.Sequential(nn.Linear(3, 3), nn.LazyLinear(2))], ids=["conv", "second"]
)
def test_a_layer_that_is_not_initialised_is_refused_instead_of_certified_with_random_weights(model):
    with pytest.raises(ModelContractError, match="weight is not initialised yet: run the model once"):
        bind(model, graph(), "node")
    assert any(torch.nn.parameter.is_lazy(p) for p in model.parameters())


class Takes(nn.Module):
    """Asks for edge values."""

    def forward(self, x, edge_index, edge_weight=None, edge_attr=None):
        self.seen = (edge_weight, edge_attr)
        return x


def test_edge_values_are_passed_to_models_that_take_them_if_the_graph_has_them():
    model = Takes()
    assert bind(model, graph(), "node").edge_inputs == ()
    assert model.seen == (None, None)
    call = bind(model, graph(edge_attr=torch.ones(3, 2)), "node")
    assert call.edge_inputs == ("edge_attr",)
    weighted = graph(edge_weight=torch.tensor([1.0, 2.0, 3.0]), edge_attr=torch.ones(3, 2, dtype=torch.int64))
    call = bind(model.double(), weighted, "node")
    call(weighted.x, weighted.edge_index, call.edge_values(weighted))
    assert model.seen[0].tolist() == [2.0, 1.0, 3.0], "in the canonical order of edges"
    assert model.seen[1].dtype == torch.int64
    assert bind(Returns(lambda x: x), weighted, "node").edge_inputs == ()


def test_inputs_are_cast_to_the_type_of_the_model():
    weighted = graph(edge_weight=torch.ones(3, dtype=torch.float64))
    call = bind(GCNConv(3, 2).double(), weighted, "node")
    assert call.dtype == torch.float64
    call = bind(GCNConv(3, 2), weighted, "node")
    assert call(weighted.x, weighted.edge_index, call.edge_values(weighted)).dtype == torch.float32


WRITES = {
    "in place": lambda t: t.zero_(),
    "through data": lambda t: t.data.zero_(),
    "through detach": lambda t: t.detach().zero_(),
    "through a view's data": lambda t: t.view(-1).data.zero_(),
    "through numpy": lambda t: t.numpy().fill(0),
    "through its rows": lambda t: [row.detach().numpy().fill(0) for row in t.view(len(t), -1)],
    "through dlpack": lambda t: torch.from_dlpack(t.detach()).data.zero_(),
    "through the storage": lambda t: t.untyped_storage().fill_(0),
}


class Vandal(nn.Module):
    """Writes into all it is given, before or after using it."""

    def __init__(self, write, first):
        super().__init__()
        torch.manual_seed(0)
        self.conv, self.write, self.first = GCNConv(3, 2), write, first

    def forward(self, x, edge_index, edge_weight, edge_attr):
        if self.first:
            self.write(x)
        logits = self.conv(x, edge_index, edge_weight + edge_attr[:, 0])
        for value in (x, edge_index, edge_weight, edge_attr):
            if value.numel():
                self.write(value)
        return logits


@pytest.mark.parametrize("first", [False, True], ids=["after use", "before use"])
@pytest.mark.parametrize("how", WRITES)
def test_a_model_that_writes_into_its_inputs_alters_no_data_and_no_later_subgraph(how, first):
    edges = torch.tensor([[0, 1, 2, 3, 4, 0], [1, 2, 3, 4, 5, 5]])
    data = Data(x=torch.rand(6, 3), edge_index=torch.cat([edges, edges.flip(0)], 1), node_id=torch.arange(6))
    data.edge_weight, data.edge_attr, data.y = torch.rand(12), torch.rand(12, 1), torch.arange(6) % 2
    data.train_mask = data.val_mask = torch.ones(6, dtype=torch.bool)
    before = data.clone()
    vandal = Vandal(WRITES[how], first)

    def locked_in(x, edge_index, edge_weight, edge_attr):
        return vandal(x.clone(), edge_index.clone(), edge_weight.clone(), edge_attr.clone())

    given = canonical(data)
    for division in (EdgeCentric(3), GatedNodeCentric(3)):
        fast, naive, expected = (
            compute_votes(bind(model, given, "node"), given, division, np.arange(6), engine, 0.0)[0].dense()
            for model, engine in ((vandal, "fast"), (vandal, "naive"), (locked_in, "naive"))
        )
        assert np.array_equal(fast, naive)
        assert np.array_equal(naive, expected)
        with contextlib.suppress(RuntimeError):  # torch refuses gradients of what was written over
            ac.fit(vandal, data, division, epochs=1)
    for name in before.keys():  # noqa: SIM118 - a Data is not a dict
        assert torch.equal(data[name], before[name]), name


def test_a_model_that_fails_later_on_is_named_with_the_graph_it_failed_on():
    call = bind(Returns(lambda x: x[:, :2] if len(x) == 1 else nn.Embedding(3, 2)(x[:, 0].long() + 7)), graph(), "node")
    with pytest.raises(
        ModelContractError, match=r"failed on a graph of 4 nodes and 3 edges: IndexError: .*any features"
    ):
        call(graph().x, graph().edge_index, {})


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8, torch.bool])
def test_features_that_are_no_floats_are_voted_on_like_the_floats_they_equal(dtype):
    data = random_data(2, largest=12)
    data.x = (data.x > 0).to(dtype)
    same = data.clone()
    same.x = data.x.float()
    model = GCNConv(3, 2)
    for engine in ("fast", "naive"):
        votes = [votes_of(model, d, NodeCentric(3), engine).dense() for d in (data, same)]
        assert np.array_equal(*votes)


class Codes(nn.Module):
    """Looks features up in a table."""

    def __init__(self, read):
        super().__init__()
        self.table, self.read = nn.Embedding(4, 2), read

    def forward(self, x, edge_index):
        return self.table(self.read(x[:, 0]))


def test_codes_arrive_as_floats_and_a_model_that_reads_them_as_integers_is_certified():
    data = Data(x=torch.randint(0, 4, (6, 1)), edge_index=torch.tensor([[0, 1], [1, 0]]), node_id=torch.arange(6))
    with pytest.raises(ModelContractError, match=r"with torch\.float32 x of shape"):
        ac.certify(Codes(torch.clone).eval(), data, EdgeCentric(3))
    assert ac.certify(Codes(Tensor.long).eval(), data, EdgeCentric(3)).num_targets == 6


# Judging


def test_a_vote_goes_to_the_largest_logit_and_ties_to_the_smaller_class():
    votes, stable = stable_predictions(torch.tensor([[0.0, 2.0, 1.0], [3.0, 1.0, 3.0], [0.0, 0.0, 0.0]]), tolerance=0.0)
    assert votes.tolist() == [1, 0, 0]
    assert stable.tolist() == [True, False, False]
    assert votes.dtype == np.int16


@pytest.mark.parametrize(("gap", "sure"), [(0.5, True), (0.25, False), (0.125, False)])
def test_a_vote_is_stable_when_its_lead_is_more_than_twice_the_tolerance(gap, sure):
    assert stable_predictions(torch.tensor([[gap, 0.0]], dtype=torch.float64), tolerance=0.125)[1].tolist() == [sure]


def test_the_tolerance_grows_with_the_logits_but_not_below_one():
    logits = torch.tensor([[100.0, 99.0], [0.2, 0.1]], dtype=torch.float64)
    assert stable_predictions(logits, tolerance=0.01)[1].tolist() == [False, True]
    assert stable_predictions(-logits, tolerance=0.01)[1].tolist() == [False, True]


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
def test_logits_that_are_not_finite_are_never_stable(bad):
    assert stable_predictions(torch.tensor([[bad, 0.0, 1.0]]), tolerance=0.0)[1].tolist() == [False]


class Sized(torch.nn.Module):
    """As in PyG's own examples: pooling is told how many graphs there are."""

    def __init__(self) -> None:
        super().__init__()
        self.out = torch.nn.Linear(3, 2)

    def forward(self, x, edge_index, batch, batch_size):
        return self.out(torch.zeros(batch_size, 3, dtype=x.dtype).index_add_(0, batch, x[:, :3]))


def test_a_model_of_graphs_may_ask_how_many_there_are() -> None:
    torch.manual_seed(0)
    model, division = Sized().double().eval(), ac.NodeCentric(4)
    graphs = [
        Data(x=torch.rand(n, 5).double(), edge_index=torch.tensor([[0], [1]]), node_id=torch.arange(n))
        for n in (2, 5, 3)
    ]
    fast, naive = (ac.certify(model, graphs, division, engine=engine) for engine in ("fast", "naive"))
    assert (fast.label == naive.label).all()
    assert (fast.radius == naive.radius).all()
