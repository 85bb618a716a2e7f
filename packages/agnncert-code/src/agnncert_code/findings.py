"""What a scan of a source tree found: verdicts, votes of statements, and the accuracy of the detector."""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from agnncert.errors import missing
from agnncert.proving.certificate import Certificate

HARDLY = 0.05  # a lead in balanced accuracy below which a detector is hardly better than function length
# Attributes of a function that are columns of a table, and those that are stored beside them.
_TABULATED = ("file", "line", "name", "score", "edited", "inserted", "deleted", "statements", "partial")
_STORED = (
    "file",
    "line",
    "last_line",
    "name",
    "score",
    "edited",
    "inserted",
    "deleted",
    "statements",
    "partial",
    "fingerprint",
    "certificate",
    "target",
)


@dataclass(frozen=True)
class StatementVote:
    """What was voted where one statement stands.

    Attributes:
        line: Its line in the file.
        text: Its normalised text.
        vote: The class that its group voted for, or -1 if the group abstained.
        stable: Whether that vote is far enough from a tie to be relied on. If not, it counts for the attacker.
        together: How many statements share the group, and so the vote.
    """

    line: int
    text: str
    vote: int
    stable: bool
    together: int


@dataclass(frozen=True)
class ScannedFunction:
    """The verdict on one function.

    Attributes:
        file: Its file, as it is shown: below the current folder if it lies there, else below the folder scanned.
        line: Its first line in the file.
        last_line: Its last line.
        name: Its name, or empty if it has none that could be read.
        label: The class that was elected.
        score: Share of the votes that the suspicious class got, where two more votes count for no class: the fewer
            votes there are, the less they say.
        votes: Votes for each class, those of a prior included.
        edited: The most statements that may be inserted, deleted or replaced, in any mix, without changing the label:
            ``math.inf`` for any number, -1 if not even moving statements, which is no edit, is withstood.
        inserted: The same if statements are inserted only.
        deleted: The same if statements are deleted only.
        statements: Number of its statements.
        partial: Whether parts of it could not be parsed.
        fingerprint: A hash of its statements, which layout and moving the function leave as it is.
        certificate: Which of the scan's certificates it is in.
        target: Its number there.
        source: Its text, or empty for functions that are far from suspicious.
        spoke: What was voted, statement by statement, or empty for functions without ``source``.
    """

    file: str
    line: int
    last_line: int
    name: str
    label: int
    score: float
    votes: tuple[int, ...]
    edited: float
    inserted: float
    deleted: float
    statements: int
    partial: bool
    fingerprint: str
    certificate: int
    target: int
    source: str = field(default="", repr=False)
    spoke: tuple[StatementVote, ...] = field(default=(), repr=False)

    def against(self, suspicious: int) -> int:
        """Returns the votes for the strongest of the other classes. One that cannot win may start far below zero."""
        return max(votes for label, votes in enumerate(self.votes) if label != suspicious)

    @property
    def place(self) -> str:
        """``file:line``."""
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class Accuracy:
    """Accuracy of a detector beside that of a threshold on function length, on the same test functions.

    Attributes:
        data: Name of the dataset.
        functions: Number of test functions.
        detector: Share of the test functions that the detector labels correctly.
        detector_balanced: Mean over the classes of the share of that class that the detector labels correctly.
        length: Accuracy of the threshold: functions with more tokens are called vulnerable.
        length_balanced: Balanced accuracy of the threshold.
        tokens: The threshold, chosen on the training and validation parts.
    """

    data: str
    functions: int
    detector: float
    detector_balanced: float
    length: float
    length_balanced: float
    tokens: int

    def check(self) -> None:
        """Raises ValueError if a stored accuracy is not made of shares, counts and a name."""
        shares = (self.detector, self.detector_balanced, self.length, self.length_balanced)
        counts = (self.functions, self.tokens)
        are_shares = all(isinstance(share, float | int) and 0 <= share <= 1 for share in shares)
        are_counts = all(isinstance(count, int) and count >= 0 for count in counts)
        is_name = isinstance(self.data, str) and self.data.isprintable()
        if not (are_shares and are_counts and is_name):
            raise ValueError("expected shares from 0 to 1, whole numbers, and the name of a dataset")

    def __str__(self) -> str:
        return (
            f"Measured on the {self.functions:,} test functions of {self.data}: the detector is right for "
            f"{self.detector:.1%} (balanced accuracy {self.detector_balanced:.1%}); the length of a function alone, "
            f"with a threshold of {self.tokens:,} tokens, is right for {self.length:.1%} (balanced accuracy "
            f"{self.length_balanced:.1%}). The detector is {self._comparison()} than function length."
        )

    def _comparison(self) -> str:
        lead = self.detector_balanced - self.length_balanced
        if lead <= 0:
            return "not better"
        return "hardly better" if lead < HARDLY else "better"


