"""What differs between the paper's released program and this reproduction, measured one difference at a time (Cora-ML).

python -m experiments.benchmarks.paper_differences --root .cache/data --seeds 20 21 22

Each row is ours but for one difference, or for all of them: the edges that the released file keeps, its features, its
split, its model and training. Rows go to experiments/results/paper-differences.jsonl as they come; a run that is
started again goes on where it stopped, and ``--table`` prints the means. Settings are stated here, none is chosen.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn.functional import normalize
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv
from torch_geometric.utils import to_undirected

import agnncert as ac
from experiments.paper.rows import append_row, read_rows

ROWS = Path(__file__).parents[1] / "results" / "paper-differences.jsonl"
GROUPS = 300
SIZES = (0, 100)
TRAIN, VALIDATION = 150, 50  # nodes of each class in the released program
RELEASED_FIT = {"lr": 1e-3, "weight_decay": 0.0, "epochs": 200, "clip": 2.0, "objective": "paper"}
DEFENCES = {"undefended": None, "E": ac.EdgeCentric(GROUPS), "N": ac.NodeCentric(GROUPS)}


@dataclass(frozen=True)
class Differences:
    """Which parts are those of the released program."""

    edges: bool = False
    features: bool = False
    split: bool = False
    training: bool = False

    def __str__(self) -> str:
        names = [each.name for each in fields(self) if getattr(self, each.name)]
        if len(names) == len(fields(self)):
            return "all of them"
        return " and ".join(names) or "none"


TRIED = [
    Differences(),
    Differences(edges=True),
    Differences(features=True),
    Differences(split=True),
    Differences(training=True),
    Differences(edges=True, features=True, split=True, training=True),
]


class ReleasedGCN(torch.nn.Module):
    """Three layers of 20, each with rows of length 1 and ReLU, and a linear map of all three, as published."""

    def __init__(self, num_features: int, num_classes: int, width: int = 20) -> None:
        super().__init__()
        self.convolutions = torch.nn.ModuleList([GCNConv(num_features, width), *(GCNConv(width, width) for _ in "23")])
        self.classes = torch.nn.Linear(3 * width, num_classes)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        """Returns one row of logits per node."""
        hidden = []
        for convolution in self.convolutions:
            x = normalize(convolution(x, edge_index), p=2, dim=1).relu()
            hidden.append(x)
        return self.classes(torch.cat(hidden, dim=1))


def cora(root: Path, seed: int, differences: Differences) -> Data:
    """Returns Cora-ML with some of the differences."""
    data = ac.load_dataset("cora-ml", root=root, seed=seed)
    raw = np.load(root / "cora_ml" / "raw" / "cora_ml.npz", allow_pickle=True)
    if differences.edges:  # one direction of a directed matrix: a pair that is stored the other way round is lost
        source = np.repeat(np.arange(len(raw["adj_indptr"]) - 1), np.diff(raw["adj_indptr"]))
        kept = source < raw["adj_indices"]
        data.edge_index = to_undirected(torch.tensor(np.stack([source[kept], raw["adj_indices"][kept]])).long())
    if differences.features:  # PyTorch Geometric makes ones of all weights
        rows = np.repeat(np.arange(data.num_nodes), np.diff(raw["attr_indptr"]))
        data.x = torch.zeros_like(data.x)
        data.x[rows, raw["attr_indices"]] = torch.tensor(raw["attr_data"]).float()
    if differences.split:
        data.train_mask, data.val_mask, data.test_mask = split_by_number(data.y, seed)
    return data


def split_by_number(y: torch.Tensor, seed: int) -> tuple[torch.Tensor, ...]:
    """Draws this many nodes of each class as the released program does; its test part has not the last one of a class."""
    random = np.random.default_rng(seed)
    parts = torch.zeros(3, len(y), dtype=torch.bool)
    for label in range(int(y.max()) + 1):
        rows = random.permutation(np.flatnonzero(y == label))
        for part, chosen in enumerate(np.split(rows[:-1], [TRAIN, TRAIN + VALIDATION])):
            parts[part, chosen] = True
    return tuple(parts)


def measure(root: Path, seed: int, differences: Differences, defence: str) -> dict[str, Any]:
    """Trains, certifies the test nodes and returns a row."""
    data = cora(root, seed, differences)
    torch.manual_seed(seed)
    num_classes = int(data.y.max()) + 1
    if differences.training:
        model: torch.nn.Module = ac.fit(
            ReleasedGCN(data.num_features, num_classes), data, DEFENCES[defence], seed=seed, **RELEASED_FIT
        )
    else:
        model = ac.fit("gcn", data, DEFENCES[defence], seed=seed)
    row = {"differences": str(differences), "defence": defence, "seed": seed, "edges": data.edge_index.size(1) // 2}
    if DEFENCES[defence] is None:
        with torch.no_grad():
            label = model.eval()(data.x, data.edge_index).argmax(dim=1)
        return {**row, "accuracy": float((label == data.y)[data.test_mask].double().mean())}
    certificate = ac.certify(model, data, DEFENCES[defence], data.test_mask)
    shares = certificate.certified_accuracy(sizes=list(SIZES))
    return {**row, "accuracy": float(shares[0]), "certified_at_100": float(shares[1])}


def stored() -> list[dict[str, Any]]:
    """Returns the rows that are there."""
    return list(read_rows(ROWS))


def table() -> Iterator[str]:
    """Yields the means over seeds as lines of a table, with the range in brackets."""
    rows = stored()
    yield "| difference | pairs | undefended | E | N | E at 100 | N at 100 |"
    yield "|---" * 7 + "|"
    for differences in map(str, TRIED):
        mine = [row for row in rows if row["differences"] == differences]
        cells = [_spread(mine, defence, "accuracy") for defence in DEFENCES]
        cells += [_spread(mine, defence, "certified_at_100") for defence in ("E", "N")]
        yield f"| {differences} | {mine[0]['edges']:,} | " + " | ".join(cells) + " |"


def _spread(rows: list[dict[str, Any]], defence: str, name: str) -> str:
    values = [row[name] for row in rows if row["defence"] == defence]
    shown = [f"{value:.3f}".removeprefix("0") for value in (np.mean(values), min(values), max(values))]
    return f"{shown[0]} ({shown[1]}–{shown[2]})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=Path(".cache/data"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[20, 21, 22])
    parser.add_argument("--table", action="store_true", help="print the means, and compute nothing")
    wanted = parser.parse_args()
    if wanted.table:
        print("\n".join(table()))
        return
    torch.set_num_threads(1)
    done = {(row["differences"], row["defence"], row["seed"]) for row in stored()}
    for seed in wanted.seeds:
        for differences in TRIED:
            for defence in DEFENCES:
                if (str(differences), defence, seed) not in done:
                    row = measure(wanted.root, seed, differences, defence)
                    print(row, flush=True)
                    append_row(ROWS, row)


if __name__ == "__main__":
    main()
