"""Certificates made up for the tests of the page: random, but shaped like real ones."""

from typing import Any

import numpy as np

from agnncert.certificates.claim import PREMISES, Claim, make_claim
from agnncert.certificates.votes import ABSTAIN, Votes, apply_voting_rule
from agnncert.certificates.voting_rule import VotingRule
from agnncert.divided.evidence import VoteEvidence
from agnncert.proving.certificate import Certificate
from agnncert_peers.flip_noise import FlipNoise
from agnncert_peers.samples import SampleEvidence
from tests.support.certificates import grid, printed_division
from tests.support.theorems import THEOREMS


def random_votes(
    rng: np.random.Generator,
    theorem: str,
    num_targets: int,
    num_groups: int,
    num_classes: int,
    mean_degree: float = 5.0,
    unstable: float = 0.0,
    no_edge: bool = False,
    doubtful: float | None = None,
) -> tuple[Votes, np.ndarray]:
    """Votes under ``rule`` and the degree of each target; labels lean to the class that also casts the default.

    With ``no-edge``, the default is the prediction without edges although the division would abstain; a share
    ``doubtful`` of the defaults is unstable, as many as of other votes when not given.
    """
    method, task = theorem.split("/")
    lists_all = method.startswith(("gnncert", "custom"))
    degree = rng.geometric(1 / (1 + mean_degree), num_targets) - (0 if task == "graph" else 1)
    listed = [_listed_groups(rng, num_groups, num_groups if lists_all else d) for d in degree]
    favourite = rng.integers(num_classes, size=num_targets)
    indptr = np.concatenate([[0], np.cumsum([len(groups) for groups in listed])]).astype(np.int64)
    group = np.concatenate([*listed, []]).astype(np.int32)
    owner = np.repeat(np.arange(num_targets), np.diff(indptr))
    follows = rng.random(len(group)) < rng.uniform(0.3, 0.98, num_targets)[owner]
    vote = np.where(follows, favourite[owner], rng.integers(num_classes, size=len(group)))
    votes_alone = no_edge or (task == "node" and method in ("edge-centric", "node-centric"))
    agrees = rng.random(num_targets) < 0.93
    default = np.where(agrees, favourite, rng.integers(num_classes, size=num_targets)) if votes_alone else ABSTAIN
    reached = np.ones(len(group), dtype=bool)
    if theorem == "gated/node":  # the first listed vote is often the target's own group
        starts = indptr[:-1][np.diff(indptr) > 0]
        reached[starts[rng.random(len(starts)) < 0.6]] = False
    if theorem == "node-centric/graph":
        reached = rng.random(len(group)) < 0.5
    votes = Votes(
        num_groups=num_groups,
        num_classes=num_classes,
        default=np.broadcast_to(default, num_targets).astype(np.int16),
        default_stable=rng.random(num_targets) >= (unstable if doubtful is None else doubtful),
        indptr=indptr.astype(np.int64),
        group=group,
        vote=vote.astype(np.int16),
        stable=rng.random(len(group)) >= unstable,
        reached=reached,
    )
    return votes, degree


def _listed_groups(rng: np.random.Generator, num_groups: int, degree: int) -> np.ndarray:
    return np.unique(rng.integers(num_groups, size=degree)) if degree < num_groups else np.arange(num_groups)


def random_cover(rng: np.random.Generator, votes: Votes, theorem: str) -> tuple[np.ndarray, np.ndarray]:
    """A reach table that fits the votes: rows that rise to the number of reached votes."""
    if not THEOREMS[theorem].uses_reach:
        return np.zeros(votes.num_targets + 1, dtype=np.int64), np.zeros(0, dtype=np.int32)
    rows = []
    for size in np.diff(votes.indptr):
        steps = rng.integers(1, 4, size=size)
        row = np.minimum(np.cumsum(steps), size)
        rows.append(np.unique(row))
    pointer = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    return pointer, np.concatenate([*rows, []]).astype(np.int32)


def random_evidence(
    rng: np.random.Generator,
    theorem: str,
    num_targets: int,
    num_groups: int,
    num_classes: int,
    ids: str = "node_id",
    voting_rule: VotingRule | None = None,
    **shape: Any,
) -> tuple[VoteEvidence, np.ndarray]:
    """Evidence under ``rule``, and the degree of each target."""
    voting_rule = (voting_rule or VotingRule()).under(theorem, num_classes)
    follows = bool(voting_rule.no_edge_prior)
    votes, degree = random_votes(rng, theorem, num_targets, num_groups, num_classes, no_edge=follows, **shape)
    votes, extra = apply_voting_rule(votes, voting_rule)
    pointer, reach = random_cover(rng, votes, theorem)
    parameters = {}
    if theorem.startswith("gnncert-en"):
        parameters = dict(zip(("edge_groups", "feature_groups"), grid(num_groups), strict=True))
    if theorem.startswith("custom"):
        parameters = {
            "add_edges": 1,
            "delete_edges": 2,
            "change_features": 3,
            "inject_nodes": 1,
            "edges_per_injected": 1,
        }
    if THEOREMS[theorem].one_way:
        extra["one_way"] = rng.random(len(votes.vote)) < 0.3
    if THEOREMS[theorem].targets_per_node:
        extra["targets_per_node"] = np.sort(rng.geometric(0.2, num_groups // 3)).astype(np.int32)[::-1].copy()
    return VoteEvidence(
        votes, theorem, pointer, reach, ids=ids, parameters=parameters, voting_rule=voting_rule, **extra
    ), degree


def made_up_certificate(
    rng: np.random.Generator,
    theorem: str,
    num_targets: int,
    num_groups: int,
    num_classes: int,
    target: np.ndarray | None = None,
    **shape: Any,
) -> tuple[Certificate, np.ndarray]:
    """A certificate under ``rule``, and the degree of each target."""
    evidence, degree = random_evidence(rng, theorem, num_targets, num_groups, num_classes, **shape)
    digests = {"graph": "0123456789abcdef" * 4, "model": "fedcba9876543210" * 4}
    claim = make_claim(evidence, printed_division(theorem, num_groups), tolerance=1e-6, digests=digests)
    ids = 3 * np.arange(num_targets) + 7 if target is None else target
    return Certificate(claim, evidence, ids), degree


def sampled_certificate(rng: np.random.Generator, num_targets: int, num_classes: int = 3) -> Certificate:
    """A certificate from random samples instead of a vote."""
    favourite = rng.integers(num_classes, size=num_targets)
    likely = np.full((num_targets, num_classes), 0.02)
    likely[np.arange(num_targets), favourite] = rng.uniform(0.5, 1, num_targets)
    likely /= likely.sum(axis=1, keepdims=True)
    selection, estimation = (np.array([rng.multinomial(n, p) for p in likely]) for n in (100, 1000))
    evidence = SampleEvidence("rs", FlipNoise(p_add=0.2, p_delete=0.2), selection, estimation, alpha=0.01)
    claim = Claim(
        task="node",
        method="rs",
        division="",
        num_groups=0,
        guarantee="probabilistic",
        unit="edges flipped at the target",
        covers=("edges at the target added or deleted",),
        assumes=(*PREMISES, "The model is used as it was certified."),
        not_proved=("Anything about injected nodes.",),
        alpha=0.01,
        alpha_scope="each target",
    )
    return Certificate(claim, evidence, np.arange(num_targets))
