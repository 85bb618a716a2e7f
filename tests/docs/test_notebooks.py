"""The notebooks run from top to bottom, as a notebook runs, and are stored without outputs."""

from itertools import pairwise
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def test_there_is_one_for_researchers_and_one_for_practitioners() -> None:
    assert [file.stem for file in NOTEBOOKS] == ["practitioner", "researcher"]


# The kernel's own machinery closes its sockets late and says so; that is not about the notebook.
@pytest.mark.filterwarnings("ignore")
def test_notebooks_run_and_show_tables(tmp_path) -> None:
    """One kernel runs them one after the other, since to start one takes longer than what they do."""
    all_cells = []
    for file in NOTEBOOKS:
        notebook = nbformat.read(file, as_version=4)
        all_cells += [nbformat.v4.new_code_cell("%reset -f"), *notebook.cells]  # each begins with no names
    notebook.cells = all_cells
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [
        [output.get("data", {}).get("text/html", "") for output in cell.get("outputs", [])] for cell in notebook.cells
    ]
    begins = [k for k, cell in enumerate(notebook.cells) if cell.source == "%reset -f"]
    for first, last in pairwise([*begins, len(shown)]):
        assert any("<table" in html for outputs in shown[first:last] for html in outputs)


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_a_notebook_is_stored_without_outputs(file) -> None:
    notebook = nbformat.read(file, as_version=4)
    nbformat.validate(notebook)
    assert notebook.metadata["kernelspec"]["name"] == "python3"
    for cell in notebook.cells:
        assert cell.get("outputs", []) == []
        assert cell.get("execution_count") is None
