"""Functions that are broken on purpose, and whether the library ever calls them."""

import dis
import functools
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
LIBRARY = (str(ROOT / "src"), *(str(folder) for folder in (ROOT / "packages").glob("*/src")))
TESTS = (str(ROOT / "tests"), *(str(folder) for folder in (ROOT / "packages").glob("*/tests")))
RED = (AssertionError, pytest.fail.Exception)  # a check that fails raises one of these


class Unreached(Exception):
    """A mutation was planted where the library never looks, so that the check that turned red says nothing."""


class Planted:
    """A monkeypatch that notes whether the library itself, not only a test, uses what a mutation put in place.

    A name that a module of the library imported from another one stays as it was when only that other one is patched.
    Then nothing is broken but what tests call. :meth:`require_reached` finds that out.

    Args:
        patch: Does the patching, and undoes it.
    """

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._patch = patch
        self._planted: list[str] = []
        self._reached: set[str] = set()

    def setattr(self, owner: Any, name: str, value: Any, raising: bool = True) -> None:
        """Replaces an attribute, and watches who calls the replacement."""
        where = f"{getattr(owner, '__name__', owner)}.{name}"
        self._planted.append(where)
        if not _is_watchable(value) and name in _names_read(owner):
            self._reached.add(where)
        self._patch.setattr(owner, name, self._watched(value, where), raising=raising)

    def setitem(self, table: dict[Any, Any], key: Any, value: Any) -> None:
        """Replaces an entry of a table of functions, and watches who calls the replacement."""
        self._planted.append(repr(key))
        self._patch.setitem(table, key, self._watched(value, repr(key)))

    def text(self, module: ModuleType, old: str, new: str) -> None:
        """Replaces one piece of a module's text for everybody, see :func:`plant_text`."""
        plant_text(self._patch, module, old, new)

    def require_reached(self) -> None:
        """Raises :class:`Unreached` if the library used none of the replacements."""
        if self._planted and not self._reached:
            raise Unreached(f"the library never uses what was planted: {', '.join(self._planted)}")

    def _watched(self, value: Any, where: str) -> Any:
        if isinstance(value, property):
            return property(self._watched(value.fget, where))
        if not _is_watchable(value):
            return value

        @functools.wraps(value)
        def watched(*given: Any, **settings: Any) -> Any:
            if _called_by_the_library():
                self._reached.add(where)
            return value(*given, **settings)

        return watched


def _is_watchable(value: Any) -> bool:
    return callable(value) and not isinstance(value, type)


def _called_by_the_library() -> bool:
    """Whether the first file of this project that is met on the way to the caller is one of the library."""
    frame = sys._getframe(2)
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith(LIBRARY) or file == "broken":
            return True
        if file.startswith(TESTS):
            return False
        frame = frame.f_back
    return False


def _names_read(owner: Any) -> set[str]:
    """All names that the code of a module reads, or that of any module of the library if ``owner`` is a class."""
    if isinstance(owner, ModuleType):
        modules = [owner]
    else:
        modules = [module for module in list(sys.modules.values()) if _is_ours(module)]
    return {
        step.argval
        for module in modules
        for code in _codes(module)
        for step in dis.get_instructions(code)
        if step.opname in ("LOAD_NAME", "LOAD_GLOBAL", "LOAD_ATTR", "LOAD_METHOD")
    }


def _is_ours(module: ModuleType) -> bool:
    return (getattr(module, "__file__", None) or "").startswith(LIBRARY)


def _codes(module: ModuleType) -> Iterator[CodeType]:
    """The code of a module, of its classes and functions, from its text."""
    file = module.__file__
    assert file is not None
    waiting = [compile(Path(file).read_text(encoding="utf-8"), file, "exec")]
    while waiting:
        code = waiting.pop()
        yield code
        waiting += [constant for constant in code.co_consts if isinstance(constant, CodeType)]


def edited(function: FunctionType, old: str, new: str) -> FunctionType:
    """The function with another text in one place."""
    text = textwrap.dedent(inspect.getsource(function))
    assert text.count(old) == 1, f"{function.__qualname__} has {text.count(old)} times {old!r}"
    names = dict(function.__globals__)
    exec(compile(text.replace(old, new), inspect.getfile(function), "exec"), names)
    return names[function.__name__]


