"""The page that ``python -m experiments`` writes: tables and figures of the rows. What has no rows is left out."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from agnncert.datasets.catalog import dataset_info
from agnncert.report.drawing import Curve, Level, Panel, Spoken, draw_panels
from experiments.paper import defences, prose, tables, votes
from experiments.paper.defences import compared, comparison_panels
from experiments.paper.labels import label_beside
from experiments.paper.rows import MODELS, NAMES, OBJECTIVES, Results, Row, certified_at, share
from experiments.paper.spec import DIVISIONS, EXPERIMENTS, Run, Setting, main_setting, settings_of
from experiments.paper.tables import named, of_task

SIZE_WORDS = "size of the attack (E: edges, N: edges or nodes)"


@dataclass(frozen=True)
class Figure:
    """A figure that was drawn.

    Attributes:
        name: What it shows: ``"groups"``, ``"hashes"``, …
        subject: Dataset or task.
        path: The file.
        about: A description in words.
    """

    name: str
    subject: str
    path: Path
    about: str


def draw_figures(results: Results, folder: str | Path) -> list[Figure]:
    """Draws every figure that has rows, each as SVG, and returns what was drawn."""
    drawn = []
    for name, subject, panels in _figures(results):
        if panels:
            about = " ".join(_spoken(panel) for panel in panels)
            size_words = "size of the attack" if name == "comparisons" else SIZE_WORDS
            spoken = Spoken(f"{subject}, {name}", about)
            path = draw_panels(panels, Path(folder) / f"{name}-{subject}.svg", size_words, spoken, label=label_beside)
            drawn.append(Figure(name, subject, path, about))
    return drawn


def _figures(results: Results) -> Iterator[tuple[str, str, list[Panel]]]:
    for dataset in results.datasets:
        yield "groups", dataset, _varied(results, [dataset], "num_groups", lambda v: f"T={v}", least=1)
    for task in ("node", "graph"):
        datasets = of_task(results, task)
        yield "hashes", task, _varied(results, datasets, "hash", str)
        yield "models", task, _varied(results, datasets, "model", MODELS.__getitem__)
        yield "subgraphs", task, _varied(results, datasets, "objective", OBJECTIVES.__getitem__)
        yield "protocols", task, _varied(results, datasets, "protocol", str)
        yield "larger", task, _larger(results, datasets)
        yield "neighbours", task, _neighbours(results, datasets)
    for dataset in compared(results):
        yield "comparisons", dataset, comparison_panels(results, dataset)


def _mains(datasets: Iterable[str]) -> list[Setting]:
    return [main_setting(dataset, division) for dataset in datasets for division in DIVISIONS]


def _varied(
    results: Results, datasets: Iterable[str], field: str, label: Callable[[Any], str], least: int = 2
) -> list[Panel]:
    """For each dataset and division a panel with one curve per value of a field, if it has enough curves."""
    by_value = {setting: results.varied(setting, field) for setting in _mains(datasets)}
    looks = sorted({value for rows in by_value.values() for value in rows}, key=_rank)
    panels = []
    for setting, rows in by_value.items():
        curves = [curve_of(label(value), looks.index(value), rows[value]) for value in sorted(rows, key=_rank)]
        levels = levels_of(results, setting)
        if field == "protocol":
            levels += _undefended(results, replace(setting, protocol="inductive"), " inductive")
        if len(curves) >= least:
            panels.append(Panel(_title(setting), curves, levels))
    return panels


def _rank(value: Any) -> Any:
    """The usual value of a field first; numbers in their order."""
    usual = (*MODELS, *OBJECTIVES, "md5", "sha1", "sha256", "transductive", "inductive")
    return value if isinstance(value, int) else usual.index(value) if value in usual else len(usual)


def _larger(results: Results, datasets: Iterable[str]) -> list[Panel]:
    """A plain GCN against six layers with residual connections."""
    panels = []
    for setting in _mains(datasets):
        deep = results.of(replace(setting, model="resgcn", num_layers=6))
        three = replace(setting, num_layers=3)
        shallow = three if results.of(three) else setting
        plain = results.of(shallow)
        if deep and plain:
            layers = plain[0]["recipe"]["model"]["num_layers"]
            curves = [curve_of(f"GCN, {layers} layers", 0, plain), curve_of("residual GCN, 6 layers", 1, deep)]
            panels.append(Panel(_title(setting), curves, levels_of(results, shallow)))
    return panels


def _neighbours(results: Results, datasets: Iterable[str]) -> list[Panel]:
    """Certified accuracy over the paper's size, and over new neighbours of the target with all else unlimited."""
    panels = []
    for setting in _mains(datasets):
        rows = [row for row in results.of(setting) if "certified_neighbours" in row]
        if rows:
            free = curve_of("new neighbours only", 1, rows, "certified_neighbours")
            curves = [curve_of("paper's size", 0, rows), free]
            panels.append(Panel(_title(setting), curves, levels_of(results, setting)))
    return panels


