"""``attack`` runs attacks by name; its report compares them with a certificate."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from agnncert.attacks.gradient_search import gradient
from agnncert.attacks.greedy_search import greedy
from agnncert.attacks.plain_search import exhaustive, random
from agnncert.attacks.problem import AttackResult, Problem, best_of
from agnncert.certificates.budget import Budget
from agnncert.certificates.votes import BoolArray
from agnncert.certificates.voting_rule import VotingRule
from agnncert.defence import as_defence
from agnncert.divisions.named import parse_division
from agnncert.engine.arguments import require_order
from agnncert.errors import SettingsError, did_you_mean
from agnncert.proving.certificate import Certificate

SEEDED = {"greedy": greedy, "random": random, "gradient": gradient}
KINDS = (*SEEDED, "exhaustive")


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
        moved = np.mean([result.votes_moved for result in self.results]) if total else 0
        lines = [f"{total} targets attacked ({kinds}): {broken} labels changed, {moved:.1f} votes moved on average"]
        if self.certificate is not None:
            certified, refuted = int(self.certified.sum()), len(self.violations)
            lines.append(f"certified against the budget: {certified} targets; certificates refuted: {refuted}")
            if self.certificate.labelled.any() and total:
                low, high = self.certified_accuracy, self.attacked_accuracy
                lines.append(f"accuracy under attack: at least {low:.3f} (certified), at most {high:.3f} (attacked)")
        return "\n".join(lines)


def holds_each(certificate: Certificate, budgets: Sequence[Budget]) -> BoolArray:
    """Whether each target is certified against its budget, shape ``[n]``."""
    holds = {budget: certificate.holds_against(budget) for budget in dict.fromkeys(budgets)}
    return np.array([holds[budget][k] for k, budget in enumerate(budgets)], dtype=bool)


def attack(
    model: Any,
    data: Any,
    defence: Any = None,
    *,
    budget: Budget | Sequence[Budget],
    kind: str | Sequence[str] = "greedy",
    targets: Any = None,
    certificate: Certificate | None = None,
    seed: int = 0,
    voting_rule: VotingRule | None = None,
) -> AttackReport:
    """Tries to change voted labels within a budget.

    Args:
        model: A trained module in eval mode, as ``certify`` takes it.
        data: A ``Data`` (its nodes are attacked) or a list of ``Data`` (the graphs are).
        defence: The division of the defence. Defaults to the one of the certificate.
        budget: What the attacker may do to each target, or one budget for each target.
        kind: One of

            * ``"greedy"``: uses the division and the votes; picks the edits that change the most votes;
            * ``"random"``: draws attacks at random;
            * ``"gradient"``: PRBCD on the vote, edges only;
            * ``"exhaustive"``: all attacks within the budget, on tiny graphs;

            or several of them; for each target the best result counts.
        targets: Mask or row numbers. Defaults to the targets of the certificate, or to all.
        certificate: Certificate of the same model and data, to compare with.
        seed: Seed of the random samples.
        rule: The voting rule. Defaults to the one of the certificate, or to ``VotingRule()``.

    Returns:
        One result for each target: the attacked graph, what it cost, and the label voted on it.

    Raises:
        BudgetError: The budget allows something that this attack or graph cannot do.
        SettingsError: The kind of attack is unknown, or does not fit the task or division.
    """
    require_order(model, data, defence)
    if defence is not None:
        division = getattr(as_defence(defence), "division", None)
    elif certificate is not None:
        division = parse_division(certificate.claim.division)
    else:
        raise SettingsError("attack() needs to know the defence: pass it, or the certificate to attack.")
    if division is None:
        raise SettingsError(f"attacks on {defence} are not implemented: pass a division.")
    if voting_rule is None and defence is not None:
        voting_rule = as_defence(defence).voting_rule
    if voting_rule is None and certificate is not None:
        voting_rule = certificate.voting_rule
    problem = Problem(model, data, division, voting_rule)
    rows = problem.rows(certificate.row if certificate is not None and targets is None else targets)
    if certificate is not None and not np.array_equal(rows, certificate.row):
        raise SettingsError(
            "the targets are not those of the certificate: leave them out, or certify the ones to attack."
        )
    kinds = [kind] if isinstance(kind, str) else list(kind)
    if not kinds:
        raise SettingsError(f"no kind of attack was named. Valid: {', '.join(KINDS)}.")
    for name in kinds:
        if name not in KINDS:
            raise SettingsError(f'unknown attack "{name}": {did_you_mean(str(name), KINDS)}')
    budgets = problem.budgets(budget, rows)
    results = [
        exhaustive(problem, rows, budgets) if name == "exhaustive" else SEEDED[name](problem, rows, budgets, seed=seed)
        for name in kinds
    ]
    best = tuple(best_of(of_target) for of_target in zip(*results, strict=True))
    return AttackReport(best, tuple(budgets), certificate)
