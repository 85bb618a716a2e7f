"""Graphs in parts: written from data and tables, damaged, interrupted, certified by many, verified, learnt from."""

import errno
import json
import os
import resource
import sys
import textwrap
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from torch_geometric.data import Data

import agnncert as ac
from agnncert.engine.workers import Here
from agnncert.errors import DatasetError, DivisionError, GraphError, SettingsError, WorkersError
from agnncert.graphs.targets import CanonicalData
from agnncert_large import parquet
from agnncert_large.partitioned import places, planning, writing
from agnncert_large.partitioned.places import Place

pytest.importorskip("duckdb", reason="duckdb, which comes with agnncert[data], is not installed")

NAMES = ["a", "b", "07", "7", "e", "f"]
PAIRS = [(0, 1), (1, 2), (2, 3), (3, 0), (4, 5), (1, 0), (2, 2)]
DIVISION = ac.NodeCentric(6)


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch):
    monkeypatch.setattr(writing, "LEAST_ROWS", 1)
    monkeypatch.setattr(writing, "ROWS_OF_RANGE", 20)
    monkeypatch.setattr(writing, "ARCS_OF_PART", 30)


def a_graph(nodes: int = 60, seed: int = 0) -> Data:
    random = torch.Generator().manual_seed(seed)
    return Data(
        x=torch.randn(nodes, 5, generator=random),
        edge_index=torch.randint(nodes, (2, 4 * nodes), generator=random),
        y=torch.randint(3, (nodes,), generator=random),
        node_id=torch.arange(nodes) + 100,
        train_mask=torch.arange(nodes) % 2 == 0,
        val_mask=torch.arange(nodes) % 4 == 1,
        test_mask=torch.arange(nodes) % 4 == 3,
        class_names=["a", "b", "c"],
    )


def gcn(data, seed: int = 0):
    return ac.build_model("gcn", data, hidden_channels=8, seed=seed).eval()


def in_parts(folder: Path, data=None, division=DIVISION):
    ac.write_graph(data or a_graph(), folder / "graph", partition=division)
    return ac.open_graph(folder / "graph")


def file_of(certificate, file: Path) -> bytes:
    certificate.save(file)
    return file.read_bytes()


# Writing


def test_a_graph_comes_back_as_it_was(tmp_path):
    data = a_graph()
    back = in_parts(tmp_path, data).load()
    assert ac.dataset_digest(back) == ac.dataset_digest(data)
    assert torch.equal(back.val_mask, data.val_mask)
    assert back.class_names == data.class_names


def test_it_says_what_it_is(tmp_path):
    graph = in_parts(tmp_path)
    assert repr(graph).startswith("PartitionedGraph(60 nodes, ")
    assert graph.division == DIVISION
    assert len(graph.ranges) == 3
    assert graph.num_classes == 3
    assert graph.test_mask.sum() == 15


def test_only_divisions_with_stored_groups_can_part_a_graph(tmp_path):
    for division in (ac.PerNeighbour(), ac.PerEdge(), ac.EdgeCentric(5, edges_only=True)):
        with pytest.raises(DivisionError, match="is stored by the groups of NodeCentric"):
            ac.write_graph(a_graph(), tmp_path / "g", partition=division)
    with pytest.raises(GraphError, match="holds one graph"):
        ac.write_graph([a_graph()], tmp_path / "g", partition=DIVISION)
    assert not (tmp_path / "g").exists()


def test_two_thousand_groups_need_few_open_files(tmp_path, monkeypatch):
    """A group whose part is not full keeps no file open, and what waits goes to the disk."""
    data, division = a_graph(nodes=1500), ac.NodeCentric(2000)
    monkeypatch.setattr(writing, "HELD", 100_000)
    usual = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 20, usual[1]))
    try:
        graph = in_parts(tmp_path, data, division)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, usual)
    assert sum(map(bool, graph.manifest["senders"])) > 1000
    assert ac.dataset_digest(graph.load()) == ac.dataset_digest(data)


