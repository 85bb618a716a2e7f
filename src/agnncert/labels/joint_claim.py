"""What a certificate about labels and edges together says in words."""

from collections.abc import Iterator, Mapping

from agnncert import __version__
from agnncert.certificates.claim import FEATURES_FIXED, Claim, about_encoding
from agnncert.labels.claim import UNITS
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
    return Claim(
        task="node",
        method="label-votes",
        division="",
        num_groups=0,
        guarantee="deterministic",
        unit=f"{UNITS[record.voters.candidates]}, or one edge of the target that is added or deleted",
        covers=tuple(_covers(record)),
        assumes=tuple(_assumes(record, digests)),
        not_proved=tuple(_not_proved(record)),
        ids=record.ids,
        digests=digests,
        notes=notes,
        library_version=__version__,
    )


def _covers(record: JointRecord) -> Iterator[str]:
    """Yields the changes that are covered."""
    yield "Training labels replaced by any other class before training, whichever they are."
    if record.voters.candidates == "all":
        yield "Training labels added to nodes that had none, and training labels taken away, before training."
    yield (
        "Edges added and deleted at any time, before training or after it. Those of the target count, between the "
        "graph of this certificate and the one on which the label is asked for; others, and values and directions of "
        "edges that stay, change in any number."
    )
    yield "Labels and edges together: ask holds_against(Budget(flip_labels=…, add_edges=…, delete_edges=…))."
    num_audited = int(record.voters.audited.sum())
    if num_audited:
        yield f"No change of the {num_audited:,} audited labels, which an attacker cannot reach."
    if record.least_lead:
        yield "A target that is certified neither gets another class nor abstains."


def _assumes(record: JointRecord, digests: Mapping[str, str]) -> Iterator[str]:
    """Yields what must be true."""
    yield (
        "The nodes, their features and ids, the list of classes and all settings are trusted, at training time and "
        "afterwards: only training labels and edges are attacked."
    )
    yield FEATURES_FIXED
    yield "No feature was computed from labels, and no setting was chosen by looking at labels or edges."
    if record.voters.candidates == "labelled":
        yield (
            "Which nodes have a training label is trusted, and was not chosen by looking at edges: an attacker changes "
            "what these labels say, and no more of them."
        )
    else:
        yield "The settings would have been the same with more or fewer training labels."
    yield from about_encoding(digests)
    named = f" with SHA-256 {digests['model']}" if "model" in digests else ""
    yield (
        f"The model{named} holds the training labels as they were when it was trained, and is trained again by the "
        "same rule: the weight of a label depends on the features of all nodes and on the settings, on no label and on "
        "no edge."
    )
    yield (
        f"The score of a class is what it has in advance, plus the weights of the training labels of this class, in "
        f"whole steps of which {STEPS} are one vote, plus {record.neighbour_steps:,} steps for each neighbour whose "
        "own labels, weighted for it in the same way, elect this class. The stored factors define the weights, so that "
        "nothing is rounded."
    )
    if record.least_lead:
        yield f"A target abstains if its label leads by less than {record.least_lead:,} steps."


def _not_proved(record: JointRecord) -> Iterator[str]:
    """Yields what is not proved."""
    yield "That the label is correct: only that it stays the same."
    yield (
        "Anything about nodes that come or go and features that change, before training or afterwards: the weights "
        "follow from the features of all nodes."
    )
    if record.voters.candidates == "labelled":
        yield "Anything about training labels that are added or removed: the weights follow from who has a label."
