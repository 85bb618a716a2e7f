"""``build_report``: writes a certificate as one HTML file that needs no other file.

The file holds the text, the scripts, the numbers of the charts, and the votes of all targets as packed arrays.
"""

import base64
import json
import logging
import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from markupsafe import Markup

from agnncert.certificates.theorem_facts import division_words
from agnncert.certificates.votes import VoteRecord
from agnncert.divided.words import TARGETS
from agnncert.errors import suggests_arguments
from agnncert.proving.domain import glossary
from agnncert.proving.theorems import LARGEST_AMOUNT
from agnncert.proving.words import Words, whole
from agnncert.report import text
from agnncert.report.charts import (
    accuracy_chart,
    accuracy_table,
    budget_table,
    class_chart,
    degree_chart,
    degree_table,
    unit_table,
)
from agnncert.report.checked import stacked_for_checker, votes_for_checker
from agnncert.report.explorer import controls, count_arrays, explorer_meta, num_detailed, rules_meta, vote_arrays
from agnncert.report.html import HERE, checker_script, fill_page, json_for_html, own_scripts, theorem_script
from agnncert.report.packing import Array, pack
from agnncert.report.summary import ReportContext, Summary, summarise
from agnncert.stacked.record import StackedRecord
from agnncert.storage import write_atomic

if TYPE_CHECKING:
    from agnncert.proving.certificate import Certificate

ANY = 2**31 - 1  # stands for "any number" in whole-number arrays
_SENTENCES = (text.unjudged, text.share_word, text.structure_notes, text.contradictions)
# What the scripts say that is no name of a class, an id or a quotation.
_SAID = ("degree_title", "neighbours_title", "radius_sentence", "nothing_proved", "target_title", "count_words")
_SAID_OF_VOTES = tuple(TARGETS["node"])
_SCRIPTS = (
    "base",
    "rules",
    "proof",
    "selfcheck",
    "charts",
    "explorer",
    "table",
    "detail",
    "address",
    "page",
)
logger = logging.getLogger(__name__)


