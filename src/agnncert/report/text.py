"""The sentences of the page that depend on the certificate. All others are in ``page.html.j2``.

What depends on the kind of evidence comes from the evidence (``summary.words``).
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from agnncert.certificates.theorem_facts import division_words
from agnncert.certificates.votes import FloatArray, IntArray
from agnncert.controls.api import WITHOUT_EDGES
from agnncert.proving.groups import by_group, degree_groups
from agnncert.proving.measures import Measures
from agnncert.proving.promise import least_times, promise
from agnncert.proving.words import LOWER, UPPER, Deed, percent, whole
from agnncert.report.summary import AT_MOST, Shares, Summary

# The headline names the largest size at which the rarest class keeps this share of what is detected without an attack.
KEPT_MOST = 0.9
FEW_SIZES = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)  # of the table of classes
MOST_SIZES = 7  # columns there
MOST_CLASSES = 12  # classes there
STRUCTURE_WORDS = "edges and nodes only added and deleted"  # what the second radius counts
# What the curve and the column of additions count, by the field of a budget.
_ADDED = {
    "add_edges": ("New neighbours", "new neighbours, everything else unlimited"),
    "inject_nodes": ("Injected nodes", "injected nodes with any edges"),
}
# What is proved about models beside the defence.
_NOTHING_PROVED = "nothing"
_NEEDS_NONE = "needs none"
_PROOF = {"undefended": _NOTHING_PROVED, "bag_of_nodes": _NOTHING_PROVED}  # which nodes there are can be attacked
_IDENTITY = {"node_id": "node ids, kept through every change", "row": "row numbers"}


def amount(number: float) -> str:
    """Returns how much a target is certified against: a number, "any" or "none"."""
    if number < 0:
        return "none"
    return "any" if np.isinf(number) else whole(number)


def share_word(summary: Summary) -> str:
    """Returns what the curves show."""
    return "certified share" if summary.truth is None else "certified accuracy"


def added_title(summary: Summary) -> str:
    """Returns the title of the column of additions, empty if there is none."""
    field = summary.certificate.evidence.bounded_addition()
    return "" if field is None else _ADDED[field][0]


def added_words(summary: Summary) -> str:
    """Returns what the curve of additions counts, empty if there is none."""
    field = summary.certificate.evidence.bounded_addition()
    return "" if field is None else _ADDED[field][1]


def class_word(summary: Summary, k: int) -> str:
    """Returns the name of a class, or "class" and its number."""
    return summary.subject.class_word(k)


def deed(summary: Summary) -> Deed:
    """Returns the action of an attacker that the sizes of a certificate count."""
    return summary.words.deed


def headline_times(summary: Summary) -> int:
    """Returns how often the attacker of the headline acts: as often as leaves the rarest class most, at least once.

    An attacker who does something else in any case may act no time at all. If that class is rare, most of balanced
    accuracy must be left too. Else nearly all others might be taken for it.
    """
    curve = next(iter(summary.recalls.values()), summary.certified)
    least = least_times(deed(summary))
    if not curve.share[0]:
        return least
    is_left = curve.share >= KEPT_MOST * curve.share[0]
    if summary.rare is not None:
        balanced = np.mean([recall.share for recall in summary.recalls.values()], axis=0)
        is_left &= balanced >= KEPT_MOST * balanced[0]
    return max(least, int(curve.size[is_left][-1]) // deed(summary).price)


def headline_size(summary: Summary) -> int:
    """Returns the size of the attack of the headline."""
    return headline_times(summary) * deed(summary).price


def headline(summary: Summary) -> str:
    """Returns the main result in one sentence: about the rarest class if it is rare, else about all targets."""
    return summary.in_domain(_headline(summary))


def _headline(summary: Summary) -> str:
    if summary.certified.share[0] == 0:
        return "Nothing is proved about these decisions"
    stay = "stay the same" if summary.truth is None else "match the stated class, and still do,"
    whom = f"{whole(summary.num_judged)} decisions"
    done = deed(summary).times(headline_times(summary))
    share = summary.certified.at(headline_size(summary))
    if summary.context.unit is not None:
        curve = next(iter(summary.unit_curves.values()))
        edits = _largest_with_most(curve)
        share = curve.at(edits)
        done = summary.context.unit.done(edits)
    elif summary.rare is not None:
        share = summary.recalls[summary.rare].at(headline_size(summary))
        stay = "stay detected"
        whom = f"{whole(summary.support[summary.rare])} {summary.targets} of {_quoted(summary, summary.rare)}"
    if share == 0:
        return f"None of {whom} is proved to {stay} when an attacker {done}"
    if share == 1:
        return f"All {whom} {stay} when an attacker {done}"
    return f"At least {percent(share, LOWER)} of {whom} {stay} when an attacker {done}"


def _largest_with_most(curve: Shares) -> int:
    """Returns the largest size at which a curve keeps most of its first value, at least 1."""
    return max(1, int(curve.size[curve.share >= KEPT_MOST * curve.share[0]][-1]))


def _quoted(summary: Summary, k: int) -> str:
    word = class_word(summary, k)
    return word if summary.context.class_names is None else f"class “{word}”"


def beside(summary: Summary) -> list[str]:
    """Returns what stands with the headline: whether the graph pays, and the attack that is not covered.

    What the evidence wants to be read first comes before everything else. Numbers of other models are in
    :func:`models_table`.
    """
    sentences = [*promised(summary), *summary.words.first, *_about_truth(summary), *uncovered(summary)]
    return [summary.in_domain(sentence) for sentence in sentences]


def promised(summary: Summary) -> list[str]:
    """Returns what a guaranteed threshold promises of targets to come, if there is one and a truth is known."""
    threshold = summary.certificate.claim.threshold
    if threshold is None or summary.truth is None or not summary.num_judged:
        return []
    measures = summary.measures(least_times(deed(summary)) * deed(summary).price)
    sentence = promise(threshold, deed(summary), measures, class_word(summary, threshold.positive))
    return [sentence] if sentence else []


def _about_truth(summary: Summary) -> list[str]:
    if summary.truth is None:
        return [f"The {summary.targets} have no known labels, so nothing is said about being right."]
    if not summary.num_targets:
        return []
    return [*graph_pays(summary), *([] if summary.rare is not None else possible(summary))]


def graph_pays(summary: Summary) -> list[str]:
    """Returns whether the graph pays off: the certified model against the best control without a graph, if any.

    A control without a graph keeps what it detects under an attack on the graph. If the headline does not say how much
    of the same class the certified model keeps, that stands beside it.
    """
    compared = summary.compared
    if compared is None:
        return []
    sentences = [compared.sentence]
    k = compared.positive
    if compared.sentence and k is not None and k != summary.rare:
        measures = summary.measures(headline_size(summary))
        sentences.append(
            f"When an attacker {deed(summary).times(headline_times(summary))}, the certified model still detects at "
            f"least {percent(measures.recall[k], LOWER)} of {class_word(summary, k)}, with at most "
            f"{percent(measures.false_positive_rate[k], UPPER)} false positives."
        )
    return [sentence for sentence in (*sentences, compared.further) if sentence]


def models_table(summary: Summary) -> tuple[list[str], list[list[str]]]:
    """Returns titles and rows: the certified labels and other models without an attack, and what proof they have.

    Models that stand in the table of controls, at the same operating point, are left out. There are no rows if no truth
    is known, or nothing to compare with.
    """
    k = summary.rare
    titles = ["without an attack", "right"]
    if k is not None:
        name = class_word(summary, k)
        titles = ["without an attack", f"{name} detected", f"others taken for {name}", "right"]
    titles.append("proof")
    if summary.truth is None or not summary.num_judged:
        return titles, []
    shown = set() if summary.compared is None else {row.name for row in summary.compared.controls}
    clean = summary.measures(-1)
    certified = summary.measures(headline_size(summary)).accuracy
    own = _NO_SHARES if k is None else (float(clean.recall[k]), float(clean.false_positive_rate[k]))
    right = float(summary.counted.sum() / summary.num_judged)
    rows = [_model_row(summary, f"certified {summary.words.decides}", own, right, "certified")]
    for key, name, accuracy in summary.references:
        if summary.as_controls.get(key) in shown:
            continue
        shares = _NO_SHARES if k is None or key not in summary.by_class else summary.by_class[key][k]
        proof = _PROOF.get(key, _NEEDS_NONE)
        if proof == _NEEDS_NONE and accuracy > certified:
            proof += ", and is right for more than is certified"
        rows.append(_model_row(summary, name, shares, accuracy, proof))
    if summary.context.size_only:
        rows.append(_model_row(summary, "number of nodes or edges", _NO_SHARES, min(summary.context.size_only)[1], ""))
    return titles, rows if len(rows) > 1 else []


_NO_SHARES = (float("nan"), float("nan"))


def _model_row(summary: Summary, name: str, of_class: tuple[float, float], right: float, proof: str) -> list[str]:
    """Returns a row of the table of models; what is not known is a dash."""
    cells = [summary.in_domain(name)]
    if summary.rare is not None:
        cells += [
            "–" if share != share else percent(share, bound)
            for share, bound in zip(of_class, (LOWER, UPPER), strict=True)
        ]
    return [*cells, percent(right, LOWER), proof]


def threshold_table(summary: Summary) -> tuple[list[str], list[list[str]]]:
    """Returns titles and rows: what was requested of the threshold, and what was reached. No rows without one."""
    threshold = summary.certificate.claim.threshold
    if threshold is None:
        return [], []
    name = class_word(summary, threshold.positive)
    titles = [f"threshold of {name}", "requested", "reached here"]
    clean = None if summary.truth is None else summary.measures(-1)
    k = threshold.positive
    rate = "–" if clean is None else f"{percent(clean.false_positive_rate[k], UPPER)} of {_others(clean, k)}"
    recall = "–" if clean is None else percent(clean.recall[k], LOWER)
    rows = [["others who get it, without an attack", threshold.request(), rate], ["detected", "–", recall]]
    return titles, rows


def _others(measures: Measures, k: int) -> str:
    return whole(measures.num_targets - measures.support[k])


def groups_tables(summary: Summary) -> list[dict[str, Any]]:
    """Returns tables of recall and false positives by degree, and by what the context groups the targets by."""
    k = _class_of_groups(summary)
    if summary.truth is None or k is None or not summary.num_targets:
        return []
    groups: dict[str, Sequence[Any]] = {}
    if summary.degree is not None and summary.certificate.claim.task == "node":
        groups[summary.in_domain("edges")] = degree_groups(summary.degree)
    groups |= summary.context.groups
    tables = []
    for title, of_targets in groups.items():
        found = by_group(summary.certificate, of_targets, k, headline_size(summary), summary.truth)
        titles, rows = found.table()
        name = class_word(summary, k)
        titles = [title, name, "detected", "at least", "others", f"taken for {name}", "at most"]
        cells = [[cell.replace("%", "\N{NO-BREAK SPACE}%") for cell in row] for row in rows]
        tables.append({"title": f"Detection by {title}", "titles": titles, "rows": cells})
    return tables


def _class_of_groups(summary: Summary) -> int | None:
    """Returns the class that groups are compared by: that of the threshold, or the rarest; None for many classes."""
    threshold = summary.certificate.claim.threshold
    if threshold is not None:
        return threshold.positive
    if summary.rare is not None:
        return summary.rare
    return next(iter(summary.recalls)) if len(summary.recalls) == 2 else None


def possible(summary: Summary) -> list[str]:
    """Returns what is possible at most against the changes that the radius counts, or a reference, if it is known."""
    if not summary.possible:
        return []
    name, is_bound, shares = summary.possible[0]
    sizes = [size for size in few_sizes(summary) if size in shares]
    if not sizes:
        return []
    at = _at_sizes([percent(shares[size], UPPER if is_bound else LOWER) for size in sizes], sizes)
    if is_bound:
        return [
            f"Certified accuracy: at most {at} is possible{name.removeprefix(AT_MOST)} for a classifier that reads "
            "only how many nodes of each type a graph has. A classifier that also reads edges is not bounded by this."
        ]
    return [
        "Reference, not a bound: with one vote of each neighbour for its true class, beside the prediction from the "
        f"node’s own features, certified accuracy would be {at} (neighbours that come or go)."
    ]


def _at_sizes(shares: Sequence[str], sizes: Sequence[int]) -> str:
    """Returns shares with their sizes, as "71.4 % at size 1, 63.0 % at 2"."""
    if len(shares) > 1 and len(set(shares)) == 1:
        return f"{shares[0]} at sizes {whole(sizes[0])} to {whole(sizes[-1])}"
    first = f"{shares[0]} at size {whole(sizes[0])}"
    others = [f"{share} at {whole(size)}" for share, size in zip(shares[1:], sizes[1:], strict=True)]
    return ", ".join([first, *others])


def uncovered(summary: Summary) -> list[str]:
    """Returns a sentence if the target's own features are not covered: often an attacker changes them first."""
    claim = summary.certificate.claim
    is_open = any("own features" in sentence or sentence == "Changed features." for sentence in claim.not_proved)
    if not is_open or claim.task == "graph":
        return []
    if claim.task == "pair":
        return [
            "Not covered, though often the cheapest attack: the pair’s own features and values. "
            "Whoever makes a payment writes its amount himself."
        ]
    return [
        "Not covered, though often the cheapest attack: other features of the node itself. "
        "The gated division covers them."
    ]


