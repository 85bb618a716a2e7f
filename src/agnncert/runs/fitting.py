"""Fitter: trains the models of one run, each with a checkpoint in its folder."""

import logging
from collections.abc import Callable
from dataclasses import fields
from typing import Any

from agnncert.division import Division, EdgeCentric, NodeCentric
from agnncert.runs.estimate import estimate_training
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

    def announce(self, model: Any, division: EdgeCentric | NodeCentric) -> None:
        """Says what training is going to take; finds out what is wrong with the settings before it begins."""
        expected = estimate_training(model, self.data, division, FitSettings(**self._how(division)))
        log.info("training %s for at most %d epochs: %s", self.settings.model, self.settings.epochs, expected)

    def fit(self, model: Any, division: Division | None, name: str, what: str) -> dict[str, Any]:
        """Trains a model, or goes on with it, and returns how it came about."""
        tell = None if self.on_progress is None else _teller(what, self.on_progress)
        file = self.folder.checkpoint(name)
        fit(model, self.data, division, **self._how(division), checkpoint=file, progress=tell)
        return {key: value for key, value in model.training_record.items() if key != "history"}

    def _how(self, division: Division | None) -> dict[str, Any]:
        """The arguments of ``fit``."""
        how: dict[str, Any] = {name: getattr(self.settings, name) for name in SHARED}
        return {
            **how,
            "patience": how["patience"] or None,
            "select_size": how["select_size"] if division else 0,
        }

    def clean(self) -> None:
        """Removes the checkpoints, once everything is finished."""
        for file in self.folder.path.glob("*.checkpoint"):
            file.unlink(missing_ok=True)


def _teller(what: str, on_progress: OnProgress) -> Callable[[Step], None]:
    def tell(step: Step) -> None:
        on_progress(Progress(what, step.epoch, step.epochs, step.seconds_left, f"loss {step.loss:.3f}"))

    return tell
