"""Cards of the table of the field, and its page.

    python -m experiments.benchmarks.field_cards [--cards] [--page]

``--cards`` makes experiments/cards from the rows and from the certificates that ``experiments.benchmarks.field`` left in
.cache/field: evidence of up to 60 kB (packed) is kept beside the cards, of other certificates the digest. ``--page``
writes the tables of docs/field.md between their markers, from the rows alone.
"""

import argparse
import json
import re
from pathlib import Path
from typing import Any

import numpy as np

from agnncert_peers.card_making import About, make_cards
from agnncert_peers.cards import read_card
from experiments.benchmarks.field import CONTROLS, DATASETS, DEFENCES, FILE, KEPT, PROTOCOLS, SIZES, THREATS
from experiments.benchmarks.interception_curve import PUBLISHED

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "experiments" / "results"
CARDS = ROOT / "experiments" / "cards"
PAGE = ROOT / "docs" / "field.md"
LARGEST = 60_000  # bytes of packed evidence
NAMES = {"cora-ml": "Cora-ML", "citeseer": "Citeseer", "pubmed": "PubMed", "amazon-c": "Amazon-C"}
CITATIONS = {
    "AGNNCert-E": "Li et al., AGNNCert, USENIX Security 2025", "AGNNCert-N": "Li et al., AGNNCert, USENIX Security 2025",
    "gated": "agnncert", "per neighbour": "agnncert", "stacked votes": "agnncert",
    "similarity edges": "after Lai et al., AuditVotes, 2025, in sound form",
    "Bi-RS": "Lai et al., Node-aware bi-smoothing, IEEE S&P 2024",
    "GNNCert-E": "Xia et al., GNNCert, ICLR 2024", "GNNCert-N": "Xia et al., GNNCert, ICLR 2024",
    "GNNCert-EN": "Xia et al., GNNCert, ICLR 2024",
    "sparse RS": "Bojchevski et al., Sparsity-aware smoothing, ICML 2020",
    "RS": "Wang et al., Certified robustness of graph neural networks, KDD 2021",
    "interception": "Scholten et al., Message-interception smoothing, NeurIPS 2022",
    "interception, skip connection": "Scholten et al., Message-interception smoothing, NeurIPS 2022",
}  # fmt: skip
UNITS = {
    "features": "other features for so many nodes, the target not among them",
    "added edges": "so many added edges",
    "injected nodes": "so many injected nodes with any features and up to five edges each",
}
_MARKER = re.compile(r"(<!-- field: ([\w %,.-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def read_rows() -> list[dict[str, Any]]:
    """All rows."""
    return [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]


def write_cards() -> None:
    """One card for each defence, threat, dataset and protocol; rows whose cards are there already are left out."""
    there = {
        (card.dataset, card.protocol, card.defence, run.seed, card.threat): list(run.certified)
        for card in map(read_card, CARDS.glob("*.json"))
        for run in card.runs
    }
    for row in read_rows():
        if not any(any(row[threat][1:]) for threat in THREATS) and not row["control"]:
            continue  # proves nothing against any of the threats
        where = row["dataset"], row["protocol"], row["defence"], row["seed"]
        stated = [threat for threat in THREATS if row["control"] or any(row[threat][1:])]
        if all(there.get((*where, threat)) == row[threat] for threat in stated):
            continue
        kind = "certificate" if row["guarantee"] != "none" else "labels"
        stem = KEPT / row["certificate"]
        content = stem.with_name(f"{stem.name}.{'cert' if kind == 'certificate' else 'json'}").read_bytes()
        split = PROTOCOLS[row["protocol"]]["split"] or ""
        about = About(
            row["defence"], row["dataset"], row["seed"], row["data"], row["protocol"], split,
            CITATIONS.get(row["defence"], ""), row["about"], row["control"], row["seconds"],
        )  # fmt: skip
        make_cards(content, about, CARDS, tuple(THREATS), SIZES, kind=kind, largest=LARGEST)


def table(dataset: str, protocol: str, threat: str) -> str:
    """Certified accuracy in percent of every defence that proves something against a threat; the best is bold."""
    rows = [row for row in read_rows() if (row["dataset"], row["protocol"]) == (dataset, protocol)]
    found = {name: [row for row in rows if row["defence"] == name] for name in DEFENCES}
    means = {name: np.mean([row[threat] for row in some], axis=0) for name, some in found.items() if some}
    shown = [name for name, mean in means.items() if name in CONTROLS or mean[1:].any()]
    if not shown:
        return "Not run."
    best = np.max([np.zeros(len(SIZES)), *(means[name] for name in shown if name not in CONTROLS)], axis=0)
    lines = [
        "| defence | " + " | ".join(map(str, SIZES)) + " | seeds | training, s | certifying, s |",
        "|---" + "|---:" * (len(SIZES) + 3) + "|",
    ]
    for name in shown:
        cells = []
        spread = np.ptp([row[threat] for row in found[name]], axis=0) / 2
        for share, most, half in zip(means[name], best, spread, strict=True):
            text = f"{100 * share:.1f}" + (f" ± {100 * half:.1f}" if half >= 0.0005 else "")
            cells.append(f"**{text}**" if name not in CONTROLS and share >= most - 1e-9 and share > 0 else text)
        timed = [row for row in found[name] if row.get("clock")] or found[name]  # of the processor, if there are any
        times = [np.mean([row["seconds"][step] for row in timed]) for step in ("training", "certifying")]
        title = f"*{name}*" if name in CONTROLS else name
        lines.append(f"| {title} | {' | '.join(cells)} | {len(found[name])} | {times[0]:.1f} | {times[1]:.1f} |")
    return "\n".join(lines)


def missing() -> str:
    """Which defences were not run on which data, and how many seeds there are."""
    rows, lines = read_rows(), []
    for dataset in DATASETS:
        for protocol in PROTOCOLS:
            here = [row for row in rows if (row["dataset"], row["protocol"]) == (dataset, protocol)]
            seeds = {name: len([row for row in here if row["defence"] == name]) for name in DEFENCES}
            ran = [count for count in seeds.values() if count]
            if not ran:
                lines.append(f"- {NAMES[dataset]}, {protocol}: not run")
                continue
            absent = [name for name, count in seeds.items() if not count]
            number = (
                f"{min(ran)}" if ran and min(ran) == max(ran) else f"{min(ran, default=0)} to {max(ran, default=0)}"
            )
            left = f"; not run: {', '.join(absent)}" if absent else ""
            lines.append(f"- {NAMES[dataset]}, {protocol}: {number} seed{'' if number == '1' else 's'}{left}")
    return "\n".join(lines)


def exact_table() -> str:
    """What undefended models withstand: every edge that can matter was tried."""
    titles = ("dataset", "model", "edges", "targets", "correct", "correct and robust", "broken", "not decided")
    lines = [f"| {' | '.join(titles)} |", "|---|---" + "|---:" * 6 + "|"]
    rows = json.loads((RESULTS / "exact.json").read_text(encoding="utf-8"))["rows"]
    for row in sorted(rows, key=lambda one: one["size"]):
        shares = [row["correct"], row["correct_and_robust"], row["correct_and_broken"], row["correct_and_undecided"]]
        cells = " | ".join(f"{100 * share:.1f}" for share in shares)
        model = f"GCN, {row['layers']} layers"
        lines.append(f"| {NAMES[row['dataset']]} | {model} | {row['size']} | {row['targets']} | {cells} |")
    return "\n".join(lines)


def curve_table() -> str:
    """The published curve of interception beside ours: with the published weights, and with models trained anew."""
    file = RESULTS / "interception_curve.jsonl"
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    lines = [
        "| certified accuracy | " + " | ".join(map(str, PUBLISHED)) + " |",
        "|---" + "|---:" * len(PUBLISHED) + "|",
    ]

    def add(title: str, values: Any, digits: int = 3) -> None:
        lines.append(f"| {title} | " + " | ".join(f"{value:.{digits}f}".lstrip("0") for value in values) + " |")

    add("published (read from the figure)", PUBLISHED.values(), 2)
    fixed = [row for row in rows if row["weights"] == "published"]
    anew = [row for row in rows if row["weights"] == "ours"]
    for how, words in (("as published", "counted as published"), ("all targets", "counted over all targets")):
        for row in fixed:
            add(f"ours, with the published weights and split, {words}", row[how])
        for row in anew if how == "as published" else []:
            add(f"ours, trained anew, split {row['seed']}", row[how])
        if anew:
            add(f"ours, trained anew, mean of {len(anew)} splits, {words}", np.mean([row[how] for row in anew], axis=0))
    return "\n".join(lines)


def collective_table() -> str:
    """How many targets hold together against 5 % injected nodes."""
    titles = ("votes", "edges per injected node", "accuracy", "certified one by one", "certified together")
    titles += ("correct and certified together", "of the whole test part together")
    lines = [f"| {' | '.join(titles)} |", "|---" + "|---:" * 6 + "|"]
    for row in json.loads((RESULTS / "collective.json").read_text(encoding="utf-8"))["rows"]:
        number = re.search(r"T=(\d+)", row["division"])
        name = f"AGNNCert-{'N' if row['division'].startswith('node') else 'E'}, T = {number[1] if number else ''}"
        shares = [row[key] for key in ("accuracy", "certified_one_by_one", "certified_together")]
        shares += [row["correct_and_certified_together"], row["whole_test_part"]["certified_together"]]
        cells = " | ".join(f"{100 * share:.1f}" for share in shares)
        lines.append(f"| {name} | {row['edges_per_injected']} | {cells} |")
    return "\n".join(lines)


def filled(text: str) -> str:
    """The page with the parts between its markers made from the rows."""

    parts = {"missing": missing, "exact": exact_table, "curve": curve_table, "collective": collective_table}

    def part(match: re.Match[str]) -> str:
        if match[2] in parts:
            return f"{match[1]}{parts[match[2]]()}\n{match[3]}"
        dataset, protocol, threat = match[2].split(", ")
        return f"{match[1]}{table(dataset, protocol, threat)}\n{match[3]}"

    return _MARKER.sub(part, text)


def main() -> None:
    """Writes cards or the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cards", action="store_true")
    parser.add_argument("--page", action="store_true")
    options = parser.parse_args()
    if options.cards:
        write_cards()
    if options.page:
        PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
