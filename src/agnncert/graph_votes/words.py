"""What a report says about graph votes."""

from dataclasses import replace
from typing import TYPE_CHECKING

from agnncert.proving.words import CountWords, Deed, StepWords, Subject, Words, plain_words

if TYPE_CHECKING:
    from agnncert.graph_votes.evidence import GraphEvidence

_DEEDS = {
    "structure": ("gives any one node other features", "gives any {size} nodes other features"),
    "nodes": ("adds or deletes any one edge", "adds or deletes any {size} edges"),
    "count": (
        "gives any one node other features and changes any edges",
        "gives any {size} nodes other features and changes any edges",
    ),
    "none": (
        "injects, deletes or alters any one node and changes any edges",
        "injects, deletes or alters any {size} nodes and changes any edges",
    ),
}
_STEPS = {
    "structure": ("altered node", "altered nodes"),
    "nodes": ("changed edge", "changed edges"),
    "count": ("altered node", "altered nodes"),
    "none": ("changed node", "changed nodes"),
}
_READS = {
    "structure": "the structure, and no features",
    "nodes": "the features of all nodes, and no edges",
    "count": "the number of nodes, and no edges",
    "none": "nothing that is trusted",
}


def graph_words(evidence: "GraphEvidence", subject: Subject) -> Words:
    """Returns the words for graph votes."""
    deed = Deed(*_DEEDS[evidence.trusted])
    one, many = _STEPS[evidence.trusted]
    decided = f"Each label is decided by whole numbers: a score that reads {_READS[evidence.trusted]}"
    decided += ", and a bounded vote for each item that can be changed." if len(evidence.table) else "."
    if not len(evidence.table):
        decided += " What an attacker may change is not read, so no number of such changes alters a label."
    return replace(
        plain_words(subject),
        deed=deed,
        decided=decided,
        decides="model",
        step=StepWords(one, many, deed, deletes_edge=evidence.trusted != "structure"),
        counts=CountWords(title="Scores", one="step", many="steps"),
        stored="scores and items",
        anew="computes all scores and items again",
    )
