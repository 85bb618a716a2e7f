"""``RunFolder``: everything that one run leaves behind, each file written whole or not at all.

Also what is stored there: settings as TOML, and the environment (versions and kind of machine, nothing that names it).
"""

import csv
import io
import json
import logging
import os
import platform
import shlex
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from itertools import chain, count
from pathlib import Path
from typing import Any

from agnncert import __version__
from agnncert.cli import Stopped
from agnncert.cli.settings import read_toml
from agnncert.errors import AgnncertError, SettingsError
from agnncert.proving.domain import check_words
from agnncert.report.tables import csv_cell
from agnncert.storage import parse_json, visible, write_atomic

log = logging.getLogger(__name__)

Row = dict[str, Any]

SETTINGS = "settings.toml"
DATA = "data.json"
CHOICE = "voting_rule.json"  # what was chosen on the validation part, and what else was tried
ENCODING = "encoding.json"
CONTROLS = "controls.json"  # scores of the models that the certified one is compared with
OWN_FILES = (
    SETTINGS,
    DATA,
    CHOICE,
    ENCODING,
    CONTROLS,
    "environment.json",
    "weights.safetensors",
    "weights.json",
    "certified.safetensors",
    "certified.json",
    "certificate.cert",
    "results.jsonl",
    "results.csv",
    "report.html",
    "log.txt",
    "MODEL_CARD.md",
)
_FILE_ONLY = {"file_only": True}  # for the log in the folder; the screen shows such events in other words
PACKAGES = ("torch", "torch_geometric", "numpy", "scipy", "safetensors", "scikit-learn")
ROW_FIELDS = ("run", "step", "measure", "size", "value", "data", "model", "division", "seed", "digest")


class RunFolder:
    """The folder of one run."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.weights = self.path / "weights.safetensors"  # weights.json beside it describes model and training
        # The model that was certified, with its description, if a choice on the validation part has changed it.
        self.certified_weights = self.path / "certified.safetensors"
        self.certificate = self.path / "certificate.cert"
        self.tables = self.path / "data"  # copies of a user's own tables, if they are not too large

    def __str__(self) -> str:
        return str(self.path)

    @property
    def exists(self) -> bool:
        """Whether a run has been recorded here."""
        return (self.path / SETTINGS).is_file()

    @property
    def settings(self) -> dict[str, dict[str, Any]]:
        """The settings of every step so far."""
        return read_toml(self.path / SETTINGS) if self.exists else {}

    @property
    def options(self) -> str:
        """What commands about this run need beside its folder: where its datasets lie, unless it holds its tables.

        It begins with a space unless it is empty.
        """
        roots = [str(table["root"]) for table in self.settings.values() if table.get("root")]
        if not roots or self.tables.is_dir():
            return ""
        return f" --root {shlex.quote(visible(roots[0]))}"

    @property
    def words(self) -> dict[str, str]:
        """What the run calls nodes, edges and neighbours; empty if it says nothing about them."""
        words: Mapping[str, str] = next((table["words"] for table in self.settings.values() if table.get("words")), {})
        check_words(words)
        return dict(words)

    @property
    def data(self) -> dict[str, Any]:
        """What is known about the data: name, digest, size, names of the classes."""
        return self.read_json(DATA)

    def checkpoint(self, name: str) -> Path:
        """Where training a model keeps its state until it has finished."""
        return self.path / f"{name}.checkpoint"

    def begin(self, step: str, table: Mapping[str, Any], data: Mapping[str, Any]) -> None:
        """Records what is going to be done, where, and on what."""
        self.path.mkdir(parents=True, exist_ok=True)
        self.write(SETTINGS, toml_text({**self.settings, step: table}))
        self.write(DATA, _json(data))
        self.write("environment.json", _json(environment()))

    def forget(self, step: str) -> None:
        """Removes what a step recorded, because what it was about has changed."""
        if step in self.settings:
            self.put_rows(step, [])
            self.write(SETTINGS, toml_text({name: t for name, t in self.settings.items() if name != step}))

    def differs(self, step: str, table: Mapping[str, Any], digest: str) -> list[str]:
        """Why this folder cannot be used for a step, such as other settings or other data; empty if it can."""
        if not self.path.exists():
            return []
        if not self.path.is_dir():
            return ["it is a file"]
        if not self.exists:
            return ["it is not empty, and not the folder of a run"] if any(self.path.iterdir()) else []
        known = self.settings.get(step)
        if known is None:
            return [f"it holds a run that began with {', '.join(self.settings)}"]
        # Where the data lies does not matter as long as it is the same.
        keys = [key for key in {**known, **table} if key != "root" and known.get(key) != table.get(key)]
        changed = [f"{key} was {known.get(key, 'not set')}, now {table.get(key, 'not set')}" for key in keys]
        return changed + ([] if self.data.get("digest") == digest else ["the data is not the same"])

    def forget_choice(self) -> None:
        """Removes what was chosen on the validation part for an earlier certificate."""
        for file in (self.path / CHOICE, self.certified_weights, self.certified_weights.with_suffix(".json")):
            file.unlink(missing_ok=True)

    def forget_checkpoints(self) -> None:
        """Removes the states of training, once it has finished."""
        for file in self.path.glob("*.checkpoint"):
            file.unlink(missing_ok=True)

    def clear(self) -> None:
        """Removes what runs write, and nothing else."""
        self.forget_checkpoints()
        for name in OWN_FILES:
            (self.path / name).unlink(missing_ok=True)
        for file in self.path.glob("*.part"):
            file.unlink(missing_ok=True)
        shutil.rmtree(self.tables, ignore_errors=True)

    def rows(self, step: str | None = None) -> list[Row]:
        """Rows of results, of all steps or of one."""
        file = self.path / "results.jsonl"
        lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
        try:
            rows = [parse_json(line) for line in lines]
        except ValueError as error:
            raise SettingsError(f"{file} is damaged: {error}.") from error
        return rows if step is None else [row for row in rows if row["step"] == step]

    def put_rows(self, step: str, rows: Iterable[Row]) -> None:
        """Stores the rows of a step in place of earlier ones, as JSON lines and as CSV."""
        whole = [row for row in self.rows() if row["step"] != step] + [
            {name: {"run": self.path.name, "step": step, **row}.get(name) for name in ROW_FIELDS} for row in rows
        ]
        text = io.StringIO()
        writer = csv.DictWriter(text, ROW_FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: csv_cell(cell) for name, cell in row.items()} for row in whole)
        self.write("results.jsonl", "".join(json.dumps(row) + "\n" for row in whole))
        self.write("results.csv", text.getvalue())

    def read_json(self, name: str) -> dict[str, Any]:
        """A JSON file of this folder; empty if there is none."""
        file = self.path / name
        try:
            return dict(visible(parse_json(file.read_text(encoding="utf-8")))) if file.is_file() else {}
        except (ValueError, TypeError) as error:
            raise SettingsError(f"{file} is damaged: {error}.") from error

    def write(self, name: str, text: str) -> None:
        """Writes a text file, all of it or nothing."""
        write_atomic(self.path / name, text)

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Writes a log; an interruption says how to continue, and a wrong input removes a folder that was new."""
        is_new = not self.path.exists()
        self.path.mkdir(parents=True, exist_ok=True)
        if (self.path / "log.txt").is_symlink():  # it may lead to any file of the user
            raise SettingsError(f"{self.path / 'log.txt'} is a link, and nothing is written through links: remove it.")
        try:
            with _logging_to(self.path / "log.txt"):
                yield
        except KeyboardInterrupt:
            raise self._stopped() from None
        except AgnncertError:
            if is_new:
                self.clear()
                with suppress(OSError):  # it is kept if someone else has put something there
                    self.path.rmdir()
            raise

    def _stopped(self) -> Stopped:
        """Removes drafts of files and returns the error that says how an interrupted command continues."""
        for draft in self.path.glob("*.part"):
            draft.unlink(missing_ok=True)
        finished = [file for file in (self.weights, self.certificate) if file.exists()]
        if finished or any(self.path.glob("*.checkpoint")):
            return Stopped(f"what was finished is in {self.path}; the same command continues from there.")
        return Stopped("nothing was finished yet; the same command starts from the beginning.")


