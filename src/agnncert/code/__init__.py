"""C and C++ functions as graphs of statements, and certificates in the attacker's unit: edited statements.

``graph`` turns the text of a function into a graph, ``read_functions`` every function below a folder. ``edits`` gives
the budget that so many inserted, deleted and replaced statements amount to. ``scan`` judges all functions of a source
tree with a trained model. Parsing needs the extra ``code``.
"""

from importlib import import_module
from typing import Any

import lazy_loader

_load, _names, __all__ = lazy_loader.attach_stub(__name__, __file__)

# Offered here, because people look for it here; it lives where everything that runs a model lives, far above this room.
_ABOVE = {"scan": "agnncert.studies.scan"}
__all__ += [*_ABOVE]


def __getattr__(name: str) -> Any:
    return getattr(import_module(_ABOVE[name]), name) if name in _ABOVE else _load(name)


def __dir__() -> list[str]:
    return [*_names(), *_ABOVE]
