"""Splits, masks, digests and the inductive view."""

import pytest
import torch
from torch_geometric.data import Data

from agnncert.datasets.load import load_dataset
from agnncert.datasets.splits import GraphSet, dataset_digest, inductive_view, per_class_split, stratified_split
from agnncert.errors import DatasetError

# Splits


def test_nodes_are_split_30_10_60_in_every_class(knn) -> None:
    masks = torch.stack([knn.train_mask, knn.val_mask, knn.test_mask])
    assert (masks.sum(0) == 1).all()
    for label in range(10):
        shares = masks[:, knn.y == label].float().mean(1)
        assert torch.allclose(shares, torch.tensor([0.3, 0.1, 0.6]), atol=0.005)


def test_graphs_are_split_50_20_30_in_every_class(grid) -> None:
    assert sorted(torch.cat(grid.split).tolist()) == list(range(len(grid)))
    for label in range(10):
        total = int((grid.y == label).sum())
        shares = torch.tensor([int((grid.y[part] == label).sum()) / total for part in grid.split])
        assert torch.allclose(shares, torch.tensor([0.5, 0.2, 0.3]), atol=0.005)


def test_a_split_depends_on_its_seed_and_nothing_else() -> None:
    y = torch.arange(100) % 3
    torch.manual_seed(1)
    first = stratified_split(y, (0.3, 0.1, 0.6), seed=7)
    state = torch.random.get_rng_state()
    again = stratified_split(y, (0.3, 0.1, 0.6), seed=7)
    other = stratified_split(y, (0.3, 0.1, 0.6), seed=8)
    assert all(map(torch.equal, first, again))
    assert not torch.equal(first[0], other[0])
    assert torch.equal(state, torch.random.get_rng_state())


def test_a_split_is_the_same_on_every_machine() -> None:
    train, _ = stratified_split(torch.tensor([0, 1] * 6), (0.5, 0.5), seed=0)
    assert train.tolist() == [3, 4, 6, 9, 10, 11]


def test_a_class_of_one_is_for_training_and_the_unlabelled_for_nothing() -> None:
    train, test = stratified_split(torch.tensor([0, -1, 1, 1, 1, 1]), (0.3, 0.7), seed=0)
    assert 0 in train.tolist()
    assert 1 not in torch.cat([train, test]).tolist()


# Digest, inductive view, graph set


def test_a_digest_tells_graph_label_and_split_apart(knn) -> None:
    def changed(**values: object) -> Data:
        copy = knn.clone()
        for key, value in values.items():
            copy[key] = value
        return copy

    x = knn.x.clone()
    x[0, 0] += 1
    others = [
        changed(x=x),
        changed(edge_index=knn.edge_index[:, 1:]),
        changed(y=knn.y.flip(0)),
        changed(test_mask=knn.val_mask, val_mask=knn.test_mask),
        changed(node_id=knn.node_id + 1),
    ]
    assert len({dataset_digest(d) for d in [knn, *others]}) == 6
    assert dataset_digest(knn) == dataset_digest(load_dataset("digits-knn"))
    assert dataset_digest(knn) != dataset_digest(load_dataset("digits-knn", seed=1))
    flipped = changed(edge_index=knn.edge_index.flip(1))
    assert dataset_digest(flipped) == dataset_digest(knn)  # the order of edges is no property of a graph


def test_a_digest_covers_a_graph_set_and_its_split() -> None:
    pieces = [Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.tensor([k])) for k in (0, 1)]
    digests = {
        dataset_digest(GraphSet(pieces, train=[0], test=[1])),
        dataset_digest(GraphSet(pieces, train=[1], test=[0])),
        dataset_digest(GraphSet(pieces[::-1], train=[0], test=[1])),
    }
    assert len(digests) == 3


def test_an_inductive_view_has_neither_test_nodes_nor_their_edges(knn) -> None:
    view = inductive_view(knn)
    seen = ~knn.test_mask
    assert torch.equal(view.node_id, knn.node_id[seen])
    assert torch.equal(view.x, knn.x[seen])
    assert not view.test_mask.any()
    assert int(view.train_mask.sum()) == int(knn.train_mask.sum())
    inside = seen[knn.edge_index].all(0)
    assert torch.equal(view.node_id[view.edge_index], knn.edge_index[:, inside])
    assert view.num_classes == 10


