"""What it cost: seconds of training and certification, the paper's and ours, and how the models were trained."""

from agnncert.experiments import paper
from agnncert.experiments.results import LETTER, NAMES, Results, Spread, spread_of
from agnncert.experiments.spec import DIVISIONS, Setting, main_setting
from agnncert.experiments.tables import NOTHING, markdown, seconds


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
                passes, epochs = (
                    spread_of(found, "seconds_plain_forward"),
                    spread_of(plain, "seconds_per_epoch"),
                )
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
            told = [
                ", ".join(f"{k} {v}" for k, v in found["recipe"][part].items()) for part in ("model", "fit")
            ]
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
