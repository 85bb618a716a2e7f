"""Files are written whole or not at all, and a sealed file notices every altered byte."""

import hashlib
import json
import os
import stat

import numpy as np
import pytest
from safetensors.numpy import save, save_file

from agnncert.errors import CertificateError, SettingsError
from agnncert.storage import read_sealed, write_atomic, write_sealed
from tests.support.flushes import inode, noted_flushes

HEADER = {"format": "test", "version": 1, "told": "ä"}
ARRAYS = {"table": np.arange(6).reshape(2, 3).T, "number": np.array(3.5), "none": np.zeros((0, 2), dtype=np.int16)}


def test_text_is_written_as_utf8_with_line_ends_as_they_are(tmp_path):
    write_atomic(tmp_path / "file", "ä\r\nb\n")
    assert (tmp_path / "file").read_bytes() == "ä\r\nb\n".encode()


def test_a_write_that_fails_leaves_the_old_file_and_no_draft(tmp_path, monkeypatch):
    write_atomic(tmp_path / "file", b"old")

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_atomic(tmp_path / "file", b"new")
    assert (tmp_path / "file").read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_file_is_on_the_disk_before_it_takes_its_place_and_so_is_its_name_in_the_end(tmp_path, monkeypatch):
    calls = noted_flushes(monkeypatch)
    write_atomic(tmp_path / "file", b"new")
    file, folder = inode(tmp_path / "file"), inode(tmp_path)
    assert calls == [("flush", file), ("rename", file), ("flush", folder)]


def test_a_sealed_file_is_on_the_disk_when_it_has_been_written(tmp_path, monkeypatch):
    calls = noted_flushes(monkeypatch)
    write_sealed(tmp_path / "file", HEADER, ARRAYS)
    file, folder = inode(tmp_path / "file"), inode(tmp_path)
    assert calls == [("flush", file), ("rename", file), ("flush", folder)]


def test_all_that_was_written_is_flushed_and_not_a_part_of_it(tmp_path, monkeypatch):
    """What Python still holds back when the file is flushed would be lost with the power."""
    sizes, fsync = [], os.fsync

    def note_size(handle):
        sizes.append(os.fstat(handle).st_size)
        fsync(handle)

    monkeypatch.setattr(os, "fsync", note_size)
    write_atomic(tmp_path / "file", [b"a" * 10_000, b"b" * 7])
    assert sizes[0] == 10_007


def test_a_folder_that_cannot_be_flushed_does_not_undo_the_file(tmp_path, monkeypatch):
    fsync = os.fsync

    def files_only(handle):
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(22, "Invalid argument")
        fsync(handle)

    monkeypatch.setattr(os, "fsync", files_only)
    write_atomic(tmp_path / "file", b"new")
    assert (tmp_path / "file").read_bytes() == b"new"


def test_a_new_file_has_the_usual_permissions(tmp_path):
    (tmp_path / "usual").write_bytes(b"")
    write_atomic(tmp_path / "file", b"")
    assert (tmp_path / "file").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_a_sealed_file_returns_header_and_arrays_with_their_shapes_and_types(tmp_path):
    write_sealed(tmp_path / "file", HEADER, ARRAYS)
    header, arrays = read_sealed(tmp_path / "file", "test", 1)
    assert {name: header[name] for name in HEADER} == HEADER
    for name, array in ARRAYS.items():
        assert arrays[name].shape == array.shape
        assert arrays[name].dtype == array.dtype
        assert (arrays[name] == array).all()


@pytest.mark.parametrize("chosen", [[], ["none"], ["table", "number", "none", "flags", "swapped", 'ä "quoted"']])
def test_a_sealed_file_is_the_one_that_safetensors_writes_but_for_its_digest(chosen, tmp_path):
    more = {"flags": np.array([True, False]), "swapped": np.arange(3, dtype=">i4"), 'ä "quoted"': np.ones(5, np.uint8)}
    arrays = {name: (ARRAYS | more)[name] for name in chosen}
    write_sealed(tmp_path / "file", HEADER, arrays)
    blob = (tmp_path / "file").read_bytes()
    header, _ = read_sealed(tmp_path / "file", "test", 1)
    text = json.dumps(header | {"file_sha256": "0" * 64}, sort_keys=True, separators=(",", ":"))
    plain = save({name: np.asarray(array, order="C") for name, array in arrays.items()}, {"certificate": text})
    assert header["file_sha256"] == hashlib.sha256(plain).hexdigest()
    assert blob.replace(header["file_sha256"].encode(), b"0" * 64) == plain


def test_every_altered_byte_is_noticed(tmp_path):
    file = tmp_path / "file"
    write_sealed(file, HEADER, ARRAYS)
    blob = file.read_bytes()
    for place in range(len(blob)):
        file.write_bytes(blob[:place] + bytes([blob[place] ^ 1]) + blob[place + 1 :])
        with pytest.raises(SettingsError):
            read_sealed(file, "test", 1, "test file", SettingsError)


def test_errors_are_of_the_callers_kind_and_in_the_callers_words(tmp_path):
    write_sealed(tmp_path / "file", HEADER, ARRAYS)
    with pytest.raises(SettingsError, match="file is not a checkpoint: its format is 'test'"):
        read_sealed(tmp_path / "file", "other", 1, "checkpoint", SettingsError)
    with pytest.raises(SettingsError, match="cannot write"):
        write_sealed(tmp_path / "no folder" / "file", HEADER, ARRAYS, SettingsError)
    save_file({"a": np.zeros(1)}, tmp_path / "plain", {"training": "{}"})
    with pytest.raises(CertificateError, match="is not a certificate: it does not begin with one's header"):
        read_sealed(tmp_path / "plain", "test", 1)
