"""``fit_statements``: fits a vote of statements to labelled functions.

Fitting is logistic regression: every statement gets the label of its function. That is wrong for many statements, but
the errors cancel in the vote. Limits and prior are chosen by cross-validation, so that the weights have not been fitted
to the functions on which they are scored.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from scipy.optimize import minimize
from scipy.sparse import csr_array
from torch_geometric.data import Data

from agnncert.certificates.votes import IntArray
from agnncert.certificates.voting_rule import VotingRule
from agnncert.datasets.splits import GraphSet
from agnncert.divisions.node import PerNeighbour
from agnncert.errors import DatasetError, SettingsError
from agnncert.graphs.labels import graph_classes
from agnncert.training.labels import checked_labels, part_rows
from agnncert.training.rule_search import VoteTable, best_class_prior, certified_accuracy, window
from agnncert_code.features import LONGEST, PIECES
from agnncert_code.statements import NEVER, StatementVotes

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
        model: Gives each statement a vote.
        voting_rule: The prior.
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


def fit_statements(data: GraphSet, size: int = 1, *, seed: int = 0) -> StatementFit:
    """Learns weights of words, and chooses limits and a prior, so that the vote is certified against ``size`` edits.

    Args:
        data: A ``GraphSet`` of functions with two classes whose features are ``agnncert_code.pieces``. Its training
            and validation parts are used alike.
        size: Number of edits, of any kind, that verdicts should withstand. 0 gives the best accuracy.
        seed: Which functions are held out together.

    Returns:
        Model, voting rule and division for ``certify``.

    Raises:
        DatasetError: Labels or parts are missing, or the features are others.
        SettingsError: The size is not a whole number from 0 on.

    Example: ``data = load_big_vul(root, embed=pieces)``, ``fitted = fit_statements(data, size=2)``, then
    ``ac.certify(fitted.model, data, fitted.division, targets=data.test, voting_rule=fitted.voting_rule)``.
    """
    if isinstance(size, bool) or not isinstance(size, int) or size < 0:
        raise SettingsError(f"size={size!r}: expected a whole number from 0 on.")
    return learn(data, seed).for_size(size)


def learn(data: GraphSet, seed: int = 0) -> "Learnt":
    """Returns what ``fit_statements`` learns from functions before it looks at a size."""
    scale, statements = _read(data)
    weights = _fitted(statements.examples(np.ones(len(statements.truth), dtype=bool)))
    limits = _limits(_scores(statements.scaled, weights))
    return Learnt(scale, weights, limits, statements, _held_out(statements, seed))


class _Examples(NamedTuple):
    """Statements to fit weights to.

    Attributes:
        scaled: Pieces of each statement, scaled to length 1.
        sign: Their labels as -1 and 1.
        weight: How much each counts, so that each function counts the same.
    """

    scaled: Any
    sign: Array
    weight: Array


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

    def examples(self, functions: npt.NDArray[np.bool_]) -> _Examples:
        """Returns the statements of some functions, given by a mask."""
        rows = np.flatnonzero(functions[self.owner])
        owner = self.owner[rows]
        sizes = np.bincount(self.owner, minlength=len(self.truth))[owner]
        sign = np.where(self.truth[owner] == 1, 1.0, -1.0)
        weight = np.asarray(len(rows) / (functions.sum() * sizes), dtype=np.float64)
        return _Examples(self.scaled[rows], sign, weight)


class _Candidate(NamedTuple):
    """Two limits by their numbers, the best voting rule for them, and the votes that they lead to."""

    limits: tuple[int, int]
    voting_rule: VotingRule
    table: VoteTable


@dataclass(frozen=True)
class Learnt:
    """Weights of words, possible limits, and scores of functions that were held out.

    Attributes:
        scale: How much each piece counts.
        weights: Weight of each piece, then the bias.
        limits: Possible limits, ascending.
        statements: The statements.
        above: For each statement how many limits it is above, when held out.
    """

    scale: npt.NDArray[np.float32]
    weights: Array
    limits: Array
    statements: _Statements
    above: IntArray

    def for_size(self, size: int) -> StatementFit:
        """Returns the limits and the prior that do best at a size."""

        def score(candidate: _Candidate) -> float:
            return certified_accuracy(candidate.table, candidate.voting_rule, *window(size))

        best = max(_candidates(self.statements, self.above, size), key=score)
        low, high = best.limits
        return StatementFit(
            self._model(best.limits),
            VotingRule(empty="abstain", prior=(*best.voting_rule.class_prior, NEVER)),
            size,
            certified_accuracy(best.table, best.voting_rule, 0),
            certified_accuracy(best.table, best.voting_rule, size),
            (float(SHARES[low]), float(SHARES[high])),
        )

    def _model(self, limits: tuple[int, int]) -> StatementVotes:
        model = StatementVotes(LONGEST)
        with torch.no_grad():
            model.scale.copy_(torch.from_numpy(self.scale))
            model.weight.copy_(torch.from_numpy(self.weights[:-1]))
            model.bias.copy_(torch.tensor(self.weights[-1]))
            model.limits.copy_(torch.from_numpy(self.limits[list(limits)]))
        return model.eval()


def _read(data: GraphSet) -> tuple[npt.NDArray[np.float32], _Statements]:
    """Returns how much each piece counts, and the statements as a model with this scale sees them."""
    rows = torch.cat([part_rows(data, name) for name in ("train", "val")]).numpy()
    truth = checked_labels(graph_classes(data), len(data), rows, 2).numpy()[rows]
    graphs: list[Data] = [data[int(k)] for k in rows]
    owner = np.repeat(np.arange(len(rows)), [len(graph.x) for graph in graphs])
    pieces = _checked_pieces(torch.cat([graph.x for graph in graphs]).numpy())
    scale = _scale(pieces, owner, len(rows))
    is_piece = pieces > 0
    ends = np.append(0, np.cumsum(is_piece.sum(axis=1)))
    counts = csr_array((np.ones(int(is_piece.sum())), pieces[is_piece], ends), shape=(len(pieces), PIECES + 1))
    scaled = counts * scale.astype(np.float64)[None, :]
    length = np.sqrt(scaled.power(2).sum(axis=1))
    scaled = csr_array(scaled * (1 / np.where(length > 0, length, 1.0))[:, None])
    return scale, _Statements(scaled, owner, truth)


def _checked_pieces(x: npt.NDArray[Any]) -> IntArray:
    """Returns features as numbers of pieces, or raises DatasetError if they are something else."""
    are_whole = bool(np.all(x == np.round(x)))
    are_numbers = x.min(initial=0) >= 0 and x.max(initial=0) <= PIECES
    if not are_whole or not are_numbers or x.shape[1] != LONGEST:
        raise DatasetError(
            "the features are not numbers of pieces: read the functions with embed=agnncert_code.pieces, for example "
            "load_big_vul(root, embed=agnncert_code.pieces)."
        )
    return x.astype(np.int64)


def _scale(pieces: IntArray, owner: IntArray, num_functions: int) -> npt.NDArray[np.float32]:
    """Returns how much each piece counts: the more, the fewer functions have it."""
    statement, position = np.nonzero(pieces)
    keys = owner[statement] * (PIECES + 1) + pieces[statement, position]
    num_having = np.bincount(np.unique(keys) % (PIECES + 1), minlength=PIECES + 1)
    scale = np.where(num_having >= RARE, np.log(num_functions / np.maximum(num_having, 1)), 0.0)
    return scale.astype(np.float32)


def _scores(scaled: Any, weights: Array) -> Array:
    return np.asarray(scaled @ weights[:-1] + weights[-1])


def _fitted(examples: _Examples) -> Array:
    """Returns the weights of all pieces, and the bias, by logistic regression that keeps weights small."""
    scaled, sign, weight = examples
    transposed = csr_array(scaled.T)

    def loss(values: Array) -> tuple[float, Array]:
        lead = sign * _scores(scaled, values)
        slope = -weight * sign / (1 + np.exp(np.clip(lead, -500, 500)))
        total = float(weight @ np.logaddexp(0, -lead)) + float(values[:-1] @ values[:-1]) / (2 * STRENGTH)
        return total, np.append(transposed @ slope + values[:-1] / STRENGTH, slope.sum())

    result = minimize(loss, np.zeros(PIECES + 2), jac=True, method="L-BFGS-B", options={"maxiter": 200})
    return np.asarray(result.x)


def _limits(scores: Array) -> Array:
    """Returns scores that the shares of all statements lie below. Nothing lies below the first or above the last one.

    Each is in the middle of a gap between scores, so that no vote depends on rounding.
    """
    far = 2 * float(np.abs(scores).max()) + 1.0
    steps = np.append(np.unique(scores), far)
    wide = np.flatnonzero(np.diff(steps) >= GAP)
    before = wide[np.searchsorted(steps[wide], np.quantile(scores, SHARES[1:-1]))]
    return np.array([-far, *(steps[before] + steps[before + 1]) / 2, far])


def _held_out(statements: _Statements, seed: int) -> IntArray:
    """Returns for each statement how many limits its score is above, by weights fitted to the other folds."""
    fold = np.random.default_rng(seed).permutation(len(statements.truth)) % FOLDS
    above = np.zeros(len(statements.owner), dtype=np.int64)
    for number in range(FOLDS):
        examples = statements.examples(fold != number)
        weights = _fitted(examples)
        limits = _limits(_scores(examples.scaled, weights))
        rows = np.flatnonzero(fold[statements.owner] == number)
        above[rows] = np.searchsorted(limits, _scores(statements.scaled[rows], weights), side="left")
    return above


def _candidates(statements: _Statements, above: IntArray, size: int) -> Iterator[_Candidate]:
    """Yields every pair of limits with the best prior for it. The first is the vote by size alone."""
    num_functions = len(statements.truth)
    last = len(SHARES) - 1
    for low in range(last + 1):
        for high in range(low, last + 1):
            if (low, high) == (0, last):  # nobody would vote
                continue
            vote = np.where(above <= low, 0, np.where(above > high, 1, 2))
            counts = np.bincount(3 * statements.owner + vote, minlength=3 * num_functions).reshape(num_functions, 3)
            table = VoteTable.of_graphs(_UNBOUNDED, counts[:, :2], statements.truth)
            yield _Candidate((low, high), best_class_prior(table, window(size), ["abstain"]), table)
