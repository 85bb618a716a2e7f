"""``LabelModel``: training labels, and the rule by which they vote."""

from dataclasses import fields
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor

from agnncert.as_built import OwnModel
from agnncert.errors import DatasetError, SettingsError
from agnncert.graphs.labels import stated_classes
from agnncert.labels.evidence import LabelEvidence
from agnncert.labels.joint_evidence import JointEvidence
from agnncert.labels.record import STEPS
from agnncert.labels.settings import LabelSettings
from agnncert.labels.vectors import Spectrum, node_spectrum, own_spectrum
from agnncert.labels.weights import Rows, Weighting, make_weights
from agnncert.stacked.model import pairs_of

NAME = "label-votes"


class Neighbours(NamedTuple):
    """Targets with their neighbours, as a ``JointRecord`` holds them."""

    voter: Rows
    indptr: Rows
    neighbour: Rows


def neighbours_of(edge_index: Tensor, targets: Rows, num_nodes: int) -> Neighbours:
    """Returns the targets and their neighbours, in either direction and without self-loops.

    Args:
        edge_index: All edges, shape ``[2, num_edges]``.
        targets: Rows of the targets.
        num_nodes: Number of nodes.
    """
    pairs = pairs_of(edge_index, torch.from_numpy(targets), num_nodes)
    rows = pairs.neighbour.numpy()
    voter = np.union1d(targets, rows)
    return Neighbours(voter, pairs.indptr.numpy(), np.searchsorted(voter, rows))


