"""``agnncert compare``."""

import math
from pathlib import Path
from typing import Annotated

import typer

from agnncert.cli import options as opt
from agnncert.cli.screen import Screen, table
from agnncert.errors import SettingsError

WORK = "Comparison"


def compare(
    what: Annotated[
        list[str],
        typer.Argument(help="Folders of runs; or a dataset, or a folder with tables.", metavar="RUN… | DATA"),
    ],
    *,
    attack: Annotated[
        str, typer.Option(help="edges, injection, features, or 'edges and features'.", rich_help_panel=WORK)
    ] = "edges",
    defence: Annotated[
        list[str],
        typer.Option(
            default_factory=list, show_default="those that cover the attack", metavar="NAME", rich_help_panel=WORK,
            help="edge, node, gated, gnncert-e, gnncert-n, gnncert-en, rs, sparse-rs or bi-rs, with settings as in "
            "node:num_groups=100 or bi-rs:p_edge=0.7,p_node=0.9. May be repeated.",
        ),
    ],
    sizes: Annotated[str, typer.Option(help="Sizes, such as 0,5,20.", metavar="N,N,…", rich_help_panel=WORK)] = "",
    edges_per_injected: Annotated[
        str, typer.Option(help="Edges of each injected node, or inf.", metavar="N", rich_help_panel=WORK)
    ] = "inf",
    own_features: Annotated[
        bool,
        typer.Option("--own-features", metavar="", help="Targets' own features too.", rich_help_panel=WORK),
    ] = False,
    references: Annotated[
        bool, typer.Option(help="Also show an undefended model and one without edges.", rich_help_panel=WORK)
    ] = True,
    model: Annotated[
        str, typer.Option(help="The base model of all, or package.module:factory.", rich_help_panel=opt.MODEL)
    ] = "gcn",
    set: opt.Set,
    epochs: Annotated[int | None, typer.Option(help="Epochs of training.", rich_help_panel=opt.MODEL)] = None,
    n0: Annotated[int, typer.Option(help="Samples that choose labels.", rich_help_panel="Sampling")] = 100,
    n: Annotated[
        int, typer.Option("--samples", help="Samples that bound probabilities.", rich_help_panel="Sampling")
    ] = 10_000,
    alpha: Annotated[float, typer.Option(help="Probability of error.", rich_help_panel="Sampling")] = 0.01,
    root: opt.Root = None,
    column: opt.Column,
    feature: opt.Feature,
    directed: opt.Directed = False,
    seed: opt.Seed = 0,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for tables, figures and certificates.", rich_help_panel=opt.RUN, metavar="FOLDER"),
    ] = None,
    settings: opt.SettingsFile = None,
    json: opt.Json = False,
) -> None:  # fmt: skip
    """Put runs side by side, or defences on one dataset.

    Given run folders, it shows what they differ in and what came out. Given data, it trains and certifies with
    every defence that covers the attack, on the same split, and shows certified accuracy and cost.
    """
    screen = Screen(json)
    if all(Path(one, "settings.toml").is_file() for one in what):
        from agnncert.studies.compare import side_by_side

        titles, rows = side_by_side(what)
        found = [dict(zip(titles, row, strict=True)) for row in rows]
        screen.result({"runs": found}, table(titles, rows))
        return
    if len(what) > 1:
        raise SettingsError(f"expected folders of runs, or one dataset; {', '.join(what)} are neither.")
    from agnncert.studies.compare import compare_run
    from agnncert.studies.settings import DataSettings

    data = DataSettings(
        data=what[0], root=root, column=opt.texts("column", column), feature=tuple(feature), directed=directed,
        seed=seed,
    )  # fmt: skip
    with screen.following() as on_progress:
        compared = compare_run(
            data, defence, lambda words: opt.pairs("defence", words), out, on_progress, attack=attack,
            sizes=opt.numbers("sizes", sizes) or None, edges_per_injected=_amount(edges_per_injected),
            own_features=own_features, references=references, model=model, model_args=opt.pairs("set", set),
            fit_args={} if epochs is None else {"epochs": epochs}, n0=n0, n=n, alpha=alpha,
        )  # fmt: skip
    outcome = {"folder": compared.folder, "files": compared.files, **compared.comparison.to_json()}
    screen.result(outcome, f"{compared.comparison}\n\nTables and figures: {compared.folder}")


def _amount(text: str) -> float:
    return math.inf if text == "inf" else opt.numbers("edges-per-injected", text)[0]
