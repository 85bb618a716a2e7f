"""Undefended GNNs as controls: what they are called, and a graph whose nodes say what their edges are worth.

Most layers read no values of edges, and a GNN that ignores amounts says little beside trees that read them.
"""

import copy
from typing import Any

import torch
from torch_geometric.data import Data

from agnncert.addons import config_of
from agnncert.controls.api import UNDEFENDED_GNN
from agnncert.controls.trees import edge_aggregates
from agnncert.models.gnn import ARCHITECTURES

WITH_VALUES = f"{UNDEFENDED_GNN}, with edge values"
WITHOUT_VALUES = f"{UNDEFENDED_GNN}, without edge values"


def with_edge_values(graph: Data) -> Data | None:
    """Returns a graph whose features also are sums, means, smallest and largest values of each node's edges.

    The new columns are on a logarithmic scale. Returns None if edges have no values.
    """
    columns = edge_aggregates(graph)
    if not columns:
        return None
    values = torch.cat(columns, dim=1)
    values = values.sign() * values.abs().log1p()
    x = graph.x.to_dense() if graph.x.layout != torch.strided else graph.x
    richer = copy.copy(graph)
    richer.x = torch.cat([x, values.to(x)], dim=1)
    return richer


def undefended_name(graph: Data, model: Any) -> str:
    """Returns what a control is called that reads a graph as it is: whether it reads values of edges, if there are any.

    Nothing is said about them if the model is a user's own.
    """
    config = config_of(model)
    has = {name: getattr(graph, f"edge_{name}", None) is not None for name in ("weight", "attr")}
    if not any(has.values()) or config is None or config.get("name") not in ARCHITECTURES:
        return UNDEFENDED_GNN
    reads = ARCHITECTURES[config["name"]].reads
    return WITH_VALUES if reads and has[reads] else WITHOUT_VALUES
