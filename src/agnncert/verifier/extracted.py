"""The third derivation: a checker whose code is extracted from the proofs in Coq (``make formal`` builds it).

This module hands the numbers of a file to that program and reads its answer. It decides nothing itself.
"""

import math
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from agnncert.certificates.budget import COUNTS, PRICED, Budget, Prices
from agnncert.certificates.file import Contents
from agnncert.certificates.stacked import StackedCounts
from agnncert.certificates.votes import VoteRecord
from agnncert.errors import SettingsError
from agnncert.verifier.piles import parts_of

Numbers = npt.NDArray[Any]

DIVISIONS = (
    *("edge-centric", "node-centric", "gated"), *("gnncert-e", "gnncert-n", "gnncert-en"),
    *("per-neighbour", "per-pair"), "custom",
)  # fmt: skip
STATEMENTS = ("label", "radius", "new_neighbours", "structure_radius")
ANY_NUMBER, SENSELESS = -10, -3  # infinitely many new neighbours; a number that is not whole, which is never right
CHUNK = 2**14  # targets of stacked votes that are handed over together
LARGEST = 2**40  # the checker treats all numbers from 2**30 on as infinite


@dataclass(frozen=True)
class Answer:
    """Numbers of targets: wrong statements, answers and prices; labels that may change; classes that are excluded."""

    wrong: dict[str, int]
    wrong_budgets: list[int]
    broken: list[int]
    wrong_prices: tuple[int, ...] = ()
    excluded: tuple[tuple[int, ...], ...] = ()


def find_checker() -> Path:
    """The program: in ``formal`` beside the sources, or on the search path; an error if it is in neither place."""
    built = Path(__file__).resolve().parents[3] / "formal" / "agnncheck"
    found = str(built) if built.is_file() else shutil.which("agnncheck")
    if found is None:
        raise SettingsError(
            "the checker that is extracted from the proofs is not built: run `make formal` in a clone (needs Debian's "
            "coq and ocaml-findlib), or put formal/agnncheck on the search path."
        )
    return Path(found)


def check_extracted(contents: Contents, wrong: list[str], checked: list[str]) -> tuple[list[str], list[str]]:
    """What is wrong and what was checked, with what the extracted checker says and which derivations agree."""
    if contents.kind not in ("votes", "stacked"):
        return wrong, [*checked, "nothing by the extracted checker: its proofs do not speak of random samples"]
    counts = (StackedCounts if contents.kind == "stacked" else VoteRecord).load(contents.evidence, contents.settings)
    if len(contents.arrays["label"]) != counts.num_targets:
        return wrong, [*checked, "nothing by the extracted checker: the file is not about the targets that it names"]
    stated = {name: contents.arrays[name] for name in (*STATEMENTS, "holds") if name in contents.arrays}
    classes = (counts.votes if isinstance(counts, VoteRecord) else counts).num_classes
    asked = [len(each) == classes for each in contents.excluded]  # no work that grows with unstated classes
    answer = ask_checker(counts, stated, contents.budgets, excluded=asked)
    numbers = {f"the {name.replace('_', ' ')}": number for name, number in answer.wrong.items()}
    numbers |= {f"the answer for {b}": n for b, n in zip(contents.budgets, answer.wrong_budgets, strict=True)}
    reasons = [f"the extracted checker does not derive {what} of {n:,} targets" for what, n in numbers.items() if n]
    for budget, said, derived in zip(contents.budgets, contents.broken_at_most, answer.broken, strict=True):
        if said != derived:
            reasons.append(f"the extracted checker derives that {budget} can break {derived} targets, not {said}")
    for budget, each, found in zip(contents.budgets, contents.excluded, answer.excluded, strict=False):
        if each != found:
            reasons.append(f"the extracted checker derives {found} targets that {budget} gives no label, not {each}")
    outcome = {
        (False, False): "all three agree",
        (True, True): "recount and extracted checker both refuse the file",
        (True, False): "the recount refuses the file, the extracted checker accepts its numbers",
        (False, True): "the recount accepts the file, the extracted checker refuses its numbers",
    }[bool(wrong), bool(reasons)]
    agreed = f"stored numbers, recount, and checker extracted from the Coq proofs: {outcome}"
    return [*wrong, *reasons], [*checked, agreed]


