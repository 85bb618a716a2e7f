"""Amazon2M through the layout of ogb, on a tiny folder of that form."""

import gzip
from pathlib import Path

import numpy as np
import pytest
import torch

import agnncert as ac
from agnncert.datasets import catalog
from agnncert.datasets import large as ogb

NODES, EDGES = 9, 12


def zipped(file: Path, rows) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(file, "wt") as text:
        text.write("".join(",".join(map(str, np.atleast_1d(row))) + "\n" for row in rows))


def tiny(root: Path) -> Path:
    """ogbn_products as ogb unpacks it, but of nine nodes."""
    folder, random = root / "ogbn_products", np.random.default_rng(0)
    pairs = [(u, v) for u in range(NODES) for v in range(u)]
    zipped(folder / "raw/edge.csv.gz", random.permutation(pairs)[:EDGES])
    zipped(folder / "raw/node-feat.csv.gz", random.normal(size=(NODES, 100)).round(4))
    zipped(folder / "raw/node-label.csv.gz", [0, 46, 1, 2, 3, 4, 5, 6, 7])
    zipped(folder / "raw/num-node-list.csv.gz", [NODES])
    zipped(folder / "raw/num-edge-list.csv.gz", [EDGES])
    for part, rows in (("train", [0, 3]), ("valid", [1]), ("test", [8, 2, 4, 5, 6, 7])):
        zipped(folder / f"split/sales_ranking/{part}.csv.gz", rows)
    return folder


@pytest.fixture
def small(monkeypatch):
    """A catalogue in which the real graph has nine nodes."""
    info = catalog.DATASETS["amazon2m"]
    monkeypatch.setitem(catalog.DATASETS, "amazon2m", type(info)(**{**vars(info), "size": NODES}))


@pytest.mark.usefixtures("small")
def test_it_is_what_the_files_say(tmp_path, monkeypatch):
    monkeypatch.setattr(ogb, "_BLOCK", 4096)  # several pieces
    folder = tiny(tmp_path)
    data = ac.load_dataset("amazon2m", root=tmp_path)
    raw = {file.name: np.loadtxt(file, delimiter=",") for file in (folder / "raw").iterdir()}
    ends = raw["edge.csv.gz"].astype(int).tolist()
    assert sorted(map(tuple, data.edge_index.t().tolist())) == sorted(
        [(u, v) for u, v in ends] + [(v, u) for u, v in ends]
    )
    assert torch.equal(data.x, torch.from_numpy(raw["node-feat.csv.gz"]).float())
    assert data.y.tolist() == [0, 46, 1, 2, 3, 4, 5, 6, 7]
    assert data.train_mask.nonzero().view(-1).tolist() == [0, 3]
    assert data.val_mask.nonzero().view(-1).tolist() == [1]
    assert data.test_mask.nonzero().view(-1).tolist() == [2, 4, 5, 6, 7, 8]
    assert (data.name, data.num_classes) == ("amazon2m", 47)
    assert data.node_id.tolist() == list(range(NODES))
    model = ac.build_model("gcn", data, hidden_channels=4).eval()
    assert len(ac.certify(model, data, ac.NodeCentric(3), data.test_mask)) == 6


@pytest.mark.usefixtures("small")
def test_the_tables_are_read_once(tmp_path):
    folder = tiny(tmp_path)
    ac.load_dataset("amazon2m", root=tmp_path)
    for file in (folder / "raw").iterdir():
        file.unlink()
    assert ac.load_dataset("amazon2m", root=tmp_path).num_nodes == NODES


def test_without_files_it_says_where_they_belong(tmp_path):
    with pytest.raises(ac.errors.DatasetError) as told:
        ac.load_dataset("amazon2m", root=tmp_path)
    message = str(told.value)
    assert "raw/edge.csv.gz" in message
    assert "split/sales_ranking/valid.csv.gz" in message
    assert str(tmp_path / "ogbn_products") in message
    assert "products.zip" in message
    assert "amazon2m-like" in message


def test_a_folder_of_another_size_is_not_taken_for_the_real_graph(tmp_path):
    tiny(tmp_path)
    with pytest.raises(
        ac.errors.DatasetError, match=r"not ogbn-products as published: .* \(9, 100\), expected \(2449029, 100\)"
    ):
        ac.load_dataset("amazon2m", root=tmp_path)


@pytest.mark.parametrize(
    ("file", "rows", "said"),
    [
        ("raw/edge.csv.gz", [(0, 1)], r"edge.csv.gz has 1 rows, expected 12"),
        ("raw/edge.csv.gz", [(0, 9)] * 12, r"edge.csv.gz names rows outside of 0 to 8"),
        ("raw/node-feat.csv.gz", [[1.0] * 100] * 8, r"node-feat.csv.gz has 8 rows, expected 9"),
        ("raw/node-label.csv.gz", [1] * 10, r"node-label.csv.gz has 10 rows, expected 9"),
        ("raw/node-label.csv.gz", ["one"] * 9, r"node-label.csv.gz cannot be read"),
        ("raw/num-node-list.csv.gz", [4, 5], r"num-node-list.csv.gz must contain one number"),
        ("split/sales_ranking/test.csv.gz", [9], r"test.csv.gz is empty, or names rows outside"),
    ],
)
@pytest.mark.usefixtures("small")
def test_a_file_that_does_not_fit_is_named_and_nothing_is_left(tmp_path, file, rows, said):
    folder = tiny(tmp_path)
    zipped(folder / file, rows)
    with pytest.raises(ac.errors.DatasetError, match=said):
        ac.load_dataset("amazon2m", root=tmp_path)
    assert sorted(entry.name for entry in folder.iterdir()) == ["raw", "split"]


@pytest.mark.usefixtures("small")
def test_half_a_download_is_named(tmp_path):
    file = tiny(tmp_path) / "raw/node-feat.csv.gz"
    file.write_bytes(file.read_bytes()[:-40])
    with pytest.raises(ac.errors.DatasetError, match=r"node-feat\.csv\.gz"):
        ac.load_dataset("amazon2m", root=tmp_path)
