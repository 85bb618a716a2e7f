"""Live graphs put to the test, longer than the test suite has time for; each check leaves its figures in a file.

python -m experiments.benchmarks.live_checks equal [--sequences 1000]   after random events, equal to certify from scratch
python -m experiments.benchmarks.live_checks kills [--kills 200]        killed at random moments, nothing acknowledged is lost
"""

import argparse
import math
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
import torch
from torch_geometric.nn import SAGEConv

import agnncert as ac
import agnncert_live
from tests.support.live import assert_current, random_batch
from tests.support.small_graphs import WeightedModel, graph_model, node_model, random_graph

RESULTS = Path(__file__).parent / "results"
INF = math.inf
NODE = [
    ac.EdgeCentric(5), ac.EdgeCentric(40), ac.NodeCentric(4), ac.NodeCentric(30), ac.GatedNodeCentric(4),
    ac.PerEdge(), ac.PerNeighbour(), ac.EdgeCentric(5, self_loops=True), ac.NodeCentric(4, self_loops=True),
    ac.PerEdge(self_loops=True),
]  # fmt: skip
GRAPH = [
    ac.EdgeCentric(5), ac.NodeCentric(4), ac.PerEdge(), ac.PerNeighbour(), ac.NodeCentric(4, self_loops=True),
]  # fmt: skip
VOTES = [
    None,
    ac.VotingRule("abstain", [0, 2, 1]),
    ac.VotingRule(1, [1, 0, 0]),
    ac.VotingRule("abstain", 3),
    ac.VotingRule(prior=4),
]


def layered(name, data, seed):  # type: ignore[no-untyped-def]
    model = ac.build_model(name, data, out_channels=3, hidden_channels=8, num_layers=2, seed=seed)
    with torch.no_grad():
        for number, weight in enumerate(model.parameters()):
            weight.copy_(torch.randn(weight.shape, generator=torch.Generator().manual_seed(100 * seed + number)))
    return model.double().eval()


def beginning(rng):  # type: ignore[no-untyped-def]
    """A random live graph, and a name for what it is."""
    seed, voting_rule = rng.randrange(10**6), rng.choice(VOTES)
    if rng.random() < 0.3:
        data = [random_graph(rng.randrange(3, 14), rng.randrange(1, 20), seed=seed + k) for k in range(4)]
        division = rng.choice(GRAPH)
        voting_rule = None if voting_rule is not None and voting_rule.no_edge_prior else voting_rule
        model = rng.choice([graph_model(seed=seed), layered("gin", data, seed % 50)])
        targets = rng.choice([None, [2, 0]])
        return agnncert_live.LiveGraph(
            model, data, division, voting_rule=voting_rule, targets=targets
        ), f"graphs, {division}"
    data = random_graph(rng.randrange(4, 40), rng.randrange(2, 80), seed=seed)
    more = torch.tensor([[rng.randrange(data.num_nodes) for _ in range(6)] for _ in range(2)])
    data.edge_index = torch.cat([data.edge_index, more, more[:, :2]], dim=1)
    division = rng.choice(NODE)
    if voting_rule is not None and (
        (division.is_per_neighbour and voting_rule.empty is None) or division.gates_features
    ):
        voting_rule = None if voting_rule.no_edge_prior else voting_rule
    model = rng.choice(
        [
            node_model(seed=seed),
            node_model(SAGEConv, seed=seed),
            layered(rng.choice(["gcn", "sage", "gat"]), data, seed % 50),
        ]
    )
    if rng.random() < 0.2:
        torch.manual_seed(seed)
        data.edge_weight = torch.rand(data.num_edges, dtype=torch.float64)
        model = WeightedModel(5, 3).double().eval()
    targets = rng.choice([None, None, [0, data.num_nodes - 1]])
    return agnncert_live.LiveGraph(
        model, data, division, voting_rule=voting_rule, targets=targets
    ), f"nodes, {division}"


def check_equal(sequences: int) -> None:
    done: Counter[str] = Counter()
    events: Counter[str] = Counter()
    start = time.time()
    for seed in range(sequences):
        rng = random.Random(seed)
        live, kind = beginning(rng)
        for _ in range(rng.randrange(1, 8)):
            for event in random_batch(live, rng, rng.randrange(1, 6)):
                events[kind] += live.apply(event, skip_bad=True).events
            batch = random_batch(live, rng, rng.randrange(1, 6))
            events[kind] += live.apply(batch, skip_bad=True).events
        try:
            assert_current(live)
        except AssertionError as error:
            raise SystemExit(f"seed {seed}, {kind}: {error}") from error
        done[kind] += 1
        if seed % 50 == 49 or seed == sequences - 1:
            _write_equal(done, events, seed + 1, time.time() - start)


