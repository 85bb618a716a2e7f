"""All rows of a results folder, found by their settings. Imports no torch: pages and figures need none."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agnncert.errors import SettingsError
from agnncert.experiments.rows import Row, read_rows
from agnncert.experiments.spec import GRAPH_SETS, NODE_SETS, Setting, default_groups, settings_of

DIVISIONS = ("edge", "node")


@dataclass(frozen=True)
class Spread:
    """A number measured with several seeds.

    Attributes:
        mean: The mean.
        low: The smallest.
        high: The largest.
        count: How many seeds.
    """

    mean: float
    low: float
    high: float
    count: int

    def __str__(self) -> str:
        only = self.count == 1
        return share(self.mean) if only else f"{share(self.mean)} ({share(self.low)}–{share(self.high)})"


class Results:
    """Rows by setting; of two rows with the same setting the later one counts.

    Attributes:
        rows: The row of each setting.
        comparisons: Rows of the other defences.
        benchmarks: What ``make bench`` measured, by name of the file; empty if it has not run.
    """

    def __init__(
        self,
        rows: Iterable[Row],
        comparisons: Iterable[Row] = (),
        benchmarks: Mapping[str, Any] | None = None,
    ) -> None:
        self.rows: dict[Setting, Row] = {_setting(row): row for row in rows}
        self.comparisons = tuple({row["key"]: row for row in comparisons}.values())
        self.benchmarks = dict(benchmarks or {})

    @classmethod
    def read(cls, folder: str | Path, benchmarks: str | Path | None = None) -> "Results":
        """Everything that a results folder holds, and the files of ``make bench`` if there are any."""
        folder = Path(folder)
        rows = [row for file in sorted((folder / "rows").glob("*.jsonl")) for row in read_rows(file)]
        measured = {
            file.stem: json.loads(file.read_text(encoding="utf-8"))
            for file in sorted(Path(benchmarks).glob("*.json") if benchmarks is not None else ())
        }
        return cls(rows, read_rows(folder / "comparisons.jsonl"), measured)

    @property
    def datasets(self) -> list[str]:
        """Datasets with at least one row: the paper's in its order, then others."""
        found = {setting.dataset for setting in self.rows}
        paper = [name for name in (*NODE_SETS, *GRAPH_SETS) if name in found]
        return [*paper, *sorted(found - set(paper))]

    def of(self, setting: Setting) -> list[Row]:
        """The rows of a setting, one per seed."""
        found = [row for s, row in self.rows.items() if replace(s, seed=setting.seed) == setting]
        return sorted(found, key=lambda row: int(row["setting"]["seed"]))

    def varied(self, setting: Setting, field: str) -> dict[Any, list[Row]]:
        """Rows that differ from a setting in one field at most, and in the seed: the rows of each value."""
        found = defaultdict(list)
        usual = getattr(setting, field)
        for s, row in self.rows.items():
            if replace(s, seed=setting.seed, **{field: usual}) == setting:
                found[getattr(s, field)].append(row)
        return dict(found)

    def spread(self, setting: Setting, field: str) -> Spread | None:
        """One number of a setting over its seeds; None if no row has it."""
        return spread_of(self.of(setting), field)

    def missing(self, names: Iterable[str], small: bool = False) -> list[Setting]:
        """Settings of experiments that have no row yet, each once."""
        wanted = dict.fromkeys(setting for name in names for setting in settings_of(name, small))
        return [setting for setting in wanted if setting not in self.rows]


def main_setting(dataset: str, division: str, **changes: Any) -> Setting:
    """The setting of the main results: GCN, with the paper's number of groups for the task."""
    groups = default_groups(dataset) if division in DIVISIONS else 0
    return replace(Setting(dataset, division=division, num_groups=groups), **changes)


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


def _setting(row: Row) -> Setting:
    try:
        return Setting(**row["setting"])
    except (KeyError, TypeError) as error:
        raise SettingsError(
            f"a row of results does not say how it was made ({error}): delete it, and run the experiment again."
        ) from error
