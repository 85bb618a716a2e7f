"""Graphs of one's own: splits and ``.npz`` files."""

from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Data

import agnncert as ac
from agnncert.errors import DatasetError, SettingsError


def ring(num_nodes: int = 60, num_classes: int = 3) -> Data:
    rows = torch.arange(num_nodes)
    edges = torch.stack([rows, (rows + 1) % num_nodes])
    return Data(x=torch.eye(num_nodes), edge_index=edges, y=rows % num_classes)


def masks(data: Data) -> list[torch.Tensor]:
    return [data.train_mask, data.val_mask, data.test_mask]


def test_every_labelled_node_is_in_one_part_and_unlabelled_ones_are_in_none() -> None:
    data = ring()
    data.y[:6] = -1
    parts = torch.stack(masks(ac.split(data))).sum(0)
    assert parts.tolist() == [0] * 6 + [1] * 54


def test_parts_drawn_by_class_have_exactly_the_given_shares_of_each() -> None:
    data = ac.split(ring(), fractions=(0.5, 0.25, 0.25), by="class")
    assert data.split_by == "class"
    for mask, share in zip(masks(data), (0.5, 0.25, 0.25), strict=True):
        assert torch.bincount(data.y[mask]).tolist() == [20 * share] * 3


def test_a_seed_decides_the_split_and_the_data_stays_as_it_was() -> None:
    data = ring()
    assert torch.equal(ac.split(data, seed=4).train_mask, ac.split(data, seed=4).train_mask)
    assert not torch.equal(ac.split(data, seed=4).train_mask, ac.split(data, seed=5).train_mask)
    assert "train_mask" not in data


def test_few_labels_per_class() -> None:
    data = ac.split(ring(), per_class=4)
    assert torch.bincount(data.y[data.train_mask]).tolist() == [4, 4, 4]
    assert torch.bincount(data.y[data.val_mask]).tolist() == [4, 4, 4]


def test_graphs_become_a_graph_set() -> None:
    graphs = [Data(x=torch.ones(2, 1), edge_index=torch.empty(2, 0).long(), y=torch.tensor([k % 2])) for k in range(20)]
    split = ac.split(graphs, seed=3, by="class")
    assert isinstance(split, ac.GraphSet)
    assert [len(part) for part in split.split] == [10, 4, 6]


@pytest.mark.parametrize(
    ("change", "settings", "words"),
    [
        ({"y": None}, {}, "no labels y"),
        ({"y": torch.eye(60)}, {}, r"y.argmax\(1\) is the class"),
        ({"y": torch.full((60,), -1)}, {}, "no node has a label"),
        ({}, {"fractions": (0.5, 0.5)}, "three positive shares"),
        ({}, {"fractions": (0.5, 0.4, 0.2)}, "sum to 1"),
        ({}, {"per_class": 0}, "whole number of at least 1"),
        ({}, {"per_class": 10}, "leave none to test"),
        ({}, {"per_class": 2, "by": "id"}, "does not look at classes"),
        ({}, {"by": "label"}, "drawn by 'label'"),
        ({}, {"per_class": 2, "fractions": (0.4, 0.3, 0.3)}, "leave one of the two out"),
    ],
)
def test_what_cannot_be_split_is_refused_with_a_reason(change, settings, words) -> None:
    data = ring()
    for name, value in change.items():
        data[name] = value
    with pytest.raises(DatasetError, match=words):
        ac.split(data, **settings)


def test_an_unknown_setting_of_a_split_suggests_the_nearest() -> None:
    with pytest.raises(SettingsError, match='did you mean "fractions"'):
        ac.split(ring(), fraction=(0.5, 0.3, 0.2))


def stored(place: Path, **arrays: np.ndarray) -> Path:
    file = place / "graph.npz"
    np.savez(file, **arrays)
    return file


def parts_of(name: str, matrix: sp.csr_matrix) -> dict[str, np.ndarray]:
    return {
        f"{name}_data": matrix.data,
        f"{name}_indices": matrix.indices,
        f"{name}_indptr": matrix.indptr,
        f"{name}_shape": np.array(matrix.shape),
    }


def test_sparse_matrices_in_parts_and_plain_arrays_are_the_same_graph(tmp_path) -> None:
    data = ring()
    src, dst = data.edge_index.numpy()
    adjacency = sp.csr_matrix((np.ones(len(src)), (src, dst)), shape=(60, 60))
    labels = data.y.numpy()
    sparse = stored(
        tmp_path, labels=labels, **parts_of("adj", adjacency), **parts_of("attr", sp.csr_matrix(np.eye(60)))
    )
    first = ac.load_npz(sparse)
    second = ac.load_npz(stored(tmp_path, y=labels, x=np.eye(60), edges=np.stack([src, dst], axis=1)))
    for name in ("x", "edge_index", "y", "train_mask", "val_mask", "test_mask", "node_id"):
        assert torch.equal(first[name], second[name]), name
    assert first.edge_index.size(1) == 120
    assert ac.load_npz(tmp_path / "graph.npz", undirected=False).edge_index.size(1) == 60


@pytest.mark.data
def test_a_published_file_is_the_dataset_of_the_same_name(data_root) -> None:
    by_name = ac.load_dataset("cora-ml", root=data_root)
    file = next(Path(data_root).rglob("cora_ml.npz"))
    from_file = ac.load_npz(file, by="class")
    for name in ("edge_index", "y", "train_mask", "test_mask"):
        assert torch.equal(by_name[name], from_file[name]), name
    assert torch.equal(by_name.x != 0, from_file.x != 0)  # by name, only whether a word occurs is read


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"x": np.eye(3), "edges": np.zeros((0, 2))}, "no labels or y or node_labels: it holds edges, x"),
        ({"y": np.zeros(3), "edges": np.zeros((0, 2))}, "no attr_matrix or x"),
        ({"y": np.zeros(3), "x": np.eye(3)}, "no edge_index or edges"),
        ({"y": np.zeros(2), "x": np.eye(3), "edges": np.zeros((2, 0))}, "3 rows of features and 2 labels"),
        ({"y": np.zeros(3), "x": np.eye(3), "edges": np.array([[0], [7]])}, "joins node 7"),
        ({"y": np.zeros(3), "x": np.eye(3), "edges": np.zeros((3, 3))}, r"edges have shape \(3, 3\)"),
        ({"y": np.zeros(3), "x": np.zeros(3), "edges": np.zeros((2, 0))}, "expected a row for each node"),
    ],
)
def test_a_file_of_another_layout_is_refused_with_what_was_found(tmp_path, arrays, words) -> None:
    with pytest.raises(DatasetError, match=words):
        ac.load_npz(stored(tmp_path, **arrays))


def test_a_pickled_array_that_nothing_needs_is_left_out(tmp_path) -> None:
    arrays = {"y": np.zeros(3), "x": np.eye(3), "edges": np.array([[0], [1]])}
    names = np.array(["a", None, 3], dtype=object)
    assert ac.load_npz(stored(tmp_path, idx_to_node=names, **arrays)).num_nodes == 3


def test_pickled_objects_damaged_and_missing_files_are_refused(tmp_path) -> None:
    with pytest.raises(DatasetError, match="pickle"):
        ac.load_npz(stored(tmp_path, x=np.array([{"a": 1}], dtype=object)))
    (tmp_path / "text.npz").write_text("no archive")
    with pytest.raises(DatasetError, match=r"cannot be read|damaged"):
        ac.load_npz(tmp_path / "text.npz")
    with pytest.raises(DatasetError, match="there is no file"):
        ac.load_npz(tmp_path / "none.npz")
