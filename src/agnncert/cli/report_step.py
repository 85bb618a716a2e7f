"""The last step of a run: the page of its certificate, and a few sentences and a table that sum it up."""

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from agnncert.addons import addons
from agnncert.certificates.budget import Budget, Prices
from agnncert.certificates.claim import Claim
from agnncert.certificates.file import read_contents
from agnncert.cli.ages import ages_of_run, has_ages, looked_up
from agnncert.cli.controls_step import add_scores, controls_of_file, stored_controls
from agnncert.cli.folder import CHOICE, RunFolder, find_run
from agnncert.controls.table import ComparedControls
from agnncert.errors import BudgetError, CertificateError, did_you_mean
from agnncert.explanation import VoteExplanation
from agnncert.proving.certificate import Certificate, load_certificate
from agnncert.proving.groups import ranges
from agnncert.report.figures import save_figures, save_tables
from agnncert.report.page import build_report
from agnncert.report.summary import AT_MOST, BY_SIZE, VOTES_REFERENCE, ReportContext, summarise
from agnncert.report.tables import laid_out
from agnncert.report.text import (
    beside,
    class_records,
    class_table,
    few_sizes,
    headline,
    models_table,
    threshold_table,
)
from agnncert.verifier.kinds import checked

UNDER_ATTACK = "accuracy under attack"
RECALL, FALSE_POSITIVES = "recall of class", "false positive rate of class"  # with its number, in rows of results


@dataclass(frozen=True)
class Reported:
    """A report."""

    claim: Claim
    excluded: tuple[str, ...]  # who cannot get which label, as far as stated
    issued: Mapping[str, str]  # who issued it, when, for which system and until when, as far as stated
    page: Path | None  # None if none was to be written
    files: tuple[Path, ...]  # figures and tables for papers, if they were asked for
    sentences: tuple[str, str, str]  # what is proved, what must be read with it, how to verify it
    table: str  # what is certified of each class at a few sizes; empty if no truth is known
    classes: list[dict[str, Any]]  # the same as records
    class_names: tuple[str, ...]  # what the certificate calls its classes; empty if they have numbers only
    controls: ComparedControls | None = None  # models without a proof at the same operating point, if there are some
    further: tuple[str, ...] = ()  # tables: what was requested of a threshold, and other models without an attack

    @property
    def text(self) -> str:
        """One sentence, tables, what is not covered, and how to check it."""
        proved, more, check = self.sentences
        tables = [each for each in (self.table, *self.further, self.table_of_controls) if each]
        last = "\n".join(part for part in (more, check) if part)
        return "\n\n".join([proved, *tables, last])

    @property
    def table_of_controls(self) -> str:
        """The certified model and its controls at the same operating point; empty if there are none."""
        if self.controls is None:
            return ""
        titles, rows = self.controls.table()
        return laid_out("text", titles, rows, "ll" + "r" * (len(titles) - 2)).replace("\u00a0", " ")


def report_run(
    source: str | Path,
    out: str | Path | None = None,
    papers: str | Path | None = None,
    write: bool = True,
    explanations: Sequence[VoteExplanation] = (),
    scores: Path | None = None,
) -> Reported:
    """Writes the report of a certificate, or of a run folder, whose other contents are shown beside the certificate.

    Args:
        source: The certificate or the run folder.
        out: The page to write. Defaults to ``report.html`` beside the certificate, or to a file with the name of the
            certificate if that is not ``certificate.cert``: each certificate in a folder has its own page.
        papers: A folder for figures (SVG, PDF) and tables (CSV, JSON, LaTeX).
        write: Whether to write the page.
        explanations: Explanations of single targets, shown in the page.
        scores: A table with the user's own scores, one more control. A run folder keeps them. None by default.
    """
    file = Path(source, "certificate.cert") if Path(source).is_dir() else Path(source)
    folder = find_run(file)
    if folder is not None and file.name != folder.certificate.name:
        folder = None  # it is about another certificate
    return report_certificate(
        load_certificate(file), file, folder, out, papers, write, explanations=explanations, scores=scores
    )


