"""Training of stacked votes: cross-fitted models without edges, then small networks on their out-of-fold logits.

A model is overconfident on the nodes that it was trained with. So the training nodes are divided into folds, one model
is trained without each fold, and the small networks see, for each training node, the logits of the model that has not
seen it. Without this the small networks learn to ignore the neighbours.
"""

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Data

from agnncert.certificates.ids import order_of
from agnncert.certificates.votes import IntArray
from agnncert.datasets.splits import seen_nodes
from agnncert.datasets.taught import given_rows, teaching_of
from agnncert.defence import AlertLimit
from agnncert.errors import DatasetError, SettingsError, suggests_arguments
from agnncert.graphs.labels import stated_classes
from agnncert.graphs.node_ids import exact_ids, has_ids
from agnncert.graphs.targets import prepared
from agnncert.models.build import count_classes, fresh_copy
from agnncert.proving.measures import target_weights
from agnncert.stacked.counting import stacked_counts
from agnncert.stacked.evidence import StackedEvidence
from agnncert.stacked.model import GraphFree, Pairs, StackedModel, pairs_of
from agnncert.stacked.record import LARGEST_SCORE, STEPS
from agnncert.stacked.settings import StackedSettings

SEEN = 0.4  # share of training nodes that vote as neighbours with the logits of all models, as at test time
LEARNING_RATE, RATE_OF_SCALES = 0.01, 0.03
LOOK_EVERY = 10  # epochs
ENOUGH_TO_SPLIT = 1000  # validation nodes: each half then knows a share within about 2 points


@dataclass(frozen=True)
class Stage:
    """What the small networks are trained and chosen on.

    Attributes:
        own: Own logits of every node: out of fold for training nodes, shape ``[num_nodes, C]``.
        near: The same as neighbours see them: some training nodes have the logits of all models.
        edge_index: The edges that may be seen in training.
        values: Values of these edges, by name.
        y: True classes.
        train: Rows of the training nodes.
        val: Rows of the validation nodes by which weights are kept.
        judges: Rows of the nodes that decide between votes and none. A teacher's labels are not among them: they are
            smooth over edges because the teacher is, so they overrate votes.
        share: Share of all nodes that may be seen in training.
        measure: What models are chosen by.
        balanced: Whether all classes have the same weight in the loss.
    """

    own: Tensor
    near: Tensor
    edge_index: Tensor
    values: dict[str, Tensor | None]
    y: Tensor
    train: Tensor
    val: Tensor
    judges: Tensor
    share: float
    measure: str
    balanced: bool

    def weights(self, rows: Tensor, measure: str) -> Tensor:
        """Weight of each node in a measure; the sum is 1."""
        return torch.from_numpy(target_weights(self.y[rows].numpy(), measure))


@dataclass(frozen=True)
class ClassWeighting:
    """How much each class counts.

    Attributes:
        measure: What models are chosen by: "accuracy", or "balanced", the mean over classes of what is certified.
        balance_classes: Whether all classes have the same weight in the loss of the small networks.
    """

    measure: str = "accuracy"
    balance_classes: bool = False


ALL_NODES_ALIKE = ClassWeighting()


