"""What is counted for some targets at a time is what is counted for all of them at once."""

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

import agnncert as ac
from agnncert.append import changes as changes_of_rows
from agnncert.append.changes import AroundAccount, Change, NewRow, templates_of
from agnncert.append.evidence import as_trees
from agnncert.graphs.targets import prepared
from agnncert.labels import evidence as labels_evidence
from agnncert.labels import joint_evidence
from agnncert.labels import weights as labels_weights
from agnncert.pairs import model as pair_model
from agnncert.pairs.targets import choose_pairs
from agnncert.stacked import model as stacked_model
from agnncert.verifier import recount_joint, recount_labels, recount_possible
from tests.support.append_graphs import payments
from tests.support.joint_worlds import random_joint
from tests.support.label_cases import factored
from tests.support.labelled import labelled_graph
from tests.support.pair_data import links
from tests.support.synthetic import made_up_certificate

LABELS = ac.Budget(flip_labels=2)
BOTH = ac.Budget(flip_labels=1, add_edges=1, delete_edges=1)
EDGES = ac.Budget(add_edges=1, delete_edges=1)
PRICES = ac.Prices(flip_labels=2, add_labels=1, remove_labels=3)
PRICES_OF_BOTH = ac.Prices(flip_labels=2, add_labels=2, remove_labels=2, add_edges=1, delete_edges=1)

Answers = Iterator[Any]


def label_evidence() -> Answers:
    rng = np.random.default_rng(1)
    for _ in range(5):
        evidence = factored(rng, n=11, m=9, price=rng.integers(1, 4, 9).astype(np.int32))
        other = factored(rng, n=11, m=9)
        yield from (*evidence.label_and_radius(), evidence.holds(LABELS), evidence.possible(LABELS))
        yield from (evidence.cheapest(PRICES), evidence.cheapest(PRICES, label=1), evidence.weights_apart(other))


def evidence_of_both() -> Answers:
    rng = np.random.default_rng(2)
    for _ in range(20):
        evidence = random_joint(rng)
        yield from (*evidence.label_and_radius(), evidence.holds(BOTH), evidence.possible(BOTH))
        yield from (evidence.possible(3), evidence.cheapest(PRICES_OF_BOTH))


def recounted_labels() -> Answers:
    rng = np.random.default_rng(3)
    for _ in range(5):
        counted = recount_labels.recount(factored(rng, n=11, m=9))
        yield from (counted.label, counted.needed)


def recounted_both() -> Answers:
    rng = np.random.default_rng(4)
    for _ in range(20):
        record = random_joint(rng)
        elected = recount_joint.elect(record)
        attacks = [recount_joint.attack_of(record, budget) for budget in (BOTH, LABELS)]
        yield from (elected.label, recount_joint.needed_changes(record, elected))
        yield recount_joint.stays_ahead(record, elected, attacks)


def recounted_possible() -> Answers:
    rng = np.random.default_rng(5)
    for theorem in ("node-centric/node", "edge-centric/node", "node-centric/graph"):
        certificate, _ = made_up_certificate(rng, theorem, 23, 9, 3)
        yield recount_possible.of_votes(certificate.evidence, EDGES)


def label_weights() -> Answers:
    data = labelled_graph(40, dtype=torch.float32)
    for box in (False, True):
        model = ac.fit(None, data, ac.LabelVotes(df=4, rank=4, num_classes=3, box=box))
        certificate = ac.certify(model, data, model.defence)
        yield from (certificate.counts, certificate.radius)
        yield from certificate.evidence.tensors().values()


def stacked_scores() -> Answers:
    data = labelled_graph(40, dtype=torch.float32)
    base = ac.build_model("mlp", data, hidden_channels=8, num_layers=2)
    model = ac.fit(base, data, ac.StackedVotes(size=1, folds=2, epochs=3), epochs=5)
    yield model.double().own_logits(data.x.double()).detach().numpy()


def pair_scores() -> Answers:
    data = links(30, pairs=60)
    data.edge_label_attr = torch.randn(60, 2, generator=torch.Generator().manual_seed(0))
    model = ac.fit(None, data, ac.PairVotes(epochs=2))
    chosen = choose_pairs(prepared(data), None)
    yield model.double().own_logits(chosen.graph, chosen.ends, chosen.values).detach().numpy()


def appended_tables() -> Answers:
    data = payments()
    model = ac.fit(None, data, ac.AppendOnly(threat="ledger", trees=3, ensembles=1))
    graph = prepared(data).targets([0]).graph
    for account in range(4):
        around = AroundAccount(model.values(graph), as_trees(model.tables("tree_")), account)
        rows = [NewRow(template) for template in templates_of(around.whole, 3)]
        changes = [Change(), *(Change((int(gone),)) for gone in around.partners), *(Change((), (row,)) for row in rows)]
        yield from (around.tables(changes), around.scores(changes))


# what is counted for some targets at a time: where, by which constant, and how much several targets are
COUNTS: dict[Callable[[], Answers], tuple[ModuleType | type, str, int]] = {
    label_evidence: (labels_evidence.LabelEvidence, "entries_at_once", 36),
    evidence_of_both: (joint_evidence.JointEvidence, "entries_at_once", 3000),
    label_weights: (labels_weights, "PAIRS_AT_ONCE", 100),
    recounted_labels: (recount_labels, "PAIRS_AT_ONCE", 36),
    recounted_both: (recount_joint, "PAIRS_AT_ONCE", 60),
    recounted_possible: (recount_possible, "ENTRIES_AT_ONCE", 15),
    stacked_scores: (stacked_model, "ROWS_AT_ONCE", 7),
    pair_scores: (pair_model, "PAIRS_AT_ONCE", 7),
    appended_tables: (changes_of_rows, "ROWS_AT_ONCE", 60),
}


def compare_parts_with_whole(counted: Callable[[], Answers]) -> None:
    """Counts for one target at a time, and for several, and compares with all at once."""
    module, constant, several = COUNTS[counted]
    whole = list(counted())
    for number in (1, several):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, constant, number)
            parts = list(counted())
        for of_parts, of_all in zip(parts, whole, strict=True):
            np.testing.assert_allclose(np.asarray(of_parts, float), np.asarray(of_all, float), rtol=1e-9)


@pytest.mark.parametrize("counted", COUNTS, ids=lambda counted: counted.__name__)
def test_in_parts_the_answers_are_as_for_all_at_once(counted) -> None:
    compare_parts_with_whole(counted)
