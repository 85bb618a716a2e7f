"""The three defences as a user meets them."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv, PairNorm, SAGEConv

import agnncert as ac
from agnncert.certificates.budget import Budget
from agnncert.errors import GraphError, ModelContractError, SettingsError
from agnncert.proving.certificate import load_certificate
from agnncert.verdict import verify
from agnncert_peers.deletions import BiRS
from agnncert_peers.flips import RS, SparseRS
from agnncert_peers.recheck import redraw
from tests.support.small_graphs import graph_model, known_model, random_graph

SMALL = {"selection": 20, "samples": 400}


@pytest.fixture
def graph():
    data = random_graph(30, 50)
    data.y = torch.arange(30) % 3
    return data


def test_a_birs_certificate_speaks_about_injected_nodes(graph):
    certificate = ac.certify(known_model(), graph, BiRS(0.6, 0.7, edges_per_injected=2, **SMALL))
    assert certificate.target.tolist() == graph.node_id.tolist()
    assert certificate.counts.sum(axis=1).tolist() == [400] * 30
    for size in range(5):
        held = certificate.holds_against(Budget(inject_nodes=size, edges_per_injected=2))
        assert held.tolist() == (certificate.radius >= size).tolist()
    assert certificate.radius.max() >= 1
    assert not certificate.holds_against(Budget(add_edges=1)).any()
    assert certificate.claim.guarantee == "probabilistic"
    assert (certificate.claim.alpha, certificate.claim.alpha_scope) == (0.01, "each target")
    assert certificate.claim.unit == "node injected with up to 2 edges"
    assert 0 <= certificate.certified_accuracy(graph.y, sizes=[0])[0] <= 1


def test_the_fast_and_the_naive_engine_give_the_same_certificate(graph):
    few = {"selection": 10, "samples": 40}
    for defence in (BiRS(0.6, 0.7, **few), SparseRS(0.02, 0.4, **few), RS(0.9, **few)):
        fast, naive = (ac.certify(known_model(), graph, defence, engine=e) for e in ("fast", "naive"))
        assert (fast.counts == naive.counts).all()
        assert (fast.evidence.selection == naive.evidence.selection).all()


def test_labels_and_scores_are_those_of_the_certificate(graph):
    for defence in (BiRS(0.6, 0.7, **SMALL), SparseRS(0.02, 0.4, **SMALL)):
        certificate = ac.certify(known_model(), graph, defence)
        label, counts = defence.labels_and_scores(known_model(), graph)
        assert (label == certificate.label).all()
        assert (counts == certificate.counts).all()


def test_smoothed_labels_are_attacked_like_any_others(graph):
    defence = BiRS(0.3, 0.3, selection=20, samples=40)
    budget = Budget(add_edges=6)
    certificate = ac.certify(known_model(), graph, defence, targets=[0, 4, 9])
    report = ac.attack(known_model(), graph, certificate=certificate, budget=budget)
    for result in report.results:
        again = ac.certify(known_model(), result.perturbed(graph), defence)
        assert again[result.target].label == result.label_after
        assert result.cost.add_edges <= 6
    assert max(result.moved for result in report.results) > 0
    with pytest.raises(SettingsError, match="has none"):
        ac.attack(known_model(), graph, defence, budget=budget, kind="gradient")


def test_some_targets_get_the_same_answer_as_among_all(graph):
    everyone = ac.certify(known_model(), graph, BiRS(0.6, 0.7, **SMALL))
    some = ac.certify(known_model(), graph, BiRS(0.6, 0.7, **SMALL), targets=torch.tensor([4, 2]))
    assert some.target.tolist() == graph.node_id[[4, 2]].tolist()
    assert (some.counts == everyone.counts[[4, 2]]).all()


def test_a_sparse_certificate_speaks_about_edges(graph):
    certificate = ac.certify(known_model(), graph, SparseRS(0.1, 0.4, **SMALL))
    for size in range(4):
        held = certificate.holds_against(Budget(add_edges=size)) & certificate.holds_against(Budget(delete_edges=size))
        assert (held >= (certificate.radius >= size)).all()
    assert not certificate.holds_against(Budget(inject_nodes=1)).any()
    assert certificate.claim.unit == "edge added or deleted"


def test_features_are_certified_by_entries():
    data = random_graph(12, 20, binary=True)
    certificate = ac.certify(known_model(), data, SparseRS(0, 0, p_add_feature=0.3, p_delete_feature=0.4, **SMALL))
    assert certificate.claim.unit == "feature entry flipped"
    assert (certificate.evidence.holds_flips(add_entries=1) >= (certificate.radius >= 1)).all()
    assert not certificate.holds_against(Budget(add_edges=1)).any()
    assert any("0 or 1" in sentence for sentence in certificate.claim.assumes)


def test_row_noise_certifies_edges_at_the_target_only(graph):
    certificate = ac.certify(
        known_model(SAGEConv), graph, RS(0.8, where="target row", selection=10, samples=200), targets=[0, 5]
    )
    assert not certificate.holds_against(Budget(delete_edges=1)).any()
    assert certificate.claim.unit.endswith("at the target")
    assert any("Edges between other nodes" in sentence for sentence in certificate.claim.not_proved)


def test_graphs_are_certified_too():
    graphs = [random_graph(n, n + 1, seed=n) for n in (4, 6, 5)]
    certificate = ac.certify(graph_model(), graphs, RS(0.9, **SMALL), targets=[2, 0])
    assert certificate.target.tolist() == [2, 0]
    assert certificate.claim.task == "graph"
    assert certificate.holds_against(Budget()).tolist() == (certificate.radius >= 0).tolist()


def test_birs_refuses_graph_classification():
    with pytest.raises(SettingsError, match="node classification"):
        ac.certify(graph_model(), [random_graph(4, 4)], BiRS(**SMALL))


def test_an_interrupted_certificate_is_finished_from_its_checkpoint(graph, tmp_path):
    def stop(step):
        if step.done > 100:
            raise KeyboardInterrupt

    model, file = known_model(), tmp_path / "birs.counts"
    defence = SparseRS(0.02, 0.4, selection=30, samples=3000, seed=5)
    with pytest.raises(KeyboardInterrupt):
        ac.certify(model, graph, defence, checkpoint=file, progress=stop)
    assert file.exists()
    resumed = ac.certify(model, graph, defence, checkpoint=file)
    assert (resumed.counts == ac.certify(model, graph, defence).counts).all()


@pytest.mark.parametrize(
    ("change", "named"),
    [("model", "model"), ("graph", "graph"), ("noise", "noise"), ("seed", "seed"), ("targets", "targets")],
)
def test_a_checkpoint_of_another_run_is_refused(graph, tmp_path, change, named):
    run = {"model": known_model(), "data": graph, "targets": None}
    ac.certify(**run, checkpoint=tmp_path / "counts", defence=BiRS(0.6, 0.7, **SMALL))
    if change == "graph":
        run["data"] = random_graph(30, 51)
    run |= {"model": known_model(seed=1)} if change == "model" else {}
    run |= {"targets": [1]} if change == "targets" else {}
    defence = BiRS(0.6, 0.8 if change == "noise" else 0.7, seed=int(change == "seed"), **SMALL)
    with pytest.raises(SettingsError, match=f"{named} differ"):
        ac.certify(**run, checkpoint=tmp_path / "counts", defence=defence)


def test_one_set_of_samples_serves_every_test(graph, tmp_path):
    radii = {}
    for test in ("B1", "B2", "sharp", "legacy-unsound"):
        defence = BiRS(0.6, 0.7, test=test, **SMALL)
        radii[test] = ac.certify(known_model(), graph, defence, checkpoint=tmp_path / "counts").radius
    assert (radii["sharp"] >= np.maximum(radii["B1"], radii["B2"])).all()
    assert (radii["legacy-unsound"] >= radii["sharp"]).all()


def test_the_unsound_test_says_so(graph):
    claim = ac.certify(known_model(), graph, BiRS(0.6, 0.7, test="legacy-unsound", selection=5, samples=20)).claim
    assert claim.not_proved[0].startswith("Anything: the legacy test is unsound")
    assert claim.method == "bi-rs (legacy-unsound)"


class Mixing(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm, self.last = GCNConv(5, 8), PairNorm(), GCNConv(8, 3)

    def forward(self, x, edge_index):
        return self.last(self.norm(self.conv(x, edge_index)), edge_index)


def test_birs_refuses_models_that_notice_isolated_nodes(graph):
    with pytest.raises(ModelContractError, match="PairNorm"):
        ac.certify(Mixing().double().eval(), graph, BiRS(**SMALL))


def test_flips_certify_and_verify_models_that_mix_nodes_one_noisy_graph_at_a_time(graph, tmp_path):
    model = Mixing().double().eval()
    with pytest.raises(ModelContractError, match="naive"):
        ac.certify(model, graph, SparseRS(0.02, 0.4, **SMALL))
    certificate = ac.certify(model, graph, SparseRS(0.02, 0.4, selection=5, samples=20), engine="naive")
    assert certificate.num_targets == 30
    certificate.save(tmp_path / "mixing.cert")
    assert verify(tmp_path / "mixing.cert", data=graph, model=model, recheck=1).holds


def test_models_in_training_mode_are_refused(graph):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Dropout(0.5))
    model.forward = lambda x, edge_index: torch.nn.Sequential.forward(model, x)[:, :3]
    for defence in (BiRS(**SMALL), SparseRS(**SMALL)):
        with pytest.raises(ModelContractError, match="eval"):
            defence.require_model(model.train())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"samples": 0}, "samples=0"),
        ({"selection": -3}, "selection=-3"),
        ({"alpha": 0.0}, "alpha=0.0"),
        ({"alpha": 2}, "alpha=2"),
        ({"scope": "everyone"}, "each target"),
        ({"seed": -1}, "seed"),
    ],
)
def test_senseless_settings_are_refused_before_anything_runs(settings, message):
    with pytest.raises(SettingsError, match=message):
        BiRS(**settings)


def test_an_unknown_engine_is_refused(graph):
    with pytest.raises(SettingsError, match="naive"):
        ac.certify(known_model(), graph, BiRS(), engine="quick")


@pytest.mark.parametrize("beta", [0.5, 0.2, 1, 1.5, "0.8"])
def test_senseless_rates_are_refused(beta):
    with pytest.raises(SettingsError, match="between 1/2"):
        RS(beta=beta)
    with pytest.raises(SettingsError):
        SparseRS(p_add=0.6, p_delete=0.4)
    with pytest.raises(SettingsError):
        BiRS(p_edge=1.0)


def test_noisy_training_data_follows_the_noise_and_the_generator(graph):
    graph.train_mask = torch.ones(30, dtype=torch.bool)
    defence = BiRS(0.3, 0.2)
    first, again, other = (defence.noisy(graph, torch.Generator().manual_seed(k)) for k in (1, 1, 2))
    assert torch.equal(first.edge_index, again.edge_index)
    assert not torch.equal(first.edge_index, other.edge_index)
    assert first.train_mask.all()
    assert graph.num_edges > first.num_edges > 0
    generator, kept = torch.Generator().manual_seed(0), 0
    for _ in range(400):
        kept += defence.noisy(graph, generator).num_edges
    rate, expected = kept / 400 / graph.num_edges, 0.7 * 0.8**2
    assert rate == pytest.approx(expected, abs=0.02)


def test_noisy_graphs_and_features_follow_the_noise():
    graphs = [random_graph(8, 9, binary=True), random_graph(5, 6, seed=1, binary=True)]
    graphs[0].edge_attr = torch.ones(graphs[0].num_edges, 2)
    defence, generator = SparseRS(0.1, 0.3, 0.1, 0.4), torch.Generator().manual_seed(0)
    noisy = defence.noisy(graphs, generator)
    assert [g.num_nodes for g in noisy] == [8, 5]
    assert "edge_attr" not in noisy[0]  # added edges have none
    assert set(noisy[0].x.unique().tolist()) <= {0.0, 1.0}
    assert not torch.equal(noisy[0].x, graphs[0].x)
    assert "edge_attr" in graphs[0]
    plain = SparseRS(0, 0.3).noisy(graphs[0], generator)
    assert plain.edge_attr.size(0) == plain.num_edges


def test_data_that_flips_are_not_defined_on_is_refused(graph):
    with pytest.raises(GraphError, match="binary"):
        ac.certify(known_model(), graph, SparseRS(p_add_feature=0.1, **SMALL))
    directed = Data(x=graph.x, edge_index=graph.edge_index[:, graph.edge_index[0] < graph.edge_index[1]])
    with pytest.raises(GraphError, match="ToUndirected"):
        ac.certify(known_model(), directed, RS(**SMALL))


def test_error_for_all_targets_together_is_stricter(graph):
    each, together = (
        ac.certify(known_model(), graph, BiRS(0.6, 0.7, **SMALL, scope=scope))
        for scope in ("each target", "all targets together")
    )
    assert (together.radius <= each.radius).all()
    assert together.claim.alpha_scope == "all targets together"
    budget = Budget(inject_nodes=1, edges_per_injected=math.inf)
    assert each.broken_at_most(budget) == int((~together.holds_against(budget)).sum())


@pytest.mark.parametrize(
    "defence", [BiRS(0.6, 0.7, "B1", math.inf), SparseRS(0.02, 0.4), RS(0.9), RS(0.9, "target row")], ids=repr
)
def test_a_certificate_survives_a_file_is_verified_and_its_samples_can_be_drawn_again(graph, tmp_path, defence):
    defence = replace(defence, selection=10, samples=60, seed=9)
    certificate = ac.certify(known_model(), graph, defence, targets=[3, 7])
    certificate.save(tmp_path / "it.cert")
    loaded = load_certificate(tmp_path / "it.cert")
    assert loaded.claim == certificate.claim
    assert (loaded.radius == certificate.radius).all()
    assert verify(tmp_path / "it.cert").holds
    again = redraw(loaded.evidence, known_model(), graph, loaded.row)
    assert again.claim == certificate.claim
    assert all((again.evidence.tensors()[name] == counts).all() for name, counts in loaded.evidence.tensors().items())
    other = redraw(replace(loaded.evidence, seed=10), known_model(), graph, loaded.row)
    assert (other.evidence.estimation != loaded.evidence.estimation).any()


def test_verify_draws_the_samples_again_when_it_is_given_graph_and_model(graph, tmp_path):
    certificate = ac.certify(known_model(), graph, BiRS(0.6, 0.7, selection=10, samples=60, seed=9), targets=[3, 7])
    certificate.save(tmp_path / "true.cert")
    verdict = verify(tmp_path / "true.cert", data=graph, model=known_model(), recheck=1)
    assert verdict.holds
    assert "all samples, drawn again" in verdict.checked
    assert not verify(tmp_path / "true.cert", data=graph, model=known_model(seed=3)).holds
    other = replace(certificate, evidence=replace(certificate.evidence, seed=10))
    other.save(tmp_path / "forged.cert")
    assert verify(tmp_path / "forged.cert").holds  # from the file alone it cannot be told
    verdict = verify(tmp_path / "forged.cert", data=graph, model=known_model(), recheck=1)
    assert not verdict.holds
    assert "not those of seed 10" in verdict.reasons[0]
