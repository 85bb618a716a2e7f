"""Attention with bounds on rounding, head by head."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from agnncert.engine.bounded_arcs import Arcs
from agnncert.engine.bounded_rows import BoundedRows
from agnncert.engine.error_bounds import FUNCTION_UNITS, UP, Bounds, Precision, gamma
from agnncert.engine.operator_norms import largest_row_norm, spectral_norm, vector_norm

LOST_IN_SQUARES = 2.0**-500  # more than a norm can lack because squares of its entries were taken for zero


class HeadNorms(NamedTuple):
    """Norms of the weights of one head.

    Attributes:
        signed: Spectral norm of its part of the weight.
        absolute: That of the absolute values.
        largest_row: Largest norm of a row of that part.
        source: Norm of the vector that scores the source of an edge, applied to features.
        head: The same of the vector that scores the head of an edge.
        source_vector: Norm of the vector that scores the source of an edge.
        head_vector: The same of the vector that scores the head of an edge.
    """

    signed: float
    absolute: float
    largest_row: float
    source: float
    head: float
    source_vector: float
    head_vector: float


class AttentionInput(NamedTuple):
    """What a layer of attention gets.

    Attributes:
        projected: Its input times its weight.
        bounds: Bounds of its input; ``None`` if that is given exactly.
        width: Number of entries of a row of its input.
    """

    projected: BoundedRows
    bounds: Bounds | None
    width: int


def attention(
    layer: Any, norms: list[HeadNorms], given: AttentionInput, arcs: Arcs, is_output: bool, precision: Precision
) -> BoundedRows:
    """Returns the rows of a ``GATConv`` with one projection for both ends of an edge, and no edge features.

    Args:
        layer: The layer.
        norms: The norms of each head (:func:`head_norms`).
        given: Its input.
        arcs: The edges.
        is_output: Whether bounds are meant in the maximum norm.
        precision: How numbers are rounded.
    """
    source, head = arcs.source, arcs.head
    if layer.add_self_loops:
        loops = torch.arange(arcs.num_rows)
        is_edge = source != head
        arcs = Arcs.of(
            torch.stack([torch.cat([source[is_edge], loops]), torch.cat([head[is_edge], loops])]), arcs.num_rows
        )
    values = _computed(layer, given.projected.values, arcs)
    projected = given.projected.values.view(-1, layer.heads, layer.out_channels).unbind(dim=1)
    heads = []
    for of_head, rows in zip(norms, projected, strict=True):
        projections = _projections(of_head, given, rows, is_output, precision)
        heads.append(_head_bounds(of_head, projections, layer, arcs, precision))
    size = torch.stack([part.size for part in heads])
    error = torch.stack([part.error for part in heads])
    if not layer.concat:
        size, error = size.mean(dim=0), error.mean(dim=0)
    elif is_output:
        size, error = size.amax(dim=0), error.amax(dim=0)
    else:
        size, error = size.square().sum(dim=0).sqrt(), error.square().sum(dim=0).sqrt()
    bias = vector_norm(layer.bias, is_output)
    local = gamma(layer.heads + 3, precision) * (size + error + bias)
    error = torch.where(size + error + bias < precision.huge, error + local, torch.inf)
    return BoundedRows(values, Bounds((size + bias) * UP, error * UP + 2.0**-500))


def _computed(layer: Any, projected: Tensor, arcs: Arcs) -> Tensor:
    """Follows ``GATConv.forward``."""
    rows = projected.view(-1, layer.heads, layer.out_channels)
    from_source = (rows * layer.att_src).sum(dim=-1)
    from_head = (rows * layer.att_dst).sum(dim=-1)
    score = torch.nn.functional.leaky_relu(from_source[arcs.source] + from_head[arcs.head], layer.negative_slope)
    index = arcs.head[:, None].expand_as(score)
    largest = score.new_full((arcs.num_rows, layer.heads), -torch.inf).scatter_reduce_(0, index, score, "amax")
    weight = (score - largest[arcs.head]).exp()
    total = score.new_zeros(arcs.num_rows, layer.heads).scatter_add_(0, index, weight)
    weight = weight / total[arcs.head]
    parts = [arcs.total(rows[:, k].contiguous(), weight[:, k].contiguous()) for k in range(layer.heads)]
    out = torch.cat(parts, dim=1) if layer.concat else torch.stack(parts).mean(dim=0)
    return out if layer.bias is None else out + layer.bias


def head_norms(layer: Any) -> list[HeadNorms]:
    """Returns the norms of the weights of each head of a ``GATConv``."""
    return [_norms_of_head(layer, k) for k in range(layer.heads)]


def _norms_of_head(layer: Any, k: int) -> HeadNorms:
    weight = layer.lin.weight.detach().double().view(layer.heads, layer.out_channels, -1)[k]
    source = layer.att_src.detach().double()[0, k]
    head = layer.att_dst.detach().double()[0, k]
    # The products with the weight are rounded, too.
    rounding = (layer.out_channels + 2) * torch.finfo(torch.float64).eps
    absolute = spectral_norm(weight.abs())
    return HeadNorms(
        signed=spectral_norm(weight),
        absolute=absolute,
        largest_row=largest_row_norm(weight),
        source=vector_norm(source @ weight, False) + rounding * vector_norm(source, False) * absolute,
        head=vector_norm(head @ weight, False) + rounding * vector_norm(head, False) * absolute,
        source_vector=vector_norm(source, False),
        head_vector=vector_norm(head, False),
    )


class _Projections(NamedTuple):
    """Bounds of the projections of one head.

    Attributes:
        moved: Error of the input, which scores follow by their own norms.
        local: Error that the product itself adds, in the Euclidean norm.
        computed: At least the Euclidean norm of a computed projection.
        sent: Bounds in the norm that is meant.
    """

    moved: Tensor
    local: Tensor
    computed: Tensor
    sent: Bounds


def _projections(
    norms: HeadNorms, given: AttentionInput, rows: Tensor, is_output: bool, precision: Precision
) -> _Projections:
    """Returns the bounds of the projections of one head, of which ``rows`` were computed.

    An exact projection is at most as large as the computed one and its error together. Norms of weights say far less:
    the error of a layer grows with the size of its projections, and so by that factor in each layer.
    """
    norm = rows.norm(dim=1) * UP + LOST_IN_SQUARES
    if given.bounds is None:
        # The input is exact, so that all error is that of the product. One head has a part of the whole projection.
        whole = given.projected.bounds
        sent = Bounds(torch.minimum(whole.size, norm + whole.error), whole.error)
        return _Projections(torch.zeros_like(whole.error), whole.error, torch.minimum(whole.computed, norm), sent)
    size, error = given.bounds
    product = gamma(given.width + 1, precision)
    local = product * norms.absolute * (size + error)
    computed = torch.minimum(norms.signed * (size + error) + local, norm)
    off = norms.signed * error + local
    sent = Bounds(torch.minimum(norms.signed * size, norm + off), off)
    if is_output:
        off = norms.largest_row * (error + product * (size + error))
        largest = rows.abs().amax(dim=1)
        sent = Bounds(torch.minimum(norms.largest_row * size, largest + off), off)
    return _Projections(error, local, computed, sent)


def _head_bounds(norms: HeadNorms, projections: _Projections, layer: Any, arcs: Arcs, precision: Precision) -> Bounds:
    """Returns the bounds of what one head returns."""
    error, local, computed, sent = projections
    unit = precision.unit
    dot = gamma(layer.out_channels + 1, precision)
    of_source = norms.source * error + norms.source_vector * (local + dot * computed)
    of_head = norms.head * error + norms.head_vector * (local + dot * computed)
    # A score is a sum of two products, then multiplied by a slope; the largest one of the head is taken off.
    largest_score = norms.source_vector * computed[arcs.source] + norms.head_vector * computed[arcs.head]
    off = of_source[arcs.source] + of_head[arcs.head] + 6 * unit * largest_score
    worst = arcs.largest(off)
    degree = arcs.degree
    change = torch.expm1(2 * worst + gamma(degree + 2 * FUNCTION_UNITS + 8, precision)) * UP
    most_size = arcs.largest(sent.size[arcs.source])
    most_error = arcs.largest(sent.error[arcs.source])
    rounding = change + gamma(degree + 2, precision) * (1 + change) + 2 * degree * precision.tiny
    moved = most_error * (1 + change) + rounding * (most_size + most_error)
    return Bounds(most_size * UP, moved * UP)
