"""``PartitionedGraph``: a graph in parts, by the groups of a division, of which nobody holds more than he needs.

A place holds these files, all of them Parquet but the manifest::

    manifest.json                        division, counts, digests and sizes of all parts
    nodes/range=00003.parquet            key, id, class, split, degree of the nodes of a range
    features/range=00003.parquet         their features: the bytes of each row, little-endian
    arcs/group=00017/part=00000.parquet  source, target (row numbers) and values of the arcs of a group,
                                         by target, and for each target in canonical order
    inner/group=00017/…                  node-centric: the arcs whose target is in the group, too
    senders/group=00017/…                node-centric: row, key and features of the nodes of a group

A part is read as a whole and compared with its digest.
"""

import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch_geometric.data import Data

from agnncert.certificates.file import Contents
from agnncert.certificates.ids import id_array
from agnncert.certificates.voting_rule import VotingRule
from agnncert.defence import CertifyOptions, Findings, FitOptions, RecomputeOptions
from agnncert.divisions.base import Division
from agnncert.divisions.edge import EdgeCentric
from agnncert.divisions.node import GatedNodeCentric, NodeCentric
from agnncert.errors import DivisionError, GraphError, missing
from agnncert.graphs.in_parts import GraphInParts
from agnncert.storage import parse_json
from agnncert_large.partitioned.places import Place

if TYPE_CHECKING:
    import pyarrow as pa

    from agnncert_large.partitioned.certificate import StoredCertificate

FORMAT = "agnncert-parts"
VERSION = 1
MANIFEST = "manifest.json"
MASKS = ("train_mask", "val_mask", "test_mask")
_LONGEST_MANIFEST = 1_000_000_000

IntArray = npt.NDArray[np.int64]
KINDS: Mapping[str, type[Division]] = {
    "NodeCentric": NodeCentric,
    "GatedNodeCentric": GatedNodeCentric,
    "EdgeCentric": EdgeCentric,
}


@dataclass(frozen=True)
class Part:
    """A file of a place.

    Attributes:
        file: Its name in the place.
        bytes: Its size.
        sha256: Its digest.
        rows: Number of rows.
        first: Smallest row number that it is about: of targets, senders or nodes.
        last: The largest.
    """

    file: str
    bytes: int
    sha256: str
    rows: int
    first: int
    last: int


@dataclass(frozen=True)
class Arcs:
    """Arcs of one group, in canonical order at each target.

    Attributes:
        source: Row of the node that each arc comes from.
        target: Row of the node that it leads to.
        values: ``edge_weight`` and ``edge_attr``, as far as the graph has them.
    """

    source: IntArray
    target: IntArray
    values: dict[str, Tensor]

    def __len__(self) -> int:
        return len(self.source)

    def select(self, chosen: npt.NDArray[Any]) -> "Arcs":
        """Returns some arcs."""
        some = torch.from_numpy(np.flatnonzero(chosen) if chosen.dtype == bool else chosen)
        values = {name: value.index_select(0, some) for name, value in self.values.items()}
        return Arcs(self.source[chosen], self.target[chosen], values)

    @classmethod
    def joined(cls, parts: "Sequence[Arcs]") -> "Arcs":
        """Returns arcs one after the other."""
        values = {name: torch.cat([part.values[name] for part in parts]) for name in parts[0].values}
        source = np.concatenate([part.source for part in parts])
        return cls(source, np.concatenate([part.target for part in parts]), values)


@dataclass(frozen=True)
class Senders:
    """The nodes of one group of a node-centric division.

    Attributes:
        row: Their rows, ascending.
        key: Their keys.
        x: Their features.
    """

    row: IntArray
    key: IntArray
    x: Tensor


@dataclass(frozen=True)
class NodeRange:
    """The nodes of a range of rows, without their features.

    Attributes:
        first: Row of the first.
        key: 64-bit key of each.
        id: Id of each in canonical form; rows if the graph has no ids.
        degree: Number of distinct neighbours of each.
        incoming: Number of arcs that lead to each.
        outgoing: Number of arcs that leave each.
        y: Class of each, -1 where unknown; ``None`` if there are none.
        masks: Parts of the split, by name.
    """

    first: int
    key: IntArray
    id: npt.NDArray[Any]
    degree: IntArray
    incoming: IntArray
    outgoing: IntArray
    y: IntArray | None
    masks: dict[str, npt.NDArray[np.bool_]]

    def __len__(self) -> int:
        return len(self.key)

    @property
    def row(self) -> IntArray:
        """Row of each node."""
        return np.arange(self.first, self.first + len(self))


