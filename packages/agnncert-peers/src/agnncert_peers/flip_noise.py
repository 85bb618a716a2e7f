"""``FlipNoise``: noise that flips entries of a binary matrix, and what it proves (Bojchevski et al., ICML 2020).

Randomized smoothing of structure (Wang et al., KDD 2021; Jia et al., WWW 2020) is the special case of equal
probabilities in both directions.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from agnncert.certificates.budget import Budget
from agnncert.certificates.votes import BoolArray, FloatArray, IntArray
from agnncert.errors import SettingsError, did_you_mean
from agnncert.proving.theorems import largest_amount
from agnncert_peers.bounds import LARGEST_FLIPS, ClassBounds, Regions, flip_regions, joint_regions
from agnncert_peers.noise import Noise, check_probability

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
        """Returns the largest number of flips, in any mix, that each target is certified against.

        It is at most ``LARGEST_FLIPS``, or ``LARGEST_MIX`` if additions and deletions have different rates.
        """
        p_add, p_delete = self._rates
        if p_add == p_delete:
            return self._radius_at_one_rate(bounds).astype(np.int64)
        radius = np.where(bounds.abstains, -1, 0)
        for size in range(1, LARGEST_MIX + 1):
            alive = np.flatnonzero(radius == size - 1)
            for add, delete in _splits(size):
                alive = alive[self._withstands_units(_rows(bounds, alive), add, delete)]
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
        """Tells what :meth:`withstands` does, for flips of what the radius counts."""
        if self.on_edges:
            return self.withstands(bounds, add_edges=add, delete_edges=delete)
        return self.withstands(bounds, add_entries=add, delete_entries=delete)

    def _radius_at_one_rate(self, bounds: ClassBounds) -> FloatArray:
        """Returns the radius where both directions have one rate, so that only the number of flips matters."""

        def withstands(amounts: FloatArray) -> BoolArray:
            answer = np.zeros(len(amounts), dtype=bool)
            for amount in np.unique(amounts[amounts <= LARGEST_FLIPS]):
                here = np.flatnonzero(amounts == amount)
                answer[here] = self._withstands_units(_rows(bounds, here), int(amount), 0)
            return answer

        return largest_amount(withstands, len(bounds.label))

    def covered_fields(self) -> tuple[str, ...]:
        """Returns the fields of a budget about which something is proved; of edges only if all pairs are noisy."""
        covered: tuple[str, ...] = ()
        if self.on_edges and self.where == "graph":
            covered += ("add_edges", "delete_edges")
        if self.on_features:
            covered += ("change_features", "target_features")
        return covered

    def holds(self, budget: Budget, bounds: ClassBounds) -> BoolArray:
        """Tells whether each target keeps its label against ``budget``.

        A node whose features change arbitrarily counts as ``num_features`` flipped entries, in any mix:
        features stay binary, because the defence accepts no others.
        """
        entries: float = 0
        if self.on_features:
            entries = (budget.change_features + budget.target_features) * self.num_features
        too_many = max(budget.add_edges, budget.delete_edges, entries) > LARGEST_FLIPS
        if too_many or not self.covers(budget):
            return np.zeros(len(bounds.label), dtype=bool)
        add_edges = int(budget.add_edges)
        delete_edges = int(budget.delete_edges)
        alive = np.flatnonzero(~bounds.abstains)
        for add_entries, delete_entries in _splits(int(entries)):
            withstood = self.withstands(_rows(bounds, alive), add_edges, delete_edges, add_entries, delete_entries)
            alive = alive[withstood]
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
        """Tells whether each target is certified against this many flips of each kind (at the target, for row noise).

        Args:
            bounds: Label and class bounds of each target.
            add_edges: Edges added.
            delete_edges: Edges deleted.
            add_entries: Feature entries changed from 0 to 1, over all nodes.
            delete_entries: Feature entries changed from 1 to 0, over all nodes.
        """
        edges = (add_edges, delete_edges)
        entries = (add_entries, delete_entries)
        uncovered = (any(edges) and not self.on_edges) or (any(entries) and not self.on_features)
        if uncovered or sum(edges) > LARGEST_FLIPS or sum(entries) > LARGEST_FLIPS:
            return np.zeros(len(bounds.label), dtype=bool)
        return ~bounds.abstains & self._regions(edges, entries).certifies(bounds.top, bounds.other)

    def _regions(self, edges: tuple[int, int], entries: tuple[int, int]) -> Regions:
        """Returns the regions of flips (added, deleted) of edges and of feature entries."""
        of_edges = flip_regions(*edges, self.p_add, self.p_delete)
        if not sum(entries):
            return of_edges
        of_entries = flip_regions(*entries, self.p_add_feature, self.p_delete_feature)
        if not sum(edges):
            return of_entries
        return joint_regions(of_edges, of_entries)


def _splits(total: int) -> Iterator[tuple[int, int]]:
    """Yields all splits into additions and deletions, those of one kind first, because most targets fail there."""
    yield total, 0
    if total:
        yield 0, total
    for first in range(1, total):
        yield first, total - first


def _rows(bounds: ClassBounds, rows: IntArray) -> ClassBounds:
    """Returns the bounds of some targets."""
    return ClassBounds(bounds.label[rows], bounds.top[rows], bounds.other[rows])