@contextmanager
def _logging_to(file: Path) -> Iterator[None]:
    """Writes what the library logs into a file, and at its end why the command stopped, if it did."""
    handler = logging.FileHandler(file, encoding="utf-8")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s", "%Y-%m-%d %H:%M:%S"))
    library = logging.getLogger("agnncert")
    level = library.level
    library.addHandler(handler)
    library.setLevel(logging.INFO)
    try:
        yield
    except KeyboardInterrupt:
        log.info("interrupted", extra=_FILE_ONLY)
        raise
    except Exception as error:
        log.error("%s: %s", type(error).__name__, error, extra=_FILE_ONLY)
        raise
    finally:
        library.removeHandler(handler)
        library.setLevel(level)
        handler.close()


def open_run(
    out: str | Path | None, name: str, step: str, table: Mapping[str, Any], digest: str, fresh: bool = False
) -> RunFolder:
    """The folder for a step: a new one, or the one in which the same step was begun before.

    Args:
        out: The folder to use. Defaults to ``runs/name``, or ``runs/name-2`` … if that holds another run.
        name: What to call it.
        step: The step that is to begin.
        table: Its settings.
        digest: Digest of its data.
        fresh: Start from the beginning, even if the folder holds a run.

    Raises:
        SettingsError: ``out`` holds something else.
    """
    if out is not None:
        folder = RunFolder(out)
        reasons = folder.differs(step, table, digest)
        if reasons and (not fresh or not folder.exists):
            hint = f"choose another --out{', or start again with --fresh' if folder.exists else ''}"
            raise SettingsError(f"{folder} cannot be used for this run: {'; '.join(reasons)}. Please {hint}.")
    else:
        names = chain([name], (f"{name}-{number}" for number in count(2)))
        candidates = (RunFolder(Path("runs", each)) for each in names)
        folder = next(candidate for candidate in candidates if not candidate.differs(step, table, digest))
    if fresh:
        folder.clear()
    return folder


def find_run(path: str | Path) -> RunFolder | None:
    """The run at ``path``, which may be its folder or any file in it."""
    place = Path(path)
    folder = RunFolder(place if place.is_dir() else place.parent)
    return folder if folder.exists else None


def toml_text(tables: Mapping[str, Mapping[str, Any]]) -> str:
    """Tables of plain values as TOML; raises SettingsError if a value cannot be stored."""
    import tomli_w

    try:
        return tomli_w.dumps(tables)
    except TypeError as error:
        raise SettingsError(f"these settings cannot be stored: {error}.") from error


@cache
def environment() -> dict[str, Any]:
    """Versions of the libraries and the kind of machine; no host name, user or path."""
    versions = {"agnncert": __version__, "python": platform.python_version()}
    for name in PACKAGES:
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    return {**versions, "system": f"{platform.system()} {platform.machine()}", "cpus": os.cpu_count()}


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
