"""Checks certificate files about labels and edges together."""

from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np

from agnncert.certificates.budget import Budget
from agnncert.certificates.claim import Claim
from agnncert.certificates.file import Contents
from agnncert.certificates.votes import BoolArray, IntArray
from agnncert.labels.joint_claim import make_joint_claim
from agnncert.labels.joint_record import JointRecord
from agnncert.verifier import recount_joint
from agnncert.verifier.check import refused_budgets
from agnncert.verifier.check_labels import LabelsFile, positions_among_candidates
from agnncert.verifier.file_checker import LeadChecker
from agnncert.verifier.recount_joint import Elected, attack_of


class JointFile(LeadChecker):
    """A file of label votes and votes of neighbours."""

    training_fields = LabelsFile.training_fields

    def __init__(self, contents: Contents) -> None:
        super().__init__(contents)
        self.record = JointRecord.load(contents.evidence, contents.settings)

    @cached_property
    def _elected(self) -> Elected:
        return recount_joint.elect(self.record)

    @property
    def shape(self) -> tuple[int, int]:
        return self.record.num_targets, self.record.num_classes

    def expected_claim(self) -> Claim:
        return make_joint_claim(self.record, digests=self.contents.claim.digests)

    def wrong_form(self) -> Iterator[str]:
        record = self.record
        yield from refused_budgets(self.contents.budgets, lambda budget: attack_of(record, budget))
        if positions_among_candidates(record.voters, record.voter) != record.voters.own.tolist():
            yield "a voter is not at its position among the candidates"
        if self.contents.arrays["row"].tolist() != record.voter[record.target].tolist():
            yield "a target is not at its position among the voters"

    def wrong_values(self) -> dict[str, BoolArray]:
        stated = self.contents.arrays
        needed = recount_joint.needed_changes(self.record, self._elected).min(axis=1, initial=np.inf)
        most = np.inf if self.record.neighbour_steps else self.record.voters.num_candidates
        return {
            "label": stated["label"] != self._elected.label,
            "radius": stated["radius"] != np.minimum(needed - 1, most),
            "number of new neighbours": stated["new_neighbours"] != -1,
        }

    def label(self) -> IntArray:
        return self._elected.label

    def stays_ahead(self, budget: Budget, leader: int | None = None) -> BoolArray:
        return self._stay_ahead([budget], leader)[0]

    def answers(self) -> list[BoolArray]:
        """Returns which labels stay under each stated budget. The leads are derived once for all of them."""
        return [np.asarray(ahead.all(axis=1)) for ahead in self._stay_ahead(self.contents.budgets)]

    def _stay_ahead(self, budgets: Sequence[Budget], leader: int | None = None) -> list[BoolArray]:
        attacks = [attack_of(self.record, budget) for budget in budgets]
        elected = self._elected if leader is None else self._elected.led_by(leader)
        ahead = recount_joint.stays_ahead(self.record, elected, attacks)
        covered = [attack is not None for attack in attacks]
        return [np.asarray(each & is_covered) for each, is_covered in zip(ahead, covered, strict=True)]

    def not_checked(self) -> tuple[str, ...]:
        return (
            "whether the targets, ids, true classes and degrees are those of a graph: pass data",
            "whether the weights follow from the features, so that no label and no edge is in them: pass data",
            "whether these are the neighbours of the targets: pass data",
            "whether these are the training labels and the settings of a model: pass data and model",
        )
