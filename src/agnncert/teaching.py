"""``teach``: a teacher that reads edges labels the training graph, for a certified student to learn from.

With few labels, most of what edges are worth is earned in training, where labels spread over the graph. A student that
learns from these labels keeps it, even if it reads no edge itself and so cannot be attacked through edges. Zhang et al.
(Graph-less Neural Networks, ICLR 2022) teach models without edges in this way. No proof changes: they speak about
attacks after training. Whoever changes the training graph reaches the student through its teacher.
"""

import copy
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn
from torch_geometric.data import Data

from agnncert.addons import config_of
from agnncert.datasets.splits import dataset_digest, inductive_view, seen_nodes
from agnncert.datasets.taught import teaching_of, unlabelled_nodes
from agnncert.datasets.teaching_record import CLASS_SHARES, ClassShares, Teaching
from agnncert.engine.adapter import bind
from agnncert.errors import DatasetError, ModelContractError, SettingsError, did_you_mean
from agnncert.fitting import fit
from agnncert.graphs.canonical import canonical
from agnncert.graphs.graph import CanonicalGraph
from agnncert.graphs.targets import target_rows
from agnncert.graphs.task import infer_task
from agnncert.models.build import build_model, count_classes, fresh_copy
from agnncert.models.digest import model_digest
from agnncert.progress import OnProgress, Progress
from agnncert.recipes import usual_arguments
from agnncert.training.labels import checked_labels, masked_rows
from agnncert.training.settings import as_json, checked

log = logging.getLogger(__name__)

TeachingProtocol = Literal["held-out", "inductive"]
PROTOCOLS = get_args(TeachingProtocol)
MANY_NODES = 10_000  # from which on fewer epochs suffice
EPOCHS = 100
EPOCHS_OF_MANY_NODES = 60
MEMBERS = 3
MOST_GIVEN = 20  # given labels for each node that can be taught; with more of them, teaching changes nothing


