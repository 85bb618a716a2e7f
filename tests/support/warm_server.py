"""The process behind ``Warm``: it has imported what takes long, and forks for every program.

It reads one JSON object per line and answers with one. Programs that others start come in through a socket, the door:
a process that has just begun to run hands over its words, environment and files, and waits until the fork has ended.
"""

import contextlib
import gc
import importlib
import json
import os
import re
import runpy
import select
import signal
import socket
import sys
import traceback
from pathlib import Path
from typing import Any


def run(how: str, *words: str) -> None:
    """Does what ``python how words`` does."""
    if how == "-c":
        code, *words = words
        sys.argv, sys.path[0] = ["-c", *words], ""
        exec(compile(code, "<string>", "exec"), {"__name__": "__main__"})
    elif how == "-m":
        name, *words = words
        sys.argv, sys.path[0] = [name, *words], os.getcwd()
        runpy.run_module(name, run_name="__main__", alter_sys=True)
    else:
        sys.argv, sys.path[0] = [how, *words], os.path.dirname(how)
        runpy.run_path(how, run_name="__main__")


def program(asked: dict[str, Any]) -> int:
    """Runs a program in this process; returns its exit status."""
    gc.enable()
    os.chdir(asked["folder"])
    os.environ.clear()
    os.environ.update(asked["environment"])
    for number, file in enumerate(asked["files"]):
        os.dup2(os.open(file, os.O_RDWR) if isinstance(file, str) else file, number)
    sys.stdin, sys.stdout, sys.stderr = (os.fdopen(number, mode, closefd=False) for number, mode in enumerate("rww"))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        run(*asked["words"])
    except SystemExit as stop:
        if isinstance(stop.code, str):
            print(stop.code, file=sys.stderr)
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def forked(asked: dict[str, Any]) -> int:
    """Runs a program in a process of its own; returns its number."""
    if pid := os.fork():
        return pid
    status = program(asked)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def answer(asked: dict[str, Any]) -> Any:
    """What a line that was read asks for."""
    if "pid" in asked:
        done, status = os.waitpid(asked["pid"], os.WNOHANG)
        return os.waitstatus_to_exitcode(status) if done else None
    if "door" in asked:
        door = socket.socket(socket.AF_UNIX)
        door.bind(asked["door"])
        door.listen()
        doors.append(door)
        return True
    return forked(asked)


def let_in(door: socket.socket) -> None:
    """Takes over one process. What it sent stays open in the fork alone, so that it sees when the fork ends."""
    with door.accept()[0] as guest:
        guest.setblocking(True)
        text, files, *_ = socket.recv_fds(guest, 1_000_000, 3)
        guests.append(forked({**json.loads(text), "files": files}))
        for file in files:
            os.close(file)


def import_as(script: str) -> None:
    """Imports this library and looks its names up in the order in which a script does."""
    with contextlib.suppress(Exception):  # the script will say what is wrong
        library = importlib.import_module("agnncert")
        for name in re.findall(r"\bac\.(\w+)", Path(script).read_text(encoding="utf-8")):
            getattr(library, name)


gc.disable()  # all of this stays
sys.modules["transformers"] = None  # PyTorch Geometric would import it, which takes longer than the rest of it
first = json.loads(sys.stdin.readline())
import_as(first["words"][0])
gc.freeze()
print(json.dumps(forked(first)), flush=True)
for name in [name for name in sys.modules if name.partition(".")[0] == "agnncert"]:
    del sys.modules[name]
for package in ("pandas", "scipy.stats", "sklearn.datasets", "torch_geometric"):
    importlib.import_module(package)
del sys.modules["transformers"]
for layer in ("GCNConv", "SAGEConv", "GATConv"):
    getattr(sys.modules["torch_geometric.nn"], layer)(1, 1)  # code that PyTorch Geometric writes at the first use
gc.freeze()

doors: list[socket.socket] = []
guests: list[int] = []
while True:
    ready, _, _ = select.select([sys.stdin, *doors], [], [], 0.1 if guests else None)
    for one in ready:
        if one is not sys.stdin:
            let_in(one)
        elif line := sys.stdin.readline():
            print(json.dumps(answer(json.loads(line))), flush=True)
        else:
            sys.exit()
    guests = [pid for pid in guests if not os.waitpid(pid, os.WNOHANG)[0]]
