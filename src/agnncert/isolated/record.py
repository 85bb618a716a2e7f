"""Holds the votes of models that were trained apart, in every view (subgraph) of each target.

:class:`IsolatedRecord` only holds data and checks that it makes sense: ``isolated.evidence`` proves with it,
``verifier.recount_isolated`` counts again.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from agnncert.certificates.record import Array, Record
from agnncert.certificates.theorem_facts import facts_of
from agnncert.certificates.votes import ABSTAIN, BoolArray, IntArray, VoteRecord, Votes

MOST_MODELS = 2**15
HASHES = ("md5", "sha1", "sha256", "blake2b")
GRAPH_IDS = ("graph_id", "content")


@dataclass(frozen=True, repr=False)
class IsolatedRecord(Record):
    """Votes of ``T`` models in ``m`` views of ``n`` targets. It is checked on construction.

    A view in which a target has nothing is not listed: it abstains, whoever was trained on what.

    Attributes:
        theorem: The theorem about changes of the test graph, one that divides graphs into ``views``.
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

    called: ClassVar[str] = "the votes of models that were trained apart"
    arrays: ClassVar[Mapping[str, Array]] = {
        "indptr": Array(np.int64, "n+1"),
        "group": Array(np.int32, "m"),
        "reached": Array(np.bool_, "m"),
        "reach_ptr": Array(np.int64, "n+1"),
        "reach": Array(np.int32, "reach"),
        "vote": Array(np.int16, "m T", ABSTAIN),
        "stable": Array(np.bool_, "m T"),
    }
    stated_later: ClassVar[Mapping[str, Any]] = {"graph_ids": GRAPH_IDS[0]}

    def __post_init__(self) -> None:
        super().__post_init__()
        silent = np.full(len(self.group), ABSTAIN, dtype=np.int16)
        self.views(silent, np.ones(len(self.group), dtype=bool))  # checks everything that views have in common

    def checks(self) -> tuple[Callable[[], str], ...]:
        """Returns what settings and votes have to fulfil together."""
        return (self._wrong_settings, self._wrong_votes)

    def _wrong_settings(self) -> str:
        if not facts_of(self.theorem).views:
            return f"the theorem is {self.theorem!r:.60}, expected that of a division of graphs by nodes or edges"
        if type(self.num_models) is not int or not 1 <= self.num_models <= MOST_MODELS:
            return f"the number of models is {self.num_models!r:.60}, expected 1 to {MOST_MODELS:,}"
        if type(self.num_classes) is not int:
            return f"the number of classes is {self.num_classes!r:.60}"
        if self.hash not in HASHES:
            return f"the hash is {self.hash!r:.60}, expected one of {', '.join(HASHES)}"
        if self.graph_ids not in GRAPH_IDS:
            return f"the ids of training graphs are {self.graph_ids!r:.60}, expected one of {', '.join(GRAPH_IDS)}"
        return ""

    def _wrong_votes(self) -> str:
        if self.vote.shape[1] != self.num_models:
            return f"there are votes of {self.vote.shape[1]} models, expected {self.num_models}"
        if self.vote.max(initial=ABSTAIN) >= self.num_classes:
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
