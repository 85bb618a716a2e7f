"""Every code block of the documentation does what the page says."""

import shutil
import sys
from pathlib import Path

import pytest

from agnncert.cli import main
from tests.support.doc_blocks import blocks_of, require_output, run_page, runs_given_to
from tests.support.paths import PROJECT

MEASURED = ("results.md",)  # what was measured, with commands that take hours
PAGES = sorted(
    page
    for page in [PROJECT / "README.md", PROJECT / "CONTRIBUTING.md", *(PROJECT / "docs").rglob("*.md")]
    if page.name not in MEASURED
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder to work in; what a page imports from it is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        file = getattr(sys.modules[name], "__file__", None)
        if file is not None and Path(file).is_relative_to(tmp_path):
            del sys.modules[name]


@pytest.fixture(scope="session")
def finished_run(tmp_path_factory):
    """A small run, trained and certified, for pages that begin with one."""
    path = tmp_path_factory.mktemp("given") / "digits"
    assert main(["train", "digits-knn", "--groups", "40", "--epochs", "10", "--out", str(path)]) == 0
    assert main(["certify", str(path), "--no-report"]) == 0
    return path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_blocks_do_what_the_page_says(page, folder, request, monkeypatch):
    for name in runs_given_to(page):
        shutil.copytree(request.getfixturevalue("finished_run"), folder / name)
    blocks = blocks_of(page)
    run_page(blocks, has_data=_has_data(blocks, folder, request, monkeypatch))


def _has_data(blocks, folder, request, monkeypatch):
    """Puts the real datasets where a user has them, if a block needs them and they can be had."""
    if not any(block.mark == "needs" for block in blocks):
        return False
    try:
        root = request.getfixturevalue("data_root")
    except pytest.skip.Exception:
        return False
    home = folder / "home"
    (home / ".cache" / "agnncert").mkdir(parents=True)
    (home / ".cache" / "agnncert" / "data").symlink_to(root)
    monkeypatch.setenv("HOME", str(home))
    return True


def page_of(folder, *lines):
    page = folder / "page.md"
    page.write_text("\n".join(lines), encoding="utf-8")
    return blocks_of(page)


def test_blocks_of_a_page_run_in_order_in_one_namespace(folder):
    blocks = page_of(
        folder, "```python", "a = 20", "```", "Then", "```python", "print(a + 1)", "```", "", "```text", "21", "```"
    )
    assert run_page(blocks, has_data=False) == 2


@pytest.mark.parametrize(
    "lines",
    [
        ["```python", "1 / 0", "```"],
        ["```python", "print(3)", "```", "```text", "4", "```"],
        ["```python", "print('a 3')", "```", "<!-- numbers vary -->", "```text", "b 4", "```"],
        ["```console", "$ agnncert verify no-such-file", "```"],
        ["```console", "$ agnncert --version", "agnncert 99", "```"],
        ["```console", "$ agnncert --version", "$ echo $?", "1", "```"],
        ["```bash", "agnncert --no-such-option", "```"],
        ["```bash", "make coffee", "```"],
    ],
    ids=["error", "output", "words", "status", "console output", "stated status", "bash", "program"],
)
def test_a_block_that_does_something_else_is_noticed(lines, folder):
    with pytest.raises((AssertionError, ZeroDivisionError)):
        run_page(page_of(folder, *lines), has_data=False)


def test_marked_blocks_are_left_out_and_titled_ones_are_files(folder):
    blocks = page_of(
        folder,
        "<!-- not run: takes minutes -->",
        "```python",
        "1 / 0",
        "```",
        "<!-- needs: data -->",
        "```python",
        "1 / 0",
        "```",
        '```python title="mine.py"',
        "1 / 0",
        "```",
        "```console",
        "$ cat mine.py",
        "1 / 0",
        "```",
    )
    assert run_page(blocks, has_data=False) == 2
    with pytest.raises(ZeroDivisionError):
        run_page(blocks, has_data=True)


def test_numbers_may_vary_a_little_where_the_page_says_so(folder):
    block = ["```python", "print([0.71, 12])", "```"]
    run_page(page_of(folder, *block, "<!-- numbers vary -->", "```text", "[0.7, 3]", "```"), has_data=False)
    with pytest.raises(AssertionError):
        run_page(page_of(folder, *block, "```text", "[0.7, 3]", "```"), has_data=False)
    with pytest.raises(AssertionError, match=r"printed 0.71 instead of 0.5"):
        run_page(page_of(folder, *block, "<!-- numbers vary -->", "```text", "[0.5, 3]", "```"), has_data=False)


def test_times_in_an_output_are_not_compared():
    table = "defence  0     passes  seconds  time / forward\nmine     89.6      12     {}         {}\n\nand {} s, 3"
    shown = table.format("1.92", "2,184.6", "0.3")
    require_output(table.format("0.2", "103.9", "71"), shown, "page", numbers_vary=True)
    with pytest.raises(AssertionError, match=r"70.6 instead of 89.6"):
        require_output(shown.replace("89.6", "70.6"), shown, "page", numbers_vary=True)
    with pytest.raises(AssertionError, match="50 instead of 3"):
        require_output(shown.replace("s, 3", "s, 50"), shown, "page", numbers_vary=True)


def test_the_documentation_has_blocks_to_run():
    counted = [sum(not block.mark for block in blocks_of(page)) for page in PAGES]
    assert sum(counted) >= 50
