"""``model_digest``: which module computed the votes, by its weights and every setting that it keeps."""

import enum
import hashlib
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import Field, fields, is_dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from agnncert.errors import ModelContractError

# Metadata of a field that settings did not have at first: with its default, models keep the digest that they had.
LATER = "later"

# What every module has. Whether it trains is no setting, and hooks, which can alter what it computes, are listed apart.
# How ``fit`` went is none either: weights that are saved and loaded make the same model.
_OF_EVERY_MODULE = {*vars(nn.Module()), "training_record"}
_HOOKS = ("_forward_pre_hooks", "_forward_hooks")
_DEEPEST = 8  # settings inside settings that are written out


def model_digest(model: nn.Module | Callable[..., Tensor], settings: Mapping[str, str] | None = None) -> str:
    """Returns the sha256 of a module: its classes, all settings that its layers keep, and all weights and buffers.

    A tensor that a layer keeps as a plain attribute is left out: such tensors are results of the last call as often as
    they are settings. Nothing here protects against a forger, who can state any digest. Votes that are computed again
    do.

    Args:
        model: The module, or any callable.
        settings: What ``settings_of`` returns for it, if it has just been asked.
    """
    digest = hashlib.sha256()
    lines = [f"{name} = {value}" for name, value in (settings or settings_of(model)).items()]
    digest.update("\n".join(lines).encode())
    for name, value in _tensors(model):
        is_bfloat16 = value.dtype == torch.bfloat16  # which numpy does not have
        numbers = value.view(torch.int16) if is_bfloat16 else value
        array = np.ascontiguousarray(numbers.detach().cpu().numpy())
        dtype = "bfloat16" if is_bfloat16 else array.dtype.str
        digest.update(f"{name}:{dtype}:{array.shape};".encode() + array.tobytes())
    return digest.hexdigest()


def unchanged_digest(model: nn.Module | Callable[..., Tensor], before: Mapping[str, str]) -> str:
    """Returns the digest of a model whose settings have not changed.

    A model that counts its calls, say, could behave otherwise after the thousandth, and no test would see it.

    Args:
        model: The module, or any callable.
        before: What ``settings_of`` returned for it earlier.

    Raises:
        ModelContractError: A setting has changed.
    """
    after = settings_of(model)
    for name in {**before, **after}:
        if before.get(name) != after.get(name):
            raise ModelContractError(
                f"the model changes while it runs: {name} was {before.get(name, 'not there')}, now it is "
                f"{after.get(name, 'gone')}. A certificate speaks about a model that stays as it is: keep counters and "
                "other state out of it."
            )
    return model_digest(model, after)


def settings_of(model: nn.Module | Callable[..., Tensor]) -> dict[str, str]:
    """Returns every setting of a module and its layers as text, by name."""
    if not isinstance(model, nn.Module):
        return {"model": _written(model)}
    settings = {}
    for place, layer in model.named_modules(prefix="model", remove_duplicate=False):
        settings[place] = _path(type(layer))
        if isinstance(layer, torch.fx.GraphModule):  # all of them have the same class, and each has code of its own
            settings[f"{place}.code"] = layer.code
        values = {name: value for name, value in vars(layer).items() if _is_setting(layer, name, value)}
        for name in _HOOKS:
            hooks = getattr(layer, name)
            if hooks:
                values[name] = list(hooks.values())
        for name, value in sorted(values.items()):
            settings[f"{place}.{name}"] = _written(value)
    return settings


def _is_setting(layer: nn.Module, name: str, value: object) -> bool:
    if name in _OF_EVERY_MODULE or value is None or isinstance(value, Tensor):
        return False
    # What torch and PyG keep for themselves differs between their versions and says nothing about the model.
    library = type(layer).__module__.split(".")[0]
    return not (name.startswith("_") and library in ("torch", "torch_geometric"))


def _tensors(model: object) -> Iterator[tuple[str, Tensor]]:
    """Yields weights and buffers by name, also buffers that are not saved with a model."""
    if not isinstance(model, nn.Module):
        return
    tensors = {**dict(model.named_buffers()), **model.state_dict()}
    yield from sorted(tensors.items())


def _written(value: Any, depth: int = 0) -> str:
    """Returns a setting as text that is the same in every process; what cannot be written out, as its type's name."""
    if value is None or isinstance(value, bool | int | float | complex | str | bytes | torch.dtype):
        return f"{type(value).__name__} {value!r}"
    if isinstance(value, enum.Enum):
        return f"{_path(type(value))}.{value.name}"
    if isinstance(value, type | types.FunctionType | types.BuiltinFunctionType):
        return _path(value)
    if isinstance(value, types.MethodType):
        return f"{_path(type(value.__self__))}.{value.__name__}"
    if depth > _DEEPEST:
        return "…"
    return _written_parts(value, depth + 1)


def _written_parts(value: Any, depth: int) -> str:
    """Returns the parts of a setting as text; of anything else without parts, its type's name."""
    if isinstance(value, partial):
        return f"partial({_written([value.func, value.args, value.keywords], depth)})"
    name = ""
    if is_dataclass(value) and not isinstance(value, type):  # settings, such as how the votes of a model are combined
        name = f"{_path(type(value))} "
        value = {each.name: getattr(value, each.name) for each in fields(value) if _is_written(each, value)}
    if isinstance(value, Mapping):
        entries = sorted(f"{_written(key, depth)}: {_written(entry, depth)}" for key, entry in value.items())
        return name + "{" + ", ".join(entries) + "}"
    if isinstance(value, set | frozenset):
        return "{" + ", ".join(sorted(_written(item, depth) for item in value)) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_written(item, depth) for item in value) + "]"
    if isinstance(value, nn.Module):  # kept in a plain list, say: not among the layers
        return model_digest(value)
    return _path(type(value))


def _is_written(setting: Field[Any], owner: Any) -> bool:
    """Tells whether a field says what a model is: not how it was made, and not a later field with its first meaning."""
    is_later = setting.metadata.get(LATER, False)
    return setting.compare and not (is_later and getattr(owner, setting.name) == setting.default)


def _path(named: Any) -> str:
    return f"{getattr(named, '__module__', '')}.{getattr(named, '__qualname__', named)}"
