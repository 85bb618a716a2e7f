"""``Store``: a database of DuckDB on this machine, which joins and sorts what does not fit into memory."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from agnncert.datasets.table_store import TableStore, reader_of
from agnncert.divisions.base import Division
from agnncert.graphs import hashing

MEMORY = "2GB"  # of DuckDB; what does not fit goes to the disk


@dataclass
class Store(TableStore):
    """A database of DuckDB in a file of this machine."""

    @classmethod
    def in_folder(cls, spare: Path) -> "Store":
        """Opens a new one in a folder."""
        store = cls.connected(str(spare / "tables.duckdb"), MEMORY, str(spare / "sorting"), "writing tables in parts")
        store.run("SET preserve_insertion_order = false")
        return store

    def sort_arcs(self, division: Division, ascending: bool) -> None:
        """Gives every arc its group."""
        by = "source" if ascending else "source_key"
        self.run(f"CREATE VIEW in_order AS SELECT * FROM arcs ORDER BY target, {by}")
        if division.divides_nodes:
            self.run("CREATE VIEW grouped AS SELECT *, source_group AS grp FROM arcs")
        else:
            reader = reader_of(
                {"source": "i64", "target": "i64", "source_key": "i64", "weight": "f32", "grp": "i32"},
                self._with_edge_groups(division),
            )
            self.run("CREATE TABLE grouped AS SELECT *, -1 AS target_group FROM reader", reader=reader)
        self.run(
            "CREATE VIEW by_group AS SELECT grp, target_group, source, target, weight FROM grouped "
            f"ORDER BY grp, target, {by}"
        )

    def _with_edge_groups(self, division: Division) -> Iterator[dict[str, Any]]:
        settings = cast(Any, division)
        for batch in self.batches("SELECT source, target, source_key, target_key, weight FROM arcs"):
            keys = [batch[name].to_numpy().view(np.uint64) for name in ("source_key", "target_key")]
            groups = hashing.edge_groups(keys[0], keys[1], settings.num_groups, settings.hash)
            named = {name: batch[name] for name in ("source", "target", "source_key", "weight")}
            yield {**named, "grp": groups.astype(np.int32)}

    def count_degrees(self, directed: bool) -> None:
        """Counts the arcs and the distinct neighbours of every node."""
        self.run("CREATE TABLE incoming AS SELECT target AS row, count(*) AS n FROM arcs GROUP BY 1 ORDER BY 1")
        if not directed:
            self.run("CREATE VIEW outgoing AS SELECT * FROM incoming")
            self.run("CREATE VIEW degree AS SELECT * FROM incoming")
            return
        self.run("CREATE TABLE outgoing AS SELECT source AS row, count(*) AS n FROM arcs GROUP BY 1 ORDER BY 1")
        self.run(
            "CREATE TABLE degree AS SELECT a AS row, count(*) AS n FROM (SELECT source AS a, target AS b "
            "FROM arcs UNION SELECT target, source FROM arcs) GROUP BY 1 ORDER BY 1"
        )

    def degrees(self, rows: range) -> dict[str, npt.NDArray[np.int64]]:
        """Returns degree and numbers of arcs of the nodes of some rows; an open question would hold memory."""
        some = f"row BETWEEN {rows.start} AND {rows.stop - 1}"
        tables = [f"(SELECT * FROM {name} WHERE {some})" for name in ("nodes", "degree", "incoming", "outgoing")]
        found = self.table(
            "SELECT coalesce(d.n, 0) AS degree, coalesce(i.n, 0) AS incoming, coalesce(o.n, 0) AS outgoing "
            f"FROM {tables[0]} nodes LEFT JOIN {tables[1]} d USING (row) LEFT JOIN {tables[2]} i USING (row) "
            f"LEFT JOIN {tables[3]} o USING (row) ORDER BY row"
        )
        return {name: found[name].to_numpy().astype(np.int64) for name in found.column_names}


@dataclass
class GraphDigest:
    """The digest of the graph in memory (``graphs/digest``), of which no part has to be held."""

    digest: Any
    begun: bool = False

    @classmethod
    def of(cls, store: Store, total: int) -> "GraphDigest":
        """Begins with the keys of all nodes."""
        made = cls(hashlib.sha256())
        made._array("node_key", "<i8", (total,))
        for batch in store.batches("SELECT key FROM nodes ORDER BY row"):
            made.digest.update(np.ascontiguousarray(batch["key"].to_numpy()).data)
        return made

    def _array(self, name: str, kind: str, shape: tuple[int, ...]) -> None:
        self.digest.update(f"{name}:{kind}:{shape};".encode())

    def add_features(self, x: npt.NDArray[Any], total: int) -> None:
        """Adds the features of the next range."""
        if not self.begun:
            self._array("x", x.dtype.str, (total, x.shape[1]))
            self.begun = True
        self.digest.update(np.ascontiguousarray(x).data)

    def add_arcs(
        self,
        store: Store,
        ascending: bool,
        num_arcs: int,
        values: Sequence[tuple[str, str, str, tuple[int, ...]]],
    ) -> None:
        """Adds all arcs in canonical order, with what they carry.

        Args:
            store: It has the table ``arcs``.
            ascending: Whether keys ascend with rows.
            num_arcs: Number of arcs.
            values: What arcs carry: name, column of the table, type and shape.
        """
        by = "target, source" if ascending else "target_key, source_key"
        columns = ", ".join(["source", "target", *(column for _, column, _, _ in values)])
        store.run("SET preserve_insertion_order = true")
        store.run(f"CREATE TABLE canonical AS SELECT {columns} FROM arcs ORDER BY {by}, number")
        self._array("edge_index", "<i8", (2, num_arcs))
        for column in ("source", "target"):
            self._column(store, column)
        for name, column, kind, shape in values:
            self._array(name, kind, shape)
            self._column(store, column)

    def _column(self, store: Store, name: str) -> None:
        for batch in store.batches(f"SELECT {name} FROM canonical"):
            column = batch[name]
            if str(column.type) == "binary":
                self.digest.update(b"".join(column.to_pylist()))
            else:
                self.digest.update(np.ascontiguousarray(column.to_numpy()).data)

    def finish(self, id_digest: str) -> str:
        """Adds the digest of the ids; returns that of the graph."""
        self.digest.update(f"ids:1;{id_digest}".encode())
        return str(self.digest.hexdigest())
