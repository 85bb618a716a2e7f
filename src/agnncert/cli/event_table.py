"""``stored_events``: a table of events in a database, for what commands ask of it beside the graph.

The database keeps on the disk what does not fit into memory, so a table may be larger than that.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from agnncert.cli.settings import DataSettings
from agnncert.datasets.event_entries import EntryColumn
from agnncert.datasets.event_files import EventFiles
from agnncert.datasets.event_summary import moment_number, order_of_times, times_in_order
from agnncert.datasets.staged_events import StagedEvents, WantedColumns
from agnncert.datasets.table_store import TableStore
from agnncert.errors import SettingsError
from agnncert.progress import OnProgress

HAPPENED = "happened"  # what the store calls the time of an event


@dataclass(frozen=True)
class StoredEvents:
    """Events in a store, whose table is called "events". Both ends of an event are codes: places in ``names``.

    Attributes:
        store: The store.
        staged: The events.
        columns: The columns that were asked for, each with the name of its place in the store.
        time: The column of times, or None.
    """

    store: TableStore
    staged: StagedEvents
    columns: tuple[EntryColumn, ...]
    time: EntryColumn | None

    @property
    def names(self) -> list[str]:
        """Ids of all nodes, by their codes."""
        return self.staged.names

    @property
    def has_dates(self) -> bool:
        """Whether times are dates. Else they are numbers, or there are none."""
        return self.time is not None and self.time.kind == "date"

    def moment(self, setting: str, text: str) -> int:
        """Returns a moment as the store has times; raises DatasetError if it is none."""
        number = np.array([moment_number(setting, text, self.has_dates)])
        return int(order_of_times(number, self.has_dates)[0])

    def times(self, stored: Sequence[int]) -> list[float]:
        """Returns times of the store as days since 1970, or as the numbers that they are."""
        return list(times_in_order(np.array(stored, dtype=np.int64), self.has_dates).tolist())

    def of_nodes(self, answer: str) -> list[tuple[Any, ...]]:
        """Returns a code and an answer about its events, such as ``"min(happened)"``, for each node that has some.

        An event of a node with itself, and one that repeats the key of another, are left out, as in the graph.
        """
        where = f"FROM events WHERE {self.staged.counted} AND s <> t"
        both = f"SELECT s AS code, * {where} UNION ALL SELECT t AS code, * {where}"
        return self.store.rows(f"SELECT code, {answer} FROM ({both}) GROUP BY code")


@contextmanager
def stored_events(
    settings: DataSettings,
    file: Path,
    columns: Sequence[EntryColumn] | None,
    progress: OnProgress | None = None,
) -> Iterator[StoredEvents]:
    """Yields the events before the ``as_of`` of settings, if they have one, each key once.

    Args:
        settings: They name columns, and the key of events.
        file: The table, or a folder of files.
        columns: What is read beside ids, times and keys. None for all other columns.
        progress: Called while the table is read.

    Raises:
        DatasetError: A column is missing, or an entry is not what its column holds.
        SettingsError: ``as_of`` is set, and the events have no time.
    """
    named = {"source": "source", "target": "target", **settings.column}
    source, target, moment, key = (named.get(name) for name in ("source", "target", "event_time", "event_key"))
    with TableStore.opened("reading tables of events") as store:
        files = EventFiles(store, file)
        if columns is None:
            others = [name for name in files.columns if name not in (source, target, moment, key)]
            columns = [EntryColumn(name, f"v{place}") for place, name in enumerate(others)]
        time = None if moment is None else EntryColumn.of_time(moment, HAPPENED, is_ordered=True)
        entries = (*columns, *([time] if time is not None else []))
        wanted = WantedColumns(str(source), str(target), key, entries)
        for name in wanted.names:
            files.head().require(name)
        staged = StagedEvents(store, files, wanted, [], progress)
        events = StoredEvents(store, staged, tuple(columns), time)
        if settings.as_of is not None:
            if time is None:
                raise SettingsError(f"as_of={settings.as_of} needs the time of events: set column.event_time.")
            staged.read_before(HAPPENED, events.moment("as_of", settings.as_of))
        staged.find_repeats()
        yield events
