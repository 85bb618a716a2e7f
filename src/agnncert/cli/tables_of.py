"""Where the tables lie that settings name."""

from pathlib import Path

from agnncert.cli.settings import DataSettings
from agnncert.datasets.columns import FORMATS
from agnncert.errors import SettingsError


def table_file(settings: DataSettings, kind: str) -> Path:
    """Returns the file of a table that settings name.

    Args:
        settings: The settings.
        kind: "nodes", "events", …

    Raises:
        SettingsError: There is none.
    """
    named = getattr(settings, kind)
    files = [Path(named)] if named else [Path(settings.data or "", f"{kind}{suffix}") for suffix in FORMATS]
    for file in files:
        if file.is_file():
            return file
    raise SettingsError(f"there is no table of {kind}: {', '.join(map(str, files))}.")
