"""Stacked votes from training to a verified file."""

import copy
import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import agnncert as ac
from agnncert.certificates.claim import PREMISES
from agnncert.certificates.file import read_contents, write_contents
from agnncert.errors import CertificateError, DatasetError, ModelContractError, SettingsError
from agnncert.stacked.evidence import moved_by_nodes
from agnncert.stacked.model import StackedModel
from agnncert.stacked.record import STEPS
from agnncert.stacked.training import _certified, _Look, _stage, mark_trusted

QUICK = {"epochs": 15, "patience": None}


def sample(seed=0, nodes=160, edge_values=False):
    """Two classes; features say a little, neighbours of the same class say more."""
    rng = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 2, (nodes,), generator=rng)
    x = torch.randn(nodes, 4, generator=rng)
    x[:, 0] += 0.8 * (2 * y - 1)
    src, dst = torch.randint(0, nodes, (2, 6 * nodes), generator=rng)
    keep = (src != dst) & ((y[src] == y[dst]) | (torch.rand(len(src), generator=rng) < 0.15))
    index = torch.stack([src[keep], dst[keep]])
    part = torch.rand(nodes, generator=rng)
    data = Data(
        x=x, y=y, edge_index=torch.cat([index, index.flip(0)], dim=1), node_id=[f"n{k}" for k in range(nodes)],
        train_mask=part < 0.5, val_mask=(part >= 0.5) & (part < 0.7), test_mask=part >= 0.7,
    )  # fmt: skip
    if edge_values:
        noise = torch.randn(data.num_edges, generator=rng)
        data.edge_attr = torch.stack([(2.0 * y[data.edge_index[0]] - 1) + noise, noise], dim=1)
    return data


@pytest.fixture(scope="module")
def trained():
    data = sample()
    defence = ac.StackedVotes(size=1, folds=2, epochs=60)
    return data, ac.fit(ac.build_model("mlp", data, hidden_channels=8, num_layers=2), data, defence, **QUICK)


@pytest.fixture(scope="module")
def made_once(trained, tmp_path_factory):
    """A certificate, of which tests get copies."""
    data, model = trained
    path = tmp_path_factory.mktemp("stacked") / "a.cert"
    ac.certify(model, data, model.defence, data.test_mask).save(path)
    return path


@pytest.fixture
def file(made_once, tmp_path):
    return shutil.copy(made_once, tmp_path / "a.cert")


def test_a_certificate_says_the_scores_of_the_model(trained):
    data, model = trained
    certificate = ac.certify(model, data, model.defence)
    with torch.no_grad():
        scores = model(data.x, data.edge_index).numpy()
    assert (certificate.label == scores.argmax(axis=1)).all()
    assert np.abs(certificate.counts / 2**16 - scores).max() < 0.01
    table = certificate.to_pandas()
    assert np.abs(table[["score_0", "score_1"]].to_numpy() - scores).max() < 0.01
    assert bool(model.use_votes)
    assert certificate.structure_radius.max() > 0


def test_it_verifies_and_loads_again(trained, file, tmp_path):
    data, model = trained
    assert ac.verify(file).holds
    verdict = ac.verify(file, data=data, model=model)
    assert verdict.compared == ("data", "model")
    assert ac.verify(file, data=data).compared == ()
    assert verdict.holds
    assert any("computed again" in line for line in verdict.checked)
    again = ac.load_certificate(file)
    assert (again.radius == ac.certify(model, data, model.defence, data.test_mask).radius).all()
    ac.save_model(model, tmp_path / "m")
    assert ac.verify(file, data=data, model=ac.load_model(tmp_path / "m")).holds


@pytest.mark.parametrize("name", ["label", "radius", "structure_radius", "new_neighbours", "holds", "broken"])
def test_a_forged_statement_is_refused(file, name):
    contents = read_contents(file)
    if name == "broken":
        object.__setattr__(contents, "broken_at_most", (contents.broken_at_most[0] - 1, *contents.broken_at_most[1:]))
    else:
        array = contents.arrays[name].copy()
        array.flat[0] = not array.flat[0] if name == "holds" else array.flat[0] + 1
        contents.arrays[name] = array
    write_contents(file, contents)
    assert not ac.verify(file).holds


