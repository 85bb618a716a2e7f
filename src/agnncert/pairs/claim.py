"""What a certificate about pairs says in words."""

from collections.abc import Iterator, Mapping

from agnncert import __version__
from agnncert.certificates.claim import (
    LABEL_MAY_BE_WRONG,
    LOCALITY,
    MODEL_AS_GIVEN,
    PREMISES,
    Claim,
    about_encoding,
    about_ids,
    all_changes,
    named_model,
)
from agnncert.pairs.record import PairRecord
from agnncert.stacked.record import STEPS

METHOD = "pair-votes"
MASKED = "The edge between the two nodes of a pair"  # how the sentence about the mask begins
TRUSTED = "The edges that leave the first node of a pair"  # how a claim that trusts them begins
UNITS = {
    "common": "one edge anywhere, or one other node with any number of edges",
    "both": "one edge anywhere, or one other node with any number of edges",
    "trusted": "one edge between the second node and a contact of the first one; nodes that come cost nothing",
}


def make_pair_claim(
    record: PairRecord, *, locality: str, digests: Mapping[str, str] | None = None, notes: tuple[str, ...] = ()
) -> Claim:
    """Returns the claim that belongs to votes about pairs.

    Args:
        record: Scores and votes.
        locality: How it is known that the prior reads a pair's own features alone: "construction" or "test".
        digests: SHA-256 by name, none by default. That of ``"model"`` is quoted in the assumptions.
        notes: Further remarks, stored as they are.
    """
    digests = dict(digests or {})
    by_row = record.ids == "row"
    return Claim(
        task="pair",
        method=METHOD,
        division="",
        num_groups=0,
        guarantee="deterministic",
        unit=UNITS[record.rule],
        covers=tuple(all_changes(by_row, keeps_nodes=False)),
        assumes=(
            *PREMISES,
            _about_mask(record),
            *_about_trusted(record),
            "Both nodes of the pair stay in the graph, and keep their ids and their features. So do the pair's own "
            "values, such as the amount of a payment: whoever writes them himself is not covered.",
            *about_ids(by_row, keeps_nodes=False),
            *about_encoding(digests),
            f"{named_model(digests)} is the one that computed these scores and votes, in evaluation mode.",
            _about_score(record),
            f"The prior reads the pair's own features{' and these edges' if record.trusted >= 0 else ''} alone"
            f"{LOCALITY[locality]}. No column of them is a degree, or computed from the edges in another way.",
            f"Computing a score or a vote again in float64, on any machine, changes it by at most {record.slack} of "
            f"{STEPS:,} steps of one vote; known by computing them again in another order of rows, which could have "
            "refuted it but cannot prove it.",
        ),
        not_proved=(
            LABEL_MAY_BE_WRONG,
            MODEL_AS_GIVEN,
            "Robustness against changes of the pair's own features and values: the attacker may write his own payment.",
            *_about_no_votes(record),
        ),
        ids=record.ids,
        digests=digests,
        notes=notes,
        library_version=__version__,
        locality=locality,
    )


def _about_mask(record: PairRecord) -> str:
    if record.mask == "own":
        return f"{MASKED} is hidden from the decision about that pair, before anything is computed."
    return (
        f"{MASKED} is hidden from all decisions, before anything is computed: the edges of all pairs in this "
        "certificate are masked, whether the graph has them or not."
    )


def _about_trusted(record: PairRecord) -> Iterator[str]:
    if record.trusted >= 0:
        yield (
            f"{TRUSTED} are not changed. Nodes that it joins by an edge with a positive value in column "
            f"{record.trusted} of edge_attr are its contacts; they keep their features and are not deleted."
        )


_VOTERS = {
    "common": "one vote for each common neighbour of its two nodes, joined to each in either direction",
    "both": (
        "one vote for each neighbour of its first node, one for each of its second node, and one for each common "
        "neighbour, in either direction"
    ),
    "trusted": "one vote for each contact of its first node that has an edge to its second node",
}


def _about_score(record: PairRecord) -> str:
    own = "the pair's own features"
    if record.trusted >= 0:
        own += " and on the edges that leave its first node"
    if not record.uses_votes:
        return f"The score of a class is a number that depends on {own} alone: votes have the factor 0 for every pair."
    reads = "whose neighbour it is alone" if record.blind else "the features of the node that votes"
    if record.by_edge:
        reads = "the values of the edge to the second node"
    times = ", times a factor for each class" if record.gated else ""
    return (
        f"The score of a class is a number that depends on {own}, plus {_VOTERS[record.rule]}{times}. A vote depends "
        f"on {reads}; it is not negative, and at most 1 for all classes."
    )


def _about_no_votes(record: PairRecord) -> Iterator[str]:
    if not record.uses_votes:
        yield "That edges matter for a label. Votes are not used, so all that is proved is about a model without them."
