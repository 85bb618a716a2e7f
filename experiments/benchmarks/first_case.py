"""The two results on the first page and in the README, from committed rows.

``python -m experiments.benchmarks.first_case`` writes them into both pages; a test compares them.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from experiments.documentation import facts
from experiments.documentation.facts import percent
from experiments.paper.rows import Results, Spread, certified_at
from experiments.paper.spec import main_setting

PROJECT = Path(__file__).parents[2]
RESULTS = PROJECT / "experiments" / "results"
PAGES = {"README.md": "docs/", "docs/index.md": ""}
BEGIN, END = "<!-- two results, by experiments/benchmarks/first_case.py -->", "<!-- end -->"
ADDED = (1, 3, 10)
CHANGED = (1, 3, 5)
UNPROVED = (("undefended GNN", "undefended GNN"),)


def block(folder: str) -> str:
    """Returns both results as text; ``folder`` is where the documentation is, seen from the page."""
    return "\n".join([BEGIN, _fraud(folder), "", _paper(folder), END])


def placed(text: str, folder: str) -> str:
    """Returns a page with the block as it should be."""
    before, rest = text.split(BEGIN)
    return before + block(folder) + rest.split(END, 1)[1]


def _fraud(folder: str) -> str:
    """Describes how much phishing on Ethereum is found for certain."""
    votes = _fraud_rows("stacked votes", times=False)
    accused = np.mean([row["clean"]["false@0.1"] for row in votes])
    added_only, free = _append_rows("ledger"), _append_rows("unconstrained")
    flagged = np.mean([row["false@0.1"] for row in added_only])
    text = (
        "**For a fraud team: phishing on Ethereum, without time stamps.** The threshold was set to flag 10% of honest validation addresses (on test addresses "
        f"{100 * accused:.0f} to {100 * flagged:.0f}% are flagged). Phishing addresses, in %, that provably stay flagged, whichever payment partners they add:"
    )
    nothing = ["–"] * len(ADDED)
    table = [
        _line("partners added", ["none", *map(str, ADDED)]),
        "|---" + "|---:" * (len(ADDED) + 1) + "|",
        _line("agnncert, append-only scores", [_recall(added_only)] * (len(ADDED) + 1)),
        _line("the same, unconstrained, nothing proved", [_recall(free), *nothing]),
        _line("agnncert, stacked votes", _recalls(votes)),
        *(
            _line(f"{words}, nothing proved", [*_recalls(_fraud_rows(method, False)), *nothing])
            for method, words in UNPROVED
        ),
    ]
    closing = (
        f"[Append-only scores]({folder}guides/append-only.md) hold if those who have paid an address send nothing more. "
        "Dates, left out here, give phishing away."
    )
    return "\n".join([text, "", *table, "", f"{closing} [More graphs, and the commands]({folder}fraud.md)."])


def _paper(folder: str) -> str:
    """Describes a graph whose edges matter, beside the paper's method and models that need no proof."""
    results = Results.read(RESULTS)
    setting = main_setting("amazon-c", "node")
    method = [certified_at(results.of(setting), size) for size in CHANGED]
    stacked = [facts.stacked("amazon-c", size, more=facts.STANDARD) for size in CHANGED]
    clean = facts.stacked("amazon-c", 0, made_for=CHANGED[0], more=facts.STANDARD)
    without_edges = percent(facts.without_edges("amazon-c"))
    undefended = percent(facts.field("amazon-c", "30 %", "undefended GCN", "added edges", 0))
    text = "**For a reader of the paper: Amazon-C, where edges matter.** Certified accuracy in %, under any mix of changes to edges and to other nodes:"
    table = [
        _line("changes", ["none", *map(str, CHANGED)]),
        "|---" + "|---:" * (len(CHANGED) + 1) + "|",
        _line("agnncert, stacked votes made for each size", [percent(clean), *map(percent, stacked)]),
        _line(
            f"the paper's method, node-centric, T = {setting.num_groups}",
            [percent(_mean(results.spread(setting, "accuracy"))), *(percent(_mean(value)) for value in method)],
        ),
        _line("the best model without edges, needs no proof", [without_edges] * (len(CHANGED) + 1)),
        _line("undefended GCN, nothing proved", [undefended, *["–"] * len(CHANGED)]),
    ]
    closing = f"[The results]({folder}results.md) reproduce every figure and table of the paper."
    return "\n".join([text, "", *table, "", closing])


def _fraud_rows(method: str, times: bool) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in (RESULTS / "fraud.jsonl").read_text("utf-8").splitlines()]
    wanted = ("ethereum-phishing", method, times)
    return [row for row in rows if (row["dataset"], row["method"], row["times"]) == wanted]


def _append_rows(method: str) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in (RESULTS / "append-only.jsonl").read_text("utf-8").splitlines()]
    wanted = ("ethereum-phishing", method, False)
    return [row for row in rows if (row["dataset"], row["method"], row["times"]) == wanted]


def _recall(rows: list[dict[str, Any]]) -> str:
    """Mean over seeds of the recall at the threshold of the validation part."""
    return percent(float(np.mean([row["recall@0.1"] for row in rows])))


def _recalls(rows: list[dict[str, Any]]) -> list[str]:
    """Means over seeds of the recall without an attack and, where it is certified, after added edges."""
    shares = [np.mean([row["clean"]["recall@0.1"] for row in rows])]
    for size in ADDED if rows[0]["certified"] else ():
        sure = [each for row in rows for each in row["certified"]["added"] if each["size"] == size]
        shares.append(np.mean([each["recall@0.1"] for each in sure]))
    return [percent(float(value)) for value in shares]


def _mean(spread: Spread | None) -> float:
    if spread is None:
        raise LookupError("the rows of Cora-ML are not in experiments/results/rows")
    return spread.mean


def _line(name: str, cells: list[str]) -> str:
    return f"| {name} | " + " | ".join(cells) + " |"


def main() -> None:
    for name, folder in PAGES.items():
        page = PROJECT / name
        page.write_text(placed(page.read_text("utf-8"), folder), "utf-8")


if __name__ == "__main__":
    main()
