"""Do two results folders agree where they hold the same runs?

``reproduce``: run experiments, keep their rows, write the page.
"""

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch

from agnncert.progress import OnProgress, Progress
from agnncert.studies.paper import comparisons
from agnncert.studies.paper.page import write_page
from agnncert.studies.paper.rows import Results, Row, share
from agnncert.studies.paper.run import is_current, run_all
from agnncert.studies.paper.spec import Run, Setting, settings_of

# On one machine a seed gives the same row again. Another processor or another version of torch rounds sums in
# another order; training amplifies that, and the best epoch on the validation set may then be another one.
TOLERANCE = 0.02

_SHARES = ("accuracy_whole_graph", "accuracy", "accuracy_edgeless", "accuracy_majority")
_CURVES = ("certified", "certified_neighbours")


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
    largest, found = 0.0, []
    for setting in both:
        a, b = ours.rows[setting], theirs.rows[setting]
        if (a["digest"], a["recipe"]) != (b["digest"], b["recipe"]):
            what = "data" if a["digest"] != b["digest"] else "recipe"
            found.append(f"{describe(setting)}: made with another {what}, so they cannot be compared.")
            continue
        where, apart = max(_apart(a, b), key=lambda one: one[1])
        largest = max(largest, apart)
        if apart > tolerance:
            found.append(f"{describe(setting)}: {where} differs by {share(apart)}, more than {share(tolerance)}.")
    return Agreement(len(both), largest, tuple(found))


def describe(setting: Setting) -> str:
    """A run in a few words: its dataset, and what is not usual.

    Example:
        >>> describe(Setting("cora-ml", division="edge", num_groups=300))
        'cora-ml division=edge, num_groups=300'
    """
    usual = Setting(setting.dataset).to_json()
    unusual = [f"{key}={value}" for key, value in setting.to_json().items() if value != usual[key]]
    return f"{setting.dataset} {', '.join(unusual) or 'undefended gcn'}"


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


log = logging.getLogger(__name__)

_GUESS = 30.0  # seconds of a run about which nothing is known


@dataclass(frozen=True)
class Reproduced:
    """What was left.

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
) -> Reproduced:
    """Runs experiments and writes their figures and tables.

    Runs use one thread, so that a seed gives the same rows again on the same machine. Rows go to one file per
    dataset: several processes can share the work, each with its own ``datasets``.

    Args:
        names: Which experiments.
        folder: Where the rows go. Those that it holds already are not run again, unless the recipe has changed.
        small: Run what makes a first look.
        root: Folder that holds the datasets.
        datasets: Run these datasets only; all of them when empty.
        run: ``False`` writes the page from the rows at hand.
        page: The Markdown file to write, ``results.md`` in the folder when not given; figures go beside it.
        benchmarks: Folder with the files of ``make bench``, shown on the page too.
        on_progress: Told after every epoch, with the time left for all runs.

    Raises:
        SettingsError: No experiment has such a name.
    """
    folder = Path(folder)
    wanted = [
        one
        for one in dict.fromkeys(one for name in names for one in settings_of(name, small))
        if not datasets or one.dataset in datasets
    ]
    ran = 0
    if run:
        with _one_thread():
            ran = _run_missing(wanted, folder, root, on_progress)
    results = Results.read(folder, benchmarks)
    place = folder / "results.md" if page is None else Path(page)
    written = write_page(results, place, tuple(names), small, folder.name)
    rows = [(one, results.get(one)) for one in wanted]
    return Reproduced(
        tuple(row for _, row in rows if row is not None), written, ran, tuple(one for one, row in rows if row is None)
    )


def _run_missing(wanted: list[Run], folder: Path, root: str | Path | None, on_progress: OnProgress | None) -> int:
    """Runs what has no row, or one that was made with another recipe; tells how many that were."""
    results = Results.read(folder)
    done = [one for one in wanted if _is_done(one, results)]
    for one in done:
        log.info("%s is there already", _words(one))
    left = [one for one in wanted if one not in set(done)]
    clock = _Clock(left, results)
    for number, one in enumerate(left, start=1):
        log.info("[%d of %d] %s", number, len(left), _words(one))
        begin = time.perf_counter()
        _run_one(one, folder, root, _teller(clock, len(left), number, one, on_progress))
        clock.finished(one, time.perf_counter() - begin)
    return len(left)


def _run_one(one: Run, folder: Path, root: str | Path | None, progress: OnProgress) -> None:
    if isinstance(one, Setting):
        run_all([one], folder / "rows" / f"{one.dataset}.jsonl", root, progress=progress)
    else:
        comparisons.run_comparisons([one], folder / "comparisons.jsonl", root)


def _teller(clock: "_Clock", total: int, number: int, one: Run, on_progress: OnProgress | None) -> OnProgress:
    def tell(step: Progress) -> None:
        if on_progress is not None:
            detail = f"{_words(one)}, epoch {step.done} of {step.total}"
            left = clock.seconds_left(step.done / step.total)
            on_progress(Progress("runs", number - 1, total, left, detail))

    return tell


class _Clock:
    """Time left: what the runs took that are known, times how much slower this machine has been so far."""

    def __init__(self, runs: Sequence[Run], results: Results) -> None:
        self.expected = {one: _expected_seconds(one, results) for one in runs}
        self.planned = self.taken = 0.0

    def finished(self, one: Run, seconds: float) -> None:
        """Notes what a run took."""
        self.planned += self.expected.pop(one)
        self.taken += seconds

    def seconds_left(self, part: float) -> float:
        """For all runs that are left, of which the first is done to a part."""
        pace = self.taken / self.planned if self.planned else 1.0
        running = next(iter(self.expected.values()), 0.0)
        return pace * (sum(self.expected.values()) - part * running)


def _expected_seconds(one: Run, results: Results) -> float:
    """What runs on the same dataset took, with the same model or defence if there is one."""
    kind = one.model if isinstance(one, Setting) else one.defence
    rows = results.rows if isinstance(one, Setting) else results.comparisons
    alike = [
        (row["setting"].get("model", row["setting"].get("defence")) == kind, _seconds(row))
        for other, row in rows.items()
        if other.dataset == one.dataset
    ]
    best = [seconds for same, seconds in alike if same] or [seconds for _, seconds in alike]
    return sum(best) / len(best) if best else _GUESS


def _seconds(row: Row) -> float:
    return float(row["seconds_training"]) + float(row.get("seconds_certification", 0.0))


def _is_done(one: Run, results: Results) -> bool:
    row = results.get(one)
    if row is None:
        return False
    return is_current(row, one) if isinstance(one, Setting) else comparisons.is_current(row, one)


def _words(one: Run) -> str:
    if isinstance(one, Setting):
        return describe(one)
    noise = f" p_edge={one.p_edge:g}, p_node={one.p_node:g}" if one.samples else ""
    return f"{one.dataset} {one.defence}{noise}"


@contextmanager
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
