import os

import pytest

from agnncert.errors import DatasetError
from agnncert_code.source_files import _leads_astray, read_source, source_files
from tests.support.mutations import edited
from tests.support.scanned import write_tree


def test_sources_are_found_in_order_and_links_are_not_followed(tmp_path):
    files, skipped = source_files(write_tree(tmp_path / "tree"))
    names = [file.relative_to(tmp_path / "tree" / "lib").as_posix() for file in files]
    assert names == ["cut.cc", "inner/two.HPP", "latin.c", "one.c", "pipe.c"]
    assert skipped == {str(tmp_path / "tree/lib/elsewhere.c"): "is a link that leads out of the folder"}


def test_a_linked_folder_that_leads_out_is_named_and_version_control_is_left_alone(tmp_path):
    (tmp_path / "tree" / ".git").mkdir(parents=True)
    (tmp_path / "tree" / ".git" / "hidden.c").touch()
    os.symlink("/", tmp_path / "tree" / "root")
    assert source_files(tmp_path / "tree") == (
        [],
        {str(tmp_path / "tree" / "root"): "is a link that leads out of the folder"},
    )


def test_a_file_that_is_named_is_read_whatever_it_is_called(tmp_path):
    (tmp_path / "notes.txt").write_text("\ufeffint a;", encoding="utf-8")
    assert source_files(tmp_path / "notes.txt") == ([tmp_path / "notes.txt"], {})
    assert read_source(tmp_path / "notes.txt") == "int a;"


def test_no_folder_and_no_source_are_said(tmp_path):
    with pytest.raises(DatasetError, match="does not exist"):
        source_files(tmp_path / "none")
    with pytest.raises(DatasetError, match=r"no C or C\+\+ file below"):
        source_files(tmp_path)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("latin.c", r"is not UTF-8 \(byte 0xe9 in line 3\)"),
        ("pipe.c", "is no regular file"),
        ("folder.c", "is no regular file"),
        ("none.c", "No such file"),
        ("one.c", "is larger than 100 bytes"),
    ],
)
def test_why_a_file_cannot_be_read(tmp_path, name, why):
    with pytest.raises(DatasetError, match=why):
        read_source(write_tree(tmp_path / "tree") / "lib" / name, largest=100)


@pytest.mark.parametrize(
    ("exclude", "left"),
    [
        (("inner",), ["cut.cc", "latin.c", "one.c", "pipe.c"]),
        (("lib/inner/",), ["cut.cc", "latin.c", "one.c", "pipe.c"]),
        (("*.c", "lib/c*.cc"), ["inner/two.HPP"]),
    ],
)
def test_paths_can_be_passed_over(tmp_path, exclude, left):
    files, _ = source_files(write_tree(tmp_path / "tree"), exclude=exclude)
    assert [file.relative_to(tmp_path / "tree" / "lib").as_posix() for file in files] == left


def test_who_excludes_everything_is_told(tmp_path):
    (tmp_path / "a.c").touch()
    with pytest.raises(DatasetError, match=r"except \*\.c"):
        source_files(tmp_path, exclude=["*.c"])


def test_links_to_themselves_are_named_and_end_nothing(tmp_path):
    (tmp_path / "one.c").write_text("int a;")
    for name in ("itself.c", "folder"):
        os.symlink(name, tmp_path / name)
    os.symlink("there.c", tmp_path / "here.c")
    os.symlink("here.c", tmp_path / "there.c")
    files, skipped = source_files(tmp_path)
    assert files == [tmp_path / "one.c"]
    assert skipped == {
        str(tmp_path / name): "is a link that leads to itself" for name in ("itself.c", "here.c", "there.c")
    }
    with pytest.raises(DatasetError, match="does not exist"):
        source_files(tmp_path / "itself.c")


def test_without_the_guard_against_them_such_links_end_a_scan(tmp_path, monkeypatch):
    broken = edited(_leads_astray, "(OSError, RuntimeError)", "KeyError")
    monkeypatch.setattr(_leads_astray, "__code__", broken.__code__)
    with pytest.raises((OSError, RuntimeError), match="ymlink"):
        test_links_to_themselves_are_named_and_end_nothing(tmp_path)
