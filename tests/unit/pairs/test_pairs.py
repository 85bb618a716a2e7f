"""``PairVotes`` through the surfaces: what works shows pairs as "u – v", and what cannot says so in one sentence."""

import json
import math
import subprocess
import sys

import numpy as np
import pytest
import torch

import agnncert as ac
from agnncert.certificates.file import read_contents, write_contents
from agnncert.errors import BudgetError, DatasetError, GraphError, ModelContractError, SettingsError
from agnncert.graphs.targets import prepared
from agnncert.pairs.model import PairModel, summary_of_own_edges
from agnncert.pairs.targets import choose_pairs
from agnncert.pairs.voters import unmasked
from tests.support.pair_data import links, ratings

DEFENCES = {
    "common": ac.PairVotes(epochs=8),
    "both": ac.PairVotes(epochs=8, over="both"),
    "masked": ac.PairVotes(epochs=8, mask="targets"),
    "trusted": ac.PairVotes(epochs=8, trusted=0, directed=True, balanced=True),
}


@pytest.fixture(scope="module")
def made():
    """Data, model and certificate of each kind."""
    found = {}
    for name, defence in DEFENCES.items():
        data = ratings() if name == "trusted" else links()
        model = ac.fit(None, data, defence)
        found[name] = data, model, ac.certify(model, data, defence, data.test_mask)
    return found


@pytest.mark.parametrize("name", DEFENCES)
def test_a_certificate_is_verified_from_its_file_and_with_graph_and_model(name, made, tmp_path):
    data, model, certificate = made[name]
    file = tmp_path / "pairs.cert"
    certificate.save(file)
    assert ac.verify(file).holds
    verdict = ac.verify(file, data=data, model=model)
    assert verdict.holds, verdict
    assert verdict.compared == ("data", "model")
    again = ac.load_certificate(file)
    assert np.array_equal(again.radius, certificate.radius)
    assert np.array_equal(again.evidence.pairs, certificate.evidence.pairs)


def test_pairs_are_chosen_as_pyg_names_them(made):
    data, model, certificate = made["common"]
    chosen = data.edge_label_index[:, data.test_mask]
    by_pairs = ac.certify(model, data, model.defence, chosen)
    assert np.array_equal(by_pairs.label, certificate.label)
    assert np.array_equal(by_pairs.truth, certificate.truth)
    ids = data.node_id[chosen].T.tolist()
    assert by_pairs.target.tolist() == [f"{u} – {v}" for u, v in ids]
    first = by_pairs[f"{ids[0][0]} – {ids[0][1]}"]
    assert first.label == certificate.label[0]


@pytest.mark.parametrize("tells_all", [True, False])
def test_a_value_that_is_the_label_is_refused(tells_all):
    data = links()
    data.edge_label_attr = torch.stack([torch.arange(len(data.edge_label)) % 5, 3.0 - data.edge_label], dim=1).float()
    if not tells_all:  # a training pair has another value than the others of its class
        data.edge_label_attr[data.train_mask.nonzero()[0], 1] = 9.0
        ac.fit(None, data, ac.PairVotes(epochs=1))
        return
    with pytest.raises(DatasetError, match="column 1 of edge_label_attr is the same for all training pairs of a class"):
        ac.fit(None, data, ac.PairVotes(epochs=1))


def with_reversed(data, value_of_reversed=None):
    """The data with its first pair once more, the other way round and with the other label."""
    more = data.clone()
    more.edge_label_index = torch.cat([data.edge_label_index, data.edge_label_index[:, :1].flip(0)], dim=1)
    more.edge_label = torch.cat([data.edge_label, 1 - data.edge_label[:1]])
    for name in ("train_mask", "val_mask", "test_mask"):
        more[name] = torch.cat([data[name], data[name][:1]])
    if value_of_reversed is not None:
        more.edge_label_attr = torch.ones((len(more.edge_label), 1))
        more.edge_label_attr[-1] = value_of_reversed
    return more


