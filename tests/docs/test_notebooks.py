"""The notebooks run from top to bottom, and are stored without outputs."""

import ast
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def code_cells(file: Path) -> list[str]:
    cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def run_cell(source: str, module: ModuleType, name: str) -> object:
    """Runs a cell as a notebook does: the value of its last expression is what would be shown."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec"), vars(module))
    if last is None:
        return None
    return eval(compile(ast.Expression(last.value), name, "eval"), vars(module))


def test_there_is_one_for_researchers_and_one_for_practitioners() -> None:
    assert [file.stem for file in NOTEBOOKS] == ["practitioner", "researcher"]


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_a_notebook_runs(file, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    module = ModuleType(f"notebook_{file.stem}")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for number, source in enumerate(code_cells(file)):
        shown = run_cell(source, module, f"{file.name}, cell {number}")
        if hasattr(shown, "_repr_html_"):
            assert "<table" in shown._repr_html_()


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_a_notebook_is_stored_without_outputs(file) -> None:
    notebook = json.loads(file.read_text(encoding="utf-8"))
    assert (notebook["nbformat"], notebook["metadata"]["kernelspec"]["name"]) == (4, "python3")
    for cell in notebook["cells"]:
        assert cell.get("outputs", []) == []
        assert cell.get("execution_count") is None
