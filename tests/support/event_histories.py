"""Random histories of a live graph of payments: the law that what comes one by one equals the table with all of it.

A history sends the payments of a table in a random order, some again and again, in batches of all sizes, among events
that make no sense, through a random door each time (Python, the service, HTTP, a stream over HTTP, a topic), with
snapshots and restarts in between. At its end the live graph must be the graph that ``load_events`` makes of the table,
and its certificate must be what ``certify`` says about it.

    python -m tests.support.event_histories --count 10000 --state histories.json

tries as many as one likes, and goes on where it stopped. ``--show SEED`` runs one history.
"""

import argparse
import json
import logging
import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

import agnncert as ac
from agnncert_live import Event, LiveClient, LiveGraph, consume
from agnncert_live.service import Service
from agnncert_live.streams import TableRows
from tests.support.live import assert_same, certified
from tests.support.serving import served

ACCOUNTS = [f"acc-{number}" for number in range(7)]
STRANGERS = ["ext-1", "ext-2", "17", "ext 3"]
SHAPES = (
    ("log(count)", "mean(log(amount))", "log(sum(amount))", "mean(hour)", "mean(weekday)", "mean(channel)"),
    ("last(amount)", "max(amount)", "min(log(amount))", "sum(amount)", "last(channel)", "count"),
)
DOORS = ("python", "service", "http", "stream", "topic")
ROLES = {"source": "payer", "target": "payee", "event_time": "at", "event_key": "payment"}
Row = dict[str, Any]


def payment(rng: random.Random, number: int) -> Row:
    """A row of the table of events."""
    payer, payee = rng.sample(ACCOUNTS + STRANGERS if rng.random() < 0.5 else ACCOUNTS[:4], 2)
    moment = f"2026-01-{rng.randint(1, 28):02d}T{rng.choice((0, 6, 6, 6, 13, 23)):02d}:{rng.choice((0, 0, 59)):02d}:00"
    amount = rng.choice((round(rng.lognormvariate(3, 2), 2), 0.1, 0.3, 10, None))
    channel = rng.choice(("app", "web", "app", None))
    return {
        "payment": f"p{number}", "payer": payer, "payee": payee, "amount": amount, "channel": channel, "at": moment,
    }  # fmt: skip


def write(folder: Path, rows: list[Row]) -> None:
    """Writes the table of events, and the table of accounts."""
    names = ["payment", "payer", "payee", "amount", "channel", "at"]
    lines = [",".join("" if row[name] is None else str(row[name]) for name in names) for row in rows]
    (folder / "events.csv").write_text("\n".join([",".join(names), *lines]) + "\n", encoding="utf-8")
    accounts = [f"{name},{len(name) % 3},{'fraud' if k % 2 else 'honest'},train" for k, name in enumerate(ACCOUNTS)]
    (folder / "nodes.csv").write_text("\n".join(["id,age,label,split", *accounts]) + "\n", encoding="utf-8")


class World:
    """A frozen encoding and a trained model for each shape of edges, and one server for all histories."""

    def __init__(self, folder: Path, address: str, service: Service) -> None:
        self.folder = folder
        self.client = LiveClient(address)
        self.service = service
        rng = random.Random(0)
        self.trained = []
        for values in SHAPES:
            for directed in (True, False):
                write(folder, [payment(rng, number) for number in range(60)])
                data = ac.load_events(folder, values=values, directed=directed, encode={"amount": "number"}, **ROLES)
                votes = ac.StackedVotes(edge_values=True, combine="mean", epochs=3)
                self.trained.append((data.encoding, ac.fit(None, data, votes)))

    def load(self, rows: list[Row], encoding: Any) -> Any:
        """The graph of a table."""
        write(self.folder, rows)
        return ac.load_events(self.folder, encode=encoding, directed=encoding.events.directed, **ROLES)


