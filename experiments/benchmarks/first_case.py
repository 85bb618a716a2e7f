"""The case that README, home, measurements and results begin with: phishing on Ethereum, from the rows of stacked votes.

``python -m experiments.benchmarks.first_case`` writes it into the four pages; a test compares them.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

PROJECT = Path(__file__).parents[2]
ROWS = PROJECT / "experiments" / "results" / "stacked.jsonl"
RULE = "stacked-votes(levels=1, mean, edge values)"
SIZES = (0, 1, 2, 3, 5, 10)  # of the curves in the rows
PAGES = {"README.md": "docs/", "docs/index.md": "", "docs/measurements.md": "", "docs/results.md": ""}
BEGIN, END = "<!-- phishing on Ethereum, by experiments/benchmarks/first_case.py -->", "<!-- end -->"
SHOWN = (0, 1, 2, 3, 5)


def rows_of(rule: str) -> list[dict[str, Any]]:
    """Rows of a rule on the splits that were not looked at before."""
    rows = [json.loads(line) for line in ROWS.read_text().splitlines()]
    return [row for row in rows if row["dataset"] == "ethereum-phishing" and row["rule"] == rule]


def shares(rows: list[dict[str, Any]]) -> list[str]:
    """Certified accuracy at the sizes that are shown, mean over seeds."""
    means = np.mean([row["structure"] for row in rows], axis=0)
    return [f"{means[SIZES.index(size)]:.3f}".removeprefix("0") for size in SHOWN]


def block(folder: str) -> str:
    """The text and its table; ``folder`` is where the documentation is, seen from the page."""
    table = ["| partners that change | " + " | ".join(map(str, SHOWN)) + " |", "|---" * (len(SHOWN) + 1) + "|"]
    for name, rule in (("one vote per edge", RULE), ("the same without time stamps", f"{RULE} without times")):
        if rows := rows_of(rule):
            table.append(f"| {name} | " + " | ".join(shares(rows)) + " |")
    table.append("| any model without edges |" + " .500 |" * len(SHOWN))
    seeds = len(rows_of(RULE))
    return "\n".join([
        BEGIN,
        "**Phishing on Ethereum.** Addresses have no features of their own, and the attacker makes the edges. Share of test addresses that are classified correctly and provably stay so, "
        f"whichever payment partners come or go ({seeds} splits):",
        "",
        *table,
        "",
        f"Phishing may have been collected in certain periods: hence the second row. [Other methods, three other graphs]({folder}fraud.md).",
        END,
    ])  # fmt: skip


def placed(text: str, folder: str) -> str:
    """A page with the block as it should be."""
    before, rest = text.split(BEGIN)
    return before + block(folder) + rest.split(END, 1)[1]


def main() -> None:
    for name, folder in PAGES.items():
        page = PROJECT / name
        page.write_text(placed(page.read_text("utf-8"), folder), "utf-8")


if __name__ == "__main__":
    main()
