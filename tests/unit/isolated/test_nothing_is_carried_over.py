"""Modules of somebody else: whatever they draw or keep, a poisoned graph alters the model of its own part alone."""

import random

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.nn import global_mean_pool

import agnncert as ac
from agnncert.errors import ModelContractError, SettingsError
from tests.unit.isolated.test_training import NUM_GRAPHS, a_larger_graph, differing, make_graph, make_set, part_of

DEFENCE = ac.IsolatedModels(num_models=4)
APART = ac.IsolatedModels(num_models=4, own_processes=True)
SHARED = {"steps": 0}  # copies of a module do not have their own
GENERATOR = np.random.default_rng(0)


class Drawing(nn.Module):
    """Adds random numbers to what it reads, as many as there are nodes, from a generator that is not torch's own."""

    def __init__(self, draw):
        super().__init__()
        self.draw = draw
        self.norm = nn.BatchNorm1d(2)
        self.dropout = nn.Dropout(0.4)
        self.lin = nn.Linear(2, 2)

    def forward(self, x, edge_index, batch):
        x = self.dropout(self.norm(x))
        if self.training:
            x = x + 0.3 * self.draw(x)
        return self.lin(global_mean_pool(x, batch))


def by_torch(x):
    return torch.rand(len(x), 1)


def by_numpy(x):
    return torch.from_numpy(np.random.rand(len(x), 1)).float()


def by_python(x):
    return torch.tensor([[random.random()] for _ in range(len(x))])


def by_shared_state(x):
    SHARED["steps"] += len(x)
    return torch.full((len(x), 1), SHARED["steps"] % 7 / 7)


def by_another_generator(x):
    return torch.from_numpy(GENERATOR.random((len(x), 1))).float()


SEEDED = [by_torch, by_numpy, by_python]
NOT_SEEDED = [by_shared_state, by_another_generator]


def train(graphs, draw, defence):
    torch.manual_seed(0)
    return ac.fit(Drawing(draw), make_set(graphs), defence, epochs=2, batch_size=2)


def graphs():
    return [make_graph(number) for number in range(NUM_GRAPHS)]


@pytest.mark.parametrize("draw", SEEDED)
def test_random_numbers_do_not_pass_from_part_to_part(draw):
    before = train(graphs(), draw, DEFENCE)
    after = train(a_larger_graph(graphs()), draw, DEFENCE)
    assert differing(before, after) == [part_of("graph 4")]


@pytest.mark.parametrize("draw", NOT_SEEDED)
def test_state_that_copies_share_is_noticed(draw):
    with pytest.raises(ModelContractError, match="something passes from part to part"):
        train(graphs(), draw, DEFENCE)


@pytest.mark.parametrize("draw", [*SEEDED, *NOT_SEEDED])
def test_processes_of_their_own_carry_nothing_over(draw):
    before = train(graphs(), draw, APART)
    after = train(a_larger_graph(graphs()), draw, APART)
    assert differing(before, after) == [part_of("graph 4")]


def test_generators_of_the_caller_are_left_as_they_were():
    model, data, states = Drawing(by_numpy), make_set(graphs()), []
    for epochs in (0, 1):
        random.seed(5)
        np.random.seed(5)
        torch.manual_seed(5)
        if epochs:
            ac.fit(model, data, DEFENCE, epochs=epochs)
        states.append((random.random(), np.random.rand(), float(torch.rand(()))))
    assert states[0] == states[1]


def test_an_error_in_a_process_is_told_as_it_is():
    def fails(x):
        raise ArithmeticError("seven is not a number")

    with pytest.raises(ModelContractError, match="seven is not a number"):
        train(graphs(), fails, APART)


def test_a_module_that_cannot_be_handed_back_is_named():
    with pytest.raises(ModelContractError, match="cannot be handed back from its process"):
        train(graphs(), lambda x: 0 * x, APART)


def test_own_processes_must_be_true_or_false():
    with pytest.raises(SettingsError, match="own_processes='yes'"):
        ac.IsolatedModels(own_processes="yes")


def test_built_in_models_are_the_same_in_processes_of_their_own():
    data = make_set()
    model = ac.build_model("gin", data, hidden_channels=4, num_layers=2, dropout=0.3)
    assert differing(ac.fit(model, data, DEFENCE, epochs=2), ac.fit(model, data, APART, epochs=2)) == []