@pytest.mark.parametrize("name", ["prior", "table"])
def test_forged_votes_are_refused_with_the_model(trained, file, name):
    data, model = trained
    evidence = ac.load_certificate(file).evidence
    changed = getattr(evidence, name).copy()
    changed[0, 0] += 40 if name == "prior" else -40 if changed[0, 0] >= 40 else 0
    changed[0, 1] += 0 if name == "prior" or changed[0, 0] >= 40 else -40
    forged = type(evidence)(**{**evidence.tensors(), **evidence.settings(), name: changed})
    stated = ac.load_certificate(file)
    ac.Certificate(stated.claim, forged, stated.target, stated.row, stated.truth, stated.degree).save(file)
    assert ac.verify(file).holds  # its statements do follow from the votes in it
    assert not ac.verify(file, data=data, model=model).holds


def test_another_graph_is_refused(trained, file):
    data, model = trained
    other = data.clone()
    other.x = other.x + 1
    assert not ac.verify(file, data=other, model=model).holds


@pytest.mark.parametrize(
    "defence",
    [
        ac.StackedVotes(folds=2, epochs=20, levels=2),
        ac.StackedVotes(folds=2, epochs=20, gated=True),
        ac.StackedVotes(folds=2, epochs=20, combine="mean"),
        ac.StackedVotes(folds=2, epochs=20, edge_values=True),
        ac.StackedVotes(folds=2, epochs=20, edge_values=True, combine="mean", trusted=1),
    ],
    ids=str,
)
def test_every_rule_trains_certifies_and_verifies(defence, tmp_path):
    data = sample(1, edge_values=True)
    model = ac.fit(ac.build_model("mlp", data, hidden_channels=8, num_layers=2), data, defence, **QUICK)
    certificate = ac.certify(model, data, defence, data.test_mask)
    certificate.save(tmp_path / "a.cert")
    assert ac.verify(tmp_path / "a.cert", data=data, model=model).holds
    assert (certificate.radius <= certificate.structure_radius).all()
    if defence.trusted is not None:
        assert certificate.claim.assumes[len(PREMISES)].startswith("Edges that are marked as trusted")


def test_edges_alone_can_vote():
    data = sample(2, edge_values=True)
    model = ac.fit(None, data, ac.StackedVotes(edge_values=True, combine="mean", epochs=50))
    certificate = ac.certify(model, data, model.defence, data.test_mask)
    assert len(model.own) == 0
    assert certificate.certified_accuracy() > 0.85


def test_training_is_deterministic():
    data = sample()
    runs = [ac.fit(ac.build_model("mlp", data, hidden_channels=4, num_layers=2), data,
                   ac.StackedVotes(folds=2, epochs=20), **QUICK) for _ in range(2)]  # fmt: skip
    first, second = (run.state_dict() for run in runs)
    assert all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("combine", ["sum", "mean"])
def test_models_are_chosen_by_what_they_certify_at_the_size_and_around_it(trained, combine):
    data, model = trained[0], copy.deepcopy(trained[1])
    model.defence = replace(model.defence, combine=combine)
    look = _Look(model, _stage(model, data, None, False, "accuracy", False), torch.arange(data.num_nodes))
    leads = [(look.margins(size).amin(dim=1) > 0).double() for size in (1.0, 2.0, 3.0)]
    assert len({float(lead.mean()) for lead in leads}) == 3
    assert torch.equal(_certified(look, 2.0), sum(leads) / 3)


