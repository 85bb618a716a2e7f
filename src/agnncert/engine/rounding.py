"""The guard against rounding: every ballot is computed twice, and must lead by more than the second time moves it.

How far rounding moves a score depends on the very numbers that are added: entries of 1e8 that cancel leave an error of
several units behind, whatever was measured on other rows. So the error is not bounded once for all rows but watched at
every ballot. The second computation takes nodes and edges in the opposite order and *shakes* the model: each weight,
feature and edge value moves by some units of rounding, up or down at random. Computing the same sums in another order
(another batch, matrix product, number of threads or machine) amounts to moving their terms by units of rounding, so a
lead that outlasts the shaking outlasts all of these. ``docs/proofs.md`` has the argument, and what it assumes.
"""

import copy
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch_geometric.inspector import Inspector

from agnncert.engine.call import Caller, Predictions, judge, row_blocks, row_scale
from agnncert.engine.features import Features, LazyRows, Shake, is_code
from agnncert.errors import ModelContractError

SHAKE = 16.0  # units of rounding by which numbers are moved: more than sums of some thousand terms gather
SAFETY = 4.0  # times the movement seen that a ballot must withstand
DOUBT = 2.0**-10  # movement, relative to the largest score, from which on one look is not enough
MORE_LOOKS = 4


def guarded(
    call: Caller,
    tolerance: float | None,
    x: Tensor,
    edge_index: Tensor,
    values: Mapping[str, Tensor],
    batch: Tensor | None = None,
) -> Predictions:
    """The ballots of one call of the model, and whether each is the same however it is computed.

    Args:
        call: The model.
        tolerance: Relative distance by which two computations may always differ. ``None``: nobody asks which ballots
            are stable, so the model is called once, and those count as stable that are no ties.
        x: Features.
        edge_index: Edges.
        values: What they carry.
        batch: Graph task: the graph of every node, ascending.
    """
    if tolerance is None:
        return judge(call(x, edge_index, values, batch), 0.0)
    logits, moved = watched(call, x, edge_index, values, batch)
    return judge(logits, tolerance, SAFETY * moved, call.strictness)


def watched(
    call: Caller, x: Tensor, edge_index: Tensor, values: Mapping[str, Tensor], batch: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """The logits of one call of the model, and how far shaking moves those of each row; arguments as in `guarded`."""
    logits = call(x, edge_index, values, batch)
    moved = _moved(call, logits, (x, edge_index, values, batch), seed=0)
    # Where a score is mostly rounding error, one look may by chance find it in its old place. NaN is doubtful, too.
    if not all(bool((moved[part] <= DOUBT * row_scale(logits[part])).all()) for part in row_blocks(logits)):
        for seed in range(1, 1 + MORE_LOOKS):
            moved = torch.maximum(moved, _moved(call, logits, (x, edge_index, values, batch), seed))
    return logits, moved


def _moved(call: Caller, logits: Tensor, inputs: tuple[Any, ...], seed: int) -> Tensor:
    """How far the scores of each row lie from those of the shaken model, which sees everything in reverse."""
    x, edge_index, values, batch = inputs
    shake = Shake(SHAKE * torch.finfo(call.dtype).eps, seed)
    features, index = (x.features, x.index) if isinstance(x, LazyRows) else (Features(x), torch.arange(x.size(0)))
    turned = features.shaken(shake).rows(index.flip(0))
    # Numbers of nodes and places of edges are both turned round: what was sorted stays sorted.
    edges = x.size(0) - 1 - edge_index.flip(1)
    weights = {name: shake.table(value, salt=2).flip(0) for name, value in values.items()}
    graphs = None if batch is None else int(batch[-1]) - batch.flip(0)
    other = call.shaken(shake, shaken_model)
    there, last = other(turned, edges, weights, graphs), logits.size(0)
    parts = [logits.new_empty(0)]
    for part in row_blocks(logits):
        block = logits[part]
        begin = last - part.start - len(block)
        parts.append((there[begin : begin + len(block)].flip(0) - block).abs_().amax(dim=1))
    return torch.cat(parts)


def shaken_model(model: Any, shake: Shake) -> Any:
    """A copy of a module with all its weights moved; a function as it is."""
    other = fresh_copy(model)
    if not isinstance(other, torch.nn.Module):
        return other
    with torch.no_grad():
        for number, weight in enumerate([*other.parameters(), *other.buffers()]):
            if weight.is_floating_point():
                weight.copy_(torch.where(is_code(weight), weight, shake.numbers(weight, salt=4 + number)))
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
