"""``agnncert verify``."""

import math
from pathlib import Path
from typing import Annotated

import typer

from agnncert.cli import options as opt
from agnncert.cli.screen import Screen
from agnncert.errors import SettingsError


def verify(
    file: Annotated[Path, typer.Argument(help="A certificate, or the run folder that holds one.", metavar="FILE")],
    *,
    ballots: Annotated[
        str, typer.Option(help="Ballots to cast again, chosen at random, or all. Needs data and model.", metavar="N")
    ] = "0",
    data: Annotated[
        str | None, typer.Option(help="The data: a run folder, a dataset or a folder with tables.", metavar="DATA")
    ] = None,
    root: opt.Root = None,
    model: Annotated[str | None, typer.Option(help="The model as package.module:factory, or built in.")] = None,
    weights: Annotated[str | None, typer.Option(help="Its weights, a safetensors file.", metavar="FILE")] = None,
    set: opt.Set,
    column: opt.Column,
    feature: opt.Feature,
    directed: opt.Directed = False,
    seed: Annotated[int, typer.Option(help="Seed of the choice of ballots, and of a split that is drawn.")] = 0,
    settings: opt.SettingsFile = None,
    json: opt.Json = False,
) -> None:
    """Check a certificate: derive everything it states again, from the file alone.

    With --ballots, ballots are cast again as well, one subgraph at a time. Data and model are those of the
    run folder in which the file lies, unless others are named. Exit status: 0 it holds, 1 it does not.
    """
    from agnncert.verifier import verify as check

    certificate = file / "certificate.cert" if file.is_dir() else file
    number = _number(ballots)
    screen = Screen(json)
    if not (number or data or model):
        verdict = check(certificate)
    else:
        from agnncert.studies.checks import verify_named
        from agnncert.studies.settings import CertifySettings

        named = CertifySettings(
            data=data or "", root=root, model=model, weights=weights, set=opt.pairs("set", set),
            column=opt.texts("column", column), feature=tuple(feature), directed=directed, seed=seed,
        )  # fmt: skip
        with screen.following():
            verdict = verify_named(certificate, named, number)
    outcome = {"holds": verdict.holds, "reasons": verdict.reasons, "checked": verdict.checked}
    screen.result({"file": certificate, **outcome}, str(verdict))
    raise typer.Exit(0 if verdict.holds else 1)


def _number(ballots: str) -> float:
    if ballots == "all":
        return math.inf
    if not ballots.isdecimal():
        raise SettingsError(f'--ballots {ballots}: expected a whole number from 0 on, or "all".')
    return int(ballots)
