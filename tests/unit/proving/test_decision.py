"""A certificate read target by target."""

import dataclasses
import math

import numpy as np
import pytest
import torch

from agnncert.certificates.budget import Budget
from agnncert.errors import IdError
from agnncert.proving.certificate import Certificate
from tests.support.certificates import certificate_of, random_evidence

NAMES = [f"user-{k:03d}" for k in range(29)] + ["<b>evil</b>"]


@pytest.fixture
def cert() -> Certificate:
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 3, 30)
    truth[4] = -1
    return certificate_of(random_evidence(rng, "edge-centric/node"), target=NAMES, truth=truth, degree=np.arange(30))


def test_one_target_is_looked_up_by_its_id(cert):
    one = cert["user-007"]
    assert (one.target, one.label, one.radius) == ("user-007", cert.label[7], cert.radius[7])
    assert (one.truth, one.degree, one.row) == (cert.truth[7], 7, cert.row[7])
    assert one.votes.tolist() == cert.counts[7].tolist()
    assert cert["user-004"].truth is None
    assert one.max_certified("add_edges") == cert.max_certified("add_edges")[7]
    assert one.withstands["inject_nodes"] == cert.max_certified("inject_nodes", edges_per_injected=math.inf)[7]
    budget = Budget(add_edges=1)
    assert one.holds_against(budget) == cert.holds_against(budget)[7]
    assert repr(one).startswith("Decision('user-007', label=")


def test_numbers_and_their_decimal_texts_are_one_id():
    cert = certificate_of(random_evidence(np.random.default_rng(1), "edge-centric/node"))
    first = cert.target[0]
    assert first == 7
    for same in (7, "7", np.int64(7), torch.tensor(7)):
        assert cert[same].row == cert.row[0]
        assert same in cert
    assert all(odd not in cert for odd in (0, "x", 7.5, None, [7], True))


def test_an_unknown_target_is_refused_with_similar_ones(cert):
    with pytest.raises(IdError, match=r"no target 'user-07': it has 30, by their ids. Similar: user-0"):
        cert["user-07"]
    with pytest.raises(IdError, match="no target"):
        cert[3.5]


def test_a_certificate_counts_and_lists_its_targets(cert):
    assert len(cert) == 30
    assert list(cert) == NAMES
    empty = certificate_of(random_evidence(np.random.default_rng(1), "edge-centric/node", num_targets=0))
    assert (len(empty), bool(empty), list(empty)) == (0, True, [])


def test_a_table_has_a_row_for_each_target(cert):
    frame = cert.to_pandas()
    assert frame.index.tolist() == NAMES
    assert list(frame.columns)[:9] == [
        "label", "score", "margin", "radius", "structure_radius", "truth", "degree", "new_neighbours",
        "new_neighbours_alone",
    ]  # fmt: skip
    ordered = np.sort(cert.counts, axis=1)
    assert frame["score"].tolist() == cert.counts[np.arange(30), cert.label].tolist()
    assert (frame["margin"] == ordered[:, -1] - ordered[:, -2]).all()
    assert "class_name" not in frame
    named = cert.with_class_names(["a", "b", "c"]).to_pandas()
    assert named["class_name"].tolist() == ["abc"[k] for k in cert.label]
    assert frame.loc["user-007", "radius"] == cert.radius[7]
    assert frame["truth"].isna().tolist() == [k == 4 for k in range(30)]
    assert frame.filter(like="votes_").to_numpy().tolist() == cert.counts.tolist()
    assert "truth" not in dataclasses.replace(cert, truth=None).to_pandas()


def test_a_notebook_shows_a_small_table_and_no_markup_of_the_data(cert):
    few = dataclasses.replace(cert, target=NAMES[::-1])
    text = few._repr_html_()
    assert "<b>evil" not in text
    assert "&lt;b&gt;evil&lt;/b&gt;" in text
    assert text.count("<tr>") == 9
    assert "22 more" in text
    assert len(text) < 4000
    empty = certificate_of(random_evidence(np.random.default_rng(1), "edge-centric/node", num_targets=0))
    assert "<table>" in empty._repr_html_()
