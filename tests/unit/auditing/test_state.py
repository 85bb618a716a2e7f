"""What a model could remember is read without crashing, and without taking what belongs to everybody for its own."""

import logging
import types

import pytest
import torch
import torch_geometric.nn as pyg
from pydantic import BaseModel
from torch import nn

import agnncert as ac
from agnncert.auditing.model_audit import audit
from agnncert.auditing.state import state_of
from agnncert.divisions.node import NodeCentric
from tests.zoo.deceivers import InSparse
from tests.zoo.local import CLASSES, WIDTH, zoo_data

DATA = zoo_data()


class Own(nn.Module):
    """An ordinary model of one's own."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = pyg.SAGEConv(WIDTH, CLASSES)

    def forward(self, x, edge_index):
        return self.conv(x, edge_index)


class WithAlias(Own):
    """Has a generic alias as an attribute, as every LightningModule has among its class's."""

    keys = list[str]

    def __init__(self) -> None:
        super().__init__()
        self.kind = dict[str, int]
        self.either = int | str


class Logging(Own):
    def __init__(self) -> None:
        super().__init__()
        self.log = logging.getLogger("tests.of.a.model")

    def forward(self, x, edge_index):
        self.log.debug("%d nodes", len(x))
        return super().forward(x, edge_index)


class Counting(logging.Logger):
    """A logger that counts."""

    calls = 0

    def debug(self, *given, **named):
        self.calls += 1


@pytest.mark.parametrize("make", [WithAlias, Logging])
def test_an_honest_model_passes(make):
    report = audit(make().eval(), DATA, NodeCentric(5))
    assert report.ok, str(report)


def test_what_a_logger_counts_is_found():
    model = Logging()
    model.log = Counting("counting")
    before = state_of(model)
    model(DATA.x, DATA.edge_index)
    after = state_of(model)
    assert any("model.log.calls" in name for name in after if before.get(name) != after[name])


def test_a_module_of_lightning_passes():
    lightning = pytest.importorskip("pytorch_lightning")

    class OfLightning(lightning.LightningModule):
        def __init__(self, width=WIDTH):
            super().__init__()
            self.save_hyperparameters()
            self.conv = pyg.SAGEConv(width, CLASSES)

        def forward(self, x, edge_index):
            return self.conv(x, edge_index)

    assert audit(OfLightning().eval(), DATA, NodeCentric(5)).ok


@pytest.mark.filterwarnings("ignore:Sparse CS. tensor support")
@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc])
def test_numbers_of_a_sparse_tensor_are_state(layout):
    model = InSparse(layout)
    before = state_of(model)
    assert before == state_of(model)
    model.count()
    assert before != state_of(model)


@pytest.mark.filterwarnings("ignore:Sparse CS. tensor support")
@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
def test_a_sparse_buffer_is_refused_by_name(layout):
    model = Own()
    model.conv.register_buffer("mixing", torch.eye(WIDTH).to_sparse(layout=layout))
    with pytest.raises(ac.errors.ModelContractError, match="the sparse tensor mixing"):
        ac.certify(model.eval(), DATA, NodeCentric(5))


def test_variables_of_installed_packages_are_passed_over():
    own, installed = types.ModuleType("mine"), types.ModuleType("theirs")
    installed.__file__ = "/usr/lib/python3/site-packages/theirs.py"
    names = {}
    for module in (own, installed):
        module.calls = 1
        names[module.__name__] = [name for name in state_of([module]) if "calls" in name]
    assert names == {"mine": ["model[0].calls"], "theirs": []}


def test_an_object_of_a_library_that_answers_no_question_is_passed_over():
    model = WithAlias().eval()
    model.kept = BaseModel.__pydantic_serializer__  # raises whatever attribute it is asked for
    assert audit(model, DATA, NodeCentric(5)).ok
    assert state_of(model) == state_of(model)


class Silent:
    @property
    def __dict__(self):
        raise RuntimeError("none of your business")


def test_an_object_of_somebody_s_own_that_answers_no_question_is_not():
    model = WithAlias().eval()
    model.kept = Silent()
    with pytest.raises(RuntimeError, match="none of your business"):
        state_of(model)
