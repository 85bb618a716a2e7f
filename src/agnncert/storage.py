"""Files that are written whole or not at all, and sealed files, which notice any altered byte.

A sealed file is one safetensors file with named arrays and a JSON header. Certificates, sample counts and the state
of a training run are stored this way. The header's ``file_sha256`` is the digest of the whole file, computed with
that digest set to zeros. It protects against accidents, not against a forger, who can seal again. Reading never
unpickles and never runs anything.

A file can be read in one way only: the header must be written as :func:`write_sealed` writes it, character by
character, so a repeated key, a number that is none (``NaN``, ``1e309``) or anything beside it is refused.
"""

import hashlib
import json
import math
import os
import re
import reprlib
import secrets
import struct
import unicodedata
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import safetensors.numpy
from safetensors import SafetensorError

from agnncert.errors import AgnncertError, CertificateError

Arrays = dict[str, npt.NDArray[Any]]
Part = bytes | memoryview

# The one entry of the safetensors metadata (several would be stored in random order), named after the first such files.
_KEY = "certificate"
_ZEROS = "0" * 64
_BLOCK = 2**24  # bytes that are copied at a time
_DIGEST = re.compile(rb'\\"file_sha256\\":\\"([0-9a-f]{64})\\"')
_LENGTH = struct.Struct("<Q")  # safetensors begins with the length of its own JSON header
_LONGEST_HEADER = 100_000_000  # safetensors reads no longer one
_UNREADABLE = (SafetensorError, ValueError, KeyError, TypeError, OverflowError)


def write_atomic(path: str | os.PathLike[str], content: str | bytes | Sequence[Part]) -> None:
    """Writes a file so that a crash leaves the old file or the new one, never half of either.

    The content goes to a draft beside the file (``.NAME.….part``), which then takes the file's place. If anything
    goes wrong, the draft is removed. When the call returns, the file is on the disk under its name.

    Args:
        path: The file. Its folder must exist.
        content: Bytes, bytes in parts one after the other, or text to be encoded as UTF-8 with line ends as they are.
    """
    path = Path(path)
    parts: Sequence[Part]
    if isinstance(content, str):
        parts = [content.encode()]
    elif isinstance(content, bytes):
        parts = [content]
    else:
        parts = content
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with draft.open("xb") as file:
            for part in parts:
                file.write(part)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
        flush_folder(path.parent)
    finally:
        draft.unlink(missing_ok=True)


def flush_folder(folder: Path) -> None:
    """Flushes the names of a folder's files to the disk, where the file system can.

    A file system that cannot flush a folder, or does not let it be opened, is no reason to call a written file lost.
    """
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def write_sealed(
    path: Path, header: dict[str, Any], arrays: Arrays, error: type[AgnncertError] = CertificateError
) -> None:
    """Writes a sealed file, all of it or nothing.

    Args:
        path: The file.
        header: What to say about the arrays, as JSON values. :func:`read_sealed` asks for ``format`` and ``version``.
        arrays: The arrays by name.
        error: What to raise when the file cannot be written.
    """
    parts = sealed_parts(header, arrays, error)
    try:
        write_atomic(path, parts)
    except OSError as reason:
        raise error(f"cannot write {path}: {reason.strerror or reason}.") from reason


def sealed_parts(
    header: Mapping[str, Any], arrays: Arrays, error: type[AgnncertError] = CertificateError
) -> list[Part]:
    """Returns the bytes of a sealed file in parts, without a copy of the arrays; arguments as in `write_sealed`."""
    plain_header = json.loads(json.dumps(header))
    text = _canonical(plain_header | {"file_sha256": _ZEROS})
    head, parts = _layout(text, arrays)
    start, stop = _place_of_digest(head, error)
    seal = _digest([head, *parts]).encode()
    return [head[:start], seal, head[stop:], *parts]


def _layout(text: str, arrays: Arrays) -> tuple[bytes, list[Part]]:
    """Returns what safetensors puts before the arrays, and the arrays in its order, without a copy of them.

    Together they are the file that safetensors would write. It is asked how it writes empty arrays of these names and
    types, from which only shapes and offsets differ.
    """
    head, names = _head(text, {name: (array.dtype, array.shape) for name, array in arrays.items()})
    parts: list[Part] = []
    for name in names:
        array = np.asarray(arrays[name], dtype=arrays[name].dtype.newbyteorder("<"), order="C")
        parts.append(array.reshape(-1).view(np.uint8).data)
    return head, parts


