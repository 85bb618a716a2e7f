"""What it costs to read a table of payments: processor time and the largest memory of the process.

python -m experiments.benchmarks.event_tables --files FOLDER [--before FOLDER] [--accounts 20000 205000]

Each measurement is one process of its own that calls ``ac.load_events`` once, with one thread of numpy and torch, and
as many of DuckDB as there are cores. Payments are generated, about 16 for each account, and written as CSV and as
Parquet to the folder of files. ``--before`` names a checkout of another version of the repository
(``git worktree add FOLDER COMMIT``), which reads the same files. ``digest`` is that of the graph's edges and their
values, so rows with the same one have the same graph to the last bit.
Rows go to experiments/benchmarks/results/event-tables.jsonl as they come; what is there is not measured again.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from agnncert.datasets.generated_payments import write_payments
from experiments.paper.rows import append_row, read_rows

ROWS = Path(__file__).with_name("results") / "event-tables.jsonl"
PROJECT = Path(__file__).parents[2]
ACCOUNTS = (20_000, 205_000)
FORMATS = ("csv", "parquet")
READ = """
import hashlib, json, resource, sys, time
import agnncert as ac, pandas, pyarrow, torch
torch.set_num_threads(1)
try:
    import duckdb
except ModuleNotFoundError:
    pass
_, events, nodes = sys.argv


def peak_gib():  # ru_maxrss would count what the process that has started this one held
    lines = open("/proc/self/status").read().splitlines()
    return round(int(next(line for line in lines if line.startswith("VmHWM:")).split()[1]) / 2**20, 2)


imported = peak_gib()
before = resource.getrusage(resource.RUSAGE_SELF)
begin, used = time.perf_counter(), before.ru_utime + before.ru_stime
data = ac.load_events(
    events=events, nodes=nodes, id="account", label="class", label_time="known_since", source="payer", target="payee",
    event_time="paid_at", event_key="payment",
)
after = resource.getrusage(resource.RUSAGE_SELF)
digest = hashlib.sha256()
for name in ("edge_index", "edge_attr"):
    digest.update(getattr(data, name).numpy().tobytes())
held = sum(value.numel() * value.element_size() for _, value in data if torch.is_tensor(value))
print(json.dumps({
    "place": ac.__file__, "events": int(data.num_events), "nodes": int(data.num_nodes),
    "directed_edges": int(data.edge_index.size(1)), "values": int(data.edge_attr.size(1)),
    "processor_seconds": round(after.ru_utime + after.ru_stime - used, 1),
    "seconds": round(time.perf_counter() - begin, 1),
    "peak_gib": peak_gib(), "imports_gib": imported,
    "graph_gib": round(held / 2**30, 2), "digest": digest.hexdigest()[:16],
}))
"""


def tables(files: Path, accounts: int, kind: str) -> Path:
    """Returns the folder of a generated bank, which is made if it is not there."""
    place = files / f"payments-{accounts}"
    if not (place / "nodes.csv").is_file():
        write_payments(place, accounts=accounts, days=90, seed=0)
    if kind == "parquet" and not (place / "events.parquet").is_file():
        import pandas as pd

        payments = pd.read_csv(place / "events.csv", parse_dates=["paid_at"])
        payments.to_parquet(place / "events.parquet", index=False)
    return place


def measured(source: Path, place: Path, kind: str) -> dict[str, Any]:
    """Reads one table in a process of its own, with the library in a folder, and returns what it cost."""
    surroundings = {**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}
    words = [sys.executable, "-c", READ, str(place / f"events.{kind}"), str(place / "nodes.csv")]
    done = subprocess.run(words, env=surroundings, capture_output=True, text=True, check=False, cwd=place)
    if done.returncode:
        raise RuntimeError(done.stderr[-2000:])
    row: dict[str, Any] = json.loads(done.stdout)
    if not Path(row.pop("place")).resolve().is_relative_to(source.resolve()):
        raise RuntimeError(f"another agnncert was imported than that in {source}")
    return row


def main() -> None:
    """Makes the rows that are missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=Path, required=True)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--accounts", nargs="+", type=int, default=list(ACCOUNTS))
    given = parser.parse_args()
    sources = {"now": PROJECT} | ({} if given.before is None else {"before": given.before})
    for accounts in given.accounts:
        for kind in FORMATS:
            for version, source in sources.items():
                key = f"{accounts} {kind} {version}"
                if key in {row["key"] for row in read_rows(ROWS)}:
                    continue
                row = measured(source / "src", tables(given.files, accounts, kind), kind)
                append_row(ROWS, {"key": key, "format": kind, "version": version, **row, "cores": os.cpu_count()})
                print(key, row, flush=True)


if __name__ == "__main__":
    main()
