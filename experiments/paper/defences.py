"""The comparison with other certified defences, made from its rows. Imports no torch.

Panels and tables for the results page, and the tables of ``docs/comparisons.md``, which stand between markers there.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from agnncert.datasets.catalog import dataset_info
from agnncert.errors import SettingsError
from agnncert.report.drawing import Curve, Level, Panel
from agnncert.report.tables import laid_out
from agnncert.study import GRAPH_FREE, MAJORITY, UNDEFENDED
from experiments.paper import tables as paper
from experiments.paper.rows import NAMES, Results, Row, read_rows, share
from experiments.paper.spec import GRAPH_SETS, NODE_SETS, main_setting
from experiments.paper.tables import NOTHING, markdown, seconds

WORDS = {
    "edge-centric": "E", "node-centric": "N", "bi-rs": "Bi-RS", "gnncert-e": "GNNCert-E",
    "gnncert-en": "GNNCert-EN", UNDEFENDED: "undefended GCN", GRAPH_FREE: "MLP",
}  # fmt: skip
RULES = {"certified": "", "published rule": ", published rule"}  # unsound and unproved tests are not shown
# Colour and marker of each curve. Two have the same only if one is on node datasets and the other on graph datasets.
LOOKS = {
    ("edge-centric", "certified"): 0, ("node-centric", "certified"): 1,
    ("bi-rs", "certified"): 2, ("gnncert-e", "certified"): 2,
    ("edge-centric", "published rule"): 3, ("gnncert-en", "certified"): 3,
    ("node-centric", "published rule"): 4, ("gnncert-en", "published rule"): 4,
}  # fmt: skip
SIZES = {"node": (1, 5, 10, 20, 50, 100, 140), "graph": (1, 2, 5, 7, 10, 15)}

PAGE = Path("docs/comparisons.md")
NODE_COLUMNS = (0, 1, 5, 10, 20, 30, 50, 70, 100, 140, 150)
GRAPH_COLUMNS = (0, 1, 2, 3, 4, 5, 7, 10, 12, 15, 17)
_MARKER = re.compile(r"(<!-- table: ([\w ,.=-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def compared(results: Results) -> list[str]:
    """Datasets with rows of other defences."""
    datasets = {contest.dataset for contest in results.comparisons}
    return [name for name in NAMES if name in datasets]


def comparison_panels(results: Results, dataset: str) -> list[Panel]:
    """One panel per attack: the curve of every defence that has one, and the models without a proof."""
    rows = _chosen(results, dataset)
    levels = [
        Level("undefended" if row["setting"]["defence"] == UNDEFENDED else "mlp", _name(row), float(row["accuracy"]))
        for row in rows
        if row["setting"]["defence"] in (UNDEFENDED, GRAPH_FREE)
    ]
    majority = results.spread(main_setting(dataset, "edge"), "accuracy_majority")
    levels += [] if majority is None else [Level("majority", "majority class", majority.mean)]
    panels = []
    for attack in _attacks(rows):
        curves = [
            Curve(f"{WORDS[defence]}{RULES[rule]}", LOOKS[defence, rule], row["sizes"], values)
            for row, rule, values in _curves(rows, attack)
            if (defence := row["setting"]["defence"]) not in (UNDEFENDED, GRAPH_FREE)
        ]
        if len(curves) > 1:
            panels.append(Panel(f"{NAMES[dataset]}: {_attack_words(attack)}", curves, levels))
    return panels


def comparison_table(results: Results, dataset: str) -> str:
    """Certified accuracy of every defence under every attack."""
    rows, sizes = _chosen(results, dataset), SIZES[dataset_info(dataset).task]
    body = []
    for attack in _attacks(rows):
        for row, rule, values in _curves(rows, attack):
            if row["setting"]["defence"] != UNDEFENDED:
                at = dict(zip(row["sizes"], values, strict=True))
                certified = [share(at[size]) if size in at else NOTHING for size in sizes]
                body.append([f"{_attack_words(attack)}: {_name(row)}{RULES[rule]}", *certified])
    return markdown(["attack: defence", *(f"at {size}" for size in sizes)], body)


def price_table(results: Results) -> str:
    """Accuracy, guarantee and time of every defence."""
    body = []
    for dataset in compared(results):
        for row in _chosen(results, dataset):
            theirs = paper.BI_RS_CERTIFICATION_SECONDS.get(dataset) if row["setting"]["defence"] == "bi-rs" else None
            passes = row.get("forward_passes")
            body.append([
                f"{NAMES[dataset]}: {_name(row)}", str(row["guarantee"] or NOTHING), share(row["accuracy"]),
                seconds(row["seconds_training"]), seconds(row["seconds_certification"]),
                NOTHING if theirs is None else f"{theirs:,.0f} s", NOTHING if passes is None else f"{passes:,}",
            ])  # fmt: skip
    titles = ["defence", "guarantee", "accuracy", "training", "certification", "paper's", "forward passes"]
    return markdown(titles, body)


def _chosen(results: Results, dataset: str) -> list[Row]:
    """One row per defence, the paper's first; of Bi-RS the noise with the largest area below its curves."""
    rows = [row for contest, row in results.comparisons.items() if contest.dataset == dataset]
    best = {row["setting"]["defence"]: row for row in sorted(rows, key=_area)}
    return [best[name] for name in WORDS if name in best]


