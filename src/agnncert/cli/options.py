"""Options that several commands share, each with its type and help text."""

from pathlib import Path
from typing import Annotated, Any

import typer

from agnncert.addons import addon
from agnncert.errors import SettingsError

Json = Annotated[bool, typer.Option("--json", help="Print the outcome as JSON.")]
SettingsFile = Annotated[
    Path | None,
    typer.Option("--settings", metavar="FILE", help="TOML file with a table for this command; options override it."),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="NAME=VALUE",
        help="One setting of the model, such as hidden_channels=64, or of the settings file. May be repeated.",
    ),
]  # fmt: skip
Root = Annotated[str | None, typer.Option(metavar="FOLDER", help="Folder that holds the datasets.")]
Seed = Annotated[int | None, typer.Option(help="Seed of the split and of everything random.", show_default="0")]
Model = Annotated[
    str | None,
    typer.Option(
        help="gcn, sage, gat, gin, resgcn, rgcn or mlp, or your own as package.module:factory.", show_default="gcn"
    ),
]
Trusted = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN | COLUMN<DATE", show_default="none",
        help="Edges that no attacker can change, for defences that trust some: a column of the edges that marks them, "
        "or all before a date, as in paid<2018-03-17.",
    ),
]  # fmt: skip
Scores = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Your own scores as a further control: a CSV table with a column id and a column of scores.",
    ),
]
ModelOfRun = Annotated[
    str | None, typer.Option("--model", help="The model of the run, needed if it is package.module:factory.")
]
Weights = Annotated[
    str | None,
    typer.Option(
        metavar="FILE", help="Weights in a safetensors file; or pretrained, for digits-knn, pubmed and proteins."
    ),
]
Division = Annotated[
    str | None,
    typer.Option(
        "--division",
        "--defence",
        metavar="NAME",
        help="The defence: node, edge, gated, per-neighbour, per-edge, stacked, labels, isolated, pairs, "
        "graph-votes, structure-only, bag-of-nodes, or one of a package.",
        show_default="node",
    ),
]
Groups = Annotated[
    int | None,
    typer.Option(
        metavar="T", show_default="300 for nodes, 30 for graphs",
        help="Number of subgraphs; none for per-neighbour and per-edge.",
    ),
]  # fmt: skip
Empty = Annotated[
    str | None,
    typer.Option(
        metavar="VOTE", show_default="no_edge for nodes, abstain for graphs",
        help="Vote of empty subgraphs: no_edge (the prediction without edges), abstain, or a class (name or number).",
    ),
]  # fmt: skip
Prior = Annotated[
    str | None,
    typer.Option(
        metavar="N | N,N,… | CLASS=N,…", show_default="none",
        help="Votes that classes start with: a number, for the prediction without edges; one per class, as in 0,12; or "
        "some classes by name, as in toxic=12.",
    ),
]  # fmt: skip
References = Annotated[
    bool | None,
    typer.Option("--references/--no-references", help="Also train an undefended model and a model without edges.",
                 show_default="yes"),
]  # fmt: skip
Epochs = Annotated[int | None, typer.Option(help="Passes over the training data.", show_default="by dataset")]
Out = Annotated[Path | None, typer.Option(metavar="FOLDER", help="Run folder.", show_default="a new one below runs/")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Start from the beginning even if the run folder holds a run.")]
WorkersOption = Annotated[
    str | None,
    typer.Option(
        "--workers", metavar="ray | ray=HOST:PORT", show_default="this process",
        help="Spread the work over a Ray cluster: a new one, or the one at an address. The result is the same.",
    ),
]  # fmt: skip


def workers_named(text: str | None) -> Any:
    """The workers that ``--workers`` names; ``None`` is this process.

    Raises:
        SettingsError: The text names no workers.
    """
    if text is None:
        return None
    name, equals, address = text.partition("=")
    if name != "ray" or (equals and not address):
        raise SettingsError(f"--workers {text}: expected ray, or ray=HOST:PORT.")
    return addon("agnncert.names", "Ray", "agnncert_large", f"--workers {text}")(address or None)
