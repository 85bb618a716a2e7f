"""The built-in divisions by name: one table of what commands, settings and searches need to know about each.

Imports no torch, so that names can be listed and checked before anything heavy is loaded. What a division proves stands
in ``agnncert.certificates.rules``.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agnncert.errors import DivisionError, SettingsError, did_you_mean


@dataclass(frozen=True)
class NamedDivision:
    """A division that commands and settings call by name.

    Attributes:
        name: Its name in commands and settings.
        title: Its name in tables of results.
        cls: Name of its class.
        fixed: Arguments of the class that follow from the name.
        tasks: Tasks that it is for.
        counts: Arguments of the class that are numbers of groups.
        usual: The usual number of groups (for each of ``counts``) by task.
    """

    name: str
    title: str
    cls: str
    fixed: Mapping[str, Any] = field(default_factory=dict)
    tasks: tuple[str, ...] = ("node", "graph")
    counts: tuple[str, ...] = ("num_groups",)
    usual: Mapping[str, int] = field(default_factory=lambda: {"node": 300, "graph": 30})

    def load(self) -> type[Any]:
        """The class itself; this imports torch."""
        from agnncert.divisions import edge, gnncert, node

        owners = {"EdgeCentric": edge, "NodeCentric": node}
        cls: type[Any] = getattr(owners.get(self.cls, gnncert), self.cls)
        return cls

    def build(self, task: str, settings: Mapping[str, Any]) -> Any:
        """The division with these settings, and the usual number of groups where they do not say it.

        Raises:
            SettingsError: The division is not for this task.
        """
        if task not in self.tasks:
            raise SettingsError(
                f"the {self.name} division is for {self.tasks[0]} classification: use edge or node for {task}s."
            )
        return self.load()(**{**dict.fromkeys(self.counts, self.usual[task]), **self.fixed, **settings})


_GRID = ("edge_groups", "node_groups")
DIVISIONS: dict[str, NamedDivision] = {
    entry.name: entry
    for entry in (
        NamedDivision("edge", "edge-centric", "EdgeCentric"),
        NamedDivision("node", "node-centric", "NodeCentric"),
        NamedDivision("gated", "gated", "NodeCentric", {"gate_features": True}, tasks=("node",)),
        NamedDivision("gnncert-e", "GNNCert-E", "GNNCertE"),
        NamedDivision("gnncert-n", "GNNCert-N", "GNNCertN"),
        NamedDivision("gnncert-en", "GNNCert-EN", "GNNCertEN", counts=_GRID, usual={"node": 30, "graph": 30}),
    )
}
AGNNCERT = ("edge", "node", "gated")  # AGNNCert's own, which training and certification offer by name


def division_named(name: str, num_groups: int | None = None, hash: str = "md5", task: str = "node") -> Any:
    """The division that a name stands for.

    Args:
        name: One of ``DIVISIONS``.
        num_groups: Number of groups (in a grid, on each side); the usual one for the task when not given.
        hash: Hash function that assigns groups.
        task: ``"node"`` or ``"graph"``.

    Raises:
        SettingsError: No division has this name, or it is not for this task.

    Example:
        >>> division_named("gated", 60)
        NodeCentric(num_groups=60, hash='md5', gate_features=True, self_loops=False)
    """
    if name not in DIVISIONS:
        raise SettingsError(f'no division is called "{name}": {did_you_mean(name, DIVISIONS)}')
    counts = {} if num_groups is None else dict.fromkeys(DIVISIONS[name].counts, num_groups)
    return DIVISIONS[name].build(task, {**counts, "hash": hash})


def title_of(division: Any) -> str:
    """The name of a division in tables of results: its title or, if it is a user's own, the name of its class.

    Example:
        >>> title_of(division_named("edge")), title_of(division_named("gated"))
        ('edge-centric', 'gated')
    """
    for entry in reversed(DIVISIONS.values()):  # "gated" before "node", which fits a gated division too
        settings = {name: getattr(division, name, None) for name in entry.fixed}
        if isinstance(division, entry.load()) and settings == entry.fixed:
            return entry.title
    return type(division).__name__


def parse_division(text: str) -> Any:
    """The built-in division that prints as ``text``.

    Raises:
        DivisionError: It is a user's own, or of a version that hashes otherwise.

    Example:
        >>> parse_division("node-centric(T=60, hash=sha1, key=u64le)")
        NodeCentric(num_groups=60, hash='sha1', gate_features=False, self_loops=False)
        >>> parse_division("gnncert-en(T=30x20, hash=md5, key=u64le)")
        GNNCertEN(edge_groups=30, node_groups=20, hash='md5')
        >>> parse_division("edge-centric(T=inf)")
        EdgeCentric(num_groups=inf, hash='md5', self_loops=False)
    """
    match = re.match(r"[a-z-]+\(T=(\d+|inf)(?:x(\d+))?(?:, hash=(\w+))?", text)
    numbers = [math.inf if number == "inf" else int(number) for number in match.groups()[:2] if number] if match else []
    for entry in DIVISIONS.values():
        if match is None or len(numbers) != len(entry.counts):
            continue
        settings = {**dict(zip(entry.counts, numbers, strict=True)), "hash": match[3] or "md5", **entry.fixed}
        for loops in ({}, {"self_loops": True}) if entry.name in AGNNCERT else ({},):
            try:
                division = entry.load()(**settings, **loops)
            except DivisionError:  # no such number of groups, hash, or mix of settings
                continue
            if str(division) == text:
                return division
    raise DivisionError(f'cannot rebuild the division "{text}": it is not one of the built-in ones.')
