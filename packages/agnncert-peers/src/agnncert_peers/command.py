"""The command ``agnncert compare``."""

from pathlib import Path
from typing import Annotated

import typer

from agnncert.cli import options
from agnncert.cli.screen import Screen, table
from agnncert.cli.settings import read_settings
from agnncert.errors import SettingsError


def compare(
    what: Annotated[
        list[str] | None,
        typer.Argument(metavar="RUN… | DATA", help="Folders of runs; or a dataset, or a folder with tables."),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(help="Attack: edges, injection, features, or 'edges and features'.", show_default="edges"),
    ] = None,
    defence: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", show_default="those that cover the attack",
            help="edge, node, gated, gnncert-e, gnncert-n, gnncert-en, rs, sparse-rs, bi-rs or stacked, with settings "
            "as in node:num_groups=100 or bi-rs:p_edge=0.7,p_node=0.9. May be repeated.",
        ),
    ] = None,
    sizes: Annotated[str | None, typer.Option(metavar="N,N,…", help="Attack sizes to show, such as 0,5,20.")] = None,
    size: Annotated[
        str | None,
        typer.Option(
            metavar="M,M,…", show_default="none",
            help="Choose the voting rule of edge and node for perturbations of this size; one row for each.",
        ),
    ] = None,
    model: options.Model = None,
    epochs: options.Epochs = None,
    empty: options.Empty = None,
    prior: options.Prior = None,
    references: options.References = None,
    scores: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Your own scores as a further control: a CSV table with a column id and a column of scores.",
        ),
    ] = None,
    seed: options.Seed = None,
    seeds: Annotated[
        str | None,
        typer.Option(metavar="N,N,…", show_default="one", help="Seeds, such as 0,1,2: shows means and deviations."),
    ] = None,
    root: options.Root = None,
    set_: options.Set = None,
    settings: options.SettingsFile = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Folder for tables, figures and certificates.")
    ] = None,
    json: options.Json = False,
) -> None:  # fmt: skip
    """Compare runs, or certified defences on one dataset.

    Given run folders, prints their settings and results side by side. Given data, trains and certifies with every
    defence that covers the attack, on the same split, and prints certified accuracy and cost.
    """
    from agnncert_peers.steps import CompareSettings, compare_run, side_by_side

    screen = Screen(json)
    places = what or []
    if places and all(Path(place, "settings.toml").is_file() for place in places):
        titles, rows = side_by_side(places)
        screen.result({"runs": [dict(zip(titles, row, strict=True)) for row in rows]}, table(titles, rows))
        return
    if len(places) > 1:
        raise SettingsError(f"expected folders of runs, or one dataset; {', '.join(places)} are neither.")
    wanted = read_settings(
        CompareSettings, "compare", settings, set_ or (), data=places[0] if places else None, against=against,
        defence=defence, sizes=sizes, size=size, model=model, epochs=epochs, empty=empty, prior=prior,
        references=references, scores=scores, seed=seed, seeds=seeds, root=root,
    )  # fmt: skip
    with screen.following() as on_progress:
        compared = compare_run(wanted, out, on_progress)
    outcome = {"folder": compared.folder, "files": compared.files, **compared.comparison.to_json()}
    screen.result(outcome, f"{compared.comparison}\n\nTables and figures: {compared.folder}")
