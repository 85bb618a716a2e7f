"""``agnncert datasets``."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from agnncert.cli import options as opt
from agnncert.cli.screen import Screen, table


def datasets(
    root: Annotated[Path | None, typer.Option(help="Folder that holds the datasets.", metavar="FOLDER")] = None,
    json: opt.Json = False,
) -> None:
    """List the datasets, and which of them are on this machine.

    Missing files are downloaded when a dataset is first used. Without a network, put them where the error
    message of that first use says; digits-knn and digits-grid need no files.
    """
    from agnncert.datasets.catalog import DATASETS, SOURCES, default_root

    place = root if root is not None else default_root()
    missing = {name: source.missing(place) for name, source in SOURCES.items()}
    there = {name: "built in" if name not in missing else "no" if missing[name] else "yes" for name in DATASETS}
    found = [{**asdict(info), "here": there[name], "missing": missing.get(name, [])} for name, info in DATASETS.items()]
    titles = ["name", "task", "size", "edges", "classes", "features", "here", "about"]
    text = table(titles, [[row[title] for title in titles] for row in found])
    Screen(json).result({"root": place, "datasets": found}, f"{text}\n\nFolder: {place}")
