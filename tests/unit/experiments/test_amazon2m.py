"""Amazon2M from the layout of ogb, on a tiny folder of that form."""

import gzip
from pathlib import Path

import numpy as np
import pytest
import torch

import agnncert as ac
from experiments.benchmarks import amazon2m as ogb

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
    for part, rows in (("train", [0, 3]), ("valid", [1]), ("test", [8, 2, 4, 5, 6, 7])):
        zipped(folder / f"split/sales_ranking/{part}.csv.gz", rows)
    return folder


def converted(root: Path):
    ogb.convert_ogb(root / "ogbn_products", root / "graph", NODES, EDGES)
    return ac.open_graph(root / "graph")


def test_it_is_what_the_files_say(tmp_path, monkeypatch):
    monkeypatch.setattr(ogb, "BLOCK", 4096)  # several pieces
    folder = tiny(tmp_path)
    data = converted(tmp_path)
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


def test_a_folder_of_another_size_is_not_taken_for_the_real_graph(tmp_path):
    folder = tiny(tmp_path)
    with pytest.raises(ac.errors.DatasetError, match=r"has 9 labels from 0 to 46: ogbn-products has 2449029"):
        ogb.convert_ogb(folder, tmp_path / "graph")


def test_a_file_that_is_missing_is_named(tmp_path):
    (tiny(tmp_path) / "raw/edge.csv.gz").unlink()
    with pytest.raises(ac.errors.DatasetError, match=r"edge.csv.gz is missing"):
        converted(tmp_path)


@pytest.mark.parametrize(
    ("file", "rows", "said"),
    [
        ("raw/edge.csv.gz", [(0, 1)], r"edge.csv.gz has 1 rows, expected 12"),
        ("raw/edge.csv.gz", [(0, 9)] * 12, r"edge.csv.gz names rows outside of 0 to 8"),
        ("raw/node-feat.csv.gz", [[1.0] * 100] * 8, r"node-feat.csv.gz has 8 rows, expected 9"),
        ("raw/node-label.csv.gz", [1] * 10, r"node-label.csv.gz has 10 labels from 1 to 1: .* has 9"),
        ("raw/node-label.csv.gz", ["one"] * 9, r"node-label.csv.gz cannot be read"),
        ("raw/node-feat.csv.gz", [[1.0] * 99] * 9, r"node-feat.csv.gz: expected 9 rows of 100 numbers"),
        ("split/sales_ranking/test.csv.gz", [9], r"test.csv.gz is empty, or names rows outside"),
    ],
)
def test_a_file_that_does_not_fit_is_named_and_nothing_is_left(tmp_path, file, rows, said):
    folder = tiny(tmp_path)
    zipped(folder / file, rows)
    with pytest.raises(ac.errors.DatasetError, match=said):
        converted(tmp_path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["ogbn_products"]


def test_half_a_download_is_named(tmp_path):
    file = tiny(tmp_path) / "raw/node-feat.csv.gz"
    file.write_bytes(file.read_bytes()[:-40])
    with pytest.raises(ac.errors.DatasetError, match=r"node-feat\.csv\.gz"):
        converted(tmp_path)
