"""agnncert: graph neural network decisions that carry a proof.

Names are loaded on first use, so that ``agnncert --help`` and ``agnncert verify`` never import torch. What is public,
and which module owns it, stands in ``__init__.pyi``.
"""

from typing import Any

import lazy_loader

from agnncert import errors

__version__ = "0.1.0"

_load, __dir__, _public = lazy_loader.attach_stub(__name__, __file__)

_SUBMODULES = ("attacks", "baselines", "errors", "testing")  # no star import takes them
__all__ = ["__version__", *(name for name in _public if name not in _SUBMODULES)]


def __getattr__(name: str) -> Any:
    try:
        return _load(name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in errors.EXTRAS:
            raise
        raise errors.missing(error.name, f"agnncert.{name}") from error
