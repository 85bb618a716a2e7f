"""Checks certificate files that hold votes of training labels: the functions that ``verifier.kinds`` asks for."""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from agnncert.certificates.budget import Budget
from agnncert.certificates.file import Contents
from agnncert.certificates.votes import BoolArray, IntArray
from agnncert.labels.claim import make_label_claim
from agnncert.labels.record import LabelRecord
from agnncert.verifier import recount_labels
from agnncert.verifier.check import (
    check_claim,
    check_no_structure_radius,
    check_targets,
    count_broken,
    refused_budgets,
    wrong_statements,
)

TRAINING_FIELDS = ("flip_labels", "add_labels", "remove_labels")


def check(contents: Contents) -> list[str]:
    """Returns what is wrong with the statements of a file.

    Raises:
        CertificateError: The votes are damaged or contradict themselves, so that nothing can be derived from them.
    """
    record = LabelRecord.load(contents.evidence, contents.settings)
    expected = make_label_claim(record, digests=contents.claim.digests)
    wrong = [
        *check_targets(contents, record.num_targets, record.num_classes),
        *check_claim(contents.claim, expected, {"graph", "model", "encoding"}),
        *check_no_structure_radius(contents),
        *refused_budgets(contents.budgets, partial(recount_labels.changed_labels, record)),
    ]
    wrong += [] if wrong else _wrong_positions(contents, record)
    return wrong or _check_statements(contents, record)


def _wrong_positions(contents: Contents, record: LabelRecord) -> Iterator[str]:
    """Yields that a target counts its own label, or leaves out that of somebody else."""
    own = positions_among_candidates(record, contents.arrays["row"])
    if own != record.own.tolist():
        yield "a target is not at its position among the candidates"


def positions_among_candidates(record: LabelRecord, rows: IntArray) -> list[int]:
    """Returns at which position among the candidates each row of the data is, -1 if it is none."""
    position = {row: place for place, row in enumerate(record.candidate.tolist())}
    return [position.get(row, -1) for row in rows.tolist()]


def _check_statements(contents: Contents, record: LabelRecord) -> list[str]:
    """Derives every statement again. Returns what is wrong."""
    stated = contents.arrays
    counted = recount_labels.recount(record)
    radius = np.minimum(counted.needed.min(axis=1, initial=np.inf) - 1, record.num_candidates)
    is_wrong = {
        "label": stated["label"] != counted.label,
        "radius": stated["radius"] != radius,
        "number of new neighbours": stated["new_neighbours"] != -1,
    }
    answers = [recount_labels.holds(counted, recount_labels.changed_labels(record, b)) for b in contents.budgets]
    return wrong_statements(contents, is_wrong, answers, count_broken(answers), "votes")


def possible(contents: Contents, budget: Budget) -> BoolArray:
    """Returns which classes each target may get under an attack, shape ``[n, num_classes]``."""
    record = LabelRecord.load(contents.evidence, contents.settings)
    return recount_labels.possible(recount_labels.recount(record), recount_labels.changed_labels(record, budget))


def breaks(contents: Contents) -> Callable[[Budget], BoolArray]:
    """Returns a function from a budget to the targets whose label may change, shape ``[n]``."""
    record = LabelRecord.load(contents.evidence, contents.settings)
    counted = recount_labels.recount(record)

    def of_budget(budget: Budget) -> BoolArray:
        return ~recount_labels.holds(counted, recount_labels.changed_labels(record, budget))

    return of_budget


def not_checked(contents: Contents) -> tuple[str, ...]:
    """Returns what the file alone cannot show, and what to pass to have it checked."""
    return (
        "whether the targets, ids, true classes and degrees are those of a graph: pass data",
        "whether the weights follow from the graph, so that no label is in them: pass data",
        "whether these are the training labels and the settings of a model: pass data and model",
    )