def fit_stacked(
    model: nn.Module | None,
    data: Data,
    defence: StackedSettings,
    fit_one: Callable[[nn.Module, Data, int], nn.Module],
    *,
    seed: int = 0,
    inductive: bool = False,
    weighting: ClassWeighting = ALL_NODES_ALIKE,
    report_progress: Callable[[str, float], None] = lambda step, done: None,
) -> StackedModel:
    """Trains stacked votes and returns the model that certifies most validation nodes at the target size.

    A model without edges is always among the candidates. It is chosen unless another one certifies more validation and
    training nodes (the latter with out-of-fold logits), by more than the standard error of the difference. Labels that
    a teacher gave do not count there. If test nodes are hidden, nodes have fewer neighbours than they will have, so
    sizes count in proportion.

    Args:
        model: An untrained model on features; None if features say nothing and only edges vote.
        data: A graph with ``y``, ``train_mask`` and ``val_mask``.
        defence: How votes are combined and trained.
        fit_one: Trains one model without edges: called with an untrained model, rows without edges, and a seed.
        seed: Seed of the folds and of the small networks. Defaults to 0.
        inductive: Whether test nodes and their edges are hidden. Defaults to False.
        weighting: How much each class counts. By default all nodes count the same.
        report_progress: Called with what is done and which share of it is finished.
    """
    if data.y is None or getattr(data, "train_mask", None) is None or getattr(data, "val_mask", None) is None:
        raise DatasetError("stacked votes are trained on y, train_mask and val_mask: the data lacks one of them.")
    if defence.edge_blind:
        return fit_edge_blind(model, data, defence, fit_one, seed=seed, report_progress=report_progress)
    own, out_of_fold = cross_fit(model, data, defence, fit_one, seed, report_progress)
    channels = _edge_channels(data, defence)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        defence = defence.for_rows(int(data.train_mask.sum()))
        first = StackedModel(own, count_classes(data), channels, defence).eval()
        stage = _stage(first, data, out_of_fold, inductive, weighting.measure, weighting.balance_classes)
        _scale_edges(first, stage)
        alone = _without_votes(first, stage)
        size = defence.size * stage.share
        candidates = []
        for design in (size, 1.5 * size) if size else (size,):
            torch.manual_seed(seed)
            candidates.append(_train(copy.deepcopy(first), stage, defence, design, report_progress))
        best, score = _choose(alone, candidates, stage, size)
    best.training_record = {  # type: ignore[assignment]
        "defence": str(defence),
        "size": defence.size,
        "seed": seed,
        "inductive": inductive,
        "score": score,
        "uses_edges": bool(best.use_votes),
        "folds": len(own),
        "measure": weighting.measure,
    }
    return best.eval()


def fit_edge_blind(
    model: nn.Module | None,
    data: Data,
    defence: StackedSettings,
    fit_one: Callable[[nn.Module, Data, int], nn.Module],
    *,
    seed: int = 0,
    report_progress: Callable[[str, float], None] = lambda step, done: None,
) -> StackedModel:
    """Trains models without edges and returns them with votes of a fixed weight. No edge is read.

    The score of a class is its log-probability, times a temperature that fits the labels out of fold, and
    ``vote_weight`` for each neighbour whose own prediction it is. Votes are the unit of scores, so that the
    log-probability is divided by the weight instead.

    Args:
        model: An untrained model on features.
        data: A graph with ``y``, ``train_mask`` and ``val_mask``. Only its labelled nodes are read.
        defence: The weight of votes and the number of models.
        fit_one: Trains one model without edges: called with an untrained model, rows without edges, and a seed.
        seed: Seed of the folds. Defaults to 0.
        report_progress: Called with what is done and which share of it is finished.

    Raises:
        SettingsError: There is no model on features, or a teacher that read edges gave labels.
    """
    if model is None:
        raise SettingsError("edge_blind=True needs a model on features: without edges nothing else can be trained.")
    if teaching_of(data) is not None:
        raise SettingsError("edge_blind=True: the labels were given by a teacher that read edges; pass data as it was.")
    seen = labelled_part(data)
    own, out_of_fold = cross_fit(model, seen, defence, fit_one, seed, report_progress)
    assert out_of_fold is not None  # there is a model
    temperature = _temperature(out_of_fold[seen.train_mask], seen.y[seen.train_mask])
    blind = StackedModel(own, out_of_fold.size(1), 0, defence.for_rows(0)).eval()
    set_blind_votes(blind, temperature)
    blind.training_record = {  # type: ignore[assignment]
        "defence": str(defence),
        "seed": seed,
        "score": float((out_of_fold[seen.train_mask].argmax(dim=1) == seen.y[seen.train_mask]).double().mean()),
        "uses_edges": True,
        "folds": len(own),
        "temperature": temperature,
        "edge_blind": True,
    }
    return blind


