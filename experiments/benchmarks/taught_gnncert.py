"""Why GNNCert-N and GNNCert-EN lose when they are taught: what their subgraphs vote for, on validation nodes.

python -m experiments.benchmarks.taught_gnncert --root .cache/data cora-ml citeseer --seeds 0 1

Each subgraph of GNNCert-N shows the features of few nodes, so most votes know next to nothing. 20 given labels per class
favour no class, but taught labels are as unequal as the classes are. Rows say how many votes go to one class, and what
helps. They go to experiments/benchmarks/results/taught-gnncert.jsonl as they come; a run that is started again goes on
where it stopped. Splits are those that had been looked at before, and no test label is read.
"""

import argparse
from pathlib import Path
from typing import Any

import torch

import agnncert as ac
from agnncert.graphs.canonical import canonical
from agnncert_peers import GNNCertEN, GNNCertN
from experiments.benchmarks import field
from experiments.paper.rows import append_row, read_rows

ROWS = Path(__file__).with_name("results") / "taught-gnncert.jsonl"
DIVISIONS = {"GNNCert-N": GNNCertN(24), "GNNCert-EN": GNNCertEN(15, 15)}
GIVEN, TAUGHT, WEIGHTS = "given labels", "taught", "taught, class weights"
EQUAL, LONGER = "taught, as many labels of each class", "taught, 120 epochs"
LESSONS = (GIVEN, TAUGHT, WEIGHTS, EQUAL, LONGER)
SETTINGS: dict[str, dict[str, Any]] = {
    WEIGHTS: {"balance_classes": True},
    LONGER: {"epochs": 120, "evaluate_every": 120},
}


def with_equal_classes(taught: Any, seed: int) -> Any:
    """Returns taught data that keeps, of each class, as many taught labels as the rarest one has."""
    chance = torch.Generator().manual_seed(seed)
    rows_by_class = [
        (taught.taught_mask & (taught.y == label)).nonzero().view(-1) for label in range(taught.num_classes)
    ]
    least = min(map(len, rows_by_class))
    kept = torch.zeros_like(taught.taught_mask)
    for rows in rows_by_class:
        kept[rows[torch.randperm(len(rows), generator=chance)[:least]]] = True
    fewer = taught.clone()
    fewer.train_mask = (taught.train_mask & ~taught.taught_mask) | kept
    fewer.taught_mask = kept
    return fewer


@torch.no_grad()
def votes(model: torch.nn.Module, data: Any, division: Any) -> torch.Tensor:
    """Returns what each subgraph votes for at each validation node, shape ``[subgraphs, nodes]``."""
    graph = canonical(data)
    groups = division.groups(graph)
    found = []
    for index in range(division.num_groups):
        subgraph = division.subgraph(graph, groups, index)
        found.append(model(subgraph.x, subgraph.edge_index).argmax(dim=1)[data.val_mask])
    return torch.stack(found)


def make_row(cell: field.Cell, defence: str, lesson: str) -> dict[str, Any]:
    """Trains one model and counts its votes."""
    data = {GIVEN: cell.data, EQUAL: with_equal_classes(cell.lesson, cell.seed)}.get(lesson, cell.lesson)
    division = DIVISIONS[defence]
    settings = {**cell.fitting, **field.BY_GROUPS, **SETTINGS.get(lesson, {})}
    model = ac.fit(cell.model(), data, division, **settings)
    view = ac.inductive_view(cell.data)
    truth = view.y[view.val_mask]
    cast = votes(model, view, division)
    count = torch.stack([(cast == label).sum(dim=0) for label in range(cell.lesson.num_classes)], dim=1)
    right = count.argmax(dim=1) == truth
    shares = torch.tensor(cell.lesson.teaching.taught_by_class, dtype=torch.float64)
    weight = (shares / torch.bincount(truth, minlength=len(shares)).clamp(min=1))[truth]
    with torch.no_grad():
        plain = model(view.x, view.edge_index).argmax(dim=1)[view.val_mask]
    return {
        "dataset": cell.dataset, "seed": cell.seed, "defence": defence, "lesson": lesson,
        "right by vote": float(right.double().mean()),
        "right by vote, classes as frequent as taught": float((weight * right).sum() / weight.sum()),
        "right on the whole graph": float((plain == truth).double().mean()),
        "votes for one class": float(count.sum(dim=0).max() / count.sum()),
        "taught by class": list(cell.lesson.teaching.taught_by_class),
    }  # fmt: skip


def stored() -> list[dict[str, Any]]:
    """Returns all rows so far."""
    return list(read_rows(ROWS))


def main() -> None:
    """Makes the rows that are missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", nargs="+", choices=field.DATASETS)
    parser.add_argument("--root", default=".cache/data")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    parser.add_argument("--defences", nargs="+", default=["GNNCert-N"], choices=list(DIVISIONS))
    parser.add_argument("--lessons", nargs="+", default=list(LESSONS), choices=LESSONS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    for dataset in options.datasets:
        for seed in options.seeds:
            done = {
                (row["defence"], row["lesson"]) for row in stored() if (row["dataset"], row["seed"]) == (dataset, seed)
            }
            wanted = [
                (name, lesson) for name in options.defences for lesson in options.lessons if (name, lesson) not in done
            ]
            if not wanted:
                continue
            cell = field.Cell.load(dataset, field.TAUGHT, seed, options.root)
            for defence, lesson in wanted:
                row = make_row(cell, defence, lesson)
                append_row(ROWS, row)
                print(row, flush=True)


if __name__ == "__main__":
    main()
