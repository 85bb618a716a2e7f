"""Breaks prover, verifier, recomputation and rounding guard at random places, and asks which tests notice.

    python -m tests.soundness.mutation.random_mutations --number 100 --seed 0

By hand, not part of the test suite: it takes about 20 minutes of processor time. Each mutation is one comparison flipped,
one whole number off by one, one term dropped, one sign, ``and``, minimum or maximum exchanged, inside a function. The tests are collected once; then a process is
forked for each mutation, which gives the functions of the file their mutated instructions and runs the tests that belong
to the file until one fails: first those that noticed something in this file before, then the quick ones. What a few
seconds of tests do not notice is judged by all of them in a second pass. Processor time is limited, not time, so that a
busy machine changes no outcome.
Outcomes are rows of ``experiments/results/random-mutations.jsonl``, or of ``random-mutations-seed-7.jsonl`` for ``--seed 7``,
and a mutation that has one is not tried again. ``--only`` draws from some files, such as ``stacked agnncert_live``.
Survivors are listed in ``random-mutations.md`` beside it; those for which ``equivalent.json`` has an argument are
equivalent: no test could tell them apart. ``--open`` judges what only quick tests have judged by all tests of its file, on
the present text; what took the place of an expression that was rewritten since is in ``present.json``. A row with
``by_hand`` was judged by editing the file and running the test that it names. At the end, the tests that noticed something run on the code as it is.
"""

import argparse
import ast
import copy
import gc
import importlib
import itertools
import json
import math
import os
import random
import resource
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import CodeType, FunctionType

import pytest

from tests.support.paths import PROJECT

SOURCE = PROJECT / "src" / "agnncert"
RESULTS = PROJECT / "experiments" / "results"
PRESENT = Path(__file__).parent / "present.json"
ARGUMENTS = Path(__file__).parent / "equivalent.json"

