"""Compares four derivations of the same statements: prover, recount, extracted checker, and the contest of the same votes.

    python -m formal.contests [--answers 1000000] [--rows experiments/results/contests.csv] [--only KIND]

For each kind of votes, random ones are drawn until enough answers were compared: labels, radii, structure radii, new
neighbours, answers to budgets, classes that are excluded, and targets that break together. What a contest says is shown
by prices that its checker accepts, or else by a play that is counted again, so that both "holds" and "falls" have a
proof. A contest may say more where ``MAY_SAY_MORE`` names the reason. Any other difference is printed, and the exit
status is 1. Rows are appended as they are done, and not computed again.
"""

import argparse
import csv
import math
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from agnncert.certificates.budget import Budget
from agnncert.certificates.theorem_facts import known_theorems
from agnncert.contest import search
from agnncert.contest.form import Claim, Contest, contradictions
from agnncert.contest.kinds import kind_of
from agnncert.contest.kinds.kind import Attack, Kind
from agnncert.contest.kinds.statements import form_of
from agnncert.contest.leads import allowance
from agnncert.isolated.evidence import IsolatedEvidence
from agnncert.isolated.record import IsolatedRecord
from agnncert.labels.joint_record import JointRecord
from agnncert.labels.record import LabelRecord
from agnncert.stacked.record import MOST_NEW, StackedRecord
from agnncert.verifier import recount_joint, recount_labels
from agnncert.verifier.recount_isolated import Views
from formal import compare
from formal.extracted import ask_checker

TRAINING = ("labels", "labels-and-edges", "isolated")
KINDS = (*known_theorems(), *compare.STACKED, *compare.PAIRS, *TRAINING)
CLAIM = Claim("random votes", "formal.contests", "this program", ())
ROWS = compare.PROJECT / "experiments" / "results" / "contests.csv"
FIELDS = ("kind", "seed", "answers", "same", "says_more", "differ", "seconds")
UNIT = 50_000  # answers of one row
MAY_SAY_MORE = {
    "new_neighbours": "of stacked votes: more than 65,536 are counted as any number",
    "excluded": "of stacked votes, pairs, labels and neighbours: several classes together may stay ahead where none does "
    "alone; of labels: a target that may abstain is not said to be safe from classes that come near its label",
    "broken": "of stacked votes: a target's need is counted from its radius, whatever kinds of changes there are",
}


@dataclass
class Tally:
    """Counts answers of one kind.

    Attributes:
        same: Answers that all derivations give.
        says_more: Answers where only the contest says more, for a reason of ``MAY_SAY_MORE``.
        differ: All other differences.
        by_question: Answers by what was asked.
    """

    same: int = 0
    says_more: int = 0
    differ: int = 0
    by_question: Counter[str] = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        self.by_question = Counter()

    @property
    def answers(self) -> int:
        """All answers."""
        return self.same + self.says_more + self.differ

    def note(self, question: str, is_same: bool, says_more: bool, what: Callable[[], str]) -> None:
        """Counts one answer, and prints a difference that nothing explains."""
        self.by_question[question] += 1
        if is_same:
            self.same += 1
        elif says_more and question in MAY_SAY_MORE:
            self.says_more += 1
        else:
            self.differ += 1
            print("DIFFERS", what(), flush=True)


@dataclass(frozen=True)
class Case:
    """Votes, and what prover, recount and extracted checker agree on.

    Attributes:
        record: The votes.
        budgets: The budgets that are asked about.
        stated: What the prover states, by target.
        possible: Which classes each target may get, by budget; None if that is not asked.
        broken: How many targets break together, by budget.
        disagreements: What the three do not agree on.
    """

    record: Any
    budgets: list[Budget]
    stated: dict[str, Any]
    possible: list[Any]
    broken: list[int]
    disagreements: list[str]


