"""Writes docs/fraud.md from the rows: python -m experiments.benchmarks.fraud_page."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from experiments.benchmarks import fraud, fraud_live, fraud_trusted

INTRODUCTION = Path(__file__).parent / "fraud_page.md"
PAGE = Path(__file__).parents[2] / "docs" / "fraud.md"
TITLES = {
    "ethereum-phishing": "Ethereum phishing", "cresci-15": "Cresci-15 (Twitter bots)",
    "bitcoin-otc": "Bitcoin-OTC (paid ratings)", "tolokers": "Tolokers (banned workers)",
}  # fmt: skip
ORDER = (
    "undefended GNN",
    "no edges",
    "number of edges",
    "AGNNCert-E",
    "AGNNCert-N",
    "one vote per neighbour",
    "stacked votes",
)
NAMES = {"no edges": "best model without edges", "number of edges": "number of edges alone"}
ABOUT = {
    "ethereum-phishing": "890 labelled addresses, half of them phishing; addresses have no features at all. Parts 40/15/45 %, drawn by the seed.",
    "cresci-15": "5,301 accounts, 63 % bots; 64 % of them have no edge, which comes from how they were collected. Parts 30/10/60 %.",
    "bitcoin-otc": "316 labelled traders, 57 % fraudulent; traders have no features. Labels derive partly from ratings, so they are partly circular. Parts 30/10/60 %: about 14 honest validation traders, so a threshold for 1 % is one for none of them.",
    "tolokers": "11,758 workers, 22 % banned, median degree 30. The source's own splits, one for each seed. GNNs are trained with all classes weighted alike; without that all votes are for honest workers, and votes rank nobody.",
}  # fmt: skip
Row = dict[str, Any]


def mean(rows: Iterable[Row], get: Callable[[Row], float], spread: bool = False) -> str:
    """Mean over seeds as the tables show it, with half the distance between the largest and the smallest."""
    values = [get(row) for row in rows]
    half = np.ptp(values) / 2
    around = f" ± {half:.3f}".replace("0.", ".") if spread and half >= 0.0005 else ""
    return f"{np.mean(values):.3f}".removeprefix("0") + around


def certified(row: Row, threat: str, size: int, name: str) -> float:
    """A certified measure of a row."""
    return next(float(one[name]) for one in row["certified"][threat] if one["size"] == size)


def groups() -> dict[tuple[str, str, bool], list[Row]]:
    """Rows of the same dataset, method and edge values."""
    found: dict[tuple[str, str, bool], list[Row]] = {}
    for row in {fraud.key_of(row): row for row in fraud.read_rows()}.values():
        found.setdefault((row["dataset"], row["method"], row["times"]), []).append(row)
    return found


def table(dataset: str, found: dict[tuple[str, str, bool], list[Row]], threat: str, name: str) -> list[str]:
    """One table: a measure without an attack and certified, by method."""
    clean = {"auc": "auc", "recall@0.01": "recall@0.01", "recall@0.1": "recall@0.1"}[name]
    rate = name.replace("recall", "false")
    false = " honest accused |" if name != "auc" else ""
    lines = [f"| | seeds |{false} no attack | " + " | ".join(map(str, fraud.SIZES[1:])) + " |"]
    lines.append("|---" * (3 + bool(false) + len(fraud.SIZES[1:])) + "|")
    for method in ORDER:
        for times in (True, False):
            rows = found.get((dataset, method, times))
            if not rows:
                continue
            title = NAMES.get(method, method) + ("" if times else ", without times")
            cells = [title, str(len(rows))]
            if false:
                cells.append(mean(rows, lambda row: row["clean"][rate]))
            cells.append(mean(rows, lambda row: row["clean"][clean], spread=True))
            for size in fraud.SIZES[1:]:
                proved = rows[0]["certified"]
                cells.append(mean(rows, lambda row: certified(row, threat, size, name), True) if proved else "–")  # noqa: B023
            lines.append("| " + " | ".join(cells) + " |")
    return lines


def section(dataset: str, found: dict[tuple[str, str, bool], list[Row]]) -> list[str]:
    """All tables of a dataset."""
    lines = [f"### {TITLES[dataset]}", "", ABOUT[dataset], ""]
    lines += ["**AUC**, certified against so many added edges at each account:", ""]
    lines += [*table(dataset, found, "added", "auc"), ""]
    for rate, words in (("0.1", "10 %"), ("0.01", "1 %")):
        lines += [f"**Recall at {words} false positives** (threshold from validation), against added edges:", ""]
        lines += [*table(dataset, found, "added", f"recall@{rate}"), ""]
    lines += ["**Recall at 10 % false positives** against so many *new accounts, each with any number of edges*:", ""]
    lines += [*table(dataset, found, "injected", "recall@0.1"), ""]
    return lines


def attacks(found: dict[tuple[str, str, bool], list[Row]]) -> list[str]:
    """What attacks did within and beyond certificates."""
    lines = ["| | method | within: attacked | flipped | beyond: attacked | flipped |", "|---|---|---|---|---|---|"]
    total = np.zeros(4, dtype=int)
    for dataset in fraud.DATASETS:
        for method in ORDER:
            tried = [
                row["about"]["attacks"] for row in found.get((dataset, method, True), []) if "attacks" in row["about"]
            ]
            if tried:
                counts = [
                    sum(one[name] for one in tried) for name in ("within", "flipped within", "beyond", "flipped beyond")
                ]
                total += counts
                lines.append(f"| {TITLES[dataset]} | {method} | " + " | ".join(map(str, counts)) + " |")
    lines += ["| all | | " + " | ".join(map(str, total.tolist())) + " |", ""]
    return lines


def trusted() -> list[str]:
    """Recall with a trusted history."""
    rows = [json.loads(line) for line in fraud_trusted.ROWS.read_text().splitlines()]
    sizes = fraud_trusted.SIZES
    lines = ["| | trusted before | seeds | trusted edges of test accounts | honest accused | no attack | "
             + " | ".join(map(str, sizes[1:])) + " |", "|---" * (6 + len(sizes) - 1) + "|"]  # fmt: skip
    for dataset in ("ethereum-phishing", "bitcoin-otc"):
        for share in fraud_trusted.SHARES:
            some = [row for row in rows if row["dataset"] == dataset and row["share"] == share]
            if some:
                shown = [mean(some, lambda row: row["recall"][k]) for k in range(len(sizes))]  # noqa: B023
                near = np.mean([row["trusted pairs of test nodes"] for row in some])
                lines.append(
                    f"| {TITLES[dataset]} | {some[0]['before'] or 'never'} | {len(some)} | {near:.0%} | "
                    f"{mean(some, lambda row: row['false'][0])} | " + " | ".join(shown) + " |"
                )
    return [*lines, ""]


def live() -> list[str]:
    """The replay."""
    found = json.loads(fraud_live.OUT.read_text())
    replay, service, last = found["replay"], found["service"], found["replay"]["quarters"][-1]
    later = [row for row in replay["quarters"] if "still proved" in row]
    wrong = sum(row["changed though proved"] for row in later)
    return [
        f"Six years of ratings, {found['ratings']:,} of them, as {replay['events']:,} events (traders come, then ratings), through `LiveGraph` and through the HTTP service. "
        "A rating is an edge from the rater, who has one vote, which reads the sign of the rating.",
        "",
        "![Three curves over six years: events, the share of labelled traders that is right and certified, and how much of each year's certificate is spent](images/otc-live.svg)",
        "",
        "| | |",
        "|---|---|",
        f"| events per second in a process, batches of {fraud_live.BATCH}, all decisions current | {replay['events'] / replay['seconds']:,.0f} |",
        f"| events per second over HTTP, with a journal on disk and alerts pushed | {service['events'] / service['seconds']:,.0f} |",
        f"| median and longest time of a batch over HTTP | {service['median seconds of a batch'] * 1000:.0f} ms, {service['largest batch seconds'] * 1000:.0f} ms |",
        f"| alerts sent, received, given up | {service['alerts sent']:,}, {service['alerts received']:,}, {service['alerts given up']:,} |",
        f"| labels that flipped in six years | {replay['flips']:,} |",
        f"| labelled traders at the end: right; certified against 1, 3, 5 ratings | {last['right']:.1%}; "
        + ", ".join(f"{last['certified'][str(size)]:.1%}" for size in fraud_live.SIZES) + " |",
        f"| at the end, since the last New Year, of {fraud_live.COMPARED} labelled traders: label as then; still proved by the certificate of then; mean share of budgets spent | {last['label kept']:.1%}; {last['still proved']:.1%}; {last['budget spent']:.1%} |",
        f"| decisions that a certificate still proved and that had changed, in all quarters | {wrong} |",
        f"| equal to `certify` from scratch at the end | {'yes' if replay['equal to certify'] and service['equal to certify'] else 'no'} |",
        "",
        "Each rater has one vote, trust for a rating above zero and fraud for one below; nothing is trained. Labels were made from later knowledge, partly from ratings. "
        "Rows: `experiments/results/fraud-live.json`, made by `python -m experiments.benchmarks.fraud_live`.",
        "",
    ]  # fmt: skip


def conclusions(found: dict[tuple[str, str, bool], list[Row]]) -> str:
    """What follows from the rows, with their numbers."""

    def number(dataset: str, method: str, name: str, size: int = 0, times: bool = True) -> str:
        rows = found[dataset, method, times]
        return mean(rows, lambda row: certified(row, "added", size, name) if size else row["clean"][name])

    def several(dataset: str, method: str, name: str, sizes: Iterable[int], times: bool = True) -> str:
        return " / ".join(number(dataset, method, name, size, times) for size in sizes)

    eth, otc, bots, work = fraud.DATASETS[0], "bitcoin-otc", "cresci-15", "tolokers"
    near, tenth = "one vote per neighbour", "recall@0.1"
    graph, workers = (
        [row["about"]["uses edges"] for row in found[name, "stacked votes", True]] for name in (bots, work)
    )
    lines = [
        f"* **Ethereum: certificates prove what nothing else has.** Without edges the AUC is .500. Stacked votes, one vote per edge, rank as well as an undefended GNN (AUC {number(eth, 'stacked votes', 'auc')} and {number(eth, 'undefended GNN', 'auc')}), find {number(eth, 'stacked votes', tenth)} of the phishing at 10 % false positives, and "
        f"{several(eth, 'stacked votes', tenth, (1, 3, 10))} of it for certain, whatever 1 / 3 / 10 added edges do. Without time stamps: {number(eth, 'stacked votes', tenth, times=False)}, and {several(eth, 'stacked votes', tenth, (1, 3, 10), False)}. "
        f"AGNNCert-E finds {number(eth, 'AGNNCert-E', tenth)} and certifies {several(eth, 'AGNNCert-E', tenth, (1, 3, 10))}, one vote per neighbour {number(eth, near, tenth)} and {several(eth, near, tenth, (1, 3, 10))}.",
        f"* **Bitcoin-OTC: structure is certified, and costs something.** An undefended GNN has an AUC of {number(otc, 'undefended GNN', 'auc')}, stacked votes {number(otc, 'stacked votes', 'auc')}, one vote per neighbour {number(otc, near, 'auc')}: nothing that is certified reaches the GNN. At 10 % false positives stacked votes find {number(otc, 'stacked votes', tenth)}, certified {several(otc, 'stacked votes', tenth, (1, 3, 5))} at 1 / 3 / 5; one vote per neighbour {number(otc, near, tenth)} and "
        f"{several(otc, near, tenth, (1, 3, 5))}. By certified AUC one vote per neighbour is level at 1 edge ({number(otc, near, 'auc', 1)} and {number(otc, 'stacked votes', 'auc', 1)}) and ahead from 5 on. Splits differ much: see the spread. With [trusted history](#trusted-history) hardly anything can be bought.",
        f"* **Cresci-15: no graph is needed.** Boosted trees on the profile have an AUC of {number(bots, 'no edges', 'auc')}, more than the undefended GNN ({number(bots, 'undefended GNN', 'auc')}) and everything that is certified, and nothing in the graph can change them. "
        f"Stacked votes ({number(bots, 'stacked votes', 'auc')}) use neighbours in {sum(graph)} of {len(graph)} seeds; their own model is an MLP, which is weaker than trees.",
        f"* **Tolokers: we lose, as every graph method does.** Boosted trees without edges have an AUC of {number(work, 'no edges', 'auc')}, an undefended GNN {number(work, 'undefended GNN', 'auc')}. Stacked votes ({number(work, 'stacked votes', 'auc')}) use edges in {sum(workers)} of {len(workers)} seeds, certified {several(work, 'stacked votes', 'auc', (1, 3, 10))} at 1 / 3 / 10; one vote per neighbour has {number(work, near, 'auc')}, certified {several(work, near, 'auc', (1, 3, 10))}; "
        f"AGNNCert-E {number(work, 'AGNNCert-E', 'auc')} and {several(work, 'AGNNCert-E', 'auc', (1, 3, 10))}.",
        "* **The paper's divisions with 30 groups** rank nearly as well without an attack, and certify little at a strict threshold: most votes are the prediction without edges, which is the same for many accounts, so few thresholds lie between them. On Tolokers more than 10 % of the honest workers have all 30 votes, so no threshold is left.",
        "* **New accounts with any number of edges** cost stacked votes, one vote per neighbour and AGNNCert-N as much as one added edge each. AGNNCert-E loses more.",
    ]  # fmt: skip
    return "\n".join(lines)


def main() -> None:
    found = groups()
    lines = [INTRODUCTION.read_text("utf-8").replace("CONCLUSIONS", conclusions(found))]
    for dataset in fraud.DATASETS:
        if any(key[0] == dataset for key in found):
            lines += section(dataset, found)
    lines += ["## Attacks", "", ATTACKS, "", *attacks(found)]
    if fraud_trusted.ROWS.exists():
        lines += ["## Trusted history", "", TRUSTED, "", *trusted()]
    if fraud_live.OUT.exists():
        lines += ["## Live", "", *live()]
    PAGE.write_text("\n".join(lines).rstrip("\n") + "\n")


ATTACKS = (
    "Seed 0, where it was run. Stacked votes: the worst neighbours that the data knows come and the best ones go, in every mix, and the model is asked again; 60 accounts at their radius and one beyond. "
    "Others: the library's greedy attack on 8 accounts with edges, 1 and 3 edges added. Certified labels that flip would refute a proof."
)
TRUSTED = (
    "Edges before a date are history: nobody can buy an old one. `StackedVotes(trusted=COLUMN)` takes them as part of what no attacker moves. Votes read no times here. Recall at 10 % false positives, "
    "certified against so many edges that are bought after the date. On Bitcoin-OTC a threshold comes from about 14 honest validation traders, so the share that is accused is far from 10 %:"
)

if __name__ == "__main__":
    main()
