"""``agnncert attack``."""

from pathlib import Path
from typing import Annotated

import typer

from agnncert.cli import options as opt
from agnncert.cli.screen import Screen, table


def attack(
    run: Annotated[Path, typer.Argument(help="The folder of a certified run.", metavar="RUN")],
    *,
    kind: Annotated[
        list[str],
        typer.Option(
            default_factory=lambda: ["greedy"], show_default="greedy", metavar="NAME",
            help="greedy, injection, deletions, features, hubs, random, gradient or exhaustive. May be repeated: the "
            "best counts.",
        ),
    ],
    sizes: Annotated[
        str,
        typer.Option(help="Amounts to try, such as 1,5,20.", metavar="N,N,…", show_default="around what is certified"),
    ] = "",
    vary: Annotated[str, typer.Option(help="The field of the budget that grows.")] = "add_edges",
    also: Annotated[
        list[str],
        typer.Option(
            default_factory=list, show_default=False, metavar="FIELD=N",
            help="The rest of the budget, such as delete_edges=inf. May be repeated.",
        ),
    ],
    sample: Annotated[
        str, typer.Option(help="Targets to attack at each size, half of them certified; or all.", metavar="N")
    ] = "50",
    seed: Annotated[int, typer.Option(help="Seed of the sample and of the attacks.")] = 0,
    root: opt.Root = None,
    settings: opt.SettingsFile = None,
    json: opt.Json = False,
) -> None:  # fmt: skip
    """Try to break a certificate, within what it proves and beyond.

    The attacks know model and division. The share of labels that survive is an upper bound beside the
    certified lower one; both go into the report. Exit status: 0 no certified label fell, 1 one did.
    """
    from agnncert.studies.attack import AttackSettings, attack_run

    wanted = AttackSettings(
        kind=tuple(kind), vary=vary, sizes=opt.numbers("sizes", sizes), also=opt.pairs("also", also),
        sample=None if sample == "all" else opt.numbers("sample", sample)[0], seed=seed,
    )  # fmt: skip
    screen = Screen(json)
    with screen.following():
        attacked = attack_run(run, wanted, root)
    titles = [vary, "certified", "after attack", "certified, attacked", "fell", "others, attacked", "fell "]
    rounds = [
        [r.size, r.certified, r.left, r.attacked_certified, r.fallen_certified, r.attacked_others, r.fallen_others]
        for r in attacked.rounds
    ]
    holds = not attacked.violations
    last = "No certified label fell." if holds else f"{attacked.violations} certified labels fell: refuted."
    outcome = {"run": attacked.folder, "report": attacked.page, "violations": attacked.violations}
    outcome["rounds"] = [vars(one) for one in attacked.rounds]
    screen.result(outcome, f"{table(titles, rounds)}\n{last}\nReport: {attacked.page}")
    raise typer.Exit(0 if holds else 1)
