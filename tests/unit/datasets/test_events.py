"""Tables of events: pairs, directions, repeated events, clocks, keys, unlisted nodes, moments, late labels, errors."""

import math
import time
from itertools import permutations

import numpy as np
import pytest
import torch

import agnncert as ac
from agnncert.datasets.columns import read_table
from agnncert.datasets.encoding import Encoding
from agnncert.datasets.event_summary import Term, moment_number
from agnncert.datasets.events import unlisted_features
from agnncert.errors import DatasetError

NODES = """id,kind,label,known
ann,shop,ok,2026-01-05
bob,home,bad,2026-02-05
cem,home,ok,
dee,shop,bad,2026-01-01
eve,shop,ok,2026-01-01
"""
EVENTS = """key,source,target,amount,at
1,ann,bob,10,2026-01-01T06:00:00
2,ann,bob,20,2026-01-03T18:00:00
2,ann,bob,20,2026-01-03T18:00:00
3,bob,ann,5,2026-01-03
4,cem,zoe,7,2026-01-03
5,cem,cem,7,2026-01-03
6,dee,eve,7,2026-02-03
"""
ROLES = {"event_time": "at", "event_key": "key", "label_time": "known"}


@pytest.fixture
def bank(tmp_path):
    (tmp_path / "nodes.csv").write_text(NODES, encoding="utf-8")
    (tmp_path / "events.csv").write_text(EVENTS, encoding="utf-8")
    return tmp_path


def rows_of(data):
    """What each directed edge carries, by the ids of its ends."""
    ids = data.node_id
    ends = data.edge_index.T.tolist()
    return {(ids[u], ids[v]): values for (u, v), values in zip(ends, data.edge_attr.tolist(), strict=True)}


def of_ann_and_bob(bank, values, **settings):
    return rows_of(ac.load_events(bank, **{**ROLES, **settings}, values=values))["ann", "bob"]


@pytest.mark.parametrize(
    ("value", "forth", "back"),
    [
        ("count", 2, 1),
        ("log(count)", math.log(3), math.log(2)),
        ("sum(amount)", 30, 5),
        ("log(sum(amount))", math.log(31), math.log(6)),
        ("mean(amount)", 15, 5),
        ("mean(log(amount))", (math.log(11) + math.log(21)) / 2, math.log(6)),
        ("last(amount)", 20, 5),
        ("max(amount)", 20, 5),
        ("min(amount)", 10, 5),
        ("log(max(log(amount)))", math.log1p(math.log(21)), math.log1p(math.log(6))),
    ],
)
def test_payments_of_a_pair_become_the_values_of_each_direction(bank, value, forth, back) -> None:
    assert of_ann_and_bob(bank, [value]) == pytest.approx([forth, back], rel=1e-6)
    rows = rows_of(ac.load_events(bank, **ROLES, values=[value]))
    assert rows["bob", "ann"] == pytest.approx([back, forth], rel=1e-6)
    assert rows["cem", "zoe"][1] == rows["zoe", "cem"][0] == 0


def test_hour_and_weekday(bank) -> None:
    noon_apart = of_ann_and_bob(bank, ["mean(hour)", "mean(weekday)"])
    assert noon_apart[:2] == pytest.approx([0, 0], abs=1e-6)  # six and eighteen o'clock are opposite
    assert noon_apart[2:9] == [0, 0, 0, 0.5, 0, 0.5, 0]  # a Thursday and a Saturday
    assert noon_apart[9:11] == pytest.approx([0, 1])  # midnight
    names = ac.load_events(bank, **ROLES, values=["mean(hour)", "last(weekday)"]).edge_names
    assert names[0] == "mean(sine of the hour)"
    assert names[-1] == "last(Sunday), back"


def test_without_a_direction_payments_of_both_ways_are_one_edge(bank) -> None:
    assert of_ann_and_bob(bank, ["count", "sum(amount)"], directed=False) == [3, 35]
    rows = rows_of(ac.load_events(bank, **ROLES, values=["count", "sum(amount)"], directed=False))
    assert rows["bob", "ann"] == rows["ann", "bob"]


def test_accounts_that_only_payments_name_have_the_features_of_a_row_without_entries(bank) -> None:
    data = ac.load_events(bank, **ROLES)
    assert data.node_id == ["ann", "bob", "cem", "dee", "eve", "zoe"]
    assert (data.num_unlisted, int(data.y[-1])) == (1, -1)
    assert data.encoding.features[-1] == "kind=missing"
    assert data.x[:, -1].tolist() == [0, 0, 0, 0, 0, 1]
    assert data.x[-1].tolist() == unlisted_features(data.encoding)[0].tolist()
    for mask in (data.train_mask, data.val_mask, data.test_mask):
        assert not mask[-1]
    alone = ac.load_events(events=bank / "events.csv", event_time="at", event_key="key")
    assert alone.x.tolist() == [[1.0]] * 6
    assert getattr(alone, "y", None) is None


