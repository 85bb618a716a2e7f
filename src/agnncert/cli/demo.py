"""``agnncert demo``."""

from pathlib import Path
from typing import Annotated

import typer

from agnncert.cli import options as opt
from agnncert.cli.screen import Screen


def demo(
    out: Annotated[Path, typer.Option(help="Run folder; a run that it holds is replaced.", metavar="FOLDER")] = Path(
        "runs/demo"
    ),
    json: opt.Json = False,
) -> None:
    """Train, certify, attack, verify and report on bundled data, in about a minute.

    Needs no network. Ends with a page to open in a browser.
    """
    from agnncert.studies.demo import demo_run

    screen = Screen(json)
    with screen.following() as on_progress:
        shown = demo_run(out, on_progress)
    fell = shown.attacked.violations
    tried = sum(one.attacked_certified for one in shown.attacked.rounds)
    others = sum(one.attacked_others for one in shown.attacked.rounds)
    broken = sum(one.fallen_others for one in shown.attacked.rounds)
    text = [
        "",
        f"Attacked within the proof: {fell} of {tried} labels changed. Beyond it: {broken} of {others}.",
        str(shown.verdict).splitlines()[0],
        f"Done in {shown.seconds:.0f} s. Open {shown.page} in a browser.",
        "",
        *shown.sentences,
    ]
    outcome = {
        "run": shown.folder, "report": shown.page, "sentences": shown.sentences, "holds": shown.verdict.holds,
        "violations": fell, "seconds": round(shown.seconds, 1), "results": shown.folder.rows(),
    }  # fmt: skip
    screen.result(outcome, "\n".join(text))
    raise typer.Exit(0 if shown.verdict.holds and not fell else 1)
