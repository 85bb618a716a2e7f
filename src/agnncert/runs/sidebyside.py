"""Runs side by side: what they differ in, and what came out."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agnncert.errors import SettingsError
from agnncert.runs.folder import RunFolder, find_run

SIZES = (0, 1, 5, 10, 20, 50, 100)
_ACCURACIES = {
    "vote": "accuracy of the vote",
    "undefended": "accuracy, undefended",
    "no edges": "accuracy, no edges",
}


def side_by_side(places: Sequence[str | Path]) -> tuple[list[str], list[list[Any]]]:
    """A table of runs: its titles, and a row for each. Certified accuracies are those at the usual sizes.

    Raises:
        SettingsError: A place is not the folder of a run.
    """
    folders = []
    for place in places:
        folder = find_run(place) if Path(place).is_dir() else None
        if folder is None:
            raise SettingsError(f"{place} is not the folder of a run: it has no settings.toml.")
        folders.append(folder)
    tables = [_numbers(folder) for folder in folders]
    sizes = [size for size in SIZES if any(f"at {size}" in table for table in tables)]
    titles = ["data", "model", "division", "seed", *_ACCURACIES, *(f"at {s}" for s in sizes), "median radius"]
    shown = [title for title in titles if any(title in table for table in tables)]
    rows = [[str(f), *(t.get(name, "") for name in shown)] for f, t in zip(folders, tables, strict=True)]
    return ["run", *shown], rows


def _numbers(folder: RunFolder) -> dict[str, Any]:
    rows = folder.rows()
    if not rows:
        raise SettingsError(f"{folder} has no results yet: run its command again to finish it.")
    found: dict[str, Any] = {name: rows[-1][name] for name in ("data", "model", "division", "seed")}
    found["division"] = str(found["division"]).replace(", key=u64le", "").replace(", hash=md5", "")
    single = {row["measure"]: row["value"] for row in rows if row["size"] is None}
    found |= {name: round(single[m], 4) for name, m in _ACCURACIES.items() if m in single}
    found |= {"median radius": single["median radius"]} if "median radius" in single else {}
    for row in rows:
        if row["measure"] in ("certified accuracy", "certified share") and row["size"] in SIZES:
            found[f"at {row['size']}"] = round(row["value"], 4)
    if any(
        title.startswith("at ") for title in found
    ):  # sizes beyond the last one stored: nothing is certified
        found = {**{f"at {size}": 0.0 for size in SIZES if f"at {size}" not in found}, **found}
    return found
