"""Graphs in parts on one machine: time and memory against edges and workers, with workers that may take 2 GiB each.

    python -m experiments.benchmarks.parts make FOLDER 1e7 5.1e7    # tables of a generated graph
    python -m experiments.benchmarks.parts convert FOLDER           # in parts, by DuckDB
    python -m experiments.benchmarks.parts whole FOLDER             # in memory, by one process
    python -m experiments.benchmarks.parts certify FOLDER 4         # with 4 workers of Ray; 0: in this process
    python -m experiments.benchmarks.parts certify FOLDER 0 0.2GB   # with tasks that may take less
    python -m experiments.benchmarks.parts kill FOLDER 4            # a worker and then the driver are killed on the way
    python -m experiments.benchmarks.parts sample FOLDER 1000       # votes of random nodes by the plain module
    python -m experiments.benchmarks.parts verify FOLDER            # the certificate against the parts and the model
    python -m experiments.benchmarks.parts train FOLDER 10          # epochs; the other steps then use this model
    python -m experiments.benchmarks.parts page                     # fills the table of docs/scale.md

Every step but the first writes a row to ``results/parts.jsonl``, in place of an older one of the same run.
Workers get a limit on their address space (``RLIMIT_AS``) above what the interpreter takes with its libraries.
"""

import hashlib
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

Row = dict[str, Any]

HERE = Path(__file__).parent
ROWS = HERE / "results" / "parts.jsonl"
PAGE = HERE.parents[1] / "docs" / "scale.md"
BEGIN, END = "<!-- parts -->", "<!-- end -->"
CLASSES, FEATURES, HIDDEN, GROUPS = 16, 32, 32, 80
LIMIT = 2 * 2**30  # bytes of address space that a worker may take
TASK = "1.2GB"  # of which a task plans to take
KILLED = "certify parts, a worker and the driver killed"
PATIENCE = 7200.0  # seconds for which ``kill`` waits for tasks to be done


