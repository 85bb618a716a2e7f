"""The difference between a live graph and a reference certificate, and whether the certificate still proves a label.

A :class:`Reference` stores the earlier state of every pair and node that differs from the present graph. A pair or node
that returns to its earlier state is removed, so undone changes do not count.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from agnncert.certificates.budget import Budget
from agnncert.certificates.ids import Id, order_of
from agnncert.certificates.theorem_facts import THEOREMS
from agnncert.graphs.perturbation import least_load
from agnncert.proving.certificate import Certificate, everything_but_additions
from agnncert.proving.evidence import VoteEvidence
from agnncert_live.store import Store, plain

Array = npt.NDArray[Any]
Node = tuple[int, Id]  # a graph and an id in it
Pair = tuple[int, Id, Id]
Arcs = tuple[tuple[bool, tuple[Any, ...]], ...]  # which way each arc points, and what it carries


@dataclass(frozen=True)
class Spent:
    """What has happened to one target since a reference certificate, beside what that is proof against.

    Attributes:
        target: Id of the target (graph task: its row).
        label: Its label in the reference, and now.
        radius: Its radius in the reference.
        votes_moved: Votes that are others than then; None where every neighbour has a group of its own, so that
            votes come and go.
        new_neighbours: Nodes that an arc joins to it now and did not then, at least not in this direction.
        lost_neighbours: Nodes that were joined to it and no longer are.
        changed_neighbours: Nodes joined to it then and now, otherwise than then or with other features.
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
        most = self.withstands_new_neighbours
        against = "any number of" if most == np.inf else f"{most:,.0f}"
        parts = [] if most < 0 else [f"certified against {against} new neighbours, {self.new_neighbours:,} have come"]
        if self.votes_moved is not None:
            parts.append(f"{self.votes_moved:,} votes have moved, its radius was {self.radius:,}")
        still = (
            f"still proves the label, by {' and '.join(self.proved_by)}"
            if self.within
            else "no longer proves the label"
        )
        return f"{self.target!r}: {'; '.join([*parts, f'the reference {still}'])}."