@contextmanager
def world() -> Iterator[World]:
    """A world in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        service = Service(SimpleNamespace(number=0))  # type: ignore[arg-type]  # each history brings its own graph
        with served(service) as address:
            yield World(Path(folder), address, service)


def nonsense(rng: random.Random, rows: list[Row]) -> Row:
    """A row that is refused, sometimes under the key of a good one."""
    row = dict(rng.choice(rows))
    if rng.random() < 0.5:
        row["payment"] = f"bad-{rng.random()}"
    change = rng.choice(("payee", "amount", "at", "payer"))
    row[change] = {"payee": row["payer"], "amount": rng.choice((1e30, "much")), "at": "soon", "payer": ""}[change]
    return row


def as_event(row: Row) -> Row:
    """The row as an event in JSON."""
    columns = {name: row[name] for name in ("payment", "amount", "channel", "at")}
    return {"kind": "record_edge", "node": row["payer"], "other": row["payee"], "columns": columns}


class History:
    """One random history.

    Args:
        home: Encodings, models and the server.
        seed: Everything that is drawn.
    """

    def __init__(self, home: World, seed: int) -> None:
        self.home = home
        self.rng = random.Random(seed)
        self.encoding, self.model = self.rng.choice(home.trained)
        rows = [payment(self.rng, number) for number in range(self.rng.randint(6, 30))]
        cut = self.rng.randint(2, len(rows) - 1)
        self.rows = rows
        self.first = rows[:cut]
        self.sent = Counter[str]()
        self.journal = home.folder / "journal"
        self.offset = 0

    def run(self) -> None:
        """Sends everything, and compares.

        Raises:
            AssertionError: The live graph is another one than that of the table.
        """
        for file in self.home.folder.glob("journal*"):
            file.unlink()
        self.live = self._opened(self.home.load(self.first, self.encoding))
        try:
            for batch in self._batches():
                self._send(batch)
                if self.rng.random() < 0.1:
                    self.live.close()
                    self.live = self._opened(None)
                    self.sent["restarts"] += 1
            self._compare()
        finally:
            self.live.close()

    def _opened(self, data: Any) -> LiveGraph:
        every = self.rng.choice((1, 3, 1000))
        defence = self.model.defence
        return LiveGraph(self.model, data, defence, journal=self.journal, snapshot_every=every)

    def _batches(self) -> Iterator[list[Row]]:
        later = self.rows[len(self.first) :]
        sent = later + self.rng.choices(self.rows, k=self.rng.randint(0, len(self.rows)))
        sent += [nonsense(self.rng, self.rows) for _ in range(self.rng.randint(0, 4))]
        self.rng.shuffle(sent)
        while sent:
            size = self.rng.choice((1, 1, 2, 5, 20))
            yield sent[:size]
            sent = sent[size:]

    def _send(self, batch: list[Row]) -> None:
        door = self.rng.choice(DOORS)
        name = self.rng.choice((None, f"batch {self.rng.random()}"))
        again = 1 if name is None else self.rng.choice((1, 2))
        self.sent[door] += 1
        self.sent["events"] += len(batch)
        for _ in range(again):
            getattr(self, f"_by_{door}")(batch, name)

    def _by_python(self, batch: list[Row], name: str | None) -> None:
        events = []
        for row in batch:
            try:
                events.append(Event.from_json(as_event(row)))
            except ac.errors.AgnncertError:
                self.sent["refused"] += 1
        applied = self.live.apply(events, id=name, skip_bad=True, is_whole=len(events) == len(batch))
        self._count(len(applied.refused), applied.known)

    def _by_service(self, batch: list[Row], name: str | None) -> None:
        answer = Service(self.live).post([as_event(row) for row in batch], name)
        self._count(answer["refused_in_all"], answer["known"])

    def _by_http(self, batch: list[Row], name: str | None) -> None:
        self.home.service.live = self.live
        answer = self.home.client.apply([as_event(row) for row in batch], id=name)
        self._count(answer["refused_in_all"], answer["known"])

    def _by_stream(self, batch: list[Row], name: str | None) -> None:
        self.home.service.live = self.live
        answer = self.home.client.stream([as_event(row) for row in batch], id=name)
        self._count(answer["refused_in_all"], answer["known"])

    def _by_topic(self, batch: list[Row], name: str | None) -> None:
        read = TableRows("payer", "payee", self.encoding.events.column_names)
        messages = [json.dumps(row) for row in batch]
        if self.rng.random() < 0.5 and not any(self._is_bad(row) for row in batch):
            messages = [json.dumps(batch)]
        consumer = _Messages(messages, self.offset)
        self.offset += len(messages)
        letters: list[Any] = []
        consume(consumer, self.live, read=read, dead_letters=letters.append, running=lambda: bool(consumer.waiting))
        self._count(len(letters), 0)

    def _is_bad(self, row: Row) -> bool:
        return row not in self.rows

    def _count(self, refused: int, known: int) -> None:
        self.sent["refused"] += refused
        self.sent["known"] += known

    def _compare(self) -> None:
        rows = list(self.rows)
        self.rng.shuffle(rows)
        table = self.home.load(rows, self.encoding)
        now = self.live.data()
        place = {str(name): row for row, name in enumerate(_ids(now))}
        order = torch.tensor([place[str(name)] for name in _ids(table)])
        assert len(place) == table.num_nodes
        assert torch.equal(now.x[order], table.x)
        assert torch.equal(now.event_keys, table.event_keys)
        assert _edges(now) == _edges(table)  # values and totals, to the last bit
        certificate = self.live.certificate()
        assert_same(certificate, certified(self.live))
        expected = ac.certify(self.model, table, self.model.defence)
        claim = certificate.claim
        assert {**claim.digests, "graph": ""} == {**expected.claim.digests, "graph": ""}
        for name in expected.target.tolist():
            ours, theirs = certificate[name], expected[name]
            assert (ours.label, ours.radius, ours.degree) == (theirs.label, theirs.radius, theirs.degree), name
            assert np.array_equal(ours.votes, theirs.votes), name


def _ids(data: Any) -> list[Any]:
    return data.node_id.tolist() if torch.is_tensor(data.node_id) else list(data.node_id)


def _edges(data: Any) -> dict[tuple[str, str], tuple[list[float], list[int]]]:
    ids = _ids(data)
    ends = data.edge_index.T.tolist()
    rows = zip(ends, data.edge_attr.tolist(), data.edge_totals.tolist(), strict=True)
    return {(str(ids[u]), str(ids[v])): (values, totals) for (u, v), values, totals in rows}


class _Messages:
    """Messages of a topic, in memory."""

    def __init__(self, values: list[str], offset: int) -> None:
        self.waiting = list(enumerate(values, start=offset))

    def poll(self, timeout: float) -> Any:
        offset, value = self.waiting.pop(0)
        return SimpleNamespace(
            error=lambda: None, topic=lambda: "t", partition=lambda: 0, offset=lambda: offset, value=lambda: value
        )

    def commit(self, **_: Any) -> None:
        """Everything that was polled is done."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--state", type=Path, default=Path("histories.json"))
    parser.add_argument("--show", type=int)
    chosen = parser.parse_args()
    state = {"done": 0, "failed": [], "seconds": 0.0, "sent": {}}
    if chosen.state.exists():
        state = json.loads(chosen.state.read_text())
    sent = Counter(state["sent"])
    logging.disable(logging.WARNING)  # what becomes of bad messages is known
    with world() as home:
        if chosen.show is not None:
            History(home, chosen.show).run()
            return
        while state["done"] < chosen.count:
            begin = time.process_time()
            history = History(home, state["done"])
            try:
                history.run()
            except Exception as error:
                state["failed"].append([state["done"], f"{type(error).__name__}: {error!s:.300}"])
            sent += history.sent
            state |= {
                "done": state["done"] + 1,
                "seconds": state["seconds"] + time.process_time() - begin,
                "sent": sent,
            }
            if state["done"] % 20 == 0 or state["done"] == chosen.count:
                chosen.state.write_text(json.dumps(state, indent=1))
    print(json.dumps(state, indent=1))


if __name__ == "__main__":
    main()
