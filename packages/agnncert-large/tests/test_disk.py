"""Graphs in folders: what goes in comes out, as a mapping that never alters its files; what is damaged is refused by name."""

import json
import tokenize
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import agnncert as ac
from agnncert_large import disk
from tests.support.flushes import inode, noted_flushes
from tests.support.labelled import labelled_graph
from tests.support.mutations import edited


def everything() -> Data:
    data = labelled_graph(num_nodes=12)
    data.edge_weight = torch.rand(data.num_edges)
    data.half = torch.rand(12, 2).half()
    data.name, data.num_classes, data.class_names = "små", 3, ["a", "b", "c"]
    return data


def seal_again(folder: Path, change) -> None:
    file = folder / disk.MANIFEST
    manifest = json.loads(file.read_text())
    manifest.pop("sha256")
    change(manifest)
    file.write_text(json.dumps(manifest | {"sha256": disk._seal(manifest)}))


def test_what_goes_in_comes_out(tmp_path):
    data = everything()
    ac.write_graph(data, tmp_path / "g")
    again = ac.open_graph(tmp_path / "g")
    assert set(again.keys()) - {"graph_folder"} == set(data.keys())
    for name, value in data:
        if isinstance(value, torch.Tensor):
            assert again[name].dtype == value.dtype, name
            assert torch.equal(again[name], value), name
        else:
            assert again[name] == value
    assert ac.dataset_digest(again) == ac.dataset_digest(data)
    ac.write_graph(again, tmp_path / "twice")
    first, second = (json.loads((tmp_path / name / disk.MANIFEST).read_text()) for name in ("g", "twice"))
    assert first == second


@pytest.mark.parametrize("ids", [["x", "7", "07", str(2**70), "ü", "", "a", "b", "c", "d", "e", "\0"], range(5, 17)])
def test_ids_keep_their_identity(tmp_path, ids):
    data = everything()
    data.node_id = list(ids)
    ac.write_graph(data, tmp_path / "g")
    assert ac.dataset_digest(ac.open_graph(tmp_path / "g")) == ac.dataset_digest(data)


def test_a_graph_without_edges_and_ids(tmp_path):
    ac.write_graph(Data(x=torch.ones(3, 2), edge_index=torch.empty(2, 0, dtype=torch.int64)), tmp_path / "g")
    data = ac.open_graph(tmp_path / "g")
    assert data.edge_index.shape == (2, 0)
    assert "node_id" not in data


def test_tensors_are_mapped_and_writing_into_them_leaves_the_files_alone(tmp_path):
    ac.write_graph(everything(), tmp_path / "g")
    before = (tmp_path / "g" / "x.npy").read_bytes()
    data = ac.open_graph(tmp_path / "g")
    assert str(tmp_path / "g" / "x.npy") in Path("/proc/self/maps").read_text()
    data.x.add_(1)
    data.edge_index[0, 0] = 3
    assert (tmp_path / "g" / "x.npy").read_bytes() == before
    assert torch.equal(data.x, ac.open_graph(tmp_path / "g").x + 1)


def test_a_certificate_of_an_opened_graph_is_that_of_the_graph(tmp_path):
    data = labelled_graph(num_nodes=40)
    ac.write_graph(data, tmp_path / "g")
    opened = ac.open_graph(tmp_path / "g")
    model = ac.build_model("gcn", data, hidden_channels=8)
    models = [ac.fit(ac.build_model("gcn", data, hidden_channels=8), one, epochs=2) for one in (data, opened)]
    for (name, mine), other in zip(models[0].state_dict().items(), models[1].state_dict().values(), strict=True):
        assert torch.equal(mine, other), name
    for division in (ac.NodeCentric(5), ac.EdgeCentric(5)):
        files = []
        for name, one in (("memory", data), ("disk", opened)):
            certificate = ac.certify(model.eval(), one, division)
            certificate.save(tmp_path / f"{name}.cert")
            files.append((tmp_path / f"{name}.cert").read_bytes())
            assert ac.verify(tmp_path / f"{name}.cert", data=opened, model=model).holds
        assert files[0] == files[1]