@pytest.mark.parametrize("division", [DIVISION, ac.EdgeCentric(6)], ids=str)
def test_the_manifest_counts_the_arcs_on_each_range(tmp_path, division):
    graph = in_parts(tmp_path, division=division)
    targets = [graph.arcs(group).target // 20 for group in range(6)]
    counts = np.stack([np.bincount(each, minlength=3) for each in targets])
    assert graph.arcs_on == counts.sum(0).tolist()
    assert graph.most_arcs_on == counts.max(0).tolist()


def test_nothing_is_written_over(tmp_path):
    in_parts(tmp_path)
    with pytest.raises(GraphError, match="exists already"):
        in_parts(tmp_path)


def tables(folder: Path, ids, kind=None, **columns) -> tuple[Path, Path]:
    weight = {"weight": columns.pop("weight")} if "weight" in columns else {}
    usual = {"id": pa.array(ids, kind), "one": np.arange(6.0), "label": ["x", "y", "x", None, "y", "x"]}
    pq.write_table(pa.table({**usual, **columns}), folder / "nodes.parquet")
    ends = {name: pa.array([ids[pair[k]] for pair in PAIRS], kind) for k, name in enumerate(("source", "target"))}
    pq.write_table(pa.table({**ends, **weight}), folder / "edges.parquet")
    return folder / "nodes.parquet", folder / "edges.parquet"


@pytest.mark.parametrize(
    "ids", [NAMES, [5, -3, 2**40, 7, 0, 1], [2**64 - 1, 1, 2, 3, 4, 5], ["1", "2", "3", "4", "5", "6"]], ids=str
)
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("division", [ac.NodeCentric(3), ac.EdgeCentric(4)], ids=str)
def test_tables_in_parts_are_the_graph_of_the_tables(tmp_path, monkeypatch, ids, directed, division):
    monkeypatch.setattr(parquet, "NODE_ROWS", 4)
    monkeypatch.setattr(parquet, "EDGE_ROWS", 2)
    kind = pa.uint64() if ids[0] == 2**64 - 1 else None
    extra = {"weight": [1.5, 2.0, 3.0, 4.0, 5.0, 1.5, 9.0], "split": ["train", "train", "val", "test", " Test", ""]}
    nodes, edges = tables(tmp_path, ids, kind, **(extra if directed else {}))
    whole = ac.convert_parquet(nodes, edges, tmp_path / "whole", directed=directed)
    graph = ac.convert_parquet(nodes, edges, tmp_path / "parts", directed=directed, partition=division)
    back = graph.load()
    assert graph.digest == CanonicalData.of(back).targets().digest == CanonicalData.of(whole).targets().digest
    for name in ("y", "train_mask", "val_mask", "test_mask"):
        assert torch.equal(back[name], whole[name])
    assert back.class_names == whole.class_names
    assert back.name == "parts"
    degree = np.concatenate([graph.nodes(k).degree for k in range(len(graph.ranges))])
    assert degree.tolist() == CanonicalData.of(whole).targets().degree.tolist()


def test_wrong_tables_are_refused(tmp_path):
    nodes, edges = tables(tmp_path, ["a", "b", "a", "c", "d", "b"])
    with pytest.raises(DatasetError, match=r'2 id\(s\) in column "id" occur twice: "a" \(rows 1 and 3\)'):
        ac.convert_parquet(nodes, edges, tmp_path / "g", partition=DIVISION)
    nodes, edges = tables(tmp_path, NAMES)
    pq.write_table(pa.table({"source": ["a", "b"], "target": ["b", "zz"]}), edges)
    with pytest.raises(DatasetError, match=r'1 end\(s\) of edges are ids that are not .* "zz" \(row 2\)'):
        ac.convert_parquet(nodes, edges, tmp_path / "g", partition=DIVISION)
    pq.write_table(pa.table({"source": ["a", "b"], "target": ["b", "a"], "weight": [1.0, 2.0]}), edges)
    with pytest.raises(DatasetError, match="with two weights"):
        ac.convert_parquet(nodes, edges, tmp_path / "g", partition=DIVISION)
    with pytest.raises(DatasetError, match="split by class needs all classes"):
        ac.convert_parquet(nodes, edges, tmp_path / "g", partition=DIVISION, split_by="class")
    assert not (tmp_path / "g" / "manifest.json").exists()


def test_the_command_writes_parts_and_other_commands_say_what_to_do(tmp_path):
    from agnncert.cli.data import load_data
    from agnncert.cli.settings import DataSettings
    from agnncert_large.partitioned.command import partition

    nodes, edges = tables(tmp_path, NAMES)
    partition(str(nodes), str(edges), str(tmp_path / "g"), division="gated", groups=3)
    assert ac.open_graph(tmp_path / "g").division == ac.GatedNodeCentric(3)
    with pytest.raises(SettingsError, match="is a graph in parts, which commands cannot hold"):
        load_data(DataSettings(data=str(tmp_path / "g")))
    with pytest.raises(SettingsError, match="there is no table"):
        partition("nowhere", str(edges), str(tmp_path / "h"))


# Damage


def some_part(graph, kind: str) -> Path:
    entry = graph.manifest[kind][0]
    entry = entry[0] if isinstance(entry, list) else entry
    return Path(graph.place.address) / entry["file"]


@pytest.mark.parametrize("kind", ["arcs", "inner", "senders", "ranges", "feature_ranges"])
def test_a_damaged_or_missing_part_is_named(tmp_path, kind):
    graph = in_parts(tmp_path, division=ac.NodeCentric(1))
    part = some_part(graph, kind)
    content = bytearray(part.read_bytes())
    content[len(content) // 2] ^= 1
    part.write_bytes(content)
    with pytest.raises(GraphError, match=f"{part.name} was altered or damaged"):
        ac.certify(gcn(a_graph()), graph, graph.division)
    part.unlink()
    with pytest.raises(GraphError, match=f"{part.name} is missing"):
        ac.certify(gcn(a_graph()), graph, graph.division)


def test_a_damaged_manifest_is_refused(tmp_path):
    graph = in_parts(tmp_path)
    file = Path(graph.place.address) / "manifest.json"
    stated = json.loads(file.read_text())
    file.write_text(json.dumps(stated | {"edges": 7}))
    with pytest.raises(GraphError, match="altered or damaged"):
        ac.open_graph(graph.place.address)
    file.write_text(json.dumps(stated | {"version": 99}))
    with pytest.raises(GraphError, match="format version 99"):
        ac.open_graph(graph.place.address)


def test_another_division_is_refused(tmp_path):
    with pytest.raises(DivisionError, match="is stored by the groups of"):
        ac.certify(gcn(a_graph()), in_parts(tmp_path), ac.NodeCentric(7))


def test_a_column_that_follows_degrees_is_refused(tmp_path):
    data = a_graph(nodes=200)
    data.x[:, 2] = torch.bincount(data.edge_index[1][data.edge_index[0] != data.edge_index[1]], minlength=200).float()
    with pytest.raises(ac.AgnncertError, match="column"):
        ac.certify(gcn(data), in_parts(tmp_path, data), DIVISION)


# Interruptions


class _Halting(Here):
    """Stops after some parts, as a machine that is switched off."""

    def __init__(self, parts: int) -> None:
        self.parts = parts
        self.done = 0

    def parts_at_once(self) -> int:
        return 2

    def run(self, shared, prepare, task, parts):
        for part, result in super().run(shared, prepare, task, parts):
            self.done += 1
            yield part, result
            if self.done == self.parts:
                raise KeyboardInterrupt


@pytest.mark.parametrize("division", [ac.NodeCentric(8), ac.EdgeCentric(8)], ids=str)
def test_what_was_finished_is_not_done_again(tmp_path, division):
    data = a_graph()
    graph, model = in_parts(tmp_path, data, division), gcn(data)
    with pytest.raises(KeyboardInterrupt):
        ac.certify(model, graph, division, workers=_Halting(3), checkpoint=tmp_path / "votes")
    rest = _Halting(10**9)
    certificate = ac.certify(model, graph, division, workers=rest, checkpoint=tmp_path / "votes")
    assert rest.done == 8 - 3 + len(graph.ranges)
    alone = ac.certify(model, data, division)
    assert file_of(certificate, tmp_path / "a") == file_of(alone, tmp_path / "b")
    with pytest.raises(SettingsError, match="votes of another run"):
        ac.certify(gcn(data, 1), graph, division, checkpoint=tmp_path / "votes")


def test_damaged_votes_are_named(tmp_path):
    data = a_graph()
    graph, model = in_parts(tmp_path, data), gcn(data)
    with pytest.raises(KeyboardInterrupt):
        ac.certify(model, graph, DIVISION, workers=_Halting(6), checkpoint=tmp_path / "votes")
    file = sorted((tmp_path / "votes").rglob("groups=*.votes"))[0]
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(GraphError, match=f"{file.name} was altered or damaged"):
        ac.certify(model, graph, DIVISION, checkpoint=tmp_path / "votes")


def test_storage_that_fails_for_a_while_is_asked_again(tmp_path, monkeypatch):
    data = a_graph()
    graph, failures = in_parts(tmp_path, data), iter([True, True, False] * 400)
    monkeypatch.setattr(places, "FIRST_PAUSE", 0.0)
    system, _ = graph.place._opened

    class Failing:
        """A file system whose first reads of every file fail."""

        type_name = "failing"

        def __getattr__(self, name):
            return getattr(system, name)

        def open_input_file(self, name):
            if next(failures):
                raise OSError("the network is down")
            return system.open_input_file(name)

    monkeypatch.setattr(Place, "_opened", property(lambda place: (Failing(), str(Path(place.address).resolve()))))
    certificate = ac.certify(gcn(data), graph, DIVISION)
    assert graph.place.seen.failures > 10
    assert file_of(certificate, tmp_path / "a") == file_of(ac.certify(gcn(data), data, DIVISION), tmp_path / "b")
    impatient = Place(graph.place.address, patience=0.0)
    next(failures)
    with pytest.raises(GraphError, match="the network is down"):
        [impatient.read("manifest.json") for _ in range(3)]


def test_a_write_that_fails_for_a_while_is_tried_again(tmp_path, monkeypatch):
    data, plain, failures = a_graph(), places._write_whole, iter([True, True, False] * 400)
    monkeypatch.setattr(places, "FIRST_PAUSE", 0.0)

    def failing(file, content):
        if next(failures):
            raise OSError("the network is down")
        plain(file, content)

    monkeypatch.setattr(places, "_write_whole", failing)
    graph = in_parts(tmp_path, data)
    certificate = ac.certify(gcn(data), graph, DIVISION)
    assert file_of(certificate, tmp_path / "a") == file_of(ac.certify(gcn(data), data, DIVISION), tmp_path / "b")


def test_a_full_disk_is_said_at_once_and_leaves_no_graph(tmp_path, monkeypatch):
    plain, room = places._write_whole, iter(range(5))

    def full(file, content):
        if next(room, None) is None:
            raise OSError(errno.ENOSPC, "No space left on device")
        plain(file, content)

    monkeypatch.setattr(places, "_write_whole", full)
    monkeypatch.setattr(places.time, "sleep", lambda _: pytest.fail("it waits for room"))
    with pytest.raises(GraphError, match=r"writing .* failed: .*No space left"):
        in_parts(tmp_path)
    with pytest.raises(GraphError):
        ac.open_graph(tmp_path / "graph")


# Memory


def test_tasks_of_an_interrupted_run_that_no_longer_fit_are_cut_again(tmp_path):
    data = a_graph()
    graph, model = in_parts(tmp_path, data), gcn(data)

    def tasks():
        return json.loads((tmp_path / "votes" / "tasks.json").read_text())["tasks"]

    with pytest.raises(KeyboardInterrupt):
        ac.certify(model, graph, DIVISION, workers=_Halting(3), checkpoint=tmp_path / "votes")
    before = tasks()
    less = max(task[4] for task in before) - 1
    certificate = ac.certify(model, graph, DIVISION, checkpoint=tmp_path / "votes", memory_limit=less)
    assert len(tasks()) > 1
    assert max(task[4] for task in tasks()) <= less
    assert file_of(certificate, tmp_path / "a") == file_of(ac.certify(model, data, DIVISION), tmp_path / "b")
    ac.certify(model, graph, DIVISION, checkpoint=tmp_path / "votes", memory_limit=10**9)
    assert max(task[4] for task in tasks()) <= less  # what was stored still fits, and is not done again


PEAKS = """
    import json, sys
    import torch
    from torch_geometric.data import Data
    import agnncert as ac
    from agnncert_large.partitioned import voting, writing

    writing.LEAST_ROWS, writing.ROWS_OF_RANGE = 1, 1000
    found, plain = [], voting.Voting.do

    def memory(name):
        line = next(line for line in open("/proc/self/status") if line.startswith(name))
        return int(line.split()[1]) * 1024

    def measured(self, task):
        open("/proc/self/clear_refs", "w").write("5")
        before = memory("VmRSS")
        report = plain(self, task)
        found.append((task.bytes, memory("VmHWM") - before))
        return report

    def certify(folder, nodes, arcs, kind):
        data = Data(x=torch.randn(nodes, 32), edge_index=arcs, node_id=torch.arange(nodes))
        ac.write_graph(data, folder, partition=ac.NodeCentric(3))
        graph = ac.open_graph(folder)
        model = ac.build_model(kind, graph, hidden_channels=32, out_channels=4, seed=0).eval()
        try:
            ac.certify(model, graph, graph.division, memory_limit=1)
        except ac.AgnncertError as refused:
            needed = int(str(refused).rpartition("memory_limit=")[2].partition(",")[0])
        ac.certify(model, graph, graph.division, memory_limit=needed)

    certify("small", 3000, torch.randint(3000, (2, 9000)), sys.argv[1])  # what is loaded once
    voting.Voting.do = measured
    sends = torch.arange(9000)
    hubs = torch.stack([sends.repeat(100), torch.arange(100).repeat_interleave(9000)])
    certify("hubs", 9000, hubs[:, hubs[0] != hubs[1]], sys.argv[1])
    print(json.dumps(found))
"""


@pytest.mark.parametrize(("kind", "share"), [("gcn", 0.04), ("gat", 0.2)])
def test_a_task_with_hubs_takes_no_more_memory_than_planned(tmp_path, kind, share):
    """A hundred nodes of one range hear all others: this range is dear, and the others are cheap."""
    import subprocess

    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PEAKS), kind],
        cwd=tmp_path, capture_output=True, text=True, check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert max(planned for planned, _ in found) > 2 * min(planned for planned, _ in found)
    assert all(peak <= planned for planned, peak in found), found
    assert max(peak for _, peak in found) > share * max(planned for planned, _ in found), found


