"""A month at a fraud desk, by commands alone: drift is noticed, a threshold chosen anew, a model replaced under load."""

import json
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import agnncert as ac
from agnncert.cli import main
from agnncert.datasets.generated_payments import write_payments
from agnncert_live import LiveClient
from agnncert_live.run import ServedRun, listen, service_of_run
from tests.support import programs
from tests.support.serving import sent

BEGIN, DRIFT, END = "2026-02-16", "2026-02-23", "2026-03-09"  # the month has a quiet week and two others
SETTINGS = """
[train]
nodes = "bank/nodes.csv"
events = "bank/events.csv"
model = "none"
keep = 0.5
keep_for = "fraud"
references = false

[train.column]
id = "account"
label = "class"
label_time = "known_since"
source = "payer"
target = "payee"
event_time = "paid_at"
event_key = "payment"

[train.defence]
epochs = 40
"""
ROLES = {
    "id": "account", "label": "class", "label_time": "known_since", "source": "payer", "target": "payee",
    "event_time": "paid_at", "event_key": "payment",
}  # fmt: skip


def write_bank(folder: Path) -> pd.DataFrame:
    """Writes a bank in which, for the last two weeks, honest accounts get what looks like the money of victims."""
    write_payments(folder, accounts=500, days=67, seed=4)
    usual = pd.read_csv(folder / "events.csv")
    rng = np.random.default_rng(0)
    names = usual["payee"][usual["payee"].str.startswith("acc-")].unique()
    receivers = np.repeat(rng.permutation(names)[:150], 4)
    days = pd.Timestamp(DRIFT) + pd.to_timedelta(rng.uniform(0, 14, len(receivers)), unit="D")
    nights = days.floor("D") + pd.to_timedelta(rng.uniform(0, 5, len(receivers)), unit="h")
    new = pd.DataFrame(
        {
            "payment": [f"d{number:05d}" for number in range(len(receivers))],
            "payer": rng.choice(names, len(receivers)),
            "payee": receivers,
            "amount": np.exp(rng.normal(5.0, 0.8, len(receivers))).round(2),
            "paid_at": pd.Series(nights).dt.strftime("%Y-%m-%dT%H:%M:%S"),
        }
    )
    new = new[new["payer"] != new["payee"]]
    table = pd.concat([usual, new]).sort_values("paid_at", kind="stable")
    table.to_csv(folder / "events.csv", index=False)
    return table


def as_event(payment: Any) -> dict[str, Any]:
    columns = {"payment": payment.payment, "amount": payment.amount, "paid_at": payment.paid_at}
    return {"kind": "record_edge", "node": payment.payer, "other": payment.payee, "columns": columns}


@contextmanager
def serving(*words: object, port: int) -> Iterator[LiveClient]:
    """A service, once it is ready, which is ended as systemd ends it."""
    program = [programs.AGNNCERT, "serve", *words, "--port", port, "--rate", 100_000]
    with Path("err").open("a") as err, programs.start(*program, stderr=err) as process:
        try:
            line = process.stdout.readline()
            assert "answers" in line, line + Path("err").read_text()
            yield LiveClient(f"http://127.0.0.1:{port}", timeout=120)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


def said(capsys: Any, *words: object, status: int = 0) -> str:
    """What a command prints, if it ends as expected."""
    ended = main(list(map(str, words)))
    printed = capsys.readouterr()
    assert ended == status, printed.err
    return str(printed.out)


def asked(client: LiveClient, path: str, body: Any = None) -> Any:
    """An answer as JSON, whatever its status."""
    stated = None if body is None else json.dumps(body).encode()
    return json.loads(sent(client.url, path, stated, {"content-type": "application/json"})[1])


class Payer(threading.Thread):
    """Posts payments one by one until the service has acknowledged each; every fifth is sent twice."""

    def __init__(self, url: str, payments: list[dict[str, Any]]) -> None:
        super().__init__(daemon=True)
        self.client = LiveClient(url, timeout=30, tries=1)
        self.payments = payments
        self.acknowledged = 0
        self.failures = 0
        self.refused: list[Any] = []
        self.is_stopped = False

    def run(self) -> None:
        for number, payment in enumerate(self.payments):
            for _ in range(2 if number % 5 == 0 else 1):
                self._post(payment)
            self.acknowledged += 1

    def _post(self, payment: dict[str, Any]) -> None:
        while not self.is_stopped:
            try:
                self.refused += self.client.apply([payment], id=payment["columns"]["payment"])["refused"]
                return
            except (ac.errors.AgnncertError, OSError):  # nobody is there, or it is starting
                self.failures += 1
                time.sleep(0.1)