def _area(row: Row) -> float:
    return sum(sum(values) for values in row["certified"].get("certified", {}).values())


def _attacks(rows: Iterable[Row]) -> list[str]:
    """The attacks, the weakest first."""
    attacks = {attack for row in rows for curves in row["certified"].values() for attack in curves}
    return sorted(attacks, key=lambda name: (0, _tau(name).zfill(4)) if _tau(name) else (len(name), name))


def _tau(attack: str) -> str:
    """How many edges an injected node may have, as the name of an attack says it; empty for other attacks."""
    return attack.partition("tau=")[2]


def _attack_words(attack: str) -> str:
    tau = _tau(attack)
    edges = "any number of edges each" if tau == "inf" else f"{tau} edge{'' if tau == '1' else 's'} each"
    return f"injected nodes, {edges}" if tau else attack


def _curves(rows: Iterable[Row], attack: str) -> Iterator[tuple[Row, str, list[float]]]:
    """Row, rule and values of the curves under one attack; the published rule only where it gives other values."""
    for row in rows:
        ours = row["certified"].get("certified", {}).get(attack)
        for rule in RULES:
            values = row["certified"].get(rule, {}).get(attack)
            if values is not None and (rule == "certified" or values != ours):
                yield row, rule, values


def _name(row: Row) -> str:
    setting = row["setting"]
    noise = f" (edges {setting['p_edge']:g}, nodes {setting['p_node']:g})" if setting["defence"] == "bi-rs" else ""
    return f"{WORDS[setting['defence']]}{noise}"


@dataclass(frozen=True)
class Line:
    """One line of a table in ``docs/comparisons.md``.

    Attributes:
        name: What it is called.
        defence: The defence whose rows it is made from; where there are several, the best at each size counts.
        rule: Which of their curves.
    """

    name: str
    defence: str
    rule: str = "certified"


_REFERENCES = (
    Line("undefended GCN (no proof)", UNDEFENDED),
    Line("graph-free MLP", GRAPH_FREE),
    Line("majority class", MAJORITY),
)
NODE_LINES = (
    *_REFERENCES,
    Line("AGNNCert-E, published rule", "edge-centric", "published rule"),
    Line("AGNNCert-E, sharper rule", "edge-centric"),
    Line("AGNNCert-N", "node-centric"),
    Line("Bi-RS, released test (unsound)", "bi-rs", "legacy-unsound"),
    Line("Bi-RS, sound test", "bi-rs"),
)
GRAPH_LINES = (*_REFERENCES, Line("AGNNCert-E", "edge-centric"), Line("AGNNCert-N", "node-centric"))
BOTH_LINES = (*GRAPH_LINES, Line("GNNCert-EN, union count", "gnncert-en"))
GRAPH_TABLES = {
    "edges": (*GRAPH_LINES, Line("GNNCert-E", "gnncert-e")),
    "edges and features": BOTH_LINES,
    "edges and features, even": BOTH_LINES,
}