@pytest.mark.parametrize("value", [None, 1.0], ids=["no values", "same values"])
def test_labels_that_differ_by_direction_alone_are_refused_if_decisions_have_none(value):
    data = links()
    more = with_reversed(data, value)
    u, v = data.node_id[data.edge_label_index[:, 0]].tolist()
    rows = f'rows 1 ("{u}" and "{v}") and {len(more.edge_label)} ("{v}" and "{u}")'
    with pytest.raises(DatasetError) as raised:
        ac.fit(None, more, ac.PairVotes(epochs=1))
    assert rows in str(raised.value)
    assert "directed=True" in str(raised.value)


def test_both_directions_may_have_their_labels_if_values_or_decisions_differ():
    data = links()
    ac.fit(None, with_reversed(data), ac.PairVotes(epochs=1, directed=True))
    ac.fit(None, with_reversed(data, 2.0), ac.PairVotes(epochs=1))
    unknown = with_reversed(data)
    unknown.edge_label[-1] = -1
    ac.fit(None, unknown, ac.PairVotes(epochs=1))


def test_pairs_that_the_data_does_not_list_are_certified_without_a_true_class(made):
    data, model, _ = made["common"]
    certificate = ac.certify(model, data, model.defence, torch.tensor([[0, 1], [5, 2]]))
    assert certificate.truth is None
    assert certificate.num_targets == 2


@pytest.mark.parametrize(
    ("targets", "says"),
    [
        (torch.tensor([[3], [3]]), "to itself"),
        (torch.tensor([[3], [600]]), "names row 600"),
        (torch.tensor([[3], [-1]]), "names row -1"),
        (torch.tensor([[3, 3], [4, 4]]), "named twice"),
        (torch.tensor([[3, 3, 4]]), "shape"),
        (torch.tensor([[3.0], [4.0]]), "shape"),
    ],
)
def test_pairs_that_make_no_sense_are_refused(made, targets, says):
    data, model, _ = made["common"]
    with pytest.raises(GraphError, match=says):
        ac.certify(model, data, model.defence, targets)


def test_changes_of_the_pair_itself_are_not_covered(made):
    for _, _, certificate in made.values():
        assert not certificate.holds_against(ac.Budget(target_features=True)).any()
        assert certificate.possible(ac.Budget(target_features=True)).all()
        assert (certificate.cheapest(ac.Prices(target_features=3)) <= 3).all()
        assert any("write" in sentence for sentence in certificate.claim.not_proved)


def test_poisoned_training_data_are_refused(made):
    with pytest.raises(BudgetError, match="flip_labels"):
        made["common"][2].holds_against(ac.Budget(flip_labels=1))


def test_degrees_among_the_features_are_refused():
    data = links(num_nodes=80)
    degree = torch.bincount(data.edge_index[0], minlength=80).float()
    data.x = torch.cat([data.x, degree.log1p()[:, None]], dim=1)
    with pytest.raises(ModelContractError, match="follows the number of edges"):
        ac.fit(None, data, ac.PairVotes(epochs=1))


@pytest.mark.parametrize("what", ["first", "product", "common"])
def test_structure_among_the_values_of_pairs_is_refused(what):
    data = links(num_nodes=80)
    degree = torch.bincount(data.edge_index[0], minlength=80).float()
    u, v = data.edge_label_index
    joined = torch.zeros((80, 80))
    joined[data.edge_index[0], data.edge_index[1]] = 1
    values = {"first": degree[u], "product": degree[u] * degree[v], "common": (joined[u] * joined[v]).sum(dim=1)}[what]
    data.edge_label_attr = torch.stack([torch.randn(len(u)), 3 - values.sqrt()], dim=1)
    with pytest.raises(ModelContractError, match="edge_label_attr column 1 follows"):
        ac.fit(None, data, ac.PairVotes(epochs=1))


