"""The tables of the results page, in Markdown, each made from the rows.

What it cost: seconds of training and certification, the paper's and ours, and how the models were trained.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from agnncert.datasets.catalog import dataset_info
from agnncert.studies.paper import published as paper
from agnncert.studies.paper.rows import LETTER, MODELS, NAMES, Results, Row, Spread, certified_at, share, spread_of
from agnncert.studies.paper.spec import DIVISIONS, Setting, main_setting

BASE_MODELS = ("gcn", "sage", "gat")
SIZES = {"node": (0, 10, 50, 100, 140), "graph": (0, 1, 2, 5, 10, 14)}
MIDDLE = {"node": 100, "graph": 5}
REACHED = "✓"
NOTHING = "–"


def markdown(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; empty without rows. All columns but the first are numbers, to the right.

    Example:
        >>> print(markdown(["dataset", "E"], [["DD", ".79"]]))
        | dataset | E |
        |---|---:|
        | DD | .79 |
    """
    body = [f"| {' | '.join(row)} |" for row in rows]
    head = [f"| {' | '.join(titles)} |", f"|---|{'---:|' * (len(titles) - 1)}"]
    return "\n".join([*head, *body]) if body else ""


def reaches(ours: float, theirs: float) -> bool:
    """Whether an accuracy is as good as the paper's, which has two digits.

    Example:
        >>> reaches(0.6951, 0.70), reaches(0.6949, 0.70)
        (True, False)
    """
    return round(ours + 1e-9, 2) >= theirs


def two_digits(value: float) -> str:
    """An accuracy as the paper prints it."""
    return f"{value:.2f}".removeprefix("0")


def accuracy_table(results: Results) -> str:
    """Test accuracy without an attack, the paper's and ours (its Table 3)."""
    rows = []
    for dataset in results.datasets:
        for model in BASE_MODELS:
            settings = [main_setting(dataset, d, model=model) for d in ("none", *DIVISIONS)]
            found = [results.spread(s, _accuracy_field(s)) for s in settings]
            if any(found):
                cells = [_beside_paper(s, one) for s, one in zip(settings, found, strict=True)]
                rows.append([NAMES[dataset], MODELS[model], *(cell for pair in cells for cell in pair)])
    titles = [f"{name}, {whose}" for name in ("undefended", "E", "N") for whose in ("paper", "ours")]
    return markdown(["dataset", "model", *titles], rows)


def _accuracy_field(setting: Setting) -> str:
    return "accuracy_whole_graph" if setting.division == "none" else "accuracy"


def _beside_paper(setting: Setting, ours: Spread | None) -> tuple[str, str]:
    """The paper's accuracy and ours, with a mark where ours is as good."""
    theirs = paper.accuracy(setting.dataset, setting.model, setting.division)
    told = NOTHING if theirs is None else two_digits(theirs)
    if ours is None:
        return told, NOTHING
    mark = f" {REACHED}" if theirs is not None and reaches(ours.mean, theirs) else ""
    return told, f"{ours}{mark}"


def dataset_table(results: Results, dataset: str) -> str:
    """Everything measured on one dataset with the main settings, and beside it the models that need no proof."""
    task = dataset_info(dataset).task
    sizes = SIZES[task]
    rows = []
    for model in BASE_MODELS:
        for division in ("none", *DIVISIONS):
            setting = main_setting(dataset, division, model=model)
            if results.of(setting):
                rows.append(_defended_row(results, setting, sizes))
    rows += _proofless_rows(results, dataset, sizes)
    titles = [
        "model", "accuracy", "paper", *(f"at {size}" for size in sizes if size), "vote ≠ edgeless",
        "training", "epochs", "certification",
    ]  # fmt: skip
    return markdown(titles, rows)


def _defended_row(results: Results, setting: Setting, sizes: Sequence[int]) -> list[str]:
    rows = results.of(setting)
    theirs, ours = _beside_paper(setting, results.spread(setting, _accuracy_field(setting)))
    name = LETTER.get(setting.division, "undefended")
    certified = [_told(certified_at(rows, size)) for size in sizes if size]
    differs = results.spread(setting, "vote_differs_from_edgeless")
    return [
        f"{MODELS[setting.model]}, {name}", ours, theirs, *certified,
        NOTHING if differs is None else f"{100 * differs.mean:.2f} %",
        *(seconds(spread_of(rows, "seconds_training")), _whole(rows, "epochs")),
        seconds(spread_of(rows, "seconds_certification")),
    ]  # fmt: skip


