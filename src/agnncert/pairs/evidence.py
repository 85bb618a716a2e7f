"""What follows from votes about pairs (Theorems 18 and 19): Theorem 10, with budgets translated into votes.

========================  ==================  ====================================  ==========================
one change                common neighbours   neighbours of u, of v, and of both    trusted contacts of u
========================  ==================  ====================================  ==========================
edge added or deleted     1 vote              2 votes                               1 vote
edge changed              0                   0                                     1 vote
node injected             1, with two edges   3 votes                               0
node deleted              1 vote              3 votes                               0: contacts are trusted
features of another node  1 vote, or 0 if votes read nothing of a node, 3 for both  0: contacts are trusted
========================  ==================  ====================================  ==========================

Changes at neither of the two nodes, and at the edge between them, cost nothing at all: no budget speaks of places, so
that this does not show here.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from agnncert.certificates.budget import Budget, Prices
from agnncert.certificates.votes import BoolArray, FloatArray, IntArray
from agnncert.pairs.record import PairRecord
from agnncert.pairs.words import pair_words
from agnncert.proving.evidence import LARGEST_RADIUS
from agnncert.proving.theorems import Amounts, largest_amount
from agnncert.proving.words import Subject, Words
from agnncert.stacked.evidence import Leads, StackedEvidence, Touched
from agnncert.stacked.record import MOST_NEW

VOTES_OF_EDGE = {"common": 1, "both": 2, "trusted": 1}
VOTES_OF_NODE = {
    "common": 1,
    "both": 3,
    "trusted": 1,
}  # "trusted": what one step of the radius counts, which is an edge


@dataclass(frozen=True, repr=False)
class PairEvidence(PairRecord, StackedEvidence):
    """Votes about pairs, and the answers that follow from them. Fields are as in :class:`PairRecord`."""

    kind: ClassVar[str] = "pairs"

    def __repr__(self) -> str:
        num_targets, num_classes = self.prior.shape
        return f"PairEvidence({num_targets:,} pairs, {num_classes} classes)"

    @property
    def largest_finite(self) -> float:
        """The largest number of edges whose votes are counted, not taken for any number."""
        return MOST_NEW // VOTES_OF_EDGE[self.rule]

    @property
    def counts_neighbours(self) -> bool:
        """Whether an added edge is a new neighbour of the target: a pair has none of its own."""
        return False

    @property
    def judges_known_changes(self) -> bool:
        """Whether no contact is trusted: which ones are is in the graph, not in the votes."""
        return self.rule != "trusted"

    def words(self, subject: Subject) -> Words:
        """Returns the words for votes about pairs."""
        return pair_words(self, subject)

    def tensors(self) -> dict[str, npt.NDArray[Any]]:
        """Every array that :meth:`load` needs, by name."""
        return PairRecord.tensors(self)

    def settings(self) -> dict[str, Any]:
        """Everything else that :meth:`load` needs, as JSON values."""
        return PairRecord.settings(self)

    @classmethod
    def load(cls, tensors: Mapping[str, npt.NDArray[Any]], settings: Mapping[str, Any]) -> Self:
        """Returns the evidence of a file. It is not trusted."""
        return super().load(tensors, settings)

    @property
    def _votes_of_change(self) -> int:
        """Votes that one step of the radius reaches at most."""
        return VOTES_OF_NODE[self.rule]

    def radius(self) -> IntArray:
        """Returns how many edges and other nodes may change in whatever way, shape ``[n]``."""
        if self.blind:  # no change alters a vote
            return self.structure_radius()
        return self.in_blocks(lambda rows: self._largest(self._leads(rows), altering=True), np.int64)

    def structure_radius(self) -> IntArray:
        """Returns how many edges and nodes may be added or deleted in all, shape ``[n]``."""
        return self.in_blocks(lambda rows: self._largest(self._leads(rows), altering=False), np.int64)

    def _largest(self, leads: Leads, altering: bool) -> IntArray:
        """Returns the largest number of changes that each of some targets withstands, as far as it is stated."""
        each = self._votes_of_change

        def holds(size: FloatArray) -> BoolArray:
            number = each * size
            if altering:
                return np.asarray(leads.stays_ahead_of_any(number).all(axis=1))
            return leads.withstands(Touched(number, number, shared=True))

        return np.minimum(largest_amount(holds, len(leads.label)), LARGEST_RADIUS).astype(np.int64)

    def votes_reached(self, attack: Amounts) -> Amounts:
        """Returns an attack on a node of Theorem 10 that comes and goes with as many votes as an attack on a pair."""
        none = np.zeros(())
        if self.rule == "trusted":
            return replace(attack, inject_nodes=none, delete_nodes=none, change_features=none)
        edge = VOTES_OF_EDGE[self.rule]
        node = VOTES_OF_NODE[self.rule]
        newcomers = attack.inject_nodes
        if self.rule == "common":
            newcomers = np.where(attack.edges_per_injected >= 2, newcomers, 0.0)
        return replace(
            attack,
            add_edges=edge * attack.add_edges,
            delete_edges=edge * attack.delete_edges,
            inject_nodes=node * newcomers,
            delete_nodes=node * attack.delete_nodes,
            change_features=none if self.blind else node * attack.change_features,
        )

    def _stays_ahead(self, leads: Leads, attack: Amounts) -> BoolArray:
        return super()._stays_ahead(leads, self.votes_reached(attack))

    def _stays_ahead_of_size(self, leads: Leads, size: float) -> BoolArray:
        number = self._votes_of_change * np.ceil(np.full(len(leads.label), size))
        if self.blind:
            return leads.stays_ahead(Touched(number, number, shared=True))
        return leads.stays_ahead_of_any(number)

    def _price_of_rival(self, leads: Leads, k: int, prices: Prices) -> FloatArray:
        """Returns a price below which class ``k`` does not get ahead of the label, shape ``[n]``: that of votes."""
        edge = VOTES_OF_EDGE[self.rule]
        node = VOTES_OF_NODE[self.rule]
        in_votes = replace(
            prices,
            add_edges=prices.add_edges / edge,
            delete_edges=prices.delete_edges / edge,
            inject_nodes=prices.inject_nodes / node,
            injected_edges=prices.injected_edges / node,
            delete_nodes=prices.delete_nodes / node,
            change_features=math.inf if self.blind else prices.change_features / node,
        )
        if self.rule == "trusted":
            in_votes = replace(in_votes, inject_nodes=math.inf, delete_nodes=math.inf, change_features=math.inf)
        return super()._price_of_rival(leads, k, in_votes)

    def most_broken(self, budget: Budget, fails: BoolArray) -> int:
        """Returns how many pairs one attacked graph can break at most: all that do not hold one by one.

        One edge may be a part of many pairs, so that nothing better is counted here.
        """
        return int(np.count_nonzero(fails))
