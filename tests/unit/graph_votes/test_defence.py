"""Graph votes as a defence: fit, certify, verify, attack and explain."""

import math
import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import agnncert as ac
from agnncert.attacks import attack
from agnncert.certificates.budget import Budget
from agnncert.errors import ModelContractError, SettingsError
from agnncert.proving.evidence import LARGEST_RADIUS

SIZES = np.arange(8, 14)


def graph_of(rng, label, kinds):
    """A ring (class 1) or a path (class 0), whose nodes have mostly the type of the class."""
    size = int(rng.choice(SIZES))
    ring = torch.arange(size)
    ends = torch.stack([ring, (ring + 1) % size])[:, : size if label else size - 1]
    type_of = np.where(rng.random(size) < kinds, label, rng.integers(3, size=size))
    x = torch.eye(3)[torch.from_numpy(type_of)]
    return Data(x=x, edge_index=torch.cat([ends, ends.flip(0)], dim=1), y=torch.tensor([label]), node_id=ring)


@cache
def two_kinds(kinds=0.6, seed=0, total=120):
    rng = np.random.default_rng(seed)
    graphs = [graph_of(rng, k % 2, kinds) for k in range(total)]
    rows = torch.arange(total)
    return ac.GraphSet(graphs, train=rows[: total // 2], val=rows[total // 2 : 90], test=rows[90:])


@cache
def fitted(defence):
    return ac.fit(None, two_kinds(), defence)


def certified(defence):
    return ac.certify(fitted(defence), two_kinds(), defence, two_kinds().test)


def test_structure_only_is_certified_against_any_features_and_nothing_else():
    certificate = certified(ac.StructureOnly())
    assert (certificate.label == certificate.truth).mean() > 0.9  # rings and paths
    assert certificate.holds_against(Budget(change_features=math.inf, change_edges=math.inf)).all()
    assert (certificate.radius == LARGEST_RADIUS).all()
    for budget in (Budget(add_edges=1), Budget(delete_edges=1), Budget(inject_nodes=1), Budget(delete_nodes=1)):
        assert not certificate.holds_against(budget).any()


def test_a_bag_of_nodes_is_the_mirror_image():
    certificate = certified(ac.BagOfNodes())
    assert (certificate.label == certificate.truth).mean() > 0.8
    assert certificate.holds_against(Budget(add_edges=math.inf, delete_edges=math.inf, change_edges=math.inf)).all()
    for budget in (Budget(change_features=1), Budget(inject_nodes=1, edges_per_injected=0), Budget(delete_nodes=1)):
        assert not certificate.holds_against(budget).any()


def test_votes_are_kept_where_they_certify_clearly_more():
    record = fitted(ac.GraphVotes(1, "count")).training_record
    assert record["kept"] == "votes"
    found = record["certified_on_training_and_validation"]
    assert found["votes"] > found["the number of nodes"] + 0.1


def test_votes_are_dropped_where_they_do_not():
    model = fitted(ac.GraphVotes(1, "structure"))
    assert model.training_record["kept"] == "all that is trusted"
    assert model.training_record["warnings"]
    assert certified(ac.GraphVotes(1, "structure")).holds_against(Budget(change_features=math.inf)).all()


DEFENCES = [
    ac.StructureOnly(),
    ac.BagOfNodes(),
    ac.GraphVotes(1, "count"),
    ac.GraphVotes(2, "none"),
    ac.GraphVotes(1, "none", "structure"),
]


@pytest.mark.parametrize("defence", DEFENCES, ids=str)
def test_a_stored_certificate_and_model_verify(defence, tmp_path):
    certified(defence).save(tmp_path / "c.cert")
    ac.save_model(fitted(defence), tmp_path / "m")
    model = ac.load_model(tmp_path / "m")
    verdict = ac.verify(tmp_path / "c.cert", data=two_kinds(), model=model)
    assert verdict.holds, verdict


def test_a_file_about_other_items_is_refused():
    defence = ac.GraphVotes(1, "count")
    certificate = certified(defence)
    number = certificate.evidence.number.copy()
    number[0] += 1
    forged = replace(certificate, evidence=replace(certificate.evidence, number=number))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "c.cert"
        forged.save(file)
        assert ac.verify(file).holds  # the arithmetic is right
        assert not ac.verify(file, data=two_kinds(), model=fitted(defence)).holds


def test_the_worst_attack_is_the_bound():
    """Within the radius no label changes; one change beyond it, every label does."""
    for defence, budget_of in (
        (ac.GraphVotes(1, "count"), lambda k: Budget(change_features=k)),
        (ac.GraphVotes(2, "none"), lambda k: Budget(inject_nodes=k)),
    ):
        certificate = certified(defence)
        rows = certificate.row
        for changes in (1, 2, 3):
            report = attack(fitted(defence), two_kinds(), defence, budget=budget_of(changes), targets=rows)
            flipped = np.array([result.succeeded for result in report.results])
            assert np.array_equal(flipped, ~certificate.holds_against(budget_of(changes)))


@cache
def told_by_types():
    """Rings only: the structure says nothing, and the types of nodes follow the class."""
    rng = np.random.default_rng(1)
    graphs = [graph_of(rng, 1, 0.0) for _ in range(120)]
    for k, graph in enumerate(graphs):
        own = torch.from_numpy(rng.random(graph.num_nodes) < 0.4)
        graph.x[own] = torch.eye(3)[k % 2]
        graph.y = torch.tensor([k % 2])
    return parted(graphs)


@cache
def told_by_edges():
    """Four nodes of each of two types: edges are within a type in class 1, and between types in class 0, or mostly."""
    rng = np.random.default_rng(2)
    kind = np.arange(8) % 2
    low, high = np.triu_indices(8, 1)
    graphs = []
    for k in range(120):
        is_told = (kind[low] == kind[high]) == bool(k % 2)
        ends = torch.from_numpy(np.stack([low, high])[:, rng.random(len(low)) < np.where(is_told, 0.6, 0.3)])
        x = torch.eye(2)[torch.from_numpy(kind)]
        graphs.append(Data(x=x, edge_index=torch.cat([ends, ends.flip(0)], dim=1), y=torch.tensor([k % 2])))
    return parted(graphs)


def parted(graphs):
    rows = torch.arange(len(graphs))
    return ac.GraphSet(graphs, train=rows[:60], val=rows[60:90], test=rows[90:])


@pytest.mark.parametrize(
    ("trusted", "graphs", "budgets"),
    [
        ("structure", told_by_types, [Budget(change_features=k) for k in (1, 2, 3)]),
        ("nodes", told_by_edges, [Budget(add_edges=a, delete_edges=d) for a, d in ((1, 0), (0, 1), (1, 1), (2, 1))]),
    ],
)
def test_the_worst_attack_beside_a_trusted_half_is_the_bound(trusted, graphs, budgets):
    defence = ac.GraphVotes(1, trusted)
    model = ac.fit(None, graphs(), defence)
    assert model.training_record["kept"] == "votes"
    certificate = ac.certify(model, graphs(), defence, graphs().test)
    outcomes = set()
    for budget in budgets:
        report = attack(model, graphs(), defence, budget=budget, targets=certificate.row)
        flipped = np.array([result.succeeded for result in report.results])
        assert np.array_equal(flipped, ~certificate.holds_against(budget))
        outcomes |= set(flipped.tolist())
    assert outcomes == {False, True}


def test_an_explanation_names_the_fewest_changes():
    defence = ac.GraphVotes(1, "count")
    certificate = certified(defence)
    for place in range(5):
        explained = ac.explain(fitted(defence), two_kinds(), defence, int(certificate.row[place]))
        assert explained.label == certificate.label[place]
        assert list(explained.counts) == certificate.counts[place].tolist()
        total = np.sum([each.votes for each in (*explained.given, *explained.voters)], axis=0)
        assert total.tolist() == list(explained.total)
        assert explained.arrivals[0].number == certificate.radius[place] + 1


def test_nodes_can_be_classified_by_structure_alone():
    data = star_forest()
    defence = ac.StructureOnly()
    model = ac.fit(None, data, defence)
    certificate = ac.certify(model, data, defence, data.test_mask)
    assert (certificate.label == certificate.truth).mean() > 0.9
    assert certificate.holds_against(Budget(change_features=math.inf, target_features=True)).all()
    assert not certificate.holds_against(Budget(add_edges=1)).any()
    altered = data.clone()
    altered.x = torch.randn_like(data.x)
    assert np.array_equal(defence.scores(model, data), defence.scores(model, altered))


def drawn(total, computed):
    """Rings of points in the plane, of which some are joined to the nearest points instead."""
    rng = np.random.default_rng(0)
    graphs = []
    for k in range(total):
        x = torch.from_numpy(rng.normal(size=(30, 2))).float()
        ring = torch.arange(30)
        ends = torch.stack([ring, (ring + 1) % 30])
        if k < computed:
            ends = torch.stack([ring, (torch.cdist(x, x) + 9 * torch.eye(30)).argmin(dim=1)])
        graphs.append(Data(x=x, edge_index=torch.cat([ends, ends.flip(0)], dim=1), y=torch.tensor([k % 2])))
    rows = torch.arange(total)
    return ac.GraphSet(graphs, train=rows[: total // 2], val=rows[total // 2 :])


def test_edges_that_join_nearest_nodes_are_no_structure():
    with pytest.raises(ModelContractError, match="nearest"):
        ac.fit(None, drawn(8, computed=8), ac.StructureOnly())


def test_one_graph_whose_edges_look_computed_by_chance_is_no_reason_to_refuse():
    ac.fit(None, drawn(8, computed=1), ac.StructureOnly())


def star_forest():
    """Hubs (class 1) with three leaves each (class 0)."""
    hubs = torch.arange(40) * 4
    leaves = torch.stack([hubs + k for k in (1, 2, 3)])
    ends = torch.stack([hubs.repeat(3), leaves.reshape(-1)])
    y = torch.zeros(160, dtype=torch.long)
    y[hubs] = 1
    part = (torch.arange(160) // 4) % 4
    masks = {"train_mask": part < 2, "val_mask": part == 2, "test_mask": part == 3}
    return Data(x=torch.rand(160, 2), edge_index=torch.cat([ends, ends.flip(0)], dim=1), y=y, **masks)


def test_other_graph_votes_refuse_nodes():
    for defence in (ac.BagOfNodes(), ac.GraphVotes(1, "none")):
        with pytest.raises(SettingsError, match="classifies graphs"):
            ac.fit(None, star_forest(), defence)


def test_features_that_are_degrees_are_refused_where_edges_change():
    graphs = ac.load_dataset("digits-grid")
    for k in range(len(graphs)):
        graph = graphs[k]
        degree = torch.bincount(graph.edge_index[0], minlength=graph.num_nodes)
        graph.x = torch.cat([graph.x, degree[:, None].float()], dim=1)
    assert _refusal(ac.BagOfNodes(), graphs)


def test_edges_that_follow_features_are_refused_where_features_change():
    rng = torch.Generator().manual_seed(3)
    made = []
    for label in range(40):
        x = torch.rand(40, 3, generator=rng)
        near = torch.cdist(x, x).topk(4, largest=False).indices[:, 1:]
        ends = torch.stack([torch.arange(40).repeat_interleave(3), near.reshape(-1)])
        made.append(Data(x=x, edge_index=torch.cat([ends, ends.flip(0)], dim=1), y=torch.tensor([label % 2])))
    rows = torch.arange(40)
    graphs = ac.GraphSet(made, train=rows[:20], val=rows[20:30], test=rows[30:])
    assert _refusal(ac.StructureOnly(), graphs)


def _refusal(defence, graphs):
    try:
        ac.fit(None, graphs, defence)
    except ModelContractError as error:
        return "reads what an attacker cannot change, but" in str(error)
    return False


def test_a_model_of_other_settings_is_refused():
    with pytest.raises(ModelContractError, match="was made for"):
        ac.certify(fitted(ac.StructureOnly()), two_kinds(), ac.BagOfNodes())


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"size": 0}, "from 1 to 100"),
        ({"size": True}, "from 1 to 100"),
        ({"trusted": "edges"}, "trusted="),
        ({"size": None, "trusted": "none"}, "is a constant"),
        ({"against": "structure"}, "belongs to"),
        ({"trusted": "none", "against": "edges"}, "against="),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, says):
    with pytest.raises(SettingsError, match=says):
        ac.GraphVotes(**settings)


def test_a_name_of_a_command_says_what_is_read():
    assert str(ac.StructureOnly()) == "structure-only"
    assert str(ac.BagOfNodes()) == "bag-of-nodes"
    assert str(ac.GraphVotes(3, "none", "structure")) == "graph-votes(size=3, trusted=none, against=structure)"
    made = ac.GraphVotes.from_settings("bag-of-nodes", "graph", {})
    assert made == ac.BagOfNodes()
    with pytest.raises(SettingsError, match="size"):
        ac.GraphVotes.from_settings("structure-only", "graph", {"size": 2})
