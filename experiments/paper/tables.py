"""What the paper (AGNNCert, USENIX Security 2025) states in numbers, to be printed beside ours.

Its curves are figures without numbers; of them only the two sentences in ``CLAIMED`` can be compared.

The tables of the results page, in Markdown, each made from the rows; and how numbers are written on that page.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any

from agnncert.datasets.catalog import dataset_info
from agnncert.report.tables import laid_out
from experiments.paper.rows import LETTER, MODELS, NAMES, Results, Row, Spread, certified_at, share, spread_of
from experiments.paper.spec import DIVISIONS, Setting, main_setting

# Test accuracy on clean graphs (Table 3): undefended, edge-centric, node-centric.
ACCURACY: dict[str, dict[str, tuple[float, float, float]]] = {
    "gcn": {
        "cora-ml": (0.73, 0.70, 0.68), "citeseer": (0.66, 0.65, 0.67), "pubmed": (0.86, 0.81, 0.82),
        "amazon-c": (0.81, 0.76, 0.76), "aids": (0.99, 0.98, 0.96), "mutag": (0.71, 0.66, 0.65),
        "proteins": (0.75, 0.75, 0.75), "dd": (0.80, 0.79, 0.81),
    },
    "sage": {
        "cora-ml": (0.67, 0.67, 0.68), "citeseer": (0.64, 0.63, 0.64), "pubmed": (0.84, 0.84, 0.84),
        "amazon-c": (0.80, 0.77, 0.75), "aids": (0.97, 0.96, 0.97), "mutag": (0.70, 0.66, 0.67),
        "proteins": (0.80, 0.79, 0.77), "dd": (0.81, 0.80, 0.81),
    },
    "gat": {
        "cora-ml": (0.74, 0.68, 0.69), "citeseer": (0.66, 0.65, 0.66), "pubmed": (0.85, 0.84, 0.84),
        "amazon-c": (0.78, 0.74, 0.74), "aids": (0.96, 0.98, 0.98), "mutag": (0.71, 0.67, 0.66),
        "proteins": (0.82, 0.77, 0.77), "dd": (0.81, 0.77, 0.80),
    },
}  # fmt: skip

# Seconds on an RTX 4090: edge-centric, node-centric.
CERTIFICATION_SECONDS = {
    "cora-ml": (7.35, 7.45), "citeseer": (8.36, 8.40), "pubmed": (44.9, 42.7), "amazon-c": (35.3, 36.4),
    "aids": (24.3, 22.6), "mutag": (82.7, 86.2), "proteins": (23.1, 25.5), "dd": (33.1, 32.9),
}  # fmt: skip
EPOCH_SECONDS = {
    "cora-ml": (17.5, 18.6), "citeseer": (21.4, 22.5), "pubmed": (111.0, 102.0), "amazon-c": (102.0, 97.0),
    "aids": (101.0, 102.0), "mutag": (389.0, 401.0), "proteins": (96.0, 99.0), "dd": (163.0, 151.0),
}  # fmt: skip

BI_RS_CERTIFICATION_SECONDS = {"cora-ml": 1658.0, "pubmed": 60589.0}

# The real Amazon2M with 80 subgraphs, in seconds: the two numbers are stated without the division they belong to.
AMAZON2M_SECONDS = (107.0, 287.0)

# Accuracy on Big-Vul: undefended, AGNNCert.
BIG_VUL_ACCURACY = (0.70, 0.69)

# "About 70 % certified at size 200" for nodes, "60 % at 10" for graphs: task → (size, share).
CLAIMED = {"node": (200, 0.70), "graph": (10, 0.60)}

# Number of edges in its table of datasets.
EDGES = {"cora-ml": 8416, "citeseer": 4732, "pubmed": 44338}

# Cora-ML as the paper's released code reads it, and the nodes that this leaves without an edge.
RELEASED_CORA_EDGES, RELEASED_CORA_ISOLATED = 4303, 622

_COLUMN = {"none": 0, "edge": 1, "node": 2}


def accuracy(dataset: str, model: str, division: str) -> float | None:
    """Test accuracy that the paper reports; None if it reports none."""
    columns = ACCURACY.get(model, {}).get(dataset)
    return None if columns is None else columns[_COLUMN[division]]


BASE_MODELS = ("gcn", "sage", "gat")
SIZES = {"node": (10, 50, 100, 140), "graph": (1, 2, 5, 10, 14)}
MIDDLE = {"node": 100, "graph": 5}
REACHED = "✓"
NOTHING = "–"

Cell = tuple[str, str]  # dataset, division


def cells(results: Results, datasets: Iterable[str]) -> list[Cell]:
    """Datasets and divisions that have a main result."""
    return [(name, d) for name in datasets for d in DIVISIONS if results.of(main_setting(name, d))]


def named(dataset: str, division: str) -> str:
    """What a dataset and a division are called."""
    return f"{NAMES.get(dataset, dataset)}, {LETTER[division]}"


def of_task(results: Results, task: str) -> list[str]:
    """Datasets of one task that have rows."""
    return [name for name in results.datasets if dataset_info(name).task == task]


def markdown(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; empty without rows. All columns but the first are numbers, to the right.

    Example:
        >>> print(markdown(["dataset", "E"], [["DD", ".79"]]))
        | dataset | E |
        |---|---:|
        | DD | .79 |
    """
    return laid_out("markdown", titles, rows, "l" + "r" * (len(titles) - 1)) if rows else ""


