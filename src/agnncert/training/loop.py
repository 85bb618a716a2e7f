"""``fit``: trains a model, and writes checkpoints from which an interrupted run continues."""

import copy
import json
import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar, Unpack

import numpy as np
import torch
from torch import Tensor

from agnncert.certificates.voting_rule import VotingRule
from agnncert.datasets.splits import GraphSet, dataset_digest
from agnncert.divisions.base import Division, RandomDefence, require_division
from agnncert.divisions.edge import EdgeCentric
from agnncert.engine.call import require_order
from agnncert.errors import ModelContractError, SettingsError
from agnncert.graphs.graph import infer_task
from agnncert.graphs.targets import CanonicalData
from agnncert.models.build import count_classes
from agnncert.models.stacked import StackedModel, StackedVotes
from agnncert.progress import Progress
from agnncert.proving.measures import rate_of
from agnncert.storage import Arrays, read_sealed, write_sealed
from agnncert.training.settings import FitSettings, as_json, checked, shows_settings
from agnncert.training.setup import TrainingSetup, part_rows, prepare, require_possible, warn_if_uneven, with_measure
from agnncert.training.stacked import fit_stacked

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
        numbers = json.loads(header["state"])
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


log = logging.getLogger(__name__)

Module = TypeVar("Module", bound=torch.nn.Module)


@dataclass(frozen=True, kw_only=True)
class Step(Progress):
    """Progress after an epoch. ``seconds_left`` is the expected time until the last epoch; training may stop earlier.

    Attributes:
        loss: Mean loss of the epoch.
        score: Score on the validation set, if the model was evaluated after this epoch.
    """

    loss: float
    score: float | None


