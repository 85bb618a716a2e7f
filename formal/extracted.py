"""Checks a certificate with the program that is extracted from the proofs in Coq, beside the verifier.

    python -m formal.extracted FILE

``make formal`` builds the program, ``formal/agnncheck``. It is the third derivation of the numbers in a file, after those of
the prover and of the verifier. This module hands the numbers over and reads the answer. It decides nothing itself.
The exit status is 0 if nothing is wrong, 1 if something is, and 2 if the program or the file is missing.
"""

import argparse
import math
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from agnncert.certificates.budget import COUNTS, PRICED, Budget, Prices
from agnncert.certificates.file import Contents, read_contents
from agnncert.certificates.votes import VoteRecord
from agnncert.errors import AgnncertError, SettingsError
from agnncert.isolated.record import IsolatedRecord
from agnncert.labels.joint_record import KIND, JointRecord
from agnncert.labels.record import STEPS, LabelRecord
from agnncert.pairs.record import RULES, PairRecord
from agnncert.stacked.record import StackedRecord
from agnncert.verdict import Verdict, verify
from agnncert.verifier.check import require_trusted_training
from agnncert.verifier.piles import Part, parts_of

Numbers = npt.NDArray[Any]
Stated = dict[str, Numbers]  # what a file states: STATEMENTS, "holds" and "price"

# Codes of the divisions in main.ml: their places in this list. Stacked votes have the code after the last one.
DIVISIONS = (
    "edge-centric",
    "node-centric",
    "gated",
    "gnncert-e",
    "gnncert-n",
    "gnncert-en",
    "per-neighbour",
    "per-pair",
    "custom",
)
PAIRS = 102  # the code of files about pairs of nodes in main.ml
STATEMENTS = ("label", "radius", "new_neighbours", "structure_radius")
PRICE_KINDS = (
    "inject_nodes",
    "injected_edges",
    *(name for name in PRICED if name != "inject_nodes"),
    "target_features",
)
INFINITE = -1  # of a budget or a price
ANY_NUMBER = -10  # infinitely many new neighbours
POISONED = 100  # code of models that were trained apart
LABELS = 101  # code of votes of training labels
JOINT = 103  # code of votes of labels and neighbours
OF_LABELS = ("flip_labels", "add_labels", "remove_labels")
NOT_OF_LABELS = -2  # changes of anything else, of which nothing is proved
SENSELESS = -3  # a number of new neighbours that is not whole, which is never right
CHUNK = 2**14  # targets of stacked votes that are handed over together
LARGEST = 2**40  # the program treats all numbers from 2**30 on as infinite


@dataclass(frozen=True)
class Answer:
    """What the program says.

    Attributes:
        wrong: For each of STATEMENTS, how many targets have a wrong one.
        wrong_budgets: For each budget, how many targets have a wrong answer.
        broken: For each budget, how many targets one attacked graph can break.
        wrong_prices: For each kind of prices that was asked about, how many targets have a wrong price.
        excluded: For each budget, how many targets cannot get each class; empty if that was not asked.
    """

    wrong: dict[str, int]
    wrong_budgets: list[int]
    broken: list[int]
    wrong_prices: tuple[int, ...] = ()
    excluded: tuple[tuple[int, ...], ...] = ()


def find_checker() -> Path:
    """Returns the program: that of this folder, or else the one on the search path.

    Raises:
        SettingsError: It is in neither place.
    """
    built = Path(__file__).resolve().parent / "agnncheck"
    if built.is_file():
        return built
    found = shutil.which("agnncheck")
    if found is None:
        raise SettingsError(
            "the checker that is extracted from the proofs is not built: run `make formal` in a clone (needs Debian's "
            "coq and ocaml-findlib), or put formal/agnncheck on the search path."
        )
    return Path(found)


def verify_extracted(file: Path) -> Verdict:
    """Verifies a file, and has the extracted checker derive its numbers as well.

    Returns:
        The verdict of ``agnncert.verify``, with what the extracted checker finds wrong, and with which of three derivations
        agree: the numbers in the file, the recount, the extracted checker.

    Raises:
        CertificateError: There is no such file.
        SettingsError: The checker is not built.
    """
    verdict = verify(file)
    if not verdict.checked:  # the file makes no sense, so there is nothing to hand over
        return verdict
    return add_extracted(verdict, read_contents(file))