def test_few_labels_of_each_class_and_a_tenth_of_the_others_to_test() -> None:
    data = load_dataset("digits-knn", split="20-per-class", seed=3)
    parts = torch.stack([data.train_mask, data.val_mask, data.test_mask])
    assert int(parts.sum(0).max()) == 1
    assert torch.equal(torch.bincount(data.y[data.train_mask]), torch.full((10,), 20))
    assert torch.equal(torch.bincount(data.y[data.val_mask]), torch.full((10,), 20))
    assert int(data.test_mask.sum()) == round((1797 - 400) / 10)
    again, other = (load_dataset("digits-knn", split="20-per-class", seed=seed) for seed in (3, 4))
    assert torch.equal(again.test_mask, data.test_mask)
    assert not torch.equal(other.test_mask, data.test_mask)


def test_nodes_in_no_part_are_seen_in_inductive_training_and_test_nodes_are_not() -> None:
    data = load_dataset("digits-knn", split="20-per-class")
    assert inductive_view(data).num_nodes == 1797 - int(data.test_mask.sum())
    without = inductive_view(data, validation=False)
    assert without.num_nodes == 1797 - int(data.test_mask.sum()) - 200
    assert int(without.train_mask.sum()) == 200


def test_a_class_without_enough_nodes_has_no_such_split() -> None:
    with pytest.raises(DatasetError, match="class 1 has 4 nodes"):
        per_class_split(torch.tensor([0] * 9 + [1] * 4 + [-1]), 2, seed=0)
    train, val, test = per_class_split(torch.tensor([0] * 9 + [1] * 5 + [-1] * 20), 2, seed=0)
    assert max(torch.cat([train, val, test]).tolist()) < 14


@pytest.mark.parametrize(
    ("name", "split", "words"),
    [
        ("digits-knn", "twenty", "no split is called"),
        ("digits-knn", "0-per-class", "no split is called"),
        ("digits-grid", "20-per-class", "it is for node classification"),
    ],
)
def test_a_split_that_does_not_fit_is_refused(name: str, split: str, words: str) -> None:
    with pytest.raises(DatasetError, match=words):
        load_dataset(name, split=split)


def test_an_inductive_view_keeps_ids_that_are_text() -> None:
    data = Data(
        x=torch.ones(3, 1),
        edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]),
        edge_weight=torch.arange(4.0),
        node_id=["ann", "bob", "cy"],
        train_mask=torch.tensor([True, False, False]),
        val_mask=torch.tensor([False, False, True]),
    )
    view = inductive_view(data)
    assert view.node_id == ["ann", "cy"]
    assert view.edge_index.numel() == view.edge_weight.numel() == 0


def test_an_inductive_view_needs_a_split_of_nodes(grid) -> None:
    with pytest.raises(DatasetError, match="no train_mask and no val_mask"):
        inductive_view(Data(x=torch.ones(1, 1)))
    with pytest.raises(DatasetError, match="node classification"):
        inductive_view(grid)


def test_a_graph_set_is_a_list(grid) -> None:
    assert isinstance(grid, list)
    assert isinstance(grid[3], Data)
    assert len(grid.index_select(grid.test)) == len(grid.test)
    assert torch.equal(grid.y, torch.cat([g.y for g in grid]))


def test_a_graph_set_refuses_a_senseless_split() -> None:
    pieces = [Data(x=torch.ones(1, 1), y=torch.tensor([0]))] * 2
    with pytest.raises(DatasetError, match="overlap"):
        GraphSet(pieces, train=[0], val=[0])
    with pytest.raises(DatasetError, match="names graph 2"):
        GraphSet(pieces, train=[2])
    with pytest.raises(DatasetError, match="names graph -1"):
        GraphSet(pieces, train=[-1, 1])
    with pytest.raises(DatasetError, match="at least one graph"):
        GraphSet([])
