"""What reports say about votes of subgraphs: the words for the voting rule, and for one target."""

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from agnncert.certificates.votes import VoteRecord
from agnncert.certificates.voting_rule import VotingRule
from agnncert.divided.theorems.registry import theorem_of
from agnncert.proving.words import CountWords, Subject, Words, whole

_SUBGRAPH = {"group_title": "Subgraph", "default_short": "default"}
# What a page says about one target, by task.
TARGETS: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "node": _SUBGRAPH
        | {
            "listed_short": "in subgraphs with its edges",
            "listed_sentence": "Its neighbours fall into {count} of the subgraphs: {groups}.",
            "none_listed_sentence": "It has an edge in none of the subgraphs.",
            "default_sentence": "In {count} further subgraphs it has no edge and casts its default vote, "
            "from its features alone: {vote}.",
            "grid_sentence": "Framed: the node has an edge there. Pale: its default vote.",
            "reached_title": "Has an edge there",
        },
        "graph": _SUBGRAPH
        | {
            "listed_short": "in subgraphs with a part of the graph",
            "listed_sentence": "Its parts fall into {count} of the subgraphs: {groups}.",
            "none_listed_sentence": "No subgraph holds any part of it.",
            "default_sentence": "{count} further subgraphs are empty and abstain.",
            "grid_sentence": "Framed: edges can change there. Grey: empty, no vote.",
            "reached_title": "Can hold an edge",
        },
    }
)
_COUNTS = CountWords(
    title="Votes",
    one="vote",
    many="votes",
    compared="those for the label against those for the runner-up",
    of_target="{label} has {top} {unit}{truth}. The runner-up has {next}.",
)
_OF_TOTAL = "{top} of {total} votes are for {label}{truth}. The runner-up has {next}."


def vote_words(record: VoteRecord, subject: Subject) -> Words:
    """Returns what a report says about votes of subgraphs."""
    notes = (*_own_group_notes(record), *_empty_notes(record, subject), *_prior_notes(record, subject))
    if notes:
        notes = (*notes, "All of this was fixed before any vote was cast.")
    return Words(
        deed=theorem_of(record.theorem).deed(record),
        decided=f"Each label is elected by {_electorate(record)}. A change of the graph reaches a counted number of "
        "these predictions, so the outcome of the election can be proved.",
        decides="vote",
        step=theorem_of(record.theorem).words.step,
        counts=_count_words(record),
        notes=notes,
        conceded=_conceded(record),
        from_graph=_from_graph(record),
        facts=_facts(record),
        target_title="One target, vote by vote",
        target_text="Which subgraphs speak about a target, what each of them voted, and what follows from it.",
        nothing_proved="Nothing is certified for it: votes too close to call, all conceded to the attacker, may decide "
        "the vote.",
        stored="votes",
        anew="computes all votes anew, and some of them once more, one subgraph at a time",
        recheck=100,
    )


def _count_words(record: VoteRecord) -> CountWords:
    if record.voting_rule.prior or record.facts.per_neighbour:
        return _COUNTS
    return replace(_COUNTS, of_target=_OF_TOTAL, total=record.votes.num_groups)


def target_words(record: VoteRecord) -> dict[str, str]:
    """Returns what a page says about the single votes of one target."""
    facts = record.facts
    return {**TARGETS[facts.task], **theorem_of(record.theorem).words.target, **empty_target_words(record)}


def empty_target_words(record: VoteRecord) -> dict[str, str]:
    """Returns sentences about one target where the voting rule says what empty subgraphs vote for, else nothing."""
    facts = record.facts
    empty = record.voting_rule.empty
    if facts.per_neighbour or empty == facts.empty[0]:
        return {}
    empty_for = "In {count} further subgraphs it has no edge that brings it a message"
    if facts.task == "graph":
        empty_for = "{count} further subgraphs are empty"
    if facts.target_features:
        empty_for = "{count} further subgraphs know nothing about it"
    abstains = empty == "abstain"
    cast = "casts no vote" if abstains else "votes for {vote}, whatever the model says"
    pale = "Grey: empty, no vote." if abstains else "Pale: empty."
    framed = TARGETS[facts.task]["grid_sentence"].partition(". ")[0]
    return {
        "default_sentence": f"{empty_for}; each {cast}.",
        "default_short": "of empty subgraphs",
        "grid_sentence": f"{framed}. {pale}",
    }


def _own_thing(record: VoteRecord) -> str:
    """Returns what each subgraph stands for, where every neighbour, edge or node has its own one."""
    facts = record.facts
    if facts.one_way:
        return "edge"
    return "neighbour" if facts.task == "node" else "node"


def _own_group(record: VoteRecord) -> str:
    return f"{_own_thing(record)} of the {record.facts.task}"