class Reference:
    """A graph that a live graph once was, as far as it differs from it now.

    Args:
        digest: sha256 of the graph, as the certificate states it.
        number: How many events there had been.
        store: The live graph.
    """

    def __init__(self, digest: str, number: int, store: Store) -> None:
        self.digest, self.number, self.store = digest, number, store
        self.pairs: dict[Pair, Arcs] = {}
        self.nodes: dict[Node, bytes | None] = {}  # features then; None for a node that was not there
        self._at: dict[Node, set[Pair]] = {}
        self._touched_pairs: set[Pair] = set()
        self._touched_nodes: set[Node] = set()
        store.watchers.append(self._pair)
        store.node_watchers.append(self._node)

    def stop(self) -> None:
        """No longer follows the live graph."""
        self.store.watchers.remove(self._pair)
        self.store.node_watchers.remove(self._node)

    def _pair(self, u: int, v: int) -> None:
        """Two nodes, by their slots, are about to be joined otherwise."""
        nodes = self.store.nodes
        names = sorted((nodes.name[u], nodes.name[v]), key=order_of)  # type: ignore[arg-type]
        self._remember(int(nodes.graph[u]), names[0], names[1])  # type: ignore[arg-type]

    def _remember(self, graph: int, first: Id, second: Id) -> None:
        pair = graph, first, second
        if pair not in self.pairs:
            self._put(pair, self._arcs(pair))
        self._touched_pairs.add(pair)

    def _put(self, pair: Pair, then: Arcs) -> None:
        self.pairs[pair] = then
        for name in {pair[1], pair[2]}:
            self._at.setdefault((pair[0], name), set()).add(pair)

    def _node(self, slot: int, new: bool) -> None:
        """A node has just been added, or is about to be deleted or given other features."""
        nodes = self.store.nodes
        node = int(nodes.graph[slot]), nodes.name[slot]
        self.nodes.setdefault(node, None if new else nodes.x[slot].tobytes())  # type: ignore[arg-type]
        self._touched_nodes.add(node)  # type: ignore[arg-type]

    def settle(self) -> None:
        """After a batch: removes the pairs and nodes that are again in their earlier state."""
        for pair in self._touched_pairs:
            if self._arcs(pair) == self.pairs[pair]:
                del self.pairs[pair]
                for name in {pair[1], pair[2]}:
                    at = self._at[pair[0], name]
                    at.discard(pair)
                    if not at:
                        del self._at[pair[0], name]
        for node in self._touched_nodes:
            if self._features(node) == self.nodes[node]:
                del self.nodes[node]
        self._touched_pairs.clear()
        self._touched_nodes.clear()

    def _arcs(self, pair: Pair) -> Arcs:
        """The arcs between two nodes as they are now."""
        store = self.store
        u, v = store.nodes.find(pair[0], pair[1]), store.nodes.find(pair[0], pair[2])
        if u is None or v is None:
            return ()
        return tuple(sorted(store.carried(u, v)))

    def _features(self, node: Node) -> bytes | None:
        slot = self.store.nodes.find(*node)
        return None if slot is None else self.store.nodes.x[slot].tobytes()

    # What has changed.

    def _gone(self, node: Node) -> bool:
        return self.store.nodes.find(*node) is None

    def _new(self, node: Node) -> bool:
        return node in self.nodes and self.nodes[node] is None

    def cost(self, graph: int = 0, target: Id | None = None) -> Budget:
        """The smallest budget that allows what has changed in a graph; features of the target are counted apart."""
        counts: Counter[str] = Counter()
        joined: list[list[Id]] = []
        for pair, then in self.pairs.items():
            if pair[0] != graph:
                continue
            new = [name for name in dict.fromkeys(pair[1:]) if self._new((graph, name))]
            if new:
                joined.append(new)
            elif not any(self._gone((graph, name)) for name in pair[1:]):
                counts.update(_kinds(then, self._arcs(pair)))
        mine = [node for node in self.nodes if node[0] == graph]
        injected = [node for node in mine if self._new(node)]
        deleted = [node for node in mine if self._gone(node)]
        renewed = [node for node in mine if not self._new(node) and not self._gone(node)]
        own = (graph, target) in renewed if target is not None else False
        return Budget(
            add_edges=counts["add"],
            delete_edges=counts["delete"],
            change_edges=counts["change"],
            inject_nodes=len(injected),
            edges_per_injected=least_load(joined),
            delete_nodes=len(deleted),
            change_features=len(renewed) - own,
            target_features=bool(own),
        )

    def around(self, node: Node) -> tuple[set[Id], set[Id], set[Id]]:
        """Neighbours of a node that are new, lost, and joined otherwise or with other features."""
        new, lost, changed = set(), set(), set()
        for pair in self._at.get(node, ()):
            other = pair[2] if pair[1] == node[1] else pair[1]
            then, now = self.pairs[pair], self._arcs(pair)
            kinds = _kinds(then, now)
            new |= {other} if "add" in kinds else set()
            lost |= {other} if "delete" in kinds else set()
            changed |= {other} if "change" in kinds else set()
        slot = self.store.nodes.find(*node)
        near = [] if slot is None else self.store.neighbours(slot).tolist()
        for other in (self.store.nodes.name[k] for k in near):
            if (node[0], other) in self.nodes and other not in new and other != node[1]:
                changed.add(other)
        return new, lost, changed

    def features_changed(self, node: Node) -> bool:
        """Whether a node has other features than then."""
        return node in self.nodes

    @classmethod
    def between(cls, digest: str, number: int, then: Store, store: Store) -> "Reference":
        """The reference to a graph that is given, as it was then, in a store of its own."""
        reference = cls(digest, number, store)
        old, new = _all_arcs(then), _all_arcs(store)
        for pair in old.keys() | new.keys():
            if old.get(pair, ()) != new.get(pair, ()):
                reference._put(pair, old.get(pair, ()))
        rows = _all_features(then)
        for node in rows.keys() | _all_features(store).keys():
            if reference._features(node) != rows.get(node):
                reference.nodes[node] = rows.get(node)
        return reference


