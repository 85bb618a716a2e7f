"""Graphs with a real adversary: tiny files in the form of the published ones, and the published ones where they are."""

import gzip
import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import agnncert as ac
from agnncert.datasets import catalog, download, load
from agnncert.datasets.fraud import assemble_cresci, read_fraud
from agnncert.errors import DatasetError
from tests.support.paths import PROJECT


def rows_of(data) -> dict[tuple[int, int], list[float]]:
    return dict(zip(map(tuple, data.edge_index.t().tolist()), data.edge_attr.tolist(), strict=True))


def cresci(folder: Path) -> list[Path]:
    """The tensors of the source: three accounts that follow each other, each pair once per type, and seven others."""
    edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 2]])
    tensors = {
        "num_properties_tensor": torch.randn(10, 5), "cat_properties_tensor": torch.ones(10, 1),
        "label": torch.arange(10) % 2, "edge_index": torch.cat([edges, edges], 1),
        "edge_type": torch.arange(8) // 4, "train_idx": torch.arange(5), "val_idx": torch.arange(5, 7),
        "test_idx": torch.arange(7, 10),
    }  # fmt: skip
    folder.mkdir(exist_ok=True, parents=True)
    for name, tensor in tensors.items():
        torch.save(tensor, folder / f"{name}.pt")
    assemble_cresci(folder)
    return [folder / "cresci15.npz"]


def ethereum(folder: Path) -> list[Path]:
    edges = "id,from,to,amount,n_transactions,timestamp\n0,9,4,2.5,3,1514764800\n1,4,9,0,1,1546321752\n2,7,4,1,1,1483207848\n"
    nodes = ["id,label,has_label,is_train,is_test"]
    nodes += [f"{k},{k % 2}.0,True,{k < 14},{k >= 14}" for k in range(19, 3, -1)] + ["20,,False,False,False"]
    (folder / "edges.csv").write_text(edges)
    (folder / "nodes.csv.gz").write_bytes(gzip.compress("\n".join(nodes).encode()))
    return [folder / "edges.csv", folder / "nodes.csv.gz"]


def otc(folder: Path) -> list[Path]:
    (folder / "otc_network.csv").write_text("6,2,-10,1356998400.5\n2,6,4,1356998400\n5,2,1,1388555352\n")
    (folder / "otc_gt.csv").write_text("6,1\n2,-1\n")
    return [folder / "otc_network.csv", folder / "otc_gt.csv"]


def test_cresci_has_who_follows_whom(tmp_path) -> None:
    data = read_fraud("cresci-15", cresci(tmp_path), seed=1)
    assert rows_of(data) == {(0, 1): [1, 1], (1, 0): [1, 1], (1, 2): [1, 0], (2, 1): [0, 1]}
    assert (data.x.shape, data.y.tolist(), data.class_names) == ((10, 6), [0, 1] * 5, ["genuine", "bot"])
    assert sum(int(data[mask].sum()) for mask in ("train_mask", "val_mask", "test_mask")) == 10


def test_ethereum_has_payments_both_ways_and_the_test_part_of_the_source(tmp_path) -> None:
    data = read_fraud("ethereum-phishing", ethereum(tmp_path), seed=0)
    assert data.node_id.tolist() == list(range(4, 21))
    sent = [1, float(np.float32(np.arcsinh(2.5))), float(np.float32(np.log(3))), 0]
    back = [1, 0, 0, float(np.float32(31_556_952 / 31_556_952))]
    assert rows_of(data)[5, 0] == sent + back
    assert rows_of(data)[0, 5] == back + sent
    assert rows_of(data)[3, 0][3] == pytest.approx(-1.0, abs=0.01)
    assert data.y.tolist() == [*(k % 2 for k in range(4, 20)), -1]
    assert data.test_mask.nonzero().view(-1).tolist() == list(range(10, 16))
    assert not (data.train_mask & data.val_mask).any()
    assert int((data.train_mask | data.val_mask).sum()) == 10
    assert set(data.y[data.val_mask].tolist()) == {0, 1}
    assert data.edge_names[:4] == ["payment", "amount", "transactions", "time"]


def test_otc_has_signed_ratings_with_their_time(tmp_path) -> None:
    data = read_fraud("bitcoin-otc", otc(tmp_path), seed=0)
    assert data.node_id.tolist() == [2, 5, 6]
    assert data.y.tolist() == [1, -1, 0]
    assert rows_of(data)[2, 0] == pytest.approx([1, -1.0, 0, 1, 0.4, 0], abs=1e-6)
    assert rows_of(data)[1, 0] == pytest.approx([1, 0.1, 1.0, 0, 0, 0], abs=1e-3)


