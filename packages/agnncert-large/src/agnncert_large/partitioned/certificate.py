"""``StoredCertificate``: a certificate in records of ranges, which lie beside the graph until it is saved to one file.

The file is the one that ``Certificate.save`` writes, byte for byte. Neither writing it nor anything
before holds more than the record of one range.
"""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from agnncert.certificates.budget import Budget
from agnncert.certificates.claim import Claim
from agnncert.certificates.class_names import checked_class_names
from agnncert.certificates.file import Contents, contents_header
from agnncert.divided.evidence import Breaking
from agnncert.engine.workers import Here, Workers
from agnncert.errors import CertificateError
from agnncert.proving.certificate import (
    Certificate,
    everything_but_additions,
    load_certificate,
    usual_budgets,
)
from agnncert.storage import ArrayOnDisk, write_sealed_from_disk
from agnncert_large.partitioned.counting import (
    TEXTS,
    CountWork,
    Stated,
    StateWork,
    do_state,
)
from agnncert_large.partitioned.places import spare_folder
from agnncert_large.partitioned.voting import read_arrays

_TOTALS = ("evidence.indptr", "evidence.reach_ptr", "target.ptr")  # where each row begins


@dataclass(frozen=True)
class StoredCertificate:
    """A certificate in records of ranges. ``save`` writes it to one file, ``load`` reads it into memory.

    Attributes:
        claim: What is proved.
        work: Where the records lie.
        ranges: Numbers of the ranges with targets.
        num_targets: Number of targets.
        workers: Who derives statements when it is saved.
        class_names: What each class is called.
    """

    claim: Claim
    work: CountWork
    ranges: tuple[int, ...]
    num_targets: int
    workers: Workers = field(default_factory=Here, repr=False)
    class_names: tuple[str, ...] = ()

    def __len__(self) -> int:
        return self.num_targets

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"StoredCertificate({self.num_targets:,} targets, {self.claim.division})"

    def __str__(self) -> str:
        return (
            f"{self.num_targets:,} nodes are certified with {self.claim.division}. The votes lie in "
            f"{self.work.votes.votes}: save(FILE) writes the certificate, load() reads it into memory."
        )

    @property
    def num_classes(self) -> int:
        """Number of classes."""
        assert self.work.votes.bound_model is not None
        return self.work.votes.bound_model.num_classes

    def with_class_names(self, names: Iterable[str]) -> "StoredCertificate":
        """Returns the same certificate with names for its classes."""
        return replace(self, class_names=checked_class_names(tuple(names)))

    def save(
        self,
        path: str | os.PathLike[str],
        budgets: Iterable[Budget] | None = None,
        *,
        issued: Mapping[str, str] | None = None,
    ) -> None:
        """Writes the certificate to one file, which ``ac.load_certificate`` and ``agnncert verify`` read.

        Args:
            path: Where to write. An existing file is replaced once the new one is complete.
            budgets: As in ``Certificate.save``.
            issued: As in ``Certificate.save``.

        Raises:
            CertificateError: The file cannot be written, or ``issued`` makes no sense.
        """
        stated = usual_budgets(self.claim) if budgets is None else tuple(budgets)
        folder = f"statements-{_digest(stated)}"
        rest = everything_but_additions(self.claim.ids)
        work = StateWork(self.work, self.claim, stated, rest, folder)
        found = dict(self.workers.run(work, StateWork.prepare, do_state, self.ranges))
        contents = Contents(
            kind="votes",
            settings=self._settings(),
            claim=self.claim,
            budgets=stated,
            broken_at_most=_broken(stated, list(found.values())),
            evidence={},
            arrays={},
            issued=dict(issued or {}),
            class_names=self.class_names,
        )
        target = Path(path)
        with spare_folder(str(target.resolve().parent)) as spare:
            files = _Columns(spare)
            for number in self.ranges:
                files.add(self._arrays(work, number))
            write_sealed_from_disk(target, contents_header(contents), files.finish())
        for number in self.ranges:
            self.work.votes.votes.remove(work.file_of(number))

    def load(self) -> Certificate:
        """Reads the certificate into memory."""
        with spare_folder(None) as spare:
            self.save(spare / "whole.cert")
            return load_certificate(spare / "whole.cert")

    def discard(self) -> None:
        """Deletes the records and votes; a file that was saved stays."""
        self.work.votes.votes.remove_folder("")

    def _settings(self) -> dict[str, Any]:
        place, key = self.work.votes.votes, self.work.votes.key
        settings: dict[str, Any] = read_arrays(place, self.work.file_of(self.ranges[0]), key)[0]["settings"]
        return settings

    def _arrays(self, work: StateWork, number: int) -> dict[str, Any]:
        place, key = self.work.votes.votes, self.work.votes.key
        arrays = read_arrays(place, self.work.file_of(number), key)[1]
        return {**arrays, **read_arrays(place, work.file_of(number), key)[1]}


