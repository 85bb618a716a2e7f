"""Explanations of append-only scores: whose rows flagged an account, and how few new rows flag another."""

import numpy as np
import pytest

import agnncert as ac
from agnncert.append.changes import NEW, AroundAccount, Change, NewRow, templates_of
from agnncert.append.evidence import as_trees
from agnncert.graphs.targets import prepared
from tests.support.append_graphs import appended, graph_of, payments, rows_of

DEFENCE = ac.AppendOnly(threat="ledger", deletions=1, trees=30, ensembles=1)


@pytest.fixture(scope="module")
def data():
    return payments(accounts=120)


@pytest.fixture(scope="module")
def point(data):
    return ac.choose_threshold(ac.fit(None, data, DEFENCE, seed=1), data, DEFENCE, false_positive_rate=0.2)


@pytest.fixture(scope="module")
def certificate(data, point):
    return ac.certify(point.model, data, point, data.test_mask)


def target(certificate, label):
    return int(certificate.target[certificate.label == label][0])


@pytest.mark.parametrize("label", [0, 1])
def test_what_neighbours_are_given_adds_up_to_the_score_of_the_certificate(data, point, certificate, label):
    account = target(certificate, label)
    explained = ac.explain(point.model, data, point, account)
    place = certificate.position[account]
    assert explained.label == label
    assert list(explained.counts) == certificate.counts[place].tolist()
    votes = np.array([each.votes for each in (*explained.given, *explained.voters)])
    assert votes.sum(axis=0).tolist() == list(explained.total) == list(explained.counts)
    assert (np.array([voter.votes for voter in explained.voters]) >= 0).all()  # rows can only raise a score
    edges = (data.edge_index == account).any(dim=0)
    assert sum(len(voter.edges) for voter in explained.voters) == int(edges.sum())


def test_without_the_edges_that_are_named_a_flag_falls(data, point, certificate):
    account = target(certificate, 1)
    explained = ac.explain(point.model, data, point, account)
    gone = {frozenset(pair) for pair in explained.removal.pairs}
    assert 0 < len(gone) < len(explained.voters)
    kept = [row for row in rows_of(data) if frozenset(row[:2]) not in gone]
    after = graph_of(kept, data.num_nodes)
    assert point.defence.labels(point.model, after, [account]).tolist() == [0]
    assert "No number of appended rows would be enough" in str(explained)


def test_as_many_new_rows_as_are_said_frame_an_honest_account(data, point, certificate):
    account = target(certificate, 0)
    explained = ac.explain(point.model, data, point, account)
    framing = AroundAccount(*parts(data, point), account).framing(templates(data, point), int(point.model.threshold))
    assert explained.arrivals[0].number == framing.number
    assert "new node" in explained.arrivals[0].what
    amount = amount_of(data, point, framing.template)
    ends = [account, data.num_nodes]
    pair = (lambda new: (new, account)) if framing.template.way == "in" else (lambda new: (account, new))
    new = [(*pair(ends[1] + k), amount) for k in range(framing.number)]
    after = appended(data, new, accounts=framing.number)
    assert point.defence.labels(point.model, after, [account]).tolist() == [1]


def parts(data, point):
    model = point.model
    return model.values(prepared(data).targets().graph), as_trees(model.tables("tree_"))


def templates(data, point):
    return templates_of(parts(data, point)[0])


def amount_of(data, point, template):
    return float(parts(data, point)[0].ledger.columns["amount"][template.row])


def test_scores_after_a_change_are_those_of_the_changed_graph(data, point):
    """The short way around one account counts what the whole graph counts."""
    values, trees = parts(data, point)
    random = np.random.default_rng(5)
    some = templates_of(values, 6)
    for account in random.integers(0, data.num_nodes, 8).tolist():
        around = AroundAccount(values, trees, account)
        if not len(around.partners):
            continue
        gone = tuple(random.choice(around.partners, min(2, len(around.partners)), replace=False).tolist())
        template = some[int(random.integers(len(some)))]
        change = Change(gone, (NewRow(template, NEW),) * 3)
        amount = float(values.ledger.columns["amount"][template.row])
        ends = [
            (data.num_nodes + k, account) if template.way == "in" else (account, data.num_nodes + k) for k in range(3)
        ]
        left = graph_of([row for row in rows_of(data) if not {*row[:2]} & {account} or not {*row[:2]} & {*gone}], 120)
        after = appended_to(left, data, [(*pair, amount) for pair in ends])
        expected = point.defence.scores(point.model, after, [account])[:, 1]
        assert around.scores([Change(), change])[1] == expected[0]


def appended_to(left, data, new):
    for name in ("y", "train_mask", "val_mask", "test_mask"):
        left[name] = data[name]
    return appended(left, new, accounts=3)


def test_an_account_without_rows_and_one_that_is_not_there(data, point):
    alone = graph_of([row for row in rows_of(data) if 7 not in row[:2]], data.num_nodes)
    explained = ac.explain(point.model, alone, point, 7)
    assert explained.voters == ()
    assert explained.label == 0
    with pytest.raises(ac.errors.IdError, match="no node 999"):
        ac.explain(point.model, data, point, 999)
