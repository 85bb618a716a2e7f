"""``check_contest``: do the statements of a file that anybody wrote follow from the form in it?"""

from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from agnncert.contest.checker import Failure, check, wrong_form
from agnncert.contest.file import read_contest
from agnncert.contest.form import (
    Amount,
    BrokenAtMost,
    Claim,
    Contest,
    Excludes,
    Limit,
    Statement,
    Stays,
    Target,
)
from agnncert.contest.leads import allowance
from agnncert.contest.plays import in_words
from agnncert.contest.search import play_against
from agnncert.errors import CertificateError, suggests_arguments
from agnncert.storage import visible

MOST_SHOWN = 10  # failures with a play
MOST_TRIED = 20_000_000  # units times moves times limits: some seconds; beyond, no play is looked for
MOST_BUDGETS = 20  # of which each has its own line


@dataclass(frozen=True)
class ContestVerdict:
    """The outcome of a check: what follows from the form in a file.

    Attributes:
        holds: Whether every statement follows.
        reasons: What does not follow, or what contradicts itself.
        plays: For statements that are refuted, what an attacker does: which moves on which units.
        checked: What follows, statements of one kind together.
        claim: What the author says, and no program can check. None if the file could not be read.
        meant: What the author says that moves, counts and limits stand for.
    """

    holds: bool
    reasons: tuple[str, ...]
    plays: tuple[str, ...] = ()
    checked: tuple[str, ...] = ()
    claim: Claim | None = None
    meant: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.holds

    def __str__(self) -> str:
        entries = [("wrong", self.reasons), ("play", self.plays), ("checked", self.checked)]
        entries.append(("not checked", tuple(self._words_of_author())))
        lines = [f"  {name}: {visible(what)}" for name, each in entries for what in each]
        return "\n".join([self._headline(), *lines])

    def _headline(self) -> str:
        if not self.holds:
            return "The contest is refused."
        return "The statements follow from the form. That the form describes the defence is its author's claim."

    def _words_of_author(self) -> list[str]:
        if self.claim is None:
            return []
        claim = self.claim
        words = [f"that the form describes {claim.defence}: {claim.author} says so, see {claim.reference}"]
        return [*words, *(f"that {assumed}" for assumed in claim.assumes), *self.meant]


@suggests_arguments
def check_contest(file: str | PathLike[str]) -> ContestVerdict:
    """Checks a contest: a certificate of anybody's deterministic defence, in the open format.

    Only the form in the file is used: scores, units, moves, limits, and the prices that the file states. Nothing is
    searched for, except for plays that show why a statement fails. A file that is damaged, contradicts itself or is
    written in another way does not hold; that is not an error.

    Args:
        file: The file.

    Raises:
        CertificateError: There is no such file.
    """
    if not Path(file).is_file():
        raise CertificateError(f"there is no file {file}.")
    try:
        contest = read_contest(file)
    except CertificateError as error:
        return ContestVerdict(False, (str(error),))
    except MemoryError:
        return ContestVerdict(False, (f"{file} describes more than there is memory for.",))
    wrong = wrong_form(contest)
    if wrong:
        return ContestVerdict(False, tuple(wrong), claim=contest.claim)
    failures = check(contest)
    reasons = tuple(f"statement {each.statement}: {each.reason}" for each in failures)
    plays = tuple(_shown(contest, each) for each in failures[:MOST_SHOWN])
    checked, meant = tuple(_checked(contest, failures)), tuple(_meant(contest))
    return ContestVerdict(not failures, reasons, plays, checked, contest.claim, meant)


def _shown(contest: Contest, failure: Failure) -> str:
    """Returns the play that refutes a statement, or that none was found."""
    statement = contest.statements[failure.statement]
    if failure.rival is None or isinstance(statement, BrokenAtMost):
        return f"statement {failure.statement}: no play is shown for a number of targets"
    target = contest.targets[statement.target]
    allowed = allowance(contest.attackers[statement.attacker], statement.budget, target)
    weights = statement.weights if isinstance(statement, Excludes) else None
    if _work(target, len(allowed.limits)) * (1 if weights is None else len(weights)) > MOST_TRIED:
        return f"statement {failure.statement}: none was looked for: the form is large, and other prices may show it"
    play = play_against(contest, target, allowed, failure.rival, weights)
    if play is None:
        return f"statement {failure.statement}: none was found: its prices do not show it, others may"
    return f"statement {failure.statement} is refuted: {in_words(contest, target, play)}"


def _work(target: Target, limits: int) -> int:
    """Returns how much there is to try for a play against a target."""
    return sum(len(pool.units) * (len(pool.hit_by) + 1) for pool in target.pools) * (limits + 1)


def _meant(contest: Contest) -> list[str]:
    """Returns what the author says about attackers: what is counted, and which moves that allows."""
    lines = []
    for name, attacker in contest.attackers.items():
        counts = ", ".join(f"{count} ({words})" for count, words in attacker.counts.items())
        limits = [_allowed(limit) for limit in attacker.limits]
        lines.append(f'that attacker "{name}" does no more: {"; ".join(limits)}. Counted: {counts or "nothing"}')
    moves = "; ".join(f'"{move}" is that {words}' for move, words in contest.moves.items())
    return [*lines, f"that these are all moves: {moves}"]


def _allowed(limit: Limit) -> str:
    """Returns a limit as a phrase."""
    sums = [f"{factor} x {count}" for count, factor in limit.at_most.items() if factor]
    sums += [f'the table "{table}" of the target' for table in limit.tables]
    moves = " or ".join(f'"{move}"' for move in limit.moves)
    return f"{moves} {' + '.join(sums)} times" if sums else f"{moves} never"


def _checked(contest: Contest, failures: list[Failure]) -> list[str]:
    """Returns what follows: under each budget, how many targets keep their label, and so on."""
    failed = {failure.statement for failure in failures}
    right = [each for place, each in enumerate(contest.statements) if place not in failed]
    under: dict[tuple[str, str], list[Statement]] = {}
    for each in right:
        budget = ", ".join(f"{count} {_amount(each.budget[count])}" for count in sorted(each.budget))
        under.setdefault((each.attacker, budget or "no counts"), []).append(each)
    lines = [f"the form: {_plural(len(contest.targets), 'target')}, whose scores are fixed parts and units"]
    for (attacker, budget), said in list(under.items())[:MOST_BUDGETS]:
        lines.append(f'attacker "{attacker}", {budget}: {"; ".join(_said(said))}')
    if len(under) > MOST_BUDGETS:
        more = {key: said for key, said in list(under.items())[MOST_BUDGETS:]}
        number = sum(len(said) for said in more.values())
        lines.append(f"{_plural(number, 'statement')} about {_plural(len(more), 'more budget')}")
    return lines


def _said(statements: list[Statement]) -> list[str]:
    """Returns what statements about one budget say together. A target that is named twice counts once."""
    kept = {each.target for each in statements if isinstance(each, Stays)}
    barred = {each.target for each in statements if isinstance(each, Excludes)}
    broken = [each.number for each in statements if isinstance(each, BrokenAtMost)]
    words = []
    if kept:
        words.append(f"{_plural(len(kept), 'target')} {_verb(kept, 'keeps its label', 'keep their labels')}")
    if barred:
        words.append(f"{_plural(len(barred), 'target')} cannot get some class")
    if broken:
        words.append(f"one attack breaks {_plural(min(broken), 'target')} at most")
    return words


def _verb(of: set[int], one: str, many: str) -> str:
    return one if len(of) == 1 else many


def _plural(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _amount(number: Amount) -> str:
    return "any" if number is None else f"{number:,}"