def shown(spread: Spread | None, form: Callable[[float], str] = share) -> str:
    """The mean as text; a dash if there is none."""
    return NOTHING if spread is None else form(spread.mean)


def percent(value: float) -> str:
    """A share with two digits after the point."""
    return f"{100 * value:.2f} %"


def whole(value: float) -> str:
    """A number without digits after the point."""
    return f"{value:.0f}"


def two_digits(value: float) -> str:
    """An accuracy as the paper prints it."""
    return f"{value:.2f}".removeprefix("0")


def seconds(value: float) -> str:
    """A time with at least two significant digits.

    Example:
        >>> seconds(0.0575), seconds(123.4)
        ('0.058 s', '123 s')
    """
    return f"{value:.0f} s" if value >= 10 else f"{value:.1f} s" if value >= 1 else f"{value:.2g} s"


def reaches(ours: float, theirs: float) -> bool:
    """Whether an accuracy is as good as the paper's, which has two digits.

    Example:
        >>> reaches(0.6951, 0.70), reaches(0.6949, 0.70)
        (True, False)
    """
    return round(ours + 1e-9, 2) >= theirs


def accuracy_table(results: Results) -> str:
    """Test accuracy without an attack, the paper's and ours (its Table 3)."""
    rows = []
    for dataset in results.datasets:
        for model in BASE_MODELS:
            settings = [main_setting(dataset, d, model=model) for d in ("none", *DIVISIONS)]
            pairs = [_beside_paper(results, setting) for setting in settings]
            if any(ours != NOTHING for _, ours in pairs):
                rows.append([NAMES[dataset], MODELS[model], *(number for pair in pairs for number in pair)])
    titles = [f"{name}, {whose}" for name in ("undefended", "E", "N") for whose in ("paper", "ours")]
    return markdown(["dataset", "model", *titles], rows)


def _beside_paper(results: Results, setting: Setting) -> tuple[str, str]:
    """The paper's accuracy and ours, with a mark where ours is as good."""
    theirs = accuracy(setting.dataset, setting.model, setting.division)
    ours = results.spread(setting, "accuracy_whole_graph" if setting.division == "none" else "accuracy")
    mark = f" {REACHED}" if ours is not None and theirs is not None and reaches(ours.mean, theirs) else ""
    return NOTHING if theirs is None else two_digits(theirs), NOTHING if ours is None else f"{ours}{mark}"


def dataset_table(results: Results, dataset: str) -> str:
    """Everything measured on one dataset with the main settings, and beside it the models that need no proof."""
    sizes = SIZES[dataset_info(dataset).task]
    settings = [main_setting(dataset, d, model=model) for model in BASE_MODELS for d in ("none", *DIVISIONS)]
    rows = [_defended_row(results, setting, sizes) for setting in settings if results.of(setting)]
    rows += _proofless_rows(results, dataset, len(sizes))
    titles = [
        "model", "accuracy", "paper", *(f"at {size}" for size in sizes), "vote ≠ no edges",
        "training", "epochs", "certification",
    ]  # fmt: skip
    return markdown(titles, rows)


def _defended_row(results: Results, setting: Setting, sizes: Sequence[int]) -> list[str]:
    rows = results.of(setting)
    theirs, ours = _beside_paper(results, setting)
    return [
        f"{MODELS[setting.model]}, {LETTER.get(setting.division, 'undefended')}", ours, theirs,
        *(shown(certified_at(rows, size)) for size in sizes),
        shown(spread_of(rows, "vote_differs_from_no_edge"), percent),
        *_training(rows), shown(spread_of(rows, "seconds_certification"), seconds),
    ]  # fmt: skip


def _training(rows: Sequence[Row]) -> tuple[str, str]:
    return shown(spread_of(rows, "seconds_training"), seconds), shown(spread_of(rows, "epochs"), whole)