def make(folder: Path, nodes: int, pairs: int) -> None:
    """Writes tables of nodes in 16 classes and of pairs, most of them within a class, with skewed degrees."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(0)
    means = random.normal(size=(CLASSES, FEATURES)).astype(np.float32)
    writer = None
    for first in range(0, nodes, 2**18):
        row = np.arange(first, min(first + 2**18, nodes))
        label = row % CLASSES
        x = means[label] + 2 * random.normal(size=(len(row), FEATURES)).astype(np.float32)
        table = pa.table({"id": row * 7 + 3, "label": label, **{f"f{k}": x[:, k].copy() for k in range(FEATURES)}})
        writer = writer or pq.ParquetWriter(folder / "nodes.parquet", table.schema, use_dictionary=False)
        writer.write_table(table)
    writer.close()
    writer = None
    for first in range(0, pairs, 2**21):
        count = min(2**21, pairs - first)
        source = random.integers(0, nodes, count)
        target = (random.random(count) ** 1.3 * nodes).astype(np.int64)
        alike = target - target % CLASSES + source % CLASSES
        target = np.where(random.random(count) < 0.7, alike, target) % nodes
        table = pa.table({"source": source * 7 + 3, "target": target * 7 + 3})
        writer = writer or pq.ParquetWriter(folder / "edges.parquet", table.schema)
        writer.write_table(table)
    writer.close()


def convert(folder: Path) -> None:
    """Writes the tables in parts."""
    import agnncert as ac

    def work() -> Row:
        division = ac.NodeCentric(GROUPS)
        tables = (folder / "nodes.parquet", folder / "edges.parquet")
        graph = ac.convert_parquet(*tables, folder / "place", partition=division)
        return {"name": "tables into parts", **_of(graph)}

    _measured("convert", work)


def model_of(graph: Any) -> Any:
    """Returns the model: a GCN of three layers, trained for two epochs the first time."""
    import torch

    import agnncert as ac

    model = ac.build_model("gcn", graph, hidden_channels=HIDDEN, num_layers=3, seed=1)
    file = Path(graph.place.address).parent / "model.pt"
    if not file.exists():
        ac.fit(model, graph, graph.division, epochs=2, evaluate_every=1)
        torch.save(model.state_dict(), file)
    model.load_state_dict(torch.load(file))
    return model.eval()


def _of(graph: Any) -> Row:
    return {"edges": graph.num_edges, "nodes": graph.num_nodes}


class TaskSizes(NamedTuple):
    """Bytes that tasks take, as ``certify`` plans them for arcs that are drawn at random.

    Attributes:
        fixed: The senders of one group, with the arcs among them.
        per_node: One node of a span.
    """

    fixed: float
    per_node: float


def task_sizes(nodes: int, arcs: int, groups: int) -> TaskSizes:
    """Returns what a task on a graph of this size takes with the model of this benchmark."""
    from agnncert_large.partitioned.planning import BYTES_UNPACKED, TIMES_READ, Sizes
    from agnncert_large.partitioned.writing import rows_of_range

    sizes = Sizes(FEATURES, HIDDEN, 4)
    reading = TIMES_READ * min(nodes, rows_of_range(FEATURES, 4)) * (4 * FEATURES + BYTES_UNPACKED)
    fixed = sizes.of_senders(nodes / groups, arcs / groups**2) + reading
    return TaskSizes(fixed, sizes.of_range(1, arcs / nodes, arcs / nodes / groups))


class Use(NamedTuple):
    """What a task took.

    Attributes:
        process: Who did it.
        seconds: Processor time.
        read: Bytes that the process read from files.
        peak: Most memory that the process has had until then, in bytes.
    """

    process: int
    seconds: float
    read: int
    peak: int


def _read_so_far() -> int:
    lines = Path("/proc/self/io").read_text().splitlines()
    return int(lines[0].removeprefix("rchar:"))


def _peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def measured_task(task: Callable[[Any, Any], Any], prepared: Any, part: Any) -> tuple[Any, Use]:
    """In a worker: does a part, and says what it took."""
    begun, read = time.process_time(), _read_so_far()
    result = task(prepared, part)
    return result, Use(os.getpid(), time.process_time() - begun, _read_so_far() - read, _peak())


@dataclass
class Measured:
    """Workers that write down what every part took, in a file that outlives a driver.

    Attributes:
        workers: Who works.
        at_once: How many parts are done at once; 0: no more than have to be.
        file: Where it is written.
    """

    workers: Any
    at_once: int
    file: Path

    def parts_at_once(self) -> int:
        """Returns how many parts are done at once."""
        return self.at_once

    def run(self, shared: Any, prepare: Any, task: Any, parts: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
        """Yields each part with its result."""
        for part, (result, use) in self.workers.run(shared, prepare, partial(measured_task, task), parts):
            with self.file.open("a") as file:
                file.write(json.dumps(use) + "\n")
            yield part, result

    def found(self) -> Row:
        """Returns what each worker has read, and what all of them took."""
        uses = [Use(*json.loads(line)) for line in self.file.read_text().splitlines()]
        read = {use.process: sum(each.read for each in uses if each.process == use.process) for use in uses}
        return {
            "worker_seconds": round(sum(use.seconds for use in uses), 1),
            "worker_peak_mb": round(max(use.peak for use in uses) / 1e6),
            "read_gb": sorted((round(value / 1e9, 2) for value in read.values()), reverse=True),
        }


def _workers(count: int, folder: Path) -> Any:
    """Returns workers of Ray on this machine with a limit on their memory, or this process."""
    import agnncert as ac
    from agnncert.engine.workers import Here

    if not count:
        return Measured(Here(), 0, folder / "uses.jsonl")
    import ray

    path = os.pathsep.join([str(HERE.parents[1]), os.environ.get("PYTHONPATH", "")])
    environment = {
        "worker_process_setup_hook": "experiments.benchmarks.parts.limit_memory",
        "env_vars": {"MALLOC_ARENA_MAX": "1", "PARTS_PROCESSES": str(folder / "processes"), "PYTHONPATH": path},
    }
    ray.init(
        address="local",
        num_cpus=count,
        include_dashboard=False,
        object_store_memory=120_000_000,
        runtime_env=environment,
    )
    return Measured(ac.Ray(), count, folder / "uses.jsonl")


def _folder_of_run(folder: Path, count: int, memory: str) -> Path:
    """Returns where a run keeps its votes: another one for another memory limit, so that no tasks are taken over."""
    return folder / f"run-{count}-{memory}"


def certify(folder: Path, count: int, memory: str = TASK, name: str = "certify parts") -> None:
    """Certifies all nodes with some workers of Ray, or in this process, and saves the certificate."""
    import shutil

    import agnncert as ac

    graph = ac.open_graph(folder / "place")
    model = model_of(graph)
    run = _folder_of_run(folder, count, memory)
    (run / "processes").mkdir(parents=True, exist_ok=True)
    votes = run / "votes"
    workers = _workers(count, run)

    def work() -> Row:
        certificate = ac.certify(model, graph, graph.division, workers=workers, memory_limit=memory, checkpoint=votes)
        certificate.save(folder / "parts.cert")
        tasks = json.loads((votes / "tasks.json").read_text())["tasks"]
        return {
            "name": name,
            "workers": str(count or "none"),
            **_of(graph),
            "memory": memory,
            "planned_mb": round(max(task[4] for task in tasks) / 1e6),
            "spans": len({tuple(task[2:4]) for task in tasks}),
            **_file(folder / "parts.cert"),
            **workers.found(),
        }

    _measured("certify", work)
    shutil.rmtree(run)


def _file(file: Path) -> Row:
    with file.open("rb") as content:
        return {
            "sha256": hashlib.file_digest(content, "sha256").hexdigest(),
            "file_mb": round(file.stat().st_size / 1e6),
        }


def kill(folder: Path, count: int, memory: str = TASK) -> None:
    """Certifies with workers, of which one is killed after a quarter of the tasks, and the driver after a half."""
    run = _folder_of_run(folder, count, memory)
    command = [sys.executable, "-m", "experiments.benchmarks.parts", "certify", str(folder), str(count), memory, KILLED]
    driver = subprocess.Popen(command, cwd=HERE.parents[1])
    try:
        _wait_for(run, 1 / 4, driver)
        worker = next(pid for pid in sorted(map(int, os.listdir(run / "processes"))) if Path(f"/proc/{pid}").exists())
        os.kill(worker, signal.SIGKILL)
        print("killed the worker", worker, flush=True)
        _wait_for(run, 1 / 2, driver)
    finally:
        driver.kill()
        driver.wait()
    print("killed the driver", driver.pid, flush=True)
    subprocess.run(command, cwd=HERE.parents[1], check=True)


def _wait_for(run: Path, share: float, driver: "subprocess.Popen[bytes]") -> None:
    """Waits until some share of the tasks is done."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if driver.poll() is not None:
            raise SystemExit(f"the driver ended before {share:.0%} of the tasks: use more tasks, or a larger graph.")
        stated = run / "votes" / "tasks.json"
        if stated.exists():
            tasks = len(json.loads(stated.read_text())["tasks"])
            uses = run / "uses.jsonl"
            done = len(uses.read_text().splitlines()) if uses.exists() else 0
            if done >= share * tasks:
                return
        time.sleep(0.5)
    raise SystemExit(f"after {PATIENCE:.0f} s, {share:.0%} of the tasks are not done.")


