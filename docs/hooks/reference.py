"""What the reference shows differently from the source code it reads.

Examples are shown as code: the reader of docstrings wants "Examples:", we write "Example:". ``fit`` is shown with each
of its settings and their defaults, in place of ``**settings: Unpack[FitSettings]``.
"""

import inspect
import re
from typing import Any

import griffe

from agnncert.training.settings import SETTINGS

_HEADING = re.compile(r"^(\s*)Example:\s*$", re.MULTILINE)
_MODULE = re.compile(r"\b(\w+\.)+")  # agnncert.training.settings.Weights is shown as Weights


class Reference(griffe.Extension):
    """Called for everything that the reference may show."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Renames the heading before the docstring is read."""
        if obj.docstring is not None:
            obj.docstring.value = _HEADING.sub(r"\1Examples:", obj.docstring.value)

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        """Puts the settings where ``inspect.signature`` has them: before the other keyword arguments."""
        own = list(func.parameters)
        if not own or str(own[-1].annotation) != "Unpack[FitSettings]":
            return
        keyword_only = griffe.ParameterKind.keyword_only
        settings = [
            griffe.Parameter(
                name,
                annotation=_MODULE.sub("", inspect.formatannotation(setting.type)),
                kind=keyword_only,
                default=repr(setting.default),
            )
            for name, setting in SETTINGS.items()
        ]
        first = next(place for place, one in enumerate(own) if one.kind is keyword_only)
        func.parameters = griffe.Parameters(*own[:first], *settings, *own[first:-1])
