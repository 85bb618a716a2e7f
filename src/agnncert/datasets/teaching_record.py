"""``Teaching``: how the labels of taught data came about. Imports no torch."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, Self, get_args

from agnncert.errors import SettingsError

ClassShares = Literal["given", "predicted"]  # how frequent a teacher takes classes to be
CLASS_SHARES = get_args(ClassShares)
NOTE_BEGINS = "Training data are trusted: a teacher"


@dataclass(frozen=True)
class Teaching:
    """How the labels of taught data came about. ``data.teaching`` holds it, and ``fit`` puts it into the record.

    Attributes:
        teacher: Name of the teacher's model, such as "gcn".
        weights: SHA-256 of each model that the teacher consists of.
        settings: Settings of its training; empty if it was trained by the caller.
        protocol: Whether validation nodes were hidden from it: "held-out", or "inductive" if they were not.
        data: Digest of the data before teaching (``dataset_digest``).
        num_edges: Pairs of the training graph that the teacher could read.
        num_given: Training nodes with a label of their own.
        taught_by_class: Taught nodes of each class.
        accuracy: Share of validation nodes that the teacher gets right, with the class shares of the given labels.
        accuracy_without_edges: The same of as many models that read no edge; ``None`` if the teacher is such a model.
        seconds: How long the teacher was trained.
        class_shares: How frequent the teacher took classes to be: "given", as among the given labels, or "predicted",
            as among its own predictions.
        num_targets: Nodes that were hidden as the only targets; 0 if all test nodes were hidden.
        num_others: Test nodes that are no targets, which the teacher labelled too. Their own labels were not read.
    """

    teacher: str
    weights: tuple[str, ...]
    settings: Mapping[str, Any]
    protocol: str
    data: str
    num_edges: int
    num_given: int
    taught_by_class: tuple[int, ...]
    accuracy: float
    accuracy_without_edges: float | None = None
    seconds: float = 0.0
    class_shares: ClassShares = "given"
    num_targets: int = 0
    num_others: int = 0

    @property
    def num_taught(self) -> int:
        """Nodes that the teacher labelled."""
        return sum(self.taught_by_class)

    @property
    def note(self) -> str:
        """What a claim says about it."""
        models = "1 model" if len(self.weights) == 1 else f"{len(self.weights)} models"
        others = ""
        if self.num_others:
            others = (
                f" {self.num_others:,} of the nodes that it labelled are test nodes whose own labels were not read: "
                f"accuracy speaks about the {self.num_targets:,} targets that were hidden, and no other test node."
            )
        return (
            f"{NOTE_BEGINS} ({self.teacher}, {models}) read {self.num_edges:,} edges of the training graph and "
            f"labelled {self.num_taught:,} of its nodes, and the certified model learnt from these labels beside "
            f"{self.num_given:,} given ones. Whoever changed that graph before training is not covered.{others}"
        )

    def to_json(self) -> dict[str, Any]:
        """Returns this record as JSON values. :meth:`from_json` is the inverse."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """Returns the record that :meth:`to_json` described.

        Raises:
            SettingsError: A field is missing or unknown.
        """
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in stored.items()
        }
        try:
            return cls(**values)
        except TypeError as error:
            raise SettingsError(f"the record of teaching makes no sense: {error}.") from error


def is_teaching_note(note: str) -> bool:
    """Returns whether a note of a claim speaks about a teacher."""
    return note.startswith(NOTE_BEGINS)
