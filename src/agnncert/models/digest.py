"""``model_digest``: which module cast the votes; its weights, and every setting that it keeps."""

import enum
import hashlib
import types
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from agnncert.errors import ModelContractError

# What every module has. Whether it trains is no setting, and hooks, which can alter what it computes, are listed apart.
# How ``fit`` went is none either: weights that are saved and loaded make the same model.
_OF_EVERY_MODULE = {*vars(torch.nn.Module()), "training_record"}
_HOOKS = ("_forward_pre_hooks", "_forward_hooks")


def model_digest(model: Any, settings: Mapping[str, str] | None = None) -> str:
    """sha256 of a module: its classes, all settings that its layers keep, and all weights and buffers.

    A tensor that a layer keeps as a plain attribute is left out: such tensors are results of the last call as often as
    they are settings. Nothing here protects against a forger, who can state any digest; votes that are cast again do.

    Args:
        model: The module, or any callable.
        settings: What ``settings_of`` says about it, if it has just been asked.
    """
    digest = hashlib.sha256()
    lines = (settings or settings_of(model)).items()
    digest.update("\n".join(f"{name} = {value}" for name, value in lines).encode())
    for name, value in _tensors(model):
        brain = value.dtype == torch.bfloat16  # which numpy does not have
        array = np.ascontiguousarray((value.view(torch.int16) if brain else value).detach().cpu().numpy())
        kind = "bfloat16" if brain else array.dtype.str
        digest.update(f"{name}:{kind}:{array.shape};".encode() + array.tobytes())
    return digest.hexdigest()


def unchanged_digest(model: Any, before: Mapping[str, str]) -> str:
    """The digest of a model that has the settings of before; raises ModelContractError if it has others.

    A model that counts its calls, say, could behave otherwise after the thousandth; no test would see it.
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


def settings_of(model: Any) -> dict[str, str]:
    """Every setting of a module and its layers by name, written out."""
    if not isinstance(model, torch.nn.Module):
        return {"model": _written(model)}
    found = {}
    for place, layer in model.named_modules(prefix="model", remove_duplicate=False):
        found[place] = _path(type(layer))
        own = {name: value for name, value in vars(layer).items() if _is_setting(layer, name, value)}
        hooks = {name: list(getattr(layer, name).values()) for name in _HOOKS if getattr(layer, name)}
        for name, value in sorted({**own, **hooks}.items()):
            found[f"{place}.{name}"] = _written(value)
    return found


def _is_setting(layer: torch.nn.Module, name: str, value: Any) -> bool:
    if name in _OF_EVERY_MODULE or value is None or isinstance(value, Tensor):
        return False
    # What torch and PyG keep for themselves differs between their versions and says nothing about the model.
    return not (name.startswith("_") and type(layer).__module__.split(".")[0] in ("torch", "torch_geometric"))


def _tensors(model: Any) -> Iterator[tuple[str, Tensor]]:
    if isinstance(model, torch.nn.Module):
        stored = model.state_dict()
        rest = {name: value for name, value in model.named_buffers() if name not in stored}
        yield from sorted({**stored, **rest}.items())


def _written(value: Any, depth: int = 0) -> str:
    """A setting as text that is the same in every process; what cannot be written out, as the name of its type."""
    if value is None or isinstance(value, bool | int | float | complex | str | bytes | torch.dtype):
        return f"{type(value).__name__} {value!r}"
    if isinstance(value, enum.Enum):
        return f"{_path(type(value))}.{value.name}"
    if isinstance(value, type | types.FunctionType | types.BuiltinFunctionType):
        return _path(value)
    if isinstance(value, types.MethodType):
        return f"{_path(type(value.__self__))}.{value.__name__}"
    if depth > 8:
        return "…"
    if isinstance(value, partial):
        return f"partial({_written([value.func, value.args, value.keywords], depth + 1)})"
    if isinstance(value, Mapping):
        return (
            "{" + _joined((f"{_written(k, depth + 1)}: {_written(v, depth + 1)}" for k, v in value.items()), True) + "}"
        )
    if isinstance(value, set | frozenset):
        return "{" + _joined((_written(item, depth + 1) for item in value), True) + "}"
    if isinstance(value, list | tuple):
        return "[" + _joined(_written(item, depth + 1) for item in value) + "]"
    if isinstance(value, torch.nn.Module):  # kept in a plain list, say: not among the layers
        return model_digest(value)
    return _path(type(value))


def _joined(parts: Iterable[str], ordered: bool = False) -> str:
    return ", ".join(sorted(parts) if ordered else parts)


def _path(named: Any) -> str:
    return f"{getattr(named, '__module__', '')}.{getattr(named, '__qualname__', named)}"
