"""``agnncert train``."""

from typing import Annotated

import typer

from agnncert.cli import options as opt
from agnncert.cli.screen import Screen, percent

TRAINING = "Training"


def train(
    data: Annotated[str, typer.Argument(help="A dataset (see agnncert datasets) or a folder with tables.")] = "",
    *,
    model: Annotated[
        str,
        typer.Option(help="gcn, sage, gat, gin, resgcn, mlp, or package.module:factory.", rich_help_panel=opt.MODEL),
    ] = "gcn",
    set: opt.Set,
    division: opt.Division = None,
    groups: opt.Groups = None,
    target_size: Annotated[
        int | None,
        typer.Option(
            help="Choose division and number of subgraphs for attacks of this size.",
            rich_help_panel=opt.MODEL,
            metavar="M",
        ),
    ] = None,
    hash: opt.Hash = None,
    epochs: Annotated[int | None, typer.Option(help="Passes over the data.", rich_help_panel=TRAINING)] = None,
    lr: Annotated[float | None, typer.Option(help="Learning rate.", rich_help_panel=TRAINING)] = None,
    weight_decay: Annotated[float | None, typer.Option(help="Weight decay.", rich_help_panel=TRAINING)] = None,
    clip: Annotated[float | None, typer.Option(help="Largest norm of the gradient.", rich_help_panel=TRAINING)] = None,
    batch_size: Annotated[int | None, typer.Option(help="Graphs per step.", rich_help_panel=TRAINING)] = None,
    objective: Annotated[
        str | None, typer.Option(help="balanced, paper, or vote (graphs alone).", rich_help_panel=TRAINING)
    ] = None,
    balance_classes: Annotated[
        bool | None, typer.Option(help="Let every class count the same.", rich_help_panel=TRAINING)
    ] = None,
    groups_per_step: Annotated[
        int | None, typer.Option(help="Subgraphs that stand for all in a step (graphs).", rich_help_panel=TRAINING)
    ] = None,
    clusters: Annotated[
        int | None, typer.Option(help="Train a large graph in so many clusters (nodes).", rich_help_panel=TRAINING)
    ] = None,
    clusters_per_step: Annotated[
        int | None, typer.Option(help="How many of them a step sees.", rich_help_panel=TRAINING)
    ] = None,
    protocol: Annotated[
        str, typer.Option(help="transductive, or inductive: test nodes are not seen.", rich_help_panel=TRAINING)
    ] = "transductive",
    select_size: Annotated[
        int | None,
        typer.Option(help="Keep the weights that are best certified at this size.", rich_help_panel=TRAINING),
    ] = None,
    evaluate_every: Annotated[
        int | None, typer.Option(help="Epochs between two evaluations.", rich_help_panel=TRAINING)
    ] = None,
    patience: Annotated[
        int | None,
        typer.Option(help="Evaluations without improvement before it ends; 0: never.", rich_help_panel=TRAINING),
    ] = None,
    references: Annotated[
        bool,
        typer.Option(help="Also train the models to compare with: undefended, no edges.", rich_help_panel=TRAINING),
    ] = True,
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
    """Train a model that votes well, on the graph and all its subgraphs.

    Leaves a run folder with the weights; agnncert certify FOLDER goes on from there. Interrupted, the same
    command takes up where it stopped.
    """
    from agnncert.studies.settings import TrainSettings
    from agnncert.studies.train import train_run

    wanted = TrainSettings(
        data=data, root=root, nodes=nodes, edges=edges, graphs=graphs, column=opt.texts("column", column),
        feature=tuple(feature), directed=directed, seed=seed, model=model, set=opt.pairs("set", set),
        division=division, groups=groups, target_size=target_size, hash=hash, epochs=epochs, lr=lr, clip=clip,
        weight_decay=weight_decay, batch_size=batch_size, objective=objective, balance_classes=balance_classes,
        groups_per_step=groups_per_step, clusters=clusters, clusters_per_step=clusters_per_step,
        protocol=protocol, select_size=select_size, evaluate_every=evaluate_every, patience=patience,
        references=references,
    )  # fmt: skip
    screen = Screen(json)
    with screen.following() as on_progress:
        trained = train_run(wanted, out, fresh, on_progress)
    lines = [
        f"  {name}: {percent(value) if 'accuracy' in name else f'{value:g}'}"
        for name, value in trained.measured.items()
    ]
    text = "\n".join([*lines, f"The model is in {trained.folder}. Next: agnncert certify {trained.folder}"])
    screen.result({"run": trained.folder, "settings": trained.settings.table(), **trained.measured}, text)
