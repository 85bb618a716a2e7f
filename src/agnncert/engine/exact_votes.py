"""Votes of known models: the class of the largest logit in exact arithmetic, decided in floating point.

A class leads in exact arithmetic if its computed lead is more than twice the bound on the error of a logit. That is
tried in float32, then for the rows that are left in float64. A row that neither decides is unstable.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from agnncert.engine.adapter import ModelAdapter, no_edges
from agnncert.engine.bounded_model import BoundedModel, NotBoundedError
from agnncert.engine.bounded_rows import BoundedRows
from agnncert.engine.error_bounds import DOUBLE, SINGLE, Precision
from agnncert.engine.features import LazyRows
from agnncert.graphs.graph import CanonicalGraph
from agnncert.models.message_hops import hops_of

Rounding = Literal["float32", "float64", "watched"]
UNSTABLE, BY_FLOAT32, BY_FLOAT64, LEFT = 0, 1, 2, 3
ROWS_IN_DOUBLE = 2**15  # rows that float64 decides together


class Decisions(NamedTuple):
    """Votes, and what decided each.

    Attributes:
        vote: Class of each row, int16.
        by: ``BY_FLOAT32``, ``BY_FLOAT64``, or ``UNSTABLE``; in between, ``LEFT`` where float64 has yet to decide.
    """

    vote: Tensor
    by: Tensor

    @classmethod
    def concatenate(cls, parts: "Sequence[Decisions]") -> "Decisions":
        """Joins votes one after the other."""
        return cls(torch.cat([part.vote for part in parts]), torch.cat([part.by for part in parts]))


class Inputs(NamedTuple):
    """What a model is called on; the fields are those of ``predict``."""

    x: Tensor
    edge_index: Tensor
    values: Mapping[str, Tensor]
    batch: Tensor | None


def rounding_of(bound_model: ModelAdapter, graph: CanonicalGraph, is_known: bool) -> Rounding:
    """Returns how the votes of a model are decided.

    Args:
        bound_model: The model, bound to the graph.
        graph: The graph.
        is_known: Whether every part of the model was read and is as it was read (``known_layers``).

    Returns:
        ``"float32"`` if a bound decides in float32 first, and in float64 what is left; ``"float64"`` if all votes are
        decided in float64; ``"watched"`` if rounding is not bounded, but watched.
    """
    if not is_known or not _is_bounded_type(bound_model):
        return "watched"
    if bound_model.dtype == torch.float32 and _can_bound(bound_model, graph, SINGLE):
        return "float32"
    return "float64" if _can_bound(bound_model, graph, DOUBLE) else "watched"


def _is_bounded_type(bound_model: ModelAdapter) -> bool:
    """Tells whether a model is a module in main memory whose weights are all float32, or all float64."""
    model = bound_model.model
    if not isinstance(model, nn.Module) or bound_model.device.type != "cpu":
        return False
    weights = [weight for weight in (*model.parameters(), *model.buffers()) if weight.is_floating_point()]
    is_plain = all(weight.dtype == bound_model.dtype and weight.device.type == "cpu" for weight in weights)
    return is_plain and bound_model.dtype in (torch.float32, torch.float64)


def _can_bound(bound_model: ModelAdapter, graph: CanonicalGraph, precision: Precision) -> bool:
    """Tries a model on one node without edges."""
    edge_index, values = no_edges(graph, bound_model.edge_inputs)
    batch = torch.zeros(1, dtype=torch.int64) if bound_model.task == "graph" else None
    inputs = _converted(bound_model, Inputs(graph.x[:1].to(bound_model.dtype), edge_index, values, batch))
    try:
        bounded(bound_model, precision)(*inputs)
    except NotBoundedError:
        return False
    return True


def decide(
    bound_model: ModelAdapter,
    tolerance: float,
    x: Tensor,
    edge_index: Tensor,
    values: Mapping[str, Tensor],
    batch: Tensor | None = None,
) -> Decisions:
    """Returns the votes of a model whose rounding is bounded, and what decided each.

    The arguments are those of ``predict``. A lead must exceed the tolerance in addition to the bound.
    """
    inputs = Inputs(x, edge_index, values, batch)
    return decide_rest(bound_model, tolerance, decide_at_first(bound_model, tolerance, inputs), inputs)


def decide_at_first(bound_model: ModelAdapter, tolerance: float, inputs: Inputs) -> Decisions:
    """Returns the votes of a model whose rounding is bounded, some of them ``LEFT`` to float64.

    Args:
        bound_model: The model.
        tolerance: As in :func:`decide`.
        inputs: What it is called on.
    """
    inputs = _converted(bound_model, inputs)
    margin = _Margin(tolerance, bound_model.strictness)
    num_rows = inputs.x.size(0) if inputs.batch is None else int(inputs.batch[-1]) + 1
    decisions = Decisions(torch.empty(num_rows, dtype=torch.int16), torch.empty(num_rows, dtype=torch.int8))
    in_double = bound_model.rounding == "float64" or not _is_single_precision_plain()

    def finish(rows: Tensor | slice, logits: BoundedRows) -> None:
        some = margin.in_double(logits) if in_double else margin.in_single(logits)
        decisions.vote[rows] = some.vote.to(torch.int16)
        decisions.by[rows] = some.by

    bounded(bound_model, DOUBLE if in_double else SINGLE).in_blocks(*inputs, finish)
    return decisions


def decide_rest(bound_model: ModelAdapter, tolerance: float, decisions: Decisions, inputs: Inputs) -> Decisions:
    """Returns the same votes, where float64 has decided those that were left to it.

    Args:
        bound_model: The model.
        tolerance: As in :func:`decide`.
        decisions: The votes. They are written to.
        inputs: What the model was called on, or several such inputs side by side.
    """
    left = (decisions.by == LEFT).nonzero().view(-1)
    if len(left) == 0:
        return decisions
    inputs = _converted(bound_model, inputs)
    margin = _Margin(tolerance, bound_model.strictness)
    hops = hops_of(bound_model.model)
    for some in torch.split(left, ROWS_IN_DOUBLE):
        rows = torch.zeros(len(decisions.by), dtype=torch.bool)
        rows[some] = True
        part = _part_of(inputs, rows, hops)
        again = margin.in_double(bounded(bound_model, DOUBLE)(*part.inputs))
        decisions.vote[some] = again.vote[part.rows].to(torch.int16)
        decisions.by[some] = again.by[part.rows]
    return decisions


class _Margin(NamedTuple):
    """By how much a class must lead.

    Attributes:
        tolerance: Share of the largest logit, at least 1, that each of two logits may be wrong by in any case.
        strictness: As in ``ModelAdapter``: 1 asks for an eighth more than twice the bound, -1 for an eighth less. The
            tolerance is moved by 4 units of rounding.
    """

    tolerance: float
    strictness: int

    def in_double(self, logits: BoundedRows) -> Decisions:
        """Returns the votes of logits in float64. They are stable if the bound and the tolerance allow."""
        vote, lead = _vote_and_lead(logits.values)
        distance = torch.maximum(self._bound(logits), self._least(logits.values))
        # Comparisons with NaN are false: a logit that is not finite decides nothing.
        is_decided = (lead > 2 * distance) & (lead < torch.inf)
        return Decisions(vote, torch.where(is_decided, BY_FLOAT64, UNSTABLE).to(torch.int8))

    def in_single(self, logits: BoundedRows) -> Decisions:
        """Returns the votes of logits in float32. Some are ``LEFT`` to float64.

        The lead in exact arithmetic is compared with the tolerance. So whether a vote is stable does not depend on how
        float32 numbers were added.
        """
        vote, lead = _vote_and_lead(logits.values)
        error = self._bound(logits)
        least = self._least(logits.values)
        is_decided = (lead > 2 * (error * (1 + self.tolerance) + least)) & (lead < torch.inf)
        is_hopeless = lead + 4 * error <= 2 * least
        by = torch.where(is_hopeless, UNSTABLE, LEFT).masked_fill_(is_decided, BY_FLOAT32)
        return Decisions(vote, by.to(torch.int8))

    def _bound(self, logits: BoundedRows) -> Tensor:
        """Returns the bound on the error of a logit, as strictly as it is taken here."""
        return (1 + self.strictness / 8) * logits.bounds.error

    def _least(self, logits: Tensor) -> Tensor:
        """Returns what each of two logits may be wrong by in any case."""
        units = 4 * self.strictness * torch.finfo(torch.float32).eps if self.tolerance > 0 else 0.0
        return (self.tolerance + units) * row_scale(logits).double()


def row_scale(logits: Tensor) -> Tensor:
    """Returns the size of the numbers in each row, at least 1: errors of rounding are in proportion to it."""
    return logits.abs().amax(dim=1).clamp(min=1.0)


def _vote_and_lead(logits: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the class of the largest logit of each row, and at most its distance from the next, float64."""
    best, vote = logits.max(dim=1)
    runner_up = logits.scatter(1, vote[:, None], -torch.inf).amax(dim=1)
    # The difference of two numbers of either type is rounded at most once.
    return vote, (best.double() - runner_up.double()) * (1 - 2.0**-50)


