"""The page of cards: filters, sorting, controls that stay, and nothing that is loaded from elsewhere."""

import pytest

from agnncert_peers.card_check import CardVerdict
from agnncert_peers.card_page import render
from agnncert_peers.cards import Card, Run

pytestmark = pytest.mark.browser
SIZES = (0, 1, 2)


def made(
    defence: str,
    shares: tuple[float, ...],
    control: bool = False,
    threat: str = "edges",
    dataset: str = "a",
    sizes: tuple[int, ...] = SIZES,
):
    guarantee = "none" if defence.startswith("undefended") else "deterministic"
    run = Run(0, "", 10, shares, "certificate", "0" * 64)
    own = Card(defence, "T = 9", guarantee, control, threat, dataset, "", "30 %", sizes, shares, (run,), "them, 2026")
    return own, CardVerdict(None, (), (), 3)


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    cards = [
        made("undefended GCN", (0.9, 0.0, 0.0), control=True), made("graph-free", (0.6, 0.6, 0.6), control=True),
        made("first", (0.8, 0.7, 0.5)), made("second", (0.7, 0.69, 0.68)), made("other", (0.5, 0.5, 0.1), dataset="b"),
        made("featured", (0.5, 0.4, 0.1), threat="features"),
        made("flipped", (0.7, 0.6), threat="flipped labels", sizes=(0, 20)),
    ]  # fmt: skip
    file = tmp_path_factory.mktemp("cards") / "cards.html"
    file.write_text(render(cards, [verdict for _, verdict in cards]), encoding="utf-8")
    return file


def shown(page) -> list[str]:
    return [row.split("\t")[0].split(" control")[0].split(" ceiling")[0].strip() for row in page.locator(
        "#cards tbody tr:not([hidden]) th"
    ).all_inner_texts()]  # fmt: skip


def test_filters_choose_and_controls_stay(open_page, page_file):
    page = open_page(page_file, ready=False)
    page.select_option("#c-threat", "edges")
    page.select_option("#c-dataset", "a")
    assert shown(page) == ["graph-free", "undefended GCN", "second", "first"]
    page.fill("#c-search", "sec")
    assert shown(page) == ["graph-free", "undefended GCN", "second"]
    page.fill("#c-search", "")
    page.select_option("#c-dataset", "")
    assert "other" in shown(page)
    assert (
        "1 results" in page.locator("#c-status").inner_text() or "3 results" in page.locator("#c-status").inner_text()
    )


def test_columns_sort_below_the_controls_and_the_best_is_marked(open_page, page_file):
    page = open_page(page_file, ready=False)
    page.select_option("#c-threat", "edges")
    page.select_option("#c-dataset", "a")
    page.click("#cards thead button >> text='1'")
    assert shown(page)[2:] == ["first", "second"]
    page.click("#cards thead button >> text='1'")
    assert shown(page)[2:] == ["second", "first"]
    assert page.locator("#cards tr.is-defence:not([hidden]) td.best").all_inner_texts() == ["68.0", "80.0", "70.0"]
    assert page.locator("#cards tr.is-defence:not([hidden]) td.below").all_inner_texts() == ["50.0"]


def test_it_fits_a_phone(open_page, page_file):
    page = open_page(page_file, width=390, ready=False)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390


def test_sizes_that_no_shown_card_states_have_no_column(open_page, page_file):
    page = open_page(page_file, ready=False)
    sizes = "#cards thead th.num:not([hidden]) button"
    page.select_option("#c-dataset", "a")
    page.select_option("#c-threat", "flipped labels")
    assert page.locator(sizes).all_inner_texts()[:-2] == ["0", "20"]
    page.select_option("#c-threat", "edges")
    assert page.locator(sizes).all_inner_texts()[:-2] == ["0", "1", "2"]