def _electorate(record: VoteRecord) -> str:
    """Returns which votes decide a label."""
    votes = f"{whole(record.votes.num_groups)} predictions, one for every part of a divided graph"
    if record.facts.per_neighbour:
        votes = f"one prediction for each {_own_group(record)}"
    if not record.voting_rule.prior:
        return votes
    return f"{votes}, added to votes that are given in advance"


def _own_group_notes(record: VoteRecord) -> list[str]:
    facts = record.facts
    if not facts.per_neighbour:
        return []
    thing = _own_thing(record)
    seen = {"edge": "the edge and its two ends", "neighbour": "these two nodes", "node": "that node"}
    article = "an" if thing == "edge" else "a"
    moves = "that comes or goes moves the count by one vote, and one that is altered by up to two"
    if record.voting_rule.empty != "abstain":
        moves = "that comes, goes or is altered moves the count by up to two votes"
    direction = " A second direction for an edge that has one alters it." if facts.one_way else ""
    return [
        f"Each {_own_group(record)} casts one vote, which sees {seen[thing]} and nothing else.",
        f"So {article} {thing} {moves}.{direction} The radius allows for any mix; beside it stands the radius against "
        "attacks that only add and delete.",
    ]


def _empty_notes(record: VoteRecord, subject: Subject) -> list[str]:
    facts = record.facts
    empty = record.voting_rule.empty
    if empty == facts.empty[0]:
        return []
    if facts.per_neighbour:
        name = subject.class_word(int(empty or 0))
        return [f"Each vote that is cast takes one vote from {name}: groups that are empty would vote for it."]
    empty_for = "in which the node has no edge that brings it a message"
    if facts.target_features:
        empty_for = "that knows nothing about the node"
    if facts.task == "graph":
        empty_for = f"without {'an edge' if facts.uses_reach else 'a node'} of the graph"
    cast = "casts no vote" if empty == "abstain" else f"votes for {subject.class_word(int(empty or 0))}"
    return [f"A subgraph {empty_for} {cast}, whatever the model says."]


def _prior_notes(record: VoteRecord, subject: Subject) -> list[str]:
    voting_rule = record.voting_rule
    given = [(number, subject.class_word(k)) for k, number in enumerate(voting_rule.class_prior)]
    if voting_rule.no_edge_prior:
        given.append((voting_rule.no_edge_prior, "what the model predicts from the node’s features alone"))
    words = []
    for number, whom in given:
        if number:
            words.append(f"{whole(abs(number))} {'for' if number > 0 else 'against'} {whom}")
    if not words:
        return []
    notes = [f"Votes given in advance, which no attack on the graph can move: {', '.join(words)}."]
    doubtful = 0 if record.no_edge_stable is None else int((~record.no_edge_stable).sum())
    if voting_rule.no_edge_prior and doubtful:
        notes.append(
            f"For {whole(doubtful)} of {whole(record.num_targets)} {subject.targets} that prediction is too close to "
            "call: these votes are counted for the rival there."
        )
    return notes


def _conceded(record: VoteRecord) -> str:
    """Returns how many votes are too close to a tie and are counted for the rival, empty if none is."""
    votes = record.votes
    shaky = int((~votes.stable).sum()) + int(votes.num_unlisted[~votes.default_stable].sum())
    if not shaky:
        return ""
    cast = votes.num_targets * votes.num_groups
    if record.facts.per_neighbour:
        cast = len(votes.vote)
    return f"Votes that are too close to call count for the rival: {whole(shaky)} of {whole(cast)}."


def _from_graph(record: VoteRecord) -> tuple[str, ...]:
    votes = record.votes
    if not votes.num_targets:
        return ()
    heard = len(votes.vote) / votes.num_targets
    others = ""
    if record.voting_rule.empty == "no_edge":
        others = f"; the others of {whole(votes.num_groups)} see its features alone"
    return (f"{heard:.1f} votes on average were cast where the node has an edge{others}.",)


def _facts(record: VoteRecord) -> tuple[tuple[str, str], ...]:
    subgraphs = whole(record.votes.num_groups)
    if record.facts.per_neighbour:
        subgraphs = f"one for each {_own_group(record)}"
    return (("Subgraphs", subgraphs), ("Votes", _rule_as_code(record)))


def _rule_as_code(record: VoteRecord) -> str:
    """Returns the voting rule as a Python expression, empty for the default rule."""
    rule = record.voting_rule
    if rule == VotingRule().under(record.theorem, record.votes.num_classes):
        return ""
    prior = rule.prior if isinstance(rule.prior, int) else list(rule.prior)
    return f"VotingRule(empty={rule.empty!r}, prior={prior!r})"
