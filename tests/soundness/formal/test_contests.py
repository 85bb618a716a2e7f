"""The checker of contests that is extracted from Coq accepts the statements that ``agnncert check`` accepts, and no others."""

import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

import agnncert as ac
from agnncert.contest import checker, search
from agnncert.contest.file import read_contest, write_contest
from agnncert.contest.form import EXTENSIONS, BrokenAtMost, Contest, Excludes, Statement, Stays
from agnncert.errors import SettingsError
from formal import extracted
from formal.extracted_contest import ask_contest
from tests.soundness.formal.test_formal import FORMAL, MAKE
from tests.support.contests import random_budget, random_contest, with_everything
from tests.support.paths import GOLDEN, PROJECT

pytestmark = pytest.mark.slow  # whichever comes first compiles the proofs, which takes minutes


@pytest.fixture(scope="module")
def program():
    """The extracted checker, built."""
    if shutil.which("coqc") is None or shutil.which("ocamlfind") is None:
        pytest.skip("coqc or ocamlfind is missing (Debian: apt-get install coq ocaml-findlib)")
    subprocess.run([*MAKE, "agnncheck"], cwd=FORMAL, capture_output=True, check=True)
    return extracted.find_checker()


def by_python(contest: Contest) -> list[bool]:
    """Which statements follow, as ``agnncert check`` says."""
    failed = {failure.statement for failure in checker.check(contest)}
    return [place not in failed for place in range(len(contest.statements))]


def some_prices(rng: np.random.Generator, contest: Contest, limits: int) -> tuple[int, ...]:
    return tuple(int(x) for x in rng.integers(0, 9, limits))


def any_statements(rng: np.random.Generator, contest: Contest) -> list[Statement]:
    """Statements with found prices, the same for other budgets and numbers, and some with prices at random."""
    limits, classes = len(contest.attackers["all"].limits), len(contest.classes)
    said: list[Statement | None] = []
    for place, target in enumerate(contest.targets):
        budget = random_budget(rng, contest)
        said.append(search.stays(contest, place, "all", budget))
        rows = tuple(() if k == target.label else some_prices(rng, contest, limits) for k in range(classes))
        said.append(Stays(place, "all", random_budget(rng, contest), rows))
        rival = int(rng.integers(classes))
        said.append(search.excludes(contest, place, "all", budget, rival))
        weights = tuple(0 if k == rival else int(rng.integers(0, 3)) for k in range(classes))
        if any(weights):
            row = some_prices(rng, contest, limits)
            said.append(Excludes(place, "all", random_budget(rng, contest), rival, weights, row))
    if "together" in contest.extensions:
        broken = search.broken_at_most(contest, "all", random_budget(rng, contest))
        assert broken is not None
        said += [broken, replace(broken, number=max(0, broken.number - 1))]
        said.append(replace(broken, budget=random_budget(rng, contest)))
    kept = [each for each in said if each is not None]
    moved = [replace(each, budget=random_budget(rng, contest)) for each in kept]
    return [*kept, *moved]


@pytest.mark.parametrize("seed", range(4))
def test_program_and_checker_accept_the_same_statements_of_random_contests(seed, program):
    rng, seen = np.random.default_rng(seed), Counter()
    for _ in range(40):
        extensions = tuple(name for name in EXTENSIONS if rng.random() < 0.4)
        contest = random_contest(rng, extensions)
        contest = replace(contest, statements=tuple(any_statements(rng, contest)))
        if checker.wrong_form(contest):
            contest = replace(contest, statements=())
        expected = by_python(contest)
        assert ask_contest(contest) == expected
        seen.update((type(said).__name__, follows) for said, follows in zip(contest.statements, expected, strict=True))
    for kind in (Stays, Excludes, BrokenAtMost):
        assert min(seen[kind.__name__, True], seen[kind.__name__, False]) > 5, seen


@pytest.mark.parametrize(
    "name", ["edge-centric-node", "gated-prior", "per-pair-node", "stacked-two-levels", "joint-any"]
)
def test_program_and_checker_agree_about_stored_certificates(name, program, tmp_path):
    ac.load_certificate(GOLDEN / f"{name}.cert").to_contest(tmp_path / "contest.json")
    contest = read_contest(tmp_path / "contest.json")
    answers = ask_contest(contest)
    assert all(answers)
    assert len(answers) == len(contest.statements) > 10


def test_a_form_that_contradicts_itself_proves_nothing(program):
    contest = with_everything()
    assert all(ask_contest(contest))
    one = contest.targets[0]
    for wrong in (
        replace(one, scores=(*one.scores[:-1], 99)),
        replace(one, label=1),
        replace(one, doubt=(-5, 0, 0)),
        replace(one, fixed=(13, 0, 0)),
    ):
        altered = replace(contest, targets=(wrong, contest.targets[1]), statements=contest.statements[:2])
        assert ask_contest(altered) == [False, False]


def test_a_number_that_is_too_large_stops_the_program(program):
    contest = with_everything()
    one = contest.targets[0]
    units = (replace(one.pools[0].units[0], count=2**50, adds=(2**50, 0, 0)),)
    huge = replace(one, pools=(replace(one.pools[0], units=units),))
    with pytest.raises(SettingsError, match="status 3"):
        ask_contest(replace(contest, targets=(huge, contest.targets[1])))


def test_the_command_says_what_follows(program, tmp_path):
    write_contest(tmp_path / "contest.json", with_everything())
    done = run(tmp_path / "contest.json")
    assert (done.returncode, done.stdout) == (0, "3 of 3 statements follow\n")
    contest = with_everything()
    broken = contest.statements[-1]
    assert isinstance(broken, BrokenAtMost)
    false = replace(contest, statements=(*contest.statements[:-1], replace(broken, number=0)))
    write_contest(tmp_path / "contest.json", false)
    done = run(tmp_path / "contest.json")
    assert done.returncode == 1
    assert done.stdout == "statement 2 does not follow\n2 of 3 statements follow\n"
    assert run(tmp_path / "none.json").returncode == 2


def run(file):
    """Runs the command on a file."""
    command = [sys.executable, "-m", "formal.extracted_contest", file]
    return subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False)