@pytest.mark.parametrize("division", [DIVISION, ac.EdgeCentric(6)], ids=str)
def test_what_does_not_fit_is_refused_before_work(tmp_path, division):
    data = a_graph()
    graph = in_parts(tmp_path, data, division)
    with pytest.raises(GraphError, match=r"[gG]ive memory_limit="):
        ac.certify(gcn(data), graph, division, memory_limit=1000)
    assert not (Path(graph.place.address) / "runs").exists() or not list(
        (Path(graph.place.address) / "runs").rglob("*.votes")
    )


def test_a_worker_refuses_a_task_that_it_has_no_room_for(tmp_path, monkeypatch):
    from agnncert_large.partitioned import voting

    data = a_graph()
    graph = in_parts(tmp_path, data)
    monkeypatch.setattr(voting, "memory_left", lambda: 10)
    with pytest.raises(WorkersError, match="and this worker has 10 left"):
        ac.certify(gcn(data), graph, DIVISION)


def test_features_that_a_worker_keeps_make_room_for_the_next_task(tmp_path, monkeypatch):
    from agnncert_large.partitioned import voting

    data = a_graph()
    graph, asked = in_parts(tmp_path, data), []

    def left() -> int:
        asked.append(None)
        return 10 if len(asked) % 2 == 0 else 10**9  # a little while something is kept, and then enough

    monkeypatch.setattr(voting, "memory_left", left)
    certificate = ac.certify(gcn(data), graph, DIVISION, workers=_Halting(10**9))
    assert len(asked) > 6
    assert file_of(certificate, tmp_path / "a") == file_of(ac.certify(gcn(data), data, DIVISION), tmp_path / "b")


