"""The step that exports: ``export_certificate`` writes one row per target for other programs, or a contest."""

import csv
import io
import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from agnncert.cli.controls_step import stored_controls
from agnncert.cli.folder import find_run
from agnncert.cli.settings import require_one_of
from agnncert.controls.table import Control
from agnncert.errors import missing
from agnncert.pairs.record import BETWEEN
from agnncert.proving.certificate import Certificate, load_certificate
from agnncert.proving.domain import title_in_domain
from agnncert.report.tables import csv_cell
from agnncert.storage import read_sealed, write_atomic

FORMATS = ("csv", "json", "parquet")
CONTEST = "contest"  # no table: the open certificate format


@dataclass(frozen=True)
class Exported:
    """What ``export_certificate`` returns.

    Attributes:
        file: The file that was written.
        rows: Its rows, one for each target.
        columns: The names of its columns.
        run: What identifies the run: the name of its folder, or that of the certificate file.
        certificate: SHA-256 of the certificate file, as it states it.
    """

    file: Path
    rows: int
    columns: tuple[str, ...]
    run: str
    certificate: str


def export_certificate(file: Path, to: str, out: Path | None = None) -> Exported:
    """Writes one row per target: its id, :meth:`Certificate.columns`, and the run and certificate that it comes from.

    Of a run folder, what its controls say stands beside it: ``control_score_…``, or ``control_label_…`` for more than
    two classes. Words of the user's domain stand in titles: ``new_payment_partners``.

    Args:
        file: The certificate.
        to: "csv", "json" (one object per target), "parquet", which needs pandas and pyarrow, or "contest", which is no
            table: :meth:`Certificate.to_contest`.
        out: Where to write. Defaults to a file of that kind beside the certificate.

    Raises:
        SettingsError: There is no such format.
        MissingPackage: Parquet needs a package that is not installed.
    """
    require_one_of("format", to, (*FORMATS, CONTEST))
    certificate = load_certificate(file)
    run = find_run(file)
    name = file.stem if run is None else run.path.resolve().name
    digest = digest_of(file)
    if to == CONTEST:
        out = out or file.with_name("contest.json")
        certificate.to_contest(out)
        return Exported(out, certificate.num_targets, (), name, digest)
    table = table_of(certificate, name, digest)
    if run is not None and file.name == run.certificate.name:
        table = {title_in_domain(title, run.words): values for title, values in table.items()}
        table |= _columns_of_controls(stored_controls(run, certificate))
    out = out or file.with_name(f"targets.{to}")
    write_table(table, to, out)
    return Exported(out, certificate.num_targets, tuple(table), name, digest)


def require_format(to: str) -> None:
    """Refuses a format that is none of ``FORMATS``."""
    require_one_of("format", to, FORMATS)


def write_table(table: dict[str, list[Any]], to: str, out: Path) -> None:
    """Writes columns as a file in one of ``FORMATS``."""
    if to == "csv":
        write_atomic(out, _as_csv(table))
    elif to == "json":
        write_atomic(out, _as_json(table))
    else:
        _write_parquet(table, out)


def digest_of(file: Path) -> str:
    """Returns the digest that a certificate file states of itself."""
    from agnncert.certificates.file import FORMAT, VERSION

    header, _ = read_sealed(file, FORMAT, VERSION)
    return str(header["file_sha256"])


def table_of(certificate: Certificate, run: str, digest: str) -> dict[str, list[Any]]:
    """Returns the columns of the table, as plain values. What is unknown or unlimited is None or infinite.

    Pairs also have the ids of both nodes, ``source`` and ``target``, by which other tables know them.
    """
    table: dict[str, list[Any]] = {"id": certificate.target.tolist()}
    if certificate.claim.task == "pair":
        ends = [str(name).partition(BETWEEN) for name in table["id"]]  # no id of a node contains what is between them
        table["source"] = [first for first, _, _ in ends]
        table["target"] = [second for _, _, second in ends]
    for name, values in certificate.columns().items():
        table[name] = values.tolist()
    if certificate.truth is not None:
        table["truth"] = [k if k >= 0 else None for k in certificate.truth.tolist()]
    table["unit"] = [certificate.claim.unit] * certificate.num_targets
    table["run"] = [run] * certificate.num_targets
    table["certificate_sha256"] = [digest] * certificate.num_targets
    return table


def _columns_of_controls(controls: Sequence[Control]) -> dict[str, list[Any]]:
    """Returns a column with the score, or the class, that each control gives; None where it gives none."""
    columns: dict[str, list[Any]] = {}
    for control in controls:
        name = re.sub(r"\W+", "_", control.name).strip("_")
        if control.score is not None:
            columns[f"control_score_{name}"] = [None if score != score else score for score in control.score.tolist()]
        else:
            assert control.label is not None
            columns[f"control_label_{name}"] = [None if k < 0 else k for k in control.label.tolist()]
    return columns


def _rows(table: dict[str, list[Any]]) -> Iterator[tuple[Any, ...]]:
    return zip(*table.values(), strict=True)


def _as_csv(table: dict[str, list[Any]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table)
    for row in _rows(table):
        writer.writerow(["" if cell is None else csv_cell(cell) for cell in row])
    return text.getvalue()


def _as_json(table: dict[str, list[Any]]) -> str:
    """Returns a list of objects. JSON has no infinity, so it is spelled ``"inf"``."""
    objects = [{name: _json_value(value) for name, value in zip(table, row, strict=True)} for row in _rows(table)]
    return json.dumps(objects, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _json_value(value: Any) -> Any:
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return value


def _write_parquet(table: dict[str, list[Any]], out: Path) -> None:
    try:
        import pandas as pd
        import pyarrow  # noqa: F401
    except ModuleNotFoundError as error:
        raise missing(error.name, "--to parquet") from None
    frame = pd.DataFrame(table)
    mixed = not all(isinstance(target, int) and abs(target) < np.iinfo(np.int64).max for target in table["id"])
    if mixed:  # a column of a parquet file has one type
        frame["id"] = [str(target) for target in table["id"]]
    frame.to_parquet(out, index=False)