@shows_settings
def fit(
    model: Module,
    data: Any,
    defence: Division | RandomDefence | StackedVotes | None = None,
    *,
    voting_rule: VotingRule | None = None,
    checkpoint: str | Path | None = None,
    progress: Callable[[Step], None] | None = None,
    **settings: Unpack[FitSettings],
) -> Module:
    """Trains a model in place and returns it in eval mode, with the weights that are best on the validation part.

    ``model.training_record`` holds the settings and the history, for ``save_model``.

    Args:
        model: Any module; see ``certify`` for how it is called.
        data: A ``Data`` with ``y``, ``train_mask`` and ``val_mask``, or a ``GraphSet`` with ``train`` and ``val``.
        defence: A built-in division: train on its subgraphs too; ``None`` trains a plain, undefended model. A
            smoothing defence, such as ``ac.baselines.BiRS()``: train under its noise, sampled anew for each step.
            ``StackedVotes()``: train copies of the model without edges, and votes of neighbours on top; returns a new
            module. The model may then be None: only edges vote.
        epochs: Passes over the training set.
        lr: Learning rate of Adam.
        weight_decay: Weight decay of Adam.
        clip: Largest norm of the gradient, or ``None``.
        batch_size: Graphs per step (graph task).
        objective: "balanced" averages each term separately; "paper" is the paper's sum over T + 1 graphs; "vote" (graph
            task) is the loss of the vote of all subgraphs of a graph; "certified" (node task) has the loss of
            "balanced" and keeps the weights that certify most validation nodes with the best prior, which
            ``choose_voting_rule`` then finds. Defaults to "balanced" for nodes and "vote" for graphs.
        size: Keep the weights with the best *certified* ``measure`` at this perturbation size; 0 for that of the vote.
            With "certified" the size that is trained for.
        against: What the size counts with "certified", as for ``choose_voting_rule``: "any" change, or "structure".
        no_edge_weight: Node task: weight of the loss of the prediction without edges; the other terms have weight 1.
        balance_classes: Whether all classes have the same weight in the loss. Defaults to whether a class is rare: has
            less than 15 % of an equal share of the training part (7.5 % of two classes).
        measure: What the weights are kept by: "accuracy"; "balanced", the mean recall of the classes; or, for two
            classes, "recall@0.01": the recall of the rarer one with the threshold that has this false positive rate
            without an attack, which ``choose_threshold`` then finds. With a size, what is certified of it. Defaults to
            "balanced" if classes are balanced, else "accuracy".
        groups_per_step: Subgraphs that are sampled in each step. Defaults to all (graph task) or 8 (GNNCert). Node
            classifiers with other divisions always use all subgraphs.
        clusters: Node task: train a large graph in about this many clusters (Cluster-GCN; needs pymetis). Certificates
            do not depend on it.
        clusters_per_step: Clusters that a step joins, with the edges among them.
        protocol: Node task: "inductive" hides the test nodes and their edges in training. "held-out" hides the
            validation nodes too, until weights are scored, so that ``choose_voting_rule`` chooses on nodes that the
            model was not trained with.
        evaluate_every: Epochs between two evaluations on the validation set.
        patience: Stop after this many evaluations without improvement; ``None`` never stops early.
        seed: Seed of training; torch's global random state is not changed.
        voting_rule: The voting rule that ``certify`` will be given. The weights that are best under it are kept. The
            loss does not depend on it.
        checkpoint: File to which the state is written at every evaluation. An interrupted run that is started again
            with the same arguments continues from there and ends with the same weights.
        progress: Called after every epoch.

    Raises:
        SettingsError: A setting is unknown or not valid, the checkpoint belongs to another run, or the loss diverges.
        DatasetError: Labels or splits are missing or do not fit the model.
        ModelContractError: The model cannot be called as documented, or has nothing to train.
    """
    if isinstance(defence, StackedVotes):
        return _fit_stacked(model, data, defence, voting_rule, checkpoint, progress, settings)  # type: ignore[return-value]
    require_order(model, data, defence)
    if defence is not None and not isinstance(defence, RandomDefence):
        require_division(defence)
    name = None if defence is None else str(defence)
    if isinstance(defence, EdgeCentric) and defence.edges_only:
        defence = replace(defence, edges_only=False)  # the subgraphs are the same: only what is proved differs
    task = infer_task(data)
    how = checked(settings, task)
    if not isinstance(model, torch.nn.Module):
        raise ModelContractError(f"a {type(model).__name__} cannot be trained: expected a torch.nn.Module.")
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise ModelContractError(f"{type(model).__name__} has no parameters that can be trained.")
    require_possible(defence, how, voting_rule, task)
    if task == "graph" and not isinstance(data, GraphSet):  # any list that has the two parts
        data = GraphSet(list(data), train=part_rows(data, "train"), val=part_rows(data, "val"))
    ready = CanonicalData.of(data, compact=how["clusters"] is not None)
    setup = prepare(model.eval(), ready, defence, how, voting_rule)
    if defence is not None or checkpoint is None:  # a run that trains others beside it says it once
        warn_if_uneven(model, data)
        if how["balance_classes"] is None and setup.settings["balance_classes"]:
            log.warning(
                "a class is rare in the training part: all classes have the same weight in the loss, and weights are "
                'kept by measure="%s" (balance_classes=False: all targets have the same)', setup.settings["measure"],
            )  # fmt: skip
    how = setup.settings
    about = {"division": name, "data": dataset_digest(ready), **as_json(how)}
    if voting_rule is not None:
        about["voting_rule"] = voting_rule.to_json()
    at_once = next(model.parameters()).device.type == "cpu" or None  # None: torch chooses
    optimizer = torch.optim.Adam(model.parameters(), how["lr"], weight_decay=how["weight_decay"], foreach=at_once)
    state, identity = TrainingState(), {"model": getattr(model, "config", None) or str(model), **about}
    file = None if checkpoint is None else Path(checkpoint)
    if file is not None and file.exists():
        state = load_state(file, identity, model, optimizer)
        log.info("going on from %s, after epoch %d", file.name, state.epoch)
    with torch.random.fork_rng(devices=[]):
        while state.epoch < how["epochs"] and not state.stopped:
            step = _epoch(model, setup, optimizer, how, state)
            if step.score is not None and file is not None:
                save_state(file, identity, model, optimizer, state)
            if progress is not None:
                progress(step)
    model.load_state_dict(state.best)
    log.info("trained %d epochs, best at %d with score %.4f", state.epoch, state.best_epoch, state.best_score[0])
    model.training_record = {  # type: ignore[assignment]
        **about, "epochs_run": state.epoch, "best_epoch": state.best_epoch, "score": state.best_score[0],
        "history": state.history, "seconds": state.seconds, "seconds_per_epoch": state.seconds / state.epoch,
    }  # fmt: skip
    return model.eval()


