"""``scan``: reads every function below a folder and certifies its verdict, in edited statements.

Functions are processed in parts, so memory does not grow with the tree. Each part has its own certificate, and only the
texts of the most suspicious functions are kept.
"""

import heapq
import json
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor, nn
from torch_geometric.data import Data

from agnncert.certificates.votes import BoolArray, IntArray, Votes
from agnncert.certificates.voting_rule import VotingRule
from agnncert.certifier import certify
from agnncert.cli.data import file_name
from agnncert.cli.folder import RunFolder
from agnncert.divisions.base import Division
from agnncert.divisions.node import NodeDivision
from agnncert.errors import DatasetError, SettingsError
from agnncert.graphs.targets import CanonicalData
from agnncert.progress import OnProgress, follow
from agnncert.proving.certificate import Certificate
from agnncert.storage import write_atomic
from agnncert_code.bigvul import both_ways
from agnncert_code.budgets import edits, withstood
from agnncert_code.detector import Detector, load_detector
from agnncert_code.features import features
from agnncert_code.findings import Scan, ScannedFunction, StatementVote, fingerprint
from agnncert_code.page import write_scan_page
from agnncert_code.reading import Edges, Embed, FunctionGraph, SourceFile, read_file
from agnncert_code.sarif import write_sarif
from agnncert_code.source_files import source_files
from agnncert_code.syntax import Language

MOST_STATEMENTS = 60_000  # of one part: a few hundred megabytes
SHOWN = 50
AHEAD = 8  # files that each worker may be ahead
VERDICTS = "scan.json"
PAGE = "report.html"
STATED = (1, 2, 3, 5, 10, 20)  # edited statements about which the file of a certificate makes statements
DOUBT = 2  # votes for nobody, so that thirty votes of thirty are more suspicious than one of one


@dataclass(frozen=True)
class ScanSettings:
    """How a source tree is read, and what is kept.

    Attributes:
        language: The grammar.
        exclude: Patterns of paths below the folder that are passed over.
        shown: Of how many functions, the most suspicious ones, text and votes are kept for the report.
        workers: Processes that read files.
    """

    language: Language = "cpp"
    exclude: Sequence[str] = ()
    shown: int = SHOWN
    workers: int = 1

    def __post_init__(self) -> None:
        if self.workers < 1 or self.shown < 0:
            raise SettingsError(
                f"workers={self.workers}, shown={self.shown}: expected at least one worker, and 0 or more shown."
            )


def scan(  # noqa: PLR0913 - every setting is a keyword
    folder: str | os.PathLike[str],
    model: nn.Module | Callable[..., Tensor] | str | None = None,
    division: Division | None = None,
    *,
    run: str | os.PathLike[str] | None = None,
    voting_rule: VotingRule | None = None,
    edges: Edges = "flow",
    embed: Embed = features,
    class_names: Iterable[str] = ("not listed", "vulnerable"),
    suspicious: int = 1,
    language: Language = "cpp",
    exclude: Sequence[str] = (),
    shown: int = SHOWN,
    workers: int = 1,
    progress: OnProgress | None = None,
) -> Scan:
    """Labels every function below a folder, and certifies each verdict against a number of edited statements.

    Files that cannot be read or are not UTF-8 are named in the result and skipped. Text that does not parse gives the
    verdict on what does, and says so.

    Args:
        folder: The folder, or one file.
        model: A trained module, as for ``ac.certify`` on graphs of functions. Leave it out and name a ``run`` instead.
            With a run whose model is code: its name, ``"package.module:factory"``.
        division: The node-centric division that the model was trained for.
        run: The folder of ``fit_detector`` or of ``agnncert train big-vul``: model, division, rule and classes.
        voting_rule: What empty groups vote for, and the prior.
        edges: Which edges the model was trained on, as for ``agnncert_code.graph``. They are made to go both ways.
        embed: Makes features from the texts of statements, as in training.
        class_names: What the classes are called.
        suspicious: The class that is looked for.
        language: The grammar, as for ``agnncert_code.graph``.
        exclude: Patterns of paths below the folder that are passed over, such as ``"test"`` or ``"vendor/*.c"``.
        shown: Of how many functions, the most suspicious ones, text and votes are kept for the report.
        workers: Processes that read files. Voting takes place in this one.
        progress: Called after each file.

    Returns:
        The verdicts, most suspicious first, and their certificates.

    Raises:
        DatasetError: There is no such folder, or no function in it.
        SettingsError: Neither a run nor a model with its division is given, or the run does not judge functions.
    """
    settings = ScanSettings(language, exclude, shown, workers)
    if run is not None and (model is None or isinstance(model, str)):
        detector = load_detector(os.fspath(run), model=model)
    elif run is not None or model is None or isinstance(model, str) or division is None:
        raise SettingsError("give either run=…, a trained run, or a model and the division that it was trained for.")
    else:
        detector = Detector(model, division, voting_rule, edges, embed, tuple(class_names), suspicious)
    return scan_with(detector, folder, settings, progress)


