"""A real browser for the tests of the page: Debian's chromium, driven by playwright."""

from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import which
from typing import Any

import pytest

CHROMIUM = "/usr/bin/chromium"
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    if which(CHROMIUM) is None:
        pytest.skip(f"no chromium at {CHROMIUM}: apt-get install chromium")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield running
        running.close()


@pytest.fixture(scope="session")
def usual_page(browser: Any) -> Any:
    """One page that most tests share: a new one costs more than what they do with it."""
    return _new_page(browser, 1240)


def _new_page(browser: Any, width: int, **options: Any) -> Any:
    page = browser.new_page(viewport={"width": width, "height": 900}, reduced_motion="reduce", **options)
    page.complaints = []
    page.on("console", lambda said: page.complaints.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: page.complaints.append(str(error)))
    page.on("dialog", lambda dialog: (page.complaints.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    page.on("request", lambda sent: None if _is_local(sent.url) else page.complaints.append(sent.url))
    return page


def _is_local(address: str) -> bool:
    return address.startswith(("file:", "data:", "about:"))


@pytest.fixture
def open_page(browser: Any, usual_page: Any) -> Iterator[Callable[..., Any]]:
    """Opens a file, in a page of its own if that is to be special; any error or request to elsewhere fails the test."""
    pages = []

    def opened(path: Path, width: int = 1240, ready: bool = True, **options: Any) -> Any:
        special = width != 1240 or options
        page = _new_page(browser, width, **options) if special else usual_page
        assert page not in pages, "the usual page is open already: ask for another width"
        pages.append(page)
        page.goto("about:blank")
        page.goto(path.as_uri())
        if ready:
            page.wait_for_selector("html[data-ready=yes]", state="attached", timeout=20_000)
        return page

    yield opened
    complaints = [complaint for page in pages for complaint in page.complaints]
    for page in pages:
        if page is usual_page:
            page.goto("about:blank")
            page.complaints = []
        else:
            page.close()
    assert complaints == []
