"""The sentences of the page that depend on the certificate. All others are in ``page.html.j2``.

What depends on the kind of evidence comes from the evidence (``summary.words``).
"""

import math
from typing import Any

import numpy as np

from agnncert.proving.words import Deed, whole
from agnncert.report.summary import AT_MOST, REFERENCES, Summary

# The headline names the largest size at which the rarest class keeps this share of what is detected without an attack.
KEPT_MOST = 0.9
FEW_SIZES = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)  # of the table of classes
MOST_SIZES, MOST_CLASSES = 7, 12  # columns and classes there
STRUCTURE_WORDS = "edges and nodes only added and deleted"  # what the second radius counts
# What the curve and the column of additions count, by the field of a budget.
_ADDED = {
    "add_edges": ("New neighbours", "new neighbours, everything else unlimited"),
    "inject_nodes": ("Injected nodes", "injected nodes with any edges"),
}


def percent(share: float, bound: int = 0) -> str:
    r"""A share in percent, with one decimal; rounded down if it is a lower bound (-1), up if it is an upper bound (1).

    Example:
        >>> percent(0.7136), percent(0.7136, -1), percent(0.7134, 1)
        ('71.4\xa0%', '71.3\xa0%', '71.4\xa0%')
    """
    if math.isnan(share):
        return "–"
    tenths = 1000 * share
    if bound:
        tenths = math.floor(tenths + 1e-9) if bound < 0 else math.ceil(tenths - 1e-9)
    return f"{tenths / 10:.1f}\u00a0%"


def amount(number: float) -> str:
    """Returns how much a target is certified against: a number, "any" or "none"."""
    if number < 0:
        return "none"
    return "any" if np.isinf(number) else whole(number)


