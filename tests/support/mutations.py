"""Functions that are broken on purpose."""

import inspect
import textwrap
from types import FunctionType


def edited(function: FunctionType, old: str, new: str) -> FunctionType:
    """The function with another text in one place."""
    text = textwrap.dedent(inspect.getsource(function))
    assert text.count(old) == 1, f"{function.__qualname__} has {text.count(old)} times {old!r}"
    names = dict(function.__globals__)
    exec(compile(text.replace(old, new), inspect.getfile(function), "exec"), names)
    return names[function.__name__]
