"""Every figure of the documentation comes from a file: somebody who types one names its source, or this test turns red."""

import json
import re

import pytest

from experiments.documentation import figures, guides, sources
from experiments.documentation.guides import PAGES, PROJECT
from tests.e2e.docs.doc_figures import figures_in, figures_of

GENERATED = PROJECT / "docs" / "results.md"  # as a whole, which test_results compares
TYPED = [page for page in PAGES if page != GENERATED]
LISTED = [*figures.MEASURED, *figures.SETTINGS, *figures.TESTED, *figures.EXAMPLES]


def name_of(page) -> str:
    return page.relative_to(PROJECT).as_posix()


def places(words: str, text: str) -> list[tuple[int, int]]:
    """Where words stand on a page: ``{}`` is any number, and a blank may be a line break."""
    pattern = r"\s+".join(re.escape(word) for word in words.split()).replace(r"\{\}", r"[\d,.]+")
    return [found.span() for found in re.finditer(pattern, text)]


def spans_of(entry, text: str) -> list[tuple[int, int]]:
    return places(entry.on_page() if isinstance(entry, figures.Measured) else entry.words, text)


@pytest.mark.parametrize("page", TYPED, ids=name_of)
def test_every_figure_of_a_page_has_a_source(page) -> None:
    text = page.read_text(encoding="utf-8")
    known = [span for entry in LISTED if entry.page == name_of(page) for span in spans_of(entry, text)]
    unknown = [
        f"line {found.line}: {found.text} in “…{found.context}…”"
        for found in figures_of(page)
        if not any(begin <= found.begin and found.end <= end for begin, end in known)
    ]
    advice = "make it a block from rows (experiments/documentation/guides.py), or name its source in figures.py there"
    assert unknown == [], f"{name_of(page)} states figures that nothing compares: {advice}"


@pytest.mark.parametrize("entry", LISTED, ids=lambda entry: f"{entry.page}: {entry.words[:50]}")
def test_a_listed_figure_is_on_its_page_and_its_source_has_it(entry) -> None:
    assert spans_of(entry, (PROJECT / entry.page).read_text(encoding="utf-8")), "the page does not say this"
    if isinstance(entry, figures.Example):
        return
    source = (PROJECT / entry.source).read_text(encoding="utf-8")
    if isinstance(entry, figures.Setting):
        assert entry.key in source
    if isinstance(entry, figures.Tested):
        assert f"def {entry.test}(" in source


@pytest.mark.parametrize("page", [page for page in TYPED if "<!-- rows: " in page.read_text("utf-8")], ids=name_of)
def test_blocks_are_what_the_rows_give(page) -> None:
    text = page.read_text(encoding="utf-8")
    assert guides.filled(text) == text, "python -m experiments.documentation writes it anew"


def test_every_block_is_on_a_page() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in TYPED)
    assert [name for name in guides.BLOCKS if f"<!-- rows: {name} -->" not in text] == []


def test_a_block_that_nobody_makes_is_refused() -> None:
    with pytest.raises(LookupError, match="no block is called 'a wish'"):
        guides.filled("<!-- rows: a wish -->\n.999\n<!-- end -->")


@pytest.mark.parametrize(
    ("name", "block"),
    [("pair_votes_links", "pairs, links"), ("label_votes", "labels"), ("poisoned_graphs", "poisoned graphs")],
)
def test_a_changed_row_and_a_new_one_are_noticed(name: str, block: str, monkeypatch) -> None:
    before = guides.BLOCKS[block]()
    rows = json.loads(json.dumps(sources.rows(name)))
    changed = [{**row, "certified": [0.111] * len(row["certified"])} if k == 0 else row for k, row in enumerate(rows)]
    monkeypatch.setattr(sources, "rows", lambda _: changed)
    assert guides.BLOCKS[block]() != before
    added = [*rows, {**rows[0], "seed": 999, "certified": [0.222] * len(rows[0]["certified"])}]
    monkeypatch.setattr(sources, "rows", lambda _: added)
    assert guides.BLOCKS[block]() != before


@pytest.mark.parametrize("negatives", ["uniform", "degree"])
def test_the_table_of_links_has_both_ways_to_draw_pairs_that_are_none(negatives: str, monkeypatch) -> None:
    before = guides.pair_links()
    rows = sources.rows("pair_votes_links")
    changed = []
    for row in rows:
        is_drawn_so = row["negatives"] == negatives
        changed.append({**row, "certified": [0.111] * len(row["certified"])} if is_drawn_so else row)
    monkeypatch.setattr(sources, "rows", lambda _: changed)
    assert ".111" in guides.pair_links()
    assert ".111" not in before


@pytest.mark.parametrize(
    "sentence",
    [
        "It certifies .931 of the nodes.", "Accuracy is 0.93.", "| Cora-ML | .874 |", "about 87 % of them", "87.2% of them",
        "It is 3.5 points better.", "It takes 12 s.", "It takes 11 minutes.", "A file of 300 MB.", "97,739 certificates",
        "Of 40 attacks none succeeded.", "in 9 of 30 runs", "2.4 million votes", "up to 900 events per second",
        "```text\nAt least 94.5 % hold\n```",
        "<!-- not run: takes long -->\n```console\n$ agnncert demo\nAt least 94.5 % hold\n```",
    ],
)  # fmt: skip
def test_a_typed_figure_is_found(sentence: str, tmp_path) -> None:
    page = tmp_path / "new.md"
    page.write_text(f"# A new page\n\n{sentence}\n", encoding="utf-8")
    assert len(figures_of(page)) == 1


@pytest.mark.parametrize(
    "text",
    [
        "Set `size=0.5` for 3 changes.", "[a paper](https://doi.org/10.1137/1.97)", "Theorem 12 has three parts, see 2024.",
        "<!-- rows: labels -->\n| .874 | 97,739 |\n<!-- end -->", "```python\nx = 0.931\n```\n\n```text\n0.931\n```",
        "<!-- not run: takes long -->\n```console\n$ agnncert certify RUN --set false_positive_rate=0.01\n```",
    ],
)  # fmt: skip
def test_figures_that_something_else_compares_are_not_reported(text: str, tmp_path) -> None:
    page = tmp_path / "new.md"
    page.write_text(f"# A new page\n\n{text}\n", encoding="utf-8")
    assert figures_of(page) == []


def test_a_figure_next_to_a_listed_one_is_not_covered_by_it() -> None:
    assert places("about {} lines", "about 7,800\nlines and .9") == [(0, 17)]
    assert [found.text for found in figures_in("about 7,800 lines and .9", [])] == ["7,800", ".9"]
