"""Models that are trained apart: a change of one training graph leaves all other models as they were, to the bit."""

import pytest
import torch
from torch_geometric.data import Data

import agnncert as ac
from agnncert.errors import DatasetError, IdError, ModelContractError, SettingsError
from agnncert.isolated.parts import sort_into_parts
from agnncert.isolated.training import _report

DEFENCE = ac.IsolatedModels(num_models=4)
NUM_GRAPHS = 18


def make_graph(number, size=5, label=None):
    """A ring with features of a formula, whose class is seen in them."""
    nodes = torch.arange(size)
    y = number % 2 if label is None else label
    x = torch.stack([torch.sin(1.3 * nodes + number), torch.full((size,), float(y))], dim=1)
    edge_index = torch.stack([nodes, (nodes + 1) % size])
    made = Data(x=x, edge_index=torch.cat([edge_index, edge_index.flip(0)], dim=1), y=torch.tensor([y]))
    made.graph_id = f"graph {number}"
    return made


def make_set(graphs=None):
    graphs = [make_graph(number) for number in range(NUM_GRAPHS)] if graphs is None else graphs
    cut = len(graphs) - 4
    return ac.GraphSet(graphs, train=range(cut), val=range(cut, len(graphs)), num_classes=2)


def train(data, defence=DEFENCE, **settings):
    model = ac.build_model("gin", data, hidden_channels=4, num_layers=2, out_channels=2, dropout=0.3)
    return ac.fit(model, data, defence, **{"epochs": 3, "batch_size": 2, **settings})


def altered_features(graphs):
    graphs[4].x = graphs[4].x + 1
    return graphs


def altered_class(graphs):
    graphs[4].y = 1 - graphs[4].y
    return graphs


def a_larger_graph(graphs):
    graphs[4] = make_graph(4, size=50)
    return graphs


def a_deleted_graph(graphs):
    return graphs[:4] + graphs[5:]


def an_inserted_graph(graphs):
    return [make_graph(77), *graphs]


def an_altered_validation_graph(graphs):
    graphs[-1].x = -graphs[-1].x
    return graphs


ONE_GRAPH = {
    altered_features: "graph 4",
    altered_class: "graph 4",
    a_larger_graph: "graph 4",
    a_deleted_graph: "graph 4",
    an_inserted_graph: "graph 77",
    an_altered_validation_graph: "graph 17",
}


def part_of(own_id):
    """The part of an id, by a set that holds nothing else."""
    alone = make_graph(0)
    alone.graph_id = own_id
    parts = sort_into_parts(ac.GraphSet([alone], train=[0], num_classes=2), DEFENCE.num_models, DEFENCE.hash)
    return [len(part) for part in parts].index(1)


def differing(first, second):
    """The numbers of the models that differ in a weight, to the bit."""
    numbers = []
    for number, (one, other) in enumerate(zip(first.models, second.models, strict=True)):
        weights, others = one.state_dict(), other.state_dict()
        if any(not torch.equal(weights[name], others[name]) for name in weights):
            numbers.append(number)
    return numbers


@pytest.mark.parametrize("change", ONE_GRAPH, ids=lambda change: change.__name__)
def test_one_changed_graph_alters_one_model(change):
    before = train(make_set())
    after = train(make_set(change([make_graph(number) for number in range(NUM_GRAPHS)])))
    assert differing(before, after) == [part_of(ONE_GRAPH[change])]


def test_the_order_of_graphs_and_what_was_drawn_before_alter_no_model():
    before = train(make_set())
    torch.manual_seed(99)
    torch.rand(7)
    again = train(
        ac.GraphSet([make_graph(n) for n in reversed(range(NUM_GRAPHS))], train=range(NUM_GRAPHS), num_classes=2)
    )
    assert differing(before, again) == []


def test_models_begin_with_weights_of_their_own_and_the_given_one_is_not_changed():
    data = make_set()
    model = ac.build_model("gin", data, hidden_channels=4, num_layers=2)
    weights = {name: weight.clone() for name, weight in model.state_dict().items()}
    ensemble = ac.fit(model, data, DEFENCE, epochs=1)
    assert all(torch.equal(weight, weights[name]) for name, weight in model.state_dict().items())
    assert len({float(next(iter(one.parameters())).detach().sum()) for one in ensemble.models}) == DEFENCE.num_models


