"""The ways in which a certificate about pairs can be false: each field that carries the proof, one at a time.

Where a fault is restated, labels, radii, answers and words follow from the false evidence, so that only graph and model
show it.
"""

from collections.abc import Callable

import numpy as np

from agnncert.certificates.claim import Claim
from agnncert.pairs.claim import MASKED, TRUSTED, make_pair_claim
from agnncert.pairs.evidence import PairEvidence
from agnncert.proving.certificate import Certificate
from agnncert.stacked.record import STEPS
from tests.soundness.corpus.alterations import first, need
from tests.soundness.corpus.fault import Fault
from tests.soundness.forger.forging import PREFIX, Draft, budget_of, ids_of, set_ids

PAIRS = ("pairs-common", "pairs-both", "pairs-trusted")
COMMON, BOTH, TRUSTING = ((name,) for name in PAIRS)
_FOLLOWS = "does not follow from the votes"
_WORDS = "is not what its evidence allows it to say"
_SENSE = "the votes about pairs make no sense"


def restate(draft: Draft) -> None:
    """Lets every statement and every word follow from the altered evidence."""
    tensors = {name.removeprefix(PREFIX): array for name, array in draft.arrays.items() if name.startswith(PREFIX)}
    evidence = PairEvidence.load(tensors, draft.settings)
    stored = Claim.from_json(draft.claim)
    claim = make_pair_claim(evidence, locality=stored.locality, digests=stored.digests, notes=stored.notes)
    certificate = Certificate(claim, evidence, np.arange(evidence.num_targets))
    for name in ("label", "radius", "structure_radius", "new_neighbours"):
        draft.arrays[name] = getattr(certificate, name)
    for place, statement in enumerate(draft.header["statements"]):
        budget = budget_of(statement["budget"])
        draft.arrays["holds"][place] = certificate.holds_against(budget)
        statement["broken_at_most"] = certificate.broken_at_most(budget)
        if "excluded" in statement:
            statement["excluded"] = (~evidence.possible(budget)).sum(axis=0).tolist()
    draft.header["claim"] = claim.to_json() | {"library_version": draft.claim["library_version"]}


def restated(alter: Callable[[Draft], None]) -> Callable[[Draft], None]:
    """The alteration, with statements and words that follow from it."""

    def both(draft: Draft) -> None:
        alter(draft)
        restate(draft)

    return both


def with_setting(name: str, value: object) -> Callable[[Draft], None]:
    """Another value of one setting of the evidence."""

    def alter(draft: Draft) -> None:
        need(draft.settings[name] != value)
        draft.settings[name] = value

    return alter


# Statements


def one_step_further(name: str) -> Callable[[Draft], None]:
    def alter(draft: Draft) -> None:
        draft.arrays[name][first(draft.arrays[name] >= 0)] += 1

    return alter


def one_vote_for_an_edge(draft: Draft) -> None:
    """States what would follow if an edge or node reached one vote, where it reaches two or three."""
    other = draft.copy()
    other.settings["rule"] = "common"
    restate(other)
    need(not np.array_equal(draft.arrays["radius"], other.arrays["radius"]))
    for name in ("radius", "structure_radius", "holds", "new_neighbours"):
        draft.arrays[name] = other.arrays[name]
    draft.header["statements"] = other.header["statements"]


def degrees_of_pairs(draft: Draft) -> None:
    draft.arrays["degree"] = np.ones(draft.num_targets, dtype=np.int64)


def without(name: str) -> Callable[[Draft], None]:
    def alter(draft: Draft) -> None:
        del draft.arrays[name]

    return alter


# Words


def without_sentence(beginning: str) -> Callable[[Draft], None]:
    def alter(draft: Draft) -> None:
        kept = [sentence for sentence in draft.claim["assumes"] if not sentence.startswith(beginning)]
        need(len(kept) < len(draft.claim["assumes"]))
        draft.claim["assumes"] = kept

    return alter


def covers_the_payment(draft: Draft) -> None:
    draft.claim["not_proved"] = [sentence for sentence in draft.claim["not_proved"] if "own features" not in sentence]


def about_nodes(draft: Draft) -> None:
    draft.claim["task"] = "node"


# Evidence


def with_itself(draft: Draft) -> None:
    draft["pairs"][0, 1] = draft["pairs"][0, 0]


def named_twice(draft: Draft) -> None:
    draft["pairs"][1] = draft["pairs"][0]


def at_a_negative_row(draft: Draft) -> None:
    draft["pairs"][0, 0] = -1


def one_pair_too_few(draft: Draft) -> None:
    draft["pairs"] = draft["pairs"][:-1]


def the_other_way_round(draft: Draft) -> None:
    draft["pairs"][0] = draft["pairs"][0][::-1]


def prior_raised(draft: Draft) -> None:
    draft["prior"][0, draft.arrays["label"][0]] += 9 * STEPS


