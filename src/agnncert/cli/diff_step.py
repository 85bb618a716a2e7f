"""The step that compares: ``diff_runs`` says what changed between two runs or certificates."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from agnncert.certificates.budget import Budget
from agnncert.cli.folder import RunFolder, find_run
from agnncert.errors import SettingsError
from agnncert.proving.certificate import Certificate, load_certificate
from agnncert.proving.difference import CHANGES, Change, Difference, diff
from agnncert.report.difference import CLASS_TITLES, TITLES, class_rows, target_rows, titles_in, write_difference
from agnncert.report.tables import laid_out

MOST_LINES = 20  # targets of each kind of change that a terminal shows


@dataclass(frozen=True)
class Compared:
    """What ``diff_runs`` returns.

    Attributes:
        difference: What changed.
        page: The page, if one was written.
        words: What the later run calls nodes, edges and neighbours.
    """

    difference: Difference
    page: Path | None
    words: Mapping[str, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """All of it for a terminal, with the first targets of each kind of change."""
        parts = [str(self.difference)]
        parts.append(laid_out("text", CLASS_TITLES, class_rows(self.difference), "l" + "r" * (len(CLASS_TITLES) - 1)))
        for change, words in CHANGES.items():
            changed = self.difference.of(change)
            if changed:
                shown = laid_out("text", titles_in(self.words), target_rows(changed[:MOST_LINES]), "l" * len(TITLES))
                rest = len(changed) - MOST_LINES
                more = f"\n… and {rest:,} more: --json, or --page FILE" if rest > 0 else ""
                parts.append(f"{len(changed):,} {words}:\n{shown}{more}")
        return "\n\n".join(parts)


def diff_runs(old: Path, new: Path, at: Budget | float | None, page: Path | None = None) -> Compared:
    """Compares the certificates of two runs, or two certificate files.

    Args:
        old: The earlier run folder or certificate.
        new: The later one.
        at: The budget or size at which labels count as certified; ``None`` for the least attack.
        page: A page to write. None by default.
    """
    difference = diff(_certificate(old), _certificate(new), at, same_weights=_same_weights(old, new))
    run = find_run(new) if new.is_dir() else None
    words = {} if run is None else run.words
    if page is not None:
        write_difference(difference, page, str(old), str(new), words)
    return Compared(difference, page, words)


def _certificate(place: Path) -> Certificate:
    return load_certificate(place / "certificate.cert" if place.is_dir() else place)


def _same_weights(old: Path, new: Path) -> bool | None:
    """Returns whether two run folders hold the same trained weights. None if one of them is none, or has none."""
    digests = [_weights(find_run(place)) if place.is_dir() else None for place in (old, new)]
    if None in digests:
        return None
    return digests[0] == digests[1]


def _weights(run: RunFolder | None) -> str | None:
    if run is None or not run.weights.is_file():
        return None
    return hashlib.sha256(run.weights.read_bytes()).hexdigest()


def failing(difference: Difference, fail_on: str) -> list[Change]:
    """Returns which of the named kinds of change there are.

    Raises:
        SettingsError: A kind of change is unknown.
    """
    names = {name.strip() for name in fail_on.split(",")} - {"", "nothing"}
    unknown = names.difference(CHANGES)
    if unknown:
        raise SettingsError(f"--fail-on {min(unknown)}: expected some of {', '.join(CHANGES)}, or nothing.")
    return [change for change, number in difference.counts.items() if number and change in names]