def draw(rng: np.random.Generator, kind: str) -> Case:
    """Returns random votes, and asks the three derivations that came before contests."""
    if kind in TRAINING:
        return _draw_training(rng, kind)
    record = compare.random_record(rng, kind, int(rng.choice([1, 5, 30])))
    budgets = [*compare.random_budgets(rng, 12), *compare.small_budgets(rng, 12)]
    stated, broken = compare.prove(record, budgets)
    evidence = compare.evidence_of(record)
    possible = [np.asarray(evidence.possible(budget)) for budget in budgets]
    recounted = compare.recounted(record, stated, budgets)
    wrong = [f"the recount refuses {name}" for name, number in recounted.wrong.items() if number]
    wrong += [f"the recount refuses {budgets[i]}" for i, number in enumerate(recounted.wrong_budgets) if number]
    wrong += _by_checker(record, stated, budgets, possible)
    if list(broken) != list(recounted.broken):
        wrong.append(f"{broken} break, {recounted.broken} by the recount")
    return Case(record, budgets, stated, possible, list(broken), wrong)


def _by_checker(record: Any, stated: dict[str, Any], budgets: list[Budget], possible: list[Any]) -> list[str]:
    """Returns what the extracted checker derives otherwise."""
    answer = ask_checker(record, stated, budgets, excluded=[True] * len(budgets))
    wrong = [f"the extracted checker refuses {name}" for name, number in answer.wrong.items() if number]
    wrong += [f"the extracted checker refuses {budgets[i]}" for i, n in enumerate(answer.wrong_budgets) if n]
    for budget, found, expected in zip(budgets, answer.excluded, possible, strict=True):
        if list(found) != (~expected).sum(axis=0).tolist():
            wrong.append(f"the extracted checker excludes {found} under {budget}")
    return wrong


def _draw_training(rng: np.random.Generator, kind: str) -> Case:
    from tests.support.joint_worlds import random_joint
    from tests.support.label_cases import factored
    from tests.support.trained_apart import random_record as random_apart

    if kind == "labels":
        shape = int(rng.integers(1, 12)), int(rng.integers(1, 40))
        evidence: Any = factored(rng, *shape, classes=int(rng.integers(2, 5)))
        budgets = [Budget(flip_labels=number) for number in (0, 1, 2, 3, 5, 9, math.inf)]
    elif kind == "labels-and-edges":
        evidence = random_joint(rng, **({"neighbour_steps": 0} if rng.random() < 0.2 else {}))
        few = [0, 0, 1, 1, 2, 3, math.inf]
        drawn = [[float(rng.choice(few)) for _ in range(3)] for _ in range(10)]
        budgets = [Budget(flip_labels=f, add_edges=a, delete_edges=d, change_edges=5) for f, a, d in drawn]
    else:
        evidence = IsolatedEvidence(random_apart(rng, 12, num_groups=6, num_models=9))
        rests = [{}, {"delete_edges": 1}, {"inject_nodes": 1}, {"delete_nodes": math.inf}, {"add_edges": 2}]
        budgets = [Budget(poison_graphs=n, **rest) for n in (0, 1, 2, 3, math.inf) for rest in rests]
    label, radius = evidence.label_and_radius()
    holds = np.array([evidence.holds(budget) for budget in budgets])
    possible = [np.asarray(evidence.possible(budget)) for budget in budgets]
    stated = {"label": label, "radius": radius, "holds": holds}
    record = evidence.record if kind == "isolated" else evidence
    again = _recounted_training(record, budgets)
    wrong = [] if np.array_equal(holds, again) else ["the recount gives other answers"]
    with_neighbours = stated | {"new_neighbours": np.full(len(label), -1.0)}
    wrong += _by_checker(record, with_neighbours, budgets, possible)
    return Case(record, budgets, stated, possible, [], wrong)


