"""How old accounts are, how much their events move, and what they do in a day, as a table of events tells."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from agnncert.cli.event_table import HAPPENED, stored_events
from agnncert.cli.folder import RunFolder
from agnncert.cli.settings import DataSettings, stored_settings
from agnncert.cli.tables_of import require_table_of_run, table_of_run
from agnncert.datasets.encoding_columns import MICROSECONDS_OF_DAY
from agnncert.datasets.event_entries import EntryColumn
from agnncert.errors import SettingsError
from agnncert.progress import OnProgress
from agnncert.proving.certificate import Certificate


def looked_up(certificate: Certificate, numbers: Mapping[str, float]) -> npt.NDArray[np.float64]:
    """Returns the number of each target; NaN where there is none."""
    return np.array([numbers.get(str(target), np.nan) for target in certificate.target.tolist()])


def has_ages(run: RunFolder) -> bool:
    """Returns whether a run folder holds a table of events with times."""
    return table_of_run(run, "events") is not None and "event_time" in stored_settings(run).column


def ages_of_run(run: RunFolder | None, progress: OnProgress | None = None) -> dict[str, float]:
    """Returns the ages of accounts in the run's own events, see :func:`ages`.

    Raises:
        SettingsError: The run has no copy of a table of events with times.
    """
    if run is None:
        raise SettingsError("--by age needs the run folder, which holds the table of events.")
    settings = stored_settings(run)
    if "event_time" not in settings.column:
        raise SettingsError(f"the events of {run} have no time: it was read without column.event_time.")
    return ages(settings, require_table_of_run(run, "events"), progress)


def ages(settings: DataSettings, file: Path, progress: OnProgress | None = None) -> dict[str, float]:
    """Returns how many days (or units of time) lie between the first event of each account and the last of all."""
    with stored_events(settings, file, (), progress) as events:
        found = events.of_nodes(f"min({HAPPENED}), max({HAPPENED})")
        names = events.names
        first = events.times([row[1] for row in found])
        last = max(events.times([row[2] for row in found]), default=0.0)
    return {names[row[0]]: last - moment for row, moment in zip(found, first, strict=True)}


def moved(run: RunFolder | None, column: str, progress: OnProgress | None = None) -> dict[str, float]:
    """Returns the sum of a column over the events of each account, those that it sent and those that it got.

    Raises:
        SettingsError: The run has no copy of a table of events.
        DatasetError: The column holds no numbers.
    """
    if run is None:
        raise SettingsError(f"--amount events:{column} needs the run folder, which holds the table of events.")
    amount = EntryColumn.of_kind(column, "amount", "number")
    with stored_events(stored_settings(run), require_table_of_run(run, "events"), (amount,), progress) as events:
        events.staged.refuse_infinite(events.columns)
        names = events.names
        return {names[code]: total for code, total in events.of_nodes("fsum(amount)") if total is not None}


def busiest_days(
    settings: DataSettings, file: Path, columns: Sequence[str], ids: Sequence[str]
) -> npt.NDArray[np.float64] | None:
    """Returns the largest number of events in a day (UTC), and the largest sum of each column, for each node.

    Args:
        settings: They name the columns of ids and times; events at and after ``as_of`` are left out.
        file: The table of events, or a folder of files.
        columns: Columns of numbers.
        ids: The nodes.

    Returns:
        A row for each node: what it sends, and then what it gets. None if events have no dates.
    """
    if "event_time" not in settings.column:
        return None
    amounts = [EntryColumn.of_kind(name, f"v{place}", "number") for place, name in enumerate(columns)]
    width = 1 + len(columns)
    sums = ", ".join(f"fsum({entry.place}) AS {entry.place}" for entry in amounts)
    most = ", ".join(f"max({entry.place})" for entry in amounts)
    with stored_events(settings, file, amounts) as events:
        if not events.has_dates:
            return None
        row_of = {name: row for row, name in enumerate(ids)}
        rows = np.array([row_of.get(name, -1) for name in events.names], dtype=np.int64)
        found = np.zeros((len(ids), 2 * width))
        for place, end in enumerate(("s", "t")):
            in_a_day = (
                f"SELECT {end} AS code, count(*) AS n{sums and ', '}{sums} FROM events "
                f"WHERE {events.staged.counted} AND s <> t GROUP BY code, floor({HAPPENED} / {MICROSECONDS_OF_DAY})"
            )
            answer = events.store.table(f"SELECT code, max(n){most and ', '}{most} FROM ({in_a_day}) GROUP BY code")
            code, *values = (column.to_numpy() for column in answer.columns)
            is_node = rows[code] >= 0
            own = np.nan_to_num(np.stack(values, axis=1).astype(np.float64)[is_node])
            found[rows[code][is_node], place * width : (place + 1) * width] = own
    return found
