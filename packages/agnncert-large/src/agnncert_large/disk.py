"""Graphs in folders of memory-mapped arrays: ``write_graph``, ``open_graph``, and a writer for large graphs.

A folder holds one numpy file per tensor (``x.npy``, ``edge_index.npy``, ``y.npy``, …) and ``manifest.json``, which
describes them::

    {"format": "agnncert-graph", "version": 1,
     "arrays": {"x": {"type": "float32", "shape": [2449029, 100], "bytes": 979611728, "sha256": "…"}, …},
     "values": {"name": "amazon2m", "num_classes": 47},
     "sha256": "…"}

``sha256`` of an array is the digest of its file; ``sha256`` of the manifest is the digest of its other entries as JSON
without spaces and with sorted keys. Ids that are not int64 are stored in two arrays: ``node_id_text``, the concatenated
ids in UTF-8, and ``node_id_ptr``, the start of each id. A folder is written under a temporary name and then renamed, so
it is never incomplete. Nothing in it is unpickled.

Tensors of an opened graph are memory-mapped: pages are read from the disk on access. The mapping is private: writing
into a tensor changes memory only, never the file.
"""

import hashlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch_geometric.data import Data

from agnncert.divisions.base import Division
from agnncert.errors import GraphError
from agnncert.graphs.node_ids import exact_ids
from agnncert.storage import flush_folder, parse_json, write_atomic

if TYPE_CHECKING:
    from agnncert_large.partitioned.graph import PartitionedGraph

FORMAT = "agnncert-graph"
VERSION = 1
MANIFEST = "manifest.json"

PathLike = str | os.PathLike[str]
Array = npt.NDArray[Any]

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
_ID_TEXT = "node_id_text"
_ID_STARTS = "node_id_ptr"
_PLACE = "graph_folder"  # what an opened graph calls the folder it lies in
_LONGEST_MANIFEST = 10_000_000
_TYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64")  # of tensors


class GraphWriter:
    """Writes the arrays of a graph's folder step by step; created by :func:`new_graph`."""

    def __init__(self, draft: Path) -> None:
        self.draft = draft
        self._arrays: dict[str, Array] = {}
        self._values: dict[str, Any] = {}

    def array(self, name: str, shape: tuple[int, ...], kind: torch.dtype) -> Array:
        """Makes a new array of zeros, mapped to its file, which the caller fills. ``Data`` calls it ``name``."""
        self._require_new(name)
        stored = str(kind).removeprefix("torch.")
        if stored not in _TYPES:
            raise GraphError(f"{name} is of type {kind}, which a folder cannot hold: convert it, {name}.float().")
        kind_on_disk = np.dtype(stored).newbyteorder("<")
        array = np.lib.format.open_memmap(self._file(name), mode="w+", dtype=kind_on_disk, shape=shape)
        self._arrays[name] = array
        return array

    def value(self, name: str, value: Any) -> None:
        """Stores a value that is not a tensor: text, a number, or a list of these."""
        self._require_new(name)
        self._values[name] = checked_value(name, value)

    def ids(self, ids: Any) -> None:
        """Stores ``node_id``, ids in canonical form: integers as a tensor, other ids as text."""
        if isinstance(ids, np.ndarray):
            self.array("node_id", ids.shape, torch.int64)[:] = ids
            return
        texts = [str(name).encode() for name in ids]
        starts = self.array(_ID_STARTS, (len(texts) + 1,), torch.int64)
        starts[1:] = np.cumsum([len(text) for text in texts])
        content = np.frombuffer(b"".join(texts), dtype=np.uint8)
        self.array(_ID_TEXT, (len(content),), torch.uint8)[:] = content

    def finish(self) -> None:
        """Flushes all arrays to the disk and writes the manifest."""
        arrays = {}
        for name, array in self._arrays.items():
            array.flush()  # type: ignore[attr-defined]
            with self._file(name).open("rb+") as file:
                os.fsync(file.fileno())
            arrays[name] = {"type": array.dtype.name, "shape": list(array.shape), **_fingerprint(self._file(name))}
        self._arrays.clear()
        manifest = {"format": FORMAT, "version": VERSION, "arrays": arrays, "values": self._values}
        write_atomic(self.draft / MANIFEST, json.dumps(manifest | {"sha256": _seal(manifest)}, indent=1) + "\n")

    def _file(self, name: str) -> Path:
        return self.draft / f"{name}.npy"

    def _require_new(self, name: str) -> None:
        if not _NAME.fullmatch(name):
            raise GraphError(f'an attribute called "{name!r:.80}" cannot be the name of a file: rename it.')
        if name in self._arrays or name in self._values:
            raise GraphError(f"{name} is written twice: a name stands for one array.")