def few_sizes(summary: Summary) -> list[int]:
    """Returns a few sizes at which something is certified, that of the headline among them."""
    sizes = [size for size in FEW_SIZES if size <= summary.certificate.radius.max(initial=least_times(deed(summary)))]
    if len(sizes) > MOST_SIZES:
        sizes = sizes[::2]
    return sorted({*sizes, headline_size(summary)})


class _Row(NamedTuple):
    """A row of the table of classes: its name, a value for each size, and how values are rounded."""

    name: str
    values: list[float]
    bound: int


def class_table(summary: Summary) -> tuple[list[str], list[list[str]]]:
    """Returns titles and rows: bounds for each class at a few sizes. There are no rows if no truth is known."""
    sizes = few_sizes(summary)
    what = f"certified at number of {summary.words.step.many}" if deed(summary).none else "certified at size"
    titles = [what, "no attack", *map(whole, sizes)]
    if summary.truth is None:
        return titles, []
    measures = [summary.measures(size) for size in (-1, *sizes)]
    is_low = [bool(each.warning) for each in measures]
    alone = "accuracy of the most frequent class alone"
    if any(is_low):
        alone += " (* is below it)"
    rows = [
        *_rows_of_classes(summary, measures),
        _Row("balanced accuracy", [each.balanced_accuracy for each in measures], LOWER),
        _Row("accuracy", [each.accuracy for each in measures], LOWER),
        _Row(alone, [measures[0].majority_share] * len(measures), LOWER),
    ]
    cells = []
    for row in rows:
        values = [percent(value, row.bound) for value in row.values]
        if row.name == "accuracy":
            values = [f"{value}*" if low else value for value, low in zip(values, is_low, strict=True)]
        cells.append([row.name, *values])
    return titles, cells


