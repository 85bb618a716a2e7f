"""``attack`` runs attacks by name; its report compares them with a certificate."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from agnncert import notebook
from agnncert.addons import addons
from agnncert.attacks.gradient_search import gradient
from agnncert.attacks.greedy_search import greedy
from agnncert.attacks.plain_model import PlainProblem, is_plain
from agnncert.attacks.plain_search import exhaustive, random
from agnncert.attacks.problem import OwnAttack, Problem
from agnncert.attacks.results import AttackResult, best_of
from agnncert.attacks.score_problem import ScoreProblem
from agnncert.certificates.budget import Budget
from agnncert.certificates.votes import BoolArray
from agnncert.certificates.voting_rule import VotingRule
from agnncert.defence import AsDefence, Defence, GraphData, Model, TargetChoice, as_defence
from agnncert.engine.arguments import require_order
from agnncert.errors import SettingsError, did_you_mean, suggests_arguments
from agnncert.evaluation_mode import evaluating
from agnncert.proving.certificate import Certificate
from agnncert.recompute import defence_of_file

SEEDED = {"greedy": greedy, "random": random, "gradient": gradient}
KINDS = (*SEEDED, "exhaustive")
MOST_SHOWN = 10  # targets in a notebook's table


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

    def _repr_html_(self) -> str:
        """Returns what a notebook shows: the summary, and the targets that the attack came furthest with."""
        shown = sorted(range(len(self.results)), key=self._rank)[:MOST_SHOWN]
        rows = [self._row(k) for k in shown]
        left = len(self.results) - len(shown)
        more = notebook.paragraph(f"{left:,} more targets: report.results has all of them.") if left else ""
        head = ["target", "label", "after the attack", "what was changed", "certified against the budget"]
        return notebook.framed(notebook.paragraph(str(self)) + notebook.table(head, rows) + more)

    def _rank(self, k: int) -> tuple[bool, bool, float]:
        """Returns what orders a table: refuted certificates first, then changed labels, then the nearest ones."""
        result = self.results[k]
        is_refuted = self.certificate is not None and result in self.violations
        return not is_refuted, not result.succeeded, -result.moved

    def _row(self, k: int) -> list[str]:
        result = self.results[k]
        proved = "–" if self.certificate is None else "yes" if self.certified[k] else "no"
        changes = repr(result.cost).removeprefix("Budget(").removesuffix(")")
        return [str(result.target), str(result.label_before), str(result.label_after), changes, proved]

    def __str__(self) -> str:
        lines = [self._attacked_in_words()]
        if self.certificate is not None:
            num_certified = int(self.certified.sum())
            refuted = len(self.violations)
            lines.append(f"certified against the budget: {num_certified} targets; certificates refuted: {refuted}")
            lines.append(self._gap_in_words())
            if self.certificate.labelled.any() and self.results:
                low = self.certified_accuracy
                high = self.attacked_accuracy
                lines.append(f"accuracy under attack: at least {low:.3f} (certified), at most {high:.3f} (attacked)")
        return "\n".join(lines)

    @property
    def undecided(self) -> BoolArray:
        """Whether a target is neither certified nor changed, so that attack and proof leave it open, shape ``[n]``.

        Where none is, the attack is the strongest and the certificate the best there can be.
        """
        return ~(self.succeeded | self.certified)

    def _gap_in_words(self) -> str:
        total = len(self.results)
        left = int(self.undecided.sum())
        settled = f"changed or certified: {total - left} of {total}"
        if left:
            return f"{settled}; of {left} neither is known"
        return f"{settled}, so attack and certificate are exact here"

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


def problem_of(model: Model, data: GraphData, defence: AsDefence, voting_rule: VotingRule | None = None) -> Problem:
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
    problem = _problem_of(model, data, named)
    if problem.own_attacks():
        raise SettingsError(f"{named} is attacked by attacks of its own, which attack() runs: call attack().")
    return problem


def _problem_of(model: Model, data: GraphData, named: Defence) -> Problem:
    if "attack" in named.cannot:
        raise named.refusal("attack")
    if is_plain(named, data):
        return PlainProblem(model, data, named)
    own_problems = addons("agnncert.attack_problems")
    if named.kind not in own_problems:
        return ScoreProblem(model, data, named)
    make_problem = own_problems[named.kind].load()
    problem: Problem = make_problem(model, data, named)
    return problem


@suggests_arguments
def attack(
    model: Model,
    data: GraphData,
    defence: AsDefence | None = None,
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
        defence: The defence, or ``ac.Undefended()``. Defaults to the one of the certificate.
        budget: What the attacker may do to each target, or one budget for each target.
        kind: One of

            * ``"greedy"``: tries single edits and combines those that bring another class nearest to the label. On a
              built-in division it tries them in the subgraphs that they touch. On a model without a defence it follows
              the margin of the logits, and the gradient says which of all edges to try. On append-only scores it
              appends rows and deletes pairs, to hide who is flagged and to frame who is not;
            * ``"random"``: draws attacks at random;
            * ``"gradient"``: PRBCD on the vote or on the logits, edges only; for built-in divisions and models without
              a defence;
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
    attacked = _defence_to_attack(model, defence, certificate, voting_rule)
    with evaluating(model):
        problem = _problem_of(model, data, attacked)
        attacks = _attacks_on(problem, kinds, seed)
        rows = problem.choose(targets, certificate)
        budgets = problem.budgets(budget, rows)
        results = [run(rows, budgets) for run in attacks]
    best = tuple(best_of(of_target) for of_target in zip(*results, strict=True))
    return AttackReport(best, tuple(budgets), certificate)


def _attacks_on(problem: Problem, kinds: list[str], seed: int) -> list[OwnAttack]:
    """Returns the attacks of these kinds, as functions of rows and budgets.

    Raises:
        SettingsError: The problem is attacked by attacks of its own, and one of these is no such attack.
    """
    own = problem.own_attacks()
    if own and not {*kinds} <= {*own}:
        named = ", ".join(f'"{name}"' for name in own)
        raise SettingsError(
            f"{problem.defence} is attacked by {named} alone: the best changes are found vote by vote, or row by row."
        )
    if own:
        return [own[name] for name in kinds]
    return [
        partial(exhaustive, problem) if name == "exhaustive" else partial(SEEDED[name], problem, seed=seed)
        for name in kinds
    ]


def _checked_kinds(kind: str | Sequence[str]) -> list[str]:
    kinds = [kind] if isinstance(kind, str) else list(kind)
    if not kinds:
        raise SettingsError(f"no kind of attack was named. Valid: {', '.join(KINDS)}.")
    for name in kinds:
        if name not in KINDS:
            raise SettingsError(f'unknown attack "{name}": {did_you_mean(str(name), KINDS)}')
    return kinds


def _defence_to_attack(
    model: Model, defence: AsDefence | None, certificate: Certificate | None, voting_rule: VotingRule | None
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
