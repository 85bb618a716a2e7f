"""May the code that a run folder names be run? Only if the folder is the user's own work, or the user names that code.

A folder that someone else sent, or altered, must not decide what this machine executes or which of its files are read.
So commands remember, outside of the folder, which folders they themselves have written, and from where: a note of the
folder's place, of the current folder, from which modules are found, and of its settings. Whoever has not made a folder
here names the model (``--model``) or vouches for the folder (``--trust``).
"""

import hashlib
import os
from contextlib import suppress
from pathlib import Path

from agnncert.storage import write_atomic

_MOST_NOTES = 2000
_NOTES = "own-runs.txt"


def is_own_work(settings: Path) -> bool:
    """Whether commands on this machine, called from the current folder, wrote these settings of a run."""
    with suppress(OSError, UnicodeError):
        return _note(settings) in _notes()
    return False


def remember(settings: Path) -> None:
    """Notes that a command wrote these settings; where that cannot be stored, the folder counts as anyone's."""
    with suppress(OSError, UnicodeError):
        note, place = _note(settings), _place()
        known = [line for line in _notes() if line != note]
        place.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(place, "".join(f"{line}\n" for line in [*known, note][-_MOST_NOTES:]))


def _note(settings: Path) -> str:
    content = hashlib.sha256(settings.read_bytes()).hexdigest()
    return hashlib.sha256("\0".join([str(settings.resolve()), os.getcwd(), content]).encode()).hexdigest()


def _notes() -> list[str]:
    place = _place()
    return place.read_text(encoding="utf-8").splitlines() if place.is_file() else []


def _place() -> Path:
    """``AGNNCERT_STATE``, else where the system keeps what programs remember."""
    if own := os.environ.get("AGNNCERT_STATE"):
        return Path(own) / _NOTES
    home = os.environ.get("XDG_STATE_HOME")
    return (Path(home) if home else Path.home() / ".local" / "state") / "agnncert" / _NOTES