def _rows_of_classes(summary: Summary, measures: Sequence[Measures]) -> list[_Row]:
    """Returns recall of each class, and false alarms of the first one if it is rare or there are two classes."""
    classes = list(summary.recalls)[:MOST_CLASSES]
    rows = []
    for k in classes:
        rows.append(_Row(f"recall of {class_word(summary, k)}", [float(each.recall[k]) for each in measures], LOWER))
    if classes and (summary.rare is not None or len(summary.recalls) == 2):
        k = classes[0]
        name = class_word(summary, k)
        false_positives = [float(each.false_positive_rate[k]) for each in measures]
        rows.insert(1, _Row(f"precision of {name}", [float(each.precision[k]) for each in measures], LOWER))
        rows.insert(2, _Row(f"others taken for {name}, at most", false_positives, UPPER))
    return rows


def control_table(summary: Summary) -> dict[str, Any]:
    """Returns titles and rows of the certified model and its controls, and what is the same for all. Empty without."""
    compared = summary.compared
    if compared is None:
        return {}
    titles, rows = compared.table()
    for row in rows:
        if row[0].startswith(WITHOUT_EDGES):  # other names are those of somebody's models
            row[0] = summary.in_domain(row[0])
    return {"titles": titles, "rows": rows, "same": compared.same, "by_accuracy": compared.positive is None}


