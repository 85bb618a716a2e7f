"""``load_events``: reads a graph from a table of events between nodes, such as payments between accounts."""

import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch_geometric.data import Data

from agnncert.certificates.ids import encode_ids
from agnncert.datasets.columns import Table, read_table, shortlist
from agnncert.datasets.drawn_splits import BY_CLASS, checked_way
from agnncert.datasets.encoding import FITTED, Encode, Encoding, encoding_named, trusted_rows
from agnncert.datasets.encoding_columns import Column, encoded, fit_columns, kind_of, moments, numbers_of
from agnncert.datasets.event_keys import key_digests, sorted_rows
from agnncert.datasets.event_summary import (
    CLOCK,
    Events,
    EventSummary,
    Term,
    decimals_of,
    order_of_times,
    usual_values,
)
from agnncert.datasets.splits import NODE_FRACTIONS, set_masks
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
from agnncert.datasets.tables import PathLike, Problems, locate
from agnncert.errors import DatasetError
from agnncert.graphs.hashing import keys_of_encoded

_log = logging.getLogger(__name__)
Mask = npt.NDArray[np.bool_]
SECONDS_OF_DAY = 86_400.0


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
) -> Data:
    """Reads a graph from a table of events, such as payments, and a table of the nodes that are known, if there is one.

    All events of a pair become one edge, whose values say how many there were, how large, and when. The values of an
    edge depend on the events of its own pair alone, so one more event of an attacker changes one edge.

    Args:
        folder: Holds ``events`` and, if there is one, ``nodes``, each as .csv or .parquet.
        events: Table of events, instead of the one in ``folder``.
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
    of_text = [*columns.of_text, *([event_key] if event_key else [])]
    event_file = locate(folder, "events", events)
    assert event_file is not None
    node_file = locate(folder, "nodes", nodes, is_required=False)
    table = read_table(event_file, of_text)
    known = None if node_file is None else read_table(node_file, of_text)
    reader = _EventReader(table, known, roles)
    data = reader.graph(as_of, cut_off)
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
        ends: Rows of the two nodes of each row of the table of events, shape ``[2, num_rows]``; -1 for nodes that only
            rows name that do not count.
    """

    names: Names
    num_listed: int
    ends: Rows

    @property
    def total(self) -> int:
        return len(self.names)


@dataclass(frozen=True)
class _Labels:
    """Classes of all nodes (-1: unknown), the rows of each part, and how these were drawn."""

    classes: ClassRows
    parts: tuple[Tensor, ...]
    split_by: str | None