def plant_text(patch: pytest.MonkeyPatch, module: ModuleType, old: str, new: str) -> None:
    """Replaces one piece of a module's text. Whoever imported a function of it, under whatever name, runs the new text.

    Only the code inside functions is replaced, so the piece has to be inside one, and the functions stay the same
    objects.
    """
    assert module.__file__ is not None
    text = Path(module.__file__).read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{module.__name__} has {text.count(old)} times {old!r}"
    names: dict[str, Any] = {"__name__": module.__name__}
    exec(compile(text.replace(old, new), "broken", "exec"), names)
    broken = dict(_functions(names, module.__name__))
    changed = 0
    for where, function in _functions(vars(module), module.__name__):
        code = broken[where].__code__
        if _meaning(code) != _meaning(function.__code__):
            patch.setattr(function, "__code__", code)
            changed += 1
    assert changed, f"{old!r} is not inside a function of {module.__name__}"


def _functions(names: dict[str, Any], module: str) -> Iterator[tuple[str, FunctionType]]:
    """The functions and methods that are written in a module, by name."""
    for name, value in list(names.items()):
        if isinstance(value, type):
            if value.__module__ == module and name != "__class__":
                for inner, function in _functions(dict(vars(value)), module):
                    yield f"{name}.{inner}", function
            continue
        function = _plain(value)
        if isinstance(function, FunctionType) and function.__module__ == module and _is_written(function):
            yield name, function


def _is_written(function: FunctionType) -> bool:
    """Whether the text of a module has this function, unlike those that ``dataclass`` makes up."""
    return not function.__code__.co_filename.startswith("<")


def _plain(value: Any) -> Any:
    """The function behind a property, a cached one, or a method of a class."""
    if isinstance(value, property):
        return value.fget
    if isinstance(value, functools.cached_property):
        return value.func
    if isinstance(value, classmethod | staticmethod):
        return value.__func__
    return inspect.unwrap(value) if callable(value) else value


def _meaning(code: CodeType) -> tuple[Any, ...]:
    """What a piece of code does, without where it stands."""
    constants = tuple(_meaning(part) if isinstance(part, CodeType) else part for part in code.co_consts)
    return code.co_code, constants, code.co_names, code.co_varnames, code.co_freevars


def turns_red(
    patch: pytest.MonkeyPatch,
    mistake: Callable[[Any], None],
    check: Callable[[], object],
    errors: type[BaseException] | tuple[type[BaseException], ...] = AssertionError,
) -> None:
    """Plants a mistake, expects that the check fails, and that the library was what failed it."""
    planted = Planted(patch)
    mistake(planted)
    with pytest.raises(errors):
        check()
    planted.require_reached()


def text_turns_red(
    patch: pytest.MonkeyPatch,
    module: ModuleType,
    old: str,
    new: str,
    check: Callable[[], object],
    errors: type[BaseException] | tuple[type[BaseException], ...] = RED,
) -> None:
    """Replaces one piece of a module's text, see :func:`plant_text`, and expects that the check fails."""
    plant_text(patch, module, old, new)
    with pytest.raises(errors):
        check()


@dataclass(frozen=True)
class Mistake:
    """A piece of a module's text, the wrong one that takes its place, and the check that must notice it."""

    what: str
    check: Callable[..., object]
    module: ModuleType
    old: str
    new: str

    def turns_red(self, patch: pytest.MonkeyPatch, folder: Path | None = None) -> None:
        """Expects that the check passes, and fails once the mistake is made.

        Args:
            patch: Makes the mistake, and undoes it.
            folder: Where a check that writes files gets an empty folder for each of the two. Other checks take nothing.
        """
        if folder is None:
            _require_green(self.check)
            text_turns_red(patch, self.module, self.old, self.new, self.check)
            return
        right, wrong = folder / "right", folder / "wrong"
        right.mkdir()
        wrong.mkdir()
        self.check(right)
        text_turns_red(patch, self.module, self.old, self.new, lambda: self.check(wrong))


@functools.cache
def _require_green(check: Callable[[], object]) -> None:
    """Runs a check on the library as it is, once for all mistakes. One that fails anyway would notice nothing."""
    check()


def each_mistake(rows: Iterable[tuple[str, Callable[..., object], ModuleType, str, str]]) -> pytest.MarkDecorator:
    """Runs a test once for each row, which the test takes as its argument ``mistake``.

    Args:
        rows: The fields of a :class:`Mistake`. The first one is the name of the test's case.
    """
    mistakes = [Mistake(*row) for row in rows]
    return pytest.mark.parametrize("mistake", mistakes, ids=[mistake.what for mistake in mistakes])
