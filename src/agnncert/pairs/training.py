"""Trains votes about pairs: the prior on training pairs; weight, threshold and votes on validation pairs."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from agnncert.certificates.class_names import class_word
from agnncert.certificates.votes import BoolArray, IntArray
from agnncert.errors import DatasetError
from agnncert.models.wrappers import uneven_column
from agnncert.pairs.evidence import VOTES_OF_NODE, PairEvidence
from agnncert.pairs.model import PairModel, PairPrior
from agnncert.pairs.settings import PairSettings
from agnncert.pairs.targets import PairTargets, listed_pairs, pair_classes
from agnncert.stacked.record import STEPS

SCALES = (0.16, 0.31, 0.62, 1.25, 2.5, 5.0, 10.0, 20.0)  # votes that a factor e of the prior's odds is worth
SHIFTS = (*np.arange(0, 10, 0.5) + 0.25, 12.25, 16.25, 24.25)  # votes that the favoured class needs more
SIDES = (0.02, 0.05, 0.1, 0.25)  # weights of a neighbour of one node
BATCH = 512


@dataclass(frozen=True)
class Examples:
    """Pairs with their classes: those to train the prior on, and those to fit weights and thresholds on."""

    train: PairTargets
    val: PairTargets
    num_classes: int


def examples_of(data: Any, choose: Any) -> Examples:
    """Returns the training and validation pairs of ``edge_label_index``.

    Args:
        data: The data as the user gave it.
        choose: Returns the pairs of a mask.

    Raises:
        DatasetError: Classes or masks are missing, or a part is empty.
    """
    listed = listed_pairs(data)
    classes = None if listed is None else pair_classes(data, len(listed))
    masks = [getattr(data, name, None) for name in ("train_mask", "val_mask")]
    if listed is not None and classes is None:
        raise DatasetError(
            "the pairs have no classes (edge_label), so there is nothing to train on. In a table they are "
            'the column "label", or another one that is named by label="…" (--set column.label=…).'
        )
    if listed is None or classes is None or any(mask is None or len(mask) != len(listed) for mask in masks):
        raise DatasetError(
            "votes about pairs are trained on edge_label_index, edge_label, and train_mask and val_mask with an entry "
            "for each pair: the data lacks one of them."
        )
    train, val = (choose(torch.as_tensor(mask).bool() & torch.from_numpy(classes >= 0)) for mask in masks)
    if not len(train.ends) or not len(val.ends):
        raise DatasetError("train_mask or val_mask names no pair with a class.")
    only = np.unique(classes[torch.as_tensor(masks[0]).bool().numpy() & (classes >= 0)])
    if len(only) == 1:
        word = class_word(getattr(data, "class_names", None), int(only[0]))
        raise DatasetError(
            f"all {len(train.ends):,} training pairs have the same class, {word}: there is nothing to tell apart. Add "
            "training pairs of another class."
        )
    return Examples(train, val, max(2, int(classes.max()) + 1))


def untrained(model: nn.Module | None, examples: Examples, defence: PairSettings) -> PairModel:
    """Returns the model that :func:`train` trains; a prior is built if none is given."""
    graph = examples.train.graph
    attr = graph.edge_attr
    channels = 0 if defence.trusted is None or attr is None else attr.reshape(len(attr), -1).size(1)
    if model is None:
        num_values = examples.train.values.size(1) + (1 + 3 * channels if channels else 0)
        scaled = _has_columns_of_many_sizes(examples.train)
        model = PairPrior(graph.x.size(1), num_values, examples.num_classes, defence.hidden, defence.directed, scaled)
    made = PairModel(model, examples.num_classes, channels, defence)
    if channels and attr is not None:
        table = attr.reshape(len(attr), -1).float()
        made.edge_center.copy_(table.mean(dim=0))
        made.edge_spread.copy_(table.std(dim=0).clamp(min=1e-6))
    if isinstance(model, PairPrior) and model.scaled:
        model.set_scale(_features_of(examples.train), _values(made, examples.train))
    return made


def _has_columns_of_many_sizes(pairs: PairTargets) -> bool:
    """Tells whether features and values must be scaled, as those of most tables; bags of words need not be."""
    x = _features_of(pairs)
    both = torch.cat([x[: len(pairs.ends)], x[len(pairs.ends) :], pairs.values.float()], dim=1)
    return uneven_column(both) is not None or (x.size(1) == 1 and float(x.std()) > 0)


def _features_of(pairs: PairTargets) -> Tensor:
    """Returns the features of the first node of each pair, and then of the second, shape ``[2 * n, num_features]``."""
    return pairs.graph.x[torch.from_numpy(pairs.ends.T.reshape(-1))].float()


def train(model: PairModel, examples: Examples, report: Any) -> PairModel:
    """Trains the prior, then the votes of contacts, then weight and threshold for ``size`` changed edges."""
    _train_prior(model, examples, report)
    if model.edge_channels:
        _train_votes(model, examples.val)
    return choose_weights(model.eval(), examples.val)


def _values(model: PairModel, pairs: PairTargets) -> Tensor:
    masked = model.masked_pairs(pairs.ends)
    return model.with_own_edges(pairs.graph, pairs.ends, pairs.values, masked).float()


def _truth(pairs: PairTargets) -> Tensor:
    assert pairs.truth is not None
    return torch.from_numpy(pairs.truth)


def _class_weights(truth: Tensor, num_classes: int, balanced: bool) -> Tensor | None:
    if not balanced:
        return None
    number = torch.bincount(truth, minlength=num_classes).clamp(min=1)
    return len(truth) / (num_classes * number.float())


def _train_prior(model: PairModel, examples: Examples, report: Any) -> None:
    """Trains the prior; of all epochs, that with the best validation pairs is kept."""
    graph, truth = examples.train.graph, _truth(examples.train)
    values, val_values = _values(model, examples.train), _values(model, examples.val)
    ends = torch.from_numpy(examples.train.ends)
    weights = _class_weights(truth, examples.num_classes, model.defence.balanced)
    optimiser = torch.optim.AdamW(model.prior.parameters(), lr=3e-3, weight_decay=model.defence.weight_decay)
    best, kept = -1.0, {}
    for epoch in range(model.defence.epochs):
        model.prior.train()
        for rows in torch.split(torch.randperm(len(ends)), BATCH):
            first, second = ends[rows].T
            logits = model.prior(graph.x[first].float(), graph.x[second].float(), values[rows])
            optimiser.zero_grad()
            loss: Any = F.cross_entropy(logits, truth[rows], weights)
            loss.backward()
            optimiser.step()
        model.prior.eval()
        with torch.no_grad():
            label = model.own_logits(graph, examples.val.ends, val_values).argmax(dim=1)
        score = _share((label == _truth(examples.val)).numpy(), examples.val, model.defence.balanced)
        if score > best:
            best, kept = score, {name: value.clone() for name, value in model.prior.state_dict().items()}
        report("prior", (epoch + 1) / model.defence.epochs)
    model.prior.load_state_dict(kept)


def _share(right: BoolArray, pairs: PairTargets, balanced: bool) -> float:
    """Returns the share of pairs that are right, or its mean over the classes."""
    assert pairs.truth is not None
    if not balanced:
        return float(right.mean())
    return float(np.mean([right[pairs.truth == k].mean() for k in np.unique(pairs.truth)]))


def _train_votes(model: PairModel, pairs: PairTargets) -> None:
    """Trains what a contact's edge says about the class."""
    masked = model.masked_pairs(pairs.ends)
    voters = model.voters(pairs.graph, pairs.ends, masked)
    truth = _truth(pairs)
    with torch.no_grad():
        own = model.own_logits(pairs.graph, pairs.ends, _values(model, pairs)).double()
    weights = _class_weights(truth, model.num_classes, model.defence.balanced)
    parameters = [*model.vote_net.parameters(), model.constant, model.scale]
    optimiser = torch.optim.Adam(parameters, lr=0.03, weight_decay=1e-4)
    owner = torch.from_numpy(voters.owner)
    for _ in range(200):
        votes = model.votes(pairs.graph, pairs.ends, voters).double()
        score = (model.constant + model.scale * own).index_add(0, owner, votes)
        optimiser.zero_grad()
        loss: Any = F.cross_entropy(2 * score, truth, None if weights is None else weights.double())
        loss.backward()
        optimiser.step()


