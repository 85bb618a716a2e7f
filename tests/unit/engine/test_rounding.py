"""A vote that counts as stable is the same on every path: sparse or dense, one subgraph or all, whoever else is there."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv

from agnncert.divisions.edge import EdgeCentric
from agnncert.divisions.node import GatedNodeCentric, NodeCentric
from agnncert.engine import rounding as guard
from agnncert.engine import rounding_noise
from agnncert.engine.adapter import bind
from agnncert.engine.copies import fresh_copy
from agnncert.engine.edges_by_group import EdgesByGroup
from agnncert.engine.features import SparseRows
from agnncert.engine.rounding import model_with_noise, predict, stable_predictions
from agnncert.engine.rounding_noise import RoundingNoise
from agnncert.engine.union import union_of_subgraphs
from agnncert.engine.votes import compute_votes
from agnncert.errors import ModelContractError
from agnncert.graphs.canonical import canonical, canonical_set
from agnncert.proving.theorems import certified_radius, count_votes
from tests.support.graphs import make_data, random_data
from tests.support.models import build
from tests.support.rounding_noise import (
    LAYERS,
    NODES,
    TOLERANCE,
    WIDTH,
    Cancelling,
    CancellingInside,
    check_stable_votes_hold,
    votes_on,
    wild_data,
    with_dense_strangers,
)

DIVISIONS = [EdgeCentric(5), NodeCentric(5), GatedNodeCentric(5)]


SIZES = (1e5, 1e8, 1e20)


@pytest.mark.parametrize(("kind", "big"), [(kind, SIZES[(k + j) % 3]) for k, kind in enumerate(LAYERS) for j in (0, 1)])
def test_large_features_that_cancel(kind, big):
    check_stable_votes_hold(Cancelling(kind), wild_data(0, big), *DIVISIONS)


@pytest.mark.parametrize("seed", [0, 1])
def test_large_weights_that_cancel_inside_the_network(seed):
    check_stable_votes_hold(CancellingInside(seed), wild_data(seed, wild=0), *DIVISIONS)


@pytest.mark.parametrize("kind", LAYERS)
def test_tame_rows_keep_their_votes_next_to_wild_ones(kind):
    assert check_stable_votes_hold(Cancelling(kind), wild_data(0, wild=0), EdgeCentric(5)) == [1.0]
    assert 0.2 < check_stable_votes_hold(Cancelling(kind), wild_data(0, wild=4), EdgeCentric(9))[0] < 1.0


def test_isolated_nodes_flip_no_certified_label():
    for seed in range(3):
        data, model = wild_data(seed, wild=8), Cancelling("gcn", seed)
        counted = count_votes(votes_on(model, data, EdgeCentric(3), "fast"))
        attacked = count_votes(votes_on(model, with_dense_strangers(data), EdgeCentric(3), "fast"))
        certified = certified_radius(counted) >= 0
        assert certified.any()
        assert (counted.label == attacked.label)[certified].all()


magnitudes = st.floats(-20, 20, width=32)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), low=magnitudes, high=magnitudes, alike=st.booleans())
def test_sparse_and_dense_products_agree_on_stable_votes(seed, low, high, alike):
    random = torch.Generator().manual_seed(seed)
    size = low + (high - low) * torch.rand(30, 50, generator=random)
    x = 10**size * torch.randn(30, 50, generator=random).sign() * (torch.rand(30, 50, generator=random) < 0.3)
    edges = torch.randint(0, 30, (2, 40), generator=random)
    torch.manual_seed(seed)
    model = nn.ModuleList([GCNConv(50, 8), GCNConv(8, 3)])
    if alike:
        model[0].lin.weight.data = model[0].lin.weight.data[:, :1].repeat(1, 50)
    model.forward = lambda x, edge_index: model[1](model[0](x, edge_index).tanh(), edge_index)
    graph = canonical(Data(x=x, edge_index=edges))
    layout, call = union_of_subgraphs(graph, EdgeCentric(3)), bind(model.eval(), graph, "node")
    dense, sparse = (
        compute_votes(
            call,
            graph,
            EdgeCentric(3),
            np.arange(30),
            "fast",
            TOLERANCE,
            edges_by_group=EdgesByGroup(graph, EdgeCentric(3), np.arange(30), replace(layout, sparse=rows)),
        )[0]
        for rows in (None, SparseRows(graph.x))
    )
    for one, other in ((dense, sparse), (sparse, dense)):
        assert not (one.stable & (one.vote != other.vote)).any()
        assert not (one.default_stable & (one.default != other.default)).any()


def test_votes_do_not_depend_on_the_number_of_threads():
    before, model, data = torch.get_num_threads(), Cancelling("gcn"), wild_data(0, 1e4)
    alone = votes_on(model, data, EdgeCentric(5), "fast")
    torch.set_num_threads(2)
    try:
        together = votes_on(model, data, EdgeCentric(5), "fast")
    finally:
        torch.set_num_threads(before)
    assert not (alone.stable & (alone.vote != together.vote)).any()


# How it looks


def looked(model, data):
    """Votes of one call on the whole graph."""
    graph = canonical(data)
    call = bind(model, graph, "node")
    return predict(call, TOLERANCE, graph.x.to(call.dtype), graph.edge_index, call.edge_values(graph))


class Sums(nn.Module):
    """No weight at all: the sum of a row, or of what its neighbours have."""

    def __init__(self, neighbours):
        super().__init__()
        self.neighbours = neighbours

    def forward(self, x, edge_index):
        heard = torch.zeros(len(x)).index_add(0, edge_index[1], x[edge_index[0], 0])
        total = heard if self.neighbours else x.sum(dim=1)
        return torch.stack([total, 0.25 - total], dim=1)


def test_cancellation_within_a_row_is_seen_without_any_weight():
    rows = torch.tensor([[1e8, 1.0, -1e8, 0.5], [1.0, 2.0, 0.5, -0.25]])
    assert looked(Sums(neighbours=False), Data(x=rows, edge_index=torch.empty(2, 0, dtype=torch.long)))[1].tolist() == [
        False,
        True,
    ]


def test_cancellation_between_rows_is_seen_without_any_weight():
    rows = torch.tensor([[1e8], [-1e8], [1.5], [0.0], [0.0]])
    edges = torch.tensor([[0, 1, 2, 2], [3, 3, 3, 4]])
    assert looked(Sums(neighbours=True), Data(x=rows, edge_index=edges))[1].tolist()[3:] == [False, True]


class Codes(nn.Module):
    """Reads features as rows of an embedding, as models of integer features do; neighbouring codes are far apart."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding.from_pretrained(torch.eye(2)[torch.arange(NODES + 1) % 2])

    def forward(self, x, edge_index):
        return self.table(x.long().min(dim=1).values)


