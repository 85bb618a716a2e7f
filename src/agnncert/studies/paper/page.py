"""Writes the results page: Markdown and SVG figures, from the rows alone."""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from agnncert.errors import SettingsError
from agnncert.studies.paper import defences, prose, tables
from agnncert.studies.paper import published as paper
from agnncert.studies.paper.figures import Figure, draw_figures
from agnncert.studies.paper.rows import MODELS, NAMES, OBJECTIVES, Results
from agnncert.studies.paper.spec import EXPERIMENTS, Run, settings_of


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
        folder: How the page calls the folder that holds the rows.

    Returns:
        The page.

    Raises:
        SettingsError: jinja2 or matplotlib is not installed.
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
    try:
        from jinja2 import Environment, PackageLoader, StrictUndefined
    except ImportError:
        raise SettingsError(
            'the results page is written with jinja2, which is not installed: pip install "agnncert[report]".'
        ) from None
    loader = PackageLoader("agnncert.studies.paper", ".")
    environment = Environment(loader=loader, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    missing = results.missing(names, small)
    text = environment.get_template("results.md.j2").render(
        **{"results": results, "prose": prose, "tables": tables, "defences": defences, "paper": paper, "NAMES": NAMES},
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
        f"{OBJECTIVES['balanced'].capitalize()} averages each of the terms (whole graph, ballots with an edge, "
        f"edgeless prediction) by itself; the {OBJECTIVES['paper']} adds up T + 1 losses; {OBJECTIVES['vote']}, for "
        "graphs, is the loss of the mean of all ballots' probabilities."
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
