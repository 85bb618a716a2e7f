"""The notebooks run from top to bottom, as a notebook runs, and are stored without outputs."""

import nbformat
import pytest
from nbclient import NotebookClient

from tests.support.paths import PROJECT

FOLDER = PROJECT / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def test_there_is_one_for_researchers_and_one_for_practitioners() -> None:
    assert [file.stem for file in NOTEBOOKS] == ["practitioner", "researcher"]


# The kernel's own machinery closes its sockets late and says so; that is not about the notebook.
@pytest.mark.filterwarnings("ignore::ResourceWarning")
@pytest.mark.slow
@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_a_notebook_runs_and_shows_tables(file, tmp_path) -> None:
    notebook = nbformat.read(file, as_version=4)
    client = NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}})
    client.execute(cleanup_kc=True)
    shown = [
        output.get("data", {}).get("text/html", "") for cell in notebook.cells for output in cell.get("outputs", [])
    ]
    assert any("<table" in html for html in shown)


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_a_notebook_is_stored_without_outputs(file) -> None:
    notebook = nbformat.read(file, as_version=4)
    nbformat.validate(notebook)
    assert notebook.metadata["kernelspec"]["name"] == "python3"
    for cell in notebook.cells:
        assert cell.get("outputs", []) == []
        assert cell.get("execution_count") is None
