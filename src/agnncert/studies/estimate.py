"""How long training or certification will take, and how much memory: measured on a small piece of the real work."""

import copy
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch

from agnncert.divisions import Division, num_groups_in
from agnncert.studies.run import Study, predict
from agnncert.training.preparation import prepare
from agnncert.training.settings import FitSettings
from agnncert.voting import fast
from agnncert.voting.call import bind
from agnncert.voting.lazy_rows import Features


@dataclass(frozen=True)
class Estimate:
    """Expected time, and memory of the whole process."""

    seconds: float
    megabytes: int

    def __str__(self) -> str:
        return f"about {duration(self.seconds)} and {self.megabytes / 1000:.1f} GB of memory"


def estimate_training(model: torch.nn.Module, data: Any, division: Division, settings: FitSettings) -> Estimate:
    """What ``fit`` takes if it runs through all epochs. The model itself is left as it is.

    Raises:
        AgnncertError: The model cannot be trained on this data with these settings.
    """
    twin = copy.deepcopy(model)
    with torch.random.fork_rng(devices=[]):
        setup = prepare(twin.eval(), data, division, settings)
        twin.train()
        steps = setup.objective.steps()
        first = list(islice(steps, 2))
        step = min(_seconds(work) for work in (first[0], first[-1]))
        epoch = step * (len(first) + sum(1 for _ in steps))
        twin.eval()
        evaluation = _seconds(setup.score)
    return Estimate(settings["epochs"] * (epoch + evaluation / settings["evaluate_every"]), _megabytes())


@torch.no_grad()
def estimate_certification(study: Study, engine: str = "fast") -> Estimate:
    """What ``certify`` takes for a trained model and a division.

    Raises:
        AgnncertError: The data cannot be used, or the model cannot be called.
    """
    model, division, chosen = study.new_model(), study.division, study.chosen
    task, graph = chosen.task, chosen.graph
    begin = time.perf_counter()
    call = bind(model, graph, task)
    layout = fast.plan(graph, division, None if task == "graph" else chosen.rows, call.dtype)
    preparation = time.perf_counter() - begin
    whole = predict(study, model).seconds
    if engine == "naive":
        return Estimate(preparation + num_groups_in(division, graph) * whole, _megabytes())
    chunks = list(layout.chunks(fast.CHUNK_ROWS))
    if not chunks:
        return Estimate(preparation + whole, _megabytes())
    features = Features(graph.x.to(call.dtype), layout.sparse)
    cells = layout.pieces.cell[chunks[0].copies]
    batch = torch.unique_consecutive(cells, return_inverse=True)[1] if task == "graph" else None
    first = _seconds(lambda: fast.evaluate(call, layout, features, chunks[0], batch))
    return Estimate(preparation + whole + first * len(chunks), _megabytes())


def duration(seconds: float) -> str:
    """A time in words.

    Example:
        >>> duration(0.4), duration(75), duration(7300)
        ('1 s', '1 min 15 s', '2 h 1 min')
    """
    whole = max(1, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def _seconds(work: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def _megabytes() -> int:
    """The peak memory of this process so far, plus a tenth."""
    try:
        import resource
        import sys
    except ImportError:  # not on Windows
        return 1000
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(1.1 * peak / (1_000_000 if sys.platform == "darwin" else 1000))