def test_a_rare_class_counts_as_much_as_the_other_one():
    data = sample(3, nodes=300)
    data.y[(data.y == 1) & (torch.arange(300) % 9 != 0)] = 0
    data.x[:, 0] = torch.randn(300, generator=torch.Generator().manual_seed(1)) + 1.2 * data.y

    def recall(**settings):
        model = ac.fit(ac.build_model("mlp", data, hidden_channels=4, num_layers=2), data,
                       ac.StackedVotes(folds=2, epochs=60), **QUICK, **settings)  # fmt: skip
        certificate = ac.certify(model, data, model.defence)
        rare = certificate.truth == 1
        return model.training_record["measure"], (certificate.label[rare] == 1).mean()

    plain, balanced = recall(balance_classes=False), recall(balance_classes=True)
    assert (plain[0], balanced[0]) == ("accuracy", "balanced")
    assert balanced[1] > plain[1] + 0.2
    with pytest.raises(SettingsError, match="threshold"):
        recall(measure="recall@0.05")


def test_an_interrupted_run_ends_with_the_same_weights_and_says_how_far_it_is(tmp_path):
    data, defence = sample(), ac.StackedVotes(folds=2, epochs=20)

    def run(**more):
        return ac.fit(ac.build_model("mlp", data, hidden_channels=4, num_layers=2), data, defence, **QUICK, **more)

    steps = []

    def stop(step):
        steps.append(step)
        if step.what.startswith("votes"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(checkpoint=tmp_path / "c", progress=stop)
    trained = sum(step.what == "training" for step in steps)
    assert trained == 30
    steps.clear()
    again = run(checkpoint=tmp_path / "c", progress=steps.append).state_dict()
    assert not any(step.what == "training" for step in steps)  # the models without edges were there
    assert {step.done for step in steps if step.what.startswith("votes")} == {50, 100}
    whole = run().state_dict()
    assert all(torch.equal(again[name], whole[name]) for name in whole)


@pytest.mark.parametrize("how", ["mask", "column", "date"])
def test_trusted_edges_are_a_mask_a_column_or_everything_before_a_date(how):
    data = sample(1, edge_values=True)
    time = torch.from_numpy(np.random.default_rng(0).random(data.num_edges)).float()
    data.edge_attr = torch.stack([time, (time < 0.5).float()], dim=1)
    marked, column = data, 1
    if how != "column":
        old = data.edge_attr[:, 0] < 0.5 if how == "date" else (time < 0.5)
        marked, column = mark_trusted(data, old)
        assert (column, data.edge_attr.size(1)) == (2, 2)
    defence = ac.StackedVotes(trusted=column, folds=2, epochs=5)
    model = StackedModel([torch.nn.Linear(4, 2)], 2, 0, defence).eval()
    certificate = ac.certify(model, marked, defence)
    assert certificate.claim.assumes[len(PREMISES)].startswith(
        f"Edges that are marked as trusted (column {column} of edge_attr"
    )
    free = (marked.edge_attr[:, column] <= 0).sum()
    assert 0 < len(certificate.evidence.which) < 2 * free  # no vote of a trusted edge is listed
    with pytest.raises(SettingsError, match="mask"):
        mark_trusted(data, time)


def test_two_levels_go_without_trusted_edges():
    """Votes along trusted edges would follow the neighbours' neighbours: one edge elsewhere flipped certified labels."""
    with pytest.raises(SettingsError, match="trusted"):
        ac.StackedVotes(levels=2, trusted=0)


@pytest.mark.parametrize(("setting", "value"), [("trusted", 0), ("slack", 4)])
def test_a_file_with_two_levels_trusts_no_edge_and_states_few_steps(tmp_path, setting, value):
    data, defence = sample(), ac.StackedVotes(levels=2)
    certificate = ac.certify(StackedModel([torch.nn.Linear(4, 2)], 2, 0, defence).eval(), data, defence)
    certificate.save(tmp_path / "a.cert")
    assert ac.verify(tmp_path / "a.cert").holds
    contents = read_contents(tmp_path / "a.cert")
    write_contents(tmp_path / "b.cert", replace(contents, settings={**contents.settings, setting: value}))
    assert not ac.verify(tmp_path / "b.cert").holds
    with pytest.raises(CertificateError, match="two levels go with edges of which none is trusted"):
        ac.load_certificate(tmp_path / "b.cert")


@pytest.mark.parametrize("combine", ["sum", "mean"])
def test_features_that_decide_alone_are_left_alone(combine):
    data = sample()
    data.x[:, 0] = 5.0 * (2 * data.y - 1)
    data.edge_index = torch.randint(0, data.num_nodes, (2, 400), generator=torch.Generator().manual_seed(0))
    model = ac.fit(ac.build_model("mlp", data, hidden_channels=8, num_layers=2), data,
                   ac.StackedVotes(combine=combine, folds=2, epochs=40), **QUICK)  # fmt: skip
    assert not bool(model.use_votes)
    certificate = ac.certify(model, data, model.defence)
    assert certificate.holds_against(ac.Budget(add_edges=np.inf, inject_nodes=np.inf, delete_edges=np.inf)).all()


def test_a_threshold_keeps_to_its_rate_and_is_certified(trained):
    data, model = trained
    others = data.val_mask & (data.y == 0)
    rates = []
    for rate in (0.0, 0.1, 0.4):
        moved = ac.choose_threshold(model, data, model.defence, false_positive_rate=rate).model
        label = ac.certify(moved, data, moved.defence).label
        rates.append(float((label == 1)[others.numpy()].mean()))
        assert rates[-1] <= rate
    assert rates[0] == 0.0
    assert rates == sorted(rates)
    assert rates[2] > 0.1
    assert ac.certify(moved, data, moved.defence).structure_radius.max() > 0


def test_a_threshold_needs_scores_that_differ(trained):
    data, model = trained
    with pytest.raises(SettingsError, match="the classes 0 to 1"):
        ac.choose_threshold(model, data, model.defence, false_positive_rate=0.1, positive=2)
    same = copy.deepcopy(model)
    with torch.no_grad():
        same.use_votes.zero_()
        same.own_scale.fill_(-60.0)
    with pytest.raises(SettingsError, match="the same score"):
        ac.choose_threshold(same, data, same.defence, false_positive_rate=0.1)


def test_a_point_is_certified_and_verified_with_its_own_model_alone(trained, tmp_path):
    data, model = trained
    few, many = (ac.choose_threshold(model, data, model.defence, alerts=alerts) for alerts in (2, 20))
    ac.certify(few.model, data, few).save(tmp_path / "few.cert")
    assert ac.verify(tmp_path / "few.cert", data=data, model=few.model, defence=copy.deepcopy(few)).holds
    for ask in (
        lambda: ac.certify(model, data, few),
        lambda: ac.verify(tmp_path / "few.cert", data=data, model=few.model, defence=many),
    ):
        with pytest.raises(SettingsError, match=r"pass point\.model"):
            ask()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"false_positive_rate": "0.1"}, "expected a share"),
        ({"alerts": "3"}, "alerts='3': expected a whole number"),
        ({"alerts": 2.5}, "alerts=2.5: expected a whole number"),
        ({"alerts": True}, "alerts=True: expected a whole number"),
        ({"alerts": 3, "positive": 1.0}, "positive=1.0: expected the number of a class"),
        ({"alerts": 3, "epochs": 1}, 'no argument "epochs" here'),
    ],
)
def test_senseless_limits_of_a_threshold_are_refused(trained, settings, said):
    data, model = trained
    with pytest.raises(SettingsError, match=said):
        ac.choose_threshold(model, data, model.defence, **settings)


