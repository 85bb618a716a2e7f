"""The difference between a live graph and a reference certificate, and whether the certificate still proves a label.

A :class:`Reference` stores the earlier state of every pair and node that differs from the present graph. A pair or node
that returns to its earlier state is removed, so undone changes do not count.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from agnncert.certificates.budget import Budget
from agnncert.certificates.ids import Id, order_of
from agnncert.divided.evidence import VoteEvidence
from agnncert.errors import SettingsError
from agnncert.graphs.perturbation import least_load
from agnncert.proving.certificate import Certificate, everything_but_additions
from agnncert_live.edge_rules import KEPT_BESIDE
from agnncert_live.store import DirectedValues, Store, plain

Array = npt.NDArray[Any]
Arcs = tuple[DirectedValues, ...]  # between two nodes, sorted


class Node(NamedTuple):
    """The number of a graph, and the id of a node in it."""

    graph: int
    name: Id


class Pair(NamedTuple):
    """The number of a graph, and the ids of two nodes in it, the smaller one first."""

    graph: int
    first: Id
    second: Id

    @property
    def names(self) -> tuple[Id, ...]:
        """The ids of its nodes: one if it is a self-loop."""
        return tuple(dict.fromkeys([self.first, self.second]))


@dataclass(frozen=True)
class Spent:
    """What has happened to one target since a reference certificate, beside what that is proof against.

    Attributes:
        target: Id of the target (graph task: its row).
        label: Its label in the reference, and now.
        radius: Its radius in the reference.
        votes_moved: Votes that differ from then; None where every neighbour has a group of its own, so that votes come
            and go.
        new_neighbours: Nodes that an arc joins to it now and did not then, at least not in this direction.
        lost_neighbours: Nodes that were joined to it and no longer are.
        changed_neighbours: Nodes joined to it then and now, with other arcs or other features.
        withstands_new_neighbours: New neighbours that the reference is proof against, whatever else is deleted or
            changed; -1 if it proves nothing of the kind.
        cost: The smallest budget that allows all that has changed anywhere in the graph.
        proved_by: Which statements of the reference still prove the label: ``"radius"``, ``"new neighbours"`` or
            ``"budget"``. If there is one, the label is what it was then.
    """

    target: Id
    label: tuple[int, int]
    radius: int
    votes_moved: int | None
    new_neighbours: int
    lost_neighbours: int
    changed_neighbours: int
    withstands_new_neighbours: float
    cost: Budget
    proved_by: tuple[str, ...]

    @property
    def within(self) -> bool:
        """Whether what has happened is within what the reference is proof against."""
        return bool(self.proved_by)

    def __str__(self) -> str:
        parts = []
        most = self.withstands_new_neighbours
        if most >= 0:
            number = "any number of" if most == np.inf else f"{most:,.0f}"
            parts.append(f"certified against {number} new neighbours, {self.new_neighbours:,} have come")
        if self.votes_moved is not None:
            parts.append(f"{self.votes_moved:,} votes have moved, its radius was {self.radius:,}")
        if self.within:
            parts.append(f"the reference still proves the label, by {' and '.join(self.proved_by)}")
        else:
            parts.append("the reference no longer proves the label")
        return f"{self.target!r}: {'; '.join(parts)}."


@dataclass
class Around:
    """Neighbours of a node that differ from a reference.

    Attributes:
        new: They are joined to it now and were not then, at least not in this direction.
        lost: They were joined to it and no longer are.
        changed: They are joined to it then and now, with other arcs or other features.
    """

    new: set[Id] = field(default_factory=set)
    lost: set[Id] = field(default_factory=set)
    changed: set[Id] = field(default_factory=set)


class Reference:
    """A graph that a live graph once was, as far as it differs from it now.

    Args:
        digest: sha256 of the graph, as the certificate states it.
        number: How many events there had been.
        store: The live graph.

    Attributes:
        pairs: The arcs between two nodes then, for every pair that differs.
        nodes: The features of a node then, for every node that differs; None for a node that was not there.
    """

    def __init__(self, digest: str, number: int, store: Store) -> None:
        self.digest = digest
        self.number = number
        self.store = store
        self.pairs: dict[Pair, Arcs] = {}
        self.nodes: dict[Node, bytes | None] = {}
        self._pairs_at: dict[Node, set[Pair]] = {}
        self._touched_pairs: set[Pair] = set()
        self._touched_nodes: set[Node] = set()
        store.pair_listeners.append(self._before_pair_changes)
        store.node_listeners.append(self._on_node_change)

    def stop(self) -> None:
        """Stops following the live graph."""
        self.store.pair_listeners.remove(self._before_pair_changes)
        self.store.node_listeners.remove(self._on_node_change)

    def _before_pair_changes(self, u: int, v: int) -> None:
        """Remembers how two nodes, by their slots, are joined before that changes."""
        nodes = self.store.nodes
        first, second = sorted((nodes.name(u), nodes.name(v)), key=order_of)
        pair = Pair(int(nodes.graph[u]), first, second)
        if pair not in self.pairs:
            self._remember_pair(pair, self._arcs(pair))
        self._touched_pairs.add(pair)

    def _remember_pair(self, pair: Pair, then: Arcs) -> None:
        self.pairs[pair] = then
        for name in pair.names:
            self._pairs_at.setdefault(Node(pair.graph, name), set()).add(pair)

    def _forget_pair(self, pair: Pair) -> None:
        del self.pairs[pair]
        for name in pair.names:
            node = Node(pair.graph, name)
            self._pairs_at[node].discard(pair)
            if not self._pairs_at[node]:
                del self._pairs_at[node]

    def _on_node_change(self, slot: int, is_new: bool) -> None:
        """Remembers a node that has just been added, or is about to be deleted or given other features."""
        nodes = self.store.nodes
        node = Node(int(nodes.graph[slot]), nodes.name(slot))
        self.nodes.setdefault(node, None if is_new else nodes.x[slot].tobytes())
        self._touched_nodes.add(node)

    def end_batch(self) -> None:
        """Removes the pairs and nodes that are again in their earlier state, after a batch."""
        for pair in self._touched_pairs:
            if self._arcs(pair) == self.pairs[pair]:
                self._forget_pair(pair)
        for node in self._touched_nodes:
            if self._features(node) == self.nodes[node]:
                del self.nodes[node]
        self._touched_pairs.clear()
        self._touched_nodes.clear()

    def _arcs(self, pair: Pair) -> Arcs:
        """Returns the arcs between two nodes as they are now."""
        u = self.store.nodes.find(pair.graph, pair.first)
        v = self.store.nodes.find(pair.graph, pair.second)
        if u is None or v is None:
            return ()
        return tuple(sorted(self.store.values_between(u, v)))

    def _features(self, node: Node) -> bytes | None:
        slot = self.store.nodes.find(*node)
        if slot is None:
            return None
        return bytes(self.store.nodes.x[slot].tobytes())

    # What has changed.

    def _is_gone(self, node: Node) -> bool:
        return self.store.nodes.find(*node) is None

    def _is_new(self, node: Node) -> bool:
        return node in self.nodes and self.nodes[node] is None

    def cost(self, graph: int = 0, target: Id | None = None) -> Budget:
        """Returns the smallest budget that allows what has changed in a graph; target features are counted apart."""
        kinds: Counter[str] = Counter()
        edges_of_new_nodes: list[list[Id]] = []
        for pair, then in self.pairs.items():
            if pair.graph != graph:
                continue
            new_names = [name for name in pair.names if self._is_new(Node(graph, name))]
            if new_names:
                edges_of_new_nodes.append(new_names)
            elif not any(self._is_gone(Node(graph, name)) for name in pair.names):
                kinds.update(_kinds_of_change(then, self._arcs(pair)))
        nodes = [node for node in self.nodes if node.graph == graph]
        injected = [node for node in nodes if self._is_new(node)]
        deleted = [node for node in nodes if self._is_gone(node)]
        renewed = [node for node in nodes if not self._is_new(node) and not self._is_gone(node)]
        target_is_renewed = target is not None and Node(graph, target) in renewed
        budget = Budget(
            add_edges=kinds["add"],
            delete_edges=kinds["delete"],
            change_edges=kinds["change"],
            inject_nodes=len(injected),
            delete_nodes=len(deleted),
            change_features=len(renewed) - target_is_renewed,
            target_features=target_is_renewed,
        )
        if not injected:
            return budget
        return budget.but(edges_per_injected=least_load(edges_of_new_nodes))

    def around(self, node: Node, by_pair: bool = False) -> Around:
        """Returns the neighbours of a node that are new, lost or changed.

        Args:
            node: The node.
            by_pair: Whether a new direction between two nodes that were joined already counts as a change, not as a new
                neighbour. Defaults to False.
        """
        around = Around()
        for pair in self._pairs_at.get(node, ()):
            neighbour = pair.second if pair.first == node.name else pair.first
            kinds = _kinds_of_change(self.pairs[pair], self._arcs(pair))
            if by_pair and self.pairs[pair] and "add" in kinds:
                kinds = {"change"}
            if "add" in kinds:
                around.new.add(neighbour)
            if "delete" in kinds:
                around.lost.add(neighbour)
            if "change" in kinds:
                around.changed.add(neighbour)
        slot = self.store.nodes.find(*node)
        neighbours = [] if slot is None else self.store.neighbours(slot).tolist()
        for neighbour in map(self.store.nodes.name, neighbours):
            is_renewed = Node(node.graph, neighbour) in self.nodes
            if is_renewed and neighbour not in around.new and neighbour != node.name:
                around.changed.add(neighbour)
        return around

    def arcs_then_and_now(self, node: Node, neighbour: Id) -> Arcs:
        """Returns the arcs between two nodes at the time of the reference, and those of now."""
        first, second = sorted((node.name, neighbour), key=order_of)
        pair = Pair(node.graph, first, second)
        now = self._arcs(pair)
        return (*self.pairs.get(pair, now), *now)

    def features_changed(self, node: Node) -> bool:
        """Whether a node has other features than then."""
        return node in self.nodes

    @classmethod
    def between(cls, digest: str, number: int, then: Store, store: Store) -> "Reference":
        """Returns the reference to a graph that is given, as it was then, in a store of its own."""
        reference = cls(digest, number, store)
        arcs_then = _all_arcs(then)
        arcs_now = _all_arcs(store)
        for pair in arcs_then.keys() | arcs_now.keys():
            if arcs_then.get(pair, ()) != arcs_now.get(pair, ()):
                reference._remember_pair(pair, arcs_then.get(pair, ()))
        features_then = _all_features(then)
        for node in features_then.keys() | _all_features(store).keys():
            if reference._features(node) != features_then.get(node):
                reference.nodes[node] = features_then.get(node)
        return reference


def _all_arcs(store: Store) -> dict[Pair, Arcs]:
    """Returns the arcs between all pairs of joined nodes, as ``Reference._arcs`` gives them for one."""
    ends, values = store.all_arcs()
    columns = [[plain(row) for row in value] for name, value in values.items() if name not in KEPT_BESIDE]
    arcs_of_pair: dict[Pair, list[DirectedValues]] = {}
    for k, (source, head) in enumerate(ends.T.tolist()):
        source_name = store.nodes.name(source)
        head_name = store.nodes.name(head)
        from_smaller_id = order_of(source_name) <= order_of(head_name)
        first, second = sorted((source_name, head_name), key=order_of)
        pair = Pair(int(store.nodes.graph[source]), first, second)
        arc = DirectedValues(from_smaller_id, tuple(column[k] for column in columns))
        arcs_of_pair.setdefault(pair, []).append(arc)
    return {pair: tuple(sorted(arcs)) for pair, arcs in arcs_of_pair.items()}


def _all_features(store: Store) -> dict[Node, bytes]:
    features = {}
    for slot in store.nodes.in_order().tolist():
        node = Node(int(store.nodes.graph[slot]), store.nodes.name(slot))
        features[node] = store.nodes.x[slot].tobytes()
    return features


def _kinds_of_change(then: Arcs, now: Arcs) -> set[str]:
    """Returns how a pair changed: a new direction counts as an added edge, any other difference as a changed one."""
    if not then and not now:
        return set()
    if not then:
        return {"add"}
    if not now:
        return {"delete"}
    directions_then = {arc.from_smaller_id for arc in then}
    directions_now = {arc.from_smaller_id for arc in now}
    kinds = set()
    if directions_now - directions_then:
        kinds.add("add")
    in_old_directions = tuple(arc for arc in now if arc.from_smaller_id in directions_then)
    if in_old_directions != then:
        kinds.add("change")
    return kinds


def kinds_of_change(reference: Reference, pair: Pair) -> set[str]:
    """Returns how a pair that differs from a reference has changed since: "add", "delete" or "change"."""
    return _kinds_of_change(reference.pairs[pair], reference._arcs(pair))


def spent_by(
    reference: Reference, certificate: Certificate, node: Node, target: Id, *, label: int, votes_moved: int | None
) -> Spent:
    """Returns what has happened to a target since a reference.

    Args:
        reference: What has changed.
        certificate: What was proved then.
        node: The target (graph task: its graph, and any id).
        target: Its id in the certificate.
        label: Its label now.
        votes_moved: How many of its votes differ from then; None where votes cannot be compared.

    Raises:
        SettingsError: The evidence of the certificate is not made of votes on subgraphs.
    """
    place = certificate.position[target]
    evidence = _evidence_of_one(certificate, place)
    of_graphs = certificate.claim.task == "graph"
    around = Around() if of_graphs else reference.around(node)
    features_changed = not of_graphs and reference.features_changed(node)
    cost = reference.cost(node.graph, None if of_graphs else node.name)
    radius = int(certificate.radius[place])
    additions_alone = everything_but_additions(certificate.claim.ids)
    withstands_new_neighbours = -1.0
    if not of_graphs:
        withstands_new_neighbours = float(evidence.max_certified("add_edges", additions_alone)[0])
    proved_by = []
    prior_may_move = features_changed and evidence.voting_rule.no_edge_prior  # it may follow the target's features
    if votes_moved is not None and votes_moved <= radius and not prior_may_move:
        proved_by.append("radius")
    near = _budget_near_target(evidence, additions_alone, around, features_changed)
    if near is not None and bool(evidence.holds(near)[0]):
        proved_by.append("new neighbours")
    if bool(evidence.holds(cost)[0]):
        proved_by.append("budget")
    return Spent(
        target=target,
        label=(int(certificate.label[place]), label),
        radius=radius,
        votes_moved=votes_moved,
        new_neighbours=len(around.new),
        lost_neighbours=len(around.lost),
        changed_neighbours=len(around.changed),
        withstands_new_neighbours=withstands_new_neighbours,
        cost=cost,
        proved_by=tuple(proved_by),
    )


def _budget_near_target(
    evidence: VoteEvidence, additions_alone: Budget, around: Around, features_changed: bool
) -> Budget | None:
    """Returns a budget that allows what happened at a target's neighbours, if the theorem counts by neighbours."""
    facts = evidence.facts
    if not facts.by_neighbours:
        return None
    near = additions_alone.but(add_edges=len(around.new), target_features=features_changed)
    if not facts.per_neighbour:
        return near
    # A vote depends on the target and one neighbour, so what happens elsewhere does not matter.
    return near.but(delete_edges=len(around.lost), change_edges=len(around.changed), change_features=0, delete_nodes=0)


