"""The reference shows docstrings as they are meant: nothing is cut at a colon, and attributes have the names of fields."""

import inspect
import pkgutil
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.paths import PROJECT

griffe = pytest.importorskip("griffe", reason="the tools of the documentation are not installed")

NAMES = [
    name
    for page in sorted((PROJECT / "docs" / "reference").glob("*.md"))
    for name in re.findall(r"^::: ([\w.]+)", page.read_text(encoding="utf-8"), re.MULTILINE)
]
OPTIONS = {"returns_multiple_items": False, "returns_named_value": False, "warnings": False}


def documented(name: str) -> Iterator[tuple[str, Any]]:
    """The object, and what a class defines itself."""
    found = pkgutil.resolve_name(name)
    yield name, found
    if inspect.isclass(found):
        for member, value in vars(found).items():
            if not member.startswith("_") and (inspect.isroutine(value) or isinstance(value, property)):
                yield f"{name}.{member}", value


def sections(thing: Any, kind: str) -> Iterator[Any]:
    docstring = griffe.Docstring(inspect.getdoc(thing) or "")
    for section in docstring.parse("google", **OPTIONS):
        if section.kind.value == kind:
            yield from section.value


def returned_types(thing: Any) -> list[str]:
    return [str(item.annotation) for item in sections(thing, "returns") if item.annotation]


def unknown_attributes(thing: Any) -> list[str]:
    if not inspect.isclass(thing):
        return []
    bases = [base for base in thing.__mro__ if base.__module__.startswith("agnncert")]
    assigned = set(re.findall(r"self\.(\w+)", "".join(inspect.getsource(base) for base in bases)))
    fields = {name for base in bases for name in vars(base).get("__annotations__", {})}
    described = [item.name for item in sections(thing, "attributes")]
    return [name for name in described if not hasattr(thing, name) and name not in fields | assigned]


@pytest.mark.parametrize("name", NAMES)
def test_the_reference_takes_no_text_for_a_type_and_names_attributes_that_exist(name: str) -> None:
    for place, thing in documented(name):
        assert returned_types(thing) == [], f"{place}: the text after Returns is taken for a type, up to its colon"
        assert unknown_attributes(thing) == [], f"{place} describes attributes that do not exist"


def test_a_text_that_is_cut_and_a_wrong_name_are_noticed() -> None:
    def cut() -> None:
        """Counts.

        Returns:
            Whole numbers: -1 where nothing is proved.
        """

    class Named:
        """Holds a rule.

        Attributes:
            rule: The rule.
            voting_rule: The rule.
        """

        voting_rule = 1

    assert returned_types(cut) == ["Whole numbers"]
    assert unknown_attributes(Named) == ["rule"]
