"""Python programs in processes of their own that need not wait for their imports.

One process loads the large packages of others and forks for every program. This library, and what the program itself
imports, are imported anew each time, as ``python`` would.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).resolve().parents[2]
SOURCES = [PROJECT / "src", *sorted(PROJECT.glob("packages/*/src"))]
TIME_LIMIT = 120  # seconds

_SERVER = """
import gc, json, os, runpy, signal, sys, traceback

gc.disable()  # all of this stays
sys.modules["transformers"] = None  # PyTorch Geometric would import it, which takes longer than the rest of it
import pandas, scipy.stats, sklearn.datasets, torch_geometric
del sys.modules["transformers"]
gc.freeze()
gc.enable()

def program(asked):
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    for number, file in enumerate([os.devnull, asked["out"], asked["err"]]):
        os.dup2(os.open(file, os.O_RDWR), number)
    sys.stdin, sys.stdout, sys.stderr = (open(k, mode, closefd=False) for k, mode in enumerate("rww"))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    how, *words = asked["words"]
    if how == "-c":
        code, *words = words
        sys.argv, sys.path[0] = ["-c", *words], ""
        exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})
    elif how == "-m":
        name, *words = words
        sys.argv, sys.path[0] = [name, *words], asked["folder"]
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    else:
        sys.argv, sys.path[0] = [how, *words], os.path.dirname(how)
        runpy.run_path(how, run_name="__main__")

def ended(asked):
    try:
        program(asked)
    except SystemExit as stop:
        if isinstance(stop.code, str):
            print(stop.code, file=sys.stderr)
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0

for line in sys.stdin:
    asked = json.loads(line)
    if "pid" in asked:
        done, status = os.waitpid(asked["pid"], os.WNOHANG)
        print(json.dumps(os.waitstatus_to_exitcode(status) if done else None), flush=True)
    elif pid := os.fork():
        print(pid, flush=True)
    else:
        status = ended(asked)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
"""


@dataclass
class Program:
    """A program that was started: send it signals by its number, or wait for its end."""

    server: "Warm"
    pid: int
    out: Path
    err: Path
    status: int | None = None  # once it was seen to have ended

    def is_running(self) -> bool:
        """Whether it has not ended yet."""
        if self.status is None:
            self.status = self.server._ask({"pid": self.pid})
        return self.status is None

    def first_line(self, seconds: float = TIME_LIMIT) -> str:
        """The first line that it prints, or what there is of it when it has ended or taken too long."""
        give_up = time.monotonic() + seconds
        while (
            not (text := self.out.read_text()).partition("\n")[1] and self.is_running() and time.monotonic() < give_up
        ):
            time.sleep(0.02)
        return text.partition("\n")[0]

    def wait(self, seconds: float = TIME_LIMIT) -> int:
        """Its exit status; one that takes too long is killed."""
        give_up = time.monotonic() + seconds
        while self.is_running():
            if time.monotonic() > give_up:
                os.kill(self.pid, signal.SIGKILL)
                raise TimeoutError(f"not done after {seconds} seconds: {self.err.read_text()}")
            time.sleep(0.01)
        return self.status


class Warm:
    """Starts programs; ``words`` are what stands behind ``python``: a file, ``-c`` and code, or ``-m`` and a module."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.started = folder, 0
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, SOURCES)), "OMP_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def start(
        self, *words: object, folder: Path | None = None, environment: Mapping[str, str] | None = None
    ) -> Program:
        """Starts one in a folder, else in the present one, with more in its environment."""
        self.started += 1
        out, err = (self.folder / f"{self.started}.{name}" for name in ("out", "err"))
        out.touch()
        err.touch()
        asked = {
            "words": list(map(str, words)), "folder": str(folder or Path.cwd()), "out": str(out), "err": str(err),
            "environment": {**os.environ, **(environment or {})},
        }  # fmt: skip
        return Program(self, self._ask(asked), out, err)

    def run(self, *words: object, **how: Any) -> subprocess.CompletedProcess[str]:
        """Starts one and waits for it: what ``subprocess.run`` with captured text returns."""
        begun = self.start(*words, **how)
        status = begun.wait()
        return subprocess.CompletedProcess(words, status, begun.out.read_text(), begun.err.read_text())

    def close(self) -> None:
        """Ends the process that forks."""
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def _ask(self, asked: dict[str, Any]) -> Any:
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())
