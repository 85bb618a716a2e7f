"""The state of a training run in one safetensors file: written in one go, read back without unpickling anything."""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from agnncert.errors import SettingsError

StateDict = dict[str, Tensor]


@dataclass
class Progress:
    """Where a run stands.

    Attributes:
        epoch: Epochs finished.
        best_epoch: Epoch of the best weights so far.
        best_score: Their score on the validation set, compared from left to right.
        best: The best weights so far.
        history: One entry per evaluation.
        stopped: Whether the run has ended before its last epoch.
    """

    epoch: int = 0
    best_epoch: int = -1
    best_score: tuple[float, ...] = (-1.0,)
    best: StateDict = field(default_factory=dict)
    history: list[dict[str, float]] = field(default_factory=list)
    stopped: bool = False


def save_state(path: Path, settings: dict[str, Any], model: torch.nn.Module, optimizer: torch.optim.Optimizer, progress: Progress) -> None:
    """Writes everything that resuming needs; the old file stays until the new one is complete."""
    tensors = {f"model.{k}": v for k, v in model.state_dict().items()}
    tensors |= {f"best.{k}": v for k, v in progress.best.items()}
    for number, values in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{number}.{k}": torch.as_tensor(v) for k, v in values.items()}
    told = {
        "settings": settings,
        "epoch": progress.epoch,
        "best_epoch": progress.best_epoch,
        "best_score": list(progress.best_score),
        "history": progress.history,
        "stopped": progress.stopped,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(path.name + ".part")
    draft.write_bytes(save({k: v.contiguous() for k, v in tensors.items()}, {"training": json.dumps(told)}))
    os.replace(draft, path)


def load_state(path: Path, settings: dict[str, Any], model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> Progress:
    """Puts model and optimizer where the file left them.

    Raises:
        SettingsError: The file is damaged, or belongs to a run with other settings.
    """
    try:
        with safe_open(path, framework="pt") as file:
            told = json.loads((file.metadata() or {})["training"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dict
    except (SafetensorError, KeyError, ValueError, OSError) as error:
        raise SettingsError(f"cannot resume from {path.name}: {error}. Delete the file to start anew.") from error
    changed = sorted(k for k in settings.keys() | told["settings"].keys() if settings.get(k) != told["settings"].get(k))
    if changed:
        raise SettingsError(
            f"{path.name} belongs to a run with other settings ({', '.join(changed)}): use the same, or another checkpoint file."
        )
    model.load_state_dict(_part(tensors, "model."))
    state: dict[int, dict[str, Tensor]] = {}
    for name, value in _part(tensors, "optimizer.").items():
        number, key = name.split(".", 1)
        state.setdefault(int(number), {})[key] = value
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
    return Progress(
        told["epoch"], told["best_epoch"], tuple(told["best_score"]), _part(tensors, "best."), told["history"], told["stopped"]
    )  # fmt: skip


def _part(tensors: StateDict, prefix: str) -> StateDict:
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
