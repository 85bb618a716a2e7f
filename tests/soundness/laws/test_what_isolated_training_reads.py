"""``isolated part train``, the hypothesis of Theorem 15, about ``fit`` as it is called by name.

Whatever one training graph becomes, the models of all other parts are the same to the bit, and training does not stop.
"""

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.data import Data

import agnncert as ac
from agnncert.errors import DatasetError, GraphError, SettingsError
from agnncert.isolated.parts import sort_into_parts

NUM_MODELS = 4
APART = ac.IsolatedModels(num_models=NUM_MODELS)
NUM_TRAINING, NUM_TEST = 24, 6
NAMES = ["mlp", "gin", "gcn"]


def ring(number, size=5):
    nodes = torch.arange(size)
    x = torch.stack([torch.sin(1.3 * nodes + number), torch.full((size,), number % 2.0), torch.ones(size)], dim=1)
    edge_index = torch.stack([nodes, (nodes + 1) % size])
    return Data(x=x, edge_index=edge_index, y=torch.tensor([number % 2]), graph_id=f"ring {number}")


def alone(x, y=0, edges=((), ())):
    return Data(x=x, y=torch.tensor([y]), edge_index=torch.tensor(edges, dtype=torch.long))


def no_features():
    graph = alone(torch.ones(2, 3))
    graph.x = None
    return graph


def an_odd_feature_table():
    graph = alone(torch.ones(2, 3))
    graph.x = np.ones((2, 3))
    return graph


def values_of_edges():
    graph = alone(torch.ones(2, 3), edges=((0,), (1,)))
    graph.edge_attr = torch.ones(1, 2)
    return graph


BAD = {
    "class 7": lambda: alone(torch.ones(2, 3), y=7),
    "class -1": lambda: alone(torch.ones(2, 3), y=-1),
    "NaN": lambda: alone(torch.full((2, 3), torch.nan)),
    "infinite": lambda: alone(torch.full((2, 3), torch.inf)),
    "no node": lambda: alone(torch.ones(0, 3)),
    "two columns": lambda: alone(torch.ones(2, 2)),
    "nine columns": lambda: alone(torch.ones(2, 9)),
    "an edge to nowhere": lambda: alone(torch.ones(2, 3), edges=((0,), (99,))),
    "no features": no_features,
    "features of numpy": an_odd_feature_table,
    "complex features": lambda: alone(torch.ones(2, 3, dtype=torch.complex64)),
    "values of edges": values_of_edges,
}
HARMFUL = {
    "an uneven column": lambda: alone(torch.tensor([[1e6, 0.0, 0.0], [-1e6, 0.0, 0.0]])),
    "more nodes than recipes are for": lambda: alone(torch.zeros(150_001, 3)),
    "float64": lambda: alone(torch.ones(2, 3, dtype=torch.float64)),
    "1e38": lambda: alone(torch.full((2, 3), 1e38)),
    "another class": lambda: alone(torch.ones(2, 3), y=1),
}


def make_set(bad=None, place=0, test=NUM_TEST):
    """Rings, and a bad one at some place among the training graphs, which is the first one unless said otherwise."""
    graphs = [ring(number) for number in range(NUM_TRAINING)]
    if bad is not None:
        bad.graph_id = "bad"
        graphs.insert(place, bad)
    cut = len(graphs)
    graphs += [ring(100 + number) for number in range(test)]
    return ac.GraphSet(graphs, train=range(cut), test=range(cut, len(graphs)), num_classes=2)


def part_of(own_id):
    graph = ring(0)
    graph.graph_id = own_id
    parts = sort_into_parts(ac.GraphSet([graph], train=[0], num_classes=2), NUM_MODELS, "md5")
    return [len(part) for part in parts].index(1)


def differing(first, second):
    def weights(model):
        return torch.cat([value.flatten().double() for value in model.state_dict().values()])

    pairs = zip(first.models, second.models, strict=True)
    return [number for number, (one, other) in enumerate(pairs) if not torch.equal(weights(one), weights(other))]


def by_name(name, data, **settings):
    return ac.fit(name, data, APART, **{"epochs": 2, **settings})


@pytest.fixture(scope="module", params=NAMES)
def clean(request):
    return request.param, by_name(request.param, make_set())


@pytest.mark.parametrize("place", [0, NUM_TRAINING])
@pytest.mark.parametrize("bad", BAD)
def test_a_graph_that_cannot_be_used_is_left_out_and_all_models_are_the_same_to_the_bit(clean, bad, place):
    name, before = clean
    after = by_name(name, make_set(BAD[bad](), place))
    assert differing(before, after) == []
    assert after.training_record["graphs_left_out"] == [place]
    assert "1 training graphs cannot be used" in after.training_record["warnings"][-1]


@pytest.mark.parametrize("bad", HARMFUL)
def test_a_graph_that_can_be_used_alters_the_model_of_its_part_only(clean, bad):
    name, before = clean
    assert set(differing(before, by_name(name, make_set(HARMFUL[bad]())))) <= {part_of("bad")}


