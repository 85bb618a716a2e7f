import random

import numpy as np
import pytest
import torch

import agnncert as ac
import agnncert_code
from agnncert.errors import DatasetError, SettingsError
from agnncert_code import statement_fit
from agnncert_code.statements import NEVER
from tests.support.functions import OTHER, labelled


@pytest.fixture(scope="module")
def data():
    return labelled()


def test_what_tells_functions_apart_is_learnt_and_certified(data):
    found = agnncert_code.fit_statements(data, size=1)
    assert found.accuracy == pytest.approx(1)
    assert found.certified_accuracy > 0.8
    cert = ac.certify(found.model, data, found.division, targets=data.test, voting_rule=found.voting_rule)
    y = data.y[data.test].numpy()
    assert np.array_equal(cert.label, y)
    assert (cert.radius >= 0).all()  # no vote depends on rounding
    assert (cert.radius >= 1).mean() > 0.8
    assert np.array_equal(
        cert.holds_against(agnncert_code.edits(replaced=1)), cert.radius >= 1
    )  # any edit, whatever flows do
    assert found.voting_rule.prior[2] == NEVER


def test_it_is_the_same_every_time(data):
    first, again = (agnncert_code.fit_statements(data, size=1, seed=3) for _ in range(2))
    assert first.voting_rule == again.voting_rule
    assert all(map(torch.equal, first.model.state_dict().values(), again.model.state_dict().values()))


def test_scores_of_the_model_are_those_of_the_fit(data):
    learnt = statement_fit.learn(data)
    x = torch.cat([data[int(k)].x for k in (*data.train, *data.val)])
    scores = learnt.for_size(1).model.scores(x).detach().numpy()
    assert np.allclose(scores, learnt.statements.scaled @ learnt.weights[:-1] + learnt.weights[-1], atol=1e-5)


def test_weights_are_at_the_minimum(data):
    _, known = statement_fit._read(data)
    examples = known.examples(np.ones(len(known.truth), dtype=bool))
    scaled, sign, weight = examples
    weights = statement_fit._fitted(examples)

    def slopes(values):
        """How the loss changes with each weight and with the bias: all are zero at its only minimum."""
        lead = sign * (scaled @ values[:-1] + values[-1])
        slope = -weight * sign / (1 + np.exp(lead))
        return np.append(scaled.T @ slope + values[:-1] / statement_fit.STRENGTH, slope.sum())

    at_first = np.abs(slopes(np.zeros_like(weights))).max()
    assert np.abs(slopes(weights)).max() < 1e-3 * at_first


def test_where_words_say_nothing_the_size_decides():
    rng = random.Random(1)
    graphs = []
    for k in range(60):
        data = agnncert_code.graph(
            "int f() { " + " ".join(rng.choice(OTHER) for _ in range(4 + 16 * (k % 2))) + " }"
        ).to_data(agnncert_code.pieces)
        data.y = torch.tensor([k % 2])
        graphs.append(data)
    part = torch.arange(60)
    found = agnncert_code.fit_statements(ac.GraphSet(graphs, train=part[:40], val=part[40:], num_classes=2), size=2)
    assert found.certified_accuracy == pytest.approx(1)
    assert found.shares[0] < 0.5


def test_other_features_and_senseless_sizes_are_refused(data):
    with pytest.raises(DatasetError, match=r"embed=agnncert_code\.pieces"):
        agnncert_code.fit_statements(labelled(embed=agnncert_code.features))
    with pytest.raises(SettingsError, match="size=-1"):
        agnncert_code.fit_statements(data, size=-1)
