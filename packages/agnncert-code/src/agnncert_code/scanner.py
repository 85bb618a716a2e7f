"""``scan``: reads every function below a folder and certifies its verdict, in edited statements.

Functions are processed in parts, so memory does not grow with the tree. Each part has its own certificate, and only the
texts of the most suspicious functions are kept.
"""

import heapq
import json
import os
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from torch_geometric.data import Data

from agnncert.certificates.votes import Votes
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


def scan(
    folder: str | os.PathLike[str],
    model: Any = None,
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

    Files that cannot be read or are not UTF-8 are named in the result and skipped; text that does not parse gives the
    verdict on what does, and says so.

    Args:
        folder: The folder, or one file.
        model: A trained module, as for ``ac.certify`` on graphs of functions; or leave it out and name a ``run``.
            With a run whose model is code: its name, ``"package.module:factory"``.
        division: The node-centric division that the model was trained for.
        run: The folder of ``fit_detector`` or of ``agnncert train big-vul``: model, division, rule and classes.
        rule: What empty groups vote for, and the prior.
        edges: Which edges the model was trained on, as for ``agnncert_code.graph``; they are made to go both ways.
        embed: Makes features from the texts of statements, as in training.
        class_names: What the classes are called.
        suspicious: The class that is looked for.
        language: The grammar, as for ``agnncert_code.graph``.
        exclude: Patterns of paths below the folder that are passed over, such as ``"test"`` or ``"vendor/*.c"``.
        shown: Of how many functions, the most suspicious ones, text and votes are kept for the report.
        workers: Processes that read files; voting takes place in this one.
        progress: Called after each file.

    Returns:
        The verdicts, most suspicious first, and their certificates.

    Raises:
        DatasetError: There is no such folder, or no function in it.
        SettingsError: Neither a run nor a model with its division is given, or the run does not judge functions.
    """
    of_run = run is not None and (model is None or isinstance(model, str))
    if not of_run and (run is not None or model is None or division is None):
        raise SettingsError("give either run=…, a trained run, or a model and the division that it was trained for.")
    if run is not None:
        detector = load_detector(os.fspath(run), model=model)
    else:
        detector = Detector(model, division, voting_rule, edges, embed, tuple(class_names), suspicious)  # type: ignore[arg-type]
    return scan_with(detector, folder, language, exclude, shown, workers, progress)


def scan_with(
    detector: Detector,
    folder: str | os.PathLike[str],
    language: Language = "cpp",
    exclude: Sequence[str] = (),
    shown: int = SHOWN,
    workers: int = 1,
    progress: OnProgress | None = None,
) -> Scan:
    """As :func:`scan`, with a detector that is ready."""
    if workers < 1 or shown < 0:
        raise SettingsError(f"workers={workers}, shown={shown}: expected at least one worker, and 0 or more shown.")
    begin, folder = time.perf_counter(), Path(folder)
    files, skipped = source_files(folder, exclude=exclude)
    told = {shown_path(Path(place), folder): why for place, why in skipped.items()}
    partial_files: list[str] = []
    found: list[ScannedFunction] = []
    certificates: list[Certificate] = []
    sizes = np.cumsum([_size(file) for file in files])  # files differ so much that their number tells little
    tell = follow(progress, "scanning, in kB", int(sizes[-1]) // 1000 + 1 if files else 1)
    waiting: list[_Read] = []
    for done, (file, read) in enumerate(_each_file(files, language, detector.edges, workers), start=1):
        place = shown_path(file, folder)
        if isinstance(read, str):
            told[place] = read
        else:
            told |= {f"{place}:{large.line}": large.why for large in read.too_large}
            partial_files += [place] if read.partial else []
            waiting += [_Read(place, graph, text) for graph, text in zip(read.functions, read.texts, strict=True)]
        if waiting and (done == len(files) or sum(len(one.graph.ids) for one in waiting) >= MOST_STATEMENTS):
            for part in _parts(waiting):
                certificate, judged = _judge(detector, part, len(certificates))
                certificates.append(certificate)
                found = _with_texts_of_the_worst([*found, *judged], shown, detector.suspicious)
            waiting = []
        tell(float(sizes[done - 1] / max(sizes[-1], 1)))
    if not found:
        raise DatasetError(f"no function is defined below {folder}: {_why_none(files, told)}")
    return Scan(
        folder=printed(folder),
        functions=tuple(sorted(found, key=_rank(detector.suspicious))),
        skipped=told,
        partial_files=tuple(partial_files),
        certificates=tuple(certificates),
        class_names=detector.class_names,
        suspicious=detector.suspicious,
        seconds=time.perf_counter() - begin,
        accuracy=detector.accuracy,
    )


def function_graphs(detector: Detector, functions: Iterable[FunctionGraph]) -> list[Data]:
    """Functions as a model sees them; features of all statements are made at once, which is much faster."""
    functions = list(functions)
    rows = detector.embed([text for one in functions for text in one.texts])
    pieces = iter(np.split(rows, np.cumsum([len(one.texts) for one in functions])[:-1]))
    return [both_ways(one.to_data(lambda _: next(pieces))) for one in functions]


def shown_path(file: Path, folder: Path) -> str:
    """A path as people and code hosts want it: from the current folder if it lies there, else from what is scanned."""
    for base in (Path.cwd(), folder.resolve() if folder.is_dir() else folder.resolve().parent):
        place = Path(os.path.abspath(file))
        if place.is_relative_to(base):
            return printed(place.relative_to(base).as_posix())
    return printed(file)


def printed(path: str | os.PathLike[str]) -> str:
    """A path as text; bytes that are none, and characters that would act on a terminal, are spelled out."""
    text = os.fsencode(path).decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


@dataclass(frozen=True)
class _Read:
    """A function that waits to be judged."""

    place: str
    graph: FunctionGraph
    text: str


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0  # it is named when it is read


def _each_file(
    files: list[Path], language: Language, edges: Edges, workers: int
) -> Iterator[tuple[Path, SourceFile | str]]:
    read = partial(read_file, language=language, edges=edges)
    if workers == 1 or len(files) < 2:
        yield from ((file, read(file)) for file in files)
        return
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"))  # a fork would copy torch's threads
    try:
        waiting: deque[tuple[Path, Future[SourceFile | str]]] = deque()
        for file in files:
            waiting.append((file, pool.submit(read, file)))
            if len(waiting) > AHEAD * workers:  # what is read and not yet judged must not pile up
                first, read_there = waiting.popleft()
                yield first, read_there.result()
        for first, read_there in waiting:
            yield first, read_there.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # at once, also when it was interrupted


def _parts(waiting: list[_Read]) -> Iterator[list[_Read]]:
    """Parts of about equal size; a file may bring more functions than one part should have."""
    sizes = np.cumsum([len(one.graph.ids) for one in waiting])
    number = np.minimum(sizes // MOST_STATEMENTS, max(0, int(sizes[-1]) // MOST_STATEMENTS - 1))
    for cut in np.split(np.arange(len(waiting)), np.flatnonzero(np.diff(number)) + 1):
        yield [waiting[k] for k in cut.tolist()]


def _judge(detector: Detector, part: list[_Read], number: int) -> tuple[Certificate, list[ScannedFunction]]:
    ready = CanonicalData.of(function_graphs(detector, [one.graph for one in part]))
    certificate = certify(detector.model, ready, detector.division, voting_rule=detector.voting_rule)
    if certificate.counts.shape[1] != len(detector.class_names):
        raise SettingsError(
            f"the model votes for {certificate.counts.shape[1]} classes, and {len(detector.class_names)} have names."
        )
    most = {kind: withstood(certificate, kind, detector.flows) for kind in ("edited", "inserted", "deleted")}
    votes: Any = certificate.evidence
    spoke = _by_statement(detector.division, ready, votes.votes)
    counts = certificate.counts
    shares = counts.clip(min=0) / (counts.clip(min=0).sum(axis=1, keepdims=True) + DOUBT)
    judged = []
    for k, one in enumerate(part):
        judged.append(
            ScannedFunction(
                file=one.place,
                line=int(one.graph.lines.min()),
                last_line=one.graph.last_line,
                name=printed(one.graph.name),
                label=int(certificate.label[k]),
                score=float(shares[k, detector.suspicious]),
                votes=tuple(counts[k].tolist()),
                **{kind: float(amounts[k]) for kind, amounts in most.items()},
                statements=len(one.graph.ids),
                partial=one.graph.partial,
                fingerprint=fingerprint(one.graph.ids),
                certificate=number,
                target=int(certificate.target[k]),
                source=one.text,
                spoke=_statements(one.graph, spoke[k]),
            )
        )
    return certificate, judged


def _by_statement(division: Division, ready: CanonicalData, votes: Votes) -> list[tuple[Any, Any, Any]]:
    """For each function: vote, stability and size of the group of each of its statements, row by row."""
    graph: Any = ready.targets().graph
    assert isinstance(division, NodeDivision)
    group, owner = division.node_groups(graph).numpy(), graph.batch.numpy()
    listed = votes.owner * np.int64(votes.num_groups) + votes.group
    wanted = owner * np.int64(votes.num_groups) + group
    place = np.minimum(np.searchsorted(listed, wanted), max(len(listed) - 1, 0))
    is_listed = listed[place] == wanted if len(listed) else np.zeros(len(wanted), dtype=bool)
    vote = np.where(is_listed, votes.vote[place], votes.default[owner])
    stable = np.where(is_listed, votes.stable[place], votes.default_stable[owner])
    _, which, size = np.unique(wanted, return_inverse=True, return_counts=True)
    ends = np.cumsum(np.bincount(owner, minlength=votes.num_targets))[:-1]
    return list(zip(*(np.split(values, ends) for values in (vote, stable, size[which])), strict=True))


def _statements(graph: FunctionGraph, spoke: tuple[Any, Any, Any]) -> tuple[StatementVote, ...]:
    vote, stable, together = (values.tolist() for values in spoke)
    order = np.argsort(graph.lines, kind="stable").tolist()
    lines = graph.lines.tolist()
    return tuple(StatementVote(lines[k], graph.texts[k], vote[k], bool(stable[k]), together[k]) for k in order)


def _rank(suspicious: int) -> Any:
    """Order of suspicion: flagged functions first, by share of votes, then by certified edits."""

    def key(one: ScannedFunction) -> tuple[Any, ...]:
        sign = 1 if one.label == suspicious else -1
        return one.label != suspicious, -one.score, -sign * one.edited, one.file, one.line

    return key


def _with_texts_of_the_worst(found: list[ScannedFunction], shown: int, suspicious: int) -> list[ScannedFunction]:
    """The same functions; only the ``shown`` most suspicious ones keep their texts."""
    holding = [k for k, one in enumerate(found) if one.source]
    if len(holding) <= shown:
        return found
    kept = set(heapq.nsmallest(shown, holding, key=lambda k: _rank(suspicious)(found[k])))
    return [one if k in kept or not one.source else replace(one, source="", spoke=()) for k, one in enumerate(found)]


def _why_none(files: list[Path], told: dict[str, str]) -> str:
    some = "; ".join(f"{place} {why}" for place, why in list(told.items())[:3])
    return f"{len(files)} files were read{', and these left out: ' + some if some else ''}."


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
    out: str | Path | None = None,
    sarif: str | Path | None = None,
    prior: tuple[int, ...] | None = None,
    model: str | None = None,
    language: Language = "cpp",
    exclude: Sequence[str] = (),
    shown: int = SHOWN,
    workers: int = 1,
    on_progress: OnProgress | None = None,
) -> Scanned:
    """Scans a source tree with the model of a run and writes what came out.

    Args:
        folder: The tree, or one file.
        run: The folder of a detector.
        out: Folder for the certificate, the page and the verdicts; ``runs/scan-NAME`` when not given. An earlier scan
            in it is replaced.
        sarif: A file for the flagged functions as SARIF.
        prior: Another prior than that of the run.
        model: The model of the run again; required if it is code.
        language: The grammar.
        exclude: Patterns of paths below the folder that are passed over.
        shown: Functions whose text and votes the page shows.
        workers: Processes that read files.
        on_progress: Called after each file.
    """
    place = Path("runs", f"scan-{file_name(Path(folder).resolve().name) or 'tree'}") if out is None else Path(out)
    _require_free(place)
    detector = load_detector(run, prior, model)
    try:
        scan = scan_with(detector, folder, language, exclude, shown, workers, on_progress)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("nothing was written; the same command begins anew.") from None
    place.mkdir(parents=True, exist_ok=True)
    for old in place.glob("certificate*.cert"):
        old.unlink()
    names = ["certificate.cert"] if len(scan.certificates) == 1 else _numbered(len(scan.certificates))
    certificates = tuple(place / name for name in names)
    for certificate, file in zip(scan.certificates, certificates, strict=True):
        certificate.save(file, [edits(replaced=count, flows=detector.flows) for count in STATED])
    page = write_scan_page(scan, place / PAGE, [str(file) for file in certificates], detector.name)
    written = None if sarif is None else write_sarif(scan, sarif)
    write_atomic(place / VERDICTS, json.dumps(scan.to_json(), indent=1) + "\n")
    return Scanned(scan, certificates, page, place / VERDICTS, written)


def _numbered(count: int) -> list[str]:
    return [f"certificate-{k}.cert" for k in range(1, count + 1)]


def _require_free(place: Path) -> None:
    """Refuses a folder that holds anything but an earlier scan."""
    if place.exists() and not place.is_dir():
        raise SettingsError(f"{place} is a file: choose another --out.")
    if RunFolder(place).exists:
        raise SettingsError(f"{place} is the folder of a run, which a scan must not replace: choose another --out.")
    if place.is_dir() and any(place.iterdir()) and not (place / VERDICTS).is_file():
        raise SettingsError(f"{place} is not empty, and not the folder of a scan: choose another --out.")
