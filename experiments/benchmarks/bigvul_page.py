"""Makes the page of Big-Vul, experiments/benchmarks/results/bigvul.md, from the rows.

python -m experiments.benchmarks.bigvul_page
"""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from agnncert.report.tables import laid_out
from experiments.benchmarks.bigvul import DESIGN, DESIGNS, FIT, GROUPS, MODEL, PROTOCOLS, SIZES, TRAINED_WITH, Row
from experiments.paper.rows import read_rows

ROWS, PAGE = Path("experiments/results/bigvul.jsonl"), Path("experiments/benchmarks/results/bigvul.md")
SHOWN = (0, 1, 2, 3, 5, 10)
MEASURED = ("controls", "networks", "statements")
NAMES = {"big-vul": "balanced", "big-vul-matched": "equal lengths"}

# Big-Vul in the paper: accuracy, seconds per epoch, seconds to test or certify, on an RTX 4090.
PAPER = {"paper, undefended": (0.70, 27.8, 2.3), "paper, AGNNCert": (0.69, 827.0, 65.0)}


class Rows:
    """Rows of one method in one protocol, one for each seed."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = rows

    def of(self, protocol: str, method: str) -> list[Row]:
        """Its rows; other stages may have methods of the same names."""
        return [
            row
            for row in self.rows
            if (row["protocol"], row.get("method")) == (protocol, method) and row["stage"] in MEASURED
        ]

    def mean(self, protocol: str, method: str, key: str, spread: bool = False) -> str:
        """Mean over seeds, with the deviation if wanted; a dash where there is none."""
        values = [row[key] for row in self.of(protocol, method) if key in row]
        if not values:
            return "–"
        text = f"{np.mean(values):.3f}"
        return f"{text} ± {np.std(values, ddof=1):.3f}" if spread and len(values) > 1 else text

    def curve(self, protocol: str, method: str, key: str) -> Any:
        """Values at all sizes, shape ``[seeds, sizes]``; empty if there are none."""
        return np.array([row[key] for row in self.of(protocol, method) if key in row]).reshape(-1, len(SIZES))

    def seconds(self, method: str, key: str) -> str:
        """Median seconds over both protocols and all seeds."""
        values = [row[key] for row in self.rows if row.get("method") == method and key in row]
        return (
            "–" if not values else f"{np.median(values):.2g}" if np.median(values) < 10 else f"{np.median(values):.0f}"
        )

    def seeds(self, stage: str, protocol: str) -> int:
        """Number of seeds of a stage."""
        return len({row["seed"] for row in self.rows if row["stage"] == stage and row["protocol"] == protocol})


def accuracies(rows: Rows) -> str:
    """Accuracy and seconds, the paper's beside ours."""
    lines = [[name, f"{a:.2f}", "–", f"{train:g}", f"{test:g}"] for name, (a, train, test) in PAPER.items()]
    methods = {
        "majority": "majority class", "size only": "number of statements, one limit", "length": "number of tokens",
        "tokens": "bag of tokens, logistic regression", "tf-idf": "the same, tf-idf", "undefended": "GCN, undefended",
        f"E{TRAINED_WITH}": f"GCN, edge-centric, T={TRAINED_WITH}", f"N{TRAINED_WITH}": f"GCN, node-centric, T={TRAINED_WITH}",
        "statements 0": "**vote of statements**",
    }  # fmt: skip
    for method, name in methods.items():
        both = [rows.mean(protocol, method, "accuracy", spread=True) for protocol in PROTOCOLS]
        train = "train_seconds" if method.startswith("statements") else "epoch_seconds"
        unit = " (all)" if method.startswith("statements") else ""
        lines.append([name, *both, rows.seconds(method, train) + unit, rows.seconds(method, "certify_seconds")])
    titles = ["", *(f"accuracy, {NAMES[p]}" for p in PROTOCOLS), "s per epoch", "s to certify"]
    return laid_out("markdown", titles, lines, "lrrrr")


def over_sizes(rows: Rows, protocol: str, methods: dict[str, str], key: str) -> str:
    """Certified accuracy of some methods."""
    lines = []
    for method, name in methods.items():
        found = rows.curve(protocol, method, "designed" if method == "size only" else key)
        if len(found):
            mean = found.mean(axis=0)
            lines.append([name, *(f"{mean[SIZES.index(n)]:.3f}" for n in SHOWN)])
    return laid_out("markdown", ["", *map(str, SHOWN)], lines, "l" + "r" * len(SHOWN))


def voters() -> dict[str, str]:
    """All methods with a certificate, and what they are called."""
    named = {"majority": "majority class", "size only": f"size only, limit for {DESIGN}"}
    for letter, division in (("E", "edge-centric"), ("N", "node-centric")):
        named |= {f"{letter}{number}": f"GCN, {division}, T={number}" for number in GROUPS}
        named[f"{letter} designed"] = f"GCN, {division}, vote chosen for {DESIGN}"
    return named | {f"statements {n}": f"vote of statements, made for {n}" for n in DESIGNS}