def _proofless_rows(results: Results, dataset: str, sizes: Sequence[int]) -> list[list[str]]:
    """Models whose label no change of edges can alter: their accuracy is certified at every size."""
    node_task = dataset_info(dataset).task == "node"
    many = len(sizes) - (0 in sizes)
    found: list[tuple[str, Spread | None, str, str]] = []
    mlp = results.of(main_setting(dataset, "none", model="mlp"))
    if mlp:
        name = "MLP, no graph" if node_task else "bag of nodes, no edges"
        found.append(
            (
                name,
                spread_of(mlp, "accuracy_whole_graph"),
                seconds(spread_of(mlp, "seconds_training")),
                _whole(mlp, "epochs"),
            )
        )
    for division in DIVISIONS:
        edgeless = results.spread(main_setting(dataset, division), "accuracy_edgeless")
        found.append((f"edgeless prediction of GCN, {LETTER[division]}", edgeless, NOTHING, NOTHING))
    majority = spread_of(
        [row for division in DIVISIONS for row in results.of(main_setting(dataset, division))], "accuracy_majority"
    )
    found.append(("majority class", majority, NOTHING, NOTHING))
    return [
        [name, str(one), NOTHING, *[share(one.mean)] * many, NOTHING, training, epochs, "0 s"]
        for name, one, training, epochs in found
        if one is not None
    ]


def graph_free_table(results: Results) -> str:
    """How much of a node's vote comes from the graph at all."""
    rows = []
    for dataset in _of_task(results, "node"):
        info = dataset_info(dataset)
        for division in DIVISIONS:
            main = main_setting(dataset, division)
            if results.of(main):
                shares = [
                    results.spread(setting, field)
                    for setting, field in (
                        (main, "accuracy"), (main, "accuracy_edgeless"),
                        (Setting(dataset, model="mlp"), "accuracy_whole_graph"),
                        (main, "accuracy_whole_graph"), (Setting(dataset), "accuracy_whole_graph"),
                        (main, "accuracy_majority"),
                    )
                ]  # fmt: skip
                rows.append([
                    f"{NAMES[dataset]}, {LETTER[division]}", f"{2 * info.edges / info.size:.1f}",
                    _percent(results.spread(main, "reached_ballots")),
                    _percent(results.spread(main, "vote_differs_from_edgeless")), *map(_told, shares),
                ])  # fmt: skip
    titles = [
        "GCN, T=300", "mean degree", "ballots with an edge", "vote ≠ edgeless", "vote", "edgeless", "MLP",
        "same weights, whole graph", "undefended GCN", "majority class",
    ]  # fmt: skip
    return markdown(titles, rows)


def majority_table(results: Results) -> str:
    """Graph classification against a constant answer and a model without edges."""
    rows = []
    for dataset in _of_task(results, "graph"):
        for division in DIVISIONS:
            main = main_setting(dataset, division)
            found = results.of(main)
            majority = results.spread(main, "accuracy_majority")
            if found and majority is not None:
                above = above_until(found, majority.mean)
                rows.append([
                    f"{NAMES[dataset]}, {LETTER[division]}", _told(majority),
                    _told(results.spread(Setting(dataset, model="mlp"), "accuracy_whole_graph")),
                    _told(results.spread(main, "accuracy")),
                    *(_told(certified_at(found, size)) for size in (1, 5, 10)),
                    "nowhere" if above is None else f"size {above}",
                    _told(results.spread(main, "certified_unlimited_edges")),
                ])  # fmt: skip
    titles = [
        "GCN, T=30", "majority class", "bag of nodes", "vote", "at 1", "at 5", "at 10", "above majority up to",
        "any number of edges",
    ]  # fmt: skip
    return markdown(titles, rows)


def above_until(rows: Sequence[Row], level: float) -> int | None:
    """The largest size at which certified accuracy is above a level; None if it never is."""
    above = []
    for size in rows[0]["sizes"]:
        at = certified_at(rows, size)
        if at is not None and at.mean > level:
            above.append(int(size))
    return max(above, default=None)


def variation_table(
    results: Results, field: str, values: Sequence[Any], label: Callable[[Any], str], **changes: Any
) -> str:
    """Accuracy and certified accuracy for several values of one field, with one seed, all else being equal."""
    rows = []
    for dataset in results.datasets:
        for division in DIVISIONS:
            settings = [main_setting(dataset, division, **{**changes, field: value}) for value in values]
            found = [results.rows.get(setting) for setting in settings]
            if sum(row is not None for row in found) > 1:
                size = MIDDLE[dataset_info(dataset).task]
                rows.append([f"{NAMES[dataset]}, {LETTER[division]}", *(_pair(row, size) for row in found)])
    return markdown(["accuracy / certified", *map(label, values)], rows)


def _pair(row: Row | None, size: int) -> str:
    at = None if row is None else certified_at([row], size)
    return NOTHING if row is None or at is None else f"{share(row['accuracy'])} / {share(at.mean)}"


def larger_table(results: Results) -> str:
    """A plain GCN and a deeper one with residual connections."""
    rows = []
    for dataset in results.datasets:
        deep = {"model": "resgcn", "num_layers": 6}
        for changes in ({}, {"num_layers": 3}, deep):
            settings = [main_setting(dataset, d, **changes) for d in ("none", *DIVISIONS)]
            if not any(results.of(main_setting(dataset, d, **deep)) for d in ("none", *DIVISIONS)):
                continue
            made = next((row for setting in settings for row in results.of(setting)), None)
            if made is not None:
                layers = made["recipe"]["model"]["num_layers"]
                found = [results.rows.get(setting) for setting in settings]
                size = MIDDLE[dataset_info(dataset).task]
                plain = NOTHING if found[0] is None else share(found[0]["accuracy_whole_graph"])
                took = [NOTHING if row is None else f"{row['seconds_per_epoch']:.2g} s" for row in found]
                name = f"{NAMES[dataset]}: {MODELS[settings[0].model]}, {layers} layers"
                rows.append([name, plain, *(_pair(row, size) for row in found[1:]), *took])
    titles = ["accuracy / certified", "undefended", "E", "N", "epoch, undefended", "epoch, E", "epoch, N"]
    return markdown(titles, rows)


