"""Known by construction means: by what stands in the files. Whatever was exchanged, the audit is not shortened."""

import builtins
import functools
import itertools
import types

import pytest
import torch
import torch.nn.functional as F
import torch_geometric.nn as pyg
import torch_geometric.utils as pyg_utils
from torch import nn
from torch.nn.utils import parametrize
from torch.overrides import TorchFunctionMode
from torch_geometric.nn.conv import gcn_conv

import agnncert as ac
from agnncert.auditing import model_audit, original_code, probes
from agnncert.auditing.known_layers import by_construction
from agnncert.auditing.model_audit import audit
from agnncert.divisions.node import NodeCentric
from tests.zoo.deceivers import gcn_norm
from tests.zoo.local import CLASSES, HIDDEN, WIDTH, mlp, zoo_data

D, H, C = WIDTH, HIDDEN, CLASSES
DATA = zoo_data()


def gcn(**settings):
    return pyg.GCN(D, H, 2, C, **settings).eval()


class Odd:
    """Passes for an activation, or for a layer, and acts otherwise on graphs of one size."""

    def __init__(self, inner, rows):
        self.inner, self.rows = inner, rows

    def __call__(self, x):
        return -self.inner(x) if x.size(0) == self.rows else self.inner(x)


def with_object_as_projection():
    model = gcn()
    inner = model.convs[0].lin
    del model.convs[0].lin
    model.convs[0].lin = Odd(inner, DATA.num_nodes + 1)
    return model


def with_object_as_network():
    layer = pyg.GINConv(mlp(D, H, C)).eval()
    inner = layer.nn
    del layer.nn
    layer.nn = Odd(inner, DATA.num_nodes + 1)
    return layer


def with_parametrization():
    model = gcn()
    parametrize.register_parametrization(model.convs[0].lin, "weight", nn.Tanh())
    return model


def with_attribute(name, value):
    model = gcn()
    vars(model.convs[0])[name] = value
    return model


class Table(dict):
    pass


def with_table_of_ones_own():
    model = gcn()
    vars(model)["_modules"] = Table(model._modules)
    return model


class Hiding(dict):
    """Shows those who look everything but one name, which Python itself finds."""

    def __iter__(self):
        return (name for name in super().__iter__() if name != "forward")

    def items(self):
        return [(name, self[name]) for name in self]

    def keys(self):
        return dict.fromkeys(self).keys()


def with_a_name_that_is_hidden():
    model = gcn()
    vars(model.convs[0])["forward"] = forward = Odd(model.convs[0].forward, DATA.num_nodes + 1)
    model.convs[0].__dict__ = Hiding(vars(model.convs[0]))
    assert model.convs[0].forward is forward
    return model


def with_something_else_in_the_table():
    model = gcn()
    model.convs[0]._modules["lin"] = Odd(model.convs[0].lin, 9)
    return model


STRANGE = {
    "an activation that is an object": lambda: gcn(act=Odd(torch.relu, DATA.num_nodes + 1)),
    "an activation of one's own, filled in": lambda: gcn(act=functools.partial(lambda x, by: x * by, by=2)),
    "an activation filled in with a tensor": lambda: gcn(act=functools.partial(F.elu, alpha=torch.ones(()))),
    "a function that is no activation": lambda: gcn(act=F.normalize),
    "a function over all nodes": lambda: gcn(act=functools.partial(torch.softmax, dim=0)),
    "an object in place of a projection": with_object_as_projection,
    "an object in place of a network": with_object_as_network,
    "a parametrization": with_parametrization,
    "a propagate of its own": lambda: with_attribute("propagate", Odd(None, 0)),
    "a call of its own": lambda: with_attribute("_compiled_call_impl", Odd(None, 0)),
    "a setting of the class, on an instance": lambda: with_attribute("SUPPORTS_FUSED_EDGE_INDEX", True),
    "a list with a tensor": lambda: with_attribute("kept", [torch.zeros(1)]),
    "a number with methods of its own": lambda: with_attribute("kept", type("Whole", (int,), {})(3)),
    "a table of its own": with_table_of_ones_own,
    "a name that is hidden": with_a_name_that_is_hidden,
    "something that is no module": with_something_else_in_the_table,
}


@pytest.mark.parametrize("name", STRANGE)
def test_what_is_on_no_list_is_not_known(name):
    assert not by_construction(STRANGE[name]())


EVERYDAY = {
    "a function": lambda: gcn(act=torch.relu),
    "a function of torch.nn": lambda: gcn(act=F.elu),
    "numbers filled in": lambda: gcn(act=functools.partial(F.leaky_relu, negative_slope=0.1)),
    "a module": lambda: gcn(act=nn.LeakyReLU(0.1)),
    "a copy": lambda: gcn().double().float(),
}


@pytest.mark.parametrize("name", EVERYDAY)
def test_what_people_use_every_day_is_known(name):
    assert by_construction(EVERYDAY[name]())


def other(*given, **named):
    return given[0]


def another_propagate(patch):
    for kept in ("_orig_propagate", "_jinja_propagate"):  # which PyG sets anew when a layer is copied
        patch.setattr(pyg.GCNConv, kept, vars(pyg.GCNConv)[kept])
    patch.setattr(pyg.GCNConv, "propagate", other)


def another_code(patch):
    plain = pyg.GCNConv.message
    patch.setattr(plain, "__code__", (lambda self, x_j, edge_weight: x_j).__code__)


def a_code_that_names_the_right_file(patch):
    plain = pyg.GCNConv.message.__code__
    forged = (lambda self, x_j, edge_weight: x_j).__code__.replace(
        co_filename=plain.co_filename, co_name=plain.co_name, co_qualname=plain.co_qualname
    )
    patch.setattr(pyg.GCNConv.message, "__code__", forged)


