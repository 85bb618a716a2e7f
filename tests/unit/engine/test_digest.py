"""The digest of a model covers its weights and everything that it keeps as a setting, and nothing that calls leave behind."""

import functools

import pytest
import torch
from torch_geometric.nn import GATConv, GCNConv, GINConv

from agnncert.models.digest import model_digest, settings_of

EDGES = torch.tensor([[0, 1, 2], [1, 2, 0]])


class Scaled(torch.nn.Module):
    def __init__(self, scale=2.0, act=torch.relu, **more) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(3, 2)
        torch.nn.init.ones_(self.linear.weight)
        torch.nn.init.zeros_(self.linear.bias)
        self.scale, self.act, self.seen = scale, act, None
        self.register_buffer("shift", torch.zeros(2), persistent=False)
        for name, value in more.items():
            setattr(self, name, value)

    def forward(self, x, edge_index):
        self.seen = self.act(self.linear(x)) * self.scale + self.shift
        return self.seen


def shifted() -> Scaled:
    model = Scaled()
    model.shift += 1
    return model


def hooked() -> Scaled:
    model = Scaled()
    model.register_forward_hook(lambda module, inputs, output: output + 1)
    return model


OTHERS = {
    "a number": lambda: Scaled(3.0),
    "a whole number instead of a float": lambda: Scaled(2),
    "a function": lambda: Scaled(act=torch.tanh),
    "a buffer that is not saved": shifted,
    "a private setting": lambda: Scaled(_mode="odd"),
    "a nested setting": lambda: Scaled(table={"a": [1, (2, 3)]}),
    "a hook": hooked,
    "a part of a function": lambda: Scaled(act=functools.partial(torch.clamp, min=0)),
    "a module in a plain list": lambda: Scaled(layers=[Scaled()]),
    "another module in a plain list": lambda: Scaled(layers=[Scaled(3.0)]),
}


def test_each_setting_makes_another_digest():
    digests = {name: model_digest(other()) for name, other in {"": Scaled, **OTHERS}.items()}
    assert len(set(digests.values())) == len(digests), digests
    assert digests[""] == model_digest(Scaled())


def test_settings_that_layers_do_not_print_count():
    torch.manual_seed(0)
    weights = GATConv(3, 2).state_dict()
    slopes = [GATConv(3, 2, negative_slope=slope) for slope in (0.2, 0.3)]
    for layer in slopes:
        layer.load_state_dict(weights)
    assert str(slopes[0]) == str(slopes[1])
    assert model_digest(slopes[0]) != model_digest(slopes[1])


@pytest.mark.parametrize(
    "layer",
    [Scaled(), GATConv(3, 2), GCNConv(3, 2), GINConv(torch.nn.Sequential(torch.nn.Linear(3, 2)))],
    ids=lambda m: type(m).__name__,
)
def test_a_call_leaves_the_digest_as_it_is(layer):
    layer.eval()
    before = model_digest(layer)
    layer(torch.ones(3, 3), EDGES)
    assert model_digest(layer) == before
    layer.train()
    assert model_digest(layer) == before


def test_a_counter_is_seen():
    class Counting(Scaled):
        calls = 0

        def forward(self, x, edge_index):
            self.calls += 1
            return super().forward(x, edge_index)

    model = Counting()
    before = settings_of(model)
    model(torch.ones(3, 3), EDGES)
    assert set(settings_of(model).items()) - set(before.items()) == {("model.calls", "int 1")}


def test_a_function_can_stand_in_for_a_module():
    assert model_digest(torch.relu) != model_digest(torch.tanh)


def test_how_training_went_is_no_part_of_the_model() -> None:
    trained, loaded = Scaled(), Scaled()
    trained.training_record = {"epochs_run": 5, "seconds": 0.1}
    assert model_digest(trained) == model_digest(loaded)
