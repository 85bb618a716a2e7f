"""Who does work that falls into independent parts: this process, or others such as ``ac.Ray``.

Votes of ranges of groups, batches of random samples, and runs of experiments are such parts. A part depends on its
arguments only, so it may be done twice, anywhere, in any order, and gives the same result.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Protocol, TypeVar

Shared = TypeVar("Shared")
Prepared = TypeVar("Prepared")
Part = TypeVar("Part")
Result = TypeVar("Result")


class Workers(Protocol):
    """Does the parts of a piece of work."""

    def parts_at_once(self) -> int:
        """Returns how many parts are done side by side."""

    def run(
        self,
        shared: Shared,
        prepare: Callable[[Shared], Prepared],
        task: Callable[[Prepared, Part], Result],
        parts: Sequence[Part],
    ) -> Iterator[tuple[Part, Result]]:
        """Does all parts and yields each with its result, once, as they are finished.

        Args:
            shared: What all parts need. It is sent to a worker once. Large numpy arrays in it are not copied.
            prepare: Makes from ``shared`` what ``task`` takes, once in every worker.
            task: Does one part.
            parts: The parts.
        """


class Here:
    """Does all parts in this process, in order."""

    def parts_at_once(self) -> int:
        """Returns 1."""
        return 1

    def run(
        self,
        shared: Shared,
        prepare: Callable[[Shared], Prepared],
        task: Callable[[Prepared, Part], Result],
        parts: Sequence[Part],
    ) -> Iterator[tuple[Part, Result]]:
        """Does all parts and yields each with its result; the arguments are those of ``Workers.run``."""
        prepared = prepare(shared)
        for part in parts:
            yield part, task(prepared, part)


@cache
def versions() -> dict[str, str]:
    """Returns what must be the same at a worker and at the driver, by name.

    These are a digest of this library's code, and the versions of the packages that compute.
    """
    from importlib.metadata import PackageNotFoundError, version

    digest = hashlib.sha256()
    home = Path(__file__).parents[1]
    for file in sorted(home.rglob("*.py")):
        digest.update(file.relative_to(home).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    by_name = {"agnncert": digest.hexdigest()[:16]}
    for name in ("torch", "torch_geometric", "numpy", "scipy"):
        try:
            by_name[name] = version(name)
        except PackageNotFoundError:
            by_name[name] = "missing"
    return by_name
