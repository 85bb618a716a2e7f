"""The comparison with other certified defences, made from its rows. Imports no torch.

Panels and tables for the page that ``python -m experiments`` writes.
"""

from collections.abc import Iterable, Iterator

from agnncert.datasets.catalog import dataset_info
from agnncert.report.drawing import Curve, Level, Panel
from agnncert.undefended import GRAPH_FREE, UNDEFENDED
from experiments.paper import tables as paper
from experiments.paper.rows import NAMES, Results, Row, share
from experiments.paper.spec import main_setting
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