def dense_votes(certificate: Certificate, place: int) -> Array:
    """Returns the vote of a target in every group, by its place among the targets of a certificate."""
    dense: Array = _evidence_of_one(certificate, place).votes.dense()[0]
    return dense


def _evidence_of_one(certificate: Certificate, place: int) -> VoteEvidence:
    """Returns the evidence about one target.

    Raises:
        SettingsError: The evidence is not made of votes on subgraphs.
    """
    evidence = certificate.evidence
    if not isinstance(evidence, VoteEvidence):
        raise SettingsError(
            f"the reference holds evidence of the kind {evidence.kind!r}: what is spent is known for votes on "
            "subgraphs alone."
        )
    votes = evidence.votes
    listed = slice(votes.indptr[place], votes.indptr[place + 1])
    reach = slice(evidence.reach_ptr[place], evidence.reach_ptr[place + 1])
    tensors = evidence.tensors()
    for name in ("default", "default_stable", "no_edge", "no_edge_stable"):
        if name in tensors:
            tensors[name] = tensors[name][place : place + 1]
    for name in ("group", "vote", "stable", "reached", "one_way"):
        if name in tensors:
            tensors[name] = tensors[name][listed]
    tensors["indptr"] = np.array([0, listed.stop - listed.start])
    tensors["reach"] = evidence.reach[reach]
    tensors["reach_ptr"] = np.array([0, reach.stop - reach.start])
    return VoteEvidence.load(tensors, evidence.settings())
