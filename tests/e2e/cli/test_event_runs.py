"""Tables of events from the command line: settings, the frozen encoding, cut-offs, scores, and what Python gives."""

import csv
import json
import re
import shutil
import tomllib
from collections import defaultdict
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

import agnncert as ac
from agnncert.cli import data, main, screen
from agnncert.cli.ages import ages_of_run, busiest_days, moved
from agnncert.cli.folder import RunFolder
from agnncert.cli.settings import stored_settings
from agnncert.controls.edge_values import WITH_VALUES
from agnncert.controls.trees import DAILY_TREES
from agnncert.datasets.generated_payments import write_payments
from agnncert.models.digest import model_digest

SETTINGS = """
[train]
nodes = "bank/nodes.csv"
events = "bank/events.csv"
name = "bank"
as_of = "2026-02-15"

[train.column]
id = "account"
label = "class"
label_time = "known_since"
source = "payer"
target = "payee"
event_time = "paid_at"
event_key = "payment"
"""
ROLES = {
    "id": "account", "label": "class", "label_time": "known_since", "source": "payer", "target": "payee",
    "event_time": "paid_at", "event_key": "payment",
}  # fmt: skip
QUICK = ("--model", "none", "--set", "defence.epochs=40", "--no-references")


def in_python(folder: Path, **settings):
    tables = {"nodes": folder / "nodes.csv", "events": folder / "events.csv"}
    return ac.load_events(**{**tables, **ROLES, **settings})