@torch.no_grad()
def choose_weights(model: PairModel, pairs: PairTargets) -> PairModel:
    """Chooses weight and threshold, and for common neighbours the class that they vote for, on validation pairs.

    What counts is the share of pairs that are right and certified against ``size`` changed edges. A model without votes
    is a candidate, too. The model is changed in place and returned.
    """
    masked = model.masked_pairs(pairs.ends)
    own = model.own_logits(pairs.graph, pairs.ends, _values(model, pairs)).double()
    learnt_scale, learnt_constant = model.scale.clone(), model.constant.clone()
    best = (-1.0, {name: value.clone() for name, value in model.state_dict().items()})
    for favoured, side in _kinds(model):
        model.favoured.fill_(favoured)
        model.side_weight.fill_(side)
        model.use_votes.fill_(1)
        template = model.counted(pairs.graph, pairs.ends, pairs.values, masked)
        best = _best_of(model, pairs, own, template, best, (learnt_scale, learnt_constant))
    model.load_state_dict(best[1])
    return model


def _kinds(model: PairModel) -> list[tuple[int, float]]:
    """Returns for which class common neighbours may vote, and the weights of a neighbour of one node."""
    if model.edge_channels:
        return [(model.num_classes - 1, 0.0)]
    sides = SIDES if model.defence.over == "both" else (0.0,)
    return [(k, side) for k in range(model.num_classes) for side in sides]


