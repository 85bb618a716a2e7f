"""How robust undefended models are, exactly: every edge that can matter is added or deleted.

    python -m experiments.benchmarks.exact [--root FOLDER] [--dataset cora-ml] [--targets 50] [--size 1]

trains a GCN with the recipe of the library and writes experiments/results/exact.json. A run that was cut goes on where
it stopped.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
import torch

import agnncert as ac
from agnncert.training.settings import recipe
from agnncert_peers.exact import BROKEN, ROBUST, UNDECIDED, exact_robustness

FILE = Path(__file__).parent.parent / "results" / "exact.json"


def main() -> None:
    """Measures one dataset and adds its row to the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", default=".cache/data")
    parser.add_argument("--dataset", default="cora-ml")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--targets", type=int, default=50, help="test nodes, drawn at random")
    parser.add_argument("--size", type=int, default=1)
    parser.add_argument("--limit", type=int, default=2_000_000, help="attacked graphs for each target at most")
    parser.add_argument("--out", type=Path, default=FILE)
    options = parser.parse_args()
    torch.set_num_threads(1)
    data = ac.load_dataset(options.dataset, root=options.root)
    model_args, fit_args = recipe(options.dataset, "node")
    model = ac.build_model("gcn", data, **model_args | {"num_layers": options.layers})
    model = ac.fit(model, data, seed=0, **fit_args)
    test = np.flatnonzero(data.test_mask.numpy())
    rows = np.sort(np.random.default_rng(0).choice(test, min(options.targets, len(test)), replace=False))
    kept = Path(".cache") / f"exact-{options.dataset}-{options.layers}-{options.size}.json"
    started = time.perf_counter()
    found = exact_robustness(model, data, rows, size=options.size, limit=options.limit, checkpoint=kept, progress=print)
    with torch.no_grad():
        right = model(data.x, data.edge_index).argmax(1)[data.test_mask] == data.y[data.test_mask]
    row = {
        "dataset": options.dataset, "layers": options.layers, "size": options.size, "targets": len(rows), "limit": options.limit,
        "accuracy_of_test_part": round(float(right.float().mean()), 4), "correct": round(float(found.correct.mean()), 4),
        "correct_and_robust": found.share(ROBUST), "correct_and_broken": found.share(BROKEN),
        "correct_and_undecided": found.share(UNDECIDED), "seconds": round(time.perf_counter() - started),
    }  # fmt: skip
    print(found)
    rows_before = json.loads(options.out.read_text())["rows"] if options.out.exists() else []
    same = ("dataset", "layers", "size")
    kept_rows = [other for other in rows_before if any(other[name] != row[name] for name in same)]
    text = json.dumps({"command": "python -m experiments.benchmarks.exact", "rows": [*kept_rows, row]}, indent=1)
    options.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
