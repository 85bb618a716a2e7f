"""docs/trust.md says the truth: its files exist, are as long as it says, and the halves import nothing of each other."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
SOURCE = PROJECT / "src" / "agnncert"
PAGE = (PROJECT / "docs" / "trust.md").read_text(encoding="utf-8")


def rows(title: str) -> list[list[str]]:
    section = re.search(rf"## {title}\n(.*?)(\n## |\Z)", PAGE, re.DOTALL)
    return [row.strip("| ").split(" | ") for row in section[1].splitlines() if row.startswith("| `")]


def named(title: str) -> list[str]:
    return [name for row in rows(title) for name in re.findall(r"`([^`]+)`", row[0])]


TRUSTED, PROVING = named("What to read"), named("What you do not have to trust")


def modules(names: list[str]) -> set[str]:
    return {f"agnncert.{name.replace('/', '.')}" for name in names}


def imports(name: str) -> set[str]:
    """The library's modules that a file imports, also inside functions; of ``verify``, what a file alone needs."""
    tree = ast.parse((SOURCE / f"{name}.py").read_text(encoding="utf-8"))
    nodes = tree.body if name == "verdict" else ast.walk(tree)
    imported = set()
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            imported |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
    return {module for module in imported if (SOURCE.parent / f"{module.replace('.', '/')}.py").is_file()}


def test_the_page_names_every_file_of_prover_and_verifier_once():
    files = [path for package in ("certificates", "proving", "verifier") for path in (SOURCE / package).rglob("*.py")]
    names = {path.relative_to(SOURCE).with_suffix("").as_posix() for path in files if path.stem != "__init__"}
    assert sorted([*TRUSTED, *PROVING]) == sorted(names | {"storage", "errors", "verdict"})


@pytest.mark.parametrize("name", TRUSTED)
def test_a_trusted_file_imports_trusted_files_only(name):
    assert imports(name) <= modules(TRUSTED)


@pytest.mark.parametrize("name", PROVING)
def test_a_proving_file_imports_nothing_that_checks(name):
    checking = [file for file in TRUSTED if file.startswith("verifier/")]
    assert not imports(name) & modules([*checking, "verdict"])


def test_the_contracts_speak_about_the_same_files():
    contracts = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    (trusted,) = (c for c in contracts if c["name"].startswith("what a verifier trusts"))
    (layers,) = (c["layers"] for c in contracts if c["type"] == "layers")
    assert {"torch", "torch_geometric", "scipy"} <= set(trusted["forbidden_modules"])
    assert "agnncert.proving | agnncert.verifier" in layers  # neither imports the other
    for module in modules(TRUSTED) - {"agnncert.verdict"}:
        assert any(f"{module}.".startswith(f"{whole}.") for whole in trusted["source_modules"])
    for module in modules(PROVING):
        assert any(f"{module}.".startswith(f"{whole}.") for whole in trusted["forbidden_modules"])


def test_the_stated_lengths_are_about_right():
    total = 0
    for first, stated, *_ in rows("What to read"):
        lines = len((SOURCE / f"{first.strip('`')}.py").read_text(encoding="utf-8").splitlines())
        assert lines == pytest.approx(int(stated), rel=0.1), first
        total += lines
    (stated,) = re.findall(r"That is about ([\d,]+) lines", PAGE)
    assert total == pytest.approx(int(stated.replace(",", "")), rel=0.06)
