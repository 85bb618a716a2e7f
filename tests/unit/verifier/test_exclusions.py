"""What a file states about labels that targets cannot get: derived again by the verifier, and refused where it is false."""

import copy
import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import agnncert as ac
from agnncert.certificates.file import read_contents, write_contents
from agnncert.errors import CertificateError
from agnncert.verdict import verify
from agnncert.verifier import exclusions
from tests.soundness.forger.forging import scratch_folder
from tests.soundness.forger.hostile import open_up, sealed
from tests.support.certificates import certificate_of, random_evidence
from tests.support.mutations import edited
from tests.support.paths import GOLDEN
from tests.support.theorems import THEOREMS

FILES = sorted(GOLDEN.glob("*.cert"))
BUDGETS = (
    ac.Budget(add_edges=1),
    ac.Budget(delete_edges=2, change_features=1),
    ac.Budget(inject_nodes=1, edges_per_injected=2),
)


def of_rule(theorem: str) -> ac.Certificate:
    return certificate_of(
        random_evidence(np.random.default_rng(5), theorem, num_targets=30, num_groups=12, unstable=0.05)
    )


@cache
def stating_exclusions(theorem: str) -> bytes:
    """The file of a certificate of this rule. It is the prover's work, so it does not depend on a broken verifier."""
    with scratch_folder() as folder:
        of_rule(theorem).save(Path(folder) / "stated.cert", BUDGETS, exclusions=True)
        return (Path(folder) / "stated.cert").read_bytes()


def altered(file: Path, alter) -> Path:
    header, arrays = open_up(file.read_bytes())
    header = copy.deepcopy(header)
    alter(header["statements"])
    other = file.with_name("altered.cert")
    other.write_bytes(sealed(header, arrays))
    return other


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_who_cannot_get_a_label_is_stated_and_verified(file, tmp_path) -> None:
    certificate = ac.load_certificate(file)
    assert read_contents(file).excluded == ()
    write_contents(tmp_path / "once.cert", read_contents(file))  # with the premises that files did not state at first
    write_contents(tmp_path / "twice.cert", read_contents(tmp_path / "once.cert"))
    assert (tmp_path / "twice.cert").read_bytes() == (tmp_path / "once.cert").read_bytes()
    assert b"excluded" not in (tmp_path / "twice.cert").read_bytes()  # a file without it stays without it
    certificate.save(tmp_path / "stated.cert", BUDGETS, exclusions=True)
    stated = read_contents(tmp_path / "stated.cert").excluded
    classes = range(certificate.counts.shape[1])
    assert stated == tuple(tuple(certificate.excluded(k, b).sum() for k in classes) for b in BUDGETS)
    verdict = verify(tmp_path / "stated.cert")
    assert verdict, verdict
    assert "how many targets cannot get which label" in verdict.checked
    write_contents(tmp_path / "again.cert", read_contents(tmp_path / "stated.cert"))
    assert (tmp_path / "again.cert").read_bytes() == (tmp_path / "stated.cert").read_bytes()


def false_numbers_are_refused(
    folder: Path, rules=("node-centric/node", "per-neighbour/node", "gnncert-e/graph")
) -> None:
    """One more or one less, of any class and any budget."""
    for theorem in rules:
        (folder / "stated.cert").write_bytes(stating_exclusions(theorem))
        for budget in range(len(BUDGETS)):
            for k in range(3):
                for step in (-1, 1):

                    def alter(statements, budget=budget, k=k, step=step):
                        statements[budget]["excluded"][k] += step

                    verdict = verify(altered(folder / "stated.cert", alter))
                    assert not verdict, (theorem, budget, k, step)
                    assert "gives no label" in verdict.reasons[0]


def test_a_false_number_is_refused(tmp_path) -> None:
    assert sum(sum(map(sum, _stated(theorem, tmp_path))) for theorem in THEOREMS) > 0
    false_numbers_are_refused(tmp_path, tuple(THEOREMS))


def _stated(theorem: str, folder: Path) -> tuple[tuple[int, ...], ...]:
    (folder / "one.cert").write_bytes(stating_exclusions(theorem))
    assert verify(folder / "one.cert")
    return read_contents(folder / "one.cert").excluded


@pytest.mark.parametrize("value", [[], [1, 2], [1, 2, 3, 4], [1, 2, True], [1, 2, 3.0], "123", None, {}, [[1], 2, 3]])
def test_something_else_than_a_number_for_each_class_is_refused(value, tmp_path) -> None:
    (tmp_path / "stated.cert").write_bytes(stating_exclusions("edge-centric/node"))
    verdict = verify(altered(tmp_path / "stated.cert", lambda statements: statements[1].update(excluded=value)))
    assert not verdict
    assert not any("Error" in reason for reason in verdict.reasons), verdict


def test_a_statement_may_be_missing_for_some_budgets(tmp_path) -> None:
    (tmp_path / "stated.cert").write_bytes(stating_exclusions("edge-centric/node"))
    assert verify(altered(tmp_path / "stated.cert", lambda statements: statements[1].pop("excluded")))
    assert not verify(altered(tmp_path / "stated.cert", lambda statements: statements[0].update(more=[1, 2, 3])))


def test_not_more_is_stated_than_is_read(tmp_path) -> None:
    many = [ac.Budget(add_edges=k) for k in range(11)]
    with pytest.raises(CertificateError, match="at most of 10 budgets"):
        of_rule("edge-centric/node").save(tmp_path / "many.cert", many, exclusions=True)
    of_rule("edge-centric/node").save(tmp_path / "many.cert", many[:10], exclusions=True)
    assert verify(tmp_path / "many.cert")
    longer = altered(tmp_path / "many.cert", lambda statements: statements[0].update(excluded=[1] * 101))
    assert "takes long" in verify(longer).reasons[0]


COUNTED = "list(numbers) != (~checker.possible(budget)).sum(axis=0).tolist()"
MISTAKES = {
    "numbers are not compared": (COUNTED, "len(numbers) != 3"),
    "one class is enough": (COUNTED, "numbers[0] != int((~checker.possible(budget))[:, 0].sum())"),
    "more may be stated": (COUNTED, "any(((~checker.possible(budget)).sum(axis=0) > numbers).tolist())"),
    "possible ones are counted": ("(~checker.possible(budget))", "checker.possible(budget)"),
    "another budget is asked": ("checker.possible(budget)", "checker.possible(contents.budgets[0])"),
    "the first budget is enough": ("strict=True):", "strict=True):\n        if budget != contents.budgets[0]:\n            break"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_broken_verifier_turns_the_test_red(mistake, tmp_path, monkeypatch) -> None:
    function = exclusions.wrong_exclusions
    monkeypatch.setattr(function, "__code__", edited(function, *MISTAKES[mistake]).__code__)
    with pytest.raises(AssertionError):
        test_a_false_number_is_refused(tmp_path)


def test_show_says_it_in_words(tmp_path, capsys) -> None:
    from agnncert.cli import main

    certificate = of_rule("node-centric/node")
    certificate.save(tmp_path / "stated.cert", BUDGETS[:1], exclusions=True)
    assert main(["show", str(tmp_path / "stated.cert")]) == 0
    others = int((certificate.label != 1).sum())
    number = int(certificate.excluded(1, BUDGETS[0]).sum())
    shown = capsys.readouterr().out
    assert "Excluded, Budget(add_edges=1): " in shown
    assert f"{number} of the {others} that are not label 1 cannot become label 1" in shown
    assert main(["show", str(tmp_path / "stated.cert"), "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["excluded"]) == 1
