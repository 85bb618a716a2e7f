"""Results as rows: one JSON object per line of a file, appended run by run; ``Results`` finds them by their settings.

Imports no torch: pages and figures need none.
"""

import hashlib
import json
import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from agnncert.errors import SettingsError
from experiments.paper.spec import GRAPH_SETS, NODE_SETS, Contest, Run, Setting, settings_of

Row = dict[str, Any]


def row_key(settings: Mapping[str, Any]) -> str:
    """Short name of a set of settings, the same on every machine.

    Example:
        >>> row_key({"a": 1, "b": None}) == row_key({"b": None, "a": 1})
        True
    """
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:16]


def read_rows(path: Path) -> Iterator[Row]:
    """All complete rows of a file; a line cut short by an interruption is passed over.

    Raises:
        SettingsError: A line in the middle of the file is not a row.
    """
    if not path.exists():
        return
    lines = path.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, start=1):
        try:
            yield json.loads(line)
        except ValueError as error:
            if number < len(lines):
                raise SettingsError(f"{path.name}, line {number} is not a row of results: {error}.") from error


def append_row(path: Path, row: Row) -> None:
    """Adds one row and makes sure that it is on the disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    stored = path.read_bytes() if path.exists() else b""
    if stored and not stored.endswith(b"\n"):  # the last run was interrupted in the middle of a line
        path.write_bytes(stored[: stored.rfind(b"\n") + 1])
    line = (json.dumps(row) + "\n").encode()
    with path.open("ab", buffering=len(line) + 1) as file:  # one write: rows of several processes do not mix
        file.write(line)
        file.flush()
        os.fsync(file.fileno())


LETTER = {"edge": "E", "node": "N"}
NAMES = {
    "cora-ml": "Cora-ML", "citeseer": "Citeseer", "pubmed": "PubMed", "amazon-c": "Amazon-C", "aids": "AIDS",
    "mutag": "MUTAG", "proteins": "PROTEINS", "dd": "DD", "digits-knn": "Digits, k-NN graph",
    "digits-grid": "Digits, one graph each", "coauthor-physics": "Coauthor-Physics", "mutag-188": "MUTAG (188)",
}  # fmt: skip
MODELS = {"gcn": "GCN", "sage": "GraphSAGE", "gat": "GAT", "gin": "GIN", "mlp": "MLP", "resgcn": "residual GCN"}
OBJECTIVES = {"balanced": "our weighting", "vote": "the vote", "paper": "paper's sum", "full": "no subgraphs"}


@dataclass(frozen=True)
class Spread:
    """A number measured with several seeds: mean, smallest and largest value, and how many seeds there are."""

    mean: float
    low: float
    high: float
    count: int

    def __str__(self) -> str:
        return share(self.mean) + ("" if self.count == 1 else f" ({share(self.low)}–{share(self.high)})")


class Results:
    """Rows by setting; of two rows with the same setting the later one counts.

    Attributes:
        rows: The row of each setting.
        comparisons: The rows of the comparison with other defences.
        benchmarks: What ``make bench`` measured, by name of the file; empty if it has not run.
        designs: Votes designed for a size, of graphs and of nodes.
        stacked: Stacked votes.
        ceilings: What is possible at most, references, and controls that read sums of node features.
    """

    def __init__(
        self,
        rows: Iterable[Row],
        comparisons: Iterable[Row] = (),
        benchmarks: Mapping[str, Any] | None = None,
        designs: Iterable[Row] = (),
        stacked: Iterable[Row] = (),
        ceilings: Iterable[Row] = (),
    ) -> None:
        self.rows: dict[Setting, Row] = {_run(Setting, row): row for row in rows}
        self.comparisons: dict[Contest, Row] = {_run(Contest, row): row for row in comparisons}
        self.benchmarks = dict(benchmarks or {})
        self.designs, self.stacked, self.ceilings = list(designs), list(stacked), list(ceilings)

    @classmethod
    def read(cls, folder: str | Path, benchmarks: str | Path | None = None) -> "Results":
        """Everything that a results folder holds, and the files of ``make bench`` if there are any."""
        folder = Path(folder)
        rows = [row for file in sorted((folder / "rows").glob("*.jsonl")) for row in read_rows(file)]
        measured = {
            file.stem: json.loads(file.read_text(encoding="utf-8"))
            for file in sorted(Path(benchmarks).glob("*.json") if benchmarks is not None else ())
        }
        designs = [row for name in ("design", "design_nodes") for row in read_rows(folder / f"{name}.jsonl")]
        others = (read_rows(folder / f"{name}.jsonl") for name in ("stacked", "ceilings"))
        return cls(rows, read_rows(folder / "comparisons.jsonl"), measured, designs, *others)

    @property
    def datasets(self) -> list[str]:
        """Datasets with at least one row: the paper's in its order, then others."""
        names = {setting.dataset for setting in self.rows}
        paper = [name for name in (*NODE_SETS, *GRAPH_SETS) if name in names]
        return [*paper, *sorted(names - set(paper))]

    def of(self, setting: Setting) -> list[Row]:
        """The rows of a setting, one per seed."""
        rows = [row for s, row in self.rows.items() if replace(s, seed=setting.seed) == setting]
        return sorted(rows, key=lambda row: int(row["setting"]["seed"]))

    def varied(self, setting: Setting, field: str) -> dict[Any, list[Row]]:
        """Rows that differ from a setting in nothing but one field and the seed, by the value of that field."""
        rows = defaultdict(list)
        usual = getattr(setting, field)
        for s, row in self.rows.items():
            if replace(s, seed=setting.seed, **{field: usual}) == setting:
                rows[getattr(s, field)].append(row)
        return dict(rows)

    def spread(self, setting: Setting, field: str) -> Spread | None:
        """One number of a setting over its seeds; None if no row has it."""
        return spread_of(self.of(setting), field)

    def get(self, run: Run) -> Row | None:
        """The row of a run, if there is one."""
        return self.rows.get(run) if isinstance(run, Setting) else self.comparisons.get(run)

    def missing(self, names: Iterable[str], small: bool = False) -> list[Run]:
        """Runs of experiments that have no row yet, each once."""
        wanted = dict.fromkeys(run for name in names for run in settings_of(name, small))
        return [run for run in wanted if self.get(run) is None]


def spread_of(rows: Iterable[Row], field: str) -> Spread | None:
    """One number over several rows; None if none of them has it."""
    values = [float(row[field]) for row in rows if field in row]
    return Spread(sum(values) / len(values), min(values), max(values), len(values)) if values else None


def certified_at(rows: Iterable[Row], size: int, field: str = "certified") -> Spread | None:
    """Certified accuracy at one size over several rows; at a size that was not stored, at the next larger one."""
    values = []
    for row in rows:
        if field in row:
            at = [value for stored, value in zip(row["sizes"], row[field], strict=True) if stored >= size]
            values.append({"value": at[0] if at else 0.0})
    return spread_of(values, "value")


def share(value: float) -> str:
    """A share as the paper prints it, with one digit more.

    Example:
        >>> share(0.8179), share(1.0)
        ('.818', '1.000')
    """
    text = f"{value:.3f}"
    return text[1:] if text.startswith("0") else text


_Kind = TypeVar("_Kind", Setting, Contest)


def _run(kind: type[_Kind], row: Row) -> _Kind:
    try:
        return kind(**row["setting"])
    except (KeyError, TypeError) as error:
        raise SettingsError(
            f"a row of results does not say how it was made ({error}): delete it, and run the experiment again."
        ) from error