def class_records(summary: Summary, sizes: list[int]) -> list[dict[str, Any]]:
    """Returns one record for each size and class: its targets, and the bounds. A size of -1 is no attack."""
    if not summary.recalls:
        return []
    records = []
    for size in sizes:
        measures = summary.measures(size)
        for k in sorted(summary.recalls):
            records.append(
                {
                    "size": size,
                    "class": k,
                    "name": class_word(summary, k),
                    "targets": int(measures.support[k]),
                    "recall": float(measures.recall[k]),
                    "precision": float(measures.precision[k]),
                    "false_positive_rate": float(measures.false_positive_rate[k]),
                    "balanced_accuracy": measures.balanced_accuracy,
                    "accuracy": measures.accuracy,
                    "majority_share": measures.majority_share,
                }
            )
    return records


def key_figures(summary: Summary) -> list[dict[str, str]]:
    """Returns the numbers below the headline, each with what it means."""
    if not summary.num_targets:
        return []
    certificate = summary.certificate
    figures = _figures_of_all(summary) if summary.rare is None else _figures_of_class(summary, summary.rare)
    if certificate.claim.alpha is not None:
        figures.append((f"{certificate.claim.alpha:g}", "probability of error, at most"))
    return [{"value": value, "meaning": summary.in_domain(meaning)} for value, meaning in figures]


