"""What a certificate of stacked votes says in words."""

from collections.abc import Iterator, Mapping

from agnncert import __version__
from agnncert.certificates.claim import (
    EDGES_GIVEN,
    FEATURES_FIXED,
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
from agnncert.certificates.theorem_facts import WHATEVER_DEGREE
from agnncert.stacked.record import STEPS, StackedRecord

TRUSTED = "Edges that are marked as trusted"  # how a claim that trusts edges begins


ALONE = "Edges have no vote in this model"  # how a claim about a model that uses no votes begins to say so


# What the claim of a model begins with that was trained without edges.
EDGE_BLIND_PREMISES = (
    "Edges: at any time, training included. Each model was trained on the features and classes of nodes with a label "
    "alone, and read no edge: not for scaling, nor to stop, nor for the weight of a vote, which was fixed before.",
    "The labels are trusted, and so are the features of the nodes that have one: nothing is proved about attacks on "
    "them before training. Which nodes have a label was not chosen by looking at edges.",
    FEATURES_FIXED,
    EDGES_GIVEN,
)


def make_stacked_claim(
    record: StackedRecord,
    *,
    locality: str,
    digests: Mapping[str, str] | None = None,
    notes: tuple[str, ...] = (),
    rounding: str = "",
) -> Claim:
    """Returns the claim that belongs to stacked votes.

    Args:
        record: Scores and votes.
        locality: How it is known that the models without edges read a node's own features alone: "construction" or
            "test".
        digests: SHA-256 by name, none by default. That of ``"model"`` is quoted in the assumptions.
        notes: Further remarks, stored as they are.
        rounding: ``"float64"`` if a bound proves how far numbers differ between machines. Empty by default: they were
            computed again.
    """
    digests = dict(digests or {})
    by_row = record.ids == "row"
    return Claim(
        task="node",
        method="stacked-votes",
        division="",
        num_groups=0,
        guarantee="deterministic",
        unit=WHATEVER_DEGREE,
        covers=(*_about_time(record), *all_changes(by_row, keeps_nodes=False)),
        assumes=(
            *(EDGE_BLIND_PREMISES if record.edge_blind else PREMISES),
            *_about_trusted(record),
            "The target is not deleted and keeps its id.",
            "The target's own features are unchanged.",
            *about_ids(by_row, keeps_nodes=False),
            *about_encoding(digests),
            f"{named_model(digests)} is the one that computed these scores and votes, in evaluation mode.",
            _about_score(record),
            f"The models without edges classify a node by its own features alone{LOCALITY[locality]}.",
            f"Computing a score, a factor or a vote again in float64, on any machine, changes it by at most "
            f"{record.slack} of {STEPS:,} steps of one vote; {_KNOWN_BY[rounding]}.",
        ),
        not_proved=(
            LABEL_MAY_BE_WRONG,
            _about_training_data(record),
            "Robustness against changes of the target's own features.",
            *_about_no_votes(record),
        ),
        ids=record.ids,
        digests=digests,
        notes=notes,
        library_version=__version__,
        locality=locality,
        rounding=rounding,
    )


def _about_time(record: StackedRecord) -> Iterator[str]:
    """Yields when changes may be made, if that matters."""
    if record.edge_blind:
        yield (
            "What follows at any time, before training or after it, and counted between the graph of this certificate "
            "and the one on which the label is asked for; nodes with a label deleted or altered after training only."
        )


def _about_training_data(record: StackedRecord) -> str:
    """Returns what is not proved about training."""
    if record.edge_blind:
        return "Robustness against attacks on labels, and on nodes with a label before training: they are trusted."
    return MODEL_AS_GIVEN


# What the claim's ``rounding`` says -> how it is known that machines agree up to a step.
_KNOWN_BY = {
    "": "known by computing them again in another order of rows, which could have refuted it but cannot prove it",
    "float64": "proved by a bound on rounding of all layers, for machines that round each sum, product, quotient and "
    "root to a nearest number (or take less than the smallest normal number for zero) and exp, log and tanh to within "
    "4 units of rounding, and that compute products of matrices as sums of products, in any order",
}


def _about_trusted(record: StackedRecord) -> Iterator[str]:
    """Yields what is assumed about trusted edges."""
    if record.trusted >= 0:
        yield (
            f"{TRUSTED} (column {record.trusted} of edge_attr is positive) are not changed, "
            "their ends keep their features and are not deleted, and an attacker cannot mark an edge as trusted."
        )


def _about_score(record: StackedRecord) -> str:
    """Returns how a score is made, as far as the targets of this record have votes."""
    own = "the target's own features"
    if record.trusted >= 0:
        own += " and on its trusted edges"
    if not record.uses_votes:
        return (
            f"The score of a class is a number that depends on {own} alone: the votes of neighbours have the factor 0 "
            "for every target."
        )
    mean = f"the mean, with a pseudo-count of {record.pseudo / STEPS:g}, of" if record.pseudo else "the sum of"
    reads = "the features of the neighbour"
    if record.by_edge:
        reads += " and the values of the edge"
    if record.second:
        reads += f" and, with a factor of {record.second / STEPS:g}, the votes of its neighbours"
    times = ", times a factor for each class" if record.gated else ""
    return (
        f"The score of a class is a number that depends on {own}, plus {mean} one vote for each neighbour, in either "
        f"direction{times}. A vote depends on {reads}; it is not negative, and at most 1 for all classes. One that "
        "would not be a finite number is 0."
    )


def _about_no_votes(record: StackedRecord) -> Iterator[str]:
    """Yields that edges do not matter, if they do not."""
    if record.uses_votes:
        return
    if record.trusted >= 0:
        yield (
            "That edges which are not trusted matter for a label: they have no vote in this model. So all that is "
            "proved is about a model that sees no edge but the trusted ones."
        )
    else:
        yield (
            f"That edges matter for a label. {ALONE}, so all that is proved is about a model without edges: its labels "
            "come from each node's own features alone, and any number of edges leaves them as they are."
        )
