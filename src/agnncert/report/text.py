"""The sentences of the page that depend on the certificate; all others are in ``page.html.j2``."""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from agnncert.certificates.theorem_facts import THEOREMS
from agnncert.certificates.voting_rule import VotingRule
from agnncert.proving.evidence import VoteEvidence
from agnncert.report.summary import AT_MOST, REFERENCES, Summary, no_edge_labels
from agnncert.stacked.claim import TRUSTED

# The headline names the largest size at which the rarest class keeps this share of what is detected without an attack.
KEPT_MOST = 0.9
FEW_SIZES = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)  # of the table of classes
MOST_SIZES, MOST_CLASSES = 7, 12  # columns and classes there
STACKED = "stacked-votes"  # the method that needs no subgraphs
STRUCTURE_WORDS = "edges and nodes only added and deleted"  # what the second radius counts


@dataclass(frozen=True)
class DivisionWords:
    """The words that the page uses for a division. Facts about its rule are in ``certificates.rules.RULES``."""

    step: str  # what one step of the radius is
    steps: str  # what several steps are
    # What an attacker of size 1 does, and one of size {size}; None if a step is a changed vote. {other} becomes
    # "other " if changes of the target's own features are not covered.
    attack: tuple[str, str] | None
    presets: tuple[str, ...]  # what the explorer offers to change at first: "edges", "features"
    target: dict[str, str] = field(default_factory=dict)  # sentences about one target, where not those of TARGETS