QUICK = "the quick tests notice nothing"
FEW_SECONDS = 3  # of processor time, in the first pass
OF_FILES = ("tests/soundness/golden", "tests/soundness/corpus")
OF_VOTES = (
    "tests/unit/proving/test_theorems.py", "tests/unit/divided/test_evidence.py", "tests/unit/proving/test_evidence.py", "tests/unit/proving/test_certificate.py",
    *OF_FILES, "tests/unit/verifier/test_recount.py", "tests/soundness/laws/test_votes.py", "tests/soundness/laws/test_own_groups.py",
    "tests/soundness/laws/test_collective.py", "tests/soundness/laws/test_exhaustive.py",
)  # fmt: skip
OF_SAMPLES = (
    "packages/agnncert-peers/tests/test_bounds.py", "packages/agnncert-peers/tests/test_deletions.py", "packages/agnncert-peers/tests/test_flips.py",
    "packages/agnncert-peers/tests/test_samples.py", *OF_FILES, "packages/agnncert-peers/tests/test_recount_samples.py",
    "packages/agnncert-peers/tests/test_smoothing.py", "packages/agnncert-peers/tests/test_interception.py",
)  # fmt: skip
OF_RECOUNT = (
    *OF_FILES, "tests/unit/divided/test_evidence.py", "tests/unit/verifier/test_recount.py", "tests/soundness/forger/test_forgeries.py",
)  # fmt: skip
OF_CHECKS = (
    *OF_RECOUNT, "tests/unit/verifier/test_check.py", "tests/unit/certificates", "tests/unit/test_verdict.py",
    "tests/soundness/mutation/test_checks_broken_on_purpose.py",
)  # fmt: skip
OF_RECOUNTED_SAMPLES = (
    *OF_FILES, "tests/soundness/forger/test_sample_forgeries.py", "packages/agnncert-peers/tests/test_recount_samples.py",
)  # fmt: skip
OF_STACKED = (
    *OF_FILES, "tests/unit/stacked", "tests/unit/verifier/test_recount_stacked.py", "tests/soundness/laws/test_stacked_votes.py",
    "tests/soundness/laws/test_stacked_graphs.py", "tests/soundness/laws/test_prices.py", "tests/soundness/attacks/test_stacked.py",
)  # fmt: skip
OF_PAIRS = (
    *OF_FILES, "tests/unit/pairs", "tests/soundness/laws/test_pair_votes.py", "tests/soundness/mutation/test_pairs_broken_on_purpose.py",
)  # fmt: skip
OF_LABELS = (
    *OF_FILES, "tests/unit/labels", "tests/soundness/laws/test_label_votes.py", "tests/soundness/laws/test_labels_and_edges.py",
)  # fmt: skip
OF_ISOLATED = (
    *OF_FILES, "tests/unit/isolated", "tests/unit/verifier/test_recount_isolated.py", "tests/soundness/laws/test_isolated.py",
)  # fmt: skip
OF_APPEND = (
    "tests/unit/append", "tests/soundness/laws/test_append_programs.py", "tests/soundness/attacks/test_append_only.py",
)  # fmt: skip
OF_GRAPH_VOTES = (
    "tests/unit/graph_votes", "tests/soundness/laws/test_graph_votes.py", "tests/soundness/mutation/test_graph_votes_broken_on_purpose.py",
)  # fmt: skip
OF_CONTESTS = ("tests/unit/contest", "tests/soundness/mutation/test_contests_broken_on_purpose.py")
OF_THRESHOLDS = ("tests/unit/test_threshold_choice.py", "tests/unit/proving/test_guaranteed_rate.py", *OF_APPEND)
OF_LIVE = tuple(
    f"packages/agnncert-live/tests/test_{name}.py"
    for name in (
        "subgraphs",
        "reach",
        "rows",
        "events",
        "spent",
        "graph",
        "stacked",
        "tries",
        "live_broken_on_purpose",
        "long_sums",
        "hostile_requests",
    )
)
OF_RECOMPUTATION = (
    *OF_FILES, "tests/unit/test_recompute.py", "tests/soundness/mutation/test_structure_broken_on_purpose.py",
    "tests/unit/test_verdict.py", "tests/unit/test_certifier.py", "tests/soundness/forger/test_honest.py",
    "tests/soundness/forger/test_sample_forgeries.py", "tests/soundness/forger/test_forgeries.py",
)  # fmt: skip
OF_GUARD = (
    "tests/soundness/golden", "tests/unit/engine/test_rounding.py", "tests/unit/engine/test_spot_check.py", "tests/soundness/oracle/test_engines.py",
)  # fmt: skip
OF_COVER = (*OF_FILES, "tests/unit/engine/test_reach_tables.py", "tests/soundness/laws/test_exhaustive.py")
OF_POSSIBLE = (
    "tests/soundness/golden",
    "tests/soundness/laws/test_possible.py",
    "tests/unit/proving/test_certificate.py",
)
OF_PRICES = ("tests/soundness/laws/test_prices.py",)
OF_MEASURES = ("tests/unit/proving/test_measures.py", "tests/unit/divided/test_threshold.py")
TESTS = {
    "proving/theorems": OF_VOTES,
    "proving/per_neighbour": OF_VOTES,
    "proving/possible": OF_POSSIBLE,
    "proving/prices": OF_PRICES,
    "proving/evidence": OF_VOTES,
    "divided/evidence": OF_VOTES,
    **{
        f"divided/theorems/{name}": OF_VOTES
        for name in ("edge_centric", "node_centric", "gated", "custom", "per_neighbour", "per_pair")
    },
    "agnncert_peers/gnncert_theorems": OF_VOTES,
    "agnncert_peers/bounds": OF_SAMPLES,
    "proving/prices_by_budgets": OF_SAMPLES,
    "agnncert_peers/noise": OF_SAMPLES,
    "agnncert_peers/flip_noise": OF_SAMPLES,
    "agnncert_peers/deletion_noise": OF_SAMPLES,
    "agnncert_peers/interception_noise": OF_SAMPLES,
    "agnncert_peers/samples": OF_SAMPLES,
    "proving/measures": OF_MEASURES,
    "stacked/evidence": OF_STACKED,
    "stacked/record": OF_STACKED,
    "stacked/model": OF_STACKED,
    "stacked/counting": OF_STACKED,
    **{f"pairs/{name}": OF_PAIRS for name in ("evidence", "model", "record", "targets", "voters")},
    "verifier/check_pairs": OF_PAIRS,
    "verifier/recount_pairs": OF_PAIRS,
    **{
        f"labels/{name}": OF_LABELS
        for name in ("evidence", "joint_evidence", "joint_record", "model", "record", "vectors", "weights")
    },
    **{f"verifier/{name}": OF_LABELS for name in ("check_joint", "check_labels", "recount_joint", "recount_labels")},
    **{f"isolated/{name}": OF_ISOLATED for name in ("evidence", "model", "parts", "record")},
    "verifier/check_isolated": OF_ISOLATED,
    **{
        f"append/{name}": OF_APPEND
        for name in ("changes", "evaluate", "evidence", "ledger", "polarity", "program", "record", "trees")
    },
    **{f"verifier/{name}": OF_APPEND for name in ("check_append", "recount_append", "recount_rows")},
    **{f"graph_votes/{name}": OF_GRAPH_VOTES for name in ("evidence", "model", "record", "worst")},
    **{f"verifier/{name}": OF_GRAPH_VOTES for name in ("check_graph_votes", "recount_graph_votes")},
    **{f"contest/{name}": OF_CONTESTS for name in ("checker", "form", "leads", "plays", "search", "verdict")},
    "threshold_choice": OF_THRESHOLDS,
    "proving/guaranteed_rate": OF_THRESHOLDS,
    "verifier/recount_threshold": OF_THRESHOLDS,
    "verifier/recount_isolated": OF_ISOLATED,
    "certificates/votes": OF_CHECKS,
    "verifier/check": OF_CHECKS,
    "verifier/file_checker": OF_CHECKS,
    "verifier/blocks": OF_CHECKS,
    "verifier/leaders": (*OF_STACKED, "tests/soundness/mutation/test_relation_broken_on_purpose.py"),
    "verifier/check_stacked": OF_STACKED,
    "verifier/check_votes": OF_CHECKS,
    "verifier/limits": OF_RECOUNT,
    "verifier/effects": OF_RECOUNT,
    **{
        f"verifier/theorems/{name}": OF_RECOUNT
        for name in ("edge_centric", "node_centric", "custom", "per_neighbour", "per_pair")
    },
    "agnncert_peers/gnncert_recount": OF_RECOUNT,
    "verifier/piles": OF_RECOUNT,
    "verifier/recount": OF_RECOUNT,
    "verifier/recount_per_neighbour": OF_RECOUNT,
    "verifier/recount_possible": OF_POSSIBLE,
    "verifier/recount_prices": OF_PRICES,
    "agnncert_peers/recount_samples": OF_RECOUNTED_SAMPLES,
    "verifier/recount_stacked": OF_STACKED,
    "recompute": OF_RECOMPUTATION,
    "agreement": OF_RECOMPUTATION,
    "divided/recompute": OF_RECOMPUTATION,
    "verdict": OF_RECOMPUTATION,
    "engine/rounding": OF_GUARD,
    "engine/rounding_noise": OF_GUARD,
    "engine/reach": OF_COVER,
    **{
        f"agnncert_live/{name}": OF_LIVE
        for name in (
            "core",
            "counting",
            "divided",
            "events",
            "nodes",
            "reach",
            "spent",
            "stacked",
            "store",
            "subgraphs",
            "union",
            "votes",
        )
    },
}
FLIPPED = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
DROPPING = (ast.Add, ast.Sub, ast.BitAnd, ast.BitOr, ast.BitXor, ast.Mult)
DROPPED_CALLS = ("minimum", "maximum", "min", "max")
EXCHANGED_CALLS = {"minimum": "maximum", "maximum": "minimum", "min": "max", "max": "min", "any": "all", "all": "any"}
EXCHANGED = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd}


