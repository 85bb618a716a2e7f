"""What reports say about append-only scores."""

from agnncert.append.claim import SHORT, THREATS
from agnncert.append.record import AppendRecord
from agnncert.proving.words import CountWords, Deed, StepWords, Subject, Words, whole

_ONE = "deletes one pair of accounts and appends any number of rows"
_NONE = "appends any number of rows and accounts"
_MANY = "deletes {size} pairs of accounts and appends any number of rows"
FRAMING = (
    "Nobody who is flagged can hide; anybody can be framed: with any number of appended rows every account can be "
    "flagged, often with a few. Before an account is blocked, look at who sent the rows that flagged it."
)
STICKY = (
    "A flag that is never taken back says the same about rows that are appended after it. What the certificate adds "
    "are rows that are appended before anybody looks."
)


def append_words(subject: Subject, record: AppendRecord) -> Words:
    """Returns what a report says about scores that appended rows can only raise."""
    flagged = subject.class_word(record.positive)
    return Words(
        deed=Deed(_ONE, _MANY, none=_NONE),
        decided=(
            f"Each label is decided by one score: it is {flagged} above a threshold. The score adds up trees over "
            "whole numbers that are counted in the graph, and what is appended can only raise it."
        ),
        decides="score",
        step=StepWords("deleted pair of accounts", "deleted pairs of accounts"),
        counts=CountWords(
            title="Score",
            one="point",
            many="points",
            compared="that of the flagged class against the threshold",
            of_target="The score of {label} is {top}{truth}. That of the other class is {next}.",
            scale=2**20,
        ),
        first=(f"Covered: {SHORT[record.threat]}. {THREATS[record.threat]}", FRAMING, STICKY),
        notes=("Only flagged labels are certified: appended rows can flag any account.",),
        facts=(
            ("Threat", record.threat),
            ("Features", whole(record.features.shape[1])),
            ("Trees", whole(record.trees.num_trees)),
        ),
        target_title="One account and its score",
        target_text="Its score and the threshold.",
        nothing_proved="Nothing is certified for it: it is not flagged, and appended rows can flag every account.",
        stored="features and trees",
        anew="counts all features anew, and those of some targets row by row with a second program",
    )
