"""agnncert: graph neural network decisions that carry a proof.

Names are loaded on first use, so that ``agnncert --help`` and ``agnncert verify`` never import torch. What is public,
and which module owns it, stands in ``__init__.pyi``.
"""

from typing import Any

import lazy_loader

from agnncert import errors
from agnncert.addons import addon

__version__ = "0.1.0"

_load, _, _public = lazy_loader.attach_stub(__name__, __file__)

_SUBMODULES = ("attacks", "errors")  # no star import takes them, nor what an add-on package brings
_ADDED = {
    **dict.fromkeys(("Comparison", "baselines", "compare", "testing"), "agnncert_peers"),
    **dict.fromkeys(("Ray", "convert_parquet", "open_graph", "write_graph"), "agnncert_large"),
}
__all__ = ["__version__", *(name for name in _public if name not in _SUBMODULES)]


def __dir__() -> list[str]:
    return [*_public, *_ADDED]


def __getattr__(name: str) -> Any:
    try:
        if name not in _ADDED:
            return _load(name)
        value = globals()[name] = addon("agnncert.names", name, _ADDED[name], f"agnncert.{name}")
        return value
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in errors.EXTRAS:
            raise
        raise errors.missing(error.name, f"agnncert.{name}") from error
