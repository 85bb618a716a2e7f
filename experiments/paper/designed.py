"""Votes designed for a size on the results page: tables, figures and sentences, from ``design.jsonl`` and its twin.

A curve belongs to one design size: prior, empty groups and number of groups were chosen for it without the test set. An
envelope takes at each size the vote that was designed for it, and is called one.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agnncert.report.drawing import Curve, Level, Panel
from agnncert.training.rule_search import window
from experiments.paper.prose import listed
from experiments.paper.rows import NAMES, Results, Row, certified_at, share, spread_of
from experiments.paper.spec import DIVISIONS, GRAPH_SETS, NODE_SETS, Setting, main_setting
from experiments.paper.tables import NOTHING, markdown

TRAINED, BY_SIZE, CONSTANT = "trained", "size only", "majority"
PROTOCOLS = ("inductive", "transductive")
FEW = (1, 2, 3)  # design sizes of nodes that are shown; beyond, the answer without edges is all that is left
SEEDS = 3
ALONE = 1000  # from this many groups on a subgraph is hardly ever more than one edge or node
LARGEST = 20  # size up to which curves are drawn


@dataclass(frozen=True)
class Gain:
    """By how much one method certifies more than another at the design size, and the standard error of that."""

    mean: float
    error: float

    def __str__(self) -> str:
        sign = "±" if round(self.mean, 3) == 0 else "+" if self.mean > 0 else "−"
        return f"{sign}{share(abs(self.mean))} ± {share(self.error)}"


def graph_sizes(results: Results, dataset: str) -> list[int]:
    """Design sizes of a graph dataset that have rows."""
    return sorted({row["size"] for row in results.designs if row["dataset"] == dataset})


def of_method(results: Results, dataset: str, size: int, method: str, division: str | None = None) -> list[Row]:
    """All rows of a method for a design size; of one division, if it is named."""
    wanted = (dataset, size, method)
    rows = [row for row in results.designs if (row["dataset"], row["size"], row.get("method")) == wanted]
    return [row for row in rows if division in (None, row["division"])]


def chosen(results: Results, dataset: str, size: int, method: str) -> list[Row]:
    """For each seed the row of a method whose division did best without the test graphs.

    Divisions that have been tried with fewer seeds than others take no part: the choice would be another for each seed.
    """
    rows = of_method(results, dataset, size, method)
    tried = Counter(row["division"] for row in rows)
    return _best(row for row in rows if tried[row["division"]] == max(tried.values()))


def _best(rows: Iterable[Row]) -> list[Row]:
    """For each seed the row that certified most training and validation graphs; a tie goes to the one before.

    A model whose subgraphs show more than one edge or node can know training graphs by heart: it must certify no fewer
    validation graphs either.
    """
    best: dict[int, Row] = {}
    for row in sorted(rows, key=_shows_much):
        other = best.get(row["seed"])
        if other is not None and row["score"] <= other["score"]:
            continue
        if other is None or not _shows_much(row) or on_validation(row) >= on_validation(other):
            best[row["seed"]] = row
    return [best[seed] for seed in sorted(best)]


def _shows_much(row: Row) -> bool:
    return bool(row["method"] == TRAINED and float(row["division"][1:]) < ALONE)


def on_validation(row: Row) -> float:
    """Mean certified accuracy of validation graphs at the design size and those beside it."""
    if "val_certified" not in row:
        return float(row["score"])
    at = dict(zip(row["sizes"], row["val_certified"], strict=True))
    near = [float(at[size]) for size in window(row["size"]) if size in at]
    return sum(near) / len(near)


def winner(results: Results, dataset: str, size: int) -> list[Row]:
    """For each seed the row of any method that did best without the test graphs; ties go to the simpler."""
    return _best(row for method in (CONSTANT, BY_SIZE, TRAINED) for row in chosen(results, dataset, size, method))


def node_rows(results: Results, dataset: str, protocol: str, size: int) -> list[Row]:
    """The rows of one design size, one per seed: of the training that did best on validation nodes over all seeds.

    Ties go to the simpler training; one that has fewer seeds is not considered.
    """
    wanted = (dataset, protocol, size)
    rows = [row for row in results.designs if (row["dataset"], row.get("protocol"), row["size"]) == wanted]
    kinds = [("certified", None), (None, None), ("certified", "mlp")]
    trainings = [[r for r in rows if (r.get("objective"), r.get("without_edges")) == kind] for kind in kinds]
    most = max(len(each) for each in trainings)
    complete = [each for each in trainings if len(each) == most]
    best = max(complete, key=lambda each: sum(float(row["score"]) for row in each))
    return sorted(best, key=lambda row: int(row["seed"]))


def gain(ours: Sequence[Row], theirs: Sequence[Row]) -> Gain:
    """The difference at the design size, graph by graph, over the seeds that both have."""
    by_seed = {row["seed"]: row["marks"] for row in theirs}
    means, errors = [], []
    for row in ours:
        if row["seed"] in by_seed:
            apart = [int(a) - int(b) for a, b in zip(row["marks"], by_seed[row["seed"]], strict=True)]
            mean = sum(apart) / len(apart)
            means.append(mean)
            errors.append(sum((one - mean) ** 2 for one in apart) / len(apart) ** 2)
    return Gain(sum(means) / len(means), math.sqrt(sum(errors)) / len(means))


def graph_table(results: Results) -> str:
    """Certified accuracy on test graphs at the size for which a vote was designed, beside the controls."""
    rows = []
    for dataset in GRAPH_SETS:
        for size in graph_sizes(results, dataset):
            ours, by_size = (chosen(results, dataset, size, method) for method in (TRAINED, BY_SIZE))
            if ours:
                best = winner(results, dataset, size)
                rows.append(
                    [
                        f"{NAMES[dataset]}, {size}",
                        _best_plain(results, dataset, size),
                        _at(ours, size),
                        _at(by_size, size),
                        _at(_exactly(results, dataset, size), size),
                        _at(chosen(results, dataset, size, CONSTANT), size),
                        str(gain(ours, by_size)),
                        _divisions(ours),
                        _at(best, size),
                        _at(best, 0),
                        ", ".join(dict.fromkeys(f"{row['method']} {_shown(row['division'])}" for row in best)),
                        str(len(ours)),
                    ]
                )
    titles = [
        "designed for", "plain vote, T=30", "trained", "size only", "size, counted exactly", "majority class",
        "trained − size only", "trained on", "chosen", "chosen, at 0", "which is", "seeds",
    ]  # fmt: skip
    return markdown(titles, rows)


def groups_table(results: Results, method: str) -> str:
    """Certified accuracy on test graphs at the design size for every division; in brackets how many seeds, if not 3."""
    divisions = sorted({row["division"] for row in results.designs if row.get("method") == method}, key=_order)
    rows = []
    for dataset in GRAPH_SETS:
        for size in graph_sizes(results, dataset):
            found = [of_method(results, dataset, size, method, division) for division in divisions]
            if any(found):
                rows.append([f"{NAMES[dataset]}, {size}", *(_mean_at(each, size) for each in found)])
    return markdown(["designed for", *map(_shown, divisions)], rows) if rows else ""


def _order(division: str) -> tuple[str, float]:
    return division[0], float(division[1:])


def _shown(division: str) -> str:
    return division.replace("inf", "∞")


def _divisions(rows: Sequence[Row]) -> str:
    return ", ".join(dict.fromkeys(_shown(row["division"]) for row in rows))


def _mean_at(rows: Sequence[Row], size: int) -> str:
    spread = certified_at(_tested(rows), size)
    return NOTHING if spread is None else share(spread.mean) + (f" ({len(rows)})" if len(rows) != SEEDS else "")


def _exactly(results: Results, dataset: str, size: int) -> list[Row]:
    """For each seed the better one of the numbers of edges and of nodes, each counted exactly."""
    rows = [row for row in of_method(results, dataset, size, BY_SIZE) if row["division"].endswith("inf")]
    seeds = sorted({row["seed"] for row in rows})
    return [max((row for row in rows if row["seed"] == seed), key=lambda row: float(row["score"])) for seed in seeds]


def node_table(results: Results, protocol: str) -> str:
    """The same for nodes, beside models that need no graph."""
    rows = []
    for dataset in NODE_SETS:
        for size in FEW:
            ours = node_rows(results, dataset, protocol, size)
            if ours:
                rows.append(
                    [
                        f"{NAMES[dataset]}, {size}",
                        _at(ours, size),
                        _at(ours, size, "test_certified_anything"),
                        _share(ours, "accuracy_no_edge"),
                        "MLP" if ours[0].get("without_edges") else "GCN",
                        _mlp(results, dataset, [row["seed"] for row in ours]),
                        _share([row for row in ours if "accuracy_mlp" in row], "accuracy_mlp"),
                        _share(ours, "accuracy_whole_graph"),
                        ", ".join(str(row["prior"]) for row in ours),
                        str(len(ours)),
                    ]
                )
    titles = [
        "designed for", "structure", "anything", "without edges", "that is", "MLP", "MLP, same training", "whole graph",
        "priors", "seeds",
    ]  # fmt: skip
    return markdown(titles, rows)


def graph_panels(results: Results, dataset: str) -> list[Panel]:
    """The plain vote and those designed for a size; beside them, designed in the same way, the size alone."""
    panels = []
    for method, title in ((TRAINED, "trained"), (BY_SIZE, "size only")):
        curves = _plain_curves(results, dataset) if method == TRAINED else []
        for look, size in enumerate(graph_sizes(results, dataset), start=2):
            rows = chosen(results, dataset, size, method)
            if rows:
                curves.append(_curve(f"for {size}", look, rows))
        if curves:
            panels.append(Panel(f"{NAMES[dataset]}, {title}", curves, _majority(results, dataset)))
    return panels


def node_panels(results: Results, protocol: str) -> list[Panel]:
    """For each node dataset the votes designed for a size, and their envelope."""
    panels = []
    for dataset in NODE_SETS:
        curves = [
            _curve(f"for {size}", look, rows)
            for look, size in enumerate(FEW)
            if (rows := node_rows(results, dataset, protocol, size))
        ]
        if curves:
            panels.append(
                Panel(
                    NAMES[dataset], [*curves, _envelope(results, dataset, protocol)], _free(results, dataset, protocol)
                )
            )
    return panels


def graph_words(results: Results) -> str:
    """Where a trained model beats the size alone, and where it does not."""
    above, level, below = list[str](), list[str](), list[str]()
    for dataset in GRAPH_SETS:
        for size in graph_sizes(results, dataset):
            ours, by_size = (chosen(results, dataset, size, method) for method in (TRAINED, BY_SIZE))
            if ours and by_size:
                apart = gain(ours, by_size)
                kind = level if abs(apart.mean) <= 2 * apart.error else above if apart.mean > 0 else below
                kind.append(f"{NAMES[dataset]} at {size} ({apart})")
    parts = [
        f"{words} {listed(cases)}"
        for words, cases in (
            ("certifies more graphs than the size alone, by more than twice the standard error, on", above),
            ("cannot be told from the size alone on", level),
            ("certifies fewer than the size alone on", below),
        )
        if cases
    ]
    return f"A model trained for a size {'; it '.join(parts)}." if parts else ""


def repair_words(results: Results) -> str:
    """What designing for a size changes against the plain vote."""
    parts = []
    for dataset in GRAPH_SETS:
        for size in graph_sizes(results, dataset):
            ours = certified_at(_tested(winner(results, dataset, size)), size)
            plain, constant = _plain_mean(results, dataset, size), chosen(results, dataset, size, CONSTANT)
            always = certified_at(_tested(constant), size)
            if ours is not None and plain is not None and always is not None:
                side = "above" if ours.mean > always.mean else "at" if ours.mean == always.mean else "below"
                told = f"{share(plain)} before, {share(ours.mean)} now, {side} the majority class"
                parts.append(f"{NAMES[dataset]} at {size}: {told}")
    if not parts:
        return ""
    return (
        "Constants for empty groups, a prior and many groups, chosen for a size, repair most of the collapse of graph "
        f"certificates. {'; '.join(parts)}."
    )


def node_words(results: Results, protocol: str) -> str:
    """What a prior and one vote per neighbour bring for nodes."""
    parts = []
    for dataset in NODE_SETS:
        gains = []
        for size in FEW:
            rows = node_rows(results, dataset, protocol, size)
            at = certified_at(_tested(rows), size)
            if at is not None:
                gains.append(f"{share(at.mean)} at {size}")
        rows = node_rows(results, dataset, protocol, FEW[0])
        if gains:
            mlp = _mlp(results, dataset, [row["seed"] for row in rows])
            beside = "" if mlp == NOTHING else f", MLP {mlp}"
            parts.append(f"{NAMES[dataset]} {listed(gains)} (without edges {_share(rows, 'accuracy_no_edge')}{beside})")
    if not parts:
        return ""
    return (
        f"Nodes, {protocol}, one vote per neighbour and prior votes for the prediction without edges, certified "
        f"against edges and nodes that come or go: {'; '.join(parts)}."
    )


def _curve(label: str, look: int, rows: Sequence[Row]) -> Curve:
    sizes = [size for size in rows[0]["sizes"] if size <= LARGEST]
    spreads = [spread for size in sizes if (spread := certified_at(_tested(rows), size)) is not None]
    return Curve(label, look, sizes, [s.mean for s in spreads], [s.low for s in spreads], [s.high for s in spreads])


def _envelope(results: Results, dataset: str, protocol: str) -> Curve:
    """At each design size the vote that was designed for it: no single classifier does all of it."""
    sizes = sorted(
        {row["size"] for row in results.designs if (row["dataset"], row.get("protocol")) == (dataset, protocol)}
    )
    points = [certified_at(_tested(node_rows(results, dataset, protocol, size)), size) for size in sizes]
    return Curve("envelope", len(FEW), sizes, [point.mean for point in points if point is not None])


def _plain_curves(results: Results, dataset: str) -> list[Curve]:
    """The plain vote of the paper's setting, both divisions."""
    curves = []
    for look, division in enumerate(DIVISIONS):
        rows = results.of(main_setting(dataset, division))
        if rows:
            sizes = [size for size in rows[0]["sizes"] if size <= LARGEST]
            means = [spread.mean for size in sizes if (spread := certified_at(rows, size)) is not None]
            curves.append(Curve(f"plain, {division}", look, sizes, means))
    return curves


