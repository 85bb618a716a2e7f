"""The sentences of the page that depend on the certificate; all others are in ``page.html.j2``."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from agnncert.certificates.rules import RULES
from agnncert.certificates.voting_rule import VotingRule
from agnncert.proving.evidence import BallotEvidence
from agnncert.report.summary import Summary, edgeless_labels

# The headline names the largest size at which this share of what holds without an attack is still certified.
KEPT_MOST = 0.9
STRUCTURE_WORDS = "edges and nodes only added and deleted"  # what the second radius counts


@dataclass(frozen=True)
class DivisionWords:
    """The words that the page uses for a division. Facts about its rule are in ``certificates.rules.RULES``.

    Attributes:
        step: What one step of the radius is.
        steps: What several steps are.
        attack: What an attacker of size 1 does, and one of size ``{size}``; None if a step is a changed ballot.
            ``{other}`` becomes "other " if changes of the target's own features are not covered.
        presets: What the explorer offers to change at first: ``"edges"``, ``"features"``.
        target: Sentences about one target, where they differ from :data:`TARGETS`.
    """

    step: str
    steps: str
    attack: tuple[str, str] | None
    presets: tuple[str, ...]
    target: dict[str, str] = field(default_factory=dict)


_ALL_LISTED = {
    "listed_short": "listed one by one",
    "listed_sentence": "All {count} are listed.",
    "none_listed_sentence": "No ballot is listed.",
    "default_sentence": "{count} further subgraphs cast its default ballot: {ballot}.",
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
_BALLOTS = ("changed ballot", "changed ballots", None)
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
_OWN_GROUPS = {  # one subgraph for each neighbour, edge or node
    thing: {
        "listed_short": f"of its {thing}s",
        "listed_sentence": f"One ballot for each {each}: {{count}}.",
        "none_listed_sentence": f"{none}, so no ballot is cast.",
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
    "gnncert-en": DivisionWords(*_BALLOTS, ("edges", "features"), _ALL_LISTED),
    "custom": DivisionWords(*_BALLOTS, ("edges",), _ALL_LISTED),
    "per-neighbour/node": DivisionWords(*_EDGES_OR_NODES, ("edges", "features"), _OWN_GROUPS["neighbour"]),
    "per-pair/node": DivisionWords(*_EDGES_OR_NODES, ("edges", "features"), _OWN_GROUPS["edge"]),
    "per-neighbour/graph": DivisionWords(*_NODES, ("features",), _OWN_GROUPS["node"]),
    "per-pair/graph": DivisionWords(*_EDGES, ("edges",), _OWN_GROUPS["edge"]),
}
TARGETS = {  # the view of one target, by task
    "node": {
        "listed_short": "in subgraphs with its edges",
        "listed_sentence": "Its neighbours fall into {count} of the subgraphs: {groups}.",
        "none_listed_sentence": "It has an edge in none of the subgraphs.",
        "default_sentence": "In {count} further subgraphs it has no edge and casts its default ballot, "
        "from its features alone: {ballot}.",
        "grid_sentence": "Framed: the node has an edge there. Pale: its default ballot.",
        "group_title": "Subgraph",
        "default_short": "default",
        "reached_title": "Has an edge there",
        "neighbours_title": "New neighbours",
    },
    "graph": {
        "listed_short": "in subgraphs with a part of the graph",
        "listed_sentence": "Its parts fall into {count} of the subgraphs: {groups}.",
        "none_listed_sentence": "No subgraph holds any part of it.",
        "default_sentence": "{count} further subgraphs are empty and abstain.",
        "grid_sentence": "Framed: edges can change there. Grey: empty, no vote.",
        "group_title": "Subgraph",
        "default_short": "default",
        "reached_title": "Can hold an edge",
        "neighbours_title": "Injected nodes",
    },
}


def division_words(rule: str) -> DivisionWords:
    """The words of the division that a rule belongs to."""
    return DIVISIONS[rule] if rule in DIVISIONS else DIVISIONS[rule.split("/")[0]]


def percent(share: float) -> str:
    r"""A share in percent, with one decimal.

    Example:
        >>> percent(0.7134)
        '71.3\xa0%'
    """
    return f"{100 * share:.1f}\u00a0%"


def whole(number: float) -> str:
    """A whole number with thousands separators."""
    return f"{int(number):,}"


def amount(number: float) -> str:
    """How much a target is certified against: a number, "any" or "none"."""
    return "none" if number < 0 else "any" if np.isinf(number) else whole(number)


def step_words(summary: Summary) -> tuple[str, str]:
    """What one step, and several steps, of the radius are."""
    if summary.ballots is None:
        return "step", "steps"
    words = division_words(summary.ballots.rule)
    return words.step, words.steps


def steps(summary: Summary, size: int) -> str:
    """What ``size`` steps of the radius are, such as "3 changed edges"."""
    one, many = step_words(summary)
    return f"{whole(size)} {one if size == 1 else many}"


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


def own_group(evidence: BallotEvidence) -> str:
    """What each subgraph stands for, with one subgraph per neighbour, edge or node."""
    rule = RULES[evidence.rule]
    return f"{'edge' if rule.one_way else 'neighbour' if rule.task == 'node' else 'node'} of the {rule.task}"


def votes_word(number: int) -> str:
    """A number of votes, such as "1 vote" or "3 votes"."""
    return f"{whole(number)} vote{'' if number == 1 else 's'}"


def class_word(summary: Summary, k: int) -> str:
    """The name of a class, or "class" and its number."""
    names = summary.context.class_names
    return f"class {k}" if names is None else str(names[k])


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
    if summary.ballots is None:
        unit = summary.certificate.claim.unit
        start = next((start for start in _SAMPLED if unit.startswith(start)), None)
        if start is None:
            return Deed(f"reaches size 1 ({unit})", f"reaches size {{size}} ({unit})")
        one, many = (words.replace("{rest}", unit.removeprefix(start)) for words in _SAMPLED[start])
        return Deed(one, many)
    rule, parameters = summary.ballots.rule, summary.ballots.parameters
    facts, attack = RULES[rule], division_words(rule).attack
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
    return next((each for each in stated if each.price), Deed("moves any one ballot", "moves any {size} ballots"))


def headline_times(summary: Summary) -> int:
    """How often the attacker of the headline acts: at least once, and as often as keeps :data:`KEPT_MOST`."""
    curve, price = summary.certified, deed(summary).price
    kept = curve.size[curve.share >= KEPT_MOST * curve.share[0]] if curve.share[0] else curve.size[:1]
    return max(1, int(kept[-1]) // price)


def headline(summary: Summary) -> str:
    """The main result in one sentence."""
    curve, attack, times = summary.certified, deed(summary), headline_times(summary)
    if curve.share[0] == 0:
        return "Nothing is proved about these decisions"
    stay = "stay correct" if summary.truth is not None else "stay the same"
    share, done = curve.at(times * attack.price), attack.times(times)
    if (unit := summary.context.unit) is not None:
        edited = next(iter(summary.unit_curves.values()))
        count = max(1, int(edited.size[edited.share >= KEPT_MOST * edited.share[0]][-1]))
        share, done = edited.at(count), unit.done(count)
    if share == 0:
        return f"None of {whole(summary.num_judged)} decisions is proved to {stay} when an attacker {done}"
    return f"At least {percent(share)} of {whole(summary.num_judged)} decisions {stay} when an attacker {done}"


def key_figures(summary: Summary) -> list[dict[str, str]]:
    """The numbers below the headline."""
    certificate, curve = summary.certificate, summary.certified
    if not summary.num_targets:
        return []
    size, typical = headline_times(summary) * deed(summary).price, ""
    if summary.degree is not None:
        edges = int(np.median(summary.degree))
        typical = f" (a typical {certificate.claim.task} has {whole(edges)} edge{'' if edges == 1 else 's'})"
    figures = [
        (percent(curve.at(size)), f"{share_word(summary)} at {steps(summary, size)}{typical}"),
        (
            amount(_median(certificate.radius)),
            f"median radius: half of the {things(summary)} are certified against this or more",
        ),
    ]
    if summary.truth is not None:
        clean = percent(float(summary.counted.sum() / summary.num_judged))
        figures.insert(0, (clean, f"of {whole(summary.num_judged)} {things(summary)} correct without an attack"))
    if summary.structure is not None:
        figures.append((amount(_median(summary.structure)), f"median radius, counting {STRUCTURE_WORDS}"))
    elif summary.added is not None:
        figures.append(
            (amount(_median(summary.added)), f"{added_words(summary)}: half are certified against this or more")
        )
    if certificate.claim.alpha is not None:
        figures.append((f"{certificate.claim.alpha:g}", "probability of error, at most"))
    return [{"value": value, "meaning": meaning} for value, meaning in figures]


def _median(values: Any) -> float:
    return float(np.quantile(values, 0.5, method="lower"))


def conceded(summary: Summary) -> str:
    """How many ballots were too close to a tie and are counted for the rival; empty if there are none."""
    if summary.ballots is None or not summary.num_targets:
        return ""
    votes = summary.ballots.votes
    shaky = int((~votes.stable).sum()) + int(votes.num_unlisted[~votes.default_stable].sum())
    own_groups = RULES[summary.ballots.rule].own_groups
    share = shaky / max(1, len(votes.ballot) if own_groups else votes.num_targets * votes.num_groups)
    if not shaky:
        return ""
    many = f"{percent(share)} of all ballots" if share >= 0.0005 else f"{whole(shaky)} ballots"
    were = "One ballot was" if shaky == 1 else f"{many} were"
    return f"{were} too close to call and are therefore counted for the rival."


def unjudged(summary: Summary) -> str:
    """How many targets have no known class and are not counted; empty if there are none."""
    unknown = summary.num_targets - summary.num_judged
    if not unknown:
        return ""
    have = "has" if unknown == 1 else "have"
    return (
        f"{whole(unknown)} of {whole(summary.num_targets)} {things(summary)} {have} no known class: every accuracy "
        f"here is a share of the other {whole(summary.num_judged)}."
    )


def structure_notes(summary: Summary) -> list[str]:
    """How much the labels depend on the graph: a model that ignores the graph is easy to certify."""
    edgeless = edgeless_labels(summary.certificate)
    if summary.ballots is None or edgeless is None or not summary.num_targets:
        return []
    votes = summary.ballots.votes
    same = percent(float((edgeless == summary.certificate.label).mean()))
    notes = [f"For {same} of the nodes the elected label is the one that the model gives without any edges."]
    if summary.ballots.vote.empty == "edgeless":
        heard = percent(len(votes.ballot) / (votes.num_targets * votes.num_groups))
        notes.append(
            f"{heard} of all ballots were cast in a subgraph where the node has an edge; the others see its features "
            "only."
        )
    else:
        notes.append(
            f"{len(votes.ballot) / votes.num_targets:.1f} ballots on average were cast where the node has an edge."
        )
    prior = summary.ballots.vote.edgeless_prior
    if prior > 0:
        notes.append(f"The prediction without edges gets {votes_word(prior)} in advance.")
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
    if summary.ballots is not None and RULES[summary.ballots.rule].own_groups:
        subgraphs = f"one for each {own_group(summary.ballots)}"
    identity = {"node_id": "node ids, kept through every change", "row": "row numbers"}
    rows: list[tuple[str, Any]] = [
        ("Data", summary.context.dataset),
        ("Task", f"{claim.task} classification"),
        ("Targets", whole(summary.num_targets)),
        ("Method", claim.method),
        ("Division", claim.division),
        ("Subgraphs", subgraphs),
        ("Votes", summary.ballots and _vote_setting(summary.ballots)),
        ("Guarantee", guarantee),
        ("Identity of nodes", identity.get(claim.ids, claim.ids)),
        ("Tolerance", claim.tolerance and f"{claim.tolerance:g}"),
        ("Written by", claim.library_version and f"agnncert {claim.library_version}"),
    ]
    return [(name, str(value)) for name, value in rows if value]


def _vote_setting(evidence: BallotEvidence) -> str:
    """The voting rule as a Python expression; empty for the default rule."""
    plain = VotingRule().under(evidence.rule, evidence.votes.num_classes)
    if evidence.vote == plain:
        return ""
    prior = evidence.vote.prior
    return f"VotingRule(empty={evidence.vote.empty!r}, prior={prior if isinstance(prior, int) else list(prior)!r})"


def elected(summary: Summary) -> str:
    """Which votes decide a label, for the first sentence of the page."""
    evidence = summary.ballots
    if evidence is None:
        return ""
    ballots = f"{whole(evidence.votes.num_groups)} predictions, one for every part of a divided graph"
    if RULES[evidence.rule].own_groups:
        ballots = f"one prediction for each {own_group(evidence)}"
    return ballots + (", added to votes that are given in advance" if evidence.vote.prior else "")


def vote_notes(summary: Summary) -> list[str]:
    """How votes are counted; empty for the default voting rule of a division."""
    evidence = summary.ballots
    if evidence is None:
        return []
    notes = [*_own_group_notes(evidence), *_empty_notes(summary, evidence), *_prior_notes(summary, evidence)]
    return [*notes, "All of this was fixed before any ballot was cast."] if notes else []


def _own_group_notes(evidence: BallotEvidence) -> list[str]:
    rule = RULES[evidence.rule]
    if not rule.own_groups:
        return []
    sees = "the edge and its two ends" if rule.one_way else "these two nodes" if rule.task == "node" else "that node"
    thing = "edge" if rule.one_way else "neighbour" if rule.task == "node" else "node"
    moves = "that comes or goes moves the count by one vote, and one that is altered by up to two"
    if evidence.vote.empty != "abstain":
        moves = "that comes, goes or is altered moves the count by up to two votes"
    direction = " A second direction for an edge that has one alters it." if rule.one_way else ""
    return [
        f"Each {own_group(evidence)} casts one ballot, which sees {sees} and nothing else.",
        f"So {'an' if thing == 'edge' else 'a'} {thing} {moves}.{direction} The radius allows for any mix; beside it "
        "stands the radius against attacks that only add and delete.",
    ]


def _empty_notes(summary: Summary, evidence: BallotEvidence) -> list[str]:
    rule, empty = RULES[evidence.rule], evidence.vote.empty
    if empty == rule.empty[0]:
        return []
    if rule.own_groups:
        name = class_word(summary, int(empty or 0))
        return [f"Each ballot that is cast takes one vote from {name}: groups that are empty would vote for it."]
    empty_for = "in which the node has no edge that brings it a message"
    if rule.target_features:
        empty_for = "that knows nothing about the node"
    if rule.task == "graph":
        empty_for = f"without {'an edge' if rule.uses_cover else 'a node'} of the graph"
    cast = "casts no ballot" if empty == "abstain" else f"votes for {class_word(summary, int(empty or 0))}"
    return [f"A subgraph {empty_for} {cast}, whatever the model says."]


def _prior_notes(summary: Summary, evidence: BallotEvidence) -> list[str]:
    vote, notes = evidence.vote, []
    for k, number in enumerate(vote.class_prior):
        if number:
            notes.append(f"{votes_word(abs(number))} {'for' if number > 0 else 'against'} {class_word(summary, k)}")
    if notes:
        verb = "is" if len(notes) == 1 and notes[0].startswith("1 vote ") else "are"
        return [f"{_listed(notes)} {verb} given in advance; no attack can move them."]
    if vote.edgeless_prior and evidence.edgeless_stable is not None:
        number = vote.edgeless_prior
        verb = "is" if abs(number) == 1 else "are"
        notes.append(
            f"{votes_word(abs(number))} {'for' if number > 0 else 'against'} what the model predicts from the node’s "
            f"features alone {verb} given in advance; no attack on the graph can move them."
        )
        doubtful = int((~evidence.edgeless_stable).sum())
        if doubtful:
            notes.append(
                f"For {whole(doubtful)} of {whole(summary.num_targets)} {things(summary)} that prediction is too close "
                "to call: these votes are counted for the rival there."
            )
    return notes


def _listed(parts: list[str], most: int = 12) -> str:
    """Joins parts of a sentence with commas and "and"; parts after the first ``most`` are only counted."""
    shown = parts[:most] + ([f"votes about {len(parts) - most} other classes"] if len(parts) > most else [])
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def empty_words(evidence: BallotEvidence) -> dict[str, str]:
    """Sentences about one target, if the voting rule says what empty subgraphs vote for."""
    rule, empty = RULES[evidence.rule], evidence.vote.empty
    if rule.own_groups or empty == rule.empty[0]:
        return {}
    empty_for = "In {count} further subgraphs it has no edge that brings it a message"
    if rule.task == "graph":
        empty_for = "{count} further subgraphs are empty"
    if rule.target_features:
        empty_for = "{count} further subgraphs know nothing about it"
    cast = "casts no ballot" if empty == "abstain" else "votes for {ballot}, whatever the model says"
    grid = TARGETS[rule.task]["grid_sentence"].partition(". ")[0]
    pale = "Grey: empty, no vote." if empty == "abstain" else "Pale: empty."
    return {
        "default_sentence": f"{empty_for}; each {cast}.",
        "default_short": "of empty subgraphs",
        "grid_sentence": f"{grid}. {pale}",
    }
