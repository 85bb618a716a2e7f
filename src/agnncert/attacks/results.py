"""Results of attacks: one per target, and a report that compares them with a certificate."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from torch_geometric.data import Data

from agnncert.certificates.budget import COUNTS, Budget
from agnncert.certificates.ids import Id, encode_id
from agnncert.certificates.votes import BoolArray
from agnncert.errors import SettingsError
from agnncert.graphs.perturbation import Perturbation
from agnncert.proving.certificate import Certificate


@dataclass(frozen=True)
class AttackResult:
    """What an attack did to one target. ``label_after`` was voted on the attacked graph.

    Attributes:
        target: Id of the node, or position of the graph.
        row: Row of the node in the data, or position of the graph.
        kind: Which attack found it.
        perturbation: What was changed; ``perturbed(data)`` is the attacked graph.
        cost: The smallest budget that allows it.
        label_before: Voted label of the graph as given.
        label_after: Voted label of the attacked graph.
        ballots_moved: Ballots of the target that differ between the two.
        tried: Number of attacked graphs that were voted on.
        undefended: Label of the undefended model before and after; ``None`` if it was not computed.
    """

    target: Id
    row: int
    kind: str
    perturbation: Perturbation
    cost: Budget
    label_before: int
    label_after: int
    ballots_moved: int
    tried: int = 1
    undefended: tuple[int, int] | None = None

    @property
    def succeeded(self) -> bool:
        """Whether the voted label changed."""
        return self.label_before != self.label_after

    def perturbed(self, data: Any) -> Data:
        """The attacked graph: of ``data`` itself, or of the target among a list of graphs."""
        return self.perturbation.apply(data if isinstance(data, Data) else data[self.row])


@dataclass(frozen=True)
class AttackReport:
    """Results of one attack on many targets, beside what a certificate proves about them.

    Attributes:
        results: One for each target.
        budgets: What the attacker was allowed, one for each target.
        certificate: The certificate of the same targets, in the same order, if there is one.
    """

    results: tuple[AttackResult, ...]
    budgets: tuple[Budget, ...]
    certificate: Certificate | None = None

    @property
    def succeeded(self) -> BoolArray:
        """Whether each target's label changed, shape ``[n]``."""
        return np.array([result.succeeded for result in self.results], dtype=bool)

    @cached_property
    def certified(self) -> BoolArray:
        """Whether each target is certified against its budget, shape ``[n]``."""
        return holds_each(self._required(), self.budgets)

    @cached_property
    def violations(self) -> tuple[AttackResult, ...]:
        """Attacks that changed a label although the certificate holds against their cost: each refutes it."""
        holds = holds_each(self._required(), [result.cost for result in self.results])
        return tuple(self.results[k] for k in np.flatnonzero(self.succeeded & holds))

    @property
    def attacked_accuracy(self) -> float:
        """Share of targets that are correct before and after the attack: an upper bound on certified accuracy."""
        return self._share(~self.succeeded)

    @property
    def certified_accuracy(self) -> float:
        """Share of targets that are correct and certified against their budgets."""
        return self._share(self.certified)

    def _required(self) -> Certificate:
        if self.certificate is None:
            raise SettingsError("this report has no certificate to compare with: pass one to attack(certificate=…).")
        return self.certificate

    def _share(self, kept: BoolArray) -> float:
        """Share of the targets with a true class that are correct and kept."""
        certificate = self._required()
        if not certificate.labelled.any() or not self.results:
            raise SettingsError("there is no accuracy without targets and their true classes.")
        correct = np.asarray([result.label_before for result in self.results] == certificate.truth)
        return float((correct & kept).sum() / certificate.labelled.sum())

    def __str__(self) -> str:
        total, broken = len(self.results), int(self.succeeded.sum())
        kinds = ", ".join(sorted({result.kind for result in self.results}))
        moved = np.mean([result.ballots_moved for result in self.results]) if total else 0
        lines = [f"{total} targets attacked ({kinds}): {broken} labels changed, {moved:.1f} ballots moved on average"]
        if self.certificate is not None:
            certified, refuted = int(self.certified.sum()), len(self.violations)
            lines.append(f"certified against the budget: {certified} targets; certificates refuted: {refuted}")
            if self.certificate.labelled.any() and total:
                low, high = self.certified_accuracy, self.attacked_accuracy
                lines.append(f"accuracy under attack: at least {low:.3f} (certified), at most {high:.3f} (attacked)")
        return "\n".join(lines)


def holds_each(certificate: Certificate, budgets: Sequence[Budget]) -> BoolArray:
    """Whether each target is certified against its budget, shape ``[n]``."""
    holds = np.zeros(len(budgets), dtype=bool)
    for budget in dict.fromkeys(budgets):
        here = np.array([other == budget for other in budgets], dtype=bool)
        holds[here] = certificate.holds_against(budget)[here]
    return holds


def cost_of(perturbation: Perturbation, target: Id | None, cost: Budget | None = None) -> Budget:
    """The smallest budget that allows a perturbation; changed features of the target are ``target_features``.

    Args:
        perturbation: What was changed.
        target: Id of the attacked node; ``None`` for a whole graph.
        cost: ``perturbation.cost()``, if it is known.
    """
    cost = perturbation.cost() if cost is None else cost
    if target is None or not perturbation.change_features:
        return cost
    if encode_id(target) not in map(encode_id, perturbation.change_features):
        return cost
    return cost.but(change_features=cost.change_features - 1, target_features=True)


def fits(cost: Budget, budget: Budget) -> bool:
    """Whether ``budget`` allows an attack that costs ``cost``.

    Example:
        >>> fits(Budget(add_edges=2), Budget(add_edges=3)), fits(Budget(add_edges=2), Budget(delete_edges=9))
        (True, False)
    """
    counts = all(getattr(cost, name) <= getattr(budget, name) for name in COUNTS)
    return counts and (budget.target_features or not cost.target_features)


def best_of(results: Sequence[AttackResult]) -> AttackResult:
    """The result that changed the label, else the one that moved the most ballots; ``tried`` is added up."""
    best = max(results, key=lambda result: (result.succeeded, result.ballots_moved))
    return replace(best, tried=sum(result.tried for result in results))
