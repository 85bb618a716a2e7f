"""Graphs in parts on one machine: time and memory against edges and workers, with workers that may take 2 GiB each.

    python -m experiments.benchmarks.parts make FOLDER 1e7 5.1e7    # tables of a generated graph
    python -m experiments.benchmarks.parts convert FOLDER           # in parts, by DuckDB
    python -m experiments.benchmarks.parts certify FOLDER 4         # with 4 workers of Ray; 0: in this process
    python -m experiments.benchmarks.parts whole FOLDER             # in memory, by one process
    python -m experiments.benchmarks.parts page                     # fills the table of docs/scale.md

Every step appends a row to FOLDER/rows.jsonl. Rows that the page shows are copied to ``results/parts.jsonl``.
Workers get a limit on their address space (``RLIMIT_AS``) above what the interpreter takes with its libraries.
"""

import hashlib
import json
import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Row = dict[str, Any]

HERE = Path(__file__).parent
ROWS = HERE / "results" / "parts.jsonl"
PAGE = HERE.parents[1] / "docs" / "scale.md"
BEGIN, END = "<!-- parts -->", "<!-- end -->"
CLASSES, FEATURES, GROUPS = 16, 32, 80
LIMIT = 2 * 2**30  # bytes of address space that a worker may take
TASK = "1.2GB"  # of which a task plans to take


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
        return {"name": "tables into parts", "workers": "–", "edges": graph.num_edges}

    _measured(folder, "convert", work)


def model_of(graph: Any) -> Any:
    """Returns the model: a GCN of three layers, trained for two epochs the first time."""
    import torch

    import agnncert as ac

    model = ac.build_model("gcn", graph, hidden_channels=32, num_layers=3, seed=1)
    file = Path(graph.place.address).parent / "model.pt"
    if not file.exists():
        ac.fit(model, graph, graph.division, epochs=2, evaluate_every=1)
        torch.save(model.state_dict(), file)
    model.load_state_dict(torch.load(file))
    return model.eval()


def certify(folder: Path, count: int) -> None:
    """Certifies all nodes with some workers of Ray, or in this process, and saves the certificate."""
    import agnncert as ac

    graph = ac.open_graph(folder / "place")
    model = model_of(graph)
    workers = None
    if count:
        import ray

        hook = {"worker_process_setup_hook": "experiments.benchmarks.parts.limit_memory"}
        ray.init(
            address="local", num_cpus=count, include_dashboard=False, object_store_memory=120_000_000, runtime_env=hook
        )
        workers = ac.Ray()
    votes = folder / "votes"

    def work() -> Row:
        certificate = ac.certify(model, graph, graph.division, workers=workers, memory_limit=TASK, checkpoint=votes)
        certificate.save(folder / "parts.cert")
        return {"name": "certify parts", "workers": str(count or "none"), "edges": graph.num_edges}

    _measured(folder, "certify", work)


def whole(folder: Path) -> None:
    """Certifies the same graph in memory, and compares the files."""
    import agnncert as ac

    graph = ac.open_graph(folder / "place")
    data, model = graph.load(), model_of(graph)

    def work() -> Row:
        ac.certify(model, data, graph.division).save(folder / "whole.cert")
        files = [(folder / name).read_bytes() for name in ("parts.cert", "whole.cert")]
        same = hashlib.sha256(files[0]).digest() == hashlib.sha256(files[1]).digest()
        return {"name": "certify in memory", "workers": "–", "edges": graph.num_edges, "same": same}

    _measured(folder, "whole", work)


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


def _measured(folder: Path, step: str, work: Callable[[], Row]) -> None:
    wall, processor = time.monotonic(), time.process_time()
    found = work()
    row = {
        "step": step,
        **found,
        "seconds": round(time.monotonic() - wall, 1),
        "cpu_seconds": round(time.process_time() - processor, 1),
        "peak_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000),
        "load": os.getloadavg()[0],
    }
    with (folder / "rows.jsonl").open("a") as file:
        file.write(json.dumps(row) + "\n")
    print(json.dumps(row), flush=True)


def read_rows() -> list[Row]:
    """Returns the rows that the page shows."""
    return [json.loads(line) for line in ROWS.read_text().splitlines()]


def table(rows: list[Row]) -> str:
    """Returns what was measured as a table."""
    titles = ["step", "directed edges", "workers", "processor time", "wall time", "memory of the driver", "read by each worker"]  # fmt: skip
    body = []
    for row in rows:
        body.append(
            [
                row["name"],
                f"{row['edges']:,}",
                str(row["workers"]),
                f"{row['cpu_seconds']:,.0f} s",
                f"{row['seconds']:,.0f} s",
                f"{row['peak_mb'] / 1000:.2f} GB",
                _read(row.get("read_gb")),
            ]
        )
    lines = ["| " + " | ".join(titles) + " |", "|" + "---|" * len(titles)]
    return "\n".join([*lines, *("| " + " | ".join(line) + " |" for line in body)])


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


if __name__ == "__main__":
    step, *rest = sys.argv[1:]
    if step == "page":
        main()
    elif step == "make":
        make(Path(rest[0]), int(float(rest[1])), int(float(rest[2])))
    elif step == "certify":
        certify(Path(rest[0]).resolve(), int(rest[1]))
    else:
        {"convert": convert, "whole": whole}[step](Path(rest[0]).resolve())