def test_a_payment_counts_once_by_its_key_and_never_of_an_account_with_itself(bank, caplog) -> None:
    data = ac.load_events(bank, **ROLES, values=["count"])
    assert data.num_events == 5
    assert data.repeated_edges == 1
    assert "1 rows repeat an earlier event" in caplog.text
    assert "1 events of a node with itself" in caplog.text
    (bank / "events.csv").write_text(EVENTS + "4,cem,zoe,8,2026-01-03\n", encoding="utf-8")
    with pytest.raises(DatasetError, match=r'the first is "4" \(row 5, row 8\)'):
        ac.load_events(bank, **ROLES)


def test_nothing_that_happened_later_is_read(bank) -> None:
    early = ac.load_events(bank, **ROLES, values=["count"], as_of="2026-01-03")
    assert rows_of(early) == {("ann", "bob"): [1, 0], ("bob", "ann"): [0, 1]}
    assert early.node_id == ["ann", "bob", "cem", "dee", "eve"]  # nobody knows of zoe yet
    later = (bank / "events.csv").read_text().replace("20,2026-01-03T18", "99,2026-01-03T18")
    (bank / "events.csv").write_text(later, encoding="utf-8")
    again = ac.load_events(bank, **ROLES, values=["count"], as_of="2026-01-03")
    assert ac.dataset_digest(again) == ac.dataset_digest(early)


def test_a_label_that_became_known_later_is_not_known(bank) -> None:
    assert ac.load_events(bank, **ROLES).y.tolist() == [1, 0, 1, 0, 1, -1]
    early = ac.load_events(bank, **ROLES, as_of="2026-01-05")
    assert early.y.tolist() == [-1, -1, 1, 0, 1, -1]  # cem's label has no time, so it was always known
    assert early.class_names == ["bad", "ok"]
    parts = early.train_mask | early.val_mask | early.test_mask
    assert parts.tolist() == [False, False, True, True, True, False]


def test_training_sees_what_was_before_the_cut_off_in_the_same_nodes_and_parts(bank) -> None:
    now = ac.load_events(bank, **ROLES, values=["sum(amount)"])
    past = ac.load_events(bank, **ROLES, values=["sum(amount)"], cut_off="2026-01-03T12:00:00")
    assert past.node_id == now.node_id
    assert rows_of(past)["ann", "bob"] == [10, 5]
    assert rows_of(now)["ann", "bob"] == [30, 5]
    assert ("dee", "eve") not in rows_of(past)
    assert past.test_mask.tolist() == now.test_mask.tolist()
    assert (past.y[now.test_mask] == -1).all()
    assert not (past.train_mask & ~now.train_mask).any()


def test_the_encoding_is_frozen_and_comes_back_from_its_text(bank) -> None:
    data = ac.load_events(bank, **ROLES)
    assert Encoding.from_json(data.encoding.to_json()) == data.encoding
    more = EVENTS + "7,zoe,ann,1000,2026-02-09\n"
    (bank / "events.csv").write_text(more, encoding="utf-8")
    again = ac.load_events(bank, **{**ROLES, "event_time": None}, encode=data.encoding)
    old, new = rows_of(data), rows_of(again)
    assert {pair: new[pair] for pair in old} == old  # one more payment changes its own pair alone
    assert set(new) - set(old) == {("zoe", "ann"), ("ann", "zoe")}
    assert again.encoding.digest == data.encoding.digest


def test_one_by_one_or_in_a_table_totals_are_the_same_to_the_last_bit(tmp_path) -> None:
    rng = np.random.default_rng(0)
    values = ["count", "log(sum(amount))", "mean(log(amount))", "last(amount)", "max(amount)", "min(hour)", "mean(cur)"]
    lines = [
        f"a,b,{rng.lognormal(3, 2):.2f},{rng.choice(['EUR', 'USD'])},2026-01-{day:02d}T{rng.integers(24):02d}:07:00"
        for day in range(1, 29)
    ]
    (tmp_path / "events.csv").write_text("\n".join(["source,target,amount,cur,at", *lines]) + "\n", encoding="utf-8")
    data = ac.load_events(tmp_path, event_time="at", values=values)
    summary = data.encoding.events
    table = read_table(tmp_path / "events.csv", [])
    totals = np.zeros(summary.num_totals, dtype=np.int64)
    for row in np.random.default_rng(1).permutation(len(table)).tolist():
        entries = table.frame.iloc[row].to_dict()
        totals = summary.with_event(totals, summary.read_entries(entries))
    assert torch.equal(data.edge_totals[0], torch.from_numpy(totals))
    assert data.edge_attr[0, : summary.width].tolist() == summary.edge_values(totals).tolist()


