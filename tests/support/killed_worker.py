"""A Ray cluster whose first worker is killed in the middle of its work; every later one is well-behaved."""

import os
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import agnncert as ac
from agnncert.engine.workers import Part, Prepared, Result, Shared


@dataclass(frozen=True)
class MortalRay(ac.Ray):
    """``flag`` is written by the worker that dies, so that only one does."""

    flag: str = ""

    def run(
        self,
        shared: Shared,
        prepare: Callable[[Shared], Prepared],
        task: Callable[[Prepared, Part], Result],
        parts: Sequence[Part],
    ) -> Iterator[tuple[Part, Result]]:
        return super().run((shared, prepare, task, self.flag), _prepared, _deadly_task, parts)


def _prepared(everything):
    shared, prepare, task, flag = everything
    return prepare(shared), task, flag


def _deadly_task(everything, part):
    prepared, task, flag = everything
    try:
        Path(flag).touch(exist_ok=False)
    except FileExistsError:
        return task(prepared, part)
    os.kill(os.getpid(), signal.SIGKILL)
