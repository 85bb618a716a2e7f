"""The guard against rounding: every vote is computed twice, and must lead by more than the second time moves it.

How far rounding moves a score depends on the very numbers that are added: entries of 1e8 that cancel leave an error of
several units behind, whatever was measured on other rows. So the error is not bounded once for all rows but watched at
every vote. The second computation takes nodes and edges in the opposite order and *shakes* the model: each weight,
feature and edge value moves by some units of rounding, up or down at random. Computing the same sums in another order
(another batch, matrix product, number of threads or machine) amounts to moving their terms by units of rounding, so a
lead that outlasts the shaking outlasts all of these. ``docs/proofs.md`` has the argument, and what it assumes.
"""

import copy
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch_geometric.inspector import Inspector

from agnncert.engine.adapter import ModelAdapter
from agnncert.engine.features import Features, LazyRows
from agnncert.engine.rounding_noise import IN_CACHE, RoundingNoise, is_code
from agnncert.errors import ModelContractError

NOISE_UNITS = 16.0  # units of rounding by which numbers are moved: more than sums of some thousand terms gather
SAFETY = 4.0  # times the movement seen that a vote must withstand
DOUBT = 2.0**-10  # movement, relative to the largest score, from which on one look is not enough
MORE_LOOKS = 4

Predictions = tuple[npt.NDArray[np.int16], npt.NDArray[np.bool_]]  # the classes voted for, and whether each is stable


def predict(
    call: ModelAdapter,
    tolerance: float | None,
    x: Tensor,
    edge_index: Tensor,
    values: Mapping[str, Tensor],
    batch: Tensor | None = None,
) -> Predictions:
    """The votes of one call of the model, and whether each is the same however it is computed.

    Args:
        call: The model.
        tolerance: Relative distance by which two computations may always differ. ``None``: nobody asks which votes
            are stable, so the model is called once, and those count as stable that are no ties.
        x: Features.
        edge_index: Edges.
        values: What they carry.
        batch: Graph task: the graph of every node, ascending.
    """
    if tolerance is None:
        return stable_predictions(call(x, edge_index, values, batch), 0.0)
    logits, moved = logits_and_deviation(call, x, edge_index, values, batch)
    return stable_predictions(logits, tolerance, SAFETY * moved, call.strictness)


