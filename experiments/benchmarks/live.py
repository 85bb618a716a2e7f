"""``make bench-live``: what an event costs a live graph, beside certifying again and beside one plain forward pass.

Every dataset and division runs in a process of its own, so that its peak memory is its own. The mix of events is 45 %
edges added, 45 % deleted, 10 % features of a node changed; ``all kinds`` adds nodes that come, with three edges, and go.
A trained model is not needed: what a vote costs does not depend on its outcome. Last, the same with a journal, which
is flushed to disk at every batch: what that adds is the disk's.

    python -m experiments.benchmarks.live [--root FOLDER] [--only pubmed amazon-c] [--defences StackedVotes]
        [--events 1000] [--threads 1]

Torch gets one thread: with several, the small computations of an event and of the audit at the beginning wait for each
other on busy cores.
"""

import argparse
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import agnncert_live

RESULTS = Path(__file__).parent / "results"
DATASETS = ("pubmed", "amazon-c")
DEFENCES = ("EdgeCentric", "NodeCentric", "StackedVotes")
GROUPS = 300
BATCH = 100


class Stream:
    """Random events that can be applied to a graph, which it follows."""

    def __init__(self, data, seed):  # type: ignore[no-untyped-def]
        self.x, self.rng = data.x, random.Random(seed)
        self.ids = data.node_id.tolist()
        pairs = {(min(u, v), max(u, v)) for u, v in data.edge_index.t().tolist() if u != v}
        self.pairs = sorted((self.ids[u], self.ids[v]) for u, v in pairs)
        self.place = {pair: k for k, pair in enumerate(self.pairs)}
        self.guests = []  # type: ignore[var-annotated]
        self.next_id = max(self.ids) + 1

    def some(self, count, all_kinds=False):  # type: ignore[no-untyped-def]
        events = []  # type: ignore[var-annotated]
        while len(events) < count:
            events += self._event(all_kinds)
        return events[:count]

    def _event(self, all_kinds):  # type: ignore[no-untyped-def]

        luck = self.rng.random()
        if all_kinds and luck > 0.95 and self.guests:
            return [agnncert_live.Event("delete_node", self.guests.pop(0))]
        if all_kinds and luck > 0.9:
            node, self.next_id = self.next_id, self.next_id + 1
            self.guests.append(node)
            return [agnncert_live.Event("add_node", node, value=self._row())]
        if luck > 0.9:
            return [agnncert_live.Event("change_features", self.rng.choice(self.ids), value=self._row())]
        if luck > 0.45:
            pair = self.rng.choice(self.pairs)
            last = self.pairs.pop()
            if last != pair:
                self.pairs[self.place[pair]], self.place[last] = last, self.place[pair]
            del self.place[pair]
            return [agnncert_live.Event("delete_edge", *pair)]
        while True:
            u, v = self.rng.sample(self.ids, 2)
            if (u, v) not in self.place and (v, u) not in self.place:
                self.place[u, v] = len(self.pairs)
                self.pairs.append((u, v))
                return [agnncert_live.Event("add_edge", u, v)]

    def _row(self):  # type: ignore[no-untyped-def]
        return self.x[self.rng.randrange(len(self.x))]


def milliseconds(work):  # type: ignore[no-untyped-def]
    start = time.perf_counter()
    work()
    return 1000 * (time.perf_counter() - start)


