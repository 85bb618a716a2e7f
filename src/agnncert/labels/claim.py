"""What a certificate of label votes says in words."""

from collections.abc import Iterable, Iterator, Mapping

from agnncert import __version__
from agnncert.certificates.claim import (
    EDGES_GIVEN,
    FEATURES_FIXED,
    LABEL_MAY_BE_WRONG,
    SPLIT_GIVEN,
    Claim,
    about_encoding,
    named_model,
)
from agnncert.labels.record import STEPS, LabelRecord

METHOD = "label-votes"
SAME_SETTINGS = "The settings would have been the same with more or fewer training labels."
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
    return label_claim(
        record,
        digests=digests,
        notes=notes,
        unit=UNITS[record.candidates],
        covers=_covers(record),
        assumes=_assumes(record, digests),
        not_proved=_not_proved(record),
    )


def label_claim(
    votes: LabelRecord,
    *,
    digests: Mapping[str, str],
    notes: tuple[str, ...],
    unit: str,
    covers: Iterable[str],
    assumes: Iterable[str],
    not_proved: Iterable[str],
) -> Claim:
    """Returns a claim about votes of training labels, alone or with those of neighbours, in these words.

    Args:
        votes: The votes of training labels.
        digests: SHA-256 by name.
        notes: Further remarks.
        unit: What one change is.
        covers: Sentences about what is covered.
        assumes: Sentences about what must be true.
        not_proved: Sentences about what is not proved.
    """
    return Claim(
        task="node",
        method=METHOD,
        division="",
        num_groups=0,
        guarantee="deterministic",
        unit=unit,
        covers=tuple(covers),
        assumes=tuple(assumes),
        not_proved=tuple(not_proved),
        ids=votes.ids,
        digests=dict(digests),
        notes=notes,
        library_version=__version__,
    )


def _covers(record: LabelRecord) -> Iterator[str]:
    """Yields the changes that are covered."""
    yield from about_changed_labels(record)
    if record.candidates == "all":
        yield "Any mix of these: ask holds_against(Budget(flip_labels=…, add_labels=…, remove_labels=…))."
    yield from about_audited_labels(record)
    yield from about_abstaining(record.least_lead)


def about_changed_labels(votes: LabelRecord) -> Iterator[str]:
    """Yields which changes of training labels are covered."""
    yield "Training labels replaced by any other class before training, whichever they are."
    if votes.candidates == "all":
        yield "Training labels added to nodes that had none, and training labels taken away, before training."


def about_audited_labels(votes: LabelRecord) -> Iterator[str]:
    """Yields which changes of training labels are not covered, if an attacker cannot reach some."""
    num_audited = int(votes.audited.sum())
    if num_audited:
        yield f"No change of the {num_audited:,} audited labels, which an attacker cannot reach."


def about_abstaining(least_lead: int) -> Iterator[str]:
    """Yields what is covered if targets abstain whose label leads by less than some steps."""
    if least_lead:
        yield "A target that is certified neither gets another class nor abstains."


def _assumes(record: LabelRecord, digests: Mapping[str, str]) -> Iterator[str]:
    """Yields what must be true."""
    yield (
        "Edges, features, ids, the list of classes and all settings are trusted, at training time and afterwards: only "
        "training labels are attacked."
    )
    yield FEATURES_FIXED
    yield EDGES_GIVEN
    yield SPLIT_GIVEN[METHOD]
    yield "No feature was computed from labels, and no setting was chosen by looking at labels."
    if record.candidates == "labelled":
        yield "Which nodes have a training label is trusted: an attacker changes what these labels say, and no more."
    else:
        yield SAME_SETTINGS
    yield from about_encoding(digests)
    yield (
        f"{named_model(digests)} holds the training labels as they were when it was trained, and is trained again by "
        "the same rule: the weight of a label depends on the graph and on the settings, and on no label."
    )
    yield (
        f"The score of a class is what it has in advance, plus the weights of the training labels of this class, in "
        f"whole steps of which {STEPS} are one vote. The stored factors define the weights, so that nothing is rounded."
    )
    yield from when_a_target_abstains(record.least_lead)


def when_a_target_abstains(least_lead: int) -> Iterator[str]:
    """Yields when a target abstains, if some do."""
    if least_lead:
        yield f"A target abstains if its label leads by less than {least_lead:,} steps."


def _not_proved(record: LabelRecord) -> Iterator[str]:
    """Yields what is not proved."""
    yield LABEL_MAY_BE_WRONG
    yield (
        "Anything about edges, nodes or features that change, before training or afterwards: the weights follow from "
        "all of them."
    )
    yield from about_other_labels(record)
    yield "That labelled nodes were not inserted into the graph before training."


def about_other_labels(votes: LabelRecord) -> Iterator[str]:
    """Yields which changes of training labels nothing is proved about."""
    if votes.candidates == "labelled":
        yield "Anything about training labels that are added or removed: the weights follow from who has a label."
