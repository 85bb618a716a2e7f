"""The explorer in a real browser: for every rule and vote it says what the library says."""

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agnncert.certificates.budget import COUNTS, Budget
from agnncert.certificates.voting_rule import VotingRule
from agnncert.report import page as build
from agnncert.report.html import checker_script, own_scripts
from agnncert.report.summary import summarise
from tests.support.certificates import random_vote
from tests.support.pages import (
    choose_many,
    enter,
    enter_many,
    random_budget,
    report,
    said_by_library,
    shown,
    some_truth,
)
from tests.support.synthetic import made_up_certificate
from tests.support.theorems import THEOREMS

pytestmark = pytest.mark.browser

AT_THE_CONTROLS = {
    "edge-centric/node": VotingRule(),
    "gated/node": VotingRule(),
    "node-centric/graph": VotingRule(),
    "gnncert-en/graph": VotingRule(),
    "custom/node": VotingRule(),
    "node-centric/node": VotingRule(1, [0, 3, -2]),
    "edge-centric/graph": VotingRule(1, [2, 6, 0]),
    "per-neighbour/node": VotingRule("abstain", 4),
    "per-pair/node": VotingRule(2, 5),
    "per-pair/graph": VotingRule("abstain", [0, 5, 1]),
}

# What the page's own scripts make of a payload, without a page around it.
ASK_MANY = """async ([source, cases]) => {
  const scripts = new Function(`${source}; return { readPayload, makeRules, emptyBudget };`)();
  const said = [];
  for (const { meta, data, budgets, field } of cases) {
    document.body.innerHTML = "<p id=meta></p><p id=data></p>";
    document.getElementById("meta").textContent = meta;
    document.getElementById("data").textContent = data;
    const report = await scripts.readPayload();
    report.counts = (v) => report.arrays.counts.subarray(v * report.meta.num_classes, (v + 1) * report.meta.num_classes);
    const rules = scripts.makeRules(report);
    const number = (value) => (value === null ? Infinity : value);
    const asked = budgets.map((b) => Object.fromEntries(Object.entries(b).map(([k, v]) => [k, number(v)])));
    said.push(asked.map((budget, turn) => ({
      holds: [...rules.holds(budget)],
      broken: rules.brokenAtMost(budget),
      most: turn % 4 ? [] : [0, 1, 2].map((v) => rules.largestOne(field, { ...budget, [field]: 0 }, v)).map((most) => (most === Infinity ? null : most)),
    })));
  }
  return said;
}"""


def as_json(budget: Budget) -> dict[str, Any]:
    counts = {name: getattr(budget, name) for name in COUNTS}
    finite = {name: None if value == math.inf else value for name, value in counts.items()}
    return finite | {"target_features": budget.target_features}


def said_by_evidence(certificate: Any, budget: Budget, field: str, turn: int) -> dict[str, Any]:
    most = np.zeros(0) if turn % 4 else certificate.evidence.max_certified(field, budget.but(**{field: 0}))[:3]
    return {
        "holds": certificate.holds_against(budget).astype(int).tolist(),
        "broken": certificate.broken_at_most(budget),
        "most": [None if value == math.inf else value for value in most.tolist()],
    }


def test_the_scripts_of_the_page_count_what_the_library_counts(blank_page: Any) -> None:
    """All rules, random votes, mixed budgets; broken_at_most and largest too."""
    rng = np.random.default_rng(0)
    cases, expected = [], []
    for theorem in [name for name in THEOREMS for _ in range(12 if THEOREMS[name].targets_per_node else 3)]:
        voting_rule = VotingRule() if rng.random() < 0.2 else random_vote(rng, theorem)
        shape = {
            "unstable": float(rng.choice([0.0, 0.03])),
            "doubtful": 0.2,
            "mean_degree": float(rng.choice([2, 6, 12])),
        }
        certificate, _ = made_up_certificate(
            rng, theorem, 15, 12, 3, ids=str(rng.choice(["node_id", "row"])), voting_rule=voting_rule, **shape
        )
        meta, data = build.page_data(summarise(certificate, None))
        budgets = [random_budget(rng, certificate.claim.task) for _ in range(16)]
        field = str(rng.choice(COUNTS))
        asked = {"meta": json.dumps(meta), "data": data, "budgets": [as_json(each) for each in budgets], "field": field}
        cases.append(asked)
        expected.append(
            (
                theorem,
                voting_rule,
                field,
                budgets,
                [said_by_evidence(certificate, each, field, turn) for turn, each in enumerate(budgets)],
            )
        )
    source = "\n".join([checker_script(), *own_scripts("base", "rules", "proof", "detail", "explorer")])
    said = blank_page.evaluate(ASK_MANY, [source, cases])
    for (theorem, voting_rule, field, budgets, library), scripts in zip(expected, said, strict=True):
        for budget, page_says, library_says in zip(budgets, scripts, library, strict=True):
            assert page_says == library_says, (theorem, voting_rule, field, budget)
    shares = [np.mean([answer["holds"] for answer in library]) for *_, library in expected]
    assert np.mean(np.array(shares) > 0.15) > 0.5, "hardly anything held: little was tested"