@dataclass(frozen=True)
class Mutation:
    """One change of one expression.

    Attributes:
        file: Module, without suffix.
        function: The function or class that holds the expression; empty at the top level.
        line: Where the expression begins.
        before: The expression.
        after: What stands in its place.
    """

    file: str
    function: str
    line: int
    before: str
    after: str

    @property
    def key(self) -> str:
        """By this, ``equivalent.json`` names it."""
        return f"{self.file}.{self.function}: {self.before} -> {self.after}"


def places(tree: ast.AST) -> Iterator[ast.expr]:
    """Expressions that compute something: no docstrings, types, decorators, messages of errors or logs."""
    skipped: set[int] = set()
    for node in ast.walk(tree):
        if id(node) in skipped:
            skipped |= {id(child) for child in ast.iter_child_nodes(node)}
            continue
        apart: list[ast.AST | None] = []
        if isinstance(node, ast.FunctionDef):
            apart = [*node.decorator_list, node.returns, node.args]
        elif isinstance(node, ast.AnnAssign):
            apart = [node.annotation]
        elif isinstance(node, (ast.Raise, ast.JoinedStr)) or (
            isinstance(node, (ast.Subscript, ast.BinOp)) and _is_type(node)
        ):
            apart = list(ast.iter_child_nodes(node))
        skipped |= {id(part) for part in apart if part is not None}
        if isinstance(node, ast.expr) and id(node) not in skipped and not (apart and isinstance(node, ast.JoinedStr)):
            yield node


