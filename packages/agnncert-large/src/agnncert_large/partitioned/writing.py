"""``PartsWriter``: writes the parts of a graph, in the order in which they come, and its manifest at the end."""

import hashlib
import json
from collections.abc import Iterator, Mapping
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
ARCS_OF_PART = 2**19
ROWS_OF_RANGE = 2**18  # at most
LEAST_ROWS = 2**10
HELD = 2**27  # bytes that wait in memory for their parts to be full; then all of them go to this machine's disk


def rows_of_range(num_features: int, width: int) -> int:
    """Returns how many nodes a range has.

    Args:
        num_features: Number of features.
        width: Bytes of one.
    """
    fitting = PART_BYTES // max(1, num_features * width)
    return int(min(ROWS_OF_RANGE, max(LEAST_ROWS, fitting)))


class GroupFile:
    """The parts of one group, written one after the other. Rows of a part wait in memory or in a draft on the disk.

    Args:
        writer: Where they go.
        folder: Their folder in the place, such as ``arcs/group=00003``.
        most: Rows of a part, about.
    """

    def __init__(self, writer: "PartsWriter", folder: str, most: int) -> None:
        self._writer = writer
        self._folder = folder
        self._most = most
        self._draft = writer.spare / f"{folder.replace('/', '-')}.arrows"
        self._waiting: list[pa.Table] = []
        self._rows = 0
        self._bounds = (0, 0)
        self.held = 0
        self.parts: list[Part] = []

    def append(self, table: "pa.Table", first: int, last: int) -> None:
        """Appends rows.

        Args:
            table: The rows.
            first: Smallest row number that they are about.
            last: The largest.
        """
        self._bounds = (self._bounds[0] if self._rows else first, last)
        self._waiting.append(table)
        self._rows += len(table)
        self.held += table.nbytes + _OF_TABLE
        if self._rows >= self._most:
            self.close()

    def spill(self) -> None:
        """Moves what waits in memory to the disk. The draft is open only as long as that takes."""
        import pyarrow as pa

        if self._waiting:
            with self._draft.open("ab") as file, pa.ipc.new_stream(file, self._waiting[0].schema) as stream:
                for table in self._waiting:
                    stream.write_table(table)
        self._waiting = []
        self.held = 0

    def close(self) -> None:
        """Ends the part that is being written."""
        import pyarrow as pa

        if not self._rows:
            return
        table = pa.concat_tables([*self._drafted(), *self._waiting])
        self._draft.unlink(missing_ok=True)
        self._waiting, self.held = [], 0
        name = f"{self._folder}/part={len(self.parts):05d}.parquet"
        self.parts.append(self._writer.part(name, table, self._bounds, _COMPRESSED))
        self._rows = 0

    def _drafted(self) -> Iterator["pa.Table"]:
        """Yields what was moved to the disk."""
        import pyarrow as pa

        if not self._draft.exists():
            return
        with pa.OSFile(str(self._draft)) as file:
            while file.tell() < file.size():
                yield pa.ipc.open_stream(file).read_all()