@pytest.mark.parametrize("division", [DIVISION, ac.EdgeCentric(6)], ids=str)
def test_the_memory_limit_changes_tasks_and_not_the_certificate(tmp_path, division):
    data, made = a_graph(), set()
    graph, model = in_parts(tmp_path, data, division), ac.build_model("gcn", data, hidden_channels=64).eval()
    memory_of, sizes = {}, planning.Sizes(graph.num_features, 64, 4)  # by number of tasks
    for memory in np.geomspace(10**4, 10**9, 100).astype(int).tolist():
        with suppress(GraphError):
            memory_of[len(planning.plan(graph, sizes, division, memory, 1))] = memory
    assert len(memory_of) > 1
    for memory in (max(memory_of.values()), min(memory_of.values())):
        certificate = ac.certify(model, graph, division, memory_limit=memory)
        made.add(file_of(certificate, tmp_path / f"{memory}"))
        certificate.discard()
    assert len(made) == 1


# Files


def test_budgets_and_words_are_those_of_a_certificate_in_memory(tmp_path):
    data = a_graph()
    graph, model = in_parts(tmp_path, data), gcn(data)
    budgets = [ac.Budget(add_edges=2, target_features=True), ac.Budget(delete_nodes=1, add_edges=3)]
    for stated in ([], budgets):
        for name, certificate in (("a", ac.certify(model, graph, DIVISION)), ("b", ac.certify(model, data, DIVISION))):
            certificate.save(tmp_path / name, stated, issued={"by": "us"})
        assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert ac.certify(model, graph, DIVISION).load().class_names == ("a", "b", "c")


