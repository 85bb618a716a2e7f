"""``make bench-large``: what a graph of the size of Amazon2M costs, on a synthetic one. By hand, not in CI.

Every cell runs in a process of its own, so that its peak memory is its own, and leaves one row in results/large.json at
once: a run that was stopped goes on with the cells that are missing. One cell is one command:

    python -m experiments.benchmarks.large                                    # all cells that are missing, smallest first
    python -m experiments.benchmarks.large --cell certify:1:node:80 --again   # one of them, measured anew
    python -m experiments.benchmarks.large --list                             # which there are

Cells: ``generate:PART``, ``train:PART:DIVISION`` (leaves weights for certify), ``epoch:PART`` (an epoch beside a plain
one), ``certify:PART:DIVISION:T`` (certify, save, verify), ``ray:PART:DIVISION`` (the same certificate by one process and
by as many one-core workers as there are cores), with PART in 64, 16, 4, 1: that part of the size.
"""

import argparse
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
PARTS = (64, 16, 4, 1)
DIVISIONS = ("node", "edge")
GROUPS = 80
OTHER_GROUPS = (20, 320)
RAY_PARTS = (16, 4)
CLUSTER = 163  # nodes of a cluster, about: 15,000 clusters at full size, as in the paper on Cluster-GCN
PER_STEP = 10  # clusters
EPOCHS = 3
HIDDEN, LAYERS = 64, 3

CELLS = [
    cell
    for part in PARTS
    for cell in (
        f"generate:{part}",
        f"epoch:{part}",
        *(f"train:{part}:{division}" for division in DIVISIONS),
        *(f"certify:{part}:{division}:{groups}" for groups in (GROUPS, *OTHER_GROUPS) for division in DIVISIONS),
        *(f"ray:{part}:{division}" for division in DIVISIONS if part in RAY_PARTS),
    )
]


class Clock:
    """Time by phase; what a phase calls counts for the phase that is called, not for both.

    ``cpu`` is processor time, which a busy machine does not lengthen much; ``peak`` is the most memory there had been when
    a phase last ended.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.cpu: dict[str, float] = {}
        self.peak: dict[str, float] = {}
        self._running: list[str] = []
        self._since, self._cpu_since = time.perf_counter(), time.process_time()

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        self._charge()
        self._running.append(name)
        try:
            yield
        finally:
            self._charge()
            self.peak[self._running.pop()] = peak_gib()

    def _charge(self) -> None:
        now, cpu_now = time.perf_counter(), time.process_time()
        if self._running:
            phase = self._running[-1]
            self.seconds[phase] = self.seconds.get(phase, 0.0) + now - self._since
            self.cpu[phase] = self.cpu.get(phase, 0.0) + cpu_now - self._cpu_since
        self._since, self._cpu_since = now, cpu_now

    def watch(self, owner: Any, name: str, phase: str) -> None:
        """Has all time within a function or method counted for a phase."""
        plain = getattr(owner, name)

        def watched(*args: Any, **kwargs: Any) -> Any:
            with self.phase(phase):
                return plain(*args, **kwargs)

        setattr(owner, name, watched)


def watched() -> list[tuple[Any, str, str]]:
    """Functions that do the work of certify, and the phase that each belongs to."""
    from agnncert.divided import certify as certifier
    from agnncert.divisions import edge, node
    from agnncert.engine import edges_by_group, fast, range_votes, votes
    from agnncert.graphs import targets

    return [
        (certifier, "prepared", "checks and order"), (certifier, "audited", "audit"), (certifier, "spot_check", "spot check"),
        (targets, "graph_digest", "digest"), (certifier, "unchanged_digest", "digest"),
        (edge.EdgeCentric, "groups", "hashing"), (node.NodeCentric, "groups", "hashing"),
        (edges_by_group, "sort_by_group", "shuffle"), (edges_by_group.EdgesByGroup, "union", "layout"), (range_votes, "_list_votes", "layout"),
        (fast, "union_votes", "casting"), (fast, "no_edge_votes", "casting"),
        (votes, "merge_ranges", "tally"), (votes, "reach_of_ranges", "tally"), (certifier, "assemble", "tally"),
    ]  # fmt: skip


def peak_gib() -> float:
    """The most memory this process has had, pages of mapped files included."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 2**20
    raise RuntimeError("no VmHWM in /proc/self/status: this needs Linux")