def _recounted_training(record: Any, budgets: list[Budget]) -> Any:
    if isinstance(record, LabelRecord):
        counted = recount_labels.recount(record)
        answers = [
            recount_labels.stays_ahead(counted, recount_labels.changed_labels(record, each)).all(axis=1)
            for each in budgets
        ]
        return np.array(answers)
    if isinstance(record, JointRecord):
        elected = recount_joint.elect(record)
        attacks = [recount_joint.attack_of(record, budget) for budget in budgets]
        return recount_joint.stays_ahead(record, elected, attacks).all(axis=2)
    assert isinstance(record, IsolatedRecord)
    views = Views(record)
    return np.array([views.holds(budget) for budget in budgets])


class Derivation:
    """What follows from votes as a contest."""

    def __init__(self, record: Any) -> None:
        self.kind: Kind = kind_of(record)
        targets = [self.kind.target(place) for place in range(record.num_targets)]
        classes = [str(k) for k in range(len(targets[0].scores))] if targets else ["0"]
        self.contest: Contest = form_of(self.kind, targets, classes, CLAIM)
        wrong = list(contradictions(self.contest))
        assert not wrong, wrong

    def stays(self, place: int, attack: Attack | None) -> bool:
        """Whether prices show that a target keeps its label; if not, a play shows that it does not."""
        if attack is None:
            return False
        attacker, budget = attack
        if search.stays(self.contest, place, attacker, budget) is not None:
            return True
        target = self.contest.targets[place]
        allowed = allowance(self.contest.attackers[attacker], budget, target)
        rivals = (k for k in range(len(target.scores)) if k != target.label)
        assert any(search.play_against(self.contest, target, allowed, rival) for rival in rivals), "no play"
        return False

    def stays_all(self, place: int, attacks: tuple[Attack, ...]) -> bool:
        """Whether a target keeps its label against each of some attacks."""
        return all(self.stays(place, attack) for attack in attacks)

    def excludes(self, place: int, attack: Attack | None, rival: int) -> bool:
        """Whether prices show that a class does not win."""
        if attack is None or rival == self.contest.targets[place].label:
            return False
        return search.excludes(self.contest, place, *attack, rival) is not None

    def broken(self, budget: Budget) -> int | None:
        """How many targets break together; None if the form does not say it."""
        numbers = []
        for attacker, counts in self.kind.together(budget):
            statement = search.broken_at_most(self.contest, attacker, counts)
            assert statement is not None
            numbers.append(statement.number)
        return min(numbers, default=None)


def compare_case(case: Case, found: Tally, what: str) -> None:
    """Compares everything that is stated about some votes."""
    derived = Derivation(case.record)
    for disagreement in case.disagreements:
        found.note("before", False, False, lambda text=disagreement: f"{what}: {text}")
    attacks = [derived.kind.attack(budget) for budget in case.budgets]
    for place in range(case.record.num_targets):
        label = int(case.stated["label"][place])
        is_same = derived.contest.targets[place].label == label
        found.note("label", is_same, False, lambda place=place: f"{what}: label of {place}")
        _compare_sizes(case, derived, place, found, what)
        for i, attack in enumerate(attacks):
            held = derived.stays(place, attack)
            proved = bool(case.stated["holds"][i][place])
            described = f"{what}: {case.budgets[i]} at {place}: contest {held}"
            found.note("holds", held == proved, False, lambda text=described: text)
            _compare_exclusions(case, derived, (place, i, attack), found, what)
    for i, number in enumerate(case.broken):
        mine = derived.broken(case.budgets[i])
        if mine is not None:
            described = f"{what}: {case.budgets[i]} breaks {number}, contest {mine}"
            found.note("broken", mine == number, mine < number and _has_slack(case), lambda text=described: text)


def _has_slack(case: Case) -> bool:
    return isinstance(case.record, (StackedRecord, LabelRecord, JointRecord))


