"""The page docs/scale.md: commands for large graphs, and estimates computed from the rows of experiments/benchmarks/large.py.

python -m experiments.benchmarks.scale          # writes docs/scale.md from results/large.json
"""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
PAGE = Path(__file__).parents[2] / "docs" / "scale.md"

Row = dict[str, Any]

# What is taken as given, and not measured here.
NETWORK = 1.25e9  # bytes per second and machine: ten gigabit
CORES = 2  # of one machine, as in the measurements
BYTES_PER_EDGE = 128  # that laying out a group takes, engine/edges_by_group
MEMORY = 64 * 2**30  # of one machine, bytes
FEATURES, HIDDEN = 100, 64
GROUPS = 80

GRAPHS = {
    "Amazon2M": (2_449_029, 61_859_140),
    "ten times that": (24_490_290, 618_591_400),
    "10⁸ nodes, 2·10⁹ edges": (10**8, 2 * 10**9),
    "10⁹ nodes, 10¹⁰ edges": (10**9, 10**10),
    "10⁹ nodes, 10¹¹ edges": (10**9, 10**11),
}
MACHINES = (1, 2, 4, 8, 16, 40, 80)

Spread = Callable[..., "Estimate"]


@dataclass(frozen=True)
class Rates:
    """Seconds of one processor for each unit, measured, and bytes of memory.

    Attributes:
        cell: The row that they come from.
        prepare: Checks, order and digest, per edge.
        hashing: Per edge.
        shuffle: Sorting edges by group, per edge.
        layout: Laying out groups, per edge.
        casting: Per edge.
        tally: Per listed vote.
        save, verify: Per target.
        memory: Bytes per edge, from two sizes.
        fixed: Bytes that any size takes.
        file: Bytes of a certificate per target.
    """

    cell: str
    prepare: float
    hashing: float
    shuffle: float
    layout: float
    casting: float
    tally: float
    save: float
    verify: float
    memory: float
    fixed: float
    file: float


def rates(rows: list[Row], division: str) -> Rates:
    """Rates of the largest size that was measured.

    Args:
        rows: Of experiments/benchmarks/large.py.
        division: "node" or "edge".
    """
    found = sorted(
        (
            row
            for row in rows
            if row["cell"].startswith("certify:") and row["cell"].split(":")[2:] == [division, str(GROUPS)]
        ),
        key=lambda row: row["edges"],
    )
    if len(found) < 2:
        raise SystemExit(f"rows of two sizes are needed for {division}: python -m experiments.benchmarks.large first.")
    small, large = found[-2:]
    phase = large["phases_cpu"]
    slope = (large["peak_gib"] - small["peak_gib"]) / (large["edges"] - small["edges"]) * 2**30

    def per_edge(*names: str) -> float:
        return sum(phase.get(name, 0.0) for name in names) / float(large["edges"])

    return Rates(
        large["cell"], per_edge("checks and order", "digest", "audit"), per_edge("hashing"),
        per_edge("shuffle"), per_edge("layout"), per_edge("casting", "look again"), phase.get("tally", 0.0) / large["votes"],
        large["cpu_seconds_save"] / large["nodes"], large["cpu_seconds_verify"] / large["nodes"],
        slope, large["peak_gib"] * 2**30 - slope * large["edges"], large["file_mb"] * 1e6 / large["nodes"],
    )  # fmt: skip


def votes_per_target(degree: float, groups: int) -> float:
    """Groups in which a node with so many neighbours has an edge, on average: balls thrown into boxes.

    Example:
        >>> round(votes_per_target(50, 80), 1)
        37.3
    """
    return groups * (1 - (1 - 1 / groups) ** degree)


@dataclass(frozen=True)
class Estimate:
    """What one graph takes on some machines: seconds by phase, which follow each other, and bytes on each machine."""

    seconds: dict[str, float]
    memory: float

    @property
    def total(self) -> float:
        return sum(self.seconds.values())

    @property
    def bottleneck(self) -> str:
        return max(self.seconds, key=lambda name: self.seconds[name])


