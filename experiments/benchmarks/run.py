"""``make bench``: what the votes cost, in plain forward passes of the same model, and what training costs, in plain steps.

Every dataset runs in a process of its own, so that its peak memory is its own. Ratios are of best times within one process.
The naive engine is measured on a sample of subgraphs and scaled up where all of them would take minutes; the table says so.

    python -m experiments.benchmarks.run [--root FOLDER] [--only NAME ...] [--repeats 7]
"""

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

RESULTS = Path(__file__).parent / "results"
NODE = ("cora-ml", "citeseer", "pubmed", "amazon-c")
GRAPH = ("proteins", "dd")


def best_of(repeats: int, work: Callable[[], object]) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def processor_time(repeats: int, work: Callable[[], object]) -> float:
    """Best seconds of processor time: what others do on the machine matters less to it."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def peak_gib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def measure(name: str, root: str, repeats: int) -> list[dict[str, object]]:
    import torch

    import agnncert as ac

    torch.manual_seed(0)
    data = ac.load_dataset(name, root=root)
    model = ac.build_model("gcn", data, hidden_channels=64, num_layers=3).eval()
    rows = []
    for division in (ac.EdgeCentric, ac.NodeCentric):
        measured = node_votes if name in NODE else graph_votes
        load = os.getloadavg()[0]  # of the last minute: what else ran when this began
        row = measured(model, data, division(300 if name in NODE else 30), repeats)
        rows.append({"dataset": name, "load": load, **row})
    return rows


def fast_votes(call, layout, no_edge=None):  # type: ignore[no-untyped-def]
    from agnncert.engine import fast
    from agnncert.engine.features import Features

    features = Features(layout.graph.x.to(call.dtype), layout.sparse)
    if no_edge is not None:
        fast.no_edge_votes(call, layout.graph, features, no_edge, 1e-6)
    fast.union_votes(call, layout, features, 1e-6)


def bound(model, graph, task):  # type: ignore[no-untyped-def]
    """The model as ``certify`` calls it: the built-in ones are made of known layers, whose rounding is bounded."""
    from dataclasses import replace

    from agnncert.engine.adapter import bind
    from agnncert.engine.exact_votes import rounding_of

    adapter = bind(model, graph, task)
    return replace(adapter, rounding=rounding_of(adapter, graph, is_known=True))


def pairs_of(graph) -> int:  # type: ignore[no-untyped-def]
    """Number of pairs of nodes that are joined, each counted once however many edges join them; without loops."""
    import torch

    low = torch.minimum(graph.edge_index[0], graph.edge_index[1]).long()
    high = torch.maximum(graph.edge_index[0], graph.edge_index[1]).long()
    return len(torch.unique((low * graph.num_nodes + high)[low != high]))


def node_votes(model, data, division, repeats):  # type: ignore[no-untyped-def]
    import numpy as np
    import torch

    from agnncert.engine import naive
    from agnncert.engine.union import union_of_subgraphs
    from agnncert.graphs.canonical import canonical

    graph = canonical(data)
    call = bound(model, graph, "node")
    everyone = np.arange(graph.num_nodes)
    with torch.no_grad():
        plain = best_of(repeats, lambda: model(graph.x, graph.edge_index))
        divided = best_of(min(repeats, 3), lambda: union_of_subgraphs(graph, division))
        layout = union_of_subgraphs(graph, division)
        quick = best_of(repeats, lambda: fast_votes(call, layout, everyone))
        memory = peak_gib()
        groups = division.groups(graph)
        sample = range(0, division.num_groups, 10)
        one = best_of(3, lambda: [naive.node_votes(call, graph, division, groups, i, 1e-6) for i in sample])
    slow = one * division.num_groups / len(sample)
    whole = end_to_end(model, data, division, repeats)
    training = node_training(model, graph, data, division, repeats)
    return {
        "division": str(division), "pairs": pairs_of(graph), "copies": len(layout.union.subgraph_index), "seconds_division": divided, "seconds_plain": plain,
        "seconds_fast": quick, "seconds_naive": slow, "naive_sampled": f"{len(sample)} of {division.num_groups} subgraphs",
        "fast_in_plain_forwards": quick / plain, "naive_over_fast": slow / quick, "peak_gib": memory, **whole, **training,
    }  # fmt: skip


def end_to_end(model, data, division, repeats):  # type: ignore[no-untyped-def]
    """What a user waits for, checks, audit, digests and tally included, in plain forwards of one thread."""
    import torch

    import agnncert as ac

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with torch.no_grad():
        plain = processor_time(2 * repeats, lambda: model(data.x, data.edge_index))
    whole = processor_time(repeats, lambda: ac.certify(model, data, division))
    torch.set_num_threads(threads)
    return {"seconds_certify": whole, "certify_in_plain_forwards": whole / plain}


def node_training(model, graph, data, division, repeats):  # type: ignore[no-untyped-def]
    import torch
    import torch.nn.functional as F

    from agnncert.engine.adapter import bind
    from agnncert.training.node_objectives import NodeObjective
    from agnncert.training.settings import checked

    rows = data.train_mask.nonzero().view(-1)
    call = bind(model.eval(), graph, "node")
    model.train()
    optimizer = torch.optim.Adam(model.parameters())
    objective = NodeObjective.of(call, graph, data.y, rows, division, checked({"objective": "paper"}, "node"))

    def step(backward: Callable[[], object]) -> None:
        optimizer.zero_grad()
        backward()
        optimizer.step()

    def plain() -> None:
        F.cross_entropy(model(graph.x, graph.edge_index)[rows], data.y[rows]).backward()

    groups = division.groups(graph)

    def naive(sample: range) -> None:
        for index in sample:
            part = division.subgraph(graph, groups, index)
            F.cross_entropy(model(part.x, part.edge_index)[rows], data.y[rows]).backward()

    plain_step = best_of(repeats, lambda: step(plain))
    fast_step = best_of(repeats, lambda: step(objective.backward))
    sample = range(0, division.num_groups, 30)
    naive_step = best_of(2, lambda: step(lambda: naive(sample))) * division.num_groups / len(sample)
    model.eval()
    return {
        "seconds_plain_step": plain_step, "seconds_fast_step": fast_step, "seconds_naive_step": naive_step,
        "fast_in_plain_steps": fast_step / plain_step, "naive_over_fast_step": naive_step / fast_step,
    }  # fmt: skip


def graph_votes(model, graphs, division, repeats):  # type: ignore[no-untyped-def]
    import torch
    from torch_geometric.loader import DataLoader

    from agnncert.engine import naive
    from agnncert.engine.union import union_of_subgraphs
    from agnncert.graphs.canonical import canonical_set
    from agnncert.graphs.graph import one_graph

    joined = canonical_set(graphs)
    call = bound(model, joined, "graph")
    batches = list(DataLoader(list(graphs), batch_size=64))
    with torch.no_grad():
        plain = best_of(repeats, lambda: [model(b.x, b.edge_index, b.batch) for b in batches])
        divided = best_of(min(repeats, 3), lambda: union_of_subgraphs(joined, division))
        layout = union_of_subgraphs(joined, division)
        quick = best_of(repeats, lambda: fast_votes(call, layout))
        memory = peak_gib()
        sample = range(0, len(graphs), max(1, len(graphs) // 40))
        alone = [one_graph(joined, k) for k in sample]
        one = best_of(2, lambda: [naive.graph_votes(call, g, division, 1e-6, division.num_groups) for g in alone])
    slow = one * len(graphs) / len(sample)
    return {
        "division": str(division), "pairs": pairs_of(joined), "copies": len(layout.union.subgraph_index), "seconds_division": divided, "seconds_plain": plain,
        "seconds_fast": quick, "seconds_naive": slow, "naive_sampled": f"{len(sample)} of {len(graphs)} graphs",
        "fast_in_plain_forwards": quick / plain, "naive_over_fast": slow / quick, "peak_gib": memory,
    }  # fmt: skip


def table(rows: list[dict[str, object]]) -> str:
    def cell(row: dict[str, object], key: str, form: str) -> str:
        return format(row[key], form) if key in row else "–"

    columns = [
        ("dataset", "dataset", ""), ("pairs", "pairs", ","), ("division", "division", ""), ("load", "load", ".1f"), ("division s", "seconds_division", ".3f"),
        ("plain s", "seconds_plain", ".4f"), ("fast s", "seconds_fast", ".4f"), ("naive s", "seconds_naive", ".2f"),
        ("fast / plain", "fast_in_plain_forwards", ".2f"),
        ("certify end to end in plain forwards", "certify_in_plain_forwards", ".2f"), ("naive / fast", "naive_over_fast", ".0f"),
        ("peak GiB", "peak_gib", ".2f"), ("train: fast / plain step", "fast_in_plain_steps", ".2f"),
        ("train: naive / fast", "naive_over_fast_step", ".0f"), ("naive measured on", "naive_sampled", ""),
    ]  # fmt: skip
    lines = ["| " + " | ".join(c[0] for c in columns) + " |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(cell(row, key, form) for _, key, form in columns) + " |" for row in rows]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", default=".cache/data")
    parser.add_argument("--only", nargs="*", default=[*NODE, *GRAPH])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        print(json.dumps(measure(options.inside, options.root, options.repeats)))
        return
    rows: list[dict[str, object]] = []
    for name in options.only:
        command = [
            sys.executable,
            "-m",
            "experiments.benchmarks.run",
            "--inside",
            name,
            "--root",
            options.root,
            "--repeats",
            str(options.repeats),
        ]
        rows += json.loads(
            subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()[-1]
        )
        print(table(rows[-2:]), flush=True)
    RESULTS.mkdir(exist_ok=True)
    import torch

    machine = {
        "cpu": platform.machine(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "torch": torch.__version__,
    }
    (RESULTS / "engines.json").write_text(json.dumps({"machine": machine, "rows": rows}, indent=1) + "\n")
    head = f"Made by `make bench` on {machine['cores']} cores ({machine['cpu']}), torch {machine['torch']}, Python {machine['python']}."
    (RESULTS / "engines.md").write_text(f"# What the votes cost\n\n{head}\n\n{table(rows)}\n")
    print(f"\nwritten to {RESULTS / 'engines.md'}")
    from experiments.benchmarks import smoothing

    smoothing.main(options.root)


if __name__ == "__main__":
    main()
