"""Holds the votes of models that were trained apart, in every view (subgraph) of each target.

:class:`IsolatedRecord` only holds data and checks that it makes sense: ``isolated.evidence`` proves with it,
``verifier.recount_isolated`` counts again.
"""

import reprlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from agnncert.certificates.record_checks import require_sense
from agnncert.certificates.votes import ABSTAIN, BoolArray, IntArray, VoteRecord, Votes
from agnncert.errors import CertificateError

THEOREMS_OF_VIEWS = ("node-centric/graph", "edge-centric/graph")
MOST_MODELS = 2**15
HASHES = ("md5", "sha1", "sha256", "blake2b")
_ARRAYS = {
    "indptr": np.int64,
    "group": np.int32,
    "reached": np.bool_,
    "reach_ptr": np.int64,
    "reach": np.int32,
    "vote": np.int16,
    "stable": np.bool_,
}
_OF_MODELS = ("vote", "stable")  # one row for each view, one column for each model
_SETTINGS = ("theorem", "ids", "num_groups", "num_classes", "num_models", "hash", "graph_ids")
GRAPH_IDS = ("graph_id", "content")


@dataclass(frozen=True, repr=False)
class IsolatedRecord:
    """Votes of ``T`` models in ``m`` views of ``n`` targets. It is checked on construction.

    A view in which a target has nothing is not listed: it abstains, whoever was trained on what.

    Attributes:
        theorem: The theorem about changes of the test graph, one of ``THEOREMS_OF_VIEWS``.
        num_groups: Number of views of each target, empty ones included.
        num_classes: Number of classes.
        num_models: Number of models ``T``.
        hash: The hash function that sorts training graphs into parts, by their ids.
        indptr: Views of target ``j`` are ``indptr[j]:indptr[j + 1]``, shape ``[n + 1]``.
        group: Number of each view, ascending within a target, shape ``[m]``.
        reached: As in :class:`~agnncert.certificates.votes.Votes`, shape ``[m]``.
        reach_ptr: As in :class:`~agnncert.certificates.votes.VoteRecord`, shape ``[n + 1]``.
        reach: As in :class:`~agnncert.certificates.votes.VoteRecord`.
        vote: The class that each model votes for in each view, or ``ABSTAIN``, shape ``[m, T]``.
        stable: Whether that vote is far enough from a tie to be the same on every machine, shape ``[m, T]``.
        ids: ``"node_id"`` if the nodes of test graphs keep their identity, ``"row"`` if row numbers stand in.
        graph_ids: ``"graph_id"`` if training graphs keep an id of their own, ``"content"`` if it is the digest of what
            they hold, so that an altered graph has another one.
    """

    theorem: str
    num_groups: int
    num_classes: int
    num_models: int
    hash: str
    indptr: IntArray
    group: npt.NDArray[np.int32]
    reached: BoolArray
    reach_ptr: IntArray
    reach: npt.NDArray[np.int32]
    vote: npt.NDArray[np.int16]
    stable: BoolArray
    ids: str = "node_id"
    graph_ids: str = "graph_id"

    def __post_init__(self) -> None:
        require_sense("the votes of models that were trained apart", (self._wrong_settings, self._wrong_arrays))
        silent = np.full(len(self.group), ABSTAIN, dtype=np.int16)
        self.views(silent, np.ones(len(self.group), dtype=bool))  # checks everything that views have in common

    def _wrong_settings(self) -> str:
        if self.theorem not in THEOREMS_OF_VIEWS:
            return f"the theorem is {self.theorem!r:.60}, expected one of {', '.join(THEOREMS_OF_VIEWS)}"
        if type(self.num_models) is not int or not 1 <= self.num_models <= MOST_MODELS:
            return f"the number of models is {self.num_models!r:.60}, expected 1 to {MOST_MODELS:,}"
        if type(self.num_classes) is not int:
            return f"the number of classes is {self.num_classes!r:.60}"
        if self.hash not in HASHES:
            return f"the hash is {self.hash!r:.60}, expected one of {', '.join(HASHES)}"
        if self.graph_ids not in GRAPH_IDS:
            return f"the ids of training graphs are {self.graph_ids!r:.60}, expected one of {', '.join(GRAPH_IDS)}"
        return ""

    def _wrong_arrays(self) -> str:
        for name, dtype in _ARRAYS.items():
            array = getattr(self, name)
            num_dimensions = 2 if name in _OF_MODELS else 1
            if not isinstance(array, np.ndarray) or array.dtype != dtype or array.ndim != num_dimensions:
                return f"{name} is not an array of {np.dtype(dtype)} with {num_dimensions} dimension(s)"
        for name in _OF_MODELS:
            if getattr(self, name).shape != (len(self.group), self.num_models):
                return f"{name} does not have a row for each view and a column for each model"
        if self.vote.size and (self.vote.min() < ABSTAIN or self.vote.max() >= self.num_classes):
            return "a model votes for a class that is not there"
        return ""

    @property
    def num_targets(self) -> int:
        """Number of targets ``n``."""
        return len(self.indptr) - 1

    def views(self, vote: npt.NDArray[np.int16], stable: BoolArray) -> VoteRecord:
        """Returns one vote for each view, as the theorem about the test graph counts them.

        Args:
            vote: The class of each view, or ``ABSTAIN``, shape ``[m]``.
            stable: Whether no attack that is considered changes it where the view stays as it is, shape ``[m]``.
        """
        num_targets = len(self.indptr) - 1
        votes = Votes(
            num_groups=self.num_groups,
            num_classes=self.num_classes,
            default=np.full(num_targets, ABSTAIN, dtype=np.int16),
            default_stable=np.ones(num_targets, dtype=bool),
            indptr=self.indptr,
            group=self.group,
            vote=vote,
            stable=stable,
            reached=self.reached,
        )
        return VoteRecord(votes, self.theorem, self.reach_ptr, self.reach, self.ids)

    def tensors(self) -> dict[str, npt.NDArray[Any]]:
        """Returns every array that :meth:`load` needs, by name."""
        return {name: getattr(self, name) for name in _ARRAYS}

    def settings(self) -> dict[str, Any]:
        """Returns everything else that :meth:`load` needs, as JSON values."""
        stored = {name: getattr(self, name) for name in _SETTINGS}
        if self.graph_ids == GRAPH_IDS[0]:  # files did not state it at first, and are written as they were
            del stored["graph_ids"]
        return stored

    @classmethod
    def load(cls, tensors: Mapping[str, npt.NDArray[Any]], settings: Mapping[str, Any]) -> Self:
        """Returns the votes of :meth:`tensors` and :meth:`settings`, which come from a file and are not trusted.

        Raises:
            CertificateError: They are not what this kind of evidence consists of.
        """
        settings = {"graph_ids": GRAPH_IDS[0], **settings}
        for found, expected in ((tensors, _ARRAYS), (settings, _SETTINGS)):
            if sorted(found) != sorted(expected):
                raise CertificateError(f"the file has {reprlib.repr(sorted(found))}: expected {', '.join(expected)}.")
        everything: dict[str, Any] = {**settings, **tensors}
        return cls(**everything)
