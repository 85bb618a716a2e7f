"""What a file about pairs says of its targets, beside the data: places, true classes and the encoding are compared."""

from functools import cache

import pytest
import torch

import agnncert as ac
from agnncert.pairs.model import PairModel, PairPrior
from tests.soundness.forger.forging import drafted, seal
from tests.support.pair_data import links

UNLISTED = torch.tensor([[0, 1, 2], [5, 2, 7]])


def model_of(data, values=0):
    """A model whose weights nobody trained: what a file says of its targets does not depend on them."""
    torch.manual_seed(0)
    defence = ac.PairVotes(mask="own")
    prior = PairPrior(data.num_features, values, 2, 8, directed=False, scaled=False)
    return PairModel(prior, 2, 0, defence).eval()


@cache
def case():
    """Data, a model, and the certificate of some of the listed pairs."""
    data = links()
    model = model_of(data)
    return data, model, ac.certify(model, data, model.defence, data.test_mask)


def verdict_on(draft, file, data, model=None):
    assert seal(draft, file)
    assert ac.verify(file).holds  # nothing but the data tells
    return ac.verify(file, data=data, model=model)


def exchanged(rows):
    rows[[0, 1]] = rows[[1, 0]]


def another_place(rows):
    rows[0] = min(set(range(rows.max())) - set(rows.tolist()))


def beyond_the_list(rows):
    rows[0] = 10**9


ALTERATIONS = (exchanged, another_place, beyond_the_list)


@pytest.mark.parametrize("alter", ALTERATIONS)
def test_a_pair_at_a_place_where_it_does_not_stand_is_refused(alter, tmp_path):
    data, model, certificate = case()
    for given in (None, model):
        draft = drafted(certificate)
        assert verdict_on(draft, tmp_path / "pairs.cert", data, given).holds
        alter(draft.arrays["row"])
        verdict = verdict_on(draft, tmp_path / "pairs.cert", data, given)
        assert any("place in edge_label_index" in reason for reason in verdict.reasons), verdict


@pytest.mark.parametrize("alter", [exchanged, beyond_the_list])
def test_pairs_that_the_data_does_not_list_are_numbered_in_their_order(alter, tmp_path):
    data, model, _ = case()
    draft = drafted(ac.certify(model, data, model.defence, UNLISTED))
    assert verdict_on(draft, tmp_path / "pairs.cert", data, model).holds
    alter(draft.arrays["row"])
    assert not verdict_on(draft, tmp_path / "pairs.cert", data).holds


def test_true_classes_of_pairs_that_have_none_are_refused(tmp_path):
    data, model, _ = case()
    draft = drafted(ac.certify(model, data, model.defence, UNLISTED))
    draft.arrays["truth"] = draft.arrays["label"].copy()
    verdict = verdict_on(draft, tmp_path / "pairs.cert", data)
    assert any("true class" in reason for reason in verdict.reasons), verdict


def test_another_encoding_of_the_table_is_refused(tmp_path):
    data, model, _ = case()
    encoded = data.clone()
    encoded.encoding = "columns as they are"
    draft = drafted(ac.certify(model, encoded, model.defence, data.test_mask))
    assert verdict_on(draft, tmp_path / "pairs.cert", encoded).holds
    encoded.encoding = "columns in other units"
    verdict = verdict_on(draft, tmp_path / "pairs.cert", encoded)
    assert any("encoding" in reason for reason in verdict.reasons), verdict


@pytest.mark.parametrize("place", [0, -1])
def test_of_a_pair_that_is_listed_twice_the_certified_place_is_compared(place, tmp_path):
    """The two have values of their own, as two payments between the same accounts have."""
    data = case()[0].clone()
    data.edge_label_index = torch.cat([data.edge_label_index, data.edge_label_index[:, :1]], dim=1)
    data.edge_label = torch.cat([data.edge_label, 1 - data.edge_label[:1]])
    data.edge_label_attr = torch.linspace(-1, 1, len(data.edge_label))[:, None]
    model = model_of(data, values=1)
    row = range(len(data.edge_label))[place]
    certificate = ac.certify(model, data, model.defence, [row])
    assert certificate.row.tolist() == [row]
    verdict = verdict_on(drafted(certificate), tmp_path / "pairs.cert", data, model)
    assert verdict.holds, verdict
