"""Which of several models of graph votes is kept: nothing, counting, the trusted part, or votes beside it.

They are compared in this order on training and validation graphs, each on graphs that it was not made of. The next one
replaces the one before it if it certifies more at the size that it is made for, by more than a standard error of the
difference. So nothing is kept that seems to lose.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from agnncert.certificates.task import Task
from agnncert.certificates.votes import BoolArray, IntArray
from agnncert.graph_votes.evidence import GraphEvidence
from agnncert.graph_votes.model import GraphModel, count_colours, role_codes
from agnncert.graph_votes.priors import (
    Fitted,
    Prior,
    longest_cycle,
    priors,
    require_classes,
    seen_by,
    vocabulary,
)
from agnncert.graph_votes.record import Trusted
from agnncert.graph_votes.seen import Types
from agnncert.graph_votes.training import Tables, VoteTrainer, certified, some_of, with_best_bias, without_votes

FOLDS = 3
LEAST_OF_ROLE = 50  # nodes of training graphs in a role, for it to have votes of its own


@dataclass(frozen=True)
class Wanted:
    """What a model of graph votes is to be.

    Attributes:
        trusted: What an attacker cannot change.
        size: The number of changes that it is made for; None for any number, so that nothing votes.
        against: With "none": "any" change, or "structure".
    """

    trusted: Trusted
    size: int | None
    against: str = "any"


@dataclass
class Choice:
    """What was compared, and what was kept.

    Attributes:
        kept: The name of what was kept.
        certified: The share of graphs that each certifies, by name.
    """

    kept: str = ""
    certified: dict[str, float] = field(default_factory=dict)

    def offers(self, name: str, right: BoolArray, best: BoolArray | None) -> bool:
        """Notes what a candidate certifies, and tells whether it replaces the best one before it."""
        self.certified[name] = float(right.mean())
        if best is not None and not _clearly_more(right, best):
            return False
        self.kept = name
        return True


def _clearly_more(right: BoolArray, best: BoolArray) -> bool:
    """Tells whether a share of right answers is larger by more than the standard error of the difference."""
    gain = right.astype(np.float64) - best.astype(np.float64)
    return bool(gain.mean() > gain.std(ddof=1) / np.sqrt(len(gain)))


class Maker:
    """Makes and compares models of graph votes.

    Args:
        fitted: Graphs with their classes.
        defence: Settings of the defence that they are for, one of those with the same trusted part.
    """

    def __init__(self, fitted: Fitted, defence: Mapping[str, Any]) -> None:
        require_classes(fitted.y)
        trusted: Trusted = defence["trusted"]
        self.fitted, self.trusted, self.defence = fitted, trusted, dict(defence)
        self.task: Task = "graph" if fitted.nodes is None else "node"
        self.wanted = Wanted(trusted, None)
        is_node_task = fitted.nodes is not None
        in_training = np.repeat(fitted.is_training & ~is_node_task, 1 if is_node_task else fitted.shape.size)
        self.types = Types.found_in(fitted.x[np.flatnonzero(in_training)])
        self.longest = longest_cycle(fitted.shape)
        self.colours = _no_colours()
        if trusted == "structure" and not is_node_task:
            self.colours = vocabulary(fitted.shape)
        self.roles = np.zeros(0, dtype=np.int64)
        if trusted == "structure" and not is_node_task:
            codes, times = np.unique(role_codes(fitted.shape), return_counts=True)
            self.roles = codes[times >= LEAST_OF_ROLE]

    def make(self, wanted: Wanted) -> tuple[GraphModel, Choice]:
        """Returns the model that is kept, and what was compared."""
        self.wanted = wanted
        self.defence = {"size": wanted.size, "trusted": wanted.trusted, "against": wanted.against}
        self.choice = Choice()
        tables = without_votes(self.fitted)
        if self.trusted == "none":
            return self._make_of_nodes(tables)
        best: BoolArray | None = None
        kept: Prior | None = None
        for prior in self.priors:
            right = prior.label == self.fitted.y
            if self.choice.offers(prior.name, right, best):
                best, kept = right, prior
        assert kept is not None  # there is at least counting
        assert best is not None
        if not self.wanted.size:
            return self.model_of(kept, tables, None), self.choice
        trainer, right = self._out_of_fold(kept)
        if not self.choice.offers("votes", right, best):
            return self.model_of(kept, tables, None), self.choice
        tables = self._trained(trainer, kept, np.arange(len(self.fitted.y)))
        return self.model_of(kept, tables, self.wanted.size), self.choice

    @cached_property
    def priors(self) -> list[Prior]:
        """Counting and trees, whatever is made of them."""
        fitted, trusted = self.fitted, self.trusted
        seen = seen_by(fitted, trusted, self.types, self.longest)
        if trusted == "structure" and fitted.nodes is None:
            seen = np.concatenate([seen, count_colours(fitted.shape, *self.colours)], axis=1)
        return priors(fitted, trusted, seen)

    # Where nodes come and go.

    def _make_of_nodes(self, empty: Tables) -> tuple[GraphModel, Choice]:
        """Compares a constant, counting, and votes of nodes."""
        prior = priors(self.fitted, "none", np.zeros((len(self.fitted.y), 0), dtype=np.int64))[0]
        size = self.wanted.size or 0
        everything = np.arange(len(self.fitted.y))
        trainer = self._trainer(prior)
        best: BoolArray | None = None
        kept = empty
        for name, make in (("the most frequent class", self._constant), ("the number of nodes", self._by_count)):
            tables = make(trainer, everything)
            right = self._right(trainer, tables, prior, everything, size)
            if self.choice.offers(name, right, best):
                best, kept = right, tables
        trainer, right = self._out_of_fold(prior)
        assert best is not None
        if self.choice.offers("votes", right, best):
            kept = self._trained(trainer, prior, everything)
        return self.model_of(prior, kept, self.wanted.size), self.choice

    def _constant(self, trainer: VoteTrainer, rows: IntArray) -> Tables:
        frequent = np.bincount(self.fitted.y[rows], minlength=self.fitted.num_classes).argmax()
        score = np.zeros((1, self.fitted.num_classes), dtype=np.int64)
        score[0, frequent] = 1
        return self._without_types(score)

    def _by_count(self, trainer: VoteTrainer, rows: IntArray) -> Tables:
        """Returns the number of nodes from which on another class is more frequent, as it certifies most."""
        sizes, y = self.fitted.shape.size[rows], self.fitted.y[rows]
        frequent = np.argsort(-np.bincount(y, minlength=self.fitted.num_classes), kind="stable")[:2]
        changes = self.wanted.size or 0
        best = (-1.0, 0, 0, 0)
        for below, above in (frequent, frequent[::-1]):
            for first in np.unique(sizes).tolist():
                is_right = (y == below) & (sizes + changes < first) | (y == above) & (sizes - changes >= first)
                best = max(best, (float(is_right.mean()), first, int(below), int(above)))
        _, first, below, above = best
        score = np.zeros((first + 1, self.fitted.num_classes), dtype=np.int64)
        score[:first, below] = 1
        score[first:, above] = 1
        return self._without_types(score)

    def _without_types(self, by_size: IntArray) -> Tables:
        empty = without_votes(self.fitted)
        table = np.zeros((1, self.types.num_types, self.fitted.num_classes), dtype=np.int64)
        return Tables(empty.of_share, empty.bias, table, by_size)

    # Votes.

    def _trainer(self, prior: Prior) -> VoteTrainer:
        """Returns what trains votes beside a prior."""
        num_contexts = {"structure": len(self.roles) + 1, "nodes": self._num_kinds}.get(self.trusted, 1)
        num_states = 2 if self.trusted == "nodes" else self.types.num_types
        blank = np.zeros((num_contexts, num_states, self.fitted.num_classes), dtype=np.int64)
        empty = without_votes(self.fitted)
        by_size = np.zeros((int(self.trusted == "none"), self.fitted.num_classes), dtype=np.int64)
        tables = Tables(empty.of_share, empty.bias, blank, by_size)
        evidence = self.model_of(prior, tables, None).items_of(self.fitted.shape, self.fitted.x)
        return VoteTrainer(self.fitted, prior, evidence, self.wanted.against, self.wanted.size or 0)

    @property
    def _num_kinds(self) -> int:
        return self.types.num_types * (self.types.num_types + 1) // 2

    def _trained(self, trainer: VoteTrainer, prior: Prior, rows: IntArray) -> Tables:
        return with_best_bias(trainer, trainer.train(rows), prior, rows)

    def _out_of_fold(self, prior: Prior) -> tuple[VoteTrainer, BoolArray]:
        """Returns what votes certify on graphs that they were not trained on, shape ``[n]``."""
        trainer = self._trainer(prior)
        total = len(self.fitted.y)
        fold = np.random.default_rng(self.fitted.seed).permutation(total) % FOLDS
        right = np.zeros(total, dtype=bool)
        for number in range(FOLDS):
            here = np.flatnonzero(fold == number)
            tables = self._trained(trainer, prior, np.flatnonzero(fold != number))
            right[here] = self._right(trainer, tables, prior, here, trainer.size)
        return trainer, right

    def _right(self, trainer: VoteTrainer, tables: Tables, prior: Prior, rows: IntArray, size: int) -> BoolArray:
        evidence: GraphEvidence = some_of(trainer.with_tables(tables, prior), rows)
        return certified(evidence, self.fitted.y[rows], self.wanted.against, size)

    # The model.

    def model_of(self, prior: Prior, tables: Tables, made_for: int | None) -> GraphModel:
        """Returns the model of a prior and tables."""
        trees, types = prior.trees, self.types
        arrays = {
            **{name: getattr(trees, name) for name in ("root", "column", "threshold", "left", "right", "share")},
            **{f"type_{name}": getattr(types, name) for name in ("columns", "rows", "measured", "scale")},
            "colour": self.colours[0],
            "colour_ptr": self.colours[1],
            "how": np.array([-1 if made_for is None else made_for, self.longest, prior.looks], dtype=np.int64),
            "role": self.roles,
            "of_share": tables.of_share,
            "bias": tables.bias,
            "table": tables.table,
            "by_size": tables.by_size,
        }
        return GraphModel.of(self.task, self.defence, arrays)


def _no_colours() -> tuple[IntArray, IntArray]:
    return np.zeros(0, dtype=np.int64), np.zeros(1, dtype=np.int64)