def checked_value(name: str, value: Any) -> Any:
    """Returns a value that JSON holds, or raises GraphError if it is something else."""
    is_list = isinstance(value, list | tuple)
    entries = list(value) if is_list else [value]
    if not all(entry is None or isinstance(entry, str | bool | int | float) for entry in entries):
        raise GraphError(
            f"{name} is a {type(value).__name__}: a folder holds tensors, text, numbers and lists of these. "
            f"Leave it out: del data.{name}."
        )
    return entries if is_list else value


@contextmanager
def new_graph(folder: PathLike) -> Iterator[GraphWriter]:
    """Yields a writer for a new folder, which is created only if the block succeeds.

    Raises:
        GraphError: The folder is not empty, or it cannot be written.
    """
    place = Path(folder)
    if place.exists() and (not place.is_dir() or any(place.iterdir())):
        raise GraphError(f"{place} exists already: choose another folder, or delete it first.")
    draft = place.with_name(f".{place.name}.{secrets.token_hex(4)}.part")
    try:
        draft.mkdir(parents=True)
        writer = GraphWriter(draft)
        yield writer
        writer.finish()
        os.replace(draft, place)
        flush_folder(place.parent)
    except OSError as reason:
        raise GraphError(f"cannot write {place}: {reason.strerror or reason}.") from reason
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def write_graph(data: Data, folder: PathLike, *, partition: Division | None = None) -> None:
    """Writes a graph into a new folder, which :func:`open_graph` opens.

    All tensors of ``data`` are written, ``node_id`` as exact ids, and text, numbers and lists of these such as ``name``
    and ``class_names``. The layout is documented in ``agnncert_large.disk``.

    With ``partition=``, the graph is written in parts, by the groups of this division. Workers then read the parts that
    they need, and none of them holds the graph. Features, edges with ``edge_weight`` and ``edge_attr``, ids, ``y``, the
    masks of the split, text and numbers are written. The layout is documented in ``agnncert_large.partitioned.graph``.

    Args:
        data: One graph, for node classification.
        folder: The folder, which must be empty or not exist. With ``partition=`` also an address of object storage,
            such as ``s3://bucket/folder``.
        partition: ``NodeCentric``, ``GatedNodeCentric`` or ``EdgeCentric``, with which the graph is then certified.
            Defaults to None: arrays that are mapped into memory.

    Raises:
        DivisionError: Graphs cannot be stored by the groups of this division.
        GraphError: The data is not a single graph, has values of other types, or the folder is not empty.
        IdError: ``node_id`` does not give each node a unique id.

    Example:
        >>> import tempfile
        >>> from agnncert_large.disk import open_graph
        >>> folder = tempfile.mkdtemp()
        >>> write_graph(Data(x=torch.ones(2, 3), edge_index=torch.tensor([[0], [1]]), name="pair"), folder)
        >>> open_graph(folder).x.sum()
        tensor(6.)
    """
    if not isinstance(data, Data):
        raise GraphError(f"a folder holds one graph, a torch_geometric Data; this is a {type(data).__name__}.")
    if partition is not None:
        from agnncert_large.partitioned.from_data import write_data
        from agnncert_large.partitioned.places import Place

        write_data(data, Place(str(folder)), partition)
        return
    with new_graph(folder) as writer:
        for name, value in data:
            if name == _PLACE:
                continue
            if name == "node_id" and value is not None:
                writer.ids(exact_ids(data))
            elif isinstance(value, Tensor):
                _write_tensor(writer, name, value)
            else:
                writer.value(name, value.to_json() if hasattr(value, "to_json") else value)


def _write_tensor(writer: GraphWriter, name: str, value: Tensor) -> None:
    if value.layout != torch.strided or value.is_meta:
        raise GraphError(f"{name} is a tensor without dense numbers of its own: a folder holds dense tensors.")
    writer.array(name, tuple(value.shape), value.dtype)[...] = value.detach().cpu().numpy()


def open_graph(folder: PathLike, *, check: bool = True) -> "Data | PartitionedGraph":
    """Opens a graph that :func:`write_graph` has written.

    A graph that was written as a whole has memory-mapped tensors, and can be used like any other ``Data``. Its
    attribute ``graph_folder`` is the path of the folder. A graph in parts is a ``PartitionedGraph``, which ``certify``,
    ``verify`` and ``fit`` take; ``load()`` reads all of it into memory.

    Args:
        folder: The folder, or an address such as ``s3://bucket/folder``.
        check: Whether to compare every file with its digest, which reads all files once; otherwise only sizes are
            compared. ``certify`` computes a digest of the graph in any case. Parts are compared whenever they are read.

    Raises:
        GraphError: The folder does not exist, or a file is missing, damaged or of another version.
    """
    if "://" in str(folder) or _holds_parts(Path(folder)):
        from agnncert_large.partitioned.graph import open_partitioned
        from agnncert_large.partitioned.places import Place

        return open_partitioned(Place(str(folder)))
    place = Path(folder)
    manifest = _manifest(place)
    arrays = {name: _opened(place, name, stated, check) for name, stated in manifest["arrays"].items()}
    data = Data()
    if _ID_TEXT in arrays:
        data.node_id = _texts(place, arrays.pop(_ID_TEXT), arrays.pop(_ID_STARTS, None))
    for name, value in {**arrays, **manifest["values"]}.items():
        data[name] = value
    data[_PLACE] = str(place.resolve())
    return data