def labelled_part(data: Data) -> Data:
    """Returns the nodes of the training and validation part, without edges and in the order of their ids.

    It depends on nothing else in the data: not on other nodes, nor on the rows at which nodes stand. The number of
    classes is the one that the data states, or follows from these nodes.
    """
    labelled = data.train_mask.bool() | data.val_mask.bool()
    rows = labelled.nonzero().view(-1)
    if has_ids(data):
        ids = exact_ids(data)
        listed = ids.tolist() if isinstance(ids, np.ndarray) else ids
        rows = torch.tensor(sorted(rows.tolist(), key=lambda row: order_of(listed[row])), dtype=torch.int64)
    seen = Data(
        x=data.x[rows],
        edge_index=torch.zeros((2, 0), dtype=torch.int64),
        y=data.y[rows],
        train_mask=data.train_mask[rows].bool(),
        val_mask=data.val_mask[rows].bool(),
    )
    named = getattr(data, "class_names", None)  # by a table, whose labels are trusted here
    stated = stated_classes(data) or (len(named) if named else None)
    if stated is not None:
        seen.num_classes = stated
    return seen


SHARP = 24.0  # factor of log-probabilities in a vote: nearly all of it is for the likeliest class
NEVER = -1e4  # score of abstaining


@torch.no_grad()
def set_blind_votes(model: StackedModel, temperature: float) -> None:
    """Sets the weights on top of the models without edges by rule: nothing of them is trained."""
    for name, parameter in model.named_parameters():
        if not name.startswith("own."):
            parameter.zero_()
    model.own_scale.fill_(math.log(temperature / model.defence.vote_weight))
    model.vote_scale.fill_(SHARP)
    model.abstain.fill_(NEVER)


def wrong_blind_votes(model: StackedModel) -> list[str]:
    """Returns which weights on top of the models without edges are not those of the rule, so that they were trained."""
    expected = copy.deepcopy(model)
    set_blind_votes(expected, 1.0)
    weights = dict(expected.named_parameters())
    return [
        name
        for name, parameter in model.named_parameters()
        if not name.startswith("own.") and name != "own_scale" and not torch.equal(parameter, weights[name])
    ]


TEMPERATURES = tuple(0.3 + 0.1 * step for step in range(18))


def _temperature(logits: Tensor, y: Tensor) -> float:
    """Returns the factor with which log-probabilities of nodes that a model has not seen fit their classes best."""
    losses = [float(F.cross_entropy(factor * logits.double(), y)) for factor in TEMPERATURES]
    return TEMPERATURES[losses.index(min(losses))]


@torch.no_grad()
def _without_votes(model: StackedModel, stage: Stage) -> StackedModel:
    """Returns a copy of a model that reads no edges."""
    alone = copy.deepcopy(model)
    alone.use_votes.zero_()
    # A mean multiplies scores by the number of neighbours, and that must stay exact.
    room = 1024 if model.defence.combine == "mean" else 16
    alone.own_scale.fill_(math.log(LARGEST_SCORE / STEPS / room))
    count = torch.bincount(stage.y[stage.train], minlength=model.num_classes)
    frequency = count.double().log1p()
    if len(model.own):
        alone.constant.copy_(frequency * 1e-6)  # decides ties alone
        return alone
    # Nothing else says anything about a class, so the lead of the most frequent one must survive rounding to steps.
    frequency[count.argmax()] += 1
    alone.constant.copy_(frequency)
    return alone


def _choose(
    alone: StackedModel, candidates: list[StackedModel], stage: Stage, size: float
) -> tuple[StackedModel, float]:
    """Returns the best candidate if it certifies clearly more than the model without votes, and what is certified."""
    rows = stage.judges
    share = len(rows) * stage.weights(rows, stage.measure)
    of_alone = share * _certified(_Look(alone, stage, rows), size)
    certified = [share * _certified(_Look(candidate, stage, rows), size) for candidate in candidates]
    best = max(range(len(candidates)), key=lambda number: float(certified[number].mean()))
    gain = certified[best] - of_alone
    if gain.mean() > gain.std() / math.sqrt(len(rows)):
        return candidates[best], float(certified[best].mean())
    return alone, float(of_alone.mean())