def _head(text: str, arrays: Mapping[str, tuple[np.dtype[Any], tuple[int, ...]]]) -> tuple[bytes, list[str]]:
    """Returns what safetensors puts before arrays of some types and shapes, and their names in its order."""
    empty_arrays = {name: np.zeros(0, dtype=dtype) for name, (dtype, _) in arrays.items()}
    empty_file = safetensors.numpy.save(empty_arrays, {_KEY: text})
    entries = json.loads(empty_file[_LENGTH.size : _end_of_header(empty_file)])
    names = [name for name in entries if name != "__metadata__"]
    begin = 0
    for name in names:
        dtype, shape = arrays[name]
        end = begin + dtype.itemsize * math.prod(shape)
        entries[name]["shape"] = list(shape)
        entries[name]["data_offsets"] = [begin, end]
        begin = end
    head = json.dumps(entries, separators=(",", ":"), ensure_ascii=False).encode()
    head += b" " * (-len(head) % _LENGTH.size)
    return _LENGTH.pack(len(head)) + head, names


class ArrayOnDisk(NamedTuple):
    """An array whose bytes lie in files, little-endian.

    Attributes:
        dtype: Its type.
        files: Its rows if it is a matrix, of which each file holds one; else the one file that holds it.
        is_matrix: Whether it is a matrix.
        columns: Columns of a matrix without rows.
    """

    dtype: np.dtype[Any]
    files: tuple[Path, ...]
    is_matrix: bool
    columns: int = 0

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape."""
        length = self.files[0].stat().st_size // self.dtype.itemsize if self.files else self.columns
        return (len(self.files), length) if self.is_matrix else (length,)


def write_sealed_from_disk(
    path: Path,
    header: Mapping[str, Any],
    arrays: Mapping[str, ArrayOnDisk],
    error: type[AgnncertError] = CertificateError,
) -> None:
    """Writes the file that :func:`write_sealed` writes, from arrays that are not in memory."""
    plain_header = json.loads(json.dumps(header))
    text = _canonical(plain_header | {"file_sha256": _ZEROS})
    head, names = _head(text, {name: (array.dtype, array.shape) for name, array in arrays.items()})
    start, stop = _place_of_digest(head, error)
    digest = hashlib.sha256(head)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with draft.open("xb") as file:
            file.write(head)
            for source in (source for name in names for source in arrays[name].files):
                with source.open("rb") as opened:
                    while block := opened.read(_BLOCK):
                        digest.update(block)
                        file.write(block)
            file.seek(start)
            file.write(digest.hexdigest().encode())
            assert stop - start == len(_ZEROS)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, path)
        flush_folder(path.parent)
    except OSError as reason:
        raise error(f"cannot write {path}: {reason.strerror or reason}.") from reason
    finally:
        draft.unlink(missing_ok=True)


def _digest(parts: Sequence[Part]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def read_sealed(
    path: Path,
    format_name: str,
    version: int,
    what: str = "certificate",
    error: type[AgnncertError] = CertificateError,
    longest_header: int = _LONGEST_HEADER,
) -> tuple[dict[str, Any], Arrays]:
    """Reads header and arrays of a sealed file.

    Args:
        path: The file.
        format_name: What the header's ``format`` must say.
        version: The only ``version`` that the caller reads.
        what: What messages call a file of this format.
        error: What to raise when the file cannot be read, is something else, is of another version, or was altered.
        longest_header: The longest header to look at, in bytes.
    """
    blob = _read_file(path, error)
    return read_sealed_bytes(blob, path, format_name, version, what, error, longest_header)


def read_sealed_bytes(  # noqa: PLR0917 - as in read_sealed
    blob: bytes,
    path: Path | str,
    format_name: str,
    version: int,
    what: str = "certificate",
    error: type[AgnncertError] = CertificateError,
    longest_header: int = _LONGEST_HEADER,
) -> tuple[dict[str, Any], Arrays]:
    """Reads header and arrays of a sealed file that is in memory; ``path`` is what errors call it."""
    try:
        header = _header(blob, longest_header)
    except ValueError as reason:
        raise error(f"{path} is not a {what}{reason}") from reason
    if header.get("format") != format_name:
        raise error(f"{path} is not a {what}: its format is {reprlib.repr(header.get('format'))}.")
    _check_version(path, header.get("version"), version, error)
    start, stop = _place_of_digest(blob, error)
    view = memoryview(blob)
    seal = _digest([view[:start], _ZEROS.encode(), view[stop:]])
    if seal.encode() != blob[start:stop] or header.get("file_sha256") != seal:
        raise error(f"{path} was altered or damaged: its content does not match its digest.")
    try:
        return header, safetensors.numpy.load(blob)
    except _UNREADABLE as reason:
        raise error(f"{path} holds arrays that cannot be read: {str(reason)[:200]}.") from reason


def _read_file(path: Path, error: type[AgnncertError]) -> bytes:
    if path.exists() and not path.is_file() and not path.is_dir():  # a pipe could be waited for without end
        raise error(f"cannot read {path}: it is a pipe or a device. Save its content as a file first.")
    try:
        return path.read_bytes()
    except OSError as reason:
        raise error(f"cannot read {path}: {reason.strerror or reason}.") from reason


def _check_version(path: Path | str, stated: object, version: int, error: type[AgnncertError]) -> None:
    if not isinstance(stated, int) or isinstance(stated, bool) or stated < 1:
        raise error(f"{path} names no version of its format: found {reprlib.repr(stated)}.")
    if stated != version:
        raise error(
            f"{path} is of format version {reprlib.repr(stated)}, this library reads version {version} only: "
            "update agnncert, or write the file again."
        )


def _header(blob: bytes, longest: int) -> dict[str, Any]:
    """Returns our header, from the metadata of the safetensors header. Every step may meet garbage.

    Raises:
        ValueError: With the end of a sentence that begins with "… is not a certificate".
    """
    if len(blob) < _LENGTH.size:
        raise ValueError(f": it has only {len(blob)} bytes.")
    length = _LENGTH.unpack_from(blob)[0]
    if _LENGTH.size + length > len(blob):
        raise ValueError(f", or was cut short at {len(blob):,} bytes.")
    if length > longest:
        raise ValueError(f": its header has {length:,} bytes, at most {longest:,} are read.")
    try:
        outer = parse_json(blob[_LENGTH.size : _LENGTH.size + length])
        text = outer["__metadata__"][_KEY]
        header = parse_json(text)
    except RepeatedNameError as reason:
        raise ValueError(f": its header says the same thing twice ({reason}).") from reason
    except (ValueError, KeyError, TypeError, RecursionError) as reason:
        raise ValueError(": it does not begin with one's header.") from reason
    if not isinstance(header, dict):
        raise ValueError(f": its header is a {type(header).__name__}.")
    if list(outer["__metadata__"]) != [_KEY]:
        raise ValueError(f': it says more than one thing about itself: expected "{_KEY}" alone.')
    if not _is_canonical(header, text):
        raise ValueError(": its header is not written as this library writes it, so it could be read in several ways.")
    return header


def _is_canonical(header: dict[str, Any], text: str) -> bool:
    try:
        return _canonical(header) == text
    except (ValueError, RecursionError):  # numbers that are none, or too deep
        return False


class RepeatedNameError(ValueError):
    """A name stands twice in one JSON object, so that readers may take one value or the other."""


def parse_json(text: str | bytes, *, strict: bool = False) -> Any:
    """Parses JSON that somebody else may have written, so that it can be read in one way only.

    Args:
        text: The JSON.
        strict: Whether to refuse numbers that Python writes and JSON does not have: ``NaN`` and infinity. Defaults to
            False.

    Raises:
        RepeatedNameError: A name stands twice in one object. Python's own reader takes the last one without a word.
        ValueError: It is not JSON.

    Example:
        >>> parse_json('{"amount": 1, "amount": 2}')
        Traceback (most recent call last):
            ...
        agnncert.storage.RepeatedNameError: "amount" stands twice in one object
    """
    return json.loads(text, object_pairs_hook=_without_repetition, parse_constant=_refuse_constant if strict else None)


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for k, name in enumerate(names) if name in names[:k])
        raise RepeatedNameError(f"{json.dumps(repeated)[:60]} stands twice in one object")
    return mapping


def _refuse_constant(word: str) -> Any:
    raise ValueError(f"{word} is no number of JSON")


def _canonical(header: dict[str, Any]) -> str:
    """Returns the one way to write a header."""
    return json.dumps(header, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _place_of_digest(blob: bytes, error: type[AgnncertError]) -> tuple[int, int]:
    """Returns where the digest begins and ends, or raises ``error`` if there is not exactly one."""
    places = list(_DIGEST.finditer(blob, 0, _end_of_header(blob)))
    if len(places) != 1:
        raise error(f"a sealed file has one digest, this file has {len(places)}: it was altered.")
    return places[0].span(1)


def _end_of_header(blob: bytes) -> int:
    return _LENGTH.size + int(_LENGTH.unpack_from(blob)[0])


def is_command(character: str) -> bool:
    """Returns whether a character controls, hides, turns or breaks text, or is half of a surrogate pair."""
    kinds = ("Cc", "Cf", "Cs", "Zl", "Zp")  # joiners are part of words in some scripts, and of emoji
    return unicodedata.category(character) in kinds and character not in "\u200c\u200d"


def visible(value: Any) -> Any:
    """Returns texts of others, also inside lists and mappings, with escapes in place of characters that are commands.

    Example:
        >>> print(visible("a\x1b[31m\u202eb"))
        a\\x1b[31m\\u202eb
    """
    if isinstance(value, str):
        if value.isprintable():
            return value
        return "".join(ascii(char)[1:-1] if is_command(char) else char for char in value)
    if isinstance(value, Mapping):
        return {visible(name): visible(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [visible(entry) for entry in value]
    return value