@pytest.mark.parametrize("theorem", AT_THE_CONTROLS)
def test_the_explorer_says_what_holds_against_says(theorem: str, tmp_path: Path, open_page: Any) -> None:
    rng = np.random.default_rng(len(theorem))
    certificate, _ = made_up_certificate(rng, theorem, 50, 21, 3, unstable=0.01, voting_rule=AT_THE_CONTROLS[theorem])
    truth = some_truth(certificate)
    page = open_page(report(tmp_path, certificate, truth=truth))
    budgets = [random_budget(rng, certificate.claim.task) for _ in range(100)]
    expected = [said_by_library(certificate, truth, budget) for budget in budgets]
    for budget, page_says, library_says in zip(budgets, enter_many(page, budgets), expected, strict=True):
        assert page_says == library_says, budget
    assert len({answer["kept"] for answer in expected}) > 3, "the budgets were all alike: nothing was tested"


def test_a_person_at_the_controls_gets_the_library_answer(tmp_path: Path, open_page: Any) -> None:
    rng = np.random.default_rng(20)
    certificate, _ = made_up_certificate(rng, "gated/node", num_targets=50, num_groups=20, num_classes=3)
    truth = some_truth(certificate)
    page = open_page(report(tmp_path, certificate, truth=truth))
    for by_slider in (True, False, True, False, True, False):
        budget = random_budget(rng, "node")
        enter(page, budget, by_slider)
        assert shown(page) == said_by_library(certificate, truth, budget), budget


def test_what_is_certified_is_not_rounded_up_on_the_page(tmp_path: Path, open_page: Any) -> None:
    certificate, _ = made_up_certificate(np.random.default_rng(1), "node-centric/node", 2400, 10, 3)
    truth = certificate.label.copy()
    truth[-1] = (truth[-1] + 1) % 3
    page = open_page(report(tmp_path, certificate, truth=truth))
    assert shown(page)["right"] == 2399
    assert page.locator("#answer-accuracy").inner_text() == "99.9\u00a0%"


def test_row_numbers_as_ids_refuse_deleted_nodes_on_the_page_too(tmp_path: Path, open_page: Any) -> None:
    certificate, _ = made_up_certificate(np.random.default_rng(1), "node-centric/node", 30, 20, 3, ids="row")
    page = open_page(report(tmp_path, certificate))
    enter(page, Budget(delete_nodes=1), by_slider=True)
    assert not certificate.holds_against(Budget(delete_nodes=1)).any()
    assert shown(page)["kept"] == 0
    assert "row numbers" in page.locator("#answer-why").inner_text()


def test_every_preset_gives_the_library_answer_for_the_code_it_shows(tmp_path: Path, open_page: Any) -> None:
    certificate, _ = made_up_certificate(np.random.default_rng(2), "gated/node", 40, 20, 3, mean_degree=9.0)
    page = open_page(report(tmp_path, certificate))
    for button in page.locator("#presets button").all():
        button.click()
        budget = eval(
            page.locator("#answer-code").inner_text().removeprefix("certificate.holds_against(ac.").removesuffix(")"),
            {"Budget": Budget, "math": math},
        )
        assert shown(page)["kept"] == certificate.holds_against(budget).sum(), button.inner_text()


def test_typed_nonsense_counts_as_nothing(tmp_path: Path, open_page: Any) -> None:
    certificate, _ = made_up_certificate(np.random.default_rng(3), "edge-centric/node", 30, 20, 3)
    page = open_page(report(tmp_path, certificate))
    before = shown(page)
    for text in ("", "-5", "0.7"):
        page.locator("#f-add_edges").fill(text)
        assert shown(page) == before
    page.locator("#f-delete_nodes").focus()
    assert page.locator("#f-add_edges").input_value() == "0"


def test_one_target_withstands_what_largest_says(tmp_path: Path, open_page: Any) -> None:
    certificate, _ = made_up_certificate(np.random.default_rng(4), "edge-centric/node", 25, 20, 3, mean_degree=4.0)
    page = open_page(report(tmp_path, certificate))
    asked = {
        "Edges added": certificate.max_certified("add_edges"),
        "Edges deleted": certificate.max_certified("delete_edges"),
        "Nodes deleted": certificate.max_certified("delete_nodes"),
        "Nodes injected, with any number of edges": certificate.max_certified(
            "inject_nodes", edges_per_injected=math.inf
        ),
    }
    rows = range(0, 25, 4)
    tables = choose_many(page, [str(certificate.target[row]) for row in rows], "#onetarget h4 ~ .tablebox td")
    for row, cells in zip(rows, tables, strict=True):
        told = dict(zip(cells[::2], cells[1::2], strict=True))
        assert len(told) == len(cells) / 2
        for name, most in asked.items():
            amount = most[row]
            assert told[name] == ("any" if amount == math.inf else "none" if amount < 0 else f"{amount:.0f}")
