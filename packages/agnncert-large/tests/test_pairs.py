"""Edges in a database: what comes out is what numpy's own sorting of all of them gives."""

import numpy as np
import pytest

import agnncert as ac
from agnncert.datasets.table_store import TableStore
from agnncert_large import sorted_pairs as module
from agnncert_large.disk import new_graph
from agnncert_large.sorted_pairs import SortedPairs, write_edges


@pytest.fixture
def store(tmp_path):
    with TableStore.opened("a test", folder=tmp_path) as store:
        yield store


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("in_memory", [1, 7, 1000])
def test_pairs_come_out_sorted_and_once(store, tmp_path, monkeypatch, weighted, in_memory):
    monkeypatch.setattr(module, "PAIRS_IN_MEMORY", in_memory)
    source, head = np.random.default_rng(0).integers(0, 9, size=(2, 120))
    weight = (source * 10 + head).astype(np.float32)  # the same for the same pair
    pairs = SortedPairs(store, "pairs", 9, 120, weighted)
    for span in (slice(0, 50), slice(50, 51), slice(51, 120)):
        pairs.add(source[span], head[span], weight[span] if weighted else None)
    with new_graph(tmp_path / "g") as writer:
        count = write_edges(writer, pairs)
    data = ac.open_graph(tmp_path / "g")
    expected = sorted({(v, u) for u, v in zip(source.tolist(), head.tolist(), strict=True) if u != v})
    assert count == len(expected) < 120
    assert list(zip(data.edge_index[1].tolist(), data.edge_index[0].tolist(), strict=True)) == expected
    if weighted:
        assert data.edge_weight.tolist() == [u * 10 + v for v, u in expected]


def test_a_pair_with_two_weights_is_refused(store):
    pairs = SortedPairs(store, "pairs", 5, 2, weighted=True)
    pairs.add(np.array([1, 1]), np.array([2, 2]), np.array([1, 2], np.float32))
    with pytest.raises(ac.errors.DatasetError, match=r"rows 3 and 2 .* different weights"):
        list(pairs.sorted())


def test_so_many_nodes_that_pairs_would_run_into_each_other_are_refused(store):
    with pytest.raises(ac.errors.DatasetError, match="at most 3000000000 are supported"):
        SortedPairs(store, "pairs", 2**33, 1)