@pytest.fixture(scope="session")
def bank_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bank, and a certified run about it, of which tests get copies."""
    folder = tmp_path_factory.mktemp("bank")
    write_payments(folder / "bank", accounts=300, days=60, seed=1)
    (folder / "bank.toml").write_text(SETTINGS, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(["train", "--settings", "bank.toml", *QUICK, "--out", "run"]) == 0
        assert main(["certify", "run", "--set", "false_positive_rate=0.05", "--set", "positive=fraud"]) == 0
    return folder


@pytest.fixture
def bank(place: Path, bank_once: Path) -> Path:
    return Path(shutil.copytree(bank_once, place, dirs_exist_ok=True))


def test_the_command_line_trains_the_model_that_python_trains(bank) -> None:
    data = in_python(bank / "bank", as_of="2026-02-15")
    votes = ac.StackedVotes(edge_values=True, epochs=40)
    ours = ac.fit(None, data, votes, balance_classes=True)
    theirs = ac.load_model(bank / "run" / "weights.safetensors")
    assert bool(theirs.use_votes)
    assert model_digest(ours) == model_digest(theirs)
    chosen = ac.choose_threshold(ours, data, votes, false_positive_rate=0.05, positive="fraud").model
    assert model_digest(chosen) == model_digest(ac.load_model(bank / "run" / "certified.safetensors"))


def test_a_run_keeps_its_tables_and_its_encoding(agnncert, bank) -> None:
    shutil.rmtree("bank")
    assert sorted(file.name for file in Path("run/data").iterdir()) == ["events.csv", "nodes.csv"]
    assert agnncert("verify", "run", "--require", "data,model").status == 0
    stored = json.loads(Path("run/encoding.json").read_text())
    assert stored["events"]["values"][0] == "log(count)"
    about = json.loads(Path("run/data.json").read_text())
    assert about["as_of"] == "2026-02-15"
    assert about["events"] > 1000
    assert about["nodes_without_a_row"] > 0
    assert tomllib.loads(Path("run/settings.toml").read_text())["train"]["defence"]["edge_values"] is True


def test_score_reads_later_payments_with_the_encoding_of_the_run(agnncert, bank) -> None:
    later = ("--set", "nodes=bank/nodes.csv", "--set", "events=bank/events.csv")
    answer = agnncert("score", "run", *later, "--out", "all.csv", "--certificate", "all.cert")
    assert answer.status == 0, answer.err
    run = ac.load_certificate("run/certificate.cert")
    scored = ac.load_certificate("all.cert")
    assert scored.claim.digests["encoding"] == run.claim.digests["encoding"]
    data = in_python(Path("bank"), encode=Path("run/encoding.json"))
    model = ac.load_model("run/certified.safetensors")
    expected = ac.certify(model, data, model.defence)
    assert scored.label.tolist() == expected.label.tolist()
    assert scored.radius.tolist() == expected.radius.tolist()
    then = agnncert(
        "score", "run", *later, "--set", "as_of=2026-02-15", "--out", "then.csv", "--certificate", "then.cert"
    )
    assert then.status == 0, then.err
    before = ac.load_certificate("then.cert")
    assert before.claim.digests["graph"] == run.claim.digests["graph"]
    same = [before.position[name] for name in run.position]
    assert before.label[same].tolist() == run.label.tolist()


@pytest.mark.slow
def test_a_folder_of_files_goes_through_all_commands_as_one_file_does(agnncert, bank) -> None:
    rows = pd.read_csv("bank/events.csv")
    Path("parts/events").mkdir(parents=True)
    shutil.copy("bank/nodes.csv", "parts/nodes.csv")
    rows[:1000].to_csv("parts/events/1.csv", index=False)
    rows[1000:2000].to_parquet("parts/events/2.parquet", index=False)
    rows[2000:].to_csv("parts/events/3.csv", index=False)
    columns = [f"column.{name}={column}" for name, column in ROLES.items()]
    settings = [word for setting in columns for word in ("--set", setting)]
    cut = ("--set", "as_of=2026-02-15")
    assert agnncert("train", "parts", *settings, *cut, *QUICK, "--out", "cut").status == 0
    shutil.move("parts", "later")
    assert sorted(file.name for file in Path("cut/data/events").iterdir()) == ["1.csv", "2.parquet", "3.csv"]
    certified = agnncert("certify", "cut", "--set", "false_positive_rate=0.05", "--set", "positive=fraud")
    assert certified.status == 0, certified.err
    of_file, of_folder = (ac.load_certificate(f"{run}/certificate.cert") for run in ("run", "cut"))
    assert of_folder.claim.digests["graph"] == of_file.claim.digests["graph"]
    assert of_folder.radius.tolist() == of_file.radius.tolist()
    assert agnncert("verify", "cut", "--require", "data,model").status == 0
    for words in (("groups", "--by", "age"), ("groups", "--amount", "events:amount"), ("show",)):
        command, *more = words
        told = [agnncert(command, run, *more, "--json") for run in ("run", "cut")]
        assert [answer.status for answer in told] == [0, 0], told[1].err
        outcomes = [json.loads(answer.out) for answer in told]
        money = [outcome.pop("amounts", {}) for outcome in outcomes]
        assert outcomes[0] == outcomes[1]
        assert money[0] == pytest.approx(money[1]), "sums of floats may differ in their last digit"
    assert "days since the first event" in Path("cut/report.html").read_text(encoding="utf-8")
    for named in (("later",), ("--set", "nodes=later/nodes.csv", "--set", "events=later/events")):
        scored = agnncert("score", "cut", *named, *cut, "--out", "folder.csv")
        assert scored.status == 0, scored.err
        of_tables = ("--set", "nodes=bank/nodes.csv", "--set", "events=bank/events.csv")
        assert agnncert("score", "run", *of_tables, *cut, "--out", "file.csv").status == 0
        texts = [Path(name).read_text(encoding="utf-8") for name in ("folder.csv", "file.csv")]
        by_id = [{row["id"]: row for row in csv.DictReader(text.splitlines())} for text in texts]
        for row in (*by_id[0].values(), *by_id[1].values()):
            del row["run"], row["certificate_sha256"]
        assert by_id[0] == by_id[1]
    quick = ("--set", "epochs=2", "--set", "defence.epochs=3", "--set", "defence.folds=2")
    quick += ("--set", "keep=0.4", "--set", "keep_for=fraud")
    limits = ("--times", "2026-02-01,2026-02-20", "--false-positive-rate", 0.3)
    replayed = agnncert("backtest", "later", *limits, *settings, *quick, "--json")
    assert replayed.status in (0, 1), replayed.err
    assert [each["column"] for each in json.loads(replayed.out)["drift"]["2026-02-20"]] == ["amount"]


def test_commands_say_how_much_there_is_to_read_and_how_far_they_are(agnncert, bank, monkeypatch) -> None:
    monkeypatch.setattr(data, "WORTH_SAYING", 1)
    monkeypatch.setattr(screen, "_SECONDS_BETWEEN_LINES", 0.0)
    for words in (("certify", "run", "--no-report"), ("verify", "run"), ("score", "run", "bank", "--out", "s.csv")):
        answer = agnncert(*words)
        assert answer.status == 0, answer.err
        assert re.search(r"^reading the events of \S+ \(1 file, \d MB\)$", answer.out, re.MULTILINE)
        rows = re.search(r"^reading events.csv: (\d+) of \1", answer.err, re.MULTILINE)
        assert rows is not None
        assert int(rows[1]) == len(Path("bank/events.csv").read_text(encoding="utf-8").splitlines()) - 1
        assert "joining the events of each pair: " in answer.err


def test_ages_and_amounts_are_those_of_the_payments_before_the_date(agnncert, bank) -> None:
    first, total, last = {}, defaultdict(float), ""
    for row in csv.DictReader(Path("bank/events.csv").read_text(encoding="utf-8").splitlines()):
        if row["paid_at"] < "2026-02-15" and row["payer"] != row["payee"]:
            last = max(last, row["paid_at"])
            for end in ("payer", "payee"):
                first[row[end]] = min(first.get(row[end], row["paid_at"]), row["paid_at"])
                total[row[end]] += float(row["amount"])
    run = RunFolder("run")
    assert moved(run, "amount") == pytest.approx(total)
    until = datetime.fromisoformat(last)
    days = {name: (until - datetime.fromisoformat(at)) / timedelta(days=1) for name, at in first.items()}
    assert ages_of_run(run) == pytest.approx(days, abs=1e-6)
    later = ("--set", "nodes=bank/nodes.csv", "--set", "events=bank/events.csv")
    assert agnncert("score", "run", *later, "--out", "all.csv").status == 0
    scored = list(csv.DictReader(Path("all.csv").read_text(encoding="utf-8").splitlines()))
    certificate = ac.load_certificate("run/certificate.cert")
    then = np.array([days.get(name, np.nan) for name in certificate.target.tolist()])
    known = {each.name: each.recall.now for each in certificate.by_group(list(ac.ranges(then))).groups}
    assert {row["age_range"] for row in scored} <= {*known, ""}
    assert len({row["age_range"] for row in scored} - {""}) > 1
    for row in scored:
        if row["age_range"] and known[row["age_range"]] == known[row["age_range"]]:
            assert float(row["recall_in_age_range"]) == pytest.approx(known[row["age_range"]])


@pytest.mark.slow
def test_trees_read_the_busiest_days_and_the_undefended_gnn_the_values_of_payments(agnncert, bank) -> None:
    words = ("--settings", "bank.toml", "--model", "none", "--set", "defence.epochs=4", "--set", "epochs=4")
    assert agnncert("train", *words, "--set", "cut_off=2026-02-01", "--out", "beside").status == 0
    certified = agnncert("certify", "beside")
    assert certified.status == 0, certified.err
    assert DAILY_TREES in certified.out
    assert WITH_VALUES in certified.out
    days = defaultdict(lambda: defaultdict(list))
    for row in csv.DictReader(Path("bank/events.csv").read_text(encoding="utf-8").splitlines()):
        if row["paid_at"] < "2026-02-01" and row["payer"] != row["payee"]:
            for place, end in enumerate(("payer", "payee")):
                days[row[end], place][row["paid_at"][:10]].append(float(row["amount"]))
    ids = ["nobody", *sorted({name for name, _ in days})]
    settings = replace(stored_settings(RunFolder("beside")), as_of="2026-02-01")
    found = busiest_days(settings, Path("bank/events.csv"), ["amount"], ids)
    for name, row in zip(ids, found, strict=True):
        for place in (0, 1):
            own = days[name, place].values()
            expected = (max(map(len, own), default=0), max(map(sum, own), default=0.0))
            assert row[2 * place : 2 * place + 2] == pytest.approx(expected)
    assert (
        busiest_days(
            replace(settings, column={"source": "payer", "target": "payee"}, as_of=None),
            Path("bank/events.csv"),
            [],
            ids,
        )
        is None
    )


def test_training_sees_nothing_after_the_cut_off(agnncert, bank) -> None:
    words = ("--settings", "bank.toml", *QUICK, "--set", "cut_off=2026-02-01")
    assert agnncert("train", *words, "--out", "cut").status == 0
    assert agnncert("certify", "cut").status == 0
    past = in_python(bank / "bank", as_of="2026-02-15", cut_off="2026-02-01")
    model = ac.fit(None, past, ac.StackedVotes(edge_values=True, epochs=40), balance_classes=True)
    trained = ac.load_model("cut/weights.safetensors")
    assert model_digest(model) == model_digest(trained)
    now = in_python(bank / "bank", as_of="2026-02-15", encode=past.encoding)
    certificate = ac.load_certificate("cut/certificate.cert")
    expected = ac.certify(model, now, model.defence, targets=now.test_mask)
    assert certificate.radius.tolist() == expected.radius.tolist()
    assert certificate.claim.digests["graph"] == expected.claim.digests["graph"]
    assert past.edge_index.size(1) < now.edge_index.size(1)
    assert agnncert("verify", "cut", "--require", "data,model").status == 0


def test_own_values_of_edges(agnncert, bank) -> None:
    values = "edge_value=count,last(amount),mean(hour)"
    assert agnncert("train", "--settings", "bank.toml", *QUICK, "--set", values, "--out", "own").status == 0
    stored = json.loads(Path("own/encoding.json").read_text())
    assert stored["events"]["values"] == ["count", "last(amount)", "mean(hour)"]
    data = in_python(bank / "bank", as_of="2026-02-15", values=["count", "last(amount)", "mean(hour)"])
    model = ac.load_model("own/weights.safetensors")
    assert torch.allclose(model.edge_center, data.edge_attr.mean(dim=0), rtol=1e-4)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--set repeated=sum", '"repeated" is for tables of edges'),
        ("--set edge_feature=amount", '"edge_feature" is for tables of edges'),
        ("--set edge_value=total(amount)", "cannot be read"),
        ("--set as_of=yesterday", "expected a date"),
        ("--set column.event_tim=paid_at", "event_time"),
    ],
)
def test_settings_that_make_no_sense_are_refused(agnncert, bank, words, said) -> None:
    answer = agnncert("train", "--settings", "bank.toml", *QUICK, *words.split())
    assert answer.status == 2
    assert said in answer.err


def test_settings_of_events_are_refused_for_edges(agnncert, place) -> None:
    for words in ("as_of=2026-01-01", "cut_off=2026-01-01", "edge_value=count", "column.event_time=at"):
        answer = agnncert("train", "tables", "--set", words)
        assert answer.status == 2
        assert "for tables of events" in answer.err, words


def test_a_folder_with_both_tables_is_refused(agnncert, place, bank) -> None:
    shutil.copy("bank/events.csv", "tables/events.csv")
    answer = agnncert("train", "tables")
    assert answer.status == 2
    assert "say which" in answer.err


def test_a_class_that_is_not_rare_enough_to_be_noticed_is_found_all_the_same(agnncert, place) -> None:
    """Of two classes, 7.5 % or more are not rare: training by accuracy alone would leave all accounts honest."""
    rng = np.random.default_rng(3)
    is_fraud = rng.random(300) < 0.12
    lines = []
    for account, bad in enumerate(is_fraud):
        for _ in range(rng.integers(3, 10)):
            amount = rng.lognormal(5.0 if bad else 4.0, 0.8)
            lines.append(f"{rng.integers(300)},{account},{amount:.2f},2026-01-{rng.integers(1, 29):02d}")
    Path("events.csv").write_text("\n".join(["source,target,amount,day", *lines]) + "\n", encoding="utf-8")
    labels = [f"{account},{int(bad)}" for account, bad in enumerate(is_fraud)]
    Path("nodes.csv").write_text("\n".join(["id,label", *labels]) + "\n", encoding="utf-8")
    trained = agnncert("train", ".", "--set", "column.event_time=day", "--no-references", "--out", "mine")
    assert trained.status == 0, trained.err
    chosen = agnncert("certify", "mine", "--set", "false_positive_rate=0.1", "--set", "positive=1", "--no-report")
    assert chosen.status == 0, chosen.err
    assert bool(ac.load_model("mine/weights.safetensors").use_votes)


def test_an_explained_decision_says_payments_as_the_table_has_them(agnncert, bank) -> None:
    payments = defaultdict(list)
    for row in csv.DictReader(Path("bank/events.csv").read_text(encoding="utf-8").splitlines()):
        if row["paid_at"] < "2026-02-15":
            payments[row["payer"], row["payee"]].append(float(row["amount"]))
    target = ac.load_certificate("run/certificate.cert").target.tolist()[0]
    answer = agnncert("explain", "run", target)
    assert answer.status == 0
    assert "edge_attr" not in answer.out
    shown = re.findall(r"(\S+) → (\S+) \(([\d,]+) events?, typical amount \S+, sum of amount ([\d.,]+),", answer.out)
    assert shown
    for payer, payee, number, total in shown:
        assert int(number) == len(payments[payer, payee])
        assert float(total.replace(",", "")) == pytest.approx(sum(payments[payer, payee]), rel=1e-3)
    partners = {frozenset(pair) for pair in payments if target in pair}
    assert {frozenset(pair[:2]) for pair in shown} == partners
