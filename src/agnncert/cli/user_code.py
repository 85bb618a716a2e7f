"""Models that are a user's own code: ``package.module:factory`` or ``file.py:factory``."""

import importlib
import importlib.util
import inspect
import os
import pkgutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from agnncert.cli import place_of
from agnncert.errors import AgnncertError, ModelContractError, SettingsError, did_you_mean


def is_module_spec(model: str) -> bool:
    """Whether a model is named as ``package.module:factory`` or ``file.py:factory``."""
    return ":" in model


def user_model(spec: str, known: Mapping[str, Any], given: Mapping[str, Any]) -> torch.nn.Module:
    """Builds the module that ``spec`` names: ``package.module:factory`` or ``file.py:factory``.

    Args:
        spec: A function or class, or a ready module, in the current folder or among installed packages.
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
    if isinstance(factory, torch.nn.Module) and not given:
        return factory
    if isinstance(factory, torch.nn.Module) or not callable(factory):
        takes = f" and takes {', '.join(given)}" if given else ""
        raise SettingsError(
            f"{spec} is a {type(factory).__name__}: expected a function or class that returns a module{takes}."
        )
    arguments = _arguments(spec, factory, known, given)
    with _explained(spec, ModelContractError):
        model = factory(**arguments)
    if not isinstance(model, torch.nn.Module):
        raise ModelContractError(f"{spec} returned a {type(model).__name__}: expected a torch.nn.Module.")
    return model


def _imported(name: str) -> ModuleType:
    here = os.getcwd()
    if here not in sys.path:  # a console script does not look into the current folder by itself
        sys.path.insert(0, here)
    importlib.invalidate_caches()
    with _explained(f"importing {name}", SettingsError):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            # Either the module that was named is missing, or another one that it imports.
            if error.name is None or not (name == error.name or name.startswith(f"{error.name}.")):
                raise
            package, _, last = error.name.rpartition(".")
            beside = pkgutil.iter_modules(getattr(sys.modules.get(package), "__path__", [here]))
            raise SettingsError(
                f'there is no module "{error.name}" in this folder or among the installed packages: '
                f"{did_you_mean(last, sorted(module.name for module in beside))}"
            ) from error


@contextmanager
def _explained(what: str, kind: type[AgnncertError]) -> Iterator[None]:
    """Turns every error of a user's code into one of ours; ``sys.exit(0)`` would otherwise pass for success."""
    try:
        yield
    except (KeyboardInterrupt, AgnncertError):
        raise
    except BaseException as error:
        raise kind(f"{what} failed: {type(error).__name__}: {error}{place_of(error)}.") from error


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
        with _explained(f"importing {path}", SettingsError):
            spec.loader.exec_module(module)
    except AgnncertError:
        del sys.modules[path.stem]
        raise
    return module


def _arguments(spec: str, factory: Any, known: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the arguments to call a user's factory with: those given, and what it needs of the data.

    Args:
        spec: How the user named the factory.
        factory: The function or class.
        known: Facts of the data, such as the number of classes, by the names that parameters may have.
        given: Settings of the user.

    Raises:
        SettingsError: The factory has no such parameter, or needs one that nobody knows.
    """
    try:
        parameters = inspect.signature(factory).parameters.values()
    except (TypeError, ValueError):
        return dict(given)
    by_name = {p.name: p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    takes_any_name = any(p.kind == p.VAR_KEYWORD for p in parameters)
    unknown = [name for name in given if name not in by_name]
    if unknown and not takes_any_name:
        hint = did_you_mean(unknown[0], by_name) if by_name else "it takes none."
        raise SettingsError(f'{spec} has no setting "{unknown[0]}": {hint}')
    needed = [name for name, p in by_name.items() if p.default is p.empty and name not in given]
    still_open = [name for name in needed if name not in known]
    if still_open:
        raise SettingsError(
            f"{spec} needs {', '.join(still_open)}: give them, as in --set {still_open[0]}=…, or write a factory "
            "that needs none."
        )
    of_data = {name: known[name] for name in needed}
    return {**of_data, **given}