def cross_fit(
    model: nn.Module | None,
    data: Data,
    defence: StackedSettings,
    fit_one: Callable[[nn.Module, Data, int], nn.Module],
    seed: int = 0,
    report_progress: Callable[[str, float], None] = lambda step, done: None,
) -> tuple[list[nn.Module], Tensor | None]:
    """One model for each fold, and the logits of each training node by the model that has not seen it."""
    if model is None:
        return [], None
    rows = data.train_mask.nonzero().view(-1)
    if len(rows) < 2 * defence.folds:
        raise DatasetError(f"{len(rows)} training nodes are too few for {defence.folds} folds.")
    random = np.random.default_rng(seed)
    fold = torch.from_numpy(random.permutation(len(rows)) % defence.folds)
    models, out_of_fold = [], torch.zeros(0)
    for k in range(defence.folds):
        report_progress("models without edges", k / defence.folds)
        train, val = data.train_mask.clone(), data.val_mask
        train[rows[fold == k]] = False
        keep, none = (train | val).nonzero().view(-1), torch.zeros((2, 0), dtype=torch.int64)
        part = Data(x=data.x[keep], edge_index=none, y=data.y[keep], train_mask=train[keep], val_mask=val[keep])
        number = seed * defence.folds + k
        one = fit_one(GraphFree(fresh_copy(model, number)), part, number).eval()
        single = StackedModel([one], count_classes(data), 0, StackedSettings())
        with torch.no_grad():
            logits = single.own_logits(data.x[rows[fold == k]])
        if not len(out_of_fold):
            out_of_fold = logits.new_zeros((data.num_nodes, logits.size(1)))
        out_of_fold[rows[fold == k]] = logits
        models.append(one)
    return models, out_of_fold


def untrained(model: nn.Module | None, data: Data, defence: StackedSettings, seed: int = 0) -> StackedModel:
    """A model like the one that ``fit_stacked`` returns for these arguments, to load its weights into."""
    own = (
        [] if model is None else [GraphFree(fresh_copy(model, seed * defence.folds + k)) for k in range(defence.folds)]
    )
    rows = int(data.train_mask.sum()) if getattr(data, "train_mask", None) is not None else 0
    num_classes = count_classes(labelled_part(data) if defence.edge_blind else data)
    with torch.random.fork_rng(devices=[]):
        return StackedModel(own, num_classes, _edge_channels(data, defence), defence.for_rows(rows)).eval()


def _edge_channels(data: Data, defence: StackedSettings) -> int:
    if not defence.edge_values:
        return 0
    width = sum(v.reshape(len(v), -1).size(1) for v in _edge_values(data).values() if v is not None)
    width -= defence.trusted is not None
    if width < 1:
        raise SettingsError("StackedSettings(edge_values=True): the data has neither edge_weight nor edge_attr.")
    return width


def _edge_values(data: Data) -> dict[str, Tensor | None]:
    return {name: getattr(data, name, None) for name in ("edge_weight", "edge_attr")}


def _stage(
    model: StackedModel, data: Data, out_of_fold: Tensor | None, inductive: bool, measure: str, balanced: bool
) -> Stage:
    """What the small networks may see: in the inductive protocol, everything except the test nodes."""
    src, dst = data.edge_index
    seen = torch.ones(data.num_nodes, dtype=torch.bool)
    if inductive:
        seen = seen_nodes(data)
    edges = seen[src] & seen[dst] & (src != dst)
    with torch.no_grad():
        every = model.own_logits(data.x)
    own = near = every
    if out_of_fold is not None:
        honest = torch.where(data.train_mask[:, None], out_of_fold, every)
        as_seen = torch.rand(data.num_nodes) < SEEN
        own, near = honest, torch.where(as_seen[:, None], every, honest)
    values = {name: None if v is None else v[edges] for name, v in _edge_values(data).items()}
    train, val = (mask.nonzero().view(-1) for mask in (data.train_mask, data.val_mask))
    keepers, judges = _validation_parts(data, train, val)
    share = float(seen.float().mean())
    return Stage(own, near, data.edge_index[:, edges], values, data.y, train, keepers, judges, share, measure, balanced)


