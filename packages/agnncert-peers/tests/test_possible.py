"""What a report says is possible: against the changes that its curves count, on cases that are small enough by hand."""

import tomllib
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import agnncert as ac
from agnncert.addons import addons
from agnncert.certificates.theorem_facts import EDGES_ONLY
from agnncert.report.summary import AT_MOST, VOTES_REFERENCE
from agnncert.study import certify_model
from agnncert_peers import ceilings, possible
from agnncert_peers.ceilings import few_type_counts, votes_reference
from agnncert_peers.possible import WORDS, counted_changes
from agnncert_peers.runner import make_study
from tests.support.labelled import labelled_graph
from tests.support.paths import PROJECT
from tests.support.synthetic import made_up_certificate

SIZES = (0, 1, 3)


class Own(torch.nn.Module):
    """Its logits are the features, whatever the edges."""

    def __init__(self):
        super().__init__()
        self.factor = torch.nn.Parameter(torch.ones(()))

    def forward(self, x, edge_index):
        return self.factor * x


def chains(numbers=(1, 2, 4, 9), y=(0, 1, 0, 1), x=None) -> ac.GraphSet:
    """Graphs of nodes that are all the same, and differ by their number."""
    graphs = []
    for k, number in zip(y, numbers, strict=True):
        line = torch.stack([torch.arange(number - 1), torch.arange(1, number)])
        own = torch.ones(number, 1) if x is None else x(number)
        edges = torch.cat([line, line.flip(0)], dim=1)
        graphs.append(Data(x=own, edge_index=edges, y=torch.tensor([k]), node_id=torch.arange(number)))
    return ac.GraphSet(graphs, train=[0], val=[1])


def found(data, theorem, model="gcn", sizes=SIZES):
    """What is possible on all targets of the data, where a certificate under the rule counts changes."""
    certificate, _ = made_up_certificate(np.random.default_rng(0), theorem, 5, 10, 2)
    defence = getattr(model, "defence", ac.PerNeighbour())
    study = replace(make_study(data, range(len(data.y))), model=model, defence=defence)
    return possible.possible(study, certificate, sizes)


def named(kind: str) -> str:
    return f"{AT_MOST} ({WORDS[kind]})"


def test_the_ceiling_of_four_chains_is_what_a_pencil_finds():
    # Apart by 1, 8, 2 and 5 nodes: joined at 1, 4, 1 and 3 changes of any kind, at 1, 8, 2 and 5 injected nodes.
    assert found(chains(), "node-centric/graph") == {
        named("any"): {0: 1.0, 1: 0.75, 3: 0.5},
        named("injected"): {0: 1.0, 1: 0.75, 3: 0.75},
    }
    assert found(chains(), "edge-centric/graph") == {named("edges"): {0: 1.0, 1: 1.0, 3: 1.0}}
    same = chains(numbers=(2, 2, 4, 9))  # two of different classes that edges alone tell apart
    assert found(same, "edge-centric/graph") == {named("edges"): {0: 0.75, 1: 0.75, 3: 0.75}}


def test_graphs_of_no_known_class_do_not_count():
    assert found(chains(y=(0, 1, -1, 1)), "node-centric/graph")[named("any")] == pytest.approx(
        {0: 1.0, 1: 2 / 3, 3: 2 / 3}
    )


def test_features_that_are_no_types_and_too_many_graphs_have_no_ceiling(monkeypatch):
    random = torch.Generator().manual_seed(0)
    data = chains(numbers=(30, 40, 50, 60), x=lambda number: torch.rand(number, 1, generator=random))
    assert few_type_counts(list(data)) is None
    assert found(data, "node-centric/graph") == {}
    monkeypatch.setattr(ceilings, "MOST_TYPES", 180)
    assert found(data, "node-centric/graph") != {}
    monkeypatch.setattr(possible, "MOST_GRAPHS", 3)
    assert found(data, "node-centric/graph") == {}


@pytest.mark.parametrize(
    ("theorem", "kinds"),
    [
        ("edge-centric/graph", ("edges",)),
        ("per-pair/graph", ("edges",)),
        ("gnncert-e/graph", ("edges",)),
        ("gnncert-n/graph", ("features",)),
        ("gnncert-en/graph", ()),
        ("custom/graph", ()),
        ("node-centric/graph", ("any", "injected")),
        ("per-neighbour/graph", ("any", "structure", "injected")),
    ],
)
def test_the_kind_of_change_is_that_of_the_curve(theorem, kinds):
    certificate, _ = made_up_certificate(np.random.default_rng(0), theorem, 5, 10, 2)
    assert counted_changes(certificate) == kinds
    budgets = {
        "edges": ac.Budget(add_edges=1), "features": ac.Budget(change_features=1),
        "any": ac.Budget(delete_nodes=1), "structure": ac.Budget(delete_nodes=1), "injected": ac.Budget(inject_nodes=1),
    }  # fmt: skip
    for kind in kinds:  # whoever holds against everything of one size holds against this
        held = certificate.holds_against(budgets[kind])
        assert held[certificate.radius >= 1].all() or theorem == "edge-centric/graph"


