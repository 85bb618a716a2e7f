"""Writes tables of nodes and edges in parts. DuckDB joins and sorts them on disk; no column is held in memory.

Rows of the graph are those of the table of nodes. The result is that of ``convert_parquet`` and
``write_graph(partition=…)`` one after the other, which hold the graph.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt
import torch

from agnncert.certificates.ids import encode_ids, id_array
from agnncert.datasets.columns import Table, shortlist
from agnncert.datasets.drawn_splits import RECORD
from agnncert.datasets.encoding import Encoding
from agnncert.datasets.encoding_columns import encoded
from agnncert.datasets.splits import MASKS, NODE_FRACTIONS, parts_by_id
from agnncert.datasets.table_roles import ClassNames, Columns, split_record, stated_part
from agnncert.datasets.table_store import reader_of
from agnncert.divisions.base import Division
from agnncert.errors import DatasetError, IdError
from agnncert.graphs import hashing
from agnncert.graphs.labels import CLASSES_COUNTED
from agnncert_large.partitioned.from_data import write_senders
from agnncert_large.partitioned.graph import NodeRange
from agnncert_large.partitioned.places import Place, spare_folder
from agnncert_large.partitioned.store import GraphDigest, Store
from agnncert_large.partitioned.writing import PartsWriter, rows_of_range

if TYPE_CHECKING:
    from agnncert_large.parquet import ParquetFiles


def write_tables(  # noqa: PLR0913, PLR0917 - one step after another of one function
    nodes: "ParquetFiles",
    edges: "ParquetFiles",
    place: Place,
    division: Division,
    columns: Columns,
    encoding: Encoding | None,
    features: Sequence[str],
    labelled: bool,
    name: str,
) -> None:
    """Writes tables of nodes and edges in parts.

    Args:
        nodes: The table of nodes.
        edges: The table of edges.
        place: Where; nothing may lie there.
        division: By whose groups.
        columns: Names of the columns.
        encoding: How columns become features; ``None`` if they are numbers.
        features: The columns of features.
        labelled: Whether nodes have classes.
        name: Name of the dataset.

    Raises:
        DatasetError: Something is missing, unknown or not a number.
        IdError: An id occurs twice.
    """
    with spare_folder(None) as spare:
        writer = PartsWriter(place, division, spare)
        store = Store.in_folder(spare)
        tables = _Tables(nodes, edges, columns, encoding, features, labelled)
        known = tables.store_ids(store, division)
        weighted = tables.store_arcs(store)
        store.sort_arcs(division, known.ascending)
        store.count_degrees(columns.directed)
        digest = GraphDigest.of(store, known.total)
        width = _write_nodes(writer, store, tables, known, digest)
        num_arcs = _write_arcs(writer, store, weighted)
        of_weights = [("edge_weight", "weight", "<f4", (num_arcs,))] if weighted else []
        digest.add_arcs(store, known.ascending, num_arcs, of_weights)
        graph = digest.finish(known.id_digest)
        values: dict[str, Any] = {"name": name}
        if known.classes is not None:
            values |= {"num_classes": len(known.classes.names), "class_names": known.classes.names}
            if known.classes.are_counted:
                values[CLASSES_COUNTED] = True
        record = split_record(nodes.head, columns) if labelled else None
        if record is not None:
            values[RECORD] = record
        if encoding is not None:
            values["encoding"] = encoding.to_json()
        value_type = {"edge_weight": {"type": "float32", "shape": []}} if weighted else {}
        writer.finish(
            {
                "nodes": known.total,
                "edges": num_arcs,
                "features": width,
                "x_type": "float32",
                "edge_values": value_type,
                "ids": "node_id",
                "id_digest": known.id_digest,
                "graph": graph,
                "values": values,
                "columns": ["y", *MASKS] if labelled else [],
            }
        )


class _Known(NamedTuple):
    """What the first pass over the nodes found out.

    Attributes:
        total: Number of nodes.
        ascending: Whether keys ascend with rows.
        id_digest: Digest of all ids.
        classes: Names of the classes, or ``None``.
    """

    total: int
    ascending: bool
    id_digest: str
    classes: ClassNames | None


@dataclass
class _Tables:
    """The two tables of a user."""

    nodes: "ParquetFiles"
    edges: "ParquetFiles"
    columns: Columns
    encoding: Encoding | None
    features: Sequence[str]
    labelled: bool
    _of_integers: bool = True

    def store_ids(self, store: Store, division: Division) -> _Known:
        """Stores row, id, key and group of every node; the group is -1 unless the division is node-centric."""
        total = len(self.nodes)
        if not total:
            raise self.nodes.head.error("there is a header but no row: a graph needs nodes.")
        kind = self._kind_of_ids()
        ids = _IdDigest(total, may_be_text=kind == "text")
        classes = ClassNames(str(self.columns.label), self.columns.classes) if self.labelled else None
        schema = {"row": "i64", "id": kind, "key": "i64", "grp": "i32"}

        def rows() -> Iterator[dict[str, Any]]:
            wanted = [self.columns.id, *([str(self.columns.label)] if self.labelled else [])]
            for table in self.nodes.pieces(wanted):
                if classes is not None:
                    classes.add(table)
                known = encode_ids(table.ids(self.columns.id))
                ids.add(known)
                key = hashing.keys_of_encoded(known)
                yield {
                    "row": np.arange(table.start, table.start + len(table)),
                    "id": _as_column(known, kind),
                    "key": key.view(np.int64),
                    "grp": _groups(division, key),
                }

        store.run("CREATE TABLE nodes AS SELECT * FROM reader", reader=reader_of(schema, rows()))
        self._refuse_repeated(store)
        ascending = store.one(
            "SELECT coalesce(bool_and(up), true) FROM (SELECT key > lag(key, 1, key - 1) OVER (ORDER BY row) "
            "AS up FROM nodes WHERE key > -9223372036854775808)"
        )
        self._of_integers = kind == "i64"
        if classes is not None:
            classes.finish(self.nodes.head)
        return _Known(total, bool(ascending), ids.finish(), classes)

    def _kind_of_ids(self) -> str:
        import pyarrow as pa

        stored = self.nodes.source.schema.field(self.columns.id).type
        return "i64" if pa.types.is_integer(stored) and stored != pa.uint64() else "text"

    def _refuse_repeated(self, store: Store) -> None:
        twice = store.rows(
            "SELECT id, min(row) + 1, max(row) + 1, count(*) OVER () FROM nodes GROUP BY id "
            "HAVING count(*) > 1 ORDER BY 2 LIMIT 3"
        )
        if twice:
            shown = [f'"{name}" (rows {first} and {last})' for name, first, last, _ in twice]
            raise self.nodes.head.error(
                f'{twice[0][3]} id(s) in column "{self.columns.id}" occur twice: {shortlist(shown)}. Ids must '
                "be unique."
            )
        same = store.rows("SELECT min(id), max(id) FROM nodes GROUP BY key HAVING count(*) > 1 LIMIT 1")
        if same:
            raise IdError(f"ids {same[0][0]!r} and {same[0][1]!r} have the same 64-bit key: rename one of them.")

    def store_arcs(self, store: Store) -> bool:
        """Stores every pair of joined nodes, in both directions unless edges are directed; returns whether they weigh.

        As in ``convert_parquet``, self-loops are left out, and a pair counts once.
        """
        for column in (self.columns.source, self.columns.target):
            self.edges.head.require(column)
        weight = self.columns.weight_in(self.edges.head)
        kind = "i64" if self._of_integers else "text"
        reader = reader_of({"number": "i64", "source": kind, "target": kind, "weight": "f32"}, self._ends(kind, weight))
        store.run(
            "CREATE TABLE ends AS SELECT e.number, e.source AS source_id, e.target AS target_id, a.row AS source, "
            "b.row AS target, e.weight FROM reader e LEFT JOIN nodes a ON e.source = a.id "
            "LEFT JOIN nodes b ON e.target = b.id",
            reader=reader,
        )
        self._refuse_unknown(store)
        ends = "source AS a, target AS b"
        if not self.columns.directed:
            ends = "least(source, target) AS a, greatest(source, target) AS b"
        store.run(
            f"CREATE TABLE pairs AS SELECT {ends}, min(weight) AS weight, max(weight) AS heaviest FROM ends "
            "WHERE source <> target GROUP BY 1, 2"
        )
        store.run("DROP TABLE ends")
        self._refuse_two_weights(store)
        back = "" if self.columns.directed else " UNION ALL SELECT b, a, weight FROM pairs"
        store.run(f"CREATE VIEW two_ways AS SELECT a AS source, b AS target, weight FROM pairs{back}")
        store.run(
            "CREATE TABLE arcs AS SELECT 0 AS number, source, target, weight, a.key AS source_key, "
            "b.key AS target_key, a.grp AS source_group, b.grp AS target_group FROM two_ways "
            "JOIN nodes a ON source = a.row JOIN nodes b ON target = b.row"
        )
        return weight is not None

    def _ends(self, kind: str, weight: str | None) -> Iterator[dict[str, Any]]:
        wanted = [self.columns.source, self.columns.target, *([weight] if weight else [])]
        for table in self.edges.pieces(wanted):
            ends = [encode_ids(table.ids(name)) for name in wanted[:2]]
            weights = table.numbers([weight], "weight")[:, 0] if weight else np.ones(len(table), np.float32)
            yield {
                "number": np.arange(table.start, table.start + len(table)),
                "source": _as_column(ends[0], kind),
                "target": _as_column(ends[1], kind),
                "weight": weights,
            }

    def _refuse_unknown(self, store: Store) -> None:
        unknown = store.rows(
            "SELECT CASE WHEN source IS NULL THEN source_id ELSE target_id END, number + 1, count(*) OVER () "
            "FROM ends WHERE source IS NULL OR target IS NULL ORDER BY number LIMIT 3"
        )
        if unknown:
            shown = [f'"{name}" (row {row})' for name, row, _ in unknown]
            raise self.edges.head.error(
                f"{unknown[0][2]} end(s) of edges are ids that are not in the table of nodes: {shortlist(shown)}. Add "
                "the nodes, or remove the edges."
            )

    def _refuse_two_weights(self, store: Store) -> None:
        found = store.rows("SELECT 1 FROM pairs WHERE weight <> heaviest LIMIT 1")
        if found:
            raise self.edges.head.error("an edge is there twice, with two weights: one pair has one weight.")

    def ranges(self, known: _Known, division: Division) -> "Iterator[_Rows]":
        """Yields the nodes again, with features, classes and parts, in ranges of rows."""
        pieces = _Pieces(self, known, division)
        return pieces.ranges()


@dataclass(frozen=True)
class _Rows:
    """Nodes of consecutive rows, by columns."""

    columns: dict[str, npt.NDArray[Any]]

    def __len__(self) -> int:
        return len(self.columns["key"])

    def part(self, rows: slice) -> "_Rows":
        return _Rows({name: values[rows] for name, values in self.columns.items()})

    @staticmethod
    def joined(parts: "Sequence[_Rows]") -> "_Rows":
        names = parts[0].columns
        return _Rows({name: np.concatenate([part.columns[name] for part in parts]) for name in names})


@dataclass
class _Pieces:
    """The table of nodes, read piece by piece, and cut into ranges of equal length."""

    tables: _Tables
    known: _Known
    division: Division
    waiting: list[_Rows] = field(default_factory=list)

    def ranges(self) -> Iterator[_Rows]:
        count = 0
        step = 0
        for piece in self._read():
            step = step or rows_of_range(piece.columns["x"].shape[1], 4)
            self.waiting.append(piece)
            count += len(piece)
            while count >= step:
                rows = _Rows.joined(self.waiting)
                yield rows.part(slice(0, step))
                self.waiting = [rows.part(slice(step, None))]
                count -= step
        if count:
            yield _Rows.joined(self.waiting)

    def _read(self) -> Iterator[_Rows]:
        columns, tables = self.tables.columns, self.tables
        inputs = list(tables.features)
        if tables.encoding is not None:
            inputs = [column.name for column in tables.encoding.nodes]
        others = [columns.id]
        if tables.labelled:
            others.append(str(columns.label))
            if columns.split in tables.nodes.head.columns:
                others.append(columns.split)
        exact = tables.encoding is not None
        for table in tables.nodes.pieces([*dict.fromkeys([*inputs, *others])], exact=exact):
            x = table.numbers(inputs, "feature") if not exact else encoded(table, tables.encoding.nodes)  # type: ignore[union-attr]
            ids = encode_ids(table.ids(columns.id))
            key = hashing.keys_of_encoded(ids)
            found: dict[str, npt.NDArray[Any]] = {
                "x": np.asarray(x, dtype=np.float32),
                "id": np.asarray(ids) if isinstance(ids, np.ndarray) else id_array(ids).astype(object),
                "key": key.view(np.int64),
                "grp": _groups(self.division, key),
            }
            if self.known.classes is not None:
                found |= self._classes(table, key)
            yield _Rows(found)

    def _classes(self, table: Table, key: hashing.Keys) -> dict[str, npt.NDArray[Any]]:
        columns = self.tables.columns
        assert self.known.classes is not None
        y = self.known.classes.rows(table)
        if columns.split in table.columns:
            part = stated_part(table, columns.split, torch.from_numpy(y)).numpy()
        else:
            part = parts_by_id([key], y, NODE_FRACTIONS, columns.seed)
        return {"y": y, **{mask: part == k for k, mask in enumerate(MASKS)}}


def _write_nodes(writer: PartsWriter, store: Store, tables: _Tables, known: _Known, digest: "GraphDigest") -> int:
    """Writes nodes, features and senders; returns the number of features."""
    first = 0
    width = 0
    for rows in tables.ranges(known, writer.division):
        columns = rows.columns
        x = columns["x"]
        if width not in (0, x.shape[1]):
            raise tables.nodes.head.error(f"lists of features differ in length, near row {first + 1}.")
        width = x.shape[1]
        ids = columns["id"]
        writer.nodes(
            NodeRange(
                first=first,
                key=columns["key"],
                id=ids,
                y=columns.get("y"),
                masks={name: columns[name] for name in MASKS if name in columns},
                **store.degrees(range(first, first + len(rows))),
            ),
            has_ids=True,
        )
        writer.features(first, x)
        if writer.division.divides_nodes:
            write_senders(writer, columns["grp"].astype(np.int64), first, columns["key"], x)
        digest.add_features(x, known.total)
        first += len(rows)
    return width


def _write_arcs(writer: PartsWriter, store: Store, weighted: bool) -> int:
    """Writes the arcs by group; returns how many there are."""
    total = 0
    last = -1
    for batch in store.batches("SELECT * FROM by_group"):
        column = {name: batch[name].to_numpy() for name in batch.schema.names}
        total += len(batch)
        cuts = np.flatnonzero(np.diff(column["grp"])) + 1
        for rows in np.split(np.arange(len(batch)), cuts):
            group = int(column["grp"][rows[0]])
            if group != last and last >= 0:
                writer.end_group("arcs", last)
                writer.end_group("inner", last)
            last = group
            inner = rows[column["target_group"][rows] == group]
            for kind, chosen in (("arcs", rows), ("inner", inner)):
                values = {"edge_weight": column["weight"][chosen]} if weighted else {}
                writer.arcs(kind, group, column["source"][chosen], column["target"][chosen], values)
    return total


class _IdDigest:
    """``id_digest`` of ids that come piece by piece: as numbers, unless there is another one among them."""

    def __init__(self, total: int, may_be_text: bool) -> None:
        self._may_be_text = may_be_text
        self._numbers = hashlib.sha256(f"agnncert-ids:int64:{total};".encode())
        self._texts = hashlib.sha256(f"agnncert-ids:text:{total};".encode())
        self._all_numbers = True

    def add(self, ids: Any) -> None:
        """Adds ids in canonical form."""
        if isinstance(ids, np.ndarray):
            self._numbers.update(ids.astype("<i8").tobytes())
        else:
            self._all_numbers = False
        if not self._may_be_text:
            return
        texts = [str(each).encode() for each in (ids.tolist() if isinstance(ids, np.ndarray) else ids)]
        self._texts.update(b"".join([len(text).to_bytes(8, "little") + text for text in texts]))

    def finish(self) -> str:
        """Returns the digest."""
        return (self._numbers if self._all_numbers else self._texts).hexdigest()


def _groups(division: Division, key: hashing.Keys) -> npt.NDArray[np.int32]:
    """Returns the group of every node; -1 unless the division is node-centric."""
    if not division.divides_nodes:
        return np.full(len(key), -1, dtype=np.int32)
    settings = cast(Any, division)
    return hashing.node_groups(key, settings.num_groups, settings.hash).astype(np.int32)


def _as_column(ids: Any, kind: str) -> Any:
    """Returns ids in canonical form as they are stored: numbers, or text if they may be that."""
    import pyarrow as pa

    if kind == "text":
        return pa.array([str(each) for each in (ids.tolist() if isinstance(ids, np.ndarray) else ids)], pa.string())
    if isinstance(ids, np.ndarray):
        return ids
    raise DatasetError(
        f"an end of an edge is {next(each for each in ids if isinstance(each, str))!r:.60}, which is not in the table "
        "of nodes: its ids are whole numbers. Add the node, or remove the edge."
    )
