"""Fitter: trains the models of one run, each with a checkpoint in its folder."""

import logging
from collections.abc import Callable
from dataclasses import fields
from typing import Any

from agnncert.division import Division
from agnncert.runs.estimate import estimate
from agnncert.runs.folder import RunFolder
from agnncert.runs.progress import OnProgress, Progress
from agnncert.runs.settings import TrainSettings
from agnncert.training import Step, fit
from agnncert.training.settings import FitSettings

log = logging.getLogger(__name__)


# Settings of a run that go to fit() as they are. "weights" are a file here and the terms' weights there.
SHARED = tuple(
    f.name
    for f in fields(FitSettings)
    if f.name in TrainSettings.__dataclass_fields__ and f.name != "weights"
)


class Fitter:
    """Trains models as the settings of a run say.

    Attributes:
        folder: The run; checkpoints are kept there.
    """

    def __init__(
        self, settings: TrainSettings, data: Any, folder: RunFolder, on_progress: OnProgress | None
    ) -> None:
        self.settings, self.data, self.folder, self.on_progress = settings, data, folder, on_progress

    def announce(self, model: Any, division: Division) -> None:
        """Says what training is going to take."""
        epochs, every = self.settings.epochs or 0, self.settings.evaluate_every or 1
        expected = estimate(model, self.data, division, epochs=epochs, looks=epochs // every)
        log.info("training %s for at most %d epochs: %s", self.settings.model, epochs, expected)

    def fit(self, model: Any, division: Division | None, name: str, what: str) -> dict[str, Any]:
        """Trains a model, or goes on with it, and returns how it came about."""
        how: dict[str, Any] = {name: getattr(self.settings, name) for name in SHARED}
        how["patience"] = how["patience"] or None
        how["select_size"] = how["select_size"] if division is not None else 0
        tell = None if self.on_progress is None else _teller(what, self.on_progress)
        fit(model, self.data, division, **how, checkpoint=self.folder.checkpoint(name), progress=tell)
        return {key: value for key, value in model.training_record.items() if key != "history"}

    def clean(self) -> None:
        """Removes the checkpoints, once everything is finished."""
        for file in self.folder.path.glob("*.checkpoint"):
            file.unlink(missing_ok=True)


def _teller(what: str, on_progress: OnProgress) -> Callable[[Step], None]:
    def tell(step: Step) -> None:
        on_progress(Progress(what, step.epoch, step.epochs, step.seconds_left, f"loss {step.loss:.3f}"))

    return tell
