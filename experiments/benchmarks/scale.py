"""Estimates of time and memory for large graphs, computed from the newest rows of experiments/benchmarks/large.py.

python -m experiments.benchmarks.scale          # fills the table of docs/scale.md from results/large-full-size.json
"""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"
PAGE = Path(__file__).parents[2] / "docs" / "scale.md"
BEGIN, END = "<!-- estimates -->", "<!-- end -->"

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
    """Groups in which a node with this many neighbours has an edge, on average: balls thrown into boxes.

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


def graphs_table(rate: Rates) -> str:
    """Returns time and memory by size of the graph: on one machine, and with groups on as many as pay."""
    body = []
    for name, (nodes, edges) in GRAPHS.items():
        alone = by_groups(nodes, edges, 1, rate)
        paying = worthwhile(by_groups, nodes, edges, rate)
        spread = by_groups(nodes, edges, paying, rate)
        body.append([name, time_text(alone.total), bytes_text(alone.memory), str(paying), time_text(spread.total)])
    return table(["graph", "one machine", "memory", "machines", "time with these"], body)


def estimates(rows: list[Row]) -> list[list[Any]]:
    """Returns every estimate as a table of numbers, with its titles."""
    lines: list[list[Any]] = [["graph", "nodes", "edges", "division", "way", "machines", "seconds", "bytes of each machine", "slowest step"]]  # fmt: skip
    for division in ("node", "edge"):
        rate = rates(rows, division)
        for name, (nodes, edges) in GRAPHS.items():
            for way, spread in (("groups", by_groups), ("everything, not implemented", in_parts)):
                for machines in MACHINES:
                    answer = spread(nodes, edges, machines, rate)
                    lines.append([name, nodes, edges, division, way, machines, round(answer.total, 1), int(answer.memory), answer.bottleneck])  # fmt: skip
    return lines


def filled(text: str, rows: list[Row]) -> str:
    """Returns the page with its table made from the rows."""
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n{graphs_table(rates(rows, 'node'))}\n{END}{rest.split(END, 1)[1]}"


def read_rows() -> list[Row]:
    """Returns the rows of the newest measurements: the full size and a part of it, by the same version of the code."""
    rows: list[Row] = json.loads((RESULTS / "large-full-size.json").read_text())["rows"]
    return rows


def main() -> None:
    """Fills the page."""
    PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), read_rows()), encoding="utf-8")


if __name__ == "__main__":
    main()
