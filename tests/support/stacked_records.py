"""Random certificates of stacked votes, of every kind: sums, means, gates, edge values and two levels."""

from dataclasses import replace

import numpy as np

from agnncert.proving.certificate import Certificate, load_certificate
from agnncert.stacked.evidence import Leads, StackedEvidence
from agnncert.stacked.record import STEPS
from tests.support.paths import GOLDEN

KINDS = ("sum", "gated", "mean", "mean by edge", "two levels", "no votes")


def random_stacked(rng: np.random.Generator, kind: str, num_targets: int = 15, num_classes: int = 3) -> StackedEvidence:
    """Evidence whose priors are close, so that labels hold against some budgets and not against others."""
    shape = (num_targets, num_classes)
    degree = rng.poisson(5, num_targets)
    m = int(degree.sum())
    shares = rng.dirichlet(np.full(num_classes + 1, 0.3), m)[:, :num_classes]
    whole = rng.random(m) < 0.3
    shares[whole] = np.eye(num_classes + 1)[rng.integers(0, num_classes + 1, int(whole.sum()))][:, :num_classes]
    table = np.floor(shares * STEPS).astype(np.int32)
    gate = np.full(shape, 0 if kind == "no votes" else STEPS, dtype=np.int64)
    pseudo, pseudo_votes = 0, ()
    if kind == "gated":
        gate = rng.integers(0, 2 * STEPS, shape)
    if kind.startswith("mean"):
        gate = np.repeat(rng.integers(STEPS, 4 * STEPS, (num_targets, 1)), num_classes, axis=1)
        pseudo = int(rng.choice([STEPS // 2, STEPS, 3 * STEPS]))
        pseudo_votes = tuple(rng.integers(0, pseudo // num_classes, num_classes).tolist())
    scale = STEPS if kind.startswith("mean") else 4 * STEPS
    prior = rng.integers(-scale, scale, shape)
    if rng.random() < 0.3:
        prior = prior // STEPS * STEPS  # ties
    nodes = rng.multinomial(m, np.full(8, 1 / 8))
    evidence = StackedEvidence(
        prior=prior,
        gate=gate,
        indptr=np.concatenate([[0], np.cumsum(degree)]),
        which=np.arange(m),
        table=table,
        targets_per_node=-np.sort(-nodes[nodes > 0]).astype(np.int32),
        gated=kind == "gated" or kind.startswith("mean"),
        by_edge=kind == "mean by edge",
        pseudo=pseudo,
        pseudo_votes=pseudo_votes,
        second=int(rng.integers(STEPS // 20, STEPS // 2)) if kind == "two levels" else 0,
        slack=int(rng.choice([1, 2, 3] if kind == "two levels" else [1, 3, STEPS // 4])),
    )
    return _on_the_edge(rng, evidence) if kind == "two levels" else evidence


def _on_the_edge(rng: np.random.Generator, evidence: StackedEvidence) -> StackedEvidence:
    """Moves priors so that one or two nodes leave labels a lead of exactly nothing, where one step decides."""
    leads = Leads(evidence)
    left = np.stack([leads.lead_second(k, int(rng.integers(1, 3))) for k in range(evidence.num_classes)])
    left[leads.label, np.arange(evidence.num_targets)] = np.iinfo(np.int64).max
    prior = evidence.prior.copy()
    prior[np.arange(evidence.num_targets), leads.label] -= left.min(axis=0) // STEPS
    return replace(evidence, prior=prior)


def stacked_certificate(evidence: StackedEvidence, **given: object) -> Certificate:
    """A certificate with this evidence. Its claim is that of a stored one."""
    claim = load_certificate(GOLDEN / "stacked-sum.cert").claim
    return Certificate(claim, evidence, 3 * np.arange(evidence.num_targets) + 7, **given)  # type: ignore[arg-type]
