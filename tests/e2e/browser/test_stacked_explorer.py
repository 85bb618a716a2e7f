"""Sliders for stacked votes in a real browser: they say what prover and verifier say, to the last vote."""

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agnncert.certificates.budget import COUNTS, Budget
from agnncert.proving.words import LOWER, UPPER, percent
from agnncert.report import page as build
from agnncert.report.html import checker_script, own_scripts
from agnncert.report.summary import summarise
from agnncert.stacked.record import MOST_NEW
from agnncert.verifier import recount_stacked
from tests.e2e.browser.test_explorer import ASK_MANY, as_json, said_by_evidence
from tests.support.pages import enter_many, random_budget, report, said_by_library, shown, some_truth
from tests.support.stacked_records import KINDS, random_stacked, stacked_certificate

pytestmark = pytest.mark.browser
SCRIPTS = ("base", "rules", "proof", "explorer")
LARGE = (MOST_NEW - 1, MOST_NEW, MOST_NEW + 1, 10**6)  # around what counts as any number


def asked_budget(rng: np.random.Generator) -> Budget:
    budget = random_budget(rng, "node")
    if rng.random() < 0.2:
        budget = budget.but(**{str(rng.choice(COUNTS)): int(rng.choice(LARGE))})
    return budget


def test_the_scripts_of_the_page_count_what_prover_and_verifier_count(blank_page: Any) -> None:
    rng = np.random.default_rng(0)
    cases, expected, held = [], [], []
    for kind in [kind for kind in KINDS for _ in range(12)]:
        evidence = random_stacked(rng, kind, num_classes=int(rng.choice([2, 3, 4])))
        certificate = stacked_certificate(evidence)
        meta, data = build.page_data(summarise(certificate, None))
        budgets = [asked_budget(rng) for _ in range(16)]
        field = str(rng.choice(COUNTS))
        cases.append({"meta": json.dumps(meta), "data": data, "budgets": [as_json(b) for b in budgets], "field": field})
        said = [said_by_evidence(certificate, budget, field, turn) for turn, budget in enumerate(budgets)]
        expected.append((kind, field, budgets, said))
        tables = recount_stacked.tables_of(evidence)
        for budget, answer in zip(budgets, said, strict=True):
            verified = recount_stacked.holds(evidence, tables, budget)
            assert answer["holds"] == verified.astype(int).tolist()
            held.append(verified.mean())
    answers = blank_page.evaluate(ASK_MANY, [source_of_page(), cases])
    for (kind, field, budgets, library), scripts in zip(expected, answers, strict=True):
        for budget, page_says, library_says in zip(budgets, scripts, library, strict=True):
            assert page_says == library_says, (kind, field, budget)
    assert 0.15 < np.mean(held) < 0.85, "hardly anything held, or all: little was tested"


def source_of_page() -> str:
    return "\n".join([checker_script(), *own_scripts(*SCRIPTS)])


@pytest.mark.parametrize("kind", KINDS)
def test_a_person_at_the_sliders_gets_the_answer_of_the_library(kind: str, tmp_path: Path, open_page: Any) -> None:
    rng = np.random.default_rng(len(kind))
    certificate = stacked_certificate(random_stacked(rng, kind, num_targets=40))
    truth = some_truth(certificate)
    page = open_page(report(tmp_path, certificate, truth=truth))
    budgets = [random_budget(rng, "node") for _ in range(40)]
    expected = [said_by_library(certificate, truth, budget) for budget in budgets]
    for budget, page_says, library_says in zip(budgets, enter_many(page, budgets), expected, strict=True):
        assert page_says == library_says, budget
    page.locator("#presets button").nth(1).click()
    assert shown(page)["kept"] == certificate.holds_against(Budget(add_edges=3)).sum()
    page.locator("#f-target_features").check()
    assert "own features enter its score" in page.locator("#answer-why").inner_text()


def test_one_target_withstands_what_the_library_says(tmp_path: Path, open_page: Any) -> None:
    certificate = stacked_certificate(random_stacked(np.random.default_rng(3), "mean by edge"))
    page = open_page(report(tmp_path, certificate))
    most = certificate.max_certified("inject_nodes", edges_per_injected=math.inf)
    for row in (0, 4, 9):
        page.locator("#choose-id").fill(str(certificate.target[row]))
        page.locator("#choose button").click()
        cells = page.locator("#onetarget h4 ~ .tablebox td").all_inner_texts()
        told = dict(zip(cells[::2], cells[1::2], strict=True))
        amount = most[row]
        words = "any" if amount == math.inf else "none" if amount < 0 else f"{int(amount):,}"
        assert told["Nodes injected, with any number of edges"] == words


def test_what_a_page_cannot_count_has_no_sliders_and_no_promise_of_them(tmp_path: Path, open_page: Any) -> None:
    evidence = random_stacked(np.random.default_rng(0), "two levels")
    certificate = stacked_certificate(
        replace(evidence, second=1)
    )  # the odds of thousands of nodes would have to be listed
    assert certificate.evidence.page_rules() is None
    page = open_page(report(tmp_path, certificate))
    assert page.locator("#controls").count() == 0
    assert page.locator("#budgets tbody tr").count() == 8
    assert "slider" not in page.locator("body").inner_text().lower()


def test_a_page_rounds_as_python_does(blank_page: Any) -> None:
    shares = [k / n for n in (3, 7, 16, 200, 1001) for k in range(n + 1)]
    ask = "([source, shares]) => shares.map(new Function(`${source}; return atLeast;`)())"
    assert blank_page.evaluate(ask, [source_of_page(), shares]) == [percent(share, LOWER) for share in shares]


@pytest.mark.parametrize("dark", [False, True])
def test_every_picture_of_a_page_has_a_role_and_a_name(dark: bool, tmp_path: Path, open_page: Any) -> None:
    certificate = stacked_certificate(random_stacked(np.random.default_rng(0), "mean", num_targets=60))
    page = open_page(report(tmp_path, certificate, truth=some_truth(certificate), degree=certificate.evidence.degree))
    page.emulate_media(color_scheme="dark" if dark else "light")
    pictures = page.evaluate(
        """[...document.querySelectorAll("svg")].map((svg) => [
          svg.getAttribute("role"), svg.getAttribute("aria-hidden"), svg.querySelector(":scope > title")?.textContent ?? ""])"""
    )
    assert len(pictures) > 3
    for role, is_hidden, title in pictures:
        assert (role == "img" and title) or (role == "presentation" and is_hidden == "true")


def test_a_rare_class_is_what_the_large_figure_is_about_with_its_false_alarms(tmp_path: Path, open_page: Any) -> None:
    rng = np.random.default_rng(5)
    certificate = stacked_certificate(random_stacked(rng, "sum", num_targets=400, num_classes=2))
    truth = np.zeros(400, dtype=np.int64)
    truth[np.flatnonzero(certificate.label == 1)[:15]] = 1
    page = open_page(report(tmp_path, certificate, truth=truth))
    for amount in (0, 1, 3):
        page.locator("#f-add_edges").fill(str(amount))
        measures = certificate_with(certificate, truth).measures(Budget(add_edges=amount))
        assert page.locator("#answer-accuracy").inner_text() == percent(measures.recall[1], LOWER)
        alarms = percent(measures.false_positive_rate[1], UPPER)
        assert f"at most {alarms} can be taken for it" in page.locator("#answer-classes").inner_text()


def certificate_with(certificate: Any, truth: np.ndarray) -> Any:
    return stacked_certificate(certificate.evidence, truth=truth)
