"""Message-interception smoothing: paths, samples, what is certified, and what is refused."""

import itertools
from collections import Counter

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import APPNP, GCNConv

import agnncert as ac
from agnncert.engine.adapter import bind
from agnncert.errors import CertificateError, ModelContractError, SettingsError
from agnncert.graphs.canonical import canonical
from agnncert.storage import write_sealed
from agnncert_peers.draws import stream
from agnncert_peers.interception import Interception, InterceptionSampler, _draw
from agnncert_peers.interception_noise import InterceptionNoise
from agnncert_peers.paths import find_sources
from agnncert_peers.recheck import redraw
from agnncert_peers.samples import SampleEvidence
from experiments.benchmarks.interception import World, attack
from tests.soundness.forger.hostile import open_up
from tests.support.small_graphs import graph_model, known_model, random_graph

FEW = {"selection": 20, "samples": 400}
LITTLE = InterceptionNoise(0.2, 1e-9, 3)  # intercepts so little that hardly any node is listed
MUCH = InterceptionNoise(0.99, 0.99, 3)


def paths_by_hand(edges, target, hops):
    """Paths to the target, counted by trying all sequences of edges."""
    counts = {}
    for length in range(1, hops + 1):
        for chain in itertools.product(range(len(edges)), repeat=length):
            nodes = [edges[chain[0]][0], *(edges[k][1] for k in chain)]
            joined = all(edges[a][1] == edges[b][0] for a, b in itertools.pairwise(chain))
            if joined and nodes[-1] == target and len(set(nodes)) == len(nodes):
                counts.setdefault(nodes[0], [0] * hops)[length - 1] += 1
    return sorted(counts.values())


@pytest.mark.parametrize("seed", range(4))
def test_paths_are_those_that_trying_all_sequences_of_edges_finds(seed):
    rng = np.random.default_rng(seed)
    edges = [(u, v) for u, v in rng.integers(0, 6, (9, 2)).tolist() if u != v]  # directed, some of them twice
    graph = canonical(Data(x=torch.eye(6), edge_index=torch.tensor(edges).t()))
    sources = find_sources(graph, np.array([4, 0, 2]), MUCH)
    for k, target in enumerate((4, 0, 2)):
        mine = sources.paths[sources.start[k] : sources.start[k + 1]].tolist()
        assert sorted(mine) == paths_by_hand(graph.edge_index.t().tolist(), target, 3)


def test_as_many_nodes_are_listed_as_can_matter_and_the_most_dangerous_ones():
    star = torch.tensor([[1, 2, 3, 4, 5, 2, 3], [0, 0, 0, 0, 0, 1, 1]])
    graph = canonical(Data(x=torch.eye(6), edge_index=star))
    sources = find_sources(graph, np.array([0]), LITTLE)
    assert sources.paths.tolist() == [[1, 1, 0]]  # node 2 or 3, which no noise of this kind hides from the target
    assert len(find_sources(graph, np.array([0]), MUCH).paths) == 5


def test_too_many_paths_are_counted_in_parts_or_refused(monkeypatch):
    graph = canonical(random_graph(30, 120))
    rows = np.arange(30)
    whole = find_sources(graph, rows, MUCH)
    monkeypatch.setattr("agnncert_peers.paths._MOST_PATHS", 600)
    assert find_sources(graph, rows, MUCH).equals(whole)
    monkeypatch.setattr("agnncert_peers.paths._MOST_PATHS", 5)
    with pytest.raises(SettingsError, match="more than 5 paths of up to 3 edges"):
        find_sources(graph, rows, MUCH)


def test_noise_deletes_edges_and_features_as_often_as_it_says():
    graph = canonical(random_graph(20, 40))
    kept, hidden = _draw(np.random.default_rng(0), graph, InterceptionNoise(0.3, 0.85, 2), 4000)
    assert np.abs(kept.mean(axis=0) - 0.7).max() < 0.04
    assert np.abs(hidden.mean(axis=0) - 0.85).max() < 0.04


def test_one_noisy_graph_at_a_time_gives_the_same_counts():
    data, model = random_graph(25, 60), known_model()
    graph = canonical(data)
    rows = np.array([3, 0, 24])
    fast, naive = (
        InterceptionSampler(bind(model, graph, "node"), graph, rows, InterceptionNoise(0.3, 0.6, 2), naive)
        for naive in (False, True)
    )
    found = fast.counts(stream(0, 1, 0), 5, 60)
    assert np.array_equal(found, naive.counts(stream(0, 1, 0), 5, 60))
    assert found.sum(axis=1).tolist() == [55] * 3