_OF_TABLE = 2_000  # bytes of a table without its rows, about
_COMPRESSED: Mapping[str, str] = {"source": "zstd", "target": "zstd", "row": "zstd", "key": "zstd"}


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
        self._held = 0
        self._arcs_on_ranges = _ArcsOnRanges()

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
        return self.part(name, table, (first, first + len(table) - 1), compression)

    def part(self, name: str, table: "pa.Table", bounds: tuple[int, int], compression: Any) -> Part:
        """Writes a part.

        Args:
            name: Its name in the place.
            table: Its rows.
            bounds: Smallest and largest row number that it is about.
            compression: Of its columns.
        """
        import pyarrow as pa

        content = pa.BufferOutputStream()
        _parquet().write_table(table, content, compression=compression, use_dictionary=False)
        blob = content.getvalue().to_pybytes()
        self.place.write(name, blob)
        return Part(name, len(blob), hashlib.sha256(blob).hexdigest(), len(table), *bounds)

    def arcs(
        self,
        kind: str,
        group: int,
        source: IntArray,
        target: IntArray,
        values: Mapping[str, npt.NDArray[Any]],
    ) -> None:
        """Appends arcs to a group; they come by target, and in canonical order at each.

        All nodes are written before, and the arcs of a group before those of the next.

        Args:
            kind: ``"arcs"`` or ``"inner"``.
            group: The group.
            source: Rows that they come from.
            target: Rows that they lead to.
            values: What they carry, by name.
        """
        import pyarrow as pa

        for first in range(0, len(source), ARCS_OF_PART):
            some = slice(first, first + ARCS_OF_PART)
            columns: dict[str, Any] = {"source": source[some], "target": target[some]}
            columns |= {name: rows_of_bytes(rows[some]) for name, rows in values.items()}
            bounds = (int(target[some][0]), int(target[some][-1]))
            self._append(kind, group, ARCS_OF_PART, pa.table(columns), bounds)
        if kind == "arcs" and len(source):
            self._arcs_on_ranges.add(group, np.searchsorted(target, [part.last for part in self._nodes], side="right"))

    def senders(self, group: int, row: IntArray, key: IntArray, x: npt.NDArray[Any]) -> None:
        """Appends nodes to a group of a node-centric division; they come by row."""
        import pyarrow as pa

        if not len(row):
            return
        table = pa.table({"row": row, "key": key, "x": rows_of_bytes(x)})
        most = max(LEAST_ROWS, PART_BYTES // max(1, x.shape[1] * x.itemsize))
        self._append("senders", group, most, table, (int(row[0]), int(row[-1])))

    def _append(self, kind: str, group: int, most: int, table: "pa.Table", bounds: tuple[int, int]) -> None:
        key = (kind, group)
        if key not in self._files:
            self._files[key] = GroupFile(self, f"{kind}/group={group:05d}", most)
        file = self._files[key]
        self._held -= file.held
        file.append(table, *bounds)
        self._held += file.held
        if self._held > HELD:
            for each in self._files.values():
                each.spill()
            self._held = 0

    def end_group(self, kind: str, group: int) -> None:
        """Ends the parts of a group to which nothing more is appended."""
        file = self._files.get((kind, group))
        if file is not None:
            self._held -= file.held
            file.close()

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
            **self._arcs_on_ranges.finished(len(self._nodes)),
            **by_kind,
        }
        text = json.dumps(manifest | {"sha256": seal(manifest)}, indent=1)
        self.place.write(MANIFEST, text.encode(), durable=True)
        open_partitioned(self.place)


class _ArcsOnRanges:
    """How many arcs lead to each range of nodes, and the most of them that are in one group."""

    def __init__(self) -> None:
        self._group = -1
        self._of_group: Any = np.zeros(1, dtype=np.int64)
        self._total: Any = 0
        self._most: Any = 0

    def add(self, group: int, ends: npt.NDArray[Any]) -> None:
        """Adds arcs of a group, of which this many lead to the first ranges."""
        if group != self._group:
            self._end_group()
            self._group = group
        self._of_group = self._of_group + np.diff(ends, prepend=0)

    def _end_group(self) -> None:
        self._total = self._total + self._of_group
        self._most = np.maximum(self._most, self._of_group)
        self._of_group = np.zeros_like(self._of_group)

    def finished(self, num_ranges: int) -> dict[str, list[int]]:
        """Returns the entries of the manifest."""
        self._end_group()
        zero = np.zeros(num_ranges, dtype=np.int64)
        return {"arcs_on": (zero + self._total).tolist(), "most_arcs_on": (zero + self._most).tolist()}


def rows_of_bytes(rows: npt.NDArray[Any]) -> "pa.FixedSizeBinaryArray":
    """Returns rows as a column of bytes, little-endian."""
    import pyarrow as pa

    count = len(rows)
    flat = np.ascontiguousarray(rows.reshape(count, -1), dtype=rows.dtype.newbyteorder("<"))
    width = flat.shape[1] * flat.itemsize
    return pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(width), count, [None, pa.py_buffer(flat.reshape(-1).view(np.uint8))]
    )
