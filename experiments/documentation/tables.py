"""The tables of results as CSV files: every number that a picture or a sentence of the results page rests on."""

import csv
import io
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from experiments.benchmarks import fraud, fraud_trusted, scale, taught
from experiments.benchmarks.field import CONTROLS, THREATS
from experiments.benchmarks.field import SIZES as FIELD_SIZES
from experiments.documentation.sources import Row, document, mean, paper, rows
from experiments.paper.rows import MODELS, certified_at, spread_of

FRAUD_MEASURES = ("auc", "recall@0.1", "recall@0.01")
STACKED_SIZES = (0, 1, 2, 3, 5, 10)
LABEL_SIZES = (0, 1, 2, 5, 10, 20, 40)
PAIR_SIZES = (0, 1, 2, 3, 5)
PAPER_SIZES = (1, 2, 5, 10, 14, 50, 100, 140, 190, 200)
Table = list[list[Any]]


def as_csv(table: Table) -> str:
    """Returns a table as text; shares have four digits."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([[_cell(value) for value in line] for line in table])
    return out.getvalue()


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return "" if np.isnan(value) else f"{value:.4f}"
    return "" if value is None else str(value)


def grouped(table: list[Row], *names: str) -> Iterator[tuple[tuple[Any, ...], list[Row]]]:
    """Yields rows that agree in some values, in the order in which they come."""
    groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in table:
        groups[tuple(row.get(name) for name in names)].append(row)
    yield from groups.items()


def half_range(table: list[Row], get: Callable[[Row], Any]) -> Any:
    """Returns half the distance between the largest and the smallest value."""
    return np.ptp([get(row) for row in table], axis=0) / 2


def paper_table() -> Table:
    """Every setting of the paper's experiments, one line for all its seeds."""
    results = paper()
    settings = dict.fromkeys(replace(setting, seed=0) for setting in results.rows)
    titles = ["dataset", "model", "layers", "division", "groups", "hash", "training", "protocol", "seeds", "accuracy",
              "lowest", "highest", "accuracy on the whole graph", "accuracy without edges", "majority class",
              *(f"certified at {size}" for size in PAPER_SIZES), "seconds of training", "seconds of certification"]  # fmt: skip
    table: Table = [titles]
    for setting in settings:
        found = results.of(setting)
        accuracy = spread_of(found, "accuracy") or spread_of(found, "accuracy_whole_graph")
        others = [spread_of(found, name) for name in ("accuracy_whole_graph", "accuracy_no_edge", "accuracy_majority")]
        certified = [certified_at(found, size) for size in PAPER_SIZES]
        times = [spread_of(found, name) for name in ("seconds_training", "seconds_certification")]
        ends = [accuracy.mean, accuracy.low, accuracy.high] if accuracy else [None] * 3
        table.append([
            setting.dataset, MODELS[setting.model], setting.num_layers, setting.division, setting.num_groups,
            setting.hash, setting.objective, setting.protocol, len(found), *ends,
            *(None if one is None else one.mean for one in (*others, *certified, *times)),
        ])  # fmt: skip
    return table


def chosen_table() -> Table:
    """Voting rules that were chosen for a size, and one vote per neighbour with a prior."""
    table: Table = [["dataset", "protocol", "division", "method", "made for", "seeds", "certified at that size",
                     "lowest", "highest", "certified at 0"]]  # fmt: skip
    designed = [*rows("design"), *rows("design_nodes")]
    kinds = ("dataset", "protocol", "division", "method", "size", "objective", "without_edges")
    for (dataset, protocol, division, method, size, objective, without), found in grouped(designed, *kinds):
        tested = [{**row, "certified": row["test_certified"]} for row in found]
        at, start = certified_at(tested, size), certified_at(tested, 0)
        words = method or f"prior; weights by {objective or 'accuracy'}; without edges: {without or 'the same model'}"
        ends = [at.mean, at.low, at.high] if at else [None] * 3
        table.append([dataset, protocol, division, words, size, len(found), *ends, start and start.mean])
    return table


