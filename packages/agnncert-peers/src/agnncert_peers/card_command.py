"""The commands ``agnncert card`` and ``agnncert cards``."""

from pathlib import Path
from typing import Annotated

import typer

from agnncert.cli.options import Root
from agnncert.errors import SettingsError, did_you_mean

# Exit statuses.
REFUTED = 1
NOT_DERIVED = 3


def card(
    place: Annotated[
        Path, typer.Argument(metavar="RUN | COMPARISON | FILE", help="Folder of a run or comparison, or a certificate.")
    ],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder of the cards.")] = Path("cards"),
    defence: Annotated[str, typer.Option(help="Name of the defence.", show_default="as the run says")] = "",
    protocol: Annotated[
        str, typer.Option(metavar="WORDS", help="How the data is split and what training sees.", show_default="30 %")
    ] = "",
    split: Annotated[str, typer.Option(help="The split, if it is not the usual one, such as 20-per-class.")] = "",
    citation: Annotated[str, typer.Option(metavar="WORDS", help="Whom to cite.")] = "",
    data: Annotated[str, typer.Option(help="Name of the dataset, where the folder does not say it.")] = "",
    seed: Annotated[int | None, typer.Option(help="Seed, where the folder does not say it.")] = None,
    sizes: Annotated[str, typer.Option(metavar="N,N,…", help="Sizes of the attack.")] = "0,1,2,3,5,10",
) -> None:
    """Write the result of a run or a comparison as cards: one JSON file per threat, with its certificate.

    A second run with another seed is added to the same cards.
    """
    from agnncert_peers.card_making import Stated, cards_of

    try:
        chosen = tuple(sorted({int(word) for word in sizes.split(",")}))
    except ValueError as error:
        raise SettingsError(f"--sizes {sizes}: expected whole numbers, such as 0,1,5.") from error
    if not place.exists():
        raise SettingsError(f"there is no {place}.")
    stated = Stated(defence=defence, protocol=protocol, split=split, citation=citation, dataset=data, seed=seed)
    files = cards_of(place, out, stated, chosen)
    for file in files:
        typer.echo(str(file))
    if not files:
        typer.echo("no card: nothing is proved against any of the threats.")


def cards(
    action: Annotated[str, typer.Argument(metavar="check | page", help="Derive all numbers again, or write a page.")],
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder of the cards.")],
    root: Root = None,
    out: Annotated[Path, typer.Option(metavar="FILE", help="The page.")] = Path("cards.html"),
    partial: Annotated[
        bool, typer.Option("--partial", help="Accept cards whose certificate is not in the folder (status 0, not 3).")
    ] = False,
) -> None:
    """Recompute every number in a folder of cards from the certificates, or show all cards on one page.

    With --root, targets and true classes are compared with the datasets too. Status 1: a number is wrong. Status 3: a
    certificate is missing, so a number could not be recomputed.
    """
    if action == "page":
        from agnncert_peers.card_page import write_page

        typer.echo(str(write_page(folder, out)))
        return
    if action != "check":
        raise SettingsError(f"cards {action}: {did_you_mean(action, ['check', 'page'])}")
    from agnncert_peers.card_check import check_folder

    counted = {"derived again": 0, "not derived again": 0, "wrong": 0}
    numbers = 0
    not_compared: dict[str, int] = {}
    for verdict in check_folder(folder, root):
        counted[verdict.status] += 1
        numbers += verdict.derived
        if verdict.not_compared:
            not_compared[verdict.not_compared] = not_compared.get(verdict.not_compared, 0) + 1
        for reason in (*verdict.wrong, *verdict.missing):
            typer.echo(f"{verdict.file.name}: {verdict.status}: {reason}")
    words = ", ".join(f"{number:,} {status}" for status, number in counted.items() if number)
    typer.echo(f"{sum(counted.values()):,} cards: {words}. {numbers:,} numbers are as their certificates prove.")
    if root is None:
        typer.echo("Targets and true classes were not compared with the datasets: pass --root.")
    for reason, number in not_compared.items():
        typer.echo(f"Targets and true classes of {number:,} cards were not compared: {reason}.")
    if counted["wrong"]:
        raise typer.Exit(REFUTED)
    if counted["not derived again"] and not partial:
        raise typer.Exit(NOT_DERIVED)
