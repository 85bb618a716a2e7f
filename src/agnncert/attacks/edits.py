"""Edits: small changes that a greedy attack tries one by one and then combines."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agnncert.certificates.ids import Id
from agnncert.graphs.perturbation import Perturbation

INJECTED = -1  # stands for the row of the node that an edit injects

RowPair = tuple[int, int]


@dataclass(frozen=True)
class Edit:
    """One small change. Nodes are rows of the graph, features are rows of ``AdversarialFeatures``.

    Attributes:
        field: The field of the budget it spends.
        add_edges: Pairs to join.
        delete_edges: Pairs to separate.
        change_edges: Pairs and the weight, attribute or number of copies to give them.
        delete_nodes: Nodes to delete.
        change_features: Nodes and the features to give them.
        injected: Features of the injected node, whose row is ``INJECTED``; ``None`` if there is none.
        injected_group: Its group, in the node-centric division.
        injected_id: Its id.
    """

    field: str
    add_edges: tuple[RowPair, ...] = ()
    delete_edges: tuple[RowPair, ...] = ()
    change_edges: tuple[tuple[int, int, Any], ...] = ()
    delete_nodes: tuple[int, ...] = ()
    change_features: tuple[tuple[int, int], ...] = ()
    injected: int | None = None
    injected_group: int = -1
    injected_id: int | None = None

    @property
    def units(self) -> int:
        """How much of the budget it spends; only edges are deleted several at a time."""
        return max(1, len(self.delete_edges))

    @property
    def nodes(self) -> set[int]:
        """Existing nodes that it changes or joins."""
        nodes = set(self.delete_nodes)
        for pair in (*self.add_edges, *self.delete_edges, *self.change_edges):
            nodes.update(pair[:2])
        for node, _ in self.change_features:
            nodes.add(node)
        return nodes - {INJECTED}


@dataclass(frozen=True)
class TriedEdit:
    """An edit and the votes that it leads to, by group."""

    edit: Edit
    votes: Mapping[int, int]

    def gain(self, before: Sequence[int], label: int, rival: int) -> int:
        """Returns how many votes ``rival`` gains on ``label``, compared with the votes ``before`` the edit."""
        lead = {label: -1, rival: 1}  # of the rival, by one vote
        gain = 0
        for group, vote in self.votes.items():
            gain += lead.get(vote, 0) - lead.get(before[group], 0)
        return gain


def perturbation_of(edits: Sequence[Edit], ids: Sequence[Id], features: Sequence[Sequence[float]]) -> Perturbation:
    """Returns all edits in one perturbation.

    Args:
        edits: The edits.
        ids: Ids of all rows of the graph.
        features: Rows of ``AdversarialFeatures``.
    """
    added: list[tuple[Id, Id]] = []
    deleted: dict[tuple[Id, Id], None] = {}  # each pair once, in order
    changed: list[tuple[Id, Id, Any]] = []
    injected: dict[Id, Sequence[float]] = {}
    deleted_nodes: list[Id] = []
    changed_features: dict[Id, Sequence[float]] = {}
    for edit in edits:
        added += [(_id_of(u, edit, ids), _id_of(v, edit, ids)) for u, v in edit.add_edges]
        deleted |= {(ids[u], ids[v]): None for u, v in edit.delete_edges}
        changed += [(ids[u], ids[v], value) for u, v, value in edit.change_edges]
        deleted_nodes += [ids[node] for node in edit.delete_nodes]
        changed_features |= {ids[node]: features[row] for node, row in edit.change_features}
        if edit.injected is not None:
            injected[_id_of(INJECTED, edit, ids)] = features[edit.injected]
    return Perturbation(
        add_edges=added,
        delete_edges=list(deleted),
        change_edges=changed,
        inject_nodes=injected,
        delete_nodes=deleted_nodes,
        change_features=changed_features,
    )


def _id_of(row: int, edit: Edit, ids: Sequence[Id]) -> Id:
    if row != INJECTED:
        return ids[row]
    assert edit.injected_id is not None, "an injected node needs an id"
    return edit.injected_id
