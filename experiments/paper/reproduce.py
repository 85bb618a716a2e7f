"""``reproduce`` runs experiments, keeps their rows and writes the page; ``compare_results`` compares rows."""

import logging
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch

from agnncert.engine.workers import Workers
from agnncert.progress import OnProgress, Progress
from agnncert.training.loop import Step
from experiments.paper.page import write_page
from experiments.paper.rows import Results, Row, append_row, share
from experiments.paper.run import is_current, run_all, run_one
from experiments.paper.spec import Contest, Run, Setting, settings_of

log = logging.getLogger(__name__)

# On one machine a seed gives the same row again. Another processor or another version of torch rounds sums in
# another order; training amplifies that, and the best epoch on the validation set may then be another one.
TOLERANCE = 0.02

_SHARES = ("accuracy_whole_graph", "accuracy", "accuracy_no_edge", "accuracy_majority")
_CURVES = ("certified", "certified_neighbours")
_GUESS = 30.0  # seconds of a run about which nothing is known


@dataclass(frozen=True)
class Agreement:
    """The outcome of a comparison.

    Attributes:
        compared: How many runs both folders hold.
        largest: The largest difference between two accuracies, plain or certified.
        differences: A sentence for each run that does not agree.
    """

    compared: int
    largest: float
    differences: tuple[str, ...]


def compare_results(ours: Results, theirs: Results, tolerance: float = TOLERANCE) -> Agreement:
    """Compares accuracy and certified accuracy of all runs that both hold.

    Args:
        ours: Rows that were just made.
        theirs: Rows to hold them against.
        tolerance: How far two accuracies may lie apart.
    """
    both = [setting for setting in ours.rows if setting in theirs.rows]
    largest, differences = 0.0, []
    for setting in both:
        a, b = ours.rows[setting], theirs.rows[setting]
        if (a["digest"], a["recipe"]) != (b["digest"], b["recipe"]):
            what = "data" if a["digest"] != b["digest"] else "recipe"
            differences.append(f"{describe(setting)}: made with another {what}, so they cannot be compared.")
            continue
        where, apart = max(_apart(a, b), key=lambda job: job[1])
        largest = max(largest, apart)
        if apart > tolerance:
            differences.append(f"{describe(setting)}: {where} differs by {share(apart)}, more than {share(tolerance)}.")
    return Agreement(len(both), largest, tuple(differences))


def describe(run: Run) -> str:
    """A run in a few words: its dataset, and what is not usual.

    Example:
        >>> describe(Setting("cora-ml", division="edge", num_groups=300))
        'cora-ml division=edge, num_groups=300'
    """
    if isinstance(run, Contest):
        noise = f" p_edge={run.p_edge:g}, p_node={run.p_node:g}" if run.samples else ""
        return f"{run.dataset} {run.defence}{noise}"
    usual = Setting(run.dataset).to_json()
    unusual = [f"{key}={value}" for key, value in run.to_json().items() if value != usual[key]]
    return f"{run.dataset} {', '.join(unusual) or 'undefended gcn'}"


def _apart(a: Row, b: Row) -> Iterator[tuple[str, float]]:
    for name in _SHARES:
        if name in a and name in b:
            yield name, abs(a[name] - b[name])
    for name in _CURVES:
        if name in a and name in b:
            other = dict(zip(b["sizes"], b[name], strict=True))
            for size, value in zip(a["sizes"], a[name], strict=True):
                if size in other:
                    yield f"{name} at size {size}", abs(value - other[size])


@dataclass(frozen=True)
class Reproduced:
    """The outcome of :func:`reproduce`.

    Attributes:
        rows: The rows of the experiments.
        page: The page that shows them.
        ran: How many of the rows are new.
        missing: Runs without a row.
    """

    rows: tuple[Row, ...]
    page: Path
    ran: int
    missing: tuple[Run, ...]