class _EventReader:
    """Reads a table of events and a table of nodes, and notes all problems before it raises an error.

    Args:
        events: The table of events.
        nodes: The table of nodes, or None.
        roles: What their columns stand for.
    """

    def __init__(self, events: Table, nodes: Table | None, roles: EventRoles) -> None:
        self.events = events
        self.nodes = nodes
        self.roles = roles
        self.kept = np.ones(len(events), dtype=bool)  # rows of the table of events that count
        self.read_rows = self.kept  # rows that are before as_of
        self.repeats = np.zeros(len(events), dtype=bool)  # those that repeat the key of an earlier one
        self.training = self.kept  # rows that columns are fitted to
        self.problems = Problems()

    def graph(self, as_of: str | None, cut_off: str | None) -> Data:
        """Returns the graph as of a moment or, with a cut-off, what training may see of it."""
        self._require_columns(as_of, cut_off)
        if as_of is not None:
            self._keep_before(as_of, "as_of")
        self.read_rows = self.kept.copy()
        self.repeats = self._repeats_key()
        self.kept &= ~self.repeats
        nodes = self._all_nodes()
        labels = self._labels(as_of, cut_off, nodes)
        if cut_off is not None:
            self._keep_before(cut_off, "cut_off")
        return self._assemble(nodes, labels)

    def _require_columns(self, as_of: str | None, cut_off: str | None) -> None:
        """Raises DatasetError with all columns that are missing, and settings that lack one."""
        roles = self.roles
        wanted = (roles.columns.source, roles.columns.target, roles.time, roles.key)
        for name in (name for name in wanted if name is not None):
            self.problems.attempt(self.events.require, name)
        for setting, moment in (("as_of", as_of), ("cut_off", cut_off)):
            if moment is not None and roles.time is None:
                self.problems.append(f'{setting}="{moment}" needs the time of events: pass event_time="…".')
        if self.nodes is None and roles.label_time is not None:
            self.problems.append(f'label_time="{roles.label_time}" is a column of a table of nodes: there is none.')
        if self.nodes is not None:
            self.problems.attempt(self.nodes.require, roles.columns.id)
            if roles.label_time is not None:
                self.problems.attempt(self.nodes.require, roles.label_time)
        if not len(self.events):
            self.problems.append(str(self.events.error("there is a header but no event.")))
        self.problems.refuse()

    def _repeats_key(self) -> Mask:
        """Returns which of the rows that are kept repeat the key of an earlier one."""
        import pandas as pd

        repeats = np.zeros(len(self.events), dtype=bool)
        if self.roles.key is not None:
            keys = pd.Series(self.events.filled(self.roles.key), dtype=object)
            repeats[self.kept] = keys[self.kept].duplicated()
        return repeats

    def _refuse_contradictions(self, digests: Rows, repeats: Mask) -> None:
        """Raises DatasetError if two events of one key differ in what is read of them."""
        key = self.roles.key
        if key is None or not repeats.any():
            return
        keys = self.events.filled(key)
        row_of: dict[str, int] = {}
        differing: dict[str, list[int]] = {}
        again = {keys[row] for row in np.flatnonzero(repeats).tolist()}
        for row in np.flatnonzero(self.read_rows).tolist():
            name = keys[row]
            if name not in again:
                continue
            first = row_of.setdefault(name, row)
            if digests[row] != digests[first]:
                differing.setdefault(name, [first + 1]).append(row + 1)
        if differing:
            name, rows = next(iter(differing.items()))
            raise self.events.error(
                f'{len(differing)} event(s) stand there several times and say different things, the first is "{name}" '
                f"({shortlist(rows, 'row')}): correct them, or leave event_key out if the column is no key."
            )
        number = f"{repeats.sum():,}"
        _log.warning("%s: %s rows repeat an earlier event and are left out", self.events.path.name, number)

    def _keep_before(self, moment: str, setting: str) -> None:
        """Leaves out events at and after a moment."""
        self.kept = self.kept & self._is_before(self.events, str(self.roles.time), moment, setting)
        if not self.kept.any():
            raise self.events.error(f'no event is before {setting}="{moment}": choose a later moment.')

    def _is_before(self, table: Table, column: str, moment: str, setting: str) -> Mask:
        read = moments(table, column)
        limit = np.array([moment_number(setting, moment, read.are_dates)])
        return np.asarray(order_of_times(read.numbers, read.are_dates) < order_of_times(limit, read.are_dates))

    def _all_nodes(self) -> _Nodes:
        """Returns the nodes of the table, and after them, sorted, those that occur in events only.

        Ids are compared as whole numbers if all of them are, else as text. Events of a node with itself are left out
        before nodes are counted.
        """
        import pandas as pd

        columns = self.roles.columns
        ends = [self.problems.attempt(self.events.ids, name) for name in (columns.source, columns.target)]
        listed = None
        if self.nodes is not None:
            rows = self.problems.attempt(NodeRows, self.nodes, columns.id)
            listed = None if rows is None else rows.names
        self.problems.refuse()
        source, target = ends
        assert source is not None
        assert target is not None
        known: Names = np.empty(0, dtype=np.int64) if listed is None else listed
        parts = [known, source, target]
        if not all(isinstance(part, np.ndarray) for part in parts):  # 7 and "7" are one id
            parts = [[str(name) for name in part] for part in parts]
        first, *of_ends = (pd.Index(part, dtype=None if isinstance(part, np.ndarray) else object) for part in parts)
        self._leave_out_loops(of_ends[0] == of_ends[1])
        taking_part = of_ends[0][self.kept].union(of_ends[1][self.kept])
        unlisted = taking_part.unique().difference(first)
        whole = first.append(unlisted)
        names: Names = whole.to_numpy(np.int64) if isinstance(parts[0], np.ndarray) else [str(each) for each in whole]
        rows_of_ends = np.stack([np.asarray(whole.get_indexer(each)) for each in of_ends])
        return _Nodes(names, len(first), rows_of_ends)

    def _leave_out_loops(self, is_loop: Mask) -> None:
        """Leaves out events of a node with itself: a node that takes part in these alone is not in the graph."""
        left_out = self.kept & is_loop
        if left_out.any():
            number = f"{left_out.sum():,}"
            _log.warning("%s: %s events of a node with itself are left out", self.events.path.name, number)
        self.kept &= ~is_loop

    def _labels(self, as_of: str | None, cut_off: str | None, nodes: _Nodes) -> _Labels | None:
        """Returns what is known about the classes, or None if there are no labels."""
        columns = self.roles.columns
        if self.nodes is None or not has_labels(self.nodes, columns):
            if columns.time is not None or self.roles.label_time is not None:
                where = self.nodes or self.events
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

    def _assemble(self, nodes: _Nodes, labels: _Labels | None) -> Data:
        """Returns the graph of the events that are left."""
        trusted = None
        if self.roles.columns.trusted is not None:
            trusted = self.problems.attempt(trusted_rows, self.events, self.roles.columns.trusted)
        given = self.problems.attempt(encoding_named, self.roles.columns.encode)
        encoding = self._encoding(given, nodes, labels)
        x = None if encoding is None else self.problems.attempt(self._features, encoding, nodes)
        summary = None if encoding is None else encoding.events
        read = None if summary is None else self.problems.attempt(summary.read, self.events)
        self.problems.refuse()
        assert x is not None
        assert read is not None
        assert summary is not None
        joining = self._joining(nodes, trusted)
        data = _joined(summary, read, nodes.ends, joining, trusted, nodes.total)
        if summary.key is not None:
            data.event_keys = self._keys(summary, read, nodes, joining)
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

    def _keys(self, summary: EventSummary, read: Events, nodes: _Nodes, joining: Mask) -> Tensor:
        """Returns the keys of the events that count, with what is read of each."""
        assert summary.key is not None
        keys = keys_of_encoded(encode_ids(nodes.names)).view(np.int64)
        has_nodes = (nodes.ends >= 0).all(axis=0)
        ends = np.where(has_nodes, keys[nodes.ends], 0)
        digests = summary.digests(read, ends)
        self._refuse_contradictions(digests, self.repeats)
        texts = self.events.filled(summary.key)
        rows = np.flatnonzero(joining)
        counted = np.column_stack([key_digests(texts[row] for row in rows.tolist()), digests[rows]])
        return torch.from_numpy(sorted_rows(counted))

    def _joining(self, nodes: _Nodes, trusted: Mask | None) -> Mask:
        """Returns which rows of the table of events join two nodes, and logs what is left out."""
        kept = self.kept
        if trusted is None:
            return kept
        pair = _pair_numbers(nodes.ends, nodes.total)
        again = kept & ~trusted & np.isin(pair, pair[kept & trusted])
        if again.any():
            number = f"{again.sum():,}"
            _log.warning("%s: %s events join a trusted pair again and are left out", self.events.path.name, number)
        return np.asarray(kept & ~again)

    def _encoding(
        self, given: Encoding | dict[str, str] | None, nodes: _Nodes, labels: _Labels | None
    ) -> Encoding | None:
        """Returns the encoding that is given, or the one that the training part shows; None if something is wrong."""
        if isinstance(given, Encoding):
            if given.events is None:
                self.problems.append(
                    "the encoding was made from a table of edges, and does not say how to read events."
                )
                return None
            if given.events.key != self.roles.key:
                self.problems.append(
                    f"the encoding was made with event_key={given.events.key!r}, and here it is {self.roles.key!r}: "
                    "events would count twice in one of the two. Pass the same."
                )
                return None
            return given
        kinds = given or {}
        node_columns = self.problems.attempt(self._fit_nodes, kinds, nodes, labels)
        edge_columns = self.problems.attempt(self._fit_events, kinds, nodes, labels)
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

    def _fit_events(self, kinds: dict[str, str], nodes: _Nodes, labels: _Labels | None) -> tuple[Column, ...]:
        """Returns how columns of events become numbers, fitted to events of training nodes."""
        roles = self.roles
        if roles.values is None:
            used = (roles.columns.source, roles.columns.target, roles.time, roles.key, _trusted_column(roles))
            names = [name for name in self.events.columns if name not in used]
        else:
            named = [term.quantity.column for term in map(Term.parse, roles.values) if term.quantity is not None]
            names = [name for name in dict.fromkeys(named) if name in self.events.columns or name not in CLOCK]
            for name in names:
                self.events.require(name)
        dates = [name for name in names if kinds.get(name) is None and kind_of(self.events.frame[name]) == "date"]
        if dates:
            raise self.events.error(
                f'column "{dates[0]}" holds dates: if it is the time of events, pass event_time="{dates[0]}" (--set '
                f"column.event_time={dates[0]}), or leave it out by naming the values of edges."
            )
        self.training = self.kept
        if labels is not None:
            is_training = self.kept & np.isin(nodes.ends, labels.parts[0].numpy()).any(axis=0)
            self.training = is_training if is_training.any() else self.kept
        return fit_columns(self.events, names, kinds, np.flatnonzero(self.training))

    def _summary(self, columns: tuple[Column, ...]) -> EventSummary:
        roles = self.roles
        has_dates = roles.time is not None and moments(self.events, roles.time).are_dates
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
        numbers = numbers_of(self.events.frame[column.name][self.training], "number")
        return decimals_of(numbers[np.isfinite(numbers)])

    def _features(self, encoding: Encoding, nodes: _Nodes) -> npt.NDArray[np.float32]:
        """Returns the features of all nodes, a 1 if there are none. Nodes without a row have no entries."""
        if not encoding.nodes:
            return np.ones((nodes.total, 1), dtype=np.float32)
        if self.nodes is None:
            listed = self.events.frame.iloc[:0].reindex(columns=[column.name for column in encoding.nodes])
            start = self.events.start
            path = self.events.path
        else:
            for column in encoding.nodes:
                self.nodes.require(column.name)
            listed = self.nodes.frame[[column.name for column in encoding.nodes]]
            start = self.nodes.start
            path = self.nodes.path
        x = encoded(Table(path, listed, start), encoding.nodes)
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