def _all_arcs(store: Store) -> dict[Pair, Arcs]:
    """The arcs between all pairs of joined nodes, as ``Reference._arcs`` gives them for one."""
    ends, values = store.all_arcs()
    columns = [[plain(row) for row in value] for value in values.values()]
    found: dict[Pair, list[tuple[bool, tuple[Any, ...]]]] = {}
    for k, (source, head) in enumerate(ends.T.tolist()):
        first, second = store.nodes.name[source], store.nodes.name[head]
        up = order_of(first) <= order_of(second)
        names = (first, second) if up else (second, first)
        pair = int(store.nodes.graph[source]), *names
        found.setdefault(pair, []).append((up, tuple(column[k] for column in columns)))
    return {pair: tuple(sorted(arcs)) for pair, arcs in found.items()}


def _all_features(store: Store) -> dict[Node, bytes]:
    slots = store.nodes.in_order().tolist()
    return {(int(store.nodes.graph[k]), store.nodes.name[k]): store.nodes.x[k].tobytes() for k in slots}


def _kinds(then: Arcs, now: Arcs) -> set[str]:
    """How a pair changed: a new direction counts as an added edge, any other difference as a changed one."""
    ways_then, ways_now = {way for way, _ in then}, {way for way, _ in now}
    if not then or not now:
        return {"add"} if now else {"delete"} if then else set()
    added = {"add"} if ways_now - ways_then else set()
    kept = tuple(arc for arc in now if arc[0] in ways_then)
    return added | ({"change"} if kept != then else set())


def spent_by(
    reference: Reference, certificate: Certificate, node: Node, target: Id, label: int, votes: Iterable[Array] | None
) -> Spent:
    """What has happened to a target since a reference.

    Args:
        reference: What has changed.
        certificate: What was proved then.
        node: The target (graph task: its graph, and any id).
        target: Its id in the certificate.
        label: Its label now.
        votes: Its dense votes then and now; None where these cannot be compared.
    """
    place = certificate.position[target]
    evidence = certificate.evidence
    assert isinstance(evidence, VoteEvidence)
    facts, on_graphs = THEOREMS[evidence.theorem], certificate.claim.task == "graph"
    new, lost, changed = (set(), set(), set()) if on_graphs else reference.around(node)
    renewed = not on_graphs and reference.features_changed(node)
    cost = reference.cost(node[0], None if on_graphs else node[1])
    one = _alone(evidence, place)
    proved = []
    moved = None
    if votes is not None:
        then, now = votes
        moved = int((then != now).sum())
        # A prior may follow the target's own features.
        if moved <= certificate.radius[place] and not (renewed and evidence.voting_rule.no_edge_prior):
            proved.append("radius")
    if facts.by_neighbours:
        near = everything_but_additions(certificate.claim.ids).but(add_edges=len(new), target_features=renewed)
        if facts.per_neighbour:  # a vote depends on the target and one neighbour, so what happens elsewhere is nothing
            near = near.but(delete_edges=len(lost), change_edges=len(changed), change_features=0, delete_nodes=0)
        if bool(one.holds(near)[0]):
            proved.append("new neighbours")
    if bool(one.holds(cost)[0]):
        proved.append("budget")
    most = (
        -1.0 if on_graphs else float(one.max_certified("add_edges", everything_but_additions(certificate.claim.ids))[0])
    )
    then_label = int(certificate.label[place])
    return Spent(
        target=target,
        label=(then_label, label),
        radius=int(certificate.radius[place]),
        votes_moved=moved,
        new_neighbours=len(new),
        lost_neighbours=len(lost),
        changed_neighbours=len(changed),
        withstands_new_neighbours=most,
        cost=cost,
        proved_by=tuple(proved),
    )


def dense_votes(certificate: Certificate, place: int) -> Array:
    """What a target voted in every group, by its place among the targets of a certificate."""
    evidence = certificate.evidence
    assert isinstance(evidence, VoteEvidence)
    dense: Array = _alone(evidence, place).votes.dense()[0]
    return dense


def _alone(evidence: VoteEvidence, place: int) -> VoteEvidence:
    """The evidence about one target."""
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
    tensors["reach"], tensors["reach_ptr"] = evidence.reach[reach], np.array([0, reach.stop - reach.start])
    return VoteEvidence.load(tensors, evidence.settings())