def reproduce(
    names: Sequence[str],
    folder: str | Path = "results",
    *,
    small: bool = False,
    root: str | Path | None = None,
    datasets: Sequence[str] = (),
    run: bool = True,
    page: str | Path | None = None,
    benchmarks: str | Path | None = None,
    on_progress: OnProgress | None = None,
    workers: Workers | None = None,
) -> Reproduced:
    """Runs experiments and writes their figures and tables.

    Runs use one thread, so that a seed gives the same rows again on the same machine. Rows go to one file per
    dataset: several processes can share the work, each with its own ``datasets``.

    Args:
        names: Which experiments.
        folder: Where the rows go. Those that it holds already are not run again, unless the recipe has changed.
        small: Run a few quick runs of each instead.
        root: Folder that holds the datasets.
        datasets: Run these datasets only; all of them when empty.
        run: ``False`` writes the page from the rows at hand.
        page: The Markdown file to write, ``results.md`` in the folder when not given; figures go beside it.
        benchmarks: Folder with the files of ``make bench``, shown on the page too.
        on_progress: Called after every epoch, with the time left for all runs.
        workers: Who does the runs, each reading the datasets from ``root``; this process when not given.

    Raises:
        SettingsError: No experiment has such a name.
    """
    folder = Path(folder)
    wanted = [
        job
        for job in dict.fromkeys(job for name in names for job in settings_of(name, small))
        if not datasets or job.dataset in datasets
    ]
    ran = 0
    if run:
        with _one_thread():
            ran = _run_missing(wanted, folder, root, on_progress, workers)
    results = Results.read(folder, benchmarks)
    place = folder / "results.md" if page is None else Path(page)
    written = write_page(results, place, tuple(names), small, folder.name)
    rows = tuple(row for job in wanted if (row := results.get(job)) is not None)
    return Reproduced(rows, written, ran, tuple(job for job in wanted if results.get(job) is None))


def _run_missing(
    wanted: list[Run],
    folder: Path,
    root: str | Path | None,
    on_progress: OnProgress | None,
    workers: Workers | None = None,
) -> int:
    """Runs what has no row, or one that was made with another recipe; returns how many runs that were."""
    results = Results.read(folder)
    left = []
    for job in wanted:
        row = results.get(job)
        if row is None or not is_current(row, job):
            left.append(job)
        else:
            log.info("%s is there already", describe(job))
    if workers is not None:
        _spread(left, folder, root, on_progress, workers)
        return len(left)
    clock = _Clock(left, results)
    for number, job in enumerate(left):
        log.info("[%d of %d] %s", number + 1, len(left), describe(job))

        def tell(step: Progress, number: int = number, name: str = describe(job)) -> None:
            if on_progress is not None and isinstance(step, Step):  # certifying is short
                seconds_left = clock.seconds_left(step.done / step.total)
                detail = f"{name}, epoch {step.done} of {step.total}"
                on_progress(Progress("runs", number, len(left), seconds_left, detail))

        begin = time.perf_counter()
        run_all([job], _file_of(job, folder), root, tell)
        clock.finished(job, time.perf_counter() - begin)
    return len(left)


def _file_of(job: Run, folder: Path) -> Path:
    return folder / (f"rows/{job.dataset}.jsonl" if isinstance(job, Setting) else "comparisons.jsonl")


def _spread(
    left: list[Run], folder: Path, root: str | Path | None, on_progress: OnProgress | None, workers: Workers
) -> None:
    """Lets workers do the runs, and keeps each row as it comes in."""
    done = workers.run(None if root is None else str(Path(root).resolve()), _root, _run_apart, left)
    for number, (job, row) in enumerate(done):
        append_row(_file_of(job, folder), row)
        log.info("[%d of %d] %s", number + 1, len(left), describe(job))
        if on_progress is not None:
            on_progress(Progress("runs", number + 1, len(left), math.nan, describe(job)))


def _root(root: str | None) -> str | None:
    torch.set_num_threads(1)
    return root


def _run_apart(root: str | None, job: Run) -> Row:
    """What a worker does with a run."""
    return run_one(job, root)


class _Clock:
    """Estimates the time left from what similar runs took, times how much slower this machine has been so far."""

    def __init__(self, runs: Sequence[Run], results: Results) -> None:
        self.expected = {job: _expected_seconds(job, results) for job in runs}
        self.planned = self.taken = 0.0

    def finished(self, job: Run, seconds: float) -> None:
        """Records how long a run took."""
        self.planned += self.expected.pop(job)
        self.taken += seconds

    def seconds_left(self, part: float) -> float:
        """Time left for all unfinished runs, of whose first one this ``part`` (0 to 1) is done."""
        pace = self.taken / self.planned if self.planned else 1.0
        running = next(iter(self.expected.values()), 0.0)
        return pace * (sum(self.expected.values()) - part * running)


def _expected_seconds(job: Run, results: Results) -> float:
    """The mean time of runs on the same dataset, with the same model or defence if there are any."""
    kind = job.model if isinstance(job, Setting) else job.defence
    rows = results.rows if isinstance(job, Setting) else results.comparisons
    alike = [
        (row["setting"].get("model", row["setting"].get("defence")) == kind, _seconds(row))
        for other, row in rows.items()
        if other.dataset == job.dataset
    ]
    best = [seconds for same, seconds in alike if same] or [seconds for _, seconds in alike]
    return sum(best) / len(best) if best else _GUESS


def _seconds(row: Row) -> float:
    return float(row["seconds_training"]) + float(row.get("seconds_certification", 0.0))


@contextmanager
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
