"""The proofs in Coq: they compile, rest on no axiom, and nothing is admitted."""

import math
import re
import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from agnncert.certificates.budget import Budget
from agnncert.certificates.file import read_contents
from agnncert.contest.form import Effect
from agnncert.contest.kinds import tiers
from agnncert.contest.kinds.theorems import edge_centric
from agnncert.errors import SettingsError
from agnncert.isolated.evidence import IsolatedEvidence
from agnncert.verdict import Verdict
from agnncert.verifier.recount_isolated import Views
from formal import compare, contests, extracted
from formal.compare import (
    PAIRS,
    STACKED,
    Comparison,
    compare_files,
    falsify,
    prove,
    random_budgets,
    random_record,
    random_votes,
    small_budgets,
)
from tests.support.joint_worlds import random_joint
from tests.support.label_cases import factored
from tests.support.paths import CORPUS, GOLDEN, PROJECT
from tests.support.theorems import THEOREMS
from tests.support.trained_apart import random_record as random_apart

pytestmark = pytest.mark.slow  # whichever comes first compiles the proofs, which takes minutes

FORMAL = PROJECT / "formal"
MAKE = ["flock", ".lock", "make", "-j2"]  # tests run side by side, and one at a time may build
without_coq = pytest.mark.skipif(
    shutil.which("coqc") is None or shutil.which("ocamlfind") is None,
    reason="coqc or ocamlfind is missing (Debian: apt-get install coq ocaml-findlib)",
)


