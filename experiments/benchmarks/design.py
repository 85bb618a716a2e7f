"""Certificates designed for a size on graph datasets: what size alone and the majority class certify.

    python -m experiments.benchmarks.design --data .cache/data mutag proteins aids dd
    python -m experiments.benchmarks.design --data .cache/data --divisions E30 E100 E300 Einf N30 N100 N300 Ninf

Each row of ``experiments/results/design.jsonl`` is one vote: a model (or none), a division and constants that were chosen on training
and validation graphs for a design size, and its certified accuracy on the test graphs at many sizes. With one group for
each edge or node (``Einf``, ``Ninf``) the size alone is counted exactly. Rows that are there already are not computed
again. Rows with the method "trained" were made by a training objective that the library no longer has. These rows are kept
for the record, and this script makes no others of that method.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

import agnncert as ac
from agnncert.models.build import build_constant
from agnncert.training.rule_search import (
    VoteTable,
    certified,
    certified_accuracy,
    constant_rule,
    joined,
    majority,
    size_only,
    window,
)
from experiments.paper.rows import append_row, read_rows

SIZES = (*range(11), 12, 15, 20, 30, 50)
DESIGNS = {"mutag": (1, 2), "proteins": (3, 5, 10), "aids": (2, 5, 10), "dd": (5, 10)}
DIVISIONS = {
    "mutag": ("N1000", "E1000"),
    "proteins": ("E1000", "E300"),
    "aids": ("E300", "E1000"),
    "dd": ("N3000", "E3000"),
}
PARTS = ("train", "val", "test")

Tables = dict[str, VoteTable]


def division_of(word: str) -> Any:
    """``E300``: edge-centric with 300 groups; ``Ninf``: one for each node."""
    if word[1:] == "inf":
        return ac.PerEdge() if word[0] == "E" else ac.PerNeighbour()
    return (ac.EdgeCentric if word[0] == "E" else ac.NodeCentric)(int(word[1:]))


def tables_of(model: torch.nn.Module, data: Any, division: Any) -> Tables:
    """Votes of all three parts, as they are certified."""
    y, evidence = data.y.numpy(), ac.certify(model, data, division).evidence
    whole = VoteTable.of(evidence, y)
    return {part: whole.rows(getattr(data, part).numpy()) for part in PARTS}


def outcome(tables: Tables, voting_rule: ac.VotingRule, size: int) -> dict[str, Any]:
    """What a vote does: the score for which it was chosen, and certified accuracy on validation and test graphs."""
    marks, fitted = certified(tables["test"], voting_rule, size), joined([tables["train"], tables["val"]])
    return {
        "empty": voting_rule.empty,
        "prior": voting_rule.prior,
        "score": round(certified_accuracy(fitted, voting_rule, *window(size)), 6),
        "sizes": SIZES,
        **{
            f"{part}_certified": [round(certified_accuracy(tables[part], voting_rule, near), 5) for near in SIZES]
            for part in ("val", "test")
        },
        "marks": "".join("01"[int(mark)] for mark in marks),
    }


def votes(data: Any, name: str, word: str) -> Iterator[dict[str, Any]]:
    """A row for each design size and method of one dataset and division."""
    tables = tables_of(build_constant(data, 0, int(data.y.max()) + 1), data, division_of(word))
    both = joined([tables["train"], tables["val"]])
    for size in DESIGNS[name]:
        label, by_size = size_only(both, window(size))
        alone = {part: table.voting(label) for part, table in tables.items()}
        yield {"size": size, "method": "size only", **outcome(alone, by_size, size)}
        always = constant_rule(both, majority(both))
        yield {"size": size, "method": "majority", **outcome(tables, always, size)}


def main() -> None:
    """Computes the rows that are missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", nargs="*", default=list(DESIGNS))
    parser.add_argument("--data", default=None)
    parser.add_argument("--out", default="experiments/results/design.jsonl", type=Path)
    parser.add_argument("--seeds", nargs="*", default=[0, 1, 2], type=int)
    parser.add_argument("--divisions", nargs="*")
    options = parser.parse_args()
    torch.set_num_threads(1)
    for name in options.datasets:
        for seed in options.seeds:
            data = None
            for word in options.divisions or DIVISIONS[name]:
                about, known = {"dataset": name, "division": word, "seed": seed}, list(read_rows(options.out))
                if all(
                    key({**about, "size": size, "method": "size only"}) in map(key, known) for size in DESIGNS[name]
                ):
                    continue
                data = data if data is not None else ac.load_dataset(name, root=options.data, seed=seed)
                rows = [{**about, **row} for row in votes(data, name, word)]
                write(options.out, [row for row in rows if key(row) not in set(map(key, known))])


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    """Appends rows, and says what they hold."""
    for row in rows:
        append_row(path, row)
        marks = " ".join(f"{s}:{v:.3f}" for s, v in zip(row["sizes"], row["test_certified"], strict=True) if s <= 10)
        print(*(row[name] for name in ("dataset", "division", "seed", "size", "method")), f"{row['score']:.3f}", marks)


def key(row: dict[str, Any]) -> str:
    """What tells one row from another."""
    return json.dumps([row[name] for name in ("dataset", "division", "seed", "size", "method")])


if __name__ == "__main__":
    main()