def _is_type(node: ast.expr) -> bool:
    return ast.unparse(node).startswith(("dict[", "tuple[", "list[", "npt.", "Callable[", "Iterator["))


def mutations_of(node: ast.expr) -> Iterator[ast.expr]:
    """The expressions that may stand in the place of one."""
    if isinstance(node, ast.Compare):
        for k, operator in enumerate(node.ops):
            other = copy.deepcopy(node)
            other.ops[k] = FLIPPED[type(operator)]()
            yield other
    elif isinstance(node, ast.Constant) and type(node.value) is int and abs(node.value) < 1000:
        yield from (ast.Constant(node.value + more) for more in (1, -1))
    elif isinstance(node, ast.BinOp) and isinstance(node.op, DROPPING):
        yield from (node.left, node.right if not isinstance(node.op, ast.Sub) else node.left)
        if type(node.op) in EXCHANGED:
            yield ast.BinOp(node.left, EXCHANGED[type(node.op)](), node.right)
    elif isinstance(node, ast.BoolOp):
        for k in range(len(node.values)):
            rest = [value for j, value in enumerate(node.values) if j != k]
            yield rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
        yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.Invert)):
        yield node.operand
    elif isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in DROPPED_CALLS and len(node.args) == 2 and not node.keywords:
            yield from node.args
        if name in EXCHANGED_CALLS:
            other = copy.deepcopy(node)
            if isinstance(other.func, ast.Attribute):
                other.func.attr = EXCHANGED_CALLS[name]
            else:
                other.func = ast.Name(EXCHANGED_CALLS[name])
            yield other


def source_of(file: str) -> Path:
    """Where a file is: in ``agnncert``, unless its name begins with another package."""
    package = file.partition("/")[0]
    if package.startswith("agnncert_"):
        return PROJECT / "packages" / package.replace("_", "-") / "src" / f"{file}.py"
    return SOURCE / f"{file}.py"


def module_of(file: str) -> str:
    """The name of the module of a file."""
    name = file.replace("/", ".")
    return name if name.startswith("agnncert_") else f"agnncert.{name}"


def all_mutations(file: str) -> dict[Mutation, str]:
    """Every mutation of a file, each with the text of the mutated file; of equal ones in one line the last."""
    return dict(each_mutation(file))


def each_mutation(file: str) -> list[tuple[Mutation, str]]:
    """As :func:`all_mutations`, with all that are equal."""
    text = source_of(file).read_text(encoding="utf-8")
    starts = [0]
    for line in text.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = []
    tree = ast.parse(text)
    holders = [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.ClassDef))]
    for node in places(tree):  # expressions inside of texts are left out: their places are not known
        begin, end = starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset
        for other in mutations_of(node):
            lines = "\n" * (node.end_lineno - node.lineno)  # so that all functions begin where they began
            changed = text.encode()[:begin] + f"({ast.unparse(other)}{lines})".encode() + text.encode()[end:]
            function = ".".join(one.name for one in holders if one.lineno <= node.lineno <= one.end_lineno)
            made = Mutation(file, function, node.lineno, ast.unparse(node), ast.unparse(other))
            if function and ast.dump(node) != ast.dump(other):
                found.append((made, changed.decode()))
    return found


def functions_by_file() -> dict[str, list[FunctionType]]:
    """All functions of the mutated files that were imported."""
    found: dict[str, list[FunctionType]] = {str(source_of(file)): [] for file in TESTS}
    for thing in gc.get_objects():
        if type(thing) is FunctionType and thing.__code__.co_filename in found:  # isinstance may run code of the object
            found[thing.__code__.co_filename].append(thing)
    return found


def give(functions: Sequence[FunctionType], path: str, text: str) -> None:
    """Gives functions of a file the instructions of another text of the same lines."""
    codes = {(code.co_qualname, code.co_firstlineno): code for code in _nested(compile(text, path, "exec"))}
    for function in functions:
        code = codes.get((function.__code__.co_qualname, function.__code__.co_firstlineno))
        if code and len(code.co_freevars) == len(function.__closure__ or ()):
            function.__code__ = code


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested(constant)


