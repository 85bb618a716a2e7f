"""What every noise must answer: class bounds and a budget in, yes or no out.

FlipNoise          entries of a binary adjacency and of binary features flip: RS, sparsity-aware RS
DeletionNoise      edges and nodes are deleted: Bi-RS
InterceptionNoise  edges and features of nodes are deleted: message-interception smoothing

Noise that flips entries of a binary matrix, and what it proves (Bojchevski et al., ICML 2020).

Randomized smoothing of structure (Wang et al., KDD 2021; Jia et al., WWW 2020) is the special case of equal
probabilities in both directions.

Noise that deletes edges and nodes, against injected nodes (Bi-RS; Lai et al., IEEE S&P 2024).

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

Noise that intercepts messages, against other features of existing nodes (Scholten et al., NeurIPS 2022).

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

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Self

import numpy as np

from agnncert.certificates.budget import COUNTS, Budget
from agnncert.certificates.votes import BoolArray, FloatArray, IntArray
from agnncert.errors import SettingsError, did_you_mean
from agnncert.proving.theorems import largest_amount
from agnncert_peers.bounds import LARGEST_FLIPS, ClassBounds, Regions, flip_regions, joint_regions
from agnncert_peers.sample_claim import noise_unit


class Noise(ABC):
    """A random change of the input, and what a vote over it withstands. Subclasses are frozen dataclasses.

    Attributes:
        kind: Name of this kind of noise in files.
    """

    kind: ClassVar[str]

    @property
    def unit(self) -> str:
        """What one step of the radius counts."""
        return noise_unit(self.settings())

    @abstractmethod
    def radius(self, bounds: ClassBounds) -> IntArray:
        """The largest size, in this unit, that each target is certified against, shape ``[n]``; -1 if it abstains."""

    @abstractmethod
    def holds(self, budget: Budget, bounds: ClassBounds) -> BoolArray:
        """Whether each target keeps its label against ``budget``; False where nothing is proved."""

    def settings(self) -> dict[str, Any]:
        """Kind and parameters as JSON can store them; infinity becomes "inf"."""
        values = asdict(self)  # type: ignore[call-overload]
        return {"kind": self.kind} | {name: "inf" if value == math.inf else value for name, value in values.items()}

    @classmethod
    def load(cls, settings: Mapping[str, Any]) -> Self:
        """Noise from its parameters, as in :meth:`settings`.

        Raises:
            SettingsError: A parameter is missing, unknown or senseless.
        """
        try:
            return cls(**{name: math.inf if value == "inf" else value for name, value in settings.items()})
        except TypeError as error:
            raise SettingsError(f"these are not the parameters of {cls.kind} noise: {error}.") from None


def goes_beyond(budget: Budget, *covered: str) -> bool:
    """Whether the budget allows something outside the ``covered`` fields.

    Example:
        >>> goes_beyond(Budget(add_edges=1, edges_per_injected=9), "add_edges")
        False
    """
    # Without injected nodes it does not matter how many edges each might bring.
    effective = [name for name in COUNTS if name != "edges_per_injected" or budget.inject_nodes]
    return any(getattr(budget, name) > 0 for name in (*effective, "target_features") if name not in covered)


def check_probability(name: str, value: float, why_not_one: str = "") -> None:
    """Raises ``SettingsError`` unless ``value`` is a probability; 1 is refused if there is a reason against it."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not 0 <= value <= 1:
        raise SettingsError(f"{name}={value!r}: expected a probability from 0 to 1.")
    if value == 1 and why_not_one:
        raise SettingsError(f"{name}=1: {why_not_one}")


PLACES = ("graph", "target row")

LARGEST_MIX = 100  # largest radius to try where every mix of additions and deletions has to be tried


