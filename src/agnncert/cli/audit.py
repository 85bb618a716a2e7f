"""``agnncert audit``."""

from dataclasses import asdict
from typing import Annotated

import typer

from agnncert.cli import options as opt
from agnncert.cli.screen import Screen


def audit(
    model: Annotated[str, typer.Argument(help="package.module:factory, a built-in model, or a run folder.")],
    *,
    weights: Annotated[
        str | None, typer.Option(help="Weights, a safetensors file.", rich_help_panel=opt.MODEL, metavar="FILE")
    ] = None,
    set: opt.Set,
    division: opt.Division = None,
    groups: opt.Groups = None,
    task: Annotated[
        str | None,
        typer.Option(help="node or graph.", rich_help_panel=opt.MODEL, show_default="that of the data, else node"),
    ] = None,
    data: Annotated[
        str,
        typer.Option(
            help="Data like that to be certified: a dataset, or a folder with tables.", rich_help_panel=opt.DATA
        ),
    ] = "",
    root: opt.Root = None,
    nodes: opt.Nodes = None,
    edges: opt.Edges = None,
    graphs: opt.Graphs = None,
    column: opt.Column,
    feature: opt.Feature,
    directed: opt.Directed = False,
    seed: opt.Seed = 0,
    settings: opt.SettingsFile = None,
    json: opt.Json = False,
) -> None:
    """Find out whether a model may be certified: local, deterministic, without memory.

    Lists everything that breaks the guarantee, with a remedy for each. Exit status: 0 the model is fit, 1 it
    is not.
    """
    from agnncert.studies.checks import audit_named
    from agnncert.studies.settings import CertifySettings

    named = CertifySettings(
        model=model, weights=weights, set=opt.pairs("set", set), division=division, groups=groups, data=data,
        root=root, nodes=nodes, edges=edges, graphs=graphs, column=opt.texts("column", column),
        feature=tuple(feature), directed=directed, seed=seed,
    )  # fmt: skip
    found = audit_named(named, task)
    outcome = {
        "fit": found.ok, "fit_for": found.fit_for, "task": found.task, "division": found.division,
        "findings": [asdict(finding) for finding in found.findings],
        "deviation": found.deviation, "tolerance": found.tolerance,
    }  # fmt: skip
    Screen(json).result(outcome, str(found))
    raise typer.Exit(0 if found.ok else 1)
