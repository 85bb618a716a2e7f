"""``agnncert repeat``."""

from pathlib import Path
from typing import Annotated

import typer

from agnncert.cli import options as opt
from agnncert.cli.screen import Screen


def repeat(
    run: Annotated[Path, typer.Argument(help="The folder of a run.", metavar="RUN")],
    out: Annotated[
        Path | None, typer.Option(help="Folder for the new run.", metavar="FOLDER", show_default="RUN-again")
    ] = None,
    root: opt.Root = None,
    json: opt.Json = False,
) -> None:
    """Do a run again from its folder alone, and compare what comes out.

    Exit status: 0 the same weights, labels and radii came out, 1 something differs.
    """
    from agnncert.studies.repeat import repeat_run

    screen = Screen(json)
    with screen.following() as on_progress:
        repeated = repeat_run(run, out, root, on_progress)
    same = not repeated.differences
    lines = [f"  differs: {difference}" for difference in repeated.differences]
    head = f"{repeated.folder} is {'the same as' if same else 'not the same as'} {run}."
    outcome = {"run": repeated.folder, "same": same, "differences": repeated.differences}
    screen.result(outcome, "\n".join([head, *lines]))
    raise typer.Exit(0 if same else 1)