@without_coq
def test_every_proof_is_accepted_and_rests_on_no_axiom():
    done = subprocess.run([*MAKE, "all"], cwd=FORMAL, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    lines = (FORMAL / "assumptions.txt").read_text().splitlines()
    assert lines
    assert all(line.endswith(": Closed under the global context") for line in lines)


@pytest.fixture(scope="module")
def checker():
    """The program, built; without Coq there is none."""
    if shutil.which("coqc") is None or shutil.which("ocamlfind") is None:
        pytest.skip("coqc or ocamlfind is missing (Debian: apt-get install coq ocaml-findlib)")
    subprocess.run([*MAKE, "agnncheck"], cwd=FORMAL, capture_output=True, check=True)
    return extracted.find_checker()


@pytest.mark.parametrize("theorem", [*THEOREMS, *STACKED, *PAIRS])
def test_checker_and_verifier_agree_on_random_votes(theorem, checker):
    rng, found = np.random.default_rng(7), Comparison()
    for _ in range(4):
        record, budgets = random_record(rng, theorem, 40), random_budgets(rng, 12)
        stated, broken = prove(record, budgets)
        found.add(theorem, record, stated, budgets, broken)
        found.add(f"{theorem}, falsified", record, falsify(rng, stated), budgets)
    assert found.answers > 4000
    assert not found.differ


def require_that_both_derive_the_same(record, budgets):
    """Requires that the checker accepts all that the prover derives from votes, and refuses everything else."""
    label, radius = record.label_and_radius()
    holds = np.array([record.holds(budget) for budget in budgets])
    stated = {"label": label, "radius": radius, "holds": holds}
    answer = extracted.ask_checker(record, stated, budgets, excluded=[True] * len(budgets))
    assert not any(answer.wrong.values())
    assert not any(answer.wrong_budgets)
    assert answer.broken == (~holds).sum(axis=1).tolist()
    assert answer.excluded == tuple(tuple((~record.possible(budget)).sum(axis=0).tolist()) for budget in budgets)
    n = record.num_targets
    for other_radius in (radius + 1, np.where(radius < 0, 0, radius - 1)):
        false = {"label": (label + 1) % record.num_classes, "radius": other_radius, "holds": ~holds}
        answer = extracted.ask_checker(record, false, budgets)
        assert answer.wrong["label"] == answer.wrong["radius"] == n
        assert answer.wrong_budgets == [n] * len(budgets)


def test_checker_and_prover_agree_on_random_votes_of_training_labels(checker):
    rng = np.random.default_rng(17)
    budgets = [Budget(flip_labels=number) for number in (0, 1, 2, 5, math.inf)] + [Budget(add_edges=1)]
    seen = set()
    for round_ in range(12):
        n, m, classes = int(rng.integers(1, 8)), int(rng.integers(1, 25)), int(rng.integers(2, 5))
        record = factored(rng, n, m, classes=classes)
        if round_ % 3 == 0:  # weights without factors
            weights = rng.integers(-127, 128, (n, m)).astype(np.int8)
            none = {"left": np.zeros((n, 0), dtype=np.int16), "right": np.zeros((m, 0), dtype=np.int16)}
            record = replace(record, weights=weights, **none)
        require_that_both_derive_the_same(record, budgets)
        seen |= set(record.label_and_radius()[1].tolist())
    assert {-1, 0, 1} <= seen


def test_checker_and_prover_agree_on_random_votes_of_labels_and_neighbours(checker):
    rng = np.random.default_rng(27)
    amounts = [
        (0, 0, 0),
        (1, 0, 0),
        (0, 1, 0),
        (0, 0, 2),
        (2, 1, 1),
        (1, 0, math.inf),
        (math.inf, 1, 0),
        (0, math.inf, 0),
    ]
    budgets = [Budget(flip_labels=f, add_edges=s, delete_edges=d, change_edges=5) for f, s, d in amounts]
    budgets.append(Budget(delete_nodes=1))
    seen = set()
    for round_ in range(12):
        record = random_joint(rng, **({"neighbour_steps": 0} if round_ % 4 == 0 else {}))
        require_that_both_derive_the_same(record, budgets)
        seen |= set(record.label_and_radius()[1].tolist())
    assert {-1, 0, 1} <= seen
    assert max(seen) > 3


def test_checker_and_verifier_agree_on_stored_certificates(checker):
    found, files = Comparison(), sorted(GOLDEN.glob("*.cert"))
    lines = list(compare_files(files, np.random.default_rng(0), found))
    assert len(lines) > 20
    assert all(line.endswith("accepted") for line in lines)
    assert not found.differ


def test_a_comparison_sees_a_difference(checker):
    rng, found = np.random.default_rng(1), Comparison()
    record, budgets = random_votes(rng, "node-centric/node", 40), random_budgets(rng, 12)
    stated, broken = prove(record, budgets)
    found.add("as it is", record, stated, budgets, broken)
    assert not found.differ
    found.add("one target more", record, stated, budgets, [number + 1 for number in broken])
    assert found.differ == len(budgets)


def test_verify_says_which_derivations_agree(checker):
    verdict = extracted.verify_extracted(GOLDEN / "node-centric-node.cert")
    assert verdict.holds
    assert any(line.endswith("all three agree") for line in verdict.checked)
    stacked = extracted.verify_extracted(GOLDEN / "stacked-two-levels.cert")
    assert any(line.endswith("all three agree") for line in stacked.checked)
    pairs = extracted.verify_extracted(GOLDEN / "pairs-both.cert")
    assert any(line.endswith("all three agree") for line in pairs.checked)
    samples = extracted.verify_extracted(GOLDEN / "rs.cert")
    assert samples.holds
    assert any("random samples" in line for line in samples.checked)


@pytest.mark.parametrize("theorem", [*THEOREMS, *STACKED, *PAIRS])
def test_prover_recount_and_checker_exclude_the_same_labels(theorem, checker):
    rng, found = np.random.default_rng(11), Comparison()
    for size in (1, 25):
        counts, budgets = random_record(rng, theorem, size), [*random_budgets(rng, 6), *small_budgets(rng, 10)]
        found.add_exclusions(theorem, counts, prove(counts, [])[0], budgets)
    assert found.exclusions >= 32
    assert not found.differ


def test_a_comparison_sees_that_the_recount_refuses_the_prover(checker):
    rng, found = np.random.default_rng(1), Comparison()
    record, budgets = random_votes(rng, "node-centric/node", 40), random_budgets(rng, 12)
    stated, broken = prove(record, budgets)
    found.add("a radius too small", record, stated | {"radius": stated["radius"] - 1}, budgets, broken)
    assert found.differ == 1


def test_a_comparison_of_excluded_labels_sees_a_difference(checker, monkeypatch):
    rng, found = np.random.default_rng(1), Comparison()
    counts, budgets = random_votes(rng, "node-centric/node", 40), small_budgets(rng, 4)
    proved, again = compare.excluded_by_two(counts, budgets[0])
    monkeypatch.setattr(compare, "excluded_by_two", lambda *_: (proved, (again[0] + 1, *again[1:])))
    found.add_exclusions("one more by the recount", counts, prove(counts, [])[0], budgets)
    assert found.differ == len(budgets)


EXCLUDING = sorted(CORPUS.glob("true/*-excluded.cert"))


@pytest.mark.parametrize("file", EXCLUDING, ids=lambda file: file.stem)
def test_the_checker_refuses_altered_numbers_of_excluded_targets(file, checker):
    contents = read_contents(file)
    by_recount = Verdict(True, (), ("what the recount checks",))
    verdict = extracted.add_extracted(by_recount, contents)
    assert verdict.holds
    assert not verdict.reasons
    assert verdict.checked[-1].endswith("all three agree")
    for at, each in enumerate(contents.excluded):
        for k in range(len(each)):
            for change in (-1, 1):
                numbers = (*each[:k], each[k] + change, *each[k + 1 :])
                altered = (*contents.excluded[:at], numbers, *contents.excluded[at + 1 :])
                verdict = extracted.add_extracted(by_recount, replace(contents, excluded=altered))
                assert not verdict.holds
                (wrong,) = verdict.reasons
                assert f"the extracted checker derives {each} targets that {contents.budgets[at]} gives no" in wrong
                assert verdict.checked[-1].endswith("the extracted checker refuses its numbers")
    short = replace(contents, excluded=tuple(each[:-1] for each in contents.excluded))
    wrong = extracted.add_extracted(by_recount, short).reasons
    assert len(wrong) == sum(map(bool, contents.excluded))  # nothing is derived for a part of the classes


def test_a_false_exclusion_of_the_corpus_is_refused_by_recount_and_checker(checker):
    files = [f for f in CORPUS.glob("false/excluded-*.cert") if not f.stem.endswith("--rs")]
    assert len(files) >= 4
    for file in files:
        verdict = extracted.verify_extracted(file)
        assert verdict.checked[-1].endswith("recount and extracted checker both refuse the file"), file.name
        assert any(text.startswith("the extracted checker derives (") for text in verdict.reasons), file.name


def test_without_the_checker_the_error_says_how_to_build_it(monkeypatch):
    monkeypatch.setattr(extracted, "__file__", "/elsewhere/extracted.py")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(SettingsError, match="make formal"):
        extracted.verify_extracted(GOLDEN / "node-centric-node.cert")


def test_the_command_prints_the_verdict_and_its_exit_status_says_it(checker, tmp_path):
    damaged = tmp_path / "damaged.cert"
    damaged.write_bytes(b"no certificate")
    expected = {
        GOLDEN / "node-centric-node.cert": (0, "all three agree"),
        sorted(CORPUS.glob("false/excluded-*node*.cert"))[0]: (1, "recount and extracted checker both refuse the file"),
        damaged: (1, "The certificate is refused."),
    }
    for file, (status, said) in expected.items():
        done = subprocess.run(
            [sys.executable, "-m", "formal.extracted", file], cwd=PROJECT, capture_output=True, text=True
        )
        assert (done.returncode, said in done.stdout) == (status, True), (file, done.stdout, done.stderr)
    done = subprocess.run(
        [sys.executable, "-m", "formal.extracted", tmp_path / "none.cert"], cwd=PROJECT, capture_output=True, text=True
    )
    assert (done.returncode, "there is no file" in done.stderr) == (2, True)


def test_nothing_is_admitted_and_every_statement_is_listed():
    sources = {path.stem: path.read_text() for path in FORMAL.glob("*.v")}
    for name, text in sources.items():
        assert not re.search(r"\b(Admitted|admit|Axiom|Parameter|Conjecture)\b", text), name
    both = sources["Assumptions"] + sources["AssumptionsReals"]
    listed = set(re.findall(r"Print Assumptions (\w+)\.", both))
    stated = {theorem for text in sources.values() for theorem in re.findall(r"^ *Theorem (\w+)", text, re.MULTILINE)}
    assert stated <= listed, f"not in formal/Assumptions.v: {sorted(stated - listed)}"


def test_each_theorem_of_the_page_names_statements_that_exist():
    sources = "".join(path.read_text() for path in FORMAL.glob("*.v"))
    final = set(re.findall(r"Print Assumptions (\w+)\.", sources))
    defined = set(re.findall(r"\b(?:Definition|Fixpoint|Record|Inductive) (\w+)", sources)) | {
        "edges_in_all"
    }  # a field
    page = "".join((PROJECT / "docs" / name).read_text() for name in ("proofs.md", "rounding.md"))
    sections = re.split(r"^#+ ", page, flags=re.MULTILINE)[1:]
    named = {
        text.splitlines()[0]: re.search(r"^\*In Coq:\*.*?(?=\n\n)", text, re.MULTILINE | re.DOTALL) for text in sections
    }
    numbers = [int(number) for number in re.findall(r"^#+ Theorem (\d+)", page, re.MULTILINE)]
    assert numbers == [*range(1, 7), *range(8, 24)]  # Theorem 7 has no heading of its own
    unproved = {text.splitlines()[0] for text in sections if "*Not in Coq:*" in text}
    assert unproved == {"Theorem 20: a rate with a confidence"}
    for heading, found in named.items():
        names = set(re.findall(r"`([a-z_0-9]+)`", found[0])) if found else set()
        assert names <= final | defined, sorted(names - final - defined)
        assert bool(names & final) != (heading in unproved) or not heading.startswith("Theorem"), heading


def test_every_definition_and_final_statement_says_what_it_is_on_the_page():
    both = (FORMAL / "Assumptions.v").read_text() + (FORMAL / "AssumptionsReals.v").read_text()
    final = set(re.findall(r"Print Assumptions (\w+)\.", both))
    seen = set()
    for path in FORMAL.glob("*.v"):
        before = ""
        for line in path.read_text().splitlines():
            stated = re.match(r"\s*(Definition|Fixpoint|Record|Inductive|Theorem|Corollary|Lemma) (\w+)", line)
            if stated and (stated[1] != "Lemma" or stated[2] in final):
                assert before.endswith("*)") or "(*" in line, f"{path.name}: {stated[2]} has no comment"
                seen.add(stated[2])
            before = line.rstrip()
    assert final <= seen


def test_checker_and_recount_agree_on_models_that_were_trained_apart(checker):
    rng = np.random.default_rng(5)
    rests = [{}, {"delete_edges": 1}, {"inject_nodes": 1}, {"delete_nodes": math.inf}, {"target_features": True}]
    budgets = [Budget(poison_graphs=number, **rest) for number in (0, 1, 2, math.inf) for rest in rests]
    for _ in range(6):
        record = random_apart(rng, 30, num_groups=6, num_models=9)
        evidence, views = IsolatedEvidence(record), Views(record)
        label, radius = evidence.label_and_radius()
        holds = np.array([views.holds(budget) for budget in budgets])
        stated = {"label": label, "radius": radius, "new_neighbours": np.full(30, -1.0), "holds": holds}
        answer = extracted.ask_checker(record, stated, budgets, excluded=[True] * len(budgets))
        assert not any(answer.wrong.values())
        assert not any(answer.wrong_budgets)
        assert answer.broken == [views.broken(budget, answers) for budget, answers in zip(budgets, holds, strict=True)]
        possible = [views.possible(budget) for budget in budgets]
        assert answer.excluded == tuple(tuple((~each).sum(axis=0).tolist()) for each in possible)
        for name, wrong in (("label", label + 1), ("radius", radius + 1), ("radius", radius - 1)):
            falsified = extracted.ask_checker(record, stated | {name: wrong}, budgets)
            assert falsified.wrong[name] == 30
        falsified = extracted.ask_checker(record, stated | {"holds": ~holds}, budgets)
        assert falsified.wrong_budgets == [30] * len(budgets)


@pytest.mark.parametrize("kind", contests.KINDS)
def test_a_contest_says_what_prover_recount_and_checker_say(kind, checker):
    found, _ = contests.compare_unit(kind, 77, 800)
    assert found.answers >= 800
    assert not found.differ
    assert found.same > 10 * found.says_more


def test_a_comparison_with_contests_sees_votes_that_give_too_little(checker, monkeypatch):
    monkeypatch.setattr(tiers, "becomes_any", lambda classes, _=1: Effect((0,) * classes, (0,) * classes))
    found, _ = contests.compare_unit("node-centric/node", 77, 800)
    assert found.differ > 10


def test_a_comparison_with_contests_sees_a_count_that_is_forgotten(checker, monkeypatch):
    forgotten = {tiers.ANY: ("add_edges",), tiers.OF_REACHED: ()}
    monkeypatch.setattr(edge_centric.THEOREMS["graph"], "amounts", lambda record: forgotten)
    found, _ = contests.compare_unit("edge-centric/graph", 77, 8000)  # many draws: few hold votes that this changes
    assert found.differ > 10


def test_rows_of_a_comparison_are_not_computed_again(tmp_path):
    done = [{"kind": "labels", "seed": "0"}, {"kind": "isolated", "seed": "1"}]
    left = list(contests.units(2 * contests.UNIT, ("labels", "isolated"), done))
    assert left == [("isolated", 0), ("labels", 1)]
