"""A Ray cluster of two nodes on this machine casts the very votes that one process casts, whatever happens to it."""

import hashlib
import importlib
import os
import sys
import textwrap
from pathlib import Path

import pytest
import torch
from torch_geometric.data import Data

import agnncert as ac
from agnncert_large import cluster as workers_module
from tests.support import programs
from tests.support.paths import PROJECT

ray = pytest.importorskip("ray", reason="the extra ray is not installed")
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster():
    from ray.cluster_utils import Cluster

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    # Ray's own is 15: beside the other tests its workers hardly get a turn.
    os.environ["RAY_worker_niceness"] = "0"  # noqa: SIM112
    node = {"num_cpus": 1, "object_store_memory": 80_000_000}
    head = {**node, "include_dashboard": False, "include_log_monitor": False, "no_monitor": True}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(PROJECT), prepend=os.pathsep)  # a test's model is in tests/support
        cluster = Cluster(initialize_head=True, head_node_args=head)
        cluster.add_node(**node)
    ray.init(address=cluster.address, log_to_driver=False, logging_level="error")
    yield cluster
    ray.shutdown()
    cluster.shutdown()


def a_graph(nodes: int = 60, seed: int = 0) -> Data:
    random = torch.Generator().manual_seed(seed)
    return Data(
        x=torch.randn(nodes, 5, generator=random),
        edge_index=torch.randint(nodes, (2, 4 * nodes), generator=random),
        y=torch.randint(3, (nodes,), generator=random),
        node_id=torch.arange(nodes) + 100,
    )


def gcn(data, seed: int = 0):
    return ac.build_model("gcn", data, hidden_channels=8, seed=seed).eval()


def file_of(certificate, folder: Path, name: str) -> bytes:
    certificate.save(folder / name)
    return (folder / name).read_bytes()


DEFENCES = {
    "edge-centric": (ac.EdgeCentric(12), {}),
    "node-centric with a prior": (ac.NodeCentric(12), {"voting_rule": ac.VotingRule(empty="abstain", prior=[2, 0, 1])}),
    "gated": (ac.GatedNodeCentric(12), {}),
    "one group per neighbour": (ac.PerNeighbour(), {"voting_rule": ac.VotingRule(empty="abstain", prior=3)}),
    "samples": (ac.baselines.BiRS(selection=20, samples=300, seed=4), {}),
}


@pytest.mark.parametrize("name", DEFENCES)
def test_a_cluster_makes_the_certificate_of_one_process(cluster, tmp_path, name) -> None:
    data, (division, settings) = a_graph(), DEFENCES[name]
    if name == "samples":
        data.x = (data.x > 0).float()
    alone = ac.certify(gcn(data), data, division, **settings)
    together = ac.certify(gcn(data), data, division, workers=ac.Ray(), **settings)
    assert file_of(together, tmp_path, "together.cert") == file_of(alone, tmp_path, "alone.cert")


def test_graphs_too(cluster, tmp_path) -> None:
    graphs = [a_graph(12, seed) for seed in range(8)]
    for label, graph in enumerate(graphs):
        graph.y = torch.tensor([label % 3])
    model = ac.build_model("gin", graphs, hidden_channels=8).eval()
    for division in (ac.EdgeCentric(5), ac.NodeCentric(5)):
        alone = ac.certify(model, graphs, division)
        together = ac.certify(model, graphs, division, workers=ac.Ray())
        assert file_of(together, tmp_path, "together.cert") == file_of(alone, tmp_path, "alone.cert")


def test_a_worker_that_is_killed_is_replaced(cluster, tmp_path) -> None:
    from tests.support.killed_worker import MortalRay

    data, flag = a_graph(), tmp_path / "one has died"
    alone = ac.certify(gcn(data), data, ac.EdgeCentric(12))
    together = ac.certify(gcn(data), data, ac.EdgeCentric(12), workers=MortalRay(flag=str(flag)))
    assert flag.exists()
    assert file_of(together, tmp_path, "together.cert") == file_of(alone, tmp_path, "alone.cert")


