"""How the columns of a table of events differ between training and later: what is missing, and what it holds."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from agnncert.cli.event_table import HAPPENED, stored_events
from agnncert.cli.settings import TrainSettings
from agnncert.cli.tables_of import table_file
from agnncert.datasets.event_entries import EntryColumn
from agnncert.datasets.table_store import TableStore
from agnncert.progress import OnProgress

NOTICED = 0.1  # a distance, or a change of what is missing, from which on a column is marked


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


def drift_of_events(
    settings: TrainSettings, times: Sequence[str], progress: OnProgress | None = None
) -> dict[str, tuple[Drifted, ...]]:
    """Returns how the columns of events differ between those before the first time and each later period.

    Args:
        settings: They name the table of events and its columns.
        times: The times, in order. Periods are named by their ends.
        progress: Called while the events are read.
    """
    with stored_events(settings, table_file(settings, "events"), None, progress) as events:
        cuts = [events.moment("times", each) for each in times]
        before = f"{HAPPENED} < {cuts[0]}"
        found = {}
        for (start, end), to in zip(pairwise(cuts), times[1:], strict=True):
            inside = f"{HAPPENED} >= {start} AND {HAPPENED} < {end}"
            found[str(to)] = tuple(drifted(events.store, column, before, inside) for column in events.columns)
    return found


def drifted(store: TableStore, column: EntryColumn, before: str, now: str) -> Drifted:
    """Returns how a column differs between two sets of events.

    Args:
        store: The events, in a table "events".
        column: The column.
        before: Which events are those of training, as a condition.
        now: Which events are those of the period.
    """
    place = column.place
    is_known = f"{place} IS NOT NULL" if column.stored == "text" else f"isfinite({place})"
    questions = [f"count(*) FILTER ({which}{more})" for which in (before, now) for more in ("", f" AND {is_known}")]
    all_before, known_before, all_now, known_now = store.rows(f"SELECT {', '.join(questions)} FROM events")[0]
    missing = [
        1 - known / every if every else 0.0 for known, every in ((known_before, all_before), (known_now, all_now))
    ]
    if not known_before or not known_now:
        return Drifted(column.name, missing[0], missing[1], float(known_before != known_now))
    shares = (
        f"SELECT {place} AS entry, count(*) FILTER ({before}) / {known_before} AS was, "
        f"count(*) FILTER ({now}) / {known_now} AS is_now FROM events WHERE {is_known} GROUP BY 1"
    )
    if column.stored == "text":
        distance = store.one(f"SELECT sum(abs(was - is_now)) / 2 FROM ({shares})")
    else:
        below = f"SELECT sum(was) OVER up_to AS was, sum(is_now) OVER up_to AS is_now FROM ({shares})"
        distance = store.one(f"SELECT max(abs(was - is_now)) FROM ({below} WINDOW up_to AS (ORDER BY entry))")
    return Drifted(column.name, missing[0], missing[1], float(distance))