def curve_of(label: str, look: int, rows: Sequence[Row], field: str = "certified") -> Curve:
    """Certified accuracy over size, mean and range over rows that differ in the seed alone."""
    sizes = rows[0]["sizes"]
    spreads = [spread for size in sizes if (spread := certified_at(rows, size, field)) is not None]
    return Curve(label, look, sizes, [s.mean for s in spreads], [s.low for s in spreads], [s.high for s in spreads])


def levels_of(results: Results, setting: Setting) -> list[Level]:
    """What a certified curve is compared with: the undefended model, and models that need no proof."""
    without_edges = "MLP" if dataset_info(setting.dataset).task == "node" else "bag of nodes"
    known = (
        ("mlp", without_edges, results.spread(Setting(setting.dataset, model="mlp"), "accuracy_whole_graph")),
        ("no_edge", "no_edge", results.spread(setting, "accuracy_no_edge")),
        ("majority", "majority class", results.spread(setting, "accuracy_majority")),
    )
    levels = [Level(kind, label, accuracy.mean) for kind, label, accuracy in known if accuracy is not None]
    return _undefended(results, setting) + levels + votes.raised(results, setting.dataset)


def _undefended(results: Results, setting: Setting, word: str = "") -> list[Level]:
    accuracy = results.spread(replace(setting, division="none", num_groups=0), "accuracy_whole_graph")
    return [] if accuracy is None else [Level("undefended", f"undefended{word}", accuracy.mean)]


def _title(setting: Setting) -> str:
    return named(setting.dataset, setting.division)


def _spoken(panel: Panel) -> str:
    """A panel in words, for screen readers."""
    curves = [f"{c.label} {share(c.mean[0])} at size 0, half of that up to {_half(c)}" for c in panel.curves]
    levels = [f"{level.label} {share(level.value)}" for level in panel.levels]
    return f"{panel.title}: {'; '.join(curves + levels)}."


def _half(curve: Curve) -> int:
    return int(max(size for size, value in zip(curve.sizes, curve.mean, strict=True) if value >= curve.mean[0] / 2))


def write_page(
    results: Results,
    page: str | Path,
    names: Sequence[str] = tuple(EXPERIMENTS),
    small: bool = False,
    folder: str = "results",
) -> Path:
    """Draws all figures beside a Markdown page and writes the page.

    Args:
        results: The rows.
        page: The file to write; figures go to a folder of the same name without its ending.
        names: Experiments that are expected to be there, for the list of what is missing.
        small: Whether their small versions are expected.
        folder: What the page calls the folder that holds the rows.

    Returns:
        The page.

    Raises:
        MissingPackage: matplotlib is not installed.
    """
    page = Path(page)
    text = page_text(results, draw_figures(results, page.with_suffix("")), page, names, small, folder)
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(text, encoding="utf-8")
    return page


