"""Stacked votes from the command line: a run like any other, with trusted edges by a column or by a date."""

import json
import random
import shutil
import tomllib
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import agnncert as ac
import agnncert.stacked.training as small_networks
from agnncert.certificates.claim import PREMISES
from agnncert.cli import main, train_step
from agnncert.datasets.encoding import Clock, limit_of
from agnncert.datasets.fraud import YEAR, ZERO, trusted_edges
from agnncert.datasets.relations import both_directions
from agnncert.errors import DatasetError
from agnncert.models.digest import model_digest
from agnncert.training import settings

QUICK = ("--epochs", 5, "--set", "defence.folds=2", "--set", "defence.epochs=60", "--no-references")
PLAIN = ("--division", "stacked", *QUICK, "--set", "edge_feature=none")
KEPT = ("--set", "edge_feature=amount", "--set", "repeated=sum")
FIRST = "Edges that are marked as trusted"


def write_payments(folder: Path, nodes: int = 200) -> Path:
    """Accounts whose payments go to their own kind; some pairs pay twice, once before 2017 and once after."""
    rng = random.Random(0)
    folder.mkdir(parents=True, exist_ok=True)
    kinds = [rng.randrange(2) for _ in range(nodes)]
    rows = [f"n{k},{kind + rng.gauss(0, 3):.3f},{('good', 'bad')[kind]}" for k, kind in enumerate(kinds)]
    pairs = [rng.sample(range(nodes), 2) for _ in range(8 * nodes)]
    edges = []
    for a, b in pairs:
        for _ in range(rng.choice([1, 1, 2])):
            if kinds[a] == kinds[b]:
                year = rng.choice([2015, 2016, 2018])
                edges.append(f"n{a},n{b},{rng.random():.2f},{year}-03-1{rng.randrange(9)},{int(year < 2017)}")
    (folder / "nodes.csv").write_text("\n".join(["id,a,label", *rows]) + "\n", encoding="utf-8")
    (folder / "edges.csv").write_text("\n".join(["source,target,amount,paid,known", *edges]) + "\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def payments_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_payments(tmp_path_factory.mktemp("payments") / "payments")


@pytest.fixture
def payments(place: Path, payments_once: Path) -> Path:
    return Path(shutil.copytree(payments_once, place / "payments"))


@pytest.fixture(scope="session")
def plain_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of stacked votes that read no edge values, of which tests get copies."""
    folder = tmp_path_factory.mktemp("plain")
    write_payments(folder / "payments")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(["train", "payments", *map(str, PLAIN), "--out", "run"]) == 0
    return folder / "run"


@pytest.fixture
def plain(payments: Path, plain_once: Path) -> Path:
    return Path(shutil.copytree(plain_once, "runs/plain"))


def stored(folder: Path, step: str) -> dict:
    return tomllib.loads((folder / "settings.toml").read_text())[step]


def told(answer) -> dict:
    assert answer.status == 0, answer.err
    return json.loads(answer.out)


def test_a_run_of_stacked_votes_from_training_to_the_verdict(agnncert, payments) -> None:
    folder = Path("runs/stacked")
    words = (
        "--set",
        "defence.edge_values=true",
        "--size",
        2,
        "--trusted",
        "paid<2017-01-01",
        "--out",
        folder,
        "--seed",
        5,
    )
    trained = agnncert("train", payments, "--division", "stacked", *QUICK, *KEPT, *words)
    assert trained.status == 0, trained.err
    assert not list(folder.glob("*.checkpoint"))
    assert stored(folder, "train")["defence"] == {"folds": 2, "epochs": 60, "edge_values": True}
    answer = told(agnncert("certify", folder, "--json"))
    assert any(row["measure"] == "certified accuracy, added or deleted only" for row in answer["results"])
    certificate = ac.load_certificate(folder / "certificate.cert")
    assert certificate.claim.assumes[len(PREMISES)].startswith(FIRST)
    assert "trusted edges apart" in answer["sentences"][0]
    assert answer["sentences"][1].startswith(f"Assumed: {FIRST}")
    assert f"Assumed: {FIRST}" in (folder / "report.html").read_text(encoding="utf-8").replace("&nbsp;", " ")
    verdict = told(agnncert("verify", folder, "--require", "data,model", "--json"))
    assert any("votes, computed again" in one for one in verdict["checked"])
    card = (folder / "MODEL_CARD.md").read_text()
    for words in ("| division | stacked |", "folds 2, epochs 60, edge_values yes", "| trusted | paid&lt;2017-01-01 |"):
        assert words in card
    model = ac.load_model(folder / "weights.safetensors")  # the same model, without the settings of the run
    assert model_digest(model) == certificate.claim.digests["model"]
    assert (model.defence.size, bool(model.use_votes)) == (2, True)
    assert "stacked" in agnncert("compare", folder).out


def test_a_date_a_column_and_the_library_mark_the_same_edges(agnncert, payments) -> None:
    tables = {"amount": {"edge_features": ["amount"], "repeated": "sum"}, "none": {"edge_features": []}}
    for how in tables.values():
        dated = ac.load_tables(payments, trusted="paid < 2017-01-01", **how)
        marked = ac.load_tables(payments, trusted="known", **how)
        assert torch.equal(dated.edge_attr, marked.edge_attr)
        assert set(dated.edge_attr[:, -1].tolist()) == {0.0, 1.0}
    lines = [line.split(",") for line in (payments / "edges.csv").read_text().split()[1:]]
    old = {frozenset(line[:2]) for line in lines if line[4] == "1"}
    every = {frozenset(line[:2]) for line in lines}
    assert 0 < len(old) < len(every)
    assert (dated.edge_attr[:, -1].sum(), dated.num_edges) == (2 * len(old), 2 * len(every))


def test_nobody_alters_a_trusted_pair_by_joining_it_again(payments) -> None:
    how = {"edge_features": ["amount"], "repeated": "sum", "trusted": "paid<2017-01-01"}
    before = ac.load_tables(payments, **how)
    with (payments / "edges.csv").open("a") as file:
        for line in (payments / "edges.csv").read_text().split()[1:]:
            a, b, _, _, known = line.split(",")
            file.write(f"{b},{a},99,2019-01-01,0\n" if known == "1" else "")
    after = ac.load_tables(payments, **how)
    assert torch.equal(before.edge_index, after.edge_index)
    assert torch.equal(before.edge_attr, after.edge_attr)


@pytest.mark.parametrize(
    ("trusted", "said"),
    [("payed<2017-01-01", 'Did you mean "paid"'), ("paid<soon", "expected a date"), ("amount<2017-01-01", "1483228800"),
     ("amount<much", "expected a number"), ("paid", "holds no marks")],
)  # fmt: skip
def test_a_wrong_mark_is_refused_with_all_other_problems(payments, trusted, said) -> None:
    with pytest.raises(DatasetError, match="4 problems") as refused:
        ac.load_tables(payments, trusted=trusted, label="sort")
    assert said in str(refused.value)


def test_a_dataset_is_trusted_before_a_date_where_each_direction_is() -> None:
    year = lambda text: limit_of("time", text, Clock(ZERO["bitcoin-otc"], YEAR))  # noqa: E731
    ends = torch.tensor([[0, 1, 1, 2, 3], [1, 0, 2, 1, 0]])
    days = ["2014-01-01", "2014-06-01", "2014-01-01", "2016-01-01", "2015-01-01"]
    values = torch.tensor([[1.0, -0.5, year(day)] for day in days])
    data = Data(x=torch.ones(4, 1), name="bitcoin-otc")
    data.edge_index, data.edge_attr = both_directions(ends, values, 4)
    names = ["rated", "rating", "time"]
    data.edge_names = [*names, *(f"{name}, back" for name in names)]
    held = trusted_edges(data, "time<2015-01-01")
    pairs = {frozenset(pair) for pair, one in zip(data.edge_index.t().tolist(), held.tolist(), strict=True) if one}
    assert pairs == {frozenset((0, 1))}  # 1-2 was joined again in 2016, and 0-3 on the day itself
    assert trusted_edges(data, "rated").all()
    for wrong, said in (("tim<2015-01-01", "time"), ("time<7", "a date"), ("rating<2015-01-01", "numbers")):
        with pytest.raises(DatasetError, match=said):
            trusted_edges(data, wrong)


def test_a_threshold_is_part_of_what_is_certified_and_verified(agnncert, plain) -> None:
    folder = plain
    plain = ac.load_certificate(folder / "certificate.cert") if agnncert("certify", folder).status == 0 else None
    assert agnncert("certify", folder, "--set", "alerts=3").status == 0
    cut = ac.load_certificate(folder / "certificate.cert")
    assert cut.claim.digests["model"] != plain.claim.digests["model"]
    assert (cut.label != plain.label).any()
    assert "3 alerts of class" in json.loads((folder / "voting_rule.json").read_text())["text"]
    assert agnncert("verify", folder, "--require", "data,model").status == 0
    assert agnncert("certify", folder, "--set", "false_positive_rate=0.1").status == 0
    assert agnncert("verify", folder, "--require", "data,model").status == 0
    model = ac.load_model(folder / "certified.safetensors")
    model.constant.data[0] += 1
    ac.save_model(model, folder / "certified.safetensors")
    assert agnncert("verify", folder).status == 1
    (folder / "certified.safetensors").write_bytes(b"no weights")
    assert "damaged" in agnncert("verify", folder).err
    assert agnncert("certify", folder).status == 0  # without a threshold again
    assert not list(folder.glob("certified.*"))
    assert np.array_equal(ac.load_certificate(folder / "certificate.cert").label, plain.label)


@pytest.mark.parametrize("model", ["mine:build_plain", "none"])
def test_the_model_on_features_may_be_the_users_own_or_none(agnncert, payments, model) -> None:
    with Path("mine.py").open("a") as file:
        file.write(
            "\n\ndef build_plain(in_channels, out_channels):\n    return torch.nn.Linear(in_channels, out_channels)\n"
        )
    words = (
        "--model",
        model,
        "--set",
        "defence.edge_values=true",
        "--set",
        "defence.combine=mean",
        "--out",
        "runs/own",
    )
    words = (*words, "--set", "edge_feature=amount,paid", "--set", "encode=auto", "--trusted", "known")
    answer = agnncert("train", payments, "--division", "stacked", *QUICK, *KEPT, *words)
    assert answer.status == 0, answer.err
    named = ("--model", model) if ":" in model else ()
    assert agnncert("certify", "runs/own", *named).status == 0
    assert agnncert("verify", "runs/own", *named, "--require", "data,model").status == 0
    audited = agnncert("audit", "runs/own") if model == "none" else agnncert("audit", "runs/own", *named)
    assert "read edges alone" in audited.err if model == "none" else "fit for certification" in audited.out


def test_interrupted_training_ends_with_the_same_weights(agnncert, payments, plain, monkeypatch) -> None:
    train, folds = small_networks.fit_stacked, []

    def stops(*args, **kwargs):
        inner = args[3]

        def one(model, part, seed):
            folds.append(seed)
            if len(folds) == 2:
                raise KeyboardInterrupt
            return inner(model, part, seed)

        return train(*args[:3], one, **kwargs)

    monkeypatch.setattr("agnncert.stacked.defence.fit_stacked", stops)
    stopped = agnncert("train", payments, *PLAIN, "--out", "runs/parts")
    assert stopped.status == 130
    assert "the same command continues" in stopped.err
    assert [file.name for file in Path("runs/parts").glob("*.checkpoint")] == ["model-0.checkpoint"]
    assert agnncert("train", payments, *PLAIN, "--out", "runs/parts").status == 0
    whole, parts = (
        ac.load_model(Path("runs", name, "weights.safetensors")).state_dict() for name in ("plain", "parts")
    )
    assert all(torch.equal(whole[name], parts[name]) for name in whole)
    assert not list(Path("runs/parts").glob("*.checkpoint"))


def test_references_are_a_gnn_and_the_models_without_edges(agnncert, payments) -> None:
    words = [word for word in QUICK if word != "--no-references"]
    answer = told(agnncert("train", payments, "--division", "stacked", *words, "--set", "edge_feature=none", "--json"))
    assert {"accuracy, undefended", "accuracy, no edges", "accuracy, majority class"} <= set(answer)
    model = ac.load_model(Path(answer["run"], "weights.safetensors"))
    data = ac.load_tables(payments, edge_features=[])
    with torch.no_grad():
        right = model.own_logits(data.x).argmax(dim=1)[data.test_mask] == data.y[data.test_mask]
    assert answer["accuracy, no edges"] == pytest.approx(float(right.float().mean()))


def test_a_recipe_for_stacked_votes_is_not_that_of_the_undefended_model(agnncert, place, monkeypatch) -> None:
    own = {"model": {"hidden_channels": 7, "scale": "standard"}, "fit": {"epochs": 3}}
    monkeypatch.setitem(settings._DESIGNED, ("digits-knn", "stacked"), own)
    fit, seen = train_step._fit, {}

    def note(run, study, name, what):
        seen[name] = study.new_model().config["hidden_channels"], study.fit_args["epochs"]
        return fit(run, study, name, what)

    monkeypatch.setattr(train_step, "_fit", note)
    monkeypatch.setitem(settings._RECIPES, "digits-knn", {"model": {"hidden_channels": 9}, "fit": {"epochs": 4}})
    told(
        agnncert("train", "digits-knn", "--division", "stacked", "--set", "defence.epochs=2", "--out", "own", "--json")
    )
    assert stored(place / "own", "train")["set"]["scale"] == "standard"
    assert seen == {"model": (7, 3), "undefended": (9, 4)}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--groups 7", 'no setting "groups"'),
        ("--groups 7", "belongs to --division edge, node, gated"),
        ("--prior 3", "cannot be given a voting rule, because"),
        ("--prior 3", "leave out prior"),
        ("--set defence.level=2", 'mean "levels"'),
        ("--set defence.size=2", "--size"),
        ("--set defence.trusted=1", "--trusted"),
        ("--set defence.folds=1", "at least 2"),
        ("--set defence.hidden=wide", "whole number"),
        ("--set defence.gated=maybe", "true or false"),
        ("--set defence.levels=2 --set defence.gated=true", "levels=2"),
    ],
)
def test_settings_that_make_no_sense_are_refused(agnncert, payments, words, said) -> None:
    answer = agnncert("train", payments, "--division", "stacked", "--set", "edge_feature=none", *words.split())
    assert answer.status == 2
    assert said in answer.err


def test_what_stacked_votes_cannot_do_is_said(agnncert, payments, trained, plain) -> None:
    words = ("--set", "edge_feature=none", "--trusted", "known")
    assert '"trusted" belongs to --division stacked' in agnncert("train", payments, *words).err
    assert "belongs to --division stacked" in agnncert("train", payments, *words[:2], "--set", "defence.folds=2").err
    assert "agnncert train DATA --division stacked" in agnncert("certify", trained, "--division", "stacked").err
    assert agnncert("certify", plain, "--no-report").status == 0
    assert "leave out --division node" in agnncert("certify", plain, "--division", "node").err
    assert "agnncert train" in agnncert("certify", plain, "--size", 2).err
    assert "leave out --trusted" in agnncert("certify", plain, "--trusted", "known").err


def test_a_model_of_stacked_votes_is_not_called_undefended_on_the_whole_graph(agnncert, plain) -> None:
    proved = agnncert("certify", plain).out
    assert "same model, no edges" in proved
    assert "undefended" not in proved, "no reference was trained, and the model itself is the defended one"
    votes = ac.load_certificate(plain / "certificate.cert").evidence.gate.any()
    assert ("Edges have no vote in this model." in proved) == (not votes)


def test_a_run_of_stacked_votes_is_attacked_with_its_threshold(agnncert, payments, plain) -> None:
    assert agnncert("certify", plain, "--set", "alerts=3", "--no-report").status == 0
    answer = told(agnncert("attack", plain, "--sizes", "1,30", "--sample", 6, "--json"))
    assert answer["violations"] == 0
    assert sum(each["attacked_certified"] + each["attacked_others"] for each in answer["rounds"]) == 12


def test_a_decision_of_stacked_votes_is_explained(agnncert, plain) -> None:
    assert agnncert("certify", plain, "--no-report").status == 0
    certificate = ac.load_certificate(plain / "certificate.cert")
    target = certificate.target.tolist()[0]
    answer = told(agnncert("explain", plain, target, "--json"))
    parts = [each["votes"] for each in (*answer["given"], *answer["voters"])]
    total = [sum(column) for column in zip(*parts, strict=True)]
    assert total == answer["total"]
    assert answer["counts"] == certificate.counts[0].tolist()


def test_weights_of_stacked_votes_are_certified_without_their_run(agnncert, payments, plain) -> None:
    words = ("--set", "edge_feature=none", "--weights", plain / "weights.safetensors")  # weights.json describes it
    assert agnncert("certify", payments, *words, "--out", "runs/alone").status == 0
    assert agnncert("verify", "runs/alone", "--require", "data,model").status == 0
    digests = [ac.load_certificate(f"runs/{name}/certificate.cert").claim.digests for name in ("alone", "alone")]
    assert agnncert("certify", plain, "--no-report").status == 0
    assert digests[0] == ac.load_certificate(plain / "certificate.cert").claim.digests


def test_weights_of_the_certified_model_keep_its_threshold(agnncert, payments, plain) -> None:
    assert agnncert("certify", plain, "--set", "alerts=3", "--no-report").status == 0
    cut = ac.load_certificate(plain / "certificate.cert")
    words = ("certify", payments, "--set", "edge_feature=none", "--no-report", "--weights")
    assert agnncert(*words, plain / "certified.safetensors", "--out", "runs/cut").status == 0
    again = ac.load_certificate("runs/cut/certificate.cert")
    assert again.claim.digests["model"] == cut.claim.digests["model"]
    assert np.array_equal(again.label, cut.label)
    assert agnncert("verify", "runs/cut", "--require", "data,model").status == 0
    before = agnncert(*words, plain / "weights.safetensors", "--out", "runs/before")
    assert before.status == 2, "its threshold would be dropped"
    assert f"agnncert score {plain} DATA" in before.err
    assert f"name {plain / 'certified.safetensors'}" in before.err


def test_new_data_is_scored_with_the_threshold_of_stacked_votes(agnncert, payments, plain) -> None:
    assert agnncert("certify", plain, "--set", "alerts=3", "--set", "targets=val", "--no-report").status == 0
    cut = ac.load_certificate(plain / "certificate.cert")
    answer = told(agnncert("score", plain, payments, "--json", "--certificate", "today.cert"))
    scored = ac.load_certificate("today.cert")
    assert answer["targets"] == len(scored) > len(cut)
    assert scored.claim.digests["model"] == cut.claim.digests["model"]
    for target in cut:
        assert (scored[target].label, scored[target].radius) == (cut[target].label, cut[target].radius)


def write_labelled(folder: Path, seed: int, others: int) -> None:
    """The same labelled nodes in every folder; a seed draws the edges, the other nodes and the order of rows."""
    fixed, rng = random.Random(0), random.Random(seed)
    parts = ("train", "train", "val")
    rows = [f"n{k},{k % 2 + fixed.gauss(0, 1):.3f},{('good', 'bad')[k % 2]},{parts[k % 3]}" for k in range(60)]
    rows += [f"m{k},{rng.gauss(0, 100):.3f},," for k in range(others)]
    names = [row.partition(",")[0] for row in rows]
    rng.shuffle(rows)
    edges = [",".join(rng.sample(names, 2)) for _ in range(4 * len(names))]
    folder.mkdir()
    (folder / "nodes.csv").write_text("\n".join(["id,a,label,split", *rows]) + "\n", encoding="utf-8")
    (folder / "edges.csv").write_text("\n".join(["source,target", *edges]) + "\n", encoding="utf-8")


def test_edge_blind_runs_are_the_same_to_the_bit_whatever_the_rest_of_the_tables_is(agnncert, place) -> None:
    weights = []
    for number, others in enumerate((30, 90, 15_001)):
        folder = f"tables-{number}"
        write_labelled(place / folder, seed=number, others=others)
        words = ["--division", "stacked", "--set", "defence.edge_blind=true", "--set", "defence.folds=2"]
        answer = agnncert("train", folder, *words, "--no-references", "--out", f"runs/{number}")
        assert answer.status == 0, answer.err
        weights.append(ac.load_model(f"runs/{number}/weights.safetensors").state_dict())
    for other in weights[1:]:
        assert list(other) == list(weights[0])
        assert all(torch.equal(value, weights[0][name]) for name, value in other.items())
