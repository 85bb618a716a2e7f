"""Certificate files as a hostile sender might make them: sealed correctly, but senseless in one place or several."""

import hashlib
import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy

Arrays = dict[str, np.ndarray]

ODD = (
    None, True, False, -1, 0, 1, 2, 3, 2**24, 2**31, 2**53, 2**53 + 1, 2**63, 2**64, 10**38, 10**400, -(2**63), 0.5,
    -0.0, 5e-324, 1e-320, 1e308, -1e308, "", "inf", "node", "graph", "row", "node_id", "each target", "x" * 1000,
    "\x1b[2J", "\ud800", "0" * 64, [], [[]], [1, 2], {}, {"a": 1}, {"": {}}, ["x"] * 50, "edge-centric/node", "custom/node",
    "gnncert-en/graph", "flips", "deletions", "B1", [[[[[[[[[[[[]]]]]]]]]]]],
)  # fmt: skip
EXTREMES = (-(2**63), -(2**31), -(2**15), -2, -1, 0, 1, 2, 7, 2**15 - 1, 2**24, 2**31 - 1, 2**53, 2**63 - 1)
DTYPES = ("int8", "uint8", "int16", "int32", "int64", "uint64", "float16", "float32", "float64", "bool")


def open_up(file: bytes | Path) -> tuple[dict[str, Any], Arrays]:
    """Header and arrays of a file, by hand."""
    blob = file.read_bytes() if isinstance(file, Path) else file
    size = struct.unpack_from("<Q", blob)[0]
    return json.loads(json.loads(blob[8 : 8 + size])["__metadata__"]["certificate"]), safetensors.numpy.load(blob)


def sealed(header: dict[str, Any] | str, arrays: Arrays) -> bytes:
    """A file that is sealed correctly, whatever its header says; text is taken as it is, with zeros for the seal."""
    text = header
    if not isinstance(text, str):
        text = json.dumps({**header, "file_sha256": "0" * 64}, sort_keys=True, separators=(",", ":"))
    blob = safetensors.numpy.save({name: np.asarray(a, order="C") for name, a in arrays.items()}, {"certificate": text})
    mark = b'\\"file_sha256\\":\\"' + b"0" * 64
    place = blob.find(mark) + len(mark) - 64
    return blob[:place] + hashlib.sha256(blob).hexdigest().encode() + blob[place + 64 :]


def spoiled(blob: bytes, rng: np.random.Generator) -> bytes:
    """The file with one to three senseless alterations; usually sealed again."""
    kind = rng.choice(["header", "header", "header", "arrays", "arrays", "both", "bytes", "cut"])
    if kind == "bytes":
        places = rng.integers(0, len(blob), int(rng.integers(1, 4)))
        return bytes(rng.integers(256) if k in places else byte for k, byte in enumerate(blob))
    if kind == "cut":
        return blob[: rng.integers(len(blob))] + bytes(int(rng.choice([0, 0, 8, 100])))
    header, arrays = open_up(blob)
    for _ in range(int(rng.integers(1, 4))):
        if kind in ("header", "both"):
            _spoil_header(header, rng)
        if kind in ("arrays", "both"):
            _spoil_arrays(arrays, rng)
    try:
        return sealed(header, arrays)
    except (ValueError, UnicodeEncodeError, safetensors.SafetensorError):
        return blob[:-1]


def _places(value: Any, found: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        found.append((value, key))
        if isinstance(item, dict | list):
            _places(item, found)
    return found


def _spoil_header(header: dict[str, Any], rng: np.random.Generator) -> None:
    places = _places(header, [])
    inside, key = places[rng.integers(len(places))]
    what = rng.choice(["replace", "replace", "replace", "remove", "add", "twice"])
    odd = json.loads(json.dumps(ODD[rng.integers(len(ODD))]))
    if what == "replace":
        inside[key] = odd
    elif what == "remove":
        del inside[key]
    elif isinstance(inside, dict):
        inside[str(rng.choice(["add_edges", "x", "kind", ""]))] = odd
    else:
        inside.append(inside[key] if what == "twice" else odd)


def _spoil_arrays(arrays: Arrays, rng: np.random.Generator) -> None:
    name = list(arrays)[rng.integers(len(arrays))]
    array = arrays[name].copy()
    what = rng.choice(["value", "value", "value", "type", "shape", "remove", "add", "longer", "empty"])
    if what == "value" and array.size:
        with np.errstate(all="ignore"):
            value = np.array(EXTREMES[rng.integers(len(EXTREMES))]).astype(array.dtype)
            value = (
                np.array([np.nan, np.inf, -np.inf, -0.0, 1e300][rng.integers(5)]) if array.dtype.kind == "f" else value
            )
        array.reshape(-1)[rng.integers(array.size)] = value
    elif what == "type":
        with np.errstate(all="ignore"):
            array = array.astype(DTYPES[rng.integers(len(DTYPES))])
    elif what == "shape":
        shapes: list[tuple[int, ...]] = [(-1,), (1, -1), (-1, 1)]
        array = array.reshape(shapes[rng.integers(3)]) if rng.random() < 0.7 else np.zeros((), dtype=array.dtype)
    elif what == "longer" and array.ndim:
        array = np.concatenate([array, array])
    elif what == "empty":
        array = np.zeros([(0,), (0, 3), (3, 0), (0, 2**40), (0, 0)][rng.integers(5)], dtype=array.dtype)
    elif what == "add":
        name = str(rng.choice(["x", "evidence.x", "truth", "target.text", "target.ptr", ""]))
    elif what == "remove":
        del arrays[name]
        return
    arrays[name] = array


def golden_files(folder: Path) -> list[bytes]:
    """The certificates of a folder."""
    return [path.read_bytes() for path in sorted(folder.glob("*.cert"))]