def page_text(
    results: Results,
    figures: Sequence[Figure],
    page: Path,
    names: Sequence[str] = tuple(EXPERIMENTS),
    small: bool = False,
    folder: str = "results",
) -> str:
    """The text of the page, with links to figures; see :func:`write_page`."""
    loader = PackageLoader("experiments.paper", ".")
    environment = Environment(loader=loader, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    missing = results.missing(names, small)
    text = environment.get_template("results.md.j2").render(
        **{"results": results, "prose": prose, "tables": tables, "defences": defences, "NAMES": NAMES},
        folder=folder,
        names=names,
        figures=[_linked(figure, page) for figure in figures],
        variations=list(_variations(results)),
        missing=missing,
        missing_lines=missing_lines(missing, names, small),
    )
    return _tidy(text)


def _variations(results: Results) -> Iterator[dict[str, str]]:
    """The sections that change one thing and leave all else as it is."""
    one_seed = (
        "In the table: accuracy of the vote / certified accuracy at size "
        f"{tables.MIDDLE['node']} (nodes) or {tables.MIDDLE['graph']} (graphs), with one and the same seed."
    )
    why_inductive = "Robustness measured where the test nodes were seen in training may be memorised."
    hide = "Hiding the test nodes and their edges while training"
    sections: tuple[tuple[str, str, str, tuple[str, ...], Callable[[str], str], list[str]], ...] = (
        ("The hash function", "hashes", "hash", ("md5", "sha1", "sha256"), str,
         [prose.variation_words(results, "hash", ("md5", other), f"{other} instead of md5")
          for other in ("sha1", "sha256")]),
        ("Base models", "models", "model", ("gcn", "sage", "gat"), MODELS.__getitem__, []),
        ("Training with and without subgraphs", "subgraphs", "objective", ("full", "paper", "balanced", "vote"),
         OBJECTIVES.__getitem__, _objective_words(results)),
        ("Transductive and inductive training", "protocols", "protocol", ("transductive", "inductive"), str,
         [why_inductive, prose.variation_words(results, "protocol", ("transductive", "inductive"), hide),
          prose.inductive_words(results)]),
    )  # fmt: skip
    for title, name, field, values, label, sentences in sections:
        text = " ".join([*filter(None, sentences), one_seed])
        table = tables.variation_table(results, field, values, label)
        yield {"title": title, "text": text, "figures": name, "table": table}
    text = "Six layers with residual connections against a plain GCN."
    yield {"title": "A larger model", "text": text, "figures": "larger", "table": tables.larger_table(results)}


def _objective_words(results: Results) -> list[str]:
    """What the objectives mean, and how much they change."""
    meant = (
        f"{OBJECTIVES['balanced'].capitalize()} averages each of the terms (whole graph, votes with an edge, "
        f"prediction without edges) by itself; the {OBJECTIVES['paper']} adds up T + 1 losses; {OBJECTIVES['vote']}, for "
        "graphs, is the loss of the mean of all votes' probabilities."
    )
    changed = [
        prose.variation_words(results, "objective", ("full", objective), what)
        for objective, what in (
            ("balanced", "Training on the subgraphs too, with our weighting,"),
            ("paper", "Training on the subgraphs too, with the paper's sum,"),
            ("vote", "Training the vote"),
        )
    ]
    return [meant, *changed] if any(changed) else []


def missing_lines(missing: Sequence[Run], names: Sequence[str], small: bool) -> list[str]:
    """What is missing: per dataset the number of runs, and the experiments that want them."""
    wanted = {name: set(settings_of(name, small)) for name in names}
    lines = []
    for dataset in dict.fromkeys(setting.dataset for setting in missing):
        runs = [setting for setting in missing if setting.dataset == dataset]
        counts = {name: sum(setting in wanted[name] for setting in runs) for name in names}
        parts = ", ".join(f"{name} {number}" for name, number in counts.items() if number)
        lines.append(f"{NAMES[dataset]}: {len(runs)} ({parts})")
    return lines


def _linked(figure: Figure, page: Path) -> dict[str, str]:
    link = Path(os.path.relpath(figure.path, page.parent)).as_posix()
    subject = NAMES.get(figure.subject, f"{figure.subject} classification")
    alt = f"Certified accuracy over size: {figure.name}, {subject}. The file describes itself in words."
    return {"name": figure.name, "subject": figure.subject, "link": link, "alt": alt}


def _tidy(text: str) -> str:
    """No more than one empty line in a row, no blanks at the end of a line."""
    lines: list[str] = []
    for line in (line.rstrip() for line in text.splitlines()):
        if line or (lines and lines[-1]):
            lines.append(line)
    return "\n".join(lines).strip() + "\n"
