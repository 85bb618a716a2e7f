"""How old accounts are, from the first event of each, as a table of events in a run folder tells."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from agnncert.cli.folder import RunFolder
from agnncert.cli.settings import stored_settings
from agnncert.datasets.columns import FORMATS, read_table
from agnncert.datasets.encoding_columns import kind_of, numbers_of
from agnncert.errors import SettingsError
from agnncert.proving.certificate import Certificate

MOST_EVENTS = 5_000_000  # rows that are read for ages


def table_of(run: RunFolder, kind: str) -> Path:
    """Returns the run's copy of a table."""
    files = [run.tables / f"{kind}{suffix}" for suffix in FORMATS]
    for file in files:
        if file.is_file():
            return file
    raise SettingsError(f"{run} holds no table of {kind}: name one, as in --by {kind}.csv:COLUMN.")


def looked_up(certificate: Certificate, numbers: Mapping[str, float]) -> npt.NDArray[np.float64]:
    """Returns the number of each target; NaN where there is none."""
    return np.array([numbers.get(str(target), np.nan) for target in certificate.target.tolist()])


def has_ages(run: RunFolder) -> bool:
    """Returns whether a run folder holds a table of events, not too large, with times."""
    files = [run.tables / f"events{suffix}" for suffix in FORMATS]
    return any(file.is_file() for file in files) and "event_time" in stored_settings(run).column


def ages(run: RunFolder | None) -> dict[str, float]:
    """Returns how many days (or units of time) lie between the first event of each account and the last of all.

    Raises:
        SettingsError: The run has no copy of a table of events with times, or a very large one.
    """
    if run is None:
        raise SettingsError("--by age needs the run folder, which holds the table of events.")
    names = {"source": "source", "target": "target", **stored_settings(run).column}
    if "event_time" not in names:
        raise SettingsError(f"the events of {run} have no time: it was read without column.event_time.")
    table = read_table(table_of(run, "events"), [str(names["source"]), str(names["target"])])
    if len(table) > MOST_EVENTS:
        raise SettingsError(f"{len(table):,} events: ages are read from {MOST_EVENTS:,} at most. Use --by FILE:COLUMN.")
    values = table.frame[str(names["event_time"])]
    moments = numbers_of(values, kind_of(values))
    return first_moments([table.text(str(names[end])) for end in ("source", "target")], moments)


def first_moments(ends: Sequence[Sequence[str]], moments: npt.NDArray[np.float64]) -> dict[str, float]:
    """Returns the time from the first event of each account to the last event of all.

    Example:
        >>> first_moments([["a", "b"], ["b", "c"]], np.array([1.0, 4.0]))
        {'b': 3.0, 'c': 0.0, 'a': 3.0}
    """
    order = np.argsort(-moments, kind="stable")
    last = float(np.nanmax(moments)) if len(moments) else 0.0
    found: dict[str, float] = {}
    for row in order.tolist():
        for end in ends:
            found[str(end[row])] = last - float(moments[row])
    return found
