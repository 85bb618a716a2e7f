"""Groups from the command line: by degree, by a column, by any table, and by age."""

import json

import agnncert as ac
from agnncert.cli.ages import ages
from agnncert.cli.settings import DataSettings
from agnncert.datasets.generated_payments import write_payments
from tests.support.commands import write_tables


def told(answer):
    assert answer.status == 0, answer.err
    return json.loads(answer.out)


def test_groups_of_a_run(agnncert, place) -> None:
    folder = write_tables(place / "tables", nodes=90)
    rows = (folder / "nodes.csv").read_text().splitlines()
    kinds = ["region", *("north" if k % 3 else "south" for k in range(len(rows) - 1))]
    (folder / "nodes.csv").write_text("\n".join(f"{row},{kind}" for row, kind in zip(rows, kinds, strict=True)) + "\n")
    titles = rows[0].split(",")
    features = ",".join(name for name in titles if name not in ("id", "label", "split"))
    settings = ("--groups", 4, "--epochs", 2, "--no-references", "--set", f"feature={features}")
    assert agnncert("train", folder, *settings, "--out", "run").status == 0
    assert agnncert("certify", "run", "--no-report").status == 0
    certificate = ac.load_certificate(place / "run" / "certificate.cert")
    by_degree = told(agnncert("groups", "run", "--budget", "add_edges=1", "--json"))
    assert sum(group["recall"]["targets"] + group["false_positives"]["targets"] for group in by_degree["groups"]) == (
        certificate.labelled.sum()
    )
    assert by_degree["together"]
    by_region = told(agnncert("groups", "run", "--by", "region", "--json"))
    assert {group["group"] for group in by_region["groups"]} == {"north", "south"}
    ids = certificate.target.tolist()
    lines = ["id,amount", *(f"{name},{k}" for k, name in enumerate(ids))]
    (place / "amounts.csv").write_text("\n".join(lines) + "\n")
    by_amount = told(agnncert("groups", "run/certificate.cert", "--by", "amounts.csv:amount", "--json"))
    assert len(by_amount["groups"]) == 4
    money = told(agnncert("groups", "run", "--amount", "amounts.csv:amount", "--positive", "0", "--json"))["amounts"]
    assert money["total"] == sum(k for k, true in enumerate(certificate.truth.tolist()) if true == 0)
    assert money["certified"] <= money["found"] <= money["total"]
    assert "expected FILE:COLUMN" in agnncert("groups", "run", "--amount", "amount").err
    text = agnncert("groups", "run").out
    assert "gap of false positives" in text
    for by, said in (("age", "no table of events"), ("nothing", 'no column "nothing"')):
        answer = agnncert("groups", "run", "--by", by)
        assert answer.status == 2
        assert said in answer.err or "have no time" in answer.err


def test_an_age_begins_with_the_first_event(tmp_path):
    (tmp_path / "events.csv").write_text("source,target,day\na,b,5\nb,c,1\na,c,9\nc,c,20\n")
    found = ages(DataSettings(column={"event_time": "day"}), tmp_path / "events.csv")
    assert found == {"a": 4.0, "b": 8.0, "c": 8.0}
    found = ages(DataSettings(column={"event_time": "day"}, as_of="9"), tmp_path / "events.csv")
    assert found == {"a": 0.0, "b": 4.0, "c": 4.0}


def test_a_backtest_of_generated_payments(agnncert, place) -> None:
    write_payments(place / "bank", accounts=500, days=80, seed=4)
    columns = {
        "id": "account", "label": "class", "label_time": "known_since", "source": "payer", "target": "payee",
        "event_time": "paid_at", "event_key": "payment",
    }  # fmt: skip
    settings = [f"column.{name}={column}" for name, column in columns.items()]
    settings += ["epochs=3", "defence.epochs=4", "defence.folds=2", "keep=0.4", "keep_for=fraud"]
    words = [word for setting in settings for word in ("--set", setting)]
    times = "2026-02-10,2026-03-01,2026-03-20"
    limits = ("--false-positive-rate", 0.3, "--confidence", 0.8, "--typology", "country")
    answer = agnncert("backtest", "bank", "--times", times, *limits, *words, "--out", "back.json", "--json")
    assert answer.status in (0, 1), answer.err
    told = json.loads(answer.out)
    assert json.loads((place / "back.json").read_text()) == told
    assert answer.status == (1 if told["alarms"] else 0)
    assert [each["model"] for each in told["periods"]].count("trained anew") == 2
    assert set(told["drift"]) == {"2026-03-01", "2026-03-20"}
    assert {each["column"] for each in told["drift"]["2026-03-20"]} == {"amount"}
    for wrong, said in (
        (("--times", "2026-02-10"), "at least two"),
        (("--times", times, "--set", "as_of=2026-03-01"), "follow from --times"),
        (("--times", times, "--set", "split_by=class"), "by ids"),
    ):
        refused = agnncert("backtest", "bank", *wrong, *words)
        assert refused.status == 2
        assert said in refused.err
