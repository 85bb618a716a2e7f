"""A module of several kinds of nodes and edges, called on one graph."""

import pytest
import torch
from torch import nn
from torch_geometric.data import HeteroData
from torch_geometric.nn import HeteroConv, SAGEConv, to_hetero

import agnncert as ac
from agnncert.errors import GraphError, ModelContractError

PAYS, REFERS = ("buyer", "pays", "seller"), ("seller", "refers", "buyer")


def shop(seed: int = 0, buyers: int = 12, sellers: int = 5) -> HeteroData:
    random = torch.Generator().manual_seed(seed)
    data = HeteroData()
    data["buyer"].x = torch.rand(buyers, 3, generator=random)
    data["buyer"].y = torch.arange(buyers) % 2
    data["buyer"].node_id = [f"b{k}" for k in range(buyers)]
    data["seller"].x = torch.rand(sellers, 2, generator=random)
    data["seller"].node_id = [f"s{k}" for k in range(sellers)]
    paid = torch.randint(0, sellers, (buyers,), generator=random)
    data[PAYS].edge_index = torch.stack([torch.arange(buyers), paid])
    data[PAYS].edge_attr = torch.rand(buyers, 2, generator=random)
    data[REFERS].edge_index = torch.stack([torch.arange(sellers), torch.arange(sellers)])
    return data


class Shop(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.pays = HeteroConv({PAYS: SAGEConv((3, 2), 4), REFERS: SAGEConv((2, 3), 4)})
        self.out = HeteroConv({REFERS: SAGEConv((4, 4), 2), PAYS: SAGEConv((4, 4), 2)})

    def forward(self, x_dict, edge_index_dict):
        hidden = {kind: rows.relu() for kind, rows in self.pays(x_dict, edge_index_dict).items()}
        return self.out(hidden, edge_index_dict)["buyer"]


class Weighted(nn.Module):
    """Reads what edges carry."""

    def forward(self, x_dict, edge_index_dict, edge_attr_dict):
        _, head = edge_index_dict[PAYS]
        paid = torch.zeros(len(x_dict["seller"]), 2).index_add(0, head, edge_attr_dict[PAYS][:, :2])
        back_source, back_head = edge_index_dict[REFERS]
        return {"buyer": torch.zeros(len(x_dict["buyer"]), 2).index_add(0, back_head, paid[back_source])}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("module", [Shop, Weighted])
def test_logits_of_the_target_are_those_of_the_module_on_its_own_data(seed: int, module) -> None:
    torch.manual_seed(seed)
    hetero = shop(seed)
    model = module().eval()
    arguments = {"edge_attr_dict": {PAYS: hetero[PAYS].edge_attr, REFERS: None}} if module is Weighted else {}
    expected = model(hetero.x_dict, hetero.edge_index_dict, **arguments)
    expected = expected["buyer"] if isinstance(expected, dict) else expected
    data = ac.from_hetero(hetero)
    logits = ac.HeteroModel(model, hetero)(data.x, data.edge_index, data.edge_attr)
    assert torch.allclose(logits[:12], expected, atol=1e-6)
    assert not logits[12:].any()


def test_a_module_of_to_hetero_is_certified_and_verified() -> None:
    class Plain(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = SAGEConv((-1, -1), 2)

        def forward(self, x, edge_index):
            return self.conv(x, edge_index)

    hetero = shop()
    module = to_hetero(Plain(), hetero.metadata())
    with torch.no_grad():
        module(hetero.x_dict, hetero.edge_index_dict)  # so that its weights are there
    data, model = ac.from_hetero(hetero), ac.HeteroModel(module.eval(), hetero).eval()
    division = ac.NodeCentric(6)
    certificate = ac.certify(model, data, division, targets=range(12))
    assert (certificate.radius >= 0).any()
    assert ac.verify(certificate, data=data, model=model)


def test_an_edge_between_other_kinds_than_its_relation_joins_counts_for_nothing() -> None:
    hetero = shop()
    data, model = ac.from_hetero(hetero), ac.HeteroModel(Shop().eval(), hetero)
    before = model(data.x, data.edge_index, data.edge_attr)
    wrong = torch.zeros(1, data.edge_attr.size(1))
    wrong[0, 0] = 1  # a buyer "pays" another buyer
    after = model(data.x, torch.cat([data.edge_index, torch.tensor([[0], [1]])], 1), torch.cat([data.edge_attr, wrong]))
    assert torch.equal(before, after)


def test_what_does_not_fit_is_refused() -> None:
    hetero = shop()
    with pytest.raises(GraphError, match="expected a torch_geometric HeteroData, got Data"):
        ac.HeteroModel(Shop(), ac.from_hetero(hetero))
    with pytest.raises(GraphError, match="say which nodes to classify"):
        ac.HeteroModel(Shop(), hetero, target="courier")

    class Silent(nn.Module):
        def forward(self, x_dict, edge_index_dict):
            return {}

    data = ac.from_hetero(hetero)
    with pytest.raises(ModelContractError, match="returned NoneType for 12 nodes of kind buyer"):
        ac.HeteroModel(Silent(), hetero)(data.x, data.edge_index, data.edge_attr)
