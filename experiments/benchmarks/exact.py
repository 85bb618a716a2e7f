"""How robust undefended models are, exactly: every edge that can matter is added or deleted.

    python -m experiments.benchmarks.exact [--root FOLDER] [--dataset cora-ml] [--targets 50] [--size 1]

trains a GCN with the recipe of the library and writes experiments/results/exact.json. A GCN of two layers is evaluated by
its formula (``exact_gcn``), others by calls of the model (``exact_robustness``: minutes for each target; a run that was cut
goes on where it stopped). At size 2 the formula follows the worst first changes only, so targets that withstand these are
not decided.
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
from agnncert_peers.exact import BROKEN, ROBUST, UNDECIDED, ExactRobustness, exact_robustness
from experiments.benchmarks.exact_gcn import TwoLayers

FILE = Path(__file__).parent.parent / "results" / "exact.json"


def by_formula(model: Any, data: Any, rows: Any, size: int, most_first: int) -> ExactRobustness:
    """As ``exact_robustness``, for a GCN of two layers without norms."""
    first, second = model.convs
    given = [first.lin.weight, first.bias, second.lin.weight, second.bias]
    weights: Any = tuple(one.detach().numpy() for one in given)
    scan = TwoLayers(data.x.numpy(), data.edge_index.numpy(), weights)
    label = np.array([scan.logits(row).argmax() for row in rows.tolist()])
    outcomes = []
    for done, (row, own) in enumerate(zip(rows.tolist(), label.tolist(), strict=True), 1):
        outcomes.append(scan.outcome(row, own, size, most_first))
        print(done, row, outcomes[-1], flush=True)
    return ExactRobustness(size, rows, label, tuple(outcomes), data.y.numpy()[rows] == label)


def main() -> None:
    """Measures one dataset and adds its row to the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", default=".cache/data")
    parser.add_argument("--dataset", default="cora-ml")
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--targets", type=int, default=50, help="test nodes, drawn at random")
    parser.add_argument("--size", type=int, default=1)
    parser.add_argument("--limit", type=int, default=2_000_000, help="attacked graphs for each target at most")
    parser.add_argument(
        "--most-first", type=int, default=20, help="size 2: first changes that are followed by a second"
    )
    parser.add_argument("--calls", action="store_true", help="call the model, also if there is a formula")
    parser.add_argument("--out", type=Path, default=FILE)
    options = parser.parse_args()
    torch.set_num_threads(1)
    data = ac.load_dataset(options.dataset, root=options.root)
    model_args, fit_args = tuned_arguments(options.dataset, "node")
    model = ac.build_model("gcn", data, **model_args | {"num_layers": options.layers})
    model = ac.fit(model, data, seed=0, **fit_args)
    test = np.flatnonzero(data.test_mask.numpy())
    rows = np.sort(np.random.default_rng(0).choice(test, min(options.targets, len(test)), replace=False))
    kept = Path(".cache") / f"exact-{options.dataset}-{options.layers}-{options.size}.json"
    started = time.process_time()
    formula = options.layers == 2 and "norm" not in model_args and not options.calls
    if formula:
        found = by_formula(model, data, rows, options.size, options.most_first)
    else:
        found = exact_robustness(
            model, data, rows, size=options.size, limit=options.limit, checkpoint=kept, progress=print
        )
    with torch.no_grad():
        right = model(data.x, data.edge_index).argmax(1)[data.test_mask] == data.y[data.test_mask]
    row = {
        "dataset": options.dataset, "layers": options.layers, "size": options.size, "targets": len(rows),
        **({"by": "formula", "most_first": options.most_first} if formula else {"by": "calls", "limit": options.limit}),
        "accuracy_of_test_part": round(float(right.float().mean()), 4), "correct": round(float(found.correct.mean()), 4),
        "correct_and_robust": found.share(ROBUST), "correct_and_broken": found.share(BROKEN),
        "correct_and_undecided": found.share(UNDECIDED), "seconds": round(time.process_time() - started),
    }  # fmt: skip
    print(found)
    rows_before = json.loads(options.out.read_text())["rows"] if options.out.exists() else []
    same = ("dataset", "layers", "size")
    kept_rows = [other for other in rows_before if any(other[name] != row[name] for name in same)]
    text = json.dumps({"command": "python -m experiments.benchmarks.exact", "rows": [*kept_rows, row]}, indent=1)
    options.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
