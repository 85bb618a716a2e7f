"""The whole tutorial about payments: every command of the page, with the service, a topic and a receiver of alerts."""

import json
import re
import shutil
import subprocess
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pandas as pd
import pytest

import agnncert as ac
from agnncert_live import LiveClient
from tests.support import programs
from tests.support.doc_blocks import blocks_of, commands_of, require_output, run_page
from tests.support.paths import PROJECT
from tests.support.receiver import receiver

PAGE = PROJECT / "docs" / "tutorials" / "payments.md"
ADDRESS = "http://127.0.0.1:8470"
RECEIVER = "http://127.0.0.1:9000"
BROKER = "127.0.0.1:9092"


def waited(question, seconds=60):
    """The first answer that is true."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        answer = question()
        if answer:
            return answer
        time.sleep(0.1)
    raise AssertionError(f"nothing happened in {seconds} seconds")


@contextmanager
def broker():
    """A broker that speaks Kafka's protocol over TCP, which librdkafka brings, and a producer of its topics."""
    kafka = pytest.importorskip("confluent_kafka")
    producer = kafka.Producer({"test.mock.num.brokers": 1, "log_level": 0})
    one = next(iter(producer.list_topics(timeout=10).brokers.values()))
    yield f"{one.host}:{one.port}", producer


def send(producer, *messages):
    for message in messages:
        producer.produce("payments", json.dumps(message).encode(), partition=0)
    assert producer.flush(10) == 0


def run_openssl(block):
    for command, output in commands_of(block):
        done = subprocess.run(command.split(), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        if output:
            require_output(done.stdout, output, str(block))


@contextmanager
def serving(command, addresses, log):
    """The page's own command, at a port that is free, with the addresses of this test."""
    for stated, real in addresses.items():
        assert stated in command
        command = command.replace(stated, real)
    program, *words = command.split()
    assert program == "agnncert"
    one_thread = {"OMP_NUM_THREADS": "1"}
    with (
        log.open("w") as err,
        programs.start(programs.AGNNCERT, *words, "--port", 0, stderr=err, environment=one_thread) as process,
    ):
        try:
            line = process.stdout.readline()
            found = re.search(r"http://[\d.:]+", line)
            assert found, line + log.read_text()
            yield found[0], line
        finally:
            process.terminate()


def night_payments(number):
    """Payments that look like fraud: many senders, one receiver, large amounts, at night."""
    for k in range(number):
        yield {
            "payment": f"q{k}", "payer": f"acc-{100 + k:06d}", "payee": "acc-000009", "amount": 800.0 + k,
            "paid_at": f"2026-03-24T03:{k:02d}:00",
        }  # fmt: skip


def rows_sent(page_event, page_row, later):
    first = {"payment": "p9000001", "payer": page_event["node"], "payee": page_event["other"], **page_event["columns"]}
    return pd.DataFrame([first, page_row, *later])


@pytest.mark.slow
def test_every_command_of_the_page(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = blocks_of(PAGE)
    row = json.loads(re.search(r"```json\n(.+?)\n```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[1])
    names: dict[str, object] = {}
    left_out = []
    with ExitStack() as stack:
        url, alerts = stack.enter_context(receiver())
        place, producer = stack.enter_context(broker())
        for block in blocks:
            if block.mark != "not run":
                run_page([block], has_data=False)
            elif "openssl" in block.text:
                run_openssl(block)
            elif "agnncert serve" in block.text:
                [(command, said)] = commands_of(block)
                addresses = {RECEIVER: url, BROKER: place}
                service = stack.enter_context(serving(command, addresses, tmp_path / "serve.log"))
                names["address"], line = service
                require_output(line.replace(names["address"], ADDRESS), said, str(block))
            elif "LiveClient" in block.text:
                assert ADDRESS in block.text
                exec(block.text.replace(ADDRESS, names["address"]), names)
                assert names["answer"]["applied"] == 1
                follow_the_stream(names, row, producer, alerts)
            else:
                left_out.append(block.text)
    assert len(left_out) == 1
    assert left_out[0].startswith("$ pip install")
    assert len(pd.read_csv("new.csv")) > 0
    assert set(pd.read_csv("new.csv")["id"]) <= set(pd.read_csv("after.csv")["id"]) - set(
        pd.read_csv("before.csv")["id"]
    )
    assert "</html>" in Path("week.html").read_text(encoding="utf-8")


def follow_the_stream(names, row, producer, alerts) -> None:
    """Messages of the topic are applied beside requests; decisions are those of a table with all payments."""
    client = LiveClient(names["address"])
    send(producer, row)
    waited(lambda: client.summary()["events"] == 2)
    later = list(night_payments(12))
    send(producer, later[:6], *later[6:], {"payer": "acc-000001"})  # a list of rows, single rows, and no row at all
    waited(lambda: client.summary()["events"] == 2 + len(later))
    letters = waited(lambda: [path for path in [Path("runs/bank/live.journal.dead-letters")] if path.exists()])
    assert "lacks the column 'payee'" in letters[0].read_text()
    shutil.copytree("bank", "with-live")
    whole = pd.read_csv("bank/events.csv")
    sent = rows_sent(names["event"], row, later)
    pd.concat([whole[whole["paid_at"] < "2026-03-24"], sent]).to_csv("with-live/events.csv", index=False)
    data = ac.load_events(
        "with-live", encode=Path("runs/bank/encoding.json"), id="account", label=None, source="payer",
        target="payee", event_key="payment",
    )  # fmt: skip
    model = ac.load_model("runs/bank/certified.safetensors")
    expected = ac.certify(model, data, model.defence)
    client.certificate("now.cert")
    now = ac.load_certificate("now.cert")
    assert {name: (int(now.label[k]), int(now.radius[k])) for name, k in now.position.items()} == {
        name: (int(expected.label[k]), int(expected.radius[k])) for name, k in expected.position.items()
    }
    changes = client.changes()
    assert changes  # so that there is something to be told
    told = waited(lambda: [body for _, _, body in alerts])
    targets = {one["target"] for body in told for one in body["targets"]}
    assert targets & {change["target"] for change in changes}
    assert [path for path, _, _ in alerts] == ["/alerts"] * len(alerts)
