"""Edges that were computed from features, as nearest neighbours are, or from other edges.

A certificate counts changes of the edges that the model is given. If they were computed, one change
of what they were computed from can change many of them, and no claim speaks about that. What can be
recognised cheaply is looked for; a graph may say itself how its edges came about, in
``data.computed_edges``.
"""

import logging
from collections.abc import Iterator

import torch
from torch import Tensor

from agnncert.auditing.findings import Finding
from agnncert.graphs.graph import EDGE_VALUES

log = logging.getLogger(__name__)

ATTRIBUTE = "computed_edges"  # of a graph that says how its edges were computed
LEAST_NODES = 24  # a smaller graph may look computed by chance
SAMPLED = 48  # nodes whose neighbours are compared with the nearest nodes
MOST_NUMBERS = 2**24  # of a table of features; a larger one is not compared
MOST_EDGES = 50_000_000
NEARLY_ALL = 0.9
LEAST_COMMON = 3  # incoming edges that all nodes have
CLOSE = 1e-9
TINY = 1e-30
CLOSE_SUM = 1e-4  # of weights in float32

_REMEDY = (
    "Certify the graph as it was collected, or read the certificate as one about attacks on the "
    f'computed edges, and say so in the graph: data.{ATTRIBUTE} = "how they were computed".'
)


def inspect_computed_edges(data: object) -> Iterator[Finding]:
    """Yields a finding for each way in which the edges of a graph look computed.

    Graphs of the graph task are not looked at, nor are very large ones.
    """
    edge_index = getattr(data, "edge_index", None)
    num_nodes = _num_nodes(data)
    if not isinstance(edge_index, Tensor) or edge_index.dim() != 2 or len(edge_index) != 2:
        return
    if edge_index.is_meta or not 0 < edge_index.size(1) <= MOST_EDGES or num_nodes < LEAST_NODES:
        return
    edges = edge_index.detach().cpu().long()
    if int(edges.min()) < 0 or int(edges.max()) >= num_nodes:
        return
    for name in ("x", "pos"):
        if _joins_nearest(getattr(data, name, None), edges, num_nodes):
            why = (
                f"nodes are joined to the nearest ones by data.{name}, so whoever changes a node "
                "changes edges of others"
            )
            yield Finding("data.edge_index", "nearest neighbours", why, _REMEDY)
    number = _common_number(edges, num_nodes)
    if number is not None:
        why = f"nearly every node has {number} edges in one direction, as nearest neighbours have"
        yield Finding("data.edge_index", "equal degrees", why, _REMEDY)
    hub = _virtual_node(data, edges, num_nodes)
    if hub is not None:
        why = f"node {hub} has no features and is joined to all others, as a virtual node is"
        yield Finding("data.edge_index", "virtual node", why, _REMEDY)
    for name in EDGE_VALUES:
        if _is_normalised(getattr(data, name, None), edges, num_nodes):
            why = f"data.{name} is divided by sums over the edges of a node, as by diffusion"
            yield Finding(f"data.{name}", "normalised weights", why, _REMEDY)


def warn_of_computed_edges(data: object) -> None:
    """Logs a warning if the edges of a graph look computed, unless the graph says so itself."""
    stated = getattr(data, ATTRIBUTE, None)
    if isinstance(stated, str) and stated:
        log.info("the edges are computed (%s): certified are attacks on these edges", stated)
        return
    for finding in inspect_computed_edges(data):
        log.warning(
            "the edges look computed: %s. Certificates assume that they are not. %s",
            finding.why,
            finding.remedy,
        )


def _distinct(*rows: Tensor) -> Tensor:
    """Returns the rows that occur, each once."""
    distinct: Tensor = torch.unique(torch.cat(rows))
    return distinct


def _num_nodes(data: object) -> int:
    """Returns the number of rows of the features, or 0 if there are none."""
    x = getattr(data, "x", None)
    return len(x) if isinstance(x, Tensor) and x.dim() == 2 else 0