def teach(
    data: Data,
    teacher: str | nn.Module | Sequence[nn.Module] = "gcn",
    *,
    members: int = MEMBERS,
    targets: Tensor | ArrayLike | None = None,
    protocol: TeachingProtocol = "held-out",
    class_shares: ClassShares = "given",
    seed: int = 0,
    checkpoint: str | Path | None = None,
    progress: OnProgress | None = None,
    **settings: Any,
) -> Data:
    """Labels the nodes that training may see and nobody has labelled, as a teacher that reads edges classifies them.

    Train on the result, and certify the data as it was: ``fit(model, teach(data), defence)``, then
    ``certify(model, data, defence, data.test_mask)``. Any defence can be trained so. Test and validation nodes are
    never taught, and ``certify`` refuses to compare a label with that of a teacher.

    The teacher is trained on the given labels, as many times as it has members. Its probabilities are averaged, and
    every unlabelled node that training may see gets the most probable class. Given labels stay.

    Args:
        data: A graph with ``y``, ``train_mask``, ``val_mask``, ``test_mask``, and nodes in none of them.
        teacher: Name of a built-in model; an untrained module; or trained modules in a list, which are used as they
            are. A single module with a ``training_record`` counts as trained.
        members: How many models the teacher consists of, if they are trained here. Defaults to 3.
        targets: Mask or row numbers of the test nodes that are to be certified, if these are not all of them. Only
            they are hidden then. All other test nodes count as nodes without a label: their features and edges are read
            in training and the teacher labels them, but their own labels are not read. This is for splits that put
            nearly every node into a part, and it is what happens if some accounts of a known graph are certified.
            Accuracy then speaks about these targets and no other test node. Defaults to all test nodes.
        protocol: What is hidden from the teacher: "held-out", the default, hides test and validation nodes;
            "inductive" hides test nodes.
        class_shares: How frequent the teacher takes classes to be. "given", the default: as among the given labels.
            "predicted": as among its own predictions for the unlabelled nodes, with probabilities that fit validation
            nodes. This helps if labels were collected by class, such as 20 of each, and some classes are far more
            frequent than others. Rare classes get fewer labels by it: leave it out where they matter most, as in
            fraud.
        seed: Seed of the teacher. Its members have different ones.
        checkpoint: File to which training writes its state, with a number for each model. A call that was interrupted
            goes on from there.
        progress: Is called after every epoch of training.
        settings: Settings of ``fit`` for the teacher. By default those that suit the dataset, with 100 epochs, or 60
            from 10,000 nodes on.

    Returns:
        A copy of the data in which ``y`` and ``train_mask`` are extended. ``taught_mask`` marks the taught nodes and
        ``teaching`` says how they were taught.

    Raises:
        SettingsError: The data was taught already, is for graph classification, or has no test nodes; or the protocol
            would show them to the teacher; or ``class_shares`` has another value.
        DatasetError: Training sees no unlabelled node, or next to none, or labels or splits are missing.
        ModelContractError: The teacher has other classes than the data, or predicts what is no number.
    """
    _require_teachable(data, protocol)
    num_test = int(data.test_mask.sum())
    data = _hiding(data, targets)
    if class_shares not in CLASS_SHARES:
        raise SettingsError(f'class_shares="{class_shares}": {did_you_mean(str(class_shares), CLASS_SHARES)}')
    taught_mask = _unlabelled(data)
    lesson = _Lesson(data, protocol, seed, Path(checkpoint) if checkpoint is not None else None, progress, settings)
    begin = time.perf_counter()
    trained = _as_teacher(teacher, members, lesson)
    without_edges = None if trained.reads_no_edges else lesson.train(_graph_free(lesson, len(trained.models)))
    seconds = time.perf_counter() - begin
    visible = inductive_view(data, validation=protocol == "inductive")
    probabilities = torch.zeros((int(data.num_nodes or 0), count_classes(data)), dtype=torch.float64)
    probabilities[_visible_rows(data, protocol)] = _probabilities(
        trained.models, canonical(visible), count_classes(data)
    )
    if class_shares == "predicted":
        probabilities[taught_mask] = _with_predicted_shares(probabilities[taught_mask], trained.models, data)
    predicted = probabilities.argmax(dim=1)
    accuracy = _validation_accuracy(trained.models, data)
    teaching = Teaching(
        teacher=trained.name,
        weights=tuple(model_digest(model) for model in trained.models),
        settings=trained.settings,
        protocol=protocol,
        class_shares=class_shares,
        data=dataset_digest(data),
        num_edges=0 if trained.reads_no_edges else _num_pairs(visible.edge_index),
        num_given=int(data.train_mask.sum()),
        taught_by_class=_by_class(predicted[taught_mask], count_classes(data)),
        accuracy=accuracy,
        accuracy_without_edges=None if without_edges is None else _validation_accuracy(without_edges, data),
        seconds=round(seconds, 3),
        num_targets=0 if targets is None else int(data.test_mask.sum()),
        num_others=num_test - int(data.test_mask.sum()),
    )
    _warn(teaching)
    return _with_labels(data, predicted, taught_mask, teaching)


def usual_epochs(data: Data) -> int:
    """Returns for how many epochs a teacher is trained by default."""
    return EPOCHS_OF_MANY_NODES if int(data.num_nodes or 0) >= MANY_NODES else EPOCHS


@dataclass(frozen=True)
class _Teacher:
    """The models that teach."""

    name: str
    models: list[nn.Module]
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def reads_no_edges(self) -> bool:
        return all((config_of(model) or {}).get("name") == "mlp" for model in self.models)


@dataclass(frozen=True)
class _Pupil:
    """A model to be trained: what it is called, the untrained model, its data and its settings."""

    name: str
    model: nn.Module
    data: Data
    settings: dict[str, Any]


