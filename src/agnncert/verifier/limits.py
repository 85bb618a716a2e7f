"""Says what an attack can do to the votes of each target: one function for each theorem of ``docs/proofs.md``.

Where the number of groups is fixed, votes move from class to class, and :class:`Limits` says how many. Where every
neighbour has a group of its own, votes come, go and are altered, and :class:`Changes` says how many.

This module shares no code with ``proving``. It spells out what each division covers instead of reading it from the
table in ``certificates.theorem_facts``.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from agnncert.certificates.budget import COUNTS, Budget
from agnncert.certificates.votes import BoolArray, FloatArray, IntArray
from agnncert.verifier.check import require_trusted_training
from agnncert.verifier.piles import REACHED, UNLISTED, UNREACHED, Piles, is_per_neighbour


@dataclass(frozen=True)
class Limits:
    """How many votes can move at most. All fields have one entry for each target, or for each rival.

    The limits lie one within the other: an unlisted vote counts towards all three, an unreached one towards two.

    Attributes:
        total: Votes of any tier.
        unreached: Votes that the graph as it is does not reach, listed or not.
        unlisted: Votes that are not listed.
        covered: False where the theorem says nothing about the attack.
    """

    total: FloatArray
    unreached: FloatArray
    unlisted: FloatArray
    covered: BoolArray

    def select(self, which: IntArray) -> "Limits":
        """Returns the limits of some targets."""
        return Limits(self.total[which], self.unreached[which], self.unlisted[which], self.covered[which])

    def within(self, tier: int) -> FloatArray:
        """Returns how many votes of a tier can move."""
        if tier == REACHED:
            return self.total
        if tier == UNREACHED:
            return np.minimum(self.total, self.unreached)
        return np.minimum(np.minimum(self.total, self.unreached), self.unlisted)

    def after(self, tier: int, moved: FloatArray) -> "Limits":
        """Returns what is left of the limits once this many votes of a tier have moved."""
        left = replace(self, total=self.total - moved)
        if tier != REACHED:
            left = replace(left, unreached=self.unreached - moved)
        if tier == UNLISTED:
            left = replace(left, unlisted=self.unlisted - moved)
        return left


@dataclass(frozen=True)
class Changes:
    """What happens to the votes of each target where every neighbour, pair or node has its own, shape ``[n]`` each.

    Attributes:
        new: How many votes come to be, at most.
        removed: How many votes go, at most.
        altered: How many votes may become anything, at most.
        touched: How many votes go or are altered, at most.
        turned: How many of the new votes may be turned pairs instead, at most. Where votes belong to pairs, an added
            edge may be the second direction of a pair that has one. It then alters the vote of that pair.
        covered: False where the theorem says nothing about the attack.
    """

    new: FloatArray
    removed: FloatArray
    altered: FloatArray
    touched: FloatArray
    turned: FloatArray
    covered: BoolArray


@dataclass(frozen=True)
class Attack:
    """What an attacker may do at each of ``n`` targets: the fields of a budget, each but the last of shape ``[n]``."""

    add_edges: FloatArray
    delete_edges: FloatArray
    change_edges: FloatArray
    inject_nodes: FloatArray
    edges_per_injected: FloatArray
    delete_nodes: FloatArray
    change_features: FloatArray
    target_features: bool

    @property
    def edges(self) -> FloatArray:
        """Edges that are added, deleted or changed."""
        return self.add_edges + self.delete_edges + self.change_edges

    @property
    def injected_edges(self) -> FloatArray:
        """Edges of all injected nodes together."""
        return product(self.inject_nodes, self.edges_per_injected)

    @property
    def touched_nodes(self) -> FloatArray:
        """Nodes other than the target that are deleted or given other features."""
        return self.delete_nodes + self.change_features

    @property
    def changed_nodes(self) -> FloatArray:
        """Nodes that are given other features, the target included."""
        return self.change_features + self.target_features


def limits_under(piles: Piles, budget: Budget, add_edges: FloatArray | None = None) -> Limits | Changes:
    """Returns what an attacker can do to the votes, by the theorem of the record.

    Args:
        piles: The targets.
        budget: What the attacker may do.
        add_edges: Numbers of added edges to use instead of that of the budget, one for each target, shape ``[n]``.
    """
    require_trusted_training(budget)
    counts = {name: np.full(piles.num_targets, float(getattr(budget, name))) for name in COUNTS}
    if add_edges is not None:
        counts["add_edges"] = add_edges
    attack = Attack(**counts, target_features=budget.target_features)
    limits = _THEOREMS[piles.record.theorem](piles, attack)
    return replace(limits, covered=limits.covered & _is_covered(piles, attack))


def _is_covered(piles: Piles, attack: Attack) -> BoolArray:
    """Tells where an attack neither changes a target that must not change, nor deletes nodes without ids, ``[n]``."""
    target_is_covered = not attack.target_features or piles.record.theorem in _COVERS_TARGET
    covered = np.full(piles.num_targets, target_is_covered)
    if piles.record.ids == "row" and not is_per_neighbour(piles.record):
        covered &= attack.delete_nodes == 0  # a deletion renumbers rows, and groups follow their numbers
    return covered


_COVERS_TARGET = ("gated/node", "gnncert-n/node", "gnncert-en/node", "custom/node")


def _edge_centric_node(piles: Piles, attack: Attack) -> Limits:
    """Each edge moves one vote, each node those of its edges. Beyond the reached votes each needs a new neighbour."""
    total = attack.edges + attack.injected_edges + votes_reached(piles, attack.touched_nodes)
    new_neighbours = attack.add_edges + np.minimum(attack.injected_edges, attack.inject_nodes)
    return Limits(total, new_neighbours, new_neighbours, _everywhere(piles))


def _edge_centric_graph(piles: Piles, attack: Attack) -> Limits:
    """Each edge moves one vote, each node those of its edges. Beyond the reached votes each needs a new edge."""
    total = attack.edges + attack.injected_edges + votes_reached(piles, attack.touched_nodes)
    new_edges = attack.add_edges + attack.injected_edges
    return Limits(total, new_edges, new_edges, _everywhere(piles))


def _node_centric_node(piles: Piles, attack: Attack) -> Limits:
    """Each edge and each node moves one vote. Beyond the reached votes each needs a new neighbour, or is the target's.

    Only where features are gated does the target have a listed vote that is not reached: that of its own group.
    """
    joined_nodes = np.where(attack.edges_per_injected > 0, attack.inject_nodes, 0)
    old_neighbours = np.minimum(attack.touched_nodes, piles.num_reached)
    new_neighbours = attack.add_edges + joined_nodes
    return Limits(
        total=attack.edges + joined_nodes + old_neighbours + attack.target_features,
        unreached=new_neighbours + attack.target_features,
        unlisted=new_neighbours,
        covered=_everywhere(piles),
    )


def _node_centric_graph(piles: Piles, attack: Attack) -> Limits:
    """Each edge and each node moves one vote. An edge needs a reached vote, and an old node a listed one."""
    nodes = attack.touched_nodes + attack.inject_nodes
    return Limits(attack.edges + nodes, nodes, attack.inject_nodes, _everywhere(piles))


def _gnncert_e(piles: Piles, attack: Attack) -> Limits:
    """Each edge moves one vote, and nothing else may change."""
    return _of_any_tier(attack.edges, _no_node_comes_or_goes(attack) & (attack.change_features == 0))


def _gnncert_n(piles: Piles, attack: Attack) -> Limits:
    """The features of each node move one vote, and nothing else may change."""
    return _of_any_tier(attack.changed_nodes, _no_node_comes_or_goes(attack) & (attack.edges == 0))


def _gnncert_en(piles: Piles, attack: Attack) -> Limits:
    """Votes form a grid. Each edge moves one row of it, the features of each node one column."""
    num_rows = piles.record.parameters["edge_groups"]
    num_columns = piles.record.parameters["feature_groups"]
    untouched_rows = np.maximum(num_rows - attack.edges, 0)
    untouched_columns = np.maximum(num_columns - attack.changed_nodes, 0)
    moved = num_rows * num_columns - untouched_rows * untouched_columns
    return _of_any_tier(moved, _no_node_comes_or_goes(attack))


def _custom(piles: Piles, attack: Attack) -> Limits:
    """Each change moves as many votes as the division states for its kind. Kinds without a number must not occur."""
    amounts = {name: getattr(attack, name) for name in COUNTS}
    amounts["edges_per_injected"] = attack.injected_edges
    amounts["target_features"] = np.full(piles.num_targets, float(attack.target_features))
    moved = np.zeros(piles.num_targets)
    covered = _everywhere(piles)
    for name, amount in amounts.items():
        price = piles.record.parameters.get(name)
        if price is None:
            covered &= amount == 0
        elif price > 0:  # asked because 0 times infinity is NaN
            moved += amount * price
    return _of_any_tier(moved, covered)


def _own_votes_node(piles: Piles, attack: Attack) -> Changes:
    """Each change is about the vote of one neighbour. An added edge is a new vote, since votes belong to neighbours."""
    removed = attack.delete_edges + attack.delete_nodes
    altered = attack.change_edges + attack.change_features
    return Changes(
        new=attack.add_edges + np.minimum(attack.injected_edges, attack.inject_nodes),
        removed=removed,
        altered=altered,
        touched=removed + altered,
        turned=np.zeros(piles.num_targets),
        covered=_everywhere(piles),
    )


def _own_votes_node_pairs(piles: Piles, attack: Attack) -> Changes:
    """As where votes belong to neighbours, but an added edge may turn a pair that has one direction only."""
    return replace(_own_votes_node(piles, attack), turned=attack.add_edges)


def _own_votes_graph(piles: Piles, attack: Attack) -> Changes:
    """Each node has one vote, which depends on its features alone."""
    return Changes(
        new=attack.inject_nodes,
        removed=attack.delete_nodes,
        altered=attack.change_features,
        touched=attack.touched_nodes,
        turned=np.zeros(piles.num_targets),
        covered=_everywhere(piles),
    )


def _own_votes_graph_pairs(piles: Piles, attack: Attack) -> Changes:
    """Each pair of nodes has one vote, so a node is in as many votes as it has pairs."""
    touched = attack.delete_edges + attack.change_edges + votes_reached(piles, attack.touched_nodes)
    return Changes(
        new=attack.add_edges + attack.injected_edges,
        removed=touched,  # as many as are not altered
        altered=attack.change_edges + votes_reached(piles, attack.change_features),
        touched=touched,
        turned=attack.add_edges,
        covered=_everywhere(piles),
    )


_THEOREMS: dict[str, Callable[[Piles, Attack], Limits | Changes]] = {
    "edge-centric/node": _edge_centric_node,
    "edge-centric/graph": _edge_centric_graph,
    "node-centric/node": _node_centric_node,
    "node-centric/graph": _node_centric_graph,
    "gated/node": _node_centric_node,
    "gnncert-e/node": _gnncert_e,
    "gnncert-e/graph": _gnncert_e,
    "gnncert-n/node": _gnncert_n,
    "gnncert-n/graph": _gnncert_n,
    "gnncert-en/node": _gnncert_en,
    "gnncert-en/graph": _gnncert_en,
    "custom/node": _custom,
    "custom/graph": _custom,
    "per-neighbour/node": _own_votes_node,
    "per-neighbour/graph": _own_votes_graph,
    "per-pair/node": _own_votes_node_pairs,
    "per-pair/graph": _own_votes_graph_pairs,
}


def _of_any_tier(moved: FloatArray, covered: BoolArray) -> Limits:
    """Returns the limits of votes that may be in any tier."""
    return Limits(moved, moved, moved, covered)


def _no_node_comes_or_goes(attack: Attack) -> BoolArray:
    return np.asarray(attack.inject_nodes + attack.delete_nodes == 0)


def _everywhere(piles: Piles) -> BoolArray:
    return np.ones(piles.num_targets, dtype=bool)


def votes_reached(piles: Piles, nodes: FloatArray) -> FloatArray:
    """Returns how many votes that many nodes reach at worst, by the row of each target in the reach table, ``[n]``."""
    targets = piles.part.targets
    bounds = piles.record.reach_ptr[targets.start : targets.stop + 1]
    table = piles.record.reach[bounds[0] : bounds[-1]]  # the rows of these targets: the whole table may be long
    row_start = bounds[:-1] - bounds[0]
    row_length = np.diff(bounds)
    num_nodes = np.minimum(nodes, row_length).astype(np.int64)  # the last entry of a row holds for more nodes too
    some = num_nodes > 0
    votes = np.zeros(piles.num_targets)
    votes[some] = table[(row_start + num_nodes - 1)[some]]
    return votes


def product(a: FloatArray, b: FloatArray) -> FloatArray:
    """Returns ``a * b``, where nothing of infinitely many is nothing."""
    is_nothing = (a == 0) | (b == 0)
    return np.where(is_nothing, 0.0, np.where(is_nothing, 1.0, a) * np.where(is_nothing, 1.0, b))
