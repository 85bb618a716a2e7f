"""Whether a bound on rounding proves that scores, factors and votes are the same on any machine, up to one step.

The models without edges and the networks on top are evaluated in float64 with bounds (``engine.bounded_model``), which
hold for every machine that rounds as ``docs/proofs.md`` says. If a number is wrong by less than half a step on each of
two machines, both round it to steps that are at most one apart.
"""

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from agnncert.engine.bounded_model import BoundedModel, NotBoundedError
from agnncert.engine.bounded_rows import BoundedRows
from agnncert.engine.error_bounds import DOUBLE, UP, Bounds, gamma
from agnncert.stacked.model import LOWEST, GraphFree, Pairs, StackedModel, pairs_of
from agnncert.stacked.record import STEPS

UNIT = DOUBLE.unit
MOST_STEPS = 0.49  # of a step by which a number may be wrong


class Numbers(NamedTuple):
    """Numbers that were computed in float64, and how far each of a row may be wrong.

    Attributes:
        values: The numbers, shape ``[num_rows, width]``.
        error: Bound on the error of every number of a row, shape ``[num_rows]``.
    """

    values: Tensor
    error: Tensor

    @property
    def largest(self) -> Tensor:
        """At least the largest absolute value of each row, exact or computed."""
        if self.values.size(1) == 0:
            return self.error
        return self.values.abs().amax(dim=1) + self.error


class CountedErrors(NamedTuple):
    """How far the numbers that a certificate counts may be wrong, in votes, the largest of each kind.

    Attributes:
        prior: Of a score.
        gate: Of a factor.
        vote: Of a vote.
    """

    prior: float
    gate: float
    vote: float


@torch.no_grad()
def steps_are_proved(model: StackedModel, x: Tensor, edge_index: Tensor, values: dict[str, Tensor | None]) -> bool:
    """Tells whether a bound proves that every number that is counted differs by at most one step between machines.

    Args:
        model: The model, all parts of which were read and are as they were read.
        x: Features of all nodes.
        edge_index: All edges.
        values: ``edge_weight`` and ``edge_attr`` as the graph has them.

    Returns:
        ``False`` if a part cannot be bounded, if the bound is too large, or if votes have two levels or edges are
        trusted: their sums have as many terms as an attacker likes, or are no part of this bound.
    """
    if model.defence.levels == 2 or model.defence.trusted is not None:
        return False
    exact = model._in_float64()
    if not _are_constants_clear(exact):
        return False
    try:
        errors = counted_errors(exact, x.double(), edge_index, values)
    except NotBoundedError:
        return False
    # Comparisons with NaN are false.
    return all(error * STEPS < MOST_STEPS for error in errors)


def counted_errors(
    exact: StackedModel, x: Tensor, edge_index: Tensor, values: dict[str, Tensor | None]
) -> CountedErrors:
    """Bounds how far scores, factors and votes may be wrong.

    Args:
        exact: The model in float64.
        x: Features of all nodes in float64.
        edge_index: All edges.
        values: As in :func:`steps_are_proved`.

    Raises:
        NotBoundedError: A part of the model cannot be bounded.
    """
    logits = _own_logits(exact, x)
    votes = _votes_error(exact, logits, edge_index, values)
    return CountedErrors(_most(_prior(exact, logits).error), _most(_gate_error(exact, logits)), _most(votes))


def _most(error: Tensor) -> float:
    """Returns the largest error; infinite if one is not a number."""
    return float(error.nan_to_num(nan=math.inf, posinf=math.inf).max()) if error.numel() else 0.0


def _own_logits(exact: StackedModel, x: Tensor) -> Numbers:
    """Follows ``StackedModel.own_logits``."""
    parts = []
    for own in exact.own:
        assert isinstance(own, GraphFree)
        parts.append(_log_softmax(_logits_alone(own.model, x)))
    if not parts:
        return Numbers(x.new_zeros(len(x), 0), x.new_zeros(len(x)))
    values = torch.stack([part.values for part in parts]).mean(dim=0).clamp(min=LOWEST)
    error = torch.stack([part.error for part in parts]).mean(dim=0)
    largest = torch.stack([part.largest for part in parts]).amax(dim=0)
    # A part that is not finite has a vote on no machine, or on some.
    error = torch.where(values.isfinite().all(dim=1), error, math.inf)
    return Numbers(values, (error + gamma(len(parts) + 2, DOUBLE) * largest) * UP)


def _logits_alone(model: nn.Module, x: Tensor) -> Numbers:
    """Evaluates a model without edges, with bounds."""
    found: dict[str, Tensor] = {}

    def finish(rows: Tensor | slice, logits: BoundedRows) -> None:
        if not found:
            found["values"] = x.new_empty(len(x), logits.width)
            found["error"] = x.new_empty(len(x))
        found["values"][rows] = logits.values
        found["error"][rows] = logits.bounds.error

    none = torch.zeros((2, 0), dtype=torch.int64)
    BoundedModel(model, DOUBLE).in_blocks(x, none, {}, None, finish)
    return Numbers(found["values"], found["error"])