def accuracy_text(accuracy: Accuracy | None) -> str:
    """Returns the accuracy in words, also where it is unknown."""
    if accuracy is not None:
        return str(accuracy)
    return (
        "The accuracy of this detector is unknown: it was not measured with this vote. On Big-Vul, detectors are "
        "hardly better than function length. agnncert scan --run RUN --measure measures the accuracy of a run."
    )


@dataclass(frozen=True)
class Scan:
    """The outcome of a scan, most suspicious functions first.

    Attributes:
        folder: What was scanned, as it is shown.
        functions: The verdicts, most suspicious first.
        skipped: Why files and functions were left out, by their place.
        partial_files: Files of which parts could not be parsed, so that functions may be missing.
        certificates: The proofs, several if there were too many functions for one.
        class_names: What the classes are called.
        suspicious: The class that is looked for.
        seconds: How long it took.
        accuracy: Measured accuracy of the detector beside that of function length, or None if unknown.
    """

    folder: str
    functions: tuple[ScannedFunction, ...]
    skipped: dict[str, str]
    partial_files: tuple[str, ...]
    certificates: tuple[Certificate, ...]
    class_names: tuple[str, ...]
    suspicious: int
    seconds: float
    accuracy: Accuracy | None = None

    @property
    def flagged(self) -> tuple[ScannedFunction, ...]:
        """The functions that were elected into the suspicious class."""
        return tuple(function for function in self.functions if function.label == self.suspicious)

    def withstanding(self, edits: float) -> tuple[ScannedFunction, ...]:
        """Returns the flagged functions whose verdict is certified against at least ``edits`` edited statements."""
        return tuple(function for function in self.flagged if function.edited >= edits)

    def name_of(self, label: int) -> str:
        """Returns what a class is called."""
        return self.class_names[label] if 0 <= label < len(self.class_names) else str(label)

    def to_json(self) -> dict[str, Any]:
        """Returns everything but texts, votes of single statements and certificates, as JSON values.

        Any number of edited statements is ``"inf"``.
        """
        return {
            "folder": self.folder,
            "classes": list(self.class_names),
            "suspicious": self.name_of(self.suspicious),
            "division": self.certificates[0].claim.division if self.certificates else None,
            "digests": [certificate.claim.digests for certificate in self.certificates],
            "seconds": round(self.seconds, 2),
            "accuracy": None if self.accuracy is None else asdict(self.accuracy),
            "skipped": self.skipped,
            "partial_files": list(self.partial_files),
            "functions": [self._row(function) for function in self.functions],
        }

    def _row(self, function: ScannedFunction) -> dict[str, Any]:
        row = {name: _plain(getattr(function, name)) for name in _STORED}
        return {**row, "label": self.name_of(function.label), "votes": list(function.votes)}

    def to_pandas(self) -> Any:
        """Returns a pandas table, one row per function, most suspicious first."""
        try:
            import pandas as pd
        except ModuleNotFoundError as error:
            raise missing(error.name, "to_pandas") from None
        columns: dict[str, Any] = {}
        for name in _TABULATED:
            columns[name] = [getattr(function, name) for function in self.functions]
        columns["label"] = [self.name_of(function.label) for function in self.functions]
        for k in range(len(self.class_names)):
            columns[f"votes_{k}"] = [function.votes[k] for function in self.functions]
        return pd.DataFrame(columns)

    def __str__(self) -> str:
        head = f"{len(self.flagged):,} of {len(self.functions):,} functions: {self.name_of(self.suspicious)}"
        lines = [f"  {function.place} {function.name} ({function.score:.0%})" for function in self.flagged[:10]]
        return "\n".join([head, *lines])


def fingerprint(ids: Sequence[str]) -> str:
    """Returns a hash of a function's statements, in any order.

    Example:
        >>> fingerprint(["#1 a ;", "#1 b ;"]) == fingerprint(["#1 b ;", "#1 a ;"])
        True
    """
    return hashlib.sha256("\n".join(sorted(ids)).encode("utf-8", "surrogatepass")).hexdigest()[:32]


def amount(number: float) -> str:
    """Returns how many edited statements, as people read it.

    Example:
        >>> [amount(number) for number in (3.0, math.inf, -1.0)]
        ['3', 'any', 'none']
    """
    if number < 0:
        return "none"
    return "any" if math.isinf(number) else f"{int(number):,}"


def _plain(value: Any) -> Any:
    if not isinstance(value, float):
        return value
    return "inf" if math.isinf(value) else round(value, 4)
