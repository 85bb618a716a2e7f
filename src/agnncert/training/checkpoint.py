"""The state of a training run, and the file from which an interrupted run continues."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from agnncert.errors import SettingsError
from agnncert.storage import Arrays, parse_json, read_sealed, write_sealed

StateDict = dict[str, Tensor]

FORMAT = "agnncert-training"
VERSION = 1
_NUMBERS = ("epoch", "best_epoch", "best_score", "history", "stopped", "seconds")


@dataclass
class TrainingState:
    """The state of a training run.

    Attributes:
        epoch: Epochs finished.
        best_epoch: Epoch of the best weights so far.
        best_score: Their score on the validation set, compared from left to right.
        best: The best weights so far.
        history: One entry per evaluation on the validation set.
        stopped: Whether the run has ended before its last epoch.
        seconds: Training time so far, interruptions not counted.
    """

    epoch: int = 0
    best_epoch: int = -1
    best_score: tuple[float, ...] = (-1.0,)
    best: StateDict = field(default_factory=dict)
    history: list[dict[str, float]] = field(default_factory=list)
    stopped: bool = False
    seconds: float = 0.0


def save_state(
    path: Path, identity: dict[str, Any], model: torch.nn.Module, optimizer: torch.optim.Optimizer, state: TrainingState
) -> None:
    """Writes everything that resuming needs, atomically; ``identity`` holds the settings that must be the same."""
    tensors = {f"model.{k}": v for k, v in model.state_dict().items()}
    tensors |= {f"best.{k}": v for k, v in state.best.items()}
    for number, values in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{number}.{k}": torch.as_tensor(v) for k, v in values.items()}
    numbers = {name: getattr(state, name) for name in _NUMBERS}
    header = {
        "format": FORMAT,
        "version": VERSION,
        "state": json.dumps({"identity": identity, **numbers}),  # as text: a header cannot hold infinite scores
        "bfloat16": [name for name, value in tensors.items() if value.dtype == torch.bfloat16],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    write_sealed(path, header, {name: _to_array(value) for name, value in tensors.items()}, SettingsError)


def load_state(
    path: Path, identity: dict[str, Any], model: torch.nn.Module, optimizer: torch.optim.Optimizer
) -> TrainingState:
    """Restores model and optimizer from the file, and returns the state of the run.

    Raises:
        SettingsError: The file is damaged, or belongs to another run.
    """
    try:
        header, arrays = read_sealed(path, FORMAT, VERSION, "checkpoint of this version", SettingsError)
        numbers = parse_json(header["state"])
        stored = numbers.pop("identity")
        changed = sorted(k for k in identity.keys() | stored.keys() if identity.get(k) != stored.get(k))
        if not changed:
            tensors = _to_tensors(arrays, header["bfloat16"])
            _restore(model, optimizer, tensors)
            numbers["best_score"] = tuple(numbers["best_score"])
            return TrainingState(best=_part(tensors, "best."), **numbers)
    except (SettingsError, LookupError, ValueError, TypeError, AttributeError, RuntimeError) as error:
        raise SettingsError(
            f"cannot resume from {path.name}, which is damaged or not a checkpoint ({error}): delete it to start again."
        ) from error
    raise SettingsError(
        f"{path.name} belongs to another run (other {', '.join(changed)}): use the same settings, or another file."
    )


def _to_array(value: Tensor) -> Any:
    value = value.detach().cpu()
    return (value.view(torch.int16) if value.dtype == torch.bfloat16 else value).numpy()  # numpy has no bfloat16


def _to_tensors(arrays: Arrays, bfloat16: list[str]) -> StateDict:
    tensors = {name: torch.tensor(array) for name, array in arrays.items()}
    return tensors | {name: tensors[name].view(torch.bfloat16) for name in bfloat16}


def _restore(model: torch.nn.Module, optimizer: torch.optim.Optimizer, tensors: StateDict) -> None:
    averages: dict[int, dict[str, Tensor]] = {}
    for name, value in _part(tensors, "optimizer.").items():
        number, key = name.split(".", 1)
        averages.setdefault(int(number), {})[key] = value
    optimizer.load_state_dict({"state": averages, "param_groups": optimizer.state_dict()["param_groups"]})
    model.load_state_dict(_part(tensors, "model."))


def _part(tensors: StateDict, prefix: str) -> StateDict:
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