def seconds(spread: Spread | None) -> str:
    """A time with two digits that mean something.

    Example:
        >>> seconds(Spread(0.0575, 0, 0, 1)), seconds(Spread(123.4, 0, 0, 1))
        ('0.058 s', '123 s')
    """
    if spread is None:
        return NOTHING
    value = spread.mean
    return f"{value:.0f} s" if value >= 10 else f"{value:.1f} s" if value >= 1 else f"{value:.2g} s"


def _of_task(results: Results, task: str) -> list[str]:
    return [name for name in results.datasets if dataset_info(name).task == task]


def _told(spread: Spread | None) -> str:
    return NOTHING if spread is None else share(spread.mean)


def _percent(spread: Spread | None) -> str:
    return NOTHING if spread is None else f"{100 * spread.mean:.2f} %"


def _whole(rows: Sequence[Row], field: str) -> str:
    spread = spread_of(rows, field)
    return NOTHING if spread is None else f"{spread.mean:.0f}"


def time_table(results: Results) -> str:
    """Seconds for certifying all test targets and for an epoch of training, the paper's and ours."""
    rows = []
    for dataset in results.datasets:
        plain = results.of(Setting(dataset))
        for k, division in enumerate(DIVISIONS):
            found = results.of(main_setting(dataset, division))
            certify, epoch = spread_of(found, "seconds_certification"), spread_of(found, "seconds_per_epoch")
            if certify is not None and epoch is not None:
                theirs = paper.CERTIFICATION_SECONDS.get(dataset), paper.EPOCH_SECONDS.get(dataset)
                passes, epochs = (spread_of(found, "seconds_plain_forward"), spread_of(plain, "seconds_per_epoch"))
                rows.append([
                    f"{NAMES[dataset]}, {LETTER[division]}", *_times(theirs[0], k, certify),
                    seconds(passes), ratio(certify, passes),
                    *_times(theirs[1], k, epoch), seconds(epochs), ratio(epoch, epochs),
                ])  # fmt: skip
    titles = [
        "GCN", "certification, paper", "ours", "paper ÷ ours", "plain pass", "certification ÷ pass",
        "epoch, paper", "ours", "paper ÷ ours", "undefended epoch", "ours ÷ undefended",
    ]  # fmt: skip
    return markdown(titles, rows)


def _times(theirs: tuple[float, float] | None, k: int, ours: Spread) -> tuple[str, str, str]:
    if theirs is None:
        return NOTHING, seconds(ours), NOTHING
    return f"{theirs[k]:g} s", seconds(ours), f"{theirs[k] / ours.mean:,.0f}"


def ratio(a: Spread | None, b: Spread | None) -> str:
    """How many times ``b`` goes into ``a``."""
    return NOTHING if a is None or b is None or b.mean == 0 else f"{a.mean / b.mean:.1f}"


def recipe_table(results: Results) -> str:
    """How the models of the main results were trained."""
    rows = []
    for dataset in results.datasets:
        found = next((r for d in DIVISIONS for r in results.of(main_setting(dataset, d))), None)
        if found is not None:
            told = [", ".join(f"{k} {v}" for k, v in found["recipe"][part].items()) for part in ("model", "fit")]
            runs = [row for setting, row in results.rows.items() if setting.dataset == dataset]
            total = sum(row["seconds_training"] + row.get("seconds_certification", 0) for row in runs)
            rows.append([NAMES[dataset], *told, str(len(runs)), f"{total / 60:.1f} min"])
    return markdown(["dataset", "model", "training", "runs", "all of them took"], rows)


def benchmark_table(results: Results) -> str:
    """What ``make bench`` measured on an idle machine, in plain passes and plain training steps."""
    columns = (
        ("votes, in plain passes", "fast_in_plain_forwards", "{:.1f}"),
        ("one by one ÷ ours", "naive_over_fast", "{:,.0f}"),
        ("training step, in plain steps", "fast_in_plain_steps", "{:.1f}"),
        ("sum of T+1 ÷ ours", "naive_over_fast_step", "{:,.0f}"),
    )
    measured = results.benchmarks.get("engines", {}).get("rows", [])
    rows = [
        [
            f"{NAMES.get(row['dataset'], row['dataset'])}, {row['division']}",
            *(form.format(row[key]) if key in row else NOTHING for _, key, form in columns),
        ]
        for row in measured
    ]
    return markdown(["GCN", *(title for title, _, _ in columns)], rows)
