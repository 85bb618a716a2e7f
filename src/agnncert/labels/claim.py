"""What a certificate of label votes says in words."""

from collections.abc import Iterator, Mapping

from agnncert import __version__
from agnncert.certificates.claim import FEATURES_FIXED, Claim, about_encoding
from agnncert.labels.record import STEPS, LabelRecord

UNITS = {
    "all": "one training label that is flipped, added or removed",
    "labelled": "one training label that is flipped",
}


def make_label_claim(
    record: LabelRecord, *, digests: Mapping[str, str] | None = None, notes: tuple[str, ...] = ()
) -> Claim:
    """Returns the claim that belongs to label votes.

    Args:
        record: The votes and the training labels.
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
        unit=UNITS[record.candidates],
        covers=tuple(_covers(record)),
        assumes=tuple(_assumes(record, digests)),
        not_proved=tuple(_not_proved(record)),
        ids=record.ids,
        digests=digests,
        notes=notes,
        library_version=__version__,
    )


def _covers(record: LabelRecord) -> Iterator[str]:
    """Yields the changes that are covered."""
    yield "Training labels replaced by any other class before training, whichever they are."
    if record.candidates == "all":
        yield "Training labels added to nodes that had none, and training labels taken away, before training."
        yield "Any mix of these: ask holds_against(Budget(flip_labels=…, add_labels=…, remove_labels=…))."
    num_audited = int(record.audited.sum())
    if num_audited:
        yield f"No change of the {num_audited:,} audited labels, which an attacker cannot reach."
    if record.least_lead:
        yield "A target that is certified neither gets another class nor abstains."


def _assumes(record: LabelRecord, digests: Mapping[str, str]) -> Iterator[str]:
    """Yields what must be true."""
    yield (
        "Edges, features, ids, the list of classes and all settings are trusted, at training time and afterwards: only "
        "training labels are attacked."
    )
    yield FEATURES_FIXED
    yield "No feature was computed from labels, and no setting was chosen by looking at labels."
    if record.candidates == "labelled":
        yield "Which nodes have a training label is trusted: an attacker changes what these labels say, and no more."
    else:
        yield "The settings would have been the same with more or fewer training labels."
    yield from about_encoding(digests)
    named = f" with SHA-256 {digests['model']}" if "model" in digests else ""
    yield (
        f"The model{named} holds the training labels as they were when it was trained, and is trained again by the "
        "same rule: the weight of a label depends on the graph and on the settings, and on no label."
    )
    yield (
        f"The score of a class is what it has in advance, plus the weights of the training labels of this class, in "
        f"whole steps of which {STEPS} are one vote. The stored factors define the weights, so that nothing is rounded."
    )
    if record.least_lead:
        yield f"A target abstains if its label leads by less than {record.least_lead:,} steps."


def _not_proved(record: LabelRecord) -> Iterator[str]:
    """Yields what is not proved."""
    yield "That the label is correct: only that it stays the same."
    yield (
        "Anything about edges, nodes or features that change, before training or afterwards: the weights follow from "
        "all of them."
    )
    if record.candidates == "labelled":
        yield "Anything about training labels that are added or removed: the weights follow from who has a label."
    yield "That labelled nodes were not inserted into the graph before training."
