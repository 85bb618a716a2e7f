"""agnncert: graph neural network decisions that carry a proof.

Names are loaded on first use, so that ``agnncert --help`` and ``agnncert verify`` never import torch.
"""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_OWNER = {
    "AgnncertError": "errors",
    "Budget": "budget",
}

__all__ = ["__version__", *sorted(_OWNER)]  # noqa: PLE0604

if TYPE_CHECKING:
    from agnncert.budget import Budget as Budget
    from agnncert.errors import AgnncertError as AgnncertError


def __getattr__(name: str) -> Any:
    if name not in _OWNER:
        raise AttributeError(f"module 'agnncert' has no attribute '{name}'")
    return getattr(importlib.import_module(f"agnncert.{_OWNER[name]}"), name)


def __dir__() -> list[str]:
    return list(__all__)
