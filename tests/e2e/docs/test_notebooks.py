"""The notebooks run from top to bottom, as a notebook runs, and are stored without outputs."""

import os
from itertools import pairwise
from pathlib import Path

import nbformat
import pytest
from jupyter_client import AsyncKernelManager
from jupyter_client.provisioning import LocalProvisioner
from nbclient import NotebookClient

from tests.support.paths import PROJECT
from tests.support.warm import Program, Warm

FOLDER = PROJECT / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def test_there_is_one_for_researchers_and_one_for_practitioners() -> None:
    assert [file.stem for file in NOTEBOOKS] == ["practitioner", "researcher"]


class Kernel:
    """A program in the place of the process that a kernel usually is."""

    stdin = stdout = stderr = None

    def __init__(self, program: Program) -> None:
        self.program, self.pid, self.wait = program, program.pid, program.wait

    def poll(self) -> int | None:
        return None if self.program.is_running() else self.program.status

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)


class WarmProvisioner(LocalProvisioner):
    """Starts a kernel whose large imports are there already."""

    warm: Warm

    async def launch_kernel(self, cmd, **how):
        python, *words = cmd
        assert (Path(python).name[:6], words[:2]) == ("python", ["-m", "ipykernel_launcher"])
        self.process = Kernel(self.warm.start(*words, folder=how["cwd"], environment=how["env"]))
        self.pid, self.cwd = self.process.pid, how["cwd"]  # no pgid: it is that of this very process
        return self.connection_info


# The kernel's own machinery closes its sockets late and says so; that is not about the notebook.
@pytest.mark.filterwarnings("ignore")
def test_notebooks_run_and_show_tables(tmp_path, warm) -> None:
    """One kernel runs them one after the other, since to start one takes longer than what they do."""
    all_cells = []
    for file in NOTEBOOKS:
        notebook = nbformat.read(file, as_version=4)
        all_cells += [nbformat.v4.new_code_cell("%reset -f"), *notebook.cells]  # each begins with no names
    notebook.cells = all_cells
    manager = AsyncKernelManager(kernel_name="python3")
    manager.provisioner = WarmProvisioner(kernel_id="notebooks", kernel_spec=manager.kernel_spec, parent=manager)
    manager.provisioner.warm = warm
    client = NotebookClient(notebook, km=manager, timeout=120, resources={"metadata": {"path": str(tmp_path)}})
    client.execute(cleanup_kc=True)
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
