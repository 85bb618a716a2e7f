"""The two results on the first page and in the README, from committed rows.

``python -m experiments.benchmarks.first_case`` writes them into both pages; a test compares them.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from experiments.documentation.facts import percent
from experiments.paper.rows import Results, Spread, certified_at
from experiments.paper.spec import Setting, main_setting
from experiments.paper.tables import accuracy

PROJECT = Path(__file__).parents[2]
RESULTS = PROJECT / "experiments" / "results"
PAGES = {"README.md": "docs/", "docs/index.md": ""}
BEGIN, END = "<!-- two results, by experiments/benchmarks/first_case.py -->", "<!-- end -->"
ADDED = (1, 2, 3, 5, 10)
CHANGED = (10, 100)


def block(folder: str) -> str:
    """Returns both results as text; ``folder`` is where the documentation is, seen from the page."""
    return "\n".join([BEGIN, _fraud(folder), "", _paper(folder), END])


def placed(text: str, folder: str) -> str:
    """Returns a page with the block as it should be."""
    before, rest = text.split(BEGIN)
    return before + block(folder) + rest.split(END, 1)[1]


def _fraud(folder: str) -> str:
    """Describes how much phishing on Ethereum is found for certain."""
    votes = _fraud_rows("stacked votes", times=True)
    accused = np.mean([row["clean"]["false@0.1"] for row in votes])
    text = (
        "**For a fraud team: phishing on Ethereum, stacked votes.** Addresses hide by adding payment partners. The threshold was set on validation "
        f"addresses to flag 10% of the honest ones; on test addresses it flags {100 * accused:.0f}%. This share of phishing addresses, "
        "in %, provably stays flagged, whichever partners they add:"
    )
    table = [
        _line("partners added", ["none", *map(str, ADDED)]),
        "|---" + "|---:" * (len(ADDED) + 1) + "|",
        _line("agnncert, with time stamps", _recalls(votes)),
        _line("agnncert, without time stamps", _recalls(_fraud_rows("stacked votes", times=False))),
        _line(
            "undefended GNN, with time stamps",
            [*_recalls(_fraud_rows("undefended GNN", times=True)), *["–"] * len(ADDED)],
        ),
    ]
    closing = (
        "A dash means that nothing is proved. Addresses have no features of their own, so a model without edges flags none. Time stamps "
        "may reveal when phishing was collected, so read the second row too."
    )
    return "\n".join([text, "", *table, "", f"{closing} [Other graphs and commands]({folder}fraud.md)."])


def _paper(folder: str) -> str:
    """Describes the paper's first dataset, reproduced, beside the model that needs no proof."""
    results = Results.read(RESULTS)
    setting = main_setting("cora-ml", "node")
    sizes = [certified_at(results.of(setting), size) for size in CHANGED]
    votes = [_mean(results.spread(setting, "accuracy")), *map(_mean, sizes)]
    mlp = _mean(results.spread(Setting("cora-ml", model="mlp"), "accuracy_whole_graph"))
    published = accuracy("cora-ml", "gcn", "node")
    if published is None:
        raise LookupError("the paper's accuracy on Cora-ML is not in experiments/paper/tables.py")
    text = (
        f"**For a reader of the paper: Cora-ML, GCN, node-centric, T = {setting.num_groups}.** Certified accuracy in %, under any mix of "
        "changes to edges and to other nodes:"
    )
    table = [
        _line("changes", ["none", *map(str, CHANGED)]),
        "|---" + "|---:" * (len(CHANGED) + 1) + "|",
        _line("agnncert", [percent(value) for value in votes]),
        _line("the paper", [f"{100 * published:.0f}", *["curve only"] * len(CHANGED)]),
        _line("MLP without edges, needs no proof", [percent(mlp)] * (len(CHANGED) + 1)),
    ]
    closing = (
        "A label that withstands 100 changes does not depend on the few edges of its node, so compare it with the MLP. "
        f"[The results]({folder}results.md) reproduce the paper and show where edges help."
    )
    return "\n".join([text, "", *table, "", closing])


def _fraud_rows(method: str, times: bool) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in (RESULTS / "fraud.jsonl").read_text("utf-8").splitlines()]
    wanted = ("ethereum-phishing", method, times)
    return [row for row in rows if (row["dataset"], row["method"], row["times"]) == wanted]


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