def _fit_stacked(
    model: torch.nn.Module | None,
    data: Any,
    defence: StackedVotes,
    voting_rule: VotingRule | None,
    checkpoint: str | Path | None,
    progress: Callable[[Step], None] | None,
    settings: FitSettings,
) -> StackedModel:
    """Stacked votes: the settings are those of the models without edges; a checkpoint file for each of them."""
    if model is not None:
        require_order(model, data, defence)
    how = checked(settings, infer_task(data))
    if infer_task(data) != "node" or voting_rule is not None:
        raise SettingsError("stacked votes classify nodes and have no voting rule: leave voting_rule out.")
    classes = count_classes(data)
    how = with_measure(how, data.y[data.train_mask], classes)
    if rate_of(how["measure"] or "accuracy") is not None:
        raise SettingsError(
            f'measure="{how["measure"]}" needs a threshold, and stacked votes have none: choose "balanced".'
        )
    inner: dict[str, Any] = {name: value for name, value in settings.items() if name not in ("protocol", "seed")}

    def fit_one(one: torch.nn.Module, part: Any, seed: int) -> torch.nn.Module:
        file = None if checkpoint is None else Path(checkpoint)
        file = file and file.with_name(f"{file.stem}-{seed}{file.suffix}")
        return fit(one, part, None, checkpoint=file, progress=progress, seed=seed, **inner)

    def tell(what: str, done: float) -> None:
        if progress is not None:
            progress(Step(what, round(100 * done), 100, math.nan, loss=math.nan, score=None))

    begin = time.perf_counter()
    trained = fit_stacked(
        model, data, defence, fit_one, seed=how["seed"], inductive=how["protocol"] != "transductive",
        measure=how["measure"] or "accuracy", balance_classes=bool(how["balance_classes"]), report_progress=tell,
    )  # fmt: skip
    record: Any = trained.training_record
    trained.training_record = {  # type: ignore[assignment]
        **record, "seconds": time.perf_counter() - begin, "epochs_run": defence.epochs
    }  # fmt: skip
    return trained


def _epoch(
    model: torch.nn.Module,
    setup: TrainingSetup,
    optimizer: torch.optim.Optimizer,
    settings: FitSettings,
    state: TrainingState,
) -> Step:
    """One pass over the training set and, if it is time, an evaluation on the validation set."""
    begin = time.perf_counter()
    # Seeded by epoch, so that a resumed run samples the same. To seed absent devices too would take milliseconds.
    on_cpu = next(model.parameters()).device.type == "cpu"
    (torch.default_generator if on_cpu else torch).manual_seed(1_000_003 * settings["seed"] + state.epoch)
    loss = _train(model.train(), setup, optimizer, settings["clip"])
    state.epoch += 1
    if not math.isfinite(loss):
        raise SettingsError(
            f"the loss is {loss} in epoch {state.epoch}: training has diverged. Lower lr={settings['lr']}, or "
            "set clip=1.0."
        )
    score = None
    if state.epoch % settings["evaluate_every"] == 0 or state.epoch == settings["epochs"]:
        score = _evaluate(model.eval(), setup, state, loss, settings)
    state.seconds += time.perf_counter() - begin
    left = 0.0 if state.stopped else state.seconds / state.epoch * (settings["epochs"] - state.epoch)
    return Step("training", state.epoch, settings["epochs"], left, f"loss {loss:.3f}", loss=loss, score=score)


def _train(model: torch.nn.Module, setup: TrainingSetup, optimizer: torch.optim.Optimizer, clip: float | None) -> float:
    """All steps of one epoch; returns their mean loss."""
    losses = []
    for step in setup.objective.steps():
        optimizer.zero_grad()
        losses.append(step())
        if clip is not None:
            torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
    return float(np.mean(losses))


def _evaluate(
    model: torch.nn.Module, setup: TrainingSetup, state: TrainingState, loss: float, settings: FitSettings
) -> float:
    """Scores the model, keeps its weights if they are the best so far, and decides whether to stop."""
    score = setup.score()
    state.history.append({"epoch": state.epoch, "loss": loss, "score": score[0]})
    if score > state.best_score:
        state.best_epoch, state.best_score = state.epoch, score
        state.best = copy.deepcopy(model.state_dict())
    elif settings["patience"] is not None:
        state.stopped = state.epoch - state.best_epoch >= settings["patience"] * settings["evaluate_every"]
    return score[0]
