"""Checks certificate files about labels and edges together: the functions that ``verifier.kinds`` asks for."""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from agnncert.certificates.budget import Budget
from agnncert.certificates.file import Contents
from agnncert.certificates.votes import BoolArray
from agnncert.labels.joint_claim import make_joint_claim
from agnncert.labels.joint_record import JointRecord
from agnncert.verifier import check_labels, recount_joint
from agnncert.verifier.check import (
    check_claim,
    check_no_structure_radius,
    check_targets,
    count_broken,
    refused_budgets,
    wrong_statements,
)

TRAINING_FIELDS = check_labels.TRAINING_FIELDS


def check(contents: Contents) -> list[str]:
    """Returns what is wrong with the statements of a file.

    Raises:
        CertificateError: The votes are damaged or contradict themselves, so that nothing can be derived from them.
    """
    record = JointRecord.load(contents.evidence, contents.settings)
    expected = make_joint_claim(record, digests=contents.claim.digests)
    wrong = [
        *check_targets(contents, record.num_targets, record.num_classes),
        *check_claim(contents.claim, expected, {"graph", "model", "encoding"}),
        *check_no_structure_radius(contents),
        *refused_budgets(contents.budgets, partial(recount_joint.attack_of, record)),
    ]
    wrong += [] if wrong else _wrong_positions(contents, record)
    return wrong or _check_statements(contents, record)


def _wrong_positions(contents: Contents, record: JointRecord) -> Iterator[str]:
    """Yields that a voter counts its own label, or leaves out another one, or that a target is another node."""
    own = check_labels.positions_among_candidates(record.voters, record.voter)
    if own != record.voters.own.tolist():
        yield "a voter is not at its position among the candidates"
    if contents.arrays["row"].tolist() != record.voter[record.target].tolist():
        yield "a target is not at its position among the voters"


def _check_statements(contents: Contents, record: JointRecord) -> list[str]:
    """Derives every statement again. Returns what is wrong."""
    stated = contents.arrays
    elected = recount_joint.elect(record)
    needed = recount_joint.needed_changes(record, elected).min(axis=1, initial=np.inf)
    most = np.inf if record.neighbour_steps else record.voters.num_candidates
    is_wrong = {
        "label": stated["label"] != elected.label,
        "radius": stated["radius"] != np.minimum(needed - 1, most),
        "number of new neighbours": stated["new_neighbours"] != -1,
    }
    attacks = [recount_joint.attack_of(record, budget) for budget in contents.budgets]
    answers = [each.all(axis=1) for each in recount_joint.stays_ahead(record, elected, attacks)]
    return wrong_statements(contents, is_wrong, answers, count_broken(answers), "votes")


def possible(contents: Contents, budget: Budget) -> BoolArray:
    """Returns which classes each target may get under an attack, shape ``[n, num_classes]``."""
    record = JointRecord.load(contents.evidence, contents.settings)
    elected = recount_joint.elect(record)
    ahead = recount_joint.stays_ahead(record, elected, [recount_joint.attack_of(record, budget)])[0]
    own = np.arange(record.num_classes) == elected.label[:, None]
    return np.asarray(~ahead | own)


def breaks(contents: Contents) -> Callable[[Budget], BoolArray]:
    """Returns a function from a budget to the targets whose label may change, shape ``[n]``."""
    record = JointRecord.load(contents.evidence, contents.settings)
    elected = recount_joint.elect(record)

    def of_budget(budget: Budget) -> BoolArray:
        attack = recount_joint.attack_of(record, budget)
        return np.asarray(~recount_joint.stays_ahead(record, elected, [attack])[0].all(axis=1))

    return of_budget


def not_checked(contents: Contents) -> tuple[str, ...]:
    """Returns what the file alone cannot show, and what to pass to have it checked."""
    return (
        "whether the targets, ids, true classes and degrees are those of a graph: pass data",
        "whether the weights follow from the features, so that no label and no edge is in them: pass data",
        "whether these are the neighbours of the targets: pass data",
        "whether these are the training labels and the settings of a model: pass data and model",
    )
