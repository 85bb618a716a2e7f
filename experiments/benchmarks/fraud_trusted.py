"""Trusted history: edges before a date cannot be changed any more, so an attacker has to buy new ones.

python -m experiments.benchmarks.fraud_trusted [DATASET …] --root .cache/data --seeds 0 1 2

A pair is trusted if all of its payments, or ratings, were made before the date, which is the one before which a share of
all pairs was joined. Stacked votes take trusted edges as part of what nobody can move, and are trained for it. Rows go
to experiments/results/fraud-trusted.jsonl. Thresholds are chosen on validation nodes.
"""

import argparse
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch

import agnncert as ac
from agnncert.datasets.fraud import YEAR, ZERO
from agnncert.datasets.splits import set_masks, stratified_split
from agnncert.stacked.training import mark_trusted
from experiments.benchmarks.fraud import DESIGNS, without_times
from experiments.benchmarks.stacked import ETHEREUM_PARTS
from experiments.paper.rows import append_row, read_rows

ROWS = Path(__file__).parents[1] / "results" / "fraud-trusted.jsonl"
SIZES, SHARES, RATE = (0, 1, 2, 5, 10), (0.0, 0.5, 0.8), 0.1


def times_of(data: Any) -> torch.Tensor:
    """When the last payment, or rating, between the two ends of each edge was made, in years."""
    names = data.edge_names
    forth, back = names.index("time"), names.index("time, back")
    there = data.edge_attr[:, [0, len(names) // 2]] > 0  # the first value of a direction is 1 if it exists
    times = torch.where(there, data.edge_attr[:, [forth, back]], -torch.inf)
    return times.amax(dim=1)


def run(name: str, seed: int, share: float, root: str) -> dict[str, Any]:
    """One row."""
    begin = time.perf_counter()
    data = ac.load_dataset(name, root=root, seed=seed)
    if name == "ethereum-phishing":
        set_masks(data, stratified_split(data.y, ETHEREUM_PARTS, seed))
    times = times_of(data)
    date = float(torch.quantile(times[torch.randperm(len(times))[:100_000]], share)) if share else -torch.inf
    data = without_times(data)  # a bought edge cannot pretend to be old, and votes need not read times at all
    data, column = mark_trusted(data, times < date)
    design = replace(DESIGNS[name][0], trusted=column)
    if share and name == "ethereum-phishing":  # some have thousands of trusted partners, too many for an exact mean
        design = replace(design, combine="sum")
    trained = ac.fit(None, data, design, seed=seed)
    model = ac.choose_threshold(trained, data, trained.defence, false_positive_rate=RATE).model
    certificate = ac.certify(model, data, model.defence, targets=data.test_mask)
    fraud = certificate.truth == 1
    held = [certificate.holds_against(ac.Budget(add_edges=size)) for size in SIZES]
    stamp = None if not share else datetime.fromtimestamp(date * YEAR + ZERO[name], UTC).date().isoformat()
    return {
        "dataset": name, "seed": seed, "share": share, "before": stamp, "sizes": SIZES,
        "recall": [float((one & (certificate.label == 1))[fraud].mean()) for one in held],
        "false": [float((~one | (certificate.label == 1))[~fraud].mean()) for one in held],
        "trusted pairs of test nodes": float(_trusted(data, certificate.row)),
        "seconds": round(time.perf_counter() - begin, 1),
    }  # fmt: skip


def _trusted(data: Any, rows: np.ndarray) -> float:
    near = torch.isin(data.edge_index[1], torch.from_numpy(rows))
    return float(data.edge_attr[near, -1].mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", nargs="*", default=["bitcoin-otc", "ethereum-phishing"])
    parser.add_argument("--root", default=".cache/data")
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2])
    parser.add_argument("--out", type=Path, default=ROWS)
    args = parser.parse_args()
    rows = list(read_rows(args.out))
    done = {(row["dataset"], row["seed"], row["share"]) for row in rows}
    for seed in args.seeds:
        for name in args.datasets:
            for share in SHARES:
                if (name, seed, share) not in done:
                    row = run(name, seed, share, args.root)
                    append_row(args.out, row)
                    print(name, seed, share, row["before"], [round(one, 3) for one in row["recall"]], flush=True)


if __name__ == "__main__":
    main()
