"""The comparison with other certified defences: its panels and tables, from its rows alone."""

from collections.abc import Iterator, Sequence

from agnncert.datasets.catalog import dataset_info
from agnncert.report.drawing import Curve, Level, Panel
from agnncert.studies.paper import published as paper
from agnncert.studies.paper.rows import NAMES, Results, Row, Spread, share
from agnncert.studies.paper.spec import main_setting
from agnncert.studies.paper.tables import NOTHING, markdown, seconds

GRAPH_FREE, UNDEFENDED = "graph-free MLP", "undefended"
WORDS = {
    "edge-centric": "E", "node-centric": "N", "bi-rs": "Bi-RS", "gnncert-e": "GNNCert-E",
    "gnncert-en": "GNNCert-EN", UNDEFENDED: "undefended GCN", GRAPH_FREE: "MLP",
}  # fmt: skip
RULES = {"certified": "", "published rule": ", published rule"}  # unsound and unproved tests stay in the rows
# Two share a look only if one belongs to nodes and the other to graphs.
LOOKS = {
    ("edge-centric", "certified"): 0, ("node-centric", "certified"): 1,
    ("bi-rs", "certified"): 2, ("gnncert-e", "certified"): 2,
    ("edge-centric", "published rule"): 3, ("gnncert-en", "certified"): 3,
    ("node-centric", "published rule"): 4, ("gnncert-en", "published rule"): 4,
}  # fmt: skip
SIZES = {"node": (1, 5, 10, 20, 50, 100, 140), "graph": (1, 2, 5, 7, 10, 15)}


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
    for threat in _threats(rows):
        curves = list(_curves(rows, threat))
        if len(curves) > 1:
            panels.append(Panel(f"{NAMES[dataset]}: {_attack(threat)}", curves, levels))
    return panels


def _curves(rows: Sequence[Row], threat: str) -> Iterator[Curve]:
    for row in rows:
        defence = row["setting"]["defence"]
        for rule, values in _rules(row, threat):
            if defence not in (UNDEFENDED, GRAPH_FREE):
                look = LOOKS[defence, rule]
                yield Curve(f"{WORDS[defence]}{RULES[rule]}", look, row["sizes"], values, values, values)


def comparison_table(results: Results, dataset: str) -> str:
    """Certified accuracy of every defence under every attack."""
    rows = _chosen(results, dataset)
    sizes = SIZES[dataset_info(dataset).task]
    body = []
    for threat in _threats(rows):
        for row in rows:
            for rule, values in _rules(row, threat):
                if row["setting"]["defence"] != UNDEFENDED:
                    at = dict(zip(row["sizes"], values, strict=True))
                    certified = [share(at[size]) if size in at else NOTHING for size in sizes]
                    body.append([f"{_attack(threat)}: {_name(row)}{RULES[rule]}", *certified])
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
                _seconds(row["seconds_training"]), _seconds(row["seconds_certification"]),
                NOTHING if theirs is None else f"{theirs:,.0f} s", NOTHING if passes is None else f"{passes:,}",
            ])  # fmt: skip
    titles = ["defence", "guarantee", "accuracy", "training", "certification", "paper's", "forward passes"]
    return markdown(titles, body)


def compared(results: Results) -> list[str]:
    """Datasets with rows of other defences."""
    found = {contest.dataset for contest in results.comparisons}
    return [name for name in NAMES if name in found]


def _chosen(results: Results, dataset: str) -> list[Row]:
    """One row per defence, the paper's first; of Bi-RS the noise with the largest area below its curves."""
    rows = [row for contest, row in results.comparisons.items() if contest.dataset == dataset]
    best = {}
    for row in sorted(rows, key=_area):
        best[row["setting"]["defence"]] = row
    return [best[name] for name in WORDS if name in best]


def _area(row: Row) -> float:
    return sum(sum(values) for values in row["certified"].get("certified", {}).values())


def _threats(rows: Sequence[Row]) -> list[str]:
    """The attacks, the weakest first."""
    found = {threat for row in rows for curves in row["certified"].values() for threat in curves}
    return sorted(found, key=lambda threat: (len(threat), threat) if "tau" not in threat else (0, _tau(threat)))


def _tau(threat: str) -> str:
    return threat.partition("tau=")[2].zfill(4)


def _rules(row: Row, threat: str) -> Iterator[tuple[str, list[float]]]:
    """The curves of a row under one attack; that of the published rule only where it is another one."""
    ours = row["certified"].get("certified", {}).get(threat)
    for rule in RULES:
        values = row["certified"].get(rule, {}).get(threat)
        if values is not None and (rule == "certified" or values != ours):
            yield rule, values


def _name(row: Row) -> str:
    setting = row["setting"]
    noise = f" (edges {setting['p_edge']:g}, nodes {setting['p_node']:g})" if setting["defence"] == "bi-rs" else ""
    return f"{WORDS[setting['defence']]}{noise}"


def _attack(threat: str) -> str:
    kind, _, tau = threat.partition(", tau=")
    edges = "any number of edges each" if tau == "inf" else f"{tau} edge{'' if tau == '1' else 's'} each"
    return f"injected nodes, {edges}" if tau else kind


def _seconds(value: float) -> str:
    return seconds(Spread(value, value, value, 1))
