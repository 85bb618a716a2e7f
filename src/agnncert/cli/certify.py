"""``agnncert certify``."""

from typing import Annotated

import typer

from agnncert.cli import options as opt
from agnncert.cli.screen import Screen

WORK = "Certification"


def certify(
    data: Annotated[
        str,
        typer.Argument(help="Folder of a trained run; or a dataset, or a folder with tables.", metavar="RUN | DATA"),
    ] = "",
    *,
    model: Annotated[
        str | None,
        typer.Option(help="Your model as package.module:factory, or a built-in one.", rich_help_panel=opt.MODEL),
    ] = None,
    weights: Annotated[
        str | None, typer.Option(help="Its weights, a safetensors file.", rich_help_panel=opt.MODEL, metavar="FILE")
    ] = None,
    set: opt.Set,
    division: opt.Division = None,
    groups: opt.Groups = None,
    hash: opt.Hash = None,
    targets: Annotated[
        str | None,
        typer.Option(help="test, val, train or all.", rich_help_panel=WORK, show_default="test, if there is a split"),
    ] = None,
    engine: Annotated[
        str, typer.Option(help="fast, or naive: one subgraph at a time; the same ballots.", rich_help_panel=WORK)
    ] = "fast",
    attacks: Annotated[
        str, typer.Option(help="any, or edges: for models that are fit for nothing else.", rich_help_panel=WORK)
    ] = "any",
    tolerance: Annotated[
        float | None,
        typer.Option(
            help="How far two computations of one score may lie apart.", rich_help_panel=WORK, show_default="measured"
        ),
    ] = None,
    memory: Annotated[
        int | None, typer.Option(help="Megabytes that one chunk of work may take.", rich_help_panel=WORK)
    ] = None,
    report: Annotated[bool, typer.Option(help="Write the report as well.", rich_help_panel=WORK)] = True,
    root: opt.Root = None,
    nodes: opt.Nodes = None,
    edges: opt.Edges = None,
    graphs: opt.Graphs = None,
    column: opt.Column,
    feature: opt.Feature,
    directed: opt.Directed = False,
    seed: opt.Seed = 0,
    out: opt.Out = None,
    fresh: opt.Fresh = False,
    settings: opt.SettingsFile = None,
    json: opt.Json = False,
) -> None:
    """Prove how much of the graph an attacker may change without changing the voted labels.

    Takes the folder that agnncert train left, or any model of yours on any graph of yours, and leaves the
    certificate and its report in a run folder.
    """
    import numpy as np

    from agnncert.studies.certify import certify_run
    from agnncert.studies.settings import CertifySettings

    wanted = CertifySettings(
        data=data, root=root, nodes=nodes, edges=edges, graphs=graphs, column=opt.texts("column", column),
        feature=tuple(feature), directed=directed, seed=seed, model=model, weights=weights,
        set=opt.pairs("set", set), division=division, groups=groups, hash=hash, targets=targets,
        engine=engine, attacks=attacks, tolerance=tolerance, memory=memory,
    )  # fmt: skip
    screen = Screen(json)
    with screen.following():
        certified = certify_run(wanted, out, fresh, report)
    certificate = certified.certificate
    outcome = {
        "run": certified.folder, "certificate": certified.folder.certificate, "report": certified.page,
        "targets": certificate.num_targets, "median_radius": float(np.median(certificate.radius)),
        "seconds": round(certified.seconds, 3), "sentences": certified.sentences,
        "results": certified.folder.rows("certify"),
    }  # fmt: skip
    places = [f"Certificate: {certified.folder.certificate}"]
    places += [f"Report:      {certified.page}"] if certified.page else []
    screen.result(outcome, "\n".join([*places, *certified.sentences]))