def folder_of(root: Path, part: int) -> Path:
    return root / (f"amazon2m-like-{part}-seed0" if part > 1 else "amazon2m-like-seed0")


def cpu_timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """Processor seconds: epochs are compared with each other, and a busy machine would decide otherwise."""
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def generate(root: Path, part: int) -> dict[str, Any]:
    from experiments.benchmarks.amazon2m_like import generate_amazon2m_like

    place = folder_of(root, part)
    if place.exists():
        return {"seconds": None, "note": "was there already"}
    seconds, _ = timed(lambda: generate_amazon2m_like(place, 1 / part))
    return {"seconds": seconds}


def new_model(data: Any) -> Any:
    import agnncert as ac

    return ac.build_model("gcn", data, hidden_channels=HIDDEN, num_layers=LAYERS, dropout=0.2, seed=0)


def division_of(name: str, groups: int) -> Any:
    import agnncert as ac

    return (ac.NodeCentric if name == "node" else ac.EdgeCentric)(groups)


def epoch(root: Path, part: int) -> dict[str, Any]:
    """One epoch with the subgraph objective beside one of plain Cluster-GCN, on the same clusters."""
    import torch
    import torch.nn.functional as F

    import agnncert as ac
    from agnncert.engine.adapter import bind
    from agnncert.graphs.canonical import canonical
    from agnncert.training.node_objectives import NodeObjective
    from agnncert.training.settings import checked
    from agnncert_large.clusters import ClusterObjective, Incoming, induced, partition

    data = ac.open_graph(folder_of(root, part), check=False)
    graph, model = canonical(data, compact=True), new_model(data)
    seconds_partition, clusters = cpu_timed(lambda: partition(graph, data.num_nodes // CLUSTER))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    rows, incoming = data.train_mask.nonzero().view(-1), Incoming.of(graph)
    kept = 0

    def plain() -> None:
        nonlocal kept
        kept = 0
        for chosen in torch.split(torch.randperm(len(clusters)), PER_STEP):
            nodes = torch.cat([clusters[k] for k in chosen.tolist()]).sort().values
            here, trains = induced(graph, nodes, incoming), data.train_mask[nodes]
            kept += here.num_edges
            optimizer.zero_grad()
            F.cross_entropy(model(here.x, here.edge_index)[trains], data.y[nodes][trains]).backward()
            optimizer.step()

    def ours(division: Any) -> None:
        how = checked({}, "node")
        objective = ClusterObjective(
            graph, data.y, rows, clusters, PER_STEP, lambda p, y, r: NodeObjective.of(call, p, y, r, division, how)
        )
        for step in objective.steps():
            optimizer.zero_grad()
            step()
            optimizer.step()

    call = bind(model.eval(), graph, "node")
    model.train()
    torch.manual_seed(0)
    seconds_plain, _ = cpu_timed(plain)
    row = {"seconds_partition": seconds_partition, "seconds_plain": seconds_plain, "clusters": len(clusters)}
    row["edges_kept"] = kept / graph.edge_index.size(1)
    for name in DIVISIONS:
        row[f"seconds_{name}"], _ = cpu_timed(lambda name=name: ours(division_of(name, GROUPS)))  # type: ignore[misc]
    plain_again, _ = cpu_timed(plain)  # before and after, so that a machine that slows down does not decide
    plain_epoch = (seconds_plain + plain_again) / 2
    row["seconds_plain"] = plain_epoch
    return row | {f"{name}_in_plain_epochs": row[f"seconds_{name}"] / plain_epoch for name in DIVISIONS}


def weights_of(root: Path, part: int, division: str) -> Path:
    return root / f"large-{part}-{division}.safetensors"


def train(root: Path, part: int, division: str) -> dict[str, Any]:
    """Some epochs of ``fit``, in clusters; stopped, it goes on where it was."""
    import agnncert as ac

    data = ac.open_graph(folder_of(root, part), check=False)
    model = new_model(data)
    checkpoint = root / f"large-{part}-{division}.checkpoint"
    seconds, _ = timed(
        lambda: ac.fit(
            model, data, division_of(division, GROUPS), clusters=data.num_nodes // CLUSTER, clusters_per_step=PER_STEP,
            epochs=EPOCHS, evaluate_every=1, lr=0.01, weight_decay=0.0, balance_classes=False, checkpoint=checkpoint,
            progress=lambda step: print(step, flush=True),
        )
    )  # fmt: skip
    ac.save_model(model, weights_of(root, part, division))
    record = model.training_record
    checkpoint.unlink()
    return {
        "seconds": seconds,
        "epochs": EPOCHS,
        "seconds_per_epoch": record["seconds_per_epoch"],
        "score": record["score"],
    }


def certify(root: Path, part: int, division: str, groups: int) -> dict[str, Any]:
    """certify, save and verify, with everything in it."""
    file = root / f"large-{part}-{division}-{groups}.cert"
    row = certify_and_save(root, part, division, groups, file)
    row |= in_process(["--verify", str(file)])
    file.unlink()
    return row


def certify_and_save(root: Path, part: int, division: str, groups: int, file: Path) -> dict[str, Any]:
    import numpy as np

    import agnncert as ac

    clock = Clock()
    seconds_open, data = timed(lambda: ac.open_graph(folder_of(root, part)))
    weights = weights_of(root, part, division)
    model = ac.load_model(weights) if weights.is_file() else new_model(data).eval()
    for owner, name, phase in watched():
        clock.watch(owner, name, phase)
    with clock.phase("other"):
        seconds, certificate = timed(lambda: ac.certify(model, data, division_of(division, groups)))
    peak = peak_gib()
    cpu = time.process_time()
    seconds_save, _ = timed(lambda: certificate.save(file))
    cpu = time.process_time() - cpu
    peak_save = peak_gib()
    test = data.test_mask.numpy()
    right = certificate.label == data.y.numpy()
    return {
        "trained": weights.is_file(), "nodes": data.num_nodes, "edges": data.num_edges // 2, "groups": groups,
        "votes": len(certificate.evidence.votes.group), "seconds_open": seconds_open, "seconds": seconds,
        "cpu_seconds": sum(clock.cpu.values()), "phases": clock.seconds, "phases_cpu": clock.cpu,
        "peaks_gib": clock.peak, "peak_gib": peak,
        "seconds_save": seconds_save, "cpu_seconds_save": cpu, "peak_save_gib": peak_save,
        "file_mb": file.stat().st_size / 1e6, "median_radius": float(np.median(certificate.radius)),
        "accuracy": float(right[test].mean()),
        "certified_accuracy": [float((right & (certificate.radius >= size))[test].mean()) for size in range(41)],
    }  # fmt: skip


def verify(file: str) -> dict[str, Any]:
    import agnncert as ac

    cpu = time.process_time()
    seconds, verdict = timed(lambda: ac.verify(file))
    cpu = time.process_time() - cpu
    return {
        "seconds_verify": seconds,
        "cpu_seconds_verify": cpu,
        "verified": verdict.holds,
        "peak_verify_gib": peak_gib(),
    }


def spread(root: Path, part: int, division: str) -> dict[str, Any]:
    """certify in one process on all cores, and on a Ray cluster of as many cores on this machine."""
    import agnncert as ac

    data = ac.open_graph(folder_of(root, part), check=False)
    model = new_model(data).eval()
    files = [root / f"ray-{part}-{division}-{who}.cert" for who in ("one", "ray")]
    seconds_one, certificate = timed(lambda: ac.certify(model, data, division_of(division, GROUPS)))
    certificate.save(files[0])
    import ray

    seconds_start, _ = timed(
        lambda: ray.init(
            address="local",
            num_cpus=os.cpu_count(),
            include_dashboard=False,
            logging_level="error",
            log_to_driver=False,
        )
    )
    seconds_ray, certificate = timed(lambda: ac.certify(model, data, division_of(division, GROUPS), workers=ac.Ray()))
    certificate.save(files[1])
    ray.shutdown()
    equal = files[0].read_bytes() == files[1].read_bytes()
    for file in files:
        file.unlink()
    return {
        "nodes": data.num_nodes, "edges": data.num_edges // 2, "groups": GROUPS, "seconds_one": seconds_one,
        "seconds_start": seconds_start, "seconds_ray": seconds_ray, "equal": equal,
    }  # fmt: skip


def in_process(words: list[str]) -> dict[str, Any]:
    """What this script says when it is called with some words, in a process of its own."""
    command = [sys.executable, "-m", "experiments.benchmarks.large", *words]
    lines = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    answer: dict[str, Any] = json.loads(lines[-1])
    return answer


def measure(cell: str, root: Path) -> dict[str, Any]:
    kind, part, *rest = cell.split(":")
    load, start = os.getloadavg()[0], time.time()
    work = {"generate": generate, "epoch": epoch, "train": train, "certify": certify, "ray": spread}[kind]
    row = work(root, int(part), *[int(word) if word.isdigit() else word for word in rest])  # type: ignore[operator]
    import torch

    machine = {"cpu": platform.machine(), "cores": os.cpu_count(), "threads": torch.get_num_threads(), "load": load}
    return {
        "cell": cell, "synthetic": True, **row, "peak_process_gib": peak_gib(), "seconds_all": time.time() - start,
        "machine": {**machine, "python": platform.python_version(), "torch": torch.__version__},
    }  # fmt: skip


def read_rows() -> dict[str, dict[str, Any]]:
    file = RESULTS / "large.json"
    return {row["cell"]: row for row in json.loads(file.read_text())["rows"]} if file.is_file() else {}


def write_rows(rows: dict[str, dict[str, Any]]) -> None:
    rows = {cell: rows[cell] for cell in CELLS if cell in rows}
    (RESULTS / "large.json").write_text(json.dumps({"rows": list(rows.values())}, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, default=Path(".cache/large"), help="graphs and weights are kept here")
    parser.add_argument("--cell", action="append", choices=CELLS, metavar="CELL")
    parser.add_argument("--largest", type=int, default=1, choices=PARTS, help="leave out sizes beyond one PART-th")
    parser.add_argument("--again", action="store_true", help="measure cells anew that have a row")
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    parser.add_argument("--verify", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.verify:
        print(json.dumps(verify(options.verify)))
        return
    if options.inside:
        print(json.dumps(measure(options.inside, options.root)))
        return
    rows = read_rows()
    wanted = options.cell or [cell for cell in CELLS if int(cell.split(":")[1]) >= options.largest]
    if options.list:
        print("\n".join(f"{cell}{'  measured' if cell in rows else ''}" for cell in wanted))
        return
    options.root.mkdir(parents=True, exist_ok=True)
    for cell in wanted:
        if cell in rows and not options.again:
            continue
        row = in_process(["--inside", cell, "--root", str(options.root)])
        rows = read_rows() | {cell: row}
        write_rows(rows)
        print(cell, f"{row['seconds_all']:.0f} s, {row['peak_process_gib']:.2f} GiB", flush=True)


if __name__ == "__main__":
    main()
