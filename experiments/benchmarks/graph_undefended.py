"""Undefended GIN and GCN on five datasets of graphs, beside which the tables of graph votes are read.

    python -m experiments.benchmarks.graph_undefended --root .cache/data

The readout of each model and dataset is chosen once, on the validation part of a split that is not reported
(``CHOICE_SEED``), without its test part. Then each model is trained on the reported splits until the accuracy on
validation graphs has not risen for ``PATIENCE`` evaluations; the weights with the best one are kept. A row says whether
training stopped for this reason, or because its epochs were used up, and what the loss was at the end.

The first split of all models comes first, then the next one. Rows that are there already are not computed again.
"""

import argparse
import time
from itertools import product
from pathlib import Path
from typing import Any

import torch

import agnncert as ac
from agnncert_peers.card_making import labels_of
from experiments.paper.rows import append_row, read_rows

KEPT = Path(".cache/graph_field")
ROWS = Path(__file__).parents[1] / "results" / "graph_undefended.jsonl"
DATASETS = ("proteins", "aids", "nci1", "mutag", "dd")
MODELS = ("gin", "gcn")
READOUTS = ("mean", "sum")
SEEDS = (70, 71, 72, 73, 74)
CHOICE_SEED = 69
EPOCHS = 240  # at most
EPOCHS_OF_CHOICE = 20
PATIENCE = 15  # evaluations
EVERY = {"dd": 1}  # epochs between evaluations
USUALLY_EVERY = 2


def trained(graphs: Any, name: str, kind: str, readout: str, seed: int, epochs: int) -> Any:
    """A model of three layers of 64, all of which are read out, trained on whole graphs."""
    model = ac.build_model(kind, graphs, seed=seed, readout=readout, norm="batch_norm", jk="cat")
    settings: Any = {"lr": 0.005, "weight_decay": 0.0, "clip": 1.0, "patience": PATIENCE}
    every = EVERY.get(name, USUALLY_EVERY)
    return ac.fit(model, graphs, None, seed=seed, epochs=epochs, evaluate_every=every, **settings)


@torch.no_grad()
def labels(model: Any, graphs: Any, rows: torch.Tensor) -> torch.Tensor:
    """The labels that a model gives some graphs."""
    from torch_geometric.loader import DataLoader

    batches = DataLoader([graphs[int(row)] for row in rows], batch_size=128)
    return torch.cat([model(batch.x, batch.edge_index, batch.batch).argmax(dim=1) for batch in batches])


def accuracy(model: Any, graphs: Any, rows: torch.Tensor) -> float:
    """The share of some graphs that a model gets right."""
    return float((labels(model, graphs, rows) == truth_of(graphs, rows)).double().mean())


def truth_of(graphs: Any, rows: torch.Tensor) -> torch.Tensor:
    """The true classes of some graphs."""
    return torch.tensor([int(graphs[int(row)].y) for row in rows])


def kept_labels(name: str, kind: str, seed: int) -> Path:
    """Where the labels of test graphs are kept, from which cards are made."""
    return KEPT / f"{name}_undefended-{kind}_{seed}.json"


def chosen_readout(name: str, kind: str, root: str) -> dict[str, Any]:
    """The readout with the better validation accuracy on a split that is not reported."""
    graphs: Any = ac.load_dataset(name, root=root, seed=CHOICE_SEED)
    found = {
        readout: accuracy(trained(graphs, name, kind, readout, 0, EPOCHS_OF_CHOICE), graphs, graphs.val)
        for readout in READOUTS
    }
    return {"validation": found, "readout": max(READOUTS, key=lambda readout: found[readout])}


def row_of(name: str, kind: str, readout: str, seed: int, root: str) -> dict[str, Any]:
    """Trains one model on one split."""
    graphs: Any = ac.load_dataset(name, root=root, seed=seed)
    begin = time.process_time()
    model = trained(graphs, name, kind, readout, seed, EPOCHS)
    record = model.training_record
    seconds = round(time.process_time() - begin, 1)
    file = kept_labels(name, kind, seed)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(
        labels_of(
            graphs.test.tolist(),
            labels(model, graphs, graphs.test).tolist(),
            truth_of(graphs, graphs.test).tolist(),
        )
    )
    return {
        "dataset": name,
        "model": kind,
        "what": "test",
        "seed": seed,
        "readout": readout,
        "training": accuracy(model, graphs, graphs.train),
        "validation": accuracy(model, graphs, graphs.val),
        "accuracy": accuracy(model, graphs, graphs.test),
        "best_epoch": record["best_epoch"],
        "epochs": record["epochs_run"],
        "converged": record["epochs_run"] < EPOCHS,
        "loss_at_best": next(step["loss"] for step in record["history"] if step["epoch"] == record["best_epoch"]),
        "loss_at_end": record["history"][-1]["loss"],
        "processor_seconds": seconds,
    }


def main() -> None:
    """Computes the rows that are missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", nargs="*", default=DATASETS)
    parser.add_argument("--root", default=".cache/data")
    parser.add_argument("--out", type=Path, default=ROWS)
    parser.add_argument("--seeds", nargs="*", type=int, default=SEEDS)
    parser.add_argument("--models", nargs="*", choices=MODELS, default=MODELS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    for seed, kind, name in product(options.seeds, options.models, options.datasets):
        here = [row for row in read_rows(options.out) if (row["dataset"], row["model"]) == (name, kind)]
        if any(row["what"] == "test" and row["seed"] == seed for row in here):
            continue
        choice = next((row for row in here if row["what"] == "choice"), None)
        if choice is None:
            choice = {"dataset": name, "model": kind, "what": "choice", **chosen_readout(name, kind, options.root)}
            append_row(options.out, choice)
        row = row_of(name, kind, choice["readout"], seed, options.root)
        append_row(options.out, row)
        print(row, flush=True)


if __name__ == "__main__":
    main()
