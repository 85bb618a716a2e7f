"""Writes what a certificate proves in words, with everything that it rests on.

The words depend on a few plain facts alone, so a verifier can write them again (:func:`make_claim`) and compare.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from textwrap import wrap
from typing import Any

from agnncert import __version__
from agnncert.certificates.task import TASKS, Task
from agnncert.certificates.theorem_facts import TheoremFacts, theorem_mismatch
from agnncert.certificates.threshold_record import ThresholdRecord
from agnncert.certificates.votes import VoteRecord
from agnncert.errors import CertificateError
from agnncert.storage import visible

# What every certificate assumes about a graph, whatever the defence: a claim without it is refused.
FEATURES_FIXED = (
    "No node's features are computed from the edges, and no weight or attribute of an edge from other edges: an attack "
    "on one edge leaves them as they are."
)
# What every certificate assumes about edges. Claims did not say so at first: in a file without it, it is read after
# FEATURES_FIXED, which makes a claim weaker.
EDGES_GIVEN = (
    "Which nodes and edges exist is not computed from other edges, features or classes (nearest neighbours, diffusion, "
    "two hops, largest component): an attack changes the edges and nodes that it is counted for, and no others."
)
# What claims about poisoned training data assume about the split, by the name of the defence. They did not say so at
# first: in a file without it, it is read after EDGES_GIVEN, which makes a claim weaker.
SPLIT_GIVEN = {
    "label-votes": "Which nodes are for training was fixed in advance, or drawn without looking at classes (by ids, as "
    "ac.split does): an attack on labels moves no other node into the training part or out of it.",
    "isolated-models": "Which graphs are for training was fixed in advance, or drawn for each by its own id (as "
    "ac.split does): a poisoned graph moves no other one into the training part or out of it.",
}
# What claims of append-only scores assume about payers and about rows of one pair. Claims about payers did not say the
# second at first: in a file without it, it is read after the first, which makes a claim weaker.
PAYERS_SEND_NOTHING = (
    "Who pays the target at the time of the certificate sends nothing more than he has sent, to anybody: a payment "
    "needs the payer's signature, and these payers do not work for the attacker."
)
JOINED_ROWS_RISE = (
    "Where rows of a pair are joined to one, appended rows can only raise the columns that are said to rise."
)
# What the claims of all defences begin with that prove nothing about training.
PREMISES = (
    "The training data are trusted: nothing is proved about attacks on them, and the model is taken as given.",
    FEATURES_FIXED,
    EDGES_GIVEN,
)
# What no certificate proves.
LABEL_MAY_BE_WRONG = "That the label is correct: only that it stays the same."
# What a certificate does not prove that trusts training data.
MODEL_AS_GIVEN = "Robustness against attacks on the training data: the model is taken as given."


# Stands above the notes of an author, which could else pass for something that was checked.
NOTES_TITLE = "Words of the author, no part of what is proved"
NOTE_WIDTH = 90  # columns; each line is marked as quoted, so that none begins as lines of the claim do
LONGEST_NOTE = 1_000  # characters that are shown; the file and JSON hold all


def _quoted(note: str) -> str:
    """Returns a note on one line, with escapes for characters that are commands, and cut if it is very long."""
    plain = " ".join(visible(" ".join(note.split())).split())
    rest = len(plain) - LONGEST_NOTE
    return plain if rest <= 0 else f"{plain[:LONGEST_NOTE]} … ({rest:,} more characters in the file)"


@dataclass(frozen=True)
class Claim:
    """What is proved, in which unit, under which assumptions, and what is not.

    Attributes:
        task: What the targets are: ``"node"``, ``"graph"`` or ``"pair"`` of nodes.
        method: Name of the defence, such as ``"agnncert"`` or ``"bi-rs"``.
        division: The division with its settings, as printed. It is empty if the method divides nothing.
        num_groups: Number of subgraphs, hence votes per target. It is 0 if the method divides nothing.
        guarantee: ``"deterministic"`` or ``"probabilistic"``.
        unit: What one step of the radius counts.
        covers: Changes that the statements speak about.
        assumes: What must be true for the statements to hold. It begins with ``PREMISES``.
        not_proved: What a reader might expect, but is not proved.
        ids: ``"node_id"`` if nodes keep their identity through changes, ``"row"`` if row numbers stand in.
        tolerance: Relative rounding error of a logit. Votes within twice this of a tie count for the rival.
        alpha: Error probability of a probabilistic guarantee. It is None for a deterministic one.
        alpha_scope: What ``alpha`` is spent on: ``"each target"`` or ``"all targets together"``. It is empty for a
            deterministic guarantee.
        digests: SHA-256 of the graph, the model, the division and, if features were made from a table, of its
            encoding, by name.
        notes: Further remarks of the author of the certificate.
        library_version: Version of the library that made it.
        locality: How it is known that the model looks along edges only: by ``"construction"`` or by ``"test"``. It is
            empty if nothing of the kind is assumed.
        rounding: How votes were decided: ``"float32"`` and ``"float64"`` by a proved bound on rounding, in that type
            first; ``"watched"`` by evaluating each twice. It is empty in files that were made before this was stated.
        threshold: How the threshold between two classes was chosen; ``None`` if ``choose_threshold`` chose none.
    """

    task: Task
    method: str
    division: str
    num_groups: int
    guarantee: str
    unit: str
    covers: tuple[str, ...]
    assumes: tuple[str, ...]
    not_proved: tuple[str, ...]
    ids: str = "node_id"
    tolerance: float = 0.0
    alpha: float | None = None
    alpha_scope: str = ""
    digests: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    library_version: str = ""
    locality: str = ""
    rounding: str = ""
    threshold: ThresholdRecord | None = None

    def __str__(self) -> str:
        lines = [f"One step of the radius: {self.unit}."]
        if self.threshold is not None:
            lines += ["Threshold:", f"  - {self.threshold.in_words(str(self.threshold.positive))}"]
        lists = {
            "Assumed:": self.assumes,
            "Covered:": self.covers,
            "Not proved:": self.not_proved,
        }
        for title, sentences in lists.items():
            if sentences:
                lines.append(title)
                lines += [f"  - {sentence}" for sentence in sentences]
        if self.notes:
            lines.append(f"{NOTES_TITLE}:")
            lines += [f"  > {line}" for note in self.quoted_notes for line in wrap(note, NOTE_WIDTH) or [""]]
        return "\n".join(lines)

    @property
    def quoted_notes(self) -> tuple[str, ...]:
        """The notes as they may be shown beside what is proved: on one line each, and cut if they are very long."""
        return tuple(_quoted(note) for note in self.notes)

    def to_json(self) -> dict[str, Any]:
        """Returns this claim as JSON values. :meth:`from_json` is the inverse."""
        stored = {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}
        for name in ("rounding", "threshold"):  # files did not state these at first, and are written as they were
            if not stored[name]:
                del stored[name]
        return stored

    @classmethod
    def from_json(cls, stored: Any) -> "Claim":
        """Returns the claim that :meth:`to_json` described. What is stored is not trusted.

        Raises:
            CertificateError: A field is missing, unknown, or of a wrong type.
        """
        expected = sorted(field.name for field in fields(cls))
        if not isinstance(stored, dict):
            raise CertificateError(f"the claim is a {type(stored).__name__}: expected the fields {expected}.")
        stored = {"rounding": "", "threshold": None, **stored}
        if sorted(stored) != expected:
            raise CertificateError(f"the claim has the fields {sorted(stored)}: expected {expected}.")
        for name, value in stored.items():
            if not _FITS[name](value):
                raise CertificateError(f'the claim\'s "{name}" is {value!r:.200}, which makes no sense.')
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in stored.items()
        }
        assumes = with_sentence(values["assumes"], EDGES_GIVEN, after=FEATURES_FIXED)
        if values["method"] in SPLIT_GIVEN:
            assumes = with_sentence(assumes, SPLIT_GIVEN[values["method"]], after=EDGES_GIVEN)
        values["assumes"] = with_sentence(assumes, JOINED_ROWS_RISE, after=PAYERS_SEND_NOTHING)
        if values["threshold"] is not None:
            values["threshold"] = ThresholdRecord.from_json(values["threshold"])
        return cls(**values)

    def with_threshold(self, threshold: ThresholdRecord | None) -> "Claim":
        """Returns the same claim about labels by a threshold, with what that rests on and does not prove."""
        if threshold is None:
            return self
        return replace(
            self,
            threshold=threshold,
            assumes=(*self.assumes, *threshold.assumptions()),
            not_proved=(*self.not_proved, *threshold.not_proved()),
        )


def with_sentence(assumes: tuple[str, ...], sentence: str, after: str) -> tuple[str, ...]:
    """Returns what a claim assumes, with a sentence after another one if it was made before claims said so."""
    if sentence in assumes or after not in assumes:
        return assumes
    following = assumes.index(after) + 1
    return (*assumes[:following], sentence, *assumes[following:])


# How locality is known -> what the assumption about it goes on to say.
LOCALITY = {
    "": "",
    "construction": "; known by construction: every layer is on the list of layers whose code was read",
    "test": "; known by tests on this graph and model, which could have refuted it but cannot prove it",
}


# How votes were decided -> what the assumption about rounding goes on to say.
ROUNDING = {
    "": "",
    "float32": "in float32 where the lead exceeds twice a proved bound on rounding, else in float64 with its own bound",
    "float64": "in float64 where the lead exceeds twice a proved bound on rounding",
    "watched": " Votes that may depend on a sum over more than 1,000 edges or nodes are counted for the rival, too.",
}


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(text, str) for text in value)


_FITS: dict[str, Any] = {
    "task": lambda v: v in TASKS,
    "guarantee": lambda v: v in ("deterministic", "probabilistic"),
    "ids": lambda v: v in ("node_id", "row"),
    "locality": lambda v: isinstance(v, str) and v in LOCALITY,
    "rounding": lambda v: isinstance(v, str) and v in ROUNDING,
    "num_groups": lambda v: isinstance(v, int) and not isinstance(v, bool) and v >= 0,
    "tolerance": lambda v: _is_number(v) and 0 <= v < float("inf"),
    "alpha": lambda v: v is None or (_is_number(v) and 0 < v < 1),
    "threshold": lambda v: v is None or isinstance(v, dict),
    "digests": lambda v: isinstance(v, dict) and all(isinstance(text, str) for text in v.values()),
    **dict.fromkeys(("covers", "assumes", "not_proved", "notes"), _are_texts),
    **dict.fromkeys(("method", "division", "unit", "alpha_scope", "library_version"), lambda v: isinstance(v, str)),
}


def make_claim(
    record: VoteRecord,
    division: str,
    *,
    tolerance: float = 0.0,
    digests: Mapping[str, str] | None = None,
    locality: str = "",
    rounding: str = "",
    notes: tuple[str, ...] = (),
) -> Claim:
    """Returns the claim that belongs to votes.

    Args:
        record: The votes, with their theorem.
        division: The division with its settings, as printed.
        tolerance: How far apart two evaluations of a score may lie. 0 by default.
        digests: SHA-256 by name, none by default. That of ``"model"`` is quoted in the assumptions.
        locality: How it is known that the model looks along edges only. It is left out where the theorem does not
            assume this.
        rounding: How votes were decided. Empty by default.
        notes: Further remarks, stored as they are.
    """
    digests = dict(digests or {})
    facts = record.facts
    if not facts.whole_graph:
        locality = ""
    words = _Words(facts, record, tolerance, digests, locality, rounding)
    return Claim(
        task=facts.task,
        method=facts.method,
        division=division,
        num_groups=record.votes.num_groups,
        guarantee="deterministic",
        unit=facts.unit,
        covers=tuple(words.covers()),
        assumes=tuple(words.assumes()),
        not_proved=tuple(words.not_proved()),
        ids=record.ids,
        tolerance=tolerance,
        digests=digests,
        notes=notes,
        library_version=__version__,
        locality=locality,
        rounding=rounding,
    )


def expected_claim(claim: Claim, record: VoteRecord) -> Claim:
    """Returns the claim that the votes of a file allow, about the same division, model and tolerance as the stated one.

    Raises:
        CertificateError: The votes are counted by a theorem that does not belong to the division that is named.
    """
    mismatch = theorem_mismatch(record.theorem, claim.division, record.votes.num_groups, record.parameters)
    if mismatch:
        raise CertificateError(mismatch)
    return make_claim(
        record,
        claim.division,
        tolerance=claim.tolerance,
        digests=claim.digests,
        locality=claim.locality,
        rounding=claim.rounding,
    )


# Fields of a budget -> what one unit of them is.
_CHANGES = {
    "add_edges": "an added edge",
    "delete_edges": "a deleted edge",
    "change_edges": "a changed edge",
    "inject_nodes": "an injected node",
    "edges_per_injected": "an edge of an injected node",
    "delete_nodes": "a deleted node",
    "change_features": "a node with other features",
    "target_features": "the target's own features",
}


# Task, and whether votes belong to pairs -> where every neighbour has a vote of its own, what that is.
_OWN_VOTES = {
    ("node", False): "One vote is cast for each neighbour that sends the target messages, from both nodes alone.",
    ("node", True): "One vote is cast for each edge of the target, from its two ends alone.",
    ("graph", False): "One vote is cast for each node, from its features alone.",
    ("graph", True): "One vote is cast for each edge, from its two ends alone.",
}


@dataclass(frozen=True)
class _Words:
    """Writes the sentences of a claim about votes. The fields are those of :func:`make_claim`."""

    facts: TheoremFacts
    record: VoteRecord
    tolerance: float
    digests: Mapping[str, str]
    locality: str
    rounding: str = ""

    @property
    def target_features(self) -> bool:
        """Whether the target's own features are covered. If the target is a graph, those of all its nodes are."""
        if self.facts.task == "graph":
            return True
        is_priced = not self.facts.prices or "target_features" in self.record.parameters
        return self.facts.target_features and is_priced

    @property
    def needs_ids(self) -> bool:
        """Whether there are no ids, but groups depend on them, so that no node may be deleted."""
        return self.record.ids == "row" and not self.facts.per_neighbour

    def covers(self) -> Iterator[str]:
        """Yields the changes that are covered."""
        if self.facts.whole_graph:
            yield from all_changes(self.record.ids == "row", self.needs_ids)
        elif self.facts.covers:
            yield self.facts.covers
        elif self.record.parameters:
            prices = self.record.parameters
            stated = [f"{words} changes at most {prices[name]}" for name, words in _CHANGES.items() if name in prices]
            yield f"Number of votes: {', '.join(stated)}."
        else:
            yield "Nothing beyond the unchanged graph."

    def assumes(self) -> Iterator[str]:
        """Yields what must be true."""
        yield from PREMISES
        if self.facts.task == "node":
            yield "The target is not deleted and keeps its id."
        if not self.target_features:
            yield "The target's own features are unchanged."
        yield from about_ids(self.record.ids == "row", self.needs_ids)
        yield from about_encoding(self.digests)
        yield f"{named_model(self.digests)} and the division are the ones that cast these votes, in evaluation mode."
        yield from self.about_voting_rule()
        yield from self.about_division()
        yield from self.about_rounding()

    def about_division(self) -> Iterator[str]:
        """Yields what is assumed about the division, and about what the model sees of a subgraph."""
        if self.facts.prices:
            yield "The division states correctly how many votes each change can alter."
        elif self.facts.whole_graph:
            local = "predicts a node from its own features and from nodes whose messages reach it"
            if self.facts.task == "graph":
                local = "sees one subgraph at a time: the nodes of that subgraph and no others"
            yield f"On this graph and on every attacked one, the model {local}{LOCALITY[self.locality]}."
        if self.facts.task == "node" and self.facts.target_features and self.facts.whole_graph:
            yield "No weight or attribute of an edge is computed beforehand from the features of the target."

    def about_rounding(self) -> Iterator[str]:
        """Yields how exactly predictions are assumed to be repeated."""
        if self.rounding in ("float32", "float64"):
            yield from self.about_bounded_rounding()
        elif self.tolerance > 0:
            yield (
                "Recomputing a subgraph on any machine, or the part around the target in any attacked graph, changes "
                f"no logit by more than {self.tolerance:g} times the largest logit, or four times the change observed "
                "under random rounding perturbation, whichever is larger. Votes whose two largest logits are closer "
                f"than twice that are counted for the rival.{ROUNDING[self.rounding]}"
            )
        else:
            yield "Evaluating the same subgraph again gives the same vote, on any machine and in any attacked graph."

    def about_bounded_rounding(self) -> Iterator[str]:
        """Yields what a vote is where rounding is bounded, and what is assumed of machines."""
        yield (
            "A vote is the class of the largest logit in exact arithmetic on the given weights, features and edge "
            f"values. It was decided {ROUNDING[self.rounding]}. Votes that are not decided so, or whose two largest "
            f"logits are closer than {2 * self.tolerance:g} times the largest, are counted for the rival. Whoever "
            "evaluates the model in another way, or less exactly, may read other votes where logits are close."
        )
        yield (
            "The machine that decided them rounds each sum, product, quotient and root to a nearest number (or takes "
            "less than the smallest normal number for zero) and exp, tanh and erf to within 4 units of rounding, and "
            "computes products of matrices as sums of products, in any order."
        )

    def about_voting_rule(self) -> Iterator[str]:
        """Yields how votes are added up, unless that is as usual."""
        voting_rule = self.record.voting_rule
        if self.facts.per_neighbour:
            yield _OWN_VOTES[self.facts.task, self.facts.one_way]
            yield "An edge that loses one of two directions, or some of its copies, counts as changed, not as deleted."
        is_unusual = voting_rule.empty != self.facts.empty[0]
        if is_unusual:
            yield self.about_empty_groups()
        if voting_rule.no_edge_prior:
            yield (
                f"The votes of a target are added to {voting_rule.no_edge_prior:,} votes for its prediction without "
                "edges, which depends on the target's own features alone, so that no attack changes them. If that "
                "prediction is too close to a tie, these votes are counted for the rival."
            )
        elif voting_rule.class_prior:
            added = [f"{number:,} for class {k}" for k, number in enumerate(voting_rule.class_prior) if number]
            listed = ", ".join(added[:20])
            if len(added) > 20:
                listed += f", and so on for {len(added)} classes"
            yield f"The votes of every target are added to fixed votes, which no attack changes: {listed}."
        if voting_rule.prior or is_unusual:
            yield "The division, the added votes and what empty groups cast were fixed before any vote was cast."

    def about_empty_groups(self) -> str:
        """Returns what empty groups vote for."""
        empty = self.record.voting_rule.empty
        if self.facts.per_neighbour:
            return (
                f"A group without edges counts for class {empty}. There can be any number of such groups, so each vote "
                "that is cast takes one vote from that class."
            )
        which = "where the target has no edge that brings it a message"
        if self.facts.task == "graph":
            which = "without an edge" if self.facts.uses_reach else "without a node"
        vote = "no vote" if empty == "abstain" else f"a vote for class {empty}"
        return f"A subgraph {which} casts {vote}, whatever the model predicts."

    def not_proved(self) -> Iterator[str]:
        """Yields what is not proved."""
        yield LABEL_MAY_BE_WRONG
        yield MODEL_AS_GIVEN
        if not self.target_features:
            yield "Robustness against changes of the target's own features, which are part of every subgraph."
        if self.needs_ids:
            yield "Robustness against deleted nodes: the data has no node_id, and a deletion renumbers all later rows."
        if self.facts.by_neighbours and not self.target_features:
            yield (
                "That edges matter for the label: a radius of at least the target's degree means that the label is the "
                "prediction without any edges."
            )
        if not self.facts.whole_graph:
            yield "Any change that is not listed as covered."