def add_extracted(verdict: Verdict, contents: Contents) -> Verdict:
    """Returns the verdict about a file, with what the extracted checker says about it."""
    if contents.kind not in RECORDS:
        nothing = "nothing by the extracted checker: its proofs do not speak of random samples"
        return replace(verdict, checked=(*verdict.checked, nothing))
    if contents.kind not in ("isolated", "labels", KIND) and any(budget.training_fields for budget in contents.budgets):
        nothing = "nothing by the extracted checker: the file makes statements about training data, which it trusts"
        return replace(verdict, checked=(*verdict.checked, nothing))
    record = RECORDS[contents.kind].load(contents.evidence, contents.settings)
    if len(contents.arrays["label"]) != record.num_targets:
        nothing = "nothing by the extracted checker: the file is not about the targets that it names"
        return replace(verdict, checked=(*verdict.checked, nothing))
    wrong = _find_wrong(contents, record)
    outcome = OUTCOMES[verdict.holds, not wrong]
    return replace(
        verdict,
        holds=verdict.holds and not wrong,
        reasons=(*verdict.reasons, *wrong),
        checked=(*verdict.checked, f"stored numbers, recount, and checker extracted from the Coq proofs: {outcome}"),
    )


Record = VoteRecord | StackedRecord | IsolatedRecord | LabelRecord | JointRecord
RECORDS: dict[str, type[Record]] = {
    "labels": LabelRecord,
    KIND: JointRecord,
    "pairs": PairRecord,
    "votes": VoteRecord,
    "stacked": StackedRecord,
    "isolated": IsolatedRecord,
}
OUTCOMES = {  # whether recount and extracted checker accept the file -> what that means
    (True, True): "all three agree",
    (False, False): "recount and extracted checker both refuse the file",
    (False, True): "the recount refuses the file, the extracted checker accepts its numbers",
    (True, False): "the recount accepts the file, the extracted checker refuses its numbers",
}


def _find_wrong(contents: Contents, record: Record) -> list[str]:
    """Returns what the extracted checker does not derive from the evidence."""
    stated = {name: contents.arrays[name] for name in (*STATEMENTS, "holds") if name in contents.arrays}
    num_classes = record.votes.num_classes if isinstance(record, VoteRecord) else record.num_classes
    asked = [len(each) == num_classes for each in contents.excluded]  # no work that grows with unstated classes
    answer = ask_checker(record, stated, contents.budgets, excluded=asked)
    num_wrong = {f"the {name.replace('_', ' ')}": number for name, number in answer.wrong.items()}
    for budget, number in zip(contents.budgets, answer.wrong_budgets, strict=True):
        num_wrong[f"the answer for {budget}"] = number
    wrong = [f"the extracted checker does not derive {what} of {n:,} targets" for what, n in num_wrong.items() if n]
    for budget, said, derived in zip(contents.budgets, contents.broken_at_most, answer.broken, strict=True):
        if said != derived:
            wrong.append(f"the extracted checker derives that {budget} can break {derived} targets, not {said}")
    for budget, said_out, out in zip(contents.budgets, contents.excluded, answer.excluded, strict=False):
        if said_out != out:
            wrong.append(f"the extracted checker derives {out} targets that {budget} gives no label, not {said_out}")
    return wrong


