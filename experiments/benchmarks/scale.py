"""Estimates of memory and time for graphs larger than those that were measured, and how well they foretell a run.

python -m experiments.benchmarks.scale          # fills the table of docs/scale.md

In memory, both grow with the number of edges (rows of experiments/benchmarks/large.py). In parts, a task holds the
senders of one group and a span of nodes; every arc is evaluated once, and every sender once for each span (rows of
experiments/benchmarks/parts.py). Two runs of one graph, with many and with few spans, say what each of them costs.
"""

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agnncert_large.partitioned.writing import rows_of_range
from experiments.benchmarks import parts

RESULTS = Path(__file__).parent / "results"
PAGE = Path(__file__).parents[2] / "docs" / "scale.md"
BEGIN, END = "<!-- estimates -->", "<!-- end -->"
GIB = 2**30

Row = dict[str, Any]

GRAPHS = {  # nodes, directed edges and groups
    "10⁷ nodes, 10⁸ edges": (10**7, 10**8, 80),
    "10⁷ nodes, 10⁹ edges": (10**7, 10**9, 80),
    "10⁸ nodes, 10⁹ edges": (10**8, 10**9, 800),
    "10⁹ nodes, 10¹⁰ edges": (10**9, 10**10, 8000),
}
MEMORY = 8_000_000_000  # bytes that a task may take


@dataclass(frozen=True)
class InMemory:
    """What one process takes that holds the graph.

    Attributes:
        seconds: Processor time per directed edge, in seconds.
        slope: Bytes per directed edge, from two sizes.
        fixed: Bytes that any size takes.
    """

    seconds: float
    slope: float
    fixed: float

    @classmethod
    def of(cls, rows: list[Row], division: str = "node", groups: int = 80) -> "InMemory":
        """Rates of the largest size that was measured.

        Args:
            rows: Of experiments/benchmarks/large.py; they count each edge once.
            division: "node" or "edge".
            groups: Number of groups.
        """
        wanted = ["certify", division, str(groups)]
        found = [row for row in rows if [part for k, part in enumerate(row["cell"].split(":")) if k != 1] == wanted]
        if len(found) < 2:
            raise SystemExit(
                f"rows of two sizes are needed for {division}: python -m experiments.benchmarks.large first."
            )
        small, large = sorted(found, key=lambda row: row["edges"])[-2:]
        edges = 2 * (large["edges"] - small["edges"])
        slope = (large["peak_gib"] - small["peak_gib"]) * GIB / edges
        seconds = large["cpu_seconds"] / (2 * large["edges"])
        return cls(seconds, slope, large["peak_gib"] * GIB - slope * 2 * large["edges"])

    def memory(self, edges: int) -> float:
        """Returns bytes for this many directed edges."""
        return self.fixed + self.slope * edges


