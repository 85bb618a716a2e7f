"""Reads the committed result files."""

import json
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from experiments.paper.rows import Results

PROJECT = Path(__file__).parents[2]
RESULTS = PROJECT / "experiments" / "results"
BENCHMARKS = PROJECT / "experiments" / "benchmarks" / "results"
Row = dict[str, Any]


@cache
def rows(name: str) -> list[Row]:
    """Returns the rows of a file of ``experiments/results``, or of ``experiments/benchmarks/results``."""
    file = RESULTS / f"{name}.jsonl"
    file = file if file.exists() else BENCHMARKS / f"{name}.jsonl"
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


@cache
def document(name: str) -> Any:
    """Returns a JSON file of one of the two folders."""
    file = RESULTS / f"{name}.json"
    file = file if file.exists() else BENCHMARKS / f"{name}.json"
    return json.loads(file.read_text(encoding="utf-8"))


@cache
def paper() -> Results:
    """Returns the rows of the paper's experiments."""
    return Results.read(RESULTS, BENCHMARKS)


def some(table: Iterable[Row], **wanted: Any) -> list[Row]:
    """Returns the rows with these values; an underscore in a name stands for a blank.

    Raises:
        LookupError: There is no such row, so that a page would state a number that no file has.
    """
    found = [row for row in table if all(row[name.replace("_", " ")] == value for name, value in wanted.items())]
    if not found:
        raise LookupError(f"no row has {wanted}")
    return found


def mean(table: Iterable[Row], get: Callable[[Row], Any]) -> Any:
    """Returns the mean over rows of a number, or of a list of numbers."""
    return np.mean([get(row) for row in table], axis=0)
