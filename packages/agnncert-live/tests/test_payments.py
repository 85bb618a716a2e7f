"""Payments as events: both halves of a row, direction, raw columns, and repeated payments as training combines them."""

import math
import random

import numpy as np
import pandas as pd
import pytest
import torch
from torch_geometric.data import Data

import agnncert as ac
from agnncert.datasets.relations import both_directions
from agnncert.errors import GraphError, SettingsError
from agnncert.stacked.model import StackedModel
from agnncert_live import Event, JournalError, LiveGraph
from tests.soundness.laws.test_stacked_graphs import Table
from tests.support.live import assert_current, certified

RULES = ac.StackedVotes(edge_values=True, combine="mean")
ACCOUNTS = [f"acc-{k}" for k in range(12)]


def payments(number, seed=0):
    """A table of payments: who paid whom, how much, at which hour."""
    rng = np.random.default_rng(seed)
    ends = rng.integers(0, len(ACCOUNTS), (number, 2))
    ends = ends[ends[:, 0] != ends[:, 1]]
    return pd.DataFrame({
        "from": [ACCOUNTS[k] for k in ends[:, 0]], "to": [ACCOUNTS[k] for k in ends[:, 1]],
        "amount": rng.lognormal(4, 1, len(ends)).round(2), "hour": rng.integers(0, 24, len(ends)),
    })  # fmt: skip


def row(payment):
    """One payment's values, as the tutorial transforms them."""
    return [1.0, math.log1p(payment.amount), payment.hour / 24]


def graph(table, reduce="mean", counts=True):
    """The graph of a table, as the tutorial makes it."""
    place = {name: k for k, name in enumerate(ACCOUNTS)}
    ends = torch.tensor([[place[name] for name in table["from"]], [place[name] for name in table["to"]]])
    values = torch.tensor([row(payment) for payment in table.itertuples()])
    edge_index, edge_attr = both_directions(ends, values, len(ACCOUNTS), reduce=reduce)
    data = Data(x=torch.ones(len(ACCOUNTS), 3), edge_index=edge_index, edge_attr=edge_attr, node_id=list(ACCOUNTS))
    data.y = torch.arange(len(ACCOUNTS)) % 2
    data.repeated = reduce
    data.class_names = ["honest", "fraud", "other"]
    if counts:
        again, number = both_directions(ends, torch.ones(len(table), 1), len(ACCOUNTS))
        assert torch.equal(again, edge_index)
        data.edge_count = number.long()
    return data


def model_of(data, seed=3, defence=RULES):
    """A model with random weights, whose votes read the values of edges."""
    rng = torch.Generator().manual_seed(seed)
    channels = data.edge_attr.size(1) - (defence.trusted is not None)
    model = StackedModel([Table(torch.randn(3, 3, generator=rng))], 3, channels, defence.for_rows(10))
    for name, parameter in model.named_parameters():
        if not name.startswith("own.") and parameter.dim():
            parameter.data = torch.randn(parameter.shape, generator=rng)
    return model.eval()


def rows_of(data):
    """What each directed edge carries, by the ids of its ends."""
    ids = data.node_id
    ends = data.edge_index.T.tolist()
    return {(ids[u], ids[v]): values for (u, v), values in zip(ends, data.edge_attr.tolist(), strict=True)}


@pytest.mark.parametrize("reduce", ["mean", "sum", "max", "min"])
def test_payments_one_by_one_give_the_graph_of_the_whole_table(reduce, tmp_path) -> None:
    table = payments(60)
    before, later = table[:30], table[30:]
    data = graph(before, reduce)
    model = model_of(data)
    live = LiveGraph(model, data, model.defence, journal=tmp_path / "j", snapshot_every=7)
    for number, payment in enumerate(later.itertuples()):
        live.apply(Event("record_edge", payment[1], payment.to, row(payment)), id=f"payments-0:{number}")
        if number % 10 == 0:
            assert_current(live)
    assert_current(live)
    live.close()
    with LiveGraph(model, None, model.defence, journal=tmp_path / "j") as again:
        assert_current(again)
        after, expected = again.data(), graph(table, reduce)
        found, wanted = rows_of(after), rows_of(expected)
        assert found.keys() == wanted.keys()
        for pair, values in wanted.items():
            assert found[pair] == pytest.approx(values, rel=1e-5), pair
        assert after.class_names == expected.class_names
        assert again.certificate().class_names == ("honest", "fraud", "other")


