"""What training, certifying and verifying cost, by size of the graph and defence.

``python -m experiments.benchmarks.costs`` measures one cell after the other, each in a process of its own, and goes on
where it stopped. Graphs are random: ten edges for each node, 32 features, five classes, half of the nodes labelled.
Seconds are of processor time on one thread, since other work may run beside it; memory is the peak of the process,
of which the interpreter with PyTorch has about .4 GiB.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results" / "costs.jsonl"
EDGES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
DEFENCES = ("node", "edge", "gated", "per-neighbour", "stacked", "labels")
EPOCHS = 20  # of training: multiply for more
MOST_EDGES = {"labels": 1_000_000}  # weights of every label for every target
CLASSES, FEATURES, EDGES_PER_NODE = 5, 32, 10


def _graph(edges: int) -> Any:
    """Returns a random graph whose features and edges say something about the classes."""
    import torch
    from torch_geometric.data import Data

    generator = torch.Generator().manual_seed(0)
    nodes = edges // EDGES_PER_NODE
    y = torch.randint(0, CLASSES, (nodes,), generator=generator)
    x = torch.randn(nodes, FEATURES, generator=generator)
    x[:, :CLASSES] += torch.nn.functional.one_hot(y, CLASSES)
    ends = torch.randint(0, nodes, (2, edges), generator=generator)
    is_alike = torch.rand(edges, generator=generator) < 0.5  # half of the edges join nodes of one class
    order = y.argsort()
    near = (torch.empty(nodes, dtype=torch.long).scatter_(0, order, torch.arange(nodes)))[ends[0]]
    ends[1] = torch.where(is_alike, order[(near + ends[1] % 7 + 1).clamp(max=nodes - 1)], ends[1])
    ends = ends[:, ends[0] != ends[1]]
    data = Data(x=x, edge_index=torch.cat([ends, ends.flip(0)], 1), y=y)
    data.node_id = torch.arange(nodes)
    data.num_classes = CLASSES
    return data


def _defence(name: str) -> Any:
    import agnncert as ac

    made = {
        "node": lambda: ac.NodeCentric(80),
        "edge": lambda: ac.EdgeCentric(80),
        "gated": lambda: ac.GatedNodeCentric(20),
        "per-neighbour": ac.PerNeighbour,
        "stacked": ac.StackedVotes,
        "labels": ac.LabelVotes,
    }
    return made[name]()


def measure(name: str, edges: int) -> dict[str, Any]:
    """Measures one cell in this process."""
    import torch

    import agnncert as ac

    torch.set_num_threads(1)
    data = ac.split(_graph(edges), seed=0)
    row: dict[str, Any] = {"defence": name, "edges": edges, "nodes": data.num_nodes}
    defence = _defence(name)
    begun = time.process_time()
    if name == "labels":
        model = ac.fit(None, data, defence)
    elif name == "stacked":
        model = ac.fit("mlp", data, defence, epochs=EPOCHS)
    else:
        model = ac.fit("gcn", data, defence, epochs=EPOCHS)
    trained = time.process_time()
    certificate = ac.certify(model, data, getattr(model, "defence", defence), targets=data.test_mask)
    certified = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "cost.cert"
        certificate.save(file)
        saved = time.process_time()
        ac.verify(file)
        verified = time.process_time()
        size = file.stat().st_size
    return row | {
        "targets": len(certificate),
        "train": trained - begun,
        "certify": certified - trained,
        "verify": verified - saved,
        "bytes": size,
    }


def _known() -> set[tuple[str, int]]:
    if not RESULTS.exists():
        return set()
    rows = (json.loads(line) for line in RESULTS.read_text("utf-8").splitlines())
    return {(row["defence"], row["edges"]) for row in rows}


def main() -> None:
    """Measures the cells that have no row yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inside", nargs=2, metavar=("DEFENCE", "EDGES"), help=argparse.SUPPRESS)
    parser.add_argument("--most", type=int, default=EDGES[-1], help="largest number of edges")
    asked = parser.parse_args()
    if asked.inside:
        row = measure(asked.inside[0], int(asked.inside[1]))
        row["peak_gib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(json.dumps(row))
        return
    for edges in (number for number in EDGES if number <= asked.most):
        for name in DEFENCES:
            if (name, edges) in _known() or edges > MOST_EDGES.get(name, edges):
                continue
            command = [
                sys.executable,
                "-W",
                "ignore",
                "-m",
                "experiments.benchmarks.costs",
                "--inside",
                name,
                str(edges),
            ]
            done = subprocess.run(command, capture_output=True, text=True, timeout=3600)
            if done.returncode:
                sys.exit(f"{name}, {edges:,} edges: {done.stderr[-2000:]}")
            with RESULTS.open("a", encoding="utf-8") as file:
                file.write(done.stdout.splitlines()[-1] + "\n")
            print(done.stdout.splitlines()[-1], flush=True)


if __name__ == "__main__":
    main()