def test_codes_get_no_noise():
    """A code that lost one unit of rounding would be read as the code below it, for which the vote is another one."""
    codes = torch.arange(1.0, NODES + 1)[:, None].repeat(1, 8)  # rows and columns move, in either direction
    edges = torch.randint(0, NODES, (2, 60), generator=torch.Generator().manual_seed(0))
    data = Data(x=codes, edge_index=edges)
    assert looked(Codes().eval(), data)[1].all()
    for engine in ("fast", "naive"):
        for memory_limit in (None, 1):
            votes = votes_on(Codes().eval(), data, EdgeCentric(5), engine, memory_limit)
            assert votes.stable.all()
            assert votes.default_stable.all()
            assert (votes.default == np.arange(1, NODES + 1) % 2).all()


def test_edge_values_get_noise():
    class Weighs(nn.Module):
        def forward(self, x, edge_index, edge_weight):
            total = torch.zeros(len(x)).index_add(0, edge_index[1], edge_weight)
            return torch.stack([total, 0.5 - total], dim=1)

    edges = torch.tensor([[0, 1, 2, 2], [3, 3, 3, 4]])
    data = Data(x=torch.ones(5, 1), edge_index=edges, edge_weight=torch.tensor([1e8, -1e8, 2.0, 2.0]))
    assert looked(Weighs(), data)[1].tolist()[3:] == [False, True]


def test_the_second_computation_sees_everything_in_reverse_and_still_sorted():
    seen = []

    def model(x, edge_index, batch):
        seen.append((x.clone(), edge_index.clone(), batch.clone()))
        return (
            torch.stack([x.sum(1), -x.sum(1)], dim=1)
            .new_zeros(int(batch[-1]) + 1, 2)
            .index_add(0, batch, torch.stack([x.sum(1), -x.sum(1)], dim=1))
        )

    graphs = canonical_set([make_data([(0, 1), (1, 2)], 3), make_data([(0, 1)], 2)])
    call = bind(model, graphs, "graph")
    seen.clear()
    votes, stable = predict(call, 0.0, graphs.x, graphs.edge_index, {}, graphs.batch)
    (x, edges, batch), (turned, turned_edges, turned_batch) = seen
    assert torch.allclose(turned, x.flip(0), rtol=1e-13)
    assert torch.equal(turned_edges, (len(x) - 1 - edges).flip(1))
    assert turned_batch.tolist() == [0, 0, 1, 1, 1]
    sums = torch.zeros(2, dtype=x.dtype).index_add(0, batch, x.sum(1))
    assert votes.tolist() == (sums < 0).long().tolist()
    assert stable.all()


def test_a_noisy_model_is_a_copy_whose_weights_moved_a_little():
    model = build("gcn", "node")
    model.register_buffer("codes", torch.tensor([3.0, 0.5, 2.0**30]))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    other = model_with_noise(model, RoundingNoise(2.0**-10, seed=1)).state_dict()
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert other["codes"][0] == 3.0, "small whole numbers may be codes"
    for name in before:
        moved = (other[name] / before[name] - 1).abs()
        assert ((moved == 0) | (abs(moved - 2.0**-10) < 1e-6)).all()
    assert (other["codes"][1:] != before["codes"][1:]).all()