def _compare_sizes(case: Case, derived: Derivation, place: int, found: Tally, what: str) -> None:
    kind = derived.kind
    for name, attacks_of in (("radius", kind.of_size), ("structure_radius", kind.of_structure)):
        if name not in case.stated or (name == "structure_radius" and not kind.of_structure(0)):
            continue
        size = int(case.stated[name][place])
        held = size < 0 or derived.stays_all(place, attacks_of(size))
        more = size < kind.largest_size and derived.stays_all(place, attacks_of(size + 1))
        described = f"{what}: {name} {size} of {place}: held {held}, one more {more}"
        found.note(name, held and not more, False, lambda text=described: text)
    if "new_neighbours" in case.stated:
        _compare_neighbours(case, derived, place, found, what)


def _compare_neighbours(case: Case, derived: Derivation, place: int, found: Tally, what: str) -> None:
    record, number = case.record, float(case.stated["new_neighbours"][place])
    if getattr(record, "task", "node") == "graph":
        return
    rest = Budget(
        delete_edges=math.inf,
        change_edges=math.inf,
        delete_nodes=math.inf if record.ids == "node_id" else 0,
        change_features=math.inf,
    )

    def holds(added: float) -> bool:
        return derived.stays(place, derived.kind.attack(rest.but(add_edges=added)))

    held = number < 0 or holds(number)
    more = number != math.inf and holds(number + 1)
    described = f"{what}: {number} new neighbours of {place}: held {held}, one more {more}"
    is_cut = isinstance(record, StackedRecord) and number >= MOST_NEW // 2
    found.note("new_neighbours", held and not more, held and is_cut, lambda text=described: text)


def _compare_exclusions(
    case: Case, derived: Derivation, which: tuple[int, int, Attack | None], found: Tally, what: str
) -> None:
    place, i, attack = which
    for rival in range(len(derived.contest.classes)):
        mine = derived.excludes(place, attack, rival)
        proved = not case.possible[i][place][rival]
        described = f"{what}: {case.budgets[i]} at {place}, class {rival}: contest excludes {mine}, prover {proved}"
        found.note("excluded", mine == proved, mine and _has_slack(case), lambda text=described: text)


def rows_done(file: Path) -> list[dict[str, str]]:
    """Returns the rows that were written before."""
    if not file.is_file():
        return []
    with file.open(newline="") as lines:
        return list(csv.DictReader(lines))


def units(answers: int, kinds: tuple[str, ...], done: list[dict[str, str]]) -> Iterator[tuple[str, int]]:
    """Yields kinds and seeds that are still to be done: the first of every kind, then the second, and so on."""
    have = {(row["kind"], int(row["seed"])) for row in done}
    for seed in range(-(-answers // UNIT)):
        yield from ((kind, seed) for kind in kinds if (kind, seed) not in have)


def compare_unit(kind: str, seed: int, answers: int) -> tuple[Tally, float]:
    """Compares random votes of one kind until there are enough answers."""
    begin, found = time.process_time(), Tally()
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    rounds = 0
    while found.answers < answers:
        compare_case(draw(rng, kind), found, f"{kind}, seed {seed}, round {rounds}")
        rounds += 1
    return found, time.process_time() - begin


def main() -> int:
    """Runs the comparison, and appends its rows."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--answers", type=int, default=UNIT, help="of each kind")
    parser.add_argument("--rows", type=Path, default=ROWS)
    parser.add_argument("--only", choices=KINDS, action="append")
    asked = parser.parse_args()
    kinds = tuple(asked.only or KINDS)
    differ = 0
    for kind, seed in units(asked.answers, kinds, rows_done(asked.rows)):
        found, seconds = compare_unit(kind, seed, min(UNIT, asked.answers))
        differ += found.differ
        row = (kind, seed, found.answers, found.same, found.says_more, found.differ, round(seconds, 1))
        is_new = not asked.rows.is_file()
        with asked.rows.open("a", newline="") as lines:
            writer = csv.writer(lines, lineterminator="\n")
            writer.writerows([FIELDS, row] if is_new else [row])
        print(*row, dict(found.by_question), flush=True)
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
