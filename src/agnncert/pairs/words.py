"""What reports say about votes on pairs."""

from agnncert.pairs.claim import MASKED, TRUSTED
from agnncert.pairs.record import PairRecord
from agnncert.proving.words import EDGES_OR_OTHER_NODES, Deed, StepWords, Subject, Words, whole
from agnncert.stacked.words import SCORES

_VOTERS = {"common": "common neighbour", "both": "neighbour", "trusted": "contact of the first node"}
_RATINGS = StepWords(
    "changed edge of a contact",
    "changed edges of contacts",
    Deed(
        "adds any number of accounts, and changes one edge of a contact",
        "adds any number of accounts, and changes {size} edges of contacts",
    ),
)


def pair_words(record: PairRecord, subject: Subject) -> Words:
    """Returns what a report says about votes on pairs."""
    step = _RATINGS if record.rule == "trusted" else EDGES_OR_OTHER_NODES
    assert step.deed is not None
    return Words(
        deed=step.deed,
        decided=_decided(record),
        decides="largest score",
        step=step,
        counts=SCORES,
        first=_read_first(record, subject),
        notes=_notes(record),
        from_graph=_from_graph(record),
        facts=(("Votes", f"{whole(len(record.which))}, added up" if record.uses_votes else "none is counted"),),
        target_title="One pair and its scores",
        target_text="The score of each class, in votes, and how far the label leads.",
        nothing_proved="Nothing is certified for it: the two largest scores are so close that another machine may "
        "round them the other way.",
        stored="scores and votes",
        anew="computes all scores and votes anew",
    )


def _decided(record: PairRecord) -> str:
    own = "a number that the pair’s own features give"
    if not record.uses_votes:
        return f"Each label is the class with the largest score, {own}. Votes have the factor 0 in this model."
    return (
        f"Each label is the class with the largest score: {own}, plus one bounded vote of each {_VOTERS[record.rule]}. "
        "A change of the graph reaches a counted number of these votes, so what becomes of the largest score can be "
        "proved."
    )


def _read_first(record: PairRecord, subject: Subject) -> tuple[str, ...]:
    named = [sentence for sentence in subject.claim.assumes if sentence.startswith((MASKED, TRUSTED))]
    sentences = [f"Assumed: {sentence}" for sentence in named]
    if not record.uses_votes:
        sentences.append("Edges have no vote in this model. So this is a statement about a model without edges.")
    return tuple(sentences)


def _notes(record: PairRecord) -> tuple[str, ...]:
    if record.rule == "trusted":
        return (
            "Accounts that come, and edges among others, have no vote: nobody whom the first node trusts casts it.",
        )
    return ("Edges at neither of the two nodes, and the edge between them, have no vote.",)


def _from_graph(record: PairRecord) -> tuple[str, ...]:
    if not record.num_targets or not record.uses_votes:
        return ()
    return (f"{record.degree.mean():.1f} votes are cast on a pair on average.",)
