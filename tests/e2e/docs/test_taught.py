"""The tables of the tutorial about few labels are what the committed rows give."""

import json

from experiments.benchmarks import taught


def test_the_tables_are_what_the_committed_rows_give():
    text = taught.PAGE.read_text(encoding="utf-8")
    assert taught.filled(text) == text
    assert text.count("<!-- taught: ") == 6


def test_the_page_is_one_page():
    words = [word for word in taught.PAGE.read_text(encoding="utf-8").split() if any(map(str.isalnum, word))]
    assert 900 <= len(words) <= 1300


def test_a_changed_row_is_noticed(monkeypatch):
    text = taught.PAGE.read_text(encoding="utf-8")
    rows = json.loads(json.dumps(taught.stored()))
    next(row for row in rows if row["method"] == taught.MLP)["test"]["added edges"][1] = 0.111
    monkeypatch.setattr(taught, "stored", lambda: rows)
    assert taught.filled(text) != text


def test_rows_of_later_splits_are_in_the_table_of_later_splits_alone(monkeypatch):
    first, later = taught.summary(), taught.better_table()
    rows = json.loads(json.dumps(taught.stored()))
    changed = (row for row in rows if row["method"] == taught.MLP and row["seed"] in taught.LATER)
    next(changed)["test"]["added edges"][1] = 0.111
    monkeypatch.setattr(taught, "stored", lambda: rows)
    assert taught.summary() == first
    assert taught.better_table() != later


def test_taught_models_without_edges_are_controls_in_both_tables():
    for labels in (taught.GIVEN, taught.SELF_TAUGHT, taught.TAUGHT):
        assert f"| models without edges | {labels} |" in taught.summary()
        assert f"| models without edges | {labels} |" in taught.better_table()


def test_every_split_is_fresh_and_no_row_is_there_twice():
    rows = taught.stored()
    assert len({row["key"] for row in rows}) == len(rows)
    looked_at_before = {0, 1, 2, *range(10, 15), *range(30, 33)}
    assert not {row["seed"] for row in rows} & looked_at_before


def test_more_edges_never_certify_more():
    for row in taught.stored():
        if row["method"] == taught.UNDEFENDED or row["labels"] == taught.TRANSDUCTIVE:
            continue
        for curve in row["test"].values():
            assert curve == sorted(curve, reverse=True)
