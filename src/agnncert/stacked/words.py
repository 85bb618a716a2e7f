"""What reports say about stacked votes."""

from dataclasses import replace

from agnncert.proving.words import EDGES_OR_OTHER_NODES, CountWords, Deed, StepWords, Subject, Words, whole
from agnncert.stacked.claim import TRUSTED
from agnncert.stacked.record import STEPS, StackedRecord

SCORES = CountWords(
    title="Scores",
    one="vote",
    many="votes",
    compared="that of the label against that of the runner-up, in votes",
    of_target="The score of {label} is {top}{truth}. The runner-up has {next}.",
    scale=STEPS,
)
_ANY_NUMBER = "changes any number of edges or other nodes"
_NO_VOTES_NOTE = (
    "The votes of neighbours have the factor 0 for every target of this certificate, so no number of edges or other "
    "nodes enters a score."
)


def stacked_words(record: StackedRecord, subject: Subject) -> Words:
    """Returns what a report says about stacked votes.

    A model whose votes all have the factor 0 is called what it is: a model without edges, or without any but the
    trusted ones.
    """
    uses_votes = record.uses_votes
    return Words(
        deed=_deed(record),
        decided=_decided(record) if uses_votes else _decided_without_votes(record),
        decides="largest score",
        step=_step(record),
        counts=SCORES,
        first=_read_first(record, subject, uses_votes),
        notes=_notes(record) if uses_votes else (_NO_VOTES_NOTE,),
        from_graph=_from_graph(record) if uses_votes else ("No vote of a neighbour is counted.",),
        facts=(("Votes", _votes_in_short(record) if uses_votes else "none is counted"),),
        target_title="One target and its scores",
        target_text=_target_text(record, uses_votes),
        nothing_proved="Nothing is certified for it: the two largest scores are so close that another machine may "
        "round them the other way.",
        stored="scores and votes",
        anew="computes all scores and votes anew",
    )


def _deed(record: StackedRecord) -> Deed:
    deed = EDGES_OR_OTHER_NODES.deed
    assert deed is not None
    if not record.uses_votes:  # the largest size that is stated would look like a limit
        deed = Deed(_ANY_NUMBER, _ANY_NUMBER)
    if record.trusted < 0:
        return deed
    return Deed(f"{deed.one}, trusted edges apart", f"{deed.many}, trusted edges apart")


def _step(record: StackedRecord) -> StepWords:
    if record.trusted < 0:
        return EDGES_OR_OTHER_NODES
    return replace(EDGES_OR_OTHER_NODES, deletes_edge=False)  # a trusted edge stays, whatever the size


def _decided(record: StackedRecord) -> str:
    combined = "the mean" if record.pseudo else "the sum"
    own = "a number that the node’s own features give"
    if record.trusted >= 0:
        own = "a number that the node’s own features and its trusted edges give"
    each = "neighbour" if record.trusted < 0 else "other neighbour"
    weighed = ", times a factor" if record.gated else ""
    return (
        f"Each label is the class with the largest score: {own}, plus {combined} of one bounded vote for each "
        f"{each}{weighed}. A change of the graph reaches a counted number of these votes, so what becomes of the "
        "largest score can be proved."
    )


def _decided_without_votes(record: StackedRecord) -> str:
    if record.trusted >= 0:
        return (
            "Each label is the class with the largest score, which the node’s own features and its trusted edges give. "
            "The votes of other neighbours have the factor 0 in this model."
        )
    return (
        "Each label is the class with the largest score, which the node’s own features give. The votes of neighbours "
        "have the factor 0 in this model."
    )


def _read_first(record: StackedRecord, subject: Subject, uses_votes: bool) -> tuple[str, ...]:
    sentences = [f"Assumed: {sentence}" for sentence in subject.claim.assumes if sentence.startswith(TRUSTED)]
    if uses_votes:
        return tuple(sentences)
    if record.trusted >= 0:
        sentences.append(
            "Edges that are not trusted have no vote in this model. So this is a statement about a model that sees no "
            "edge but the trusted ones."
        )
    else:
        sentences.append(
            "Edges have no vote in this model. So this is a statement about a model without edges: its labels come "
            "from each node’s own features alone."
        )
    return tuple(sentences)


def _notes(record: StackedRecord) -> tuple[str, ...]:
    reads = "the neighbour’s features"
    if record.by_edge:
        reads += " and the values of the edge"
    if record.second:
        reads += f" and, with a factor of {record.second / STEPS:g}, the votes of its own neighbours"
    notes = [
        "Each neighbour has one vote, in whichever direction the edge goes. The vote is shared out among the classes, "
        f"with 1 at most for all of them together, and follows from {reads}."
    ]
    if record.pseudo:
        notes.append(
            f"The mean is taken over these votes and {record.pseudo / STEPS:.2f} votes that are given in advance, "
            "which no attack on the graph can move."
        )
    if record.trusted >= 0:
        notes.append("Votes along trusted edges are a part of the score that no attacker moves.")
    notes.append(
        "The radius allows for any mix of changes. Beside it stands the radius against attacks that only add and "
        "delete."
    )
    return tuple(notes)


def _from_graph(record: StackedRecord) -> tuple[str, ...]:
    if not record.num_targets:
        return ()
    return (f"{record.degree.mean():.1f} neighbours of a node have a vote on average.",)


def _votes_in_short(record: StackedRecord) -> str:
    combined = "their mean is taken" if record.pseudo else "added up"
    return f"{whole(len(record.which))} of neighbours, {combined}"


def _target_text(record: StackedRecord, uses_votes: bool) -> str:
    if uses_votes:
        return "The score of each class, in votes, and how far the label leads."
    own = "its own features" if record.trusted < 0 else "its own features and its trusted edges"
    return f"The score of each class, from {own} alone, and how far the label leads."
