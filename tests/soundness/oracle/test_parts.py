"""A graph in parts has the certificate of the same graph in memory, by either engine, byte for byte."""

from functools import cache

import pytest
import torch

import agnncert as ac
from agnncert.engine import reach
from agnncert_large.partitioned import writing
from tests.soundness.oracle.test_engines import NODE_DIVISIONS, SITUATIONS, of_size
from tests.support.graphs import random_data
from tests.support.models import build

models = cache(build)


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch):
    monkeypatch.setattr(writing, "LEAST_ROWS", 1)
    monkeypatch.setattr(writing, "ROWS_OF_RANGE", 3)
    monkeypatch.setattr(writing, "ARCS_OF_PART", 4)


def files(folder, data, division, model, rows=None, **settings) -> dict[str, bytes]:
    """The certificate of all engines, and of the graph in parts."""
    ac.write_graph(data, folder / "graph", partition=division)
    made = {
        "fast": ac.certify(model, data, division, rows, **settings),
        "naive": ac.certify(model, data, division, rows, engine="naive", **settings),
        "parts": ac.certify(model, ac.open_graph(folder / "graph"), division, rows, **settings),
    }
    for name, certificate in made.items():
        certificate.save(folder / name)
    return {name: (folder / name).read_bytes() for name in made}


@pytest.mark.parametrize("kind", ["gcn", "gat"])
@pytest.mark.parametrize("division", NODE_DIVISIONS, ids=str)
@pytest.mark.parametrize("situation", SITUATIONS)
def test_nodes(tmp_path, situation, division, kind):
    data, num_groups = SITUATIONS[situation]
    made = files(tmp_path, data, of_size(division, min(num_groups, 40)), models(kind, "node"))
    assert made["parts"] == made["fast"] == made["naive"]


@pytest.mark.parametrize("division", NODE_DIVISIONS, ids=str)
@pytest.mark.parametrize("rows", [[0], [1, 3], [0, 2, 5, 11]], ids=str)
@pytest.mark.parametrize("directed", [False, True])
def test_some_targets_only(tmp_path, division, rows, directed):
    data = random_data(11, smallest=12, largest=12, directed=directed, density=0.2)
    made = files(tmp_path, data, division, models("gat", "node"), rows)
    assert made["parts"] == made["fast"] == made["naive"]


@pytest.mark.parametrize("division", [ac.EdgeCentric(3, self_loops=True), ac.NodeCentric(3, self_loops=True)], ids=str)
def test_self_loops_that_are_kept(tmp_path, division):
    made = files(tmp_path, SITUATIONS["self-loops dropped"][0], division, models("sage", "node"))
    assert made["parts"] == made["fast"] == made["naive"]


@pytest.mark.parametrize("division", NODE_DIVISIONS, ids=str)
@pytest.mark.parametrize("shape", [(), (2,)])
def test_values_of_edges(tmp_path, division, shape):
    data = random_data(5, largest=12, density=0.4)
    name = "edge_attr" if shape else "edge_weight"
    data[name] = torch.rand(data.num_edges, *shape, generator=torch.Generator().manual_seed(1)).to(data.x)
    model = ac.build_model("rgcn" if shape else "gcn", data, hidden_channels=4, out_channels=3).eval()
    model = model.to(data.x.dtype)
    made = files(tmp_path, data, division, model)
    assert made["parts"] == made["fast"] == made["naive"]


@pytest.mark.parametrize("division", NODE_DIVISIONS, ids=str)
@pytest.mark.parametrize(
    "rule", [ac.VotingRule(empty="abstain", prior=[2, 0, 1]), ac.VotingRule(empty="abstain", prior=2)], ids=str
)
def test_voting_rules(tmp_path, division, rule):
    if division.gates_features and rule.no_edge_prior:
        pytest.skip("no prediction without edges")
    data = random_data(6, largest=12, density=0.4)
    made = files(tmp_path, data, division, models("gin", "node"), voting_rule=rule)
    assert made["parts"] == made["fast"] == made["naive"]


def test_the_comparison_is_not_between_constants(tmp_path):
    ac.write_graph(SITUATIONS["undirected"][0], tmp_path / "parts", partition=ac.NodeCentric(5))
    graph = ac.open_graph(tmp_path / "parts")
    assert len(graph.ranges) > 1
    votes = ac.certify(models("gin", "node"), graph, ac.NodeCentric(5)).load().evidence.votes
    assert len(set(votes.vote.tolist())) > 1
    assert (votes.vote != votes.default[votes.owner]).any()


@pytest.mark.parametrize("rows", [None, [0, 1], [0, 2, 4, 6, 8, 10]], ids=str)
def test_components_beyond_the_limit(tmp_path, monkeypatch, rows):
    monkeypatch.setattr(reach, "MAX_PAIRS", 30)
    data = random_data(7, smallest=12, largest=12, density=0.3)
    made = files(tmp_path, data, ac.EdgeCentric(5), models("gcn", "node"), rows)
    assert made["parts"] == made["fast"] == made["naive"]
