"""What a certificate about labels and edges together says in words."""

from collections.abc import Iterator, Mapping

from agnncert.certificates.claim import (
    EDGES_GIVEN,
    FEATURES_FIXED,
    LABEL_MAY_BE_WRONG,
    SPLIT_GIVEN,
    Claim,
    about_encoding,
    named_model,
)
from agnncert.labels.claim import (
    METHOD,
    SAME_SETTINGS,
    UNITS,
    about_abstaining,
    about_audited_labels,
    about_changed_labels,
    about_other_labels,
    label_claim,
    when_a_target_abstains,
)
from agnncert.labels.joint_record import JointRecord
from agnncert.labels.record import STEPS


def make_joint_claim(
    record: JointRecord, *, digests: Mapping[str, str] | None = None, notes: tuple[str, ...] = ()
) -> Claim:
    """Returns the claim that belongs to votes of labels and neighbours.

    Args:
        record: The votes, the training labels and the neighbours.
        digests: SHA-256 by name, none by default. That of ``"model"`` is quoted in the assumptions.
        notes: Further remarks, stored as they are.
    """
    digests = dict(digests or {})
    return label_claim(
        record.voters,
        digests=digests,
        notes=notes,
        unit=f"{UNITS[record.voters.candidates]}, or one edge of the target that is added or deleted",
        covers=_covers(record),
        assumes=_assumes(record, digests),
        not_proved=_not_proved(record),
    )


def _covers(record: JointRecord) -> Iterator[str]:
    """Yields the changes that are covered."""
    yield from about_changed_labels(record.voters)
    yield (
        "Edges added and deleted at any time, before training or after it. Those of the target count, between the "
        "graph of this certificate and the one on which the label is asked for; others, and values and directions of "
        "edges that stay, change in any number."
    )
    yield "Labels and edges together: ask holds_against(Budget(flip_labels=…, add_edges=…, delete_edges=…))."
    yield from about_audited_labels(record.voters)
    yield from about_abstaining(record.least_lead)


def _assumes(record: JointRecord, digests: Mapping[str, str]) -> Iterator[str]:
    """Yields what must be true."""
    yield (
        "The nodes, their features and ids, the list of classes and all settings are trusted, at training time and "
        "afterwards: only training labels and edges are attacked."
    )
    yield FEATURES_FIXED
    yield EDGES_GIVEN
    yield SPLIT_GIVEN[METHOD]
    yield "No feature was computed from labels, and no setting was chosen by looking at labels or edges."
    if record.voters.candidates == "labelled":
        yield (
            "Which nodes have a training label is trusted, and was not chosen by looking at edges: an attacker changes "
            "what these labels say, and no more of them."
        )
    else:
        yield SAME_SETTINGS
    yield from about_encoding(digests)
    yield (
        f"{named_model(digests)} holds the training labels as they were when it was trained, and is trained again by "
        "the same rule: the weight of a label depends on the features of all nodes and on the settings, on no label "
        "and on no edge."
    )
    yield (
        f"The score of a class is what it has in advance, plus the weights of the training labels of this class, in "
        f"whole steps of which {STEPS} are one vote, plus {record.neighbour_steps:,} steps for each neighbour whose "
        "own labels, weighted for it in the same way, elect this class. The stored factors define the weights, so that "
        "nothing is rounded."
    )
    yield from when_a_target_abstains(record.least_lead)


def _not_proved(record: JointRecord) -> Iterator[str]:
    """Yields what is not proved."""
    yield LABEL_MAY_BE_WRONG
    yield (
        "Anything about nodes that come or go and features that change, before training or afterwards: the weights "
        "follow from the features of all nodes."
    )
    yield from about_other_labels(record.voters)
