"""How votes are counted, in plain words: groups of their own, empty groups, and votes that are given in advance."""

from agnncert.proof.evidence import BallotEvidence
from agnncert.proof.rules import RULES
from agnncert.report.summary import Summary
from agnncert.report.words import TARGETS, class_word, own_group, things, votes_word, whole


def elected(summary: Summary) -> str:
    """What elects a label, for the first sentence of the page."""
    evidence = summary.ballots
    if evidence is None:
        return ""
    ballots = f"{whole(evidence.votes.num_groups)} predictions, one for every part of a divided graph"
    if RULES[evidence.rule].own_groups:
        ballots = f"one prediction for each {own_group(evidence)}"
    return ballots + (", added to votes that are given in advance" if evidence.vote.prior else "")


def vote_notes(summary: Summary) -> list[str]:
    """How votes are counted, in plain words; empty for the plain vote of a division."""
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
                "to call: these votes are handed to the attacker there."
            )
    return notes


def _listed(parts: list[str], most: int = 12) -> str:
    """Parts of a sentence with commas and an "and" between them; the rest of many is only counted."""
    shown = parts[:most] + ([f"votes about {len(parts) - most} other classes"] if len(parts) > most else [])
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def empty_words(evidence: BallotEvidence) -> dict[str, str]:
    """Sentences about one target, where subgraphs that are empty for it cast something unusual."""
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
