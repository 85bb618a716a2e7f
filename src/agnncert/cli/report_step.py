"""The last step of a run: the page of its certificate, and three sentences that sum it up."""

import shlex
from dataclasses import dataclass, replace
from pathlib import Path

from agnncert.addons import addons
from agnncert.cli.folder import VOTE, RunFolder, find_run
from agnncert.comparison.threat import BY_SIZE
from agnncert.proving.certificate import Certificate, load_certificate
from agnncert.report.figures import save_figures, save_tables
from agnncert.report.page import build_report
from agnncert.report.summary import ReportContext, Summary, summarise
from agnncert.report.text import headline, percent, things

UNDER_ATTACK = "accuracy under attack"


@dataclass(frozen=True)
class Reported:
    """A report.

    Attributes:
        page: The HTML file.
        files: Figures and tables for papers, if they were asked for.
        sentences: What is proved, how that compares with models that need no proof, how to verify it.
    """

    page: Path
    files: tuple[Path, ...]
    sentences: tuple[str, str, str]


def report_run(source: str | Path, out: str | Path | None = None, papers: str | Path | None = None) -> Reported:
    """Writes the report of a certificate or of the run that holds one.

    Args:
        source: A certificate, or a run folder. What else the folder knows is shown beside the certificate.
        out: The page to write; ``report.html`` beside the certificate when not given.
        papers: A folder for figures (SVG, PDF) and tables (CSV, LaTeX).
    """
    folder = find_run(source)
    file = folder.certificate if folder is not None and Path(source).is_dir() else Path(source)
    return report_certificate(load_certificate(file), file, folder, out, papers)


def report_certificate(
    certificate: Certificate,
    file: Path,
    folder: RunFolder | None,
    out: str | Path | None = None,
    papers: str | Path | None = None,
) -> Reported:
    """Writes the report of a certificate that is loaded already; ``file`` is where it is stored."""
    context = ReportContext() if folder is None else context_of(folder, certificate)
    context = replace(context, certificate_path=str(file), run_path="" if folder is None else str(folder))
    page = build_report(certificate, out or file.with_name("report.html"), context=context)
    files: tuple[Path, ...] = ()
    if papers is not None:
        files = (*save_figures(certificate, papers, context), *save_tables(certificate, papers, context))
    return Reported(page, files, sentences(certificate, context))


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


def sentences(certificate: Certificate, context: ReportContext) -> tuple[str, str, str]:
    """What is proved, how it compares, how to check it."""
    summary = summarise(certificate, context)
    check = f"agnncert verify {shlex.quote(context.certificate_path or 'certificate.cert')}"
    return (
        f"{headline(summary)}.".replace("\u00a0", " "),
        _comparison(summary).replace("\u00a0", " "),
        f"Anyone can check this without trusting the program that made it: {check}",
    )


# What is said of each model beside the vote; {} is its accuracy.
_BESIDE = {
    "undefended": "an undefended GNN for {}, about which nothing is proved",
    "mlp": "an MLP that sees no edges for {}, which needs no proof",
    "majority": "the most frequent class for {}, which needs no proof",
    "bag_of_nodes": "a model that sees no edges for {}",
}


def _comparison(summary: Summary) -> str:
    """The vote without an attack beside the models that need no proof, on the same targets."""
    if summary.truth is None:
        return f"The {things(summary)} have no known labels, so nothing is said about being right."
    right = percent(float(summary.counted.sum() / summary.num_judged))
    vote = f"Without an attack the vote is right for {right} of the"
    known = {key: percent(value) for key, _, value in summary.references}
    others = [words.format(known[key]) for key, words in _BESIDE.items() if key in known]
    if summary.context.size_only:
        others.append(f"the number of nodes or edges alone for {percent(min(summary.context.size_only)[1])}")
    return "; ".join([f"{vote} {things(summary)}", *others]) + "."
