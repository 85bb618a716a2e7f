"""Graphs in parts on a Ray cluster: the bytes of one process, whatever happens to a worker, the driver or a slow machine."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data

import agnncert as ac
from agnncert_large import cluster as workers_module
from agnncert_large.partitioned import voting, writing
from tests.support.paths import PROJECT

ray = pytest.importorskip("ray", reason="the extra ray is not installed")
pytestmark = pytest.mark.slow
DIVISION = ac.NodeCentric(12)


@pytest.fixture(scope="module")
def cluster():
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(PROJECT), prepend=os.pathsep)
        ray.init(
            address="local",  # else the cluster of tests that run beside these is taken
            num_cpus=2, include_dashboard=False, object_store_memory=80_000_000, log_to_driver=False,
            logging_level="error",
        )  # fmt: skip
    yield
    ray.shutdown()


def a_graph(nodes: int = 60) -> Data:
    random = torch.Generator().manual_seed(0)
    return Data(
        x=torch.randn(nodes, 5, generator=random),
        edge_index=torch.randint(nodes, (2, 4 * nodes), generator=random),
        y=torch.randint(3, (nodes,), generator=random),
        node_id=torch.arange(nodes) + 100,
    )


def gcn(data):
    return ac.build_model("gcn", data, hidden_channels=8, seed=0).eval()


@pytest.fixture
def graph(tmp_path, monkeypatch):
    monkeypatch.setattr(writing, "LEAST_ROWS", 1)
    monkeypatch.setattr(writing, "ROWS_OF_RANGE", 20)
    ac.write_graph(a_graph(), tmp_path / "graph", partition=DIVISION)
    return ac.open_graph(tmp_path / "graph")


def alone(folder: Path) -> bytes:
    ac.certify(gcn(a_graph()), a_graph(), DIVISION).save(folder / "alone.cert")
    return (folder / "alone.cert").read_bytes()


def test_workers_make_and_verify_the_certificate_of_one_process(cluster, tmp_path, graph):
    model = gcn(a_graph())
    ac.certify(model, graph, DIVISION, workers=ac.Ray()).save(tmp_path / "together.cert")
    assert (tmp_path / "together.cert").read_bytes() == alone(tmp_path)
    verdict = ac.verify(tmp_path / "together.cert", data=graph, model=model, workers=ac.Ray())
    assert verdict.compared == ("data", "model")
    assert not graph.place.sizes("checks")


def _once(marker: Path) -> bool:
    """Whether this is the first call in any process."""
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def dying_task(shared, part):
    prepared, marker = shared
    if _once(Path(marker)):
        os.kill(os.getpid(), signal.SIGKILL)
    return voting.do_task(prepared, part)


def test_a_worker_that_is_killed_is_replaced(cluster, tmp_path, graph, monkeypatch):
    """The task of the first worker kills its process, in the middle of its work."""
    from agnncert_large.partitioned import certify

    marker = tmp_path / "killed"

    class _Deadly(ac.Ray):
        def run(self, shared, prepare, task, parts):
            if task is not voting.do_task:
                return super().run(shared, prepare, task, parts)
            return super().run((shared, str(marker)), _prepared, dying_task, parts)

    certify.certify_parts(gcn(a_graph()), graph, DIVISION, options=_with(_Deadly())).save(tmp_path / "together.cert")
    assert marker.exists()
    assert (tmp_path / "together.cert").read_bytes() == alone(tmp_path)


def _prepared(shared):
    work, marker = shared
    return work.prepare(), marker


def _with(workers):
    from agnncert.defence import CertifyOptions

    return CertifyOptions(workers=workers)


def slow_task(shared, part):
    seconds, marker = shared
    if _once(Path(marker)):
        time.sleep(seconds)
    return part


def _same(shared):
    return shared


def test_a_straggler_is_overtaken(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(workers_module, "LEAST_SECONDS", 0.5)
    monkeypatch.setattr(workers_module, "SECONDS_BETWEEN_LOOKS", 0.2)
    begun = time.monotonic()
    found = dict(ac.Ray().run((120.0, str(tmp_path / "slept")), _same, slow_task, list(range(6))))
    assert found == {k: k for k in range(6)}
    assert (tmp_path / "slept").exists()
    assert time.monotonic() - begun < 100


def test_a_driver_that_is_killed_goes_on(tmp_path, graph):
    program = textwrap.dedent(f"""
        import os, signal
        import agnncert as ac
        from killed_driver import a_graph, gcn, DIVISION
        from agnncert.engine.workers import Here

        class Halting(Here):
            done = 0
            def parts_at_once(self):
                return 2
            def run(self, shared, prepare, task, parts):
                for part, result in super().run(shared, prepare, task, parts):
                    self.done += 1
                    yield part, result
                    if self.done == 3:
                        os.kill(os.getpid(), signal.SIGKILL)

        graph = ac.open_graph({str(graph.place)!r})
        ac.certify(gcn(a_graph()), graph, DIVISION, workers=Halting())
    """)
    (tmp_path / "killed_driver.py").write_text(Path(__file__).read_text())
    path = os.pathsep.join([str(tmp_path), str(PROJECT), os.environ.get("PYTHONPATH", "")])
    killed = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    before = {name for name in graph.place.sizes("runs") if "/groups=" in name}
    times = {name: (Path(str(graph.place)) / name).stat().st_mtime_ns for name in before}
    assert before
    certificate = ac.certify(gcn(a_graph()), graph, DIVISION)
    certificate.save(tmp_path / "together.cert")
    assert (tmp_path / "together.cert").read_bytes() == alone(tmp_path)
    assert times == {name: (Path(str(graph.place)) / name).stat().st_mtime_ns for name in before}
