"""The vote of statements: ``StatementVotes`` scores single statements, ``fit_statements`` fits it.

The score of a statement is a weighted sum of its pieces (``agnncert_code.pieces``: tokens and parts of names). A
statement votes for class 1 if its score is above one limit, for class 0 if it is below another, and for a third class
otherwise, which cannot win because its prior is far below the others. With a thousand labelled functions, larger models
overfit (docs/code.md).

Fitting is logistic regression: every statement gets the label of its function. That is wrong for many statements, but
the errors cancel in the vote. Limits and prior are chosen by cross-validation, so that the weights have not been fitted
to the functions on which they are scored.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from scipy.optimize import minimize
from scipy.sparse import csr_array
from torch import Tensor, nn
from torch_geometric.nn import global_add_pool

from agnncert.certificates.votes import IntArray
from agnncert.certificates.voting_rule import VotingRule
from agnncert.divisions.node import PerNeighbour
from agnncert.errors import DatasetError, SettingsError
from agnncert.graphs.labels import graph_classes
from agnncert.models.io import load_description, load_model
from agnncert.training.rule_search import VoteTable, best_class_prior, certified_accuracy, window
from agnncert.training.setup import checked_labels, part_rows
from agnncert_code.features import LONGEST, PIECES

NEVER = -(2**30)  # prior of the class that stands for silence
NAME = "statements"


class StatementVotes(nn.Module):
    """Scores of statements from the pieces of their texts, and two limits.

    The score of a statement is ``sum(scale * weight) / sqrt(sum(scale ** 2)) + bias`` over its pieces. Of several
    statements it is the mean.

    Attributes:
        config: What is needed to build it anew.
        weight: Weight of each piece.
        scale: How much a piece counts: the more, the fewer functions have it; 0 for pieces that were seen too rarely.
        bias: Score of a statement without a known piece.
        limits: Below the first a statement votes for class 0, above the second for class 1.
    """

    scale: Tensor
    limits: Tensor

    def __init__(self, in_channels: int) -> None:
        super().__init__()
        self.config: dict[str, Any] = {
            "name": NAME, "task": "graph", "in_channels": in_channels, "out_channels": 3, "pieces": PIECES,
        }  # fmt: skip
        self.weight = nn.Parameter(torch.zeros(PIECES + 1))
        self.bias = nn.Parameter(torch.zeros(()))
        self.register_buffer("scale", torch.zeros(PIECES + 1))
        self.register_buffer("limits", torch.zeros(2))

    def scores(self, x: Tensor) -> Tensor:
        """Score of every statement, shape ``[num_statements]``."""
        # Whatever an attacker, or an audit, puts into a row is some piece or none.
        piece = x.nan_to_num(0.0, 0.0, 0.0).round().clamp(0, PIECES).long()
        scale = self.scale[piece]
        length = scale.square().sum(dim=1).sqrt()
        return (scale * self.weight[piece]).sum(dim=1) / torch.where(length > 0, length, 1.0) + self.bias

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        """Logits of every graph for class 0, class 1 and silence, shape ``[num_graphs, 3]``."""
        scores = self.scores(x)
        total = global_add_pool(torch.stack([scores, torch.ones_like(scores)], dim=1), batch)
        mean = total[:, 0] / total[:, 1].clamp(min=1.0)
        low, high = self.limits
        return torch.stack([low - mean, mean - high, torch.zeros_like(mean)], dim=1)


def load_function_model(path: str | Path) -> nn.Module:
    """Loads a saved model of functions: a ``StatementVotes``, or one of agnncert's own models.

    Raises:
        SettingsError: The description beside the weights fits no such model.
    """
    config = load_description(path)["model"] or {}
    if config.get("name") != NAME:
        return load_model(path)
    model = StatementVotes(config.get("in_channels", 0))
    if dict(config) != model.config:
        raise SettingsError(f"no model of statements is described by {dict(config)}: expected {model.config}.")
    return load_model(path, model)


FOLDS = 5
STRENGTH = 0.3  # of the fit against keeping all weights small; from .03 to 3 little changes
RARE = 3  # pieces that fewer functions have are left out
SHARES = np.linspace(0, 1, 11)  # of all statements that are below a limit
GAP = 1e-4  # least distance between two scores with a limit between them
_UNBOUNDED = 2**20  # votes that an attacker may add: as many as there are statements

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class StatementFit:
    """A vote of statements, as ``certify`` takes it, and what it does on functions that its weights have not seen.

    Attributes:
        model: Casts one vote for each statement.
        vote: The prior.
        size: The number of edits for which limits and prior were chosen.
        accuracy: Share of the functions that the vote gets right.
        certified_accuracy: Share that it gets right whatever ``size`` edits do.
        shares: Which share of all statements votes for class 0, and which does not vote for class 1.
    """

    model: StatementVotes
    voting_rule: VotingRule
    size: int
    accuracy: float
    certified_accuracy: float
    shares: tuple[float, float]

    @property
    def division(self) -> PerNeighbour:
        """One group per statement: no edge can matter, and one edit moves one vote."""
        return PerNeighbour()


@dataclass(frozen=True)
class _Statements:
    """All statements of some functions.

    Attributes:
        scaled: Pieces of each statement, scaled to length 1, shape ``[num_statements, PIECES + 1]``.
        owner: Function of each, ascending.
        truth: Label of each function.
    """

    scaled: Any
    owner: IntArray
    truth: IntArray

    def of(self, functions: npt.NDArray[np.bool_]) -> tuple[Any, Array, Array]:
        """Statements of some functions, their labels as -1 and 1, and weights: each function counts the same."""
        rows = np.flatnonzero(functions[self.owner])
        sizes = np.bincount(self.owner, minlength=len(self.truth))[self.owner[rows]]
        sign = np.where(self.truth[self.owner[rows]] == 1, 1.0, -1.0)
        return self.scaled[rows], sign, np.asarray(len(rows) / (functions.sum() * sizes), dtype=np.float64)


def fit_statements(data: Any, size: int = 1, *, seed: int = 0) -> StatementFit:
    """Learns weights of words, and chooses limits and a prior, so that the vote is certified against ``size`` edits.

    Args:
        data: A ``GraphSet`` of functions with two classes whose features are ``code.pieces``; its training and
            validation parts are used alike.
        size: Number of edits, of any kind, that verdicts should withstand; 0 for the best accuracy.
        seed: Which functions are held out together.

    Returns:
        Model, vote and division for ``certify``.

    Raises:
        DatasetError: Labels or parts are missing, or the features are others.
        SettingsError: The size is not a whole number from 0 on.

    Example: ``data = load_big_vul(root, embed=pieces)``, ``found = fit_statements(data, size=2)``, then
    ``ac.certify(found.model, data, found.division, targets=data.test, rule=found.vote)``.
    """
    if isinstance(size, bool) or not isinstance(size, int) or size < 0:
        raise SettingsError(f"size={size!r}: expected a whole number from 0 on.")
    return learn(data, seed).for_size(size)


def learn(data: Any, seed: int = 0) -> "Learnt":
    """What ``fit_statements`` learns from functions before it looks at a size."""
    scale, known = _read(data)
    weights = _fitted(*known.of(np.ones(len(known.truth), dtype=bool)))
    return Learnt(scale, weights, _limits(known.scaled @ weights[:-1] + weights[-1]), known, _held_out(known, seed))


@dataclass(frozen=True)
class Learnt:
    """Weights of words, possible limits, and scores of functions that were held out.

    Attributes:
        scale: How much each piece counts.
        weights: Weight of each piece, then the bias.
        limits: Possible limits, ascending.
        known: The statements.
        above: For each statement how many limits it is above, when held out.
    """

    scale: npt.NDArray[np.float32]
    weights: Array
    limits: Array
    known: _Statements
    above: IntArray

    def for_size(self, size: int) -> StatementFit:
        """The limits and the prior that do best at a size."""
        candidates = _candidates(self.known, self.above, size)
        shares, voting_rule, table = max(candidates, key=lambda one: certified_accuracy(one[2], one[1], *window(size)))
        return StatementFit(
            self._model(shares),
            VotingRule(empty="abstain", prior=(*voting_rule.class_prior, NEVER)),
            size,
            certified_accuracy(table, voting_rule, 0),
            certified_accuracy(table, voting_rule, size),
            (float(SHARES[shares[0]]), float(SHARES[shares[1]])),
        )

    def _model(self, shares: tuple[int, int]) -> StatementVotes:
        model = StatementVotes(LONGEST)
        with torch.no_grad():
            model.scale.copy_(torch.from_numpy(self.scale))
            model.weight.copy_(torch.from_numpy(self.weights[:-1]))
            model.bias.copy_(torch.tensor(self.weights[-1]))
            model.limits.copy_(torch.from_numpy(self.limits[list(shares)]))
        return model.eval()


def _read(data: Any) -> tuple[npt.NDArray[np.float32], _Statements]:
    """How much each piece counts, the more the rarer it is, and the statements as a model with this scale sees them."""
    rows = torch.cat([part_rows(data, name) for name in ("train", "val")]).numpy()
    truth = checked_labels(graph_classes(data), len(data), rows, 2).numpy()[rows]
    owner = np.repeat(np.arange(len(rows)), [len(data[int(k)].x) for k in rows])
    x = torch.cat([data[int(k)].x for k in rows]).numpy()
    if not (
        np.all(x == np.round(x)) and x.min(initial=0) >= 0 and x.max(initial=0) <= PIECES and x.shape[1] == LONGEST
    ):
        raise DatasetError(
            "the features are not numbers of pieces: read the functions with embed=agnncert_code.pieces, for example "
            "load_big_vul(root, embed=agnncert_code.pieces)."
        )
    pieces = x.astype(np.int64)
    filled = pieces > 0
    counts = csr_array(
        (np.ones(int(filled.sum())), pieces[filled], np.append(0, np.cumsum(filled.sum(axis=1)))),
        shape=(len(x), PIECES + 1),
    )
    having = np.bincount(np.unique(owner[np.nonzero(filled)[0]] * (PIECES + 1) + pieces[filled]) % (PIECES + 1),
                         minlength=PIECES + 1)  # fmt: skip
    scale = np.where(having >= RARE, np.log(len(rows) / np.maximum(having, 1)), 0.0).astype(np.float32)
    scaled = counts * scale.astype(np.float64)[None, :]
    length = np.sqrt(scaled.power(2).sum(axis=1))
    scaled = csr_array(scaled * (1 / np.where(length > 0, length, 1.0))[:, None])
    return scale, _Statements(scaled, owner, truth)


def _fitted(scaled: Any, sign: Array, weight: Array) -> Array:
    """Weights of all pieces, and the bias: logistic regression with small weights."""
    transposed = csr_array(scaled.T)

    def loss(values: Array) -> tuple[float, Array]:
        lead = sign * (scaled @ values[:-1] + values[-1])
        slope = -weight * sign / (1 + np.exp(np.clip(lead, -500, 500)))
        total = float(weight @ np.logaddexp(0, -lead)) + float(values[:-1] @ values[:-1]) / (2 * STRENGTH)
        return total, np.append(transposed @ slope + values[:-1] / STRENGTH, slope.sum())

    return np.asarray(minimize(loss, np.zeros(PIECES + 2), jac=True, method="L-BFGS-B", options={"maxiter": 200}).x)


def _limits(scores: Array) -> Array:
    """Scores that the shares of all statements lie below; nothing lies below the first or above the last one.

    Each is in the middle of a gap between scores, so that no vote depends on rounding.
    """
    far = 2 * float(np.abs(scores).max()) + 1.0
    steps = np.append(np.unique(scores), far)
    wide = np.flatnonzero(np.diff(steps) >= GAP)
    before = wide[np.searchsorted(steps[wide], np.quantile(scores, SHARES[1:-1]))]
    return np.array([-far, *(steps[before] + steps[before + 1]) / 2, far])


def _held_out(known: _Statements, seed: int) -> IntArray:
    """For each statement how many limits its score is above, by weights that were fitted to the other folds."""
    fold = np.random.default_rng(seed).permutation(len(known.truth)) % FOLDS
    above = np.zeros(len(known.owner), dtype=np.int64)
    for number in range(FOLDS):
        scaled, sign, weight = known.of(fold != number)
        values = _fitted(scaled, sign, weight)
        mine = np.flatnonzero(fold[known.owner] == number)
        limits = _limits(scaled @ values[:-1] + values[-1])
        above[mine] = np.searchsorted(limits, known.scaled[mine] @ values[:-1] + values[-1], side="left")
    return above


def _candidates(
    known: _Statements, above: IntArray, size: int
) -> Iterator[tuple[tuple[int, int], VotingRule, VoteTable]]:
    """Every pair of limits with the best prior for it; the first is the vote by size alone."""
    functions, last = len(known.truth), len(SHARES) - 1
    for low in range(last + 1):
        for high in range(low, last + 1):
            if (low, high) == (0, last):  # nobody would vote
                continue
            vote = np.where(above <= low, 0, np.where(above > high, 1, 2))
            counts = np.bincount(3 * known.owner + vote, minlength=3 * functions).reshape(functions, 3)[:, :2]
            table = VoteTable.of_graphs(_UNBOUNDED, counts, known.truth)
            yield (low, high), best_class_prior(table, window(size), ["abstain"]), table
