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


@pytest.fixture
def open_page(browser: Any) -> Iterator[Callable[..., Any]]:
    """Opens a file in a new page; at the end of the test, any error or request to elsewhere fails it."""
    pages, complaints = [], []

    def opened(path: Path, width: int = 1240, ready: bool = True, **options: Any) -> Any:
        page = browser.new_page(viewport={"width": width, "height": 900}, reduced_motion="reduce", **options)
        pages.append(page)
        page.on("console", lambda said: complaints.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: (complaints.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on(
            "request", lambda sent: None if sent.url.startswith(("file:", "data:")) else complaints.append(sent.url)
        )
        page.goto(path.as_uri())
        if ready:
            page.wait_for_selector("html[data-ready=yes]", state="attached", timeout=20_000)
        return page

    yield opened
    for page in pages:
        page.close()
    assert complaints == []
