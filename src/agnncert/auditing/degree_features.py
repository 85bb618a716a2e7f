"""Columns of features that follow the number of a node's edges, or the sum of their values.

Whoever adds an edge changes such a column in every subgraph, which no certificate covers.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from agnncert.auditing.findings import Finding
from agnncert.graphs.graph import EDGE_VALUES

LEAST_DISTINCT = 5  # distinct values of a column that is compared
SAMPLED = 24  # nodes on which all columns are compared first


def inspect_features(data: object) -> Iterator[Finding]:
    """Yields a finding for each column that rises or falls with the number of edges, or the sum of their values.

    However the column is scaled, it is found. Graphs of the graph task are not looked at.
    """
    x = getattr(data, "x", None)
    edge_index = getattr(data, "edge_index", None)
    if not isinstance(x, Tensor) or x.layout != torch.strided or x.dim() != 2 or len(x) < SAMPLED:
        return
    if not isinstance(edge_index, Tensor) or not edge_index.numel():
        return
    reported: set[int] = set()
    for what, value in _values_to_sum(data, edge_index.size(1)):
        for column in _following_columns(x, _totals(edge_index.cpu(), value, len(x))):
            if column in reported:
                continue
            reported.add(column)
            why = f"follows the {what} of each node, so whoever adds an edge changes it"
            yield Finding("data.x", f"column {column}", why, "Leave the column out; edges can vote instead.")
    for column in _one_hot_columns(x, edge_index):
        if column not in reported:
            reported.add(column)
            why = "says how many edges each node has (one-hot degree), so whoever adds an edge changes it"
            yield Finding("data.x", f"column {column}", why, "Leave the column out; edges can vote instead.")


def columns_that_follow(x: Tensor, totals: list[Tensor]) -> Iterator[int]:
    """Yields the columns that rise or fall with one of several numbers of each node, several times if with several.

    Args:
        x: Features of some nodes.
        totals: Numbers of edges, or sums of their values, of the same nodes, float64.
    """
    if len(x) >= SAMPLED:
        yield from _following_columns(x, totals)


def _one_hot_columns(x: Tensor, edge_index: Tensor) -> Iterator[int]:
    """Yields the first column that has one value at all nodes of one degree, and another one at all others.

    The degree must be that of several nodes, and several degrees must be. One column is enough to name the encoding.
    """
    for degree in (torch.bincount(end.cpu(), minlength=len(x)) for end in edge_index):
        sizes = torch.bincount(degree)
        frequent = (sizes >= LEAST_DISTINCT).nonzero().view(-1)
        if len(frequent) < LEAST_DISTINCT:
            continue
        for value in frequent.tolist():
            inside = (degree == value).nonzero().view(-1)
            outside = (degree != value).nonzero().view(-1)
            few = x[inside[:SAMPLED]], x[outside[:: max(1, len(outside) // SAMPLED)]]
            differs = (few[0] == few[0][0]).all(dim=0) & (few[1] == few[1][0]).all(dim=0) & (few[0][0] != few[1][0])
            for column in differs.nonzero().view(-1).tolist():
                values = x[:, column]
                if bool((values[inside] == few[0][0, column]).all() and (values[outside] == few[1][0, column]).all()):
                    yield column
                    return


def _values_to_sum(data: object, num_edges: int) -> Iterator[tuple[str, Tensor | None]]:
    """Yields what a sum over the edges of a node is called, and what each edge adds to it; ``None`` stands for 1."""
    yield "number of edges", None
    for name in EDGE_VALUES:
        values = getattr(data, name, None)
        if isinstance(values, Tensor) and values.is_floating_point() and len(values) == num_edges:
            for column in values.detach().reshape(num_edges, -1).T:
                yield "sum of the values of edges", column


def _totals(edge_index: Tensor, value: Tensor | None, num_nodes: int) -> list[Tensor]:
    """Returns, for each node, the sums over its outgoing edges, its incoming edges, and both."""
    outgoing, incoming = (_total(end, value, num_nodes) for end in edge_index)
    return [outgoing, incoming, outgoing + incoming]


def _total(end: Tensor, value: Tensor | None, num_nodes: int) -> Tensor:
    """Returns the sum over the edges at each node, given one end of every edge, float64."""
    if value is None:
        return torch.bincount(end, minlength=num_nodes).double()
    return torch.zeros(num_nodes, dtype=torch.float64).index_add(0, end, value.double())


def _following_columns(x: Tensor, totals: list[Tensor]) -> Iterator[int]:
    """Yields the columns that follow one of the totals, several times if they follow several."""
    orders = torch.stack([torch.argsort(total) for total in totals])
    sample = orders[:, torch.linspace(0, len(x) - 1, SAMPLED).long()]
    for which, column in _monotone(x[sample]).tolist():  # columns that pass on a few nodes are compared on all
        order = orders[which]
        if len(_monotone(x[order, column : column + 1], totals[which][order])):
            yield column


def _monotone(rows: Tensor, total: Tensor | None = None) -> Tensor:
    """Returns the columns with several values that only rise, or only fall, from row to row.

    Args:
        rows: Rows of features, shape ``[..., num_rows, num_columns]``.
        total: A number for each row. Between rows with the same number a column must not change.

    Returns:
        Positions of the columns, one per row, as ``Tensor.nonzero`` returns them.
    """
    rows = rows.double()
    steps = rows.diff(dim=-2)
    slack = 1e-6 * rows.abs().amax(dim=-2, keepdim=True)
    follows = (steps >= -slack).all(dim=-2) | (steps <= slack).all(dim=-2)
    if total is not None:
        follows &= (steps[total.diff() == 0].abs() <= slack).all(dim=-2)
    num_steps = (steps.abs() > slack).sum(dim=-2)
    return (follows & (num_steps >= LEAST_DISTINCT - 1)).nonzero()
