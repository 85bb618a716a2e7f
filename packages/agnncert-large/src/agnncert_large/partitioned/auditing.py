"""What an audit sees of a graph in parts: a sample of it, and numbers of arcs that were counted in the whole graph."""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from agnncert.auditing.degree_features import columns_that_follow
from agnncert.errors import ModelContractError
from agnncert_large.partitioned.graph import Arcs, PartitionedGraph

MOST_NODES = 2**16  # of the sample
MOST_ARCS = 2**18
RANGES_LOOKED_AT = 4


def probe_data(graph: PartitionedGraph) -> Data:
    """Returns nodes of the first range with the arcs among them."""
    x = graph.features(0)[:MOST_NODES]
    rows = range(0, len(x))
    found = [graph.arcs(0, range(0, 0))]
    for group in range(graph.division.num_groups):
        arcs = graph.arcs(group, rows)
        found.append(arcs.select(arcs.source < len(x)))
        if sum(map(len, found)) > MOST_ARCS:
            break
    arcs = Arcs.joined(found)
    data = Data(x=x, edge_index=torch.from_numpy(np.stack([arcs.source, arcs.target])))
    for name, value in arcs.values.items():
        data[name] = value
    nodes = graph.nodes(0)
    data.node_id = torch.from_numpy(nodes.key[: len(x)])
    if nodes.y is not None:
        data.y = torch.from_numpy(nodes.y[: len(x)])
        data.num_classes = graph.num_classes
    for name, mask in nodes.masks.items():
        data[name] = torch.from_numpy(mask[: len(x)])
    return data


def require_no_edges_in_features(graph: PartitionedGraph) -> None:
    """Refuses features that follow the number of arcs at a node, as far as some ranges show it.

    Raises:
        ModelContractError: Names the columns.
    """
    chosen = np.linspace(0, len(graph.ranges) - 1, min(RANGES_LOOKED_AT, len(graph.ranges)))
    numbers = sorted({int(k) for k in chosen})
    x = torch.cat([graph.features(number) for number in numbers])
    totals = zip(*(_totals(graph, number) for number in numbers), strict=True)
    found = sorted(set(columns_that_follow(x, [torch.cat(parts) for parts in totals])))
    if found:
        named = ", ".join(map(str, found[:5]))
        raise ModelContractError(
            f"columns {named} of the features follow the number of edges of each node, so whoever adds "
            "an edge changes them in every subgraph. Leave them out; edges can vote instead."
        )


def _totals(graph: PartitionedGraph, number: int) -> Iterator[Tensor]:
    nodes = graph.nodes(number)
    for total in (nodes.outgoing, nodes.incoming, nodes.outgoing + nodes.incoming):
        yield torch.from_numpy(total).double()