def scan_with(
    detector: Detector,
    folder: str | os.PathLike[str],
    settings: ScanSettings | None = None,
    progress: OnProgress | None = None,
) -> Scan:
    """Scans with a detector that is ready.

    Args:
        detector: The detector.
        folder: The folder, or one file.
        settings: How it is read. Defaults to ``ScanSettings()``.
        progress: Called after each file.

    Raises:
        DatasetError: There is no such folder, or no function in it.
    """
    return _Scanner(detector, Path(folder), settings or ScanSettings(), progress).scan()


class _Scanner:
    """Reads files one after the other, and certifies functions part by part."""

    def __init__(self, detector: Detector, folder: Path, settings: ScanSettings, progress: OnProgress | None) -> None:
        self.detector = detector
        self.folder = folder
        self.settings = settings
        self.progress = progress
        self.skipped: dict[str, str] = {}
        self.partial_files: list[str] = []
        self.functions: list[ScannedFunction] = []
        self.certificates: list[Certificate] = []
        self.waiting: list[_Waiting] = []

    def scan(self) -> Scan:
        """Returns the outcome."""
        begin = time.perf_counter()
        files, skipped = source_files(self.folder, exclude=self.settings.exclude)
        self.skipped = {shown_path(Path(place), self.folder): why for place, why in skipped.items()}
        sizes = np.cumsum([_size(file) for file in files])  # files differ so much that their number tells little
        report_progress = follow(self.progress, "scanning, in kB", int(sizes[-1]) // 1000 + 1 if files else 1)
        for number, (file, contents) in enumerate(_each_file(files, self.detector.edges, self.settings), start=1):
            self._note(shown_path(file, self.folder), contents)
            num_statements = sum(len(function.graph.ids) for function in self.waiting)
            if self.waiting and (number == len(files) or num_statements >= MOST_STATEMENTS):
                self._certify_waiting()
            report_progress(float(sizes[number - 1] / max(sizes[-1], 1)))
        if not self.functions:
            raise DatasetError(f"no function is defined below {self.folder}: {_why_none(files, self.skipped)}")
        suspicious = self.detector.suspicious
        return Scan(
            folder=printed(self.folder),
            functions=tuple(sorted(self.functions, key=lambda function: _rank(function, suspicious))),
            skipped=self.skipped,
            partial_files=tuple(self.partial_files),
            certificates=tuple(self.certificates),
            class_names=self.detector.class_names,
            suspicious=suspicious,
            seconds=time.perf_counter() - begin,
            accuracy=self.detector.accuracy,
        )

    def _note(self, place: str, contents: SourceFile | str) -> None:
        """Takes what a file defines, or why it cannot be read."""
        if isinstance(contents, str):
            self.skipped[place] = contents
            return
        for large in contents.too_large:
            self.skipped[f"{place}:{large.line}"] = large.why
        if contents.partial:
            self.partial_files.append(place)
        for graph, text in zip(contents.functions, contents.texts, strict=True):
            self.waiting.append(_Waiting(place, graph, text))

    def _certify_waiting(self) -> None:
        for part in _parts(self.waiting):
            certificate, functions = _certify_part(self.detector, part, len(self.certificates))
            self.certificates.append(certificate)
            self.functions = _with_texts_of_the_worst(
                [*self.functions, *functions], self.settings.shown, self.detector.suspicious
            )
        self.waiting = []


def function_graphs(detector: Detector, functions: Iterable[FunctionGraph]) -> list[Data]:
    """Returns functions as a model sees them. Features of all statements are made at once, which is much faster."""
    functions = list(functions)
    rows = detector.embed([text for function in functions for text in function.texts])
    ends = np.cumsum([len(function.texts) for function in functions])
    rows_of_each = iter(np.split(rows, ends[:-1]))
    return [both_ways(function.to_data(lambda _: next(rows_of_each))) for function in functions]


def shown_path(file: Path, folder: Path) -> str:
    """Returns a path as people and code hosts want it.

    It counts from the current folder if it lies there, else from what is scanned.
    """
    home = folder.resolve() if folder.is_dir() else folder.resolve().parent
    place = Path(os.path.abspath(file))
    for base in (Path.cwd(), home):
        if place.is_relative_to(base):
            return printed(place.relative_to(base).as_posix())
    return printed(file)


def printed(path: str | os.PathLike[str]) -> str:
    """Returns a path as text. Bytes that are none, and characters that would act on a terminal, are spelled out."""
    text = os.fsencode(path).decode("utf-8", "backslashreplace")
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


@dataclass(frozen=True)
class _Waiting:
    """A function that waits to be labelled."""

    place: str
    graph: FunctionGraph
    text: str


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0  # it is named when it is read


def _each_file(files: list[Path], edges: Edges, settings: ScanSettings) -> Iterator[tuple[Path, SourceFile | str]]:
    """Yields each file and what it defines, or why it cannot be read, in the order of the files."""
    read = partial(read_file, language=settings.language, edges=edges)
    if settings.workers == 1 or len(files) < 2:
        for file in files:
            yield file, read(file)
        return
    pool = ProcessPoolExecutor(settings.workers, mp_context=get_context("spawn"))  # a fork would copy torch's threads
    try:
        waiting: deque[tuple[Path, Future[SourceFile | str]]] = deque()
        for file in files:
            waiting.append((file, pool.submit(read, file)))
            if len(waiting) > AHEAD * settings.workers:  # what is read and not yet labelled must not pile up
                first, contents = waiting.popleft()
                yield first, contents.result()
        for first, contents in waiting:
            yield first, contents.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # at once, also when it was interrupted


def _parts(waiting: list[_Waiting]) -> Iterator[list[_Waiting]]:
    """Yields parts of about equal size, since a file may bring more functions than one part should have."""
    sizes = np.cumsum([len(function.graph.ids) for function in waiting])
    last_part = max(0, int(sizes[-1]) // MOST_STATEMENTS - 1)
    part_of = np.minimum(sizes // MOST_STATEMENTS, last_part)
    for rows in np.split(np.arange(len(waiting)), np.flatnonzero(np.diff(part_of)) + 1):
        yield [waiting[row] for row in rows.tolist()]


def _certify_part(detector: Detector, part: list[_Waiting], number: int) -> tuple[Certificate, list[ScannedFunction]]:
    """Returns the certificate of some functions, which is that of this number, and their verdicts."""
    data = CanonicalData.of(function_graphs(detector, [function.graph for function in part]))
    certificate = certify(detector.model, data, detector.division, voting_rule=detector.voting_rule)
    counts = certificate.counts
    if counts.shape[1] != len(detector.class_names):
        raise SettingsError(
            f"the model votes for {counts.shape[1]} classes, and {len(detector.class_names)} have names."
        )
    evidence: Any = certificate.evidence
    votes_of_function = _votes_by_statement(detector.division, data, evidence.votes)
    edited = withstood(certificate, "edited", detector.flows)
    inserted = withstood(certificate, "inserted", detector.flows)
    deleted = withstood(certificate, "deleted", detector.flows)
    positive = counts.clip(min=0)
    shares = positive / (positive.sum(axis=1, keepdims=True) + DOUBT)
    functions = []
    for k, function in enumerate(part):
        functions.append(
            ScannedFunction(
                file=function.place,
                line=int(function.graph.lines.min()),
                last_line=function.graph.last_line,
                name=printed(function.graph.name),
                label=int(certificate.label[k]),
                score=float(shares[k, detector.suspicious]),
                votes=tuple(counts[k].tolist()),
                edited=float(edited[k]),
                inserted=float(inserted[k]),
                deleted=float(deleted[k]),
                statements=len(function.graph.ids),
                partial=function.graph.partial,
                fingerprint=fingerprint(function.graph.ids),
                certificate=number,
                target=int(certificate.target[k]),
                source=function.text,
                spoke=votes_of_function[k].of(function.graph),
            )
        )
    return certificate, functions


@dataclass(frozen=True)
class _StatementVotes:
    """Votes of the groups in which the statements of one function are, row by row.

    Attributes:
        vote: The class that the group voted for.
        stable: Whether that vote is far enough from a tie.
        together: How many statements share the group.
    """

    vote: IntArray
    stable: BoolArray
    together: IntArray

    def of(self, graph: FunctionGraph) -> tuple[StatementVote, ...]:
        """Returns the votes in the order of the lines of the function."""
        lines = graph.lines.tolist()
        vote = self.vote.tolist()
        stable = self.stable.tolist()
        together = self.together.tolist()
        order = np.argsort(graph.lines, kind="stable").tolist()
        return tuple(StatementVote(lines[k], graph.texts[k], vote[k], bool(stable[k]), together[k]) for k in order)


def _votes_by_statement(division: Division, data: CanonicalData, votes: Votes) -> list[_StatementVotes]:
    """Returns, for each function, what was voted where its statements are."""
    graph: Any = data.targets().graph
    assert isinstance(division, NodeDivision)
    group = division.node_groups(graph).numpy()
    owner = graph.batch.numpy()
    listed_keys = votes.owner * np.int64(votes.num_groups) + votes.group
    keys = owner * np.int64(votes.num_groups) + group
    place = np.minimum(np.searchsorted(listed_keys, keys), max(len(listed_keys) - 1, 0))
    is_listed = np.zeros(len(keys), dtype=bool)
    if len(listed_keys):
        is_listed = listed_keys[place] == keys
    vote = np.where(is_listed, votes.vote[place], votes.default[owner])
    stable = np.where(is_listed, votes.stable[place], votes.default_stable[owner])
    _, which, size = np.unique(keys, return_inverse=True, return_counts=True)
    ends = np.cumsum(np.bincount(owner, minlength=votes.num_targets))[:-1]
    parts = zip(np.split(vote, ends), np.split(stable, ends), np.split(size[which], ends), strict=True)
    return [_StatementVotes(*part) for part in parts]


def _rank(function: ScannedFunction, suspicious: int) -> tuple[bool, float, float, str, int]:
    """Returns a key for the order of suspicion: flagged functions first, by share of votes, then by certified edits."""
    is_flagged = function.label == suspicious
    edited = -function.edited if is_flagged else function.edited
    return not is_flagged, -function.score, edited, function.file, function.line


def _with_texts_of_the_worst(functions: list[ScannedFunction], shown: int, suspicious: int) -> list[ScannedFunction]:
    """Returns the same functions, of which only the ``shown`` most suspicious ones keep their texts."""
    with_text = [k for k, function in enumerate(functions) if function.source]
    if len(with_text) <= shown:
        return functions
    kept = set(heapq.nsmallest(shown, with_text, key=lambda k: _rank(functions[k], suspicious)))
    shortened = list(functions)
    for k in with_text:
        if k not in kept:
            shortened[k] = replace(functions[k], source="", spoke=())
    return shortened


def _why_none(files: list[Path], skipped: dict[str, str]) -> str:
    some = "; ".join(f"{place} {why}" for place, why in list(skipped.items())[:3])
    left_out = f", and these left out: {some}" if some else ""
    return f"{len(files)} files were read{left_out}."


@dataclass(frozen=True)
class Scanned:
    """A finished scan and its files."""

    scan: Scan
    certificates: tuple[Path, ...]
    page: Path
    verdicts: Path
    sarif: Path | None


def scan_run(
    folder: str | Path,
    run: str | Path,
    *,
    out: str | Path | None = None,
    sarif: str | Path | None = None,
    prior: tuple[int, ...] | None = None,
    model: str | None = None,
    settings: ScanSettings | None = None,
    progress: OnProgress | None = None,
) -> Scanned:
    """Scans a source tree with the model of a run and writes what came out.

    Args:
        folder: The tree, or one file.
        run: The folder of a detector.
        out: Folder for the certificate, the page and the verdicts. Defaults to ``runs/scan-NAME``. An earlier scan in
            it is replaced.
        sarif: A file for the flagged functions as SARIF.
        prior: Another prior than that of the run.
        model: The model of the run again. Required if it is code.
        settings: How the tree is read. Defaults to ``ScanSettings()``.
        progress: Called after each file.
    """
    place = Path("runs", f"scan-{file_name(Path(folder).resolve().name) or 'tree'}") if out is None else Path(out)
    _require_free(place)
    detector = load_detector(run, prior, model)
    try:
        scan = scan_with(detector, folder, settings, progress)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("nothing was written; the same command begins anew.") from None
    place.mkdir(parents=True, exist_ok=True)
    for old in place.glob("certificate*.cert"):
        old.unlink()
    names = ["certificate.cert"] if len(scan.certificates) == 1 else _numbered(len(scan.certificates))
    certificates = tuple(place / name for name in names)
    budgets = [edits(replaced=count, flows=detector.flows) for count in STATED]
    for certificate, file in zip(scan.certificates, certificates, strict=True):
        certificate.save(file, budgets)
    page = write_scan_page(scan, place / PAGE, [str(file) for file in certificates], detector.name)
    sarif_file = None if sarif is None else write_sarif(scan, sarif)
    write_atomic(place / VERDICTS, json.dumps(scan.to_json(), indent=1) + "\n")
    return Scanned(scan, certificates, page, place / VERDICTS, sarif_file)


def _numbered(count: int) -> list[str]:
    return [f"certificate-{k}.cert" for k in range(1, count + 1)]


def _require_free(place: Path) -> None:
    """Raises SettingsError if a folder holds anything but an earlier scan."""
    if place.exists() and not place.is_dir():
        raise SettingsError(f"{place} is a file: choose another --out.")
    if RunFolder(place).exists:
        raise SettingsError(f"{place} is the folder of a run, which a scan must not replace: choose another --out.")
    if place.is_dir() and any(place.iterdir()) and not (place / VERDICTS).is_file():
        raise SettingsError(f"{place} is not empty, and not the folder of a scan: choose another --out.")