def _is_single_precision_plain() -> bool:
    """Tells whether products of float32 matrices are computed in float32."""
    of_matmul: Any = getattr(torch.backends.mkldnn, "matmul", None)
    if getattr(of_matmul, "fp32_precision", "none") not in ("none", "ieee"):
        return False
    try:
        return torch.get_float32_matmul_precision() == "highest"
    except RuntimeError:  # the newer settings of PyTorch contradict this older one: then float64 decides
        return False


def _converted(bound_model: ModelAdapter, inputs: Inputs) -> Inputs:
    """Returns inputs with the edge values that the model takes, in its type."""
    values = {}
    for name in bound_model.edge_inputs:
        value = inputs.values[name]
        values[name] = value.to(bound_model.dtype) if value.is_floating_point() else value
    return inputs._replace(values=values)


def bounded(bound_model: ModelAdapter, precision: Precision) -> BoundedModel:
    """Returns the model in a precision, which is made once."""
    made = bound_model.bounded
    if precision.dtype not in made:
        model = bound_model.model
        assert isinstance(model, nn.Module)
        others: list[BoundedModel] = list(made.values())
        made[precision.dtype] = others[0].in_precision(precision) if others else BoundedModel(model, precision)
    model_with_bounds: BoundedModel = made[precision.dtype]
    return model_with_bounds


