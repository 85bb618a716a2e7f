"""Certificates designed for a size on graph datasets: models trained for it, size alone, and the majority class.

    python -m benchmarks.design --data .cache/data mutag proteins aids dd

Each row of ``results/design.jsonl`` is one vote: a model (or none), a division and constants that were chosen on training
and validation graphs for a design size, and its certified accuracy on the test graphs at many sizes. Rows that are
there already are not computed again.
"""

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

import agnncert as ac
from agnncert.training.vote_search import (
    BallotTable,
    Constants,
    best_constants,
    certified,
    certified_accuracy,
    constant_answer,
    joined,
    majority,
    size_only,
    window,
)

SIZES = (0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20)
DESIGNS = {"mutag": (1, 2), "proteins": (3, 5, 10), "aids": (2, 5, 10), "dd": (5, 10)}
DIVISIONS = {
    "mutag": ("N300", "E300", "E100"),
    "proteins": ("E1000", "E300"),
    "aids": ("E300", "N300"),
    "dd": ("E3000", "N1000"),
}
FIT = {"epochs": 150, "evaluate_every": 5, "patience": None, "weight_decay": 0.0, "batch_size": 2000}
STARTS = 3  # models per row, of which the best is taken: training ends in a constant now and then
PARTS = ("train", "val", "test")

Tables = dict[str, BallotTable]


def division_of(word: str) -> Any:
    """``E300``: edge-centric with 300 groups."""
    return (ac.EdgeCentric if word[0] == "E" else ac.NodeCentric)(int(word[1:]))


def tables_of(model: torch.nn.Module, data: Any, division: Any) -> Tables:
    """Ballots of all three parts, as they are certified."""
    y = data.y.numpy()
    return {
        part: BallotTable.of(ac.certify(model, data, division, targets=rows).evidence.votes, y[rows.numpy()])
        for part in PARTS
        for rows in [getattr(data, part)]
    }


def outcome(tables: Tables, constants: Constants, size: int) -> dict[str, Any]:
    """What a vote does: the score for which it was chosen, and certified accuracy on each part."""
    return {
        "empty": constants.empty,
        "prior": constants.prior,
        "score": constants.score,
        "val": float(np.mean([certified_accuracy(tables["val"], constants, near) for near in window(size)])),
        **{
            f"{part}_at": {near: round(certified_accuracy(tables[part], constants, near), 5) for near in SIZES}
            for part in PARTS
        },
        "marks": {
            part: "".join("01"[int(mark)] for mark in certified(tables[part], constants.empty, constants.prior, size))
            for part in PARTS
        },
    }


def trained(data: Any, division: Any, size: int, seed: int, start: int, fit: dict[str, Any]) -> torch.nn.Module:
    """A model from one of several starting points."""
    model = ac.build_model("gcn", data, readout="sum", seed=100 * seed + start)
    return ac.fit(model, data, division, objective="certified", design_size=size, seed=seed, **{**FIT, **fit})


def score_of(model: torch.nn.Module) -> float:
    """By what the best start is chosen: certified accuracy on training and validation graphs."""
    return float(model.training_record["score"])  # type: ignore[arg-type, index]


def votes(data: Any, name: str, word: str, size: int, seed: int, fit: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Rows of one dataset, division, design size and seed."""
    begin = time.perf_counter()
    division = division_of(word)
    model = max((trained(data, division, size, seed, start, fit) for start in range(STARTS)), key=score_of)
    seconds = time.perf_counter() - begin
    tables = tables_of(model, data, division)
    both = joined([tables["train"], tables["val"]])
    trained = best_constants(both, window(size))
    record = {"best_epoch": model.training_record["best_epoch"], "seconds": seconds}
    yield {"method": "trained", **record, **outcome(tables, trained, size)}
    label, by_size = size_only(both, window(size))
    yield {"method": "size only", **outcome({p: t.voting(label) for p, t in tables.items()}, by_size, size)}
    yield {"method": "majority", **outcome(tables, constant_answer(both, majority(both), window(size)), size)}


def main() -> None:
    """Computes the rows that are missing."""
    parser = argparse.ArgumentParser()
    parser.add_argument("datasets", nargs="*", default=list(DESIGNS))
    parser.add_argument("--data", default=None)
    parser.add_argument("--out", default="results/design.jsonl", type=Path)
    parser.add_argument("--seeds", default=3, type=int)
    parser.add_argument("--divisions", nargs="*")
    parser.add_argument("--sizes", nargs="*", type=int)
    parser.add_argument("--fit", default="{}", type=json.loads)
    options = parser.parse_args()
    done = {key(row) for row in read(options.out)}
    for name in options.datasets:
        for word in options.divisions or DIVISIONS[name]:
            for seed in range(options.seeds):
                data = None
                for size in options.sizes or DESIGNS[name]:
                    about = {"dataset": name, "division": word, "size": size, "seed": seed, "fit": options.fit}
                    if key(about) in done:
                        continue
                    data = data if data is not None else ac.load_dataset(name, root=options.data, seed=seed)
                    rows = list(votes(data, name, word, size, seed, options.fit))
                    with options.out.open("a") as file:
                        file.writelines(json.dumps({**about, **row}) + "\n" for row in rows)
                    for row in rows:
                        marks = " ".join(f"{near}:{row['test_at'][near]:.3f}" for near in (0, 1, 2, 3, 5, 8, 10))
                        print(name, word, size, seed, f"{row['method']:<10}", f"{row['score']:.3f}", marks, flush=True)


def read(path: Path) -> list[dict[str, Any]]:
    """All rows of a file; none if there is no such file."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def key(row: dict[str, Any]) -> str:
    """What tells one run from another."""
    return json.dumps([row[name] for name in ("dataset", "division", "size", "seed", "fit")])


if __name__ == "__main__":
    main()