@pytest.mark.parametrize("hours", [(6, 6, 6), (6, 6, 9), (9, 6, 6)])
def test_of_events_at_one_time_the_largest_is_the_last_in_whatever_order_they_come(tmp_path, hours) -> None:
    events = [(f"{10 + row}", f"2026-01-01T{hour:02d}:00:00") for row, hour in enumerate(hours)]
    last = float(max(events, key=lambda event: (event[1], event[0]))[0])
    for ordered in permutations(events):
        lines = [f"a,b,{amount},{at}" for amount, at in ordered]
        (tmp_path / "events.csv").write_text("\n".join(["source,target,amount,at", *lines]) + "\n", encoding="utf-8")
        data = ac.load_events(tmp_path, event_time="at", values=["last(amount)", "count"])
        summary = data.encoding.events
        totals = np.zeros(summary.num_totals, dtype=np.int64)
        for amount, at in ordered:
            totals = summary.with_event(totals, summary.read_entries({"amount": float(amount), "at": at}))
        assert data.edge_attr[0, : summary.width].tolist() == [last, 3]
        assert summary.edge_values(totals).tolist() == [last, 3]


@pytest.fixture(params=["UTC", "America/New_York", "Asia/Kolkata"])
def zone(request, monkeypatch):
    """The time zone of the machine."""
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield request.param
    monkeypatch.undo()
    time.tzset()


def test_a_moment_without_a_zone_is_one_of_utc_wherever_the_machine_stands(zone, bank) -> None:
    assert moment_number("as_of", "2026-01-03T18:00:00", True) * 86400 == 1767463200
    assert moment_number("as_of", "2026-01-03T18:00:00+05:30", True) * 86400 == 1767463200 - 5.5 * 3600
    data = ac.load_events(bank, **ROLES, values=["count"], as_of="2026-01-03T18:00:00")
    assert rows_of(data)["ann", "bob"] == [1, 1]  # what came at this moment is not before it
    data = ac.load_events(bank, **ROLES, values=["count"], as_of="2026-01-03T18:00:01")
    assert rows_of(data)["ann", "bob"] == [2, 1]


def test_a_late_event_is_not_the_last_one(bank) -> None:
    data = ac.load_events(bank, **ROLES, values=["last(amount)"])
    shuffled = EVENTS.splitlines()
    (bank / "events.csv").write_text("\n".join([shuffled[0], *reversed(shuffled[1:])]) + "\n", encoding="utf-8")
    assert rows_of(ac.load_events(bank, **ROLES, values=["last(amount)"])) == rows_of(data)


def test_trusted_events_are_marked_and_joined_by_nobody_else(bank) -> None:
    data = ac.load_events(bank, **ROLES, values=["count"], trusted="at<2026-01-02")
    rows = rows_of(data)
    assert rows["ann", "bob"] == [1, 0, 1]  # the later payments of the pair are left out
    assert rows["dee", "eve"] == [1, 0, 0]
    assert data.edge_names[-1] == "trusted"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"values": ["median(amount)"]}, 'value "median\\(amount\\)" of an edge cannot be read'),
        ({"values": ["sum(amont)"]}, 'no column "amont". Did you mean "amount"'),
        ({"values": ["last(amount)"], "event_time": None}, "which event is the last"),
        ({"values": ["mean(hour)"], "event_time": None}, "needs the time of events"),
        ({"values": ["mean(hour)"], "event_time": "amount"}, "holds numbers"),
        ({"as_of": "soon"}, "expected a date"),
        ({"as_of": "2020-01-01"}, "no event is before as_of"),
        ({"as_of": "2026-01-02", "event_time": None}, "needs the time of events"),
        ({"source": "payer"}, 'no column "payer"'),
        ({"event_time": None}, 'column "at" holds dates: if it is the time of events'),
        ({"cut_off": "2026-01-01T05:00:00"}, "no event is before cut_off|no label of the training part"),
        ({"label": None}, "no label that is late"),
        ({"trusted": "at<soon"}, "expected a date"),
    ],
)
def test_what_is_wrong_is_said(bank, settings, words) -> None:
    with pytest.raises(DatasetError, match=words):
        ac.load_events(bank, **{**ROLES, **settings})


def test_all_problems_are_said_at_once(bank) -> None:
    with pytest.raises(DatasetError, match="3 problems") as refused:
        ac.load_events(bank, source="payer", event_key="number", id="account")
    for word in ("payer", "number", "account"):
        assert f'no column "{word}"' in str(refused.value)


def test_an_entry_that_is_no_number_is_named_by_its_row(bank) -> None:
    (bank / "events.csv").write_text(EVENTS.replace("7,2026-02-03", "much,2026-02-03"), encoding="utf-8")
    with pytest.raises(DatasetError, match='column "amount" says "much" in row 7'):
        ac.load_events(bank, **ROLES, encode={"amount": "number"})


def test_an_encoding_of_edges_says_nothing_about_events(bank) -> None:
    encoding = Encoding(())
    with pytest.raises(DatasetError, match="does not say how to read events"):
        ac.load_events(bank, **ROLES, encode=encoding)


def test_a_term_is_written_in_one_way() -> None:
    assert str(Term.parse(" log( sum( log( amount ) ) ) ")) == "log(sum(log(amount)))"
    with pytest.raises(DatasetError):
        Term.parse("sum()")
