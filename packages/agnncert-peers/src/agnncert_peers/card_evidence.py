"""The evidence that cards name: certificates, labels and votes of parts, packed, read again and derived again."""

import hashlib
import lzma
import math
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from agnncert.certificates.budget import COUNTS, TRAINING, Budget
from agnncert.certificates.file import Contents
from agnncert.certificates.votes import BoolArray, IntArray
from agnncert.errors import CertificateError
from agnncert.storage import parse_json, write_atomic
from agnncert.verdict import check_file
from agnncert_peers.cards import BEFORE_TRAINING, MEASURES, budgets_of

LARGEST_FILE = 2**28  # bytes of an unpacked certificate
MOST_VOTES = 2**31  # of parts for one class

# How a card states the number of parts: in its settings, and perhaps in the name of the control.
_PARTS = re.compile(r"\b(\d[\d,]*) (?:parts|training labels|training graphs)\b", re.ASCII)
_NAMED_PARTS = re.compile(r"\bT=(\d+)", re.ASCII)


@dataclass(frozen=True)
class Evidence:
    """What a file proves: which targets have the true class, and which of them hold against each budget.

    Attributes:
        target: Ids of the targets.
        truth: Their true classes.
        label: Their labels.
        guarantee: As the certificate says; ``"none"`` for labels alone.
        contents: What the certificate says, or ``None`` for labels alone and for votes of parts.
        bears: How many votes of parts may be altered before the label may change, shape ``[n]``; ``None`` if it is not
            about votes of parts.
        num_parts: How many parts vote on each target; ``None`` if it is not about votes of parts.
    """

    target: npt.NDArray[Any]
    truth: IntArray
    label: IntArray
    guarantee: str
    contents: Contents | None = None
    bears: IntArray | None = None
    num_parts: int | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """What the certificate calls its defence with its settings; empty for labels alone."""
        if self.contents is None:
            return ()
        claim = self.contents.claim
        own = claim.division or claim.method
        if self.contents.kind == "isolated":  # its division is that of test graphs alone
            return (*claim.notes, own)
        return (own, *claim.notes)

    def holds(self, budget: Budget) -> BoolArray:
        """Tells which targets hold against a budget, shape ``[n]``.

        Labels alone prove something only if there is no attack, or if they are a constant and training data are
        trusted: the constant may be the most frequent training label. Votes of parts prove something about changed
        training data and nothing else.

        Raises:
            CertificateError: The certificate states nothing about this budget.
        """
        if self.bears is not None:
            return np.asarray(self.bears >= _altered_parts(budget))
        if self.contents is None:
            is_constant = len(np.unique(self.label)) == 1
            trusts_training = not budget.training_fields
            return np.full(len(self.label), _is_harmless(budget) or (is_constant and trusts_training))
        if budget not in self.contents.budgets:
            raise CertificateError(f"the certificate states nothing about {budget}: save it with this budget.")
        position = self.contents.budgets.index(budget)
        return np.asarray(self.contents.arrays["holds"][position])

    def share(self, threat: str, size: int, measure: str = MEASURES[0]) -> float:
        """Returns the share of targets that have the true class and hold: of all, or the mean over the true classes.

        Raises:
            CertificateError: The certificate states nothing about this threat.
        """
        if threat in BEFORE_TRAINING and self.contents is not None and not self.is_edge_blind:
            raise CertificateError(
                f'the model was trained on edges, so that nothing is proved about the threat "{threat}".'
            )
        if self.num_audited and budgets_of(threat, 1)[0].training_fields:
            raise CertificateError(
                f'{self.num_audited:,} training labels are audited, so that no attacker changes them, and the threat "'
                f'{threat}" is about all of them.'
            )
        holds = np.all([self._holds_against(threat, budget) for budget in budgets_of(threat, size)], axis=0)
        counts = holds & (self.label == self.truth)
        if measure == MEASURES[0]:
            return float(counts.mean())
        return float(np.mean([counts[self.truth == k].mean() for k in np.unique(self.truth)]))

    def wrong_parts(self, defence: str, settings: str, is_control: bool) -> list[str]:
        """Lists why a card may not name these votes of parts; empty for other evidence.

        Nobody but the maker of a control has seen its parts vote, so that the card must state how many there are.

        Args:
            defence: Name of the control; ``T=50`` in it states 50 parts.
            settings: Its settings, which state "50 parts", "50 training labels" or "50 training graphs".
            is_control: Whether the card is of a control.
        """
        if self.num_parts is None:
            return []
        wrong = []
        if not is_control:
            wrong.append("votes of parts are evidence of controls alone: a defence needs a certificate")
        stated = {int(number.replace(",", "")) for number in _PARTS.findall(settings)}
        if not stated:
            wrong.append(f'the card states no number of parts: write "{self.num_parts:,} parts" into its settings')
            return wrong
        stated |= {int(number) for number in _NAMED_PARTS.findall(defence)}
        words = " and ".join(f"{number:,}" for number in sorted(stated))
        if len(stated) > 1:
            wrong.append(f"the card states {words} parts, which is not one number")
        elif stated != {self.num_parts}:
            wrong.append(f"there are {self.num_parts:,} votes for each target, and the card states {words} parts")
        return wrong

    def speaks_of(self, threat: str, sizes: Sequence[int]) -> bool:
        """Tells whether a share can be stated for a threat: labels and parts have one, if it is 0."""
        if self.contents is None:
            return True
        budgets = [budget for size in sizes for budget in budgets_of(threat, size)]
        is_stated = all(budget in self.contents.budgets for budget in budgets)
        is_about_fewer = bool(self.num_audited) and any(budget.training_fields for budget in budgets)
        return is_stated and not is_about_fewer and (threat not in BEFORE_TRAINING or self.is_edge_blind)

    @property
    def is_edge_blind(self) -> bool:
        """Whether the certificate states that training read no edge."""
        return self.contents is not None and self.contents.settings.get("edge_blind") is True

    @property
    def num_audited(self) -> int:
        """Number of training labels that no attacker can change, as the certificate states it."""
        if self.contents is None or "audited" not in self.contents.evidence:
            return 0
        return int(self.contents.evidence["audited"].sum())

    def _holds_against(self, threat: str, budget: Budget) -> BoolArray:
        """Tells which targets hold; the constant of a threat before training may be a label that was poisoned."""
        if threat in BEFORE_TRAINING and self.contents is None and not _is_harmless(budget):
            return np.zeros(len(self.label), dtype=bool)
        return self.holds(budget)


