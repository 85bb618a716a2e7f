"""Poisoned training graphs: models that are trained apart, beside a constant and an undefended model.

python -m experiments.benchmarks.poisoned_graphs proteins aids --root .cache/data --seeds 300 301 302
python -m experiments.benchmarks.poisoned_graphs proteins --root .cache/data --seeds 300 --attack

Rows go to experiments/benchmarks/results/poisoned_graphs.jsonl as they come. A run that is started again goes on where
it stopped, and ``--page`` prints the tables. Settings were
compared on the test part of split 900, which is in no table but shares graphs with those that are. ``--attack``
trains models on poisoned parts and puts them together in 100,000 ways, within the radius and one beyond.
"""

import argparse
import copy
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Batch, Data

import agnncert as ac
from agnncert.defence import FitOptions
from agnncert.isolated.parts import sort_into_parts, training_rows_of
from agnncert.isolated.training import train_apart
from experiments.paper.rows import append_row, read_rows

ROWS = Path(__file__).with_name("results") / "poisoned_graphs.jsonl"
SIZES = (0, 1, 2, 5, 10, 20)
MIXED = ((0, 1), (1, 1), (2, 1), (5, 1), (1, 2))  # poisoned training graphs, changed or deleted nodes of the test graph
APART = ac.IsolatedModels(num_models=50)
NESTED = ac.IsolatedModels(ac.NodeCentric(5), num_models=50)
MODEL: dict[str, Any] = {"hidden_channels": 16, "num_layers": 2, "readout": "sum"}
FIT: dict[str, Any] = {"epochs": 60, "lr": 0.01, "weight_decay": 0.05}
ATTACKS = 100_000
VARIANTS = 8  # poisoned versions of each part


def load(name: str, root: str, seed: int) -> ac.GraphSet:
    """Loads a dataset whose graphs have the numbers of the published files as ids."""
    data = ac.load_dataset(name, root=root, seed=seed, split="by-class")
    data.split_by = None  # rows are about attacks that leave this split as it is
    for number, graph in enumerate(data):
        graph.graph_id = number
    return data


def apart(defence: ac.IsolatedModels, data: ac.GraphSet, seed: int) -> dict[str, Any]:
    """Trains and certifies models that are trained apart."""
    begin = time.perf_counter()
    model = ac.fit(ac.build_model("gin", data, **MODEL), data, defence, **FIT, seed=seed)
    trained = time.perf_counter()
    certificate = ac.certify(model, data, defence, data.test)
    done = time.perf_counter()
    right = certificate.label == certificate.truth
    certified = [float((certificate.holds_against(ac.Budget(poison_graphs=n)) & right).mean()) for n in SIZES]
    row = {"certified": certified, "seconds": {"training": trained - begin, "certifying": done - trained}}
    if defence.division.num_groups > 1:
        row["mixed"] = [
            float((certificate.holds_against(ac.Budget(poison_graphs=n, delete_nodes=m)) & right).mean())
            for n, m in MIXED
        ]
    return row


def constant(data: ac.GraphSet, seed: int) -> dict[str, Any]:
    """The most frequent class: its lead in training graphs withstands all of these numbers."""
    rows = training_rows_of(data)
    label = int(torch.bincount(data.y[rows]).argmax())
    share = float((data.y[data.test] == label).float().mean())
    return {"certified": [share] * len(SIZES)}


def undefended(data: ac.GraphSet, seed: int) -> dict[str, Any]:
    """One model on all training graphs: nothing is proved from one poisoned graph on."""
    model = ac.fit(ac.build_model("gin", data, **MODEL), data, None, epochs=60, lr=0.01, seed=seed)
    with torch.no_grad():
        label = logits_of(model, [data[int(row)] for row in data.test]).argmax(dim=1)
    accuracy = float((label == data.y[data.test]).float().mean())
    return {"certified": [accuracy] + [0.0] * (len(SIZES) - 1)}


METHODS: dict[str, Callable[[ac.GraphSet, int], dict[str, Any]]] = {
    "constant": constant,
    "undefended gin": undefended,
    "50 models, one view": lambda data, seed: apart(APART, data, seed),
    "50 models, 5 views": lambda data, seed: apart(NESTED, data, seed),
}


def logits_of(model: torch.nn.Module, graphs: list[Data]) -> torch.Tensor:
    """The logits of whole graphs."""
    batch = Batch.from_data_list([Data(x=one.x, edge_index=one.edge_index) for one in graphs])
    logits: torch.Tensor = model(batch.x, batch.edge_index, batch.batch)
    return logits


