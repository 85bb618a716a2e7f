"""Is a model that ``fit`` of a defence made what its settings say, and nothing else?

The proofs of such defences rest on how scores and votes are computed. So a model is compared with a new one of the same
settings: it has the same classes, no hook, and no attribute that a new one lacks, which might hide a method. Parts that
are anybody's code are left out here: they are audited instead.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Self

import torch
from torch import nn
from torch.nn.modules import module as torch_module

from agnncert.addons import addons
from agnncert.errors import ModelContractError

if TYPE_CHECKING:
    from agnncert.defence import Defence

# Attributes that say where a model comes from, and are not computed with.
NOTED_LATER = {"config", "training_record"}
OF_EVERY_MODULE = {*vars(nn.Module())}


class OwnModel(nn.Module, ABC):
    """A model of a kind that ``fit`` of one defence makes.

    Attributes:
        defence: The defence that it was made for.
        anybodys: Names of the parts that are anybody's code.
    """

    defence: Any
    anybodys: ClassVar[frozenset[str]] = frozenset()

    @abstractmethod
    def anew(self) -> Self:
        """Returns a new model of the same settings, around the same parts of anybody's code."""

    def strange_parts(self) -> Iterator[str]:
        """Yields what else may be wrong with such a model. It is asked first, and by default nothing is."""
        yield from ()


def require_as_made(model: object, defence: "Defence") -> None:
    """Refuses a model that ``fit`` of a defence did not make, made for other settings, or that was altered since.

    Args:
        model: The model.
        defence: A defence whose ``fit`` makes models of its own.

    Raises:
        ModelContractError: Names all that is wrong.
    """
    of_kind = _defence_of_kind(defence)
    name, expected = of_kind.__name__, of_kind.own_model
    if expected is None or type(model) is not expected:
        raise ModelContractError(
            f"{name} certifies models that fit(…, data, {name}(…)) returns, got {type(model).__name__}."
        )
    if type(model.defence) is not of_kind:
        carried = type(model.defence).__name__
        raise ModelContractError(f"the model carries a {carried}, expected exactly {name}.")
    if not defence.has_settings_of(model.defence):
        raise ModelContractError(f"the model was made for {model.defence}, got {defence}: pass model.defence.")
    altered = [*alterations(model)]
    if altered:
        raise ModelContractError(
            f"the proof is about scores and votes as {name} computes them, and this model was altered since: "
            f"{'; '.join(altered[:9])}. Certify the model that fit returned."
        )


def _defence_of_kind(defence: "Defence") -> "type[Defence]":
    """Returns the class of defences that is known under the name of this kind. A subclass may compute other things."""
    known = addons("agnncert.defences").get(defence.kind)
    return type(defence) if known is None else known.load()


def alterations(model: OwnModel) -> Iterator[str]:
    """Yields what is not as in a new model of the same settings."""
    cls = type(model)  # asked instead of the model, whose attributes may hide methods
    if any(hooks for name, hooks in vars(torch_module).items() if name.startswith("_global_") and "hook" in name):
        yield "a hook is called by every module of the program"
    strange = [*cls.strange_parts(model)]
    yield from strange
    if strange:
        return
    with torch.device("meta"):  # no memory, no random numbers
        new = cls.anew(model)
    yield from _differences("the model", model, new, cls.anybodys)
    for name, weight in (*model.named_parameters(), *model.named_buffers()):
        is_anybodys = name.partition(".")[0] in cls.anybodys
        if not is_anybodys and weight.is_floating_point() and not bool(weight.isfinite().all()):
            yield f"{name} is not finite"


def _differences(name: str, found: nn.Module, new: nn.Module, anybodys: frozenset[str]) -> Iterator[str]:
    """Yields what differs between a module and a new one, parts included, without those that are anybody's code."""
    if type(found) is not type(new):
        yield f"{name} is a {type(found).__name__}, expected {type(new).__name__}"
        return
    yield from unexpected_attributes(name, found, {*vars(new), *NOTED_LATER})
    missing = {*vars(new)} - {*vars(found)} - NOTED_LATER
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
        if part_name not in anybodys:
            path = part_name if name == "the model" else f"{name}.{part_name}"
            yield from _differences(path, part, new_parts[part_name], frozenset())


def unexpected_attributes(name: str, module: nn.Module, expected: set[str]) -> Iterator[str]:
    """Yields hooks of a module, and attributes that it should not have."""
    for attribute, value in vars(module).items():
        if value and attribute.endswith("hooks") and "ward" in attribute:
            yield f"{name} has a hook ({attribute})"
        elif attribute not in expected:
            yield f"{name} has an attribute {attribute!r} that hides what its class has, or is not its own"


def _other_settings(name: str, found: nn.Module, new: nn.Module) -> Iterator[str]:
    for attribute in {*vars(new)} - OF_EVERY_MODULE - NOTED_LATER:
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
