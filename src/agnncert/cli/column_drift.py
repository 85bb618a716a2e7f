"""How the columns of a table of events differ between training and later: what is missing, and what it holds."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from agnncert.cli.settings import TrainSettings
from agnncert.cli.tables_of import table_file
from agnncert.datasets.columns import read_table
from agnncert.datasets.encoding_columns import kind_of, moment_of, numbers_of
from agnncert.errors import SettingsError

if TYPE_CHECKING:
    from pandas import Series

NOTICED = 0.1  # a distance, or a change of what is missing, from which on a column is marked
_DAY = 86_400 * 10**6  # microseconds


@dataclass(frozen=True)
class Drifted:
    """How one column differs between training and a later period.

    Attributes:
        column: Its name.
        missing_before: Share of entries that are missing in what was trained on.
        missing_now: The same in the period.
        distance: Between 0 and 1: the largest difference of the two distribution functions for numbers and dates, half
            the sum of the differences between shares for categories.
    """

    column: str
    missing_before: float
    missing_now: float
    distance: float

    @property
    def is_noticed(self) -> bool:
        """Whether the column differs so much that somebody should look."""
        return max(self.distance, abs(self.missing_now - self.missing_before)) >= NOTICED


def drift_of_events(settings: TrainSettings, times: Sequence[str]) -> dict[str, tuple[Drifted, ...]]:
    """Returns how the columns of events differ between those before the first time and each later period.

    Args:
        settings: They name the table of events and its columns.
        times: The times, in order. Periods are named by their ends.
    """
    names = settings.column
    table = read_table(table_file(settings, "events"), [])
    time = str(names["event_time"])
    table.require(time)
    kind = kind_of(table.frame[time])
    moments = numbers_of(table.frame[time], kind)
    cuts = [_number(each, kind) for each in times]
    ids = {str(names.get(name, name)) for name in ("source", "target", "event_key")} | {time}
    columns = [column for column in table.columns if column not in ids]
    before = moments < cuts[0]
    found = {}
    for (start, end), to in zip(pairwise(cuts), times[1:], strict=True):
        inside = (moments >= start) & (moments < end)
        found[str(to)] = tuple(drifted(column, table.frame[column], before, inside) for column in columns)
    return found


def _number(time: str, kind: str) -> float:
    """Returns a time as the numbers of a column of times are."""
    if kind != "date":
        return float(time)
    moment = moment_of(time)
    if moment is None:
        raise SettingsError(f"{time!r:.60} is no date, and the events have dates.")
    return moment / _DAY


def drifted(column: str, values: "Series[Any]", before: npt.NDArray[np.bool_], now: npt.NDArray[np.bool_]) -> Drifted:
    """Returns how a column differs between two sets of rows.

    Example:
        >>> import pandas as pd
        >>> half = np.array([True, True, False, False])
        >>> drifted("amount", pd.Series([1.0, 2.0, 9.0, None]), half, ~half)
        Drifted(column='amount', missing_before=0.0, missing_now=0.5, distance=1.0)
    """
    kind = kind_of(values)
    if kind == "category":
        is_known = ~(values.isna() | values.isin([""])).to_numpy()
        entries = values.astype(str).to_numpy()
    else:
        entries = numbers_of(values, kind)
        is_known = np.isfinite(entries)
    parts = [entries[which & is_known] for which in (before, now)]
    missing = [float((~is_known[which]).mean()) if which.any() else 0.0 for which in (before, now)]
    if not all(map(len, parts)):
        return Drifted(column, missing[0], missing[1], 0.0 if not any(map(len, parts)) else 1.0)
    if kind == "category":
        return Drifted(column, missing[0], missing[1], _between_shares(*parts))
    return Drifted(column, missing[0], missing[1], _between_numbers(*parts))


def _between_shares(before: npt.NDArray[Any], now: npt.NDArray[Any]) -> float:
    names = np.unique(np.concatenate([before, now]))
    shares = [np.bincount(np.searchsorted(names, part), minlength=len(names)) / len(part) for part in (before, now)]
    return float(np.abs(shares[0] - shares[1]).sum() / 2)


def _between_numbers(before: npt.NDArray[Any], now: npt.NDArray[Any]) -> float:
    values = np.unique(np.concatenate([before, now]))
    below = [np.searchsorted(np.sort(part), values, side="right") / len(part) for part in (before, now)]
    return float(np.abs(below[0] - below[1]).max())
