"""What an attack did to one target, and what it cost."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch_geometric.data import Data

from agnncert.certificates.budget import Budget
from agnncert.certificates.ids import Id, encode_id
from agnncert.graphs.perturbation import Perturbation


@dataclass(frozen=True)
class AttackResult:
    """What an attack did to one target. ``label_after`` was computed on the attacked graph.

    Attributes:
        target: Id of the node, or position of the graph.
        row: Row of the node in the data, or position of the graph.
        kind: Which attack found it.
        perturbation: What was changed. ``perturbed(data)`` is the attacked graph.
        cost: The smallest budget that allows it.
        label_before: Label on the graph as given.
        label_after: Label on the attacked graph.
        moved: How far the attack came: for a division, votes of the target that differ between the two graphs. For any
            other defence it is the share that the label lost of its lead over the best other class.
        unit: What ``moved`` counts, in words. Defaults to "votes moved".
        tried: Number of attacked graphs on which the label was computed.
    """

    target: Id
    row: int
    kind: str
    perturbation: Perturbation
    cost: Budget
    label_before: int
    label_after: int
    moved: float
    unit: str = "votes moved"
    tried: int = 1

    @property
    def succeeded(self) -> bool:
        """Whether the label changed."""
        return self.label_before != self.label_after

    def perturbed(self, data: Data | Sequence[Data]) -> Data:
        """Returns the attacked graph: of ``data`` itself, or of the target among a list of graphs."""
        graph: Any = data if isinstance(data, Data) else data[self.row]
        return self.perturbation.apply(graph)


def cost_of(perturbation: Perturbation, target: Id | None) -> Budget:
    """Returns the smallest budget that allows a perturbation of a target node, or with ``None`` of a whole graph.

    Changed features of the target are ``target_features``.
    """
    cost = perturbation.cost()
    if target is None or not perturbation.change_features:
        return cost
    if encode_id(target) not in map(encode_id, perturbation.change_features):
        return cost
    return cost.but(change_features=cost.change_features - 1, target_features=True)


def best_of(results: Sequence[AttackResult]) -> AttackResult:
    """Returns the result that changed the label, else the one that came furthest; ``tried`` is added up."""
    best = max(results, key=lambda result: (result.succeeded, result.moved))
    return replace(best, tried=sum(result.tried for result in results))
