"""The page of the service, in a real browser: it follows events, and shows whatever the graph holds as text."""

import pytest

import agnncert_live
from agnncert.errors import IdError
from tests.support.serving import a_service, served

pytestmark = pytest.mark.browser
TOKEN = "a token that nobody guesses"
HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture
def page(online_page):
    return online_page


@pytest.mark.slow
def test_the_page_follows_events(page) -> None:
    def shown(place: str, text: str) -> None:
        sync_api.expect(page.locator(place)).to_contain_text(text, timeout=20_000)

    sync_api = pytest.importorskip("playwright.sync_api")
    service = a_service()
    with served(service, TOKEN) as address:
        page.goto(address)
        shown("#live-status", "wants its token")
        page.fill("#live-token", TOKEN)
        page.click("#live-key button")
        page.wait_for_selector("tr.live-row")
        rows = page.locator("tr.live-row")
        assert rows.count() == 25
        assert page.inner_text("#live-targets") == "30"
        assert rows.first.locator("td").nth(0).inner_text() == service.closest(1)[0]["target"]
        rows.first.click()
        page.wait_for_selector("#live-detail dt")
        assert "votes by class" in page.inner_text("#live-detail")
        client = agnncert_live.LiveClient(address, TOKEN)
        client.apply([agnncert_live.Event("add_node", HOSTILE, value=[-9, 1, 1, 1])])
        client.apply(
            [agnncert_live.Event("change_features", f"user-{k}", value=[9.0 * (-1) ** k, 5, -9, 3]) for k in range(30)]
        )
        client.apply([agnncert_live.Event("change_features", HOSTILE, value=[9, 5, -9, 3])])
        shown("#live-events", "32")
        shown("#live-changes", "flipped")
        shown("#live-changes", HOSTILE)
        assert page.locator("#live-changes img, #live-rows img").count() == 0
    shown("#live-status", "Not current")


EVIL = [
    "</script><script>alert(1)</script>", "<svg onload=alert(2)>", "<a href='javascript:alert(3)'>x</a>", "{{7*7}}",
    "<b>evil</b>", "'\"><iframe srcdoc='<script>alert(4)</script>'>", "</style><img src=x onerror=alert(5)>",
]  # fmt: skip

UNPRINTABLE = "\u202e<b>evil</b>"  # no node may be called this, but classes are named by whoever trains

MARKUP = "#live-detail img, iframe, svg[onload], a[href^=javascript], b, img"
CHOOSE_EACH = """async (markup) => {
  let found = 0;
  for (let row = 0; row < document.querySelectorAll("tr.live-row").length; row++) {
    const told = new Promise((done) => new MutationObserver(done).observe(document.getElementById("live-detail"), { childList: true }));
    document.querySelectorAll("tr.live-row")[row].click();
    await told;
    found += document.querySelectorAll(markup).length;
  }
  return found;
}"""


@pytest.mark.slow
def test_no_name_becomes_markup(page) -> None:
    """Names of the data, of classes and of nodes, also in what has happened and in what is shown about one node."""
    sync_api = pytest.importorskip("playwright.sync_api")
    service = a_service()
    service.name, service.class_names = EVIL[0], [*EVIL[:2], UNPRINTABLE]
    service.live.apply([agnncert_live.Event("add_node", name, value=[-9, 1, 1, 1]) for name in EVIL])
    with pytest.raises(IdError):
        service.live.apply(agnncert_live.Event("add_node", UNPRINTABLE, value=[-9, 1, 1, 1]))
    with served(service) as address:
        page.goto(address)
        page.wait_for_selector("tr.live-row")
        client = agnncert_live.LiveClient(address)
        for value in ([9, 5, -9, 3], [-9, -5, 9, 3], [0, 0, 0, 0]):
            client.apply([agnncert_live.Event("change_features", name, value=value) for name in EVIL])
        client.apply([{"kind": name, "node": name} for name in EVIL])
        sync_api.expect(page.locator("#live-events")).to_contain_text("28", timeout=20_000)
        sync_api.expect(page.locator("#live-changes")).to_contain_text(EVIL[0], timeout=20_000)
        page.locator("tr.live-row").first.click()
        page.wait_for_selector("#live-detail dt")
        assert page.evaluate(CHOOSE_EACH, MARKUP) == 0
        assert page.locator(MARKUP).count() == 0
        assert page.evaluate("document.scripts.length") == 1
        page.goto(f"{address}/api")
        assert page.locator("iframe, img, b").count() == 0