def logits_and_deviation(
    call: ModelAdapter, x: Tensor, edge_index: Tensor, values: Mapping[str, Tensor], batch: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """The logits of one call of the model, and how far shaking moves those of each row; arguments as in `predict`."""
    logits = call(x, edge_index, values, batch)
    moved = _deviation(call, logits, (x, edge_index, values, batch), seed=0)
    # Where a score is mostly rounding error, one look may by chance find it in its old place. NaN is doubtful, too.
    if not all(bool((moved[part] <= DOUBT * row_scale(logits[part])).all()) for part in row_blocks(logits)):
        for seed in range(1, 1 + MORE_LOOKS):
            moved = torch.maximum(moved, _deviation(call, logits, (x, edge_index, values, batch), seed))
    return logits, moved


def stable_predictions(
    logits: Tensor, tolerance: float, deviation: Tensor | None = None, strictness: int = 0
) -> Predictions:
    """The class each row votes for, and whether the vote is beyond numerical doubt.

    A vote is stable when the best class leads the next by more than twice the distance that two ways of computing the
    same logits can lie apart: the tolerance (relative to the largest logit of the row, absolute below 1), or the
    deviation of that row if it is larger. Machines may disagree by 4 units of rounding about the former and by an
    eighth about the latter: ``strictness`` moves both by as much.
    """
    votes, sure = [np.empty(0, dtype=np.int16)], [np.empty(0, dtype=bool)]
    for part in row_blocks(logits):
        block = logits[part]
        best, vote = block.max(dim=1)
        runner_up = block.scatter(1, vote[:, None], -torch.inf).amax(dim=1)
        scale = row_scale(block)
        # Comparisons with NaN are false: a logit that is not finite is never stable.
        apart = (tolerance + strictness * 4 * torch.finfo(logits.dtype).eps) * scale
        if deviation is not None:
            apart = torch.maximum(apart, (1 + strictness / 8) * deviation[part])
        votes.append(vote.numpy().astype(np.int16))
        sure.append(((best - runner_up > 2 * apart) & (scale < torch.inf)).numpy())
    return np.concatenate(votes), np.concatenate(sure)


def row_blocks(logits: Tensor) -> Iterator[slice]:
    """The rows in blocks that stay in the processor's cache."""
    step = max(1, IN_CACHE // max(1, logits.size(1)))
    return (slice(first, first + step) for first in range(0, logits.size(0), step))


def row_scale(logits: Tensor) -> Tensor:
    """The size of the numbers in each row, 1 at least: what errors of rounding are in proportion to."""
    return logits.abs().amax(dim=1).clamp(min=1.0)


def _deviation(call: ModelAdapter, logits: Tensor, inputs: tuple[Any, ...], seed: int) -> Tensor:
    """How far the scores of each row lie from those of the shaken model, which sees everything in reverse."""
    x, edge_index, values, batch = inputs
    noise = RoundingNoise(NOISE_UNITS * torch.finfo(call.dtype).eps, seed)
    features, index = (x.features, x.index) if isinstance(x, LazyRows) else (Features(x), torch.arange(x.size(0)))
    turned = features.with_noise(noise).rows(index.flip(0))
    # Numbers of nodes and places of edges are both turned round: what was sorted stays sorted.
    edges = x.size(0) - 1 - edge_index.flip(1)
    weights = {name: noise.perturb_table(value, salt=2).flip(0) for name, value in values.items()}
    graphs = None if batch is None else int(batch[-1]) - batch.flip(0)
    other = call.with_noise(noise, model_with_noise)
    there, last = other(turned, edges, weights, graphs), logits.size(0)
    parts = [logits.new_empty(0)]
    for part in row_blocks(logits):
        block = logits[part]
        begin = last - part.start - len(block)
        parts.append((there[begin : begin + len(block)].flip(0) - block).abs_().amax(dim=1))
    return torch.cat(parts)


def model_with_noise(model: Any, noise: RoundingNoise) -> Any:
    """A copy of a module with all its weights moved; a function as it is."""
    other = fresh_copy(model)
    if not isinstance(other, torch.nn.Module):
        return other
    with torch.no_grad():
        for number, weight in enumerate([*other.parameters(), *other.buffers()]):
            if weight.is_floating_point():
                weight.copy_(torch.where(is_code(weight), weight, noise.perturb_all(weight, salt=4 + number)))
    return other


def fresh_copy(model: Any) -> Any:
    """A copy of a module, without the gradients that it may have kept from training; a function as it is."""
    if not isinstance(model, torch.nn.Module):
        return model
    # deepcopy refuses tensors with a gradient's graph, such as a module may have kept from an earlier training step.
    kept = [
        v for layer in model.modules() for v in vars(layer).values() if isinstance(v, Tensor) and v.grad_fn is not None
    ]
    known: dict[int, Any] = {id(value): value.detach().clone() for value in kept}
    # Every module has a dozen empty tables, of hooks mostly, which deepcopy would take most of its time for.
    tables = (table for layer in model.modules() for table in vars(layer).values())
    known |= {id(table): type(table)() for table in tables if type(table) in (dict, OrderedDict, set) and not table}
    # What PyG notes down about the signatures of a layer's methods never changes, and is most of what there is to copy.
    known |= {id(n): n for layer in model.modules() if isinstance(n := vars(layer).get("inspector"), Inspector)}
    try:
        return copy.deepcopy(model, known)
    except Exception as error:
        raise ModelContractError(
            "the model cannot be copied, to see whether it remembers earlier graphs and how far rounding moves it "
            f"({type(error).__name__}: {error}). Build it anew and load its weights, or delete what it keeps of "
            "earlier calls."
        ) from error
