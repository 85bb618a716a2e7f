"""A voting rule of your own, with its proof, in the same table as the others.

The rule: a vote counts double where the target has an edge in the subgraph. What it owes is a statement about numbers:
if an attack alters at most m subgraphs, which vectors of votes can elect another label? The proof stands at ``losses``,
and ``try_all_votes`` tries every vector of small sizes.
"""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, cast

import numpy as np

import agnncert as ac
from agnncert.defence import CertifyOptions
from agnncert.divided.defence import Divided
from agnncert.divided.evidence import VoteEvidence
from agnncert.proving.blocks import Rows
from agnncert.proving.evidence import Evidence

HEAVY = 2  # what a vote counts where the target has an edge
COSTS_ONE = {"add_edges", "delete_edges", "change_edges", "inject_nodes", "delete_nodes", "change_features"}


def weights(votes: np.ndarray, has_edge: np.ndarray, num_classes: int) -> np.ndarray:
    """How much each vote counts for each class, shape ``[n, T, C]``."""
    is_for = votes[:, :, None] == np.arange(num_classes)
    return is_for * np.where(has_edge, HEAVY, 1)[:, :, None]


def losses(votes: np.ndarray, has_edge: np.ndarray, num_classes: int, label: np.ndarray) -> np.ndarray:
    """What the lead over each class can lose, at most, by altered votes, largest first, shape ``[n, T, C]``.

    Let a vote contribute f = w[for the label] - w[for the rival] to the lead. Whatever an attacker makes of its
    subgraph, it then contributes at least -HEAVY. So the lead loses at most f + HEAVY by this vote, and by m votes at
    most the m largest of these numbers. Both ends are reached: the rule is exact in the votes.
    """
    weight = weights(votes, has_edge, num_classes)
    own = np.take_along_axis(weight, label[:, None, None], axis=2)
    return -np.sort(-(own - weight + HEAVY), axis=1)


@dataclass(frozen=True)
class WeightedVotes(Evidence):
    """The vote of each target in each subgraph, whether it has an edge there, and whether rounding decides nothing."""

    votes: np.ndarray  # shape [n, T]
    has_edge: np.ndarray  # shape [n, T]
    stable: np.ndarray  # shape [n]
    classes: int
    kind: ClassVar[str] = "weighted-votes"

    @property
    def counts(self) -> np.ndarray:
        """Returns the weighted votes for each class, shape ``[n, C]``."""
        return weights(self.votes, self.has_edge, self.classes).sum(axis=1)

    @property
    def largest_radius(self) -> int:
        """Returns the number of subgraphs: no more can be altered."""
        return self.votes.shape[1]

    def covers(self, budget: ac.Budget) -> bool:
        """Returns whether anything is proved about such attacks."""
        return subgraphs_altered(budget) < np.inf

    def stays_ahead(self, rows: Rows, attack: ac.Budget | float, leader: int | None = None) -> np.ndarray:
        """Returns of which classes the label stays ahead; labels, radii and answers to budgets follow from this."""
        altered = subgraphs_altered(attack) if isinstance(attack, ac.Budget) else attack
        counts, leading = self.counts[rows], self.leaders(rows, leader)
        own = np.take_along_axis(counts, leading[:, None], axis=1)
        lead = own - counts - (np.arange(self.classes) < leading[:, None])  # a smaller class wins ties
        lost = losses(self.votes[rows], self.has_edge[rows], self.classes, leading).cumsum(axis=1)
        withstood = (lost <= lead[:, None]).sum(axis=1)  # how many altered subgraphs cannot close the lead
        is_ahead = self.stable[rows, None] & (withstood >= altered)
        return is_ahead | (np.arange(self.classes) == leading[:, None])

    def tensors(self) -> dict[str, np.ndarray]:
        """Returns the arrays of a file."""
        return {"votes": self.votes, "has_edge": self.has_edge, "stable": self.stable}

    def settings(self) -> dict[str, Any]:
        """Returns the other contents of a file."""
        return {"classes": self.classes}

    @classmethod
    def load(cls, tensors: Mapping[str, np.ndarray], settings: Mapping[str, Any]) -> "WeightedVotes":
        """Reads what a file holds."""
        return cls(**tensors, **settings)


def subgraphs_altered(budget: ac.Budget) -> float:
    """How many subgraphs of a node-centric division a budget alters at most; infinite if nothing is proved about it."""
    amounts = {each.name: getattr(budget, each.name) for each in fields(budget) if each.name != "edges_per_injected"}
    if any(amount for name, amount in amounts.items() if name not in COSTS_ONE):
        return np.inf
    return sum(amounts[name] for name in COSTS_ONE)


class Weighted(Divided):
    """A node-centric division with weighted votes. Training and audit are those of the division."""

    kind = "weighted-votes"

    def __str__(self) -> str:
        return f"weighted {self.division}"

    def certify(self, model: Any, data: Any, targets: Any, options: CertifyOptions) -> ac.Certificate:
        """Certifies with the division and weighs its votes."""
        plain = super().certify(model, data, targets, options)
        votes = cast(VoteEvidence, plain.evidence).votes
        has_edge = np.zeros((votes.num_targets, votes.num_groups), dtype=bool)
        has_edge[votes.owner, votes.group] = votes.reached
        stable = votes.default_stable.copy()
        np.logical_and.at(stable, votes.owner, votes.stable)
        evidence = WeightedVotes(votes.dense().astype(np.int64), has_edge, stable, votes.num_classes)
        claim = replace(plain.claim, method=self.kind, unit="one altered subgraph", notes=(str(self),))
        return ac.Certificate(claim, evidence, plain.target, plain.row, plain.truth, plain.degree)


def try_all_votes(num_votes: int, num_classes: int) -> int:
    """Tries every change of every vector of votes against the stated radius. Returns how many were tried."""
    states = list(itertools.product(itertools.product(range(num_classes), (False, True)), repeat=num_votes))
    votes, has_edge = (np.array([[vote[k] for vote in state] for state in states]) for k in (0, 1))
    evidence = WeightedVotes(votes, has_edge, np.ones(len(states), dtype=bool), num_classes)
    label, radius = evidence.label_and_radius()
    for k in range(len(states)):
        changed = ((votes != votes[k]) | (has_edge != has_edge[k])).sum(axis=1)
        assert (label[changed <= radius[k]] == label[k]).all(), "the radius is too large"
        assert (label[changed <= radius[k] + 1] != label[k]).any() or radius[k] == num_votes, "it is too small"
    return len(states) ** 2


if __name__ == "__main__":
    print(f"{try_all_votes(3, 3) + try_all_votes(4, 2):,} pairs of votes tried: the radius is exact")
    data = ac.load_dataset("digits-knn")
    division = ac.NodeCentric(20)
    defences = {"plain votes": division, "weighted votes": Weighted(division)}
    print(ac.compare(data, defences, sizes=[0, 1, 2, 4, 8], fit={"epochs": 10, "lr": 0.03}))
