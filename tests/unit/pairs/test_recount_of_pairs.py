"""The recount of files about pairs agrees with the prover on votes drawn at random, and training with both."""

from dataclasses import fields

import numpy as np
import pytest

import agnncert as ac
from agnncert.certificates.budget import Budget
from agnncert.errors import CertificateError, GraphError
from agnncert.graphs.targets import prepared
from agnncert.pairs.evidence import PairEvidence
from agnncert.pairs.record import PairRecord
from agnncert.pairs.targets import choose_pairs
from agnncert.pairs.training import _right_by_counts
from agnncert.verifier import recount_pairs, recount_stacked
from formal.compare import prove, random_budgets, random_pairs, recounted_pairs, small_budgets
from tests.support.pair_data import links

ONE_EDGE = [Budget(inject_nodes=3, edges_per_injected=k) for k in (0, 1, 2)]


@pytest.mark.parametrize("rule", ["common", "both", "trusted"])
def test_prover_and_recount_agree_on_random_votes(rule):
    rng = np.random.default_rng(8)
    for _ in range(6):
        record = random_pairs(rng, f"pairs/{rule}", 30)
        budgets = [*random_budgets(rng, 10), *small_budgets(rng, 8), *ONE_EDGE, Budget(inject_nodes=2)]
        stated, broken = prove(record, budgets)
        again = recounted_pairs(record, stated, budgets)
        assert not sum(again.wrong.values())
        assert not sum(again.wrong_budgets)
        assert again.broken == list(broken)
        evidence = PairEvidence(**{each.name: getattr(record, each.name) for each in fields(record)})
        tables = recount_stacked.tables_of(record)
        for budget in budgets:
            possible = recount_stacked.possible(record, recount_pairs.in_votes(record, budget))
            assert np.array_equal(evidence.possible(budget), possible)
            held = recount_stacked.holds(record, tables, recount_pairs.in_votes(record, budget))
            assert np.array_equal(held, possible.sum(axis=1) == 1)


def test_counting_in_training_agrees_with_the_evidence():
    data = links()
    for over in ("common", "both"):
        model = ac.fit(None, data, ac.PairVotes(epochs=2, over=over))
        pairs = choose_pairs(prepared(data), data.val_mask)
        template = model.counted(pairs.graph, pairs.ends, pairs.values, pairs.ends[:0])
        model_prior = template["prior"]
        for size in (0, 1, 2, 4):
            evidence = PairEvidence(**{**template, "prior": model_prior})
            held = evidence.possible(size).sum(axis=1) == 1
            expected = held & (evidence.labels() == pairs.truth)
            found = _right_by_counts(template, model_prior, 1, pairs, size)
            assert (found != expected).mean() < 0.02  # rounding is left out in training


def with_itself(tensors, settings):
    tensors["pairs"][0] = 3


def twice(tensors, settings):
    tensors["pairs"][0] = tensors["pairs"][1]


def negative(tensors, settings):
    tensors["pairs"][0, 0] = -1


def one_pair_too_few(tensors, settings):
    tensors["pairs"] = tensors["pairs"][1:]


def no_pairs(tensors, settings):
    del tensors["pairs"]


def a_mean(tensors, settings):
    settings |= {"pseudo": 65536, "pseudo_votes": [1] * tensors["prior"].shape[1], "gated": False}
    tensors["gate"] = np.full_like(tensors["gate"], 65536)


def with_setting(name, value):
    return lambda tensors, settings: settings.update({name: value})


FAULTS = {
    "to itself": with_itself,
    "twice": twice,
    "negative": negative,
    "too few": one_pair_too_few,
    "no pairs": no_pairs,
    "a mean": a_mean,
    "unknown rule": with_setting("rule", "some"),
    "unknown mask": with_setting("mask", "none"),
    "values": with_setting("by_edge", True),
}


def refuses(fault):
    """Requires that a record with a fault is refused."""
    record = random_pairs(np.random.default_rng(1), "pairs/common", 12)
    tensors, settings = dict(record.tensors()), dict(record.settings())
    tensors["pairs"] = tensors["pairs"].copy()
    PairRecord.load(tensors, settings)
    FAULTS[fault](tensors, settings)
    with pytest.raises(CertificateError):
        PairRecord.load(tensors, settings)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_record_with_a_fault_is_refused(fault):
    refuses(fault)


def refuses_a_pair_of_one_node():
    with pytest.raises(GraphError, match="to itself"):
        choose_pairs(prepared(links()), np.array([[2], [2]]))


def test_a_pair_of_one_node_is_refused():
    refuses_a_pair_of_one_node()
