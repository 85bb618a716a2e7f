"""Voting rules designed for a size: which rows count, from ``design.jsonl``. Nothing is chosen by the test part."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agnncert.training.rule_search import window
from experiments.paper.rows import Results, Row, share

TRAINED, BY_SIZE, CONSTANT = "trained", "size only", "majority"
ALONE = 1000  # from this many groups on a subgraph is hardly ever more than one edge or node


@dataclass(frozen=True)
class Gain:
    """By how much one method certifies more than another at the design size, and the standard error of that."""

    mean: float
    error: float

    def __str__(self) -> str:
        sign = "±" if round(self.mean, 3) == 0 else "+" if self.mean > 0 else "−"
        return f"{sign}{share(abs(self.mean))} ± {share(self.error)}"


def graph_sizes(results: Results, dataset: str) -> list[int]:
    """Design sizes of a graph dataset that have rows."""
    return sorted({row["size"] for row in results.designs if row["dataset"] == dataset})


def of_method(results: Results, dataset: str, size: int, method: str, division: str | None = None) -> list[Row]:
    """All rows of a method for a design size; of one division, if it is named."""
    wanted = (dataset, size, method)
    rows = [row for row in results.designs if (row["dataset"], row["size"], row.get("method")) == wanted]
    return [row for row in rows if division in (None, row["division"])]


def chosen(results: Results, dataset: str, size: int, method: str) -> list[Row]:
    """For each seed the row of a method whose division did best without the test graphs.

    Divisions that have been tried with fewer seeds than others take no part: the choice would be another for each seed.
    """
    rows = of_method(results, dataset, size, method)
    tried = Counter(row["division"] for row in rows)
    return _best(row for row in rows if tried[row["division"]] == max(tried.values()))


def _best(rows: Iterable[Row]) -> list[Row]:
    """For each seed the row that certified most training and validation graphs; a tie goes to the one before.

    A model whose subgraphs show more than one edge or node can know training graphs by heart: it must certify no fewer
    validation graphs either.
    """
    best: dict[int, Row] = {}
    for row in sorted(rows, key=_shows_much):
        other = best.get(row["seed"])
        if other is not None and row["score"] <= other["score"]:
            continue
        if other is None or not _shows_much(row) or on_validation(row) >= on_validation(other):
            best[row["seed"]] = row
    return [best[seed] for seed in sorted(best)]


def _shows_much(row: Row) -> bool:
    return bool(row["method"] == TRAINED and float(row["division"][1:]) < ALONE)


def on_validation(row: Row) -> float:
    """Mean certified accuracy of validation graphs at the design size and those beside it."""
    if "val_certified" not in row:
        return float(row["score"])
    at = dict(zip(row["sizes"], row["val_certified"], strict=True))
    near = [float(at[size]) for size in window(row["size"]) if size in at]
    return sum(near) / len(near)


def winner(results: Results, dataset: str, size: int) -> list[Row]:
    """For each seed the row of any method that did best without the test graphs; ties go to the simpler."""
    return _best(row for method in (CONSTANT, BY_SIZE, TRAINED) for row in chosen(results, dataset, size, method))


def gain(ours: Sequence[Row], theirs: Sequence[Row]) -> Gain:
    """The difference at the design size, graph by graph, over the seeds that both have."""
    by_seed = {row["seed"]: row["marks"] for row in theirs}
    means, errors = [], []
    for row in ours:
        if row["seed"] in by_seed:
            apart = [int(a) - int(b) for a, b in zip(row["marks"], by_seed[row["seed"]], strict=True)]
            mean = sum(apart) / len(apart)
            means.append(mean)
            errors.append(sum((one - mean) ** 2 for one in apart) / len(apart) ** 2)
    return Gain(sum(means) / len(means), math.sqrt(sum(errors)) / len(means))
