"""Certificates designed for a size on graph datasets: models trained for it, size alone, and the majority class.

    python -m benchmarks.design --data .cache/data mutag proteins aids dd
    python -m benchmarks.design --data .cache/data --controls --divisions E30 E100 E300 Einf N30 N100 N300 Ninf

Each row of ``results/design.jsonl`` is one vote: a model (or none), a division and constants that were chosen on training
and validation graphs for a design size, and its certified accuracy on the test graphs at many sizes. A design size takes
the model that does best for it there, whichever size that was trained for. With one group for each edge or node
(``Einf``, ``Ninf``) the size alone is counted exactly; models that were trained with a thousand groups or more vote there
too. Rows that are there already are not computed again.
"""

import argparse
import json
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

import agnncert as ac
from agnncert.graphs.graph import canonical_set
from agnncert.models.build import build_constant
from agnncert.training.side_by_side import DistinctSubgraphs
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

SIZES = (*range(11), 12, 15, 20, 30, 50)
DESIGNS = {"mutag": (1, 2), "proteins": (3, 5, 10), "aids": (2, 5, 10), "dd": (5, 10)}
TRAINED = {"mutag": (1, 2), "proteins": (3,), "aids": (5,), "dd": (5,)}  # sizes for which a model is trained
DIVISIONS = {
    "mutag": ("N1000", "E1000"),
    "proteins": ("E1000", "E300"),
    "aids": ("E300", "E1000"),
    "dd": ("N3000", "E3000"),
}
FIT = {"epochs": 100, "evaluate_every": 10, "patience": None, "weight_decay": 0.0, "batch_size": 2000}
ALONE = 1000  # from so many groups on hardly two edges or nodes fall together, and each may as well have its own
PARTS = ("train", "val", "test")

Tables = dict[str, BallotTable]


def division_of(word: str) -> Any:
    """``E300``: edge-centric with 300 groups; ``Ninf``: one for each node."""
    groups: Any = math.inf if word[1:] == "inf" else int(word[1:])
    return (ac.EdgeCentric if word[0] == "E" else ac.NodeCentric)(groups)


def tables_of(model: torch.nn.Module, data: Any, division: Any) -> Tables:
    """Ballots of all three parts, as they are certified."""
    y, evidence = data.y.numpy(), ac.certify(model, data, division).evidence
    own = division.num_groups == math.inf
    whole = BallotTable.of_own_groups(evidence, y, "any") if own else BallotTable.of(evidence.votes, y)
    return {part: whole.rows(getattr(data, part).numpy()) for part in PARTS}


def outcome(tables: Tables, constants: Constants, size: int) -> dict[str, Any]:
    """What a vote does: the score for which it was chosen, and certified accuracy on validation and test graphs."""
    marks = certified(tables["test"], constants.empty, constants.prior, size)
    return {
        "empty": constants.empty,
        "prior": constants.prior,
        "score": round(constants.score, 6),
        "sizes": SIZES,
        **{
            f"{part}_certified": [round(certified_accuracy(tables[part], constants, near), 5) for near in SIZES]
            for part in ("val", "test")
        },
        "marks": "".join("01"[int(mark)] for mark in marks),
    }


def trained(data: Any, division: Any, size: int, seed: int, epochs: int) -> torch.nn.Module:
    """A model for one size."""
    model = ac.build_model("gcn", data, readout="sum", seed=seed)
    how = {**FIT, "epochs": epochs}
    return ac.fit(model, data, division, objective="certified", design_size=size, seed=seed, **how)


def votes(data: Any, name: str, word: str, seed: int, epochs: int) -> Iterator[dict[str, Any]]:
    """Rows of one dataset, division and seed."""
    division, found, alone = division_of(word), {}, {}
    for size in TRAINED[name]:
        begin = time.perf_counter()
        model = trained(data, division, size, seed, epochs)
        about = {
            "epochs": epochs,
            "best_epoch": model.training_record["best_epoch"],
            "seconds": round(time.perf_counter() - begin, 1),
        }
        found[size] = (tables_of(model, data, division), about)
        if division.num_groups >= ALONE:
            alone[size] = (tables_of(model, data, division_of(f"{word[0]}inf")), {**about, "trained_on": word})
    yield from designed(found, name)
    if alone:
        yield from ({"division": f"{word[0]}inf", **row} for row in designed(alone, name) if row["method"] == "trained")