@dataclass(frozen=True)
class PartitionedGraph(GraphInParts):
    """A graph in parts by the groups of a division. :func:`open_graph` opens one.

    ``ac.certify``, ``ac.verify`` and ``ac.fit`` take it in place of a ``Data``.

    Attributes:
        place: Where it lies.
        manifest: What is stored.
    """

    place: Place
    manifest: Mapping[str, Any]

    def __repr__(self) -> str:
        return (
            f"PartitionedGraph({self.num_nodes:,} nodes, {self.num_edges:,} directed edges, "
            f"{self.division}, {self.place})"
        )

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return int(self.manifest["nodes"])

    @property
    def num_edges(self) -> int:
        """Number of directed edges."""
        return int(self.manifest["edges"])

    @property
    def num_features(self) -> int:
        """Number of features."""
        return int(self.manifest["features"])

    @property
    def num_classes(self) -> int:
        """Number of classes; 0 if nodes have none."""
        return int(self.manifest["values"].get("num_classes", 0))

    @property
    def class_names(self) -> list[str] | None:
        """Names of the classes, if they have some."""
        names: list[str] | None = self.manifest["values"].get("class_names")
        return names

    @property
    def x_type(self) -> torch.dtype:
        """Type of the features."""
        kind: torch.dtype = getattr(torch, self.manifest["x_type"])
        return kind

    @property
    def id_kind(self) -> str:
        """``"node_id"``, or ``"row"`` if row numbers are the ids."""
        return str(self.manifest["ids"])

    @property
    def digest(self) -> str:
        """sha256 of the graph, which is that of the same graph in memory."""
        return str(self.manifest["graph"])

    @cached_property
    def division(self) -> Division:
        """By whose groups it is stored."""
        return division_of(self.manifest["division"])

    @property
    def by_sender(self) -> bool:
        """Whether only the nodes of a group send in its subgraph."""
        return self.division.divides_nodes

    @cached_property
    def ranges(self) -> list[Part]:
        """Parts with nodes, by rows."""
        return [Part(**entry) for entry in self.manifest["ranges"]]

    @cached_property
    def feature_ranges(self) -> list[Part]:
        """Parts with features, for the same rows."""
        return [Part(**entry) for entry in self.manifest["feature_ranges"]]

    @property
    def arcs_on(self) -> list[int]:
        """Number of arcs that lead to each range."""
        counts: list[int] = self.manifest["arcs_on"]
        return counts

    @property
    def most_arcs_on(self) -> list[int]:
        """Number of arcs of one group that lead to each range, of the group with the most there."""
        counts: list[int] = self.manifest["most_arcs_on"]
        return counts

    def parts_of(self, kind: str, group: int) -> list[Part]:
        """Returns the parts of a group: its ``arcs``, its ``inner`` arcs or its ``senders``."""
        return [Part(**entry) for entry in self.manifest[kind][group]]

    @property
    def train_mask(self) -> Tensor:
        """Whether each node is in the training part."""
        return self.mask("train_mask")

    @property
    def val_mask(self) -> Tensor:
        """Whether each node is in the validation part."""
        return self.mask("val_mask")

    @property
    def test_mask(self) -> Tensor:
        """Whether each node is in the test part."""
        return self.mask("test_mask")

    def mask(self, name: str) -> Tensor:
        """Returns a part of the split, a byte for each node."""
        if name not in self.manifest["columns"]:
            raise GraphError(f"{self.place} has no {name}: it was written from data without a split.")
        parts = [self.nodes(k).masks[name] for k in range(len(self.ranges))]
        return torch.from_numpy(np.concatenate(parts))

    def nodes(self, number: int) -> NodeRange:
        """Reads the nodes of a range."""
        part = self.ranges[number]
        table = self._table(part)
        columns = {name: table[name] for name in table.column_names}
        first = part.first
        ids: npt.NDArray[Any] = np.arange(first, first + part.rows)
        if "id" in columns:
            ids = id_array(_ids(columns["id"]))
        return NodeRange(
            first=first,
            key=_numbers(columns["key"]),
            id=ids,
            degree=_numbers(columns["degree"]),
            incoming=_numbers(columns["incoming"]),
            outgoing=_numbers(columns["outgoing"]),
            y=_numbers(columns["y"]) if "y" in columns else None,
            masks={name: _numbers(columns[name]) for name in MASKS if name in columns},
        )

    def features(self, number: int) -> Tensor:
        """Reads the features of a range."""
        return self._rows_of_bytes(self._table(self.feature_ranges[number])["x"])

    def senders(self, group: int) -> Senders:
        """Reads the nodes of a group of a node-centric division."""
        tables = [self._table(part) for part in self.parts_of("senders", group)]
        if not tables:
            empty = np.zeros(0, dtype=np.int64)
            return Senders(empty, empty, torch.zeros(0, self.num_features, dtype=self.x_type))
        return Senders(
            row=np.concatenate([_numbers(table["row"]) for table in tables]),
            key=np.concatenate([_numbers(table["key"]) for table in tables]),
            x=torch.cat([self._rows_of_bytes(table["x"]) for table in tables]),
        )

    def arcs(self, group: int, targets: range | None = None, kind: str = "arcs") -> Arcs:
        """Reads the arcs of a group.

        Args:
            group: The group.
            targets: Rows of the targets whose arcs are wanted. Defaults to all.
            kind: ``"arcs"``, or ``"inner"`` for the arcs whose target is in the group, too.
        """
        found = [self._no_arcs()]
        for part in self.parts_of(kind, group):
            if targets is not None and (part.last < targets.start or part.first >= targets.stop):
                continue
            arcs = self._arcs_in(self._table(part))
            self._require_order(part, arcs.target)
            if targets is not None:
                begin, end = np.searchsorted(arcs.target, [targets.start, targets.stop])
                arcs = arcs.select(np.arange(begin, end))
            found.append(arcs)
        return Arcs.joined(found)

    def _require_order(self, part: Part, target: IntArray) -> None:
        """Refuses arcs that a reader of some targets would not find where it looks."""
        if (target[1:] < target[:-1]).any() or target[0] != part.first or target[-1] != part.last:
            raise GraphError(
                f"{self.place}/{part.file} does not lead to nodes {part.first} to {part.last} in order, as the "
                "manifest says: write the graph again."
            )

    def _no_arcs(self) -> Arcs:
        values = {}
        for name, stated in self.manifest["edge_values"].items():
            values[name] = torch.zeros(0, *stated["shape"], dtype=getattr(torch, stated["type"]))
        empty = np.zeros(0, dtype=np.int64)
        return Arcs(empty, empty, values)

    def _arcs_in(self, table: "pa.Table") -> Arcs:
        values = {}
        for name, stated in self.manifest["edge_values"].items():
            content = _bytes_of(table[name])
            kind = np.dtype(stated["type"]).newbyteorder("<")
            rows = np.frombuffer(content, dtype=kind).reshape(len(table), *stated["shape"])
            values[name] = torch.from_numpy(rows.copy())
        return Arcs(_numbers(table["source"]), _numbers(table["target"]), values)

    def _rows_of_bytes(self, column: Any) -> Tensor:
        kind = np.dtype(self.manifest["x_type"]).newbyteorder("<")
        rows = np.frombuffer(_bytes_of(column), dtype=kind)
        return torch.from_numpy(rows.reshape(len(column), self.num_features).copy())

    def _table(self, part: Part) -> "pa.Table":
        """Reads a part, which must be as the manifest says."""
        pq = _parquet()
        try:
            content = self.place.read(part.file)
        except FileNotFoundError:
            raise GraphError(f"{self.place}/{part.file} is missing: the graph is incomplete. Write it again.") from None
        if len(content) != part.bytes or hashlib.sha256(content).hexdigest() != part.sha256:
            raise GraphError(
                f"{self.place}/{part.file} was altered or damaged: its content does not match the "
                "digest in the manifest. Write the graph again."
            )
        return pq.ParquetFile(io.BytesIO(content)).read(use_threads=False)

    def certify(
        self,
        model: Any,
        division: Division,
        targets: Any,
        voting_rule: VotingRule | None,
        options: CertifyOptions,
    ) -> "StoredCertificate":
        """Certifies some of its nodes, as ``ac.certify`` asks."""
        from agnncert_large.partitioned.certify import certify_parts

        return certify_parts(model, self, division, targets, voting_rule, options)

    def recompute(self, contents: Contents, model: Any, division: Division, options: RecomputeOptions) -> Findings:
        """Compares a certificate file with this graph, as ``ac.verify`` asks."""
        from agnncert_large.partitioned.recompute import recompute_parts

        return recompute_parts(contents, self, model, division, options)

    def fit(self, model: Any, division: Division, options: FitOptions) -> Any:
        """Trains a model in place, as ``ac.fit`` asks."""
        from agnncert_large.partitioned.training import train_on_parts

        return train_on_parts(model, self, division, options)

    def sample(self) -> Data:
        """Returns some of its nodes with the arcs among them, to which a model can be fitted in shape."""
        from agnncert_large.partitioned.auditing import probe_data

        return probe_data(self)

    def load(self) -> Data:
        """Reads the whole graph into memory, as the ``Data`` that has the same certificate."""
        numbers = range(len(self.ranges))
        data = Data(x=torch.cat([self.features(k) for k in numbers]))
        nodes = [self.nodes(k) for k in numbers]
        arcs = Arcs.joined([self.arcs(group) for group in range(len(self.manifest["arcs"]))])
        order = np.argsort(arcs.target, kind="stable")
        arcs = arcs.select(order)
        data.edge_index = torch.from_numpy(np.stack([arcs.source, arcs.target]))
        for name, value in arcs.values.items():
            data[name] = value
        if self.id_kind == "node_id":
            ids = np.concatenate([part.id for part in nodes])
            data.node_id = torch.from_numpy(ids) if ids.dtype == np.int64 else ids.tolist()
        for name in self.manifest["columns"]:
            parts = [part.y if name == "y" else part.masks[name] for part in nodes]
            data[name] = torch.from_numpy(np.concatenate([each for each in parts if each is not None]))
        for name, value in self.manifest["values"].items():
            data[name] = value
        return data


