"""Files that are written whole or not at all, and sealed files, which notice any altered byte.

A sealed file is one safetensors file with named arrays and a JSON header. Certificates, sample counts and the state
of a training run are stored this way. The header's ``file_sha256`` is the digest of the whole file, computed with
that digest set to zeros. It protects against accidents, not against a forger, who can seal again. Reading never
unpickles and never runs anything.
"""

import hashlib
import json
import os
import re
import secrets
import struct
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import safetensors.numpy
from safetensors import SafetensorError

from agnncert.errors import AgnncertError, CertificateError

Arrays = dict[str, npt.NDArray[Any]]

# The one entry of the safetensors metadata (several would be stored in random order), named after the first such files.
_KEY = "certificate"
_ZEROS = "0" * 64
_DIGEST = re.compile(rb'\\"file_sha256\\":\\"([0-9a-f]{64})\\"')
_LENGTH = struct.Struct("<Q")  # safetensors begins with the length of its own JSON header


def write_atomic(path: str | os.PathLike[str], content: str | bytes) -> None:
    """Writes a file so that a crash leaves the old file or the new one, never half of either.

    The content goes to a draft beside the file (``.NAME.….part``), which then takes the file's place. If anything
    goes wrong, the draft is removed.

    Args:
        path: The file; its folder must exist.
        content: Bytes, or text to be encoded as UTF-8 with line ends as they are.
    """
    path = Path(path)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with draft.open("xb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)


def write_sealed(
    path: Path, header: dict[str, Any], arrays: Arrays, error: type[AgnncertError] = CertificateError
) -> None:
    """Writes a sealed file, all of it or nothing.

    Args:
        path: The file.
        header: What to say about the arrays, as JSON values; ``format`` and ``version`` are what
            :func:`read_sealed` asks for.
        arrays: The arrays by name.
        error: What to raise when the file cannot be written.
    """
    text = json.dumps(header | {"file_sha256": _ZEROS}, sort_keys=True, separators=(",", ":"), allow_nan=False)
    blob = safetensors.numpy.save({name: np.asarray(array, order="C") for name, array in arrays.items()}, {_KEY: text})
    start, stop = _place_of_digest(blob, error)
    try:
        write_atomic(path, blob[:start] + hashlib.sha256(blob).hexdigest().encode() + blob[stop:])
    except OSError as reason:
        raise error(f"cannot write {path}: {reason.strerror or reason}.") from reason


def read_sealed(
    path: Path, format_name: str, version: int, what: str = "certificate", error: type[AgnncertError] = CertificateError
) -> tuple[dict[str, Any], Arrays]:
    """Reads header and arrays of a sealed file.

    Args:
        path: The file.
        format_name: What the header's ``format`` must say.
        version: The newest ``version`` that the caller understands.
        what: What messages call a file of this format.
        error: What to raise when the file cannot be read, is something else, is of a future version, or was altered.
    """
    try:
        blob = path.read_bytes()
    except OSError as reason:
        raise error(f"cannot read {path}: {reason.strerror or reason}.") from reason
    try:
        header = _header(blob)
    except ValueError as reason:
        raise error(f"{path} is not a {what}{reason}") from reason
    if header.get("format") != format_name:
        raise error(f"{path} is not a {what}: its format is {header.get('format')!r}.")
    stated = header.get("version")
    if not isinstance(stated, int) or isinstance(stated, bool) or stated < 1:
        raise error(f"{path} names no version of its format: found {stated!r}.")
    if stated > version:
        raise error(f"{path} is of format version {stated}, this library reads up to {version}: update agnncert.")
    start, stop = _place_of_digest(blob, error)
    unsealed = blob[:start] + _ZEROS.encode() + blob[stop:]
    if hashlib.sha256(unsealed).hexdigest().encode() != blob[start:stop]:
        raise error(f"{path} was altered or damaged: its content does not match its digest.")
    try:
        return header, safetensors.numpy.load(blob)
    except (SafetensorError, ValueError, KeyError, TypeError) as reason:
        raise error(f"{path} holds arrays that cannot be read: {reason}.") from reason


def _header(blob: bytes) -> dict[str, Any]:
    """Our header, from the metadata of the safetensors header; every step may meet garbage.

    Raises:
        ValueError: With the end of a sentence that begins with "… is not a certificate".
    """
    if len(blob) < _LENGTH.size:
        raise ValueError(f": it has only {len(blob)} bytes.")
    end = _LENGTH.size + _LENGTH.unpack_from(blob)[0]
    if end > len(blob):
        raise ValueError(f", or was cut short at {len(blob):,} bytes.")
    try:
        header = json.loads(json.loads(blob[_LENGTH.size : end])["__metadata__"][_KEY])
    except (ValueError, KeyError, TypeError, RecursionError) as reason:
        raise ValueError(": it does not begin with one's header.") from reason
    if not isinstance(header, dict):
        raise ValueError(f": its header is a {type(header).__name__}.")
    return header


def _place_of_digest(blob: bytes, error: type[AgnncertError]) -> tuple[int, int]:
    end_of_header = _LENGTH.size + _LENGTH.unpack_from(blob)[0]
    places = list(_DIGEST.finditer(blob, 0, end_of_header))
    if len(places) != 1:
        raise error(f"a sealed file has one digest, this file has {len(places)}: it was altered.")
    return places[0].span(1)