def test_every_file_is_on_the_disk_before_the_folder_takes_its_place(tmp_path, monkeypatch):
    calls = noted_flushes(monkeypatch)
    ac.write_graph(everything(), tmp_path / "g")
    folder = calls.index(("rename", inode(tmp_path / "g")))
    files = list((tmp_path / "g").glob("*.npy"))
    assert len(files) > 5
    for file in files:
        mapped, flushed = calls.index(("flush map", inode(file))), calls.index(("flush", inode(file)))
        assert mapped < flushed < folder
    assert calls.index(("flush", inode(tmp_path / "g" / disk.MANIFEST))) < folder
    assert calls[folder - 1] == ("flush", inode(tmp_path / "g"))  # the names of the files in it
    assert calls[folder:] == [("rename", inode(tmp_path / "g")), ("flush", inode(tmp_path))]


def test_nothing_is_left_of_a_folder_that_could_not_be_written(tmp_path):
    data = everything()
    data.odd = {"a": 1}
    with pytest.raises(ac.errors.GraphError, match=r"odd is a dict.*del data.odd"):
        ac.write_graph(data, tmp_path / "g")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_with_something_in_it_is_left_as_it_is(tmp_path):
    (tmp_path / "note.txt").write_text("mine")
    with pytest.raises(ac.errors.GraphError, match="exists already"):
        ac.write_graph(everything(), tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["note.txt"]


def test_what_is_no_single_graph_is_refused(tmp_path):
    with pytest.raises(ac.errors.GraphError, match=r"one graph.*list"):
        ac.write_graph([everything()], tmp_path / "g")
    data = everything()
    data.adj = data.x.to_sparse()
    with pytest.raises(ac.errors.GraphError, match="adj is a tensor without dense numbers"):
        ac.write_graph(data, tmp_path / "g")
    with pytest.raises(ac.errors.GraphError, match="complex64"):
        ac.write_graph(Data(x=torch.ones(1, 1, dtype=torch.complex64)), tmp_path / "g")


@pytest.fixture
def folder(tmp_path):
    ac.write_graph(everything(), tmp_path / "g")
    return tmp_path / "g"


@pytest.mark.parametrize("name", ["x", "edge_index", "y", "train_mask", "node_id", "half"])
def test_one_altered_byte_is_found_in_every_file(folder, name):
    file = folder / f"{name}.npy"
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(ac.errors.GraphError, match=f"{name}.npy was altered or damaged"):
        ac.open_graph(folder)
    ac.open_graph(folder, check=False)  # sizes alone


@pytest.mark.parametrize("check", [True, False])
def test_a_file_that_is_missing_or_cut_short_is_named(folder, check):
    file = folder / "y.npy"
    file.write_bytes(file.read_bytes()[:-8])
    with pytest.raises(ac.errors.GraphError, match=r"y\.npy has \d+ bytes, but the manifest says \d+"):
        ac.open_graph(folder, check=check)
    file.unlink()
    with pytest.raises(ac.errors.GraphError, match=r"y\.npy is missing: .* is incomplete"):
        ac.open_graph(folder, check=check)


def test_a_folder_without_or_with_another_manifest_is_refused(folder, tmp_path):
    with pytest.raises(ac.errors.GraphError, match="no folder"):
        ac.open_graph(tmp_path / "nowhere")
    manifest = folder / disk.MANIFEST
    text = manifest.read_text()
    manifest.write_text(text.replace('"num_classes": 3', '"num_classes": 4'))
    with pytest.raises(ac.errors.GraphError, match=r"manifest\.json was altered"):
        ac.open_graph(folder)
    for nonsense in ("", "[]", "{}", "[" * 100_000, '{"format": "other"}'):
        manifest.write_text(nonsense)
        with pytest.raises(ac.errors.GraphError, match="not the manifest of a graph"):
            ac.open_graph(folder)
    manifest.unlink()
    with pytest.raises(ac.errors.GraphError, match=r"has no manifest\.json"):
        ac.open_graph(folder)


def test_another_version_is_refused(folder):
    seal_again(folder, lambda manifest: manifest.update(version=2))
    with pytest.raises(ac.errors.GraphError, match="format version 2, this library reads version 1 only"):
        ac.open_graph(folder)
    seal_again(folder, lambda manifest: manifest.update(version=True))
    with pytest.raises(ac.errors.GraphError, match="names no version"):
        ac.open_graph(folder)


def test_a_manifest_cannot_lead_elsewhere_or_lie_about_a_file(folder):
    def named(manifest):
        manifest["arrays"]["../x"] = manifest["arrays"]["x"]

    seal_again(folder, named)
    with pytest.raises(ac.errors.GraphError, match="cannot read"):
        ac.open_graph(folder)

    def shaped(manifest):
        del manifest["arrays"]["../x"]
        manifest["arrays"]["y"]["shape"] = [11]

    seal_again(folder, shaped)
    with pytest.raises(ac.errors.GraphError, match=r"y\.npy holds int64 of shape \(12,\)"):
        ac.open_graph(folder)


def test_python_objects_are_never_unpickled(folder):
    bomb = np.array([print], dtype=object)
    np.save(folder / "y.npy", bomb, allow_pickle=True)
    seal_again(folder, lambda manifest: manifest["arrays"]["y"].update(disk._fingerprint(folder / "y.npy")))
    with pytest.raises(ac.errors.GraphError, match=r"y\.npy is no array: Array can.t be memory-mapped: Python objects"):
        ac.open_graph(folder)


HEADERS = [
    b"{'descr': '<i8', 'fortran_order': False, 'shape': (12,", b"{'descr': '<i8', 'fortran", b"{'descr': \"\"\"",
    b"", b"(", b"{'descr': '<i8', 'fortran_order': False, 'shape': ('a',)}", b"\x00" * 40, b"{'descr': []}", b"1" * 5_000,
    b"{'descr': '<i8', 'fortran_order': False, 'shape': (-1,)}", b"[" * 300, b"--" * 3_000 + b"1", b"-" * 9_000 + b"1",
    b"{'descr': '<i8', 'fortran_order': False, 'shape': (9223372036854775808,)}",
    b"{'descr': '<i8', 'fortran_order': False, 'shape': (True,)}", b"{'descr': ('<i8',), 'fortran_order': False, 'shape': (1,)}",
]  # fmt: skip


@pytest.mark.parametrize("header", HEADERS)
@pytest.mark.parametrize("version", [1, 2])
def test_a_header_that_was_cut_or_makes_no_sense_is_refused(folder, header, version):
    """The file is as long as the manifest says, and its digest is right: a forger can write both."""
    length = len(header).to_bytes(2 if version == 1 else 4, "little")
    (folder / "y.npy").write_bytes(b"\x93NUMPY" + bytes([version, 0]) + length + header + b"\0" * 96)
    seal_again(folder, lambda manifest: manifest["arrays"]["y"].update(disk._fingerprint(folder / "y.npy")))
    with pytest.raises(ac.errors.GraphError, match=r"y\.npy"):
        ac.open_graph(folder)


def every_header_is_refused(folder):
    for header in HEADERS:
        test_a_header_that_was_cut_or_makes_no_sense_is_refused(folder, header, 1)


@pytest.mark.parametrize(
    ("caught", "escapes"),
    [
        ("(OSError, ValueError, EOFError)", tokenize.TokenError),
        (
            "(OSError, ValueError, EOFError, LookupError, TypeError, SyntaxError, __import__('tokenize').TokenError)",
            (RecursionError, MemoryError),
        ),
    ],
)
def test_without_the_guard_against_them_such_headers_end_a_program(folder, monkeypatch, caught, escapes):
    broken = edited(disk._opened, "except Exception", f"except {caught}")
    monkeypatch.setattr(disk._opened, "__code__", broken.__code__)
    with pytest.raises(escapes):
        every_header_is_refused(folder)
