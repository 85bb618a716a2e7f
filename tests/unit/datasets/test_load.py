"""Datasets by name: what is loaded, and what is said when files are missing, damaged or not the published ones."""

import pickle
import socket
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from zipfile import ZipFile

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from agnncert.datasets import load as public
from agnncert.datasets.catalog import DATASETS
from agnncert.datasets.load import load_dataset
from agnncert.datasets.tables import load_tables
from agnncert.errors import DatasetError

NODE_SETS = ("cora-ml", "citeseer", "pubmed", "amazon-c")
GRAPH_SETS = ("aids", "mutag", "proteins", "dd", "mutag-188")


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise socket.gaierror("no network")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)


def assert_simple_undirected(graph: Data) -> None:
    u, v = graph.edge_index
    key, mirrored = u * graph.num_nodes + v, v * graph.num_nodes + u
    assert (u != v).all()
    assert (key[1:] > key[:-1]).all()
    assert torch.equal(mirrored.sort().values, key)


def degrees(graph: Data) -> torch.Tensor:
    return torch.bincount(graph.edge_index[0], minlength=graph.num_nodes)


class Attack:
    """Creates a file when unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[object, tuple[Path]]:
        return Path.touch, (self.marker,)


# By name


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(DatasetError, match='did you mean "cora-ml"'):
        load_dataset("cora_ml")


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize(
    ("name", "file", "folder"),
    [
        ("cora-ml", "cora_ml.npz", "cora_ml/raw"),
        ("pubmed", "ind.pubmed.allx", "PubMed/raw"),
        ("amazon-c", "amazon_electronics_computers.npz", "Computers/raw"),
        ("mutag", "Mutagenicity_graph_labels.txt", "Mutagenicity/raw"),
        ("proteins", "PROTEINS_node_attributes.txt", "PROTEINS/raw"),
    ],
)
def test_a_missing_file_is_named_with_its_folder(name, file, folder, tmp_path) -> None:
    with pytest.raises(DatasetError) as error:
        load_dataset(name, root=tmp_path)
    assert file in str(error.value)
    assert str(tmp_path / folder) in str(error.value)
    assert "no network" in str(error.value)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def server(tmp_path, monkeypatch) -> Iterator[Path]:
    """A folder that a local server hands out, in place of the addresses of mutag-188 and cora-ml."""
    folder = tmp_path / "served"
    folder.mkdir()

    class Handler(SimpleHTTPRequestHandler):
        def send_header(self, name: str, value: str) -> None:
            short = name == "Content-Length" and self.path.endswith("cora_ml.npz")
            super().send_header(name, str(int(value) + 9) if short else value)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=folder)) as running:
        thread = Thread(target=running.serve_forever, args=[0.01])  # seconds until it sees that it shall stop
        thread.start()
        address = f"http://127.0.0.1:{running.server_port}"
        for name, file in {"mutag-188": "MUTAG.zip", "cora-ml": "{}"}.items():
            monkeypatch.setitem(public.SOURCES, name, replace(public.SOURCES[name], url=f"{address}/{file}"))
        yield folder
        running.shutdown()
        thread.join()


def test_a_download_that_breaks_off_leaves_nothing_behind(tmp_path, server) -> None:
    (server / "cora_ml.npz").write_bytes(b"half of i")
    with pytest.raises(DatasetError, match=r"cannot be downloaded \(.*9 more expected"):
        load_dataset("cora-ml", root=tmp_path / "root")
    assert list((tmp_path / "root").iterdir()) == []


def test_an_archive_is_unpacked_and_one_without_the_files_is_refused(tmp_path, server) -> None:
    names = public.SOURCES["mutag-188"].files
    with ZipFile(server / "MUTAG.zip", "w") as archive:
        for name in names[1:]:
            archive.writestr(f"MUTAG/{name}", "1\n")
    with pytest.raises(DatasetError, match=r"cannot be downloaded \('MUTAG_A.txt'\)"):
        load_dataset("mutag-188", root=tmp_path / "root")
    with ZipFile(server / "MUTAG.zip", "a") as archive:
        archive.writestr("MUTAG/MUTAG_A.txt", "1, 1\n")
    with pytest.raises(DatasetError, match="not mutag-188 as published"):
        load_dataset("mutag-188", root=tmp_path / "root")
    assert sorted(file.name for file in (tmp_path / "root/MUTAG/raw").iterdir()) == sorted(names)
    assert [folder.name for folder in (tmp_path / "root").iterdir()] == ["MUTAG"]


def test_a_file_that_a_server_does_not_have_is_named(tmp_path, server) -> None:
    with pytest.raises(DatasetError, match=r"cora_ml\.npz"):
        load_dataset("cora-ml", root=tmp_path / "root")


def test_a_damaged_file_is_an_error_of_ours(tmp_path) -> None:
    folder = tmp_path / "cora_ml" / "raw"
    folder.mkdir(parents=True)
    (folder / "cora_ml.npz").write_bytes(b"not a zip archive")
    with pytest.raises(DatasetError, match="cannot be read"):
        load_dataset("cora-ml", root=tmp_path)


def test_a_pickle_with_another_checksum_is_never_opened(tmp_path) -> None:
    folder = tmp_path / "CiteSeer" / "raw"
    folder.mkdir(parents=True)
    marker = tmp_path / "executed"
    attack = pickle.dumps(Attack(marker))
    for file in public.SOURCES["citeseer"].files:
        (folder / file).write_bytes(attack)
    with pytest.raises(DatasetError, match="not the published file"):
        load_dataset("citeseer", root=tmp_path)
    assert not marker.exists()
    pickle.loads(attack)
    assert marker.exists()  # so the attack would have worked


def test_another_dataset_under_the_same_name_is_refused(tmp_path) -> None:
    folder = tmp_path / "MUTAG" / "raw"
    folder.mkdir(parents=True)
    for part, text in {
        "A": "1, 2\n2, 1\n3, 4\n4, 3",
        "graph_indicator": "1\n1\n2\n2",
        "graph_labels": "1\n-1",
        "node_labels": "0\n1\n0\n1",
    }.items():
        (folder / f"MUTAG_{part}.txt").write_text(text + "\n")
    with pytest.raises(DatasetError, match="not mutag-188 as published"):
        load_dataset("mutag-188", root=tmp_path)


@pytest.mark.data
@pytest.mark.parametrize("name", NODE_SETS)
def test_a_public_graph_has_its_known_size(name, data_root) -> None:
    info, data = DATASETS[name], load_dataset(name, root=data_root)
    assert (data.num_nodes, data.num_classes, data.num_features) == (info.size, info.classes, info.features)
    assert data.edge_index.size(1) == 2 * info.edges
    assert_simple_undirected(data)
    assert data.y.unique().tolist() == list(range(info.classes))
    assert data.name == name
    assert int((degrees(data) == 0).sum()) == {"citeseer": 48, "amazon-c": 281}.get(name, 0)
    assert data.x.dtype == torch.float32


@pytest.mark.data
@pytest.mark.parametrize("name", GRAPH_SETS)
def test_a_public_graph_set_has_its_known_size(name, data_root) -> None:
    info, graphs = DATASETS[name], load_dataset(name, root=data_root)
    largest = {"aids": 95, "mutag": 417, "proteins": 620, "dd": 5748, "mutag-188": 28}
    first_class = {"aids": 400, "mutag": 2401, "proteins": 663, "dd": 691, "mutag-188": 63}
    assert (len(graphs), graphs.num_classes, graphs.num_features) == (info.size, info.classes, info.features)
    assert np.mean([g.num_edges / 2 for g in graphs]) == pytest.approx(info.edges, abs=0.005)
    assert max(g.num_nodes for g in graphs) == largest[name]
    assert int((graphs.y == 0).sum()) == first_class[name]
    assert_simple_undirected(graphs[0])
    assert all(torch.equal(g.node_id, torch.arange(g.num_nodes)) for g in graphs)


@pytest.mark.data
def test_cora_ml_features_are_zeros_and_ones(data_root) -> None:
    assert load_dataset("cora-ml", root=data_root).x.unique().tolist() == [0, 1]


# Digits


def test_generated_accounts_match_the_list_of_datasets() -> None:
    info, data = DATASETS["accounts-generated"], load_dataset("accounts-generated")
    shape = (data.num_nodes, data.num_edges / 2, data.num_classes, data.num_features)
    assert shape == (info.size, info.edges, info.classes, info.features)
    assert data.class_names == ["genuine", "fraud"]
    assert 0.025 < data.y.float().mean() < 0.035
    young = data.x[:, 0] < 0  # an account pays to young ones if it is fraud
    source, target = data.edge_index
    assert young[target[data.y[source] == 1]].float().mean() > 0.7


def test_generated_circles_match_the_list_of_datasets() -> None:
    info, data = DATASETS["circles-generated"], load_dataset("circles-generated")
    shape = (data.num_nodes, data.num_edges / 2, data.num_classes, data.num_features)
    assert shape == (info.size, info.edges, info.classes, info.features)
    source, target = data.edge_index
    within = (data.y[source] == data.y[target]).float().mean()
    assert 0.8 < within < 0.9, "friends are mostly of one circle"
    by_features = (data.x.argmax(dim=1) == data.y).float().mean()
    assert 0.6 < by_features < 0.8, "features say something, and do not suffice"


def test_the_digits_match_the_list_of_datasets(knn, grid) -> None:
    info = DATASETS["digits-knn"]
    assert (knn.num_nodes, knn.num_classes, knn.num_features) == (info.size, info.classes, info.features)
    assert knn.edge_index.size(1) == 2 * info.edges
    info = DATASETS["digits-grid"]
    assert (len(grid), grid.num_classes, grid.num_features) == (info.size, info.classes, info.features)
    assert np.mean([g.num_edges / 2 for g in grid]) == pytest.approx(info.edges, abs=0.005)


def test_every_digit_is_joined_to_its_six_nearest(knn) -> None:
    assert_simple_undirected(knn)
    assert int(degrees(knn).min()) >= 6
    distance = torch.cdist(knn.x[:1].double(), knn.x.double())[0]
    distance[0] = torch.inf
    neighbours = knn.edge_index[1][knn.edge_index[0] == 0]
    assert set(distance.argsort()[:6].tolist()) <= set(neighbours.tolist())


def test_a_digit_is_drawn_by_its_lit_pixels(grid) -> None:
    graph = grid[0]
    row, column = graph.node_id // 8, graph.node_id % 8
    assert torch.equal(graph.x[:, 1:9].argmax(1), row)
    assert torch.equal(graph.x[:, 9:].argmax(1), column)
    assert float(graph.x[:, 0].min()) >= 4 / 16
    u, v = torch.combinations(torch.arange(graph.num_nodes)).T
    beside = torch.maximum((row[u] - row[v]).abs(), (column[u] - column[v]).abs()) == 1
    joined = {tuple(pair) for pair in graph.edge_index.T.tolist()}
    assert joined == {p for a, b in zip(u[beside].tolist(), v[beside].tolist(), strict=True) for p in ((a, b), (b, a))}


def test_listing_the_datasets_needs_no_torch() -> None:
    import subprocess
    import sys

    code = "import sys; from agnncert.datasets.catalog import DATASETS; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_package_offers_its_loaders() -> None:
    import agnncert

    assert agnncert.load_dataset is load_dataset
    assert agnncert.load_tables is load_tables
