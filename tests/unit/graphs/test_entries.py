"""Entries that are not zero: the same as a plain search finds, and none where they are many."""

import numpy as np
import pytest
import torch

import agnncert as ac
from agnncert.errors import GraphError
from agnncert.graphs import entries
from agnncert.graphs.entries import Entries, find_entries
from tests.support.graphs import random_data


def sparse_matrix(share: float, dtype: torch.dtype, shape: tuple[int, int] = (37, 23)) -> torch.Tensor:
    generator = torch.Generator().manual_seed(7)
    kept = torch.rand(shape, generator=generator) < share
    return (torch.randn(shape, generator=generator) * kept).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("turned", [False, True])
def test_all_entries_are_found_in_every_block(dtype, turned, monkeypatch):
    monkeypatch.setattr(entries, "CHUNK", 100)
    x = sparse_matrix(0.3, dtype)
    x[3, 4], x[5, 6], x[7, 8] = -0.0, torch.nan, torch.inf
    x = x.t() if turned else x
    found = Entries.all_of(x)
    assert torch.equal(torch.from_numpy(found.position), (x.reshape(-1) != 0).nonzero().view(-1))
    assert found.value.dtype == dtype
    assert torch.equal(found.value.nan_to_num(5.0), x.reshape(-1)[found.position].nan_to_num(5.0))
    assert not found.finite


@pytest.mark.parametrize(("share", "few"), [(0.02, True), (0.15, False), (0.9, False), (0.0, True)])
def test_entries_are_listed_where_they_are_few(share, few):
    x = sparse_matrix(share, torch.float32, (300, 40))
    found = Entries.of(x)
    assert found.is_sparse == few
    assert found.finite == few  # of what is not listed nothing is known
    assert len(found.position) == len(found.value) == (int((x != 0).sum()) if few else 0)


def test_rows_that_are_looked_at_first_do_not_decide():
    x = torch.zeros(640, 10)
    x[::10] = 1.0  # the very rows of the sample: crowded, and yet few in all
    assert Entries.of(x).is_sparse
    x = torch.ones(640, 10)
    x[::10] = 0.0
    assert not Entries.of(x).is_sparse


@pytest.mark.parametrize("x", [None, [[1.0]], torch.ones(3), torch.ones(3, 2, dtype=torch.int64), torch.ones(0, 3)])
def test_what_is_no_matrix_of_floats_is_left_to_the_checks(x):
    found = find_entries(x)
    assert found is None or not found.is_sparse


@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
def test_a_feature_that_is_no_number_is_refused_among_zeros_too(bad):
    data = random_data(3, smallest=8)
    data.x = torch.zeros(data.num_nodes, 50)
    data.x[4, 7] = bad
    model = torch.nn.Module()
    model.forward = lambda x, edge_index: x[:, :2]
    with pytest.raises(GraphError, match=r"not finite \(first: row 4\)"):
        ac.certify(model.eval(), data, ac.NodeCentric(5))


def test_numbers_whose_sum_overflows_are_numbers():
    assert Entries(np.arange(2), torch.tensor([3e38, 3e38])).finite