@pytest.mark.parametrize("parts", [{"y": None}, {"val_mask": torch.ones(9, dtype=torch.bool)}], ids=["y", "val_mask"])
def test_a_threshold_needs_classes_and_a_mask(trained, parts):
    data, model = trained
    other = data.clone().update(parts)
    with pytest.raises(DatasetError, match="a threshold is chosen"):
        ac.choose_threshold(model, other, model.defence, alerts=3)


def test_wrong_calls_say_what_to_do(trained):
    data, model = trained
    with pytest.raises(ModelContractError, match="StackedVotes certifies models that fit"):
        ac.certify(ac.build_model("gcn", data), data, ac.StackedVotes())
    with pytest.raises(ModelContractError, match="made for"):
        ac.certify(model, data, ac.StackedVotes(levels=2))
    with pytest.raises(ModelContractError, match="training mode"):
        model.defence.require_model(StackedModel([], 2, 1, model.defence).train())
    with pytest.raises(SettingsError, match="levels=2"):
        ac.StackedVotes(levels=2, gated=True)
    with pytest.raises(SettingsError, match="edge_weight"):
        ac.fit(None, data, ac.StackedVotes(edge_values=True))
    with pytest.raises(SettingsError, match="memory_limit"):
        ac.certify(model, data, model.defence, memory_limit="1GB")
    with pytest.raises(SettingsError, match="votes read nothing"):
        ac.fit(None, data, ac.StackedVotes())
    few = data.clone()
    few.train_mask = few.train_mask & (torch.cumsum(few.train_mask, 0) < 4)
    with pytest.raises(DatasetError, match="too few"):
        ac.fit(ac.build_model("mlp", few), few, ac.StackedVotes())


