"""``python -m experiments``: the paper's experiments, as a command."""

from pathlib import Path
from typing import Annotated

import typer

from agnncert.cli.options import Json, Root, WorkersOption, workers_named
from agnncert.cli.screen import Screen, table
from agnncert.errors import SettingsError


def reproduce(
    names: Annotated[list[str] | None, typer.Argument(help="Experiments; see --list.", metavar="NAME…")] = None,
    list_: Annotated[bool, typer.Option("--list", help="List the experiments, and what is done of each.")] = False,
    all_: Annotated[bool, typer.Option("--all", help="All experiments.")] = False,
    small: Annotated[bool, typer.Option("--small", help="A first look: small data and few runs, in minutes.")] = False,
    only: Annotated[
        list[str] | None, typer.Option(help="Run this dataset only. May be repeated.", metavar="DATASET")
    ] = None,
    run: Annotated[bool, typer.Option("--run/--no-run", help="Run what is missing, or only write the page.")] = True,
    out: Annotated[Path, typer.Option(help="Folder for the rows.", metavar="FOLDER")] = Path("experiments/results"),
    page: Annotated[
        Path | None,
        typer.Option(
            help="The page to write; figures go beside it.", metavar="FILE", show_default="results.md in the folder"
        ),
    ] = None,
    benchmarks: Annotated[
        Path | None, typer.Option(help="Folder with the results of make bench, for the page.", metavar="FOLDER")
    ] = Path("experiments/benchmarks/results"),
    against: Annotated[
        Path | None, typer.Option(help="Compare the rows with those of another folder, run for run.", metavar="FOLDER")
    ] = None,
    root: Root = None,
    workers: WorkersOption = None,
    json: Json = False,
) -> None:
    """Run the paper's experiments, and draw its figures and tables beside ours.

    Every run leaves a row; what is there already is not run again, so that an interrupted command, given
    again, goes on where it stopped.

    Exit status: 0 done, 1 rows differ from those of --against.
    """
    from experiments.paper.spec import EXPERIMENTS

    screen = Screen(json)
    if list_:
        _list_experiments(screen, out, small)
        return
    chosen = list(EXPERIMENTS) if all_ else names or []
    if not chosen:
        raise SettingsError(f"which experiments? Name some, or use --all. Valid: {', '.join(EXPERIMENTS)}.")
    from experiments.paper.reproduce import reproduce as run_experiments

    chosen_workers = workers_named(workers)
    with screen.following() as on_progress:
        done = run_experiments(
            chosen, out, small=small, root=root, datasets=only or [], run=run, page=page, benchmarks=benchmarks,
            on_progress=on_progress, workers=chosen_workers,
        )  # fmt: skip
    lines = [
        f"{len(done.rows)} rows in {out}, {done.ran} of them new, {len(done.missing)} missing.",
        f"Page: {done.page}",
    ]
    left = {"rows": done.rows, "ran": done.ran, "missing": len(done.missing), "page": done.page, "folder": out}
    if against is None:
        screen.result(left, "\n".join(lines))
        return
    from experiments.paper.reproduce import compare_results
    from experiments.paper.rows import Results

    compared = compare_results(Results.read(out), Results.read(against))
    lines += [f"{compared.compared} runs are in {against} too; accuracies differ by {compared.largest:.4f} at most."]
    lines += [f"  differs: {difference}" for difference in compared.differences]
    agreement = {"compared": compared.compared, "largest": compared.largest, "differences": compared.differences}
    screen.result({**left, "against": agreement}, "\n".join(lines))
    raise typer.Exit(1 if compared.differences else 0)


def _list_experiments(screen: Screen, folder: Path, small: bool) -> None:
    from experiments.paper.rows import Results
    from experiments.paper.spec import EXPERIMENTS, settings_of

    results = Results.read(folder)
    rows = []
    for name, (about, _) in EXPERIMENTS.items():
        runs = settings_of(name, small)
        rows.append([name, len(runs), sum(results.get(run) is not None for run in runs), about])
    titles = ["name", "runs", "done", "about"]
    screen.result({"experiments": [dict(zip(titles, row, strict=True)) for row in rows]}, table(titles, rows))