def present_places(mutation: Mutation) -> list[tuple[Mutation, str]]:
    """Where a mutation of an older text can be made now, with the mutated texts.

    The same expression of the same function, unless ``present.json`` says what took its place since; if it is there
    several times, all of them.
    """
    moved = json.loads(PRESENT.read_text(encoding="utf-8"))
    wanted = moved.get(mutation.key) or [asdict(mutation) | {"in": ""}]
    found = []
    for one in wanted:
        lines = source_of(one["file"]).read_text(encoding="utf-8").splitlines()
        found += [
            (made, text) for made, text in each_mutation(one["file"])
            if (made.function, made.before, made.after) == (one["function"], one["before"], one["after"])
            and one["in"] in lines[made.line - 1]
        ]  # fmt: skip
    return list({text: (made, text) for made, text in found}.values())


def rows_of(seed: int) -> Path:
    """The file with the outcomes of one seed."""
    return RESULTS / (f"random-mutations-seed-{seed}.jsonl" if seed else "random-mutations.jsonl")


class Judge:
    """A plugin of pytest that runs the collected tests once for each mutation, in place of once."""

    def __init__(
        self,
        rows: Path,
        drawn: dict[Mutation, str],
        known: dict[Mutation, str],
        passed: set[Mutation],
        times: dict[str, float],
        seconds: int,
        stop: float,
    ):
        self.rows = rows
        self.drawn, self.known, self.times, self.seconds = drawn, known, times, seconds
        self.passed, self.stop = passed, stop
        self.failed: str | None = None
        self.functions: dict[str, list[FunctionType]] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Notes which test failed first."""
        if report.failed and self.failed is None:
            self.failed = report.nodeid

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Judges what has no outcome yet; then runs the tests that noticed something on the code as it is."""
        this = commit()
        self.load_functions()
        for few in (True, False):
            for number, (mutation, text) in enumerate(self.drawn.items()):
                if mutation in self.known or (few and mutation in self.passed):
                    continue
                if _spent() > self.stop:
                    return True
                begin = time.monotonic()
                outcome = self.run(self.items(session, mutation.file, few), mutation.file, text)
                print(f"{number:4} {time.monotonic() - begin:5.0f} s  {mutation.key}  =>  {outcome}", flush=True)
                if outcome == "survived" and few:
                    outcome = QUICK
                    self.passed.add(mutation)
                else:
                    self.known[mutation] = outcome
                with self.rows.open("a") as rows:
                    rows.write(json.dumps({"mutation": asdict(mutation), "outcome": outcome, "commit": this}) + "\n")
        noticed = [item for item in session.items if item.nodeid in {self.known[one] for one in self.drawn}]
        file = next(iter(TESTS))
        outcome = self.run(noticed, file, source_of(file).read_text(encoding="utf-8"))
        print(f"the {len(noticed)} tests that noticed something, on the code as it is: {outcome}", flush=True)
        assert outcome == "survived"
        return True

    def load_functions(self) -> None:
        """Imports what is mutated and finds its functions, once for all processes that are forked."""
        for file in dict.fromkeys(mutation.file for mutation in self.drawn):
            # Some are loaded by name when first needed, which is too late to be mutated.
            importlib.import_module(module_of(file))
        self.functions = functions_by_file()

    def items(self, session: pytest.Session, file: str, few: bool) -> list[pytest.Item]:
        """The tests of a file, those that noticed most mutations of it first, then the quick ones."""
        noticed = Counter(outcome for mutation, outcome in self.known.items() if mutation.file == file)
        of_file = [item for item in session.items if item.nodeid.startswith(tuple(TESTS[file]))]
        of_file.sort(key=lambda item: (-noticed[item.nodeid], self.times.get(item.nodeid, 1.0)))
        if not few:
            return of_file
        spent = itertools.accumulate(self.times.get(item.nodeid, 1.0) for item in of_file)
        return [item for item, seconds in zip(of_file, spent, strict=True) if seconds <= FEW_SECONDS]

    def run(self, items: Sequence[pytest.Item], file: str, text: str) -> str:
        """Which of some tests fails first, in a process of its own, if a file has another text; else "survived"."""
        with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
            note = Path(folder) / "failed"
            child = os.fork()
            if child == 0:
                try:
                    self._run(items, file, text, note)
                finally:
                    os._exit(0)
            _, ended = os.waitpid(child, 0)
            if os.WIFSIGNALED(ended):
                slow = os.WTERMSIG(ended) in (signal.SIGXCPU, signal.SIGKILL)
                return "too slow" if slow else f"ended by signal {os.WTERMSIG(ended)}"
            return note.read_text(encoding="utf-8") if note.is_file() else "ended early"

    def _run(self, items: Sequence[pytest.Item], file: str, text: str, note: Path) -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (self.seconds, self.seconds + 5))
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1)
        os.dup2(silent, 2)
        path = str(source_of(file))
        give(self.functions[path], path, text)
        for item, after in zip(items, [*items[1:], None], strict=True):
            item.ihook.pytest_runtest_protocol(item=item, nextitem=after)
            if self.failed is not None:
                break
        note.write_text(self.failed or "survived", encoding="utf-8")


