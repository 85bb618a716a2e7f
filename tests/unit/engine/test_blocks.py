"""Messages that are summed in blocks must be indistinguishable from messages that are all there, to the last bit."""

import warnings
from contextlib import nullcontext

import pytest
import torch
import torch_geometric.nn as pyg

from agnncert.engine import adapter
from agnncert.engine import blocks as messages
from agnncert.engine.adapter import bind
from agnncert.engine.blocks import InBlocks, Messages
from agnncert.graphs.graph import CanonicalGraph, edge_values_of
from tests.zoo.local import CONVS, MODELS, NORMS, STACKS, zoo_data

NODES, WIDTH, EDGES = 9, 4, 40
ZOO = {**CONVS, **NORMS, **MODELS, **STACKS}
SOURCE, HEAD = torch.randint(0, NODES, (2, EDGES), generator=torch.Generator().manual_seed(0))


@pytest.fixture(autouse=True)
def _everything_is_large(monkeypatch):
    monkeypatch.setattr(messages, "LARGE", 0)
    monkeypatch.setattr(messages, "BLOCK", 12)  # three edges
    monkeypatch.setattr(adapter, "MANY_EDGES", 0)


def rows(*shape, seed=1):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def summed(messages_, head=HEAD):
    index = head.view(-1, *[1] * (messages_.dim() - 1)).expand_as(messages_)
    return messages_.new_zeros(NODES, *messages_.shape[1:]).scatter_add_(0, index, messages_)


def plain_sum(x, w):
    return summed(x.index_select(0, SOURCE))


def scaled_sum(x, w):
    return summed(w.view(-1, 1) * x.index_select(-2, SOURCE) * w.view(-1, 1))


def rows_written_between(x, w):
    gathered = x.index_select(0, SOURCE)
    x.mul_(3)
    return summed(gathered) + x


def rows_written_through_data(x, w):
    gathered = x.index_select(0, SOURCE)
    x.data.zero_()
    return summed(gathered)


def rows_written_by_a_sum(x, w):
    gathered = x.index_select(0, SOURCE)
    x.scatter_add_(0, HEAD.view(-1, 1).expand(EDGES, WIDTH), torch.ones(EDGES, WIDTH))
    return summed(gathered)


def summed_into_its_own_rows(x, w):
    gathered = x.index_select(0, SOURCE)
    return x.scatter_add_(0, HEAD.view(-1, 1).expand(EDGES, WIDTH), gathered)


def scale_written_between(x, w):
    scaled = w.view(-1, 1) * x.index_select(0, SOURCE)
    w.add_(1)
    return summed(scaled)


def index_written_between(x, w):
    source = SOURCE.clone()
    gathered = x.index_select(0, source)
    source.zero_()
    return summed(gathered)


def messages_written(x, w):
    gathered = x.index_select(0, SOURCE)
    gathered.relu_()
    return summed(gathered)


