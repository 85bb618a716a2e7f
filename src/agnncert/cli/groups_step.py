"""The step that compares groups: recall and false positives by degree, by age, or by a column of a table."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from agnncert.certificates.budget import Budget
from agnncert.cli.ages import ages_of_run, looked_up, moved
from agnncert.cli.folder import RunFolder, find_run
from agnncert.cli.report_step import unlimited
from agnncert.cli.settings import stored_settings
from agnncert.cli.tables_of import require_table_of_run
from agnncert.datasets.columns import Table, read_table
from agnncert.datasets.encoding_columns import kind_of, numbers_of
from agnncert.errors import SettingsError
from agnncert.proving.certificate import Certificate, load_certificate
from agnncert.proving.groups import Amounts, Groups, ranges


def groups_of(source: Path, by: str, at: Mapping[str, Any], positive: str | None = None) -> Groups:
    """Returns recall and false positives of one class by groups of targets.

    Args:
        source: A certificate, or the run folder that holds one.
        by: "degree"; "age", for tables of events; a column of the run's table of nodes; or ``FILE:COLUMN``, for any
            table with a column ``id``.
        at: Fields of the budget that one attacked graph spends on a group; empty for no attack.
        positive: The class, by name or number. Defaults to that of the threshold, or the rarest.

    Raises:
        SettingsError: There is no such column, no true class is known, or the file has no degrees.
    """
    file = source / "certificate.cert" if source.is_dir() else source
    certificate = load_certificate(file)
    budget = Budget().but(**unlimited(at))
    chosen: Any = int(positive) if positive is not None and positive.isdecimal() else positive
    groups = "degree" if by == "degree" else _named(certificate, find_run(file), by)
    return certificate.by_group(groups, budget, chosen)


def amounts_of(source: Path, amount: str, at: Mapping[str, Any], positive: str | None = None) -> Amounts:
    """Returns how much money is behind what is found, and stays found.

    Args:
        source: A certificate, or the run folder that holds one.
        amount: A column with the amount of each target, as ``FILE:COLUMN``, of a table with a column ``id``; or
            ``events:COLUMN`` for the sum of a column over the events of each target, those that it sent and got.
        at: Fields of the budget of the attack; empty for no attack.
        positive: The class, as for :func:`groups_of`.

    Raises:
        SettingsError: No file is named, or amounts make no sense.
    """
    path = source / "certificate.cert" if source.is_dir() else source
    certificate = load_certificate(path)
    file, _, column = amount.rpartition(":")
    if not file:
        raise SettingsError(
            f"--amount {amount}: expected FILE:COLUMN, of a table with a column id, or events:COLUMN, of the run's own "
            "events."
        )
    if file == "events":
        found = looked_up(certificate, moved(find_run(path), column))
    else:
        table = read_table(Path(file), ["id"])
        table.require(column)
        values = numbers_of(table.frame[column], "number").tolist()
        found = looked_up(certificate, dict(zip(map(str, table.ids("id")), values, strict=True)))
    chosen: Any = int(positive) if positive is not None and positive.isdecimal() else positive
    return certificate.amounts(found.tolist(), Budget().but(**unlimited(at)), chosen)


def _named(certificate: Certificate, run: RunFolder | None, by: str) -> list[Any]:
    """Returns the group of each target, from a table."""
    if by == "age":
        return list(ranges(looked_up(certificate, ages_of_run(run))))
    file, _, column = by.rpartition(":")
    if file:
        return _column(certificate, read_table(Path(file), ["id"]), "id", column)
    if run is None:
        raise SettingsError(f'--by {by}: a certificate has only "degree"; name a run folder, or FILE:COLUMN.')
    names = stored_settings(run).column
    table = read_table(require_table_of_run(run, "nodes"), [str(names.get("id", "id"))])
    return _column(certificate, table, str(names.get("id", "id")), by)


def _column(certificate: Certificate, table: Table, id: str, column: str) -> list[Any]:
    """Returns the entries of a column for each target: as ranges if they are numbers or dates, else as they are."""
    for name in (id, column):
        table.require(name)
    values = table.frame[column]
    kind = kind_of(values)
    names = [str(name) for name in table.ids(id)]
    if kind == "category":
        entries = dict(zip(names, table.text(column), strict=True))
        return [entries.get(str(target)) or None for target in certificate.target.tolist()]
    numbers = dict(zip(names, numbers_of(values, kind).tolist(), strict=True))
    found = looked_up(certificate, numbers)
    if len(np.unique(found[np.isfinite(found)])) <= 6:  # a few codes are names, and no ranges
        return [f"{value:g}" if value == value else None for value in found.tolist()]
    return list(ranges(found))