def _proofless_rows(results: Results, dataset: str, num_sizes: int) -> list[list[str]]:
    """Models whose label no change of edges can alter: their accuracy is certified at every size."""
    mlp = results.of(main_setting(dataset, "none", model="mlp"))
    mlp_name = "MLP, no graph" if dataset_info(dataset).task == "node" else "bag of nodes, no edges"
    defended = {division: results.of(main_setting(dataset, division)) for division in DIVISIONS}
    untrained = (NOTHING, NOTHING)
    models = [
        (mlp_name, spread_of(mlp, "accuracy_whole_graph"), _training(mlp)),
        *(
            (f"prediction without edges of GCN, {LETTER[division]}", spread_of(rows, "accuracy_no_edge"), untrained)
            for division, rows in defended.items()
        ),
        ("majority class", spread_of(chain(*defended.values()), "accuracy_majority"), untrained),
    ]
    return [
        [name, str(accuracy), NOTHING, *[share(accuracy.mean)] * num_sizes, NOTHING, *training, "0 s"]
        for name, accuracy, training in models
        if accuracy is not None
    ]


def graph_free_table(results: Results) -> str:
    """How much of a node's vote comes from the graph at all."""
    rows = []
    for dataset, division in cells(results, of_task(results, "node")):
        info, main = dataset_info(dataset), main_setting(dataset, division)
        accuracies = (
            (main, "accuracy"), (main, "accuracy_no_edge"), (Setting(dataset, model="mlp"), "accuracy_whole_graph"),
            (main, "accuracy_whole_graph"), (Setting(dataset), "accuracy_whole_graph"), (main, "accuracy_majority"),
        )  # fmt: skip
        rows.append([
            named(dataset, division), f"{2 * info.edges / info.size:.1f}",
            shown(results.spread(main, "reached_votes"), percent),
            shown(results.spread(main, "vote_differs_from_no_edge"), percent),
            *(shown(results.spread(*accuracy)) for accuracy in accuracies),
        ])  # fmt: skip
    titles = [
        "GCN, T=300", "mean degree", "votes with an edge", "vote ≠ no edges", "vote", "no edges", "MLP",
        "same weights, whole graph", "undefended GCN", "majority class",
    ]  # fmt: skip
    return markdown(titles, rows)


def majority_table(results: Results) -> str:
    """Graph classification against a constant answer and a model without edges."""
    rows = []
    for dataset, division in cells(results, of_task(results, "graph")):
        main = main_setting(dataset, division)
        majority = results.spread(main, "accuracy_majority")
        if majority is not None:
            above = above_until(results.of(main), majority.mean)
            rows.append([
                named(dataset, division), share(majority.mean),
                shown(results.spread(Setting(dataset, model="mlp"), "accuracy_whole_graph")),
                shown(results.spread(main, "accuracy")),
                *(shown(certified_at(results.of(main), size)) for size in (1, 5, 10)),
                "nowhere" if above is None else f"size {above}",
                shown(results.spread(main, "certified_unlimited_edges")),
            ])  # fmt: skip
    titles = [
        "GCN, T=30", "majority class", "bag of nodes", "vote", "at 1", "at 5", "at 10", "above majority up to",
        "any number of edges",
    ]  # fmt: skip
    return markdown(titles, rows)


def above_until(rows: Sequence[Row], level: float) -> int | None:
    """The largest size at which certified accuracy is above a level; None if it never is."""
    curve = ((size, certified_at(rows, size)) for size in rows[0]["sizes"])
    return max((int(size) for size, at in curve if at is not None and at.mean > level), default=None)


def variation_table(results: Results, field: str, values: Sequence[Any], label: Callable[[Any], str]) -> str:
    """Accuracy and certified accuracy for several values of one field, with one seed, all else being equal."""
    rows = []
    for dataset in results.datasets:
        for division in DIVISIONS:
            by_value = [results.rows.get(main_setting(dataset, division, **{field: value})) for value in values]
            if sum(row is not None for row in by_value) > 1:
                rows.append([named(dataset, division), *map(_accuracies, by_value)])
    return markdown(["accuracy / certified", *map(label, values)], rows)


def _accuracies(row: Row | None) -> str:
    """Accuracy of the vote, and certified accuracy at a middle size."""
    if row is None:
        return NOTHING
    size = MIDDLE[dataset_info(row["setting"]["dataset"]).task]
    return f"{share(row['accuracy'])} / {shown(certified_at([row], size))}"