def test_values_of_pairs_that_are_their_own_are_read():
    data = links()
    data.edge_label_attr = data.edge_label[:, None].float() + 0.1 * torch.randn(len(data.edge_label), 1)
    model = ac.fit(None, data, ac.PairVotes(epochs=20))
    certificate = ac.certify(model, data, model.defence, data.test_mask)
    assert certificate.certified_accuracy() > 0.9
    listed = data.edge_label_index[:, data.test_mask]
    by_pairs = ac.certify(model, data, model.defence, listed)
    assert np.array_equal(by_pairs.label, certificate.label)
    with pytest.raises(SettingsError, match="reads 1 values of a pair, these pairs have 0"):
        ac.certify(model, data, model.defence, torch.tensor([[0], [1]]))


def test_the_own_edge_changes_nothing_and_masked_edges_are_seen_by_nobody(made):
    data, model, certificate = made["masked"]
    without = data.clone()
    hidden = {tuple(sorted(pair)) for pair in data.edge_label_index[:, data.test_mask].T.tolist()}
    kept = [tuple(sorted(pair)) not in hidden for pair in data.edge_index.T.tolist()]
    without.edge_index = data.edge_index[:, torch.tensor(kept)]
    assert 0 < sum(kept) < len(kept)
    alone = ac.certify(model, without, model.defence, data.test_mask)
    assert np.array_equal(alone.evidence.which, certificate.evidence.which)
    assert np.array_equal(alone.counts, certificate.counts)
    assert "masked" in str(certificate.claim)


@pytest.mark.parametrize("turned", [False, True])
def test_a_masked_pair_is_hidden_whichever_of_its_nodes_is_named_first(turned):
    graph = prepared(links()).targets(None).graph
    src, dst = graph.edge_index.numpy()
    ends = np.stack([src, dst], axis=1)[src < dst][:9]
    pairs = {frozenset(pair) for pair in ends.tolist()}
    kept = unmasked(graph, ends[:, ::-1] if turned else ends)
    hidden = [frozenset(pair) in pairs for pair in zip(src.tolist(), dst.tolist(), strict=True)]
    assert kept.tolist() == [not each for each in hidden]
    assert sum(hidden) == 18


@pytest.mark.parametrize("name", ["common", "both", "masked"])
def test_the_same_nodes_vote_on_a_pair_whichever_of_its_nodes_is_named_first(name, made):
    """Also where the edges of all targets are masked, which hides a pair's own edge from its decision."""
    data, model, _ = made[name]
    chosen = choose_pairs(prepared(data), data.test_mask)
    voters = [
        model.voters(chosen.graph, ends, model.masked_pairs(ends)) for ends in (chosen.ends, chosen.ends[:, ::-1])
    ]
    votes = [sorted(zip(each.owner.tolist(), each.node.tolist(), strict=True)) for each in voters]
    assert votes[0] == votes[1] != []


def test_the_habit_of_a_node_leaves_out_its_rating_of_the_other():
    data = ratings()
    graph = prepared(data).targets(None).graph
    pair = np.array([data.edge_index[:, 0].numpy()])
    values = graph.edge_attr.double().numpy()
    habit = summary_of_own_edges(graph, values, pair, pair[:0])
    src, dst = graph.edge_index.numpy()
    mine = (src == pair[0, 0]) & (dst != pair[0, 1])
    assert habit[0, 0] == pytest.approx(math.log1p(mine.sum()))
    assert habit[0, 1] == pytest.approx(values[mine, 0].mean())
    assert np.array_equal(summary_of_own_edges(graph, values, pair, pair), habit)


def test_each_surface_that_cannot_do_pairs_says_so(made):
    data, model, _ = made["common"]
    defence = model.defence
    refusals = {
        "be kept up to date": lambda: defence.live(model, data),
        "be given a threshold": lambda: ac.choose_threshold(model, data, defence, alerts=3),
        "be given a voting rule": lambda: ac.certify(model, data, defence, voting_rule=ac.VotingRule()),
        "be trained subgraph": lambda: ac.subgraphs(data, defence),
        "audit is for models of nodes": lambda: ac.audit(model, data, defence),
    }
    for says, call in refusals.items():
        with pytest.raises(SettingsError, match=says if "voting" not in says else "voting_rule"):
            call()