@dataclass(frozen=True)
class Volume:
    """What travels between machines, in bytes and in all.

    Attributes:
        graph: The graph's arrays, as they lie on disk.
        pairs: Every pair of nodes once, to the machine of its group.
        rows: Features of all nodes, projected to the width of a layer, to one machine.
        votes: Listed votes, target and class.
        group: What laying out one group takes in memory.
    """

    graph: float
    pairs: float
    rows: float
    votes: float
    group: float

    @classmethod
    def of(cls, nodes: int, edges: int, groups: int = GROUPS) -> "Volume":
        listed = nodes * votes_per_target(2 * edges / nodes, groups)
        graph = 32.0 * edges + 4.0 * FEATURES * nodes  # both directions, two numbers of 8 bytes each
        return cls(graph, 16.0 * edges, 4.0 * HIDDEN * nodes, 8.0 * listed, BYTES_PER_EDGE * 2.0 * edges / groups)


def by_groups(nodes: int, edges: int, machines: int, rate: Rates, groups: int = GROUPS) -> Estimate:
    """Ranges of groups are shared out, and nothing else: a task needs the whole graph, and one machine counts.

    Every machine reads the graph from storage that all of them reach, checks and hashes it, and casts the votes of its
    groups. Casting uses all cores of a machine, the rest one.
    """
    sent, share = Volume.of(nodes, edges, groups), math.ceil(groups / min(machines, groups)) / groups
    apart = machines > 1
    seconds = {
        "reading the graph": sent.graph / NETWORK * apart,
        "checks, order, digest": rate.prepare * edges,
        "hashing": rate.hashing * edges,
        "sorting by group": rate.shuffle * edges,
        "layout": rate.layout * edges * share,
        "casting": rate.casting * edges * share / CORES,
        "votes to one machine": sent.votes * (1 - 1 / machines) / NETWORK,
        "tally": rate.tally * sent.votes / 8,
        "saving": rate.save * nodes,
    }
    return Estimate(seconds, rate.fixed + rate.memory * edges)


def in_parts(nodes: int, edges: int, machines: int, rate: Rates, groups: int = GROUPS) -> Estimate:
    """Everything is shared out: edges, groups and targets; a machine holds a part of each, and what it needs of nodes.

    Edges travel to the machine of their group, votes to that of their target. With dozens of edges per node nearly
    every node has an edge in some group of each machine, so each needs the rows of all nodes.
    """
    sent, share = Volume.of(nodes, edges, groups), math.ceil(groups / min(machines, groups)) / groups
    others, cores = 1 - 1 / machines, machines * CORES
    seconds = {
        "checks, order, digest": rate.prepare * edges / cores,
        "hashing": rate.hashing * edges / cores,
        "edges to their groups": sent.pairs * others / machines / NETWORK,
        "rows of nodes to all": sent.rows * others / NETWORK,
        "layout": (rate.shuffle + rate.layout) * edges * share / CORES,
        "casting": rate.casting * edges * share / CORES,
        "votes to their targets": sent.votes * others / machines / NETWORK,
        "tally": rate.tally * sent.votes / 8 / cores,
        "saving": rate.save * nodes / cores,
    }
    held = max(rate.memory * edges / machines, sent.group) + (sent.rows if machines > 1 else 0.0)
    return Estimate(seconds, rate.fixed + held)


def worthwhile(spread: Spread, nodes: int, edges: int, rate: Rates, groups: int = GROUPS) -> int:
    """Machines, doubled as long as that saves a tenth of the time, and never more than groups."""
    best = 1
    while 2 * best <= groups:
        before, after = (spread(nodes, edges, count, rate, groups).total for count in (best, 2 * best))
        if after > 0.9 * before:
            break
        best *= 2
    return best


def time_text(seconds: float) -> str:
    """Example: ``time_text(7300)`` is ``"2.0 h"``."""
    for size, unit in ((86400.0, "days"), (3600.0, "h"), (60.0, "min")):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s"


def bytes_text(count: float) -> str:
    for size, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB")):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count / 1e3:.0f} kB"


