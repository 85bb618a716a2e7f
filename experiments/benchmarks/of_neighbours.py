"""Stacked votes for a large size: what nodes with many neighbours keep if few neighbours are asked for less.

python -m experiments.benchmarks.of_neighbours cora pubmed --files FOLDER --root .cache/data --seeds 420 421 422

The graphs and splits are those of ``experiments.benchmarks.attacked`` (10 % of the nodes have labels, training does not
see the test nodes). Votes are trained for each size, once for all nodes alike and once with ``of_neighbours=0.5``, and
certified on all test nodes, by their number of neighbours. The share 0.5 was chosen on seed 410 by what validation and
training nodes certify. Rows go to experiments/benchmarks/results/of_neighbours.jsonl as they come. A run that is
started again goes on where it stopped.
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
from experiments.benchmarks.attacked import TUNED, Case
from experiments.paper.rows import append_row, read_rows

ROWS = Path(__file__).with_name("results") / "of_neighbours.jsonl"
SEEDS = (420, 421, 422)
SIZES = (3, 5)  # that votes are trained for
SHARES = (None, 0.5)
ASKED = (0, 1, 3, 5)  # changes that are certified
GROUPS = ((0, 8), (8, 16), (16, 1 << 30))  # numbers of neighbours, from and below


def certified(case: Case, seed: int, size: int, share: float | None) -> dict[str, Any]:
    """Trains votes, and returns the share of test nodes that is right and certified, by number of neighbours."""
    data = case.clean
    build, fit = tuned_arguments(TUNED[case.name], "node", "mlp", defence="stacked")
    base = ac.build_model("mlp", data, **build)
    defence = ac.StackedVotes(size=size, of_neighbours=share)
    model = ac.fit(base, data, defence, **fit, protocol="inductive", seed=seed)
    certificate = ac.certify(model, data, model.defence, data.test_mask)
    right = certificate.label == certificate.truth
    neighbours = np.bincount(data.edge_index[1].numpy(), minlength=int(data.num_nodes))[data.test_mask.numpy()]
    found: dict[str, Any] = {"votes": bool(model.use_votes), "nodes": [], "certified": []}
    for first, end in ((0, 1 << 30), *GROUPS):
        here = (neighbours >= first) & (neighbours < end)
        found["nodes"].append(int(here.sum()))
        found["certified"].append([float((right & (certificate.radius >= k))[here].mean()) for k in ASKED])
    return found


def main() -> None:
    """Makes the rows that are missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", nargs="+", choices=list(TUNED))
    parser.add_argument("--files", type=Path, required=True)
    parser.add_argument("--root", default=".cache/data")
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS))
    given = parser.parse_args()
    torch.set_num_threads(1)
    for name in given.datasets:
        case = Case.load(name, "nettack", given.files, given.root)
        for seed in given.seeds:
            done = {row["key"] for row in read_rows(ROWS)}
            for size in SIZES:
                for share in SHARES:
                    key = json.dumps([name, seed, size, share])
                    if key in done:
                        continue
                    begin = time.process_time()
                    row = {"key": key, "dataset": name, "seed": seed, "size": size, "share": share}
                    row |= {**certified(case, seed, size, share), "seconds": round(time.process_time() - begin, 1)}
                    append_row(ROWS, row)
                    print(row, flush=True)


if __name__ == "__main__":
    main()