def share_word(summary: Summary) -> str:
    """What the curves show."""
    return "certified accuracy" if summary.truth is not None else "certified share"


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
    """How often the attacker of the headline acts: at least once, and as often as leaves the rarest class most.

    If that class is rare, balanced accuracy must be left most of too: else nearly all others might be taken for it.
    """
    curve, price = next(iter(summary.recalls.values()), summary.certified), deed(summary).price
    left = curve.share >= KEPT_MOST * curve.share[0]
    if summary.rare is not None:
        balanced = np.mean([each.share for each in summary.recalls.values()], axis=0)
        left &= balanced >= KEPT_MOST * balanced[0]
    kept = curve.size[left] if curve.share[0] else curve.size[:1]
    return max(1, int(kept[-1]) // price)


def headline(summary: Summary) -> str:
    """The main result in one sentence: about the rarest class if it is rare, else about all targets."""
    curve, attack, times = summary.certified, deed(summary), headline_times(summary)
    if curve.share[0] == 0:
        return "Nothing is proved about these decisions"
    stay = "have the stated true class and keep it" if summary.truth is not None else "stay the same"
    whom, done, size = f"{whole(summary.num_judged)} decisions", attack.times(times), times * attack.price
    if (unit := summary.context.unit) is not None:
        curve = next(iter(summary.unit_curves.values()))
        size = max(1, int(curve.size[curve.share >= KEPT_MOST * curve.share[0]][-1]))
        done = unit.done(size)
    elif (k := summary.rare) is not None:
        curve, stay = summary.recalls[k], "stay detected"
        whom = f"{whole(summary.support[k])} {summary.targets} of {_quoted(summary, k)}"
    share = curve.at(size)
    if share == 0:
        return f"None of {whom} is proved to {stay} when an attacker {done}"
    return f"At least {percent(share, -1)} of {whom} {stay} when an attacker {done}"


def _quoted(summary: Summary, k: int) -> str:
    word = class_word(summary, k)
    return word if summary.context.class_names is None else f"class “{word}”"


# What is said of each model beside the vote; {} is its accuracy.
_BESIDE = {
    "undefended": "an undefended GNN for {}, about which nothing is proved",
    "mlp": "an MLP that sees no edges for {}, which needs no proof",
    "no_edge": "the same model without edges for {}, which needs no proof",
    "bag_of_nodes": "a model that sees no edges for {}",  # which nodes there are can be attacked
    "majority": "the most frequent class alone for {}, which needs no proof",
}


def beside(summary: Summary) -> list[str]:
    """What stands with the headline: false alarms, models that need no proof, and the attack that is not covered.

    What the evidence wants to be read first comes before everything else.
    """
    lines = list(summary.words.first)
    if summary.truth is None:
        lines.append(f"The {summary.targets} have no known labels, so nothing is said about being right.")
    elif summary.num_targets:
        size = headline_times(summary) * deed(summary).price
        clean, found = summary.measures(-1), summary.measures(size)
        if (k := summary.rare) is not None:
            others, name = f"the {whole(found.num_targets - found.support[k])} others", class_word(summary, k)
            lines.append(
                f"Of {others} at most {percent(found.false_positive_rate[k], 1)} can be taken for {name} under that "
                f"attack. Without an attack {percent(clean.recall[k])} are detected and "
                f"{percent(clean.false_positive_rate[k])} of the others are taken for {name}."
            )
            for key, shares in summary.by_class.items():
                proof = "nothing is proved about it" if key == "undefended" else "needs no proof"
                detected, false = (percent(share) for share in shares[k])
                model = REFERENCES[key][:1].upper() + REFERENCES[key][1:]
                lines.append(f"{model} ({proof}): {detected} detected, {false} of the others taken for {name}.")
            more = ", which needs no proof and is more than is certified" if found.warning else ""
            lines.append(
                f"Accuracy says little here: {percent(found.accuracy, -1)} is certified at that size, "
                f"{percent(clean.accuracy)} holds without an attack, and the most frequent class alone has "
                f"{percent(found.majority_share)}{more}."
            )
        else:  # of accuracy, which says little about a rare class
            lines += [_comparison(summary, found.accuracy), *possible(summary)]
    return lines + uncovered(summary)


def possible(summary: Summary) -> list[str]:
    """What is possible at most against the changes that the radius counts, or a reference; nothing if not known."""
    name, is_bound, known = (summary.possible or [("", False, {})])[0]
    shown = [(percent(known[size], is_bound), whole(size)) for size in few_sizes(summary) if size in known]
    at = ", ".join(f"{share} at {'' if k else 'size '}{size}" for k, (share, size) in enumerate(shown))
    if len(shown) > 1 and len({share for share, _ in shown}) == 1:
        at = f"{shown[0][0]} at sizes {shown[0][1]} to {shown[-1][1]}"
    bound = (
        f"Certified accuracy: at most {at} is possible{name.removeprefix(AT_MOST)} for a classifier that reads only "
        "how many nodes of each type a graph has. A classifier that also reads edges is not bounded by this."
    )
    reference = (
        "Reference, not a bound: with one vote of each neighbour for its true class, beside the prediction from the "
        f"node’s own features, certified accuracy would be {at} (neighbours that come or go)."
    )
    return [bound if is_bound else reference] if shown else []


def _comparison(summary: Summary, certified: float) -> str:
    """The accuracy without an attack beside that of other models, on the same targets."""
    right = percent(float(summary.counted.sum() / summary.num_judged))
    known = {key: value for key, _, value in summary.references}
    others = []
    for key, words in _BESIDE.items():
        if key in known:
            more = " and is more than is certified" if words.endswith("proof") and known[key] > certified else ""
            others.append(words.format(percent(known[key])) + more)
    if summary.context.size_only:
        others.append(f"the number of nodes or edges alone for {percent(min(summary.context.size_only)[1])}")
    return (
        "; ".join(
            [f"Without an attack the {summary.words.decides} is right for {right} of the {summary.targets}", *others]
        )
        + "."
    )


def uncovered(summary: Summary) -> list[str]:
    """A sentence if the target's own features are not covered: often they are what an attacker changes first."""
    open_ones = [s for s in summary.certificate.claim.not_proved if "own features" in s or s == "Changed features."]
    if not open_ones or summary.certificate.claim.task == "graph":
        return []
    return [
        "Not covered, though often the cheapest attack: other features of the node itself. "
        "The gated division covers them."
    ]


def few_sizes(summary: Summary) -> list[int]:
    """A few sizes at which something is certified, that of the headline among them."""
    sizes = [size for size in FEW_SIZES if size <= summary.certificate.radius.max(initial=1)]
    sizes = sizes[:: 2 if len(sizes) > MOST_SIZES else 1]
    return sorted({*sizes, headline_times(summary) * deed(summary).price})


def class_table(summary: Summary) -> tuple[list[str], list[list[str]]]:
    """Titles and rows: bounds for each class at a few sizes; no rows if no truth is known."""
    sizes = few_sizes(summary)
    titles = ["certified at size", "no attack", *map(whole, sizes)]
    if summary.truth is None:
        return titles, []
    found = [summary.measures(size) for size in (-1, *sizes)]
    shown = list(summary.recalls)[:MOST_CLASSES]
    rows: list[tuple[str, list[float], int]] = [
        (f"recall of {class_word(summary, k)}", [float(each.recall[k]) for each in found], -1) for k in shown
    ]
    if shown and (summary.rare is not None or len(summary.recalls) == 2):
        k, name = shown[0], class_word(summary, shown[0])
        rows.insert(1, (f"precision of {name}", [float(each.precision[k]) for each in found], -1))
        rows.insert(2, (f"others taken for {name}, at most", [float(e.false_positive_rate[k]) for e in found], 1))
    rows.append(("balanced accuracy", [each.balanced_accuracy for each in found], -1))
    rows.append(("accuracy", [each.accuracy for each in found], -1))
    low = [bool(each.warning) for each in found]
    alone = f"accuracy of the most frequent class alone{' (* is below it)' if any(low) else ''}"
    rows.append((alone, [found[0].majority_share] * len(found), 0))
    cells = [[name, *(percent(value, bound) for value in values)] for name, values, bound in rows]
    cells[-2][1:] = [f"{cell}*" if is_low else cell for cell, is_low in zip(cells[-2][1:], low, strict=True)]
    return titles, cells


def class_records(summary: Summary, sizes: list[int]) -> list[dict[str, Any]]:
    """One record for each size and class: its targets, and the bounds; -1 is no attack."""
    records = []
    for size in sizes if summary.recalls else ():
        found = summary.measures(size)
        of_all = {name: getattr(found, name) for name in ("balanced_accuracy", "accuracy", "majority_share")}
        for k in sorted(summary.recalls):
            about = {"size": size, "class": k, "name": class_word(summary, k), "targets": int(found.support[k])}
            of_class = {name: float(getattr(found, name)[k]) for name in ("recall", "precision", "false_positive_rate")}
            records.append({**about, **of_class, **of_all})
    return records


def key_figures(summary: Summary) -> list[dict[str, str]]:
    """The numbers below the headline."""
    certificate, curve = summary.certificate, summary.certified
    if not summary.num_targets:
        return []
    size, typical, withstand = headline_times(summary) * deed(summary).price, "", "are certified against this or more"
    if summary.degree is not None:
        edges = int(np.median(summary.degree))
        typical = f" (a typical {certificate.claim.task} has {whole(edges)} edge{'' if edges == 1 else 's'})"
    step = summary.words.step.one if size == 1 else summary.words.step.many
    low = "" if summary.truth is None else summary.measures(size).warning.replace("%", "\N{NO-BREAK SPACE}%")
    at_size = f"{share_word(summary)} at {whole(size)} {step}{typical}{'; ' * bool(low)}{low}"
    figures = [
        (percent(curve.at(size), -1), at_size),
        (amount(_median(certificate.radius)), f"median radius: half of the {summary.targets} {withstand}"),
    ]
    if summary.structure is not None:
        figures.append((amount(_median(summary.structure)), f"median radius, counting {STRUCTURE_WORDS}"))
    elif summary.added is not None:
        figures.append((amount(_median(summary.added)), f"{added_words(summary)}: half {withstand}"))
    if certificate.claim.alpha is not None:
        figures.append((f"{certificate.claim.alpha:g}", "probability of error, at most"))
    return [{"value": value, "meaning": meaning} for value, meaning in figures]


def _median(values: Any) -> float:
    return float(np.quantile(values, 0.5, method="lower"))


def unjudged(summary: Summary) -> str:
    """How many targets have no known class and are not counted; empty if there are none."""
    unknown, judged = summary.num_targets - summary.num_judged, summary.num_judged
    if not unknown:
        return ""
    return (
        f"The class of {whole(unknown)} of {whole(summary.num_targets)} {summary.targets} is not known: every accuracy "
        f"here is a share of the other {whole(judged)}."
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
    """A sentence for each attack whose success would refute the certificate."""
    curve = summary.certified
    if summary.truth is None:
        return []
    return [
        f"At size {size:g} the attack left {percent(left)}, but {percent(curve.at(size))} is certified there."
        for size, left in sorted(summary.context.attacked)
        if left < curve.at(size) - 1e-9
    ]


def facts(summary: Summary) -> list[tuple[str, str]]:
    """Names and values of what the certificate is about."""
    claim = summary.certificate.claim
    guarantee = claim.guarantee
    if claim.alpha is not None:
        guarantee += f", wrong with probability at most {claim.alpha:g} for {claim.alpha_scope}"
    identity = {"node_id": "node ids, kept through every change", "row": "row numbers"}
    rows: list[tuple[str, Any]] = [
        ("Data", summary.context.dataset),
        ("Task", f"{claim.task} classification"),
        ("Targets", whole(summary.num_targets)),
        ("Method", claim.method),
        ("Division", claim.division),
        *summary.words.facts,
        ("Guarantee", guarantee),
        ("Identity of nodes", identity.get(claim.ids, claim.ids)),
        *((f"Issued {name}", value) for name, value in summary.certificate.issued.items()),
        ("Tolerance", claim.tolerance and f"{claim.tolerance:g}"),
        ("Written by", claim.library_version and f"agnncert {claim.library_version}"),
    ]
    return [(name, str(value)) for name, value in rows if value]
