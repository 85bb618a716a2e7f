"""Breaks prover, verifier, recomputation and rounding guard at random places, and asks which tests notice.

    python -m tests.mutation.random_mutations --number 100 --seed 0

By hand, not part of the test suite: it takes about an hour on one core. Each mutation is one comparison flipped, one
whole number off by one, or one term dropped. This process loads what is slow to import, and forks for each mutation: the
child imports the mutated text in the place of the file, and runs the tests that belong to the file until one fails. A
child may use so many seconds of processor time, so that a busy machine changes no outcome. Outcomes are rows of
``experiments/results/random-mutations.jsonl``, and a mutation that has one is not tried again. Survivors are listed in
``random-mutations.md`` beside it; those for which ``equivalent.json`` has an argument are equivalent: no test could tell
them apart.
"""

import argparse
import ast
import copy
import importlib
import importlib.util
import json
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest

PROJECT = Path(__file__).resolve().parents[2]
SOURCE = PROJECT / "src" / "agnncert"
ROWS = PROJECT / "experiments" / "results" / "random-mutations.jsonl"
TABLE = ROWS.with_suffix(".md")
ARGUMENTS = Path(__file__).parent / "equivalent.json"
SLOW_IMPORTS = (
    "numpy",
    "scipy.stats",
    "scipy.optimize",
    "safetensors.torch",
    "torch",
    "torch_geometric.nn",
    "torch_geometric.data",
)

# One round of tests after the other is run until a test fails: what is quick and close to the file comes first.
OF_FILES = "tests/golden tests/corpus"
OF_BALLOTS = (
    "tests/unit/proving/test_theorems.py tests/unit/proving/test_evidence.py tests/unit/proving/test_certificate.py",
    f"{OF_FILES} tests/unit/verifier/test_recount.py",
    "tests/laws/test_votes.py tests/laws/test_own_groups.py tests/laws/test_collective.py",
    "tests/laws/test_exhaustive.py",
)
OF_SAMPLES = (
    "tests/unit/proving/test_bounds.py tests/unit/proving/test_deletions.py tests/unit/proving/test_flips.py "
    "tests/unit/proving/test_samples.py",
    f"{OF_FILES} tests/unit/verifier/test_recount_samples.py",
    "tests/unit/baselines/test_smoothing.py tests/unit/baselines/test_interception.py",
)
OF_VERIFIER = (
    "tests/unit/verifier",
    f"{OF_FILES} tests/unit/certificates tests/unit/proving/test_evidence.py tests/unit/test_verdict.py",
    "tests/forger/test_sample_forgeries.py tests/forger/test_forgeries.py",
)
OF_STACKED = (
    "tests/unit/test_stacked.py",
    f"{OF_FILES} tests/laws/test_stacked_votes.py",
    "tests/laws/test_stacked_graphs.py",
)
OF_RECOMPUTATION = (
    "tests/unit/test_recompute.py tests/corpus",
    "tests/golden tests/mutation/test_structure_broken_on_purpose.py tests/unit/test_verdict.py",
    "tests/unit/test_certifier.py tests/forger/test_honest.py tests/forger/test_sample_forgeries.py "
    "tests/forger/test_forgeries.py",
)
OF_GUARD = (
    "tests/unit/engine/test_rounding.py",
    "tests/unit/engine/test_recheck.py tests/golden",
    "tests/oracle/test_engines.py",
)
OF_COVER = ("tests/unit/engine/test_cover.py", "tests/golden tests/corpus tests/laws/test_exhaustive.py")
OF_MEASURES = ("tests/unit/proving/test_measures.py", "tests/unit/training/test_threshold.py")
TESTS = {
    "proving/theorems": OF_BALLOTS,
    "proving/per_neighbour": OF_BALLOTS,
    "proving/evidence": OF_BALLOTS,
    "proving/bounds": OF_SAMPLES,
    "proving/noise": OF_SAMPLES,
    "proving/samples": OF_SAMPLES,
    "proving/measures": OF_MEASURES,
    "proving/stacked": OF_STACKED,
    "certificates/votes": OF_VERIFIER,
    "verifier/check": OF_VERIFIER,
    "verifier/recount": OF_VERIFIER,
    "verifier/recount_per_neighbour": OF_VERIFIER,
    "verifier/recount_samples": OF_VERIFIER,
    "verifier/recount_stacked": OF_STACKED,
    "recompute": OF_RECOMPUTATION,
    "verdict": OF_RECOMPUTATION,
    "engine/rounding": OF_GUARD,
    "engine/cover": OF_COVER,
}
FLIPPED = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
DROPPING = (ast.Add, ast.Sub, ast.BitAnd, ast.BitOr, ast.BitXor, ast.Mult)
DROPPED_CALLS = ("minimum", "maximum", "min", "max")


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
    elif isinstance(node, ast.BoolOp):
        for k in range(len(node.values)):
            rest = [value for j, value in enumerate(node.values) if j != k]
            yield rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.Invert)):
        yield node.operand
    elif isinstance(node, ast.Call) and len(node.args) == 2 and not node.keywords:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if name in DROPPED_CALLS:
            yield from node.args


