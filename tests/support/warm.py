"""Python programs in processes of their own that need not wait for their imports.

One process loads the large packages of others and forks for every program. This library, and what the program itself
imports, are imported anew each time, as ``python`` would. That process begins as the script ``FIRST`` does: it imports this
library, with nothing there before, and forks for the script at once. So one program shows that the library needs no more.
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
FIRST = PROJECT / "examples" / "own_graph.py"
SERVER = Path(__file__).with_name("warm_server.py")
TIME_LIMIT = 120  # seconds

# What a process does before its own program if this is its ``sitecustomize``: it has a fork do the rest, and waits.
_TO_THE_DOOR = """
import json, os, socket, sys
if sys.orig_argv[1:2] == [{file!r}]:
    with socket.socket(socket.AF_UNIX) as door:
        door.connect({door!r})
        asked = {{"words": sys.orig_argv[1:], "folder": os.getcwd(), "environment": dict(os.environ)}}
        socket.send_fds(door, [json.dumps(asked).encode()], [0, 1, 2])
        door.recv(1)
    os._exit(0)
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

    def result(self) -> subprocess.CompletedProcess[str]:
        """Waits for its end: what ``subprocess.run`` with captured text returns."""
        return subprocess.CompletedProcess((), self.wait(), self.out.read_text(), self.err.read_text())


class Warm:
    """Starts programs; ``words`` are what stands behind ``python``: a file, ``-c`` and code, or ``-m`` and a module."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.started = folder, 0
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, SOURCES)), "OMP_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self.first = self.start(FIRST, folder=folder)

    def start(
        self, *words: object, folder: Path | None = None, environment: Mapping[str, str] | None = None
    ) -> Program:
        """Starts one in a folder, else in the present one, with more in its environment."""
        self.started += 1
        out, err = (self.folder / f"{self.started}.{name}" for name in ("out", "err"))
        out.touch()
        err.touch()
        asked = {
            "words": list(map(str, words)), "folder": str(folder or Path.cwd()), "files": [os.devnull, str(out), str(err)],
            "environment": {**os.environ, **(environment or {})},
        }  # fmt: skip
        return Program(self, self._ask(asked), out, err)

    def run(self, *words: object, **how: Any) -> subprocess.CompletedProcess[str]:
        """Starts one and waits for it."""
        return self.start(*words, **how).result()

    def open_door(self, file: str) -> Path:
        """A folder for ``PYTHONPATH``: with it, whoever starts ``python file`` gets a fork instead."""
        folder = self.folder / "door"
        folder.mkdir()
        self._ask({"door": str(folder / "socket")})
        (folder / "sitecustomize.py").write_text(_TO_THE_DOOR.format(file=file, door=str(folder / "socket")))
        return folder

    def close(self) -> None:
        """Ends the process that forks."""
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def _ask(self, asked: dict[str, Any]) -> Any:
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())
