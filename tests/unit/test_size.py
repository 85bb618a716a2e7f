"""The size of the product: lines per package, what the verifier imports, and imports that no linter sees."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import PROJECT

SOURCE = PROJECT / "src" / "agnncert"
ADDONS = [path for path in (PROJECT / "packages").glob("*/src/*") if path.is_dir()]


def budget() -> dict[str, tuple[int, int]]:
    """Files and lines that docs/architecture.md allows for each package; ``top level`` for the modules beside them."""
    page = (PROJECT / "docs" / "architecture.md").read_text(encoding="utf-8")
    section = page.split("## Budget\n", 1)[1].split("\n## ", 1)[0]
    rows = re.findall(r"^\| *`?([\w ]+)`? *\| *([\d,]+) *\| *([\d,]+) *\|", section, re.MULTILINE)
    return {name.strip(): (int(files.replace(",", "")), int(lines.replace(",", ""))) for name, files, lines in rows}


def sizes() -> dict[str, tuple[int, int]]:
    found: dict[str, tuple[int, int]] = {}
    for file in SOURCE.rglob("*.py"):
        parts = file.relative_to(SOURCE).parts
        name = parts[0] if len(parts) > 1 else "top level"
        files, lines = found.get(name, (0, 0))
        found[name] = files + 1, lines + len(file.read_text(encoding="utf-8").splitlines())
    return found


@pytest.mark.parametrize("package", sorted(sizes()))
def test_a_package_stays_within_its_budget(package):
    assert package in budget(), f"docs/architecture.md has no budget for {package}"
    (files, lines), (most_files, most_lines) = sizes()[package], budget()[package]
    hint = "take something out, or argue for more in the same commit"
    assert files <= most_files, f"{package}: {files} files, {most_files} allowed: {hint}"
    assert lines <= most_lines, f"{package}: {lines} lines, {most_lines} allowed: {hint}"


def test_the_budget_names_no_package_that_is_gone_and_adds_up():
    assert set(budget()) - {"in all"} == set(sizes())
    files, lines = (sum(size[k] for size in sizes().values()) for k in (0, 1))
    most_files, most_lines = budget()["in all"]
    assert (files <= most_files, lines <= most_lines) == (True, True), (files, lines)


def test_verify_imports_a_small_part_of_the_library_and_nothing_that_proves():
    script = (
        "import sys, agnncert as ac; ac.verify; "
        "print(*sorted(m for m in sys.modules if m.partition('.')[0] in ('agnncert', 'torch', 'scipy')))"
    )
    names = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert not [name for name in names if name.startswith(("torch", "scipy", "agnncert.proving", "agnncert.engine"))]
    files = [SOURCE.parent / name.replace(".", "/") for name in names]
    files = [path / "__init__.py" if path.is_dir() else path.with_suffix(".py") for path in files]
    assert sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files) <= 3400


def dynamic_imports(folder: Path) -> list[tuple[str, int]]:
    """Calls that import a module by a string which names, or could name, one of ours."""
    found = []
    for file in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name in ("import_module", "__import__", "load_module", "find_spec") and node.args:
                words = [part.value for part in ast.walk(node.args[0]) if isinstance(part, ast.Constant)]
                foreign = bool(words) and not str(words[0]).startswith("agnncert")
                found += [] if foreign else [(file.relative_to(folder).as_posix(), node.lineno)]
    return found


def test_no_package_reaches_around_the_import_contract():
    allowed = {"cli/inputs.py"}  # a user's own model, named by the caller as package.module:factory
    for folder in (SOURCE, *ADDONS):
        assert {file for file, _ in dynamic_imports(folder)} <= allowed, dynamic_imports(folder)


def test_an_import_by_a_string_is_noticed(tmp_path):
    (tmp_path / "a.py").write_text("import importlib\nimportlib.import_module('agnncert.' + 'proving')\n")
    (tmp_path / "b.py").write_text("from importlib import import_module\nimport_module('ray')\n")
    (tmp_path / "c.py").write_text("name = 'agnncert.cli'\n__import__(name)\n")
    assert sorted(dynamic_imports(tmp_path)) == [("a.py", 2), ("c.py", 2)]
