"""``InterceptionNoise``: noise that intercepts messages, against other features of existing nodes.

The method is of Scholten et al. (NeurIPS 2022).

Each directed edge is deleted with probability ``d`` and the features of each node with probability ``a``. An attacker
gives other features to a set of nodes. Let R be the event that none of them *reaches* the target: its features are
deleted, or every path from it to the target, of at most as many edges as the model has hops, has lost an edge. Given R,
the prediction is the one on the clean graph, so P'(A) >= P(A) - (1 - P(R)) and P'(B) <= P(B) + (1 - P(R)), and

    pA - pB > 2 (1 - P(R))    certifies the label.

All these events are more likely the more is deleted. So by Harris' inequality P(R) is at least the product over the
attacked nodes, and for each node at least ``a + (1 - a) c``, where ``c``, the probability that all paths are cut, is at
least the product over its paths of ``1 - (1 - d)^length``. The worst r nodes are those with the r smallest factors. The
target itself has a path of length 0: ``c = 0``.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from agnncert.certificates.budget import Budget
from agnncert.certificates.votes import BoolArray, FloatArray, IntArray
from agnncert.errors import SettingsError
from agnncert.proving.theorems import largest_amount
from agnncert_peers.bounds import ClassBounds
from agnncert_peers.noise import NO_GRAPH, ROUNDING, Noise, check_probability

MOST_HOPS = 16


@dataclass(frozen=True)
class InterceptionNoise(Noise):
    """A directed edge is deleted with ``p_delete``, the features of a node with ``p_ablate``: they become zeros.

    Attributes:
        p_delete: Probability that a directed edge is deleted.
        p_ablate: Probability that the features of a node are deleted.
        hops: A prediction depends on features of nodes at most this many edges away.
        skip: Whether a prediction also sees the target's own features without noise; then nothing is proved about them.
    """

    kind: ClassVar[str] = "interception"

    p_delete: float
    p_ablate: float
    hops: int
    skip: bool = False

    def __post_init__(self) -> None:
        check_probability("p_delete", self.p_delete, NO_GRAPH)
        check_probability("p_ablate", self.p_ablate, "all features would always be deleted. Use a constant instead.")
        if self.p_delete == 0 and self.p_ablate == 0:
            raise SettingsError("p_delete and p_ablate are both 0: without noise nothing can be certified. Raise one.")
        if isinstance(self.hops, bool) or not isinstance(self.hops, int) or not 1 <= self.hops <= MOST_HOPS:
            raise SettingsError(f"hops={self.hops!r}: expected a whole number from 1 to {MOST_HOPS}.")
        if not isinstance(self.skip, bool):
            raise SettingsError(f"skip={self.skip!r}: expected True or False.")

    def settings(self) -> dict[str, Any]:
        """Returns kind and parameters; ``skip`` only if it is set."""
        stored = super().settings()
        if not self.skip:
            del stored["skip"]
        return stored

    def silences(self, paths: IntArray) -> FloatArray:
        """Returns the least probability that noise intercepts all messages of each node, shape ``[num_nodes]``.

        Args:
            paths: How many paths of 1, 2, … edges lead from each node to the target, shape ``[num_nodes, hops]``.

        Example:
            >>> InterceptionNoise(p_delete=0.5, p_ablate=0.8, hops=2).silences(np.array([[1, 0], [1, 2]])).round(4)
            array([0.9   , 0.8562])
        """
        open_path = (1 - self.p_delete) ** np.arange(1.0, self.hops + 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            log_cut = np.where(paths > 0, paths * np.log1p(-open_path), 0.0)
        cut = np.exp(log_cut.sum(axis=1))
        return np.asarray(self.p_ablate + (1 - self.p_ablate) * cut)

    def silent(self, sources: "Sources") -> FloatArray:
        """Returns the field of ``ClassBounds`` with this name."""
        counts = np.diff(sources.start)
        owner = np.repeat(np.arange(len(counts)), counts)
        each = self.silences(sources.paths)
        order = np.lexsort([each, owner])
        table = np.ones((len(counts), int(counts.max(initial=0)) + 1))
        column = 1 + np.arange(len(owner)) - sources.start[owner]
        table[owner, column] = each[order]
        return np.asarray(np.cumprod(table, axis=1))

    def radius(self, bounds: ClassBounds) -> IntArray:
        """Returns the largest number of other nodes with changed features that each target is certified against.

        It is at most 2**31, which is reached only where all nodes that reach the target may change.
        """
        largest = largest_amount(lambda nodes: self.withstands(nodes, False, bounds), len(bounds.label))
        return np.minimum(largest, 2.0**31).astype(np.int64)

    def covered_fields(self) -> tuple[str, ...]:
        """Returns the fields of a budget about which something is proved: features, the target's own without skip."""
        if self.skip:
            return ("change_features",)
        return ("change_features", "target_features")

    def holds(self, budget: Budget, bounds: ClassBounds) -> BoolArray:
        """Tells whether each target keeps its label against ``budget``; nothing but changed features is covered."""
        if not self.covers(budget):
            return np.zeros(len(bounds.label), dtype=bool)
        nodes = np.full(len(bounds.label), float(budget.change_features))
        return self.withstands(nodes, budget.target_features, bounds)

    def withstands(self, nodes: FloatArray, own: bool, bounds: ClassBounds) -> BoolArray:
        """Tells whether each target is certified if its number of other nodes changes, and with ``own`` itself."""
        assert bounds.silent is not None
        column = np.minimum(nodes, bounds.silent.shape[1] - 1).astype(np.int64)
        silent = bounds.silent[np.arange(len(column)), column]
        if own:
            silent = silent * self.p_ablate
        leads = bounds.top - bounds.other - 2 * (1 - silent) > ROUNDING
        return np.asarray(leads & ~bounds.abstains)


@dataclass(frozen=True)
class Sources:
    """Nodes whose features reach each target, and over how many paths.

    Listed are those that noise intercepts least, until it intercepts all of them with probability 1/2 at most: no
    target is certified against these and more. If they are fewer, all nodes that reach the target are listed.

    Attributes:
        start: Nodes of target i are ``start[i]:start[i + 1]``, shape ``[n + 1]``.
        paths: How many paths of 1, 2, … edges lead from each of them to the target, shape ``[num_listed, hops]``.
    """

    start: IntArray
    paths: IntArray

    def equals(self, other: "Sources | None") -> bool:
        """Tells whether the other lists are the same."""
        if other is None:
            return False
        return np.array_equal(self.start, other.start) and np.array_equal(self.paths, other.paths)

    def check(self, num_targets: int, hops: int) -> None:
        """Refuses what are no lists of paths for this many targets.

        Raises:
            SettingsError: Says how many targets and edges were expected.
        """
        one_list_each = len(self.start) == num_targets + 1 and self.start[0] == 0
        if one_list_each and (np.diff(self.start) >= 0).all():
            shape = (self.start[-1], hops)
            if self.paths.shape == shape and (self.paths >= 0).all():
                return
        raise SettingsError(f"the paths to {num_targets} targets are not lists of counts for 1 to {hops} edges.")