class Again(Judge):
    """Judges open mutations by all tests of their file, on the present text."""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """A mutation is noticed if it is wherever it can be made."""
        this = commit()
        self.load_functions()
        for mutation in self.drawn:
            places = present_places(mutation)
            seen = [(made, self.run(self.items(session, made.file, False), made.file, text)) for made, text in places]
            for made, outcome in seen:
                print(f"{mutation.key} at {made.file}:{made.line}  =>  {outcome}", flush=True)
            unnoticed = not seen or any(outcome == "survived" for _, outcome in seen)
            row = {
                "mutation": asdict(mutation), "outcome": "survived" if unnoticed else seen[0][1], "commit": this,
                "present": [asdict(made) for made, _ in seen],
            }  # fmt: skip
            with self.rows.open("a") as rows:
                rows.write(json.dumps(row) + "\n")
        return True


def write_table(seed: int, only: Sequence[str] = ("",)) -> None:
    """Writes the survivors, and which tests noticed the others; the last row of a mutation counts."""
    rows = [json.loads(line) for line in rows_of(seed).read_text(encoding="utf-8").splitlines()]
    judged = {Mutation(**row["mutation"]): row for row in rows}
    arguments = json.loads(ARGUMENTS.read_text(encoding="utf-8")) if ARGUMENTS.is_file() else {}
    survivors = [mutation for mutation, row in judged.items() if row["outcome"] in ("survived", QUICK)]
    argued = [mutation for mutation in survivors if mutation.key in arguments]
    opened = [one for one in survivors if judged[one]["outcome"] == QUICK and one not in argued]
    by_hand = [one for one, row in judged.items() if row.get("by_hand") and one not in survivors]
    later = [one for one, row in judged.items() if "present" in row and one not in [*survivors, *by_hand]]
    commits = Counter(row["commit"] for row in judged.values())
    lines = [
        "# Mutations drawn at random",
        "",
        f"`python -m tests.soundness.mutation.random_mutations --number {len(judged)} --seed {seed}{_said(only)}`: one comparison flipped, one whole number off by one,",
        "one term dropped, or one sign, `and`, minimum or maximum exchanged. Lines are those of the commit that was mutated first. Commits: "
        + ", ".join(f"{commit} ({count} mutations)" for commit, count in commits.items())
        + ".",
        "",
        f"{len(judged)} mutations: {len(judged) - len(survivors)} noticed by a test, {len(argued)} equivalent to the code as it is, "
        f"{len(survivors) - len(argued) - len(opened)} survived, {len(opened)} judged by the quick tests of their file alone, "
        "which notice nothing: **open**.",
        "",
        f"{len(later)} of those that are noticed passed a few seconds of quick tests at first. They were judged again on a "
        "later text (`--open`) by all tests listed for their file, until one failed; a default in the body of a class by "
        "editing the file. Where the expression had been rewritten, a mutation of like effect was made of what took its "
        'place, as `tests/soundness/mutation/present.json` says; "now" names it. Every place was noticed. What is called equivalent passed the quick tests and was argued.'
        + _said_of(len(by_hand)),
        "",
        "| survivor | line | code | mutation | survived because |",
        "|---|---|---|---|---|",
    ]
    for m in sorted(survivors, key=lambda m: (m.file, m.line)):
        why = arguments.get(m.key, "**open**" if m in opened else "**no test notices it**")
        lines.append(f"| `{m.file}.{m.function}` | {m.line} | {_cell(m.before)} | {_cell(m.after)} | {why} |")
    lines += ["", "| noticed | line | code | mutation | by, among others |", "|---|---|---|---|---|"]
    for m in sorted(judged.keys() - set(survivors), key=lambda m: (m.file, m.line, m.after)):
        test = judged[m]["outcome"].split("[")[0].replace("tests/", "", 1)
        now = "; ".join(
            f"`{one['function']}`, line {one['line']}: {_cell(one['before'])} to {_cell(one['after'])}"
            for one in judged[m].get("present", [])
            if (one["function"], one["before"]) != (m.function, m.before)
        )
        by = f"`{test}`" + (f"; now {now}" if now else "")
        lines.append(f"| `{m.file}.{m.function}` | {m.line} | {_cell(m.before)} | {_cell(m.after)} | {by} |")
    rows_of(seed).with_suffix(".md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _said_of(by_hand: int) -> str:
    if not by_hand:
        return ""
    return (
        f" {by_hand} more passed all tests listed for their file at first. They were planted again by hand, in the same way "
        "on a later text, and the test that is named failed."
    )


def _said(only: Sequence[str]) -> str:
    return "" if list(only) == [""] else f" --only {' '.join(only)}"


def _cell(code: str) -> str:
    return "`" + code.replace("|", "\\|") + "`"


def _spent() -> float:
    """Processor time of this process and its children, in seconds."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def commit() -> str:
    """The commit whose text is mutated."""
    words = ["git", "describe", "--always", "--dirty", "--abbrev=10", "--exclude=*"]
    return subprocess.run(words, cwd=PROJECT, capture_output=True, text=True, check=True).stdout.strip()


def main() -> None:
    """Draws mutations, judges those without a row, and writes the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--number", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--seconds", type=int, default=300, help="processor time that the tests of one mutation may use"
    )
    parser.add_argument(
        "--stop", type=float, default=math.inf, help="go on in another run after so much processor time"
    )
    parser.add_argument(
        "--times", type=Path, help="JSON file with the seconds that tests take, so that quick ones are first"
    )
    parser.add_argument("--again", action="store_true", help="judge those that survived once more")
    parser.add_argument(
        "--open",
        action="store_true",
        help="judge those that only quick tests judged, by all tests, on the present text",
    )
    parser.add_argument("--only", nargs="*", default=[""], help="draw from files whose name begins so")
    given = parser.parse_args()
    file_of_rows = rows_of(given.seed)
    rows = [json.loads(line) for line in file_of_rows.read_text().splitlines()] if file_of_rows.is_file() else []
    known = {Mutation(**row["mutation"]): row["outcome"] for row in rows}
    known_order = list(known)
    passed = {one for one, outcome in known.items() if outcome == QUICK}
    known = {one: outcome for one, outcome in known.items() if outcome != QUICK}
    times = json.loads(given.times.read_text()) if given.times else {}
    options = ["-q", "-s", "-p", "no:cacheprovider", "-p", "no:xdist"]
    os.chdir(PROJECT)
    if given.open:
        arguments = json.loads(ARGUMENTS.read_text(encoding="utf-8"))
        functions = {one for one in passed if not one.function.split(".")[-1][0].isupper()}  # no bodies of classes
        opened = dict.fromkeys((one for one in known_order if one in functions and one.key not in arguments), "")
        files = dict.fromkeys(test for one in opened for made, _ in present_places(one) for test in TESTS[made.file])
        again = Again(file_of_rows, opened, known, passed, times, given.seconds, given.stop)
        pytest.main([*options, *files], plugins=[again])
        write_table(given.seed, given.only)
        return
    texts: dict[Mutation, str] = {}
    for file in TESTS:
        if file.startswith(tuple(given.only)):
            texts |= all_mutations(file)
    drawn = random.Random(given.seed).sample(list(texts), given.number)
    files = dict.fromkeys(place for one in drawn for place in TESTS[one.file])
    if given.again:
        known = {one: outcome for one, outcome in known.items() if outcome != "survived"}
    judge = Judge(file_of_rows, {one: texts[one] for one in drawn}, known, passed, times, given.seconds, given.stop)
    pytest.main([*options, *files], plugins=[judge])
    if known.keys() >= set(drawn):
        write_table(given.seed, given.only)


if __name__ == "__main__":
    main()
