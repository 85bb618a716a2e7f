"""The page in a real browser: a person can read and use it."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agnncert.certificates.budget import Budget
from agnncert.proving.certificate import Certificate, load_certificate
from agnncert.report.summary import AT_MOST, VOTES_REFERENCE
from tests.support.pages import choose_many, enter, report, shown, some_truth, table_column, until
from tests.support.paths import GOLDEN
from tests.support.synthetic import made_up_certificate, sampled_certificate
from tests.support.toys import toy_certificate

pytestmark = pytest.mark.browser

EVIL = '</script><script>alert("id")</script><img src=x onerror=alert(1)>'


def test_every_id_can_be_chosen_to_the_last_digit_and_blank(tmp_path: Path, open_page: Any) -> None:
    ids = [2**53, 2**53 + 1, 2**64, 2**64 + 1, "7 ", " 7", 7, "007", "\u00e9", "e\u0301"]
    random = np.random.default_rng(6)
    certificate, _ = made_up_certificate(random, "edge-centric/node", len(ids), 20, 3, target=ids)
    page = open_page(report(tmp_path, certificate))
    titles = choose_many(page, [str(name) for name in ids], "#onetarget h3", "textContent")
    assert titles == [[f"Node {name}"] for name in ids]


def test_the_votes_of_one_target_are_the_votes_that_were_cast(tmp_path: Path, open_page: Any) -> None:
    certificate, _ = made_up_certificate(np.random.default_rng(5), "node-centric/graph", 12, 15, 3, mean_degree=8.0)
    page = open_page(report(tmp_path, certificate))
    votes = certificate.evidence.votes.dense()
    cells = choose_many(page, [str(one) for one in certificate.target], "#onetarget .votes span")
    assert cells == [["–" if k < 0 else str(k) for k in row] for row in votes]
    page.locator("#choose-id").fill("nobody")
    page.keyboard.press("Enter")
    assert "no target" in page.locator("#choose-status").inner_text()


def test_the_table_can_be_searched_sorted_and_filtered(tmp_path: Path, open_page: Any) -> None:
    certificate, degree = made_up_certificate(np.random.default_rng(6), "edge-centric/node", 200, 30, 3)
    truth = some_truth(certificate)
    page = open_page(report(tmp_path, certificate, truth=truth, degree=degree, class_names=["red", "green", "blue"]))
    assert table_column(page, 1)[:3] == ["7", "10", "13"], "ids sort as numbers, not as text"
    page.locator("#targets th button", has_text="Radius").click()
    assert [int(text) for text in table_column(page, 4)] == sorted(certificate.radius, reverse=True)[:25]
    page.locator("#targets th button", has_text="Radius").click()
    assert [text.replace("none", "-1") for text in table_column(page, 4)] == [
        str(r) for r in sorted(certificate.radius)[:25]
    ]
    assert page.locator("#targets th[data-key=radius]").get_attribute("aria-sort") == "ascending"
    page.locator("#t-search").fill("100")
    assert set(table_column(page, 1)) == {str(one) for one in certificate.target if "100" in str(one)}
    page.locator("#t-search").fill("")
    page.locator("#t-label").select_option(label="green")
    page.locator("#t-right").select_option("wrong")
    page.locator("#t-radius").fill("5")
    expected = ((certificate.label == 1) & (truth != 1) & (certificate.radius >= 5)).sum()
    assert page.locator("#t-status").inner_text().startswith(f"{expected} target")
    assert 0 < expected < 200


def test_ids_that_are_no_numbers_are_sorted_as_text(tmp_path: Path, open_page: Any) -> None:
    """Digits inside a UUID are no numbers: "9e…" comes after "10…" for who sorts them so."""
    ids = ["9e1f2c3a-77b0", "10aa0000-0001", "2bcd0000-9999", "a0000000-0000", "10aa0000-0000"]
    certificate, _ = made_up_certificate(np.random.default_rng(6), "edge-centric/node", 5, 8, 3, target=ids)
    page = open_page(report(tmp_path, certificate))
    assert table_column(page, 1) == sorted(ids)


def test_every_picture_has_a_role_and_a_title(tmp_path: Path, open_page: Any) -> None:
    certificate, degree = made_up_certificate(np.random.default_rng(6), "edge-centric/node", 60, 30, 3)
    page = open_page(report(tmp_path, certificate, truth=some_truth(certificate), degree=degree))
    page.wait_for_selector("svg[role=img]")
    pictures = page.eval_on_selector_all(
        "svg:not([aria-hidden=true])",
        "all => all.map((one) => [one.getAttribute('role'), one.querySelector('title')?.textContent ?? ''])",
    )
    assert len(pictures) >= 3
    assert all(role == "img" and len(title) > 20 for role, title in pictures), pictures


def test_the_table_follows_the_budget(tmp_path: Path, open_page: Any) -> None:
    certificate, _ = made_up_certificate(np.random.default_rng(7), "node-centric/node", 60, 20, 3, mean_degree=8.0)
    page = open_page(report(tmp_path, certificate))
    page.locator("#t-holds").select_option("open")
    enter(page, Budget(add_edges=4), by_slider=True)
    fails = ~certificate.holds_against(Budget(add_edges=4))
    assert page.locator("#t-status").inner_text().startswith(f"{fails.sum()} target")
    assert 0 < fails.sum() < 60


def test_pages_of_the_table_show_every_target_once(tmp_path: Path, open_page: Any) -> None:
    certificate, _ = made_up_certificate(np.random.default_rng(8), "edge-centric/graph", 60, 20, 3)
    page = open_page(report(tmp_path, certificate))
    seen = table_column(page, 1)
    while page.locator("#t-pager button", has_text="Next").is_enabled():
        page.locator("#t-pager button", has_text="Next").click()
        seen += table_column(page, 1)
    assert sorted(seen) == sorted(str(one) for one in certificate.target)


def test_names_from_the_data_cannot_become_markup(tmp_path: Path, open_page: Any) -> None:
    ids = np.array([EVIL, "plain", '"&amp;<b>', "a\u2028b", "{{7*7}}"])
    certificate, _ = made_up_certificate(np.random.default_rng(9), "edge-centric/node", 5, 10, 3, target=ids)
    path = report(
        tmp_path,
        certificate,
        truth=some_truth(certificate),
        class_names=[EVIL, "</style>", "</title><script>alert(2)</script>"],
        dataset=EVIL,
        attack=EVIL,
        attacked=[(1, 0.5)],
        environment={EVIL: EVIL},
        commands=[EVIL],
        certificate_path=EVIL,
    )
    page = open_page(path)
    page.locator("#targets th button", has_text="Node").click()
    assert sorted(table_column(page, 1)) == sorted(ids.tolist())
    for v in range(5):
        page.locator("#targets tbody button").nth(v).click()
        assert page.locator("#onetarget h3").inner_text().startswith("Node ")
    assert page.locator("img, script:not(#meta):not(#data)").count() == 1, "one script, ours, and no image"
    assert page.locator("b").count() == 0


def test_a_budget_that_is_too_large_for_one_target_leads_to_the_question_about_the_whole_graph(
    tmp_path: Path, open_page: Any
) -> None:
    certificate, _ = made_up_certificate(np.random.default_rng(3), "node-centric/node", 60, 40, 3, mean_degree=3.0)
    budget = Budget(add_edges=40)
    broken = certificate.broken_at_most(budget)
    assert 0 < broken < 60
    assert not certificate.holds_against(budget).any()
    page = open_page(report(tmp_path, certificate))
    enter(page, budget, by_slider=False)
    assert page.locator("#answer-collective").inner_text() == (
        "So far the whole budget is spent on each target by itself. If it is for the whole graph, once, "
        f"at most {broken} labels can change."
    )


def test_twenty_thousand_targets_fit_and_are_counted_and_searched(tmp_path: Path, open_page: Any) -> None:
    certificate, degree = made_up_certificate(
        np.random.default_rng(10), "edge-centric/node", 20_000, 300, 10, mean_degree=12.0, unstable=0.001
    )
    truth = some_truth(certificate)
    path = report(tmp_path, certificate, truth=truth, degree=degree, undefended=0.85, mlp=0.71)
    assert path.stat().st_size < 6_000_000
    page = open_page(path)
    budget = Budget(add_edges=40, delete_nodes=3)
    enter(page, budget, by_slider=True)
    holds = certificate.holds_against(budget)
    assert shown(page)["kept"] == holds.sum()
    assert shown(page)["broken"] == certificate.broken_at_most(budget)
    page.locator("#targets th button", has_text="Radius").click()
    page.locator("#t-search").fill("99")
    page.locator("#t-holds").select_option("kept")
    kept = {str(name) for name in certificate.target[holds]}
    found = table_column(page, 1)
    assert found
    assert all("99" in name and name in kept for name in found)


def test_everything_can_be_reached_and_named_by_keyboard_and_screen_reader(tmp_path: Path, open_page: Any) -> None:
    certificate, degree = made_up_certificate(np.random.default_rng(11), "gated/node", 30, 20, 3)
    page = open_page(report(tmp_path, certificate, truth=some_truth(certificate), degree=degree))
    unnamed = page.evaluate(
        """() => [...document.querySelectorAll("input, select, button, svg")]
          .filter((one) => !one.ariaLabel && !one.labels?.length && !one.textContent.trim() && one.ariaHidden !== "true")
          .map((one) => one.outerHTML.slice(0, 80))"""
    )
    assert unnamed == []
    page.locator("#r-add_edges").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    assert page.locator("#f-add_edges").input_value() == "2"
    order = []
    for _ in range(4):
        page.keyboard.press("Tab")
        order.append(page.evaluate("document.activeElement.id"))
    assert order == ["f-add_edges", "u-add_edges", "r-delete_edges", "f-delete_edges"]
    page.locator("#announce", has_text="certified").wait_for(state="attached")


def test_the_page_fits_its_window_and_all_charts_are_drawn(tmp_path: Path, open_page: Any) -> None:
    certificate, degree = made_up_certificate(np.random.default_rng(12), "edge-centric/node", 80, 60, 4)
    context = {"truth": some_truth(certificate), "degree": degree, "attacked": [(0, 0.7), (5, 0.66)], "mlp": 0.71}
    path = report(tmp_path, certificate, **context)
    for width, scheme in ((390, "light"), (1240, "dark")):
        page = open_page(path, width=width, colors=scheme)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        for chart in ("accuracy", "classes", "degree"):
            page.wait_for_selector(f"#{chart}-chart svg path", state="attached")
            assert page.locator(f"#{chart}-chart svg").bounding_box()["width"] > 0.8 * (width - 300)
        looks = page.locator("#classes-legend line").evaluate_all(
            "all => all.map(one => getComputedStyle(one).stroke + one.getAttribute('stroke-dasharray'))"
        )
        assert len(set(looks)) == 4
        assert page.locator("#trouble").is_hidden()
        for colours in (scheme, {"light": "dark", "dark": "light"}[scheme]):
            page.emulate_media(color_scheme=colours)
            background = page.evaluate("getComputedStyle(document.body).backgroundColor")
            assert (max(int(c) for c in background[4:-1].split(",")) < 60) == (colours == "dark")


def test_it_prints(tmp_path: Path, open_page: Any) -> None:
    certificate, degree = made_up_certificate(np.random.default_rng(13), "node-centric/node", 80, 60, 4)
    page = open_page(report(tmp_path, certificate, degree=degree))
    printed = page.pdf(format="A4")
    assert printed.startswith(b"%PDF")
    assert 3 <= printed.count(b"/Type /Page\n") <= 14


def test_the_claim_can_be_read_without_scripts(tmp_path: Path, no_scripts: None, open_page: Any) -> None:
    certificate, _ = made_up_certificate(np.random.default_rng(14), "edge-centric/node", 20, 20, 3)
    page = open_page(report(tmp_path, certificate, truth=some_truth(certificate)), ready=False)
    text = page.locator("main").inner_text()
    for sentence in ("What is proved", certificate.claim.unit, "need JavaScript", *certificate.claim.assumes):
        assert sentence in text


def test_samples_get_a_page_that_says_how_sure_it_is(tmp_path: Path, open_page: Any) -> None:
    certificate = sampled_certificate(np.random.default_rng(15), num_targets=30)
    page = open_page(report(tmp_path, certificate, truth=some_truth(certificate)))
    text = page.locator("body").inner_text()
    assert "probabilistic" in text
    assert f"{certificate.claim.alpha:g}" in text
    assert page.locator("#controls").count() == 0
    assert page.locator("#accuracy-chart svg path").count() > 0
    assert len(table_column(page, 1)) == 25
    page.locator("#targets tbody button").first.click()
    assert "samples" in page.locator("#onetarget").inner_text()


def test_stacked_votes_have_scores_in_votes_and_not_counts_of_votes(tmp_path: Path, open_page: Any) -> None:
    certificate = load_certificate(GOLDEN / "stacked-sum.cert")
    page = open_page(report(tmp_path, certificate))
    first, second = sorted(certificate.counts[0] / 2**16, reverse=True)[:2]
    assert "Scores" in page.locator("#targets thead").inner_text()
    assert f"{first:.2f} : {second:.2f}" in page.locator("#targets tbody tr").first.inner_text()
    page.locator("#targets tbody button").first.click()
    told = page.locator("#onetarget").inner_text()
    assert f"The score of class {certificate.label[0]} is {first:.2f}" in told
    assert f"The runner-up has {second:.2f}." in told
    assert "certified largest score" in page.locator("body").inner_text()


def test_a_kind_of_evidence_that_nobody_knows_has_a_page_that_works(tmp_path: Path, open_page: Any) -> None:
    certificate = toy_certificate()
    page = open_page(report(tmp_path, certificate, truth=certificate.label))
    assert "Counts" in page.locator("#targets thead").inner_text()
    assert page.locator("#controls").count() == 0
    assert page.locator("#budgets tbody tr").count() == 8
    page.locator("#targets tbody button").first.click()
    top, following = sorted(certificate.counts[0].tolist(), reverse=True)[:2]
    told = page.locator("#onetarget").inner_text()
    assert f"The count of class 0 is {top}, which is correct. The runner-up has {following}." in told
    assert f"certified against every attack up to size {certificate.radius[0]} (steps)." in told


def test_a_model_whose_votes_are_not_used_is_shown_as_one_without_edges(tmp_path: Path, open_page: Any) -> None:
    certificate = load_certificate(GOLDEN / "stacked-sum.cert")
    silent = replace(certificate.evidence, gate=np.zeros_like(certificate.evidence.gate))
    page = open_page(report(tmp_path, Certificate(certificate.claim, silent, certificate.target)))
    assert "this is a statement about a model without edges" in page.locator("header").inner_text()
    assert "from its own features alone" in page.locator("#target").inner_text()


def test_no_targets_at_all_is_a_page_too(tmp_path: Path, open_page: Any) -> None:
    certificate, _ = made_up_certificate(np.random.default_rng(16), "edge-centric/node", 0, 10, 3)
    page = open_page(report(tmp_path, certificate))
    assert "Nothing is proved" in page.locator("h1").inner_text()


def test_the_data_on_the_page_are_the_certificate_not_a_rounding_of_it(tmp_path: Path, open_page: Any) -> None:
    certificate, _ = made_up_certificate(np.random.default_rng(17), "edge-centric/node", 40, 300, 3)
    page = open_page(report(tmp_path, certificate))
    stored = json.loads(page.locator("#meta").inner_text())
    assert stored["num_targets"] == 40
    page.locator("#t-search").fill("7")
    for id_text, radius in zip(table_column(page, 1), table_column(page, 3), strict=True):
        row = certificate.target.tolist().index(int(id_text))
        assert radius == (f"{certificate.radius[row]}" if certificate.radius[row] >= 0 else "none")


def test_the_address_says_what_is_asked_and_whoever_opens_it_sees_the_same(tmp_path: Path, open_page: Any) -> None:
    certificate, _ = made_up_certificate(np.random.default_rng(3), "node-centric/node", 60, 30, 3)
    path = report(tmp_path, certificate, truth=some_truth(certificate))
    page = open_page(path)
    assert page.evaluate("location.hash") == ""
    budget = Budget(add_edges=2, delete_edges=math.inf, inject_nodes=1, edges_per_injected=5, target_features=True)
    enter(page, budget, by_slider=False)
    page.fill("#choose-id", "40")
    page.click("#choose button")
    until(page, "location.hash.includes('target=40')")
    state = page.evaluate("location.hash")
    assert "add_edges=2" in state
    assert "delete_edges=inf" in state
    again = open_page(path, width=1300, other=True, state=state)
    assert again.locator("#answer-code").text_content() == page.locator("#answer-code").text_content()
    assert again.locator("#answer").get_attribute("data-kept") == page.locator("#answer").get_attribute("data-kept")
    assert again.locator("#onetarget h3").text_content() == "Node 40"
    assert again.evaluate("document.getElementById('explore').getBoundingClientRect().top") < 300


def test_an_address_pasted_into_an_open_page_is_followed(tmp_path: Path, open_page: Any) -> None:
    certificate, _ = made_up_certificate(np.random.default_rng(3), "edge-centric/node", 40, 30, 3)
    page = open_page(report(tmp_path, certificate))
    page.evaluate("location.hash = 'add_edges=3'")
    until(page, "document.getElementById('f-add_edges').value === '3'")
    page.click('nav a[href="#table"]')  # the contents still lead to their sections, and change no budget
    assert page.locator("#f-add_edges").input_value() == "3"


NONSENSE = (
    "#add_edges=-7&delete_edges=NaN",
    "#target=nobody",
    "#%%%",
    "#__proto__=1&constructor=2",
    f"#target={EVIL}",
    "#=&=&add_edges",
)


def test_nonsense_in_the_address_changes_nothing(tmp_path: Path, open_page: Any) -> None:
    certificate, _ = made_up_certificate(np.random.default_rng(3), "edge-centric/node", 40, 30, 3)
    path = report(tmp_path, certificate)
    page = open_page(path)
    plain = page.locator("#answer-code").text_content()
    for state in NONSENSE:
        open_page(path, state=state)
        assert page.locator("#answer-code").text_content() == plain, state


def test_a_table_that_hides_columns_says_so(tmp_path: Path, open_page: Any) -> None:
    certificate, degree = made_up_certificate(np.random.default_rng(3), "edge-centric/node", 40, 30, 3)
    path = report(tmp_path, certificate, truth=some_truth(certificate), degree=degree)
    phone, desk = open_page(path, width=390), open_page(path, width=1300, other=True)
    cue = "#table .cue"
    assert phone.locator(cue).is_visible()
    assert phone.locator("#table .tablebox").get_attribute("data-hidden") == "right"
    phone.evaluate("document.querySelector('#table .tablebox').scrollLeft = 10000")
    until(phone, "document.querySelector('#table .tablebox').dataset.hidden === 'left'")
    assert desk.locator(cue).is_hidden()


def test_targets_of_no_known_class_count_neither_way_on_the_page(tmp_path: Path, open_page: Any) -> None:
    certificate, _ = made_up_certificate(np.random.default_rng(3), "edge-centric/node", 40, 30, 3)
    truth = some_truth(certificate)
    truth[:10] = -1
    page = open_page(report(tmp_path, certificate, truth=truth))
    right = (truth == certificate.label) & (certificate.radius >= 0)
    assert page.locator("#answer-accuracy").text_content() == f"{100 * right.sum() / 30:.1f}\u00a0%"
    for wanted, count in (
        ("right", (truth == certificate.label).sum()),
        ("wrong", ((truth != certificate.label) & (truth >= 0)).sum()),
    ):
        page.select_option("#t-right", wanted)
        assert page.locator("#t-status").text_content().startswith(f"{count} target")


@pytest.mark.parametrize(
    ("theorem", "name"), [("node-centric/graph", f"{AT_MOST} (any)"), ("node-centric/node", VOTES_REFERENCE)]
)
def test_what_is_possible_has_a_line_of_its_own_and_a_name(
    tmp_path: Path, open_page: Any, theorem: str, name: str
) -> None:
    certificate, _ = made_up_certificate(np.random.default_rng(4), theorem, 60, 30, 3)
    path = report(tmp_path, certificate, truth=some_truth(certificate), possible={name: [(0, 0.9), (1, 0.7), (2, 0.6)]})
    for width, scheme in ((390, "light"), (1240, "light"), (1240, "dark")):
        page = open_page(path, width=width, colors=scheme)
        page.wait_for_selector("#accuracy-chart svg path", state="attached")
        assert page.locator("#accuracy-legend li", has_text=name).is_visible()
        key = "ceiling" if name.startswith(AT_MOST) else "reference"
        drawn = page.locator(
            f"#accuracy-chart path[stroke='var(--c-{key})'], #accuracy-chart g[stroke='var(--c-{key})']"
        )
        assert drawn.count() == 1
        line = page.locator("#accuracy-legend li", has_text=name).locator("line")
        assert line.evaluate("one => getComputedStyle(one).stroke") != "none"
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert page.locator("ul.beside li", has_text="not bounded" if key == "ceiling" else "not a bound").is_visible()