def test_views_are_trained_apart_too():
    defence = ac.IsolatedModels(ac.NodeCentric(3), num_models=4)
    before = train(make_set(), defence)
    after = train(make_set(altered_class([make_graph(number) for number in range(NUM_GRAPHS)])), defence)
    assert differing(before, after) == [part_of("graph 4")]


def test_a_part_without_a_graph_abstains_and_says_so():
    few = [make_graph(number) for number in range(6)]
    ensemble = ac.fit(
        ac.build_model("gin", few, hidden_channels=4, out_channels=2),
        ac.GraphSet(few, train=range(6), num_classes=2),
        ac.IsolatedModels(num_models=40),
        epochs=1,
    )
    assert ensemble.is_empty.sum() >= 34
    assert "parts have no training graph" in ensemble.training_record["warnings"][0]


def test_graphs_without_ids_are_refused():
    data = make_set()
    del data[3].graph_id
    with pytest.raises(DatasetError, match=r"training graph 3 has no graph_id.*changes when another graph is inserted"):
        train(data)


@pytest.mark.parametrize("own_id", [2.5, True, None, torch.tensor([1, 2])])
def test_ids_that_are_no_ids_are_refused(own_id):
    data = make_set()
    data[3].graph_id = own_id
    with pytest.raises((IdError, DatasetError)):
        train(data)


def test_ids_that_occur_twice_are_refused():
    data = make_set()
    data[3].graph_id = "graph 6"
    with pytest.raises(IdError, match=r"'graph 6' appears .* or of a training graph"):
        train(data)


@pytest.mark.parametrize("setting", [{"size": 1}, {"measure": "accuracy"}])
def test_what_a_validation_score_would_decide_is_refused(setting):
    with pytest.raises(SettingsError, match="have no validation score"):
        train(make_set(), **setting)


def test_patience_stops_no_model():
    assert differing(train(make_set()), train(make_set(), patience=1, evaluate_every=1)) == []


def test_a_recipe_by_the_name_of_a_model_is_trained():
    assert len(ac.fit("gin", make_set(), DEFENCE, epochs=1).models) == DEFENCE.num_models


def test_a_model_that_was_trained_before_is_refused():
    data = make_set()
    model = ac.fit(ac.build_model("gin", data, hidden_channels=4), data, None, epochs=1)
    with pytest.raises(ModelContractError, match="was trained before"):
        ac.fit(model, data, DEFENCE, epochs=1)


def test_features_that_are_scaled_by_all_graphs_are_refused():
    data = make_set()
    model = ac.build_model("gin", data, hidden_channels=4, scale="standard")
    with pytest.raises(ModelContractError, match="measured on all training graphs"):
        ac.fit(model, data, DEFENCE, epochs=1)


def test_a_checkpoint_of_each_part_is_gone_on_from(tmp_path):
    plain = train(make_set())
    first = ac.fit(
        ac.build_model("gin", make_set(), hidden_channels=4, num_layers=2, out_channels=2, dropout=0.3),
        make_set(),
        DEFENCE,
        epochs=3,
        batch_size=2,
        checkpoint=tmp_path / "state.pt",
    )
    assert len(list(tmp_path.glob("state-part-*.pt"))) == sum(~plain.is_empty)
    assert differing(plain, first) == []


def test_the_progress_of_each_part_is_told():
    told = []
    model = ac.build_model("gin", make_set(), hidden_channels=4, num_layers=2)
    ac.fit(model, make_set(), DEFENCE, epochs=1, progress=told.append)
    assert [(step.done, step.total) for step in told] == [(number, 4) for number in (1, 2, 3, 4)]
    assert all(step.seconds_left > 0 for step in told[:-1])
    assert told[-1].seconds_left == 0


def test_the_time_left_is_that_of_the_parts_that_are_left():
    told = []
    _report(told.append, done=2, total=5, seconds=8.0)
    assert told[0].seconds_left == 12.0
