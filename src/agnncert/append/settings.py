"""``AppendSettings``: the settings of append-only scores, without what needs torch."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from agnncert.append.program import THREATS, Program, Threat
from agnncert.append.record import MOST_DELETIONS
from agnncert.errors import SettingsError, did_you_mean


@dataclass(frozen=True)
class AppendSettings:
    """Settings of scores that appended rows can only raise.

    Attributes:
        program: What is counted. ``None`` writes the usual program for the graph.
        threat: What an attacker appends: "fresh" (new pairs and accounts, in any graph), "ledger" (anything, but the
            present payers of the target send nothing more; for graphs that say who sent a row) or "grow" (anything).
        deletions: How many pairs of accounts may be deleted besides, at most. A certificate has a table for each
            number up to it.
        positive: The class that is flagged, by number or by name. ``None`` is the rarest in the training part.
        ensembles: How many ensembles of trees are added up.
        trees: Trees of each ensemble.
        judge: Whether rows are judged one by one, and counted by that.
        known: Whether it is counted how near an account is to those that were known at training time.
        scales: For columns of edges by name, of which function the graph holds the inverse: "sinh" or "exp".
        rises: Names of columns that can only rise when more is paid between the same accounts. Columns called
            "amount" and "count", and sums and numbers of events, are taken to.
    """

    program: Program | None = None
    threat: Threat = "fresh"
    deletions: int = 0
    positive: int | str | None = None
    ensembles: int = 3
    trees: int = 150
    judge: bool = True
    known: bool = True
    scales: Mapping[str, str] = field(default_factory=dict, hash=False)
    rises: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.threat not in THREATS:
            raise SettingsError(f"threat={self.threat!r:.60}: {did_you_mean(str(self.threat), THREATS)}")
        if self.program is not None and not isinstance(self.program, Program):
            raise SettingsError(
                f"program={self.program!r:.60}: expected an agnncert.append.program.Program, or None for the usual one."
            )
        for name, least, most in (("deletions", 0, MOST_DELETIONS), ("ensembles", 1, 20), ("trees", 1, 2000)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
                raise SettingsError(f"{name}={value!r:.60}: expected a whole number from {least} to {most:,}.")
        for name in ("judge", "known"):
            if not isinstance(getattr(self, name), bool):
                raise SettingsError(f"{name}={getattr(self, name)!r:.60}: expected True or False.")
        for name, scale in self.scales.items():
            if scale not in ("sinh", "exp"):
                raise SettingsError(f'scales={{"{name}": {scale!r:.60}}}: expected "sinh" or "exp".')
        if isinstance(self.rises, list):
            object.__setattr__(self, "rises", tuple(self.rises))

    def __str__(self) -> str:
        return f"append-only(threat={self.threat}, deletions={self.deletions})"