def all_mutations(file: str) -> dict[Mutation, str]:
    """Every mutation of a file, each with the text of the mutated file."""
    text = (SOURCE / f"{file}.py").read_text(encoding="utf-8")
    starts = [0]
    for line in text.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = {}
    tree = ast.parse(text)
    holders = [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.ClassDef))]
    for node in places(tree):  # expressions inside of texts are left out: their places are not known
        begin, end = starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset
        for other in mutations_of(node):
            changed = text.encode()[:begin] + f"({ast.unparse(other)})".encode() + text.encode()[end:]
            function = ".".join(one.name for one in holders if one.lineno <= node.lineno <= one.end_lineno)
            made = Mutation(file, function, node.lineno, ast.unparse(node), ast.unparse(other))
            if ast.dump(node) != ast.dump(other):
                found[made] = changed.decode()
    return found


class Mutated(SourceFileLoader):
    """Loads one module from another text; beside it, finds that module for the import system."""

    def __init__(self, file: str, text: str):
        super().__init__("agnncert." + file.replace("/", "."), str(SOURCE / f"{file}.py"))
        self.text = text

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """This loader, if it is asked for the mutated module."""
        return importlib.util.spec_from_file_location(name, self.path, loader=self) if name == self.name else None

    def get_code(self, fullname: str):
        """The mutated text, compiled; nothing is read from a cache, and nothing written to it."""
        return compile(self.text, self.path, "exec")