def _best_of(
    model: PairModel,
    pairs: PairTargets,
    own: Tensor,
    template: dict[str, Any],
    best: Any,
    learnt: tuple[Tensor, Tensor],
) -> Any:
    """Tries weights and thresholds, and returns the better of what was known and what was found."""
    favoured = int(model.favoured)
    trusted = bool(model.edge_channels)
    shifts = [0.0, *SHIFTS, *(-shift for shift in SHIFTS if trusted)]
    for use_votes in (1, 0):
        for scale in SCALES if use_votes else (1.0,):
            for shift in shifts if use_votes or model.defence.balanced else (0.0,):
                constant = learnt[1].clone() if trusted else torch.zeros_like(learnt[1])
                constant[favoured] -= shift * (0.2 if trusted else 1.0)
                factor = learnt[0] * scale if trusted else torch.tensor(scale, dtype=torch.float64)
                prior = ((constant + factor * own) * STEPS).round().long().numpy()
                right = _certified(template, prior, use_votes, pairs, model.defence.size)
                score = _share(right, pairs, model.defence.balanced)
                if score > best[0]:
                    model.scale.fill_(factor)
                    model.constant.copy_(constant)
                    model.use_votes.fill_(use_votes)
                    best = (score, {name: value.clone() for name, value in model.state_dict().items()})
    return best


def _certified(template: dict[str, Any], prior: IntArray, use_votes: int, pairs: PairTargets, size: int) -> BoolArray:
    """Returns which pairs are right, and keep their label against so many changes, shape ``[n]``.

    Where all voters vote for one class, counting them is enough and much faster. Rounding is then left out.
    """
    if template["blind"]:
        return _right_by_counts(template, prior, use_votes, pairs, size)
    counts = {**template, "prior": prior, "gate": template["gate"] * use_votes}
    if np.abs(prior).max(initial=0) > 2**29:
        return np.zeros(len(prior), dtype=bool)
    evidence = PairEvidence(**counts)
    possible = evidence.possible(size)
    alone = possible.sum(axis=1) == 1
    return np.asarray(alone & (evidence.labels() == pairs.truth))


def _right_by_counts(
    template: dict[str, Any], prior: IntArray, use_votes: int, pairs: PairTargets, size: int
) -> BoolArray:
    """Returns the same as :func:`_certified`, where votes are for one class: an attack takes the largest, or adds."""
    assert pairs.truth is not None
    everyone = np.arange(len(prior))
    gate = template["gate"] * use_votes
    reached = VOTES_OF_NODE[template["rule"]] * size
    owner = np.repeat(everyone, np.diff(template["indptr"]))
    vote = template["table"].max(axis=1, initial=0)[template["which"]].astype(np.int64)
    ranked = vote[np.lexsort((-vote, owner))]
    place = np.arange(len(owner)) - template["indptr"][owner]
    total = np.bincount(owner, weights=vote, minlength=len(prior))
    left = np.bincount(owner, weights=np.where(place < reached, 0, ranked), minlength=len(prior))
    is_truth = np.arange(prior.shape[1]) == pairs.truth[:, None]
    votes = np.where(is_truth, left[:, None], total[:, None] + reached * STEPS)
    score = prior + (gate > 0) * votes
    others = np.where(is_truth, -np.inf, score).max(axis=1)
    return np.asarray(score[everyone, pairs.truth] > others)