def report_certificate(
    certificate: Certificate,
    file: Path,
    folder: RunFolder | None,
    out: str | Path | None = None,
    papers: str | Path | None = None,
    write: bool = True,
    *,
    explanations: Sequence[VoteExplanation] = (),
    scores: Path | None = None,
) -> Reported:
    """Sums up a certificate that is loaded already, and writes its page; ``file`` is where it is stored."""
    if scores is not None and folder is not None:
        add_scores(folder, certificate, scores, _positive(folder))
    context = ReportContext() if folder is None else context_of(folder, certificate)
    if scores is not None and folder is None:
        context = replace(context, controls=controls_of_file(scores, certificate, None))
    context = replace(context, certificate_path=str(file), explanations=tuple(explanations))
    if folder is not None:
        context = replace(context, run_path=str(folder), run_options=folder.options)
    page, files = None, tuple[Path, ...]()
    if write:
        name = "report.html" if file.stem == "certificate" else f"{file.stem}.html"
        page = build_report(certificate, out or file.with_name(name), context=context)
    if papers is not None:
        files = (*save_figures(certificate, papers, context), *save_tables(certificate, papers, context))
    summary = summarise(certificate, context)
    check = f"agnncert verify {shlex.quote(str(file))}"
    more = (
        f"{check} --data … --model …"
        if folder is None
        else f"agnncert verify {shlex.quote(str(folder))}{folder.options}"
    )
    check = f"Check the arithmetic, from the file alone: {check}. Check it against data and model: {more}"
    proved, read_with = (
        words.replace("\u00a0", " ") for words in (f"{headline(summary)}.", "\n".join(beside(summary)))
    )
    table = _as_text(*class_table(summary))
    models = [_as_text(*made(summary)) for made in (threshold_table, models_table)]
    classes = class_records(summary, [-1, *few_sizes(summary)])
    said = (proved, read_with, check)
    stated = exclusions(file, context.class_names)
    return Reported(
        certificate.claim,
        stated,
        certificate.issued,
        page,
        files,
        said,
        table,
        classes,
        certificate.class_names,
        summary.compared,
        tuple(each for each in models if each),
    )


