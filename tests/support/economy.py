"""What makes every test cheaper and changes nothing that a test can see."""

import functools
import gc
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import _pytest.tmpdir
import pytest
import typer.main
from _pytest.doctest import DoctestModule
from _pytest.logging import catching_logs
from _pytest.unraisableexception import gc_collect_iterations_key
from jinja2 import BytecodeCache

SHORTEST = 0.005  # seconds; ``--durations`` shows nothing that took less


class KeptTemplates(BytecodeCache):
    """Templates that were compiled in this process. PyG compiles the same two anew for every class of layers."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], Any] = {}

    def load_bytecode(self, bucket: Any) -> None:
        bucket.code = self.kept.get((bucket.key, bucket.checksum))

    def dump_bytecode(self, bucket: Any) -> None:
        self.kept[bucket.key, bucket.checksum] = bucket.code


def made_once(make: Any) -> Any:
    """A maker of graphs that makes them once (0.1 s, and 0.7 s for many); each caller gets a copy."""
    kept = functools.cache(make)

    @functools.wraps(make)
    def copied(*args: Any, **how: Any) -> Any:
        made = kept(*args, **how)
        return [graph.clone() for graph in made] if isinstance(made, list) else made.clone()

    return copied


def begin(config: pytest.Config) -> None:
    """Keeps what would be made anew again and again. Called once, when all tests have been imported."""
    if (template := sys.modules.get("torch_geometric.template")) is not None:
        template.Environment = functools.partial(template.Environment, bytecode_cache=KeptTemplates())
    if torch := sys.modules.get("torch"):
        for device in (torch.cuda, torch.xpu, torch.mtia):
            if not device.is_available():  # its seed would be kept for later, with the text of the whole stack
                device.manual_seed_all = lambda seed: None
    # An application has the same commands at every call, and to make them takes longer than most commands do.
    typer.main.get_command = functools.cache(typer.main.get_command)
    catching_logs.__enter__ = catch_logs
    if load := sys.modules.get("agnncert.datasets.load"):
        for maker in (load.digits_knn, load.digits_grid, load.accounts):
            setattr(load, maker.__name__, made_once(maker))
    _pytest.tmpdir._force_symlink = lambda *names: None  # links to the newest folders, which nothing uses
    config.stash[gc_collect_iterations_key] = 0  # collecting garbage finds errors that are ignored here
    tell_less(config)
    os.fsync = lambda file: None  # files of tests need not survive a power failure; a flush takes 5 ms


def tell_less(config: pytest.Config) -> None:
    """Stops a worker from sending what is neither printed nor counted: half of its messages, and each wakes a process."""
    worker = next((p for p in config.pluginmanager.get_plugins() if type(p).__name__ == "WorkerInteractor"), None)
    if worker is None or config.option.xmlpath:  # a report in XML has an entry for every end of a test
        return
    send = worker.sendevent

    def sendevent(name: str, **event: Any) -> None:
        told = event.get("data", {})
        passed_beside = told.get("outcome") == "passed" and told["when"] != "call"
        if name != "logstart" and not (passed_beside and told["duration"] < SHORTEST):
            send(name, **event)

    worker.sendevent = sendevent


def catch_logs(catching: catching_logs, enter: Any = catching_logs.__enter__) -> Any:
    """Captures logs at the root alone. pytest looks at each of 400 loggers of other packages too, six times per test."""
    if catching.level is not None:
        return enter(catching)
    logging.root.addHandler(catching.handler)
    catching.attached_loggers.append(logging.root)
    return catching.handler


def collect_examples(module: DoctestModule, collect: Any = DoctestModule.collect) -> Any:
    """The examples of a module. Where there are none, pytest need not look at every function for some."""
    return collect(module) if ">>>" in module.path.read_text(encoding="utf-8") else ()


@contextmanager
def importing() -> Iterator[None]:
    """What is imported and collected within stays: the garbage collector need not look at it, now or later."""
    gc.disable()
    DoctestModule.collect = collect_examples
    sys.modules.setdefault("transformers", None)  # PyTorch Geometric would import it, which no test needs, for a second
    try:
        yield
    finally:
        if sys.modules["transformers"] is None:
            del sys.modules["transformers"]
        gc.freeze()
        gc.set_threshold(100_000, 20, 20)
        gc.enable()