def controls(data: Any, name: str, word: str) -> Iterator[dict[str, Any]]:
    """The rows of one dataset and division for which no model is needed."""
    division, num_classes = division_of(word), int(data.y.max()) + 1
    if division.num_groups == math.inf:
        tables = tables_of(build_constant(data, 0, num_classes), data, division)
    else:
        tables = tables_of_filled(data, division, num_classes)
    yield from (row for row in designed({0: (tables, {})}, name) if row["method"] != "trained")


def tables_of_filled(data: Any, division: Any, num_classes: int) -> Tables:
    """The same as of a constant model, which votes for class 0 in every group that is not empty."""
    unused: Any = None
    subgraphs = DistinctSubgraphs.of(unused, canonical_set(list(data)), len(data), division, each=True)
    counts = np.zeros((len(data), num_classes), dtype=np.int64)
    counts[:, 0] = subgraphs.num_filled.numpy()
    whole = BallotTable.of_graphs(division.num_groups, counts, data.y.numpy())
    return {part: whole.rows(getattr(data, part).numpy()) for part in PARTS}


def designed(found: dict[int, tuple[Tables, dict[str, Any]]], name: str) -> Iterator[dict[str, Any]]:
    """A vote for each design size and method, from the ballots of models that were trained for some sizes."""
    for size in DESIGNS[name]:
        both = {other: joined([tables["train"], tables["val"]]) for other, (tables, _) in found.items()}
        best = {other: best_constants(table, window(size)) for other, table in both.items()}
        other = max(found, key=lambda one: (best[one].score, one == size))
        tables, about = found[other]
        yield {"size": size, "method": "trained", "trained_for": other, **about, **outcome(tables, best[other], size)}
        label, by_size = size_only(both[other], window(size))
        alone = {part: table.voting(label) for part, table in tables.items()}
        yield {"size": size, "method": "size only", **outcome(alone, by_size, size)}
        always = constant_answer(both[other], majority(both[other]), window(size))
        yield {"size": size, "method": "majority", **outcome(tables, always, size)}


def main() -> None:
    """Computes the rows that are missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", nargs="*", default=list(DESIGNS))
    parser.add_argument("--data", default=None)
    parser.add_argument("--out", default="results/design.jsonl", type=Path)
    parser.add_argument("--seeds", nargs="*", default=[0, 1, 2], type=int)
    parser.add_argument("--divisions", nargs="*")
    parser.add_argument("--controls", action="store_true", help="size only and majority class: no model is trained")
    parser.add_argument("--epochs", default=FIT["epochs"], type=int)
    options = parser.parse_args()
    torch.set_num_threads(1)
    wanted = "size only" if options.controls else "trained"
    for name in options.datasets:
        for seed in options.seeds:
            data = None
            for word in options.divisions or DIVISIONS[name]:
                about, known = {"dataset": name, "division": word, "seed": seed}, read(options.out)
                if all(key({**about, "size": size, "method": wanted}) in map(key, known) for size in DESIGNS[name]):
                    continue
                data = data if data is not None else ac.load_dataset(name, root=options.data, seed=seed)
                found = (
                    controls(data, name, word) if options.controls else votes(data, name, word, seed, options.epochs)
                )
                rows = [{**about, **row} for row in found]
                write(options.out, [row for row in rows if key(row) not in set(map(key, known))])


def read(path: Path) -> list[dict[str, Any]]:
    """All rows of a file; none if there is no such file."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    """Appends rows, and says what they hold."""
    with path.open("a") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    for row in rows:
        marks = " ".join(f"{s}:{v:.3f}" for s, v in zip(row["sizes"], row["test_certified"], strict=True) if s <= 10)
        print(*(row[name] for name in ("dataset", "division", "seed", "size", "method")), f"{row['score']:.3f}", marks)


def key(row: dict[str, Any]) -> str:
    """What tells one row from another."""
    return json.dumps([row[name] for name in ("dataset", "division", "seed", "size", "method")])


if __name__ == "__main__":
    main()
