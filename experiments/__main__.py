"""``python -m experiments``: runs the paper's experiments; see ``python -m experiments --help``."""

import sys

import typer

from agnncert.cli import run_app
from experiments.paper.command import reproduce

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
app.command()(reproduce)

if __name__ == "__main__":
    sys.exit(run_app(app, sys.argv[1:], "python -m experiments"))