def all_changes(by_row: bool, keeps_nodes: bool) -> Iterator[str]:
    """Yields the changes that are covered where all of the graph is divided.

    Args:
        by_row: Whether row numbers stand in for ids.
        keeps_nodes: Whether no node may be deleted.
    """
    yield "Edges added or deleted anywhere, and edges given another weight, attribute or number of copies."
    injected = "Nodes injected with any features, each with as many edges as the budget allows, or with any number."
    yield f"{injected} They are appended after the existing rows." if by_row else injected
    if keeps_nodes:
        yield "Features of other nodes changed to anything."
    else:
        yield "Nodes deleted with all their edges, and features of other nodes changed to anything."
    yield "Any mix of these in one attack: ask holds_against(Budget(...))."


def about_ids(by_row: bool, keeps_nodes: bool) -> Iterator[str]:
    """Yields what is assumed about edges and ids. The arguments are those of :func:`all_changes`."""
    yield "An edge is an unordered pair of nodes; a new direction of an old pair counts as an added edge."
    if keeps_nodes:
        yield "Row numbers are the ids of the nodes: injected nodes come last, and no node is deleted."
    elif by_row:
        yield (
            "Row numbers are the ids of the nodes: injected nodes come last. If a deleted node shifts the rows of "
            "other nodes, the target is still the same node."
        )
    else:
        yield "Ids are unique and a node keeps its id; an attacker may reuse the id of a node that he deletes."


def named_model(digests: Mapping[str, str]) -> str:
    """Returns how a sentence about the model begins: with its digest, if there is one."""
    return f"The model with SHA-256 {digests['model']}" if "model" in digests else "The model"


def about_encoding(digests: Mapping[str, str]) -> Iterator[str]:
    """Yields what is assumed if features were made from the columns of a table."""
    if "encoding" in digests:
        yield (
            f"Features were made from a table, row by row, by the encoding with SHA-256 {digests['encoding']}, which "
            "is the same for every attacked graph."
        )
