"""The command ``agnncert partition``: writes tables of nodes and edges in parts, by the groups of a division."""

import time
from pathlib import Path
from typing import Annotated

import typer

from agnncert.cli.screen import Screen
from agnncert.errors import SettingsError


def partition(
    nodes: Annotated[
        str, typer.Argument(help="Parquet table of nodes: a file, a folder, or an address.", metavar="NODES")
    ],
    edges: Annotated[
        str, typer.Argument(help="Parquet table of edges: a file, a folder, or an address.", metavar="EDGES")
    ],
    place: Annotated[
        str, typer.Argument(help="Where to write: a folder, or an address such as s3://bucket/folder.", metavar="PLACE")
    ],
    *,
    division: Annotated[
        str, typer.Option(help="node, gated or edge.", metavar="NAME")
    ] = "node",
    groups: Annotated[int, typer.Option(help="Number of groups.", metavar="N")] = 80,
    hash: Annotated[str, typer.Option(help="Hash of the ids: md5, sha1, sha256 or blake2b.", metavar="NAME")] = "md5",
    id: Annotated[str, typer.Option(help="Column of node ids.", metavar="NAME")] = "id",
    label: Annotated[str, typer.Option(help="Column of classes; none: there are none.", metavar="NAME")] = "label",
    split: Annotated[str, typer.Option(help="Column of train, val and test.", metavar="NAME")] = "split",
    source: Annotated[str, typer.Option(help="Column of the id an edge starts from.", metavar="NAME")] = "source",
    target: Annotated[str, typer.Option(help="Column of the id an edge ends at.", metavar="NAME")] = "target",
    weight: Annotated[str, typer.Option(help="Column of edge weights.", metavar="NAME")] = "weight",
    feature: Annotated[
        str | None,
        typer.Option(help="Columns of features, with commas.", metavar="NAME,…", show_default="all others"),
    ] = None,
    directed: Annotated[bool, typer.Option("--directed", help="Edges have a direction.")] = False,
    seed: Annotated[int, typer.Option(help="Seed of the split, if it is drawn.", metavar="N")] = 0,
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:  # fmt: skip
    """Write tables of nodes and edges in parts, so that no worker has to hold the graph.

    The parts are the groups of a division, with which the graph is then certified: ac.open_graph(PLACE) in Python.
    DuckDB sorts the tables on disk.
    """
    from agnncert.divisions.named import division_named
    from agnncert_large.parquet import convert_parquet
    from agnncert_large.partitioned.graph import PartitionedGraph

    chosen = division_named(division, groups, hash, "node")
    begun = time.monotonic()
    graph = convert_parquet(
        _existing(nodes),
        _existing(edges),
        place,
        id=id,
        label=None if label == "none" else label,
        split=split,
        source=source,
        target=target,
        weight=weight,
        features=None if feature is None else [name.strip() for name in feature.split(",")],
        directed=directed,
        seed=seed,
        partition=chosen,
    )
    assert isinstance(graph, PartitionedGraph)
    outcome = {
        "place": str(graph.place),
        "division": str(chosen),
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "features": graph.num_features,
        "classes": graph.num_classes,
        "graph": graph.digest,
        "seconds": round(time.monotonic() - begun, 1),
    }
    text = (
        f"{graph.num_nodes:,} nodes and {graph.num_edges:,} directed edges in {graph.place}, by the groups of {chosen}."
    )
    Screen(json).result(outcome, text)


def _existing(table: str) -> str:
    """Returns the path or address of a table, or raises SettingsError if there is no such file."""
    if "://" not in table and not Path(table).exists():
        raise SettingsError(f"there is no table {table}.")
    return table
