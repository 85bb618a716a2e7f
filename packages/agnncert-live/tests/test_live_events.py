"""A live graph whose edges stand for events: one by one they give what a table with all of them gives."""

import sqlite3

import pandas as pd
import pytest
import safetensors.numpy
import torch

import agnncert as ac
from agnncert.datasets.generated_payments import write_payments
from agnncert.errors import GraphError
from agnncert_live import Event, LiveGraph, graph
from tests.support.live import assert_current, certified

ROLES = {
    "id": "account", "label": "class", "source": "payer", "target": "payee", "event_time": "paid_at",
    "event_key": "payment",
}  # fmt: skip
VALUES = [
    "log(count)", "mean(log(amount))", "log(sum(amount))", "last(amount)", "max(amount)", "min(hour)", "mean(weekday)",
]  # fmt: skip
DAY = "2026-01-20"


@pytest.fixture(scope="module")
def bank(tmp_path_factory):
    """A small bank: its folder, and its payments."""
    folder = write_payments(tmp_path_factory.mktemp("live") / "bank", accounts=120, days=30, seed=4)
    return folder, pd.read_csv(folder / "events.csv")


def load(folder, **settings):
    tables = {"nodes": folder / "nodes.csv", "events": folder / "events.csv"}
    return ac.load_events(**{**tables, **ROLES, **settings})


def trained(data, **settings):
    votes = ac.StackedVotes(edge_values=True, combine="mean", weight_decay=1e-4, epochs=20, **settings)
    return ac.fit(None, data, votes)


def as_event(payment, kind="record_edge"):
    columns = {"payment": payment.payment, "amount": payment.amount, "paid_at": payment.paid_at}
    return Event(kind, payment.payer, payment.payee, columns=columns)


def values_by_pair(data, name):
    ids = data.node_id
    ends = data.edge_index.T.tolist()
    return {(ids[u], ids[v]): row for (u, v), row in zip(ends, data[name].tolist(), strict=True)}


@pytest.mark.parametrize("directed", [True, False])
def test_payments_one_by_one_give_the_graph_of_the_whole_table(bank, directed, tmp_path) -> None:
    folder, payments = bank
    data = load(folder, as_of=DAY, values=VALUES, directed=directed)
    model = trained(data)
    later = payments[payments["paid_at"] >= DAY][:150]
    new = {*later["payer"], *later["payee"]} - set(data.node_id)
    assert new  # accounts that nobody had named before
    live = LiveGraph(model, data, model.defence, journal=tmp_path / "j", snapshot_every=40)
    for number, payment in enumerate(later.itertuples()):
        live.apply(Event.from_json(as_event(payment).to_json()), id=payment.payment)
        if number % 50 == 0:
            assert_current(live)
    live.close()
    with LiveGraph(model, None, model.defence, journal=tmp_path / "j") as again:
        assert_current(again)
        until = (pd.Timestamp(later["paid_at"].iloc[-1]) + pd.Timedelta(seconds=1)).isoformat()
        expected = load(folder, as_of=until, encode=data.encoding)
        after = again.data()
        for name in ("edge_attr", "edge_totals"):
            assert values_by_pair(after, name) == values_by_pair(expected, name)  # to the last bit
        features = dict(zip(after.node_id, after.x.tolist(), strict=True))
        assert all(features[account] == row for account, row in zip(expected.node_id, expected.x.tolist(), strict=True))
        assert again.certificate().claim.digests["encoding"] == data.encoding.digest
        assert certified(again).claim == again.certificate().claim
        known = {account: (label, radius) for account, label, radius in _answers(again)}
        whole = ac.certify(model, expected, model.defence)
        for account, label, radius in _answers(whole):
            assert known[account] == (label, radius)


def _answers(holder):
    ids = list(holder.position) if hasattr(holder, "position") else holder.targets.tolist()
    return list(zip(ids, holder.label.tolist(), holder.radius.tolist(), strict=True))


