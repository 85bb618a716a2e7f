"""A user's own model: ``package.module:factory`` found and built, and its weights put in."""

import importlib
import importlib.util
import inspect
import os
import pkgutil
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from agnncert.errors import ModelContractError, SettingsError, did_you_mean

PathLike = str | os.PathLike[str]


def is_module_spec(model: str) -> bool:
    """Whether a model is named as ``package.module:factory`` or ``file.py:factory``."""
    return ":" in model


def user_model(spec: str, known: Mapping[str, Any], given: Mapping[str, Any]) -> torch.nn.Module:
    """Builds the module that ``spec`` names.

    Args:
        spec: ``package.module:factory``, found from the current folder or among installed packages, or
            ``file.py:factory``. The factory is a function or class; a ready module is taken as it is.
        known: Values for parameters that the factory asks for without a default, such as ``in_channels``.
        given: Values that the user has set.

    Raises:
        SettingsError: Module or factory cannot be found, or a setting is not one of the factory's.
        ModelContractError: The factory fails, or returns no module.
    """
    place, _, name = spec.partition(":")
    if not place or not name:
        raise SettingsError(f'"{spec}" names no model: expected package.module:factory, such as mymodels.gcn:build.')
    module = _from_file(Path(place)) if place.endswith(".py") else _imported(place)
    factory = getattr(module, name, None)
    if factory is None:
        public = [n for n, value in vars(module).items() if not n.startswith("_") and callable(value)]
        raise SettingsError(f'{place} has no "{name}": {did_you_mean(name, public)}')
    if isinstance(factory, torch.nn.Module):
        if given:
            raise SettingsError(f"{spec} is a module that is built already: it takes no settings ({', '.join(given)}).")
        return factory
    if not callable(factory):
        raise SettingsError(
            f"{spec} is a {type(factory).__name__}: expected a function or class that returns a module."
        )
    arguments = _arguments(spec, factory, known, given)
    try:
        model = factory(**arguments)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # sys.exit(0) would otherwise pass for success
        raise ModelContractError(f"{spec} failed: {type(error).__name__}: {error}{_where(error)}.") from error
    if not isinstance(model, torch.nn.Module):
        raise ModelContractError(f"{spec} returned a {type(model).__name__}: expected a torch.nn.Module.")
    return model


def load_weights(model: torch.nn.Module, path: PathLike) -> torch.nn.Module:
    """Puts the weights of a safetensors file into a module; returns it in evaluation mode.

    Raises:
        ModelContractError: The file cannot be read, or its tensors do not fit; names all of them.
    """
    path = Path(path)
    if not path.is_file():
        raise ModelContractError(f"there is no file {path} with weights.")
    try:
        stored = load_file(path)
    except (SafetensorError, OSError, ValueError) as error:
        raise ModelContractError(
            f"{path} is not a safetensors file ({error}). Write one with safetensors.torch.save_file("
            f'model.state_dict(), "{path.stem}.safetensors"); pickles are never opened: they can run code.'
        ) from error
    wanted = model.state_dict()
    wrong = [f"missing: {name}{_nearest(name, stored)}" for name in wanted if name not in stored]
    wrong += [f"unexpected: {name}" for name in stored if name not in wanted]
    for name in wanted:
        if name in stored and stored[name].shape != wanted[name].shape:
            sizes = f"{list(stored[name].shape)} in the file, {list(wanted[name].shape)} in the model"
            wrong.append(f"of another shape: {name} is {sizes}")
    if wrong:
        raise ModelContractError(
            "\n  ".join([f"the weights in {path} do not fit {type(model).__name__}:", *wrong[:20]])
            + (f"\n  … and {len(wrong) - 20} more" if len(wrong) > 20 else "")
        )
    model.load_state_dict(stored)
    return model.eval()


def _imported(name: str) -> ModuleType:
    here = os.getcwd()
    if here not in sys.path:  # a console script does not look into the current folder by itself
        sys.path.insert(0, here)
    importlib.invalidate_caches()
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        # Either the module that was named is missing, or another one that it imports.
        if error.name is None or not (name == error.name or name.startswith(f"{error.name}.")):
            raise SettingsError(f"importing {name} failed: {error}{_where(error)}.") from error
        raise SettingsError(
            f'there is no module "{error.name}" in this folder or among the installed packages: '
            f"{did_you_mean(error.name.rpartition('.')[2], _siblings(error.name))}"
        ) from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise SettingsError(f"importing {name} failed: {type(error).__name__}: {error}{_where(error)}.") from error


def _from_file(path: Path) -> ModuleType:
    if not path.is_file():
        near = [str(p) for p in path.parent.glob("*.py")] if path.parent.is_dir() else []
        raise SettingsError(f"there is no file {path}: {did_you_mean(str(path), near) if near else 'give its path.'}")
    folder = str(path.parent.resolve())
    if folder not in sys.path:  # so that the file finds its neighbours, as a script does
        sys.path.insert(0, folder)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        del sys.modules[path.stem]
        raise SettingsError(f"{path} cannot be run: {type(error).__name__}: {error}{_where(error)}.") from error
    return module


def _siblings(missing: str) -> list[str]:
    """Modules beside the one that is missing: in the current folder, or in its package."""
    package, _, _ = missing.rpartition(".")
    places: Iterable[str] = getattr(sys.modules[package], "__path__", []) if package in sys.modules else [os.getcwd()]
    return sorted(module.name for module in pkgutil.iter_modules(list(places))) or ["none in this folder"]


def _arguments(spec: str, factory: Any, known: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    try:
        parameters = inspect.signature(factory).parameters
    except (TypeError, ValueError):
        return dict(given)
    by_name = [p for p in parameters.values() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    open_ended = any(p.kind == p.VAR_KEYWORD for p in parameters.values())
    names = [p.name for p in by_name]
    for key in given:
        if not open_ended and key not in names:
            hint = did_you_mean(key, names) if names else "it takes none."
            raise SettingsError(f'{spec} has no setting "{key}": {hint}')
    needed = [p.name for p in by_name if p.default is p.empty and p.name not in given]
    unknown = [name for name in needed if name not in known]
    if unknown:
        raise SettingsError(
            f"{spec} needs {', '.join(unknown)}: give them, as in --set {unknown[0]}=…, or write a factory "
            "that needs none."
        )
    return {**{name: known[name] for name in needed}, **given}


def _nearest(name: str, stored: Mapping[str, Any]) -> str:
    hint = did_you_mean(name, stored)
    return f" ({hint.split('?')[0].replace('did you mean', 'is it')}?)" if "?" in hint else ""


def _where(error: BaseException) -> str:
    """File and line in which an error of a user's code arose."""
    trace, place = error.__traceback__, ""
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if "importlib" not in file and f"{os.sep}agnncert{os.sep}" not in file:
            place = f" ({Path(file).name}, line {trace.tb_lineno})"
        trace = trace.tb_next
    return place
