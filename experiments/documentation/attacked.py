"""Tables and sentences about graphs that others attacked (``experiments.benchmarks.attacked``, ``outside_attacks``)."""

from collections.abc import Iterable, Sequence

from agnncert.report.drawing import Curve, Level, Panel
from experiments.benchmarks.attacked import (
    BY_ATTACK,
    GCN,
    GCN_AFTER,
    LABELS,
    MAJORITY,
    NEIGHBOURS,
    STRENGTHS,
    TAUGHT,
    WITHOUT_EDGES,
    WITHOUT_FEATURES,
)
from experiments.benchmarks.of_neighbours import ASKED, GROUPS
from experiments.documentation import sources
from experiments.documentation.facts import percent, table
from experiments.documentation.sources import Row, mean

NAMES = {"cora": "Cora", "pubmed": "PubMed", "polblogs": "Polblogs, no features"}
WORDS = {
    GCN: "undefended GCN",
    GCN_AFTER: "undefended GCN, trained on the attacked graph",
    WITHOUT_EDGES: "models without edges",
    "stacked 1": "stacked votes",
    "stacked votes": "stacked votes",
    "per neighbour": "one vote per neighbour",
    "edge-blind": "stacked votes, trained without edges",
    LABELS: "label votes and neighbours",
    NEIGHBOURS.removesuffix(TAUGHT): "classes of neighbours",
    MAJORITY: "most frequent class",
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
        for method in dict.fromkeys((*BY_ATTACK[attack], *WITHOUT_FEATURES)):
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


def together() -> str:
    """All of Nettack's changes as one budget for the graph: what could change at most, and what did."""
    found = _rows("together")
    lines = []
    for dataset in _datasets(found):
        for method in BY_ATTACK["together"]:
            here = [row for row in found if (row["dataset"], row["method"]) == (dataset, method)]
            if not here:
                continue
            for place, counted in enumerate(here[0]["together"]):
                held, most, changed = (
                    mean(here, lambda row: row["together"][place][name])  # noqa: B023
                    for name in ("hold, each by itself", "broken at most", "changed")
                )
                first = [f"**{NAMES[dataset]}**, {words_of(method)}", str(len(here))] if not place else ["", ""]
                lines.append([*first, str(counted["edges"]), f"{held:.0f}", f"{most:.0f}", f"{changed:.1f}"])
    titles = [
        "",
        "seeds",
        "edges changed in all",
        "labels that hold, each by itself",
        "broken at most",
        "really changed",
    ]
    return table(titles, lines, words=1)


SIZES_OF_FIRST = (0, 1, 3, 5)
FIRST = (f"stacked 1{TAUGHT}", NEIGHBOURS, "stacked 1")  # whose proof the first page shows, if there are rows
LEVELS = (f"{WITHOUT_EDGES}{TAUGHT}", WITHOUT_EDGES, MAJORITY)  # and what stands below it


def first() -> str:
    """For each dataset what the undefended GCN has under Nettack, what votes prove, and what features alone have."""
    found = _rows("nettack")
    lines = []
    for dataset in _datasets(found):
        trained = sum((row["dataset"], row["method"]) == (dataset, GCN) for row in found)
        name = f"**{NAMES[dataset]}** ({trained} trainings)"
        for methods, kind in (((GCN,), "accuracy"), (FIRST, "proved"), (LEVELS, "accuracy")):
            rows = {m: [r for r in found if (r["dataset"], r["method"]) == (dataset, m)] for m in methods}
            method = next((m for m in methods if rows[m]), None)
            if method is None:
                continue
            values = mean(rows[method], lambda row: row[kind])  # noqa: B023
            words = f"**proved** by {words_of(method)}" if kind == "proved" else words_of(method)
            lines.append([name, words, *(percent(values[size]) for size in SIZES_OF_FIRST)])
            name = ""
    return table(["", "right, in %, if Nettack changes this many edges", *map(str, SIZES_OF_FIRST)], lines, words=2)


def line() -> str:
    """Says in a sentence what the undefended GCN has left at five edges on Cora, and what is proved."""
    here = [row for row in _rows("nettack") if row["dataset"] == "cora"]
    most = SIZES_OF_FIRST[-1]
    has = mean([row for row in here if row["method"] == GCN], lambda row: row["accuracy"])
    proved = mean([row for row in here if row["method"] == FIRST[0]], lambda row: row["proved"])[most]
    level = mean([row for row in here if row["method"] == LEVELS[0]], lambda row: row["accuracy"])[0]
    return (
        f"Nettack's five edges leave an undefended GCN {percent(has[most])} of {percent(has[0])} % on Cora; votes "
        f"[prove](docs/guides/attacked-graphs.md) {percent(proved)} %; without edges a model has {percent(level)} %."
    )


def _outside(adaptive: bool) -> list[Row]:
    return [row for row in sources.rows("outside_attacks") if row["attacker"].startswith("adaptive") == adaptive]


def outside() -> str:
    """How many labels each attacker changes with as many edges, on the GCN that it knows and transferred to defences."""
    found = _outside(adaptive=False)
    victims = list(found[0]["flipped"])
    attackers = list(dict.fromkeys(row["attacker"] for row in found))
    tried = [{row["size"] for row in found if row["attacker"] == attacker} for attacker in attackers]
    sizes = sorted(set.intersection(*tried))
    lines = []
    for attacker in attackers:
        here = {size: [r for r in found if (r["attacker"], r["size"]) == (attacker, size)] for size in sizes}
        cells = [
            " / ".join(str(sum(row["flipped"][victim] for row in here[size])) for size in sizes) for victim in victims
        ]
        seconds = f"{mean(here[sizes[-1]], lambda row: row['seconds per target']):.2f}"
        lines.append([f"`{attacker}`" if attacker.startswith("ac.") else attacker, *cells, seconds])
    targets = sum({row["seed"]: row["targets"] for row in found}.values())
    edges = "/".join(map(str, sizes))
    named = [f"{words_of(v)}, transferred" if v != GCN else words_of(v) for v in victims]
    titles = [f"of {targets} labels changed, {edges} edges", *named, f"s per target, {sizes[-1]} edges"]
    return table(titles, lines, words=1)


def settled() -> str:
    """Says for each defence that was attacked by itself how many labels fell, are certified, or are left open."""
    sentences = []
    for attacker in dict.fromkeys(row["attacker"] for row in _outside(adaptive=True)):
        here = [row for row in _outside(adaptive=True) if row["attacker"] == attacker]
        defence = attacker.removeprefix("adaptive on ")
        flipped, certified, targets = (
            sum(get(row) for row in here)
            for get in (lambda r: r["flipped"][defence], lambda r: r[f"{defence}, certified"], lambda r: r["targets"])  # noqa: B023
        )
        left = targets - flipped - certified
        exact = "flipped + certified = all" if not left else f"{left:,} are left open"
        sentences.append(
            f"Of {targets:,} attacks on {WORDS.get(defence, defence)}, {flipped:,} change the label and {certified:,} are "
            f"certified: {exact}."
        )
    rows = sources.rows("outside_attacks")
    violations = sum(value for row in rows for name, value in row.items() if name.endswith(", violations"))
    none = "no certified label" if not violations else f"{violations:,} certified labels"
    return " ".join([*sentences, f"In all of these attacks, {none} changed."])


SHARES = {None: "all alike", 0.5: "`of_neighbours=0.5`"}


def of_neighbours() -> str:
    """What votes for a large size certify, by number of neighbours, if few neighbours are asked for less or not."""
    found = sources.rows("of_neighbours")
    lines = []
    for dataset in dict.fromkeys(row["dataset"] for row in found):
        name = f"**{NAMES[dataset]}**"
        for size in sorted({row["size"] for row in found}):
            for share, words in SHARES.items():
                here = [r for r in found if (r["dataset"], r["size"], r["share"]) == (dataset, size, share)]
                if not here:
                    continue
                certified = mean(here, lambda row: row["certified"])
                place = ASKED.index(size)
                kept = sum(row["votes"] for row in here)
                cells = [percent(group[place]) for group in certified]
                lines.append(
                    [name, f"`size={size}`, {words}", f"{kept} of {len(here)}", percent(certified[0][0]), *cells]
                )
                name = ""
    groups = [f"{low} and more" if high > 1 << 20 else f"up to {high - 1}" if not low else f"{low} to {high - 1}"
              for low, high in GROUPS]  # fmt: skip
    titles = [
        "",
        "in %",
        "trainings that kept votes",
        "right",
        "certified at `size`",
        *(f"{g} neighbours" for g in groups),
    ]
    return table(titles, lines, words=2)


def panels() -> list[Panel]:
    """Accuracy and proof under Nettack for each dataset that has rows."""
    found = _rows("nettack")
    taught = (f"per neighbour{TAUGHT}", NEIGHBOURS)
    shown = (("GCN, undefended", (GCN,), "accuracy"), ("one vote per neighbour, taught", taught, "accuracy"),
             ("of which proved", taught, "proved"), ("stacked votes: proved", ("stacked 1",), "proved"))  # fmt: skip
    drawn = []
    sizes = [0, *STRENGTHS["nettack"]]
    for dataset in _datasets(found):
        curves = []
        for look, (label, methods, field) in enumerate(shown):
            here = [row for row in found if row["dataset"] == dataset and row["method"] in methods]
            if here:
                values = mean(here, lambda row: row[field])  # noqa: B023
                curves.append(Curve(label, look, sizes, [float(value) for value in values]))
        own = [row for row in found if row["dataset"] == dataset and row["method"] in (WITHOUT_EDGES, MAJORITY)]
        levels = [Level("mlp", "models without edges", float(mean(own, lambda row: row["accuracy"][0])))] if own else []
        drawn.append(Panel(NAMES[dataset], curves, levels, bottom=0.4))
    return drawn