def ask_checker(
    record: Record,
    stated: Stated,
    budgets: Sequence[Budget],
    prices: Sequence[tuple[Prices, bool]] = (),
    excluded: Sequence[bool] = (),
) -> Answer:
    """Has the extracted checker derive statements.

    Args:
        record: The votes.
        stated: All of STATEMENTS, ``holds`` with one row for each budget, and ``price`` with one for each of ``prices``.
        budgets: What ``holds`` is about.
        prices: What ``price`` is about, in whole units, and whether a stated price must be the least one.
        excluded: For each budget, whether to count the targets that cannot get each class; for none by default.

    Raises:
        SettingsError: The program is not built, or stopped.
    """
    lines = run_checker(_stream(record, stated, budgets, prices, excluded or [False] * len(budgets)))
    if not lines or lines[-1] != ["targets", str(record.num_targets)]:
        raise SettingsError("the extracted checker did not get to its end: run `make formal` again.")
    of_budgets = [line for line in lines if line[0] == "budget"]
    return Answer(
        wrong={line[0]: int(line[1]) for line in lines if line[0] in STATEMENTS},
        wrong_budgets=[int(line[1]) for line in of_budgets],
        broken=[int(line[2]) for line in of_budgets],
        wrong_prices=tuple(int(line[1]) for line in lines if line[0] == "price"),
        excluded=tuple(tuple(map(int, line[3:])) for line in of_budgets),
    )


def _stream(
    record: Record,
    stated: Stated,
    budgets: Sequence[Budget],
    prices: Sequence[tuple[Prices, bool]],
    excluded: Sequence[bool],
) -> Iterator[Any]:
    """Returns the numbers that main.ml reads about one kind of file."""
    if isinstance(record, JointRecord):
        return _stream_joint(record, stated, budgets, excluded)
    if isinstance(record, LabelRecord):
        return _stream_labels(record, stated, budgets, excluded)
    if isinstance(record, IsolatedRecord):
        questions = _questions([budget.but(poison_graphs=0) for budget in budgets], prices, excluded)
        return _stream_isolated(record, stated, questions, [budget.poison_graphs for budget in budgets])
    questions = _questions(budgets, prices, excluded)
    if isinstance(record, StackedRecord):
        return _stream_stacked(record, stated, questions)
    return _stream_votes(record, stated, questions)


