"""What a certificate of graph votes counts: a prior of the trusted part, and items with their votes.

:class:`GraphRecord` only holds data and checks that it makes sense: ``graph_votes.evidence`` proves with
it, and ``verifier.recount_graph_votes`` counts again.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np

from agnncert.certificates.record import Array, Record
from agnncert.certificates.task import Task
from agnncert.certificates.votes import IntArray

Trusted = Literal["structure", "nodes", "count", "none"]
TRUSTED: tuple[Trusted, ...] = get_args(Trusted)
STEPS = 1024  # of a vote: one unit of a logarithm of odds
LARGEST_SCORE = 2**40  # in steps; sums of scores then fit into 64 bits
LARGEST_VOTE = 2**20
LARGEST_NUMBER = 2**31  # of items of a graph
MOST_STATES = 2**16


@dataclass(frozen=True, repr=False)
class GraphRecord(Record):
    """Scores of ``n`` targets with ``C`` classes, in whole steps. It is checked on construction.

    The score of class ``c`` for a target is ``prior[c]``, plus ``table[context, state, c]`` for each of its
    items, plus ``by_size[size, c]``, where sizes beyond the last row count as the last.

    ============  ==============================  =======================  ===========================
    ``trusted``   what the prior reads            items                    states of an item
    ============  ==============================  =======================  ===========================
    "structure"   nodes without features, edges   nodes, by their role     types of features
    "nodes"       features of all nodes           pairs of nodes, by kind  0 if apart, 1 if joined
    "count"       the number of nodes             nodes                    types of features
    "none"        nothing                         nodes                    types of features
    ============  ==============================  =======================  ===========================

    Attributes:
        prior: Shape ``[n, C]``; zero with "none".
        indptr: Items of target ``j`` are ``indptr[j]:indptr[j + 1]``, shape ``[n + 1]``.
        context: What is trusted about each kind of item, a row of ``table``, shape ``[m]``.
        state: The state of these items, ascending with the context within a target, shape ``[m]``.
        number: How many items there are of this context and state, shape ``[m]``.
        table: Votes, shape ``[R, K, C]``.
        size: Number of nodes of each target with "none", else empty, shape ``[n]``.
        by_size: Scores of numbers of nodes from 0 on with "none", else empty, shape ``[N, C]``.
        task: ``"graph"`` or ``"node"``. Nodes have no items.
        trusted: What an attacker cannot change.
        made_for: The number of changes that the votes were made for; None without votes.
        ids: ``"node_id"`` if nodes keep their identity, ``"row"`` if row numbers stand in.
    """

    prior: IntArray
    indptr: IntArray
    context: IntArray
    state: IntArray
    number: IntArray
    table: IntArray
    size: IntArray
    by_size: IntArray
    task: Task = "graph"
    trusted: str = "structure"
    made_for: int | None = None
    ids: str = "node_id"

    called: ClassVar[str] = "the graph votes"
    arrays: ClassVar[Mapping[str, Array]] = {
        "prior": Array(np.int64, "n C", -LARGEST_SCORE, LARGEST_SCORE),
        "indptr": Array(np.int64, "n+1", 0),
        "context": Array(np.int64, "m", 0),
        "state": Array(np.int64, "m", 0),
        "number": Array(np.int64, "m", 1, LARGEST_NUMBER),
        "table": Array(np.int64, "R K C", -LARGEST_VOTE, LARGEST_VOTE),
        "size": Array(np.int64, "sized", 0, LARGEST_NUMBER),
        "by_size": Array(np.int64, "N C", -LARGEST_SCORE, LARGEST_SCORE),
    }

    def checks(self) -> tuple[Callable[[], str], ...]:
        """Returns what settings, items and sizes have to fulfil."""
        of_items = (self._wrong_list, self._wrong_items, self._wrong_order, self._wrong_pairs)
        return (self._wrong_settings, *of_items, self._wrong_sizes, self._wrong_of_nodes)

    def _wrong_settings(self) -> str:
        if self.task not in ("graph", "node") or self.trusted not in TRUSTED:
            return f"the task is {self.task!r:.60} and what is trusted {self.trusted!r:.60}"
        if self.task == "node" and self.trusted != "structure":
            return "for nodes, only the structure can be trusted"
        if self.ids not in ("node_id", "row"):
            return f"ids are {self.ids!r:.60}"
        is_number = type(self.made_for) is int and self.made_for >= 0
        if self.made_for is not None and not is_number:
            return f"the votes are made for {self.made_for!r:.60} changes"
        return "there is no class" if self.num_classes < 1 else ""

    def _wrong_list(self) -> str:
        if self.indptr[0] != 0 or self.indptr[-1] != len(self.context) or (np.diff(self.indptr) < 0).any():
            return "the items are not listed target by target"
        if self.task == "node" and len(self.context):
            return "nodes have no items"
        return ""

    def _wrong_items(self) -> str:
        num_contexts, num_states, _ = self.table.shape
        if num_states > MOST_STATES or (num_contexts and not num_states):
            return f"items have {num_states:,} states"
        for name, number in (("context", num_contexts), ("state", num_states)):
            if getattr(self, name).max(initial=-1) >= number:
                return f"an item has a {name} that no votes are known for"
        return ""

    def _wrong_order(self) -> str:
        code = self.context * self.table.shape[1] + self.state
        begins = np.isin(np.arange(1, len(code)), self.indptr)
        if (code[1:] <= code[:-1])[~begins].any():
            return "items of a target are not in ascending order"
        return "a target has too many items" if self.items_of_each().max(initial=0) > LARGEST_NUMBER else ""

    def _wrong_pairs(self) -> str:
        """Says what is wrong with votes of pairs: those that are apart do not vote."""
        if self.trusted != "nodes" or not len(self.table):
            return ""
        if self.table.shape[1] != 2:
            return "a pair of nodes is joined or apart, and has no other state"
        return "pairs that are apart vote" if self.table[:, 0].any() else ""

    def _wrong_sizes(self) -> str:
        has_sizes = bool(self.size.size or self.by_size.size)
        if self.trusted != "none":
            return "sizes are listed, which are trusted here" if has_sizes else ""
        if len(self.size) != self.num_targets or not len(self.by_size):
            return "the number of nodes of each target is missing, or has no score"
        return ""

    def _wrong_of_nodes(self) -> str:
        """Says what is wrong where nothing is trusted."""
        if self.trusted != "none":
            return ""
        if self.prior.any():
            return "there is a prior, though nothing is trusted"
        if len(self.table) != 1:
            return "nodes differ by more than their features"
        return "" if np.array_equal(self.size, self.items_of_each()) else "the number of nodes is not that of the items"

    def items_of_each(self) -> IntArray:
        """Returns how many items each target has, shape ``[n]``."""
        total = np.concatenate([[0], np.cumsum(self.number)])
        return np.asarray(total[self.indptr[1:]] - total[self.indptr[:-1]])

    @property
    def num_targets(self) -> int:
        """Number of targets ``n``."""
        return len(self.prior)

    @property
    def num_classes(self) -> int:
        """Number of classes ``C``."""
        return int(self.prior.shape[1])