def is_partitioned(place: Place) -> bool:
    """Tells whether a place holds a graph in parts."""
    try:
        return b'"agnncert-parts"' in place.read(MANIFEST)[:200]
    except (FileNotFoundError, GraphError, NotADirectoryError):
        return False


def open_partitioned(place: Place) -> PartitionedGraph:
    """Opens a graph in parts. Parts are read, and compared with their digests, when they are needed.

    Raises:
        GraphError: There is no such graph, or its manifest is damaged or of another version.
    """
    try:
        content = place.read(MANIFEST)
    except FileNotFoundError:
        raise GraphError(f"{place} has no {MANIFEST}: expected what write_graph has written.") from None
    try:
        if len(content) > _LONGEST_MANIFEST:
            raise ValueError("it is too long")
        manifest = parse_json(content)
        if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
            raise ValueError("it describes something else")
    except (ValueError, RecursionError) as reason:
        shown = str(reason)[:200]
        raise GraphError(f"{place}/{MANIFEST} is not the manifest of a graph in parts: {shown}.") from None
    if manifest.get("version") != VERSION:
        raise GraphError(
            f"{place} is of format version {manifest.get('version')!r:.60}, this library reads version "
            f"{VERSION} only: update agnncert, or write the graph again."
        )
    stated = manifest.pop("sha256", None)
    if stated != seal(manifest):
        raise GraphError(f"{place}/{MANIFEST} was altered or damaged: it does not match its digest.")
    return PartitionedGraph(place, manifest)