def hidden_by_slack(draft: Draft) -> None:
    draft.settings["slack"] = 200
    draft["prior"][:, 0] += 150


def weights_dropped(draft: Draft) -> None:
    draft["gate"][:] = 0


def votes_for_the_other_class(draft: Draft) -> None:
    draft["gate"] = draft["gate"][:, ::-1]
    draft["table"] = draft["table"][:, ::-1]


def a_smaller_vote(draft: Draft) -> None:
    draft["table"][0, first(draft["table"][0] > 1000)] -= 1000


def a_vote_left_out(draft: Draft) -> None:
    row = first(np.diff(draft["indptr"]) > 0)
    draft["which"] = np.delete(draft["which"], draft["indptr"][row])
    draft["indptr"] = draft["indptr"] - (np.arange(draft.num_targets + 1) > row)
    voters = draft["targets_per_node"].copy()
    voters[-1] -= 1
    draft["targets_per_node"] = voters[voters > 0]


def a_vote_of_another_pair(draft: Draft) -> None:
    counts = np.diff(draft["indptr"])
    row = first((counts[:-1] > 0) & (counts[1:] == 0))
    draft["indptr"][row + 1] -= 1


def fewer_voters(draft: Draft) -> None:
    draft["targets_per_node"] = draft["targets_per_node"][1:]


def two_voters_as_one(draft: Draft) -> None:
    *voters, last = draft["targets_per_node"].tolist()
    need(voters)
    draft["targets_per_node"] = [voters[0] + last, *voters[1:]]


def exchanged_names(draft: Draft) -> None:
    one, two, *rest = ids_of(draft)
    set_ids(draft, [two, one, *rest])


def exchanged_places(draft: Draft) -> None:
    rows = draft.arrays["row"]
    rows[[0, 1]] = rows[[1, 0]]


def called_true(draft: Draft) -> None:
    need((draft.arrays["truth"] != draft.arrays["label"]).any())
    draft.arrays["truth"] = draft.arrays["label"].copy()


def another_digest(name: str) -> Callable[[Draft], None]:
    def alter(draft: Draft) -> None:
        draft.claim["digests"][name] = "0" * 64

    return alter


def shown_by_the_model(
    why: str, says: str, alter: Callable[[Draft], None], rules: tuple[str, ...], understates: bool = False
) -> Fault:
    """A fault after which everything in the file agrees, so that only the model shows it."""
    return Fault(why, says, restated(alter), rules, found_with="model", understates=understates)


