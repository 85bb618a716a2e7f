"""What a certificate of an append-only score says in words."""

from collections.abc import Iterator, Mapping

from agnncert import __version__
from agnncert.append.record import AppendRecord
from agnncert.certificates.claim import (
    JOINED_ROWS_RISE,
    LABEL_MAY_BE_WRONG,
    MODEL_AS_GIVEN,
    PAYERS_SEND_NOTHING,
    PREMISES,
    Claim,
    about_encoding,
    named_model,
)

METHOD = "append-only"
UNIT = "one pair of accounts whose rows are deleted, on top of any number of appended rows and accounts"
BOUGHT_UNIT = (
    "one pair of accounts whose rows are deleted, or one present payer of the target who works for the attacker, on "
    "top of any number of appended rows and accounts"
)

# What an attacker may append, in plain words: they stand wherever a figure stands.
THREATS = {
    "fresh": "New rows between accounts that had none in that direction, with any values, and new accounts with any "
    "features, all in any number.",
    "ledger": "New rows and new accounts with any values, in any number, also more rows and larger amounts between "
    "accounts that had some, whoever sends them but the present payers of the target.",
    "grow": "New rows and new accounts with any values, in any number, also more rows and larger amounts between "
    "accounts that had some, whoever sends them.",
}
SHORT = {
    "fresh": "any number of new pairs and accounts",
    "ledger": "anything appended by anybody but the target's present payers",
    "grow": "anything appended by anybody",
}
ASSUMED = {
    "fresh": ("Between two accounts that have rows in a direction, nothing is appended in that direction.",),
    "ledger": (PAYERS_SEND_NOTHING, JOINED_ROWS_RISE),
    "grow": (JOINED_ROWS_RISE,),
}


def make_append_claim(
    record: AppendRecord, *, digests: Mapping[str, str] | None = None, notes: tuple[str, ...] = ()
) -> Claim:
    """Returns the claim that belongs to an append-only score.

    Args:
        record: Features and trees.
        digests: SHA-256 by name, none by default. That of ``"model"`` is quoted in the assumptions.
        notes: Further remarks, stored as they are.
    """
    digests = dict(digests or {})
    return Claim(
        task="node",
        method=METHOD,
        division="",
        num_groups=0,
        guarantee="deterministic",
        unit=BOUGHT_UNIT if record.threat == "ledger" else UNIT,
        covers=tuple(_covers(record)),
        assumes=tuple(_assumes(record, digests)),
        not_proved=tuple(_not_proved(record)),
        ids=record.ids,
        digests=digests,
        notes=notes,
        library_version=__version__,
    )


def _covers(record: AppendRecord) -> Iterator[str]:
    """Yields the changes that are covered."""
    yield THREATS[record.threat]
    yield f"Whoever is flagged (class {record.positive}) stays flagged, whatever of this is appended."
    if not record.deletions:
        return
    bought = ", or present payers of the target who work for the attacker," if record.threat == "ledger" else ""
    yield f"Before that, pairs of accounts whose rows are deleted{bought} up to {record.deletions:,} in all."


def _assumes(record: AppendRecord, digests: Mapping[str, str]) -> Iterator[str]:
    """Yields what must be true."""
    yield from PREMISES
    yield from ASSUMED[record.threat]
    yield "Rows that were there stay as they are, except as said above, and so do the features of old accounts."
    yield "The target is not deleted and keeps its id, and so do the accounts that were known at training time."
    yield from about_encoding(digests)
    yield (
        f"{named_model(digests)} computes the features in whole numbers from the graph, and the stored trees add them "
        "up; its limits, units and known accounts were fixed before."
    )
    if record.program.present >= 0:
        yield "A row is an edge in the direction in which its first column is positive."


def _not_proved(record: AppendRecord) -> Iterator[str]:
    """Yields what is not proved."""
    yield LABEL_MAY_BE_WRONG
    yield MODEL_AS_GIVEN
    yield (
        "Anything about accounts that are not flagged: appended rows can flag every account. A few payments may "
        "be enough to accuse an honest one; with any number of appended rows this cannot be otherwise (Theorem 21)."
    )
    yield "Anything about old rows that change, features of old accounts that change, or accounts that are deleted."
    yield (
        "That flags stay between later states: the statements compare each later graph with the certified one. For "
        "rows that are appended after a flag was raised, keeping the flag says the same."
    )
