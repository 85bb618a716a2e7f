"""A real browser for the tests of the page: Debian's chromium, driven by playwright."""

from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import which
from typing import Any

import pytest

# The same browser without its window, where Debian's package of that name is installed, takes half the time to go to a page.
CHROMIUM = which("chromium-headless-shell") or "/usr/bin/chromium"
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
WINDOW = {"width": 1240, "height": 900}


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    if which(CHROMIUM) is None:
        pytest.skip(f"no chromium at {CHROMIUM}: apt-get install chromium-headless-shell")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as driver:
        running = driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield running
        running.close()


@pytest.fixture(scope="session")
def usual_page(browser: Any) -> Any:
    """One page that tests share: a new one takes a second of processor time, more than what they do with it."""
    return _new_page(browser)


@pytest.fixture(scope="session")
def other_page(browser: Any) -> Any:
    """A second one that shares nothing with the first, as if somebody else had opened it."""
    return _new_page(browser)


def _new_page(browser: Any) -> Any:
    page = browser.new_page(viewport=WINDOW, reduced_motion="reduce")
    page.complaints = []
    page.on("console", lambda said: page.complaints.append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: page.complaints.append(f"error: {error}"))
    page.on("dialog", lambda dialog: (page.complaints.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    page.on("request", lambda sent: None if _is_local(sent.url) else page.complaints.append(sent.url))
    return page


def _is_local(address: str) -> bool:
    return address.startswith(("file:", "data:", "about:"))


def _emptied(page: Any) -> list[str]:
    """What the page complained about; the next test finds it as if it were new."""
    page.goto("about:blank")
    page.set_viewport_size(WINDOW)
    page.emulate_media(color_scheme="light")
    complaints, page.complaints = page.complaints, []
    return complaints


@pytest.fixture
def blank_page(usual_page: Any) -> Iterator[Any]:
    """The usual page, empty; any error, warning or request fails the test."""
    yield usual_page
    assert _emptied(usual_page) == []


@pytest.fixture
def online_page(usual_page: Any) -> Iterator[Any]:
    """The usual page, empty; it may ask a server, and a server may refuse or be gone."""
    yield usual_page
    assert [told for told in _emptied(usual_page) if told.startswith(("error:", "dialog:"))] == []


@pytest.fixture
def open_page(request: Any, usual_page: Any) -> Iterator[Callable[..., Any]]:
    """Opens a file in place of what the page showed; any error or request to elsewhere fails the test."""
    pages = []

    def opened(
        path: Path, width: int = 1240, ready: bool = True, colors: str = "light", other: bool = False, state: str = ""
    ) -> Any:
        page = request.getfixturevalue("other_page") if other else usual_page
        pages.append(page)
        if state:
            page.goto("about:blank")  # an address that differs in its state alone would not be loaded anew
        page.set_viewport_size({**WINDOW, "width": width})
        page.emulate_media(color_scheme=colors)
        page.goto(f"{path.as_uri()}{state}")
        if ready:
            page.wait_for_selector("html[data-ready=yes]", state="attached", timeout=20_000)
        return page

    yield opened
    assert [complaint for page in dict.fromkeys(pages) for complaint in _emptied(page)] == []


@pytest.fixture
def no_scripts(usual_page: Any) -> Iterator[None]:
    """What is opened in the usual page runs no scripts."""
    devtools = usual_page.context.new_cdp_session(usual_page)
    devtools.send("Emulation.setScriptExecutionDisabled", {"value": True})
    yield
    devtools.detach()