@dataclass(frozen=True)
class FlipNoise(Noise):
    """Independent flips of pairs of nodes and of binary feature entries.

    Attributes:
        p_add: Probability that a pair without an edge gets one.
        p_delete: Probability that an edge is deleted.
        p_add_feature: Probability that a feature entry 0 becomes 1.
        p_delete_feature: Probability that a feature entry 1 becomes 0.
        num_features: Feature entries of a node.
        where: ``"graph"`` if every pair of nodes is subject to noise; ``"target row"`` if only pairs with the target
            are, so that edges elsewhere are not covered.
    """

    kind: ClassVar[str] = "flips"

    p_add: float = 0.0
    p_delete: float = 0.0
    p_add_feature: float = 0.0
    p_delete_feature: float = 0.0
    num_features: int = 0
    where: str = "graph"

    def __post_init__(self) -> None:
        for name in ("p_add", "p_delete", "p_add_feature", "p_delete_feature"):
            check_probability(name, getattr(self, name))
        for add, delete in (("p_add", "p_delete"), ("p_add_feature", "p_delete_feature")):
            total = getattr(self, add) + getattr(self, delete)
            if total >= 1:
                raise SettingsError(
                    f"{add} + {delete} = {total:g}: at 1 the noisy input says nothing about the input, so everything "
                    "is certified and the prediction is worthless; beyond 1 it is the mirror image. Keep the sum "
                    "below 1."
                )
        if not self.on_edges and not self.on_features:
            raise SettingsError("all flip probabilities are 0: without noise nothing can be certified. Raise one.")
        if self.on_features and self.num_features < 1:
            raise SettingsError(f"num_features={self.num_features}: noise on features needs at least one.")
        if self.where not in PLACES:
            raise SettingsError(f'where="{self.where}": {did_you_mean(str(self.where), PLACES)}')

    @property
    def on_edges(self) -> bool:
        """Whether edges are subject to noise."""
        return self.p_add > 0 or self.p_delete > 0

    @property
    def on_features(self) -> bool:
        """Whether features are subject to noise."""
        return self.p_add_feature > 0 or self.p_delete_feature > 0

    def radius(self, bounds: ClassBounds) -> IntArray:
        """The largest number of flips, in any mix of additions and deletions, that each target is certified against.

        At most ``LARGEST_FLIPS``, or ``LARGEST_MIX`` if additions and deletions have different rates.
        """
        if self._rates[0] == self._rates[1]:
            return self._radius_at_one_rate(bounds).astype(np.int64)
        radius = np.where(bounds.abstains, -1, 0)
        for size in range(1, LARGEST_MIX + 1):
            alive = np.flatnonzero(radius == size - 1)
            for mix in _splits(size):
                alive = alive[self._withstands_units(_rows(bounds, alive), *mix)]
            if not len(alive):
                break
            radius[alive] = size
        return radius.astype(np.int64)

    @property
    def _rates(self) -> tuple[float, float]:
        """Probabilities of additions and deletions of what the radius counts."""
        if self.on_edges:
            return self.p_add, self.p_delete
        return self.p_add_feature, self.p_delete_feature

    def _withstands_units(self, bounds: ClassBounds, add: int, delete: int) -> BoolArray:
        """As :meth:`withstands`, for flips of what the radius counts."""
        return self.withstands(bounds, add, delete) if self.on_edges else self.withstands(bounds, 0, 0, add, delete)

    def _radius_at_one_rate(self, bounds: ClassBounds) -> FloatArray:
        """As :meth:`radius`, where both directions have one rate: then only the number of flips matters."""

        def withstands(amounts: FloatArray) -> BoolArray:
            answer = np.zeros(len(amounts), dtype=bool)
            for amount in np.unique(amounts[amounts <= LARGEST_FLIPS]):
                here = np.flatnonzero(amounts == amount)
                answer[here] = self._withstands_units(_rows(bounds, here), int(amount), 0)
            return answer

        return largest_amount(withstands, len(bounds.label))

    def holds(self, budget: Budget, bounds: ClassBounds) -> BoolArray:
        """Whether each target keeps its label against ``budget``.

        A node whose features change arbitrarily counts as ``num_features`` flipped entries, in any mix:
        features stay binary, because the defence accepts no others.
        """
        covered = ["add_edges", "delete_edges"] if self.on_edges and self.where == "graph" else []
        covered += ["change_features", "target_features"] if self.on_features else []
        nodes = budget.change_features + budget.target_features
        entries = nodes * self.num_features if self.on_features else 0
        too_many = max(budget.add_edges, budget.delete_edges, entries) > LARGEST_FLIPS
        if too_many or goes_beyond(budget, *covered):
            return np.zeros(len(bounds.label), dtype=bool)
        edges = int(budget.add_edges), int(budget.delete_edges)
        alive = np.flatnonzero(~bounds.abstains)
        for mix in _splits(int(entries)):
            alive = alive[self.withstands(_rows(bounds, alive), *edges, *mix)]
            if not len(alive):
                break
        return np.isin(np.arange(len(bounds.label)), alive)

    def withstands(
        self,
        bounds: ClassBounds,
        add_edges: int = 0,
        delete_edges: int = 0,
        add_entries: int = 0,
        delete_entries: int = 0,
    ) -> BoolArray:
        """Whether each target is certified against this many flips of each kind (at the target, for row noise).

        Args:
            bounds: Label and class bounds of each target.
            add_edges: Edges added.
            delete_edges: Edges deleted.
            add_entries: Feature entries changed from 0 to 1, over all nodes.
            delete_entries: Feature entries changed from 1 to 0, over all nodes.
        """
        edges, entries = (add_edges, delete_edges), (add_entries, delete_entries)
        uncovered = (any(edges) and not self.on_edges) or (any(entries) and not self.on_features)
        if uncovered or sum(edges) > LARGEST_FLIPS or sum(entries) > LARGEST_FLIPS:
            return np.zeros(len(bounds.label), dtype=bool)
        return ~bounds.abstains & self._regions(edges, entries).certifies(bounds.top, bounds.other)

    def _regions(self, edges: tuple[int, int], entries: tuple[int, int]) -> Regions:
        of_edges = flip_regions(*edges, self.p_add, self.p_delete)
        of_entries = flip_regions(*entries, self.p_add_feature, self.p_delete_feature)
        if not sum(entries):
            return of_edges
        return joint_regions(of_edges, of_entries) if sum(edges) else of_entries


