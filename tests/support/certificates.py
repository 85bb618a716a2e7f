"""Evidence made up at random, for every rule: not from any graph, but shaped like what engines produce."""

import math
from dataclasses import replace

import numpy as np

from agnncert.certificates.budget import COUNTS, Budget
from agnncert.certificates.claim import make_claim
from agnncert.certificates.votes import ABSTAIN, Votes, apply_voting_rule
from agnncert.certificates.voting_rule import VotingRule
from agnncert.divided.evidence import VoteEvidence
from agnncert.proving.certificate import Certificate
from tests.support.theorems import THEOREMS

PRICES = {"add_edges": 1, "delete_edges": 2, "inject_nodes": 1, "edges_per_injected": 1, "change_features": 0}


def random_evidence(
    rng: np.random.Generator,
    theorem: str,
    num_targets: int = 30,
    num_groups: int = 12,
    num_classes: int = 3,
    ids: str = "node_id",
    unstable: float = 0.05,
    voting_rule: VotingRule | None = None,
) -> VoteEvidence:
    """Evidence under a rule; labels lean to one class, so that something is certified."""
    all_listed = theorem.startswith(("gnncert", "custom"))
    listed = rng.random((num_targets, num_groups)) < (1 if all_listed else rng.uniform(0, 0.6, (num_targets, 1)))
    lean = rng.integers(num_classes, size=num_targets)
    indptr = np.concatenate([[0], np.cumsum(listed.sum(axis=1))])
    owner, group = np.nonzero(listed)
    follows = rng.random(len(owner)) < rng.uniform(0.2, 1, num_targets)[owner]
    vote = np.where(follows, lean[owner], rng.integers(ABSTAIN, num_classes, len(owner)))
    reached = np.ones(len(owner), dtype=bool)
    if THEOREMS[theorem].per_neighbour:
        vote = np.maximum(vote, 0)  # a vote that is cast is for some class
    if theorem == "node-centric/graph":
        reached = rng.random(len(owner)) < 0.6
    if theorem == "gated/node":
        reached[indptr[:-1][listed.any(axis=1) & (rng.random(num_targets) < 0.6)]] = False
    no_edge = np.where(rng.random(num_targets) < 0.9, lean, rng.integers(num_classes, size=num_targets))
    votes = Votes(
        num_groups=num_groups,
        num_classes=num_classes,
        default=(
            no_edge if theorem in ("edge-centric/node", "node-centric/node") else np.full(num_targets, ABSTAIN)
        ).astype(np.int16),
        default_stable=rng.random(num_targets) >= unstable,
        indptr=indptr,
        group=group.astype(np.int32),
        vote=vote.astype(np.int16),
        stable=rng.random(len(owner)) >= unstable,
        reached=reached,
    )
    rows = [sorted({*rng.integers(1, m + 1, m).tolist(), m}) if m else [] for m in listed.sum(axis=1).tolist()]
    rows = rows if THEOREMS[theorem].uses_reach else [[] for _ in rows]
    reach = np.concatenate([np.zeros(0), *rows]).astype(np.int32)
    parameters = dict(PRICES) if theorem.startswith("custom") else {}
    if THEOREMS[theorem].parameters:
        parameters = dict(zip(("edge_groups", "feature_groups"), grid(num_groups), strict=True))
    extra = {}
    if THEOREMS[theorem].one_way:
        extra["one_way"] = rng.random(len(owner)) < 0.3
    if THEOREMS[theorem].targets_per_node:
        extra["targets_per_node"] = np.sort(rng.integers(1, 6, rng.integers(0, 9))).astype(np.int32)[::-1].copy()
    if voting_rule is None:
        return VoteEvidence(votes, theorem, np.cumsum([0, *map(len, rows)]), reach, ids, parameters, **extra)
    voting_rule = voting_rule.under(theorem, num_classes)
    if voting_rule.no_edge_prior:  # what engines cast where a target has no edge
        votes = replace(votes, default=no_edge.astype(np.int16))
    votes, prior = apply_voting_rule(votes, voting_rule)
    return VoteEvidence(
        votes, theorem, np.cumsum([0, *map(len, rows)]), reach, ids, parameters, voting_rule, **prior, **extra
    )


def random_vote(rng: np.random.Generator, theorem: str, num_classes: int = 3) -> VotingRule:
    """A vote that fits the rule; priors may be negative, and often tie."""
    options = [choice for choice in THEOREMS[theorem].empty if choice != "class"]
    if "class" in THEOREMS[theorem].empty:
        options += [int(rng.integers(num_classes))] * 2
    prior = rng.integers(-3, 6, num_classes).tolist()
    if THEOREMS[theorem].no_edge_prior and rng.random() < 0.6:
        prior = int(rng.integers(-3, 8))
    return VotingRule(options[rng.integers(len(options))], prior)


def grid(num_groups: int) -> tuple[int, int]:
    """The sides of a grid of this many groups."""
    rows = next(rows for rows in (3, 5, 2, 1) if num_groups % rows == 0)
    return rows, num_groups // rows


def printed_division(theorem: str, num_groups: int) -> str:
    """What a division prints that has the theorem."""
    name = theorem.split("/")[0]
    if name == "custom":
        return "made up"
    if name.startswith("per-"):
        return {"per-pair": "edge-centric(T=inf)", "per-neighbour": "node-centric(T=inf)"}[name]
    sides = "x".join(map(str, grid(num_groups))) if name == "gnncert-en" else num_groups
    gated = ", gated features" if name == "gated" else ""
    return f"{name.replace('gated', 'node-centric')}(T={sides}, hash=md5, key=u64le{gated})"


def certificate_of(evidence: VoteEvidence, target=None, **known) -> Certificate:
    claim = make_claim(
        evidence,
        printed_division(evidence.theorem, evidence.votes.num_groups),
        tolerance=1e-6,
        digests={"graph": "01" * 32, "model": "23" * 32},
        notes=("made up for a test",),
    )
    return Certificate(claim, evidence, np.arange(evidence.num_targets) * 3 + 7 if target is None else target, **known)


def random_budget(rng: np.random.Generator) -> Budget:
    """Mostly zeros, some small numbers, sometimes no limit."""
    sizes = (0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 4.0, math.inf)
    amounts = {name: sizes[rng.integers(len(sizes))] for name in COUNTS}
    return Budget(**amounts, target_features=bool(rng.random() < 0.2))
