"""What a command prints: text for people, JSON for machines, and progress."""

import json
import logging
import math
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from agnncert.progress import OnProgress, Progress
from agnncert.proving import words
from agnncert.report.tables import laid_out

_SECONDS_BETWEEN_LINES = 15.0


class Screen:
    """Where a command writes. With ``--json`` stdout is kept for the JSON alone."""

    def __init__(self, as_json: bool = False) -> None:
        self.as_json = as_json

    def say(self, text: str = "") -> None:
        """A line for people."""
        print(text, file=self._lines, flush=True)

    def result(self, result: dict[str, Any], text: str = "") -> None:
        """The outcome: as JSON for machines, as ``text`` for people."""
        try:
            print(json.dumps(_plain(result), indent=2, ensure_ascii=False) if self.as_json else text, flush=True)
        except BrokenPipeError:  # the reader of our output, such as head, has closed it
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    @property
    def _lines(self) -> TextIO:
        return sys.stderr if self.as_json else sys.stdout

    @contextmanager
    def following(self) -> Iterator[OnProgress]:
        """Shows what a run logs, and its progress: a bar on a terminal, now and then a line elsewhere."""
        handler = _ToScreen(self)
        handler.addFilter(_is_for_people)
        handler.setFormatter(_Plain())
        library = logging.getLogger("agnncert")
        level = library.level
        library.addHandler(handler)
        library.setLevel(logging.INFO)
        show = _Bar() if sys.stderr.isatty() else _Lines()
        try:
            yield show
        finally:
            show.close()
            library.removeHandler(handler)
            library.setLevel(level)


class _ToScreen(logging.Handler):
    """Log lines on the screen. The stream is looked up each time: a bar that is drawn puts them above itself."""

    def __init__(self, screen: Screen) -> None:
        super().__init__()
        self.screen = screen

    def emit(self, record: logging.LogRecord) -> None:
        """Prints a record."""
        self.screen.say(self.format(record))


def _is_for_people(record: logging.LogRecord) -> bool:
    ours = record.name.startswith(("agnncert.cli", "agnncert_", "experiments"))
    wanted = ours or record.levelno >= logging.WARNING
    return wanted and not getattr(record, "file_only", False)


class _Plain(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return ("warning: " if record.levelno >= logging.WARNING else "") + record.getMessage()


def _left(progress: Progress) -> str:
    """The time that is left, and the memory of the process so far; empty if the time is unknown."""
    if not math.isfinite(progress.seconds_left):
        return ""
    try:
        import resource
    except ImportError:  # not on Windows
        memory = ""
    else:
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        memory = f", the process has used up to {peak / 1e9:.1f} GB"
    minutes, seconds = divmod(round(progress.seconds_left), 60)
    return f"about {f'{minutes} min' if minutes else f'{seconds} s'} left{memory}"


class _Lines:
    """Progress where stderr is not a terminal: a line every 15 seconds, the first one at once if work takes longer.

    Work that has a line also has one when it is done, or has ended early.
    """

    def __init__(self) -> None:
        self.what, self.last = "", time.monotonic()
        self.latest: Progress | None = None

    def __call__(self, progress: Progress) -> None:
        """Prints how far it is, unless a line was printed a moment ago."""
        if self.latest is not None and self.latest.what != progress.what:
            self.close()
        self.latest = progress
        now, is_first = time.monotonic(), self.what != progress.what
        due = now - self.last >= _SECONDS_BETWEEN_LINES or (is_first and progress.seconds_left > _SECONDS_BETWEEN_LINES)
        if not due and (is_first or progress.done < progress.total):
            return
        self.what, self.last, left = progress.what, now, _left(progress)
        text = f"{progress.what}: {progress.done} of {progress.total}{', ' if left else ''}{left}"
        print(text, file=sys.stderr, flush=True)

    def close(self) -> None:
        """Says that work which had a line has ended before its last step, as training does."""
        if self.latest is not None and self.what == self.latest.what and self.latest.done < self.latest.total:
            print(f"{self.what}: ended after {self.latest.done} of {self.latest.total}", file=sys.stderr, flush=True)
        self.latest = None


class _Bar:
    """Progress on a terminal: one bar, which restarts with each piece of work and vanishes at the end."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
        from rich.progress import Progress as RichProgress

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        details = (TextColumn("{task.fields[left]}"), TextColumn("{task.fields[detail]}"))
        self.bar = RichProgress(*columns, *details, console=Console(stderr=True), transient=True)
        self.what: str | None = None

    def __call__(self, progress: Progress) -> None:
        """Moves the bar."""
        if self.what != progress.what:
            for task in self.bar.task_ids:
                self.bar.remove_task(task)
            self.bar.add_task(progress.what, total=progress.total, left="", detail="")
            self.bar.start()
            self.what = progress.what
        self.bar.update(self.bar.task_ids[0], completed=progress.done, left=_left(progress), detail=progress.detail)

    def close(self) -> None:
        """Takes the bar off the screen."""
        self.bar.stop()


def percent(share: float) -> str:
    """A share that is good to have for people, rounded down as in reports."""
    return words.percent(share, words.LOWER).replace("\u00a0", " ")


def table(titles: list[str], rows: list[list[Any]]) -> str:
    """Rows as aligned columns; numbers to the right.

    Example:
        >>> print(table(["name", "size"], [["a", 10], ["bc", 7]]))
        name  size
        a       10
        bc       7
    """
    right = [bool(rows) and all(isinstance(row[k], int | float) for row in rows) for k in range(len(titles))]
    cells = [[_cell(value) for value in row] for row in rows]
    return laid_out("text", titles, cells, "".join("r" if number else "l" for number in right))


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.2f}" if not value.is_integer() else f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _plain(value: Any) -> Any:
    """The same with what JSON lacks (infinity, paths, numpy) as text or null."""
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "inf" if value > 0 else None
    return value if isinstance(value, str | int | float | bool | None) else str(value)