def _figures_of_all(summary: Summary) -> list[tuple[str, str]]:
    """Returns the share at the size of the headline, and what half of the targets withstand."""
    withstand = "are certified against this or more"
    figures = [
        (percent(summary.certified.at(headline_size(summary)), LOWER), _at_headline(summary)),
        (amount(_median(summary.certificate.radius)), f"median radius: half of the {summary.targets} {withstand}"),
    ]
    if summary.structure is not None:
        figures.append((amount(_median(summary.structure)), f"median radius, counting {STRUCTURE_WORDS}"))
    elif summary.added is not None:
        figures.append((amount(_median(summary.added)), f"{added_words(summary)}: half {withstand}"))
    return figures


def _figures_of_class(summary: Summary, k: int) -> list[tuple[str, str]]:
    """Returns what the headline says about the rarest class, and what false alarms that attack brings.

    An accuracy would be mostly about the other classes, and so larger than what matters, or smaller. A median radius of
    the class would be larger than the size of the headline, at which false alarms are still few.
    """
    size = headline_size(summary)
    measures = summary.measures(size)
    name = class_word(summary, k)
    step = summary.words.step.one if size == 1 else summary.words.step.many
    under = f"at {whole(size)} {step}{_typical_degree(summary)}"
    return [
        (percent(summary.recalls[k].at(size), LOWER), f"of {name} stay detected, at least, {under}"),
        (percent(measures.false_positive_rate[k], UPPER), f"of the others can be taken for {name}, at most, there"),
        (percent(measures.precision[k], LOWER), f"of all that is taken for {name} there is {name}, at least"),
    ]


