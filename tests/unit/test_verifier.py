"""The verifier counts again in code of its own, and agrees with the library on everything."""

import ast
import dataclasses
import itertools
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from agnncert import verifier
from agnncert.errors import SettingsError
from agnncert.proof import recount
from agnncert.proof.recount import limits, sort_ballots
from agnncert.proof.rules import RULES
from agnncert.verifier import Verdict, verify

from ..support.certificates import certificate_of, random_budget, random_evidence


@pytest.fixture
def rng():
    return np.random.default_rng(5)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("ids", ["node_id", "row"])
def test_the_recount_agrees_with_the_library_on_every_answer(rule, ids, rng):
    proof = random_evidence(rng, rule, num_targets=60, ids=ids, unstable=0.1)
    label, radius = proof.label_and_radius()
    (piles,) = sort_ballots(proof)
    assert piles.label.tolist() == label.tolist()
    assert piles.radius().tolist() == radius.tolist()
    held = 0
    for _ in range(60):
        budget = random_budget(rng)
        answer = proof.holds(budget)
        assert piles.holds(limits(piles, budget)).tolist() == answer.tolist(), budget
        held += answer.sum()
    assert held > 20


def test_the_recount_finds_the_same_worst_attack_as_trying_everything(rng):
    """Bends suffice: against all splits of the moved ballots over the tiers."""
    proof = random_evidence(rng, "node-centric/graph", num_targets=40, num_groups=8)
    (piles,) = sort_ballots(proof)
    for _ in range(30):
        unlisted, middle, inner = (float(rng.choice([0, 1, 2, 5, math.inf])) for _ in range(3))
        n = proof.num_targets
        bound = recount.Limits(
            np.full(n, unlisted + middle + inner),
            np.full(n, unlisted + middle),
            np.full(n, unlisted),
            np.ones(n, dtype=bool),
        )
        assert piles.holds(bound).tolist() == [withstands_all_splits(piles, j, bound) for j in range(n)]


def withstands_all_splits(piles, j: int, bound) -> bool:
    label = int(piles.label[j])
    for k in range(piles.lead.shape[1]):
        gains = [
            sorted([2] * two + [1] * (size - two - same), reverse=True)
            for two, same, size in zip(
                piles.for_class[j, :, label], piles.for_class[j, :, k], piles.size[j], strict=True
            )
        ]
        for moved in itertools.product(*[range(size + 1) for size in piles.size[j]]):
            allowed = (
                sum(moved) <= bound.all[j] and moved[1] + moved[2] <= bound.beyond[j] and moved[2] <= bound.unlisted[j]
            )
            gain = sum(sum(tier[:m]) for tier, m in zip(gains, moved, strict=True))
            if k != label and allowed and gain > piles.lead[j, k]:
                return False
    return True


@pytest.mark.parametrize("rule", RULES)
def test_any_stated_budget_verifies(rule, rng, tmp_path):
    cert = certificate_of(random_evidence(rng, rule, num_targets=40))
    cert.save(tmp_path / "a.cert", budgets=[random_budget(rng) for _ in range(25)])
    verdict = verify(tmp_path / "a.cert")
    assert verdict.holds, verdict.reasons
    assert "25 stated budgets" in verdict.checked


def test_targets_are_recounted_in_blocks_with_the_same_verdict(rng, tmp_path, monkeypatch):
    cert = certificate_of(random_evidence(rng, "edge-centric/node", num_targets=40))
    cert.save(tmp_path / "a.cert")
    monkeypatch.setattr(recount, "BALLOTS_AT_ONCE", 50)  # four targets at a time
    assert verify(tmp_path / "a.cert").holds


def test_ballots_altered_by_someone_who_seals_again_do_not_support_the_statements(rng, tmp_path):
    """Handing the winner's ballots to a rival must show, whichever target it is."""
    proof = random_evidence(rng, "node-centric/node", num_targets=12)
    cert = certificate_of(proof)
    for target in range(12):
        listed = slice(proof.votes.indptr[target], proof.votes.indptr[target + 1])
        ballot, default = proof.votes.ballot.copy(), proof.votes.default.copy()
        rival = (cert.label[target] + 1) % 3
        ballot[listed] = default[target] = rival
        changed = dataclasses.replace(proof, votes=dataclasses.replace(proof.votes, ballot=ballot, default=default))
        forged = certificate_of(changed)
        for name in ("label", "radius"):
            object.__setattr__(forged, name, getattr(cert, name))
        forged.save(tmp_path / "a.cert")
        assert any("does not follow from the ballots" in reason for reason in verify(tmp_path / "a.cert").reasons)


def test_claims_of_another_version_are_checked_by_their_facts_only(rng, tmp_path):
    cert = certificate_of(random_evidence(rng, "gated/node"))
    older = dataclasses.replace(cert.claim, library_version="0.0.1", unit="one thing")
    dataclasses.replace(cert, claim=older).save(tmp_path / "a.cert")
    verdict = verify(tmp_path / "a.cert")
    assert verdict.holds
    assert "the facts of the claim" in verdict.checked
    wrong = dataclasses.replace(older, guarantee="probabilistic", alpha=0.5)
    dataclasses.replace(cert, claim=wrong).save(tmp_path / "a.cert")
    assert not verify(tmp_path / "a.cert").holds


def test_a_verdict_reads_well():
    bad = Verdict(False, ("the radius of 3 targets does not follow from the ballots",), ("the claim, word for word",))
    assert not bad
    assert str(bad).startswith("The certificate is refused.\n  wrong: the radius of 3")
    assert str(Verdict(True, (), ("this",))) == "The certificate holds.\n  checked: this"


def test_casting_ballots_again_needs_graph_and_model(rng, tmp_path):
    certificate_of(random_evidence(rng, "gated/node")).save(tmp_path / "a.cert")
    with pytest.raises(SettingsError, match="both the graph and the model"):
        verify(tmp_path / "a.cert", ballots=3)
    with pytest.raises(SettingsError, match="both the graph and the model"):
        verify(tmp_path / "a.cert", model=object())


def test_the_recount_shares_no_code_with_the_rules():
    for module in (recount, verifier):
        tree = ast.parse(Path(module.__file__).read_text())
        named = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        assert not named & {"agnncert.proof.theorems"}
        calls = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        if module is recount:
            assert not calls & {"label_and_radius", "holds_each", "tally", "counts"}


def test_verifying_a_file_never_imports_torch(rng, tmp_path):
    certificate_of(random_evidence(rng, "edge-centric/node")).save(tmp_path / "a.cert")
    program = (
        "import sys, agnncert\n"
        f"assert agnncert.verify({str(tmp_path / 'a.cert')!r}).holds\n"
        f"assert agnncert.verify({str(tmp_path / 'a.cert')!r}).holds\n"
        f"assert agnncert.load_certificate({str(tmp_path / 'a.cert')!r}).num_targets == 30\n"
        "heavy = [name for name in sys.modules if name.split('.')[0] in ('torch', 'torch_geometric', 'scipy', 'pandas')]\n"
        "assert not heavy, heavy\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
