"""Modules of somebody else that have an attribute ``config``, as many have, are not taken for built-in ones."""

import pytest
import torch
from torch import nn
from torch_geometric.data import Data

import agnncert as ac
from agnncert.addons import config_of
from agnncert.errors import ModelContractError, SettingsError
from agnncert.models.build import fresh_copy
from agnncert.models.gnn import NodeGNN, WeightedNodeGNN
from tests.support.labelled import labelled_graph
from tests.support.trained_apart import small_set


class Flat(nn.Module):
    """A classifier of rows, or of graphs by the mean of their rows."""

    def __init__(self, width: int, config: object) -> None:
        super().__init__()
        self.config = config
        self.layer = nn.Linear(width, 3)

    def forward(self, x, edge_index, batch=None):
        if batch is None:
            return self.layer(x)
        size = torch.bincount(batch).to(x.dtype)
        total = torch.zeros(len(size), x.size(1), dtype=x.dtype).index_add(0, batch, x)
        return self.layer(total / size[:, None])


CONFIGS = [{"hidden": 8}, {"name": "mlp"}, nn.Identity()]


@pytest.mark.parametrize("config", CONFIGS)
def test_such_a_module_is_copied_and_not_built_again(config):
    model = Flat(5, config)
    assert config_of(model) is None
    assert torch.equal(fresh_copy(model, seed=3).layer.weight, model.layer.weight)


def test_a_subclass_of_a_built_in_model_stays_what_it_is():
    data = labelled_graph(20)
    built = ac.build_model("gcn", data)
    assert config_of(built) == built.config
    assert isinstance(built, NodeGNN | WeightedNodeGNN)

    class Louder(type(built)):
        def forward(self, *arguments):
            return 2 * super().forward(*arguments)

    built.__class__ = Louder
    assert type(fresh_copy(built, seed=1)) is Louder


@pytest.mark.parametrize("config", CONFIGS)
def test_such_a_module_is_trained_for_stacked_votes_and_apart(config):
    data = labelled_graph(60)
    data.x = data.x.float()
    votes = ac.StackedVotes(folds=2, edge_blind=True)
    assert ac.certify(ac.fit(Flat(data.x.size(1), config), data, votes, epochs=2), data, votes, [0]).num_targets == 1
    graphs = small_set([f"graph {k}" for k in range(8)], [float(k) for k in range(8)], [k % 2 for k in range(8)])
    apart = ac.fit(Flat(graphs[0].x.size(1), config), graphs, ac.IsolatedModels(num_models=2), epochs=1)
    assert apart.config is None
    assert type(apart.models[1]) is Flat


def test_weights_of_such_a_module_ask_for_the_module(tmp_path):
    model = Flat(5, {"hidden": 8})
    file = ac.save_model(model, tmp_path / "own")
    with pytest.raises(ModelContractError, match="a module of yours: pass it as model"):
        ac.load_model(file)
    assert torch.equal(ac.load_model(file, Flat(5, None)).layer.weight, model.layer.weight)


class CallsItselfMlp(nn.Module):
    """A teacher that reads edges, and whose ``config`` is that of a model without any."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.config = {"name": "mlp"}
        self.layer = nn.Linear(width, 3)

    def forward(self, x, edge_index):
        return self.layer(x.index_add(0, edge_index[1], x[edge_index[0]]))


def test_a_teacher_that_calls_itself_an_mlp_may_have_read_edges():
    data = labelled_graph(80)
    partly = Data(x=data.x.float(), edge_index=data.edge_index, y=data.y)
    part = torch.arange(80) % 4
    partly.train_mask, partly.val_mask, partly.test_mask = part == 0, part == 1, part == 2
    taught = ac.teach(partly, CallsItselfMlp(partly.x.size(1)), members=1, epochs=2)
    with pytest.raises(SettingsError, match="given by a teacher that read edges"):
        ac.fit(ac.build_model("mlp", taught), taught, ac.StackedVotes(edge_blind=True, folds=2), epochs=2)