def edges_of(data: Any) -> dict[tuple[str, str], list[int]]:
    ends = data.edge_index.T.tolist()
    return {
        (data.node_id[u], data.node_id[v]): row for (u, v), row in zip(ends, data.edge_totals.tolist(), strict=True)
    }


def flagged_in(run: str) -> int:
    """How many targets the certificate of a run flags."""
    certificate = ac.load_certificate(f"{run}/certificate.cert")
    return int((certificate.label == certificate.claim.threshold.positive).sum())


@pytest.mark.slow
def test_drift_is_noticed_a_threshold_chosen_anew_and_models_replaced_under_load(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    payments = write_bank(tmp_path / "bank")
    (tmp_path / "bank.toml").write_text(SETTINGS)
    with listen("127.0.0.1", 0) as free:
        port = free.getsockname()[1]

    # Day 1: train, choose a threshold, certify, serve.
    said(capsys, "train", "--settings", "bank.toml", "--set", f"as_of={BEGIN}", "--out", "june")
    said(capsys, "certify", "june", "--false-positive-rate", 0.2, "--no-report")
    happened = payments["paid_at"]
    quiet = [as_event(row) for row in payments[(happened >= BEGIN) & (happened < DRIFT)].itertuples()]
    later = [as_event(row) for row in payments[happened >= DRIFT].itertuples()]
    single = later[-160:]
    with serving("june", "--journal", "june.journal", port=port) as client:
        # A quiet week passes without an alarm, and two weeks of drift do not.
        client.apply(quiet, id="quiet")
        assert asked(client, "/rates")["alarms"] == []
        client.apply(later[:-160], id="later")
        noticed = asked(client, "/rates")
        assert noticed["alarms"] == ["alerts"]
        assert sent(client.url, "/rates")[0] == 503
        assert 'agnncert_rate_alarm{rate="alerts"} 1' in client.metrics()
        # Somebody looks at them: accounts that are flagged are honest.
        flagged = [each["target"] for each in client.closest(1000) if each["label"] == "fraud"]
        found = [{"target": name, "class": "honest"} for name in flagged if name.startswith("acc-")][:60]
        assert "false_positives" in asked(client, "/confirmed", {"confirmed": found})["alarms"]

    # A threshold anew on the same weights, which is another certified model.
    shutil.copytree("june", "june-2")
    said(capsys, "certify", "june-2", "--false-positive-rate", 0.02, "--no-report")
    assert flagged_in("june-2") < flagged_in("june")
    with serving("june-2", "--journal", "june-2.journal", "--from-journal", "june.journal", port=port) as client:
        assert client.summary()["events"] == len(quiet) + len(later) - 160
        payer = Payer(client.url, single)
        payer.start()
        # The last day: train anew on what has happened since, while payments go on.
        anew = ("--set", f"as_of={END}", "--set", "encode=june/encoding.json")
        said(capsys, "train", "--settings", "bank.toml", *anew, "--out", "july")
        said(capsys, "certify", "july", "--false-positive-rate", 0.05, "--no-report")
        assert "fraud" in said(capsys, "show", "july")
        payer.is_stopped = payer.acknowledged == len(single)
    rest = Payer(client.url, single)  # payments that nobody answers are sent again
    rest.start()
    time.sleep(1)
    with serving("july", "--journal", "july.journal", "--from-journal", "june-2.journal", port=port) as client:
        rest.join(120)
        payer.join(120)
        assert rest.failures > 0  # it was under load while nothing answered
        assert (rest.acknowledged, payer.acknowledged) == (len(single), len(single))
        assert (rest.refused, payer.refused) == ([], [])
        assert client.summary()["events"] == len(quiet) + len(later)  # each counts once
        client.certificate("now.cert")

    # What is certified now is what the table with all payments gives.
    said(capsys, "verify", "now.cert")
    tables = {"nodes": "bank/nodes.csv", "events": "bank/events.csv"}
    table = ac.load_events(**tables, **ROLES, encode=Path("july/encoding.json"))
    service = service_of_run(ServedRun("july", "july.journal"))
    with service.live as live:
        assert edges_of(live.data()) == edges_of(table)
    model = ac.load_model("july/certified.safetensors")
    whole, now = ac.certify(model, table, model.defence), ac.load_certificate("now.cert")
    radius = dict(zip(now.target, zip(now.label, now.radius, strict=True), strict=True))
    expected = dict(zip(whole.target, zip(whole.label, whole.radius, strict=True), strict=True))
    assert radius == expected
