"""What each division's theorem says: how many ballots of a target an attacker's budget can move.

One short function per division and task, from a budget to :class:`~agnncert.rules.Reach`. In the comments,
v is the target and S_v the subgraphs in which v has an edge that can bring it a message. A *node* of the
budget is a deleted node or one with changed features; v itself is never deleted.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from agnncert.budget import COUNTS, Budget
from agnncert.evidence import FloatArray
from agnncert.rules import Reach
from agnncert.votes import IntArray


@dataclass(frozen=True)
class Amounts:
    """A budget whose fields may differ by target: each count is an array that broadcasts to ``[n]``."""

    add_edges: FloatArray
    delete_edges: FloatArray
    change_edges: FloatArray
    inject_nodes: FloatArray
    edges_per_injected: FloatArray
    delete_nodes: FloatArray
    change_features: FloatArray
    target_features: bool

    @classmethod
    def of(cls, budget: Budget, field: str | None = None, amounts: FloatArray | None = None) -> "Amounts":
        """The budget, with ``field`` replaced by one amount for each target."""
        values: dict[str, Any] = {
            name: np.asarray(getattr(budget, name), dtype=np.float64) for name in COUNTS
        }
        if field is not None:
            values[field] = amounts
        return cls(**values, target_features=budget.target_features)

    @property
    def edges(self) -> FloatArray:
        """Edges added, deleted or changed, those of injected nodes not counted."""
        return self.add_edges + self.delete_edges + self.change_edges

    @property
    def nodes(self) -> FloatArray:
        """Nodes deleted or given other features."""
        return self.delete_nodes + self.change_features

    @property
    def injected_edges(self) -> FloatArray:
        """All edges of injected nodes together."""
        return times(self.inject_nodes, self.edges_per_injected)

    @property
    def joined_nodes(self) -> FloatArray:
        """Injected nodes that have an edge at all."""
        return np.minimum(self.inject_nodes, self.injected_edges)


@dataclass(frozen=True)
class Facts:
    """What a theorem needs to know about ``n`` targets besides their votes.

    Attributes:
        num_reached: Reached ballots of each target, shape ``[n]``.
        cover_ptr: Row of target ``j`` in ``cover`` is ``cover_ptr[j]:cover_ptr[j + 1]``, shape ``[n + 1]``.
        cover: Entry k - 1 of a row bounds the ballots that the worst k nodes reach; the last one holds for
            more.
        parameters: Whole numbers that a division's theorem refers to.
    """

    num_reached: IntArray
    cover_ptr: IntArray
    cover: npt.NDArray[np.int32]
    parameters: Mapping[str, int] = field(default_factory=dict)

    def covered_by(self, nodes: FloatArray) -> FloatArray:
        """The most ballots that this many nodes reach, shape ``[n]``."""
        entry = np.minimum(nodes, np.diff(self.cover_ptr)).astype(np.int64)
        table = np.append(self.cover, 0)  # no nodes, or an empty row: nothing is reached
        return table[np.where(entry > 0, self.cover_ptr[:-1] + entry - 1, -1)].astype(np.float64)


def times(a: FloatArray, b: FloatArray) -> FloatArray:
    """The product, where nothing times infinity is nothing: floating point would say NaN."""
    a, b = np.broadcast_arrays(a, b)
    return np.multiply(a, b, where=(a > 0) & (b > 0), out=np.zeros(a.shape))


def edge_centric_node(attack: Amounts, facts: Facts) -> Reach:
    """A changed edge alters its subgraph; a changed node those where v hears it (paper, Theorem 4).

    A ballot outside S_v is the prediction from v's features alone until v gains an edge in that subgraph,
    and each such subgraph takes a new neighbour of its own. So hubs of unlimited degree, deletions without
    limit and any features of other nodes leave those ballots alone.
    """
    neighbours = attack.joined_nodes + attack.add_edges
    moved = attack.injected_edges + attack.edges + facts.covered_by(attack.nodes)
    return _reach(facts, moved, neighbours, neighbours)


def node_centric_node(attack: Amounts, facts: Facts) -> Reach:
    """An edge or a node alters one ballot of v, whatever its degree (paper, Theorems 7 to 9).

    All edges leaving a node are in that node's subgraph, so it speaks to v in no other. An edge between
    groups speaks only to its two ends. Ballots outside S_v: as in :func:`edge_centric_node`.
    """
    neighbours = attack.joined_nodes + attack.add_edges
    moved = attack.joined_nodes + attack.edges + np.minimum(attack.nodes, facts.num_reached)
    return _reach(facts, moved, neighbours, neighbours)


def gated_node(attack: Amounts, facts: Facts) -> Reach:
    """Node-centric, features visible in a node's own group only: v's own features alter one ballot more.

    Besides S_v only the ballot of v's own group is cast; it is listed but not reached. The others abstain.
    """
    own = float(attack.target_features)
    others = node_centric_node(attack, facts)
    return _reach(facts, others.all + own, others.beyond_reached + own, others.unlisted)


def edge_centric_graph(attack: Amounts, facts: Facts) -> Reach:
    """A subgraph holds the edges of its group and their ends; an empty one changes only by a new edge."""
    new_edges = attack.injected_edges + attack.add_edges
    moved = attack.injected_edges + attack.edges + facts.covered_by(attack.nodes)
    return _reach(facts, moved, new_edges, new_edges)


def node_centric_graph(attack: Amounts, facts: Facts) -> Reach:
    """A subgraph holds the nodes of its group and the edges among them; edges between groups are nowhere.

    A subgraph without a node changes only by an injected one. A subgraph with a single node (without
    self-loops) holds no edge, so only injected, deleted or altered nodes change it.
    """
    nodes = attack.inject_nodes + attack.nodes
    return _reach(facts, nodes + attack.edges, nodes, attack.inject_nodes)


def gnncert_edges(attack: Amounts, facts: Facts) -> Reach:
    """GNNCert-E: edges are divided, every subgraph has all nodes. Only edges are covered."""
    covered = (attack.nodes == 0) & (attack.inject_nodes == 0)
    return _reach(facts, attack.edges, attack.edges, attack.edges, covered)


def gnncert_features(attack: Amounts, facts: Facts) -> Reach:
    """GNNCert-N: features are divided, every subgraph has all edges. Only features are covered."""
    nodes = attack.change_features + float(attack.target_features)
    covered = (attack.edges == 0) & (attack.delete_nodes == 0) & (attack.inject_nodes == 0)
    return _reach(facts, nodes, nodes, nodes, covered)


def gnncert_both(attack: Amounts, facts: Facts) -> Reach:
    """GNNCert-EN: a grid of edge and feature groups. An edge alters a row, a changed node a column."""
    rows, columns = facts.parameters["edge_groups"], facts.parameters["feature_groups"]
    edges = np.minimum(attack.edges, rows)
    nodes = np.minimum(attack.change_features + float(attack.target_features), columns)
    moved = nodes * rows + edges * columns - nodes * edges
    covered = (attack.delete_nodes == 0) & (attack.inject_nodes == 0)
    return _reach(facts, moved, moved, moved, covered)


def custom(attack: Amounts, facts: Facts) -> Reach:
    """A user's own division, which states how many ballots one unit of each budget field moves at most.

    ``edges_per_injected`` is the price of one edge of an injected node. What has no price is not covered.
    """
    units = {name: getattr(attack, name) for name in COUNTS} | {
        "edges_per_injected": attack.injected_edges,
        "target_features": np.asarray(float(attack.target_features)),
    }
    moved, covered = np.zeros(len(facts.num_reached)), np.ones(len(facts.num_reached), dtype=bool)
    for name, amount in units.items():
        if name in facts.parameters:
            moved = moved + times(amount, np.asarray(float(facts.parameters[name])))
        else:
            covered = covered & (amount == 0)
    return _reach(facts, moved, moved, moved, covered)


def _reach(
    facts: Facts, moved: FloatArray, beyond: FloatArray, unlisted: FloatArray, covered: Any = True
) -> Reach:
    shape = facts.num_reached.shape
    moved, beyond, unlisted = (np.broadcast_to(limit, shape) for limit in (moved, beyond, unlisted))
    return Reach(moved, beyond, unlisted, np.broadcast_to(np.asarray(covered), shape))


@dataclass(frozen=True)
class Rule:
    """A theorem and what it speaks about.

    Attributes:
        task: ``"node"`` or ``"graph"``.
        theorem: From a budget to the ballots that can move.
        by_neighbours: Whether every ballot beyond the reached ones costs a new neighbour of the target.
        own_features: Whether changes of the target's own features are covered.
        parameters: Names of the whole numbers that the theorem needs.
        optional: Names of those it accepts.
    """

    task: str
    theorem: Callable[[Amounts, Facts], Reach]
    by_neighbours: bool = False
    own_features: bool = False
    parameters: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()

    def reach(self, attack: Amounts, facts: Facts, stable_ids: bool) -> Reach:
        """The ballots that ``attack`` can move; not covered where the rule proves nothing about it.

        Args:
            attack: What the attacker may do.
            facts: What is known about the targets.
            stable_ids: Whether nodes keep their identity when others are deleted; row numbers do not.
        """
        found = self.theorem(attack, facts)
        covered = found.covered & (self.own_features or not attack.target_features)
        return replace(found, covered=covered & (stable_ids | (attack.delete_nodes == 0)))


_GRID = ("edge_groups", "feature_groups")
_PRICES = (*COUNTS, "target_features")

RULES = {
    "edge-centric/node": Rule("node", edge_centric_node, by_neighbours=True),
    "node-centric/node": Rule("node", node_centric_node, by_neighbours=True),
    "gated/node": Rule("node", gated_node, by_neighbours=True, own_features=True),
    "edge-centric/graph": Rule("graph", edge_centric_graph),
    "node-centric/graph": Rule("graph", node_centric_graph),
    "gnncert-e/node": Rule("node", gnncert_edges),
    "gnncert-n/node": Rule("node", gnncert_features, own_features=True),
    "gnncert-en/node": Rule("node", gnncert_both, own_features=True, parameters=_GRID),
    "gnncert-e/graph": Rule("graph", gnncert_edges),
    "gnncert-n/graph": Rule("graph", gnncert_features),
    "gnncert-en/graph": Rule("graph", gnncert_both, parameters=_GRID),
    "custom/node": Rule("node", custom, own_features=True, optional=_PRICES),
    "custom/graph": Rule("graph", custom, optional=_PRICES[:-1]),
}
