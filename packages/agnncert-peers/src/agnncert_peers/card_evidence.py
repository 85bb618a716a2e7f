"""The evidence that cards name: certificates and labels, packed, read again and derived again."""

import hashlib
import lzma
import math
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from agnncert.certificates.budget import Budget
from agnncert.certificates.file import Contents
from agnncert.certificates.votes import BoolArray, IntArray
from agnncert.errors import CertificateError
from agnncert.storage import parse_json, write_atomic
from agnncert.verdict import check_file
from agnncert_peers.cards import budgets_of

LARGEST_FILE = 2**28  # bytes of an unpacked certificate


@dataclass(frozen=True)
class Evidence:
    """What a file proves: which targets have the true class, and which of them hold against each budget.

    Attributes:
        target: Ids of the targets.
        truth: Their true classes.
        label: Their labels.
        guarantee: As the certificate says; ``"none"`` for labels alone.
        contents: What the certificate says, or ``None`` for labels alone.
    """

    target: IntArray
    truth: IntArray
    label: IntArray
    guarantee: str
    contents: Contents | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """What the certificate calls its defence with its settings; empty for labels alone."""
        if self.contents is None:
            return ()
        claim = self.contents.claim
        return (claim.division or claim.method, *claim.notes)

    def holds(self, budget: Budget) -> BoolArray:
        """Tells which targets hold against a budget, shape ``[n]``.

        Labels alone prove something only if they are a constant, or if there is no attack.

        Raises:
            CertificateError: The certificate states nothing about this budget.
        """
        if self.contents is None:
            is_constant = len(np.unique(self.label)) == 1
            return np.full(len(self.label), is_constant or _is_harmless(budget))
        if budget not in self.contents.budgets:
            raise CertificateError(f"the certificate states nothing about {budget}: save it with this budget.")
        position = self.contents.budgets.index(budget)
        return np.asarray(self.contents.arrays["holds"][position])

    def share(self, threat: str, size: int) -> float:
        """Returns the share of all targets that have the true class and hold."""
        holds = np.all([self.holds(budget) for budget in budgets_of(threat, size)], axis=0)
        is_right = self.label == self.truth
        return float((holds & is_right).mean())


def _is_harmless(budget: Budget) -> bool:
    changes = (budget.add_edges, budget.delete_edges, budget.inject_nodes, budget.change_features)
    return not any(changes)


def read_evidence(file: Path, sha256: str, kind: str) -> Evidence:
    """Reads a file with evidence, and derives all its statements again.

    Args:
        file: The file.
        sha256: The digest that it should have.
        kind: ``"certificate"`` or ``"labels"``.

    Raises:
        CertificateError: It has another digest, or a statement in it does not follow.
    """
    content = unpacked(file)
    digest = hashlib.sha256(content).hexdigest()
    if digest != sha256:
        raise CertificateError(f"{file.name} has the digest {digest[:16]}…, the card names {sha256[:16]}…")
    if kind == "labels":
        return _read_labels(file.name, content)
    if kind != "certificate":
        raise CertificateError(f'the evidence is of the kind "{kind}": expected "certificate" or "labels".')
    return _read_certificate(file.name, content)


def _read_labels(name: str, content: bytes) -> Evidence:
    try:
        stored = parse_json(content)
    except (ValueError, RecursionError) as error:
        raise CertificateError(f"{name} holds no labels: {error}.") from error
    if not isinstance(stored, dict) or set(stored) != {"target", "label", "truth"}:
        raise CertificateError(f"{name} holds no labels: expected lists called target, label and truth.")
    target = _whole_numbers(name, stored["target"])
    label = _whole_numbers(name, stored["label"])
    truth = _whole_numbers(name, stored["truth"])
    one_each = len(target) == len(label) == len(truth) == len(np.unique(target))
    if not one_each or not len(target):
        raise CertificateError(f"{name} has not one label and one true class for each target.")
    if (truth < 0).any():
        raise CertificateError(f"{name} has no true class for some targets.")
    return Evidence(target, truth, label, "none")


def _whole_numbers(name: str, values: Any) -> IntArray:
    """Returns a list of whole numbers as an array; nothing is rounded."""
    are_whole = isinstance(values, list) and all(type(value) is int and abs(value) < 2**63 for value in values)
    if not are_whole:
        raise CertificateError(f"{name} holds something else than lists of whole numbers.")
    return np.array(values, dtype=np.int64)


def _read_certificate(name: str, content: bytes) -> Evidence:
    with tempfile.TemporaryDirectory() as folder:
        plain = Path(folder) / "certificate.cert"
        plain.write_bytes(content)
        contents, wrong = check_file(plain)
    if wrong:
        raise CertificateError(f"{name} is refused: {'; '.join(wrong)[:400]}.")
    if "unsound" in contents.claim.method:
        raise CertificateError(f"{name} is of {contents.claim.method}: nothing that it states is proved.")
    truth = contents.arrays.get("truth")
    if truth is None or (truth < 0).any():
        raise CertificateError(f"{name} has no true class for some targets.")
    return Evidence(contents.arrays["target"], truth, contents.arrays["label"], contents.claim.guarantee, contents)


def unpacked(file: Path) -> bytes:
    """Returns the bytes of a file, unpacked if its name ends in ``.xz``; at most ``LARGEST_FILE``."""
    if file.stat().st_size > LARGEST_FILE:
        raise CertificateError(f"{file.name} has more than {LARGEST_FILE:,} bytes.")
    content = file.read_bytes()
    if file.suffix != ".xz":
        return content
    try:
        unpacker = lzma.LZMADecompressor()
        content = unpacker.decompress(content, max_length=LARGEST_FILE)
    except lzma.LZMAError as error:
        raise CertificateError(f"{file.name} cannot be unpacked: {error}.") from error
    if not unpacker.eof:
        raise CertificateError(f"{file.name} is cut short, or has more than {LARGEST_FILE:,} bytes.")
    return content


def pack(content: bytes, file: Path, largest: float = math.inf) -> str | None:
    """Writes evidence, packed, beside cards; returns the name of the file, or ``None`` if it is larger than allowed."""
    if len(content) > 50 * largest:  # certificates shrink by about ten
        return None
    packed = lzma.compress(content, preset=6)
    if len(packed) > largest:
        return None
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(file, packed)
    return file.name