def test_a_model_that_cannot_be_copied_is_named():
    class Locked(nn.Module):
        def __deepcopy__(self, memo):
            raise TypeError("cannot pickle a lock")

    with pytest.raises(ModelContractError, match=r"cannot be copied, to see .*how far rounding moves .*a lock"):
        fresh_copy(Locked())


def test_gradients_kept_from_training_do_not_prevent_a_copy():
    model = build("gcn", "node")
    model.kept = sum(p.sum() for p in model.parameters())
    assert fresh_copy(model).kept.grad_fn is None


def test_the_model_is_called_once_if_nobody_asks_which_votes_are_stable():
    calls = []
    data = random_data(2)

    def model(x, edge_index):
        calls.append(len(x))
        return x[:, :2]

    graph = canonical(data)
    call = bind(model, graph, "node")
    for tolerance, expected in ((None, 1), (0.0, 2)):
        calls.clear()
        predict(call, tolerance, graph.x, graph.edge_index, {})
        assert len(calls) == expected


def test_doubtful_votes_are_looked_at_more_often():
    calls = []
    plain = Cancelling("gcn")

    def model(x, edge_index):
        calls.append(len(x))
        return plain(x, edge_index)

    for big, expected in ((1.0, 2), (1e8, 2 + 4)):  # once plain, once with noise; in doubt with four noises more
        graph = canonical(wild_data(0, big))
        call = bind(model, graph, "node")
        calls.clear()
        predict(call, TOLERANCE, graph.x, graph.edge_index, {})
        assert len(calls) == expected


def test_a_vote_must_lead_by_twice_four_times_what_noise_moves():
    """The claim says "four times the change observed"; two scores may both move by that."""

    class Cancels(nn.Module):
        def __init__(self, lead):
            super().__init__()
            self.weight, self.lead = nn.Parameter(torch.tensor([1.1, 0.3])), lead

        def forward(self, x, edge_index):
            return x[:, :1] * self.weight - torch.tensor([1.1e5 - self.lead, 0.3e5])

    graph = canonical(Data(x=torch.full((3, 1), 1e5), edge_index=torch.tensor([[0], [1]])))
    given = graph.x, graph.edge_index, {}
    with torch.no_grad():
        moved = float(guard.logits_and_deviation(bind(Cancels(1.0), graph, "node"), *given)[1].max())
        assert moved > 0.05
        for times, stable in ((1.5, False), (6, False), (10, True)):
            call = bind(Cancels(times * moved), graph, "node")
            assert predict(call, 0.0, *given)[1].tolist() == [stable] * 3, times


def test_a_model_that_was_trained_since_it_was_bound_gets_noise_anew():
    graph = canonical(random_data(2))
    model = build("gcn", "node")
    call = bind(model, graph, "node")
    before = compute_votes(call, graph, EdgeCentric(3), np.arange(2), "fast", 0.0)[0]
    with torch.no_grad():
        for weight in model.parameters():
            weight.mul_(-3.0)
    after = compute_votes(call, graph, EdgeCentric(3), np.arange(2), "fast", 0.0)[0]
    assert before.stable.all()
    assert after.stable.all()
    assert after.default_stable.all()


def test_a_deviation_counts_where_it_is_more_than_the_tolerance():
    logits = torch.tensor([[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
    deviation = torch.tensor([0.25, 0.5, float("nan")])
    assert stable_predictions(logits, 0.0, deviation)[1].tolist() == [True, False, False]
    assert stable_predictions(logits, 0.5, deviation)[1].tolist() == [False, False, False]


@pytest.mark.parametrize(("strictness", "limit"), [(1, 1 + 1 / 8), (0, 1), (-1, 1 - 1 / 8)])
def test_machines_may_disagree_by_an_eighth_about_a_deviation(strictness, limit):
    logits = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    for share, stable in ((0.99, False), (1.01, True)):
        deviation = torch.tensor([1 / (2 * limit * share)], dtype=torch.float64)
        assert stable_predictions(logits, 0.0, deviation, strictness)[1].tolist() == [stable]


def test_widths_of_the_example_are_sparse_until_strangers_come():
    data = wild_data(0)
    assert data.x.size(1) == WIDTH
    assert union_of_subgraphs(canonical(data), EdgeCentric(3)).sparse is not None
    assert union_of_subgraphs(canonical(with_dense_strangers(data)), EdgeCentric(3)).sparse is None


def test_a_table_wider_than_the_cache_is_perturbed_row_by_row_in_the_same_way(monkeypatch):
    table = torch.linspace(0.1, 5.0, 60).view(6, 10)
    noise = RoundingNoise(1e-3, 1)
    at_once = noise.perturb_table(table)
    for numbers in (1, 9, 10, 25):
        monkeypatch.setattr(rounding_noise, "NUMBERS_IN_CACHE", numbers)
        assert torch.equal(noise.perturb_table(table), at_once)
    assert (at_once != table).any(dim=1).all()