def curve(rows: Sequence[Row], line: Line, attack: str) -> dict[int, float]:
    """Certified accuracy by size; of several rows, such as noise levels, the best at each size."""
    if line.defence == MAJORITY:
        return {size: rows[0]["accuracy_majority"] for size in rows[0]["sizes"]}
    best: dict[int, float] = {}
    for row in rows:
        shares = row["certified"].get(line.rule, {}).get(attack)
        if row["setting"]["defence"] == line.defence and shares is not None:
            for size, value in zip(row["sizes"], shares, strict=True):
                best[size] = max(best.get(size, 0.0), value)
    return best


def curves_table(rows: Sequence[Row], lines: Iterable[Line], attack: str, columns: Sequence[int]) -> str:
    """Certified accuracy in percent, one line per defence and one column per size."""
    drawn = [(line, at) for line in lines if (at := curve(rows, line, attack))]
    body = [[line.name, *(f"{100 * at[size]:.1f}" for size in columns), _cost(rows, line)] for line, at in drawn]
    return laid_out("markdown", ["", *map(str, columns), "certified in"], body)


def _cost(rows: Sequence[Row], line: Line) -> str:
    times = [row["seconds_certification"] for row in rows if row["setting"]["defence"] == line.defence]
    if not times:
        return NOTHING
    return f"{sum(times):.1f} s" + (f" ({len(times)} noise levels)" if len(times) > 1 else "")


def half_table(rows: Sequence[Row], lines: Iterable[Line], attacks: Sequence[str]) -> str:
    """The largest size at which at least half of all targets are correct and certified, by attack."""
    body = []
    for line in lines:
        curves = [curve(rows, line, attack) for attack in attacks]
        if all(curves):
            body.append([line.name, *(_largest(at, line.defence in (GRAPH_FREE, MAJORITY)) for at in curves)])
    return laid_out("markdown", ["", *(attack.removeprefix("injection, ") for attack in attacks)], body)


def _largest(curve: dict[int, float], no_limit: bool) -> str:
    held = max((size for size, value in curve.items() if value >= 0.5), default=None)
    if held is None:
        return NOTHING
    if held < max(curve):
        return str(held)
    return "any" if no_limit else f"{held} or more"


def tables(rows: Sequence[Row]) -> dict[str, str]:
    """Every table of the page, by the name in its marker; datasets without rows are left out."""
    by_name = {}
    latest = {row["key"]: row for row in rows}.values()  # a run that was done again has its newer row further down
    for dataset in (*NODE_SETS, *GRAPH_SETS):
        own = [row for row in latest if row["setting"]["dataset"] == dataset]
        if own and dataset in NODE_SETS:
            by_name[f"{dataset} injection"] = curves_table(own, NODE_LINES, "injection, tau=5", NODE_COLUMNS)
            by_name[f"{dataset} tau"] = half_table(own, NODE_LINES, _attacks(own))
        elif own:
            for attack, lines in GRAPH_TABLES.items():
                by_name[f"{dataset} {attack}"] = curves_table(own, lines, attack, GRAPH_COLUMNS)
    return by_name


def filled(page: str, rows: Sequence[Row]) -> str:
    """The page with every table between its markers made anew.

    Raises:
        SettingsError: A marker names a table that the rows do not give.
    """
    by_name = tables(rows)

    def fill(match: re.Match[str]) -> str:
        if match[2] not in by_name:
            raise SettingsError(f'the page asks for the table "{match[2]}", for which there are no rows.')
        return f"{match[1]}{by_name[match[2]]}\n{match[3]}"

    return _MARKER.sub(fill, page)


def update(rows_file: Path, page: Path = PAGE) -> None:
    """Writes the tables of the rows into the page."""
    page.write_text(filled(page.read_text(encoding="utf-8"), list(read_rows(rows_file))), encoding="utf-8")