def _splits(total: int) -> Iterator[tuple[int, int]]:
    """All splits into additions and deletions, those of one kind first, because most targets fail there."""
    yield total, 0
    if total:
        yield 0, total
    for first in range(1, total):
        yield first, total - first


def _rows(bounds: ClassBounds, rows: IntArray) -> ClassBounds:
    return ClassBounds(bounds.label[rows], bounds.top[rows], bounds.other[rows])


TESTS = ("B2", "B1", "sharp", "legacy-unsound")
_ROUNDING = 1e-12
MOST_HOPS = 16
_NO_GRAPH = "every edge would always be deleted, so the graph would never be used. Use a model without edges instead."


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
        check_probability("p_edge", self.p_edge, _NO_GRAPH)
        check_probability("p_node", self.p_node, _NO_GRAPH)
        if self.p_edge == 0 and self.p_node == 0:
            raise SettingsError("p_edge and p_node are both 0: without noise nothing can be certified. Raise one.")
        if self.test not in TESTS:
            raise SettingsError(f'test="{self.test}": {did_you_mean(str(self.test), TESTS)}')
        Budget(edges_per_injected=self.edges_per_injected)  # refuses negative and fractional numbers

    def radius(self, bounds: ClassBounds) -> IntArray:
        """The largest number of injected nodes with ``edges_per_injected`` edges that each target is certified against.

        At most 2**31 of them; that many are reached only where injected nodes bring no edges.
        """
        largest = largest_amount(lambda rho: self.withstands(rho, self.edges_per_injected, bounds), len(bounds.label))
        return np.minimum(largest, 2.0**31).astype(np.int64)

    def holds(self, budget: Budget, bounds: ClassBounds) -> BoolArray:
        """Whether each target keeps its label against ``budget``; nothing but injected nodes is covered."""
        if goes_beyond(budget, "inject_nodes", "edges_per_injected"):
            return np.zeros(len(bounds.label), dtype=bool)
        rho = np.full(len(bounds.label), float(budget.inject_nodes))
        return self.withstands(rho, budget.edges_per_injected, bounds)

    def withstands(self, rho: FloatArray, tau: float, bounds: ClassBounds) -> BoolArray:
        """Whether each target is certified against its ``rho`` injected nodes, shape ``[n]``, of ``tau`` edges each."""
        missing = self._some_edge_stays(rho, tau, (1 - self.p_edge) * (1 - self.p_node))
        missing_at_worst = self._some_edge_stays(rho, tau, 1 - self.p_edge)
        return np.asarray(self._margin(bounds, missing, missing_at_worst) > _ROUNDING) & ~bounds.abstains

    def isolation(self, rho: float, tau: float) -> float:
        """Least probability that noise deletes all edges of ``rho`` injected nodes with ``tau`` edges each.

        Example:
            >>> round(DeletionNoise(p_edge=0.8, p_node=0.9).isolation(1, 5), 4)
            0.9904
        """
        edge_stays = (1 - self.p_edge) * (1 - self.p_node)
        return float(1 - self._some_edge_stays(np.array([float(rho)]), tau, edge_stays)[0])

    def _some_edge_stays(self, rho: FloatArray, tau: float, edge_stays: float) -> FloatArray:
        """``1 - [p_node + (1 - p_node) (1 - edge_stays)^tau]^rho``, without cancellation when it is small."""
        of_one_node = -math.expm1(tau * math.log1p(-edge_stays)) if edge_stays < 1 else float(tau > 0)
        one_node = (1 - self.p_node) * of_one_node
        if one_node == 0:
            return np.zeros_like(rho)
        if one_node == 1:  # then the logarithm is infinite, and 0 nodes would give 0 times infinity
            return (rho > 0).astype(np.float64)
        return np.asarray(-np.expm1(rho * math.log1p(-one_node)))

    def _margin(self, bounds: ClassBounds, missing: FloatArray, missing_at_worst: FloatArray) -> FloatArray:
        """A lower bound on ``P'(A) - P'(B)``, from upper bounds on ``1 - P(R)`` and on ``1 - P(R|w)`` for any w."""
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
        return np.asarray(gap - 2 * on_top - np.minimum(neither * missing_at_worst, missing - on_top))