def _is_harmless(budget: Budget) -> bool:
    """Tells whether a budget allows nothing."""
    changes = [getattr(budget, name) for name in (*COUNTS, *TRAINING) if name != "edges_per_injected"]
    return not any(changes) and not budget.target_features


def _altered_parts(budget: Budget) -> float:
    """Returns how many votes an attack alters if one changed training label or graph alters one vote."""
    at_test_time = budget.but(**dict.fromkeys(budget.training_fields, 0))
    if not _is_harmless(at_test_time):
        return math.inf
    return float(sum(getattr(budget, name) for name in budget.training_fields))


def read_evidence(file: Path, sha256: str, kind: str) -> Evidence:
    """Reads a file with evidence, and derives all its statements again.

    Args:
        file: The file.
        sha256: The digest that it should have.
        kind: ``"certificate"``, ``"labels"`` or ``"parts"``.

    Raises:
        CertificateError: It has another digest, or a statement in it does not follow.
    """
    content = unpacked(file)
    digest = hashlib.sha256(content).hexdigest()
    if digest != sha256:
        raise CertificateError(f"{file.name} has the digest {digest[:16]}…, the card names {sha256[:16]}…")
    if kind == "labels":
        return _read_labels(file.name, content)
    if kind == "parts":
        return _read_parts(file.name, content)
    if kind != "certificate":
        raise CertificateError(f'the evidence is of the kind "{kind}": expected "certificate", "labels" or "parts".')
    return _read_certificate(file.name, content)


def _read_labels(name: str, content: bytes) -> Evidence:
    stored = _read_lists(name, content, ("target", "label", "truth"))
    label = _whole_numbers(name, stored["label"])
    target, truth = _targets_of(name, stored, len(label))
    return Evidence(target, truth, label, "none")


def _read_parts(name: str, content: bytes) -> Evidence:
    """Reads how many parts vote for each class, and counts how many of them may be altered.

    The class with most votes is the label, the smaller one on a tie. An altered vote moves from the label to a rival,
    so that it costs two votes of the lead; one that is added or gone costs one. Every part votes on every target.
    """
    stored = _read_lists(name, content, ("target", "votes", "truth"))
    rows = stored["votes"]
    if not isinstance(rows, list) or not rows or not all(isinstance(row, list) for row in rows):
        raise CertificateError(f"{name} holds no votes: expected one list for each target.")
    widths = {len(row) for row in rows}
    votes = _whole_numbers(name, [number for row in rows for number in row])
    if len(widths) != 1 or min(widths) < 2 or (votes < 0).any() or (votes > MOST_VOTES).any():
        raise CertificateError(f"{name} has not a number of votes from 0 on for each target and class.")
    votes = votes.reshape(len(rows), -1)
    cast = np.unique(votes.sum(axis=1))
    if len(cast) > 1:
        raise CertificateError(
            f"{name} has targets with {cast[0]:,} and with {cast[1]:,} votes: every part has one vote on each target."
        )
    target, truth = _targets_of(name, stored, len(votes))
    label = votes.argmax(axis=1)
    classes = np.arange(votes.shape[1])
    lead = np.take_along_axis(votes, label[:, None], axis=1) - votes - (classes < label[:, None])
    rivals = np.where(classes == label[:, None], 2 * MOST_VOTES, lead)
    bears = rivals.min(axis=1) // 2
    return Evidence(target, truth, label, "deterministic", bears=bears, num_parts=int(cast[0]))


def _read_lists(name: str, content: bytes, expected: tuple[str, ...]) -> dict[str, Any]:
    try:
        stored = parse_json(content)
    except (ValueError, RecursionError) as error:
        raise CertificateError(f"{name} is no JSON: {error}.") from error
    if not isinstance(stored, dict) or set(stored) != set(expected):
        raise CertificateError(f"{name}: expected lists called {', '.join(expected)}.")
    return stored


def _targets_of(name: str, stored: dict[str, Any], number: int) -> tuple[npt.NDArray[Any], IntArray]:
    """Returns the ids of the targets and their true classes: one for each label."""
    target = _ids(name, stored["target"])
    truth = _whole_numbers(name, stored["truth"])
    one_each = len(target) == number == len(truth) == len(np.unique(target))
    if not one_each or not number:
        raise CertificateError(f"{name} has not one label and one true class for each target.")
    if (truth < 0).any():
        raise CertificateError(f"{name} has no true class for some targets.")
    return target, truth


def _ids(name: str, values: Any) -> npt.NDArray[Any]:
    """Returns the ids of targets: whole numbers, or texts, which pairs of nodes have."""
    are_texts = isinstance(values, list) and bool(values) and all(isinstance(value, str) for value in values)
    return np.array(values, dtype=object) if are_texts else _whole_numbers(name, values)


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
