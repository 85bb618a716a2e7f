"""What a model asks that is neither its weights nor the graph: the clock, chance, files, the process, the network.

No call of a model shows that it would answer otherwise in another year. What the code that it runs names does.
"""

import random
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from agnncert.auditing.findings import Finding
from agnncert.reachable import GENERATORS_OF_NUMPY, Reached, is_of_library, module_of, reachable

_CLOCK = "the clock"
_CHANCE = "chance"
_SYSTEM = "the system or this process"
_FILES = "files"
_OTHERS = "other threads or programs"
_NETWORK = "the network"
_CODE = "code that nobody can read beforehand"
# Modules, with all that are inside, and what their functions and classes ask.
_MODULES = {
    **dict.fromkeys(["time", "datetime", "_datetime", "sched", "zoneinfo"], _CLOCK),
    **dict.fromkeys(["random", "_random", "secrets", "uuid"], _CHANCE),
    **dict.fromkeys(["os", "posix", "nt", "sys", "gc", "platform", "resource", "tracemalloc", "getpass"], _SYSTEM),
    **dict.fromkeys(["io", "_io", "pathlib", "genericpath", "glob", "shutil", "tempfile", "fileinput"], _FILES),
    **dict.fromkeys(["shelve", "dbm", "sqlite3", "mmap", "pickle", "_pickle", "linecache"], _FILES),
    **dict.fromkeys(["threading", "_thread", "multiprocessing", "subprocess", "signal", "_signal"], _OTHERS),
    **dict.fromkeys(["asyncio", "concurrent", "queue", "_queue", "sysconfig"], _OTHERS),
    **dict.fromkeys(
        ["socket", "_socket", "ssl", "http", "urllib", "ftplib", "smtplib", "xmlrpc", "requests"], _NETWORK
    ),
    **dict.fromkeys(["importlib", "ctypes", "_ctypes", "runpy", "code"], _CODE),
    **dict.fromkeys(["numpy.random"], _CHANCE),
    **dict.fromkeys(["torch.backends"], _SYSTEM),
}
# Functions of Python's own that need no import.
_BUILTINS: dict[Callable[..., Any], str] = {
    open: _FILES,
    input: "somebody at the keyboard",
    eval: _CODE,
    exec: _CODE,
    compile: _CODE,
    __import__: _CODE,
    globals: _CODE,
    hash: "numbers that are others in every process",
    id: "numbers that are others in every process",
}
# Functions of torch that ask about this process, and the type of numpy that reads "now" as the present.
_OF_LIBRARIES: dict[Callable[..., Any], str] = {
    np.datetime64: _CLOCK,
    torch.get_num_threads: _SYSTEM,
    torch.get_num_interop_threads: _SYSTEM,
    torch.is_grad_enabled: _SYSTEM,
    torch.is_inference_mode_enabled: _SYSTEM,
    torch.is_autocast_enabled: _SYSTEM,
    torch.get_rng_state: _CHANCE,
    torch.initial_seed: _CHANCE,
    torch.seed: _CHANCE,
    torch.cuda.is_available: _SYSTEM,
    torch.cuda.device_count: _SYSTEM,
    torch.cuda.current_device: _SYSTEM,
    torch.cuda.memory_allocated: _SYSTEM,
}
_HARMLESS_TYPES = ("BytesIO", "StringIO", "timedelta", "OrderedDict")
# What says in which module it stands; numpy's functions of chance are of the last type.
_NAMED_CODE = (types.BuiltinFunctionType, types.FunctionType, type, type(np.random.default_rng))
_CONSTANT = (bool, int, float, str, bytes, type(None))
_REMEDY = "Leave it out of forward and of what forward calls: a label may depend on the graph and the weights only."


def inspect_outside_world(model: nn.Module | Callable[..., Tensor]) -> Iterator[Finding]:
    """Yields a finding for everything outside of model and graph that the code of a model names.

    Args:
        model: The module, or a function.
    """
    for reached in reachable(model):
        asked = _asked(reached)
        if asked is not None:
            why = f"the code asks {asked}, so the same graph may get another answer at another time or place"
            yield Finding("code", reached.path, why, _REMEDY)


def _asked(reached: Reached) -> str | None:
    """Returns what an object asks, or ``None`` if it asks nothing."""
    value = reached.value
    if isinstance(value, _NAMED_CODE):
        return _asked_by_code(value)
    if isinstance(value, types.MethodType):
        return _of_module(reached.module)  # its function is reached by itself
    if isinstance(value, types.ModuleType):
        return _of_module(value.__name__)
    if reached.module and not isinstance(value, _CONSTANT):
        return _of_module(reached.module)
    return _asked_by_object(value)


def _asked_by_object(value: Any) -> str | None:
    if isinstance(value, random.SystemRandom):
        return _CHANCE
    is_seeded = isinstance(value, (random.Random, *GENERATORS_OF_NUMPY))  # ``state_of`` compares its numbers
    if is_seeded or type(value).__name__ in _HARMLESS_TYPES:
        return None
    module = module_of(type(value))
    return None if module in ("datetime", "pathlib", "uuid") else _of_module(module)


def _asked_by_code(value: Any) -> str | None:
    if value in _BUILTINS:
        return _BUILTINS[value]
    if value in _OF_LIBRARIES:
        return _OF_LIBRARIES[value]
    compiled = getattr(value, "_torchdynamo_orig_callable", None)
    if compiled is not None and not is_of_library(compiled):
        return "torch.compile, which runs other code after other graphs"
    if getattr(value, "__name__", "") in _HARMLESS_TYPES:
        return None
    owner = getattr(value, "__self__", None)
    if isinstance(value, types.BuiltinFunctionType) and owner is not None and not isinstance(owner, types.ModuleType):
        holder = owner if isinstance(owner, type) else type(owner)
        return None if holder.__name__ in _HARMLESS_TYPES else _of_module(module_of(holder))
    return _of_module(module_of(value))


def _of_module(module: str) -> str | None:
    parts = module.split(".")
    return next(filter(None, (_MODULES.get(".".join(parts[:count])) for count in range(1, len(parts) + 1))), None)