@dataclass(frozen=True)
class InterceptionNoise(Noise):
    """A directed edge is deleted with ``p_delete``, the features of a node with ``p_ablate``: they become zeros.

    Attributes:
        p_delete: Probability that a directed edge is deleted.
        p_ablate: Probability that the features of a node are deleted.
        hops: A prediction depends on features of nodes at most so many edges away.
        skip: Whether a prediction also sees the target's own features without noise; then nothing is proved about them.
    """

    kind: ClassVar[str] = "interception"

    p_delete: float
    p_ablate: float
    hops: int
    skip: bool = False

    def __post_init__(self) -> None:
        check_probability("p_delete", self.p_delete, _NO_GRAPH)
        check_probability("p_ablate", self.p_ablate, "all features would always be deleted. Use a constant instead.")
        if self.p_delete == 0 and self.p_ablate == 0:
            raise SettingsError("p_delete and p_ablate are both 0: without noise nothing can be certified. Raise one.")
        if isinstance(self.hops, bool) or not isinstance(self.hops, int) or not 1 <= self.hops <= MOST_HOPS:
            raise SettingsError(f"hops={self.hops!r}: expected a whole number from 1 to {MOST_HOPS}.")
        if not isinstance(self.skip, bool):
            raise SettingsError(f"skip={self.skip!r}: expected True or False.")

    def settings(self) -> dict[str, Any]:
        """Kind and parameters; ``skip`` only if it is set."""
        return {name: value for name, value in super().settings().items() if name != "skip" or value}

    def silences(self, paths: IntArray) -> FloatArray:
        """Least probability that noise intercepts all messages of each node, shape ``[num_nodes]``.

        Args:
            paths: How many paths of 1, 2, … edges lead from each node to the target, shape ``[num_nodes, hops]``.

        Example:
            >>> InterceptionNoise(p_delete=0.5, p_ablate=0.8, hops=2).silences(np.array([[1, 0], [1, 2]])).round(4)
            array([0.9   , 0.8562])
        """
        open_path = (1 - self.p_delete) ** np.arange(1.0, self.hops + 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            cut = np.exp(np.where(paths > 0, paths * np.log1p(-open_path), 0.0).sum(axis=1))
        return np.asarray(self.p_ablate + (1 - self.p_ablate) * cut)

    def silent(self, sources: "Sources") -> FloatArray:
        """The field of ``ClassBounds`` with this name."""
        counts, owner = np.diff(sources.start), np.repeat(np.arange(len(sources.start) - 1), np.diff(sources.start))
        each = self.silences(sources.paths)
        order = np.lexsort([each, owner])
        table = np.ones((len(counts), int(counts.max(initial=0)) + 1))
        table[owner, 1 + np.arange(len(owner)) - sources.start[owner]] = each[order]
        return np.asarray(np.cumprod(table, axis=1))

    def radius(self, bounds: ClassBounds) -> IntArray:
        """The largest number of other nodes with changed features that each target is certified against.

        At most 2**31; that many are reached only where all nodes that reach the target may change.
        """
        largest = largest_amount(lambda nodes: self.withstands(nodes, False, bounds), len(bounds.label))
        return np.minimum(largest, 2.0**31).astype(np.int64)

    def holds(self, budget: Budget, bounds: ClassBounds) -> BoolArray:
        """Whether each target keeps its label against ``budget``; nothing but changed features is covered."""
        own = () if self.skip else ("target_features",)
        if goes_beyond(budget, "change_features", *own):
            return np.zeros(len(bounds.label), dtype=bool)
        nodes = np.full(len(bounds.label), float(budget.change_features))
        return self.withstands(nodes, budget.target_features, bounds)

    def withstands(self, nodes: FloatArray, own: bool, bounds: ClassBounds) -> BoolArray:
        """Whether each target is certified against changes of its number of other nodes, and with ``own`` of itself."""
        assert bounds.silent is not None
        column = np.minimum(nodes, bounds.silent.shape[1] - 1).astype(np.int64)
        silent = bounds.silent[np.arange(len(column)), column] * (self.p_ablate if own else 1.0)
        return np.asarray(bounds.top - bounds.other - 2 * (1 - silent) > _ROUNDING) & ~bounds.abstains


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
        """Whether the other lists are the same."""
        if other is None:
            return False
        return np.array_equal(self.start, other.start) and np.array_equal(self.paths, other.paths)

    def check(self, num_targets: int, hops: int) -> None:
        """Raises ``SettingsError`` unless these are lists of paths for so many targets."""
        rising = len(self.start) == num_targets + 1 and self.start[0] == 0 and bool((np.diff(self.start) >= 0).all())
        if not rising or self.paths.shape != (self.start[-1], hops) or (self.paths < 0).any():
            raise SettingsError(f"the paths to {num_targets} targets are not lists of counts for 1 to {hops} edges.")
