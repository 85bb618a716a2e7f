"""``DeletionNoise``: noise that deletes edges and nodes, against injected nodes (Bi-RS; Lai et al., IEEE S&P 2024).

An attacker injects ``rho`` nodes with at most ``tau`` edges each. Let ``w`` be what noise does to the clean graph, and
R the event that it deletes all edges of the injected nodes. Given R, the prediction is the one on the clean graph under
``w``. Let A be the event that under ``w`` the chosen class is predicted, and B the same for another class. Then

    P'(A) - P'(B)  >=  E[1_A P(R|w)] - E[1_B P(R|w)] - (1 - P(R))  =  E[(1_A + 1_notB) P(R|w)] - 1

and two things are known about ``P(R|w)``. Each injected node is deleted with probability ``p_node``, and each of its
edges with probability ``p_edge`` or together with the old node at its other end. More deletions only make R more
likely, so by Harris' inequality

    its mean     P(R)   >= pt = [p_node + (1 - p_node) q^tau]^rho,       q = p_edge + p_node - p_edge p_node
    any value    P(R|w) >= g  = [p_node + (1 - p_node) p_edge^tau]^rho   (old nodes may all have survived)

    B1      g (1 + pA - pB) > 1            from the pointwise bound
    B2      pA - pB > 2 (1 - pt)           from the mean
    sharp   from both at once; never weaker than B1 or B2
    legacy-unsound   pt (1 + pA - pB) > 1, as released: treats P(R|w) as independent of w, which it is not
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from agnncert.certificates.budget import Budget
from agnncert.certificates.votes import BoolArray, FloatArray, IntArray
from agnncert.errors import SettingsError, did_you_mean
from agnncert.proving.theorems import largest_amount
from agnncert_peers.bounds import ClassBounds
from agnncert_peers.noise import NO_GRAPH, ROUNDING, Noise, check_probability

TESTS = ("B2", "B1", "sharp", "legacy-unsound")


@dataclass(frozen=True)
class DeletionNoise(Noise):
    """An edge is deleted with ``p_edge``; a node loses all its edges with ``p_node``, but keeps its features.

    Attributes:
        p_edge: Probability that an edge is deleted on its own.
        p_node: Probability that a node's edges are deleted together.
        test: ``"B2"`` (default), ``"B1"``, ``"sharp"``, or ``"legacy-unsound"`` to compare with the released code.
        edges_per_injected: Edges of an injected node (tau) in the unit of the radius; budgets state their own.
    """

    kind: ClassVar[str] = "deletions"

    p_edge: float
    p_node: float
    test: str = "B2"
    edges_per_injected: float = 5

    def __post_init__(self) -> None:
        check_probability("p_edge", self.p_edge, NO_GRAPH)
        check_probability("p_node", self.p_node, NO_GRAPH)
        if self.p_edge == 0 and self.p_node == 0:
            raise SettingsError("p_edge and p_node are both 0: without noise nothing can be certified. Raise one.")
        if self.test not in TESTS:
            raise SettingsError(f'test="{self.test}": {did_you_mean(str(self.test), TESTS)}')
        Budget(edges_per_injected=self.edges_per_injected)  # refuses negative and fractional numbers

    def radius(self, bounds: ClassBounds) -> IntArray:
        """Returns the largest number of injected nodes, of ``edges_per_injected`` edges, that each target withstands.

        It is at most 2**31, which is reached only where injected nodes bring no edges.
        """
        largest = largest_amount(lambda rho: self.withstands(rho, self.edges_per_injected, bounds), len(bounds.label))
        return np.minimum(largest, 2.0**31).astype(np.int64)

    def covered_fields(self) -> tuple[str, ...]:
        """Returns the fields of a budget about which something is proved: injected nodes."""
        return ("inject_nodes", "edges_per_injected")

    def holds(self, budget: Budget, bounds: ClassBounds) -> BoolArray:
        """Tells whether each target keeps its label against ``budget``; nothing but injected nodes is covered."""
        if not self.covers(budget):
            return np.zeros(len(bounds.label), dtype=bool)
        rho = np.full(len(bounds.label), float(budget.inject_nodes))
        return self.withstands(rho, budget.edges_per_injected, bounds)

    def withstands(self, rho: FloatArray, tau: float, bounds: ClassBounds) -> BoolArray:
        """Tells whether each target is certified against ``rho`` injected nodes, shape ``[n]``, of ``tau`` edges."""
        missing = self._some_edge_stays(rho, tau, (1 - self.p_edge) * (1 - self.p_node))
        missing_at_worst = self._some_edge_stays(rho, tau, 1 - self.p_edge)
        leads = self._margin(bounds, missing, missing_at_worst) > ROUNDING
        return np.asarray(leads & ~bounds.abstains)

    def isolation(self, rho: float, tau: float) -> float:
        """Returns the least probability that noise deletes all edges of ``rho`` injected nodes with ``tau`` edges each.

        Example:
            >>> round(DeletionNoise(p_edge=0.8, p_node=0.9).isolation(1, 5), 4)
            0.9904
        """
        edge_stays = (1 - self.p_edge) * (1 - self.p_node)
        some_edge_stays = self._some_edge_stays(np.array([float(rho)]), tau, edge_stays)
        return float(1 - some_edge_stays[0])

    def _some_edge_stays(self, rho: FloatArray, tau: float, edge_stays: float) -> FloatArray:
        """Returns ``1 - [p_node + (1 - p_node) (1 - edge_stays)^tau]^rho``, without cancellation when it is small."""
        of_surviving_node = float(tau > 0)
        if edge_stays < 1:
            of_surviving_node = -math.expm1(tau * math.log1p(-edge_stays))
        one_node = (1 - self.p_node) * of_surviving_node
        if one_node == 0:
            return np.zeros_like(rho)
        if one_node == 1:  # then the logarithm is infinite, and 0 nodes would give 0 times infinity
            return (rho > 0).astype(np.float64)
        return np.asarray(-np.expm1(rho * math.log1p(-one_node)))

    def _margin(self, bounds: ClassBounds, missing: FloatArray, missing_at_worst: FloatArray) -> FloatArray:
        """Returns a lower bound on ``P'(A) - P'(B)``.

        Args:
            bounds: Class bounds of each target.
            missing: Upper bound on ``1 - P(R)``.
            missing_at_worst: Upper bound on ``1 - P(R|w)`` for any w.
        """
        gap = bounds.top - bounds.other
        if self.test == "B2":
            return gap - 2 * missing
        if self.test == "B1":
            return gap - missing_at_worst * (1 + gap)
        if self.test == "legacy-unsound":
            return gap - missing * (1 + gap)
        # Where P(R|w) is below 1 it hurts most on A, where both indicators are 1; then where neither class is
        # predicted.
        on_top = np.minimum(bounds.top * missing_at_worst, missing)
        neither = np.maximum(1 - bounds.top - bounds.other, 0.0)
        on_neither = np.minimum(neither * missing_at_worst, missing - on_top)
        return np.asarray(gap - 2 * on_top - on_neither)