@pytest.mark.parametrize("bad", {**BAD, **HARMFUL})
def test_a_model_that_is_built_from_the_data_is_the_same_too(bad):
    def train(data):
        return ac.fit(ac.build_model("gin", data, hidden_channels=8), data, APART, epochs=2)

    after = train(make_set({**BAD, **HARMFUL}[bad]()))
    assert set(differing(train(make_set()), after)) <= {part_of("bad")}


@pytest.mark.parametrize("bad", {**BAD, **HARMFUL})
def test_recipes_are_constants(bad):
    data = make_set({**BAD, **HARMFUL}[bad]())
    assert ac.recipe(data, "gin", defence=APART) == ac.recipe(make_set(), "gin", defence=APART)


def test_other_defences_have_recipes_that_follow_training_graphs():
    """Else the test above would say nothing."""
    large = make_set(HARMFUL["more nodes than recipes are for"]())
    assert ac.recipe(large, "gin", defence=ac.NodeCentric(3)) != ac.recipe(make_set(), "gin", defence=ac.NodeCentric(3))


def test_random_sets_that_agree_on_a_part_give_the_same_model_of_that_part():
    """Every graph of the other parts is drawn anew, some of them are bad, and the rows are shuffled."""
    kept = part_of("ring 0")
    fixed = sort_into_parts(make_set(), NUM_MODELS, "md5")[kept]
    weights = set()
    for seed in range(12):
        rng = np.random.default_rng(seed)
        others = []
        for number in range(1000, 1000 + int(rng.integers(20, 60))):
            graph = ring(number, size=int(rng.integers(1, 9)))
            if part_of(graph.graph_id) != kept:
                graph.x = graph.x * float(10.0 ** rng.integers(-3, 4))
                others.append(graph)
        for bad in rng.choice(list(BAD), 2, replace=False):
            graph = BAD[bad]()
            graph.graph_id = next(f"bad {seed} {k}" for k in range(99) if part_of(f"bad {seed} {k}") != kept)
            others.append(graph) if bad == "NaN" else others.insert(0, graph)
        names = set()
        graphs = [g for g in [*fixed, *others] if not (g.graph_id in names or names.add(g.graph_id))]
        graphs = [graphs[int(k)] for k in rng.permutation(len(graphs))]
        model = by_name("gin", ac.GraphSet(graphs, train=range(len(graphs)), num_classes=2)).models[kept]
        weights.add(torch.cat([value.flatten() for value in model.state_dict().values()]).numpy().tobytes())
    assert len(weights) == 1


def test_classes_that_were_counted_in_training_graphs_are_refused():
    with pytest.raises(SettingsError, match=r"must not be counted in training graphs.*num_classes=…"):
        by_name("gin", ac.GraphSet([ring(k) for k in range(8)], train=range(8)))


def test_errors_that_are_about_more_than_single_graphs_are_raised():
    without_features = ac.GraphSet([no_features() for _ in range(8)], train=range(8), num_classes=2)
    with pytest.raises(GraphError, match="has no node features"):
        by_name("gin", without_features)
    wrong = ac.GraphSet([ring(k) for k in range(8)], train=range(8), num_classes=1)
    with pytest.raises(DatasetError, match=r"has label 1, and the data has classes 0 to 0\. 4 of 8 graphs"):
        ac.fit(ac.build_model("gin", wrong, out_channels=2), wrong, APART, epochs=1)


class Words(nn.Module):
    """A module of somebody else that stops with an error at a feature that is no word of its list."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(30, 2)

    def forward(self, x, edge_index, batch):
        rows = self.table((x[:, 0] + 2).long())
        return torch.zeros(int(batch.max()) + 1, 2).index_add(0, batch, rows)


@pytest.mark.parametrize("own_processes", [False, True])
def test_a_module_that_stops_at_one_graph_abstains_on_its_part(own_processes):
    defence = ac.IsolatedModels(num_models=NUM_MODELS, own_processes=own_processes)
    module = Words()
    before = ac.fit(module, make_set(), defence, epochs=2)
    after = ac.fit(module, make_set(alone(torch.full((2, 3), 99.0))), defence, epochs=2)
    assert after.is_empty.nonzero().view(-1).tolist() == [part_of("bad")]
    assert set(differing(before, after)) <= {part_of("bad")}


class Broken(Words):
    def forward(self, x, edge_index, batch):
        raise ZeroDivisionError("a mistake in the module")


def test_a_module_that_stops_at_every_part_is_refused_with_its_own_error():
    with pytest.raises(Exception, match="a mistake in the module"):
        ac.fit(Broken(), make_set(), APART, epochs=1)


@pytest.mark.slow
def test_one_large_inserted_graph_changes_no_certified_label():
    """150,001 nodes, from which on recipes of other defences have fewer epochs and a clipped gradient."""
    certificates = []
    for data in (make_set(test=40), make_set(alone(torch.zeros(150_001, 3)), test=40)):
        certificates.append(ac.certify(by_name("gin", data, epochs=20), data, APART, data.test))
    clean, poisoned = certificates
    holds = clean.holds_against(ac.Budget(poison_graphs=1))
    assert holds.any()
    assert np.array_equal(clean.label[holds], poisoned.label[holds])
