"""The built-in divisions by name: one table of what commands, settings and searches need to know about each.

This module imports no torch, so that names can be listed and checked before anything heavy is loaded. What a division
proves stands in ``agnncert.divided.theorems``.
"""

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from agnncert.addons import ADD_ON_DIVISIONS, addons
from agnncert.errors import DivisionError, SettingsError, did_you_mean, missing


@dataclass(frozen=True)
class NamedDivision:
    """A division that commands and settings call by name.

    Attributes:
        name: Its name in commands and settings.
        title: Its name in tables of results.
        cls: Where its class is, as in an entry point: the module, a colon and the name.
        tasks: Tasks that it is for.
        counts: Arguments of the class that are numbers of groups; none if there is one subgraph per neighbour.
        usual: The default number of groups (for each of ``counts``) by task.
        flags: Arguments of the class that are switches.
    """

    name: str
    title: str
    cls: str
    tasks: tuple[str, ...] = ("node", "graph")
    counts: tuple[str, ...] = ("num_groups",)
    usual: Mapping[str, int] = field(default_factory=lambda: {"node": 300, "graph": 30})
    flags: tuple[str, ...] = ()

    def load(self) -> type[Any]:
        """Returns the class itself; this imports torch."""
        module, _, name = self.cls.partition(":")
        cls: type[Any] = getattr(import_module(module), name)
        return cls

    def build(self, task: str, settings: Mapping[str, Any]) -> Any:
        """Builds the division.

        Args:
            task: ``"node"`` or ``"graph"``.
            settings: Arguments of the class. Numbers of groups default to those in the table.

        Raises:
            SettingsError: The division is not for this task.
        """
        if task not in self.tasks:
            raise SettingsError(
                f"the {self.name} division is for {self.tasks[0]} classification: use edge or node for {task}s."
            )
        default = dict.fromkeys(self.counts, self.usual[task])
        return self.load()(**{**default, **settings})


_EDGE = "agnncert.divisions.edge"
_NODE = "agnncert.divisions.node"
_OWN: dict[str, NamedDivision] = {
    entry.name: entry
    for entry in (
        NamedDivision("edge", "edge-centric", f"{_EDGE}:EdgeCentric", flags=("self_loops", "edges_only")),
        NamedDivision("node", "node-centric", f"{_NODE}:NodeCentric", flags=("self_loops",)),
        NamedDivision("gated", "gated", f"{_NODE}:GatedNodeCentric", tasks=("node",), flags=("self_loops",)),
        NamedDivision("per-neighbour", "per-neighbour", f"{_NODE}:PerNeighbour", counts=()),
        NamedDivision("per-edge", "per-edge", f"{_EDGE}:PerEdge", counts=(), flags=("self_loops",)),
    )
}


def named_divisions() -> dict[str, NamedDivision]:
    """Returns the divisions that commands know by name: those of this library, then those of add-on packages."""
    others = {name: point.load() for name, point in addons("agnncert.divisions").items()}
    return _OWN | {name: division for name, division in others.items() if name not in _OWN}


def defence_names() -> list[str]:
    """Returns the names by which commands know defences: those of divisions, and those of other kinds and packages."""
    return [*named_divisions(), *addons("agnncert.defence_names")]


def named_division(name: str) -> NamedDivision:
    """Returns the entry of a division in the table of names.

    Raises:
        MissingPackage: The division is in an add-on package that is not installed.
        SettingsError: No division has this name.
    """
    known = named_divisions()
    if name in known:
        return known[name]
    if name in ADD_ON_DIVISIONS:
        raise missing(ADD_ON_DIVISIONS[name][0], f"the division {name}")
    raise SettingsError(f'no division is called "{name}": {did_you_mean(name, known)}')


def division_named(name: str, num_groups: int | None = None, hash: str = "md5", task: str = "node") -> Any:
    """Returns the division that a name stands for.

    Args:
        name: One of :func:`named_divisions`.
        num_groups: Number of groups (in a grid, on each side). Defaults to the one in the table for the task.
        hash: Hash function that assigns groups.
        task: ``"node"`` or ``"graph"``.

    Raises:
        SettingsError: No division has this name, it is not for this task, or it takes no number of groups.

    Example:
        >>> division_named("gated", 60)
        GatedNodeCentric(num_groups=60, hash='md5', self_loops=False)
    """
    entry = named_division(name)
    if num_groups is not None and not entry.counts:
        raise SettingsError(f"the {name} division takes no number of groups ({num_groups}): the graph has as many.")
    settings: dict[str, Any] = {}
    if num_groups is not None:
        settings.update(dict.fromkeys(entry.counts, num_groups))
    if entry.counts:
        settings["hash"] = hash
    return entry.build(task, settings)


def title_of(division: Any) -> str:
    """Returns the name of a division in tables of results: its title or, if it is a user's own, the name of its class.

    Example:
        >>> title_of(division_named("edge")), title_of(division_named("gated"))
        ('edge-centric', 'gated')
    """
    for entry in reversed(named_divisions().values()):  # "gated" before "node", which fits a gated division too
        if isinstance(division, entry.load()):
            return entry.title
    return type(division).__name__


def parse_division(text: str) -> Any:
    """Returns the built-in division that prints as ``text``.

    Raises:
        DivisionError: There is none.

    Example:
        >>> parse_division("node-centric(T=60, hash=sha1, key=u64le)")
        NodeCentric(num_groups=60, hash='sha1', self_loops=False)
        >>> parse_division("node-centric(T=inf)")
        PerNeighbour()
    """
    match = re.match(r"[a-z-]+\(T=(\d+)(?:x(\d+))?, hash=(\w+)", text)
    numbers = [int(number) for number in match.groups()[:2] if number] if match else []
    hash_setting = {"hash": match[3]} if match else {}
    for entry in named_divisions().values():
        if len(numbers) != len(entry.counts):
            continue
        settings = {**dict(zip(entry.counts, numbers, strict=True)), **hash_setting}
        for division in _with_all_flags(entry, settings):
            if str(division) == text:
                return division
    raise DivisionError(f'cannot rebuild the division "{text}": it is not one of the built-in ones.')


def _with_all_flags(entry: NamedDivision, settings: Mapping[str, Any]) -> Iterator[Any]:
    """Yields the divisions that differ in their switches; none if the other settings are not valid."""
    for values in itertools.product((False, True), repeat=len(entry.flags)):
        flags = dict(zip(entry.flags, values, strict=True))
        try:
            yield entry.load()(**settings, **flags)
        except DivisionError:  # no such number of groups, or hash
            continue
