"""Load on the service: several clients post events and ask, for some minutes; nothing may be lost.

python -m experiments.benchmarks.serve_load RUN --minutes 10 --clients 4 --page experiments/benchmarks/results/serve-load.md

RUN is the folder of a certified run (a copy is served, so that its journal stays as it is). Each client adds nodes of its
own, joins them to others, changes features and deletes, in batches with ids, some of which it sends twice; between them it
asks for decisions, and now and then it sends nonsense. At the end the journal must hold what was acknowledged, and the
certificate must be that of ``certify`` on the graph as it is.
"""

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import numpy as np

import agnncert as ac
import agnncert_live
from agnncert_live.client import ServiceError
from agnncert_live.run import ServedRun, service_of_run

TOKEN = "load-test-of-the-service"


def client_work(address: str, number: int, until: float, width: int, old: list, out: dict) -> None:
    rng, client, mine, edges = random.Random(number), agnncert_live.LiveClient(address, TOKEN), [], set()
    counts, waits, failures = Counter(), {"post": [], "ask": []}, []
    batch = 0
    while time.monotonic() < until:
        events, batch = [], batch + 1
        for k in range(rng.choice([1, 1, 10, 100])):
            kind = rng.random()
            if len(mine) > 200:  # so that the graph stays about as large as it is
                gone = mine.pop(rng.randrange(len(mine)))
                events.append(agnncert_live.Event("delete_node", gone))
                edges = {pair for pair in edges if gone not in pair}
            elif kind < 0.2 or len(mine) < 3:
                name = f"client-{number}-{batch}-{k}"
                events.append(agnncert_live.Event("add_node", name, value=[rng.random() for _ in range(width)]))
                mine.append(name)
            elif kind < 0.7:
                pair = rng.choice(mine), rng.choice(old)
                if pair not in edges:
                    events.append(agnncert_live.Event("add_edge", *pair))
                    edges.add(pair)
            elif kind < 0.85 and edges:
                pair = rng.choice(sorted(edges, key=str))
                events.append(agnncert_live.Event("delete_edge", *pair))
                edges.discard(pair)
            else:
                events.append(
                    agnncert_live.Event("change_features", rng.choice(mine), value=[rng.random() for _ in range(width)])
                )
        nonsense = [{"kind": "add_edge", "node": "nobody", "other": mine[0]}] if rng.random() < 0.2 else []
        try:
            begin = time.perf_counter()
            answer = client.apply([*events, *nonsense], id=f"{number}:{batch}")
            waits["post"].append(time.perf_counter() - begin)
            counts["events"] += answer["applied"]
            counts["refused"] += answer["refused_in_all"]
            counts["expected refused"] += len(nonsense)
            if answer["applied"] != len(events):
                failures.append(f"{len(events)} events sent, {answer['applied']} applied: {answer['refused'][:2]}")
            if rng.random() < 0.1:
                counts["sent twice"] += 1
                if not client.apply([*events, *nonsense], id=f"{number}:{batch}")["repeated"]:
                    failures.append("a batch that was sent again was applied again")
            for _ in range(3):
                begin = time.perf_counter()
                client.decision(rng.choice(mine if rng.random() < 0.5 else old))
                waits["ask"].append(time.perf_counter() - begin)
                counts["questions"] += 1
            if rng.random() < 0.1:
                client.closest(50)
                client.changes(0)
        except ServiceError as error:
            if error.status != 429:
                failures.append(f"{error.status}: {error}")
            counts[f"status {error.status}"] += 1
        except Exception as error:  # whatever it is, it goes on record
            failures.append(repr(error))
    out[number] = counts, waits, failures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--page", type=Path)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "run"
        shutil.copytree(args.run, folder, ignore=shutil.ignore_patterns("live*"))
        words = [
            sys.executable,
            "-m",
            "agnncert",
            "serve",
            str(folder),
            "--root",
            ".",
            "--port",
            "0",
            "--rate",
            "100000",
        ]
        server = subprocess.Popen(words, env={**os.environ, "AGNNCERT_TOKEN": TOKEN}, stdout=subprocess.PIPE, text=True)
        address = re.search(r"http://[\d.:]+", server.stdout.readline())[0]
        client = agnncert_live.LiveClient(address, TOKEN)
        summary = client.summary()
        old = [row["target"] for row in client.closest(1000)]
        width = json.loads((folder / "weights.json").read_text())["model"]["in_channels"]
        out: dict = {}
        memory, begin = [], time.monotonic()
        until = begin + 60 * args.minutes
        threads = [
            threading.Thread(target=client_work, args=(address, number, until, width, old, out))
            for number in range(args.clients)
        ]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            status = Path(f"/proc/{server.pid}/status").read_text()
            memory.append(
                (
                    time.monotonic() - begin,
                    int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024,
                    client.summary()["nodes"],
                )
            )
            time.sleep(5)
        seconds = time.monotonic() - begin
        after = client.summary()
        client.certificate(Path(place) / "now.cert")
        server.kill()
        server.wait()
        total = sum((counts for counts, _, _ in out.values()), Counter())
        failures = [failure for _, _, found in out.values() for failure in found]
        service = service_of_run(ServedRun(folder, root="."))
        with service.live:
            kept = service.live.number
            expected = ac.certify(service.live.model, service.live.data(), service.live.defence)
            downloaded = ac.load_certificate(Path(place) / "now.cert")
            same = bool((downloaded.label == expected.label).all() and (downloaded.radius == expected.radius).all())
    wait = {name: np.concatenate([waits[name] for _, waits, _ in out.values()]) * 1000 for name in ("post", "ask")}
    third = len(memory) // 3
    lines = [
        "# Load on the service",
        "",
        f"`python -m experiments.benchmarks.serve_load RUN --minutes {args.minutes:g} --clients {args.clients}` on {summary['data']} "
        f"({summary['nodes']:,} nodes, {summary['division']}), two cores for clients and service together; the service was killed "
        "with SIGKILL at the end and its journal read again.",
        "",
        "| what | |",
        "|---|---|",
        f"| seconds | {seconds:.0f} |",
        f"| events acknowledged | {total['events']:,} ({total['events'] / seconds:.0f} per second) |",
        f"| events in the journal after the kill | {kept:,} |",
        f"| batches sent twice, counted once | {total['sent twice']:,} |",
        f"| bad events sent, refused | {total['expected refused']:,}, {total['refused']:,} |",
        f"| questions answered | {total['questions']:,} ({total['questions'] / seconds:.0f} per second) |",
        f"| milliseconds of a batch (1 to 100 events), median and 99th percentile | {np.median(wait['post']):.1f}, {np.percentile(wait['post'], 99):.1f} |",
        f"| milliseconds of a question, median and 99th percentile | {np.median(wait['ask']):.1f}, {np.percentile(wait['ask'], 99):.1f} |",
        f"| errors that were not the client's | {len(failures)} |",
        f"| nodes at the beginning and at the end | {summary['nodes']:,}, {after['nodes']:,} |",
        f"| memory of the service in MiB: after {memory[0][0]:.0f} s, at a third, at two thirds, at the end | {memory[0][1]:.0f}, {memory[third][1]:.0f}, {memory[2 * third][1]:.0f}, {memory[-1][1]:.0f} |",
        f"| certificate at the end equals `certify` on the graph as it is | {'yes' if same else 'NO'} |",
        "",
    ]
    text = "\n".join(lines) + "".join(f"* {failure}\n" for failure in failures[:20])
    print(text)
    if args.page:
        args.page.write_text(text, encoding="utf-8")
    lost = kept != total["events"] or not same or failures
    sys.exit(1 if lost else 0)


if __name__ == "__main__":
    main()