@dataclass(frozen=True)
class _Lesson:
    """Data and settings of one call of ``teach``."""

    data: Data
    protocol: str
    seed: int
    checkpoint: Path | None
    progress: OnProgress | None
    settings: dict[str, Any]

    def arguments(self, name: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """Returns arguments of ``build_model`` and ``fit`` for a model on this data."""
        model_args, fit_args = usual_arguments(getattr(self.data, "name", None), self.data, name)
        of_teachers = {"lr": 0.01, "epochs": usual_epochs(self.data), "evaluate_every": 5, "patience": None}
        return model_args, {**fit_args, **of_teachers, **self.settings}

    def train(self, pupils: Sequence[_Pupil]) -> list[nn.Module]:
        """Trains models one after another, each from a checkpoint of its own if there is one."""
        trained = []
        for number, pupil in enumerate(pupils):
            what = f"{pupil.name} {number + 1} of {len(pupils)}"
            checkpoint = None
            if self.checkpoint is not None:
                file_name = f"{self.checkpoint.stem}-{pupil.name.replace(' ', '-')}-{number}{self.checkpoint.suffix}"
                checkpoint = self.checkpoint.with_name(file_name)
            trained.append(
                fit(
                    pupil.model,
                    pupil.data,
                    None,
                    checkpoint=checkpoint,
                    progress=_renamed(self.progress, what),
                    **pupil.settings,
                )
            )
        return trained


def _renamed(progress: OnProgress | None, what: str) -> Callable[[Progress], None] | None:
    if progress is None:
        return None
    return lambda step: progress(replace(step, what=what))


def _require_teachable(data: Data, protocol: str) -> None:
    if protocol == "transductive":
        raise SettingsError(
            'protocol="transductive": the teacher would label the test nodes, the student would memorise the labels, '
            'and the certified accuracy would be the teacher\'s accuracy without an attack. Use "held-out".'
        )
    if protocol not in PROTOCOLS:
        raise SettingsError(f'protocol="{protocol}": {did_you_mean(str(protocol), PROTOCOLS)}')
    if infer_task(data) != "node":
        raise SettingsError("teach() labels nodes of one graph: graphs of a graph task have no edges between them.")
    if getattr(data, "test_mask", None) is None or not bool(data.test_mask.any()):
        raise SettingsError(
            "the data has no test_mask, so nothing says which nodes the teacher must not see: give it one. Nodes that "
            "are to be certified must not be taught."
        )
    if teaching_of(data) is not None:
        raise SettingsError("the data was taught already: teach the data as it was before.")
    for name in ("train_mask", "val_mask", "test_mask"):
        masked_rows(data, name)


def _hiding(data: Data, targets: Tensor | ArrayLike | None) -> Data:
    """Returns the data with the targets as its test part; other test nodes are in no part.

    Raises:
        SettingsError: Some of the targets are no test nodes, or there are none.
    """
    if targets is None:
        return data
    hidden = torch.zeros(int(data.num_nodes or 0), dtype=torch.bool)
    hidden[torch.from_numpy(target_rows(targets, len(hidden)))] = True
    foreign = int((hidden & ~data.test_mask.bool()).sum())
    if foreign or not bool(hidden.any()):
        found = f"{foreign:,} of them are no test nodes" if foreign else "there are none"
        raise SettingsError(f"targets= names the test nodes that are to be certified, and {found}.")
    narrowed = copy.copy(data)
    narrowed.test_mask = hidden
    return narrowed


def _unlabelled(data: Data) -> Tensor:
    """Returns a mask of the nodes that are in no part.

    Raises:
        DatasetError: There are none, or too few to teach anything.
    """
    unlabelled = unlabelled_nodes(data)
    number = int(unlabelled.sum())
    num_test = int(data.test_mask.sum())
    if MOST_GIVEN * number < int(data.train_mask.sum()):
        left = "no node is left" if not number else f"{number:,} of {data.num_nodes:,} nodes are left"
        raise DatasetError(
            f"nearly every node is a training, validation or test node, so {left} to teach: a teacher labels nodes "
            "that are in the graph at training time and have no label yet. If you certify some of the "
            f"{num_test:,} test nodes, name them: teach(data, targets=mask) hides only these, and teaches the other "
            "test nodes without reading their labels (in tables, leave the label and the split of the other test "
            "nodes empty). Otherwise train on the data as it is."
        )
    return unlabelled


def _visible_rows(data: Data, protocol: str) -> Tensor:
    """Returns a mask of the nodes that the teacher sees."""
    seen = seen_nodes(data)
    return seen if protocol == "inductive" else seen & ~data.val_mask.bool()


def _as_teacher(teacher: str | nn.Module | Sequence[nn.Module], members: int, lesson: _Lesson) -> _Teacher:
    """Returns trained models: those that were given, or ``members`` of the named or given kind."""
    if isinstance(teacher, nn.Module) and hasattr(teacher, "training_record"):
        teacher = [teacher]
    if not isinstance(teacher, str | nn.Module):
        return _given_teacher(list(teacher), lesson)
    if isinstance(members, bool) or not isinstance(members, int) or members < 1:
        raise SettingsError(f"members={members!r}: expected a whole number from 1 on.")
    name = teacher if isinstance(teacher, str) else _name_of(teacher)
    model_args, fit_args = lesson.arguments(name)
    pupils = []
    for number in range(members):
        seed = lesson.seed * members + number
        if isinstance(teacher, str):
            model: nn.Module = build_model(teacher, lesson.data, seed=seed, **model_args)
        else:
            model = fresh_copy(teacher, seed)
        pupils.append(_Pupil("teacher", model, lesson.data, {**fit_args, "protocol": lesson.protocol, "seed": seed}))
    complete = as_json(checked({**fit_args, "protocol": lesson.protocol, "seed": lesson.seed}, "node"))
    return _Teacher(name, lesson.train(pupils), dict(complete))


def _given_teacher(models: list[Any], lesson: _Lesson) -> _Teacher:
    """Returns a teacher of models that the caller trained, if nothing says that they know the test nodes."""
    if not models:
        raise SettingsError("teacher=[]: give at least one trained model.")
    if lesson.settings:
        raise SettingsError(
            f"{', '.join(lesson.settings)}: these are settings of training, and the teacher is trained already."
        )
    digest = dataset_digest(lesson.data)
    for model in models:
        if not isinstance(model, nn.Module):
            raise ModelContractError(f"a {type(model).__name__} cannot teach: expected trained modules.")
        record = getattr(model, "training_record", None)
        if record is None:
            log.warning("nothing says how this %s was trained: it must not have seen the test nodes", _name_of(model))
            continue
        if record.get("protocol") == "transductive":
            raise SettingsError(
                'this teacher was trained with protocol="transductive", so it has seen the test nodes: train it with '
                '"held-out", or let teach() train it.'
            )
        if record.get("data", digest) != digest:
            raise SettingsError(
                "this teacher was trained on other data, or on another split, whose labels may be those of test nodes "
                "here: train it on this data, or let teach() train it."
            )
    return _Teacher(_name_of(models[0]), [model.eval() for model in models])


def _name_of(model: nn.Module) -> str:
    config = config_of(model) or {}
    return str(config.get("name", type(model).__name__))


def _graph_free(lesson: _Lesson, number: int) -> list[_Pupil]:
    """Returns models without edges to compare the teacher with, and the labelled rows that they are trained on."""
    data = lesson.data
    model_args, fit_args = lesson.arguments("mlp")
    labelled = (data.train_mask | data.val_mask).nonzero().view(-1)
    rows = Data(
        x=data.x[labelled],
        edge_index=torch.zeros((2, 0), dtype=torch.int64),
        y=torch.as_tensor(data.y)[labelled],
        train_mask=data.train_mask[labelled],
        val_mask=data.val_mask[labelled],
    )
    pupils = []
    for k in range(number):
        seed = lesson.seed * number + k
        model = build_model("mlp", data, seed=seed, **model_args)
        pupils.append(_Pupil("model without edges", model, rows, {**fit_args, "seed": seed}))
    return pupils


def _with_predicted_shares(probabilities: Tensor, models: Sequence[nn.Module], data: Data) -> Tensor:
    """Returns what a teacher would say if its loss had had classes as frequent as it predicts them.

    A classifier learns ``p(class | node)`` for classes that are as frequent as in its loss. Where their shares are
    others, and nodes of each class look the same, Bayes' rule multiplies it by the quotient of shares. About how
    frequent classes are is seen in the predictions themselves. This is done once: repeated, as in the method of Saerens
    et al. (2002), a class that is predicted too seldom vanishes. Probabilities have to be as sure as the teacher is
    right, so they get a temperature first.

    Args:
        probabilities: What the teacher says about the nodes to be taught, shape ``[n, C]``.
        models: The teacher.
        data: The data, for its given labels and its validation nodes.
    """
    in_loss = _shares_in_loss(models, data)
    share = torch.bincount(probabilities.argmax(dim=1), minlength=len(in_loss)).double() + 1  # no class vanishes
    calm = (_log(probabilities) / _temperature(models, data, in_loss)).softmax(dim=1)
    return calm * (share / share.sum() / in_loss)


def _temperature(models: Sequence[nn.Module], data: Data, in_loss: Tensor) -> float:
    """Returns by what log probabilities are divided to fit the labels of validation nodes best, from 0.1 to 10.

    Validation nodes count such that classes are as frequent as in the teacher's loss.
    """
    said, truth = _on_validation(models, data)
    count = torch.bincount(truth, minlength=len(in_loss)).double().clamp(min=1)
    weight = (in_loss / count)[truth]

    def loss(temperature: float) -> float:
        log_likelihood = (_log(said) / temperature).log_softmax(dim=1).gather(1, truth[:, None]).view(-1)
        return float(-(weight * log_likelihood).sum())

    temperatures: list[float] = torch.logspace(-1, 1, 61).tolist()
    return min(temperatures, key=loss)


def _log(probabilities: Tensor) -> Tensor:
    return probabilities.clamp(min=1e-12).log()


def _shares_in_loss(models: Sequence[nn.Module], data: Data) -> Tensor:
    """Returns how much each class counts in the loss of a teacher, as a share."""
    records = [getattr(model, "training_record", None) or {} for model in models]
    given = torch.as_tensor(data.y).view(-1)[data.train_mask.bool()]
    count = torch.bincount(given, minlength=count_classes(data)).double().clamp(min=1)
    if any(record.get("balance_classes") for record in records):
        count = torch.ones_like(count)
    return count / count.sum()


@torch.no_grad()
def _probabilities(models: Sequence[nn.Module], graph: CanonicalGraph, num_classes: int) -> Tensor:
    """Returns the probability of every class for every node of a graph, averaged over the models.

    Raises:
        ModelContractError: A model has other classes, or returns what is no number.
    """
    total = torch.zeros((graph.num_nodes, num_classes), dtype=torch.float64)
    for model in models:
        adapter = bind(model.eval(), graph, "node")
        if adapter.num_classes != num_classes:
            raise ModelContractError(
                f"the teacher has {adapter.num_classes} classes, the data {num_classes}: its labels would mean others."
            )
        logits = adapter(graph.x.to(adapter.dtype), graph.edge_index, adapter.edge_values(graph))
        if not bool(logits.isfinite().all()):
            raise ModelContractError("the teacher returned NaN or infinite logits: what it teaches would be arbitrary.")
        total += logits.double().softmax(dim=1)
    return total / len(models)


def _on_validation(models: Sequence[nn.Module], data: Data) -> tuple[Tensor, Tensor]:
    """Returns probabilities and true classes of validation nodes, in the graph without test nodes."""
    num_classes = count_classes(data)
    view = inductive_view(data)
    rows = masked_rows(view, "val_mask")
    truth = checked_labels(view.y, int(view.num_nodes or 0), rows, num_classes)[rows]
    return _probabilities(models, canonical(view), num_classes)[rows], truth


def _validation_accuracy(models: Sequence[nn.Module], data: Data) -> float:
    """Returns the share of validation nodes that models get right, in the graph without test nodes."""
    probabilities, truth = _on_validation(models, data)
    return float((probabilities.argmax(dim=1) == truth).double().mean())


def _num_pairs(edge_index: Tensor) -> int:
    """Returns the number of different pairs of nodes that edges join."""
    ends = edge_index[:, edge_index[0] != edge_index[1]].sort(dim=0).values
    return int(torch.unique(ends, dim=1).size(1))


def _by_class(labels: Tensor, num_classes: int) -> tuple[int, ...]:
    return tuple(torch.bincount(labels, minlength=num_classes).tolist())


def _warn(teaching: Teaching) -> None:
    """Logs a warning where teaching is likely to help nobody."""
    absent = [str(label) for label, number in enumerate(teaching.taught_by_class) if number == 0]
    if absent:
        log.warning(
            "the teacher gave no node the class %s: the student sees given labels of it alone", ", ".join(absent)
        )
    without_edges = teaching.accuracy_without_edges
    if without_edges is not None and teaching.accuracy <= without_edges:
        log.warning(
            "on the validation part the teacher is right for %.1f %%, a model without edges for %.1f %%: edges have "
            "nothing to teach here",
            100 * teaching.accuracy,
            100 * without_edges,
        )


def _with_labels(data: Data, predicted: Tensor, taught_mask: Tensor, teaching: Teaching) -> Data:
    """Returns a copy of the data with the labels of a teacher."""
    taught = copy.copy(data)
    taught.num_classes = count_classes(data)
    taught.y = torch.where(taught_mask, predicted, torch.as_tensor(data.y).view(-1).long())
    taught.train_mask = data.train_mask.bool() | taught_mask
    taught.taught_mask = taught_mask
    taught.teaching = teaching
    return taught
