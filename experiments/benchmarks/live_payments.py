"""Single payments on a live graph of a bank, with a journal: how many per second, how long each takes, how much memory.

python -m experiments.benchmarks.live_payments PLACE [--accounts 30000] [--events 50000] [--label NAME]

PLACE keeps the tables and the model, so that several versions of the library are measured on the same. The last payments
of a generated bank are the events; the table that the live graph begins with has those before. Every event is a request of
its own, posted to the service as HTTP does, but without HTTP, and is on disk before the next one. Then the graph is closed
and begun again from its journal. One row is appended to ``results/live-payments.jsonl``. Processor times are of this
process alone, so that they mean something on a busy machine, too; times by the clock do not.
"""

import argparse
import json
import os
import resource
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

import agnncert as ac
from agnncert.datasets.generated_payments import write_payments
from agnncert_live import LiveGraph
from agnncert_live.service import Service

RESULTS = Path(__file__).parent / "results" / "live-payments.jsonl"
ROLES = {
    "id": "account", "source": "payer", "target": "payee", "label": "class", "event_time": "paid_at",
    "event_key": "payment",
}  # fmt: skip


def prepare(place: Path, accounts: int, events: int) -> None:
    """Writes tables and a model, if they are not there."""
    if (place / "model.json").is_file():
        return
    write_payments(place, accounts=accounts)
    payments = pd.read_csv(place / "events.csv")
    payments.iloc[-events:].to_csv(place / "later.csv", index=False)
    payments.iloc[:-events].to_csv(place / "events.csv", index=False)
    data = load(place)
    votes = ac.StackedVotes(edge_values=True, combine="mean", epochs=10)
    ac.save_model(ac.fit(None, data, votes), place / "model.safetensors")
    (place / "model.json").touch()


def load(place: Path) -> Any:
    """Returns the graph of the table."""
    return ac.load_events(place, features=["age", "channel", "country"], **ROLES)


def events_of(place: Path) -> list[dict[str, Any]]:
    """Returns the later payments as events in JSON."""
    rows = pd.read_csv(place / "later.csv").to_dict("records")
    kept = ("payment", "amount", "paid_at")
    return [
        {
            "kind": "record_edge",
            "node": row["payer"],
            "other": row["payee"],
            "columns": {name: row[name] for name in kept},
        }
        for row in rows
    ]


def memory() -> float:
    """Returns the MiB that this process holds."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("place", type=Path)
    parser.add_argument("--accounts", type=int, default=30_000)
    parser.add_argument("--events", type=int, default=50_000)
    parser.add_argument("--most", type=int, help="post only the first of them")
    parser.add_argument("--label", default="now")
    args = parser.parse_args()
    torch.set_num_threads(1)
    prepare(args.place, args.accounts, args.events)
    with (args.place / "nodes.csv").open() as file:
        row: dict[str, Any] = {"version": args.label, "accounts": sum(1 for _ in file) - 1}

    def timed(name: str, work: Any) -> Any:
        begin = time.process_time()
        result = work()
        row[name] = round(time.process_time() - begin, 2)
        return result

    journal = args.place / "live.journal"
    journal.unlink(missing_ok=True)
    journal.with_name("live.journal-journal").unlink(missing_ok=True)
    data = timed("load_cpu_s", lambda: load(args.place))
    model = ac.load_model(args.place / "model.safetensors")
    row |= {"nodes": data.num_nodes, "directed_edges": data.num_edges, "values": data.edge_attr.shape[1]}
    live = timed("begin_cpu_s", partial(LiveGraph, model, data, model.defence, journal=journal))
    timed("reference_cpu_s", live.reference)
    row["journal_mib_begin"] = round(journal.stat().st_size / 2**20, 1)
    del data
    service = Service(live)
    events = events_of(args.place)[: args.most]
    row["memory_mib_begin"] = round(memory())
    cpu, wall, refused = [], [], 0
    for number, event in enumerate(events):
        begin, begin_cpu = time.perf_counter(), time.process_time()
        answer = service.post([event], f"{number}")
        cpu.append(time.process_time() - begin_cpu)
        wall.append(time.perf_counter() - begin)
        refused += answer["refused_in_all"]
    milliseconds = np.array(cpu) * 1000
    clock = np.array(wall) * 1000
    row |= {
        "events": len(events),
        "refused": refused,
        "events_per_cpu_s": round(len(cpu) / sum(cpu)),
        "cpu_ms_p50": round(float(np.median(milliseconds)), 2),
        "cpu_ms_p99": round(float(np.percentile(milliseconds, 99)), 2),
        "clock_ms_p50": round(float(np.median(clock)), 2),
        "clock_ms_p99": round(float(np.percentile(clock, 99)), 2),
        "memory_mib_end": round(memory()),
        "memory_mib_peak": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
        "journal_mib_end": round(journal.stat().st_size / 2**20, 1),
    }
    number = live.number
    live.close()
    again = timed("again_cpu_s", lambda: LiveGraph(model, None, model.defence, journal=journal))
    row["kept"] = again.number
    again.close()
    assert number == again.number, "the journal has lost events"
    print(json.dumps(row))
    with RESULTS.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
