"""Where the tables lie that settings name, or of which a run folder holds a copy."""

from pathlib import Path

from agnncert.cli.folder import RunFolder
from agnncert.cli.settings import DataSettings
from agnncert.datasets.columns import locate
from agnncert.errors import SettingsError


def table_file(settings: DataSettings, kind: str) -> Path:
    """Returns the file of a table that settings name. A table of events may be a folder of files.

    Args:
        settings: The settings.
        kind: "nodes", "events", …

    Raises:
        SettingsError: There is none.
    """
    file = locate(settings.data or None, kind, getattr(settings, kind), is_required=False)
    if file is None or not file.exists():
        raise SettingsError(f"there is no table of {kind}: {file or settings.data}.")
    return file


def table_of_run(run: RunFolder, kind: str) -> Path | None:
    """Returns the run's copy of a table; None if it has none."""
    return locate(run.tables, kind, None, is_required=False) if run.tables.is_dir() else None


def require_table_of_run(run: RunFolder, kind: str) -> Path:
    """Does the same, and raises SettingsError if there is none."""
    file = table_of_run(run, kind)
    if file is None:
        raise SettingsError(f"{run} holds no table of {kind}: name one, as in --by {kind}.csv:COLUMN.")
    return file
