"""What an attack does to the votes of each target, as numbers.

Where the number of groups is fixed, votes move from class to class, and :class:`Limits` says how many. Where every
neighbour has a group of its own, votes come, go and are altered, and :class:`Changes` says how many.

This module shares no code with ``proving``.
"""

from dataclasses import dataclass, replace

import numpy as np

from agnncert.certificates.votes import BoolArray, FloatArray, IntArray
from agnncert.verifier.piles import REACHED, UNLISTED, UNREACHED, Piles


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


def everywhere(piles: Piles) -> BoolArray:
    """Returns that something is proved about every target, shape ``[n]``."""
    return np.ones(piles.num_targets, dtype=bool)