class Mixing(torch.nn.Module):
    """Reads the mean of all rows: no function of a node's own features."""

    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(4, 2)

    def forward(self, x):
        return self.lin(x - x.mean(dim=0))


def test_a_model_of_features_that_mixes_rows_is_refused():
    data = sample()
    model = ac.fit(Mixing(), data, ac.StackedVotes(folds=2, epochs=5), **QUICK)
    with pytest.raises(ModelContractError):
        ac.certify(model, data, model.defence)


def test_label_and_rival_may_be_misread_each_in_its_own_way():
    # Another machine reads the label's vote one step lower and the rival's one step higher; then ten nodes multiply odds.
    factor, label, rival = np.exp((STEPS - 16) / STEPS * 10), 1 - 1 / STEPS, 1 / STEPS
    lost = label - label / (label + factor * (1 - label))
    won = factor * rival / (factor * rival + 1 - rival) - rival
    stored = np.array([STEPS]), np.array([0])
    assert moved_by_nodes(*stored, STEPS - 16, 10, 1)[0] - 2 >= (lost + won) * STEPS  # two steps are in the slack


@pytest.mark.parametrize("combine", ["sum", "mean"])
def test_votes_without_features_that_fall_back_to_a_constant_certify_it_at_every_size(combine) -> None:
    data = sample(nodes=60, edge_values=True)
    data.y = (torch.arange(60) % 3 == 0).long()  # unrelated to edges: nothing to vote about
    data.edge_attr = torch.ones(data.num_edges, 1)
    defence = ac.StackedVotes(size=5, folds=2, epochs=10, edge_values=True, combine=combine)
    model = ac.fit(None, data, defence)
    assert not model.use_votes
    certificate = ac.certify(model, data, model.defence, data.test_mask)
    assert (certificate.label == 0).all()
    assert certificate.holds_against(ac.Budget(add_edges=1000, delete_edges=1000)).all()


def test_a_constant_is_certified_also_where_all_classes_are_equally_frequent() -> None:
    data = sample(nodes=60, edge_values=True)
    data.y = torch.arange(60) % 2
    data.train_mask = torch.arange(60) < 30
    data.val_mask = (torch.arange(60) >= 30) & (torch.arange(60) < 40)
    data.test_mask = torch.arange(60) >= 40
    data.edge_attr = torch.ones(data.num_edges, 1)
    model = ac.fit(None, data, ac.StackedVotes(size=5, folds=2, epochs=10, edge_values=True))
    assert not model.use_votes
    certificate = ac.certify(model, data, model.defence, data.test_mask)
    assert (certificate.label == 0).all()
    assert (certificate.radius >= 0).all()
