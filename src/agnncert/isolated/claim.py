"""What a certificate of models that were trained apart says in words."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from agnncert.certificates.claim import (
    EDGES_GIVEN,
    MODEL_AS_GIVEN,
    PREMISES,
    SPLIT_GIVEN,
    Claim,
    make_claim,
    with_sentence,
)
from agnncert.certificates.theorem_facts import theorem_mismatch
from agnncert.certificates.votes import ABSTAIN, VoteRecord
from agnncert.errors import CertificateError
from agnncert.isolated.record import IsolatedRecord

METHOD = "isolated-models"
_UNIT = {
    "graph_id": "one training graph that is inserted, deleted or altered in any way before training",
    "content": "one training graph that is inserted or deleted before training; an altered one is two",
}
_COUNTED = {
    "graph_id": "One that gets another id counts twice.",
    "content": "Counted are the graphs that are in one of the two lists of training graphs, the one that was meant and "
    "the poisoned one, and not in the other: an altered graph counts twice.",
}
_IDS = {
    "graph_id": "A training graph is poisoned if it differs from the one that was meant; its id is what is hashed, so "
    "ids are unique and a graph keeps its id.",
    "content": "The id of a training graph is the SHA-256 of all that it holds, with a number that tells equal graphs "
    "apart, so that an altered graph has another id. If a split is drawn again after an attack, every graph that it "
    "moves counts.",
}


def make_isolated_claim(
    record: IsolatedRecord,
    division: str,
    *,
    tolerance: float,
    digests: Mapping[str, str],
    locality: str,
    rounding: str,
    notes: tuple[str, ...] = (),
) -> Claim:
    """Returns the claim that belongs to the votes of models that were trained apart.

    Args:
        record: The votes.
        division: How test graphs are divided into views, as printed.
        tolerance: How far apart two evaluations of a score may lie.
        digests: SHA-256 by name. That of ``"model"`` is quoted in the assumptions.
        locality: How it is known that the models see one view at a time: "construction" or "test".
        rounding: How votes were decided.
        notes: Further remarks, stored as they are.

    Raises:
        CertificateError: The theorem does not belong to the division that is named.
    """
    mismatch = theorem_mismatch(record.theorem, division, record.num_groups, {})
    if mismatch:
        raise CertificateError(mismatch)
    views = _silent(record)
    about_test_graph = make_claim(
        views, division, tolerance=tolerance, digests=digests, locality=locality, rounding=rounding, notes=notes
    )
    kept = tuple(text for text in about_test_graph.assumes if text != PREMISES[0])
    not_proved = [text for text in about_test_graph.not_proved if text != MODEL_AS_GIVEN]
    return replace(
        about_test_graph,
        method=METHOD,
        unit=_UNIT[record.graph_ids],
        covers=(
            "Training and validation graphs inserted, deleted, or given other nodes, edges, features or classes before "
            f"training: ask holds_against(Budget(poison_graphs=...)). {_COUNTED[record.graph_ids]}",
            *_about_test_graph(record, about_test_graph),
        ),
        assumes=(*_about_training(record), *with_sentence(kept, SPLIT_GIVEN[METHOD], after=EDGES_GIVEN)),
        not_proved=(
            *not_proved,
            *_about_one_view(record),
            "Anything about what is decided before training: settings that were chosen by looking at training graphs "
            "are not covered.",
        ),
    )


def _silent(record: IsolatedRecord) -> VoteRecord:
    """Returns the views without votes: the words depend on their theorem alone."""
    num_views = len(record.group)
    return record.views(np.full(num_views, ABSTAIN, dtype=np.int16), np.ones(num_views, dtype=bool))


def _about_test_graph(record: IsolatedRecord, claim: Claim) -> Iterator[str]:
    """Yields what is covered at test time."""
    if record.num_groups == 1:
        return
    for text in claim.covers:
        yield f"At the same time, in the test graph: {text[0].lower()}{text[1:]}"


def _about_one_view(record: IsolatedRecord) -> Iterator[str]:
    """Yields that nothing is proved about test graphs that are seen as a whole."""
    if record.num_groups == 1:
        yield "Robustness against any change of the test graph: it is not divided, and every model sees all of it."


def _about_training(record: IsolatedRecord) -> Iterator[str]:
    """Yields what is assumed about training, instead of that it is trusted."""
    yield (
        f"A training graph is in one of {record.num_models} parts, by the {record.hash} of its id alone; each of the "
        f"{record.num_models} models was trained on one part, in the order of ids, and read nothing of the others: its "
        "initial weights, random numbers, scaling of features, number of steps and kept weights do not depend on them."
    )
    yield (
        "The classes, the columns of features, the number of parts and all settings of training were fixed without the "
        f"training graphs. {_IDS[record.graph_ids]}"
    )
    yield "A part without a training graph has a model that abstains."
