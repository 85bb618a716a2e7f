"""The guard against rounding: votes are the same however they are computed, or they are unstable.

Where the layers of a model are known, a bound on rounding decides (``exact_votes``). The votes of all other models are
*watched*: every vote is computed twice, and must lead by more than the second time moves it.

How far rounding moves a score depends on the very numbers that are added: entries of 1e8 that cancel leave an error of
several units behind, whatever was measured on other rows. So the error is not bounded once for all rows but observed at
every vote. The second computation takes nodes and edges in the opposite order and adds *rounding noise*: each weight,
feature and edge value moves by some units of rounding, up or down at random. Computing the same sums in another order
(another batch, matrix product, number of threads or machine) amounts to moving their terms by units of rounding, so a
lead that outlasts the noise outlasts all of these. ``docs/rounding.md`` has the argument, and what it assumes.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from agnncert.certificates.votes import BoolArray
from agnncert.engine.adapter import ModelAdapter
from agnncert.engine.copies import fresh_copy
from agnncert.engine.exact_votes import UNSTABLE, Decisions, decide, row_scale
from agnncert.engine.features import Features, LazyRows
from agnncert.engine.long_sums import rows_with_long_sums
from agnncert.engine.rounding_noise import NUMBERS_IN_CACHE, RoundingNoise, is_code

NOISE_UNITS = 16.0  # units of rounding by which numbers are moved: more than sums of a thousand terms gather
SAFETY = 4.0  # times the movement seen that a vote must withstand
DOUBT = 2.0**-10  # movement, relative to the largest score, from which on one noise is not enough
MORE_NOISES = 4  # further noises in that case

Model = TypeVar("Model")  # a module or a function


class Predictions(NamedTuple):
    """What some nodes or graphs are classified as.

    Attributes:
        vote: Class of each of them, int16.
        stable: Whether each class is the same however it is computed.
    """

    vote: npt.NDArray[np.int16]
    stable: BoolArray

    @classmethod
    def of(cls, decisions: Decisions) -> "Predictions":
        """Returns the votes that a bound on rounding decided."""
        return cls(decisions.vote.numpy(), (decisions.by != UNSTABLE).numpy())

    @classmethod
    def concatenate(cls, parts: "Iterable[Predictions]") -> "Predictions":
        """Joins predictions one after the other; none if there are no parts."""
        votes = [np.empty(0, dtype=np.int16)]
        stable = [np.empty(0, dtype=bool)]
        for part in parts:
            votes.append(part.vote)
            stable.append(part.stable)
        return cls(np.concatenate(votes), np.concatenate(stable))


def predict(
    bound_model: ModelAdapter,
    tolerance: float | None,
    x: Tensor,
    edge_index: Tensor,
    values: Mapping[str, Tensor],
    batch: Tensor | None = None,
) -> Predictions:
    """Returns the classes that a model predicts, and whether each is the same however it is computed.

    Args:
        bound_model: The model.
        tolerance: Relative distance by which two computations may always differ. With ``None`` nobody asks which
            classes are stable: the model is called once, and all classes that are no ties count as stable.
        x: Features.
        edge_index: Edges.
        values: What the edges carry, by name.
        batch: Graph task: the graph of every node, ascending.
    """
    if tolerance is None:
        return stable_predictions(bound_model(x, edge_index, values, batch), 0.0)
    if bound_model.rounding != "watched":
        return Predictions.of(decide(bound_model, tolerance, x, edge_index, values, batch))
    logits, deviation = logits_and_deviation(bound_model, x, edge_index, values, batch)
    return stable_predictions(logits, tolerance, SAFETY * deviation, bound_model.strictness)


def logits_and_deviation(
    bound_model: ModelAdapter, x: Tensor, edge_index: Tensor, values: Mapping[str, Tensor], batch: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Returns the logits of a model, and how far rounding noise moves those of each row.

    Where a sum may have more terms than noise can speak for, the deviation is infinite (``long_sums``). The
    arguments are those of ``predict``.
    """
    inputs = ModelInputs(x, edge_index, values, batch)
    logits = bound_model(*inputs)
    deviation = _deviation(bound_model, logits, inputs, seed=0)
    # Where a score is mostly rounding error, one noise may by chance leave it in its old place.
    if _is_doubtful(logits, deviation):
        for seed in range(1, 1 + MORE_NOISES):
            deviation = torch.maximum(deviation, _deviation(bound_model, logits, inputs, seed))
    is_long = rows_with_long_sums(x, edge_index, batch)
    if is_long is not None:
        deviation = deviation.masked_fill(is_long, torch.inf)
    return logits, deviation


