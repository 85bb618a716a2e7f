"""Values of edges in words of the table: numbers of events, amounts, hours, days, categories, directions, marks."""

import re

import pytest
import torch
from torch_geometric.data import Data

import agnncert as ac
from agnncert.datasets.edge_words import in_words_of_the_table, words_of_values
from agnncert.explanation import VoteExplanation, Voter, VotingEdge

NODES = "id,kind,label\nann,1,ok\nbob,2,bad\ncem,3,ok\ndee,4,bad\neve,5,ok\n"
EVENTS = """source,target,amount,a,at
ann,bob,10,web,2026-01-05T06:00:00
ann,bob,30.5,app,2026-01-06T07:00:00
bob,ann,5000,web,2026-01-04T23:50:00
cem,dee,7,web,2026-01-03T12:00:00
cem,dee,7,app,2026-01-03T00:00:00
"""


@pytest.fixture
def bank(tmp_path):
    (tmp_path / "nodes.csv").write_text(NODES, encoding="utf-8")
    (tmp_path / "events.csv").write_text(EVENTS, encoding="utf-8")
    return tmp_path


def explained(data, *pairs):
    """An explanation with one voter, whose edges are those between some pairs of ids."""
    ids = list(data.node_id)
    edges = []
    for position, (u, v) in enumerate(data.edge_index.T.tolist()):
        if (ids[u], ids[v]) in pairs:
            values = {"edge_attr": tuple(data.edge_attr[position].tolist())}
            edges.append(VotingEdge(ids[u], ids[v], values, position))
    voter = Voter("neighbour", tuple(edges), (), (1, 0))
    bare = VoteExplanation("ann", "made up", 0, (1, 0), 1, (1, 0), (), (voter,))
    return in_words_of_the_table(bare, data)


def through(data, *pairs):
    """The last column of the voter's row."""
    return explained(data, *pairs).rows()[0][-1]


def test_payments_of_both_directions_are_said_once_each(bank) -> None:
    data = ac.load_events(bank, event_time="at")
    forth = (
        "ann → bob (2 events, typical amount 17.61, sum of amount 40.5, a=app 50 %, a=web 50 %, around 06:30, "
        "Monday 50 %, Tuesday 50 %)"
    )
    back = "bob → ann (1 event, typical amount 5,000, sum of amount 5,000, a=web 100 %, around 23:50, Sunday 100 %)"
    assert through(data, ("ann", "bob"), ("bob", "ann")) == f"{forth}, {back}"
    assert through(data, ("ann", "bob")) == f"{forth[:-1]}, back: {back.partition('(')[2]}"


def test_a_direction_without_events_is_not_shown_and_opposite_hours_have_no_mean(bank) -> None:
    data = ac.load_events(bank, event_time="at")
    shown = through(data, ("cem", "dee"), ("dee", "cem"))
    assert shown.startswith("cem → dee (2 events")
    assert "dee → cem" not in shown
    assert "no usual hour" in shown


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("count", "2 events"),
        ("log(count)", "2 events"),
        ("sum(amount)", "sum of amount 40.5"),
        ("log(mean(amount))", "mean amount 20.25"),
        ("max(log(amount))", "largest amount 30.5"),
        ("log(min(log(amount)))", "smallest amount 10"),
        ("last(amount)", "last amount 30.5"),
        ("sum(log(amount))", "sum of log(amount) 5.848"),
        ("last(a)", "last a=app"),
        ("sum(a)", "1 of a=app, 1 of a=web"),
        ("mean(log(a))", "a=app 50 %, a=web 50 %"),
        ("last(hour)", "last at 07:00"),
        ("last(weekday)", "last Tuesday"),
        ("max(hour)", "largest sine of the hour 1, largest cosine of the hour 0"),
    ],
)
def test_each_way_to_summarise_events_has_words(bank, value, words) -> None:
    data = ac.load_events(bank, event_time="at", values=[value])
    shown = through(data, ("ann", "bob"), ("bob", "ann"))
    assert re.fullmatch(rf"ann → bob \({re.escape(words)}\), bob → ann .*", shown), shown


def test_a_column_whose_name_is_part_of_another_word_keeps_all_names_whole(bank) -> None:
    names = ac.load_events(bank, event_time="at", values=["mean(a)", "last(a)"], directed=False).edge_names
    assert names == [f"{way}(a={category})" for way in ("mean", "last") for category in ("app", "web", "other")]


def test_pairs_without_direction_are_one_line(bank) -> None:
    data = ac.load_events(bank, directed=False, values=["count"], event_time="at", trusted="at<2026-01-04")
    assert through(data, ("ann", "bob"), ("bob", "ann")) == "ann – bob (3 events)"
    assert through(data, ("cem", "dee"), ("dee", "cem")) == "cem – dee (2 events, trusted)"


@pytest.mark.parametrize("encode", [None, "auto"])
def test_columns_of_a_table_of_edges_have_their_names(tmp_path, encode) -> None:
    parts = ["train", "train", "val", "test", "test"]
    rows = zip(NODES.split(), ["split", *parts], strict=True)
    (tmp_path / "nodes.csv").write_text("".join(f"{row},{part}\n" for row, part in rows), encoding="utf-8")
    extra = ",web,2026-01-05" if encode else ",3,4"
    (tmp_path / "edges.csv").write_text(f"source,target,amount,way,day\nann,bob,12.5{extra}\n", encoding="utf-8")
    data = ac.load_tables(tmp_path, edge_features=["amount", "way", "day"], encode=encode)
    expected = "way=web, day (years since 2026-01-05) 0" if encode else "way 3, day 4"
    assert through(data, ("ann", "bob"), ("bob", "ann")) == f"ann – bob (amount 12.5, {expected})"


def test_json_has_the_names_and_the_words_beside_the_numbers(bank) -> None:
    data = ac.load_events(bank, event_time="at", values=["log(count)"])
    answer = explained(data, ("ann", "bob")).to_json()
    assert answer["edge_names"] == ["log(count)", "log(count), back"]
    edge = answer["voters"][0]["edges"][0]
    assert edge["words"] == "2 events, back: 1 event"
    assert len(edge["values"]["edge_attr"]) == 2


def test_values_without_names_are_shown_as_numbers() -> None:
    edge_index = torch.tensor([[0], [1]])
    data = Data(edge_index=edge_index, edge_attr=torch.tensor([[1.5, 2.0]]), node_id=["ann", "bob"])
    assert through(data, ("ann", "bob")) == "ann → bob (edge_attr 1.5, 2)"
    data.edge_names = ["amount"]  # one more column is what mark_trusted added
    assert through(data, ("ann", "bob")) == "ann → bob (amount 1.5, trusted)"
    data.edge_names = ["log(amount)", "day"]  # a name of the user says nothing about logarithms
    assert through(data, ("ann", "bob")) == "ann → bob (log(amount) 1.5, day 2)"


def test_a_relation_that_is_not_there_says_nothing() -> None:
    names = ["pays", "pays, back"]
    assert words_of_values(names, [0, 1]) == ""
    assert words_of_values(names, [1, 0]) == "pays 1"