class FirstFailure:
    """Notes in a file which test failed first."""

    def __init__(self, place: Path):
        self.place = place

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Called by pytest after each part of each test."""
        if report.failed:
            self.place.write_text(report.nodeid, encoding="utf-8")


def run_tests(tests: str, loader: Mutated, note: Path, seconds: int) -> int:
    """In a child process: runs tests with another text in the place of one module; pytest's exit status."""
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
    os.chdir(PROJECT)
    said = os.open(note.with_suffix(".out"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(said, 1)
    os.dup2(said, 2)
    sys.meta_path.insert(0, loader)
    options = [
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "-W",
        "ignore::pytest.PytestAssertRewriteWarning",
    ]
    return int(pytest.main([*options, *tests.split()], plugins=[FirstFailure(note)]))


def in_child(tests: str, loader: Mutated, seconds: int) -> str:
    """Which test fails first, in a process of its own; "survived" if none does."""
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
        note = Path(folder) / "failed"
        child = os.fork()
        if child == 0:
            status = 70
            try:
                status = run_tests(tests, loader, note, seconds)
            finally:
                os._exit(status)
        _, ended = os.waitpid(child, 0)
        if os.WIFSIGNALED(ended):
            limited = os.WTERMSIG(ended) in (signal.SIGXCPU, signal.SIGKILL)
            return f"too slow in {tests}" if limited else f"ended by signal {os.WTERMSIG(ended)}"
        if os.WEXITSTATUS(ended) == 0:
            return "survived"
        return note.read_text(encoding="utf-8") if note.is_file() else f"{tests} cannot even be read"


def judged(file: str, text: str, seconds: int) -> str:
    """Which test notices that a file has another text; "survived" if none does."""
    outcomes = (in_child(tests, Mutated(file, text), seconds) for tests in TESTS[file])
    return next((outcome for outcome in outcomes if outcome != "survived"), "survived")


def write_table(outcomes: dict[Mutation, str], seed: int) -> None:
    """Writes the survivors, and by how many the others were noticed."""
    arguments = json.loads(ARGUMENTS.read_text(encoding="utf-8")) if ARGUMENTS.is_file() else {}
    survivors = [mutation for mutation, outcome in outcomes.items() if outcome == "survived"]
    argued = [mutation for mutation in survivors if mutation.key in arguments]
    lines = [
        "# Mutations drawn at random",
        "",
        f"`python -m tests.mutation.random_mutations --number {len(outcomes)} --seed {seed}`: one comparison flipped, one whole number off by one, or",
        "one term dropped, in prover, verifier, recomputation and rounding guard.",
        "",
        f"{len(outcomes)} mutations: {len(outcomes) - len(survivors)} noticed by a test, {len(argued)} equivalent to the code as it is, "
        f"{len(survivors) - len(argued)} survived.",
        "",
        "| file | line | code | mutation | survived because |",
        "|---|---|---|---|---|",
    ]
    for m in sorted(survivors, key=lambda m: (m.file, m.line)):
        before, after = (text.replace("|", "\\|") for text in (m.before, m.after))
        lines.append(
            f"| `{m.file}` | {m.line} | `{before}` | `{after}` | {arguments.get(m.key, '**no test notices it**')} |"
        )
    lines += ["", "| file | drawn | survived |", "|---|---|---|"]
    for file in TESTS:
        of_file = [mutation for mutation in outcomes if mutation.file == file]
        lines.append(f"| `{file}` | {len(of_file)} | {sum(mutation in survivors for mutation in of_file)} |")
    TABLE.parent.mkdir(exist_ok=True)
    TABLE.write_text("\n".join(lines) + "\n", encoding="utf-8")


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
    parser.add_argument("--again", action="store_true", help="judge those that survived once more")
    given = parser.parse_args()
    rows = [json.loads(line) for line in ROWS.read_text().splitlines()] if ROWS.is_file() else []
    known = {Mutation(**row["mutation"]): row["outcome"] for row in rows}
    texts: dict[Mutation, str] = {}
    for file in TESTS:
        texts |= all_mutations(file)
    drawn = random.Random(given.seed).sample(list(texts), given.number)
    for name in SLOW_IMPORTS:
        importlib.import_module(name)
    plain: dict[tuple[str, ...], str] = {}  # tests that fail anyway tell nothing
    for number, mutation in enumerate(drawn):
        if mutation in known and not (given.again and known[mutation] == "survived"):
            continue
        tests = TESTS[mutation.file]
        if tests not in plain:
            plain[tests] = judged(mutation.file, (SOURCE / f"{mutation.file}.py").read_text(), given.seconds)
            print(f"{mutation.file} as it is: {plain[tests]}", flush=True)
        if plain[tests] != "survived":
            sys.exit(f"without any mutation: {plain[tests]}")
        begin = time.monotonic()
        known[mutation] = judged(mutation.file, texts[mutation], given.seconds)
        with ROWS.open("a") as file_of_rows:
            row = {"mutation": asdict(mutation), "outcome": known[mutation], "commit": commit()}
            file_of_rows.write(json.dumps(row) + "\n")
        print(f"{number:4} {time.monotonic() - begin:5.0f} s  {mutation.key}  =>  {known[mutation]}", flush=True)
    write_table({mutation: known[mutation] for mutation in drawn}, given.seed)


if __name__ == "__main__":
    main()