_ALL_LISTED = {
    "listed_short": "listed one by one",
    "listed_sentence": "All {count} are listed.",
    "none_listed_sentence": "No vote is listed.",
    "default_sentence": "{count} further subgraphs cast its default vote: {vote}.",
    "reached_title": "Can be moved",
}
_GATED = {
    "listed_short": "in subgraphs that know it",
    "listed_sentence": "Its neighbours and itself fall into {count} of the subgraphs: {groups}.",
    "none_listed_sentence": "It is heard in none of the subgraphs.",
    "default_sentence": "{count} further subgraphs know nothing about it and abstain.",
}
_CHANGES_EDGES = ("changes any one edge", "changes any {size} edges")
_EDGES = ("changed edge", "changed edges", _CHANGES_EDGES)
_EDGES_OR_NODES = (
    "changed edge or node",
    "changed edges or nodes",
    ("changes any one edge or {other}node", "changes any {size} edges or {other}nodes"),
)
_FEATURES = (
    "node with changed features",
    "nodes with changed features",
    ("changes the features of any one node", "changes the features of any {size} nodes"),
)
_NODES = (
    "changed node",
    "changed nodes",
    ("injects, deletes or alters any one node", "injects, deletes or alters any {size} nodes"),
)
_VOTES = ("changed vote", "changed votes", None)
_STATED_PRICES = {  # of a user's own division, by the field of a budget
    "add_edges": ("adds any one edge", "adds any {size} edges"),
    "delete_edges": ("deletes any one edge", "deletes any {size} edges"),
    "inject_nodes": ("injects any one node", "injects any {size} nodes"),
    "delete_nodes": ("deletes any one node", "deletes any {size} nodes"),
    "change_features": _FEATURES[2],
}
_SAMPLED = {  # by the unit of a claim about random samples
    "edge added or deleted": ("adds or deletes any one edge{rest}", "adds or deletes any {size} edges{rest}"),
    "feature entry flipped": ("flips any one entry of the features", "flips any {size} entries of the features"),
    "node injected": ("injects any one node{rest}", "injects any {size} nodes{rest} each"),
}
_PER_NEIGHBOUR = {  # one subgraph for each neighbour, edge or node
    thing: {
        "listed_short": f"of its {thing}s",
        "listed_sentence": f"One vote for each {each}: {{count}}.",
        "none_listed_sentence": f"{none}, so no vote is cast.",
        "grid_sentence": f"One square for each {thing}; the number is the class voted for.",
        "group_title": title,
    }
    for thing, each, none, title in (
        ("neighbour", "neighbour that sends it messages", "No neighbour sends it messages", "Neighbour, by row"),
        ("edge", "of its edges", "There is no edge", "Edge, by number"),
        ("node", "of its nodes", "It has no node", "Node, by row"),
    )
}
DIVISIONS = {  # by the part of a rule's name before the slash, or by all of it
    "edge-centric": DivisionWords(*_EDGES, ("edges",)),
    "node-centric": DivisionWords(*_EDGES_OR_NODES, ("edges",)),
    "gated": DivisionWords(*_EDGES_OR_NODES, ("edges",), _GATED),
    "gnncert-e": DivisionWords(*_EDGES, ("edges",), _ALL_LISTED),
    "gnncert-n": DivisionWords(*_FEATURES, ("features",), _ALL_LISTED),
    "gnncert-en": DivisionWords(*_VOTES, ("edges", "features"), _ALL_LISTED),
    "custom": DivisionWords(*_VOTES, ("edges",), _ALL_LISTED),
    "per-neighbour/node": DivisionWords(*_EDGES_OR_NODES, ("edges", "features"), _PER_NEIGHBOUR["neighbour"]),
    "per-pair/node": DivisionWords(*_EDGES_OR_NODES, ("edges", "features"), _PER_NEIGHBOUR["edge"]),
    "per-neighbour/graph": DivisionWords(*_NODES, ("features",), _PER_NEIGHBOUR["node"]),
    "per-pair/graph": DivisionWords(*_EDGES, ("edges",), _PER_NEIGHBOUR["edge"]),
}
_SUBGRAPH = {"group_title": "Subgraph", "default_short": "default"}
TARGETS = {  # the view of one target, by task
    "node": _SUBGRAPH
    | {
        "listed_short": "in subgraphs with its edges",
        "listed_sentence": "Its neighbours fall into {count} of the subgraphs: {groups}.",
        "none_listed_sentence": "It has an edge in none of the subgraphs.",
        "default_sentence": "In {count} further subgraphs it has no edge and casts its default vote, "
        "from its features alone: {vote}.",
        "grid_sentence": "Framed: the node has an edge there. Pale: its default vote.",
        "reached_title": "Has an edge there",
        "neighbours_title": "New neighbours",
    },
    "graph": _SUBGRAPH
    | {
        "listed_short": "in subgraphs with a part of the graph",
        "listed_sentence": "Its parts fall into {count} of the subgraphs: {groups}.",
        "none_listed_sentence": "No subgraph holds any part of it.",
        "default_sentence": "{count} further subgraphs are empty and abstain.",
        "grid_sentence": "Framed: edges can change there. Grey: empty, no vote.",
        "reached_title": "Can hold an edge",
        "neighbours_title": "Injected nodes",
    },
}


def division_words(theorem: str) -> DivisionWords:
    """The words of the division that a rule belongs to."""
    return DIVISIONS[theorem] if theorem in DIVISIONS else DIVISIONS[theorem.split("/")[0]]


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


def whole(number: float) -> str:
    """A whole number with thousands separators."""
    return f"{int(number):,}"


def amount(number: float) -> str:
    """How much a target is certified against: a number, "any" or "none"."""
    return "none" if number < 0 else "any" if np.isinf(number) else whole(number)


def step_words(summary: Summary) -> tuple[str, str]:
    """What one step, and several steps, of the radius are."""
    if summary.votes is None:
        return _EDGES_OR_NODES[:2] if summary.certificate.claim.method == STACKED else ("step", "steps")
    words = division_words(summary.votes.theorem)
    return words.step, words.steps


def things(summary: Summary) -> str:
    """What the targets are."""
    return unit.targets if (unit := summary.context.unit) is not None else f"{summary.certificate.claim.task}s"


def share_word(summary: Summary) -> str:
    """What the curves show."""
    return "certified accuracy" if summary.truth is not None else "certified share"