def table(titles: list[str], rows: list[list[str]]) -> str:
    lines = ["| " + " | ".join(titles) + " |", "|" + "---|" * len(titles)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


def rates_table(both: dict[str, Rates]) -> str:
    names = {
        "prepare": ("checks, order, digest, audit, per edge", 1e9, "ns"), "hashing": ("hashing, per edge", 1e9, "ns"),
        "shuffle": ("sorting by group, per edge", 1e9, "ns"), "layout": ("layout, per edge", 1e9, "ns"), "casting": ("casting, per edge", 1e9, "ns"),
        "tally": ("tally, per listed vote", 1e9, "ns"), "save": ("saving, per target", 1e6, "µs"),
        "verify": ("verifying, per target", 1e6, "µs"), "memory": ("memory, per edge", 1.0, "bytes"),
        "file": ("certificate, per target", 1.0, "bytes"),
    }  # fmt: skip
    body = [
        [title, *(f"{getattr(rate, name) * factor:.1f} {unit}" for rate in both.values())]
        for name, (title, factor, unit) in names.items()
    ]
    return table(["one processor", *(f"{name}-centric" for name in both)], body)


def machines_table(spread: Spread, nodes: int, edges: int, rate: Rates) -> str:
    answers = [spread(nodes, edges, machines, rate) for machines in MACHINES]
    body = [[phase, *(time_text(answer.seconds[phase]) for answer in answers)] for phase in answers[0].seconds]
    body.append(["**together**", *(f"**{time_text(answer.total)}**" for answer in answers)])
    body.append(["memory of each", *(bytes_text(answer.memory) for answer in answers)])
    body.append(["most of it is", *(answer.bottleneck for answer in answers)])
    return table(["", *(f"{machines} machine{'s' * (machines > 1)}" for machines in MACHINES)], body)


def graphs_table(both: dict[str, Rates]) -> str:
    body = []
    for name, (nodes, edges) in GRAPHS.items():
        for division, rate in both.items():
            alone = by_groups(nodes, edges, 1, rate)
            cells = [name, division, time_text(alone.total), bytes_text(alone.memory)]
            for spread in (by_groups, in_parts):
                paying = worthwhile(spread, nodes, edges, rate)
                answer = spread(nodes, edges, paying, rate)
                cells += [str(paying), time_text(answer.total), bytes_text(answer.memory), answer.bottleneck]
            body.append(cells)
    titles = ["graph", "division", "one machine", "memory"]
    for way in ("groups shared out", "everything shared out"):
        titles += [f"{way}: machines that pay", "time", "memory of each", "most of it is"]
    return table(titles, body)


def volume_table() -> str:
    body = []
    for name, (nodes, edges) in GRAPHS.items():
        sent = Volume.of(nodes, edges)
        body.append([name, *(bytes_text(part) for part in (sent.graph, sent.pairs, sent.rows, sent.votes, sent.group))])
    return table(
        ["graph", "on disk", "edges, once", "rows of nodes, to each machine", "votes", "layout of one group"], body
    )


def page(rows: list[Row]) -> str:
    both = {division: rates(rows, division) for division in ("node", "edge")}
    node, internet = both["node"], GRAPHS["10⁹ nodes, 10¹¹ edges"]
    sent = Volume.of(*internet)
    needed = math.ceil(sent.group * GROUPS / (MEMORY / 4))
    fitting = next(name for name, size in reversed(GRAPHS.items()) if by_groups(*size, 1, node).memory < MEMORY)
    amazon = worthwhile(by_groups, *GRAPHS["Amazon2M"], node)
    return f"""# Large graphs

This guide shows how to certify a graph that is large for one machine. [Estimates](#estimates) of time and memory by size of the graph follow the commands.
[A graph of the size of Amazon2M](large.md) has measurements.

## Keep the graph on disk

The package `agnncert-large` holds what this needs: `pip install "./packages/agnncert-large[ray]"` in a clone. `ac.write_graph` writes a graph into a folder of arrays. `ac.open_graph` maps the arrays into memory, so that only the parts in use are read.
[`ac.convert_parquet`](guides/own-graph.md) writes such a folder from Parquet tables that do not fit into memory.

```python
import agnncert as ac

ac.write_graph(ac.load_dataset("digits-knn"), "digits")
data = ac.open_graph("digits")
```

## Train in clusters

With `clusters=`, `ac.fit` trains on parts of the graph (Cluster-GCN; package `agnncert-large`, extra `clusters`). `checkpoint=` names a file from which an interrupted training continues.

<!-- not run: needs pymetis -->
```python
model = ac.fit(ac.build_model("gcn", data), data, ac.NodeCentric(80), clusters=15_000, clusters_per_step=10, checkpoint="state")
```

## Certify in little memory

The subgraphs are computed some groups at a time. `memory_limit=` says how many bytes a range of groups may take; the result does not depend on it. `checkpoint=` names a folder from which an
interrupted call continues. `targets=` restricts the certificate, and the computation, to the nodes that matter.

```python
model = ac.build_model("gcn", data).eval()
certificate = ac.certify(model, data, ac.NodeCentric(80), targets=data.test_mask, memory_limit=200_000_000, checkpoint="parts")
```

On the command line: `agnncert certify RUN --set memory=200`.

## Use more machines

`workers=ac.Ray()` distributes ranges of groups over a Ray cluster (package `agnncert-large`, extra `ray`). Every machine needs the same versions of agnncert and torch, and the code of the
model. The certificate is the same file, byte for byte.

<!-- not run: starts Ray -->
```python
certificate = ac.certify(model, data, ac.NodeCentric(80), workers=ac.Ray(address="auto"))
```

On the command line: `agnncert certify RUN --workers ray=HOST:PORT`; `--workers ray` starts Ray on this machine.

## Estimates

These estimates are computed by `python -m experiments.benchmarks.scale` from `experiments/benchmarks/results/large.json`, that is, from rates measured on one
machine with a **synthetic** graph (`amazon2m-like`; cells {node.cell} and {both["edge"].cell}). Assumed, not measured: {CORES} cores per machine,
of which predictions use all and everything else uses one; {bytes_text(MEMORY)} of memory per machine; {bytes_text(NETWORK)} per second
of network per machine; a GCN of 3 layers of {HIDDEN}; {FEATURES} features; T = {GROUPS}. *Edges* are pairs of nodes, each counted
once.

Two ways to distribute the work are compared:

- **Groups shared out.** A task is a range of groups. All machines read the graph from shared storage. One machine merges and
  counts. This is what `workers=ac.Ray()` does.
- **Everything shared out.** Edges, groups and targets are distributed, and no machine reads the whole graph. This is *not implemented*:
  the estimate shows what a graph beyond the memory of one machine would take.

### Measured rates

{rates_table(both)}

### By size

{graphs_table(both)}

*Machines that pay*: the number of machines is doubled as long as that saves a tenth of the time; never more machines than groups.

### Data sent

{volume_table()}

### Amazon2M, node-centric, groups shared out

{machines_table(by_groups, *GRAPHS["Amazon2M"], node)}

### 10⁹ nodes, 10¹¹ edges, node-centric, everything shared out

{machines_table(in_parts, *internet, node)}

## Limits

- **Memory is the first limit.** The number of groups costs no memory; edges cost {node.memory:.0f} bytes each. The largest graph of
  the table that fits one machine is: {fitting}.
- **Predictions take nearly all of the time**, and can be distributed over up to T machines. On Amazon2M, machines pay up to
  {amazon}: beyond that, the checks that every machine does and the counting that one machine does dominate.
- **A group is the smallest task.** With 10¹¹ edges one group takes {bytes_text(sent.group)}. For a group to fit a quarter of a
  machine's memory, T must be at least {needed}. Time hardly grows with T, but with more groups each subgraph has fewer edges.
- **Features do not get less with more machines.** A node with dozens of neighbours has an edge in nearly every group, so every
  machine needs the rows of nearly all nodes: {bytes_text(sent.rows)} for 10⁹ nodes, as products with the first layer ({HIDDEN}
  numbers each).
- **A certificate grows with its targets**: {bytes_text(node.file * 10**9)} for 10⁹ of them. With `targets=`, only parts of subgraphs that are
  connected to the targets are computed.
- **Verifying needs neither graph nor model**: {time_text(node.verify * 10**9)} for 10⁹ targets on one processor.
"""


def read_rows() -> list[Row]:
    rows: list[Row] = json.loads((RESULTS / "large.json").read_text())["rows"]
    return rows


def main() -> None:
    PAGE.write_text(page(read_rows()), encoding="utf-8")
    print(f"written to {PAGE}")


if __name__ == "__main__":
    main()
