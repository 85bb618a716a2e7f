"""agnncert: graph neural network decisions that carry a proof.

Names are loaded on first use, so that ``agnncert --help`` and ``agnncert verify`` never import torch. What is public,
and which module owns it, stands in ``__init__.pyi``.
"""

import lazy_loader

from agnncert import _moved

__version__ = "0.1.0"

__getattr__, __dir__, _public = lazy_loader.attach_stub(__name__, __file__)

_SUBMODULES = ("attacks", "baselines", "code", "errors", "testing")  # no star import takes them
__all__ = ["__version__", *(name for name in _public if name not in _SUBMODULES)]

_moved.install()