class LabelModel(OwnModel):
    """The training labels of a graph, with settings that are complete. Nothing is trained by gradients.

    Args:
        num_candidates: How many nodes may have a label.
        defence: The settings, with nothing left open.
    """

    candidate: Tensor  # rows, ascending
    label_of: Tensor  # -1 for none
    audited: Tensor
    price: Tensor

    def __init__(self, num_candidates: int, defence: LabelSettings) -> None:
        super().__init__()
        self.defence = defence
        self.register_buffer("candidate", torch.arange(num_candidates))
        self.register_buffer("label_of", torch.full((num_candidates,), -1))
        self.register_buffer("audited", torch.zeros(num_candidates, dtype=torch.bool))
        self.register_buffer("price", torch.ones(num_candidates, dtype=torch.int64))
        settings = {each.name: getattr(defence, each.name) for each in fields(LabelSettings)}
        written = {name: list(value) if isinstance(value, tuple) else value for name, value in settings.items()}
        self.config: dict[str, Any] = {"name": NAME, "num_candidates": num_candidates, "defence": written}

    def anew(self) -> Self:
        """Returns a model of the same settings, without labels."""
        return type(self)(len(self.candidate), self.defence)

    @property
    def num_classes(self) -> int:
        """Number of classes."""
        return int(self.defence.num_classes or 0)

    def evidence(
        self, x: Tensor, edge_index: Tensor, targets: Rows, ids: str = "node_id"
    ) -> LabelEvidence | JointEvidence:
        """Computes weights from the graph, and joins them with the training labels.

        Args:
            x: Features of all nodes.
            edge_index: All edges.
            targets: Rows of the targets.
            ids: ``"node_id"`` or ``"row"``.
        """
        settings = self.defence
        candidate = self.candidate.numpy()
        if len(candidate) and candidate[-1] >= len(x):
            raise DatasetError(f"a training label belongs to row {candidate[-1]}, and the graph has {len(x)} nodes.")
        if settings.candidates == "all" and len(candidate) != len(x):
            raise DatasetError(
                f"the labels are those of a graph with {len(candidate)} nodes, this one has {len(x)}: fit again."
            )
        counted = self.counted_settings()
        if settings.neighbour_votes is None:
            return self._label_evidence(node_spectrum(x, edge_index), targets, ids, counted["least_lead"])
        near = neighbours_of(edge_index, targets, len(x))
        return JointEvidence(
            voters=self._label_evidence(own_spectrum(x), near.voter, ids, least_lead=0),
            voter=near.voter,
            target=np.searchsorted(near.voter, targets),
            indptr=near.indptr,
            neighbour=near.neighbour,
            neighbour_steps=counted["neighbour_steps"],
            least_lead=counted["least_lead"],
        )

    def counted_settings(self) -> dict[str, Any]:
        """Returns the settings that a file of this model states, in steps of a vote; those of ids are the graph's."""
        settings = self.defence
        advance = settings.advance or (0.0,) * self.num_classes
        counted = {
            "classes": self.num_classes,
            "advance": [round(votes * STEPS) for votes in advance],
            "least_lead": int(np.ceil(settings.abstain * STEPS)),
            "candidates": settings.candidates,
            "df": settings.df,
            "rank": settings.rank,
            "box": settings.box,
        }
        if settings.neighbour_votes is not None:
            counted["neighbour_steps"] = round(settings.neighbour_votes * STEPS)
        return counted

    def _label_evidence(self, spectrum: Spectrum, targets: Rows, ids: str, least_lead: int) -> LabelEvidence:
        """Returns the label votes of some nodes."""
        settings = self.defence
        candidate = self.candidate.numpy()
        assert settings.df is not None
        assert settings.rank is not None
        is_all = settings.candidates == "all"
        weighting = Weighting(candidate, is_all, settings.df, settings.rank, settings.box)
        arrays: Any = make_weights(spectrum, targets, weighting)
        return LabelEvidence(
            **arrays,
            candidate=candidate,
            label_of=self.label_of.numpy().astype(np.int16),
            audited=self.audited.numpy(),
            price=self.price.numpy().astype(np.int32),
            classes=self.num_classes,
            advance=tuple(self.counted_settings()["advance"]),
            least_lead=least_lead,
            candidates=settings.candidates,
            df=settings.df,
            rank=settings.rank,
            box=settings.box,
            ids=ids,
        )

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Scores of every node in votes, shape ``[num_nodes, num_classes]``; zeros for a graph without the labels."""
        is_all = self.defence.candidates == "all"
        last_row = int(self.candidate.max()) if len(self.candidate) else -1
        if len(x) <= last_row or (is_all and len(x) != len(self.candidate)):
            return x.new_zeros((len(x), self.num_classes))
        counts = self.evidence(x, edge_index, np.arange(len(x))).counts
        return torch.from_numpy(counts / STEPS).to(x.dtype)


def label_model(data: Any, settings: LabelSettings) -> LabelModel:
    """Returns a model that holds the training labels of a graph.

    Raises:
        DatasetError: Labels or the training part are missing, or a label is no class.
        SettingsError: The number of classes is not stated, or the settings do not fit the graph.
    """
    labels = training_labels(data)
    num_classes = _stated_classes(data, settings)
    largest = int(labels.max(initial=-1))
    if largest >= num_classes:
        raise DatasetError(f"a training label is {largest}, and there are {num_classes} classes, from 0 on.")
    is_labelled = labels >= 0
    if not is_labelled.any():
        raise DatasetError("no node of train_mask has a label.")
    complete = settings.resolved(int(is_labelled.sum()), len(labels), num_classes)
    if complete.advance and len(complete.advance) != num_classes:
        raise SettingsError(f"advance has {len(complete.advance)} numbers, and there are {num_classes} classes.")
    candidate = np.arange(len(labels)) if settings.candidates == "all" else np.flatnonzero(is_labelled)
    model = LabelModel(len(candidate), complete)
    model.candidate.copy_(torch.from_numpy(candidate))
    model.label_of.copy_(torch.from_numpy(labels[candidate]))
    model.audited.copy_(torch.from_numpy(_audited(data, settings, len(labels))[candidate]))
    model.price.copy_(torch.from_numpy(_prices(data, settings, len(labels))[candidate]))
    return model.eval()


def training_labels(data: Any) -> Rows:
    """Returns the training label of every node, -1 for none.

    Raises:
        DatasetError: The data has no classes or no training part.
    """
    y = getattr(data, "y", None)
    mask = getattr(data, "train_mask", None)
    if y is None or mask is None:
        raise DatasetError("label votes need y and train_mask: the data lacks one of them.")
    classes = np.asarray(y).reshape(-1).astype(np.int64)
    inside = np.asarray(mask)
    if inside.dtype != bool or inside.shape != classes.shape:
        raise DatasetError("train_mask is no mask with an entry for each node.")
    return np.where(inside, np.maximum(classes, -1), -1)


def _stated_classes(data: Any, settings: LabelSettings) -> int:
    number = settings.num_classes or stated_classes(data)
    if not number:
        raise SettingsError(
            "the number of classes must not be counted from labels that may be poisoned, because one label of a new "
            "class changes many decisions: state it, LabelVotes(num_classes=…) or data.num_classes = …. Of tables, "
            "state the names: load_tables(…, classes=[…]), or --set classes=NAME,NAME."
        )
    return int(number)


def _audited(data: Any, settings: LabelSettings, num_nodes: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Returns whose labels no attacker can change, shape ``[num_nodes]``."""
    given = settings.audited
    audited = np.zeros(num_nodes, dtype=bool)
    if given is None:
        return audited
    if isinstance(given, str):
        mask = getattr(data, given, None)
        if mask is None or np.asarray(mask).dtype != bool or np.asarray(mask).shape != (num_nodes,):
            raise DatasetError(f'LabelVotes(audited="{given:.60}"): the data has no such mask with an entry per node.')
        return np.asarray(mask)
    rows = np.asarray(given, dtype=np.int64)
    if ((rows < 0) | (rows >= num_nodes)).any():
        raise DatasetError(f"LabelVotes(audited=…): rows are from 0 to {num_nodes - 1}.")
    audited[rows] = True
    return audited


def _prices(data: Any, settings: LabelSettings, num_nodes: int) -> Rows:
    """Returns what changing each label costs, shape ``[num_nodes]``."""
    given = settings.prices
    if given is None:
        return np.ones(num_nodes, dtype=np.int64)
    stated = getattr(data, given, None) if isinstance(given, str) else given
    if stated is None:
        raise DatasetError(f'LabelVotes(prices="{given!s:.60}"): the data has no such tensor.')
    prices = np.asarray(stated)
    if prices.shape != (num_nodes,) or prices.dtype.kind not in "iu" or (prices < 1).any():
        raise DatasetError("LabelVotes(prices=…): expected a whole number from 1 on for each node.")
    return prices.astype(np.int64)
