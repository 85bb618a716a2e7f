"""``agnncert report``."""

from pathlib import Path
from typing import Annotated

import typer

from agnncert.cli import options as opt
from agnncert.cli.screen import Screen


def report(
    file: Annotated[Path, typer.Argument(help="A certificate, or the run folder that holds one.", metavar="FILE")],
    out: Annotated[
        Path | None,
        typer.Option(help="The page to write.", metavar="FILE", show_default="report.html beside the certificate"),
    ] = None,
    papers: Annotated[
        Path | None, typer.Option(help="Folder for figures (SVG, PDF) and tables (CSV, LaTeX).", metavar="FOLDER")
    ] = None,
    json: opt.Json = False,
) -> None:
    """Show a certificate as one HTML page that opens anywhere.

    Of a run folder it also shows the models to compare with, the attacks and the environment.
    """
    from agnncert.studies.report import report_run

    reported = report_run(file, out, papers)
    outcome = {"report": reported.page, "files": reported.files, "sentences": reported.sentences}
    places = [f"Report: {reported.page}", *(f"  {path}" for path in reported.files)]
    Screen(json).result(outcome, "\n".join([*places, *reported.sentences]))
