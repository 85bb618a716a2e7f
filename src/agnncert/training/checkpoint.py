"""The state of a training run in one safetensors file: written in one go, read back without unpickling."""

import hashlib
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from agnncert.errors import SettingsError

StateDict = dict[str, Tensor]

_TOLD = ("epoch", "best_epoch", "best_score", "history", "stopped", "seconds")
_LENGTH_BYTES = 8  # a safetensors file begins with the length of its JSON header


@dataclass
class Progress:
    """Where a run stands.

    Attributes:
        epoch: Epochs finished.
        best_epoch: Epoch of the best weights so far.
        best_score: Their score on the validation set, compared from left to right.
        best: The best weights so far.
        history: One entry per look at the validation set.
        stopped: Whether the run has ended before its last epoch.
        seconds: Time it has taken so far, interruptions not counted.
    """

    epoch: int = 0
    best_epoch: int = -1
    best_score: tuple[float, ...] = (-1.0,)
    best: StateDict = field(default_factory=dict)
    history: list[dict[str, float]] = field(default_factory=list)
    stopped: bool = False
    seconds: float = 0.0


def save_state(
    path: Path, identity: dict[str, Any], model: torch.nn.Module, optimizer: torch.optim.Optimizer, progress: Progress
) -> None:
    """Writes everything that resuming needs; the old file stays until the new one is complete.

    Args:
        path: Where to write.
        identity: What makes this run the one it is, in JSON's terms.
        model: With the weights as they are.
        optimizer: With its running averages.
        progress: Where the run stands.
    """
    tensors = {f"model.{k}": v for k, v in model.state_dict().items()}
    tensors |= {f"best.{k}": v for k, v in progress.best.items()}
    for number, values in optimizer.state_dict()["state"].items():
        tensors |= {f"optimizer.{number}.{k}": torch.as_tensor(v) for k, v in values.items()}
    told = {"identity": identity, **{name: getattr(progress, name) for name in _TOLD}}
    # Copies, because safetensors refuses tensors that share memory, as tied weights do.
    tensors = {k: v.detach().clone().contiguous() for k, v in tensors.items()}
    text = json.dumps(told)
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(path.name + ".part")
    draft.write_bytes(save(tensors, {"training": text, "sha256": _digest(text, tensors)}))
    os.replace(draft, path)


def load_state(
    path: Path, identity: dict[str, Any], model: torch.nn.Module, optimizer: torch.optim.Optimizer
) -> Progress:
    """Puts model and optimizer where the file left them.

    Raises:
        SettingsError: The file is damaged, or belongs to another run.
    """
    try:
        text, tensors = _read(path)
        told = json.loads(text)
        known = told["identity"]
        changed = sorted(k for k in identity.keys() | known.keys() if identity.get(k) != known.get(k))
        if not changed:
            _restore(model, optimizer, tensors)
            told["best_score"] = tuple(told["best_score"])
            return Progress(best=_part(tensors, "best."), **{name: told[name] for name in _TOLD})
    except (SafetensorError, LookupError, ValueError, TypeError, AttributeError, RuntimeError, OSError) as error:
        raise SettingsError(
            f"cannot resume from {path.name}, which is no checkpoint or damaged ({error}): delete it to start anew."
        ) from error
    raise SettingsError(
        f"{path.name} belongs to another run (other {', '.join(changed)}): go on as it began, or use another file."
    )


def _read(path: Path) -> tuple[str, StateDict]:
    content = path.read_bytes()
    end = _LENGTH_BYTES + int.from_bytes(content[:_LENGTH_BYTES], "little")
    header, tensors = json.loads(content[_LENGTH_BYTES:end])["__metadata__"], load(content)
    if header["sha256"] != _digest(header["training"], tensors):
        raise ValueError("its content does not match its digest")
    return header["training"], tensors


def _digest(text: str, tensors: StateDict) -> str:
    digest = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        digest.update(name.encode() + tensors[name].reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _restore(model: torch.nn.Module, optimizer: torch.optim.Optimizer, tensors: StateDict) -> None:
    averages: dict[int, dict[str, Tensor]] = {}
    for name, value in _part(tensors, "optimizer.").items():
        number, key = name.split(".", 1)
        averages.setdefault(int(number), {})[key] = value
    optimizer.load_state_dict({"state": averages, "param_groups": optimizer.state_dict()["param_groups"]})
    model.load_state_dict(_part(tensors, "model."))


def _part(tensors: StateDict, prefix: str) -> StateDict:
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