@torch.no_grad()
def test_counts_are_those_of_the_noisy_graphs_that_were_drawn():
    data, model = random_graph(12, 24), known_model()
    graph, noise = canonical(data), InterceptionNoise(0.3, 0.6, 2)
    sampler = InterceptionSampler(bind(model, graph, "node"), graph, np.arange(12), noise)
    kept, hidden = _draw(stream(0, 1, 0), graph, noise, sampler.batch)
    expected = np.zeros((12, sampler.num_classes), dtype=int)
    for edges, nodes in zip(kept[:40], hidden[:40], strict=True):
        x = graph.x * torch.from_numpy(~nodes)[:, None]
        label = model(x, graph.edge_index[:, torch.from_numpy(edges)]).argmax(1)
        expected[np.arange(12), label.numpy()] += 1
    assert np.array_equal(sampler.counts(stream(0, 1, 0), 0, 40), expected)


@torch.no_grad()
def test_a_skip_connection_adds_the_logits_of_own_features_without_noise():
    data, model = random_graph(12, 24), known_model()
    graph, noise = canonical(data), InterceptionNoise(0.3, 0.6, 2, skip=True)
    sampler = InterceptionSampler(bind(model, graph, "node"), graph, np.arange(12), noise)
    kept, hidden = _draw(stream(0, 1, 0), graph, noise, sampler.batch)
    own = model(graph.x, graph.edge_index[:, :0])
    expected, without = np.zeros((2, 12, sampler.num_classes), dtype=int)
    for edges, nodes in zip(kept[:40], hidden[:40], strict=True):
        x = graph.x * torch.from_numpy(~nodes)[:, None]
        logits = model(x, graph.edge_index[:, torch.from_numpy(edges)])
        expected[np.arange(12), (logits + own).argmax(1).numpy()] += 1
        without[np.arange(12), logits.argmax(1).numpy()] += 1
    assert np.array_equal(sampler.counts(stream(0, 1, 0), 0, 40), expected)
    assert not np.array_equal(expected, without)


def test_with_a_skip_connection_own_features_are_not_covered_and_the_file_says_so(tmp_path):
    data, model = random_graph(25, 40), known_model()
    plain, skip = (ac.certify(model, data, Interception(0.5, 0.95, 2, skip=own, **FEW)) for own in (False, True))
    own = ac.Budget(target_features=True)
    assert plain.holds_against(own).any()
    assert not skip.holds_against(own).any()
    assert skip.holds_against(ac.Budget(change_features=1)).any()
    assert any("the target itself" in words for words in skip.claim.not_proved)
    assert not any("the target itself" in words for words in plain.claim.not_proved)
    skip.save(tmp_path / "skip.cert", budgets=[own, ac.Budget(change_features=1)])
    assert ac.verify(tmp_path / "skip.cert", data=data, model=model, recheck=1)
    assert redraw(skip.evidence, model, data, None).counts.tolist() == skip.counts.tolist()


def test_a_skip_connection_that_is_struck_from_a_file_is_noticed(tmp_path):
    skip = ac.certify(known_model(), random_graph(25, 40), Interception(0.5, 0.95, 2, skip=True, **FEW))
    skip.save(tmp_path / "skip.cert")
    for told in (None, False, 1):
        header, arrays = open_up(tmp_path / "skip.cert")
        if told is None:
            del header["settings"]["noise"]["skip"]
        else:
            header["settings"]["noise"]["skip"] = told
        write_sealed(tmp_path / "forged.cert", header, arrays)
        assert not ac.verify(tmp_path / "forged.cert")


def test_training_with_a_skip_connection_uses_own_features():
    data = random_graph(40, 60)
    data.train_mask = torch.arange(40) < 25
    data.val_mask, data.y = ~data.train_mask, torch.arange(40) % 3
    weights = []
    for skip in (False, True):
        torch.manual_seed(0)
        model = ac.fit(ac.build_model("gcn", data, seed=0), data, Interception(0.3, 0.9, 2, skip=skip), epochs=3)
        weights.append(torch.cat([parameter.flatten() for parameter in model.parameters()]))
    assert not torch.equal(*weights)


def test_noisy_training_data_keeps_the_rest_of_the_graph():
    data = random_graph(40, 100)
    noisy = Interception(0.5, 0.5).noisy(data, torch.Generator().manual_seed(0))
    gone = (noisy.x == 0).all(dim=1)
    assert 0 < noisy.num_edges < data.num_edges
    assert 0 < gone.sum() < 40
    assert torch.equal(noisy.x[~gone], data.x[~gone])


def tried() -> Counter[str]:
    return sum((attack(World.draw(seed), 40, seed) for seed in range(6)), start=Counter())


def test_nothing_certified_is_contradicted_where_probabilities_are_exact():
    """A sample of experiments/results/interception.json."""
    found = tried()
    assert found["of them with another label"] == 0
    assert found["probabilities that moved farther than proved"] == 0
    assert found["of them with other probabilities"] > 200


def test_a_larger_promise_is_contradicted(monkeypatch):
    """If noise is said to intercept more than it does, the attacks above notice."""
    honest = InterceptionNoise.silences

    def boastful(self, paths):
        return np.sqrt(honest(self, paths))

    monkeypatch.setattr(InterceptionNoise, "silences", boastful)
    assert tried()["probabilities that moved farther than proved"] > 0