def test_a_value_is_written_to_both_halves() -> None:
    data = graph(payments(30))
    model = model_of(data)
    live = LiveGraph(model, data, model.defence)
    free = next((u, v) for u in ACCOUNTS for v in ACCOUNTS if u != v and (u, v) not in rows_of(data))
    u, v = free
    live.apply(Event("add_edge", u, v, [1.0, 2.0, 0.5]))
    rows = rows_of(live.data())
    assert rows[u, v] == [1.0, 2.0, 0.5, 0.0, 0.0, 0.0]
    assert rows[v, u] == [0.0, 0.0, 0.0, 1.0, 2.0, 0.5]
    live.apply(Event("add_edge", v, u, [1.0, 7.0, 0.25]))  # the other direction
    rows = rows_of(live.data())
    assert rows[u, v] == [1.0, 2.0, 0.5, 1.0, 7.0, 0.25]
    assert rows[v, u] == [1.0, 7.0, 0.25, 1.0, 2.0, 0.5]
    with pytest.raises(GraphError, match="there already"):
        live.apply(Event("add_edge", u, v, [1.0, 2.0, 0.5]))
    live.apply(Event("change_edge", v, u, [1.0, 9.0, 0.0]))
    rows = rows_of(live.data())
    assert rows[u, v] == [1.0, 2.0, 0.5, 1.0, 9.0, 0.0]
    assert rows[v, u] == [1.0, 9.0, 0.0, 1.0, 2.0, 0.5]
    live.apply(Event("change_edge", u, v, [1.0, 3.0, 0.0, 1.0, 4.0, 0.0]))  # a whole row is the one of u -> v
    rows = rows_of(live.data())
    assert rows[u, v] == [1.0, 3.0, 0.0, 1.0, 4.0, 0.0]
    assert rows[v, u] == [1.0, 4.0, 0.0, 1.0, 3.0, 0.0]
    assert_current(live)


def test_the_direction_of_a_change_counts_where_rows_hold_one_direction() -> None:
    data = graph(payments(30))
    data.edge_attr = torch.arange(data.num_edges * 2, dtype=torch.float32).view(-1, 2)
    del data.edge_count, data.repeated
    model = model_of(data)
    live = LiveGraph(model, data, model.defence)
    (u, v), before = next(iter(rows_of(data).items()))
    other = rows_of(data)[v, u]
    live.apply(Event("change_edge", u, v, [0.5, 0.5], directed=True))
    assert rows_of(live.data())[u, v] == [0.5, 0.5]
    assert rows_of(live.data())[v, u] == other != before
    assert_current(live)


def test_what_cannot_be_combined_is_refused() -> None:
    table = payments(30)
    u, v = table.iloc[0]["from"], table.iloc[0]["to"]
    data = graph(table, counts=False)
    model = model_of(data)
    with pytest.raises(GraphError, match="how many rows"):
        LiveGraph(model, data, model.defence).apply(Event("record_edge", u, v, [1.0, 2.0, 0.5]))
    del data.repeated
    with pytest.raises(GraphError, match="how repeated edges are combined"):
        LiveGraph(model, data, model.defence).apply(Event("record_edge", u, v, [1.0, 2.0, 0.5]))
    data.repeated = "median"
    with pytest.raises(SettingsError, match="median"):
        LiveGraph(model, data, model.defence)