def test_nodes_without_ids_cannot_be_deleted_so_the_ceiling_does_not_count_that():
    certificate, _ = made_up_certificate(np.random.default_rng(0), "node-centric/graph", 5, 10, 2)
    by_row = SimpleNamespace(evidence=replace(certificate.evidence, ids="row"))
    assert counted_changes(by_row) == ("kept", "injected")
    assert not by_row.evidence.holds(ac.Budget(delete_nodes=1)).any()
    own, _ = made_up_certificate(np.random.default_rng(0), "per-neighbour/graph", 5, 10, 2)
    by_row = SimpleNamespace(evidence=replace(own.evidence, ids="row"))
    assert counted_changes(by_row) == ("any", "structure", "injected")


def test_edges_only_counts_edges():
    certificate, _ = made_up_certificate(np.random.default_rng(0), "custom/graph", 5, 10, 2)
    edges_only = replace(certificate, evidence=replace(certificate.evidence, parameters=EDGES_ONLY))
    assert counted_changes(edges_only) == ("edges",)


def star() -> Data:
    """Node 0 is of class 0, believes to be of class 1, and has three neighbours of class 0 and one of class 1."""
    ends = torch.tensor([[0, 0, 0, 0, 0], [1, 2, 3, 4, 4]])  # one pair twice
    data = Data(
        x=torch.tensor([[0.0, 0.5], [0.5, 0.0], [0.5, 0.0], [0.5, 0.0], [0.0, 0.5]]), y=torch.tensor([0, 0, 0, 0, 1]),
        edge_index=torch.cat([ends, ends.flip(0), torch.tensor([[0], [0]])], dim=1), node_id=torch.arange(5),
    )  # fmt: skip
    everyone = torch.ones(5, dtype=torch.bool)
    data.train_mask = data.val_mask = data.test_mask = everyone
    return data


VOTES = np.array([[3, 1], [1, 0], [1, 0], [1, 0], [1, 0]])


def test_the_reference_lets_every_neighbour_vote_once_for_its_true_class():
    data = star()
    expected = votes_reference(torch.log_softmax(data.x.double(), dim=1).numpy(), VOTES, data.y.numpy(), SIZES)
    for theorem in ("node-centric/node", "edge-centric/node", "per-neighbour/node", "per-pair/node", "gnncert-e/node"):
        assert found(data, theorem, Own()) == {VOTES_REFERENCE: dict(zip(SIZES, expected, strict=True))}
    # With weight w node 0 leads by 2 - w/2, node 4 by w/2 - 1, the others by w/2 + 1: all by more than 0 if 2 < w < 4.
    assert expected == [1.0, 0.8, 0.8]
    weak = star()
    weak.x[:] = 0.0
    assert found(weak, "node-centric/node", Own())[VOTES_REFERENCE] == {0: 0.8, 1: 0.2, 3: 0.0}


def test_there_is_no_reference_where_own_features_may_change_or_a_class_is_unknown():
    assert found(star(), "gated/node", Own()) == {}
    data = star()
    data.y[4] = -1
    assert found(data, "node-centric/node", Own()) == {}


def test_stacked_votes_are_held_against_their_own_models_without_edges():
    data = labelled_graph(60, dtype=torch.float32)
    model = ac.fit(ac.build_model("mlp", data), data, ac.StackedVotes(folds=2, epochs=4), epochs=3)
    study = replace(make_study(data), defence=model.defence, model=model)
    certificate, _, _ = certify_model(study, model)
    shares = possible.possible(study, certificate, (0, 10_000))[VOTES_REFERENCE]
    with torch.no_grad():
        right = model.own_logits(data.x).argmax(dim=1)[data.test_mask] == data.y[data.test_mask]
    assert shares[10_000] == pytest.approx(float(right.float().mean()), abs=0.051)  # a tie of two classes may be lost
    assert shares[0] >= shares[10_000]


def test_the_package_offers_it_to_runs():
    file = PROJECT / "packages" / "agnncert-peers" / "pyproject.toml"
    offered = tomllib.loads(file.read_text())["project"]["entry-points"]["agnncert.controls"]
    assert offered["possible"] == "agnncert_peers.possible:possible"
    if "possible" in (known := addons("agnncert.controls")):  # where the package was installed as it is now
        assert known["possible"].load() is possible.possible
