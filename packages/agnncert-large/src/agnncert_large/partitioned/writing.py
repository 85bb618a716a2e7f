"""``PartsWriter``: writes the parts of a graph, in the order in which they come, and its manifest at the end."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from agnncert.divisions.base import Division
from agnncert.errors import GraphError
from agnncert_large.partitioned.graph import (
    FORMAT,
    MANIFEST,
    VERSION,
    IntArray,
    NodeRange,
    Part,
    _parquet,
    division_to_json,
    open_partitioned,
    seal,
)
from agnncert_large.partitioned.places import Place

if TYPE_CHECKING:
    import pyarrow as pa

PART_BYTES = 2**26  # of a part, about: a worker holds one at a time
ARCS_OF_PART = 2**22
ROWS_OF_RANGE = 2**18  # at most
LEAST_ROWS = 2**10


def rows_of_range(num_features: int, width: int) -> int:
    """Returns how many nodes a range has.

    Args:
        num_features: Number of features.
        width: Bytes of one.
    """
    fitting = PART_BYTES // max(1, num_features * width)
    return int(min(ROWS_OF_RANGE, max(LEAST_ROWS, fitting)))


class GroupFile:
    """The parts of one group, written one after the other.

    Args:
        writer: Where they go.
        folder: Their folder in the place, such as ``arcs/group=00003``.
        most: Rows of a part, about.
    """

    def __init__(self, writer: "PartsWriter", folder: str, most: int) -> None:
        self._writer = writer
        self._folder = folder
        self._most = most
        self._draft = writer.spare / f"{folder.replace('/', '-')}.parquet"
        self._parquet: Any = None
        self._rows = 0
        self._bounds = (0, 0)
        self.parts: list[Part] = []

    def append(self, table: "pa.Table", first: int, last: int) -> None:
        """Appends rows.

        Args:
            table: The rows.
            first: Smallest row number that they are about.
            last: The largest.
        """
        if self._parquet is None:
            self._parquet = _parquet().ParquetWriter(self._draft, table.schema, **_COMPRESSED)
            self._rows = 0
            self._bounds = (first, last)
        self._parquet.write_table(table)
        self._rows += len(table)
        self._bounds = (self._bounds[0], last)
        if self._rows >= self._most:
            self.close()

    def close(self) -> None:
        """Ends the part that is being written."""
        if self._parquet is None:
            return
        self._parquet.close()
        self._parquet = None
        content = self._draft.read_bytes()
        self._draft.unlink()
        name = f"{self._folder}/part={len(self.parts):05d}.parquet"
        self._writer.place.write(name, content)
        sha256 = hashlib.sha256(content).hexdigest()
        self.parts.append(Part(name, len(content), sha256, self._rows, *self._bounds))


_COMPRESSED: Mapping[str, Any] = {
    "compression": {"source": "zstd", "target": "zstd", "row": "zstd", "key": "zstd"},
    "use_dictionary": False,
}


class PartsWriter:
    """Writes the parts of a graph.

    Args:
        place: Where. There must be no graph yet.
        division: By whose groups.
        spare: A folder of this machine for what is being written.

    Raises:
        GraphError: Something lies there already.
        DivisionError: Graphs cannot be stored by the groups of this division.
    """

    def __init__(self, place: Place, division: Division, spare: Path) -> None:
        self.stated_division = division_to_json(division)
        self.place = place
        self.division = division
        self.spare = spare
        if place.sizes():
            raise GraphError(f"{place} exists already: choose another place, or delete it first.")
        self._nodes: list[Part] = []
        self._features: list[Part] = []
        self._files: dict[tuple[str, int], GroupFile] = {}
        self._edge_values: dict[str, dict[str, Any]] = {}
        self._has_ids = True

    def nodes(self, nodes: NodeRange, has_ids: bool) -> None:
        """Writes the nodes of the next range."""
        import pyarrow as pa

        columns: dict[str, Any] = {
            "key": nodes.key,
            "degree": nodes.degree,
            "incoming": nodes.incoming,
            "outgoing": nodes.outgoing,
        }
        if has_ids:
            is_text = nodes.id.dtype != np.int64
            columns["id"] = pa.array([str(each) for each in nodes.id]) if is_text else nodes.id
        if nodes.y is not None:
            columns["y"] = nodes.y
        columns |= nodes.masks
        name = f"nodes/range={len(self._nodes):05d}.parquet"
        self._nodes.append(self._whole(name, pa.table(columns), nodes.first, "zstd"))

    def features(self, first: int, x: npt.NDArray[Any]) -> None:
        """Writes the features of the next range."""
        import pyarrow as pa

        name = f"features/range={len(self._features):05d}.parquet"
        self._features.append(self._whole(name, pa.table({"x": rows_of_bytes(x)}), first, "none"))

    def _whole(self, name: str, table: "pa.Table", first: int, compression: str) -> Part:
        import pyarrow as pa

        content = pa.BufferOutputStream()
        _parquet().write_table(table, content, compression=compression, use_dictionary=False)
        blob = content.getvalue().to_pybytes()
        self.place.write(name, blob)
        sha256 = hashlib.sha256(blob).hexdigest()
        return Part(name, len(blob), sha256, len(table), first, first + len(table) - 1)

    def arcs(
        self,
        kind: str,
        group: int,
        source: IntArray,
        target: IntArray,
        values: Mapping[str, npt.NDArray[Any]],
    ) -> None:
        """Appends arcs to a group; they come by target, and in canonical order at each.

        Args:
            kind: ``"arcs"`` or ``"inner"``.
            group: The group.
            source: Rows that they come from.
            target: Rows that they lead to.
            values: What they carry, by name.
        """
        import pyarrow as pa

        if not len(source):
            return
        columns: dict[str, Any] = {"source": source, "target": target}
        columns |= {name: rows_of_bytes(rows) for name, rows in values.items()}
        file = self._file(kind, group, ARCS_OF_PART)
        file.append(pa.table(columns), int(target[0]), int(target[-1]))

    def senders(self, group: int, row: IntArray, key: IntArray, x: npt.NDArray[Any]) -> None:
        """Appends nodes to a group of a node-centric division; they come by row."""
        import pyarrow as pa

        if not len(row):
            return
        table = pa.table({"row": row, "key": key, "x": rows_of_bytes(x)})
        most = max(LEAST_ROWS, PART_BYTES // max(1, x.shape[1] * x.itemsize))
        self._file("senders", group, most).append(table, int(row[0]), int(row[-1]))

    def _file(self, kind: str, group: int, most: int) -> GroupFile:
        key = (kind, group)
        if key not in self._files:
            self._files[key] = GroupFile(self, f"{kind}/group={group:05d}", most)
        return self._files[key]

    def end_group(self, kind: str, group: int) -> None:
        """Ends the parts of a group to which nothing more is appended."""
        if (kind, group) in self._files:
            self._files[kind, group].close()

    def finish(self, facts: Mapping[str, Any]) -> None:
        """Writes the manifest, without which there is no graph.

        Args:
            facts: Its entries, but for the division and the parts.
        """
        num_groups = self.division.num_groups
        by_kind: dict[str, list[list[dict[str, Any]]]] = {}
        for kind in ("arcs", "inner", "senders"):
            by_kind[kind] = [[] for _ in range(num_groups)]
        for (kind, group), file in self._files.items():
            file.close()
            by_kind[kind][group] = [asdict(part) for part in file.parts]
        manifest = {
            "format": FORMAT,
            "version": VERSION,
            "division": self.stated_division,
            **facts,
            "ranges": [asdict(part) for part in self._nodes],
            "feature_ranges": [asdict(part) for part in self._features],
            **by_kind,
        }
        text = json.dumps(manifest | {"sha256": seal(manifest)}, indent=1)
        self.place.write(MANIFEST, text.encode(), durable=True)
        open_partitioned(self.place)


def rows_of_bytes(rows: npt.NDArray[Any]) -> "pa.FixedSizeBinaryArray":
    """Returns rows as a column of bytes, little-endian."""
    import pyarrow as pa

    count = len(rows)
    flat = np.ascontiguousarray(rows.reshape(count, -1), dtype=rows.dtype.newbyteorder("<"))
    width = flat.shape[1] * flat.itemsize
    return pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(width), count, [None, pa.py_buffer(flat.reshape(-1).view(np.uint8))]
    )