def test_raw_columns_are_encoded_with_the_frozen_encoding(tmp_path) -> None:
    """A run's table of edges, read by the library; one more row as an event gives what the table with it gives."""
    rng = random.Random(0)
    names = [f"n{k}" for k in range(20)]
    nodes = pd.DataFrame({"id": names, "age": range(20), "label": [k % 2 for k in range(20)]})
    nodes["split"] = ["train"] * 12 + ["val"] * 4 + ["test"] * 4
    rows = [(*rng.sample(names, 2), round(rng.uniform(1, 99), 2), rng.choice(["EUR", "USD"])) for _ in range(40)]
    edges = pd.DataFrame(rows, columns=["source", "target", "amount", "currency"]).drop_duplicates(["source", "target"])
    nodes.to_csv(tmp_path / "nodes.csv", index=False)
    edges.to_csv(tmp_path / "edges.csv", index=False)
    load = {"edge_features": ["amount", "currency"], "directed": True}
    data = ac.load_tables(tmp_path, encode="auto", **load)
    torch.manual_seed(0)
    model = ac.fit(None, data, ac.StackedVotes(edge_values=True, epochs=5))
    live = LiveGraph(model, data, model.defence, journal=tmp_path / "j")
    u, v = next(
        (u, v) for u in names for v in names if u != v and not ((edges["source"] == u) & (edges["target"] == v)).any()
    )
    event = Event("add_edge", u, v, directed=True, columns={"amount": 12.5, "currency": "USD"})
    live.apply(Event.from_json(event.to_json()))
    live.apply(Event("change_features", u, columns={"age": 77}))
    edges.loc[len(edges)] = [u, v, 12.5, "USD"]
    nodes.loc[nodes["id"] == u, "age"] = 77
    nodes.to_csv(tmp_path / "nodes.csv", index=False)
    edges.to_csv(tmp_path / "edges.csv", index=False)
    expected = ac.load_tables(tmp_path, encode=data.encoding, **load)
    after = live.data()
    assert rows_of(after) == rows_of(expected)
    assert torch.equal(after.x, expected.x)
    live.close()
    with LiveGraph(model, None, model.defence, journal=tmp_path / "j") as again:
        claim = again.certificate().claim
        assert claim == ac.certify(model, expected, model.defence).claim  # with the digest of the encoding
        assert certified(again).claim == claim
        for columns, words in (
            ({"amount": 1.0}, "lacks the column 'currency'"),
            ({"amount": 1.0, "curency": "USD"}, "currency"),
            ({"amount": "much", "currency": "USD"}, "cannot be encoded"),
        ):
            with pytest.raises(GraphError, match=words):
                again.apply(Event("change_edge", u, v, columns=columns))
    plain = LiveGraph(model, Data(**{k: x for k, x in after.to_dict().items() if k != "encoding"}), model.defence)
    with pytest.raises(GraphError, match="not made with an encoding"):
        plain.apply(Event("change_edge", u, v, columns={"amount": 1.0, "currency": "USD"}))


def test_a_journal_with_strange_rules_is_refused(tmp_path) -> None:
    data = graph(payments(30))
    model = model_of(data)
    live = LiveGraph(model, data, model.defence, journal=tmp_path / "j")
    written = live._written()
    for rules in (
        {},
        {"halves": -1},
        {"halves": 3, "has_mark": False, "repeated": "never", "encoding": None, "class_names": []},
    ):
        live._journal.save({**written.header, "rules": rules}, written.arrays)
        live.close()
        with pytest.raises(JournalError):
            LiveGraph(model, data, model.defence, journal=tmp_path / "j")
        (tmp_path / "j").unlink()
        (tmp_path / "j-journal").unlink(missing_ok=True)
        live = LiveGraph(model, data, model.defence, journal=tmp_path / "j")
    live.close()


def test_events_need_not_say_whether_an_edge_is_trusted() -> None:
    data = graph(payments(30))
    pair = next(iter(rows_of(data)))
    marks = torch.tensor([[float(set(each) == set(pair))] for each in rows_of(data)])
    data.edge_attr = torch.cat([data.edge_attr, marks], dim=1)
    model = model_of(data, defence=ac.StackedVotes(edge_values=True, combine="mean", trusted=6))
    live = LiveGraph(model, data, model.defence)
    u, v = pair
    live.apply(Event("change_edge", u, v, [1.0, 9.0, 0.0]))
    rows = rows_of(live.data())
    assert rows[u, v][:3] + rows[u, v][6:] == [1.0, 9.0, 0.0, 1.0]
    assert rows[v, u][3:] == [1.0, 9.0, 0.0, 1.0]
    with pytest.raises(GraphError, match="trusted"):
        live.apply(Event("record_edge", v, u, [1.0, 9.0, 0.0]))
    other = next(each for each in rows if set(each) != {u, v})
    live.apply(Event("record_edge", *other, [1.0, 9.0, 0.0]))
    assert rows_of(live.data())[other][6] == 0.0
    assert_current(live)