def test_a_payment_may_be_taken_back(bank) -> None:
    folder, _ = bank
    data = load(folder, as_of=DAY, values=VALUES)
    model = trained(data)
    live = LiveGraph(model, data, model.defence)
    rows = values_by_pair(data, "edge_attr")
    u, v = next(pair for pair in rows if not any(rows[pair[::-1]][: len(rows[pair]) // 2]))  # one direction alone
    columns = {"payment": "new", "amount": 5.0, "paid_at": "2026-01-20T03:00:00"}
    live.apply(Event("record_edge", v, u, columns=columns))
    live.apply(Event("delete_edge", u, v, directed=True))
    half = len(rows[u, v]) // 2
    after = values_by_pair(live.data(), "edge_attr")
    assert not any(after[u, v][:half])
    assert after[u, v][half:] == after[v, u][:half]
    assert after[v, u][half:] == [0.0] * half
    with pytest.raises(GraphError, match="none leads in this direction"):
        live.apply(Event("delete_edge", u, v, directed=True))
    live.apply(Event("delete_edge", v, u, directed=True))  # nothing is left of the pair
    assert (u, v) not in values_by_pair(live.data(), "edge_attr")
    assert_current(live)
    live.apply(Event("record_edge", u, v, columns={**columns, "payment": "newer"}))
    live.apply(Event("change_edge", u, v, columns={**columns, "payment": "newest", "amount": 7.0}))
    assert values_by_pair(live.data(), "edge_totals")[u, v][0] == 1
    assert_current(live)


def test_delete_edge_has_a_direction_where_rows_hold_one_direction(bank) -> None:
    folder, _ = bank
    data = load(folder, as_of=DAY)
    plain = data.clone()
    for name in ("edge_totals", "encoding", "edge_names"):
        del plain[name]
    plain.edge_attr = torch.arange(data.num_edges * 2, dtype=torch.float32).view(-1, 2)
    model = trained(plain)
    live = LiveGraph(model, plain, model.defence)
    (u, v), _ = next(iter(values_by_pair(plain, "edge_attr").items()))
    back = values_by_pair(plain, "edge_attr")[v, u]
    live.apply(Event("delete_edge", u, v, directed=True))
    after = values_by_pair(live.data(), "edge_attr")
    assert (u, v) not in after
    assert after[v, u] == back
    with pytest.raises(GraphError, match="none leads in this direction"):
        live.apply(Event("delete_edge", u, v, directed=True))
    assert_current(live)


def test_what_is_refused_changes_nothing(bank) -> None:
    folder, _ = bank
    data = load(folder, as_of=DAY)
    model = trained(data)
    live = LiveGraph(model, data, model.defence)
    u, v = next(iter(values_by_pair(data, "edge_attr")))
    good = {"payment": "new", "amount": 5.0, "paid_at": "2026-01-20T03:00:00"}
    for event, words in (
        (Event("record_edge", u, v, [1.0] * 12), "send the columns of the event"),
        (Event("record_edge", u, "somebody new"), "send the columns of the event"),
        (Event("record_edge", u, "somebody new", columns={"amount": 5.0}), "lacks the column 'paid_at'"),
        (Event("record_edge", u, v, columns={**good, "paid_at": 17.0}), "cannot be encoded"),
        (Event("record_edge", u, v, columns={**good, "amount": "much"}), "cannot be encoded"),
        (Event("record_edge", u, v, columns={**good, "colour": "red"}), "no column 'colour'"),
        (Event("record_edge", u, v, columns={**good, "amount": 1e30}), "far beyond all that training saw"),
        (Event("record_edge", u, v, columns={**good, "payment": ""}), "key of an event"),
        (Event("record_edge", u, v, columns={**good, "payment": 1.5}), "key of an event"),
        (Event("record_edge", u, u, columns=good), "with itself"),
        (Event("add_edge", u, "nobody", columns=good), "no node with id 'nobody'"),
        (Event("change_edge", u, v, [1.0] * 12), "send the columns of the event"),
    ):
        with pytest.raises(GraphError, match=words):
            live.apply(event)
    assert "somebody new" not in live
    assert live.number == 0
    after = live.data()
    assert values_by_pair(after, "edge_totals") == values_by_pair(data, "edge_totals")
    assert_current(live)


def test_rows_of_a_table_of_edges_are_combined_as_in_training(tmp_path) -> None:
    """``load_tables`` says how repeated edges are combined, and how many rows each stands for."""
    nodes = pd.DataFrame(
        {"id": list("abcdefgh"), "x": range(8), "label": [0, 1] * 4, "split": ["train"] * 4 + ["val"] * 4}
    )
    edges = pd.DataFrame({"source": list("aabbcdef"), "target": list("bbcddefg"), "amount": [1, 4, 2, 2, 5, 6, 7, 8.5]})
    nodes.to_csv(tmp_path / "nodes.csv", index=False)
    edges.to_csv(tmp_path / "edges.csv", index=False)
    how = {"edge_features": ["amount"], "repeated": "mean"}
    data = ac.load_tables(tmp_path, **how)
    assert data.edge_count.tolist() == [2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]
    model = ac.fit(None, data, ac.StackedVotes(edge_values=True, epochs=5))
    live = LiveGraph(model, data, model.defence)
    live.apply([Event("record_edge", "b", "a", [7.0]), Event("record_edge", "a", "h", [3.0])])
    edges.loc[len(edges)] = ["b", "a", 7.0]
    edges.loc[len(edges)] = ["a", "h", 3.0]
    edges.to_csv(tmp_path / "edges.csv", index=False)
    expected = ac.load_tables(tmp_path, **how)
    for name in ("edge_attr", "edge_count"):
        assert values_by_pair(live.data(), name) == values_by_pair(expected, name)
    assert_current(live)


@pytest.mark.parametrize("directed", [True, False])
def test_a_journal_leaves_out_what_follows_from_totals_and_format_4_is_read(bank, directed, tmp_path, monkeypatch):
    data = load(bank[0], as_of=DAY, values=VALUES, directed=directed)
    model = trained(data)

    def written(path):
        with sqlite3.connect(path) as database:
            (blob,) = database.execute("SELECT content FROM graph").fetchone()
            (form,) = database.execute("SELECT value FROM about WHERE name = 'format'").fetchone()
        database.close()
        return safetensors.numpy.load(blob), form

    LiveGraph(model, data, model.defence, journal=tmp_path / "new").close()
    monkeypatch.setattr(graph, "without_derived", lambda complete, rules: complete)  # as format 4 was written
    LiveGraph(model, data, model.defence, journal=tmp_path / "old").close()
    monkeypatch.undo()
    with sqlite3.connect(tmp_path / "old") as database:
        database.execute("UPDATE about SET value = '4' WHERE name = 'format'")
    database.close()
    assert "value/edge_attr" not in written(tmp_path / "new")[0]
    assert "value/edge_attr" in written(tmp_path / "old")[0]
    for name in ("new", "old"):
        with LiveGraph(model, None, model.defence, journal=tmp_path / name) as live:
            assert values_by_pair(live.data(), "edge_attr") == values_by_pair(data, "edge_attr")  # to the last bit
            assert_current(live)
        assert written(tmp_path / name)[1] == "5"


def test_values_that_do_not_follow_from_totals_stay_in_the_journal(bank, tmp_path) -> None:
    data = load(bank[0], as_of=DAY, values=VALUES)
    data.edge_attr[0, 0] += 1  # somebody's own change
    model = trained(data)
    LiveGraph(model, data, model.defence, journal=tmp_path / "j").close()
    with LiveGraph(model, None, model.defence, journal=tmp_path / "j") as live:
        assert values_by_pair(live.data(), "edge_attr") == values_by_pair(data, "edge_attr")