def _plain_mean(results: Results, dataset: str, size: int) -> float | None:
    """The better division of the paper's setting at a size."""
    spreads = [certified_at(results.of(main_setting(dataset, division)), size) for division in DIVISIONS]
    return max((spread.mean for spread in spreads if spread is not None), default=None)


def _best_plain(results: Results, dataset: str, size: int) -> str:
    best = _plain_mean(results, dataset, size)
    return NOTHING if best is None else share(best)


def _majority(results: Results, dataset: str) -> list[Level]:
    spread = results.spread(main_setting(dataset, "edge"), "accuracy_majority")
    return [] if spread is None else [Level("majority", "majority class", spread.mean)]


def _free(results: Results, dataset: str, protocol: str) -> list[Level]:
    rows = node_rows(results, dataset, protocol, FEW[0])
    known = (
        ("undefended", "whole graph", spread_of(rows, "accuracy_whole_graph")),
        ("no_edge", "no_edge", spread_of(rows, "accuracy_no_edge")),
        ("mlp", "MLP", results.spread(Setting(dataset, model="mlp"), "accuracy_whole_graph")),
    )
    return [Level(kind, label, spread.mean) for kind, label, spread in known if spread is not None]


def _mlp(results: Results, dataset: str, seeds: Sequence[int]) -> str:
    """An MLP's accuracy with the same splits. It sees no edges, so both protocols train the same one."""
    rows = [row for row in results.of(Setting(dataset, model="mlp")) if row["setting"]["seed"] in seeds]
    return _share(rows, "accuracy_whole_graph")


def _tested(rows: Iterable[Row]) -> list[Row]:
    return [{"sizes": row["sizes"], "certified": row["test_certified"]} for row in rows]


def _at(rows: Sequence[Row], size: int, field: str = "test_certified") -> str:
    spread = certified_at(rows, size, field)
    return NOTHING if spread is None else str(spread)


def _share(rows: Iterable[Row], field: str) -> str:
    spread = spread_of(rows, field)
    return NOTHING if spread is None else share(spread.mean)
