"""``attack`` runs attacks by name; ``attacked_accuracy`` compares certified and attacked accuracy."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from agnncert.attacks.gradient_search import gradient
from agnncert.attacks.greedy_search import greedy, hubs
from agnncert.attacks.plain_search import exhaustive, random
from agnncert.attacks.problem import Problem
from agnncert.attacks.results import AttackReport, AttackResult, best_of
from agnncert.certificates.budget import COUNTS, Budget
from agnncert.certificates.votes import IntArray
from agnncert.certificates.voting_rule import VotingRule
from agnncert.certifier import certify
from agnncert.divisions.base import Division
from agnncert.divisions.named import parse_division
from agnncert.errors import BudgetError, SettingsError, did_you_mean
from agnncert.proving.certificate import Certificate

KINDS = ("greedy", "injection", "deletions", "features", "hubs", "random", "gradient", "exhaustive")


def attack(
    model: Any,
    data: Any,
    defence: Division | None = None,
    *,
    budget: Budget | Sequence[Budget],
    kind: str | Sequence[str] = "greedy",
    targets: Any = None,
    certificate: Certificate | None = None,
    seed: int = 0,
    rule: VotingRule | None = None,
) -> AttackReport:
    """Tries to change voted labels within a budget.

    Args:
        model: A trained module in eval mode, as ``certify`` takes it.
        data: A ``Data`` (its nodes are attacked) or a list of ``Data`` (the graphs are).
        defence: The division of the defence. Defaults to the one of the certificate.
        budget: What the attacker may do to each target, or one budget for each target.
        kind: One of

            * ``"greedy"``: uses the division and the votes; picks the edits that change the most votes;
            * ``"injection"``, ``"deletions"``, ``"features"``: greedy with that part of the budget only;
            * ``"hubs"``: injected nodes joined to many targets at once (node task);
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
    division = defence
    if certificate is not None and division is None:
        division = parse_division(certificate.claim.division)
    if division is None:
        raise SettingsError("attack() needs to know the division: pass it, or the certificate to attack.")
    problem = Problem(model, data, division, certificate.vote if certificate is not None and rule is None else rule)
    rows = problem.rows(certificate.row if certificate is not None and targets is None else targets)
    if certificate is not None and not np.array_equal(rows, certificate.row):
        raise SettingsError(
            "the targets are not those of the certificate: leave them out, or certify the ones to attack."
        )
    budgets = problem.budgets(budget, rows)
    return AttackReport(tuple(_strongest(problem, rows, budgets, _known(kind), seed)), tuple(budgets), certificate)


def _known(kind: str | Sequence[str]) -> Sequence[str]:
    kinds = [kind] if isinstance(kind, str) else list(kind)
    if not kinds:
        raise SettingsError(f"no kind of attack was named. Valid: {', '.join(KINDS)}.")
    for name in kinds:
        if name not in KINDS:
            raise SettingsError(f'unknown attack "{name}": {did_you_mean(str(name), KINDS)}')
    return kinds


def _strongest(
    problem: Problem, rows: IntArray, budgets: Sequence[Budget], kinds: Sequence[str], seed: int
) -> list[AttackResult]:
    """The best result of several attacks for each target."""
    results = [_run(problem, rows, budgets, kind, seed) for kind in kinds]
    return [best_of(of_target) for of_target in zip(*results, strict=True)]


def _run(problem: Problem, rows: IntArray, budgets: Sequence[Budget], kind: str, seed: int) -> list[AttackResult]:
    match kind:
        case "hubs":
            if any(budget != budgets[0] for budget in budgets):
                raise BudgetError("hubs attack all targets at once, with one budget for all of them.")
            return hubs(problem, rows, budgets[0], seed=seed) if budgets else []
        case "random":
            return random(problem, rows, budgets, seed=seed)
        case "gradient":
            return gradient(problem, rows, budgets, seed=seed)
        case "exhaustive":
            return exhaustive(problem, rows, budgets)
        case _:
            return greedy(problem, rows, budgets, kind=kind, seed=seed)


@dataclass(frozen=True)
class Curve:
    """Certified and attacked accuracy; the accuracy under the strongest attack lies between the two.

    Attributes:
        field: The field of the budget that was varied.
        sizes: Its amounts.
        certified: Share of targets that are correct and certified: a lower bound.
        attacked: Share of targets that are correct after the attacks: an upper bound.
        violations: Certified targets whose label changed; must be 0.
    """

    field: str
    sizes: tuple[float, ...]
    certified: tuple[float, ...]
    attacked: tuple[float, ...]
    violations: int


def attacked_accuracy(
    model: Any,
    data: Any,
    division: Division,
    *,
    sizes: Sequence[float],
    field: str = "add_edges",
    rest: Budget | None = None,
    kind: str | Sequence[str] = "greedy",
    targets: Any = None,
    seed: int = 0,
) -> Curve:
    """Certified and attacked accuracy for growing budgets. Other arguments are those of :func:`attack`.

    A target whose label changed at a small size is not attacked again at larger sizes.

    Args:
        model: A trained module in eval mode.
        data: The graph or graphs, with true classes ``y``.
        division: The division of the defence.
        sizes: Amounts of ``field`` to try.
        field: The field of the budget to vary.
        rest: The other fields of the budget.
        kind: Kind of attack, or several.
        targets: Mask or row numbers. Defaults to all.
        seed: Seed of the random samples.
    """
    if field not in COUNTS:
        raise BudgetError(f'cannot vary "{field}": {did_you_mean(str(field), COUNTS)}')
    kinds = _known(kind)
    certificate = certify(model, data, division, targets)
    if not certificate.labelled.any():
        raise SettingsError("the targets have no true classes y, so there is no accuracy to measure.")
    problem = Problem(model, data, division)
    correct, known = certificate.label == certificate.truth, certificate.labelled.sum()
    fallen = np.zeros(len(correct), dtype=bool)
    certified, attacked, violations = [], [], 0
    for size in (ordered := tuple(sorted(sizes))):
        budget = (rest or Budget()).but(**{field: size})
        holds = certificate.holds_against(budget)
        standing = np.flatnonzero(correct & ~fallen)
        if len(standing):
            rows, budgets = certificate.row[standing], [budget] * len(standing)
            fallen[standing] = [result.succeeded for result in _strongest(problem, rows, budgets, kinds, seed)]
        certified.append(float((correct & holds).sum() / known))
        attacked.append(float((correct & ~fallen).sum() / known))
        violations += int((holds & fallen).sum())
    return Curve(field, ordered, tuple(certified), tuple(attacked), violations)
