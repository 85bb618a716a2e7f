"""Tables and sentences about graphs that others attacked (``experiments.benchmarks.attacked``)."""

from collections.abc import Iterable, Sequence

from agnncert.report.drawing import Curve, Level, Panel
from experiments.benchmarks.attacked import BY_ATTACK, GCN, GCN_AFTER, LABELS, STRENGTHS, TAUGHT, WITHOUT_EDGES
from experiments.documentation import sources
from experiments.documentation.facts import percent, table
from experiments.documentation.sources import Row, mean

NAMES = {"cora": "Cora", "pubmed": "PubMed", "polblogs": "Polblogs, no features"}
WORDS = {
    GCN: "undefended GCN",
    GCN_AFTER: "undefended GCN, trained on the attacked graph",
    WITHOUT_EDGES: "models without edges",
    "stacked 1": "stacked votes",
    "per neighbour": "one vote per neighbour",
    "edge-blind": "stacked votes, trained without edges",
    LABELS: "label votes and neighbours",
    "agnncert-n 60": "AGNNCert-N, 60 groups",
    "agnncert-e 60": "AGNNCert-E, 60 groups",
}
NONE = "–"


def _rows(attack: str) -> list[Row]:
    return [row for row in sources.rows("attacked") if row["attack"] == attack]


def _datasets(found: Iterable[Row]) -> list[str]:
    present = {row["dataset"] for row in found}
    return [name for name in NAMES if name in present]


def words_of(method: str) -> str:
    """Returns what a method is called on pages."""
    plain = method.removesuffix(TAUGHT)
    return WORDS[plain] + (", taught" if method.endswith(TAUGHT) else "")


def _lines(attack: str, columns: Sequence[str], all_nodes: bool) -> str:
    """Returns a table of accuracy, and below it what was proved, in percent."""
    found = _rows(attack)
    lines = []
    for dataset in _datasets(found):
        name = f"**{NAMES[dataset]}**"
        for method in BY_ATTACK[attack]:
            here = [row for row in found if (row["dataset"], row["method"]) == (dataset, method)]
            if not here:
                continue
            first = [percent(mean(here, lambda row: row["all test nodes"]))] if all_nodes else []
            accuracy = [percent(value) for value in mean(here, lambda row: row["accuracy"])]
            lines.append([name, words_of(method), str(len(here)), *first, *accuracy])
            name = ""
            if "proved" in here[0] and not method.startswith(WITHOUT_EDGES):
                proved = [percent(value) for value in mean(here, lambda row: row["proved"])]
                lines.append(["", "*of which proved*", "", *([NONE] if all_nodes else []), *proved])
    titles = ["", "in %", "seeds", *(["all test nodes, no attack"] if all_nodes else []), *columns]
    return table(titles, lines, words=2)


def nettack() -> str:
    """Accuracy on attacked nodes by number of changed edges, and the share that was proved against the real change."""
    return _lines("nettack", ["no attack", *map(str, STRENGTHS["nettack"])], all_nodes=True)


def metattack() -> str:
    """Accuracy on all test nodes by share of changed edges, with training on the attacked graph."""
    return _lines("metattack", ["no attack", *(f"{100 * s:.0f} %" for s in STRENGTHS["metattack"])], all_nodes=False)


def pairs() -> str:
    """Says how many certificates covered a real change, and what became of labels; models without edges left out."""
    asked = [row for row in sources.rows("attacked") if not row["method"].startswith(WITHOUT_EDGES)]
    counted = [row["pairs"] for row in asked if "pairs" in row]
    certified, violated, others, changed = (
        sum(counts[name] for counts in counted) for name in ("certified", "violations", "not certified", "changed")
    )
    none = "none of these labels" if not violated else f"{violated:,} of these labels"
    return (
        f"Pairs of a node and a real attack whose change the certificate covers: {certified:,}; {none} changed. Of the "
        f"{others:,} pairs that no certificate covers, {changed:,} labels changed, so the test has teeth."
    )


def panels() -> list[Panel]:
    """Accuracy and proof under Nettack for each dataset that has rows."""
    found = _rows("nettack")
    shown = (("GCN, undefended", GCN, "accuracy"), ("one vote per neighbour, taught", f"per neighbour{TAUGHT}", "accuracy"),
             ("of which proved", f"per neighbour{TAUGHT}", "proved"), ("stacked votes: proved", "stacked 1", "proved"))  # fmt: skip
    drawn = []
    sizes = [0, *STRENGTHS["nettack"]]
    for dataset in _datasets(found):
        curves = []
        for look, (label, method, field) in enumerate(shown):
            here = [row for row in found if (row["dataset"], row["method"]) == (dataset, method)]
            if here:
                values = mean(here, lambda row: row[field])  # noqa: B023
                curves.append(Curve(label, look, sizes, [float(value) for value in values]))
        own = [row for row in found if (row["dataset"], row["method"]) == (dataset, WITHOUT_EDGES)]
        levels = [Level("mlp", "models without edges", float(mean(own, lambda row: row["accuracy"][0])))] if own else []
        drawn.append(Panel(NAMES[dataset], curves, levels, bottom=0.4))
    return drawn