def moment_number(setting: str, moment: str, are_dates: bool) -> float:
    """Returns a moment as days since 1970 or, for times that are numbers, as a number.

    Raises:
        DatasetError: It is neither a date nor a number, or not what the column holds.
    """
    if not are_dates:
        with suppress(ValueError):
            return float(moment)
        raise DatasetError(f'{setting}="{moment}": the times are numbers, so compare them with one.')
    try:
        date = datetime.fromisoformat(str(moment))
    except ValueError:
        raise DatasetError(f'{setting}="{moment}": expected a date, as in 2027-12-31 or 2027-12-31T12:00:00.') from None
    if date.tzinfo is None:
        date = date.replace(tzinfo=UTC)
    return date.timestamp() / SECONDS_OF_DAY


def _selected(table: Table, kept: Mask) -> Table:
    return Table(table.path, table.frame[kept].reset_index(drop=True), table.start)


def _trusted_column(roles: EventRoles) -> str:
    return (roles.columns.trusted or "").partition("<")[0].strip()


def _joined(
    summary: EventSummary, events: Events, all_ends: Rows, kept: Mask, trusted: Mask | None, num_nodes: int
) -> Data:
    """Returns a graph with each pair of nodes once, and the values and totals of their events.

    Args:
        summary: How events become values.
        events: The rows of the table of events.
        all_ends: Rows of the two nodes of each.
        kept: Which of them count.
        trusted: Which of them no attacker can change, if that is said.
        num_nodes: Number of nodes.
    """
    rows = np.flatnonzero(kept)
    joining = Events({key: numbers[rows] for key, numbers in events.quantities.items()}, events.time[rows])
    ends = all_ends[:, rows]
    pairs, pair = np.unique(_pair_numbers(ends, num_nodes), return_inverse=True)
    goes_up = ends[0] < ends[1]
    if summary.directed:
        totals = summary.totals(joining, 2 * pair + ~goes_up, 2 * len(pairs)).reshape(len(pairs), 2, -1)
        both_ways = np.concatenate([totals[:, 0], totals[:, 1]])
    else:
        totals = summary.totals(joining, pair, len(pairs))
        both_ways = np.concatenate([totals, totals])
    first, second = np.divmod(pairs, num_nodes)
    edge_index = np.stack([np.concatenate([first, second]), np.concatenate([second, first])])
    edge_order = np.lexsort((edge_index[1], edge_index[0]))
    back = np.argsort(edge_order)[(edge_order + len(pairs)) % (2 * len(pairs))]  # place of the way back of each edge
    edge_totals = both_ways[edge_order]
    marks = None
    if trusted is not None:
        is_trusted = np.bincount(pair, weights=trusted[rows], minlength=len(pairs)) > 0
        marks = np.tile(is_trusted, 2)[edge_order, None].astype(np.float32)
    data = Data(edge_index=torch.from_numpy(edge_index[:, edge_order]))
    data.edge_totals = torch.from_numpy(edge_totals)
    data.edge_attr = torch.from_numpy(edge_attributes(summary, edge_totals, back, marks))
    data.edge_names = _edge_names(summary, marks is not None)
    data.num_events = len(rows)
    data.repeated_edges = len(rows) - len(np.unique(2 * pair + (~goes_up if summary.directed else 0)))
    return data