def _validation_parts(data: Data, train: Tensor, val: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the nodes by which weights are kept, and those that decide between votes and none.

    In taught data these are different validation nodes where there are enough. Given labels decide in both cases.
    """
    if teaching_of(data) is None:
        return val, torch.cat([train, val])
    if len(val) < ENOUGH_TO_SPLIT:
        return val, torch.cat([given_rows(data), val])
    return val[0::2], torch.cat([given_rows(data), val[1::2]])


@torch.no_grad()
def _scale_edges(model: StackedModel, stage: Stage) -> None:
    table, _ = model.edge_table(stage.values)
    if table is not None and len(table) > 1:
        model.edge_center.copy_(table.double().mean(dim=0))
        spread = table.double().std(dim=0)
        model.edge_spread.copy_(torch.where(spread > 0, spread, 1.0))


def _train(
    model: StackedModel,
    stage: Stage,
    defence: StackedSettings,
    size: float,
    report_progress: Callable[[str, float], None],
) -> StackedModel:
    """Trains the small networks for a size; the models without edges stay as they are."""
    for parameter in model.own.parameters():
        parameter.requires_grad_(False)
    scales = [p for p in model.parameters() if p.requires_grad and p.dim() == 0]
    tables = [p for p in model.parameters() if p.requires_grad and p.dim() > 0]
    groups: list[dict[str, Any]] = [
        {"params": tables, "weight_decay": defence.weight_decay},
        {"params": scales, "lr": RATE_OF_SCALES},
    ]
    optimizer = torch.optim.Adam(groups, lr=LEARNING_RATE, foreach=True)
    look, check = (_Look(model, stage, rows) for rows in (stage.train, stage.val))
    weight = stage.weights(stage.train, "balanced").to(stage.own.dtype) * len(stage.train) if stage.balanced else None
    counted = stage.weights(stage.val, stage.measure)
    best, best_share = copy.deepcopy(model.state_dict()), -1.0
    for epoch in range(defence.epochs):
        worst = look.worst(size)
        soft = epoch < defence.epochs // 2
        each = F.softplus(-worst) if soft else 2 * torch.sigmoid(-worst)
        loss = each.mean() if weight is None else (weight * each).mean()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        if (epoch + 1) % LOOK_EVERY == 0 or epoch + 1 == defence.epochs:
            report_progress(f"votes for {size:g} changes", (epoch + 1) / defence.epochs)
            share = float((counted * _certified(check, defence.size * stage.share)).sum())
            if share >= best_share:
                best, best_share = copy.deepcopy(model.state_dict()), share
    model.load_state_dict(best)
    return model


class _Look:
    """Scores of some nodes in the graph of a stage, and how they stand an attack; differentiable."""

    def __init__(self, model: StackedModel, stage: Stage, rows: Tensor) -> None:
        self.model, self.own, self.near, self.edge_index = model, stage.own[rows], stage.near, stage.edge_index
        self.truth = stage.y[rows]
        self.table, trusted = model.edge_table(stage.values)
        self.pairs: Pairs = pairs_of(stage.edge_index, rows, len(stage.near), trusted)
        self.free = self.pairs.part(~self.pairs.trusted)  # those that an attacker may change

    def worst(self, size: float) -> Tensor:
        """A smooth lower bound of the margin of the true class after ``size`` changes, shape ``[n]``."""
        return -torch.logsumexp(-self.margins(size), dim=1)

    def margins(self, size: float) -> Tensor:
        """By how much the true class leads each other class after ``size`` neighbours came or went, ``[n, C]``."""
        model, true = self.model, self.truth[:, None]
        votes = model.votes(self.near, self.pairs, self.edge_index, self.table)
        prior, total, divisor = model.parts(self.own, votes, self.pairs)
        gate = model.gate(self.own)
        own, votes_lead = (values.gather(1, true) - values for values in (prior, gate * total))
        price = torch.maximum(gate, gate.gather(1, true))
        if model.defence.combine == "sum":
            margin = own + (votes_lead - self._asked(size) * price)
        else:
            margin = torch.full_like(own, math.inf)
            for lost, taken in enumerate(self._taken(votes, int(size))):
                rest, there = divisor - lost, self.free.degree[:, None] >= lost
                for new in {0.0, size - lost}:
                    left = own + (votes_lead - price * (taken + new)) / torch.where(there, rest + new, 1.0)
                    margin = torch.where(there, torch.minimum(margin, left), margin)
        return margin.scatter(1, true, math.inf)

    def _asked(self, size: float) -> float | Tensor:
        """How many of ``size`` changes each node is to withstand: all, or a share of its neighbours, ``[n, 1]``."""
        share = self.model.defence.of_neighbours
        if share is None:
            return size
        asked: Tensor = (share * self.free.degree.to(self.own.dtype)).clamp(max=size)
        return asked[:, None]

    def _taken(self, votes: Tensor, most: int) -> list[Tensor]:
        """What the true class loses to each other class with the 0, 1, … most votes that help it most, ``[n, C]``."""
        owner, cast = self.free.owner, votes if len(votes) == len(self.free.owner) else votes[~self.pairs.trusted]
        gain = cast.gather(1, self.truth[owner][:, None]) - cast
        ranked = gain.gather(0, torch.argsort(4 * owner[:, None] - gain.detach().double(), dim=0))
        sums = [gain.new_zeros((len(self.truth), gain.size(1)))]
        for k in range(most):
            place = (self.free.indptr[:-1] + k).clamp(max=max(len(owner) - 1, 0))
            sums.append(sums[-1] + ranked[place] * (self.free.degree > k)[:, None] if len(owner) else sums[-1])
        return sums


@torch.no_grad()
def _certified(look: _Look, size: float) -> Tensor:
    """Whether the true class of each node leads after ``size`` changes, averaged with some less and some more."""
    around = (0.5 * size, size, 1.5 * size) if size else (size,)
    return torch.stack([(look.margins(one).amin(dim=1) > 0).double() for one in around]).mean(dim=0)


@torch.no_grad()
def with_threshold(model: StackedModel, data: Data, limit: AlertLimit, counted: IntArray) -> StackedModel:
    """The same votes with an operating point, so that a certificate is about this threshold.

    Args:
        model: The model.
        data: The graph.
        limit: How many of the counted nodes may get the label of which class.
        counted: Rows of the nodes that count: validation nodes, or those that were kept for this.

    Raises:
        SettingsError: The model has no such class, or gives all validation nodes the same score.
        DatasetError: There is no node to count.
    """
    positive = limit.positive
    if positive >= model.num_classes:
        raise SettingsError(f"positive={positive}: the model has the classes 0 to {model.num_classes - 1}.")
    leads = _leads(model, data, counted, positive)
    if not len(leads):
        raise DatasetError("no validation node has another class: there is nothing to choose a threshold on.")
    if limit.kept is None and leads.max() == leads.min():
        raise SettingsError(
            "all validation nodes have the same score, so no threshold lies between them: training found no votes that "
            "certify more than the most frequent class. Train with balance_classes=True (--set balance_classes=true), "
            "for a smaller size, or with a smaller weight_decay."
        )
    most = min(limit.most if limit.kept is None else limit.most_kept, len(leads) - 1)
    cut = int(leads.sort(descending=True).values[most])
    moved = copy.deepcopy(model).eval()
    # Some steps more, so that rounding does not make an alert of the last of them.
    raised = moved.constant.double() + (cut + 4) / STEPS
    constant = raised.to(moved.constant.dtype)
    above = torch.nextafter(constant, torch.full_like(constant, torch.inf))
    constant = torch.where(constant.double() < raised, above, constant)
    constant[positive] = moved.constant[positive]
    moved.constant.copy_(constant)
    return moved


def _leads(model: StackedModel, data: Data, rows: IntArray, positive: int) -> Tensor:
    """Returns by how many steps nodes lean to a class against the best of the others, as certificates count them."""
    if not len(rows):
        return torch.zeros(0, dtype=torch.int64)
    scores = StackedEvidence(**stacked_counts(model.eval(), prepared(data, rows).targets(rows))).counts
    others = np.delete(scores, positive, axis=1)
    return torch.from_numpy(scores[:, positive] - others.max(axis=1))


@suggests_arguments
def mark_trusted(data: Data, edges: Any) -> tuple[Data, int]:
    """The graph with one more column of ``edge_attr``, which marks trusted edges, and its number for ``trusted=``.

    Args:
        data: The graph.
        edges: Which edges no attacker can change, shape ``[num_edges]``: a mask, or a comparison of times, such as
            ``data.edge_attr[:, 3] < date``.
    """
    marks, graph = torch.as_tensor(edges).reshape(-1, 1), copy.copy(data)
    if marks.dtype != torch.bool or len(marks) != data.num_edges:
        raise SettingsError(f"expected a mask of {data.num_edges} edges, found {len(marks)} values of {marks.dtype}.")
    attr = getattr(data, "edge_attr", None)
    known = torch.zeros((len(marks), 0)) if attr is None else attr.reshape(len(marks), -1)
    graph.edge_attr = torch.cat([known, marks.to(known.dtype)], dim=1)
    return graph, known.size(1)