def _at_headline(summary: Summary) -> str:
    """Returns what the share at the size of the headline is, beside what a target has, and whether it is low."""
    size = headline_size(summary)
    step = summary.words.step.one if size == 1 else summary.words.step.many
    meaning = f"{share_word(summary)} at {whole(size)} {step}{_typical_degree(summary)}"
    warning = "" if summary.truth is None else summary.measures(size).warning
    if warning:
        meaning += "; " + warning.replace("%", "\N{NO-BREAK SPACE}%")
    return meaning


def _typical_degree(summary: Summary) -> str:
    """Returns how many edges a typical target has, in brackets; empty if that is not known."""
    if summary.degree is None:
        return ""
    edges = int(np.median(summary.degree))
    plural = "" if edges == 1 else "s"
    return f" (a typical {summary.certificate.claim.task} has {whole(edges)} edge{plural})"


def _median(values: IntArray | FloatArray) -> float:
    return float(np.quantile(values, 0.5, method="lower"))


def unjudged(summary: Summary) -> str:
    """Returns how many targets have no known class and are not counted, empty if there are none."""
    unknown = summary.num_targets - summary.num_judged
    if not unknown:
        return ""
    return (
        f"The class of {whole(unknown)} of {whole(summary.num_targets)} {summary.targets} is not known: every accuracy "
        f"here is a share of the other {whole(summary.num_judged)}."
    )


def structure_notes(summary: Summary) -> list[str]:
    """Returns how much the labels depend on the graph: a model that ignores the graph is easy to certify."""
    no_edge = summary.certificate.evidence.no_edge_labels()
    if no_edge is None or not summary.num_targets:
        return []
    same = percent(float((no_edge == summary.certificate.label).mean()))
    notes = [f"For {same} of the {summary.targets} the label is the one that the model gives without any edges."]
    notes += summary.words.from_graph
    if summary.degree is not None:
        notes.append(f"The {summary.targets} have {summary.degree.mean():.1f} edges on average.")
    return notes


def contradictions(summary: Summary) -> list[str]:
    """Returns a sentence for each attack whose success would refute the certificate."""
    if summary.truth is None:
        return []
    sentences = []
    for size, left in sorted(summary.context.attacked):
        certified = summary.certified.at(size)
        if left < certified - 1e-9:
            proved = percent(certified, LOWER)
            sentences.append(
                f"At size {size:g} the attack left {percent(left, LOWER)}, but {proved} is certified there."
            )
    return sentences


def facts(summary: Summary) -> list[tuple[str, str]]:
    """Returns names and values of what the certificate is about."""
    claim = summary.certificate.claim
    guarantee = claim.guarantee
    if claim.alpha is not None:
        guarantee += f", wrong with probability at most {claim.alpha:g} for {claim.alpha_scope}"
    rows: list[tuple[str, Any]] = [
        ("Data", summary.context.dataset),
        ("Task", f"{claim.task} classification"),
        ("Targets", whole(summary.num_targets)),
        ("Method", claim.method),
        ("Division", division_words(claim.division)),
        *summary.words.facts,
        ("Guarantee", guarantee),
        ("Identity of nodes", _IDENTITY.get(claim.ids, claim.ids)),
    ]
    for name, value in summary.certificate.issued.items():
        rows.append((f"Issued {name}", value))
    if claim.tolerance:
        rows.append(("Tolerance", f"{claim.tolerance:g}"))
    if claim.library_version:
        rows.append(("Written by", f"agnncert {claim.library_version}"))
    return [(name, str(value)) for name, value in rows if value]