def ask_checker(
    counts: VoteRecord | StackedCounts, stated: dict[str, Numbers], budgets: Sequence[Budget],
    prices: Sequence[tuple[Prices, bool]] = (), excluded: Sequence[bool] = (),
) -> Answer:  # fmt: skip
    """Has the extracted checker derive all of STATEMENTS, ``holds`` and ``price`` (in whole units; True: the least).

    ``excluded`` says of which budgets it also counts the targets that cannot get each class.
    """
    asked = _asked(budgets, prices, excluded)
    stream = (_of_stacked if isinstance(counts, StackedCounts) else _of_votes)(counts, stated, asked)  # type: ignore[arg-type]
    with subprocess.Popen([find_checker()], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as checker:
        assert checker.stdin  # both are pipes
        assert checker.stdout
        for numbers in stream:
            checker.stdin.write(np.ascontiguousarray(numbers, dtype="<i8").tobytes())
        checker.stdin.close()
        lines = checker.stdout.read().decode().splitlines()
    if checker.returncode or not lines or lines[-1] != f"targets {counts.num_targets}":
        raise SettingsError(f"the extracted checker stopped with status {checker.returncode}: run `make formal` again.")
    rows = [line.split() for line in lines]
    answers = [row for row in rows if row[0] == "budget"]
    wrong = {row[0]: int(row[1]) for row in rows if row[0] in STATEMENTS}
    prices_wrong = tuple(int(row[1]) for row in rows if row[0] == "price")
    without = tuple(tuple(map(int, row[3:])) for row in answers)
    return Answer(wrong, [int(row[1]) for row in answers], [int(row[2]) for row in answers], prices_wrong, without)


def _of_votes(record: VoteRecord, stated: dict[str, Numbers], asked: list[int]) -> Iterator[Any]:
    yield _header(record, asked, "structure_radius" in stated)
    for part in parts_of(record):
        yield from (*_columns(record, stated, part.targets), _priced(stated, part.targets))
    yield [0]


def _of_stacked(counts: StackedCounts, stated: dict[str, Numbers], asked: list[int]) -> Iterator[Any]:
    flags = (counts.gated, counts.by_edge, counts.ids == "node_id")
    yield [len(DIVISIONS), counts.num_classes, *flags, counts.pseudo, len(counts.pseudo_votes), *counts.pseudo_votes]
    yield [counts.slack, counts.second, bool(counts.gate.any()), *asked]
    yield from ([len(counts.targets_per_node)], counts.targets_per_node, [len(counts.table)], counts.table)
    for first in range(0, counts.num_targets, CHUNK):
        part = slice(first, min(first + CHUNK, counts.num_targets))
        which = counts.which[counts.indptr[part.start] : counts.indptr[part.stop]]
        yield from ([part.stop - part.start], counts.prior[part], counts.gate[part], stated["label"][part])
        yield from (stated["radius"][part], _neighbours(stated, part), stated["structure_radius"][part])
        yield from (counts.degree[part], [len(which)], which, stated["holds"][:, part], _priced(stated, part))
    yield [0]


def _asked(budgets: Sequence[Budget], prices: Sequence[tuple[Prices, bool]], excluded: Sequence[bool]) -> list[int]:
    kinds = ("inject_nodes", "injected_edges", *(name for name in PRICED if name != "inject_nodes"), "target_features")
    rows: list[tuple[Any, ...]] = [(len(budgets),)]
    for budget, out in zip(budgets, excluded or [False] * len(budgets), strict=True):
        rows.append((*(_amount(getattr(budget, name)) for name in COUNTS), budget.target_features, out))
    costs = [(*(_amount(getattr(price, kind)) for kind in kinds), least) for price, least in prices]
    return [int(x) for row in (*rows, (len(prices),), *costs) for x in row]


def _priced(stated: dict[str, Numbers], part: slice) -> Any:
    price = np.asarray(stated["price"])[:, part] if "price" in stated else np.zeros(0)
    return np.where(np.isinf(price), -1, price)


def _neighbours(stated: dict[str, Numbers], part: slice) -> Numbers:
    neighbours = stated["new_neighbours"][part].astype(np.float64)
    whole = np.isfinite(neighbours) & (neighbours == np.floor(neighbours)) & (neighbours >= -1) & (neighbours < LARGEST)
    return np.where(whole, neighbours, np.where(neighbours == np.inf, ANY_NUMBER, SENSELESS))


def _amount(number: float) -> int:
    return -1 if math.isinf(number) else min(int(number), LARGEST)


def _header(record: VoteRecord, asked: list[int], structure: bool) -> list[int]:
    votes, voting_rule, stated = record.votes, record.voting_rule, record.parameters
    division, task = record.theorem.split("/")
    prices = [stated.get(name, -1) for name in (*COUNTS, "target_features")]
    settings = [
        *(DIVISIONS.index(division), task == "graph", record.ids == "node_id", votes.num_groups, votes.num_classes),
        *(len(voting_rule.class_prior), *voting_rule.class_prior, voting_rule.no_edge_prior),
        *(-1 if voting_rule.constant is None else voting_rule.constant, stated.get("edge_groups", 0)),
        *(stated.get("feature_groups", 0), *prices),
    ]
    targets_per_node = [] if record.targets_per_node is None else record.targets_per_node.tolist()
    return [int(x) for x in (*settings, *asked, structure, len(targets_per_node), *targets_per_node)]


def _columns(record: VoteRecord, stated: dict[str, Numbers], part: slice) -> Iterator[Any]:
    """The numbers of some targets, column by column; a class comes as one more, so that 0 is an abstention."""
    votes, n = record.votes, part.stop - part.start
    ends, rows = votes.indptr[part.start : part.stop + 1], record.reach_ptr[part.start : part.stop + 1]
    listed = slice(ends[0], ends[-1])
    yield [n]
    yield (votes.default[part].astype(np.int64) + 1) * 2 + votes.default_stable[part]
    known = record.no_edge is not None and record.no_edge_stable is not None
    yield (record.no_edge[part].astype(np.int64) + 1) * 2 + record.no_edge_stable[part] if known else np.ones(n)  # type: ignore[index]
    yield stated["label"][part]
    yield stated["radius"][part]
    yield _neighbours(stated, part)
    yield stated.get("structure_radius", stated["radius"])[part]
    yield np.diff(ends)
    yield np.diff(rows)
    one_way = 0 if record.one_way is None else record.one_way[listed]
    code = (votes.group[listed].astype(np.int64) << 16) + votes.vote[listed] + 1
    yield [ends[-1] - ends[0]]
    yield (code << 4) + votes.stable[listed] + 2 * votes.reached[listed] + 4 * np.asarray(one_way)
    yield [rows[-1] - rows[0]]
    yield record.reach[rows[0] : rows[-1]]
    yield stated["holds"][:, part]
