"""What a forger has at hand: an honest certificate, and honest certificates about other things to borrow from."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np

from tests.soundness.forger.forging import Draft, drafted, lay_open
from tests.soundness.forger.honest import Case, cases, golden_cases, strangers

Random = np.random.Generator


class Pointless(Exception):
    """The alteration cannot be made in this draft."""


# One or two of every kind of certificate, of every kind of ids, and of data with and without true classes.
SOME = (
    "edge", "edge-words", "node", "gated", "gnncert-en", "edges-only", "custom", "graphs-edge",
    "graphs-node-rows", "graphs-gnncert-n", "graphs-custom", "node-prior", "own-edge-arcs", "own-node", "graphs-own-edge", "rs", "sparse-rs", "bi-rs",
    "interception", "graphs-rs",
)  # fmt: skip


def require(condition: Any) -> None:
    """Raises ``Pointless`` unless the condition is met."""
    if not condition:
        raise Pointless


def pick(rng: Random, values: Iterable[Any]) -> Any:
    """One of the values; sets are put in order first, so that a seed means the same everywhere."""
    listed = sorted(values, key=repr) if isinstance(values, set) else list(values)
    require(listed)
    return listed[int(rng.integers(len(listed)))]


@dataclass(frozen=True)
class World:
    """An honest certificate, and others to borrow from.

    Attributes:
        case: What the honest certificate was made from.
        honest: Its draft.
        least_tolerance: The tolerance that ``certify`` measures for this model, graph and division.
    """

    case: Case
    honest: Draft
    least_tolerance: float
    _strangers: dict[str, Callable[[], Draft]] = field(repr=False)

    @property
    def strangers(self) -> list[str]:
        """Names of certificates about something else."""
        return list(self._strangers)

    def stranger(self, name: str) -> Draft:
        """A certificate about something else; made when it is first asked for."""
        return self._strangers[name]()


@cache
def world_of(name: str) -> World:
    """The world of one of the cases."""
    case = {**all_cases(), **all_golden_cases()}[name]
    honest = drafted(case.certify(), case.budgets) if case.file is None else lay_open(case.file)
    measured = replace(case, settings={k: v for k, v in case.settings.items() if k != "tolerance"})
    found: dict[str, Callable[[], Draft]] = {}
    for what, other in strangers(case):
        found[what] = cache(lambda other=other: drafted(other.certify(), other.budgets))
    rest = sorted(set(range(case.total)) - set(honest.arrays["row"].tolist()))
    if rest:
        found["the other targets"] = cache(lambda: drafted(case.certify(rest), case.budgets))
    for other_name in all_cases():
        if other_name != name:
            found[f"case {other_name}"] = cache(lambda other_name=other_name: world_of(other_name).honest)
    is_least = case.file is None and "tolerance" not in case.settings
    least = honest.claim["tolerance"] if is_least else measured.certify().claim.tolerance
    return World(case, honest, float(least), found)


@cache
def all_cases() -> dict[str, Case]:
    """The cases, made once."""
    return cases()


@cache
def all_golden_cases() -> dict[str, Case]:
    """The golden files, read once."""
    return golden_cases()
