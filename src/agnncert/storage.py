"""Sealed files: named arrays and a JSON header in one safetensors file that notices any altered byte.

The header's ``file_sha256`` is the digest of the whole file with that digest set to zeros. This protects
against accidents, not against a forger, who can seal again. Reading never unpickles and never runs
anything.
"""

import hashlib
import json
import os
import re
import struct
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import safetensors.numpy
from safetensors import SafetensorError

from agnncert.errors import CertificateError

Arrays = dict[str, npt.NDArray[Any]]

_KEY = "certificate"  # the one entry of the safetensors metadata: several would be stored in random order
_ZEROS = "0" * 64
_DIGEST = re.compile(rb'\\"file_sha256\\":\\"([0-9a-f]{64})\\"')
_LENGTH = struct.Struct("<Q")  # safetensors begins with the length of its own JSON header


def write_atomic(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Writes a file so that a crash leaves the old file or the new one, never half of either."""
    _replace(Path(path), content.encode() if isinstance(content, str) else content)


def write_sealed(path: Path, header: dict[str, Any], arrays: Arrays) -> None:
    """Writes the file, all of it or nothing.

    Raises:
        CertificateError: It cannot be written.
    """
    text = json.dumps(header | {"file_sha256": _ZEROS}, sort_keys=True, separators=(",", ":"), allow_nan=False)
    blob = safetensors.numpy.save({name: np.ascontiguousarray(a) for name, a in arrays.items()}, {_KEY: text})
    start, stop = _place_of_digest(blob)
    _replace(path, blob[:start] + hashlib.sha256(blob).hexdigest().encode() + blob[stop:])


def read_sealed(path: Path, format_name: str, version: int) -> tuple[dict[str, Any], Arrays]:
    """Reads header and arrays of a file.

    Args:
        path: The file.
        format_name: What the header's ``format`` must say.
        version: The newest ``version`` that the caller understands.

    Raises:
        CertificateError: The file cannot be read, is something else, is of a future version, or was altered.
    """
    try:
        blob = path.read_bytes()
    except OSError as error:
        raise CertificateError(f"cannot read {path}: {error.strerror or error}.") from error
    header = _header(path, blob)
    if header.get("format") != format_name:
        raise CertificateError(f"{path} is not a certificate: its format is {header.get('format')!r}.")
    found = header.get("version")
    if not isinstance(found, int) or isinstance(found, bool) or found < 1:
        raise CertificateError(f"{path} names no version of its format: found {found!r}.")
    if found > version:
        raise CertificateError(
            f"{path} is of format version {found}, this library reads up to {version}: update agnncert."
        )
    start, stop = _place_of_digest(blob)
    unsealed = blob[:start] + _ZEROS.encode() + blob[stop:]
    if hashlib.sha256(unsealed).hexdigest().encode() != blob[start:stop]:
        raise CertificateError(f"{path} was altered or damaged: its content does not match its digest.")
    try:
        return header, safetensors.numpy.load(blob)
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise CertificateError(f"{path} holds arrays that cannot be read: {error}.") from error


def _header(path: Path, blob: bytes) -> dict[str, Any]:
    """Our header, from the metadata of the safetensors header; every step may meet garbage."""
    if len(blob) < _LENGTH.size:
        raise CertificateError(f"{path} is not a certificate: it has only {len(blob)} bytes.")
    end = _LENGTH.size + _LENGTH.unpack_from(blob)[0]
    if end > len(blob):
        raise CertificateError(f"{path} is not a certificate, or was cut short at {len(blob):,} bytes.")
    try:
        header = json.loads(json.loads(blob[_LENGTH.size : end])["__metadata__"][_KEY])
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CertificateError(f"{path} is not a certificate: it does not begin with one's header.") from error
    if not isinstance(header, dict):
        raise CertificateError(f"{path} is not a certificate: its header is a {type(header).__name__}.")
    return header


def _place_of_digest(blob: bytes) -> tuple[int, int]:
    places = list(_DIGEST.finditer(blob, 0, _LENGTH.size + _LENGTH.unpack_from(blob)[0]))
    if len(places) != 1:
        raise CertificateError(f"a certificate has one digest, this file has {len(places)}: it was altered.")
    return places[0].span(1)


def _replace(path: Path, blob: bytes) -> None:
    """Writes beside the file first, so that a crash never leaves half a certificate."""
    beside = None
    try:
        handle, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "wb") as file:
            file.write(blob)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(beside, 0o666 & ~_umask())
        os.replace(beside, path)
    except OSError as error:
        if beside is not None:
            Path(beside).unlink(missing_ok=True)
        raise CertificateError(f"cannot write {path}: {error.strerror or error}.") from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