def _holds_parts(place: Path) -> bool:
    """Tells whether a folder holds a graph in parts."""
    try:
        with (place / MANIFEST).open("rb") as file:
            return b'"agnncert-parts"' in file.read(200)
    except OSError:
        return False


def _manifest(place: Path) -> dict[str, Any]:
    """Reads the manifest; raises GraphError if it is missing, unreadable, altered or of another version."""
    file = place / MANIFEST
    if not place.is_dir():
        raise GraphError(f"there is no folder {place}: expected one that write_graph has written.")
    if not file.is_file():
        raise GraphError(f"{place} has no {MANIFEST}: expected a folder that write_graph has written.")
    try:
        if file.stat().st_size > _LONGEST_MANIFEST:
            raise ValueError("it is too long")
        manifest = parse_json(file.read_bytes())
        if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
            raise ValueError("it describes something else")
    except (OSError, ValueError, RecursionError) as reason:
        raise GraphError(f"{file} is not the manifest of a graph: {str(reason)[:200]}.") from None
    version = manifest.get("version")
    if type(version) is not int or version < 1:
        raise GraphError(f"{file} names no version of its format: found {version!r:.60}.")
    if version != VERSION:
        raise GraphError(
            f"{place} is of format version {version}, this library reads version {VERSION} only: "
            "update agnncert, or write the graph again."
        )
    stated = manifest.pop("sha256", None)
    if stated != _seal(manifest) or not isinstance(manifest.get("arrays"), dict):
        raise GraphError(f"{file} was altered or damaged: its content does not match its digest.")
    if not isinstance(manifest.get("values"), dict) or manifest["arrays"].keys() & manifest["values"].keys():
        raise GraphError(f"{file} says two things about one name, or nothing about its values: write it anew.")
    return manifest


def _opened(place: Path, name: str, stated: Any, check: bool) -> Tensor:
    """One memory-mapped array, after its file was checked."""
    file = place / f"{name}.npy"
    if not _NAME.fullmatch(name) or not isinstance(stated, dict) or stated.get("type") not in _TYPES:
        raise GraphError(f"{place / MANIFEST} describes an array {name!r:.80} that this library cannot read.")
    if not file.is_file():
        raise GraphError(f"{file} is missing: {place} is incomplete.")
    if file.stat().st_size != stated.get("bytes"):
        raise GraphError(
            f"{file} has {file.stat().st_size} bytes, but the manifest says {stated.get('bytes')!r:.60}: it was cut "
            "short or altered."
        )
    if check and _fingerprint(file)["sha256"] != stated.get("sha256"):
        raise GraphError(f"{file} was altered or damaged: its content does not match its digest.")
    try:  # "c": writing into the array never changes the file; an empty array cannot be mapped
        array = np.load(file, mmap_mode=None if 0 in stated["shape"] else "c", allow_pickle=False)
    except Exception as reason:  # numpy evaluates the header, which may make that fail in any way
        raise GraphError(f"{file} is no array: {str(reason)[:200]}.") from None
    expected = np.dtype(stated["type"]).newbyteorder("<")
    if list(array.shape) != stated["shape"] or array.dtype != expected or not array.flags.c_contiguous:
        raise GraphError(f"{file} holds {array.dtype} of shape {array.shape}, which is not what its manifest says.")
    return torch.from_numpy(array)


def _texts(place: Path, text: Tensor, starts: Tensor | None) -> list[str]:
    """Reads ids that are not int64."""
    try:
        if starts is None or starts.dtype != torch.int64 or text.dtype != torch.uint8:
            raise ValueError("their places are missing")
        bounds = starts.tolist()
        content = text.numpy().tobytes()
        if bounds[0] != 0 or bounds[-1] != len(content) or sorted(bounds) != bounds:
            raise ValueError("their places make no sense")
        return [content[begin:end].decode() for begin, end in pairwise(bounds)]
    except (ValueError, IndexError) as reason:
        raise GraphError(f"the ids in {place / _ID_TEXT}.npy cannot be read: {reason}.") from None


def _fingerprint(file: Path) -> dict[str, Any]:
    with file.open("rb") as opened:
        return {"bytes": file.stat().st_size, "sha256": hashlib.file_digest(opened, "sha256").hexdigest()}


def _seal(manifest: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(manifest, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
