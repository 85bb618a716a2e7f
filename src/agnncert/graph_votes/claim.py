"""What a certificate of graph votes says in words."""

from collections.abc import Iterator, Mapping

from agnncert import __version__
from agnncert.certificates.claim import (
    LABEL_MAY_BE_WRONG,
    MODEL_AS_GIVEN,
    PREMISES,
    Claim,
    about_encoding,
    named_model,
)
from agnncert.graph_votes.record import GraphRecord

METHOD = "graph-votes"
UNITS = {
    "structure": "one node given other features",
    "nodes": "one edge added or deleted",
    "count": "one node given other features; edges change in any number",
    "none": "one node injected, deleted or given other features; edges change in any number",
}
_COVERS = {
    "structure": ("Features of nodes changed to anything.",),
    "nodes": ("Edges added or deleted anywhere, and edges given another value or number of copies.",),
    "count": (
        "Features of nodes changed to anything.",
        "Edges added, deleted and changed, in any number.",
    ),
    "none": (
        "Nodes injected with any features and any number of edges, nodes deleted, and features changed to anything.",
        "Edges added, deleted and changed, in any number.",
    ),
}
_READS = {
    "structure": (
        "reads how many nodes there are and which of them are joined, and neither features nor ids nor the order of "
        "nodes nor values of edges"
    ),
    "nodes": "reads the features of all nodes in any order, and neither edges nor their values nor ids",
    "count": "reads the number of nodes, and neither edges nor their values nor ids nor the order of nodes",
    "none": "is the same for all graphs",
}
_VOTES = {
    "structure": "each node has a vote, by its role in the structure and the type of its features",
    "nodes": "each pair of joined nodes has a vote, by the features of its two ends",
    "count": "each node has a vote, by the type of its features",
    "none": "each node has a vote, by the type of its features, and the number of nodes has a score",
}
_TRUSTED = {
    "structure": "which nodes and edges there are",
    "nodes": "which nodes there are, and their features",
    "count": "how many nodes there are",
}


def make_graph_claim(
    record: GraphRecord, *, digests: Mapping[str, str] | None = None, notes: tuple[str, ...] = ()
) -> Claim:
    """Returns the claim that belongs to graph votes.

    Args:
        record: The scores and items.
        digests: SHA-256 by name, none by default. That of ``"model"`` is quoted in the assumptions.
        notes: Further remarks, stored as they are.
    """
    digests = dict(digests or {})
    return Claim(
        task=record.task,
        method=METHOD,
        division="",
        num_groups=0,
        guarantee="deterministic",
        unit=_unit(record),
        covers=tuple(_covers(record)),
        assumes=tuple(_assumes(record, digests)),
        not_proved=tuple(_not_proved(record)),
        ids=record.ids,
        digests=digests,
        notes=notes,
        library_version=__version__,
    )


def has_votes(record: GraphRecord) -> bool:
    """Tells whether anything but what is trusted enters a score."""
    return bool(record.table.size) or record.trusted == "none"


def _unit(record: GraphRecord) -> str:
    return UNITS[record.trusted]


def _covers(record: GraphRecord) -> Iterator[str]:
    """Yields the changes that are covered."""
    covered = _COVERS[record.trusted]
    if record.task == "node":
        yield "Features of nodes changed to anything, the target's own included."
    else:
        yield from covered
    if record.trusted == "structure":
        yield "Edges given another value, number of copies or direction, as long as the same nodes are joined."
    if not has_votes(record):
        yield "Any number of these changes: nothing that they change is read."
    if len(covered) > 1:
        yield "Any mix of these in one attack: ask holds_against(Budget(...))."


def _assumes(record: GraphRecord, digests: Mapping[str, str]) -> Iterator[str]:
    """Yields what must be true."""
    yield from PREMISES
    if record.trusted != "none":
        yield f"An attacker cannot change {_TRUSTED[record.trusted]}."
    if record.task == "node":
        yield "The target keeps its place in the graph."
    yield from about_encoding(digests)
    first = f"{named_model(digests)} adds up whole numbers: what it says in advance"
    second = f", and {_VOTES[record.trusted]}" if has_votes(record) else ""
    yield f"{first} {_READS[record.trusted]}{second}."
    if len(record.table):
        made_for = "none" if record.made_for is None else f"{record.made_for:,}"
        yield f"Votes were fixed before any graph was certified, and made for this many changes: {made_for}."


def _not_proved(record: GraphRecord) -> Iterator[str]:
    """Yields what is not proved."""
    yield LABEL_MAY_BE_WRONG
    yield MODEL_AS_GIVEN
    if record.trusted == "structure":
        yield "Anything about edges or nodes that are added or deleted: the structure is trusted."
    elif record.trusted == "nodes":
        yield "Anything about nodes that come or go or get other features: they are trusted."
    elif record.trusted == "count":
        yield "Anything about nodes that are injected or deleted: their number is trusted."
