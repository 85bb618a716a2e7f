"""Training of votes beside a prior, against the worst changes of a size.

Votes are trained in floating point and rounded to whole numbers at the end. What they are worth is counted with the
rounded ones, by the evidence itself. Scores of the prior are those of trees that have not seen the graph, because votes
would else be trained beside a score that is too sure of itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import softplus

from agnncert.certificates.budget import Budget
from agnncert.certificates.votes import BoolArray, IntArray
from agnncert.graph_votes.evidence import GraphEvidence
from agnncert.graph_votes.priors import SMOOTH, Fitted, Prior, score_of_shares
from agnncert.graph_votes.record import LARGEST_VOTE, STEPS
from agnncert.graph_votes.trees import SHARES

EPOCHS = {"none": 400}  # few votes, trained for longer
USUAL_EPOCHS = 160
SIZE_KNOTS = 9
WEIGHT_DECAY = 1e-3


@dataclass(frozen=True)
class Tables:
    """Whole numbers that a model of graph votes adds up.

    Attributes:
        of_share: The score of each share of the prior, shape ``[SHARES + 1]``.
        bias: A score for each class, shape ``[C]``.
        table: Votes, shape ``[R, K, C]``.
        by_size: Scores of numbers of nodes with "none", shape ``[N, C]``.
    """

    of_share: IntArray
    bias: IntArray
    table: IntArray
    by_size: IntArray


def without_votes(fitted: Fitted) -> Tables:
    """Returns the tables of a prior on its own."""
    num_classes = fitted.num_classes
    empty = np.zeros((0, 0, num_classes), dtype=np.int64)
    by_size = np.zeros((0, num_classes), dtype=np.int64)
    return Tables(score_of_shares(), np.zeros(num_classes, dtype=np.int64), empty, by_size)


def attacks_of_size(trusted: str, against: str, size: int) -> list[Budget]:
    """Returns the budgets that an attack of a size may use, all of one kind of change first."""
    if trusted != "none" or against == "any":
        return []
    return [Budget(inject_nodes=k, delete_nodes=size - k) for k in range(size + 1)]


def certified(evidence: GraphEvidence, y: IntArray, against: str, size: int) -> BoolArray:
    """Returns which graphs are right and stay so under every attack of a size, shape ``[n]``."""
    right = evidence.labels() == y
    budgets = attacks_of_size(evidence.trusted, against, size)
    if budgets:
        return np.asarray(right & evidence.hold_under(budgets).all(axis=0))
    return np.asarray(right & evidence.keeps_label(slice(None), size))


class VoteTrainer:
    """Trains tables of votes beside a prior.

    Args:
        fitted: The graphs.
        prior: The trees; None if nothing is trusted.
        evidence: The items of all graphs, with any votes.
        against: "any" change, or "structure": no node is altered. Only with "none".
        size: Number of changes.
    """

    def __init__(self, fitted: Fitted, prior: Prior, evidence: GraphEvidence, against: str, size: int) -> None:
        self.fitted, self.evidence, self.size = fitted, evidence, size
        self.against = against
        self.num_contexts, self.num_states, self.num_classes = evidence.table.shape
        self.log_shares = torch.from_numpy(np.log(prior.out_of_bag / SHARES + SMOOTH)).float()
        self._pairs_of_classes = [(y, c) for y in range(self.num_classes) for c in range(self.num_classes) if y != c]
        self._prepare()

    def _prepare(self) -> None:
        """Lists the items of each graph, as many of each kind as can matter, filled up with none."""
        evidence = self.evidence
        copies = np.minimum(evidence.number, max(self.size, 1))
        owner = np.repeat(evidence.owner, copies)
        place = np.arange(len(owner)) - np.searchsorted(owner, np.arange(evidence.num_targets))[owner]
        code = np.repeat(evidence.context * self.num_states + evidence.state, copies)
        widest = int(place.max(initial=0)) + 1
        listed = np.full((evidence.num_targets, widest), self.num_contexts * self.num_states)
        listed[owner, place] = code
        self._listed = torch.from_numpy(listed)
        kinds = evidence.context * self.num_states + evidence.state
        counts = np.zeros((evidence.num_targets, self.num_contexts * self.num_states), dtype=np.float32)
        counts[evidence.owner, kinds] = evidence.number
        self._counts = torch.from_numpy(counts)
        self._size = torch.from_numpy(self.fitted.shape.size)
        self._largest = int(self._size.max())

    # One step.

    def scores(self, parts: dict[str, Tensor]) -> Tensor:
        """Returns the score of each class for each graph, shape ``[n, C]``."""
        votes = self._votes(parts).view(-1, self.num_classes)
        score = self.log_shares * parts["weight"].exp() + parts["bias"] + self._counts @ votes
        if self.evidence.trusted == "none":
            score = score + self._by_size(parts)[self._size]
        return score

    def _votes(self, parts: dict[str, Tensor]) -> Tensor:
        if self.evidence.trusted == "nodes":  # pairs that are apart do not vote
            return torch.stack([torch.zeros_like(parts["votes"][:, 1]), parts["votes"][:, 1]], dim=1)
        return parts["votes"]

    def _by_size(self, parts: dict[str, Tensor]) -> Tensor:
        """Returns the score of each number of nodes, a line with bends, shape ``[N, C]``."""
        return self._lines @ parts["size"]

    @cached_property
    def _lines(self) -> Tensor:
        """A line, and one that begins at each bend, by the number of nodes, shape ``[N, 1 + SIZE_KNOTS]``."""
        sizes = torch.arange(self._largest + 2 * max(self.size, 1) + 1).float()
        middle = self._size.float().median()
        spread = self._size.float().std().clamp(1.0, 300.0)
        bends = middle + spread * torch.linspace(-1.5, 2.5, SIZE_KNOTS)
        bent = torch.relu((sizes[:, None] - bends) / spread)
        return torch.cat([((sizes - middle) / spread)[:, None], bent], dim=1)

    def falls(self, parts: dict[str, Tensor], rows: Tensor, leader: int, rival: int) -> Tensor:
        """Returns the largest fall of the lead of a class over a rival, for some graphs, shape ``[b]``."""
        votes = self._votes(parts)
        vote = votes[:, :, leader] - votes[:, :, rival]
        if self.size == 0:
            return torch.zeros(len(rows))
        if self.evidence.trusted == "none":
            return self._fall_of_nodes(parts, vote.view(-1), rows, leader, rival)
        loss = (vote - vote.min(dim=1, keepdim=True).values).view(-1)
        listed = torch.cat([loss, loss.new_zeros(1)])[self._listed[rows]]
        return listed.topk(min(self.size, listed.size(1)), dim=1).values.sum(dim=1)

    def _fall_of_nodes(self, parts: dict[str, Tensor], vote: Tensor, rows: Tensor, leader: int, rival: int) -> Tensor:
        listed = torch.cat([vote, vote.new_full((1,), -1e4)])[self._listed[rows]]
        largest = listed.topk(min(self.size, listed.size(1)), dim=1).values
        taken = torch.cat([largest.new_zeros(len(rows), 1), largest.cumsum(dim=1)], dim=1)
        by_size = self._by_size(parts)
        score = by_size[:, leader] - by_size[:, rival]
        size, brought = self._size[rows], -vote.min()
        fall = torch.zeros(len(rows))
        for deleted in range(taken.size(1)):
            for injected in range(self.size - deleted + 1):
                most = self.size - deleted - injected if self.against == "any" else 0
                altered = min(most, taken.size(1) - 1 - deleted)  # each of them gains the rival something
                moved = score[size] - score[(size + injected - deleted).clamp(min=0)]
                fall = torch.maximum(fall, moved + taken[:, deleted + altered] + (injected + altered) * brought)
        return fall

    def loss(self, parts: dict[str, Tensor], rows: Tensor, y: Tensor, sharp: bool) -> Tensor:
        """Returns the mean loss of some graphs under the worst attack."""
        score = self.scores(parts)[rows]
        total = torch.zeros(())
        for leader, rival in self._pairs_of_classes:
            here = y == leader
            if not here.any():
                continue
            lead = score[here, leader] - score[here, rival] - self.falls(parts, rows[here], leader, rival)
            each = softplus(-lead)
            if sharp:
                each = 0.4 * each + torch.sigmoid(-2 * lead)
            total = total + each.sum()
        return total / len(rows)

    # Training.

    def train(self, rows: IntArray) -> Tables:
        """Trains votes on some graphs and returns whole numbers."""
        torch.manual_seed(self.fitted.seed)
        chosen, y = torch.from_numpy(rows), torch.from_numpy(self.fitted.y[rows])
        parts = {
            "votes": torch.zeros(self.num_contexts, self.num_states, self.num_classes, requires_grad=True),
            "weight": torch.zeros(1, requires_grad=True),
            "bias": torch.zeros(self.num_classes, requires_grad=True),
            "size": torch.zeros(SIZE_KNOTS + 1, self.num_classes, requires_grad=True),
        }
        others = [value for name, value in parts.items() if name != "votes"]
        optimizer = torch.optim.Adam([{"params": others, "lr": 0.05}, {"params": [parts["votes"]], "lr": 0.03}])
        epochs = EPOCHS.get(self.evidence.trusted, USUAL_EPOCHS)
        for step in range(epochs):
            optimizer.zero_grad()
            loss = self.loss(parts, chosen, y, sharp=step >= epochs // 2)
            loss = loss + WEIGHT_DECAY * (parts["votes"] ** 2).sum() + 1e-4 * (parts["size"] ** 2).sum()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
        with torch.no_grad():
            return self._rounded(parts)

    def _rounded(self, parts: dict[str, Tensor]) -> Tables:
        """Returns whole numbers, votes of all classes shifted so that they are small."""
        scale = float(parts["weight"].detach().exp())
        is_none = self.evidence.trusted == "none"
        votes = _whole(self._votes(parts)).clip(-LARGEST_VOTE, LARGEST_VOTE)
        by_size = _whole(self._by_size(parts) + parts["bias"]) if is_none else np.zeros((0, self.num_classes))
        return Tables(
            of_share=np.round(scale * score_of_shares()).astype(np.int64),
            bias=_whole(parts["bias"]),
            table=votes,
            by_size=by_size.astype(np.int64),
        )

    def with_tables(self, tables: Tables, prior: Prior) -> GraphEvidence:
        """Returns the evidence about all graphs, with shares of trees that have not seen them."""
        advance = tables.of_share[prior.out_of_bag] + tables.bias
        if self.evidence.trusted == "none":
            advance = np.zeros_like(advance)
        votes: dict[str, Any] = {"prior": advance, "table": tables.table, "by_size": tables.by_size}
        return replace(self.evidence, **votes, made_for=self.size)


def _whole(values: Tensor) -> IntArray:
    return np.round(STEPS * values.detach().double().numpy()).astype(np.int64)


def with_best_bias(trainer: VoteTrainer, tables: Tables, prior: Prior, rows: IntArray) -> Tables:
    """Returns tables in which, of two classes, the second has as much in advance as certifies most of some graphs."""
    if trainer.num_classes != 2:
        return tables
    evidence = trainer.with_tables(tables, prior)
    y = trainer.fitted.y[rows]
    part = some_of(evidence, rows)
    need = shifts_needed(part, y, trainer.against, trainer.size)
    return shifted(tables, _best_shift(need, y))


def some_of(evidence: GraphEvidence, rows: IntArray) -> GraphEvidence:
    """Returns the evidence about some of the targets."""
    entries = np.flatnonzero(np.isin(evidence.owner, rows))
    order = np.argsort(np.searchsorted(rows, evidence.owner[entries]), kind="stable")
    entries = entries[order]
    lengths = np.diff(evidence.indptr)[rows]
    return replace(
        evidence,
        prior=evidence.prior[rows],
        indptr=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        context=evidence.context[entries],
        state=evidence.state[entries],
        number=evidence.number[entries],
        size=evidence.size[rows] if len(evidence.size) else evidence.size,
    )


def shifts_needed(evidence: GraphEvidence, y: IntArray, against: str, size: int) -> IntArray:
    """Returns how far the lead of the true class is above its largest fall; two classes, shape ``[n]``."""
    attacks: Sequence[Budget | float] = attacks_of_size(evidence.trusted, against, size) or [size]
    margin = np.zeros(len(y), dtype=np.int64)
    for leader in (0, 1):
        here = np.flatnonzero(y == leader)
        left = [evidence.lead_left(here, leader, 1 - leader, attack) for attack in attacks]
        margin[here] = np.min(left, axis=0)
    return margin


def _best_shift(margin: IntArray, y: IntArray) -> int:
    """Returns what class 1 gets in advance so that most margins are at least 0: the middle of the best range."""
    sign = np.where(y == 1, 1, -1)
    ends = np.unique(np.concatenate([[0], -margin * sign, -margin * sign + 1, -margin * sign - 1]))
    if len(ends) > 600:
        ends = ends[np.linspace(0, len(ends) - 1, 600).astype(np.int64)]
    good = np.array([(margin + sign * end >= 0).mean() for end in ends])
    best = np.flatnonzero(good == good.max())
    return int(ends[best[len(best) // 2]])


def shifted(tables: Tables, shift: int) -> Tables:
    """Returns tables in which class 1 has so much more in advance."""
    step = np.array([0, shift], dtype=np.int64)
    by_size = tables.by_size + step if len(tables.by_size) else tables.by_size
    return replace(tables, bias=tables.bias + step, by_size=by_size)