class _Columns:
    """Arrays that come range by range, one after the other in files of this machine."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._columns: dict[str, ArrayOnDisk] = {}
        self._ids_are_text = False

    def add(self, arrays: dict[str, Any]) -> None:
        """Appends the arrays of the next range."""
        self._agree_about_ids(arrays)
        for name, array in arrays.items():
            if array.ndim == 2 and not len(array):  # no budget: no row, but a column for each target
                before = self._columns.get(name, ArrayOnDisk(array.dtype, (), True))
                self._columns[name] = before._replace(columns=before.columns + array.shape[1])
                continue
            rows = array if array.ndim == 2 else array[None]
            for number, row in enumerate(rows):
                self._append(name, number, array.ndim, row, len(rows))

    def _agree_about_ids(self, arrays: dict[str, Any]) -> None:
        """Writes ids as text from the first range on in which one is text."""
        if "target.text" in arrays and not self._ids_are_text:
            self._ids_are_text = True
            earlier = self._columns.pop("target", None)
            if earlier is not None:
                self.add(_as_text(np.fromfile(earlier.files[0], dtype=np.int64)))
        elif self._ids_are_text and "target" in arrays:
            arrays.update(_as_text(arrays.pop("target")))

    def _append(self, name: str, number: int, ndim: int, row: Any, num_rows: int) -> None:
        if name not in self._columns:
            files = tuple(self._folder / f"{name}-{k}.column" for k in range(num_rows))
            self._columns[name] = ArrayOnDisk(row.dtype, files, ndim == 2)
        file = self._columns[name].files[number]
        if name in _TOTALS:
            row = self._continued(file, row)
        with file.open("ab") as opened:
            np.ascontiguousarray(row, dtype=row.dtype.newbyteorder("<")).tofile(opened)

    @staticmethod
    def _continued(file: Path, row: Any) -> Any:
        """Returns where rows begin, counted on from those of earlier ranges."""
        if not file.exists():
            return row
        with file.open("rb") as opened:
            opened.seek(-8, os.SEEK_END)
            last = np.frombuffer(opened.read(8), dtype="<i8")[0]
        return row[1:] + last

    def finish(self) -> dict[str, ArrayOnDisk]:
        """Returns all arrays."""
        return self._columns


def _as_text(ids: Any) -> dict[str, Any]:
    texts = [str(each).encode() for each in ids.tolist()]
    ends = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    return {TEXTS[0]: np.frombuffer(b"".join(texts), dtype=np.uint8), TEXTS[1]: ends}


def _broken(budgets: tuple[Budget, ...], found: list[Stated]) -> tuple[int, ...]:
    together = [Breaking.joined([part.breaking[k] for part in found]) for k in range(len(budgets))]
    return tuple(part.at_most(budget) for part, budget in zip(together, budgets, strict=True))


def _digest(budgets: tuple[Budget, ...]) -> str:
    text = json.dumps([str(budget) for budget in budgets])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def require_some(ranges: Iterator[int]) -> tuple[int, ...]:
    """Returns the ranges with targets, of which there must be some."""
    chosen = tuple(ranges)
    if not chosen:
        raise CertificateError("there is no target: nothing would be certified.")
    return chosen
