"""Undefended GIN and GCN on five datasets of graphs, beside which the tables of graph votes are read.

    python -m experiments.benchmarks.graph_undefended --root .cache/data

The readout of each model and dataset is chosen once, on the validation part of a split that is not reported
(``CHOICE_SEED``), without its test part. Then each model is trained on the five reported splits; the weights with the
best validation accuracy are kept. Rows that are there already are not computed again.
"""

import argparse
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import torch

import agnncert as ac
from experiments.paper.rows import append_row, read_rows

ROWS = Path(__file__).parents[1] / "results" / "graph_undefended.jsonl"
DATASETS = ("proteins", "aids", "nci1", "mutag", "dd")
MODELS = ("gin", "gcn")
READOUTS = ("mean", "sum")
SEEDS = (70, 71, 72, 73, 74)
CHOICE_SEED = 69
EPOCHS = {"dd": 20, "mutag": 45, "nci1": 60}
USUAL_EPOCHS = 60


def trained(graphs: Any, name: str, kind: str, readout: str, seed: int, epochs: int) -> torch.nn.Module:
    """A model of three layers of 64, all of which are read out, trained on whole graphs."""
    model = ac.build_model(kind, graphs, seed=seed, readout=readout, norm="batch_norm", jk="cat")
    settings: Any = {"lr": 0.005, "weight_decay": 0.0, "clip": 1.0, "evaluate_every": 2, "patience": 12}
    return ac.fit(model, graphs, None, seed=seed, epochs=epochs, **settings)


@torch.no_grad()
def accuracy(model: Any, graphs: Any, rows: torch.Tensor) -> float:
    """The share of some graphs that a model gets right."""
    from torch_geometric.loader import DataLoader

    right = 0
    for batch in DataLoader([graphs[int(row)] for row in rows], batch_size=128):
        right += int((model(batch.x, batch.edge_index, batch.batch).argmax(dim=1) == batch.y).sum())
    return right / len(rows)


def chosen_readout(name: str, kind: str, root: str) -> dict[str, Any]:
    """The readout with the better validation accuracy on a split that is not reported."""
    graphs: Any = ac.load_dataset(name, root=root, seed=CHOICE_SEED)
    epochs = EPOCHS.get(name, USUAL_EPOCHS) // 3
    found = {
        readout: accuracy(trained(graphs, name, kind, readout, 0, epochs), graphs, graphs.val) for readout in READOUTS
    }
    return {"validation": found, "readout": max(READOUTS, key=lambda readout: found[readout])}


def rows(name: str, kind: str, root: str, kept: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The rows of one model on one dataset that are missing."""
    here = [row for row in kept if (row["dataset"], row["model"]) == (name, kind)]
    choice = next((row for row in here if row["what"] == "choice"), None)
    if choice is None:
        choice = {"dataset": name, "model": kind, "what": "choice", **chosen_readout(name, kind, root)}
        yield choice
    for seed in sorted(set(SEEDS) - {row["seed"] for row in here if row["what"] == "test"}):
        graphs: Any = ac.load_dataset(name, root=root, seed=seed)
        begin = time.process_time()
        model: Any = trained(graphs, name, kind, choice["readout"], seed, EPOCHS.get(name, USUAL_EPOCHS))
        yield {
            "dataset": name,
            "model": kind,
            "what": "test",
            "seed": seed,
            "validation": accuracy(model, graphs, graphs.val),
            "accuracy": accuracy(model, graphs, graphs.test),
            "best_epoch": model.training_record["best_epoch"],
            "processor_seconds": round(time.process_time() - begin, 1),
        }


def main() -> None:
    """Computes the rows that are missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", nargs="*", default=DATASETS)
    parser.add_argument("--root", default=".cache/data")
    parser.add_argument("--out", type=Path, default=ROWS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    for name, kind in product(options.datasets, MODELS):
        for row in rows(name, kind, options.root, list(read_rows(options.out))):
            append_row(options.out, row)
            print(row, flush=True)


if __name__ == "__main__":
    main()