def test_ids_that_are_text_in_a_later_range_only(tmp_path):
    data = a_graph()
    data.node_id = [*range(100, 150), *[f"n{k}" for k in range(10)]]
    graph, model = in_parts(tmp_path, data), gcn(data)
    assert file_of(ac.certify(model, graph, DIVISION), tmp_path / "a") == file_of(
        ac.certify(model, data, DIVISION), tmp_path / "b"
    )


# Verification


@pytest.mark.parametrize("division", [DIVISION, ac.GatedNodeCentric(4), ac.EdgeCentric(6)], ids=str)
def test_a_certificate_is_verified_against_the_parts(tmp_path, division):
    data = a_graph()
    graph, model = in_parts(tmp_path, data, division), gcn(data)
    ac.certify(model, data, division, data.test_mask).save(tmp_path / "a")
    assert ac.verify(tmp_path / "a", data=graph).compared == ("data",)
    assert ac.verify(tmp_path / "a", data=graph, model=model).compared == ("data", "model")
    assert "the model is not the one" in str(ac.verify(tmp_path / "a", data=graph, model=gcn(data, 1)))
    other = a_graph(seed=1)
    ac.write_graph(other, tmp_path / "other", partition=division)
    assert "the graph is not the one" in str(ac.verify(tmp_path / "a", data=ac.open_graph(tmp_path / "other")))


