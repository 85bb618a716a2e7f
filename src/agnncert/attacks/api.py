"""``attack`` runs attacks by name; its report compares them with a certificate."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from agnncert.addons import addons
from agnncert.attacks.gradient_search import gradient
from agnncert.attacks.greedy_search import greedy
from agnncert.attacks.pair_attack import KIND, attack_pairs
from agnncert.attacks.plain_search import exhaustive, random
from agnncert.attacks.problem import Problem
from agnncert.attacks.results import AttackResult, best_of
from agnncert.attacks.score_problem import ScoreProblem
from agnncert.certificates.budget import Budget
from agnncert.certificates.votes import BoolArray
from agnncert.certificates.voting_rule import VotingRule
from agnncert.defence import Defence, GraphData, Model, TargetChoice, as_defence
from agnncert.engine.arguments import require_order
from agnncert.errors import SettingsError, did_you_mean
from agnncert.graphs.targets import CanonicalData, prepared
from agnncert.pairs.evidence import PairEvidence
from agnncert.pairs.targets import PairTargets, choose_pairs, pairs_of_file
from agnncert.proving.certificate import Certificate
from agnncert.recompute import defence_of_file

SEEDED = {"greedy": greedy, "random": random, "gradient": gradient}
KINDS = (*SEEDED, "exhaustive")
OTHER_TARGETS = "the targets are not those of the certificate: leave them out, or certify the ones to attack."


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
        """Attacks that changed a label although the certificate holds against their cost: each refutes it.

        This is said of deterministic certificates. A label that is drawn from samples may change by chance.
        """
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
        lines = [self._attacked_in_words()]
        if self.certificate is not None:
            num_certified = int(self.certified.sum())
            refuted = len(self.violations)
            lines.append(f"certified against the budget: {num_certified} targets; certificates refuted: {refuted}")
            if self.certificate.labelled.any() and self.results:
                low = self.certified_accuracy
                high = self.attacked_accuracy
                lines.append(f"accuracy under attack: at least {low:.3f} (certified), at most {high:.3f} (attacked)")
        return "\n".join(lines)

    def _attacked_in_words(self) -> str:
        if not self.results:
            return "0 targets attacked"
        kinds = ", ".join(sorted({result.kind for result in self.results}))
        broken = int(self.succeeded.sum())
        moved = np.mean([result.moved for result in self.results])
        return (
            f"{len(self.results)} targets attacked ({kinds}): {broken} labels changed, "
            f"{moved:,.1f} {self.results[0].unit} on average"
        )


def holds_each(certificate: Certificate, budgets: Sequence[Budget]) -> BoolArray:
    """Whether each target is certified against its budget, shape ``[n]``."""
    holds = {budget: certificate.holds_against(budget) for budget in dict.fromkeys(budgets)}
    return np.array([holds[budget][k] for k, budget in enumerate(budgets)], dtype=bool)


def problem_of(model: Model, data: GraphData, defence: Any, voting_rule: VotingRule | None = None) -> Problem:
    """Returns the problem that attacks on a defence work on; it serves any number of attacks.

    A kind of defence may have a class of problems of its own, which is found by the name of its evidence
    (``agnncert.addons``, group ``agnncert.attack_problems``). Every other kind gets a ``ScoreProblem``.

    Args:
        model: A trained module in eval mode, as ``certify`` takes it.
        data: A ``Data`` (its nodes are the targets) or a list of ``Data`` (the graphs are).
        defence: A defence, a division, or the result of ``choose_voting_rule`` or ``choose_threshold``.
        voting_rule: The voting rule, if the defence leaves it open.

    Raises:
        SettingsError: The defence is not about changes of the graph.
    """
    require_order(model, data, defence)
    named = as_defence(defence).with_voting_rule(voting_rule)
    if "attack" in named.cannot:
        raise named.refusal("attack")
    if named.decides_pairs:
        raise SettingsError(f"{named} is about pairs of nodes, which attack() attacks by themselves: call attack().")
    own_problems = addons("agnncert.attack_problems")
    if named.kind not in own_problems:
        return ScoreProblem(model, data, named)
    make_problem = own_problems[named.kind].load()
    problem: Problem = make_problem(model, data, named)
    return problem


def attack(
    model: Model,
    data: GraphData,
    defence: Any = None,
    *,
    budget: Budget | Sequence[Budget],
    kind: str | Sequence[str] = "greedy",
    targets: TargetChoice = None,
    certificate: Certificate | None = None,
    seed: int = 0,
    voting_rule: VotingRule | None = None,
) -> AttackReport:
    """Tries to change labels within a budget, whatever the defence.

    Args:
        model: A trained module in eval mode, as ``certify`` takes it.
        data: A ``Data`` (its nodes are attacked, or for ``PairVotes`` its listed pairs) or a list of ``Data`` (the
            graphs are).
        defence: The defence. Defaults to the one of the certificate.
        budget: What the attacker may do to each target, or one budget for each target.
        kind: One of

            * ``"greedy"``: tries single edits and combines those that bring another class nearest to the label; on a
              built-in division it tries them in the subgraphs that they touch;
            * ``"random"``: draws attacks at random;
            * ``"gradient"``: PRBCD on the vote, edges only; for built-in divisions;
            * ``"exhaustive"``: all attacks within the budget, on tiny graphs;

            or several of them; for each target the best result counts.
        targets: Mask or row numbers. Defaults to the targets of the certificate, or to all.
        certificate: Certificate of the same model and data, to compare with.
        seed: Seed of the random samples. Defaults to 0.
        voting_rule: The voting rule. Defaults to the one of the defence, or of the certificate, or to ``VotingRule()``.

    Returns:
        One result for each target, with the attacked graph, its cost and the label on it.

    Raises:
        BudgetError: The budget allows something that this attack or graph cannot do.
        SettingsError: The kind of attack is unknown, or does not fit the task or defence.
    """
    require_order(model, data, defence)
    kinds = _checked_kinds(kind)
    attacked_defence = _defence_to_attack(model, defence, certificate, voting_rule)
    if attacked_defence.decides_pairs:
        return _attack_pairs(
            model, data, attacked_defence, budget=budget, kinds=kinds, targets=targets, certificate=certificate
        )
    problem = problem_of(model, data, attacked_defence)
    rows = problem.rows(certificate.row if certificate is not None and targets is None else targets)
    if certificate is not None and not np.array_equal(rows, certificate.row):
        raise SettingsError(OTHER_TARGETS)
    budgets = problem.budgets(budget, rows)
    results = []
    for name in kinds:
        if name == "exhaustive":
            results.append(exhaustive(problem, rows, budgets))
        else:
            results.append(SEEDED[name](problem, rows, budgets, seed=seed))
    best = tuple(best_of(of_target) for of_target in zip(*results, strict=True))
    return AttackReport(best, tuple(budgets), certificate)


def _attack_pairs(
    model: Any,
    data: Any,
    defence: Defence,
    *,
    budget: Budget | Sequence[Budget],
    kinds: list[str],
    targets: TargetChoice,
    certificate: Certificate | None,
) -> AttackReport:
    """Attacks pairs of nodes, for which there is one kind of attack."""
    if kinds != [KIND]:
        raise SettingsError(f'{defence} is attacked by "{KIND}" alone: the best changes are found vote by vote.')
    chosen = _pairs_to_attack(prepared(data), targets, certificate)
    results, budgets = attack_pairs(model, data, defence, chosen, budget)
    return AttackReport(tuple(results), tuple(budgets), certificate)


def _pairs_to_attack(data: CanonicalData, targets: TargetChoice, certificate: Certificate | None) -> PairTargets:
    """Returns the pairs that are named, or those of the certificate, which the data need not list.

    Raises:
        SettingsError: They are not those of the certificate.
    """
    if certificate is None:
        return choose_pairs(data, targets)
    evidence = certificate.evidence
    if targets is None and isinstance(evidence, PairEvidence):
        chosen = pairs_of_file(data, evidence.pairs, certificate.row)
    else:
        chosen = choose_pairs(data, targets)
    if not np.array_equal(chosen.ids, certificate.target):
        raise SettingsError(OTHER_TARGETS)
    return chosen


def _checked_kinds(kind: str | Sequence[str]) -> list[str]:
    kinds = [kind] if isinstance(kind, str) else list(kind)
    if not kinds:
        raise SettingsError(f"no kind of attack was named. Valid: {', '.join(KINDS)}.")
    for name in kinds:
        if name not in KINDS:
            raise SettingsError(f'unknown attack "{name}": {did_you_mean(str(name), KINDS)}')
    return kinds


def _defence_to_attack(
    model: Model, defence: Any, certificate: Certificate | None, voting_rule: VotingRule | None
) -> Defence:
    if defence is not None:
        named = as_defence(defence)
    elif certificate is not None:
        named = defence_of_file(certificate.description(), model)
    else:
        raise SettingsError("attack() needs to know the defence: pass it, or the certificate to attack.")
    if voting_rule is not None or certificate is None:
        return named.with_voting_rule(voting_rule)
    return named.as_certified(certificate)