def whole(folder: Path) -> None:
    """Certifies the same graph in memory; the digest of its file is compared with those of the other rows."""
    import agnncert as ac

    graph = ac.open_graph(folder / "place")
    data, model = graph.load(), model_of(graph)

    def work() -> Row:
        ac.certify(model, data, graph.division).save(folder / "whole.cert")
        return {"name": "certify in memory", **_of(graph), **_file(folder / "whole.cert")}

    _measured("whole", work)


def verify(folder: Path) -> None:
    """Verifies the certificate with the parts and the model, which computes all votes again."""
    import agnncert as ac

    graph = ac.open_graph(folder / "place")

    def work() -> Row:
        verdict = ac.verify(folder / "parts.cert", data=graph, model=model_of(graph))
        return {"name": "verify", **_of(graph), **_file(folder / "parts.cert"), "compared": list(verdict.compared)}

    _measured("verify", work)


def train(folder: Path, epochs: int) -> None:
    """Trains the model on the parts, and certifies the validation nodes with it."""
    import torch

    import agnncert as ac

    graph = ac.open_graph(folder / "place")
    model = ac.build_model("gcn", graph, hidden_channels=HIDDEN, num_layers=3, seed=1)

    def work() -> Row:
        ac.fit(model, graph, graph.division, epochs=epochs, evaluate_every=max(1, epochs // 5))
        return {"name": "train on parts", **_of(graph), "epochs": epochs}

    def accuracy() -> Row:
        certificate = ac.certify(model, graph, graph.division, graph.val_mask, checkpoint=folder / "validation").load()
        return {"accuracy": round(float((certificate.label == certificate.truth).mean()), 4)}

    _measured("train", work, accuracy)
    torch.save(model.state_dict(), folder / "model.pt")


@dataclass(frozen=True)
class Tables:
    """The tables of a generated graph, read without the library.

    Attributes:
        folder: Where they lie.
        group_of: Group of every node.
    """

    folder: Path
    group_of: Any

    def subgraph(self, group: int, nodes: Any) -> tuple[Any, Any, Any]:
        """Returns what the votes of some nodes in a group depend on: rows of nodes, their features, and edges.

        Args:
            group: The group.
            nodes: Rows of the nodes.
        """
        import pyarrow.parquet as pq
        import torch

        sends = self.group_of == group
        hears = sends.copy()
        hears[nodes] = True
        rows = np.flatnonzero(hears)
        arcs = []
        for table in pq.ParquetFile(self.folder / "edges.parquet").iter_batches(2**20):
            ends = [(table[name].to_numpy() - 3) // 7 for name in ("source", "target")]
            for source, target in (ends, ends[::-1]):
                some = sends[source] & hears[target] & (source != target)
                arcs.append(source[some] * len(hears) + target[some])
        source, target = np.divmod(np.unique(np.concatenate(arcs)), len(hears))
        found, first = [], 0
        for table in pq.ParquetFile(self.folder / "nodes.parquet").iter_batches(2**18):
            columns = [table[f"f{k}"].to_numpy() for k in range(FEATURES)]
            some = np.flatnonzero(hears[first : first + len(table)])
            found.append(np.stack([column[some] for column in columns], axis=1))
            first += len(table)
        edges = np.stack([np.searchsorted(rows, source), np.searchsorted(rows, target)])
        return rows, torch.from_numpy(np.concatenate(found)), torch.from_numpy(edges)


def sample(folder: Path, votes: int) -> None:
    """Computes votes of random nodes in random groups again: by the plain module, from the tables, without parts."""
    import torch

    import agnncert as ac
    from agnncert.graphs import hashing

    graph = ac.open_graph(folder / "place")
    model = model_of(graph)

    def work() -> Row:
        record: Any = ac.load_certificate(folder / "parts.cert").evidence
        ids = np.arange(graph.num_nodes) * 7 + 3
        tables = Tables(folder, hashing.node_groups(hashing.keys_of_encoded(ids), GROUPS, graph.division.hash))
        random = np.random.default_rng(2)
        compared: list[tuple[bool, bool]] = []
        for group in random.choice(GROUPS, 4, replace=False).tolist():
            nodes = np.unique(random.integers(0, graph.num_nodes, -(-votes // 4)))
            rows, x, edges = tables.subgraph(group, nodes)
            with torch.no_grad():
                here = model(x, edges).argmax(1).numpy()[np.searchsorted(rows, nodes)]
            for node, vote in zip(nodes.tolist(), here.tolist(), strict=True):
                some = slice(int(record.votes.indptr[node]), int(record.votes.indptr[node + 1]))
                found = np.flatnonzero(record.votes.group[some] == group)
                stated = record.votes.vote[some][found[0]] if len(found) else record.votes.default[node]
                compared.append((bool(len(found)), bool(stated != vote)))
        return {
            "name": "votes by the plain module",
            **_of(graph),
            **_file(folder / "parts.cert"),
            "votes": len(compared),
            "listed": sum(is_listed for is_listed, _ in compared),
            "different": sum(is_other for _, is_other in compared),
        }

    _measured("sample", work)


def limit_memory() -> None:
    """In a worker: limits the address space to 2 GiB above what the interpreter takes with its libraries."""
    import pyarrow as pa
    import pyarrow.parquet
    import torch

    import agnncert_large.partitioned.certify  # noqa: F401 - loads what a task needs

    pa.set_memory_pool(pa.system_memory_pool())  # the default one reserves addresses far beyond what it uses
    pa.set_cpu_count(1)
    torch.set_num_threads(1)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + LIMIT
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    (Path(os.environ["PARTS_PROCESSES"]) / str(os.getpid())).touch()


def _measured(step: str, work: Callable[[], Row], afterwards: Callable[[], Row] = dict) -> None:
    """Does some work, and writes down what it took; what comes afterwards does not count."""
    wall, processor = time.monotonic(), time.process_time()
    found = work()
    row = {
        "step": step,
        "workers": "–",
        **found,
        "seconds": round(time.monotonic() - wall, 1),
        "cpu_seconds": round(time.process_time() - processor, 1),
        "peak_mb": round(_peak() / 1e6),
        "load": round(os.getloadavg()[0], 1),
    }
    if row["workers"] not in ("–", "none"):
        row["cpu_seconds"] = round(row["cpu_seconds"] + row["worker_seconds"], 1)
    row |= afterwards()
    rows = [each for each in read_rows() if _run_of(each) != _run_of(row)]
    ROWS.write_text("".join(json.dumps(each, ensure_ascii=False) + "\n" for each in [*rows, row]))
    print(json.dumps(row), flush=True)


def _run_of(row: Row) -> tuple[Any, ...]:
    """Returns what tells a run from others."""
    return tuple(row.get(name) for name in ("name", "edges", "workers", "memory"))


def read_rows() -> list[Row]:
    """Returns the rows that the page shows."""
    return [json.loads(line) for line in ROWS.read_text().splitlines()]


TITLES = ["step", "directed edges", "workers", "spans", "processor time", "memory", "memory of a worker", "read by each worker"]  # fmt: skip
ORDER = ["convert", "train", "whole", "certify", "verify", "sample"]


def table(rows: list[Row]) -> str:
    """Returns what was measured as a table."""
    lines = ["| " + " | ".join(TITLES) + " |", "|" + "---|" * len(TITLES)]
    for row in sorted(
        rows, key=lambda row: (row["edges"], ORDER.index(row["step"]), row["workers"], -row.get("spans", 0))
    ):
        peak = row.get("worker_peak_mb")
        cells = [
            _what(row),
            f"{row['edges']:,}",
            str(row["workers"]),
            str(row.get("spans", "–")),
            f"{row['cpu_seconds']:,.0f} s",
            f"{row['peak_mb'] / 1000:.2f} GB",
            "–" if peak is None or row["workers"] == "none" else f"{peak / 1000:.2f} GB",
            _read(row.get("read_gb")),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _what(row: Row) -> str:
    """Returns what a row is about, and what came out."""
    if row["step"] == "train":
        return f"{row['name']}, {row['epochs']} epochs: {row['accuracy']:.1%} of the validation nodes are right"
    if row["step"] == "sample":
        return f"{row['votes']:,} {row['name']}: {row['different']} differ"
    return str(row["name"])


def _read(gigabytes: list[float] | float | None) -> str:
    """Returns what each worker has read, or all together."""
    if gigabytes is None:
        return "–"
    if isinstance(gigabytes, float):
        return f"{gigabytes:.2f} GB together"
    return " / ".join(f"{value:.2f}" for value in gigabytes) + " GB"


def filled(text: str, rows: list[Row]) -> str:
    """Returns the page with its table made from the rows."""
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n{table(rows)}\n{END}{rest.split(END, 1)[1]}"


def main() -> None:
    """Fills the page."""
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), read_rows()), encoding="utf-8")


STEPS: dict[str, Callable[..., None]] = {
    "make": lambda folder, nodes, pairs: make(Path(folder), int(float(nodes)), int(float(pairs))),
    "certify": lambda folder, count, *rest: certify(Path(folder).resolve(), int(count), *rest),
    "kill": lambda folder, count, *rest: kill(Path(folder).resolve(), int(count), *rest),
    "sample": lambda folder, votes: sample(Path(folder).resolve(), int(votes)),
    "train": lambda folder, epochs: train(Path(folder).resolve(), int(epochs)),
    **{step.__name__: lambda folder, step=step: step(Path(folder).resolve()) for step in (convert, whole, verify)},
    "page": main,
}

if __name__ == "__main__":
    STEPS[sys.argv[1]](*sys.argv[2:])