def test_tolokers_has_the_splits_of_the_source(tmp_path) -> None:
    masks = {f"{part}_masks": np.arange(30).reshape(10, 3) % 3 == k for k, part in enumerate(("train", "val", "test"))}
    masks["train_masks"][7] = [True, True, False]
    features = np.ones((3, 2), np.float32)
    np.savez(
        tmp_path / "t.npz",
        node_features=features,
        node_labels=np.array([0, 1, 0]),
        edges=np.array([[0, 1], [1, 2]]),
        **masks,
    )
    data = read_fraud("tolokers", [tmp_path / "t.npz"], seed=17)
    assert data.train_mask.tolist() == [True, True, False]
    assert data.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]
    assert "edge_attr" not in data


# Files


@pytest.fixture
def offline(monkeypatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError("no network")

    monkeypatch.setattr(download.urllib.request, "urlopen", refuse)


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize("name", catalog.FRAUD)
def test_a_missing_file_is_named_with_its_folder_and_where_it_comes_from(name, tmp_path) -> None:
    with pytest.raises(DatasetError) as told:
        ac.load_dataset(name, root=tmp_path)
    source = catalog.FRAUD[name]
    for part in (*source.files, str(source.raw(tmp_path)), "https://github.com/"):
        assert part in str(told.value)


def test_a_file_with_another_content_is_refused_and_compression_does_not_matter(tmp_path, monkeypatch) -> None:
    raw = tmp_path / "BitcoinOTC" / "raw"
    raw.mkdir(parents=True)
    files = otc(raw)
    with pytest.raises(DatasetError, match=r"otc_network\.csv is not the published file"):
        ac.load_dataset("bitcoin-otc", root=tmp_path)
    text = files[0].read_bytes()
    files[0].unlink()
    (raw / "otc_network.csv.gz").write_bytes(gzip.compress(text))
    for file in (raw / "otc_network.csv.gz", files[1]):
        known = hashlib.sha256(text if file != files[1] else file.read_bytes()).hexdigest()
        monkeypatch.setitem(catalog.SHA256, file.name.removesuffix(".gz"), known)
    with pytest.raises(DatasetError, match=r"not bitcoin-otc as published: .* \(3, 2, 1\), expected \(5881, 2, 1\)"):
        ac.load_dataset("bitcoin-otc", root=tmp_path)


def test_downloads_are_put_together_and_renamed(tmp_path, monkeypatch) -> None:
    remote = tmp_path / "remote"
    cresci(remote)
    ethereum(remote)
    (remote / "nodes_train_test_split.csv").write_bytes(gzip.decompress((remote / "nodes.csv.gz").read_bytes()))
    for name in ("cresci-15", "ethereum-phishing"):
        monkeypatch.setitem(load.SOURCES, name, replace(catalog.FRAUD[name], url=f"{remote.as_uri()}/{{}}"))
        with pytest.raises(DatasetError, match="is not the published file"):
            ac.load_dataset(name, root=tmp_path / "root")
        assert load.SOURCES[name].missing(tmp_path / "root") == []
    known = download._content(remote / "cresci15.npz")
    assert download._content(tmp_path / "root/Cresci15/raw/cresci15.npz") == known


DIGESTS = {
    "cresci-15": "d5e12f96018c919b1b288fb49f1af5b7245bf9e35d6427b56906c75750d2afca",
    "ethereum-phishing": "07ad8cf044d535b4c426d97cefdc0103fd9449dc80b0bc2bfc261eabf9e88e29",
    "bitcoin-otc": "e51c9ebe00871534de26972b74b01fe5dd1c3e54b2ef79850f32a11cc6c695d7",
    "tolokers": "201cb33efd1f7f4a9d89bb53c32b673636588109ff8b29dae54ae53e47cf18da",
}


@pytest.mark.data
@pytest.mark.parametrize("name", catalog.FRAUD)
def test_the_published_files_give_the_known_graph(name, data_root) -> None:
    missing = catalog.FRAUD[name].missing(data_root)
    if missing:
        pytest.skip(f"{', '.join(missing)} of {name} is not in {data_root}")
    info, data = catalog.DATASETS[name], ac.load_dataset(name, root=data_root)
    assert (data.num_nodes, data.num_edges, data.num_features) == (info.size, 2 * info.edges, info.features)
    assert ac.dataset_digest(data) == DIGESTS[name]
    for mask in ("train_mask", "val_mask", "test_mask"):
        assert set(data.y[data[mask]].tolist()) == {0, 1}
    assert len(data.get("edge_names", [])) == data.num_edge_features


@pytest.mark.parametrize("name", [*catalog.FRAUD, "big-vul"])
def test_the_documentation_says_what_is_known_about_each(name) -> None:
    page = (PROJECT / "docs/commands/datasets.md").read_text()
    section = page.partition(f"### `{name}`\n")[2].partition("\n#")[0]
    source = catalog.SOURCES[name]
    for part in (*source.files, f"`{source.folder}/raw`", "**Licence**", "**Cite**", "**Known**"):
        assert part in section, part
    if name in DIGESTS:
        assert DIGESTS[name] in section
        repository, _, folder = source.url.removesuffix("/{}").partition("/raw/")
        assert f"({repository}), `{folder}`" in section
