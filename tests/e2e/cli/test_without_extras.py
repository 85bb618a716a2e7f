"""Installed without extras, the library verifies and reports; everything else says which extra it wants."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from agnncert.errors import ADDONS, EXTRAS, missing
from tests.support import programs
from tests.support.paths import GOLDEN, PROJECT

HEAVY = ("torch", "torch_geometric", "sklearn", "pandas", "pyarrow", "matplotlib", "pymetis")

# An interpreter in which some packages are not installed; runs each command and prints what came out.
SCRIPT = """
import contextlib, io, json, sys
from importlib.abc import MetaPathFinder

absent, commands = json.loads(sys.argv[1])

class Finder(MetaPathFinder):
    def __init__(self, usual):
        self.usual = usual

    def find_spec(self, name, path=None, target=None):
        return None if name.partition(".")[0] in absent else self.usual.find_spec(name, path, target)

    def find_distributions(self, *context):  # entry points of add-on packages
        return self.usual.find_distributions(*context) if hasattr(self.usual, "find_distributions") else []

sys.meta_path[:] = [Finder(usual) for usual in sys.meta_path]
from agnncert.cli import main

answers = []
for words in commands:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main(words)
    answers.append([status, out.getvalue(), err.getvalue()])
print(json.dumps(answers))
"""


def run(absent: tuple[str, ...], *commands: list[str]) -> list[tuple[int, str, str]]:
    """What commands answer where some packages are not installed."""
    done = programs.run(programs.PYTHON, "-c", SCRIPT, json.dumps([absent, commands]))
    assert done.returncode == 0, done.stderr
    return [tuple(answer) for answer in json.loads(done.stdout)]


def test_verify_and_report_need_neither_torch_nor_scipy(tmp_path: Path) -> None:
    files = [str(file) for file in sorted(GOLDEN.glob("*.cert"))]
    votes = [file for file in files if Path(file).stem in ("gated-node", "edge-centric-graph")]
    page = str(tmp_path / "page.html")
    absent = (*HEAVY, "scipy")
    reports = [["report", file, "--out", page] for file in votes]
    answers = run(absent, ["--help"], ["--version"], *(["verify", file] for file in files), *reports)
    assert [status for status, _, _ in answers] == [0] * len(answers), answers
    assert all("The arithmetic of this file is consistent." in out for _, out, _ in answers[2:-2])
    assert len(votes) == 2
    assert all("Report:" in out for _, out, _ in answers[-2:])
    assert "<html" in Path(page).read_text(encoding="utf-8")


def of_reviewer() -> list[str]:
    """The commands that the page about the installation promises without extras."""
    page = (PROJECT / "docs" / "installation.md").read_text(encoding="utf-8")
    row = next(line for line in page.splitlines() if line.startswith("| none |"))
    return [name.removeprefix("agnncert ") for name in re.findall(r"`([^`]+)`", row)]


@pytest.mark.parametrize("stem", ["gated-node", "pairs-common", "labels-any", "stacked-sum"])
def test_each_command_that_the_page_promises_without_extras_works_without_them(stem: str, tmp_path: Path) -> None:
    file = str(GOLDEN / f"{stem}.cert")
    contest = str(tmp_path / "contest.json")
    arguments = {
        "verify": [file], "check": [contest], "show": [file], "report": [file, "--out", str(tmp_path / "page.html")],
        "groups": [str(GOLDEN / "gated-node.cert") if stem == "pairs-common" else file],  # pairs have no degrees
        "diff": [file, file], "export": [file, "--out", str(tmp_path / "rows.csv")],
    }  # fmt: skip
    assert sorted(of_reviewer()) == sorted(arguments)
    to_check = ["export", file, "--to", "contest", "--out", contest]
    answers = run((*HEAVY, "scipy"), to_check, *([name, *arguments[name]] for name in of_reviewer()))
    assert [(status, err) for status, _, err in answers] == [(0, "")] * (1 + len(arguments))
    assert (tmp_path / "rows.csv").read_text(encoding="utf-8").startswith("id,")


def test_the_lean_installation_is_tried_with_the_commands_of_the_page() -> None:
    script = (PROJECT / ".ci" / "lean").read_text(encoding="utf-8")
    assert "docs/installation.md" in script
    for name in of_reviewer():
        assert re.search(rf"^                {name}\)\s", script, re.MULTILINE), name


NEEDS_TORCH = [
    ["demo"], ["train", "digits-knn"], ["certify", "digits-knn"], ["audit", "gcn"], ["attack", "runs/x"],
    ["compare", "digits-knn"],
    ["verify", str(GOLDEN / "gated-node.cert"), "--data", "digits-knn", "--model", "gcn", "--recheck", "5"],
]  # fmt: skip


def test_every_other_command_names_the_extra_it_wants(tmp_path: Path) -> None:
    page = ["--out", str(tmp_path / "page.html")]
    samples = ["report", str(GOLDEN / "bi-rs.cert"), *page]
    figures = ["report", str(GOLDEN / "gated-node.cert"), *page, "--papers", str(tmp_path)]
    of_samples, of_figures, *others = run(HEAVY, samples, figures, *NEEDS_TORCH)
    assert of_samples[0] == 0, "certificates from random samples are reported without torch"
    assert (of_figures[0], 'pip install ".[figures]"' in of_figures[2]) == (2, True), of_figures
    for words, (status, out, err) in zip(NEEDS_TORCH, others, strict=True):
        assert status == 2, words
        assert 'torch, which is not installed: pip install ".[torch]"' in err, words
        assert "Traceback" not in out + err
        assert len(err.splitlines()) == 1, words


@pytest.mark.slow
def test_with_torch_at_hand_the_rest_is_named_when_it_is_needed(place: Path) -> None:
    asked = [["train", data, "--epochs", "1", "--groups", "5"] for data in ("tables", "digits-knn")]
    wanted = [("reading tables", "pandas", ".[data]"), ("digits", "sklearn", ".[data]")]
    for words, (status, _, err) in zip(wanted, run(("pandas", "sklearn"), *asked), strict=True):
        assert status == 2
        assert all(word in err for word in words), err


def test_python_names_the_extra_too() -> None:
    script = (
        "import sys\nsys.modules['torch'] = None\nimport agnncert as ac\nac.Budget(), ac.verify\n"
        "try:\n    ac.certify\nexcept ImportError as error:\n    print(isinstance(error, ac.AgnncertError), error)"
    )
    done = programs.run(programs.PYTHON, "-c", script)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("True agnncert.certify needs torch, which is not installed: pip install"), done.stdout


def test_each_package_comes_with_the_extra_that_errors_name() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    listed = {extra: " ".join(packages) for extra, packages in project["optional-dependencies"].items()}
    called = {"sklearn": "scikit-learn"}
    for package, extra in EXTRAS.items():
        assert called.get(package, package) in listed[extra]
        assert extra in listed["all"] or extra == "mlflow"  # a tracker, which only those need who have one
    assert not any(called.get(p, p) == name.partition(">")[0] for name in project["dependencies"] for p in EXTRAS)


def test_packages_of_the_add_ons_are_installed_from_a_clone() -> None:
    for package, addon in ADDONS.items():
        assert f"pip install ./packages/{addon} in a clone" in str(missing(package))
        project = tomllib.loads(
            (PROJECT / "packages" / addon.partition("[")[0] / "pyproject.toml").read_text(encoding="utf-8")
        )["project"]
        assert package.replace("_", "-") in str(
            [project["name"], project["dependencies"], project.get("optional-dependencies")]
        )
