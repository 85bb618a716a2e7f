"""Lets the reference show our examples as code: its reader of docstrings wants "Examples:", we write "Example:"."""

import re
from typing import Any

import griffe

_HEADING = re.compile(r"^(\s*)Example:\s*$", re.MULTILINE)


class Examples(griffe.Extension):
    """Called for everything that has a docstring."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Renames the heading before the docstring is read."""
        if obj.docstring is not None:
            obj.docstring.value = _HEADING.sub(r"\1Examples:", obj.docstring.value)