def forged(graph, folder: Path, change) -> None:
    """Writes the parts again after a change, with digests that fit, but states the old graph."""
    from agnncert_large.partitioned.graph import seal

    content = json.loads((Path(graph.place.address) / "manifest.json").read_text())
    content.pop("sha256")
    change(content)
    (Path(graph.place.address) / "manifest.json").write_text(json.dumps(content | {"sha256": seal(content)}))


@pytest.mark.parametrize("kind", ["arcs", "inner", "senders"])
def test_parts_that_were_forged_with_their_digests_are_refused(tmp_path, kind):
    data = a_graph()
    graph, model = in_parts(tmp_path, data), gcn(data)
    ac.certify(model, data, DIVISION).save(tmp_path / "a")
    assert ac.verify(tmp_path / "a", data=graph)

    def swap(manifest) -> None:
        parts = manifest[kind]
        first, second = [k for k, entries in enumerate(parts) if entries][:2]
        parts[first], parts[second] = parts[second], parts[first]

    forged(graph, tmp_path, swap)
    verdict = ac.verify(tmp_path / "a", data=ac.open_graph(tmp_path / "graph"))
    assert not verdict
    assert "write the graph again" in str(verdict)


@pytest.mark.parametrize("division", [DIVISION, ac.GatedNodeCentric(4), ac.EdgeCentric(6)], ids=str)
def test_an_engine_that_forgets_an_arc_does_not_verify_its_own_file(tmp_path, monkeypatch, division):
    data = a_graph()
    graph, model = in_parts(tmp_path, data, division), gcn(data)
    plain = type(graph).arcs

    def forgetful(graph, group, targets=None, kind="arcs"):
        arcs = plain(graph, group, targets, kind)
        return arcs.select(np.arange(len(arcs)) != 0) if sys._getframe(1).f_code.co_name != "_arcs" else arcs

    monkeypatch.setattr(type(graph), "arcs", forgetful)
    ac.certify(model, graph, division).save(tmp_path / "a")
    verdict = ac.verify(tmp_path / "a", data=graph, model=model)
    assert not verdict
    assert "in a subgraph that the file does not list" in str(verdict)


