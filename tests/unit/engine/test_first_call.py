"""A model that cannot be called is refused with the reason, whichever function it was given to."""

import pytest
import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv, GINEConv, global_mean_pool

import agnncert as ac
from agnncert.errors import ModelContractError
from tests.support.labelled import labelled_graph
from tests.support.neighbour_graphs import town

DIVISION = ac.NodeCentric(5)


class Net(nn.Module):
    def __init__(self, features=5, classes=3):
        super().__init__()
        self.conv = GCNConv(features, classes)

    def forward(self, x, edge_index):
        return self.conv(x, edge_index)


class OfGraphs(Net):
    def forward(self, x, edge_index, batch):
        return global_mean_pool(self.conv(x, edge_index), batch)


class OfEdges(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = GINEConv(nn.Linear(5, 3), edge_dim=2)

    def forward(self, x, edge_index, edge_attr):
        return self.conv(x, edge_index, edge_attr)


class OfData(Net):
    def forward(self, data):
        return self.conv(data.x, data.edge_index)


class Asking(Net):
    def forward(self, x, edge_index, temperature):
        return self.conv(x, edge_index) / temperature


class Broken(Net):
    def forward(self, x, edge_index):
        return self.conv(x, edge_index) + self.no_such_thing


class NeedsTwo(Net):
    def forward(self, x, edge_index):
        if not edge_index.numel():
            raise ValueError("no edges")
        return self.conv(x, edge_index)


def graph(**values) -> Data:
    data = labelled_graph(12, seed=1, dtype=torch.float32)
    return Data(**(data.to_dict() | values))


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (OfEdges(), r"forward\(x, edge_index, edge_attr\): the model needs edge_attr, which the graph does not have"),
        (OfData(), r"forward\(data\): the model takes one argument, .*Data\(x=x, edge_index=edge_index\)"),
        (nn.Sequential(nn.Linear(5, 3)), r"forward\(input\): the model takes one argument, .*self\.model\(x\)"),
        (OfGraphs(), r"a model of graphs, which needs batch; but one Data .*Pass a list of Data"),
        (Asking(), "the model needs temperature, which nobody gives it"),
        (Net(features=7), r"The graph has 5 features, and the first layer, conv \(GCNConv\), takes 7"),
        (Broken(), r"no_such_thing.*the fault is not the size of the graph"),
        (NeedsTwo(), r"no edges.*Subgraphs can be this small: the model must accept them"),
        (Net, r"Net is a class: pass an instance of it, Net\(…\)"),
        ("gcn", r'got str\. build_model\("gcn", data\) makes one'),
        (Net().state_dict(), "got OrderedDict. Build the module, and load these weights into it"),
        (graph(), r"got Data, which is the data. The order is model, data, defence"),
        (Net().to("meta"), "on the meta device, so it has no weights"),
    ],
    ids=[
        "edge_attr", "data", "features", "graphs", "asks", "width", "broken", "edges", "class", "name", "weights", "swapped", "meta",
    ],
)  # fmt: skip
def test_the_reason_given_is_the_reason(model, message):
    calls = [lambda: ac.certify(model, graph(), DIVISION), lambda: ac.audit(model, defence=DIVISION, data=graph())]
    if not isinstance(model, str):  # fit takes the name of a model
        calls.append(lambda: ac.fit(model, graph(), DIVISION, epochs=1))
    for call in calls:
        with pytest.raises(ac.errors.ModelContractError, match=message) as caught:
            call()
        small = "can be this small" in str(caught.value)
        assert small == (type(model) is NeedsTwo)


def test_a_model_of_nodes_is_told_from_a_list_of_graphs():
    graphs = [graph(y=torch.tensor([k % 2]), train_mask=None, val_mask=None, test_mask=None) for k in range(3)]
    with pytest.raises(
        ac.errors.ModelContractError, match=r"a model of nodes, which takes no batch; but a list of Data"
    ):
        ac.certify(Net().eval(), graphs, DIVISION)


@pytest.mark.parametrize(
    ("output", "advice"),
    [
        (lambda logits: (logits, logits), "returned tuple .*Return the logits alone"),
        (lambda logits: {"logits": logits}, "returned dict .*Return the logits alone"),
        (lambda logits: logits[:, 0], r"Two classes from one score s are torch\.stack\(\[-s, s\], dim=-1\)"),
        (lambda logits: logits[:, :1], r"at least two\. Two classes from one score s are torch\.stack"),
        (lambda logits: logits.argmax(1), "Return scores instead of classes"),
    ],
    ids=["tuple", "dict", "[n]", "[n, 1]", "classes"],
)
def test_what_is_no_logits_is_answered_with_what_to_return(output, advice):
    class Other(Net):
        def forward(self, x, edge_index):
            return output(super().forward(x, edge_index))

    with pytest.raises(ac.errors.ModelContractError, match=advice):
        ac.certify(Other().eval(), graph(), DIVISION)


@pytest.mark.parametrize("squash", [torch.log_softmax, torch.softmax])
def test_probabilities_and_their_logarithms_are_scores_like_others(squash):
    class Squashed(Net):
        def forward(self, x, edge_index):
            return squash(super().forward(x, edge_index), dim=1)

    assert ac.certify(Squashed().eval(), graph(), DIVISION).num_targets == 12


@pytest.mark.parametrize("kind", [torch.half, torch.bfloat16], ids=str)
def test_models_and_features_of_half_precision_are_certified_and_verified(kind, tmp_path):
    torch.manual_seed(0)
    data = graph()
    for model, x in ((Net().eval().to(kind), data.x), (Net().eval(), data.x.to(kind))):
        data.x = x
        certificate = ac.certify(model, data, DIVISION)
        certificate.save(tmp_path / "half.cert", budgets=())
        verdict = ac.verify(tmp_path / "half.cert", data=data, model=model, recheck=20)
        assert verdict.holds, verdict
        with torch.no_grad():
            model.conv.bias += 1  # the digest covers weights of such types, too
        assert not ac.verify(tmp_path / "half.cert", data=data, model=model).holds


def test_nan_is_not_explained_by_dropout():
    class Undefined(Net):
        def forward(self, x, edge_index):
            return super().forward(x, edge_index) * float("nan")

    with pytest.raises(ac.errors.ModelContractError, match=r"not finite \(NaN or infinite\)") as caught:
        ac.certify(Undefined().eval(), graph(), DIVISION)
    assert "dropout" not in str(caught.value)


def test_an_embedding_of_nodes_is_named_as_the_cause() -> None:
    class Embedded(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = torch.nn.Embedding(8, 3)

        def forward(self, x, edge_index):
            return self.table.weight

    with pytest.raises(ModelContractError, match=r"table.weight has 8 rows, one for each node.*Compute .* from x"):
        ac.certify(Embedded().eval(), town(8), ac.NodeCentric(6))


def test_a_model_of_relations_is_told_where_relations_belong() -> None:
    class Relational(torch.nn.Module):
        def forward(self, x, edge_index, edge_type):
            return x

    with pytest.raises(ModelContractError, match=r"needs edge_type.*data.edge_attr = data.edge_type"):
        ac.certify(Relational().eval(), town(8), ac.NodeCentric(6))