def other_globals(patch):
    plain = pyg.GCNConv.forward
    copied = types.FunctionType(plain.__code__, {**plain.__globals__, "gcn_norm": other}, "forward", plain.__defaults__)
    patch.setattr(pyg.GCNConv, "forward", copied)


class Between(pyg.MessagePassing):
    def aggregate(self, inputs, index):
        return inputs


EXCHANGED = {
    "propagate": another_propagate,
    "collect": lambda patch: patch.setattr(pyg.GCNConv, "collect", other),
    "the plain propagate": lambda patch: patch.setattr(pyg.GCNConv, "propagate", pyg.MessagePassing.__call__),
    "aggregate of the base": lambda patch: patch.setattr(pyg.MessagePassing, "aggregate", other),
    "a method that was not there": lambda patch: patch.setattr(pyg.GCNConv, "__call__", other, raising=False),
    "one method for another": lambda patch: patch.setattr(pyg.GCNConv, "forward", pyg.GCNConv.message),
    "gcn_norm": lambda patch: patch.setattr(gcn_conv, "gcn_norm", other),
    "another function called gcn_norm": lambda patch: patch.setattr(gcn_conv, "gcn_norm", gcn_norm),
    "an object as gcn_norm": lambda patch: patch.setattr(gcn_conv, "gcn_norm", functools.partial(gcn_conv.gcn_norm)),
    "scatter": lambda patch: patch.setattr(gcn_conv, "scatter", pyg_utils.softmax),
    "a name that hides one of Python's": lambda patch: patch.setattr(gcn_conv, "isinstance", other, raising=False),
    "one of Python's own": lambda patch: patch.setattr(builtins, "isinstance", lambda *given: real_isinstance(*given)),
    "the call of all modules": lambda patch: patch.setattr(nn.Module, "__call__", other),
    "attributes of all modules": lambda patch: patch.setattr(nn.Module, "__getattr__", other),
    "relu": lambda patch: patch.setattr(F, "relu", other),
    "another of torch's functions": lambda patch: patch.setattr(F, "relu", F.softplus),
    "linear": lambda patch: patch.setattr(F, "linear", other),
    "index_select of tensors": lambda patch: patch.setattr(torch.Tensor, "index_select", other, raising=False),
    "instructions": another_code,
    "instructions that name the right file": a_code_that_names_the_right_file,
    "the names around a method": other_globals,
    "a default": lambda patch: patch.setattr(pyg.GCNConv.forward, "__defaults__", (other,)),
}
real_isinstance = isinstance


@pytest.mark.parametrize("name", EXCHANGED)
@pytest.mark.parametrize("looked_before", [True, False])
def test_what_was_exchanged_is_not_what_was_read(monkeypatch, name, looked_before):
    model = gcn()
    if looked_before:
        assert by_construction(model)
    else:
        monkeypatch.setattr(original_code, "_trails", {})
    with monkeypatch.context() as patch:
        EXCHANGED[name](patch)
        known = by_construction(model)
    assert not known
    assert by_construction(model), "and once it is put back, it is known again"


def test_a_class_with_another_base_is_not_what_was_read():
    model, bases = gcn(), pyg.GCNConv.__bases__
    pyg.GCNConv.__bases__ = (Between,)
    try:
        known = by_construction(model)
    finally:
        pyg.GCNConv.__bases__ = bases
    assert not known


def test_somebody_who_sees_every_operation():
    class Seeing(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    assert by_construction(gcn())
    with Seeing():
        assert not by_construction(gcn())


def test_a_hook_on_all_modules():
    handle = torch.nn.modules.module.register_module_forward_hook(lambda *given: None)
    try:
        assert not by_construction(gcn())
    finally:
        handle.remove()
    assert by_construction(gcn())


def test_an_activation_that_waits_for_one_node_more_is_refused():
    report = audit(STRANGE["an activation that is an object"](), DATA, NodeCentric(5))
    assert report.locality == "test"
    assert [finding.what for finding in report.findings] == ["one lone node more elsewhere"]
    with pytest.raises(ac.errors.ModelContractError, match="one lone node more"):
        ac.certify(STRANGE["an activation that is an object"](), DATA, NodeCentric(5))


@pytest.mark.parametrize("name", ["propagate", "gcn_norm", "the call of all modules"])
def test_no_audit_is_shortened_for_what_was_exchanged(monkeypatch, name):
    asked = []
    plain = probes.Probes.__init__
    monkeypatch.setattr(
        probes.Probes,
        "__init__",
        lambda self, *given, brief=False: asked.append(brief) or plain(self, *given, brief=brief),
    )
    model = gcn()
    with monkeypatch.context() as patch:
        EXCHANGED[name](patch)
        with pytest.raises(ac.errors.AgnncertError):
            audit(model, DATA, NodeCentric(5)).require_fit()
    assert asked in ([False], [])
    assert audit(model, DATA, NodeCentric(5)).ok
    assert asked[-1] is True


def test_a_known_model_that_misbehaves_is_audited_in_full(monkeypatch):
    monkeypatch.setattr(model_audit, "by_construction", lambda model: True)
    for rows in itertools.islice(itertools.count(DATA.num_nodes), 2):
        model = nn.Module()
        model.forward = lambda x, edge_index, rows=rows: x[:, :C] + x.mean() * (x.size(0) != rows)
        report = audit(model.eval(), DATA, NodeCentric(5))
        assert not report.ok
        assert report.locality == "test"