def _write_equal(done: Counter[str], events: Counter[str], total: int, seconds: float) -> None:
    rows = "\n".join(f"| {kind} | {done[kind]:,} | {events[kind]:,} |" for kind in sorted(done))
    (RESULTS / "live-equality.md").write_text(
        "# Live graphs and `certify` from scratch\n\n"
        f"`python -m experiments.benchmarks.live_checks equal --sequences {total}`: random graphs, models, votes, targets and events\n"
        "(some refused), one by one and in batches. After each sequence labels, radii and the certificate (claim, all arrays\n"
        f"of the evidence, ids, rows, degrees) were compared with `ac.certify` on the graph as it was: {total:,} sequences,\n"
        f"{sum(events.values()):,} events applied, all equal ({seconds / 60:.0f} minutes).\n\n"
        f"| what | sequences | events applied |\n|---|---|---|\n{rows}\n"
    )


DIVISION = ac.NodeCentric(20)


def _begin(path: Path) -> agnncert_live.LiveGraph:
    return agnncert_live.LiveGraph(node_model(), random_graph(30, 60), DIVISION, journal=path, snapshot_every=15)


def _child(path: Path, batches: list[list[agnncert_live.Event]], pipe: int) -> None:
    torch.set_num_threads(1)
    live = _begin(path)
    for number, batch in enumerate(batches):
        live.apply(batch, id=f"batch {number}")
        os.write(pipe, b".")


def check_kills(kills: int) -> None:
    memory = agnncert_live.LiveGraph(node_model(), random_graph(30, 60), DIVISION)
    rng = random.Random(0)
    batches: list[list[agnncert_live.Event]] = []
    states = [_state(memory)]
    while len(batches) < 6 * kills:
        batch = []
        for event in random_batch(memory, rng, 3):
            if not memory.apply(event, skip_bad=True).refused:
                batch.append(event)
        if batch:
            batches.append(batch)
            states.append(_state(memory))
    place = {state[0]: k for k, state in enumerate(states)}
    found: Counter[str] = Counter()
    start = time.time()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "journal"
        before, largest = 0, 0
        for kill in range(kills):
            acknowledged = _killed(path, batches, before, rng, found)
            largest = max(largest, sum(file.stat().st_size for file in Path(folder).iterdir()))
            with _begin(path) as live:
                kept = place[live.number]
                if not acknowledged <= kept <= acknowledged + 1 or kept < before or _state(live) != states[kept]:
                    raise SystemExit(f"kill {kill}: {acknowledged} acknowledged, {kept} there, or another state")
                found["one batch more than acknowledged"] += kept > acknowledged
                before = kept
                if kill % 20 == 19:
                    assert_current(live)
            if kill % 10 == 9 or kill == kills - 1:
                _write_kills(kill + 1, before, found, largest, time.time() - start)


def _killed(
    path: Path, batches: list[list[agnncert_live.Event]], before: int, rng: random.Random, found: Counter[str]
) -> int:
    """Has a process go on and kills it; how many batches it had acknowledged, those of earlier ones included."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(read)
            _child(path, batches, write)
        finally:
            os._exit(0)
    os.close(write)
    begun = rng.random() < 0.1
    wanted = 0 if begun else before + rng.randrange(0, 5)
    acknowledged = 0
    while acknowledged < wanted and os.read(read, 1):
        acknowledged += 1
    time.sleep(rng.random() * (0.5 if begun else 0.02))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    while rest := os.read(read, 4096):
        acknowledged += len(rest)
    os.close(read)
    found["while it began or read the journal" if acknowledged <= before else "while it applied events"] += 1
    return max(acknowledged, before)


def _state(live: agnncert_live.LiveGraph) -> tuple[object, ...]:
    return live.number, live.targets.tolist(), live.label.tolist(), live.radius.tolist()


def _write_kills(kills: int, batches: int, found: Counter[str], largest: int, seconds: float) -> None:
    rows = "\n".join(f"| {what} | {count:,} |" for what, count in sorted(found.items()))
    (RESULTS / "live-kills.md").write_text(
        "# Killed at random moments\n\n"
        f"`python -m experiments.benchmarks.live_checks kills --kills {kills}`: a process applies batches to a live graph with a journal\n"
        "(a snapshot every 15 events) and says which it has acknowledged; it is killed with SIGKILL at a random moment, and\n"
        "the next one goes on with the same journal. After each kill the live graph is begun anew from the journal and its\n"
        "number of events, targets, labels and radii are compared with those of a live graph that was never killed, after\n"
        "every 20th also the certificate with that of `certify`.\n\n"
        f"{kills:,} kills, {batches:,} batches in the end, none lost, no other state; the largest size\n"
        f"of the journal with its log was {largest / 2**10:,.0f} KiB ({seconds / 60:.0f} minutes).\n\n"
        f"| when | kills |\n|---|---|\n{rows}\n\n"
        "One batch more than acknowledged: it was on disk when the process died before it could say so. A client that\n"
        "sends it again under the same id is told that it counts already.\n"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("check", choices=["equal", "kills"])
    parser.add_argument("--sequences", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=200)
    options = parser.parse_args()
    np.seterr(all="raise", under="ignore")
    if options.check == "equal":
        check_equal(options.sequences)
    else:
        check_kills(options.kills)
    print("as expected", file=sys.stderr)


if __name__ == "__main__":
    main()