def _log_softmax(logits: Numbers) -> Numbers:
    """Follows ``log_softmax``: the sum of exponentials is at least 1, and at most their number."""
    width = logits.values.size(1)
    local = 8 * UNIT * (width + 4 + logits.largest)
    return Numbers(torch.log_softmax(logits.values, dim=1), (2 * logits.error + local) * UP)


def _softmax_error(scores: Numbers) -> Tensor:
    """Bounds the error of a softmax: scores wrong by w change each share by a factor between ``exp(-2w), exp(2w)``."""
    return (torch.expm1(2 * scores.error) + 8 * UNIT * (scores.values.size(1) + 5)) * UP


def _network(network: Any, given: Numbers) -> Numbers:
    """Evaluates one of the networks on top of the logits."""
    width = given.values.size(1)
    length = torch.linalg.vector_norm(given.values, dim=1) * (1 + 4 * (width + 8) * UNIT)
    error = given.error * math.sqrt(width) * UP
    bounds = Bounds((length + error) * UP, error)
    rows = BoundedModel(network, DOUBLE).of_rows(BoundedRows(given.values, bounds))
    return Numbers(rows.values, rows.bounds.error)


def _prior(exact: StackedModel, logits: Numbers) -> Numbers:
    """Follows ``StackedModel.prior``."""
    values = exact.prior(logits.values)
    scale = exact.own_scale.exp().item() * (1 + 8 * UNIT)
    size = exact.constant.abs().max() + scale * logits.largest
    error = scale * logits.error
    if exact.own_net is not None:
        refined = _network(exact.own_net, logits)
        size = size + refined.largest
        error = error + refined.error
    return Numbers(values, (error + 10 * UNIT * size) * UP)


def _gate_error(exact: StackedModel, logits: Numbers) -> Tensor:
    """Follows ``StackedModel.gate``: a sigmoid moves by a quarter of what its argument moves by."""
    if exact.gate_net is not None:
        return (_network(exact.gate_net, logits).error + 10 * UNIT) * UP
    return torch.full_like(logits.error, 10 * UNIT * 2.0**8)


def _votes_error(exact: StackedModel, logits: Numbers, edge_index: Tensor, values: dict[str, Tensor | None]) -> Tensor:
    """Returns by how much rounding can move the votes of all nodes, or of all pairs if votes read values of edges.

    Step by step it does what ``StackedModel.votes`` does, on numbers that carry a bound on their error.
    """
    if not exact.edge_channels:
        return _softmax_error(_scores(exact, logits, logits))
    table, _ = exact.edge_table({name: None if value is None else value.double() for name, value in values.items()})
    assert table is not None
    pairs = pairs_of(edge_index, torch.arange(len(logits.values)), len(logits.values))
    of_edges = _edge_rows(exact, table[pairs.arc], pairs.leaves)
    other_end = pairs.neighbour[pairs.pair]
    ends = Numbers(logits.values[other_end], logits.error[other_end])
    given = Numbers(torch.cat([ends.values, of_edges.values], dim=1), torch.maximum(ends.error, of_edges.error))
    # The mean over both directions of the mean over the edges of each.
    return _softmax_error(_scores(exact, ends, given)) + gamma(_most_copies(pairs) + 6, DOUBLE)


def _most_copies(pairs: Pairs) -> int:
    return int(torch.bincount(pairs.pair).max()) if len(pairs.pair) else 0


def _edge_rows(exact: StackedModel, values: Tensor, leaves: Tensor) -> Numbers:
    """Follows ``StackedModel.edge_rows``: a difference, and a quotient."""
    largest = (values.abs() + exact.edge_center.abs()) / exact.edge_spread.abs()
    rows = exact.edge_rows(values, leaves)
    error = gamma(3, DOUBLE) * largest.amax(dim=1) * UP + DOUBLE.tiny
    return Numbers(rows, torch.where(rows.isfinite().all(dim=1), error, math.inf))


def _scores(exact: StackedModel, logits: Numbers, given: Numbers) -> Numbers:
    """Follows ``StackedModel.scores``.

    Args:
        exact: The model in float64.
        logits: Own logits of who votes.
        given: What the network of votes reads.
    """
    scores = _network(exact.vote_net, given)
    if logits.values.size(1) == 0:
        return scores
    scale = exact.vote_scale.abs().item()
    size = scores.largest + scale * logits.largest + exact.abstain.abs().item()
    error = scores.error + scale * logits.error + 4 * UNIT * size
    return Numbers(scores.values, error * UP)


def _are_constants_clear(exact: StackedModel) -> bool:
    """Tells whether the numbers that all nodes share are so far from the edge of a step that all machines agree."""
    if exact.defence.combine == "sum":
        return True
    pseudo = exact.pseudo.exp() * STEPS
    share = torch.softmax(exact.pseudo_votes, dim=0) * max(1, round(float(pseudo)))
    slack = 16 * UNIT * (len(share) + 5)
    to_edge = (pseudo - pseudo.floor() - 0.5).abs()
    to_whole = torch.minimum(share - share.floor(), share.ceil() - share)
    return bool(to_edge > slack * pseudo) and bool((to_whole > slack * (1 + share)).all())
