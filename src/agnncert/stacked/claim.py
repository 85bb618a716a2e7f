"""What a certificate of stacked votes says in words."""

from collections.abc import Mapping

from agnncert import __version__
from agnncert.certificates.claim import LOCALITY, PREMISES, Claim, about_encoding, about_ids, all_changes
from agnncert.certificates.theorem_facts import THEOREMS
from agnncert.stacked.record import STEPS, StackedRecord

TRUSTED = "Edges that are marked as trusted"  # how a claim that trusts edges begins


def make_stacked_claim(
    record: StackedRecord, *, digests: Mapping[str, str] | None = None, locality: str = "", notes: tuple[str, ...] = ()
) -> Claim:
    """The claim that belongs to stacked votes; arguments as in :func:`make_claim`."""
    digests = dict(digests or {})
    by_row, before = record.ids == "row", []
    if record.trusted >= 0:
        before.append(
            f"{TRUSTED} (column {record.trusted} of edge_attr is positive) are not changed, "
            "their ends keep their features and are not deleted, and an attacker cannot mark an edge as trusted."
        )
    mean = f"the mean, with a pseudo-count of {record.pseudo / STEPS:g}, of" if record.pseudo else "the sum of"
    reads = "the features of the neighbour" + (" and the values of the edge" if record.by_edge else "")
    if record.second:
        reads += f" and, with a factor of {record.second / STEPS:g}, the votes of its neighbours"
    named = f" with SHA-256 {digests['model']}" if "model" in digests else ""
    score = (
        f"The score of a class is a number that depends on the target's own features, plus {mean} one vote for each "
        f"neighbour, in either direction. A vote depends on {reads}; it is not negative, and at most 1 for all classes."
    )
    return Claim(
        task="node",
        method="stacked-votes",
        division="",
        num_groups=0,
        guarantee="deterministic",
        unit=THEOREMS["per-neighbour/node"].division.unit,
        covers=tuple(all_changes(by_row, keeps_nodes=False)),
        assumes=(
            *PREMISES,
            *before,
            "The target is not deleted and keeps its id.",
            "The target's own features are unchanged.",
            *about_ids(by_row, keeps_nodes=False),
            *about_encoding(digests),
            f"The model{named} is the one that computed these scores and votes, in evaluation mode.",
            score,
            f"The models without edges classify a node by its own features alone{LOCALITY[locality]}.",
            f"Computing a score, a factor or a vote again on any machine changes it by at most {record.slack} of "
            f"{STEPS:,} steps of one vote.",
        ),
        not_proved=(
            "That the label is correct: only that it stays the same.",
            "Robustness against attacks on the training data: the model is taken as given.",
            "Robustness against changes of the target's own features.",
        ),
        ids=record.ids,
        digests=digests,
        notes=notes,
        library_version=__version__,
        locality=locality,
    )
