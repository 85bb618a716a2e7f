"""The last step of a run: the page of its certificate, and a few sentences and a table that sum it up."""

import math
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agnncert.addons import addons
from agnncert.certificates.claim import Claim
from agnncert.cli.folder import VOTE, RunFolder, find_run
from agnncert.proving.certificate import Certificate, load_certificate
from agnncert.report.figures import laid_out, save_figures, save_tables
from agnncert.report.page import build_report
from agnncert.report.summary import ReportContext, summarise
from agnncert.report.text import beside, class_records, class_table, few_sizes, headline

UNDER_ATTACK, BY_SIZE = "accuracy under attack", "certified accuracy, size only"
RECALL, FALSE_POSITIVES = "recall of class", "false positive rate of class"  # with its number, in rows of results


@dataclass(frozen=True)
class Reported:
    """A report."""

    claim: Claim
    issued: Mapping[str, str]  # who issued it, when, for which system and until when, as far as stated
    page: Path | None  # None if none was to be written
    files: tuple[Path, ...]  # figures and tables for papers, if they were asked for
    sentences: tuple[str, str, str]  # what is proved, what must be read with it, how to verify it
    table: str  # what is certified of each class at a few sizes; empty if no truth is known
    classes: list[dict[str, Any]]  # the same as records

    @property
    def text(self) -> str:
        """The sentences with the table of the classes between them."""
        proved, more, check = self.sentences
        return "\n".join([proved, more, *([f"\n{self.table}\n"] if self.table else []), check])


def report_run(
    source: str | Path, out: str | Path | None = None, papers: str | Path | None = None, write: bool = True
) -> Reported:
    """Writes the report of a certificate, or of a run folder, whose other contents are shown beside the certificate.

    Args:
        source: The certificate or the run folder.
        out: The page to write. Defaults to ``report.html`` beside the certificate, or to a file with the name of the
            certificate if that is not ``certificate.cert``: each certificate in a folder has its own page.
        papers: A folder for figures (SVG, PDF) and tables (CSV, JSON, LaTeX).
        write: Whether to write the page.
    """
    file = Path(source, "certificate.cert") if Path(source).is_dir() else Path(source)
    folder = find_run(file)
    if folder is not None and file.name != folder.certificate.name:
        folder = None  # it is about another certificate
    return report_certificate(load_certificate(file), file, folder, out, papers, write)


def report_certificate(
    certificate: Certificate,
    file: Path,
    folder: RunFolder | None,
    out: str | Path | None = None,
    papers: str | Path | None = None,
    write: bool = True,
) -> Reported:
    """Sums up a certificate that is loaded already, and writes its page; ``file`` is where it is stored."""
    context = ReportContext() if folder is None else context_of(folder, certificate)
    context = replace(context, certificate_path=str(file), run_path="" if folder is None else str(folder))
    page, files = None, tuple[Path, ...]()
    if write:
        name = "report.html" if file.stem == "certificate" else f"{file.stem}.html"
        page = build_report(certificate, out or file.with_name(name), context=context)
    if papers is not None:
        files = (*save_figures(certificate, papers, context), *save_tables(certificate, papers, context))
    summary = summarise(certificate, context)
    check = f"agnncert verify {shlex.quote(str(file))}"
    more = f"{check} --data … --model …" if folder is None else f"agnncert verify {shlex.quote(str(folder))}"
    check = f"Check the arithmetic, from the file alone: {check}. Check it against data and model: {more}"
    titles, rows = class_table(summary)
    table = laid_out("text", titles, rows, "l" + "r" * (len(titles) - 1)) if rows else ""
    proved, read_with, table = (
        words.replace("\u00a0", " ") for words in (f"{headline(summary)}.", "\n".join(beside(summary)), table)
    )
    classes = class_records(summary, [-1, *few_sizes(summary)])
    return Reported(certificate.claim, certificate.issued, page, files, (proved, read_with, check), table, classes)


def context_of(folder: RunFolder, certificate: Certificate) -> ReportContext:
    """What a run folder knows beyond its certificate."""
    rows, data, steps = folder.rows(), folder.data, folder.settings
    known = {row["measure"]: row["value"] for row in rows if row["size"] is None}
    attacks = [row for row in rows if row["measure"].startswith(UNDER_ATTACK)]
    plain = known.get("accuracy, undefended", known.get("accuracy on the whole graph"))
    on_graphs = certificate.claim.task == "graph"
    no_edges = known.get("accuracy, no edges")
    names = data.get("class_names")
    unit = addons("agnncert.attack_units").get(str(data.get("name")))
    times = {name: known[name] for name in ("seconds of training", "seconds of certification") if name in known}
    return ReportContext(
        class_names=names if names and len(names) == certificate.counts.shape[1] else None,
        dataset=str(data.get("name", "")),
        undefended=plain,
        mlp=None if on_graphs else no_edges,
        bag_of_nodes=no_edges if on_graphs else None,
        majority=known.get("accuracy, majority class"),
        by_class=_recorded_classes(known, certificate.counts.shape[1], "bag_of_nodes" if on_graphs else "mlp"),
        size_only=[
            (row["size"], row["value"]) for row in rows if row["measure"] == BY_SIZE and row["size"] is not None
        ],
        attacked=[(row["size"], row["value"]) for row in attacks],
        attack=attacks[0]["measure"].removeprefix(UNDER_ATTACK).strip(" ()") if attacks else "",
        environment={**folder.read_json("environment.json"), **times},
        commands=[f"agnncert {step} --settings settings.toml" for step in steps],
        choice=str(folder.read_json(VOTE).get("text", "")),
        unit=None if unit is None else unit.load()(certificate),
    )


def _recorded_classes(known: dict[str, Any], num_classes: int, no_edges: str) -> dict[str, list[tuple[float, float]]]:
    """Recall and false positive rate of each class, by model, where training has recorded them."""
    found = {}
    for key, word in ((no_edges, "no edges"), ("undefended", "undefended")):
        names = [(f"{RECALL} {k}, {word}", f"{FALSE_POSITIVES} {k}, {word}") for k in range(num_classes)]
        if any(name in known for pair in names for name in pair):
            found[key] = [(known.get(recall, math.nan), known.get(false, math.nan)) for recall, false in names]
    return found