def larger_table(results: Results) -> str:
    """A plain GCN and a deeper one with residual connections."""
    rows = []
    models: tuple[dict[str, Any], ...] = ({}, {"num_layers": 3}, {"model": "resgcn", "num_layers": 6})
    for dataset in results.datasets:
        settings = [[main_setting(dataset, d, **changes) for d in ("none", *DIVISIONS)] for changes in models]
        if not any(results.of(setting) for setting in settings[-1]):
            continue
        for of_model in settings:
            any_row = next((row for setting in of_model for row in results.of(setting)), None)
            if any_row is not None:
                layers = any_row["recipe"]["model"]["num_layers"]
                plain, *defended = by_division = [results.rows.get(setting) for setting in of_model]
                rows.append([
                    f"{NAMES[dataset]}: {MODELS[of_model[0].model]}, {layers} layers",
                    NOTHING if plain is None else share(plain["accuracy_whole_graph"]), *map(_accuracies, defended),
                    *(NOTHING if row is None else f"{row['seconds_per_epoch']:.2g} s" for row in by_division),
                ])  # fmt: skip
    titles = ["accuracy / certified", "undefended", "E", "N", "epoch, undefended", "epoch, E", "epoch, N"]
    return markdown(titles, rows)


def time_table(results: Results) -> str:
    """Seconds for certifying all test targets and for an epoch of training, the paper's and ours."""
    rows = []
    for dataset, division in cells(results, results.datasets):
        main = main_setting(dataset, division)
        certify, epoch = (results.spread(main, f"seconds_{what}") for what in ("certification", "per_epoch"))
        if certify is not None and epoch is not None:
            plain_pass = results.spread(main, "seconds_plain_forward")
            plain_epoch = results.spread(Setting(dataset), "seconds_per_epoch")
            rows.append([
                named(dataset, division),
                *_times(CERTIFICATION_SECONDS, (dataset, division), certify),
                shown(plain_pass, seconds), _ratio(certify, plain_pass),
                *_times(EPOCH_SECONDS, (dataset, division), epoch),
                shown(plain_epoch, seconds), _ratio(epoch, plain_epoch),
            ])  # fmt: skip
    titles = [
        "GCN", "certification, paper", "ours", "paper ÷ ours", "plain pass", "certification ÷ pass",
        "epoch, paper", "ours", "paper ÷ ours", "undefended epoch", "ours ÷ undefended",
    ]  # fmt: skip
    return markdown(titles, rows)


def _times(published: dict[str, tuple[float, float]], cell: Cell, ours: Spread) -> tuple[str, str, str]:
    """The paper's time, ours, and how many times ours goes into the paper's."""
    dataset, division = cell
    if dataset not in published:
        return NOTHING, seconds(ours.mean), NOTHING
    theirs = published[dataset][DIVISIONS.index(division)]
    return f"{theirs:g} s", seconds(ours.mean), f"{theirs / ours.mean:,.0f}"


def _ratio(a: Spread, b: Spread | None) -> str:
    return NOTHING if b is None or b.mean == 0 else f"{a.mean / b.mean:.1f}"


def recipe_table(results: Results) -> str:
    """How the models of the main results were trained."""
    rows = []
    for dataset in results.datasets:
        main = next((row for d in DIVISIONS for row in results.of(main_setting(dataset, d))), None)
        if main is not None:
            parts = [", ".join(f"{k} {v}" for k, v in main["recipe"][part].items()) for part in ("model", "fit")]
            runs = [row for setting, row in results.rows.items() if setting.dataset == dataset]
            total = sum(row["seconds_training"] + row.get("seconds_certification", 0) for row in runs)
            rows.append([NAMES[dataset], *parts, str(len(runs)), f"{total / 60:.1f} min"])
    return markdown(["dataset", "model", "training", "runs", "all of them took"], rows)


def benchmark_table(results: Results) -> str:
    """What ``make bench`` measured on an idle machine, in plain passes and plain training steps."""
    columns = (
        ("votes, in plain passes", "fast_in_plain_forwards", "{:.1f}"),
        ("one by one ÷ ours", "naive_over_fast", "{:,.0f}"),
        ("training step, in plain steps", "fast_in_plain_steps", "{:.1f}"),
        ("sum of T+1 ÷ ours", "naive_over_fast_step", "{:,.0f}"),
    )
    rows = [
        [
            f"{NAMES.get(row['dataset'], row['dataset'])}, {row['division']}",
            *(form.format(row[key]) if key in row else NOTHING for _, key, form in columns),
        ]
        for row in results.benchmarks.get("engines", {}).get("rows", [])
    ]
    return markdown(["GCN", *(title for title, _, _ in columns)], rows)
