"""Models that torch.compile or torch.fx made: refused, or certified as the code that they hold."""

import pytest
import torch
from torch import Tensor, nn

import agnncert as ac
from agnncert.errors import ModelContractError
from agnncert.models.digest import model_digest
from tests.soundness.forger.honest import a_graph

DIVISION = ac.NodeCentric(5)
BACKEND = "eager"  # it needs no compiler on the machine


class Sum(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(3, 3)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        h = self.lin(x)
        return h + torch.zeros_like(h).index_add(0, edge_index[1], h[edge_index[0]])


class Difference(Sum):
    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        h = self.lin(x)
        return h - torch.zeros_like(h).index_add(0, edge_index[1], h[edge_index[0]])


class Everyone(Sum):
    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        h = self.lin(x)
        return h + h.mean(dim=0, keepdim=True)


class CompiledForward(Sum):
    forward = torch.compile(Sum.forward, backend=BACKEND)


def fresh(kind: type[Sum] = Sum) -> Sum:
    torch.manual_seed(0)
    return kind().eval()


def compiled_in_place() -> Sum:
    model = fresh()
    model.compile(backend=BACKEND)
    return model


def compiled_layer() -> Sum:
    model = fresh()
    model.lin = torch.compile(model.lin, backend=BACKEND)
    return model


def compiled_method() -> Sum:
    model = fresh()
    model.forward = torch.compile(model.forward, backend=BACKEND)
    return model


COMPILED = {
    "module": lambda: torch.compile(fresh(), backend=BACKEND),
    "in place": compiled_in_place,
    "layer": compiled_layer,
    "method": compiled_method,
    "class": lambda: fresh(CompiledForward),
    "function": lambda: torch.compile(lambda x, edge_index: x, backend=BACKEND),
}


@pytest.mark.parametrize("make", COMPILED.values(), ids=COMPILED)
def test_a_compiled_model_is_refused_in_our_words(make, tmp_path) -> None:
    data = a_graph(0)
    ac.certify(fresh(), data, DIVISION).save(tmp_path / "honest.cert")
    model = make()
    for ask in (
        lambda: ac.certify(model, data, DIVISION),
        lambda: ac.audit(model, data, DIVISION),
        lambda: ac.verify(tmp_path / "honest.cert", data=data, model=model),
    ):
        with pytest.raises(ModelContractError, match=r"torch\.compile made .*_orig_mod"):
            ask()


def test_what_a_compiled_model_computes_depends_on_the_past_of_the_process() -> None:
    """This is why it is refused: a backend is no part of a digest, and is left out after some graphs."""

    def contrary(module, inputs):
        return lambda *given: tuple(-value for value in module.forward(*given))

    torch._dynamo.reset()
    plain = fresh()
    model = torch.compile(plain, backend=contrary, dynamic=False)
    data = a_graph(0)
    with torch.no_grad():
        before = model(data.x.float(), data.edge_index)
        for nodes in range(2, 3 + torch._dynamo.config.recompile_limit):
            model(torch.ones(nodes, 3), data.edge_index[:, :0])
        other = torch.ones(nodes + 1, 3)
        after = model(other, data.edge_index[:, :0])
        assert torch.equal(before, -plain(data.x.float(), data.edge_index))
        assert torch.equal(after, plain(other, data.edge_index[:, :0]))


def test_the_module_inside_a_compiled_one_is_certified() -> None:
    compiled = torch.compile(fresh(), backend=BACKEND)
    assert ac.certify(compiled._orig_mod, a_graph(0), DIVISION).num_targets == 14


def test_a_traced_model_is_certified_as_the_code_that_it_holds(tmp_path) -> None:
    data = a_graph(0)
    traced = torch.fx.symbolic_trace(fresh())
    certificate = ac.certify(traced, data, DIVISION)
    assert (certificate.radius == ac.certify(fresh(), data, DIVISION).radius).all()
    certificate.save(tmp_path / "traced.cert")
    assert ac.verify(tmp_path / "traced.cert", data=data, model=torch.fx.symbolic_trace(fresh())).holds
    verdict = ac.verify(tmp_path / "traced.cert", data=data, model=torch.fx.symbolic_trace(fresh(Difference)))
    assert not verdict.holds


def test_traced_models_with_the_same_weights_and_other_code_have_other_digests() -> None:
    traced = [torch.fx.symbolic_trace(fresh(kind)) for kind in (Sum, Difference)]
    assert model_digest(traced[0]) != model_digest(traced[1])
    assert model_digest(traced[0]) == model_digest(torch.fx.symbolic_trace(fresh()))


def test_a_traced_model_that_looks_at_all_nodes_is_refused() -> None:
    with pytest.raises(ModelContractError, match="elsewhere"):
        ac.certify(torch.fx.symbolic_trace(fresh(Everyone)), a_graph(0), DIVISION)
