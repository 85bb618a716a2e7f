"""A live graph with append-only scores says, after every event, what certifying again would say."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import agnncert as ac
from agnncert.append.program import Program, Source
from agnncert.errors import GraphError, IdError, SettingsError
from agnncert_live import Event, LiveClient, LiveGraph, append
from agnncert_live.service import Service
from agnncert_live.streams import consume
from tests.support.append_graphs import payments
from tests.support.live import assert_current
from tests.support.serving import served

ACCOUNTS = 40
EVENTS = 16
ONE = ("number", 1)
DEEP = Program(  # what is counted of partners counts their partners, and these count theirs
    columns=(Source("amount", place=1, growth="rises"),),
    features=(
        ("sum", "in", ("at_least", ("far", ("sum", "out", ("far", ("sum", "in", ONE)))), 4)),
        ("sum", "out", ("at_least", ("far", ("max", "in", ("far", ("attribute", "age")))), 2)),
        ("sum", "in", ("cap", ("column", "amount"), 100)),
    ),
    attributes=(Source("age", place=0),),
    present=0,
)


def sample(seed=4):
    data = payments(seed=seed, accounts=ACCOUNTS)
    data.x = torch.from_numpy(np.random.default_rng(seed).integers(0, 4, (ACCOUNTS, 1))).float()
    data.node_id = [f"a{k}" for k in range(ACCOUNTS)]
    return data


def fitted(threat, program=None, data=None):
    data = sample() if data is None else data
    defence = ac.AppendOnly(program, threat=threat, deletions=2, trees=20, ensembles=1, positive=1)
    model = ac.fit(None, data, defence, seed=1)
    return data, ac.choose_threshold(model, data, defence, false_positive_rate=0.3)


def random_event(live, rng):
    """An event that can be applied, or not."""
    names = live.targets.tolist()
    a, b = rng.choice(names, 2, replace=False).tolist()
    kind = rng.choice(
        ["add_edge", "add_edge", "change_edge", "delete_edge", "add_node", "delete_node", "change_features"]
    )
    if kind == "add_node":
        return Event("add_node", f"new {rng.integers(1000)}", value=[float(rng.integers(4))])
    if kind in ("delete_node", "change_features"):
        return Event(kind, a, value=[float(rng.integers(4))] if kind == "change_features" else None)
    value = None if kind == "delete_edge" else [1.0, float(rng.choice([3, 205, 215, rng.integers(1, 300)]))]
    return Event(kind, a, b, value, directed=bool(rng.random() < 0.5) if kind == "delete_edge" else False)


@pytest.mark.parametrize(("threat", "program"), [("fresh", None), ("ledger", None), ("grow", None), ("fresh", DEEP)])
def test_after_every_event_answers_are_those_of_certifying_again(threat, program):
    data, point = fitted(threat, program)
    live = LiveGraph(point.model, data, point)
    rng = np.random.default_rng(8)
    assert_current(live)
    applied = moved = 0
    for _ in range(EVENTS):
        try:
            result = live.apply([random_event(live, rng) for _ in range(int(rng.integers(1, 3)))])
        except (GraphError, IdError):
            continue
        applied += 1
        moved += len(result.moved)
        again = ac.certify(point.model, live.data(), point.defence)
        assert live.label.tolist() == again.label.tolist()
        assert live.radius.tolist() == again.radius.tolist()
    assert applied > EVENTS // 3
    assert moved > 3
    assert_current(live)


def stale_counters(point, data):
    """How many counters differ from those of a live graph that begins with the present graph."""
    live = LiveGraph(point.model, data, point)
    rng = np.random.default_rng(9)
    for number in range(20):
        live.apply([random_event(live, rng)], id=f"batch {number}", skip_bad=True)
    anew = LiveGraph(point.model, live.data(), point)
    ours, theirs = counters(live), counters(anew)
    assert ours.keys() == theirs.keys()
    return sum(ours[key] != theirs[key] for key in ours)


def counters(live):
    core = live._core
    kept = dict(core.counters.values)
    for key, bounds in core.counters.bounds.items():
        kept |= {(key, "low"): bounds.low, (key, "high"): bounds.high}
    slots = {name: core.store.nodes.find(0, name) for name in live.targets.tolist()}
    return {(key, name): int(value[slot]) for key, value in kept.items() for name, slot in slots.items()}


def test_counters_of_all_accounts_are_those_of_a_graph_that_is_read_anew(monkeypatch):
    data, point = fitted("ledger", DEEP)
    assert stale_counters(point, data) == 0
    monkeypatch.setattr(append, "reach_of", lambda program: 0)  # without what is read over two rows
    assert stale_counters(point, data) > 0


def test_one_decision_and_a_batch_that_is_refused():
    data, point = fitted("ledger")
    live = LiveGraph(point.model, data, point)
    before = (live.label.tolist(), live.radius.tolist())
    with pytest.raises(GraphError, match="event 1"):
        live.apply([Event("add_node", "x", value=[1.0]), Event("delete_edge", "x", "a1")])
    assert (live.label.tolist(), live.radius.tolist()) == before
    for place, name in enumerate(live.targets.tolist()[:6]):
        assert (live[name].label, live[name].radius) == (before[0][place], before[1][place])


def test_a_journal_goes_on_where_it_stopped(tmp_path):
    data, point = fitted("grow")
    rng = np.random.default_rng(3)
    with LiveGraph(point.model, data, point, journal=tmp_path / "a.journal", snapshot_every=5) as live:
        for number in range(12):
            live.apply([random_event(live, rng)], id=f"batch {number}", skip_bad=True)
        expected = live.targets.tolist(), live.label.tolist(), live.radius.tolist()
    with LiveGraph(point.model, None, point, journal=tmp_path / "a.journal") as again:
        assert (again.targets.tolist(), again.label.tolist(), again.radius.tolist()) == expected
        assert_current(again)


def test_a_reference_proves_flags_after_what_was_appended_and_not_after_payers_sent_more():
    data, point = fitted("ledger")
    live = point.defence.live(point.model, data)
    since = live.reference()
    flagged = [name for name, label in zip(live.targets.tolist(), live.label.tolist(), strict=True) if label == 1]
    target = flagged[0]
    live.apply([Event("add_node", "x", value=[1.0]), Event("add_edge", "x", target, [1.0, 5.0])])
    assert live.spent(target, since).proved_by == ("budget",)
    assert live.spent(next(name for name in live.targets.tolist() if name not in flagged), since).proved_by == ()
    payers = payers_of(live.data(), target) - {"x"}
    partners = sorted(payers)
    for payer in partners[:3]:
        live.apply(Event("add_edge", payer, "x", [1.0, 5.0]))
    assert live.spent(target, since).proved_by == ()
    assert live.spent(target, since).within is False


def payers_of(data, target):
    row = list(data.node_id).index(target)
    into = (data.edge_index[1] == row) & (data.edge_attr[:, 0] > 0)
    return {data.node_id[k] for k in data.edge_index[0, into].tolist()}


def test_graphs_and_settings_that_it_does_not_have_are_refused(tmp_path):
    data, point = fitted("fresh")
    with pytest.raises(SettingsError, match="tolerance"):
        LiveGraph(point.model, data, point, tolerance=1e-3, journal=tmp_path / "a.journal")
    with pytest.raises(ac.errors.ModelContractError, match="made for"):
        LiveGraph(point.model, data, replace(point.defence, threat="grow"))


class Messages:
    """A topic in memory: it hands out messages and notes how many were committed."""

    def __init__(self, *values):
        self.values, self.committed = list(values), 0

    def poll(self, timeout):
        if not self.values:
            return None
        value, offset = self.values.pop(0), self.committed
        return SimpleNamespace(
            error=lambda: None, topic=lambda: "t", partition=lambda: 0, offset=lambda: offset, value=lambda: value
        )

    def commit(self, *, message, asynchronous):
        self.committed += 1

    def running(self):
        return bool(self.values)


def test_a_topic_that_only_appends_takes_no_flag(tmp_path):
    data, point = fitted("fresh")
    rng = np.random.default_rng(5)
    with LiveGraph(point.model, data, point, journal=tmp_path / "a.journal") as live:
        flagged = [name for name in live.targets.tolist() if live[name].label == 1]
        scores = [live[name].votes[1] for name in flagged]
        there = set(map(frozenset, data.edge_index.T.tolist()))
        new = []
        for number in range(8):
            new.append([Event("add_node", f"n{number}", value=[float(rng.integers(4))])])
            known = [f"a{k}" for k in rng.permutation(ACCOUNTS)[:3]]
            new.append([Event("add_edge", f"n{number}", name, [1.0, float(rng.integers(200, 220))]) for name in known])
            a, b = rng.permutation(ACCOUNTS)[:2].tolist()
            if frozenset((a, b)) not in there:
                there.add(frozenset((a, b)))
                new.append([Event("add_edge", f"a{a}", f"a{b}", [1.0, float(rng.integers(200, 220))])])
        topic = Messages(*(json.dumps([event.to_json() for event in batch]).encode() for batch in new))
        assert consume(topic, live, running=topic.running) == topic.committed == len(new)
        assert live.number == sum(map(len, new))
        assert flagged
        assert all(live[name].label == 1 for name in flagged)
        after = [live[name].votes[1] for name in flagged]
        assert all(now >= before for now, before in zip(after, scores, strict=True))
        assert after != scores
        assert_current(live)


def test_the_service_answers_what_certifying_anew_would(tmp_path):
    data, point = fitted("ledger")
    live = LiveGraph(point.model, data, point)
    service = Service(live, live.reference(), "accounts", ["honest", "fraud"])
    with served(service) as address:
        client = LiveClient(address)
        rows = [Event("add_node", "new", value=[1.0]), Event("add_edge", "new", "a3", [1.0, 210.0])]
        assert client.apply(rows)["applied"] == 2
        assert "ledger" in json.dumps(client.summary())
        expected = ac.certify(point.model, live.data(), point.defence)
        for name in ("new", "a3", "a5"):
            one, asked = expected[name], client.decision(name, add_edges=1)
            assert (asked["label"], asked["radius"]) == (["honest", "fraud"][one.label], one.radius)
            assert asked["holds"] == one.holds_against(ac.Budget(add_edges=1))
        file = client.certificate(tmp_path / "now.cert")
        assert ac.verify(file, data=live.data(), model=point.model).holds
