"""Time and memory of append-only scores: Ethereum, and 300,000 drawn accounts with 3 million payments.

python -m experiments.benchmarks.append_scale [GRAPH …] --root .cache/data

Times are those of the processor on one thread, memory the most that the process has held. ``file`` is ``agnncert verify``
with the certificate alone, in a process of its own that loads neither torch nor scikit-learn; ``graph`` is verification
with data and model. Rows go to experiments/results/append-scale.jsonl.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from torch_geometric.data import Data

import agnncert as ac
from agnncert.datasets.relations import both_directions
from experiments.benchmarks.append_only import loaded, rows_of
from experiments.paper.rows import append_row, read_rows

ROWS = Path(__file__).parents[1] / "results" / "append-scale.jsonl"
ETHEREUM, DRAWN = "ethereum-phishing", "drawn payments"
ACCOUNTS, PAYMENTS = 300_000, 3_000_000
LABELLED = {"train": 4000, "val": 2000, "test": 10_000}
NAMES = ["transactions", "amount"]
Result = TypeVar("Result")


def drawn(seed: int = 0) -> Data:
    """Accounts of which one in twenty is paid round amounts; all payments between two are one row for each way."""
    random = np.random.default_rng(seed)
    payer, payee = random.integers(0, ACCOUNTS, (2, PAYMENTS))
    kept = payer != payee
    pair, count = np.unique(payer[kept] * ACCOUNTS + payee[kept], return_counts=True)
    payer, payee = pair // ACCOUNTS, pair % ACCOUNTS
    y = (random.random(ACCOUNTS) < 0.05).astype(np.int64)
    amount = np.rint(random.lognormal(4, 1.5, len(pair))) + 1
    is_round = y[payee] == 1
    amount[is_round] = np.rint(amount[is_round] / 100) * 100 + 100
    values = torch.from_numpy(np.stack([count, amount], axis=1)).float()
    edge_index, edge_attr = both_directions(torch.from_numpy(np.stack([payer, payee])), values, ACCOUNTS)
    data = Data(x=torch.ones(ACCOUNTS, 1), edge_index=edge_index, edge_attr=edge_attr, y=torch.from_numpy(y))
    data.node_id = torch.arange(ACCOUNTS)
    data.edge_names = [*NAMES, *(f"{name}, back" for name in NAMES)]
    order, first = random.permutation(ACCOUNTS), 0
    for part, number in LABELLED.items():
        mask = torch.zeros(ACCOUNTS, dtype=torch.bool)
        mask[torch.from_numpy(order[first : first + number])] = True
        data[f"{part}_mask"] = mask
        first += number
    return data


class Clock:
    """Processor seconds of each step."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def of(self, name: str, step: Callable[[], Result]) -> Result:
        """Does a step and notes its time."""
        begin = time.process_time()
        result = step()
        self.seconds[name] = round(time.process_time() - begin, 2)
        print(name, self.seconds[name], flush=True)
        return result


def run(name: str, seed: int, root: str) -> dict[str, Any]:
    """One row."""
    torch.set_num_threads(1)
    data = drawn(seed) if name == DRAWN else loaded(name, seed, root, times=False)
    test = rows_of(data, "test")
    defence = ac.AppendOnly(threat="ledger", positive=1)
    clock = Clock()
    model = clock.of("fit", lambda: ac.fit(None, data, defence, seed=seed))
    point = clock.of("threshold", lambda: ac.choose_threshold(model, data, defence, false_positive_rate=0.1))
    certificate = clock.of("certify", lambda: ac.certify(point.model, data, point, targets=test))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "certificate.cert"
        certificate.save(file)
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        subprocess.run([sys.executable, "-m", "agnncert", "verify", str(file)], check=True, capture_output=True)
        clock.seconds["file"] = round(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before, 2)
        megabytes = round(file.stat().st_size / 1e6, 2)
        verdict = clock.of("graph", lambda: ac.verify(file, data=data, model=point.model))
    if not verdict.holds:
        raise RuntimeError("the certificate does not hold")
    return {
        "dataset": name,
        "seed": seed,
        "accounts": data.num_nodes,
        "rows": int((data.edge_attr[:, 0] > 0).sum()),
        "targets": len(test),
        "seconds": clock.seconds,
        "gigabytes": round(memory, 2),
        "file in megabytes": megabytes,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", nargs="*", default=[ETHEREUM, DRAWN])
    parser.add_argument("--root", default=".cache/data")
    parser.add_argument("--seed", type=int, default=5)
    parser.add_argument("--out", type=Path, default=ROWS)
    args = parser.parse_args()
    for name in args.graphs:
        if name not in [row["dataset"] for row in read_rows(args.out)]:
            append_row(args.out, run(name, args.seed, args.root))


if __name__ == "__main__":
    main()
