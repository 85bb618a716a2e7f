"""``StoredRanges``: the votes of each range of groups on disk, so that an interrupted run can go on."""

import hashlib
import json
from pathlib import Path
from typing import Any

from agnncert.engine.range_votes import RangeVotes
from agnncert.engine.reach import SmallComponents
from agnncert.errors import SettingsError
from agnncert.storage import read_sealed, write_sealed

FORMAT = "agnncert-votes"
VERSION = 1
_ARRAYS = ("size", "owner", "reached", "vote", "stable", "reach")


class StoredRanges:
    """Votes in a folder, one sealed file per range of groups, so that an interrupted run can go on.

    Args:
        folder: The folder; made if it is not there.
        key: Everything that the votes depend on, as JSON values.

    Raises:
        SettingsError: The folder holds votes of another run.
    """

    def __init__(self, folder: Path, key: dict[str, Any]) -> None:
        self.folder = folder
        self.key = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()
        if folder.exists() and not folder.is_dir():
            raise SettingsError(f"checkpoint={str(folder)!r}: a division keeps its votes in a folder; this is a file.")
        folder.mkdir(parents=True, exist_ok=True)

    def load(self) -> list[RangeVotes]:
        """The ranges that are stored."""
        return [self._read(file) for file in sorted(self.folder.glob("groups-*.votes"))]

    def save(self, part: RangeVotes) -> None:
        """Stores a range."""
        arrays = {name: getattr(part, name) for name in _ARRAYS if getattr(part, name) is not None}
        if part.small is not None:
            arrays |= {"small.size": part.small.size, "small.node": part.small.node}
        ends = [part.groups.start, part.groups.stop]
        header = {"format": FORMAT, "version": VERSION, "groups": ends, "key": self.key}
        write_sealed(self.folder / f"groups-{ends[0]:09d}-{ends[1]:09d}.votes", header, arrays, SettingsError)

    def clear(self) -> None:
        """Deletes the files: the certificate holds all votes."""
        for file in self.folder.glob("groups-*.votes"):
            file.unlink()
        if not any(self.folder.iterdir()):
            self.folder.rmdir()

    def _read(self, file: Path) -> RangeVotes:
        header, arrays = read_sealed(file, FORMAT, VERSION, "file of votes", SettingsError)
        if header.get("key") != self.key:
            raise SettingsError(
                f"{self.folder} holds votes of another vote (another graph, model, division, targets or tolerance): "
                "delete the folder, or name another."
            )
        small = None
        if "small.size" in arrays:
            small = SmallComponents(arrays["small.size"], arrays["small.node"])
        own = {name: arrays[name] for name in _ARRAYS if name in arrays}
        return RangeVotes(groups=range(*header["groups"]), small=small, **own)
