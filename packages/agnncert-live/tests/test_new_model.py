"""A new model goes on with the journal of an earlier one: nothing that was acknowledged is lost, nothing counts twice."""

from dataclasses import replace

import pandas as pd
import pytest

import agnncert as ac
from agnncert.datasets.generated_payments import write_payments
from agnncert_live import Event, JournalError, LiveGraph
from agnncert_live.graph import OldJournal
from agnncert_live.journal import Journal
from tests.support.live import assert_current
from tests.support.small_graphs import plain_model, random_graph

ROLES = {
    "id": "account", "label": "class", "source": "payer", "target": "payee", "event_time": "paid_at",
    "event_key": "payment",
}  # fmt: skip
DAY, LATER = "2026-01-16", "2026-01-22"


def load(folder, **settings):
    return ac.load_events(folder, **ROLES, features=["age"], **settings)


def as_event(payment) -> Event:
    columns = {"payment": payment.payment, "amount": payment.amount, "paid_at": payment.paid_at}
    return Event("record_edge", payment.payer, payment.payee, columns=columns)


@pytest.fixture(scope="module")
def bank(tmp_path_factory):
    """Two models of a bank, the encoding of both, and payments that neither has seen."""
    folder = write_payments(tmp_path_factory.mktemp("new") / "bank", accounts=120, days=30, seed=4)
    payments = pd.read_csv(folder / "events.csv")
    data = load(folder, as_of=DAY)
    later = load(folder, as_of=LATER, encode=data.encoding)
    models = [
        ac.fit(None, part, ac.StackedVotes(edge_values=True, combine="mean", epochs=epochs))
        for part, epochs in ((data, 10), (later, 20))
    ]
    events = [as_event(payment) for payment in payments[payments["paid_at"] >= DAY][:120].itertuples()]
    return folder, data, models, events


@pytest.fixture
def old(bank, tmp_path):
    """The journal of the first model after 60 payments, and what the second one needs to know."""
    _, data, (first, _), events = bank
    with LiveGraph(first, data, first.defence, journal=tmp_path / "old", snapshot_every=25) as live:
        for number, event in enumerate(events[:60]):
            live.apply(event, id=f"payment {number}")
    return OldJournal(tmp_path / "old", data.encoding, tuple(data.class_names))


def opened(bank, old, journal, **settings):
    second = bank[2][1]
    return LiveGraph(second, None, second.defence, journal=journal, old_journal=old, **settings)


def values_by_pair(data):
    ids = data.node_id
    ends = data.edge_index.T.tolist()
    rows = zip(ends, data.edge_attr.tolist(), data.edge_totals.tolist(), strict=True)
    return {(ids[u], ids[v]): (values, totals) for (u, v), values, totals in rows}


def test_it_begins_with_graph_keys_and_ids_and_goes_on(bank, old, tmp_path) -> None:
    folder, data, (_, second), events = bank
    with opened(bank, replace(old, known={"acc-000003": 1}), tmp_path / "new") as live:
        assert live.number == 60
        assert_current(live)
        assert live.apply(events[3], id="payment 3").repeated  # the old service had acknowledged it
        assert live.apply(events[4], id="another id").known == 1  # its key has counted
        assert live.truth[live.targets.tolist().index("acc-000003")] == 1
        for number, event in enumerate(events[50:90], start=50):  # the client does not know where the old one ended
            live.apply(event, id=f"payment {number}")
        assert live.number == 90
    with opened(bank, old, tmp_path / "new") as live:  # as a service is started again, with the same options
        assert live.number == 90
        assert live.apply(events[3], id="payment 3").repeated
        for number, event in enumerate(events[90:], start=90):
            live.apply(event, id=f"payment {number}")
        assert live.number == 120
        assert_current(live)
        until = (pd.Timestamp(events[-1].columns["paid_at"]) + pd.Timedelta(seconds=1)).isoformat()
        table = load(folder, as_of=until, encode=data.encoding)
        assert values_by_pair(live.data()) == values_by_pair(table)  # to the last bit
        whole = ac.certify(second, table, second.defence)
        for name, label, radius in zip(whole.target, whole.label, whole.radius, strict=True):
            decision = live[name]
            assert (decision.label, decision.radius) == (label, radius)


@pytest.mark.parametrize("step", ["save", "remember"])
def test_a_crash_while_it_takes_over_loses_nothing(bank, old, tmp_path, monkeypatch, step) -> None:
    def breaks(self, *_):
        raise JournalError("the disk is full")

    monkeypatch.setattr(Journal, step, breaks)
    with pytest.raises(JournalError, match="disk is full"):
        opened(bank, old, tmp_path / "new")
    monkeypatch.undo()
    with opened(bank, old, tmp_path / "new") as live:
        assert live.number == 60
        assert live.apply(bank[3][3], id="payment 3").repeated


def test_what_does_not_fit_is_refused_and_begins_nothing(bank, old, tmp_path) -> None:
    folder, _, (first, _), _ = bank
    other = load(folder, as_of=LATER).encoding
    wrong = {
        "written with another encoding": replace(old, encoding=other),
        "trained with, so its numbers": replace(old, encoding=None),
        "has the classes": replace(old, class_names=("a", "b")),
        "there is no journal": replace(old, path=tmp_path / "missing"),
    }
    for message, journal in wrong.items():
        with pytest.raises(JournalError, match=message):
            opened(bank, journal, tmp_path / "new")
    with (
        LiveGraph(first, None, first.defence, journal=old.path),
        pytest.raises(JournalError, match="in use by another process"),
    ):
        opened(bank, old, tmp_path / "new")
    with opened(bank, old, tmp_path / "new") as live:
        assert live.number == 60


def test_a_journal_without_tables_can_be_taken_over(tmp_path) -> None:
    data = random_graph(12, 16)
    division = ac.EdgeCentric(5)
    with LiveGraph(plain_model(), data, division, journal=tmp_path / "old") as live:
        live.apply(Event("add_node", 12, value=[1.0] * 5), id="a")
        then = live.data()
    other = ac.NodeCentric(4)
    with LiveGraph(
        plain_model(), None, other, journal=tmp_path / "new", old_journal=OldJournal(tmp_path / "old")
    ) as live:
        assert live.number == 1
        assert sorted(live.data().edge_index.T.tolist()) == sorted(then.edge_index.T.tolist())
        assert_current(live)
