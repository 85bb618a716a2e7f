"""``StoredRanges``: the votes of each range of groups on disk, so that an interrupted run can go on."""

import hashlib
import json
from collections.abc import Mapping
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
        folder: The folder. It is made if it does not exist.
        key: Everything that the votes depend on, as JSON values.

    Raises:
        SettingsError: There is a file where the folder should be.
    """

    def __init__(self, folder: Path, key: Mapping[str, Any]) -> None:
        self.folder = folder
        self.key = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()
        if folder.exists() and not folder.is_dir():
            raise SettingsError(f"checkpoint={str(folder)!r}: a division keeps its votes in a folder; this is a file.")
        folder.mkdir(parents=True, exist_ok=True)

    def load(self) -> list[RangeVotes]:
        """Loads the ranges that are stored.

        Raises:
            SettingsError: The folder holds votes of another run.
        """
        return [self._read(file) for file in self._files()]

    def save(self, votes: RangeVotes) -> None:
        """Stores a range."""
        arrays = {name: getattr(votes, name) for name in _ARRAYS if getattr(votes, name) is not None}
        if votes.small is not None:
            arrays["small.size"] = votes.small.size
            arrays["small.node"] = votes.small.node
        first, end = votes.groups.start, votes.groups.stop
        header = {"format": FORMAT, "version": VERSION, "groups": [first, end], "key": self.key}
        write_sealed(self.folder / f"groups-{first:09d}-{end:09d}.votes", header, arrays, SettingsError)

    def clear(self) -> None:
        """Deletes the files, once a certificate holds all votes; the folder too if nothing else is in it."""
        for file in self._files():
            file.unlink()
        if not any(self.folder.iterdir()):
            self.folder.rmdir()

    def _files(self) -> list[Path]:
        return sorted(self.folder.glob("groups-*.votes"))

    def _read(self, file: Path) -> RangeVotes:
        header, arrays = read_sealed(file, FORMAT, VERSION, "file of votes", SettingsError)
        if header.get("key") != self.key:
            raise SettingsError(
                f"{self.folder} holds votes of another run (another graph, model, division, targets or tolerance): "
                "delete the folder, or name another."
            )
        small = None
        if "small.size" in arrays:
            small = SmallComponents(arrays["small.size"], arrays["small.node"])
        present = {name: arrays[name] for name in _ARRAYS if name in arrays}
        return RangeVotes(groups=range(*header["groups"]), small=small, **present)
