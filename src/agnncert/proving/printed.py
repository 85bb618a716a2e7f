"""What a certificate looks like: in words and a few numbers, and in a notebook."""

import math
from typing import TYPE_CHECKING

import numpy as np

from agnncert.certificates.theorem_facts import division_words
from agnncert.certificates.votes import FloatArray, IntArray
from agnncert.notebook import framed, paragraph, table
from agnncert.proving.measures import rare_class
from agnncert.proving.promise import deed_of, least_times, promise
from agnncert.proving.words import LOWER, UPPER, plain_percent
from agnncert.storage import visible

if TYPE_CHECKING:
    from agnncert.proving.certificate import Certificate, Decision

SHOWN_ROWS = 8  # in a notebook


def in_words(certificate: "Certificate") -> str:
    """Returns a certificate in words and a few numbers, for ``print``."""
    claim = certificate.claim
    made_by = f"{claim.method}, {division_words(claim.division)}" if claim.division else claim.method
    plural = "" if certificate.num_targets == 1 else "s"
    targets = f"{certificate.num_targets:,} {claim.task}{plural}"
    lines = [f"Certificate of {targets} in {certificate.num_classes} classes ({made_by})"]
    entries = [("guarantee", _guarantee(certificate))]
    if certificate.class_names:
        entries.append(("classes", ", ".join(certificate.class_names)))
    if certificate.num_targets:
        entries += _accuracy(certificate)
        entries += _threshold(certificate)
        entries += _radii(certificate)
    lines += [f"  {title:<15} {text}" for title, text in entries]
    return "\n".join([*lines, str(claim)])


def _guarantee(certificate: "Certificate") -> str:
    claim = certificate.claim
    if claim.alpha is None:
        return "deterministic: no attack within the budget can change a certified label"
    return f"probabilistic: wrong with probability at most {claim.alpha:g} for {claim.alpha_scope}"


def _accuracy(certificate: "Certificate") -> list[tuple[str, str]]:
    """Returns titles and texts about correct labels. There are none if no true class is known."""
    num_labelled = int(certificate.labelled.sum())
    if not num_labelled:
        return []
    which = "the targets"
    if num_labelled < certificate.num_targets:
        which = f"the {num_labelled:,} targets whose class is known"
    clean = certificate.measures(at=-1)
    warning = f"; {clean.warning}" if clean.warning else ""
    accuracy = f"{plain_percent(clean.accuracy, LOWER)} of {which}, by the true classes in the certificate{warning}"
    rare = rare_class(clean.support)
    if rare is None:
        return [("accuracy", accuracy)]
    deed = deed_of(certificate)
    certified = certificate.measures(at=least_times(deed))
    share = clean.support[rare] / num_labelled
    lower_bound = plain_percent(certified.recall[rare], LOWER)
    when = f"when an attacker {deed.none}" if deed.none else "at size 1"
    recall = f"recall {plain_percent(clean.recall[rare], LOWER)}, certified {when} {lower_bound}"
    name = certificate.class_word(rare)
    return [("accuracy", accuracy), ("rarest", f"{name}, {plain_percent(share)} of them: {recall}")]


def _threshold(certificate: "Certificate") -> list[tuple[str, str]]:
    """Returns what was requested of the threshold beside what was reached, if the certificate is about one."""
    threshold = certificate.claim.threshold
    if threshold is None:
        return []
    k = threshold.positive
    name = certificate.class_word(k)
    entries = [("requested", f"for {name}: {threshold.request()}")]
    if certificate.labelled.any():
        clean = certificate.measures(at=-1)
        others = int(clean.support.sum() - clean.support[k])
        reached = f"{plain_percent(clean.false_positive_rate[k], UPPER)} of {others:,} targets of other classes"
        entries.append(("reached", f"{reached}, recall {plain_percent(clean.recall[k], LOWER)} without an attack"))
        deed = deed_of(certificate)
        sentence = promise(threshold, deed, certificate.measures(at=least_times(deed) * deed.price), name)
        entries += [("promised", sentence.replace("\N{NO-BREAK SPACE}", " "))] if sentence else []
    return entries


def _radii(certificate: "Certificate") -> list[tuple[str, str]]:
    """Returns titles and texts about what is certified."""
    entries = [("radius", _spread(certificate.radius))]
    unproved = int((certificate.radius < 0).sum())
    if unproved:
        close = "too close to a tie to be sure of the label itself"
        why = "additions may change their labels" if deed_of(certificate).none else close
        entries.append(("unproved", f"{unproved:,} of them: {why}"))
    if (certificate.new_neighbours >= 0).any():
        rest = "with any deletions and any features of other nodes"
        spread = _spread(certificate.new_neighbours, certificate.evidence.largest_finite)
        entries.append(("new neighbours", f"{spread}, {rest}"))
    return entries


def _spread(values: IntArray | FloatArray, most: float = math.inf) -> str:
    """Returns median, least and largest of some values, of which those from ``most`` on say "at least"."""
    low, middle, high = np.sort(values)[[0, (len(values) - 1) // 2, -1]]
    return f"median {_amount(middle, most)}, smallest {_amount(low, most)}, largest {_amount(high, most)}"


def _amount(value: float, most: float) -> str:
    if np.isinf(value):
        return "any number"
    if value < 0:
        return "none"
    return f"at least {value:,.0f}" if value >= most else f"{value:,.0f}"


def in_html(certificate: "Certificate") -> str:
    """Returns what a notebook shows: what the certificate is about, and its first ``SHOWN_ROWS`` targets."""
    names = ["target", "label", "truth", "radius", "votes"]
    if certificate.truth is None:
        names.remove("truth")
    targets = certificate.target[:SHOWN_ROWS].tolist()
    rows = [_texts(certificate[target], names) for target in targets]
    rest = certificate.num_targets - len(targets)
    more = f"<p>… and {rest:,} more: <code>to_pandas()</code>, <code>certificate[id]</code></p>" if rest else ""
    about = str(certificate).split("\nOne step")[0]
    return framed(paragraph(about) + table(names, rows) + more)


def decision_in_html(decision: "Decision", largest_finite: float) -> str:
    """Returns what a notebook shows of one target. Amounts from ``largest_finite`` on say "at least"."""
    names = ["target", "label", "truth", "radius", "votes"]
    rows = [*zip(names, _texts(decision, names), strict=True)]
    withstood = [(kind.replace("_", " "), _amount(most, largest_finite)) for kind, most in decision.withstands.items()]
    return framed(table([], rows) + paragraph("Changes of one kind that it withstands:") + table([], withstood))


def _texts(decision: "Decision", names: list[str]) -> list[str]:
    texts = {
        "target": str(decision.target),
        "label": decision.class_name if decision.has_name else str(decision.label),
        "truth": _truth(decision),
        "radius": "none" if decision.radius < 0 else f"{decision.radius:,}",
        "votes": " : ".join(map(str, decision.votes.tolist())),
    }
    return [visible(texts[name]) for name in names]


def _truth(decision: "Decision") -> str:
    if decision.truth is None:
        return "–"
    if decision.truth == decision.label:
        return str(decision.truth)
    return f"{decision.truth} ✗"