PAIR_FAULTS = {
    "pair-radius-too-large": Fault(
        "The radius of a pair is one larger than what the votes prove.",
        f"radius of 1 targets {_FOLLOWS}", one_step_further("radius"), PAIRS,
    ),
    "pair-structure-radius-too-large": Fault(
        "The radius of a pair against added and deleted edges and nodes is one too large.",
        f"structure radius of 1 targets {_FOLLOWS}", one_step_further("structure_radius"), PAIRS,
    ),
    "pair-new-edges-too-many": Fault(
        "One added edge more than what follows is said to be withstood beside anything else.",
        "number of new neighbours", one_step_further("new_neighbours"), TRUSTING,
    ),
    "pair-edge-reaches-one-vote": Fault(
        "The statements count one vote for an edge or node, where it reaches two or three.",
        _FOLLOWS, one_vote_for_an_edge, BOTH,
    ),
    "pair-degrees": Fault("Degrees are stated, which pairs do not have.", "which pairs do not have", degrees_of_pairs, COMMON),
    "pair-no-structure-radius": Fault(
        "The radius against structure alone is missing.", "structure alone is missing", without("structure_radius"), BOTH,
    ),
    "pair-mask-not-said": Fault(
        "The claim leaves out that the pair's own edge is masked.", _WORDS, without_sentence(MASKED), PAIRS,
    ),
    "pair-trust-not-said": Fault(
        "The claim leaves out that the edges of the first node are trusted.", _WORDS, without_sentence(TRUSTED), TRUSTING,
    ),
    "pair-payment-covered": Fault(
        "The claim leaves out that the pair's own features and values are not covered.", _WORDS, covers_the_payment, PAIRS,
    ),
    "pair-called-node": Fault("The claim says that the targets are nodes.", _WORDS, about_nodes, COMMON),
    "pair-other-mask-in-evidence": Fault(
        "The evidence names another mask than the claim.", _WORDS, with_setting("mask", "targets"), (*COMMON, *TRUSTING),
    ),
    "pair-other-rule-in-evidence": Fault(
        "The evidence says that common neighbours alone vote, the claim that all neighbours do.",
        _WORDS, with_setting("rule", "common"), BOTH,
    ),
    "pair-other-column-in-evidence": Fault(
        "The evidence names another column of trusted edges than the claim.", _WORDS, with_setting("trusted", 0), TRUSTING,
    ),
    "pair-trust-without-values": Fault(
        "Common neighbours are said to read values of trusted edges.", _SENSE, with_setting("trusted", 0), COMMON,
    ),
    "pair-blind-contacts": Fault(
        "Votes of contacts are said to read nothing, so that no edge could alter them.", _SENSE, with_setting("blind", True), TRUSTING,
    ),
    "pair-contacts-without-trust": Fault(
        "Contacts are said to vote, but no edge is trusted.", _SENSE, with_setting("rule", "trusted"), COMMON,
    ),
    "pair-unknown-rule": Fault("Nobody knows who votes.", _SENSE, with_setting("rule", "everybody"), COMMON),
    "pair-with-itself": Fault("A node is paired with itself.", "paired with itself", with_itself, PAIRS),
    "pair-twice": Fault("A pair is named twice.", "named twice", named_twice, PAIRS),
    "pair-negative-row": Fault("A pair has a negative row.", "negative row", at_a_negative_row, COMMON),
    "pair-too-few": Fault("There is one pair less than targets.", "one pair of rows for each target", one_pair_too_few, COMMON),
    "pair-turned": Fault(
        "A pair is named the other way round than its id.",
        "the id of 1 targets is not that of the graph", restated(the_other_way_round), PAIRS, found_with="graph",
    ),
    "pair-exchanged-ids": Fault(
        "Two pairs have exchanged their ids.",
        "the id of 2 targets is not that of the graph", exchanged_names, PAIRS, found_with="graph",
    ),
    "pair-exchanged-places": Fault(
        "Two pairs have exchanged their places in the list of pairs.",
        "the place in edge_label_index of 2 targets", exchanged_places, PAIRS, found_with="graph",
    ),
    "pair-labels-called-true": Fault(
        "All labels are said to be the true ones.", "the true class of", called_true, COMMON, found_with="graph",
    ),
    "pair-another-graph": Fault(
        "The claim names another graph.", "the graph is not the one", another_digest("graph"), PAIRS, found_with="graph",
    ),
    "pair-another-model": shown_by_the_model(
        "The claim names another model.", "model", another_digest("model"), PAIRS,
    ),
    "pair-prior-raised": shown_by_the_model(
        "The score of a pair's own features is larger than what the model computes, and the radius with it.",
        "prior is not what the model computes", prior_raised, PAIRS,
    ),
    "pair-weights-dropped": shown_by_the_model(
        "The factors of votes are 0, so that no edge seems to matter.",
        "gate is not what the model computes", weights_dropped, PAIRS,
    ),
    "pair-votes-for-the-other-class": shown_by_the_model(
        "Common neighbours vote for the other class.",
        "gate is not what the model computes", votes_for_the_other_class, COMMON,
    ),
    "pair-smaller-vote": shown_by_the_model(
        "A vote is smaller than what the model computes.",
        "the votes are not what the model computes", a_smaller_vote, PAIRS,
    ),
    "pair-vote-left-out": shown_by_the_model(
        "A common neighbour or contact is left out.",
        "indptr is not what the model computes", a_vote_left_out, PAIRS,
    ),
    "pair-vote-of-another": shown_by_the_model(
        "A vote is counted for another pair.",
        "indptr is not what the model computes", a_vote_of_another_pair, COMMON,
    ),
    "pair-fewer-voters": Fault(
        "A node that votes on pairs is left out of the list of voters.", "do not fit the lists", fewer_voters, PAIRS,
    ),
    "pair-two-voters-as-one": shown_by_the_model(
        "Two nodes that vote on pairs are counted as one.",
        "targets_per_node does not have the shape", two_voters_as_one, (*COMMON, *BOTH),
    ),
    "pair-other-mask": shown_by_the_model(
        "Another mask is stated, in evidence and words, than the one that was applied.",
        "mask is", with_setting("mask", "targets"), (*COMMON, *TRUSTING),
    ),
    "pair-own-mask-only": shown_by_the_model(
        "Only own edges are said to be masked, where the edges of all targets were.",
        "mask is", with_setting("mask", "own"), BOTH,
    ),
    "pair-other-rule": shown_by_the_model(
        "Common neighbours alone are said to vote, where all neighbours do, so that an edge seems to cost one vote.",
        "rule is", with_setting("rule", "common"), BOTH,
    ),
    "pair-other-column": shown_by_the_model(
        "Edges are said to be trusted by another column.",
        "trusted is", with_setting("trusted", 0), TRUSTING,
    ),
    "pair-no-slack": Fault(
        "No step is left for rounding on other machines.", "a setting is out of range", with_setting("slack", 0), PAIRS,
    ),
    "pair-slack-hides-a-prior": shown_by_the_model(
        "So much is left for rounding that another score of a pair's own features lies within it.",
        "slack is", hidden_by_slack, PAIRS,
    ),
    "pair-votes-that-read": shown_by_the_model(
        "Votes are said to read features of who votes, where they read nothing: less is proved than what follows.",
        "blind is", with_setting("blind", False), COMMON, understates=True,
    ),
}  # fmt: skip
