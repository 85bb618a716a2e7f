"""Rows of stacked votes, and of models that read no edges.

Rows are those of ``experiments.benchmarks.stacked`` and ``experiments.benchmarks.ceilings``. A model of two levels is
held against edges anywhere, one of one level against edges and nodes that come or go.
"""

from agnncert.report.drawing import Level
from experiments.paper.rows import Results, Row, Spread, spread_of

SIZES = (0, 1, 2, 3, 5, 10)
PROTOCOLS = ("inductive", "transductive")
CONTROL = "sums of node features"
REFERENCE = "true classes of all neighbours, reference"
KINDS = {
    "stacked-votes(levels=1, sum)": "one level",
    "stacked-votes(levels=2, sum)": "two levels",
    "stacked-votes(levels=1, sum, gated)": "one level, gated",
    "stacked-votes(levels=1, sum), standardised features": "one level, standardised features",
}


def stacked(results: Results, dataset: str, protocol: str, rule: str, size: float, trusted: float | None) -> list[Row]:
    """The rows of one model, one per seed, with the curve that belongs to its number of levels."""
    wanted = (dataset, protocol, rule, size, trusted)
    names = ("dataset", "protocol", "rule", "size", "trusted")
    curve = "edges" if "levels=2" in rule else "structure"
    found = [row for row in results.stacked if tuple(row[name] for name in names) == wanted]
    return [{**row, "sizes": SIZES, "certified": row[curve]} for row in found]


def models(results: Results, dataset: str, protocol: str) -> list[tuple[str, float]]:
    """Rules and the sizes that they were made for, without trusted edges."""
    rows = [r for r in results.stacked if (r["dataset"], r["protocol"], r["trusted"]) == (dataset, protocol, None)]
    return sorted({(row["rule"], row["size"]) for row in rows if row["rule"] in KINDS}, key=lambda one: (*one[::-1],))


def ensemble(results: Results, dataset: str, standard: bool = False) -> Spread | None:
    """Accuracy of the cross-fitted models without edges; ``standard``: of those on standardised features."""
    rows = [row for row in results.stacked if row["dataset"] == dataset and ("standard" in row["rule"]) == standard]
    return spread_of({row["seed"]: row for row in rows}.values(), "without edges")


def without_edges(results: Results, dataset: str) -> list[tuple[str, Spread]]:
    """Models that read no edges, by name, best first: no change of edges or of other nodes alters them."""
    single = {row["seed"]: row for row in results.designs if row["dataset"] == dataset and "accuracy_mlp" in row}
    known = (
        ("five MLPs", ensemble(results, dataset)),
        ("five MLPs, standardised features", ensemble(results, dataset, standard=True)),
        ("one MLP, trained as for votes designed for a size", spread_of(single.values(), "accuracy_mlp")),
    )
    return sorted(((name, found) for name, found in known if found is not None), key=lambda one: -one[1].mean)


def control(results: Results, dataset: str) -> Spread | None:
    """Accuracy of a classifier of sums of node features, which no edge alters."""
    return spread_of([r for r in results.ceilings if (r["dataset"], r["what"]) == (dataset, CONTROL)], "accuracy")


def raised(results: Results, dataset: str) -> list[Level]:
    """The best control without edges as a line of a figure."""
    known = (("five MLPs", ensemble(results, dataset)), ("node sums", control(results, dataset)))
    return [Level("mlp", label, spread.mean) for label, spread in known if spread is not None]
