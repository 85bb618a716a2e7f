"""Breaks prover, verifier, recomputation and rounding guard at random places, and asks which tests notice.

    python -m tests.mutation.random_mutations --number 100 --seed 0

By hand, not part of the test suite: it takes an hour or two. Each mutation is one comparison flipped, one whole number
off by one, or one term dropped. It is made in a copy of the library, and the tests that belong to the file are run one
stage after the other until one fails. Survivors are listed in ``experiments/results/random-mutations.md``; those for
which ``equivalent.json`` has an argument are equivalent: no test could tell them apart.
"""

import argparse
import ast
import copy
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
SOURCE = PROJECT / "src" / "agnncert"
TABLE = PROJECT / "experiments" / "results" / "random-mutations.md"
ARGUMENTS = Path(__file__).parent / "equivalent.json"

OF_PROVER = (
    "tests/golden tests/corpus -k still or true",
    "tests/unit/proving",
    "tests/unit/verifier tests/unit/baselines/test_smoothing.py",
    "tests/laws/test_votes.py tests/laws/test_own_groups.py tests/laws/test_collective.py tests/laws/test_exhaustive.py",
)
OF_VERIFIER = (
    "tests/corpus -k true or alone",
    "tests/unit/verifier",
    "tests/unit/certificates tests/unit/proving/test_evidence.py tests/unit/test_verdict.py",
    "tests/forger/test_honest.py tests/forger/test_forgeries.py tests/forger/test_sample_forgeries.py",
)
OF_STACKED = (
    "tests/golden tests/corpus -k still or true",
    "tests/unit/test_stacked.py",
    "tests/laws/test_stacked_votes.py tests/laws/test_stacked_graphs.py",
)
OF_RECOMPUTATION = (
    "tests/corpus",
    "tests/unit/test_recompute.py tests/golden tests/mutation/test_structure_broken_on_purpose.py",
    "tests/mutation/test_verifier_broken_on_purpose.py tests/unit/test_certifier.py",
    "tests/forger/test_honest.py tests/forger/test_forgeries.py tests/forger/test_sample_forgeries.py",
)
OF_GUARD = (
    "tests/unit/engine/test_rounding.py",
    "tests/unit/engine tests/golden",
    "tests/forger/test_honest.py tests/oracle/test_engines.py",
)
STAGES = {
    "proving/theorems": OF_PROVER,
    "proving/per_neighbour": OF_PROVER,
    "proving/evidence": OF_PROVER,
    "proving/bounds": OF_PROVER,
    "proving/noise": OF_PROVER,
    "proving/samples": OF_PROVER,
    "proving/stacked": OF_STACKED,
    "certificates/votes": OF_VERIFIER,
    "verifier/check": OF_VERIFIER,
    "verifier/recount": OF_VERIFIER,
    "verifier/recount_per_neighbour": OF_VERIFIER,
    "verifier/recount_samples": OF_VERIFIER,
    "verifier/recount_stacked": OF_STACKED,
    "recompute": OF_RECOMPUTATION,
    "engine/rounding": OF_GUARD,
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
        line: Where the expression begins.
        before: The expression.
        after: What stands in its place.
    """

    file: str
    line: int
    before: str
    after: str

    @property
    def key(self) -> str:
        """By this, ``equivalent.json`` names it."""
        return f"{self.file}: {self.before} -> {self.after}"


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
    for node in places(ast.parse(text)):  # expressions inside of texts are left out: their places are not known
        begin, end = starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset
        for other in mutations_of(node):
            changed = text.encode()[:begin] + f"({ast.unparse(other)})".encode() + text.encode()[end:]
            made = Mutation(file, node.lineno, ast.unparse(node), ast.unparse(other))
            if ast.dump(node) != ast.dump(other):
                found[made] = changed.decode()
    return found


def judged(mutation: Mutation, text: str, copied: Path, seconds: float) -> str:
    """Which stage of tests notices the mutation; "survived" if none does."""
    place = copied / "agnncert" / f"{mutation.file}.py"
    place.write_text(text, encoding="utf-8")
    paths = [str(copied), str(PROJECT), *(str(path) for path in sorted(PROJECT.glob("packages/*/src")))]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
    pytest = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider"]
    try:
        for stage in STAGES[mutation.file]:
            tests, _, chosen = stage.partition(" -k ")
            words = [*pytest, *tests.split(), *(["-k", chosen] if chosen else [])]
            try:
                done = subprocess.run(
                    words, cwd=PROJECT, env=environment, capture_output=True, text=True, check=False, timeout=seconds
                )
            except subprocess.TimeoutExpired:
                return f"too slow in {tests.split()[0]}"
            if done.returncode == 1:
                return next(
                    (line.split(" ")[1] for line in done.stdout.splitlines() if line.startswith("FAILED")), tests
                )
            if done.returncode != 0:
                return f"the tests cannot even be read: {tests.split()[0]}"
        return "survived"
    finally:
        shutil.copy(SOURCE / f"{mutation.file}.py", place)


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
    for file in STAGES:
        of_file = [mutation for mutation in outcomes if mutation.file == file]
        lines.append(f"| `{file}` | {len(of_file)} | {sum(mutation in survivors for mutation in of_file)} |")
    TABLE.parent.mkdir(exist_ok=True)
    TABLE.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    """Draws mutations, judges them and writes the table; what was judged before, by the same text, is kept."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--number", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=400, help="time limit of a stage")
    parser.add_argument("--known", type=Path, help="file with outcomes, read before and written after each mutation")
    given = parser.parse_args()
    texts: dict[Mutation, str] = {}
    for file in STAGES:
        texts |= all_mutations(file)
    drawn = random.Random(given.seed).sample(list(texts), given.number)
    known = json.loads(given.known.read_text()) if given.known and given.known.is_file() else {}
    outcomes: dict[Mutation, str] = {}
    with tempfile.TemporaryDirectory(prefix="mutations-") as folder:
        copied = Path(folder) / "src"
        shutil.copytree(SOURCE, copied / "agnncert")
        for file in {stages: file for file, stages in STAGES.items()}.values():  # tests that fail anyway tell nothing
            plain = judged(Mutation(file, 0, "", ""), (SOURCE / f"{file}.py").read_text(), copied, 3 * given.seconds)
            print(f"{file} as it is: {plain}", flush=True)
            if plain != "survived":
                sys.exit(f"without any mutation: {plain}")
        for number, mutation in enumerate(drawn):
            begin, name = time.monotonic(), json.dumps(asdict(mutation))
            outcomes[mutation] = known.get(name) or judged(mutation, texts[mutation], copied, given.seconds)
            known[name] = outcomes[mutation]
            if given.known:
                given.known.write_text(json.dumps(known, indent=1))
            print(f"{number:4} {time.monotonic() - begin:5.0f} s  {mutation.key}  =>  {outcomes[mutation]}", flush=True)
    write_table(outcomes, given.seed)


if __name__ == "__main__":
    main()