# Training


@pytest.mark.parametrize("division", [DIVISION, ac.EdgeCentric(6)], ids=str)
def test_a_model_learns_from_the_parts(tmp_path, division):
    data = a_graph(nodes=200)
    random = torch.Generator().manual_seed(1)
    data.y = torch.arange(200) % 3
    data.x = torch.nn.functional.one_hot(data.y, 5).float() + 0.4 * torch.randn(200, 5, generator=random)
    graph = in_parts(tmp_path, data, division)
    losses = []
    model = ac.fit(gcn(graph), graph, division, epochs=30, lr=0.02, progress=lambda step: losses.append(step.loss))
    assert losses[-1] < 0.9 * losses[0]
    assert not model.training
    again = ac.fit(gcn(graph), graph, division, epochs=30, lr=0.02)
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), again.parameters(), strict=True))
    certificate = ac.certify(model, graph, division, graph.test_mask).load()
    assert certificate.certified_accuracy() > 0.7


def test_an_interrupted_training_goes_on(tmp_path):
    data = a_graph()
    graph = in_parts(tmp_path, data)

    def stop(step) -> None:
        if step.done == 3:
            raise KeyboardInterrupt

    settings = {"epochs": 5, "evaluate_every": 1}
    with pytest.raises(KeyboardInterrupt):
        ac.fit(gcn(data), graph, DIVISION, checkpoint=tmp_path / "state", progress=stop, **settings)
    resumed = ac.fit(gcn(data), graph, DIVISION, checkpoint=tmp_path / "state", **settings)
    straight = ac.fit(gcn(data), graph, DIVISION, **settings)
    assert all(torch.equal(a, b) for a, b in zip(resumed.parameters(), straight.parameters(), strict=True))


