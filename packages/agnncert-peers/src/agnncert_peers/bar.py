"""A progress bar that appears by itself: in a terminal and in a notebook, and nowhere else."""

import math
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from agnncert.progress import OnProgress, Progress


class Follower:
    """What is told how far a run of several steps is. This one tells nobody.

    Attributes:
        within: Is called with the progress of the step that is being done; ``None`` if nobody wants to know.
    """

    within: OnProgress | None = None

    def __call__(self, progress: Progress) -> None:
        """Is called before every step and at the end."""

    def close(self) -> None:
        """Is called at the end, whatever happened."""


class _ToUser(Follower):
    """Passes on to the function of a user what happens between steps."""

    def __init__(self, progress: OnProgress) -> None:
        self._progress = progress

    def __call__(self, progress: Progress) -> None:
        self._progress(progress)


class _Bar(Follower):
    """Draws a bar, with the step that is being done beside it.

    A step is full only when it has ended. It consists of pieces, such as training and votes, and how many is not known:
    each fills half of what is left of the step.
    """

    def __init__(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # without ipywidgets a notebook shows a bar of text, which is enough
            from tqdm.auto import tqdm

        self._bar = tqdm(total=1, bar_format="{percentage:3.0f}%|{bar}| {elapsed}{postfix}", leave=False)
        self._done = 0
        self._name = ""
        self._pieces: dict[str, int] = {}  # of the step, in the order in which they came
        self.within = self._within_step

    def __call__(self, progress: Progress) -> None:
        self._done = progress.done
        self._name = progress.detail
        self._pieces = {}
        self._bar.total = max(progress.total, 1)
        self._show(progress.done, self._name)

    def _within_step(self, progress: Progress) -> None:
        place = self._pieces.setdefault(progress.what, len(self._pieces))
        fraction = min(progress.done / max(progress.total, 1), 1.0)
        left = "" if math.isnan(progress.seconds_left) else f", {progress.seconds_left:.0f} s left"
        words = f"{self._name}: {progress.what} {progress.done:,} of {progress.total:,}{left}"
        self._show(self._done + 1 - (1 - fraction / 2) / 2**place, words)

    def _show(self, done: float, words: str) -> None:
        """Shows how much is done. A piece may come several times, each from 0 on: the bar never goes back."""
        self._bar.n = max(self._bar.n, done)
        self._bar.set_postfix_str(words, refresh=False)
        self._bar.refresh()

    def close(self) -> None:
        self._bar.close()


@contextmanager
def following(progress: OnProgress | None) -> Iterator[Follower]:
    """Yields who is told about progress.

    Args:
        progress: A function of the user. Without one a bar is drawn if somebody can see it: if standard error is a
            terminal, or in a notebook.
    """
    follower = _follower(progress)
    try:
        yield follower
    finally:
        follower.close()


def _follower(progress: OnProgress | None) -> Follower:
    if progress is not None:
        return _ToUser(progress)
    if sys.stderr.isatty() or in_notebook():
        return _Bar()
    return Follower()


def in_notebook() -> bool:
    """Tells whether this process is the kernel of a notebook."""
    ipython: Any = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and type(shell).__name__ == "ZMQInteractiveShell"