@suggests_arguments
def build_report(certificate: "Certificate", out_path: str | Path, *, context: ReportContext | None = None) -> Path:
    """Writes a certificate as one HTML page that needs no network.

    The page shows the claim, the certified accuracy, an explorer for other budgets, every target, and how to
    check the certificate. The explorer gives the same answers as ``certificate.holds_against``.

    Args:
        certificate: What to show.
        out_path: The file to write; its folder is created if it is missing.
        context: Truth, degrees, other models' accuracy, attacks and environment to show beside the certificate.

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
    """Returns the page as text."""
    meta, data = page_data(summary)
    texts = page_texts(summary) | {"meta": Markup(json_for_html(meta)), "data": Markup(data)}
    return fill_page(HERE / "page.html.j2", texts, script=page_script(summary))


def page_texts(summary: Summary) -> dict[str, Any]:
    """Returns what is filled into the template, by name."""
    claim = summary.certificate.claim
    context = summary.context
    path = context.certificate_path or "certificate.cert"
    return {
        "made_by": division_words(claim.division) or claim.method,
        "claim": claim,
        "context": context,
        "node": claim.task == "node",
        "certain": claim.guarantee == "deterministic",
        "alpha": f"{claim.alpha or 0:g}",
        "confidence": f"{1 - (claim.alpha or 0):g}",
        "say": summary.in_domain,
        "words": spoken_words(summary),
        "things": summary.in_domain(summary.targets),
        "glossary": glossary(context.words),
        "has_explorer": summary.has_explorer,
        "checks_itself": _for_checker(summary) is not None,
        "budgets": in_reader_words(summary, budget_table(summary)),
        "has_truth": summary.truth is not None,
        "has_added": summary.added is not None,
        "has_structure": summary.structure is not None,
        "num_targets": summary.num_targets,
        "num_unproved": int((summary.certificate.radius < 0).sum()),
        "whole": whole,
        **{function.__name__: in_reader_words(summary, function(summary)) for function in _SENTENCES},
        "headline": text.headline(summary),
        "beside": text.beside(summary),
        "class_table": dict(zip(("titles", "rows"), text.class_table(summary), strict=True)),
        "controls_table": text.control_table(summary),
        "models_table": dict(zip(("titles", "rows"), text.models_table(summary), strict=True)),
        "threshold_table": dict(zip(("titles", "rows"), text.threshold_table(summary), strict=True)),
        "groups_tables": text.groups_tables(summary),
        "facts": text.facts(summary),
        "figures": text.key_figures(summary),
        "accuracy_table": in_reader_words(summary, accuracy_table(summary)),
        "degree_table": degree_table(summary),
        "controls": [_labels_said(summary, group) for group in controls(claim.task, context.unit)],
        "unit": unit_table(summary),
        "certificate_path": path,
        "verify_path": shlex.quote(path),
        "recheck": f" --recheck {summary.words.recheck}" if summary.words.recheck else "",
        "run_path": context.run_path and shlex.quote(context.run_path) + context.run_options,
    }


def page_data(summary: Summary) -> tuple[dict[str, Any], str]:
    """Returns what the scripts read: settings and words (``meta``), and the packed arrays as text."""
    claim = summary.certificate.claim
    record = summary.votes
    arrays = target_arrays(summary) | count_arrays(summary)
    if summary.page_rules is not None:
        arrays |= summary.page_rules.arrays
    detailed = 0
    if record is not None:
        detailed = num_detailed(record)
        arrays |= vote_arrays(record, detailed)
    places, packed = pack(arrays)
    names = summary.context.class_names
    counts = summary.words.counts
    meta = {
        "arrays": places,
        "any": ANY,
        "task": claim.task,
        "theorem": None,
        "num_targets": summary.num_targets,
        "num_classes": summary.certificate.counts.shape[1],
        "class_names": None if names is None else [str(name) for name in names],
        "has_truth": summary.truth is not None,
        "num_judged": summary.num_judged,
        "has_degree": summary.degree is not None,
        "has_votes": record is not None,
        "num_detailed": detailed,
        "most_votes": int(np.maximum(summary.certificate.counts, 0).sum(axis=1).max(initial=1)),
        "count_words": {
            "title": counts.title,
            "one": counts.one,
            "many": counts.many,
            "of_target": counts.of_target,
            "scale": counts.scale,
            "total": counts.total,
        },
        "degree_title": "Degree" if claim.task == "node" else "Edges",
        "target_title": claim.task.capitalize(),
        "neighbours_title": text.added_title(summary),
        "radius_sentence": radius_sentence(summary),
        "nothing_proved": summary.words.nothing_proved,
        "example": _example(record, detailed),
        "charts": {
            "accuracy": accuracy_chart(summary),
            "classes": class_chart(summary),
            "degree": degree_chart(summary),
        },
        "rare": summary.rare,
        "num_rare": 0 if summary.rare is None else int(summary.support[summary.rare]),
        "majority": {key: value for key, _, value in summary.references}.get("majority"),
    }
    if record is not None:
        meta |= explorer_meta(summary, record)
    elif summary.page_rules is not None:
        meta |= rules_meta(summary, summary.page_rules)
    meta["checker"] = _for_checker(summary)
    _say_in_reader_words(summary, meta)
    return meta, base64.b64encode(packed).decode("ascii")


def _for_checker(summary: Summary) -> dict[str, Any] | None:
    """Returns the settings for the checker of the page; None if it cannot derive anything from what the page holds."""
    if summary.votes is not None:
        return votes_for_checker(summary.votes)
    evidence = summary.certificate.evidence
    if isinstance(evidence, StackedRecord) and summary.page_rules is not None:
        return stacked_for_checker(evidence)
    return None


def in_reader_words(summary: Summary, value: Any) -> Any:
    """Returns texts, lists and tables of texts in the words of the reader's domain. Names of fields stay."""
    if isinstance(value, str):
        return summary.in_domain(value)
    if isinstance(value, list | tuple):
        return [in_reader_words(summary, each) for each in value]
    if isinstance(value, dict):
        return {name: in_reader_words(summary, each) for name, each in value.items()}
    return value


