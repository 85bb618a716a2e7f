"""A scaler that is frozen into the model: fitted on training rows, local by construction, saved with the weights."""

import pytest
import torch
from torch import nn
from torch_geometric.nn import GCNConv

import agnncert as ac
from agnncert.models.build import MODELS
from agnncert.models.digest import model_digest
from agnncert.models.wrappers import Scaling, training_rows, uneven_column
from tests.support.labelled import labelled_graph, labelled_graphs

SIZES = torch.tensor([1.0, 1000.0, 1.0, 1.0, 0.01])
DIVISION = ac.NodeCentric(9)


def uneven(num_nodes=60):
    data = labelled_graph(num_nodes)
    data.x = data.x.float() * SIZES
    return data


def test_columns_are_measured_on_the_training_rows_alone() -> None:
    data = uneven()
    model = ac.build_model("gcn", data, hidden_channels=8, scale="standard")
    rows = data.x[data.train_mask]
    assert torch.allclose(model.scaling.center, rows.mean(0), rtol=1e-4)
    assert torch.allclose(model.scaling.spread, rows.std(0), rtol=1e-4)
    data.x[~data.train_mask] += 1e6
    again = ac.build_model("gcn", data, hidden_channels=8, scale="standard")
    assert torch.equal(again.scaling.center, model.scaling.center)


def test_graphs_are_measured_on_the_training_graphs() -> None:
    graphs = labelled_graphs()
    expected = torch.cat([graphs[int(k)].x for k in graphs.train])
    assert torch.equal(training_rows(graphs), expected.float())
    model = ac.build_model("gin", graphs, hidden_channels=8, scale="standard")
    assert torch.allclose(model.scaling.spread, expected.float().std(0), rtol=1e-4)


def test_a_constant_column_stays_finite() -> None:
    scaled = Scaling.of(torch.ones(5, 2))(torch.tensor([[1.0, 3.0]]))
    assert scaled.tolist() == [[0.0, 2.0]]


@pytest.mark.parametrize("name", MODELS)
def test_a_scaled_model_is_fit_by_construction_and_both_engines_agree(name, tmp_path) -> None:
    data = uneven(24)
    data.edge_attr = torch.ones(data.num_edges, 1)  # which rgcn reads
    model = ac.fit(ac.build_model(name, data, hidden_channels=8, scale="standard"), data, DIVISION, epochs=2)
    assert ac.audit(model, defence=DIVISION, data=data).locality == "construction"
    fast, naive = (ac.certify(model, data, DIVISION, engine=engine) for engine in ("fast", "naive"))
    assert (fast.counts == naive.counts).all()
    fast.save(tmp_path / "a.cert", budgets=())
    loaded = ac.load_model(ac.save_model(model, tmp_path / "a"))
    assert ac.verify(tmp_path / "a.cert", data=data, model=loaded, recheck=10).holds
    with torch.no_grad():
        loaded.scaling.center += 1
    assert model_digest(loaded) != model_digest(model)


def test_a_module_of_ones_own_can_use_it() -> None:
    data = uneven(24)

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.scaling, self.conv = Scaling.of(data.x[data.train_mask]), GCNConv(5, 3)

        def forward(self, x, edge_index):
            return self.conv(self.scaling(x), edge_index)

    assert ac.certify(Net().eval(), data, DIVISION).num_targets == 24


def test_a_model_without_it_is_what_it_was() -> None:
    data = labelled_graph()
    model = ac.build_model("gcn", data, hidden_channels=8)
    assert "scale" not in model.config  # which digests cover
    assert not any("scaling" in name for name in model.state_dict())


def test_a_scale_with_a_typo_is_answered_with_the_right_one() -> None:
    with pytest.raises(ac.errors.SettingsError, match='did you mean "standard"'):
        ac.build_model("gcn", labelled_graph(), scale="standart")


def test_uneven_columns_are_found_and_bags_of_words_are_even() -> None:
    column, most, median = uneven_column(uneven().x)
    assert column == 1
    assert most > 100 * median
    words = (torch.rand(500, 300, generator=torch.Generator().manual_seed(0)) < torch.logspace(-3, -0.3, 300)).float()
    assert uneven_column(words) is None
    assert uneven_column(labelled_graph().x) is None
    assert uneven_column(torch.ones(1, 3)) is None
