"""What it costs to train without reading an edge: stacked votes with fixed weights beside trained ones.

python -m experiments.benchmarks.edge_blind amazon-c --root .cache/data --seeds 300 301

Rows go to experiments/benchmarks/results/edge_blind.jsonl as they come. A run that is started again goes on where it
stopped, and ``--page`` prints the table. Weights of votes are fixed; none is chosen.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

import agnncert as ac
from agnncert.training.settings import tuned_arguments
from experiments.paper.rows import append_row, read_rows

ROWS = Path(__file__).with_name("results") / "edge_blind.jsonl"
SIZES = (0, 1, 2, 3, 5)
BLIND = {
    f"edge-blind, weight {weight:g}": ac.StackedVotes(edge_blind=True, vote_weight=weight) for weight in (0.25, 0.5)
}
TRAINED = "stacked votes, trained on edges"
ALONE = "no edges"


def certified(model: Any, data: Any, defence: ac.Defence) -> list[float]:
    """The share of test nodes that are right and certified against so many changed edges."""
    certificate = ac.certify(model, data, defence, data.test_mask)
    right = certificate.label == certificate.truth
    held = [certificate.holds_against(ac.Budget(add_edges=size)) for size in SIZES]
    return [float((each & right).mean()) for each in held]


def rows_of(name: str, root: str, seed: int, done: set[str]) -> Any:
    """Yields one row for each method that has none."""
    data = ac.load_dataset(name, root=root, seed=seed)
    build, fit = tuned_arguments(name, "node", "mlp", defence="stacked")
    for method, defence in {**BLIND, TRAINED: ac.StackedVotes(size=1)}.items():
        if json.dumps([name, seed, method]) in done:
            continue
        begin = time.perf_counter()
        model = ac.fit(ac.build_model("mlp", data, **build), data, defence, **fit, protocol="inductive", seed=seed)
        trained = time.perf_counter()
        row = {"method": method, "certified": certified(model, data, model.defence)}
        yield row | {"seconds": {"training": trained - begin, "certifying": time.perf_counter() - trained}}
        if method == next(iter(BLIND)):
            with torch.no_grad():
                alone = defence.without_edges(model)(data.x, data.edge_index).argmax(dim=1)
            accuracy = float((alone == data.y)[data.test_mask].double().mean())
            yield {"method": ALONE, "certified": [accuracy] * len(SIZES)}


def page() -> str:
    """The table, as Markdown: means over splits."""
    rows = list(read_rows(ROWS))
    lines = [f"| method | {' | '.join(map(str, SIZES))} |", "|---|" + "---|" * len(SIZES)]
    for method in (ALONE, *BLIND, TRAINED):
        here = [row["certified"] for row in rows if row["method"] == method]
        lines.append(
            f"| {method} ({len(here)} splits) | " + " | ".join(f"{x:.3f}" for x in np.mean(here, axis=0)) + " |"
        )
    return "\n".join(lines)


def main() -> None:
    """Makes the rows of the splits that are missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("datasets", nargs="*")
    parser.add_argument("--root", default="data")
    parser.add_argument("--seeds", nargs="*", type=int, default=[300, 301])
    parser.add_argument("--page", action="store_true")
    given = parser.parse_args()
    torch.set_num_threads(1)
    for name in given.datasets:
        for seed in given.seeds:
            done = {row["key"] for row in read_rows(ROWS)}
            if json.dumps([name, seed, TRAINED]) in done:
                continue
            for row in rows_of(name, given.root, seed, done):
                key = json.dumps([name, seed, row["method"]])
                if key not in done:
                    append_row(ROWS, {"key": key, "dataset": name, "seed": seed, **row})
                    print(row, flush=True)
    if given.page:
        print(page())


if __name__ == "__main__":
    main()
