"""The page of a scan in a real browser."""

from dataclasses import replace

import pytest

from agnncert_code.page import write_scan_page
from tests.support.scanned import hostile_scan

pytestmark = pytest.mark.browser


@pytest.fixture
def page_file(tmp_path):
    scan = hostile_scan()
    many = tuple(replace(scan.functions[1], line=10 + k, name=f"other_{k}") for k in range(60))
    return write_scan_page(replace(scan, functions=(*scan.functions, *many)), tmp_path / "scan.html")


def shown(page):
    return page.locator(".scanned tbody tr:visible").count()


def test_rows_can_be_found_and_hostile_text_does_nothing(open_page, page_file):
    page = open_page(page_file, ready=False)  # a dialog or an error would fail the test
    assert shown(page) == 40
    page.click("#s-more")
    assert shown(page) == 62
    page.fill("#s-search", "other_5")
    assert shown(page) == 11
    page.fill("#s-search", "")
    page.fill("#s-edits", "1")
    assert page.locator("#s-status").inner_text() == "1 of 62 functions"
    assert page.locator("img").count() == 0
    assert "accuracy of this detector is unknown" in page.locator("#accuracy").inner_text()


def test_a_link_unfolds_the_text_and_the_page_fits_a_phone(open_page, page_file):
    page = open_page(page_file, width=390, ready=False)
    page.eval_on_selector("details.function", "one => one.open = false")
    page.click(".scanned tbody a")
    page.locator("#f0 .listing tr.for").wait_for(state="visible", timeout=5_000)  # raises if it stays folded
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