def _joins_nearest(points: object, edges: Tensor, num_nodes: int) -> bool:
    """Tells whether nearly every node is joined to its nearest node, by length or angle, standardised or not."""
    if not isinstance(points, Tensor) or points.layout != torch.strided or points.is_meta:
        return False
    if points.dim() != 2 or len(points) != num_nodes or not 0 < points.numel() <= MOST_NUMBERS:
        return False
    is_loop = edges[0] == edges[1]
    source, head = edges[:, ~is_loop]
    joined = _distinct(source, head)
    if len(joined) < LEAST_NODES:
        return False
    sample = joined[torch.linspace(0, len(joined) - 1, min(SAMPLED, len(joined))).long()]
    table = points.detach().cpu().double()
    if not bool(torch.isfinite(table).all()):
        return False
    place = torch.full((num_nodes,), -1)
    place[sample] = torch.arange(len(sample))
    is_joined = torch.zeros(len(sample), num_nodes, dtype=torch.bool)
    for end, other in ((source, head), (head, source)):
        inside = place[end] >= 0
        is_joined[place[end[inside]], other[inside]] = True
    spread = table.std(dim=0)
    standardised = (table - table.mean(dim=0)) / spread.where(spread > TINY, torch.ones_like(spread))
    tables = (table, standardised)
    return any(_nearest_are_joined(far, sample, is_joined) for each in tables for far in _distances(each, sample))


def _distances(table: Tensor, sample: Tensor) -> Iterator[Tensor]:
    """Yields numbers that grow with the distance of sampled nodes from all nodes: by length, then by angle."""
    square = table.square().sum(dim=1)
    product = table[sample] @ table.T
    yield square[sample, None] + square - 2 * product
    yield -product / square.sqrt().clamp(min=TINY)


def _nearest_are_joined(far: Tensor, sample: Tensor, is_joined: Tensor) -> bool:
    """Tells whether no other node is as near as the nearest neighbour, for nearly all nodes.

    Args:
        far: A number for each sampled node and each node that grows with their distance.
        sample: Rows of the sampled nodes.
        is_joined: Which nodes each sampled node is joined to, of the same shape as ``far``.
    """
    slack = CLOSE * far.abs().amax(dim=1)
    far[torch.arange(len(sample)), sample] = torch.inf
    to_joined = far.masked_fill(~is_joined, torch.inf).amin(dim=1)
    to_others = far.masked_fill(is_joined, torch.inf).amin(dim=1)
    is_nearest = to_joined + slack < to_others
    return float(is_nearest.double().mean()) >= NEARLY_ALL


def _common_number(edges: Tensor, num_nodes: int) -> int | None:
    """Returns how many edges nearly every node has in one direction but not in the other."""
    without_loops = edges[:, edges[0] != edges[1]]
    for kept in (edges, without_loops):
        outgoing, incoming = (torch.bincount(end, minlength=num_nodes) for end in kept)
        for number, other in ((incoming, outgoing), (outgoing, incoming)):
            most = int(number.max())
            is_common = float((number == most).double().mean()) >= NEARLY_ALL
            if is_common and most >= LEAST_COMMON and int(other.max()) >= most + LEAST_COMMON:
                return most
    return None


def _virtual_node(data: object, edges: Tensor, num_nodes: int) -> int | None:
    """Returns the last node if it has no features and is joined to every other one."""
    last = num_nodes - 1
    x = getattr(data, "x", None)
    if not isinstance(x, Tensor) or x.layout != torch.strided or x.is_meta or bool(x[last].any()):
        return None
    source, head = edges
    neighbours = _distinct(head[source == last], source[head == last])
    return last if int((neighbours != last).sum()) == last else None


def _is_normalised(value: object, edges: Tensor, num_nodes: int) -> bool:
    """Tells whether weights add up to 1 at every node, or are 1 over the root of both degrees."""
    if not isinstance(value, Tensor) or value.is_meta or not value.is_floating_point():
        return False
    if len(value) != edges.size(1) or value.numel() != len(value):
        return False
    weight = value.detach().cpu().double().view(-1)
    if bool((weight == weight[0]).all()):
        return False
    for end in edges:
        total = torch.zeros(num_nodes, dtype=torch.float64).index_add(0, end, weight)
        if bool(((total[_distinct(end)] - 1).abs() < CLOSE_SUM).all()):
            return True
    degree = torch.bincount(edges[1], minlength=num_nodes).double()
    product = weight.square() * degree[edges[0]] * degree[edges[1]]
    return bool(((product - 1).abs() < CLOSE_SUM).all())
