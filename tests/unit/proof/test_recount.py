"""The recount agrees with the library on everything, in code of its own."""

import ast
import itertools
import math
from pathlib import Path

import numpy as np
import pytest

from agnncert import verifier
from agnncert.proof import check, recount, recount_samples
from agnncert.proof.recount import limits, sort_ballots
from agnncert.proof.rules import RULES
from agnncert.verifier import verify

from ...support.certificates import certificate_of, random_budget, random_evidence


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


def test_targets_are_recounted_in_blocks_with_the_same_verdict(rng, tmp_path, monkeypatch):
    cert = certificate_of(random_evidence(rng, "edge-centric/node", num_targets=40))
    cert.save(tmp_path / "a.cert")
    monkeypatch.setattr(recount, "BALLOTS_AT_ONCE", 50)  # four targets at a time
    assert verify(tmp_path / "a.cert").holds


def test_the_recount_shares_no_code_with_the_rules():
    """What is imported through others, the contracts in pyproject.toml forbid."""
    for module in (recount, recount_samples, check, verifier):
        tree = ast.parse(Path(module.__file__).read_text())
        named = {node.module for node in tree.body if isinstance(node, ast.ImportFrom)}
        assert not named & {f"agnncert.proof.{name}" for name in ("theorems", "evidence", "certificate", "samples")}
        calls = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        if module is recount:
            assert not calls & {"label_and_radius", "holds_each", "tally", "counts"}
