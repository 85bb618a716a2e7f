"""Comparing defences on one dataset: what ``agnncert compare DATA`` does, and the folder that it leaves."""

import logging
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agnncert.comparison import Comparison, Threat, compare
from agnncert.graph import infer_task
from agnncert.runs.defences import defence_named
from agnncert.runs.inputs import fresh_model, load_data
from agnncert.runs.modules import is_module_spec
from agnncert.runs.progress import OnProgress, Progress
from agnncert.runs.settings import DataSettings, ModelSettings

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Compared:
    """What a comparison left.

    Attributes:
        folder: Where tables, figures and certificates are.
        comparison: The rows.
        files: Tables and figures.
    """

    folder: Path
    comparison: Comparison
    files: tuple[Path, ...]


def compare_run(
    settings: DataSettings,
    defences: Sequence[str],
    values: Callable[[list[str]], Mapping[str, Any]],
    out: str | Path | None = None,
    on_progress: OnProgress | None = None,
    **how: Any,
) -> Compared:
    """Trains and certifies with every defence and writes tables and figures.

    Interrupted, the same call goes on where it stopped; another attack on the same folder uses the
    certificates that are there.

    Args:
        settings: Which data.
        defences: Names of defences, with settings if need be; those that cover the attack if empty.
        values: Reads NAME=VALUE words.
        out: The folder; one below ``runs`` when not given.
        on_progress: Told before every defence.
        **how: Arguments of :func:`agnncert.compare`.
    """
    threat = Threat(how["attack"], how["edges_per_injected"], how["own_features"])
    data = load_data(settings)
    task, name = infer_task(data), getattr(data, "name", None) or Path(settings.data).name
    called = how["model"]
    if is_module_spec(called):
        own = ModelSettings(data=settings.data, model=called, set=how["model_args"], seed=settings.seed)
        how |= {"model": lambda: fresh_model(own, data), "model_args": {}}
    chosen = [defence_named(text, task, values) for text in defences] or None
    folder = Path(out) if out is not None else Path("runs") / _slug(f"{name}-{called}-comparison")
    comparison = compare(
        data, chosen, seed=settings.seed, folder=folder / "certificates", progress=_teller(on_progress), **how
    )
    tau = f"-{threat.edges_per_injected:g}" if threat.kind == "injection" else ""
    files = comparison.save(folder, _slug(f"{threat.kind}{tau}{'-own' if threat.own_features else ''}"))
    return Compared(folder, comparison, files)


def _slug(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.")


def _teller(on_progress: OnProgress | None) -> Callable[[int, int, str], None]:
    begin = time.perf_counter()

    def tell(done: int, total: int, name: str) -> None:
        if name:
            log.info("%d of %d: %s", done + 1, total, name)
        if on_progress is not None:
            left = (time.perf_counter() - begin) / done * (total - done) if done else 0.0
            on_progress(Progress("comparing", done, total, left, name))

    return tell