class _Part(NamedTuple):
    """A part of a graph.

    Attributes:
        inputs: The part.
        rows: Where the rows that are asked for stand in it.
    """

    inputs: Inputs
    rows: Tensor


def _part_of(inputs: Inputs, rows: Tensor, hops: int | None) -> _Part:
    """Returns the part of a graph that the logits of some rows depend on.

    Args:
        inputs: The graph.
        rows: Which rows of logits are asked for, shape ``[num_rows]``.
        hops: Over how many edges messages travel; ``None`` if that is not known, so that every node may matter.
    """
    x, edge_index, values, batch = inputs
    source, head = edge_index.long()
    if batch is not None:
        nodes = rows[batch]
        is_kept = nodes[head]
        asked = torch.arange(int(rows.sum()))
        batch = torch.unique_consecutive(batch[nodes], return_inverse=True)[1]
    elif hops is None:
        return _Part(inputs, rows.nonzero().view(-1))
    else:
        nodes, is_kept = part_that_matters(source, head, rows, hops)
        asked = (torch.cumsum(nodes, 0) - 1)[rows]
    position = torch.cumsum(nodes, 0) - 1
    index = nodes.nonzero().view(-1)
    some = x.features.rows(x.index[index]) if isinstance(x, LazyRows) else x.index_select(0, index)
    edges = position[torch.stack([source[is_kept], head[is_kept]])]
    return _Part(Inputs(some, edges, {name: value[is_kept] for name, value in values.items()}, batch), asked)


def part_that_matters(source: Tensor, head: Tensor, rows: Tensor, hops: int) -> tuple[Tensor, Tensor]:
    """Returns which nodes and which edges the logits of some rows of a known model depend on.

    Layers divide by the in-degree of the node that sends. So all edges to nodes that send are kept.

    Args:
        source: Where each edge comes from.
        head: Where it leads to.
        rows: Which rows of logits are asked for, shape ``[num_nodes]``.
        hops: Over how many edges messages travel.
    """
    inner = rows.clone()
    for _ in range(hops):
        inner[source[inner[head]]] = True
    is_kept = inner[head]
    nodes = inner.clone()
    nodes[source[is_kept]] = True
    return nodes, is_kept
