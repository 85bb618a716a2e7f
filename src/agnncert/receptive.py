"""Certificates of one node from its receptive field: the part of a graph that decides about it.

Most defences are local, so the certificate of a node follows from a few of its neighbours. Whoever keeps the graph in a
database sends that part, and gets the certificate that :func:`agnncert.certify` derives from the whole graph. What is
missing in it cannot be seen by a model. So the sender states how many edges each node has, and a field whose edges do
not add up is refused.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from agnncert.certificates.ids import Id, encode_id
from agnncert.certifier import certify
from agnncert.datasets.encoding import encoding_of
from agnncert.defence import AsDefence, Model, as_defence
from agnncert.errors import GraphError, suggests_arguments
from agnncert.graphs.voting_edges import ids_of_nodes, row_of_target
from agnncert.proving.certificate import Certificate

_OF_EDGES = ("edge_weight", "edge_attr")
_OF_GRAPHS = ("edge_names", "repeated", "both_directions", "class_names")
_MOST_NAMED = 3  # nodes of which a message says what is missing


@dataclass(frozen=True)
class ReceptiveField:
    """The part of a graph that decides about one node.

    Attributes:
        target: Id of the node.
        data: The nodes and edges of the part, with ``node_id``. An edge has its values as in the whole graph.
        edges: How many edges each node has in the whole graph, by id: columns of ``edge_index`` that name it, whichever
            way they point. It is needed for all nodes whose edges matter (``Defence.hops_of_field``).
    """

    target: Id
    data: Data = field(repr=False)
    edges: Mapping[Id, int] = field(repr=False)


@suggests_arguments
def receptive_field(model: Model, data: Data, defence: AsDefence, target: Id) -> ReceptiveField:
    """Cuts the receptive field of a node out of a graph.

    It has all edges of every node within ``defence.hops_of_field(model)`` hops of the target, and the nodes at both
    ends of them.

    Args:
        model: The model that will be certified.
        data: The whole graph, with ``node_id``.
        defence: The defence that it will be certified with.
        target: Id of the node.

    Raises:
        SettingsError: The defence is not local, or it is not known how far messages travel in the model.
        GraphError: Nodes have no ids.
        IdError: There is no such node.
    """
    hops = as_defence(defence).hops_of_field(model)
    if getattr(data, "node_id", None) is None:
        raise GraphError("nodes need ids of their own (data.node_id): in a part of the graph they have other rows.")
    row = row_of_target(data, "node", target)
    ends = data.edge_index.long()
    is_whole = torch.zeros(len(data.x), dtype=torch.bool)
    is_whole[row] = True
    for _ in range(hops):
        is_whole[ends[:, is_whole[ends].any(dim=0)]] = True
    is_kept = is_whole[ends].any(dim=0)
    is_there = is_whole.clone()
    is_there[ends[:, is_kept]] = True
    part = _part(data, is_there, is_kept)
    ids = ids_of_nodes(data)
    count = torch.bincount(ends.flatten(), minlength=len(is_there))
    count -= torch.bincount(ends[0, ends[0] == ends[1]], minlength=len(is_there))  # a loop is one edge
    edges = {ids[k]: int(count[k]) for k in is_there.nonzero().view(-1).tolist()}
    return ReceptiveField(ids[row], part, edges)


@suggests_arguments
def certify_field(model: Model, field: ReceptiveField, defence: AsDefence) -> Certificate:
    """Certifies one node from its receptive field. Everything but its row is as :func:`certify` of the whole graph has.

    Args:
        model: A trained module, as for :func:`certify`.
        field: The part of the graph, which :func:`receptive_field` cuts out, or a query returned.
        defence: A defence that is local, or the result of ``choose_threshold`` for one.

    Returns:
        The certificate of the node. Its digest of the graph is that of the field.

    Raises:
        SettingsError: The defence is not local, or it is not known how far messages travel in the model.
        GraphError: Nodes have no ids, or the field is too small.
        IdError: The target is not in the field.
    """
    hops = as_defence(defence).hops_of_field(model)
    if getattr(field.data, "node_id", None) is None:
        raise GraphError("nodes of a field need ids (data.node_id): groups and votes depend on them.")
    ids = ids_of_nodes(field.data)
    ends = [(ids[u], ids[v]) for u, v in field.data.edge_index.t().tolist()]
    require_whole(field.target, ends, field.edges, hops)
    row = row_of_target(field.data, "node", field.target)
    return certify(model, field.data, defence, [row])


def require_whole(target: Id, ends: Iterable[tuple[Id, Id]], edges: Mapping[Id, int], hops: int) -> None:
    """Refuses a field in which an edge is missing, as far as the numbers of edges show it.

    Args:
        target: Id of the node.
        ends: The two ends of every edge that was sent.
        edges: How many edges each node has in the whole graph.
        hops: Edges of all nodes within so many hops of the target are needed.

    Raises:
        GraphError: The number of edges of a node is not stated, or another one was sent.
    """
    stated = {encode_id(name): number for name, number in edges.items()}
    sent: Counter[Id] = Counter()
    neighbours: dict[Id, set[Id]] = defaultdict(set)
    for u, v in ends:
        sent.update({u, v})
        neighbours[u].add(v)
        neighbours[v].add(u)
    found = {encode_id(target): 0}
    outermost = list(found)
    for distance in range(1, hops + 1):
        outermost = [other for name in outermost for other in neighbours[name] if other not in found]
        found |= dict.fromkeys(outermost, distance)
    wrong = [
        f"{_named(name, distance)} {_said(stated.get(name), sent[name])}"
        for name, distance in found.items()
        if stated.get(name) != sent[name]
    ]
    if not wrong:
        return
    more = f"; and {len(wrong) - _MOST_NAMED:,} more" if len(wrong) > _MOST_NAMED else ""
    raise GraphError(
        f"the receptive field is not whole: {'; '.join(wrong[:_MOST_NAMED])}{more}. All edges of every node within "
        f"{_hops(hops)} of the target are needed, and how many they are."
    )


def _named(name: Id, distance: int) -> str:
    return f"{name!r:.60}, {_hops(distance)} from the target," if distance else f"the target {name!r:.60}"


def _hops(number: int) -> str:
    return "1 hop" if number == 1 else f"{number} hops"


def _said(stated: object, sent: int) -> str:
    if stated is None:
        return "does not say how many edges it has"
    return f"has {stated!r:.20} edges, and {sent:,} were sent"


def _part(data: Data, is_there: Tensor, is_kept: Tensor) -> Data:
    """Returns some nodes and edges of a graph, in its order."""
    position = torch.cumsum(is_there, 0) - 1
    part = Data(x=data.x[is_there], edge_index=position[data.edge_index[:, is_kept].long()])
    for name in _OF_EDGES:
        value = getattr(data, name, None)
        if value is not None:
            part[name] = torch.as_tensor(value)[is_kept]
    for name in _OF_GRAPHS:
        value = getattr(data, name, None)
        if value is not None:
            part[name] = value
    if encoding_of(data) is not None:
        part.encoding = encoding_of(data)
    rows = is_there.nonzero().view(-1)
    given: Any = data.node_id
    part.node_id = given[rows] if isinstance(given, Tensor) else [given[row] for row in rows.tolist()]
    return part