def test_a_driver_that_is_killed_goes_on(cluster, tmp_path) -> None:
    script = """
        import os
        import sys
        import agnncert as ac
        sys.path.insert(0, {tests!r})
        from test_ray import a_graph, gcn

        def die(step):
            if step.done >= 5:
                os._exit(9)
        data = a_graph()
        ac.certify(gcn(data), data, ac.EdgeCentric(12), workers=ac.Ray({address!r}), checkpoint={folder!r}, progress=die)
        """
    folder, told = tmp_path / "votes", []
    names = {"tests": str(Path(__file__).parent), "address": cluster.address, "folder": str(folder)}
    path = os.pathsep.join(filter(None, [str(PROJECT), os.environ.get("PYTHONPATH")]))
    died = programs.run(
        programs.PYTHON, "-c", textwrap.dedent(script).format(**names), environment={"PYTHONPATH": path}
    )
    assert died.returncode == 9, died.stderr
    kept = [file.stem for file in folder.glob("*.votes")]  # what was finished is there
    groups = sum(int(name[17:]) - int(name[7:16]) for name in kept)
    assert 5 <= groups < 12

    def note(step):
        if step.what == "computing votes":
            told.append(step.done)

    settings = {"workers": ac.Ray(), "checkpoint": folder, "progress": note}
    together = ac.certify(gcn(a_graph()), a_graph(), ac.EdgeCentric(12), **settings)
    assert told[1] > groups  # the first part that was done anew came on top of what was kept
    assert not folder.exists()
    alone = ac.certify(gcn(a_graph()), a_graph(), ac.EdgeCentric(12))
    assert file_of(together, tmp_path, "together.cert") == file_of(alone, tmp_path, "alone.cert")


def test_another_version_on_the_workers_is_refused(cluster, monkeypatch) -> None:
    mine = {**workers_module.versions(), "torch": "1.0"}
    monkeypatch.setattr(workers_module, "versions", lambda: mine)
    with pytest.raises(ac.errors.WorkersError, match=r"differs from the driver \(torch .* here, 1.0 there\)"):
        ac.certify(gcn(a_graph()), a_graph(), ac.EdgeCentric(4), workers=ac.Ray())


def test_code_that_the_workers_lack_is_named(cluster, tmp_path, monkeypatch) -> None:
    (tmp_path / "only_here.py").write_text("from torch_geometric.nn import GCNConv\n\nclass Net(GCNConv):\n    pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    model = importlib.import_module("only_here").Net(5, 3).eval()
    with pytest.raises(ac.errors.WorkersError, match=r"No module named 'only_here'.*importable on every machine"):
        ac.certify(model, a_graph(), ac.EdgeCentric(4), workers=ac.Ray())


def test_what_a_part_raises_is_what_one_process_raises(cluster) -> None:
    with pytest.raises(ac.errors.SettingsError, match="the fast engine and the library's own divisions"):
        ac.certify(gcn(a_graph()), a_graph(), ac.EdgeCentric(4), engine="naive", workers=ac.Ray())
    found = ac.Ray().run(0, lambda shared: shared, lambda shared, part: 1 // part, [1, 0])
    with pytest.raises(ZeroDivisionError):
        list(found)


def test_more_per_part_than_there_is(cluster) -> None:
    with pytest.raises(ac.errors.WorkersError, match="has 2 cores and 0 GPUs, and one part needs 3 and 0"):
        ac.Ray(cpus_per_part=3).parts_at_once()


def test_no_cluster_at_an_address(monkeypatch) -> None:
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    with pytest.raises(ac.errors.WorkersError, match=r"no Ray cluster answers at 127.0.0.1:1 .*ray start --head"):
        ac.certify(gcn(a_graph()), a_graph(), ac.EdgeCentric(4), workers=ac.Ray("127.0.0.1:1"))


def test_without_the_package(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ac.errors.MissingPackage, match=r"pip install ./packages/agnncert-large\[ray\]"):
        ac.Ray().parts_at_once()


def test_commands_can_spread_their_work(cluster, tmp_path) -> None:
    from agnncert.cli import main

    for place, more in (("alone", []), ("together", ["--workers", f"ray={cluster.address}"])):
        words = ["certify", "digits-knn", "--weights", "pretrained", "--out", str(tmp_path / place), "--no-report"]
        assert main([*words, *more]) == 0
    files = [(tmp_path / place / "certificate.cert").read_bytes() for place in ("alone", "together")]
    assert files[0] == files[1]
    assert not (tmp_path / "together" / "votes").exists()


@pytest.mark.parametrize(
    ("words", "said"), [(["--workers", "slurm"], "expected ray"), (["--workers", "ray="], "or ray=HOST:PORT")]
)
def test_words_that_name_no_workers(words, said, capsys) -> None:
    from agnncert.cli import main

    assert main(["certify", "digits-knn", "--weights", "pretrained", *words]) == 2
    assert said in capsys.readouterr().err


def test_a_worker_is_compared_with_the_driver_in_all_of_the_library():
    home, digest = Path(ac.__file__).parent, hashlib.sha256()
    for file in sorted(home.rglob("*.py")):
        digest.update(file.relative_to(home).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    assert workers_module.versions.__wrapped__()["agnncert"] == digest.hexdigest()[:16]
