"""``Place``: a folder on a disk or in object storage, with files that are written whole or not at all.

Local folders, network file systems, ``s3://`` and everything else that pyarrow or fsspec opens are
the same to the rest of the package. Reads and writes are tried again for a while, because storage
on a network fails now and then.
"""

import logging
import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from agnncert.errors import GraphError, missing
from agnncert.storage import write_atomic

log = logging.getLogger(__name__)
Result = TypeVar("Result")

FIRST_PAUSE = 0.2  # seconds before a failed read or write is tried again; then twice as long
PATIENCE = 60.0  # seconds after which storage that keeps failing is given up


class Retries:
    """Counts bytes that were read, and how often storage failed."""

    def __init__(self) -> None:
        self.bytes_read = 0
        self.failures = 0


@dataclass(frozen=True)
class Place:
    """A folder on a disk or in object storage.

    Attributes:
        address: A path, or an address such as ``s3://bucket/folder``. It may hold keys; ``str``
            leaves these out.
        patience: For how many seconds storage that fails is asked again.
        seen: What was read so far.
    """

    address: str
    patience: float = PATIENCE
    seen: Retries = field(default_factory=Retries, compare=False, repr=False)

    def __str__(self) -> str:
        if "://" not in self.address:
            return self.address
        parts = urlsplit(self.address)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"

    def __getstate__(self) -> dict[str, Any]:
        return {"address": self.address, "patience": self.patience, "seen": Retries()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def inside(self, folder: str) -> "Place":
        """Returns a folder of this one."""
        if "://" not in self.address:
            return Place(str(Path(self.address) / folder), self.patience, self.seen)
        path, mark, settings = self.address.partition("?")
        address = f"{path.rstrip('/')}/{folder}{mark}{settings}"
        return Place(address, self.patience, self.seen)

    @property
    def is_local(self) -> bool:
        """Whether it is a folder of this machine's file system."""
        return "://" not in self.address

    @cached_property
    def _opened(self) -> tuple[Any, str]:
        """The file system, and the path in it."""
        try:
            from pyarrow import ArrowInvalid, fs
        except ModuleNotFoundError as error:
            raise missing(error.name, "a graph in parts") from None
        if self.is_local:
            return fs.LocalFileSystem(), str(Path(self.address).resolve())
        try:
            opened, path = fs.FileSystem.from_uri(self.address)
        except (ArrowInvalid, NotImplementedError):
            opened, path = _by_fsspec(self)
        except OSError as reason:
            raise GraphError(f"{self} cannot be opened: {str(reason)[:300]}.") from None
        return opened, path.rstrip("/")

    def read(self, name: str) -> bytes:
        """Returns the content of a file.

        Raises:
            FileNotFoundError: There is no such file.
            GraphError: Storage kept failing.
        """
        system, path = self._opened

        def read() -> bytes:
            with system.open_input_file(f"{path}/{name}") as file:
                content: bytes = file.read()
            return content

        content = self._patiently(read, f"reading {self}/{name}")
        self.seen.bytes_read += len(content)
        return content

    def write(self, name: str, content: bytes, durable: bool = False) -> None:
        """Writes a file, all of it or nothing; an older one is replaced.

        Args:
            name: Its name.
            content: Its bytes.
            durable: Whether it is on the disk when this returns. What carries a digest need not be.

        Raises:
            GraphError: Storage kept failing, or cannot be written.
        """
        system, path = self._opened

        def write() -> None:
            if self.is_local:
                file = Path(path) / name
                file.parent.mkdir(parents=True, exist_ok=True)
                if durable:
                    write_atomic(file, content)
                else:
                    _write_whole(file, content)
                return
            if not system.type_name.startswith("s3"):
                system.create_dir(f"{path}/{name}".rpartition("/")[0], recursive=True)
            with system.open_output_stream(f"{path}/{name}") as file:
                file.write(content)

        self._patiently(write, f"writing {self}/{name}")

    def sizes(self, folder: str = "") -> dict[str, int]:
        """Returns the names of all files in a folder and its folders, with their sizes."""
        from pyarrow import fs

        system, path = self._opened
        where = f"{path}/{folder}".rstrip("/")

        def listed() -> list[Any]:
            chosen = fs.FileSelector(where, recursive=True, allow_not_found=True)
            return list(system.get_file_info(chosen))

        found = self._patiently(listed, f"listing {self}/{folder}")
        files = [info for info in found if info.type == fs.FileType.File]
        return {info.path[len(path) + 1 :]: info.size for info in files}

    def remove(self, name: str) -> None:
        """Deletes a file, if it is there."""
        system, path = self._opened

        def remove() -> None:
            try:
                system.delete_file(f"{path}/{name}")
            except FileNotFoundError:
                return

        self._patiently(remove, f"deleting {self}/{name}")

    def remove_folder(self, folder: str) -> None:
        """Deletes a folder with all files in it, if it is there."""
        for name in self.sizes(folder):
            self.remove(name)
        if self.is_local:
            _remove_empty(Path(self.address) / folder)

    def _patiently(self, work: Callable[[], Result], what: str) -> Result:
        """Returns the result of some work, which is tried again while storage fails."""
        pause = FIRST_PAUSE
        give_up_at = time.monotonic() + self.patience
        while True:
            try:
                return work()
            except FileNotFoundError:
                raise
            except OSError as reason:
                if time.monotonic() + pause > give_up_at or (self.is_local and _is_final(reason)):
                    raise GraphError(f"{what} failed: {str(reason)[:300]}.") from None
                self.seen.failures += 1
                log.warning("%s failed, trying again in %.1f s: %.200s", what, pause, reason)
            time.sleep(pause)
            pause *= 2


def _write_whole(file: Path, content: bytes) -> None:
    """Writes a file under another name, and then gives it its own."""
    draft = file.with_name(f".{file.name}.{secrets.token_hex(4)}.part")
    try:
        draft.write_bytes(content)
        os.replace(draft, file)
    finally:
        draft.unlink(missing_ok=True)


def _is_final(reason: OSError) -> bool:
    """Tells whether a local file system will say the same again: no room, no right, no folder."""
    return isinstance(reason, PermissionError | NotADirectoryError | IsADirectoryError) or (
        reason.errno in (28, 30)  # no space, read-only
    )


def _by_fsspec(place: Place) -> tuple[Any, str]:
    """Opens an address that pyarrow does not know by itself."""
    from pyarrow import fs

    try:
        from fsspec.core import url_to_fs

        opened, path = url_to_fs(place.address)
    except (ImportError, ValueError, OSError) as reason:
        raise GraphError(
            f"{place} cannot be opened: {str(reason)[:200]}. Give a folder, or an address that pyarrow "
            "or fsspec knows, such as s3://bucket/folder."
        ) from None
    return fs.PyFileSystem(fs.FSSpecHandler(opened)), path


def _remove_empty(folder: Path) -> None:
    """Removes a folder and the folders in it, as far as they are empty."""
    if not folder.is_dir():
        return
    for inner in folder.iterdir():
        _remove_empty(inner)
    if not any(folder.iterdir()):
        folder.rmdir()


@contextmanager
def spare_folder(folder: str | None) -> Iterator[Path]:
    """Yields a folder of this machine for what is only needed meanwhile."""
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(dir=folder, prefix="agnncert-") as made:
        yield Path(made)
