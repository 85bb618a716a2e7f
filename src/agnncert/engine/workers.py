"""Who does work that falls into independent parts: this process, or others such as ``ac.Ray``.

Votes of ranges of groups, batches of random samples, and runs of experiments are such parts. A part depends on nothing
but what it is given, so it may be done twice, anywhere, in any order, and gives the same result.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Protocol, TypeVar

Shared = TypeVar("Shared")
Ready = TypeVar("Ready")
Part = TypeVar("Part")
Result = TypeVar("Result")


class Workers(Protocol):
    """Does the parts of a piece of work."""

    def parts_at_once(self) -> int:
        """How many parts are done side by side."""

    def run(
        self,
        shared: Shared,
        prepare: Callable[[Shared], Ready],
        task: Callable[[Ready, Part], Result],
        parts: Sequence[Part],
    ) -> Iterator[tuple[Part, Result]]:
        """Does all parts and yields each with its result, once, as they get ready.

        Args:
            shared: What all parts need; goes to a worker once. Large numpy arrays in it are not copied.
            prepare: Makes of ``shared`` what ``task`` wants, once in every worker.
            task: Does one part.
            parts: The parts.
        """


class Here:
    """Does all parts in this process, in order."""

    def parts_at_once(self) -> int:
        """One."""
        return 1

    def run(
        self,
        shared: Shared,
        prepare: Callable[[Shared], Ready],
        task: Callable[[Ready, Part], Result],
        parts: Sequence[Part],
    ) -> Iterator[tuple[Part, Result]]:
        """As in ``Workers``."""
        ready = prepare(shared)
        for part in parts:
            yield part, task(ready, part)


@cache
def versions() -> dict[str, str]:
    """What a worker must have as the driver has it: the code of this library, and the packages that compute."""
    from importlib.metadata import PackageNotFoundError, version

    digest = hashlib.sha256()
    home = Path(__file__).parents[1]
    for file in sorted(home.rglob("*.py")):
        digest.update(file.relative_to(home).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    found = {"agnncert": digest.hexdigest()[:16]}
    for name in ("torch", "torch_geometric", "numpy", "scipy"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "missing"
    return found
