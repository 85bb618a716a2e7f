"""``build_report``: shows a certificate as one HTML file that needs nothing else."""

import base64
import hashlib
import logging
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2
import numpy as np
from markupsafe import Markup

import agnncert
from agnncert.report import edit_words, explorer, payload, vote_words, words
from agnncert.report.payload import (
    ANY,
    as_text,
    ballot_arrays,
    json_for_html,
    num_detailed,
    pack,
    target_arrays,
    vote_arrays,
)
from agnncert.report.summary import ReportContext, Summary, summarise
from agnncert.storage import write_atomic

if TYPE_CHECKING:
    from agnncert.proof.certificate import Certificate

logger = logging.getLogger(__name__)

_HERE = Path(__file__).parent
_SCRIPTS = ("base", "rules", "own_groups", "charts", "explorer", "table", "detail", "address", "page")
_FONTS = {"Inter": "inter.woff2", "Source Serif 4": "source-serif-4.woff2"}


def build_report(certificate: "Certificate", out_path: str | Path, *, context: ReportContext | None = None) -> Path:
    """Writes a certificate as one HTML page that opens anywhere, without a network.

    The page shows the claim, the certified accuracy, an explorer for other budgets, every target, and how to
    check it all. It holds the numbers themselves: its answers are those of ``certificate.holds_against``.

    Args:
        certificate: What to show.
        out_path: The file to write; its folder is made if it is missing.
        context: What to show beside it: truth, degrees, other models' accuracy, attacks, environment.

    Returns:
        The path of the file.

    Raises:
        SettingsError: The context does not fit the certificate.
    """
    summary = summarise(certificate, context)
    out_path = Path(out_path)
    out_path.parent.mkdir(parents=True, exist_ok=True)
    page = render(summary)
    write_atomic(out_path, page)
    logger.info("wrote %s (%.1f MB)", out_path, len(page) / 1e6)
    return out_path


def render(summary: Summary) -> str:
    """The page as text."""
    script, style = Markup(page_script()), Markup((_HERE / "assets" / "style.css").read_text("utf-8"))
    meta, data = page_data(summary)
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE), autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True
    )
    page: str = environment.get_template("page.html.j2").render(
        **page_texts(summary),
        version=agnncert.__version__,
        policy=_policy(script),
        fonts=Markup(_font_faces()),
        style=style,
        script=script,
        meta=Markup(json_for_html(meta)),
        data=Markup(data),
    )
    return page


def page_script() -> str:
    """All scripts of the page in one, the charting library first."""
    library = (_HERE / "vendor" / "plot.min.js").read_text("utf-8")
    own = "\n".join(own_scripts(*_SCRIPTS))
    return f'{library}\n(() => {{\n"use strict";\n{own}}})();\n'


def own_scripts(*names: str) -> list[str]:
    """The text of some of the page's own scripts."""
    return [(_HERE / "assets" / f"{name}.js").read_text("utf-8") for name in names]


def _policy(script: str) -> str:
    """The content security policy: nothing is loaded and no script runs but ours, even if an escape was forgotten."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; font-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _font_faces() -> str:
    faces = []
    for family, file in _FONTS.items():
        data = as_text((_HERE / "vendor" / file).read_bytes())
        faces.append(
            f'@font-face{{font-family:"{family}";font-weight:200 900;font-display:swap;'
            f'src:url("data:font/woff2;base64,{data}") format("woff2")}}\n'
        )
    return "".join(faces)


def page_data(summary: Summary) -> tuple[dict[str, Any], str]:
    """What the scripts read: settings and words (``meta``), and the packed arrays as text."""
    claim, evidence = summary.certificate.claim, summary.ballots
    arrays = target_arrays(summary) | vote_arrays(summary)
    detailed = 0
    if evidence is not None:
        detailed = num_detailed(evidence)
        arrays |= ballot_arrays(evidence, detailed)
    places, packed = pack(arrays)
    most_votes = int(np.maximum(summary.certificate.counts, 0).sum(axis=1).max(initial=1))
    names = summary.context.class_names
    meta = {
        "arrays": places,
        "any": ANY,
        "task": claim.task,
        "rule": None,
        "num_targets": summary.num_targets,
        "num_classes": summary.certificate.counts.shape[1],
        "class_names": None if names is None else [str(name) for name in names],
        "has_truth": summary.truth is not None,
        "num_judged": summary.num_judged,
        "has_degree": summary.degree is not None,
        "has_ballots": evidence is not None,
        "num_detailed": detailed,
        "most_votes": most_votes,
        "num_ballots": most_votes if evidence is None else evidence.votes.num_groups,
        "ballot_word": "samples" if evidence is None else "ballots",
        "votes_title": "Samples" if evidence is None else "Votes",
        "degree_title": "Degree" if claim.task == "node" else "Edges",
        "neighbours_title": "",
        "radius_sentence": explorer.radius_sentence(summary),
        "example": _typical_target(summary, detailed),
        "charts": {"accuracy": payload.accuracy_chart(summary), "degree": payload.degree_chart(summary)},
    }
    return meta | ({} if evidence is None else explorer.explorer_meta(summary, evidence)), as_text(packed)


def _typical_target(summary: Summary, detailed: int) -> int:
    """The target shown at first: one with more ballots of its own than most."""
    evidence = summary.ballots
    if evidence is None or not detailed:
        return 0
    listed = np.diff(evidence.votes.indptr[: detailed + 1])
    return int(np.argsort(listed, kind="stable")[int(0.8 * detailed)])


def page_texts(summary: Summary) -> dict[str, Any]:
    """What is filled into the template."""
    claim, context = summary.certificate.claim, summary.context
    path = context.certificate_path or "certificate.cert"
    return {
        "claim": claim,
        "context": context,
        "node": claim.task == "node",
        "certain": claim.guarantee == "deterministic",
        "alpha": f"{claim.alpha or 0:g}",
        "confidence": f"{1 - (claim.alpha or 0):g}",
        "ballots": summary.ballots is not None,
        "has_truth": summary.truth is not None,
        "has_added": summary.added is not None,
        "has_structure": summary.structure is not None,
        "num_targets": summary.num_targets,
        "conceded": words.conceded(summary),
        "unjudged": words.unjudged(summary),
        "num_unproved": int((summary.certificate.radius < 0).sum()),
        "whole": words.whole,
        "things": words.things(summary),
        "share_word": words.share_word(summary),
        "step_words": words.step_words(summary)[1],
        "headline": words.headline(summary),
        "elected": vote_words.elected(summary),
        "vote_notes": vote_words.vote_notes(summary),
        "figures": words.key_figures(summary),
        "structure_notes": words.structure_notes(summary),
        "contradictions": words.contradictions(summary),
        "accuracy_table": payload.accuracy_table(summary),
        "degree_table": payload.degree_table(summary),
        "controls": explorer.controls(claim.task, bool(summary.edits)),
        "edits_table": edit_words.edits_table(summary),
        "facts": words.facts(summary),
        "certificate_path": path,
        "verify_path": shlex.quote(path),
        "run_path": context.run_path and shlex.quote(context.run_path),
        "bibtex": words.BIBTEX.replace("VERSION", agnncert.__version__),
    }