@pytest.fixture(scope="module")
def certified():
    data, model = random_graph(30, 70), known_model()
    return data, model, ac.certify(model, data, Interception(0.4, 0.9, 2, **FEW))


def test_a_certificate_covers_changed_features_and_nothing_else(certified):
    _, _, certificate = certified
    assert (certificate.radius >= 1).any()
    sizes = [certificate.holds_against(ac.Budget(change_features=size)) for size in range(6)]
    assert all((more <= less).all() for less, more in itertools.pairwise(sizes))
    assert np.array_equal(sizes[1], certificate.radius >= 1)
    own = certificate.holds_against(ac.Budget(change_features=1, target_features=True))
    assert own.sum() < sizes[1].sum()
    for budget in (ac.Budget(add_edges=1), ac.Budget(inject_nodes=1, edges_per_injected=1), ac.Budget(delete_nodes=1)):
        assert not certificate.holds_against(budget).any()


def test_a_file_verifies_and_altered_paths_are_refused(certified, tmp_path):
    data, model, certificate = certified
    file = tmp_path / "a.cert"
    certificate.save(file, [ac.Budget(change_features=1), ac.Budget(target_features=True)])
    assert ac.load_certificate(file).radius.tolist() == certificate.radius.tolist()
    assert ac.verify(file, data=data, model=model, recheck=1).holds
    header, arrays = open_up(file)
    fewer = arrays["evidence.paths"].copy()
    fewer[:, 0], fewer[:, 1] = 0, 1
    write_sealed(file, header, arrays | {"evidence.paths": fewer})
    assert any("radius" in reason for reason in ac.verify(file).reasons)
    settings = header["settings"] | {"noise": header["settings"]["noise"]}
    evidence = {name.removeprefix("evidence."): array for name, array in arrays.items() if "evidence." in name}
    lied = SampleEvidence.load(evidence | {"paths": fewer}, settings)
    ac.Certificate(certificate.claim, lied, certificate.target, certificate.row, certificate.truth).save(file)
    assert any("not those of this graph" in reason for reason in ac.verify(file, data=data).reasons)


def test_samples_drawn_again_are_the_same(certified):
    data, model, certificate = certified
    again = redraw(certificate.evidence, model, data, certificate.row)
    assert np.array_equal(again.evidence.estimation, certificate.evidence.estimation)
    assert again.evidence.settings() == certificate.evidence.settings()


class Far(torch.nn.Module):
    """One layer that reads four hops."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first, self.far = torch.nn.Linear(width, 3), APPNP(4, 0.1)

    def forward(self, x, edge_index):
        return self.far(self.first(x), edge_index)


def test_a_model_that_reads_farther_than_stated_is_refused():
    data = random_graph(60, 80)
    model = Far(data.x.size(1)).to(data.x.dtype).eval()
    with pytest.raises(ModelContractError, match=r"more than 3 edges away.*Interception\(hops=…\)"):
        ac.certify(model, data, Interception(0.3, 0.9, 3, **FEW))
    assert ac.certify(model, data, Interception(0.3, 0.9, 4, **FEW)).num_targets == 60


class Mixing(torch.nn.Module):
    """A layer, and the mean of all nodes."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layer = GCNConv(width, 3)

    def forward(self, x, edge_index):
        return self.layer(x - x.mean(0), edge_index)


def test_what_does_not_fit_is_refused():
    data = random_graph(20, 40)
    with pytest.raises(ModelContractError):
        ac.certify(Mixing(data.x.size(1)).to(data.x.dtype).eval(), data, Interception(**FEW))
    with pytest.raises(SettingsError, match="node classification"):
        ac.certify(graph_model(), [random_graph(5, 6) for _ in range(3)], Interception(**FEW))
    for settings, match in [
        ({"p_delete": 1.0}, "never be used"),
        ({"p_ablate": 1.0}, "constant instead"),
        ({"p_delete": 0.0, "p_ablate": 0.0}, "both 0"),
        ({"p_ablate": -0.1}, "probability from 0 to 1"),
        ({"hops": 0}, "from 1 to 16"),
        ({"hops": True}, "from 1 to 16"),
    ]:
        with pytest.raises(SettingsError, match=match):
            Interception(**settings)
    counts = np.array([[9, 1]])
    with pytest.raises(SettingsError, match="needs the paths"):
        SampleEvidence("interception", MUCH, counts, counts, 0.01)
    good = SampleEvidence(
        "rs", Interception().noise(1), counts, counts, 0.01, sources=find_sources(canonical(data), np.array([0]), MUCH)
    )
    with pytest.raises(CertificateError, match="damaged"):
        SampleEvidence.load({**good.tensors(), "start": np.array([0, 99])}, good.settings())
