"""``load_events``: reads a graph from a table of events between nodes, such as payments between accounts."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch_geometric.data import Data

from agnncert.certificates.ids import encode_ids
from agnncert.datasets.columns import PathLike, Table, locate, read_table, shortlist
from agnncert.datasets.drawn_splits import BY_CLASS, checked_way
from agnncert.datasets.encoding import FITTED, Clock, Encode, Encoding, encoding_named, limit_of, no_marks
from agnncert.datasets.encoding_columns import Column, encoded, fit_columns, moments
from agnncert.datasets.event_edges import MakeArray, Read, edges_of_events, new_array
from agnncert.datasets.event_entries import EntryColumn
from agnncert.datasets.event_files import EventFiles
from agnncert.datasets.event_summary import (
    CLOCK,
    SECONDS_OF_DAY,
    Events,
    EventSummary,
    Term,
    decimals_of,
    moment_number,
    order_of_times,
    usual_values,
)
from agnncert.datasets.splits import NODE_FRACTIONS, set_masks
from agnncert.datasets.staged_events import EventRows, StagedEvents, WantedColumns
from agnncert.datasets.table_edges import TRUSTED
from agnncert.datasets.table_roles import (
    ClassRows,
    Columns,
    Names,
    NodeRows,
    Rows,
    checked_classes,
    class_rows,
    has_labels,
    node_ids,
    remaining_columns,
    split_record,
    split_rows,
)
from agnncert.datasets.table_store import TableStore
from agnncert.datasets.tables import Problems
from agnncert.errors import DatasetError, suggests_arguments
from agnncert.graphs.hashing import keys_of_encoded
from agnncert.progress import OnProgress, ReportProgress, follow

_log = logging.getLogger(__name__)
Mask = npt.NDArray[np.bool_]


@suggests_arguments
def load_events(  # noqa: PLR0913 - every setting is a keyword
    folder: PathLike | None = None,
    *,
    events: PathLike | None = None,
    nodes: PathLike | None = None,
    source: str = "source",
    target: str = "target",
    event_time: str | None = None,
    event_key: str | None = None,
    values: Sequence[str] | None = None,
    directed: bool = True,
    id: str = "id",
    label: str | None = "label",
    label_time: str | None = None,
    split: str = "split",
    time: str | None = None,
    features: Sequence[str] | None = None,
    as_of: str | None = None,
    cut_off: str | None = None,
    encode: Encode = "auto",
    trusted: str | None = None,
    seed: int = 0,
    name: str | None = None,
    split_by: str = BY_CLASS,
    classes: Sequence[str] | None = None,
    progress: OnProgress | None = None,
) -> Data:
    """Reads a graph from a table of events, such as payments, and a table of the nodes that are known, if there is one.

    All events of a pair become one edge, whose values say how many there were, how large, and when. The values of an
    edge depend on the events of its own pair alone, so one more event of an attacker changes one edge.

    Args:
        folder: Holds ``events`` and, if there is one, ``nodes``, each as .csv or .parquet. ``events`` may also be a
            folder of such files with the same columns, which are read in the order of their names.
        events: Table of events, or a folder of files, instead of the one in ``folder``.
        nodes: Table of nodes, instead of the one in ``folder``. Nodes that occur in events alone are in the graph too:
            they have no label, and their features are those of a row without entries. Without a table, or without
            columns of features, the only feature is a 1.
        source: Column of the id that an event goes out from, such as the payer.
        target: Column of the id that it goes to.
        event_time: Column with the time of an event: dates with or without a time of day, in UTC unless they say
            otherwise, or numbers. Needed for ``as_of``, ``last``, ``hour`` and ``weekday``.
        event_key: Column with a key of its own for each event. Rows that repeat a key and say the same, in the columns
            that are read, count once. A live graph of this data knows the keys, too.
        values: What an edge says about its events: ``"count"``, or ``sum``, ``mean``, ``last``, ``max`` or ``min`` of a
            column, of ``hour`` (a point on a circle) or of ``weekday`` (seven shares), with ``log`` inside or around
            it, as in ``"log(sum(amount))"`` or ``"mean(log(amount))"``. The logarithm is that of 1 + x. Defaults to
            ``log(count)``, for each column of numbers ``mean(log(…))`` and ``log(sum(…))``, for each column of text the
            shares of its categories, and with dates ``mean(hour)`` and ``mean(weekday)``.
        directed: Whether the two directions of a pair have values of their own. Each row of ``edge_attr`` then holds
            the values of its own direction, and those of the other one.
        id: Column of node ids, see ``load_tables``.
        label: Column of classes. An empty entry is an unlabelled row. None for no labels.
        label_time: Column with the time at which a label became known. With ``as_of``, later labels are not used.
        split: Column with ``train``, ``val``, ``test`` or nothing. Without it the split is drawn, 30/10/60 %.
        time: Column of the table of nodes by which the split is made, instead of a drawn one.
        features: Columns of features. Defaults to all remaining columns of the table of nodes.
        as_of: A date, or a number if times are numbers: nothing that happened, or became known, then or later is read.
        cut_off: An earlier moment, for training: nodes and parts are those as of ``as_of``, and events and labels those
            before the cut-off. Labels of the test part are left out.
        encode: ``"auto"``, kinds of columns, or an encoding of an earlier table, as for ``load_tables``. An earlier
            encoding also says which values edges have, and which column is the key of events.
        trusted: Events that no attacker can change, see ``load_tables``.
        seed: Seed of the split, if it is drawn.
        classes: Names of all classes, in order, as for ``load_tables``.
        split_by: How it is drawn, ``"id"`` or ``"class"``, as for ``load_tables``. Defaults to ``"class"``, because
            what is sought in events is rare, and by ids a part may lack it. Defences against poisoned labels need
            ``"id"``.
        name: Name of the dataset. Defaults to the folder's name.
        progress: Called with a ``Progress`` while events are read and joined.

    Returns:
        A ``Data`` with ``edge_attr``, ``edge_names`` and ``encoding``. ``edge_totals`` holds what a live graph adds the
        next events to, and ``event_keys`` which events have counted. ``num_events`` counts the events,
        ``num_unlisted`` the nodes that only events name.

    Raises:
        DatasetError: Something is missing, contradictory or not a number. The message names all of it.
    """
    columns = Columns(
        id=id,
        label=label,
        split=split,
        graph="",
        source=source,
        target=target,
        weight="",
        features=features,
        directed=directed,
        seed=seed,
        split_by=checked_way(split_by),
        time=time,
        encode=encode,
        trusted=trusted,
        classes=checked_classes(classes),
    )
    roles = EventRoles(columns, event_time, event_key, label_time, None if values is None else tuple(values))
    event_file = locate(folder, "events", events)
    assert event_file is not None
    node_file = locate(folder, "nodes", nodes, is_required=False)
    known = None if node_file is None else read_table(node_file, columns.of_text)
    with TableStore.opened("reading tables of events") as store:
        reader = _EventReader(EventFiles(store, event_file), known, roles, progress=progress)
        data = reader.graph(store, as_of, cut_off)
    data.name = name or Path(folder or event_file.parent).resolve().name
    return data


@dataclass(frozen=True)
class EventRoles:
    """Names of the columns of events, and of the nodes that take part in them. ``load_events`` describes them."""

    columns: Columns
    time: str | None
    key: str | None
    label_time: str | None
    values: tuple[str, ...] | None


@dataclass(frozen=True)
class _Nodes:
    """All nodes of a graph: those of the table, in its order, then those that occur in events alone.

    Attributes:
        names: Their ids.
        num_listed: How many are in the table.
    """

    names: Names
    num_listed: int

    @property
    def total(self) -> int:
        return len(self.names)


@dataclass(frozen=True)
class _Labels:
    """Classes of all nodes (-1: unknown), the rows of each part, and how these were drawn."""

    classes: ClassRows
    parts: tuple[Tensor, ...]
    split_by: str | None


@dataclass(frozen=True)
class _Entries:
    """The columns of events that are read beside ids and keys.

    Attributes:
        values: What edges say something about.
        at: The time of events, by which they are left out.
        when: The time that values of edges are about. An encoding of an earlier table may name another column.
        mark: What says that an event is trusted.
    """

    values: tuple[EntryColumn, ...]
    at: EntryColumn | None
    when: EntryColumn | None
    mark: EntryColumn | None

    @classmethod
    def of(cls, files: EventFiles, roles: EventRoles, given: Encoding | dict[str, str]) -> "_Entries":
        """Returns what roles and an encoding need, or raises DatasetError if a column is missing."""
        time = roles.time
        kinds = given
        if isinstance(given, Encoding):
            assert given.events is not None
            time = given.events.time
            kinds = {column.name: column.kind for column in given.edges}
            names = list(kinds)
        else:
            names = _value_names(files, roles)
        assert isinstance(kinds, dict)
        for name in [*names, *([time] if time else [])]:
            files.head().require(name)
        values = [EntryColumn.of_kind(name, f"v{place}", kinds.get(name)) for place, name in enumerate(names)]
        at = EntryColumn.of_time(roles.time, "happened", is_ordered=True) if roles.time else None
        when = at
        if time != roles.time:
            when = EntryColumn.of_time(time, "moment", is_ordered=True) if time else None
        trusted = _trusted_column(roles)
        mark = EntryColumn.of_time(trusted, "mark", is_ordered=False) if trusted else None
        return cls(tuple(values), at, when, mark)

    def wanted(self, roles: EventRoles) -> WantedColumns:
        """Returns all columns that are read."""
        times = [entry for entry in (self.at, self.when, self.mark) if entry is not None]
        by_place = {entry.place: entry for entry in [*self.values, *times]}
        return WantedColumns(roles.columns.source, roles.columns.target, roles.key, tuple(by_place.values()))

    def value(self, name: str) -> EntryColumn:
        """Returns a column that edges say something about."""
        return next(entry for entry in self.values if entry.name == name)


def _value_names(files: EventFiles, roles: EventRoles) -> list[str]:
    """Returns the columns that edges say something about."""
    if roles.values is None:
        used = (roles.columns.source, roles.columns.target, roles.time, roles.key, _trusted_column(roles))
        return [name for name in files.columns if name not in used]
    named = [term.quantity.column for term in map(Term.parse, roles.values) if term.quantity is not None]
    return [name for name in dict.fromkeys(named) if name in files.columns or name not in CLOCK]


class _EventReader:
    """Reads a table of events and a table of nodes, and notes all problems before it raises an error.

    Args:
        files: The table of events.
        nodes: The table of nodes, or None.
        roles: What their columns stand for.
        make: Makes the arrays of edges and keys.
        progress: Called while events are read.
    """

    def __init__(
        self,
        files: EventFiles,
        nodes: Table | None,
        roles: EventRoles,
        make: MakeArray = new_array,
        progress: OnProgress | None = None,
    ) -> None:
        self.files = files
        self.nodes = nodes
        self.roles = roles
        self.make = make
        self.progress = progress
        self.problems = Problems()

    def graph(self, store: TableStore, as_of: str | None, cut_off: str | None) -> Data:
        """Returns the graph as of a moment or, with a cut-off, what training may see of it."""
        self._require_columns(as_of, cut_off)
        given = self.problems.attempt(encoding_named, self.roles.columns.encode or "auto")
        self.problems.refuse()
        assert given is not None
        self._refuse_other_encoding(given)
        listed = None
        if self.nodes is not None:
            rows = self.problems.attempt(NodeRows, self.nodes, self.roles.columns.id)
            listed = None if rows is None else rows.names
        self.problems.refuse()
        known: Names = np.empty(0, dtype=np.int64) if listed is None else listed
        self.entries = _Entries.of(self.files, self.roles, given)
        wanted = self.entries.wanted(self.roles)
        self.events = StagedEvents(store, self.files, wanted, [str(name) for name in known], self.progress)
        self._require_kinds(given)
        if as_of is not None and not self.events.read_before("happened", self._limit(as_of, "as_of")):
            raise self.files.error(f'no event is before as_of="{as_of}": choose a later moment.')
        num_repeats = self.events.find_repeats()
        nodes, rows_of_codes = self._all_nodes(known)
        labels = self._labels(as_of, cut_off, nodes)
        limit = None if cut_off is None else self._limit(cut_off, "cut_off")
        if not self.events.keep(rows_of_codes, "happened", limit) and cut_off is not None:
            raise self.files.error(f'no event is before cut_off="{cut_off}": choose a later moment.')
        if labels is not None:
            self.events.mark_training(labels.parts[0].numpy())
        return self._assemble(given, nodes, labels, num_repeats)

    def _require_columns(self, as_of: str | None, cut_off: str | None) -> None:
        """Raises DatasetError with all columns that are missing, and settings that lack one."""
        roles = self.roles
        head = self.files.head()
        wanted = (roles.columns.source, roles.columns.target, roles.time, roles.key, _trusted_column(roles) or None)
        for name in (name for name in wanted if name is not None):
            self.problems.attempt(head.require, name)
        for setting, moment in (("as_of", as_of), ("cut_off", cut_off)):
            if moment is not None and roles.time is None:
                self.problems.append(f'{setting}="{moment}" needs the time of events: pass event_time="…".')
        if self.nodes is None and roles.label_time is not None:
            self.problems.append(f'label_time="{roles.label_time}" is a column of a table of nodes: there is none.')
        if self.nodes is not None:
            self.problems.attempt(self.nodes.require, roles.columns.id)
            if roles.label_time is not None:
                self.problems.attempt(self.nodes.require, roles.label_time)
        self.problems.refuse()

    def _refuse_other_encoding(self, given: Encoding | dict[str, str]) -> None:
        """Raises DatasetError if an encoding of an earlier table is not about events, or about others."""
        if not isinstance(given, Encoding):
            return
        if given.events is None:
            raise DatasetError("the encoding was made from a table of edges, and does not say how to read events.")
        if given.events.key != self.roles.key:
            raise DatasetError(
                f"the encoding was made with event_key={given.events.key!r}, and here it is {self.roles.key!r}: "
                "events would count twice in one of the two. Pass the same."
            )

    def _require_kinds(self, given: Encoding | dict[str, str]) -> None:
        """Raises DatasetError if a column holds something that no edge can say."""
        self.events.refuse_infinite(list(self.entries.values))
        if isinstance(given, Encoding):
            assert given.events is not None
            if self.entries.when is not None and (self.entries.when.kind == "date") != given.events.has_dates:
                raise self.files.error(given.events.other_time())
            return
        dates = [entry.name for entry in self.entries.values if entry.kind == "date" and entry.name not in given]
        if dates:
            raise self.files.error(
                f'column "{dates[0]}" holds dates: if it is the time of events, pass event_time="{dates[0]}" (--set '
                f"column.event_time={dates[0]}), or leave it out by naming the values of edges."
            )

    def _limit(self, moment: str, setting: str) -> int:
        """Returns a moment in the order of the time of events."""
        assert self.entries.at is not None
        are_dates = self.entries.at.kind == "date"
        return int(order_of_times(np.array([moment_number(setting, moment, are_dates)]), are_dates)[0])

    def _all_nodes(self, known: Names) -> tuple[_Nodes, Rows]:
        """Returns the nodes of the table, after them, sorted, those of events alone, and the row of each code.

        Ids are compared as whole numbers if all of them are, else as text. Events of a node with itself are left out
        before nodes are counted.
        """
        num_loops = self.events.count_loops()
        if num_loops:
            _log.warning("%s: %s events of a node with itself are left out", self.files.path.name, f"{num_loops:,}")
        texts = self.events.names
        codes = self.events.taking_part()
        codes = codes[codes >= len(known)]
        columns = self.roles.columns
        are_whole = isinstance(known, np.ndarray) and all(
            self.files.stores_whole_numbers(name) for name in (columns.source, columns.target)
        )
        order = sorted(codes.tolist(), key=(lambda code: int(texts[code])) if are_whole else texts.__getitem__)
        rows = np.full(len(texts), -1, dtype=np.int64)
        rows[: len(known)] = np.arange(len(known))
        rows[order] = len(known) + np.arange(len(order))
        unlisted = [texts[code] for code in order]
        if are_whole:
            whole = np.array([int(name) for name in unlisted], dtype=np.int64)
            return _Nodes(np.concatenate([np.asarray(known, dtype=np.int64), whole]), len(known)), rows
        return _Nodes([*(str(name) for name in known), *unlisted], len(known)), rows

    def _labels(self, as_of: str | None, cut_off: str | None, nodes: _Nodes) -> _Labels | None:
        """Returns what is known about the classes, or None if there are no labels."""
        columns = self.roles.columns
        if self.nodes is None or not has_labels(self.nodes, columns):
            if columns.time is not None or self.roles.label_time is not None:
                where = self.nodes or self.files.head()
                raise where.error("there is no label, so there is nothing to split by time and no label that is late.")
            return None
        classes = class_rows(self.nodes, str(columns.label), columns.classes)
        y = classes.y
        known = self._known_labels(as_of, "as_of")
        listed = [nodes.names[: nodes.num_listed]]
        if columns.split in self.nodes.columns:
            parts = split_rows(self.nodes, columns, y, NODE_FRACTIONS, listed)
        else:
            parts = split_rows(self.nodes, columns, torch.where(known, y, -1), NODE_FRACTIONS, listed)
        if cut_off is not None:
            is_test = torch.zeros(len(y), dtype=torch.bool).index_fill_(0, parts[2], True)
            known = known & self._known_labels(cut_off, "cut_off") & ~is_test
        y = torch.where(known, y, -1)
        train, val, test = parts
        parts = (train[known[train]], val[known[val]], test)
        if not len(parts[0]):
            raise self.nodes.error(
                f'no label of the training part is known before {"cut_off" if cut_off else "as_of"}="{cut_off or as_of}'
                '": choose a later moment.'
            )
        unlisted = torch.full((nodes.total - nodes.num_listed,), -1)
        of_all = replace(classes, y=torch.cat([y, unlisted]))
        return _Labels(of_all, parts, split_record(self.nodes, columns))

    def _known_labels(self, moment: str | None, setting: str) -> Tensor:
        """Returns a mask of the rows whose label is known before a moment. An entry without a time was always known."""
        assert self.nodes is not None
        column = self.roles.label_time
        if column is None or moment is None:
            return torch.ones(len(self.nodes), dtype=torch.bool)
        has_time = self.nodes.frame[column].notna().to_numpy()
        known = np.ones(len(self.nodes), dtype=bool)
        timed = _selected(self.nodes, has_time)
        if len(timed):
            known[has_time] = self._is_before(timed, column, moment, setting)
        return torch.from_numpy(known)

    def _is_before(self, table: Table, column: str, moment: str, setting: str) -> Mask:
        read = moments(table, column)
        limit = np.array([moment_number(setting, moment, read.are_dates)])
        return np.asarray(order_of_times(read.numbers, read.are_dates) < order_of_times(limit, read.are_dates))

    def _assemble(
        self, given: Encoding | dict[str, str], nodes: _Nodes, labels: _Labels | None, num_repeats: int
    ) -> Data:
        """Returns the graph of the events that are left."""
        condition = self.problems.attempt(self._trusted)
        encoding = given if isinstance(given, Encoding) else self._encoding(given, nodes, labels)
        x = None if encoding is None else self.problems.attempt(self._features, encoding, nodes)
        self.problems.refuse()
        assert x is not None
        assert encoding is not None
        summary = encoding.events
        assert summary is not None
        if condition:
            num_again = self.events.leave_out_untrusted(condition)
            if num_again:
                number = f"{num_again:,}"
                _log.warning("%s: %s events join a trusted pair again and are left out", self.files.path.name, number)
        data = self._edges(summary, has_marks=bool(condition))
        if summary.key is not None:
            keys = keys_of_encoded(encode_ids(nodes.names)).view(np.int64)
            self._refuse_contradictions(summary, keys, num_repeats)
            data.event_keys = torch.from_numpy(self._keys(summary, keys))
        data.x = torch.from_numpy(x)
        data.node_id = node_ids(nodes.names)
        data.encoding = encoding
        if encoding is not given:
            data[FITTED] = True
        data.num_unlisted = nodes.total - nodes.num_listed
        if labels is not None:
            data.y = labels.classes.y
            labels.classes.attach(data)
            set_masks(data, labels.parts, labels.split_by)
        return data

    def _trusted(self) -> str:
        """Returns which events no attacker can change, for the store; an empty text if that is not said."""
        entry = self.entries.mark
        trusted = self.roles.columns.trusted
        if entry is None or trusted is None:
            return ""
        _, less_than, limit = (part.strip() for part in trusted.partition("<"))
        if less_than:
            clock = None if entry.kind == "number" else Clock(start=0.0, unit=SECONDS_OF_DAY)
            return f"mark < {limit_of(trusted, limit, clock)!r}"
        if entry.kind != "number":
            raise no_marks(self.files.head(), entry.name)
        return "mark > 0"

    def _edges(self, summary: EventSummary, has_marks: bool) -> Data:
        """Returns a graph with each pair of nodes in both directions, and the values and totals of their events."""
        num_events = self.events.num_kept
        num_edges = 2 * self.events.count_pairs()
        report = follow(self.progress, "joining the events of each pair", 2 * num_events)
        rows = _counted(self.events.by_edge(), report, 2 * num_events)
        arrays = edges_of_events(summary, rows, self._reader(summary), num_edges, has_marks, self.make)
        data = Data(**{name: torch.from_numpy(array) for name, array in arrays.items()})
        data.edge_names = _edge_names(summary, has_marks)
        data.num_events = num_events
        num_ways = int((arrays["edge_totals"][:, 0] > 0).sum())
        data.repeated_edges = num_events - (num_ways if summary.directed else num_edges // 2)
        return data

    def _reader(self, summary: EventSummary) -> Read:
        """Returns what reads events as numbers."""
        columns = [(column, self.entries.value(column.name).place) for column in summary.columns]
        when = None if summary.time is None or self.entries.when is None else self.entries.when.place

        def read(rows: EventRows) -> Events:
            numbers = rows.whole("number")
            features = {column.name: rows.features(column, place) for column, place in columns}
            time = np.zeros(len(rows), dtype=np.int64) if when is None else rows.whole(when)
            try:
                return summary.of_columns(features, time, lambda row: self.events.row(int(numbers[row])))
            except DatasetError as error:
                raise self.files.error(str(error)) from None

        return read

    def _keys(self, summary: EventSummary, keys: Rows) -> Rows:
        """Returns the keys of the events that count, with what is read of each."""
        read = self._reader(summary)
        kept = self.make("event_keys", (self.events.num_kept, 3), "int64")
        first = 0
        for rows in self.events.by_key():
            end = first + len(rows)
            kept[first:end, 0] = rows.whole("k1")
            kept[first:end, 1] = rows.whole("k2")
            kept[first:end, 2] = summary.digests(read(rows), keys[[rows.whole("s"), rows.whole("t")]])
            first = end
        return kept

    def _refuse_contradictions(self, summary: EventSummary, keys: Rows, num_repeats: int) -> None:
        """Raises DatasetError if two events of one key differ in what is read of them."""
        if not num_repeats:
            return
        read = self._reader(summary)
        first_digest: dict[int, int] = {}
        differing: dict[int, list[int]] = {}
        for rows in self.events.repeated():
            ends = np.stack([rows.whole("s"), rows.whole("t")])
            digests = summary.digests(read(rows), np.where((ends >= 0).all(axis=0), keys[ends], 0)).tolist()
            numbers = zip(rows.whole("number").tolist(), rows.whole("original").tolist(), digests, strict=True)
            for number, original, digest in numbers:
                if first_digest.setdefault(original, digest) != digest:
                    differing.setdefault(original, [original]).append(number)
        if differing:
            original = min(differing, key=lambda first: differing[first][1])
            shown = shortlist([self.events.row(number) for number in differing[original]])
            raise self.files.error(
                f"{len(differing)} event(s) stand there several times and say different things, the first is "
                f'"{self.events.key_of(original)}" ({shown}): correct them, or leave event_key out if the column is no '
                "key."
            )
        _log.warning("%s: %s rows repeat an earlier event and are left out", self.files.path.name, f"{num_repeats:,}")

    def _encoding(self, kinds: dict[str, str], nodes: _Nodes, labels: _Labels | None) -> Encoding | None:
        """Returns the encoding that the training part shows; None if something is wrong."""
        node_columns = self.problems.attempt(self._fit_nodes, kinds, nodes, labels)
        edge_columns = self.problems.attempt(self._fit_events)
        if node_columns is None or edge_columns is None:
            return None
        summary = self.problems.attempt(self._summary, edge_columns)
        return None if summary is None else Encoding(node_columns, edge_columns, summary)

    def _fit_nodes(self, kinds: dict[str, str], nodes: _Nodes, labels: _Labels | None) -> tuple[Column, ...]:
        """Returns how columns of nodes become features, with a mark of missing entries: nodes may have no row."""
        if self.nodes is None:
            return ()
        columns = self.roles.columns
        names = columns.features
        if names is None:
            names = remaining_columns(self.nodes, columns, labelled=True)
            names = [name for name in names if name != self.roles.label_time]
        for name in names:
            self.nodes.require(name)
        rows = np.arange(len(self.nodes)) if labels is None else labels.parts[0].numpy()
        fitted = fit_columns(self.nodes, names, kinds, rows)
        lists = [column.name for column in fitted if column.kind == "list"]
        if lists and nodes.total > nodes.num_listed:
            raise self.nodes.error(
                f'column "{lists[0]}" holds lists, and {nodes.total - nodes.num_listed:,} nodes occur in events alone: '
                "add rows for them, or leave the column out with features=[...]."
            )
        # Also if nobody occurs in events alone yet: one event more would else change the columns of all.
        return tuple(column if column.kind == "list" else replace(column, gaps=True) for column in fitted)

    def _fit_events(self) -> tuple[Column, ...]:
        """Returns how columns of events become numbers, fitted to events of training nodes."""
        problems = Problems()
        columns = [problems.attempt(self.events.fitted, entry) for entry in self.entries.values]
        problems.refuse()
        return tuple(column for column in columns if column is not None)

    def _summary(self, columns: tuple[Column, ...]) -> EventSummary:
        roles = self.roles
        has_dates = self.entries.at is not None and self.entries.at.kind == "date"
        values = roles.values or usual_values(columns, has_dates)
        decimals = tuple(self._decimals(column) for column in columns)
        summary = EventSummary(
            tuple(values), roles.time, has_dates, roles.columns.directed, columns, decimals, roles.key
        )
        summary.require_columns()
        return replace(summary, values=tuple(str(term) for term in summary.terms))

    def _decimals(self, column: Column) -> int:
        """Returns to how many decimals a column is added up: to those that training rows have."""
        if column.kind != "number":
            return 0
        numbers = self.events.training_numbers(self.entries.value(column.name).place)
        return decimals_of(numbers[np.isfinite(numbers)])

    def _features(self, encoding: Encoding, nodes: _Nodes) -> npt.NDArray[np.float32]:
        """Returns the features of all nodes, a 1 if there are none. Nodes without a row have no entries."""
        if not encoding.nodes:
            return np.ones((nodes.total, 1), dtype=np.float32)
        if self.nodes is None:
            return np.repeat(unlisted_features(encoding), nodes.total, axis=0)
        for column in encoding.nodes:
            self.nodes.require(column.name)
        listed = self.nodes.frame[[column.name for column in encoding.nodes]]
        x = encoded(Table(self.nodes.path, listed, self.nodes.start), encoding.nodes)
        if nodes.total == len(x):
            return x
        unlisted = np.repeat(unlisted_features(encoding), nodes.total - len(x), axis=0)
        return np.concatenate([x, unlisted])


def unlisted_features(encoding: Encoding) -> npt.NDArray[np.float32]:
    """Returns the features of a node that occurs in events alone, shape ``[1, num_features]``."""
    import pandas as pd

    if not encoding.nodes:
        return np.ones((1, 1), dtype=np.float32)
    row = pd.DataFrame({column.name: pd.Series([None], dtype=object) for column in encoding.nodes})
    return encoded(Table(Path("nodes"), row), encoding.nodes)


def _selected(table: Table, kept: Mask) -> Table:
    return Table(table.path, table.frame[kept].reset_index(drop=True), table.start)


def _trusted_column(roles: EventRoles) -> str:
    return (roles.columns.trusted or "").partition("<")[0].strip()


def _counted(rows: Iterator[EventRows], report: ReportProgress, total: int) -> Iterator[EventRows]:
    """Yields events, and says how many of them have come."""
    done = 0
    for some in rows:
        yield some
        done += len(some)
        report(done / total)


def _edge_names(summary: EventSummary, has_marks: bool) -> list[str]:
    names = summary.names
    back = [f"{name}, back" for name in names] if summary.directed else []
    return [*names, *back, *([TRUSTED] if has_marks else [])]


def made_of_events(data: Any) -> bool:
    """Returns whether the edges of a graph stand for events, as ``load_events`` makes them."""
    return getattr(data, "edge_totals", None) is not None