def run_checker(stream: Iterable[Any]) -> list[list[str]]:
    """Writes numbers to the program, and returns the words of each line that it prints."""
    with subprocess.Popen([find_checker()], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as checker:
        assert checker.stdin is not None  # both are pipes
        assert checker.stdout is not None
        for numbers in stream:
            checker.stdin.write(np.ascontiguousarray(numbers, dtype="<i8").tobytes())
        checker.stdin.close()
        printed = checker.stdout.read().decode()
    if checker.returncode:
        raise SettingsError(f"the extracted checker stopped with status {checker.returncode}: run `make formal` again.")
    return [line.split() for line in printed.splitlines()]


# What main.ml reads, in its order.


def _questions(budgets: Sequence[Budget], prices: Sequence[tuple[Prices, bool]], excluded: Sequence[bool]) -> list[int]:
    numbers: list[int] = [len(budgets)]
    for budget, ask_excluded in zip(budgets, excluded, strict=True):
        require_trusted_training(budget)
        numbers += [_amount(getattr(budget, name)) for name in COUNTS]
        numbers += [int(budget.target_features), int(ask_excluded)]
    numbers.append(len(prices))
    for each, must_be_least in prices:
        numbers += [_amount(getattr(each, kind)) for kind in PRICE_KINDS]
        numbers.append(int(must_be_least))
    return numbers


def _amount(number: float) -> int:
    return INFINITE if math.isinf(number) else min(int(number), LARGEST)


def _stream_votes(record: VoteRecord, stated: Stated, questions: list[int]) -> Iterator[Any]:
    yield _settings_of_votes(record)
    yield questions
    yield [int("structure_radius" in stated)]
    targets_per_node = np.zeros(0) if record.targets_per_node is None else record.targets_per_node
    yield [len(targets_per_node)]
    yield targets_per_node
    for part in parts_of(record):
        yield from _columns_of_votes(part, stated)
    yield [0]


def _settings_of_votes(record: VoteRecord) -> list[int]:
    division, task = record.theorem.split("/")
    rule = record.voting_rule
    parameters = record.parameters
    return [
        DIVISIONS.index(division),
        int(task == "graph"),
        int(record.ids == "node_id"),
        record.votes.num_groups,
        record.votes.num_classes,
        len(rule.class_prior),
        *rule.class_prior,
        rule.no_edge_prior,
        -1 if rule.constant is None else rule.constant,
        parameters.get("edge_groups", 0),
        parameters.get("feature_groups", 0),
        *(parameters.get(name, INFINITE) for name in (*COUNTS, "target_features")),
    ]


def _columns_of_votes(part: Part, stated: Stated) -> Iterator[Any]:
    """Yields the numbers of some targets, column by column."""
    record, votes, targets = part.record, part.record.votes, part.targets
    reach_ptr = record.reach_ptr[targets.start : targets.stop + 1]
    yield [part.num_targets]
    yield _predictions(votes.default[targets], votes.default_stable[targets])
    if record.no_edge is None or record.no_edge_stable is None:
        yield np.ones(part.num_targets)
    else:
        yield _predictions(record.no_edge[targets], record.no_edge_stable[targets])
    yield stated["label"][targets]
    yield stated["radius"][targets]
    yield _new_neighbours(stated, targets)
    yield stated.get("structure_radius", stated["radius"])[targets]
    yield np.diff(part.indptr)
    yield np.diff(reach_ptr)
    listed = _listed_votes(part)
    yield [len(listed)]
    yield listed
    reach = record.reach[reach_ptr[0] : reach_ptr[-1]]
    yield [len(reach)]
    yield reach
    yield stated["holds"][:, targets]
    yield _prices(stated, targets)


def _predictions(choice: Numbers, stable: Numbers) -> Numbers:
    """Returns classes, as one more so that 0 is an abstention, in all bits but the lowest one, which says if it is stable."""
    return (choice.astype(np.int64) + 1) * 2 + stable


def _listed_votes(part: Part) -> Numbers:
    """Returns each listed vote as one number: from the lowest bit on stable, reached, one-way, none, 16 of its class, its group."""
    votes, listed = part.record.votes, part.listed
    one_way = np.zeros(1, dtype=bool) if part.record.one_way is None else part.record.one_way[listed]
    choice = (votes.group[listed].astype(np.int64) << 16) + votes.vote[listed] + 1
    return (choice << 4) + votes.stable[listed] + 2 * votes.reached[listed] + 4 * one_way


def _stream_stacked(record: StackedRecord, stated: Stated, questions: list[int]) -> Iterator[Any]:
    if isinstance(record, PairRecord):
        yield [PAIRS, RULES.index(record.rule), record.blind]
    else:
        yield [len(DIVISIONS)]
    yield [record.num_classes, record.gated, record.by_edge, record.ids == "node_id"]
    yield [record.pseudo, len(record.pseudo_votes), *record.pseudo_votes]
    yield [record.slack, record.second, bool(record.gate.any())]
    yield questions
    yield [len(record.targets_per_node)]
    yield record.targets_per_node
    yield [len(record.table)]
    yield record.table
    for start in range(0, record.num_targets, CHUNK):
        yield from _columns_of_stacked(record, stated, slice(start, min(start + CHUNK, record.num_targets)))
    yield [0]


def _columns_of_stacked(record: StackedRecord, stated: Stated, targets: slice) -> Iterator[Any]:
    """Yields the numbers of some targets, column by column."""
    which = record.which[record.indptr[targets.start] : record.indptr[targets.stop]]
    yield [targets.stop - targets.start]
    yield record.prior[targets]
    yield record.gate[targets]
    yield stated["label"][targets]
    yield stated["radius"][targets]
    yield _new_neighbours(stated, targets)
    yield stated["structure_radius"][targets]
    yield record.degree[targets]
    yield [len(which)]
    yield which
    yield stated["holds"][:, targets]
    yield _prices(stated, targets)


def _stream_isolated(
    record: IsolatedRecord, stated: Stated, questions: list[int], poisoned: list[float]
) -> Iterator[Any]:
    """Yields the votes of models that were trained apart: each view with the votes of all models in it."""
    num_views = len(record.group)
    yield [POISONED]
    yield _settings_of_votes(record.views(np.zeros(num_views, dtype=np.int16), np.ones(num_views, dtype=bool)))
    yield questions
    yield [*map(_amount, poisoned), record.num_models]
    yield [record.num_targets]
    if not record.num_targets:
        return
    everything = slice(0, record.num_targets)
    yield stated["label"]
    yield stated["radius"]
    yield _new_neighbours(stated, everything)
    yield np.diff(record.indptr)
    yield np.diff(record.reach_ptr)
    yield [num_views]
    yield 2 * record.group.astype(np.int64) + record.reached
    yield _predictions(record.vote, record.stable)
    yield [len(record.reach)]
    yield record.reach
    yield stated["holds"]
    yield [0]


def _stream_labels(
    record: LabelRecord, stated: Stated, budgets: Sequence[Budget], excluded: Sequence[bool]
) -> Iterator[Any]:
    has_factors = record.weights.shape[1] == 0
    yield [LABELS, record.num_classes, *record.advance, record.least_lead]
    yield [has_factors, STEPS, record.right.shape[1], record.num_candidates]
    yield record.label_of
    yield record.audited
    if has_factors:
        yield record.right
    yield [len(budgets)]
    for budget, ask_excluded in zip(budgets, excluded, strict=True):
        yield [_changed_labels(budget), ask_excluded]
    for start in range(0, record.num_targets, CHUNK):
        targets = slice(start, min(start + CHUNK, record.num_targets))
        yield [targets.stop - targets.start]
        for name in ("label", "radius"):
            yield stated[name][targets]
        yield record.own[targets]
        yield record.cap[targets]
        yield record.left[targets] if has_factors else _silent_for_oneself(record, targets)
        yield stated["holds"][:, targets]
    yield [0]


def _stream_joint(
    record: JointRecord, stated: Stated, budgets: Sequence[Budget], excluded: Sequence[bool]
) -> Iterator[Any]:
    voters = record.voters
    has_factors = voters.weights.shape[1] == 0
    yield [JOINT, record.num_classes, *voters.advance, record.least_lead, record.neighbour_steps]
    yield [has_factors, STEPS, voters.right.shape[1], voters.num_candidates]
    yield voters.label_of
    yield voters.audited
    if has_factors:
        yield voters.right
    yield [voters.num_targets]
    yield voters.own
    yield voters.cap
    yield voters.left if has_factors else _silent_for_oneself(voters, slice(None))
    yield [len(budgets)]
    for budget, ask_excluded in zip(budgets, excluded, strict=True):
        of_labels = _changed_labels(budget.but(add_edges=0, delete_edges=0, change_edges=0))
        yield [of_labels, _amount(budget.add_edges), _amount(budget.delete_edges), ask_excluded]
    yield [record.num_targets]
    for name in ("label", "radius"):
        yield stated[name]
    yield record.target
    yield record.indptr
    yield record.neighbour
    yield stated["holds"]


def _changed_labels(budget: Budget) -> int:
    of_graph = [name for name in COUNTS if name != "edges_per_injected" and getattr(budget, name)]
    if of_graph or budget.target_features:
        return NOT_OF_LABELS
    return _amount(sum(getattr(budget, name) for name in OF_LABELS))


def _silent_for_oneself(record: LabelRecord, targets: slice) -> Numbers:
    weights = record.weights[targets].copy()
    for weight, own in zip(weights, record.own[targets], strict=True):
        if own >= 0:
            weight[own] = 0
    return weights


def _new_neighbours(stated: Stated, targets: slice) -> Numbers:
    number = stated["new_neighbours"][targets].astype(np.float64)
    is_whole = np.isfinite(number) & (number == np.floor(number)) & (number >= -1) & (number < LARGEST)
    otherwise = np.where(number == np.inf, ANY_NUMBER, SENSELESS)
    return np.where(is_whole, number, otherwise)


def _prices(stated: Stated, targets: slice) -> Numbers:
    if "price" not in stated:
        return np.zeros(0)
    price = np.asarray(stated["price"])[:, targets]
    return np.where(np.isinf(price), INFINITE, price)


def main() -> int:
    """Checks the file that the command line names, and prints the verdict."""
    parser = argparse.ArgumentParser(prog="python -m formal.extracted", description=__doc__.partition("\n")[0])
    parser.add_argument("file", type=Path, help="certificate file")
    try:
        verdict = verify_extracted(parser.parse_args().file)
    except AgnncertError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(verdict)
    return 0 if verdict.holds else 1


if __name__ == "__main__":
    sys.exit(main())
