"""Evidence made up at random, for every rule: not from any graph, but shaped like what engines produce."""

import numpy as np

from agnncert.proof.ballots import ABSTAIN, Votes
from agnncert.proof.budget import COUNTS, Budget
from agnncert.proof.certificate import Certificate
from agnncert.proof.claim import make_claim
from agnncert.proof.evidence import BallotEvidence
from agnncert.proof.rules import RULES

PRICES = {"add_edges": 1, "delete_edges": 2, "inject_nodes": 1, "edges_per_injected": 1, "change_features": 0}


def random_evidence(
    rng: np.random.Generator,
    rule: str,
    num_targets: int = 30,
    num_groups: int = 12,
    num_classes: int = 3,
    ids: str = "node_id",
    unstable: float = 0.05,
) -> BallotEvidence:
    """Evidence under a rule; labels lean to one class, so that something is certified."""
    all_listed = rule.startswith(("gnncert", "custom"))
    listed = rng.random((num_targets, num_groups)) < (1 if all_listed else rng.uniform(0, 0.6, (num_targets, 1)))
    lean = rng.integers(num_classes, size=num_targets)
    indptr = np.concatenate([[0], np.cumsum(listed.sum(axis=1))])
    owner, group = np.nonzero(listed)
    follows = rng.random(len(owner)) < rng.uniform(0.2, 1, num_targets)[owner]
    ballot = np.where(follows, lean[owner], rng.integers(ABSTAIN, num_classes, len(owner)))
    reached = np.ones(len(owner), dtype=bool)
    if rule == "node-centric/graph":
        reached = rng.random(len(owner)) < 0.6
    if rule == "gated/node":
        reached[indptr[:-1][listed.any(axis=1) & (rng.random(num_targets) < 0.6)]] = False
    edgeless = np.where(rng.random(num_targets) < 0.9, lean, rng.integers(num_classes, size=num_targets))
    votes = Votes(
        num_groups=num_groups,
        num_classes=num_classes,
        default=(
            edgeless if rule in ("edge-centric/node", "node-centric/node") else np.full(num_targets, ABSTAIN)
        ).astype(np.int16),
        default_stable=rng.random(num_targets) >= unstable,
        indptr=indptr,
        group=group.astype(np.int32),
        ballot=ballot.astype(np.int16),
        stable=rng.random(len(owner)) >= unstable,
        reached=reached,
    )
    rows = [np.unique(np.append(rng.integers(1, m + 1, m), m)) if m else [] for m in listed.sum(axis=1)]
    rows = rows if rule.startswith("edge-centric") else [[] for _ in rows]
    cover = np.concatenate([np.zeros(0), *rows]).astype(np.int32)
    parameters = dict(PRICES) if rule.startswith("custom") else {}
    if RULES[rule].parameters:
        parameters = dict(zip(("edge_groups", "feature_groups"), grid(num_groups), strict=True))
    return BallotEvidence(votes, rule, np.cumsum([0, *map(len, rows)]), cover, ids, parameters)


def grid(num_groups: int) -> tuple[int, int]:
    """The sides of a grid of so many groups."""
    rows = next(rows for rows in (3, 5, 2, 1) if num_groups % rows == 0)
    return rows, num_groups // rows


def printed_division(rule: str, num_groups: int) -> str:
    """What a division prints that goes with the rule."""
    name = rule.split("/")[0]
    if name == "custom":
        return "made up"
    sides = "x".join(map(str, grid(num_groups))) if name == "gnncert-en" else num_groups
    gated = ", gated features" if name == "gated" else ""
    return f"{name.replace('gated', 'node-centric')}(T={sides}, hash=md5, key=u64le{gated})"


def certificate_of(evidence: BallotEvidence, target=None, **known) -> Certificate:
    claim = make_claim(
        rule=evidence.rule,
        division=printed_division(evidence.rule, evidence.votes.num_groups),
        num_groups=evidence.votes.num_groups,
        ids=evidence.ids,
        tolerance=1e-6,
        digests={"graph": "01" * 32, "model": "23" * 32},
        parameters=evidence.parameters,
        notes=("made up for a test",),
    )
    return Certificate(claim, evidence, np.arange(evidence.num_targets) * 3 + 7 if target is None else target, **known)


def random_budget(rng: np.random.Generator) -> Budget:
    """Mostly zeros, some small numbers, sometimes no limit."""
    amounts = {name: float(rng.choice([0, 0, 0, 0, 1, 2, 4, np.inf])) for name in COUNTS}
    return Budget(**amounts, target_features=bool(rng.random() < 0.2))
