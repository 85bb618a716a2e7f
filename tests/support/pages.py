"""What tests of the page do with it: make one, work its controls, and ask the library for the same."""

import math
import time
from pathlib import Path
from typing import Any

import numpy as np

from agnncert.certificates.budget import COUNTS, Budget
from agnncert.proving.measures import rare_class
from agnncert.proving.words import LOWER, percent
from agnncert.report.page import build_report
from agnncert.report.summary import ReportContext


def report(tmp_path: Path, certificate: Any, **context: Any) -> Path:
    return build_report(certificate, tmp_path / "report.html", context=ReportContext(**context))


def some_truth(certificate: Any, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    guess = rng.integers(certificate.counts.shape[1], size=len(certificate.label))
    return np.where(rng.random(len(guess)) < 0.7, certificate.label, guess)


def random_budget(rng: np.random.Generator, task: str) -> Budget:
    """A few kinds of change, mostly small, sometimes unlimited: where the answers differ between targets."""
    fields = rng.choice(COUNTS, size=rng.choice([1, 1, 2, 3, len(COUNTS)]), replace=False)
    sizes = [1, 2, int(rng.integers(3, 12)), math.inf]
    amounts = {str(field): sizes[rng.choice(4, p=[0.3, 0.25, 0.3, 0.15])] for field in fields}
    return Budget(**amounts, target_features=bool(task == "node" and rng.random() < 0.15))


def enter(page: Any, budget: Budget, by_slider: bool) -> None:
    """Sets the explorer as a person would: boxes, numbers, sliders."""
    for field in COUNTS:
        value = getattr(budget, field)
        unlimited, number = page.locator(f"#u-{field}"), page.locator(f"#{'r' if by_slider else 'f'}-{field}")
        if unlimited.is_checked() != (value == math.inf):
            unlimited.set_checked(value == math.inf)
        if value != math.inf and number.input_value() != str(value):
            number.fill(str(value))
    if page.locator("#f-target_features").count():
        page.locator("#f-target_features").set_checked(budget.target_features)


# The same without a person: the controls get their values and the events that a hand would cause.
ENTER_MANY = """(budgets) => budgets.map((budget) => {
  const set = (id, name, value, event) => {
    const control = document.getElementById(id);
    if (!control || control[name] === value) return;
    control[name] = value;
    control.dispatchEvent(new Event(event, { bubbles: true }));
  };
  for (const [field, value] of Object.entries(budget.counts)) {
    set(`u-${field}`, "checked", value === null, "change");
    if (value !== null) set(`${budget.by}-${field}`, "value", String(value), "input");
  }
  set("f-target_features", "checked", budget.own, "change");
  const { kept, right, broken } = document.getElementById("answer").dataset;
  return {
    kept: Number(kept), right: Number(right), broken: Number(broken),
    accuracy: document.getElementById("answer-accuracy").textContent,
    ids: [...document.querySelectorAll("#survivors-list li")].map((item) => item.textContent),
  };
})"""


def enter_many(page: Any, budgets: list[Budget]) -> list[dict[str, Any]]:
    """Answers of the explorer to many budgets, set by slider and by number in turn."""
    as_json = [
        {
            "by": "rf"[turn % 2],
            "counts": {f: None if getattr(budget, f) == math.inf else getattr(budget, f) for f in COUNTS},
            "own": budget.target_features,
        }
        for turn, budget in enumerate(budgets)
    ]
    return page.evaluate(ENTER_MANY, as_json)


def shown(page: Any) -> dict[str, Any]:
    """What the explorer says at the moment."""
    return page.evaluate(
        ENTER_MANY, [{"by": "f", "counts": {}, "own": page.locator("#f-target_features:checked").count() > 0}]
    )[0]


def said_by_library(certificate: Any, truth: np.ndarray, budget: Budget) -> dict[str, Any]:
    """What the explorer ought to say."""
    holds = certificate.holds_against(budget)
    kept = holds & (truth == certificate.label)
    right = int(kept.sum())
    rare = rare_class(np.bincount(truth[truth >= 0]))
    share = right / len(holds) if rare is None else kept[truth == rare].mean()  # as the headline
    return {
        "kept": int(holds.sum()),
        "right": right,
        "broken": certificate.broken_at_most(budget),
        "accuracy": percent(share, LOWER),
        "ids": [str(one) for one in certificate.target[holds]],
    }


CHOOSE_MANY = """([names, read, words]) => names.map((name) => {
  document.getElementById("choose-id").value = name;
  document.getElementById("choose").requestSubmit();
  return [...document.querySelectorAll(read)].map((one) => one[words]);
})"""


def choose_many(page: Any, names: list[str], read: str, words: str = "innerText") -> list[list[str]]:
    """What some elements say when one target after the other is chosen, the first of them as a person would."""
    page.locator("#choose-id").fill(names[0])
    page.locator("#choose button").click()
    first = page.locator(read).evaluate_all("(all, words) => all.map((one) => one[words])", words)
    return [first, *page.evaluate(CHOOSE_MANY, [names[1:], read, words])]


def table_column(page: Any, place: int) -> list[str]:
    return page.locator(f"#targets tbody tr td:nth-child({place})").all_inner_texts()


def until(page: Any, true: str) -> None:
    """Waits until an expression is true; the page's policy forbids the driver's own way."""
    give_up = time.monotonic() + 10
    while not page.evaluate(true):
        assert time.monotonic() < give_up, true
        time.sleep(0.05)
