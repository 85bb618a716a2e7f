"""Taught data: some of its labels are a teacher's. ``agnncert.teaching`` makes it; everything else asks here."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import torch
from torch import Tensor
from torch_geometric.data import Data

from agnncert.errors import DatasetError, SettingsError
from agnncert.graphs.targets import CanonicalData, target_rows

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
        accuracy: Share of validation nodes that the teacher gets right.
        accuracy_without_edges: The same of as many models that read no edge; ``None`` if the teacher is such a model.
        seconds: How long the teacher was trained.
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

    @property
    def num_taught(self) -> int:
        """Nodes that the teacher labelled."""
        return sum(self.taught_by_class)

    @property
    def note(self) -> str:
        """What a claim says about it."""
        models = "1 model" if len(self.weights) == 1 else f"{len(self.weights)} models"
        return (
            f"{NOTE_BEGINS} ({self.teacher}, {models}) read {self.num_edges:,} edges of the training graph and "
            f"labelled {self.num_taught:,} of its nodes, and the certified model learnt from these labels beside "
            f"{self.num_given:,} given ones. Whoever changed that graph before training is not covered."
        )

    def to_json(self) -> dict[str, Any]:
        """Returns this record in JSON's terms. :meth:`from_json` is the way back."""
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


def teaching_of(data: Data | Sequence[Data] | CanonicalData) -> Teaching | None:
    """Returns how data was taught, or ``None`` if all its labels were given."""
    plain = data.data if isinstance(data, CanonicalData) else data
    teaching: Teaching | None = getattr(plain, "teaching", None)
    return teaching


def given_rows(data: Data) -> Tensor:
    """Returns the training nodes whose label was given, ascending: all of them unless the data was taught."""
    train = data.train_mask.bool()
    if teaching_of(data) is not None:
        train = train & ~data.taught_mask
    rows: Tensor = train.nonzero().view(-1)
    return rows


def require_true_labels(data: Data | Sequence[Data] | CanonicalData, targets: Any) -> None:
    """Refuses targets whose label is a teacher's, because labels are compared with ``y``.

    Args:
        data: Any data.
        targets: Mask or row numbers; ``None`` stands for all.

    Raises:
        DatasetError: Some of the targets were taught.
    """
    if teaching_of(data) is None:
        return
    plain: Any = data.data if isinstance(data, CanonicalData) else data
    rows = torch.from_numpy(target_rows(targets, plain.num_nodes))
    num_taught = int(plain.taught_mask[rows].sum())
    if num_taught:
        raise DatasetError(
            f"{num_taught:,} of the {len(rows):,} targets have a label that the teacher gave them, and to agree with a "
            "teacher is not to be right: certify the data as it was before teach(), or nodes that it has not taught."
        )


def settings_for_taught(settings: Mapping[str, Any], teaching: Teaching) -> dict[str, Any]:
    """Returns settings of ``fit`` for taught data: the protocol is the teacher's unless another one is given.

    Raises:
        SettingsError: The student would see the test nodes.
    """
    protocol = settings.get("protocol", teaching.protocol)
    if protocol == "transductive":
        raise SettingsError(
            'protocol="transductive": a student of a teacher that reads edges would see the test nodes in training, '
            'and what it has memorised about them is no robustness. Use "held-out" or "inductive".'
        )
    return {**settings, "protocol": protocol}


def teaching_of_model(model: Any) -> Teaching | None:
    """Returns how the training data of a model, or of a module in it, was taught; ``None`` if nothing says so."""
    modules = model.modules() if isinstance(model, torch.nn.Module) else [model]
    for module in modules:
        record = getattr(module, "training_record", None)
        if isinstance(record, Mapping) and "teaching" in record:
            return Teaching.from_json(record["teaching"])
    return None


def has_training_record(model: Any) -> bool:
    """Returns whether a model says how it was trained."""
    return isinstance(getattr(model, "training_record", None), Mapping)


def is_teaching_note(note: str) -> bool:
    """Returns whether a note of a claim speaks about a teacher."""
    return note.startswith(NOTE_BEGINS)
