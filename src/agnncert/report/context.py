"""ReportContext: what a reader wants to see beside a certificate, but a certificate does not hold."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from agnncert.errors import SettingsError
from agnncert.votes import IntArray

SHARES = ("undefended", "mlp", "edgeless", "majority", "bag_of_nodes")


@dataclass(frozen=True)
class ReportContext:
    """Everything about a run that helps to judge its certificate; what is not given is not shown.

    Attributes:
        truth: True class of each target, in the order of ``certificate.target``; when not given, what the
            certificate knows. If neither does, the report speaks of labels that stay, not of accuracy.
        degree: Edges at each target (node task) or in each target (graph task), likewise.
        class_names: Name of each class.
        dataset: Name of the data.
        undefended: Accuracy of the same kind of model, trained and used without a defence.
        mlp: Accuracy of a multi-layer perceptron on the features alone (node task).
        edgeless: Accuracy of the certified model with all edges removed (node task); derived from the ballots
            of a node-task vote when not given.
        majority: Accuracy of always answering the most frequent class (graph task).
        bag_of_nodes: Accuracy of a model that sees the nodes but no edges (graph task).
        attacked: Pairs of attack size and accuracy that was left after a real attack of that size.
        attack: What that attack was.
        environment: Versions, hardware, seeds, times, … by name.
        commands: How the certificate was made.
        certificate_path: Where the certificate file is, for the verification command.
    """

    truth: Sequence[int] | IntArray | None = None
    degree: Sequence[int] | IntArray | None = None
    class_names: Sequence[str] | None = None
    dataset: str = ""
    undefended: float | None = None
    mlp: float | None = None
    edgeless: float | None = None
    majority: float | None = None
    bag_of_nodes: float | None = None
    attacked: Sequence[tuple[float, float]] = ()
    attack: str = ""
    environment: Mapping[str, Any] = field(default_factory=dict)
    commands: Sequence[str] = ()
    certificate_path: str = ""

    def __post_init__(self) -> None:
        for name in SHARES:
            share = getattr(self, name)
            if share is not None and not 0 <= share <= 1:
                raise SettingsError(f"ReportContext({name}={share!r}): expected an accuracy between 0 and 1.")
        for size, accuracy in self.attacked:
            if size < 0 or not 0 <= accuracy <= 1:
                raise SettingsError(
                    f"ReportContext(attacked=…({size!r}, {accuracy!r})…): expected pairs of a size from 0 on "
                    "and an accuracy between 0 and 1."
                )


def per_target(name: str, values: Sequence[int] | IntArray | None, num_targets: int) -> IntArray | None:
    """``values`` as an array of one whole number for each target.

    Raises:
        SettingsError: There are more or fewer values than targets, or they are not whole numbers.
    """
    if values is None:
        return None
    array = np.asarray(values)
    if array.shape != (num_targets,) or not np.issubdtype(array.dtype, np.integer):
        raise SettingsError(
            f"ReportContext({name}=…) has shape {list(array.shape)} and type {array.dtype}: expected one "
            f"whole number for each of the {num_targets} targets, in the order of certificate.target."
        )
    return array.astype(np.int64)
