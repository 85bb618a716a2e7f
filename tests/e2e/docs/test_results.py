"""The results page, its pictures and its tables are what the committed rows give; a number that no row has cannot stand there."""

import html
import json
import re

import pytest

from experiments.benchmarks.field import TAUGHT, THREATS, UNTAUGHT
from experiments.documentation import facts, page, sources
from experiments.documentation.pictures import PICTURES
from experiments.documentation.tables import TABLES, as_csv


@pytest.fixture(autouse=True)
def _fresh_rows():
    """Rows that a test altered are read again by the next one."""
    yield
    for reader in (sources.rows, sources.document, sources.paper):
        reader.cache_clear()


def test_the_page_is_what_the_rows_give():
    assert page.text() == page.PAGE.read_text(encoding="utf-8"), "python -m experiments.documentation writes it anew"


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_what_the_rows_give(name):
    assert as_csv(TABLES[name]()) == (page.FOLDER / f"{name}.csv").read_text(encoding="utf-8")


@pytest.mark.parametrize("make", PICTURES, ids=lambda make: make.__name__)
def test_a_picture_says_the_numbers_that_the_rows_give(make):
    picture = make()
    svg = (page.FOLDER / f"{picture.name}.svg").read_text(encoding="utf-8")
    (first,) = re.findall(r"<svg ([^>]*)>", svg)[:1]
    assert 'role="img"' in first
    assert html.unescape(re.findall(r"<title>(.*?)</title>", svg)[0]) == picture.title
    assert html.unescape(re.findall(r"<desc>(.*?)</desc>", svg)[0]) == picture.about


def test_every_table_and_picture_is_on_the_page_and_no_other_file_is_there():
    text = page.PAGE.read_text(encoding="utf-8")
    named = set(re.findall(r"\(results/([\w.-]+)\)", text))
    assert named == {file.name for file in page.FOLDER.iterdir()}
    assert set(page.FILES) == set(TABLES)


def test_a_changed_row_is_noticed(monkeypatch):
    changed = json.loads(json.dumps(sources.rows("fraud")))
    next(row for row in changed if row["method"] == "stacked votes" and row["times"])["clean"]["recall@0.1"] = 0.111
    read = sources.rows
    for user in (facts, page):
        monkeypatch.setattr(user, "rows", lambda name: changed if name == "fraud" else read(name))
    monkeypatch.setattr(
        "experiments.documentation.tables.rows", lambda name: changed if name == "fraud" else read(name)
    )
    assert page.text() != page.PAGE.read_text(encoding="utf-8")


def test_a_number_without_a_row_is_refused():
    with pytest.raises(LookupError, match="no row has"):
        facts.fraud("ethereum-phishing", "a method that nobody ran")


@pytest.mark.parametrize("protocol", [TAUGHT, UNTAUGHT])
def test_numbers_of_taught_and_untaught_defences_are_about_the_same_splits(monkeypatch, protocol):
    rows = [row for row in sources.rows("field") if row["protocol"] in (TAUGHT, UNTAUGHT)]
    assert facts.num_taught_splits() == len({row["seed"] for row in rows})
    lacking = next(row for row in rows if row["protocol"] == protocol)
    monkeypatch.setattr(facts, "rows", lambda name: [row for row in rows if row is not lacking])
    with pytest.raises(LookupError, match="are about the splits"):
        facts.num_taught_splits()


def test_the_defence_without_a_line_certifies_nothing():
    found = [row for row in sources.rows("field") if row["defence"] == facts.NEVER_PROVES]
    assert found
    assert not any(any(row[threat][1:]) for row in found for threat in THREATS)


def test_a_control_is_never_the_best_defence_and_what_proves_nothing_is_left_out(monkeypatch):
    values = {
        "graph-free MLP ensemble": (0.6, 0.9),
        "AGNNCert-N": (0.7, 0.8),
        "stacked votes": (0.8, 0.7),
        "RS": (0.0, 0.0),
    }
    rows = [
        {"dataset": dataset, "protocol": protocol, "defence": defence, "added edges": [0.95, values[defence][k]]}
        for defence in values
        for k, protocol in enumerate((UNTAUGHT, TAUGHT))
        for dataset in facts.NODE_SETS
    ]
    monkeypatch.setattr(facts, "rows", lambda name: rows)
    lines = facts.field_table("added edges", 1, {name: name for name in values}, taught=True).splitlines()
    num_sets = len(facts.NODE_SETS)
    assert lines[2:] == [
        f"| graph-free MLP ensemble |{' 60.0 → 90.0 |' * num_sets}",
        f"| AGNNCert-N |{' 70.0 → **80.0** |' * num_sets}",
        f"| stacked votes |{' 80.0 → 70.0 |' * num_sets}",
    ]


def test_methods_that_were_only_tried_are_no_part_of_what_was_measured():
    from experiments.benchmarks.bigvul_page import Rows

    row = {"protocol": "big-vul", "method": "tokens", "seed": 0}
    rows = Rows([{**row, "stage": "controls", "accuracy": 0.7}, {**row, "stage": "tried", "accuracy": 0.5}])
    assert rows.mean("big-vul", "tokens", "accuracy") == "0.700"