def spoken_words(summary: Summary) -> Words:
    """Returns what is said about the defence in the words of the reader's domain."""
    words: Any = summary.words
    said: dict[str, Any] = _texts_said(summary, words)
    for name in ("first", "notes", "from_graph"):
        said[name] = tuple(summary.in_domain(sentence) for sentence in getattr(words, name))
    for name in ("step", "counts"):
        part = getattr(words, name)
        said[name] = replace(part, **_texts_said(summary, part))
    spoken: Words = replace(words, **said)
    return spoken


def _texts_said(summary: Summary, record: Any) -> dict[str, str]:
    """Returns the texts among the fields of a record in the words of the reader's domain."""
    return {name: summary.in_domain(value) for name, value in vars(record).items() if isinstance(value, str)}


def _labels_said(summary: Summary, group: dict[str, Any]) -> dict[str, Any]:
    """Returns a group of controls with labels in the words of the reader's domain."""
    controls = [{**control, "label": summary.in_domain(control["label"])} for control in group["controls"]]
    return {**group, "title": summary.in_domain(group["title"]), "controls": controls}


def _say_in_reader_words(summary: Summary, meta: dict[str, Any]) -> None:
    """Puts what the scripts say into the words of the reader's domain; names of classes, ids and fields stay."""
    if not summary.context.words:
        return
    for name in (*_SAID, *_SAID_OF_VOTES):
        if name in meta:
            meta[name] = in_reader_words(summary, meta[name])
    for name in ("presets", "withstood"):
        for entry in meta.get(name, ()):
            entry["name"] = summary.in_domain(entry["name"])
    accuracy = meta["charts"]["accuracy"]
    for name in ("neighbours_word", "structure_word"):
        accuracy[name] = summary.in_domain(accuracy[name])
    for curve in accuracy["possible"]:
        curve["name"] = summary.in_domain(curve["name"])
    if meta["charts"]["degree"] is not None:
        meta["charts"]["degree"]["ceiling"] = summary.in_domain(meta["charts"]["degree"]["ceiling"])


def _example(record: VoteRecord | None, num_detailed: int) -> int:
    """Returns the target that a page shows first: one with more listed votes than most, or the first one."""
    if record is None or not num_detailed:
        return 0
    listed = np.diff(record.votes.indptr[: num_detailed + 1])
    return int(np.argsort(listed, kind="stable")[int(0.8 * num_detailed)])


def target_arrays(summary: Summary) -> dict[str, Array]:
    """Returns arrays with an entry for each target: id, label, truth, radius, counts and more."""
    certificate = summary.certificate
    ids = json.dumps([str(target) for target in certificate.target.tolist()], ensure_ascii=False).encode()
    arrays: dict[str, Array] = {
        "ids": np.frombuffer(ids, dtype=np.uint8),
        "label": certificate.label,
        "radius": np.minimum(certificate.radius, ANY),
        "counts": certificate.counts.ravel(),
    }
    known = {"truth": summary.truth, "degree": summary.degree, "structure": summary.structure}
    arrays |= {name: np.minimum(array, ANY) for name, array in known.items() if array is not None}
    if summary.added is not None:
        arrays["neighbours"] = np.where(summary.added >= LARGEST_AMOUNT, ANY, summary.added).astype(np.int64)
    return arrays


def radius_sentence(summary: Summary) -> str:
    """Returns what the radius of one target means. The page inserts the number."""
    sentence = f"Its label is certified against every attack up to size {{radius}} ({summary.words.step.many})."
    if summary.structure is None:
        return sentence
    return f"{sentence} If edges and nodes are only added and deleted, and no values change: up to {{structure}}."


def page_script(summary: Summary) -> str:
    """Returns all scripts of the page in one, the charting library first."""
    library = (HERE / "vendor" / "plot.min.js").read_text("utf-8")
    rules = {summary.votes.theorem: summary.vote_rule} if summary.votes is not None and summary.vote_rule else {}
    own = "\n".join([theorem_script(rules), *own_scripts(*_SCRIPTS)])
    return f'{library}\n{checker_script()}\n(() => {{\n"use strict";\n{own}}})();\n'