def half_of_them_written(x, w):
    gathered = x.index_select(0, SOURCE)
    gathered[: EDGES // 2] = 0
    return summed(w.view(-1, 1) * gathered)


def kept_twice(x, w):
    gathered = x.index_select(0, SOURCE)
    scaled = gathered * w.view(-1, 1)
    return summed(gathered) + summed(scaled) + summed(gathered)


def one_number_for_all(x, w):
    return summed(2.0 * x.index_select(0, SOURCE))


def a_row_for_all(x, w):
    return summed(x[0] * x.index_select(0, SOURCE))


def two_gathered(x, w):
    return summed(x.index_select(0, SOURCE) * x.index_select(0, HEAD))


def scaled_by_columns(x, w):
    return summed(rows(EDGES, WIDTH, seed=4) * x.index_select(0, SOURCE))


def other_type(x, w):
    return summed(w.double().view(-1, 1) * x.index_select(0, SOURCE))


def heads(x, w):
    wide = torch.stack([x, 2 * x], dim=1)  # [nodes, heads, width]
    return summed(rows(EDGES, 2, 1, seed=3) * wide.index_select(0, SOURCE)).flatten(1)


def not_whole_rows(x, w):
    gathered = x.index_select(0, SOURCE)
    index = torch.randint(0, NODES, (EDGES, WIDTH), generator=torch.Generator().manual_seed(5))
    return torch.zeros(NODES, WIDTH).scatter_add_(0, index, gathered)


def heads_apart(x, w):
    wide = torch.stack([x, 2 * x], dim=1)
    index = torch.stack([HEAD, SOURCE], dim=1).unsqueeze(2).expand(EDGES, 2, WIDTH)
    return torch.zeros(NODES, 2, WIDTH).scatter_add_(0, index, wide.index_select(0, SOURCE))


def along_columns(x, w):
    gathered = x.index_select(0, SOURCE)
    return torch.zeros(EDGES, WIDTH).scatter_add_(1, torch.zeros(EDGES, WIDTH, dtype=torch.int64), gathered)


def fewer_heads_than_messages(x, w):
    gathered = x.index_select(0, SOURCE)
    return torch.zeros(NODES, WIDTH).scatter_add_(0, HEAD[:7].view(-1, 1).expand(7, WIDTH), gathered)


def returned(x, w):
    return x.index_select(0, SOURCE)


def largest(x, w):
    return x.index_select(0, SOURCE).amax(dim=0), torch.cat([x.index_select(0, HEAD), x])


MODELS_OF_MESSAGES = [
    plain_sum, scaled_sum, rows_written_between, rows_written_through_data, rows_written_by_a_sum,
    summed_into_its_own_rows, scale_written_between, index_written_between, messages_written, half_of_them_written,
    kept_twice, other_type, one_number_for_all, a_row_for_all, two_gathered, scaled_by_columns, heads, not_whole_rows, heads_apart,
    along_columns, fewer_heads_than_messages, returned, largest,
]  # fmt: skip


def both(model):
    """What a function makes of messages that are all there, and of those that are not."""
    with torch.no_grad():
        usual = model(rows(NODES, WIDTH), rows(EDGES, seed=2))
        with InBlocks():
            other = model(rows(NODES, WIDTH), rows(EDGES, seed=2))
    return usual, other


@pytest.mark.parametrize("model", MODELS_OF_MESSAGES)
def test_blocks_change_no_bit(model):
    usual, other = both(model)
    for one, two in zip(*((v if isinstance(v, tuple) else (v,)) for v in (usual, other)), strict=True):
        assert torch.equal(one, two)


def test_mistakes_stay_mistakes():
    for failing in (
        lambda x: torch.zeros(NODES, WIDTH).scatter_add_(0, HEAD.view(-1, 1).expand(EDGES, WIDTH), x.double()),
        lambda x: summed(x.index_select(0, SOURCE + NODES)),
    ):
        for mode in (nullcontext(), InBlocks()):
            with torch.no_grad(), pytest.raises((RuntimeError, IndexError)), mode:
                failing(rows(NODES, WIDTH))


@pytest.mark.parametrize("name", ZOO)
def test_blocks_change_no_bit_of_any_layer(name, monkeypatch):
    data = zoo_data()
    if name in STACKS:
        del data.edge_weight, data.edge_attr
    with torch.random.fork_rng(), warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        model = ZOO[name]().eval()
        graph = CanonicalGraph(data.x, data.edge_index, torch.arange(data.num_nodes), **edge_values_of(data))
        caller = bind(model, graph, "node")
        other = caller(data.x, data.edge_index, caller.edge_values(graph))
        monkeypatch.setattr(adapter, "MANY_EDGES", 10**9)
        usual = caller(data.x, data.edge_index, caller.edge_values(graph))
    assert type(other) is torch.Tensor
    assert torch.equal(usual, other)


@pytest.mark.parametrize(
    "layer", [pyg.GCNConv(6, 3), pyg.SAGEConv(6, 3), pyg.GATConv(6, 3), pyg.GINConv(torch.nn.Linear(6, 3))]
)
def test_layers_never_have_all_messages_at_once(layer, monkeypatch):
    def refuse(self):
        raise AssertionError("all messages were copied")

    data, sums, add_to = zoo_data(), [], Messages.add_to
    monkeypatch.setattr(Messages, "copied", refuse)
    monkeypatch.setattr(Messages, "add_to", lambda self, *rest: (sums.append(len(self)), add_to(self, *rest))[1])
    # What a layer gathers of single numbers (degrees, attention) is small, and copied.
    monkeypatch.setattr(messages, "LARGE", 3 * data.edge_index.size(1))
    with torch.no_grad(), InBlocks():
        layer(data.x, data.edge_index)
    assert sums


def test_calls_that_need_gradients_see_ordinary_messages():
    x = rows(NODES, WIDTH).requires_grad_()
    with InBlocks():
        summed(x.index_select(0, SOURCE)).sum().backward()
    assert torch.equal(x.grad, torch.bincount(SOURCE, minlength=NODES).float().view(-1, 1).expand(NODES, WIDTH))


def test_what_a_model_keeps_is_copied_before_its_rows_change():
    x = rows(NODES, WIDTH)
    with torch.no_grad(), InBlocks():
        kept = x.index_select(0, SOURCE)
    expected = x.clone()
    x.zero_()
    assert torch.equal(kept + 0, expected[SOURCE])