def stacked_table() -> Table:
    """Stacked votes: certified against edges and nodes that come or go, and against edges anywhere."""
    table: Table = [["dataset", "protocol", "rule", "made for", "trusted edges", "seeds", "without edges", "attack",
                     *STACKED_SIZES]]  # fmt: skip
    kinds = ("dataset", "protocol", "rule", "size", "trusted")
    for key, found in grouped([*rows("stacked"), *rows("stacked_few")], *kinds):
        for attack in ("structure", "edges"):
            curve = mean(found, lambda row: row[attack])  # noqa: B023
            table.append([*key, len(found), mean(found, lambda row: row["without edges"]), attack, *map(float, curve)])
    return table


def few_labels_table() -> Table:
    """Twenty labels per class, with and without a teacher; splits by the tens of their seeds."""
    table: Table = [["dataset", "defence", "labels", "first seed", "seeds", "attack", *STACKED_SIZES, "lowest at 1",
                     "highest at 1"]]  # fmt: skip
    known = [{**row, "first seed": row["seed"] // 10 * 10} for row in rows("taught")]
    for (*key, method, labels, first), found in grouped(known, "dataset", "method", "labels", "first seed"):
        key = [*key, method, labels, first, len(found)]
        if method.startswith(taught.UNDEFENDED):
            accuracy = [float(np.mean(row["test"])) for row in found]
            ends = [min(accuracy), max(accuracy)]
            table.append([*key, "none", float(np.mean(accuracy)), *[None] * 5, *ends])
            continue
        for attack in found[0].get("test", ()):  # rows about settings have none
            curve = mean(found, lambda row: row["test"][attack])  # noqa: B023
            at_one = [row["test"][attack][1] for row in found]
            ends = [min(at_one), max(at_one)]
            table.append([*key, attack, *map(float, curve), *ends])
    return table


def choices_table() -> Table:
    """Other taught students: certified accuracy of validation nodes against added edges."""
    table: Table = [["dataset", "student", "labels", "seeds", *STACKED_SIZES]]
    for key, found in grouped(rows("taught-choices"), "dataset", "choice", "labels"):
        table.append([*key, len(found), *map(float, mean(found, lambda row: row["validation"]))])
    return table


def certified(row: Row, threat: str, size: int, measure: str) -> float:
    """Returns a certified measure of a row about fraud."""
    return next(float(one[measure]) for one in row["certified"][threat] if one["size"] == size)


def fraud_rows() -> list[Row]:
    """Returns the rows about fraud; of two with the same key the later one counts."""
    return list({fraud.key_of(row): row for row in rows("fraud")}.values())


def fraud_table() -> Table:
    """Recall and AUC on the four graphs with a real adversary, certified by size."""
    table: Table = [["dataset", "method", "reads times", "attack", "measure", "seeds", "honest accused",
                     *map(str, fraud.SIZES), *(f"half range at {size}" for size in fraud.SIZES)]]  # fmt: skip
    for (dataset, method, times), found in grouped(fraud_rows(), "dataset", "method", "times"):
        for threat in found[0]["certified"] or ("none",):
            for measure in FRAUD_MEASURES:
                accused = measure.replace("recall", "false")
                false = None if measure == "auc" else float(mean(found, lambda row: row["clean"][accused]))  # noqa: B023
                curves = [_fraud_curve(row, threat, measure) for row in found]
                spread = np.ptp(curves, axis=0) / 2
                table.append([dataset, method, "yes" if times else "no", threat, measure, len(found), false,
                              *map(float, np.mean(curves, axis=0)), *map(float, spread)])  # fmt: skip
    return table


def _fraud_curve(row: Row, threat: str, measure: str) -> list[float]:
    proved = row["certified"].get(threat)
    rest = [certified(row, threat, size, measure) if proved else np.nan for size in fraud.SIZES[1:]]
    return [float(row["clean"][measure]), *rest]


def trusted_table() -> Table:
    """Recall at 10 % false positives, with edges before a date out of reach."""
    sizes = fraud_trusted.SIZES
    table: Table = [["dataset", "trusted before", "share of dates", "seeds", "trusted edges of test accounts",
                     "honest accused", *map(str, sizes)]]  # fmt: skip
    for (dataset, before, share), found in grouped(rows("fraud-trusted"), "dataset", "before", "share"):
        near = float(mean(found, lambda row: row["trusted pairs of test nodes"]))
        false = float(mean(found, lambda row: row["false"][0]))
        recall = map(float, mean(found, lambda row: row["recall"]))
        table.append([dataset, before or "never", share, len(found), near, false, *recall])
    return table


def field_table() -> Table:
    """Every defence with many and with few labels against three attackers; the cards have the certificates."""
    table: Table = [["dataset", "protocol", "attack", "defence", "control", "seeds", *map(str, FIELD_SIZES),
                     *(f"half range at {size}" for size in FIELD_SIZES), "seconds of training",
                     "seconds of certification"]]  # fmt: skip
    for (dataset, protocol, defence), found in grouped(rows("field"), "dataset", "protocol", "defence"):
        timed = [row for row in found if row.get("clock")] or found
        times = [float(mean(timed, lambda row: row["seconds"][step])) for step in ("training", "certifying")]  # noqa: B023
        for threat in THREATS:
            curve = mean(found, lambda row: row[threat])  # noqa: B023
            if defence in CONTROLS or curve[1:].any():
                spread = half_range(found, lambda row: row[threat])  # noqa: B023
                control = "yes" if defence in CONTROLS else "no"
                table.append([dataset, protocol, threat, defence, control, len(found), *map(float, curve),
                              *map(float, spread), *times])  # fmt: skip
    return table


def defences_table() -> Table:
    """Bi-RS, GNNCert-E and GNNCert-EN beside AGNNCert, by attack and rule."""
    results = paper().comparisons
    sizes = (0, 1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 100, 140, 200)
    table: Table = [["dataset", "defence", "groups", "edge noise", "node noise", "samples", "guarantee", "rule",
                     "attack", "seconds of certification", *map(str, sizes)]]  # fmt: skip
    for contest, row in results.items():
        for rule, curves in row["certified"].items():
            for attack, values in curves.items():
                at = dict(zip(row["sizes"], values, strict=True))
                table.append([contest.dataset, contest.defence, contest.num_groups, contest.p_edge, contest.p_node,
                              contest.samples, row["guarantee"], rule, attack, float(row["seconds_certification"]),
                              *(at.get(size) for size in sizes)])  # fmt: skip
    return table


def ceilings_table() -> Table:
    """What no classifier of a statistic can exceed, what sums of node features reach, and references for nodes."""
    table: Table = [["dataset", "what", "seed", *STACKED_SIZES]]
    for row in rows("ceilings"):
        curve = row.get("possible") or row.get("reference") or [row["accuracy"]] * len(STACKED_SIZES)
        table.append([row["dataset"], row["what"], row.get("seed"), *map(float, curve)])
    return table


def graph_votes_table() -> Table:
    """Models that read only what cannot be changed, bounded votes, and counting, split by split."""
    sizes = (0, 1, 2, 3, 5, 10, 20)
    table: Table = [["dataset", "split", "what", "trusted", "made for", "against", "kept", "nodes", *map(str, sizes)]]
    for row in rows("graph_votes"):
        about = [row["dataset"], row["seed"], row["what"], row.get("trusted"), row.get("size"), row.get("against")]
        for attack, name in (("any", "certified"), ("injected or deleted", "certified_structure")):
            if row.get(name):
                table.append([*about, row.get("kept"), attack, *map(float, row[name])])
        if row.get("certified_by_votes_not_kept"):
            attack = "any" if row["against"] == "any" else "injected or deleted"
            table.append([*about, "votes, not kept", attack, *map(float, row["certified_by_votes_not_kept"])])
    for row in rows("graph_undefended"):
        if row["what"] == "test":
            plain = [row["dataset"], row["seed"], f"undefended {row['model'].upper()}", None, None, None, None, "none"]
            table.append([*plain, float(row["accuracy"]), *[None] * (len(sizes) - 1)])
    return table


def graph_field_table() -> Table:
    """Defences of graphs under four threats, split by split."""
    from experiments.benchmarks.graph_field import SIZES, SIZES_OF

    table: Table = [["dataset", "split", "defence", "threat", *map(str, SIZES)]]
    for row in rows("graph_field"):
        for threat in SIZES_OF:
            shares = [*map(float, row[threat])]
            table.append(
                [row["dataset"], row["seed"], row["defence"], threat, *shares, *[None] * (len(SIZES) - len(shares))]
            )
    return table


def code_table() -> Table:
    """Big-Vul: certified accuracy of every detector, by kind of edit."""
    from experiments.benchmarks.bigvul import SIZES

    table: Table = [["functions", "detector", "edits", "seeds", *map(str, SIZES)]]
    measured = [row for row in rows("bigvul") if row["stage"] in ("controls", "networks", "statements")]
    for (stage, protocol, method), found in grouped(measured, "stage", "protocol", "method"):
        name = f"{stage}: {method}"
        for edits in ("designed", "certified", "inserted", "deleted", "replaced"):
            if edits in found[0]:
                curve = map(float, mean(found, lambda row: row[edits]))  # noqa: B023
                table.append([protocol, name, edits, len(found), *curve])
        if "certified" not in found[0] and "designed" not in found[0]:
            accuracy = float(mean(found, lambda row: row["accuracy"]))
            table.append([protocol, name, "none", len(found), accuracy, *[None] * (len(SIZES) - 1)])
    return table


def speed_table() -> Table:
    """Votes and certificates in forward passes of the same model (``make bench``)."""
    names = ("seconds_plain", "seconds_fast", "seconds_naive", "fast_in_plain_forwards", "certify_in_plain_forwards",
             "naive_over_fast", "fast_in_plain_steps", "peak_gib")  # fmt: skip
    table: Table = [["dataset", "division", *names]]
    for row in document("engines")["rows"]:
        table.append([row["dataset"], row["division"], *(row.get(name) for name in names)])
    return table


def large_table() -> Table:
    """The synthetic graph of Amazon2M's size: one line for each cell that was measured."""
    names = ("nodes", "edges", "groups", "seconds", "cpu_seconds", "peak_gib", "seconds_save", "seconds_verify", "file_mb",
             "seconds_plain", "seconds_partition", "node_in_plain_epochs", "edge_in_plain_epochs")  # fmt: skip
    table: Table = [["cell", *names, "threads", "other processes"]]
    newest = {row["cell"]: row for row in scale.read_rows() if row["cell"].startswith("certify:1:")}
    for row in (newest.get(row["cell"], row) for row in document("large")["rows"]):
        if any(row.get(name) is not None for name in ("seconds", "seconds_plain")):
            machine = row["machine"]
            table.append([row["cell"], *(row.get(name) for name in names), machine["threads"], float(machine["load"])])
    return table


def pairs_table() -> Table:
    """Certified accuracy of links, and balanced accuracy of ratings, against changed edges."""
    table: Table = [["task", "dataset", "pairs that are not links", "method", "splits", *map(str, PAIR_SIZES)]]
    for name, task in (("pair_votes_links", "links"), ("pair_votes_ratings", "ratings")):
        measured = [row for row in rows(name) if "certified" in row]
        for (dataset, negatives, method), found in grouped(measured, "dataset", "negatives", "method"):
            curve = [float(value) for value in mean(found, lambda row: row["certified"])]
            known = [*curve, *[None] * (len(PAIR_SIZES) - len(curve))]
            table.append([task, dataset or "bitcoin-otc", negatives, method, len(found), *known])
    return table


def labels_table() -> Table:
    """Certified accuracy against flipped training labels, with 20 labels per class or 30 % of the nodes labelled."""
    protocols = {"20": "20 per class", "30": "30 %"}
    table: Table = [["dataset", "labels", "method", "splits", *map(str, LABEL_SIZES)]]
    for (dataset, protocol, method), found in grouped(rows("label_votes"), "dataset", "protocol", "method"):
        curve = [float(value) for value in mean(found, lambda row: row["certified"])]
        table.append([dataset, protocols[protocol], method, len(found), *curve])
    return table


TABLES: dict[str, Callable[[], Table]] = {
    "paper": paper_table, "chosen-rules": chosen_table, "stacked-votes": stacked_table, "few-labels": few_labels_table,
    "few-labels-choices": choices_table, "fraud": fraud_table, "trusted-history": trusted_table, "field": field_table, "other-defences": defences_table,
    "ceilings": ceilings_table, "graph-votes": graph_votes_table, "graph-field": graph_field_table, "code": code_table, "speed": speed_table, "large": large_table,
    "pairs": pairs_table, "poisoned-labels": labels_table,
}  # fmt: skip