def attacks(rows: Sequence[Row]) -> tuple[str, Counter[str]]:
    """What attacks did within certificates and beyond, and totals."""
    total, by_kind = Counter[str](), dict[tuple[str, str], Any]()
    for row in rows:
        if row["stage"] != "attacks":
            continue
        total.update(functions=row["functions"], attacked=row["attacked"], flips=len(row["flips"]))
        for name, counts in row["attacks"].items():
            place = (row["protocol"], name)
            by_kind[place] = by_kind.get(place, np.zeros(4, dtype=int)) + np.array(counts)
    lines = [
        [NAMES[protocol], name, f"{n:,}", f"{flips:,}", f"{more:,}", share(broken, more)]
        for (protocol, name), (n, flips, more, broken) in sorted(by_kind.items())
    ]
    total.update(attempts=sum(int(counts[0]) for counts in by_kind.values()))
    titles = [
        "model of",
        "attack",
        "within the certificate",
        "verdicts changed",
        "with one edit more",
        "verdicts changed",
    ]
    return laid_out("markdown", titles, lines, "llrrrr"), total


def share(part: int, whole: int) -> str:
    """As a percentage."""
    return f"{100 * part / whole:.1f} %" if whole else "–"


def edits(rows: Sequence[Row]) -> Counter[str]:
    """What random edits did, added up."""
    return sum((Counter(row["found"]) for row in rows if row["stage"] == "edits"), Counter())


def page(rows: Sequence[Row]) -> dict[str, str]:
    """The parts of the page by name."""
    measured = Rows(rows)
    table, total = attacks(rows)
    found = edits(rows)
    whole, partial = (
        (found[f"{kind}, exactly"], found[f"{kind}, exactly"] + found[f"{kind}, otherwise"])
        for kind in ("whole", "partial")
    )
    seeds = ", ".join(
        f"{stage} {' and '.join(str(measured.seeds(stage, p)) for p in PROTOCOLS)}"
        for stage in ("controls", "networks", "statements")
    )
    parts = {
        "accuracy": accuracies(measured),
        "certified": "\n\n".join(
            f"*{NAMES[p]}*\n\n{over_sizes(measured, p, voters(), 'certified')}" for p in PROTOCOLS
        ),
        "seeds": f"Seeds measured, {NAMES[PROTOCOLS[0]]} and {NAMES[PROTOCOLS[1]]}: {seeds}.",
        "attacks": f"{total['functions']:,} functions that the models had not seen were certified; {total['attacked']:,} of them "
        f"were attacked within their certificate, in {total['attempts']:,} ways: **{total['flips']} verdicts changed**.\n\n{table}",
        "edits": f"Of {whole[1]:,} random edits of functions without syntax errors that left a text without errors, the "
        f"difference of the two graphs, as nodes with features, was exactly the edit in {whole[0]:,}. In functions that have a "
        f"syntax error before the edit it was so in {partial[0]:,} of {partial[1]:,}.",
    }
    statement_votes = {name: text for name, text in voters().items() if name[0] in "Ns" and name != "size only"}
    for kind in ("inserted", "deleted", "replaced"):
        parts[kind] = "\n\n".join(
            f"*{NAMES[p]}*\n\n{over_sizes(measured, p, statement_votes, kind)}" for p in PROTOCOLS
        )
    return parts


def written(parts: dict[str, str]) -> str:
    """The page."""
    network = ", ".join(f"{name}={value}" for name, value in {**MODEL, **FIT}.items())
    return f"""# Big-Vul: certified vulnerability detection

Made by `python -m experiments.benchmarks.bigvul_page` from `experiments/results/bigvul.jsonl`, which `python -m experiments.benchmarks.bigvul`
and `experiments.benchmarks.bigvul_attacks` fill. {parts["seeds"]} Two protocols: all
functions listed as vulnerable against as many others at random (*balanced*), and each against another one of about its length
(*equal lengths*); 80/10/10 %, test parts of 168 functions. Means over seeds, ± standard deviation; seconds are of one CPU core.

The paper's functions, graphs and features (GraphCodeBERT) are not public, so its row stands beside ours for orientation. GCN: {network};
one model, trained with T={TRAINED_WITH}, votes with every number of groups. The vote of statements is `agnncert_code.fit_statements`.

## Accuracy and time

{parts["accuracy"]}

## Certified accuracy over the size of an attack

Share of test functions that are right whatever this many changes do: edges (edge-centric), edges or nodes (node-centric), edited
statements of any kind (vote of statements), inserted or deleted statements (size only).

{parts["certified"]}

## Over inserted statements

Edges between all statements may change at will, as `agnncert_code.edits` has it.

{parts["inserted"]}

## Over deleted statements

{parts["deleted"]}

## Over replaced statements

{parts["replaced"]}

## Attacks on source

{parts["attacks"]}

*worst*: statements that speak for the verdict are deleted, and ones that speak against it inserted (`agnncert_code.worst_edits`). Only
simple statements in braces are deleted, so that an attack may fall short of what the certificate leaves open. *rewritten*: dead code,
repeated assignments, renamed variables, swapped statements, split and merged declarations, step by step as the lead falls most
(`agnncert_code.greedy_rewrite`), every tenth function.

## Random edits

{parts["edits"]}
"""


def main() -> None:
    """Writes the page."""
    PAGE.write_text(written(page(list(read_rows(ROWS)))))
    print(f"written to {PAGE}")


if __name__ == "__main__":
    main()
