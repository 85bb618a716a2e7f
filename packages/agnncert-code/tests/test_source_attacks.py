"""Attacks on the text of functions: no edit within a certificate changes a verdict, and one more does."""

import math
from functools import cache

import pytest
import torch

import agnncert as ac
import agnncert_code
from agnncert_code.rewrites import greedy_rewrite, worst_edits
from tests.support.functions import labelled

FREE = {"add_edges": math.inf, "delete_edges": math.inf, "change_edges": math.inf}
RIVALS = ("gets ( line ) ;", "log ( x ) ;")


@pytest.fixture(scope="module")
def world():
    data = labelled()
    found = agnncert_code.fit_statements(data, size=1)
    texts = [data[int(k)].source for k in data.test]
    return found, texts, certificate(found, texts)


def certificate(found, texts):
    graphs = ac.GraphSet([agnncert_code.graph(text).to_data(agnncert_code.pieces) for text in texts])
    return ac.certify(found.model, graphs, found.division, voting_rule=found.voting_rule)


def vote_of(found):
    @cache
    def vote(text):
        x = torch.from_numpy(agnncert_code.pieces([text]))
        return int(found.model(x, torch.zeros(2, 0, dtype=torch.long), torch.zeros(1, dtype=torch.long)).argmax())

    return vote


def test_no_worst_edit_within_a_certificate_changes_a_verdict_and_one_more_insertion_does(world):
    found, texts, cert = world
    amounts = {
        "inserted": cert.max_certified("inject_nodes", edges_per_injected=math.inf, **FREE),
        "deleted": cert.max_certified("delete_nodes", **FREE),
        "replaced": cert.radius,
    }
    within, beyond, vote = [], [], vote_of(found)
    for k, text in enumerate(texts):
        label = int(cert.label[k])
        for kind, limit in amounts.items():
            amount = int(min(limit[k], 50))
            for number, attacked in ((amount, within), (amount + 1, beyond)):
                new, spent = worst_edits(text, vote, label, RIVALS[label], **{kind: number})
                assert spent.within(**{kind: number})
                if kind == "inserted" or attacked is within:
                    attacked.append((k, new))
    for attacked, holds in ((within, True), (beyond, False)):
        after = certificate(found, [new for _, new in attacked])
        assert all((after.label[row] == cert.label[k]) == holds for row, (k, _) in enumerate(attacked))
    assert len(within) == 3 * len(texts)


def test_rewriting_step_by_step_does_not_change_a_certified_verdict(world):
    found, texts, cert = world
    prior, vote = found.voting_rule.class_prior, vote_of(found)
    for k in range(4):
        label, limit = int(cert.label[k]), int(cert.radius[k])

        def lead(text, label=label):
            votes = [vote(one) for one in agnncert_code.graph(text).texts]
            return prior[label] - prior[1 - label] + votes.count(label) - votes.count(1 - label)

        new, spent = greedy_rewrite(texts[k], lead, replaced=limit, rounds=2, tries=4)
        assert spent.within(replaced=limit)
        assert certificate(found, [new]).label[0] == label