def spans_of(nodes: int, edges: int, groups: int, memory: float) -> int:
    """Returns into how many spans of nodes the work is cut, as ``certify`` plans it for random arcs.

    Example:
        >>> spans_of(10**6, 10**7, 80, 1.2e9), spans_of(10**7, 10**8, 80, 1.2e9)
        (1, 8)
    """
    sizes = parts.task_sizes(nodes, edges, groups)
    in_range = min(nodes, rows_of_range(parts.FEATURES, 4))
    in_span = int((memory - sizes.fixed) // (in_range * sizes.per_node))
    if in_span < 1:
        raise ValueError(f"the senders of a group take {sizes.fixed:,.0f} bytes: more groups are needed")
    return math.ceil(math.ceil(nodes / in_range) / in_span)


@dataclass(frozen=True)
class InParts:
    """Processor time of work on parts, in seconds.

    Attributes:
        arc: Per directed edge, to certify.
        sender: Per node and span, to certify.
        write: Per directed edge, to write tables in parts.
    """

    arc: float
    sender: float
    write: float

    @classmethod
    def of(cls, rows: list[Row]) -> "InParts":
        """Rates from the smallest graph that was certified in one process with two numbers of spans."""
        alone = [row for row in _runs(rows) if row["workers"] == "none"]
        by_size = [[row for row in alone if row["edges"] == edges] for edges in sorted({row["edges"] for row in alone})]
        sizes = [sorted(runs, key=lambda row: row["spans"]) for runs in by_size]
        few, many = next(((runs[0], runs[-1]) for runs in sizes if runs[0]["spans"] < runs[-1]["spans"]), (None, None))
        if few is None or many is None:
            raise SystemExit(
                "runs with two numbers of spans are needed: python -m experiments.benchmarks.parts certify."
            )
        more = (many["spans"] - few["spans"]) * few["nodes"]
        sender = (many["cpu_seconds"] - few["cpu_seconds"]) / more
        arc = (few["cpu_seconds"] - sender * few["spans"] * few["nodes"]) / few["edges"]
        written = max((row for row in rows if row["step"] == "convert"), key=lambda row: row["edges"])
        return cls(arc, sender, written["cpu_seconds"] / written["edges"])

    def certify(self, nodes: int, edges: int, spans: int) -> float:
        """Returns processor time to certify all nodes."""
        return self.arc * edges + self.sender * nodes * spans


def _runs(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row["step"] == "certify" and row.get("spans")]


def foretold(rows: list[Row]) -> list[tuple[Row, float]]:
    """Returns the runs on larger graphs than that of the rates, with the processor time that the rates foretell."""
    rate = InParts.of(rows)
    first = min(row["edges"] for row in _runs(rows))
    larger = [row for row in _runs(rows) if row["edges"] > first]
    return [(row, rate.certify(row["nodes"], row["edges"], row["spans"])) for row in larger]


def time_text(seconds: float) -> str:
    """Example: ``time_text(7300)`` is ``"2.0 h"``."""
    for size, unit in ((86400.0, "days"), (3600.0, "h"), (60.0, "min")):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s"


def bytes_text(count: float) -> str:
    """Example: ``bytes_text(5.7e9)`` is ``"5.7 GB"``."""
    for size, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB")):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count / 1e3:.0f} kB"


def table(memory: InMemory, rate: InParts) -> str:
    """Returns the estimates: in memory, and in parts with the groups that a task of ``MEMORY`` bytes allows."""
    titles = ["graph", "in memory", "processor time", "groups", "spans", "writing parts", "certifying parts"]
    lines = ["| " + " | ".join(titles) + " |", "|" + "---|" * len(titles)]
    for name, (nodes, edges, groups) in GRAPHS.items():
        spans = spans_of(nodes, edges, groups, MEMORY)
        cells = [
            name,
            bytes_text(memory.memory(edges)),
            time_text(memory.seconds * edges),
            str(groups),
            str(spans),
            time_text(rate.write * edges),
            time_text(rate.certify(nodes, edges, spans)),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def confirmed(rows: list[Row]) -> list[str]:
    """Returns what the rates foretold of larger runs, and what was measured."""
    return [
        f"For {row['edges']:,} directed edges in {row['spans']} spans they foretell {time_text(expected)} of processor "
        f"time, and {time_text(row['cpu_seconds'])} were measured."
        for row, expected in foretold(rows)
    ]


def filled(text: str, rows: list[Row], of_parts: list[Row]) -> str:
    """Returns the page with its estimates made from the rows."""
    before, rest = text.split(BEGIN)
    estimates = table(InMemory.of(rows), InParts.of(of_parts))
    made = "\n\n".join([*confirmed(of_parts), estimates, f"A task may take {MEMORY / 1e9:.0f} GB."])
    return f"{before}{BEGIN}\n{made}\n{END}{rest.split(END, 1)[1]}"


def read_rows() -> list[Row]:
    """Returns the rows of the newest measurements in memory: the full size and a part of it."""
    rows: list[Row] = json.loads((RESULTS / "large-full-size.json").read_text())["rows"]
    return rows


def main() -> None:
    """Fills the page."""
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(filled(text, read_rows(), parts.read_rows()), encoding="utf-8")


if __name__ == "__main__":
    main()
