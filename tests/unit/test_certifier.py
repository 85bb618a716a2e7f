"""``certify`` takes every defence, prepares the data once, and refuses settings of the other kind of defence."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import agnncert as ac
from agnncert.auditing.model_audit import AuditReport
from agnncert.defence import CertifyOptions
from agnncert.divided import certify as certifier
from agnncert.errors import BudgetError, GraphError, ModelContractError, SettingsError
from agnncert.graphs.targets import CanonicalData
from agnncert.progress import Progress
from agnncert_peers.deletions import BiRS
from agnncert_peers.flips import RS, SparseRS
from agnncert_peers.gnncert import GNNCertE, GNNCertEN, GNNCertN
from tests.support.graphs import random_data
from tests.support.models import build
from tests.support.neighbour_graphs import NodeListener, town
from tests.support.small_graphs import known_model, random_graph

SAMPLES = {"selection": 20, "samples": 200, "alpha": 0.05, "seed": 3}
RANDOM = [BiRS(0.5, 0.6), SparseRS(), RS(0.9)]
DIVISIONS = [ac.EdgeCentric(7), ac.NodeCentric(7), ac.GatedNodeCentric(7)]
DIVISIONS += [GNNCertE(7), GNNCertN(7), GNNCertEN(3, 3)]


@pytest.fixture(scope="module")
def graph():
    return random_graph(12, 16)


@pytest.mark.parametrize("defence", RANDOM, ids=lambda one: one.method)
def test_a_random_defence_certifies_as_its_own_method_does(graph, defence) -> None:
    told: list[Progress] = []
    defence = replace(defence, **SAMPLES)
    ours = ac.certify(known_model(), graph, defence, [0, 3, 5], progress=told.append)
    own = defence.certify(known_model(), graph, [0, 3, 5], CertifyOptions())
    assert ours.claim == own.claim
    assert np.array_equal(ours.radius, own.radius)
    assert (told[-1].done, told[-1].total) == (220, 220)


@pytest.mark.parametrize("division", DIVISIONS, ids=str)
def test_prepared_data_gives_the_same_certificate(graph, division, tmp_path) -> None:
    ready = CanonicalData.of(graph)
    for name, data in (("plain", graph), ("ready", ready), ("again", ready)):
        ac.certify(known_model(), data, division, [1, 2, 8]).save(tmp_path / name)
    assert (tmp_path / "plain").read_bytes() == (tmp_path / "ready").read_bytes() == (tmp_path / "again").read_bytes()


def test_settings_of_the_other_kind_are_refused_by_name(graph) -> None:
    with pytest.raises(SettingsError, match=r"tolerance=1: BiRS\(.*\) has no such setting; leave it out"):
        ac.certify(known_model(), graph, BiRS(), tolerance=1)


@pytest.mark.parametrize("limit", ["200MB", "0.2 gb", 200_000_000])
def test_a_memory_limit_may_be_text(graph, limit, monkeypatch) -> None:
    given = []
    compute = certifier.compute_votes
    monkeypatch.setattr(
        certifier,
        "compute_votes",
        lambda *args, **more: given.append(more["execution"].memory_limit) or compute(*args, **more),
    )
    ac.certify(known_model(), graph, ac.NodeCentric(7), memory_limit=limit)
    assert given == [200_000_000]


def test_a_memory_limit_that_is_no_size_is_refused(graph) -> None:
    with pytest.raises(SettingsError, match='such as "4GB"'):
        ac.certify(known_model(), graph, ac.NodeCentric(7), memory_limit="much")


def test_progress_is_told_when_casting_begins_and_ends(graph) -> None:
    steps: list[Progress] = []
    ac.certify(known_model(), graph, ac.EdgeCentric(7), progress=steps.append)
    stages = {step.what: [(each.done, each.total) for each in steps if each.what == step.what] for step in steps}
    assert list(stages) == [
        "auditing the model",
        "computing votes",
        "computing some votes again, one subgraph at a time",
    ]
    assert stages["computing votes"] == [(0, 7), (7, 7)]
    begin, *_, end = stages["computing some votes again, one subgraph at a time"]
    assert begin[0] == 0 < end[0] == end[1]  # nothing is left that nobody hears of


class Own(torch.nn.Module):
    """A model whose behaviour a test chooses; local unless it says otherwise."""

    def __init__(self, look) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linear, self.look, self.calls = torch.nn.Linear(5, 3), look, 0

    def forward(self, x, edge_index):
        return self.look(self, self.linear(x), edge_index)


def counting(model, h, edge_index):
    model.calls += 1
    return h


def test_a_model_that_changes_while_it_runs_is_refused(graph, monkeypatch) -> None:
    with pytest.raises(ModelContractError, match=r"model\.calls was \d+, now it is \d+"):
        ac.certify(Own(counting).eval(), graph, ac.NodeCentric(7))
    monkeypatch.setattr("agnncert.auditing.probes.state_of", lambda model: {})  # where the audit has not seen it
    with pytest.raises(ModelContractError, match=r"model\.calls was int 0, now it is int \d+"):
        ac.certify(Own(counting).eval(), graph, ac.NodeCentric(7))


def test_some_votes_are_cast_again_on_the_certified_graph_before_anything_is_signed(graph, monkeypatch) -> None:
    """A model that counts the nodes and deceives the audit, here by having it switched off."""
    model = Own(lambda model, h, edge_index: h.roll(int(len(h) > 12), 1)).eval()
    fit = AuditReport("node", "", (), 0.0, 1e-6)
    monkeypatch.setattr(certifier, "audited", lambda *_: (fit, None))
    with pytest.raises(ModelContractError, match="one at a time"):
        ac.certify(model, graph, ac.NodeCentric(7))


def test_a_tolerance_below_that_of_the_audit_is_refused(graph, monkeypatch) -> None:
    seen = AuditReport("node", "", (), 3e-7, 4e-6)
    monkeypatch.setattr(certifier, "audited", lambda *_: (seen, None))
    with pytest.raises(SettingsError, match="4e-06 of the largest apart"):
        ac.certify(known_model(), graph, ac.NodeCentric(7), tolerance=1e-7)
    assert ac.certify(known_model(), graph, ac.NodeCentric(7), tolerance=1e-5).claim.tolerance == 1e-5


@pytest.mark.parametrize("engine", ["fast", "naive"])
def test_certify_and_verify_tell_how_far_they_are(engine, tmp_path, caplog, monkeypatch):
    monkeypatch.setattr("agnncert.engine.union.CHUNK_ROWS", 4)
    caplog.set_level("INFO", logger="agnncert")
    data, model, steps = random_data(3, smallest=8, density=0.5), build("gcn", "node"), []
    certificate = ac.certify(model, data, ac.NodeCentric(8), engine=engine, progress=steps.append)
    steps = [step for step in steps if step.what == "computing votes"]
    assert [step.done for step in steps] == sorted(step.done for step in steps)
    assert (steps[0].done, steps[-1].done, steps[-1].total) == (0, 8, 8)
    assert len({step.done for step in steps}) > 2
    assert all(step.seconds_left >= 0 for step in steps[1:])
    assert "computing the votes of" in caplog.text
    certificate.save(tmp_path / "c.cert")
    again = []
    assert ac.verify(tmp_path / "c.cert", data=data, model=model, recheck=3, progress=again.append)
    assert (again[0].done, again[-1].done) == (0, 8)
    assert {step.what for step in again} == {"computing votes again"}
    assert "c.cert: The certificate holds for this graph and this model" in caplog.text


class Centred(torch.nn.Module):
    """Subtracts the mean over all nodes, so that every node depends on every other one."""

    def __init__(self) -> None:
        super().__init__()
        self.model = build("gcn", "node")

    def forward(self, x, edge_index):
        return self.model(x - x.mean(dim=0), edge_index)


@pytest.mark.parametrize("engine", ["fast", "naive"])
@pytest.mark.parametrize("division", [ac.NodeCentric(5), ac.EdgeCentric(5), ac.PerNeighbour(), ac.PerEdge()], ids=str)
def test_a_model_that_mixes_nodes_is_certified_only_where_the_division_says_edges_only(division, engine) -> None:
    model, data = Centred().eval(), random_data(3, smallest=6, density=0.4)
    with pytest.raises(ModelContractError):
        ac.certify(model, data, division, engine=engine)
    certificate = ac.certify(model, data, ac.EdgeCentric(5, edges_only=True), engine=engine)
    assert certificate.holds_against(ac.Budget(add_edges=0)).any()
    assert not certificate.holds_against(ac.Budget(inject_nodes=1)).any()


@pytest.mark.parametrize("targets", [[], torch.zeros(8, dtype=torch.bool), np.empty(0, dtype=np.int64)])
def test_a_choice_of_no_targets_is_refused(targets) -> None:
    with pytest.raises(GraphError, match="nothing would be certified"):
        ac.certify(NodeListener(), town(8), ac.NodeCentric(6), targets=targets)


def test_arguments_that_do_not_exist_suggest_the_nearest() -> None:
    with pytest.raises(SettingsError, match='certify has no argument "target": did you mean "targets"'):
        ac.certify(NodeListener(), town(8), ac.NodeCentric(6), target=[0])
    certificate = ac.certify(NodeListener(), town(8), ac.NodeCentric(6))
    for ask in (
        certificate.holds_against,
        certificate.possible,
        certificate.broken_at_most,
        certificate[certificate.target[0]].holds_against,
    ):
        with pytest.raises(BudgetError, match=rf"{ask.__name__} takes a budget: write .*\(Budget\(add_edges=3\)\)"):
            ask(add_edges=3)


@pytest.mark.parametrize("sizes", [-1, [-1], [0, float("nan")]])
def test_sizes_below_zero_are_refused(sizes) -> None:
    certificate = ac.certify(NodeListener(), town(8), ac.NodeCentric(6))
    with pytest.raises(SettingsError, match="number from 0 on"):
        certificate.certified_accuracy(sizes=sizes)
