"""Is a stacked model made of the parts that its settings say, and of nothing else?

The proof rests on how scores and votes are computed. So a model is compared with a new one of the same settings: it has
the same classes, no hook, and no attribute that a new one lacks, which might hide a method. The models without edges
are anybody's code, and are audited instead.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn
from torch.nn.modules import module as torch_module

from agnncert.stacked.model import GraphFree, StackedModel

_NOTED_LATER = {"config", "training_record"}  # attributes that say where a model comes from, and are not computed with
_OF_EVERY_MODULE = {*vars(nn.Module())}


def alterations(model: StackedModel) -> Iterator[str]:
    """Yields what is not as in a new model of the same settings.

    Args:
        model: A model of exactly this class.
    """
    if any(hooks for name, hooks in vars(torch_module).items() if name.startswith("_global_") and "hook" in name):
        yield "a hook is called by every module of the program"
    if type(model.own) is not nn.ModuleList:
        yield f"own is a {type(model.own).__name__}, expected ModuleList"
        return
    with torch.device("meta"):  # no memory, no random numbers
        new = StackedModel(list(model.own), model.num_classes, model.edge_channels, model.defence)
    yield from _differences("the model", model, new)
    for name, own in model.own.named_children():
        if type(own) is not GraphFree:
            yield f"own.{name} is a {type(own).__name__}, expected GraphFree"
        else:
            yield from _unexpected(f"own.{name}", own, {*_OF_EVERY_MODULE, *_NOTED_LATER, "takes_edges"})
    yield from _strange_numbers(model)


def _differences(name: str, found: nn.Module, new: nn.Module) -> Iterator[str]:
    """Yields what differs between a module and a new one, parts included. Models without edges are left out."""
    if type(found) is not type(new):
        yield f"{name} is a {type(found).__name__}, expected {type(new).__name__}"
        return
    yield from _unexpected(name, found, {*vars(new), *_NOTED_LATER})
    missing = {*vars(new)} - {*vars(found)} - _NOTED_LATER
    if missing:
        yield f"{name} lacks {', '.join(sorted(missing))}"
        return
    yield from _other_settings(name, found, new)
    for table in ("_parameters", "_buffers"):
        if _shapes(found, table) != _shapes(new, table):
            yield f"{name} has weights {_shapes(found, table)}, expected {_shapes(new, table)}"
    found_parts, new_parts = vars(found)["_modules"], vars(new)["_modules"]
    if found_parts.keys() != new_parts.keys():
        yield f"{name} consists of {list(found_parts)}, expected {list(new_parts)}"
        return
    for part_name, part in found_parts.items():
        if part_name != "own":
            yield from _differences(
                part_name if name == "the model" else f"{name}.{part_name}", part, new_parts[part_name]
            )


def _unexpected(name: str, module: nn.Module, expected: set[str]) -> Iterator[str]:
    """Yields hooks of a module, and attributes that it should not have."""
    for attribute, value in vars(module).items():
        if value and attribute.endswith("hooks") and "ward" in attribute:
            yield f"{name} has a hook ({attribute})"
        elif attribute not in expected:
            yield f"{name} has an attribute {attribute!r} that hides what its class has, or is not its own"


def _other_settings(name: str, found: nn.Module, new: nn.Module) -> Iterator[str]:
    for attribute in {*vars(new)} - _OF_EVERY_MODULE - _NOTED_LATER:
        value, expected = vars(found)[attribute], vars(new)[attribute]
        if type(value) is not type(expected) or value != expected:
            yield f"{name}.{attribute} is {value!r:.60}, expected {expected!r:.60}"


def _shapes(module: nn.Module, table: str) -> dict[str, Any]:
    """Returns the shape of each weight, and its class unless it is a plain one."""
    shapes: dict[str, Any] = {}
    for name, weight in vars(module)[table].items():
        is_plain = type(weight) in (nn.Parameter, torch.Tensor, type(None))
        shapes[name] = tuple(weight.shape) if is_plain and weight is not None else type(weight).__name__
    return shapes


def _strange_numbers(model: StackedModel) -> Iterator[str]:
    """Yields weights of the small networks that nothing can be counted with."""
    for name, weight in (*model.named_parameters(), *model.named_buffers()):
        if name.startswith("own."):
            continue
        if not weight.is_floating_point() or not bool(weight.isfinite().all()):
            yield f"{name} is not finite"
    if float(model.use_votes) not in (0.0, 1.0):
        yield f"use_votes is {float(model.use_votes):g}, expected 0 or 1"