def measure(name: str, kind: str, root: str, events: int) -> dict[str, object]:
    import numpy as np
    import torch

    import agnncert as ac

    torch.manual_seed(0)
    data = ac.load_dataset(name, root=root)
    if getattr(data, "node_id", None) is None:
        data.node_id = torch.arange(data.num_nodes)
    model, division = model_and_defence(kind, data)
    start = time.perf_counter()
    live = agnncert_live.LiveGraph(model, data, division)
    begun = time.perf_counter() - start
    stream = Stream(data, seed=0)
    for event in stream.some(50):
        live.apply(event)
    single = np.array([milliseconds(lambda event=event: live.apply(event)) for event in stream.some(events)])
    batches = [stream.some(BATCH) for _ in range(max(5, events // BATCH))]
    batched = np.array([milliseconds(lambda batch=batch: live.apply(batch)) for batch in batches])
    mixed = np.array([milliseconds(lambda one=one: live.apply(one)) for one in stream.some(events // 2, True)])
    certificate = min(milliseconds(live.certificate) for _ in range(3))
    ours = live.certificate()
    journal = with_journal(model, data, division, events // 2)
    now = live.data()
    theirs = []  # type: ignore[var-annotated]
    certify = min(milliseconds(lambda: theirs.append(ac.certify(model, now, division))) for _ in range(3))
    with torch.no_grad():
        forward = min(milliseconds(lambda: model(now.x, now.edge_index)) for _ in range(5))
    same = all(np.array_equal(ours.evidence.tensors()[k], v) for k, v in theirs[0].evidence.tensors().items())
    if not same or ours.claim != theirs[0].claim:
        raise SystemExit(f"{name}, {division}: the live certificate is not that of certify")
    return {
        "dataset": name,
        "division": str(division),
        "events": int(events),
        "median_ms": float(np.median(single)),
        "p99_ms": float(np.percentile(single, 99)),
        "max_ms": float(single.max()),
        "all_kinds_median_ms": float(np.median(mixed)),
        "all_kinds_p99_ms": float(np.percentile(mixed, 99)),
        "batched_per_s": float(BATCH * 1000 / batched.mean()),
        "certify_ms": certify,
        "forward_ms": forward,
        "cheaper": certify / float(np.median(single)),
        "certificate_ms": certificate,
        "begin_s": begun,
        **journal,
    }


def model_and_defence(kind, data):  # type: ignore[no-untyped-def]
    import agnncert as ac

    if kind == "StackedVotes":
        defence = ac.StackedVotes()
        model = defence.untrained(ac.build_model("mlp", data, hidden_channels=64), data).eval()
        return model, model.defence
    return ac.build_model("gcn", data, hidden_channels=64, num_layers=3).eval(), getattr(ac, kind)(GROUPS)


def with_journal(model, data, division, events):  # type: ignore[no-untyped-def]
    """What one event and events in batches cost with a journal, and how long it takes to begin again from it."""
    import numpy as np

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "journal"
        with agnncert_live.LiveGraph(model, data, division, journal=path) as live:
            stream = Stream(data, 1)
            times = [milliseconds(lambda event=event: live.apply(event)) for event in stream.some(events)]
            batches = [stream.some(BATCH) for _ in range(max(5, events // BATCH))]
            batched = [milliseconds(lambda batch=batch: live.apply(batch)) for batch in batches]
        start = time.perf_counter()
        agnncert_live.LiveGraph(model, None, division, journal=path).close()
        return {
            "journal_median_ms": float(np.median(times)),
            "journal_batched_per_s": float(BATCH * 1000 / np.mean(batched)),
            "restart_s": time.perf_counter() - start,
        }


def page(rows: list[dict[str, object]]) -> str:
    head = (
        "| dataset | defence | one event, median | 99th percentile | all kinds, median / 99th | events/s in batches of 100 "
        "| `certify` again | one plain forward | times cheaper | `certificate()` | begin | with journal, median | events/s in batches, with journal | restart |"
    )
    lines = [head, "|" + "---|" * 14]
    for row in rows:
        lines.append(
            f"| {row['dataset']} | {row['division']} | {row['median_ms']:.1f} ms | {row['p99_ms']:.1f} ms | "
            f"{row['all_kinds_median_ms']:.1f} / {row['all_kinds_p99_ms']:.1f} ms | {row['batched_per_s']:,.0f} | "
            f"{row['certify_ms']:,.0f} ms | {row['forward_ms']:.0f} ms | {row['cheaper']:,.0f} | "
            f"{row['certificate_ms']:,.0f} ms | {row['begin_s']:.1f} s | "
            f"{row['journal_median_ms']:.1f} ms | {_rate(row)} | {row['restart_s']:.1f} s |"
        )
    return (
        "# What an event costs a live graph\n\n"
        f"`make bench-live`: {os.cpu_count()} cores, {platform.platform()}. GCN of three layers, {GROUPS} groups, or stacked\n"
        "votes on models without edges; all nodes are targets. Events: 45 % edges added, 45 % deleted, 10 % features changed; *all kinds* has nodes that\n"
        "come and go besides. After each run the certificate is compared with that of `certify`: every array is equal.\n\n"
        + "\n".join(lines)
        + "\n"
    )


def _rate(row: dict[str, object]) -> str:
    rate = row.get("journal_batched_per_s")
    return "–" if rate is None else f"{rate:,.0f}"


def stored_rows() -> list[dict[str, object]]:
    """Rows of earlier runs, which stay unless they are measured again."""
    file = RESULTS / "live.json"
    return json.loads(file.read_text()) if file.exists() else []  # type: ignore[no-any-return]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", default=".cache/data")
    parser.add_argument("--only", nargs="*", default=list(DATASETS))
    parser.add_argument("--defences", nargs="*", default=list(DEFENCES))
    parser.add_argument("--events", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=1, help="threads of torch; small computations need one")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(*options.one, options.root, options.events)))
        return
    rows = []
    for name in options.only:
        for kind in options.defences:
            command = [sys.executable, "-m", "experiments.benchmarks.live", "--root", options.root, "--one", name, kind]
            result = subprocess.run(
                [*command, "--events", str(options.events)],
                check=True,
                stdout=subprocess.PIPE,
                text=True,
                env={**os.environ, "OMP_NUM_THREADS": str(options.threads)},
            )
            rows.append(json.loads(result.stdout.splitlines()[-1]))
            print(page(rows[-1:]).splitlines()[-1], flush=True)
    measured = {(row["dataset"], row["division"]) for row in rows}
    rows = [row for row in stored_rows() if (row["dataset"], row["division"]) not in measured] + rows
    (RESULTS / "live.json").write_text(json.dumps(rows, indent=1) + "\n")
    (RESULTS / "live.md").write_text(page(rows))


if __name__ == "__main__":
    main()
