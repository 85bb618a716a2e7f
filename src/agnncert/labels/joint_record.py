"""What a certificate about labels and edges together counts: label votes of targets and neighbours, and who is whose.

:class:`JointRecord` only holds data and checks that it makes sense: ``labels.joint_evidence`` proves with it,
``verifier.recount_joint`` counts again.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from agnncert.certificates.record import Array, Record
from agnncert.errors import CertificateError
from agnncert.labels.record import LARGEST_ADVANCE, IntArray, LabelRecord

KIND = "labels-and-edges"  # of such evidence in files
LARGEST_NEIGHBOUR = 2**20  # steps that a neighbour's vote may count, so that no sum of votes reaches 2**52
MOST_NEIGHBOURS = 2**31


@dataclass(frozen=True)
class JointRecord(Record):
    """Label votes of ``v`` voters, ``n`` of which are targets. Checked on construction.

    A *voter* is a target or a neighbour of one: every node that an edge joins to it, in either direction. The label
    votes of a voter elect a class. The score of a class for a target is that of its label votes, and
    ``neighbour_steps`` for each neighbour that elects this class. The largest score wins, the smaller class on a tie.

    Attributes:
        voters: Label votes of all voters, which read no edge. Voters do not abstain.
        voter: Row of each voter in the data, ascending, shape ``[v]``.
        target: Position of each target among the voters, shape ``[n]``.
        indptr: Neighbours of target number i are ``neighbour[indptr[i]:indptr[i + 1]]``, shape ``[n + 1]``.
        neighbour: Positions of the neighbours among the voters, ascending for each target, shape ``[e]``.
        neighbour_steps: What the vote of a neighbour counts, in steps.
        least_lead: Lead in steps below which a target abstains.
    """

    voters: LabelRecord
    voter: IntArray
    target: IntArray
    indptr: IntArray
    neighbour: IntArray
    neighbour_steps: int
    least_lead: int = 0

    called: ClassVar[str] = "the votes of labels and neighbours"
    arrays: ClassVar[Mapping[str, Array]] = {
        "voter": Array(np.int64, "v", 0),
        "target": Array(np.int64, "n", 0),
        "indptr": Array(np.int64, "n+1"),
        "neighbour": Array(np.int64, "e", 0),
    }
    class_of_voters: ClassVar[type[LabelRecord]] = LabelRecord

    def sizes(self) -> dict[str, int]:
        """Returns the number of voters, about each of whom label votes say something."""
        return {"v": self.voters.num_targets}

    def checks(self) -> tuple[Callable[[], str], ...]:
        """Returns what numbers and settings have to fulfil together."""
        return (self._wrong_settings, self._wrong_voters, self._wrong_neighbours)

    def _wrong_settings(self) -> str:
        if type(self.neighbour_steps) is not int or type(self.least_lead) is not int:
            return "a setting is not a whole number"
        if not 0 <= self.neighbour_steps <= LARGEST_NEIGHBOUR or not 0 <= self.least_lead <= LARGEST_ADVANCE:
            return "the vote of a neighbour, or the lead below which a target abstains, is out of range"
        if self.voters.least_lead:
            return "neighbours abstain"
        return ""

    def _wrong_voters(self) -> str:
        if (np.diff(self.voter) <= 0).any():
            return "voters are not in ascending rows"
        if (self.target >= len(self.voter)).any():
            return "a target is no voter"
        return ""

    def _wrong_neighbours(self) -> str:
        number = np.diff(self.indptr)
        if self.indptr[0] != 0 or (number < 0).any() or self.indptr[-1] != len(self.neighbour):
            return "the lists of neighbours have no length"
        if len(self.neighbour) >= MOST_NEIGHBOURS:
            return f"there are {len(self.neighbour):,} neighbours, which is too many"
        if (self.neighbour >= len(self.voter)).any():
            return "a neighbour is no voter"
        owner = self.owner
        if ((np.diff(self.neighbour) <= 0) & (np.diff(owner) == 0)).any():
            return "the neighbours of a target are not in ascending order, or one is named twice"
        if (self.neighbour == self.target[owner]).any():
            return "a target is its own neighbour"
        return ""

    @property
    def num_targets(self) -> int:
        """Number of targets ``n``."""
        return len(self.target)

    @property
    def num_classes(self) -> int:
        """Number of classes ``C``."""
        return self.voters.num_classes

    @property
    def ids(self) -> str:
        """``"node_id"`` if nodes have ids, ``"row"`` if row numbers stand in."""
        return self.voters.ids

    @property
    def owner(self) -> IntArray:
        """Number of the target whose neighbour it is, shape ``[e]``."""
        return np.repeat(np.arange(self.num_targets), np.diff(self.indptr))

    def tensors(self) -> dict[str, npt.NDArray[Any]]:
        """Returns every array by name, as a file stores them."""
        return {**self.voters.tensors(), **super().tensors()}

    def settings(self) -> dict[str, Any]:
        """Returns everything else, as JSON values."""
        own = {"neighbour_steps": self.neighbour_steps, "least_lead": self.least_lead}
        return {**self.voters.settings(), **own}

    @classmethod
    def load(cls, tensors: Mapping[str, npt.NDArray[Any]], settings: Mapping[str, Any]) -> Self:
        """Loads a record from a file, which is not trusted.

        Raises:
            CertificateError: It is not what votes of labels and neighbours consist of.
        """
        lacking = [name for name in cls.arrays if name not in tensors]
        lacking += [name for name in ("neighbour_steps", "least_lead") if name not in settings]
        if lacking:
            raise CertificateError(f"the votes of labels and neighbours lack {lacking!r:.200}.")
        of_voters = {name: array for name, array in tensors.items() if name not in cls.arrays}
        their_settings = {name: value for name, value in settings.items() if name != "neighbour_steps"}
        voters = cls.class_of_voters.load(of_voters, {**their_settings, "least_lead": 0})
        own: dict[str, Any] = {name: tensors[name] for name in cls.arrays}
        return cls(voters, **own, neighbour_steps=settings["neighbour_steps"], least_lead=settings["least_lead"])