def added_words(summary: Summary) -> str:
    """What the second curve and column count."""
    if summary.certificate.claim.task == "node":
        return "new neighbours, everything else unlimited"
    return "injected nodes with any edges"


def own_group(evidence: VoteEvidence) -> str:
    """What each subgraph stands for, with one subgraph per neighbour, edge or node."""
    facts = THEOREMS[evidence.theorem]
    return f"{'edge' if facts.one_way else 'neighbour' if facts.task == 'node' else 'node'} of the {facts.task}"


def class_word(summary: Summary, k: int) -> str:
    """The name of a class, or "class" and its number."""
    names = summary.context.class_names
    return f"class {k}" if names is None or k >= len(names) else str(names[k])


@dataclass(frozen=True)
class Deed:
    """An action of an attacker: in words once and ``{size}`` times, and how many steps of the radius one costs."""

    one: str
    many: str
    price: int = 1

    def times(self, count: int) -> str:
        """The action, performed ``count`` times."""
        return self.one if count == 1 else self.many.format(size=whole(count))


def deed(summary: Summary) -> Deed:
    """The action of an attacker that the sizes of a certificate count."""
    if summary.certificate.claim.method == STACKED:
        apart = ", trusted edges apart" if getattr(summary.certificate.evidence, "trusted", -1) >= 0 else ""
        one, many = (words.replace("{other}", "other ") + apart for words in _EDGES_OR_NODES[2])
        return Deed(one, many)
    if summary.votes is None:
        unit = summary.certificate.claim.unit
        start = next((start for start in _SAMPLED if unit.startswith(start)), None)
        if start is None:
            return Deed(f"reaches size 1 ({unit})", f"reaches size {{size}} ({unit})")
        one, many = (words.replace("{rest}", unit.removeprefix(start)) for words in _SAMPLED[start])
        return Deed(one, many)
    theorem, parameters = summary.votes.theorem, summary.votes.parameters
    facts, attack = THEOREMS[theorem], division_words(theorem).attack
    if attack is not None:
        other = "other " if facts.task == "node" and not facts.target_features else ""
        one, many = (words.replace("{other}", other) for words in attack)
        return Deed(one, many)
    if "feature_groups" in parameters:
        return Deed(*_CHANGES_EDGES, price=int(parameters["feature_groups"]))
    edges = {int(parameters.get(name, 0)) for name in ("add_edges", "delete_edges", "change_edges")}
    if len(edges) == 1 and edges != {0}:
        return Deed(*_CHANGES_EDGES, price=edges.pop())
    stated = [Deed(*words, price=int(parameters.get(name, 0))) for name, words in _STATED_PRICES.items()]
    return next((each for each in stated if each.price), Deed("moves any one vote", "moves any {size} votes"))


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
        whom = f"{whole(summary.support[k])} {things(summary)} of {_quoted(summary, k)}"
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

    That trusted edges stay as they are comes before everything else.
    """
    first = next(iter(summary.certificate.claim.assumes), "")
    lines = [f"Assumed: {first}"] if first.startswith(TRUSTED) else []
    if summary.truth is None:
        lines.append(f"The {things(summary)} have no known labels, so nothing is said about being right.")
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
    decides = "largest score" if summary.certificate.claim.method == STACKED else "vote"
    return "; ".join([f"Without an attack the {decides} is right for {right} of the {things(summary)}", *others]) + "."


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
    low = "" if summary.truth is None else summary.measures(size).warning.replace("%", "\N{NO-BREAK SPACE}%")
    at_size = f"{share_word(summary)} at {whole(size)} {step_words(summary)[size != 1]}{typical}{'; ' * bool(low)}{low}"
    figures = [
        (percent(curve.at(size), -1), at_size),
        (amount(_median(certificate.radius)), f"median radius: half of the {things(summary)} {withstand}"),
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


def conceded(summary: Summary) -> str:
    """How many votes were too close to a tie and are counted for the rival; empty if there are none."""
    if summary.votes is None:
        return ""
    votes = summary.votes.votes
    shaky = int((~votes.stable).sum()) + int(votes.num_unlisted[~votes.default_stable].sum())
    per_neighbour = THEOREMS[summary.votes.theorem].per_neighbour
    cast = len(votes.vote) if per_neighbour else votes.num_targets * votes.num_groups
    return f"Votes that are too close to call count for the rival: {whole(shaky)} of {whole(cast)}." if shaky else ""


def unjudged(summary: Summary) -> str:
    """How many targets have no known class and are not counted; empty if there are none."""
    unknown, judged = summary.num_targets - summary.num_judged, summary.num_judged
    if not unknown:
        return ""
    return (
        f"The class of {whole(unknown)} of {whole(summary.num_targets)} {things(summary)} is not known: every accuracy "
        f"here is a share of the other {whole(judged)}."
    )


def structure_notes(summary: Summary) -> list[str]:
    """How much the labels depend on the graph: a model that ignores the graph is easy to certify."""
    no_edge = no_edge_labels(summary.certificate)
    if summary.votes is None or no_edge is None or not summary.num_targets:
        return []
    votes = summary.votes.votes
    same = percent(float((no_edge == summary.certificate.label).mean()))
    heard, others = len(votes.vote) / votes.num_targets, ""
    if summary.votes.voting_rule.empty == "no_edge":
        others = f"; the others of {whole(votes.num_groups)} see its features alone"
    notes = [
        f"For {same} of the nodes the elected label is the one that the model gives without any edges.",
        f"{heard:.1f} votes on average were cast where the node has an edge{others}.",
    ]
    if summary.degree is not None:
        notes.append(f"The nodes have {summary.degree.mean():.1f} edges on average.")
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
    subgraphs = whole(claim.num_groups) if claim.num_groups else ""
    if summary.votes is not None and THEOREMS[summary.votes.theorem].per_neighbour:
        subgraphs = f"one for each {own_group(summary.votes)}"
    identity = {"node_id": "node ids, kept through every change", "row": "row numbers"}
    rows: list[tuple[str, Any]] = [
        ("Data", summary.context.dataset),
        ("Task", f"{claim.task} classification"),
        ("Targets", whole(summary.num_targets)),
        ("Method", claim.method),
        ("Division", claim.division),
        ("Subgraphs", subgraphs),
        ("Votes", summary.votes and _vote_setting(summary.votes)),
        ("Guarantee", guarantee),
        ("Identity of nodes", identity.get(claim.ids, claim.ids)),
        *((f"Issued {name}", value) for name, value in summary.certificate.issued.items()),
        ("Tolerance", claim.tolerance and f"{claim.tolerance:g}"),
        ("Written by", claim.library_version and f"agnncert {claim.library_version}"),
    ]
    return [(name, str(value)) for name, value in rows if value]


def _vote_setting(evidence: VoteEvidence) -> str:
    """The voting rule as a Python expression; empty for the default rule."""
    plain = VotingRule().under(evidence.theorem, evidence.votes.num_classes)
    if evidence.voting_rule == plain:
        return ""
    prior = evidence.voting_rule.prior
    return (
        f"VotingRule(empty={evidence.voting_rule.empty!r}, prior={prior if isinstance(prior, int) else list(prior)!r})"
    )


def elected(summary: Summary) -> str:
    """Which votes decide a label, for the first sentence of the page."""
    evidence = summary.votes
    if evidence is None:
        return "a score of its own features and one bounded vote for each of its neighbours"
    votes = f"{whole(evidence.votes.num_groups)} predictions, one for every part of a divided graph"
    if THEOREMS[evidence.theorem].per_neighbour:
        votes = f"one prediction for each {own_group(evidence)}"
    return votes + (", added to votes that are given in advance" if evidence.voting_rule.prior else "")


def vote_notes(summary: Summary) -> list[str]:
    """How votes are counted; empty for the default voting rule of a division."""
    evidence = summary.votes
    if evidence is None:
        return []
    notes = [*_own_group_notes(evidence), *_empty_notes(summary, evidence), *_prior_notes(summary, evidence)]
    return [*notes, "All of this was fixed before any vote was cast."] if notes else []


def _own_group_notes(evidence: VoteEvidence) -> list[str]:
    facts = THEOREMS[evidence.theorem]
    if not facts.per_neighbour:
        return []
    sees = "the edge and its two ends" if facts.one_way else "these two nodes" if facts.task == "node" else "that node"
    thing = "edge" if facts.one_way else "neighbour" if facts.task == "node" else "node"
    moves = "that comes or goes moves the count by one vote, and one that is altered by up to two"
    if evidence.voting_rule.empty != "abstain":
        moves = "that comes, goes or is altered moves the count by up to two votes"
    direction = " A second direction for an edge that has one alters it." if facts.one_way else ""
    return [
        f"Each {own_group(evidence)} casts one vote, which sees {sees} and nothing else.",
        f"So {'an' if thing == 'edge' else 'a'} {thing} {moves}.{direction} The radius allows for any mix; beside it "
        "stands the radius against attacks that only add and delete.",
    ]


def _empty_notes(summary: Summary, evidence: VoteEvidence) -> list[str]:
    facts, empty = THEOREMS[evidence.theorem], evidence.voting_rule.empty
    if empty == facts.empty[0]:
        return []
    if facts.per_neighbour:
        name = class_word(summary, int(empty or 0))
        return [f"Each vote that is cast takes one vote from {name}: groups that are empty would vote for it."]
    empty_for = "in which the node has no edge that brings it a message"
    if facts.target_features:
        empty_for = "that knows nothing about the node"
    if facts.task == "graph":
        empty_for = f"without {'an edge' if facts.uses_reach else 'a node'} of the graph"
    cast = "casts no vote" if empty == "abstain" else f"votes for {class_word(summary, int(empty or 0))}"
    return [f"A subgraph {empty_for} {cast}, whatever the model says."]


def _prior_notes(summary: Summary, evidence: VoteEvidence) -> list[str]:
    voting_rule = evidence.voting_rule
    given = [(number, class_word(summary, k)) for k, number in enumerate(voting_rule.class_prior)]
    if voting_rule.no_edge_prior:
        given.append((voting_rule.no_edge_prior, "what the model predicts from the node’s features alone"))
    words = [f"{whole(abs(number))} {'for' if number > 0 else 'against'} {whom}" for number, whom in given if number]
    if not words:
        return []
    notes = [f"Votes given in advance, which no attack on the graph can move: {', '.join(words)}."]
    doubtful = 0 if evidence.no_edge_stable is None else int((~evidence.no_edge_stable).sum())
    if voting_rule.no_edge_prior and doubtful:
        notes.append(
            f"For {whole(doubtful)} of {whole(summary.num_targets)} {things(summary)} that prediction is too close "
            "to call: these votes are counted for the rival there."
        )
    return notes


def empty_words(evidence: VoteEvidence) -> dict[str, str]:
    """Sentences about one target, if the voting rule says what empty subgraphs vote for."""
    facts, empty = THEOREMS[evidence.theorem], evidence.voting_rule.empty
    if facts.per_neighbour or empty == facts.empty[0]:
        return {}
    empty_for = "In {count} further subgraphs it has no edge that brings it a message"
    if facts.task == "graph":
        empty_for = "{count} further subgraphs are empty"
    if facts.target_features:
        empty_for = "{count} further subgraphs know nothing about it"
    cast = "casts no vote" if empty == "abstain" else "votes for {vote}, whatever the model says"
    grid = TARGETS[facts.task]["grid_sentence"].partition(". ")[0]
    pale = "Grey: empty, no vote." if empty == "abstain" else "Pale: empty."
    return {
        "default_sentence": f"{empty_for}; each {cast}.",
        "default_short": "of empty subgraphs",
        "grid_sentence": f"{grid}. {pale}",
    }