def _pair_numbers(ends: Rows, num_nodes: int) -> Rows:
    """Returns each pair of nodes as one number, whatever the direction."""
    return np.asarray(ends.min(axis=0) * num_nodes + ends.max(axis=0))


def edge_attributes(
    summary: EventSummary, edge_totals: Rows, back: Rows, marks: npt.NDArray[np.float32] | None
) -> npt.NDArray[np.float32]:
    """Returns the values of edges: those of their own direction, of the other one, and marks of trusted edges.

    Args:
        summary: How events become values.
        edge_totals: The totals of each edge.
        back: Number of the edge that leads back.
        marks: Marks of trusted edges, if there are any, shape ``[num_edges, 1]``.
    """
    values = summary.edge_values(edge_totals)
    parts = [values, values[back]] if summary.directed else [values]
    return np.hstack(parts if marks is None else [*parts, marks])


def _edge_names(summary: EventSummary, has_marks: bool) -> list[str]:
    names = summary.names
    back = [f"{name}, back" for name in names] if summary.directed else []
    return [*names, *back, *([TRUSTED] if has_marks else [])]


def made_of_events(data: Any) -> bool:
    """Returns whether the edges of a graph stand for events, as ``load_events`` makes them."""
    return getattr(data, "edge_totals", None) is not None