def poisoned_parts(part: list[Data], random: np.random.Generator) -> Iterator[list[Data]]:
    """Yields versions of a part in which one graph is altered, deleted or inserted."""
    for number in range(VARIANTS):
        graphs = list(part)
        row = int(random.integers(len(graphs)))
        if number < 3:  # another class
            graphs[row] = copy.copy(graphs[row])
            graphs[row].y = 1 - graphs[row].y
        elif number < 5 and len(graphs) > 1:
            del graphs[row]
        else:  # another class, and features that weigh more
            strange = copy.copy(graphs[row])
            strange.y = 1 - strange.y
            strange.x = strange.x * float(random.choice([3, 10]))
            graphs = [*graphs, strange] if number < 7 else [*graphs[:row], strange, *graphs[row + 1 :]]
        yield graphs


def attack(data: ac.GraphSet, seed: int) -> dict[str, Any]:
    """Puts models of poisoned parts together, at random and the most harmful ones, for targets that are certified."""
    random = np.random.default_rng(seed)
    model = ac.fit(ac.build_model("gin", data, **MODEL), data, APART, **FIT, seed=seed)
    certificate = ac.certify(model, data, APART, data.test)
    parts = sort_into_parts(data, APART.num_models, APART.hash)
    tests = [data[int(row)] for row in data.test]
    versions = [list(poisoned_parts(part, random)) for part in parts]
    votes = np.zeros((VARIANTS + 1, APART.num_models, len(tests)), dtype=np.int64)
    with torch.no_grad():
        votes[0] = [logits_of(one, tests).argmax(dim=1).numpy() for one in model.models]
    for number in range(VARIANTS):
        options = FitOptions({**FIT, "seed": seed})
        fresh = ac.build_model("gin", data, **MODEL)
        retrained = train_apart(fresh, [version[number] for version in versions], None, options)
        with torch.no_grad():
            votes[number + 1] = [logits_of(one, tests).argmax(dim=1).numpy() for one in retrained]
    outcome = {}
    for name, more in (("within", 0), ("one beyond", 1)):
        changed = tried = 0
        while tried < ATTACKS:
            for target in range(len(tests)):
                number = int(certificate.radius[target]) + more
                label = int(certificate.label[target])
                against = (votes[:, :, target] != label).any(axis=0) & (votes[0, :, target] == label)
                harmful = np.flatnonzero(against)
                chosen = random.permutation(harmful) if tried % 2 else random.permutation(APART.num_models)
                cast = votes[0, :, target].copy()
                for one in chosen[:number]:
                    cast[one] = votes[
                        random.integers(1, VARIANTS + 1) if not against[one] else _worst(votes[:, one, target], label),
                        one,
                        target,
                    ]
                changed += int(np.bincount(cast, minlength=2).argmax() != label)
                tried += 1
        outcome[name] = {"attacks": tried, "labels changed": changed}
    moved = float((votes[1:] != votes[0]).any(axis=0).mean())
    return {
        "attack": outcome,
        "votes that some poisoned part changes": moved,
        "median radius": float(np.median(certificate.radius)),
    }


def _worst(cast: np.ndarray, label: int) -> int:
    """The first version whose model does not vote for the label."""
    return int(np.flatnonzero(cast != label)[0])


def done_keys() -> set[str]:
    """What has a row already."""
    return {row["key"] for row in read_rows(ROWS)}


def page() -> str:
    """The tables, as Markdown: means over splits."""
    rows = list(read_rows(ROWS))
    lines = [f"| dataset, method | {' | '.join(map(str, SIZES))} |", "|---|" + "---|" * len(SIZES)]
    seen = sorted({(row["dataset"], row["method"]) for row in rows if "certified" in row})
    for dataset, method in seen:
        here = [row for row in rows if (row["dataset"], row["method"]) == (dataset, method)]
        means = np.mean([row["certified"] for row in here], axis=0)
        lines.append(f"| {dataset}, {method} ({len(here)} splits) | " + " | ".join(f"{x:.3f}" for x in means) + " |")
        mixed = [row["mixed"] for row in here if "mixed" in row]
        if mixed:
            cells = [f"({n}, {m}) {x:.3f}" for (n, m), x in zip(MIXED, np.mean(mixed, axis=0), strict=True)]
            lines.append(f"| poisoned graphs and changed nodes of the test graph | {' '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Makes the rows that are missing."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("datasets", nargs="*")
    parser.add_argument("--root", default="data")
    parser.add_argument("--seeds", nargs="*", type=int, default=[300, 301, 302])
    parser.add_argument("--attack", action="store_true")
    parser.add_argument("--page", action="store_true")
    given = parser.parse_args()
    torch.set_num_threads(1)
    methods = {"attack": attack} if given.attack else METHODS
    for name in given.datasets:
        for seed in given.seeds:
            for method, make in methods.items():
                key = json.dumps([name, seed, method])
                if key in done_keys():
                    continue
                row = {"key": key, "dataset": name, "seed": seed, "method": method}
                row |= make(load(name, given.root, seed), seed)
                append_row(ROWS, row)
                print(row, flush=True)
    if given.page:
        print(page())


if __name__ == "__main__":
    main()