def test_settings_that_do_not_apply_are_refused(tmp_path):
    data = a_graph()
    with pytest.raises(SettingsError, match="clusters: a graph in parts is trained on its groups"):
        ac.fit(gcn(data), in_parts(tmp_path, data), DIVISION, clusters=4)


# Object storage, and many processes


def test_an_address_that_only_fsspec_knows(tmp_path):
    pytest.importorskip("fsspec", reason="fsspec is not installed")
    data, address = a_graph(), f"memory://{tmp_path.name}"
    ac.write_graph(data, f"{address}/graph", partition=DIVISION)
    graph, model = ac.open_graph(f"{address}/graph"), gcn(data)
    assert ac.dataset_digest(graph.load()) == ac.dataset_digest(data)
    with pytest.raises(KeyboardInterrupt):
        ac.certify(model, graph, DIVISION, workers=_Halting(3), checkpoint=f"{address}/votes")
    rest = _Halting(10**9)
    certificate = ac.certify(model, graph, DIVISION, workers=rest, checkpoint=f"{address}/votes")
    assert rest.done == 6 - 3 + len(graph.ranges)
    assert file_of(certificate, tmp_path / "a") == file_of(ac.certify(model, data, DIVISION), tmp_path / "b")
    assert ac.verify(tmp_path / "a", data=graph, model=model).compared == ("data", "model")
    certificate.discard()
    assert not Place(f"{address}/votes").sizes()
    with pytest.raises(GraphError, match="an address that pyarrow or fsspec knows"):
        ac.open_graph("nothing-like-this://graph")


@pytest.fixture(scope="module")
def bucket():
    """An address in a bucket of a server on this machine that speaks the protocol of S3."""
    server = pytest.importorskip("moto.server", reason="moto is not installed")
    import logging

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    running = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    settings = f"scheme=http&endpoint_override={host}:{port}&region=us-east-1&allow_bucket_creation=true"
    from pyarrow import fs

    system, _ = fs.FileSystem.from_uri(f"s3://key:secret@bucket?{settings}")
    system.create_dir("bucket")
    yield lambda name: f"s3://key:secret@bucket/{name}?{settings}"
    running.stop()


@pytest.mark.slow
def test_from_tables_on_s3_to_a_verified_certificate(tmp_path, bucket):
    data = a_graph(nodes=200)
    from pyarrow import fs

    system, path = fs.FileSystem.from_uri(bucket("tables"))
    columns = {f"f{k}": data.x[:, k].numpy() for k in range(5)}
    label = (data.x[:, 0] > 0).long().numpy()
    nodes = pa.table({"id": data.node_id.numpy(), "label": label, **columns})
    ends = {name: data.edge_index[k].numpy() + 100 for k, name in enumerate(("source", "target"))}
    pq.write_table(nodes, f"{path}/nodes.parquet", filesystem=system)
    pq.write_table(pa.table(ends), f"{path}/edges.parquet", filesystem=system)

    graph = ac.convert_parquet(
        bucket("tables/nodes.parquet"), bucket("tables/edges.parquet"), bucket("graph"), partition=DIVISION
    )
    graph = ac.open_graph(bucket("graph"))
    model = ac.fit("gcn", graph, DIVISION, epochs=10)
    certificate = ac.certify(model, graph, DIVISION, graph.test_mask)
    certificate.save(tmp_path / "nodes.cert")
    verdict = ac.verify(tmp_path / "nodes.cert", data=graph, model=model)
    assert verdict.compared == ("data", "model")

    assert "secret" not in repr(graph)
    assert "secret" not in json.dumps(dict(graph.manifest))
    whole = graph.load()
    alone = ac.certify(model, whole, DIVISION, whole.test_mask)
    assert file_of(alone, tmp_path / "alone.cert") == (tmp_path / "nodes.cert").read_bytes()
    assert certificate.load().certified_accuracy() > 0.6
    certificate.discard()
    assert not graph.place.sizes("runs")