def seal(manifest: Mapping[str, Any]) -> str:
    """Returns the digest of a manifest."""
    text = json.dumps(manifest, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def division_to_json(division: Division) -> dict[str, Any]:
    """Returns the name and settings of a division by whose groups graphs can be stored.

    Raises:
        DivisionError: Graphs cannot be stored by its groups.
    """
    name = type(division).__name__
    if KINDS.get(name) is not type(division) or not division.has_disjoint_union:
        raise DivisionError(
            f"a graph is stored by the groups of {', '.join(KINDS)} (with a fixed number of groups, and "
            f"against all changes), not of {division}: leave partition= out, and certify it in memory."
        )
    return {"name": name, **{key: value for key, value in vars(division).items()}}


def division_of(stated: Mapping[str, Any]) -> Division:
    """Returns the division that a manifest names."""
    settings = {name: value for name, value in stated.items() if name != "name"}
    try:
        return KINDS[stated["name"]](**settings)
    except (KeyError, TypeError, DivisionError) as reason:
        raise GraphError(f"the manifest names a division that is not known here: {reason}.") from None


def _numbers(column: Any) -> npt.NDArray[Any]:
    """Returns a column of numbers as an array; whole numbers become int64."""
    values: npt.NDArray[Any] = column.to_numpy()
    if values.dtype not in (np.int64, np.bool_):
        return values.astype(np.int64)
    return values if values.flags.writeable else values.copy()


def _ids(column: Any) -> Any:
    import pyarrow as pa

    return _numbers(column) if pa.types.is_integer(column.type) else column.to_pylist()


def _bytes_of(column: Any) -> Any:
    """Returns the content of a column of rows of bytes."""
    chunk = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    width = chunk.type.byte_width
    if not len(chunk):
        return b""
    start = chunk.offset * width
    return memoryview(chunk.buffers()[1])[start : start + len(chunk) * width]


def _parquet() -> Any:
    try:
        import pyarrow.parquet as pq
    except ModuleNotFoundError as error:
        raise missing(error.name, "a graph in parts") from None
    return pq
