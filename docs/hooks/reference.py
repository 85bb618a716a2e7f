"""What the reference shows differently from the source code it reads.

Examples are shown as code: the reader of docstrings wants "Examples:", we write "Example:". Names such as
``:func:`fit` `` are shown as code. ``fit`` is shown with each of its settings and their defaults, in place of
``**settings: Unpack[FitSettings]``, and a class whose settings are those of its base class with their descriptions.
"""

import inspect
import re
from collections.abc import Iterator
from typing import Any

import griffe

from agnncert.training.settings import SETTINGS

_HEADING = re.compile(r"^(\s*)Example:\s*$", re.MULTILINE)
_ROLE = re.compile(r":(?:func|class|meth|mod|attr|data|exc):`~?(?:[\w.]*\.)?(\w+)`")
_OF_BASE = "; settings as in the base class."
_MODULE = re.compile(r"\b(\w+\.)+")  # agnncert.training.settings.Weights is shown as Weights


class Reference(griffe.Extension):
    """Called for everything that the reference may show."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Renames the heading before the docstring is read."""
        if obj.docstring is not None:
            text = _HEADING.sub(r"\1Examples:", obj.docstring.value)
            obj.docstring.value = _ROLE.sub(r"`\1`", text)

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Describes settings where they are used, when base classes are known."""
        for module in _modules(pkg):
            for defined in module.classes.values():
                if not defined.is_alias and defined.docstring is not None and _OF_BASE in defined.docstring.value:
                    settings = str(defined.bases[0]).rpartition(".")[2]
                    described = _described(module, settings)
                    defined.docstring.value = defined.docstring.value.replace(_OF_BASE, ".") + described

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


def _modules(package: griffe.Module) -> Iterator[griffe.Module]:
    yield package
    for module in package.modules.values():
        if not module.is_alias:
            yield from _modules(module)


def _described(module: griffe.Module, name: str) -> str:
    """Returns the attributes of a class that a module imports, as its docstring lists them."""
    settings = module.members[name].final_target
    _, heading, attributes = settings.docstring.value.partition("\nAttributes:\n")
    return f"\n{heading}{attributes}"