def _as_text(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns a table for a terminal; empty if it has no rows."""
    if not rows:
        return ""
    sides = "l" + "r" * (len(titles) - 1) if titles[-1] != "proof" else "l" + "r" * (len(titles) - 2) + "l"
    return laid_out("text", titles, rows, sides).replace("\u00a0", " ")


def _positive(folder: RunFolder) -> str | None:
    """Returns the class that a threshold of the run was to find, if one was named."""
    named = folder.settings.get("certify", {}).get("positive")
    return None if named is None else str(named)


def exclusions(file: Path, names: Sequence[str] | None) -> tuple[str, ...]:
    """What a file states about labels that targets cannot get, a line for each budget."""
    contents, lines = read_contents(file), []
    names = names or contents.class_names
    for budget, numbers in zip(contents.budgets, contents.excluded, strict=False):
        words = []
        for k, number in enumerate(numbers):
            others, name = int((contents.arrays["label"] != k).sum()), names[k] if names else f"label {k}"
            words.append(f"{number:,} of the {others:,} that are not {name} cannot become {name}")
        lines.append(f"{budget}: {'; '.join(words)}.")
    return tuple(lines)


def about_budget(file: Path, given: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """Which labels are possible within a budget, as numbers and in words; derived twice, in different code.

    Raises:
        CertificateError: Prover and verifier do not agree.
    """
    certificate, budget = load_certificate(file), Budget().but(**unlimited(given))
    possible, n = certificate.possible(budget), certificate.num_targets
    if not np.array_equal(possible, checked(read_contents(file)).possible(budget)):
        raise CertificateError(f"{file}: the possible labels that were derived do not stand a second count.")
    held, mean = int((possible.sum(axis=1) == 1).sum()), float(possible.sum(axis=1).mean()) if n else 0.0
    first = f"{budget}: {held:,} of {n:,} labels cannot change."
    lines = [f"{first} Of {possible.shape[1]} labels {mean:.2f} are possible on average."]
    excluded = {}
    for k in range(possible.shape[1]):
        others = int((certificate.label != k).sum())
        excluded[k] = int((~possible[:, k]).sum())
        name = _label_word(certificate, k)
        lines.append(f"  {excluded[k]:,} of the {others:,} targets with another label cannot get {name}.")
    if not certificate.evidence.covers(budget):
        lines = [f"{budget}: this certificate proves nothing about such attacks. It is about {certificate.claim.unit}."]
    answer = {"labels_that_hold": held, "possible_labels": mean, "excluded": excluded}
    return {**answer, "class_names": certificate.class_names}, "\n".join(lines)


def _label_word(certificate: Certificate, k: int) -> str:
    """Returns a label by the name of its class, or by its number."""
    return f"the label “{certificate.class_names[k]}”" if certificate.class_names else f"label {k}"


def about_prices(file: Path, given: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """What it costs at least to change labels, as numbers and in words."""
    certificate = load_certificate(file)
    if unknown := [name for name in given if name not in Prices.__dataclass_fields__ or name == "total"]:
        raise BudgetError(f'unknown price "{unknown[0]}": {did_you_mean(unknown[0], Prices.__dataclass_fields__)}')
    prices, costs = Prices(**unlimited(given)), dict[str, Any]()
    lines = [f"{prices}: every attack costs at least as much"]
    for k in (None, *range(certificate.counts.shape[1])):
        others = np.ones(certificate.num_targets, dtype=bool) if k is None else certificate.label != k
        if others.any():
            cost = np.sort(certificate.cheapest(prices, k)[others])
            least, middle = (float(cost[place]) for place in (0, (len(cost) - 1) // 2))
            known = [price if math.isfinite(price) else "inf" for price in (least, middle)]
            costs["any label" if k is None else f"label {k}"] = known
            what = "that changes a label"
            if k is not None:
                what = f"that gives another target {_label_word(certificate, k)}"
            lines.append(f"  {what}: {least:g}; for half of them {middle:g} or more")
    return {"prices": costs, "class_names": certificate.class_names}, "\n".join(lines)


def unlimited(given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns amounts with infinity for the word ``inf``."""
    return {name: math.inf if value == "inf" else value for name, value in given.items()}


def context_of(folder: RunFolder, certificate: Certificate) -> ReportContext:
    """What a run folder knows beyond its certificate."""
    rows, data, steps = folder.rows(), folder.data, folder.settings
    known = {row["measure"]: row["value"] for row in rows if row["size"] is None}
    attacks = [row for row in rows if row["measure"].startswith(UNDER_ATTACK)]
    by_size: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        if row["size"] is not None:
            by_size.setdefault(row["measure"], []).append((row["size"], row["value"]))
    undefended = known.get("accuracy, undefended")
    if undefended is None and certificate.evidence.defends_plain_model:
        undefended = known.get("accuracy on the whole graph")
    on_graphs = certificate.claim.task == "graph"
    no_edges = known.get("accuracy, no edges")
    names = certificate.class_names or data.get("class_names")
    unit = addons("agnncert.attack_units").get(str(data.get("name")))
    times = {name: known[name] for name in ("seconds of training", "seconds of certification") if name in known}
    return ReportContext(
        words=folder.words,
        controls=stored_controls(folder, certificate),
        positive=_positive(folder) if certificate.counts.shape[1] == 2 else None,
        same_alerts="alerts" in steps.get("certify", {}),
        class_names=names if names and len(names) == certificate.counts.shape[1] else None,
        dataset=str(data.get("name", "")),
        undefended=undefended,
        mlp=None if on_graphs else no_edges,
        bag_of_nodes=no_edges if on_graphs else None,
        majority=known.get("accuracy, majority class"),
        by_class=_recorded_classes(known, certificate.counts.shape[1], "bag_of_nodes" if on_graphs else "mlp"),
        size_only=by_size.get(BY_SIZE, ()),
        possible={name: pairs for name, pairs in by_size.items() if name.startswith((AT_MOST, VOTES_REFERENCE))},
        attacked=[(row["size"], row["value"]) for row in attacks],
        attack=attacks[0]["measure"].removeprefix(UNDER_ATTACK).strip(" ()") if attacks else "",
        environment={**folder.read_json("environment.json"), **times},
        commands=[f"agnncert {step} --settings settings.toml" for step in steps],
        choice=str(folder.read_json(CHOICE).get("text", "")),
        unit=None if unit is None else unit.load()(certificate),
        groups=_groups(folder, certificate),
    )


def _groups(folder: RunFolder, certificate: Certificate) -> dict[str, list[Any]]:
    """Returns the ranges of days since the first event, if the folder holds a table of events with times."""
    if certificate.truth is None or not has_ages(folder):
        return {}
    return {"days since the first event": list(ranges(looked_up(certificate, ages_of_run(folder))))}


def _recorded_classes(known: dict[str, Any], num_classes: int, no_edges: str) -> dict[str, list[tuple[float, float]]]:
    """Recall and false positive rate of each class, by model, where training has recorded them."""
    found = {}
    for key, word in ((no_edges, "no edges"), ("undefended", "undefended")):
        names = [(f"{RECALL} {k}, {word}", f"{FALSE_POSITIVES} {k}, {word}") for k in range(num_classes)]
        if any(name in known for pair in names for name in pair):
            found[key] = [(known.get(recall, math.nan), known.get(false, math.nan)) for recall, false in names]
    return found