def test_a_model_is_saved_and_loaded(made, tmp_path):
    for data, model, certificate in made.values():
        ac.save_model(model, tmp_path / "model")
        loaded = ac.load_model(tmp_path / "model")
        assert isinstance(loaded, PairModel)
        assert np.array_equal(ac.certify(loaded, data, loaded.defence, data.test_mask).counts, certificate.counts)
        assert ac.verify(certificate, data=data, model=loaded).holds


def test_the_page_the_table_and_the_commands_show_pairs(made, tmp_path):
    certificate = made["common"][2]
    name = certificate.target[0]
    page = ac.build_report(certificate, tmp_path / "page.html").read_text("utf-8")
    assert "pairs" in page
    assert name in [str(each) for each in certificate.to_pandas().reset_index().to_numpy().ravel()]
    certificate.save(tmp_path / "pairs.cert")
    commands = (
        ["show", "pairs.cert", "--budget", "add_edges=1"],
        ["verify", "pairs.cert"],
        ["report", "pairs.cert", "--out", "again.html"],
        ["export", "pairs.cert", "--out", "rows.csv"],
    )
    for command in commands:
        run = subprocess.run(
            [sys.executable, "-m", "agnncert", *command], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert run.returncode == 0, (command, run.stdout, run.stderr)
    assert f"\n{name}," in (tmp_path / "rows.csv").read_text("utf-8")
    assert f'"{name}"' not in (tmp_path / "rows.csv").read_text("utf-8")


def test_a_dataset_without_pairs_is_refused_by_the_command_in_one_sentence(tmp_path):
    command = [sys.executable, "-m", "agnncert", "train", "digits-knn", "--defence", "pairs", "--out", "run"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 2
    assert "pairs.csv" in run.stderr


def test_another_model_another_graph_and_other_ids_are_refuted(made, tmp_path):
    data, model, certificate = made["common"]
    other = ac.fit(None, data, model.defence, seed=5)
    assert not ac.verify(certificate, data=data, model=other).holds
    less = data.clone()
    less.edge_index = data.edge_index[:, 2:]
    assert not ac.verify(certificate, data=less, model=model).holds
    renamed = data.clone()
    renamed.node_id = data.node_id + 1
    assert not ac.verify(certificate, data=renamed, model=model).holds
    unlike = data.clone()
    unlike.edge_label = 1 - data.edge_label
    assert not ac.verify(certificate, data=unlike, model=model).holds


@pytest.mark.parametrize("name", DEFENCES)
def test_a_false_statement_in_a_file_is_found(name, made, tmp_path):
    certificate = made[name][2]
    file, forged = tmp_path / "true.cert", tmp_path / "false.cert"
    certificate.save(file)
    plain = read_contents(file)
    assert plain.budgets
    for array in ("label", "radius", "structure_radius", "new_neighbours", "holds"):
        contents = read_contents(file)
        value = contents.arrays[array]
        first = (0,) * value.ndim
        value[first] = (
            not value[first] if value.dtype == bool else (1 - value[first] if array == "label" else value[first] + 1)
        )
        write_contents(forged, contents)
        assert not ac.verify(forged).holds, array
    for setting, value in (("rule", "both" if plain.settings["rule"] != "both" else "common"), ("mask", "own" if plain.settings["mask"] != "own" else "targets"), ("blind", not plain.settings["blind"])):  # fmt: skip
        contents = read_contents(file)
        contents.settings[setting] = value
        write_contents(forged, contents)
        assert not ac.verify(forged).holds, setting


class Mixing(torch.nn.Module):
    """A prior that looks at all pairs at once."""

    def __init__(self):
        super().__init__()
        self.classify = torch.nn.Linear(4, 2)

    def forward(self, x_u, x_v, values):
        rows = x_u * x_v
        return self.classify(rows - rows.mean(dim=0))


def test_a_prior_of_ones_own_is_trained_and_one_that_mixes_pairs_is_refused():
    class Own(Mixing):
        def forward(self, x_u, x_v, values):
            return self.classify(x_u * x_v)

    data = links()
    model = ac.fit(Own(), data, ac.PairVotes(epochs=4))
    certificate = ac.certify(model, data, model.defence, data.test_mask)
    assert certificate.claim.locality == "test"
    assert ac.verify(certificate, data=data, model=model).holds
    mixing = ac.fit(Mixing(), data, ac.PairVotes(epochs=4))
    with pytest.raises(ModelContractError, match="other pairs"):
        ac.certify(mixing, data, mixing.defence, data.test_mask)


def test_altered_models_are_refused(made):
    data, model, _ = made["common"]
    with pytest.raises(ModelContractError, match="training mode"):
        model.defence.require_model(model.train())
    model.eval()
    with pytest.raises(ModelContractError, match="was made for"):
        ac.certify(model, data, ac.PairVotes(mask="targets"), data.test_mask)
    hook = model.prior.register_forward_hook(lambda module, args, out: -out)
    with pytest.raises(ModelContractError, match="hook"):
        ac.certify(model, data, model.defence, data.test_mask)
    hook.remove()
    with pytest.raises(ModelContractError, match="Linear"):
        ac.certify(torch.nn.Linear(2, 2), data, model.defence, data.test_mask)


@pytest.mark.parametrize(
    "settings",
    [{"over": "all"}, {"mask": "none"}, {"trusted": -1}, {"trusted": 0, "over": "both"}, {"size": -1}, {"epochs": 0}, {"weight_decay": -1}, {"directed": 3}],
)  # fmt: skip
def test_settings_that_make_no_sense_are_refused(settings):
    with pytest.raises(SettingsError):
        ac.PairVotes(**settings)


def test_data_without_pairs_classes_or_parts_is_refused():
    data = links()
    for name in ("edge_label_index", "edge_label", "train_mask", "val_mask"):
        less = data.clone()
        del less[name]
        with pytest.raises(DatasetError, match=r"edge_label\b|edge_label_index"):
            ac.fit(None, less, ac.PairVotes(epochs=1))
    with pytest.raises(SettingsError, match="epochs"):
        ac.fit(None, data, ac.PairVotes(), epochs=3)
    named = data.clone()
    named.node_id = [f"a – {k}" for k in range(data.num_nodes)]
    with pytest.raises(GraphError, match="stands between"):
        choose_pairs(prepared(named), None)


def test_a_settings_file_names_it():
    from agnncert.pairs.defence import PairVotes

    assert PairVotes.from_settings("pairs", "pair", {"size": 2, "over": "both"}) == ac.PairVotes(size=2, over="both")
    with pytest.raises(SettingsError, match="over"):
        PairVotes.from_settings("pairs", "pair", {"overr": "both"})
    with pytest.raises(SettingsError, match="graphs"):
        PairVotes.from_settings("pairs", "graph", {})


def test_the_file_names_pairs_and_mask(made, tmp_path):
    certificate = made["trusted"][2]
    certificate.save(tmp_path / "pairs.cert")
    contents = read_contents(tmp_path / "pairs.cert")
    assert contents.kind == "pairs"
    assert contents.claim.task == "pair"
    assert json.dumps(contents.settings).count("own")
    assert any("edges that leave the first node" in sentence for sentence in contents.claim.assumes)


def test_columns_of_many_sizes_without_values_of_pairs_are_scaled_in_silence(recwarn):
    data = links()
    data.x = data.x * torch.tensor([1.0, 50.0, 900.0, 3.0])
    model = ac.fit(None, data, ac.PairVotes(epochs=1))
    assert model.prior.scaled
    assert [str(each.message) for each in recwarn if "degrees of freedom" in str(each.message)] == []