def _is_doubtful(logits: Tensor, deviation: Tensor) -> bool:
    """Tells whether some row moves by a large share of its scores; NaN is doubtful, too."""
    is_small = (deviation[rows] <= DOUBT * row_scale(logits[rows]) for rows in row_blocks(logits))
    return not all(bool(block.all()) for block in is_small)


def stable_predictions(
    logits: Tensor, tolerance: float, deviation: Tensor | None = None, strictness: int = 0
) -> Predictions:
    """Returns the class of each row, and whether it is beyond numerical doubt.

    A class is stable when it leads the next by more than twice the distance that two ways of computing the same logits
    can lie apart: the tolerance (relative to the largest logit of the row, absolute below 1), or the deviation of that
    row if it is larger. Machines may disagree by 4 units of rounding about the former and by an eighth about the
    latter: ``strictness`` moves both by as much.

    Args:
        logits: One row per node or graph.
        tolerance: As in ``predict``.
        deviation: How far the logits of each row move otherwise; nothing is added to the tolerance by default.
        strictness: 1 asks a little more of a stable class, -1 a little less.
    """
    relative = tolerance + strictness * 4 * torch.finfo(logits.dtype).eps
    parts = []
    for rows in row_blocks(logits):
        block = logits[rows]
        best, vote = block.max(dim=1)
        runner_up = block.scatter(1, vote[:, None], -torch.inf).amax(dim=1)
        scale = row_scale(block)
        distance = relative * scale
        if deviation is not None:
            distance = torch.maximum(distance, (1 + strictness / 8) * deviation[rows])
        # Comparisons with NaN are false: a logit that is not finite is never stable.
        stable = (best - runner_up > 2 * distance) & (scale < torch.inf)
        parts.append(Predictions(vote.numpy().astype(np.int16), stable.numpy()))
    return Predictions.concatenate(parts)


def row_blocks(logits: Tensor) -> Iterator[slice]:
    """Yields all rows in blocks that stay in the processor's cache."""
    step = max(1, NUMBERS_IN_CACHE // max(1, logits.size(1)))
    return (slice(first, first + step) for first in range(0, logits.size(0), step))


class ModelInputs(NamedTuple):
    """What a model is called on; the fields are those of ``predict``."""

    x: Tensor
    edge_index: Tensor
    values: Mapping[str, Tensor]
    batch: Tensor | None


def _deviation(bound_model: ModelAdapter, logits: Tensor, inputs: ModelInputs, seed: int) -> Tensor:
    """Returns how far the scores of each row lie from those of a noisy model that sees everything in reverse."""
    noise = RoundingNoise(NOISE_UNITS * torch.finfo(bound_model.dtype).eps, seed)
    noisy_model = bound_model.with_noise(noise, model_with_noise)
    noisy_logits = noisy_model(*_reversed_inputs(inputs, noise))
    num_rows = logits.size(0)
    parts = [logits.new_empty(0)]
    for rows in row_blocks(logits):
        block = logits[rows]
        first = num_rows - rows.start - len(block)
        noisy_block = noisy_logits[first : first + len(block)].flip(0)
        parts.append((noisy_block - block).abs_().amax(dim=1))
    return torch.cat(parts)


def _reversed_inputs(inputs: ModelInputs, noise: RoundingNoise) -> ModelInputs:
    """Returns inputs with rounding noise, and with nodes, edges and graphs in the opposite order.

    Numbers of nodes and positions of edges are both reversed, so what was sorted stays sorted.
    """
    x = inputs.x
    features, index = (x.features, x.index) if isinstance(x, LazyRows) else (Features(x), torch.arange(x.size(0)))
    return ModelInputs(
        x=features.with_noise(noise).rows(index.flip(0)),
        edge_index=x.size(0) - 1 - inputs.edge_index.flip(1),
        values={name: noise.perturb_table(value, salt=2).flip(0) for name, value in inputs.values.items()},
        batch=None if inputs.batch is None else int(inputs.batch[-1]) - inputs.batch.flip(0),
    )


def model_with_noise(model: Model, noise: RoundingNoise) -> Model:
    """Returns a copy of a module whose weights are all moved by rounding noise; a function is returned as it is."""
    noisy_model = fresh_copy(model)
    if not isinstance(noisy_model, torch.nn.Module):
        return noisy_model
    with torch.no_grad():
        for number, weight in enumerate([*noisy_model.parameters(), *noisy_model.buffers()]):
            if weight.is_floating_point():
                moved = noise.perturb_all(weight, salt=4 + number)
                weight.copy_(torch.where(is_code(weight), weight, moved))
    return noisy_model
