"""``PairModel``: a classifier of pairs of nodes, which adds a bounded vote of each common neighbour to a prior.

The score of class k for the pair (u, v) is

    prior_k(x_u, x_v, values of the pair) + sum over the voters j of vote_k(j)

Votes of common neighbours read nothing of j: each of them is one vote for the same class, so that the graph matters by
how many they are. A trusted contact's vote reads the values of its edge to v, and the prior then also reads the edges
that leave u, which no attacker changes. The prior runs in float64 and is rounded to steps of ``1 / STEPS``: what is
certified is what predicts.
"""

import copy
from collections.abc import Iterator
from dataclasses import fields
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from agnncert.addons import config_of
from agnncert.as_built import OwnModel
from agnncert.certificates.votes import BoolArray, IntArray
from agnncert.errors import ModelContractError, SettingsError
from agnncert.graphs.graph import CanonicalGraph
from agnncert.pairs.settings import PairSettings
from agnncert.pairs.voters import COMMON, Voters, contacts_of_pairs, neighbours_of_pairs, unmasked
from agnncert.stacked.record import LARGEST_SCORE, STEPS
from agnncert.stacked.rounding import whole_steps

NAME = "pair-votes"
SMALLEST_SPREAD = 1e-6  # of a column that varies
LOWEST = -8.0  # smallest log-probability: how sure the prior can be
PAIRS_AT_ONCE = 2**12
SLACK = 1  # steps; the prior runs in float64, so that only a value at the edge of a step may be rounded differently


class PairPrior(nn.Module):
    """Classes of a pair by its own features: both nodes are encoded, compared, and classified.

    Args:
        num_features: Features of a node.
        num_values: Values of the pair itself.
        num_classes: Number of classes.
        hidden: Width.
        directed: Whether the order of the two nodes matters.
        scaled: Whether features and values are columns of different sizes, such as ages and amounts: then each has a
            centre and a spread (:meth:`set_scale`). Otherwise rows of features have length 1, which suits bags of
            words. Defaults to False.
    """

    center: Tensor
    spread: Tensor

    def __init__(
        self, num_features: int, num_values: int, num_classes: int, hidden: int, directed: bool, scaled: bool = False
    ) -> None:
        super().__init__()
        self.directed = directed
        self.encode = nn.Linear(num_features, hidden)
        self.compare = nn.Linear(hidden * (4 if directed else 2) + num_values, hidden)
        self.classify = nn.Linear(hidden, num_classes)
        self.config: dict[str, Any] = {
            "num_features": num_features,
            "num_values": num_values,
            "num_classes": num_classes,
            "hidden": hidden,
            "directed": directed,
        }
        if scaled:
            self.config["scaled"] = True
            self.register_buffer("center", torch.zeros(num_features + num_values))
            self.register_buffer("spread", torch.ones(num_features + num_values))

    @property
    def scaled(self) -> bool:
        """Whether each column of features and values has a centre and a spread."""
        return "center" in self._buffers

    def set_scale(self, x: Tensor, values: Tensor) -> None:
        """Takes centre and spread of each column from training data; a column that does not vary keeps its size.

        Args:
            x: Features of the nodes of training pairs, shape ``[m, num_features]``.
            values: Values of training pairs, shape ``[n, num_values]``.
        """
        for part, table in (
            (slice(0, x.size(1)), x.double()),
            (slice(x.size(1), x.size(1) + values.size(1)), values.double()),
        ):
            if table.size(1) == 0:  # pairs without values: torch warns about the spread of no column
                continue
            spread = table.std(dim=0, correction=0)
            self.center[part] = table.mean(dim=0).to(self.center.dtype)
            self.spread[part] = torch.where(spread > SMALLEST_SPREAD, spread, 1.0).to(self.spread.dtype)

    def forward(self, x_u: Tensor, x_v: Tensor, values: Tensor) -> Tensor:
        """Logits of each pair, shape ``[n, num_classes]``.

        Args:
            x_u: Features of the first node of each pair, shape ``[n, num_features]``.
            x_v: Features of the second node, shape ``[n, num_features]``.
            values: Values of the pair itself, shape ``[n, num_values]``.
        """
        u, v = self._encoded(x_u), self._encoded(x_v)
        if self.scaled:
            values = (values - self.center[x_u.size(1) :]) / self.spread[x_u.size(1) :]
        compared = [u * v, (u - v).abs(), *([u, v] if self.directed else []), values]
        hidden = torch.relu(self.compare(F.dropout(torch.cat(compared, dim=1), 0.3, self.training)))
        logits: Tensor = self.classify(F.dropout(hidden, 0.3, self.training))
        return logits

    def _encoded(self, x: Tensor) -> Tensor:
        if self.scaled:
            rows = (x - self.center[: x.size(1)]) / self.spread[: x.size(1)]
            return torch.relu(self.encode(F.dropout(rows, 0.3, self.training)))
        rows = F.dropout(F.normalize(x, dim=1), 0.3, self.training)
        encoded: Tensor = torch.relu(self.encode(rows)) * (x.size(1) ** 0.5 / 4)
        return encoded


class PairModel(OwnModel):
    """A prior, and a vote of each common neighbour or trusted contact. ``fit(model, data, ac.PairVotes())`` makes it.

    Args:
        prior: Called as ``prior(x_u, x_v, values)``; each pair is classified by itself. With ``trusted``, the values
            of the pair end with a summary of the edges that leave u (:func:`summary_of_own_edges`).
        num_classes: Number of classes.
        edge_channels: Columns of ``edge_attr`` that votes of contacts read; 0 if common neighbours vote.
        defence: Who votes.
    """

    training_record: dict[str, Any]

    def __init__(self, prior: nn.Module, num_classes: int, edge_channels: int, defence: PairSettings) -> None:
        super().__init__()
        if (defence.trusted is None) != (edge_channels == 0) or (defence.trusted or 0) >= max(edge_channels, 1):
            raise SettingsError(f"PairVotes(trusted={defence.trusted}): edge_attr has {edge_channels} columns to read.")
        self.prior = prior
        self.num_classes = num_classes
        self.edge_channels = edge_channels
        self.defence = defence
        self.scale = nn.Parameter(torch.ones((), dtype=torch.float64))
        self.constant = nn.Parameter(torch.zeros(num_classes, dtype=torch.float64))
        self.vote_net = nn.Sequential()
        if edge_channels:
            self.vote_net = nn.Sequential(nn.Linear(edge_channels, 16), nn.Tanh(), nn.Linear(16, num_classes + 1))
        self.use_votes: Tensor
        self.favoured: Tensor
        self.side_weight: Tensor
        self.edge_center: Tensor
        self.edge_spread: Tensor
        self.register_buffer("use_votes", torch.ones(()))
        self.register_buffer("favoured", torch.tensor(num_classes - 1))  # the class that common neighbours vote for
        self.register_buffer("side_weight", torch.zeros((), dtype=torch.float64))  # of a neighbour of one node
        self.register_buffer("edge_center", torch.zeros(edge_channels))
        self.register_buffer("edge_spread", torch.ones(edge_channels))
        config = config_of(prior)
        if config is not None:
            self.config: dict[str, Any] = {
                "name": NAME,
                "prior": config,
                "num_classes": num_classes,
                "edge_channels": edge_channels,
                "defence": {each.name: getattr(defence, each.name) for each in fields(PairSettings)},
            }

    def anew(self) -> Self:
        """Returns new votes of the same settings, around the same prior, or a new one if it is the built-in one."""
        prior = PairPrior(**self.prior.config) if type(self.prior) is PairPrior else self.prior
        return type(self)(prior, self.num_classes, self.edge_channels, self.defence)

    def strange_parts(self) -> Iterator[str]:
        """Yields what is wrong with the numbers that say who votes, and how much."""
        if float(self.use_votes) not in (0.0, 1.0):
            yield f"use_votes is {float(self.use_votes):g}, expected 0 or 1"
        if not 0 <= float(self.side_weight) <= 1:
            yield f"side_weight is {float(self.side_weight):g}, expected a number from 0 to 1"

    def own_logits(self, graph: CanonicalGraph, ends: IntArray, values: Tensor) -> Tensor:
        """Log-probabilities of each pair by its own features, at least ``LOWEST``, shape ``[n, C]``."""
        self.require_values(values)
        parts = []
        dtype = next(iter(self.prior.parameters()), self.scale).dtype
        for rows in torch.split(torch.arange(len(ends)), PAIRS_AT_ONCE):
            first, second = torch.from_numpy(ends[rows.numpy()]).T
            logits = self.prior(graph.x[first].to(dtype), graph.x[second].to(dtype), values[rows].to(dtype))
            if logits.shape != (len(rows), self.num_classes):
                raise ModelContractError(
                    f"the prior returns shape {list(logits.shape)} for {len(rows)} pairs: expected one row for each "
                    f"pair and {self.num_classes} classes."
                )
            parts.append(F.log_softmax(logits, dim=1))
        return torch.cat(parts).clamp(min=LOWEST) if parts else torch.zeros((0, self.num_classes))

    def require_values(self, values: Tensor) -> None:
        """Refuses pairs without the values that the prior was trained with."""
        expected = (config_of(self.prior) or {}).get("num_values", values.size(1))
        if values.size(1) != expected:
            raise SettingsError(
                f"the prior reads {expected} values of a pair, these pairs have {values.size(1)}: they stand in "
                "edge_label_attr, for pairs that edge_label_index lists."
            )

    def with_own_edges(self, graph: CanonicalGraph, ends: IntArray, values: Tensor, masked: IntArray) -> Tensor:
        """Values of each pair; with trusted contacts also a summary of the edges that leave its first node."""
        if self.defence.trusted is None:
            return values
        own = summary_of_own_edges(graph, self._edge_values(graph), ends, masked)
        return torch.cat([values.double(), torch.from_numpy(own)], dim=1)

    def _edge_values(self, graph: CanonicalGraph) -> npt.NDArray[np.float64]:
        """Values of all arcs as the networks read them, shape ``[num_edges, edge_channels]``."""
        attr = graph.edge_attr
        found = 0 if attr is None else attr.reshape(len(attr), -1).size(1)
        if attr is None or found != self.edge_channels:
            raise SettingsError(f"the votes read {self.edge_channels} columns of edge_attr, the data has {found}.")
        return np.asarray(attr.reshape(len(attr), -1).double().numpy())

    def voters(self, graph: CanonicalGraph, ends: IntArray, masked: IntArray) -> Voters:
        """Who votes on each pair."""
        kept = unmasked(graph, masked)
        if self.defence.trusted is None:
            return neighbours_of_pairs(graph, ends, kept, self.defence.over == "both")
        return contacts_of_pairs(graph, ends, kept, self._edge_values(graph)[:, self.defence.trusted] > 0)

    def votes(self, graph: CanonicalGraph, ends: IntArray, voters: Voters) -> Tensor:
        """The vote of each voter, shape ``[m, C]``. The copies of an edge have one vote, which is their mean."""
        if self.defence.trusted is None:
            weight = torch.where(torch.from_numpy(voters.seat) == COMMON, 1.0, self.side_weight.double())
            return F.one_hot(self.favoured.long(), self.num_classes).double() * weight[:, None]
        arc, vote = arcs_to_second(graph, ends, voters)
        table = torch.from_numpy(self._edge_values(graph))[torch.from_numpy(arc)]
        rows = ((table - self.edge_center.double()) / self.edge_spread.double()).to(self.edge_center.dtype)
        known = rows.isfinite().all(dim=1, keepdim=True)
        each = torch.softmax(self.vote_net(torch.where(known, rows, 0.0)), dim=1)[:, :-1] * known
        place = torch.from_numpy(vote)
        copies = torch.bincount(place, minlength=len(voters.node))[:, None]
        total = each.new_zeros((len(voters.node), self.num_classes)).index_add(0, place, each)
        return total / copies.clamp(min=1)

    @torch.no_grad()
    def counted(self, graph: CanonicalGraph, ends: IntArray, values: Tensor, masked: IntArray) -> dict[str, Any]:
        """What a certificate counts, in whole steps. Names are those of :class:`agnncert.pairs.record.PairRecord`."""
        exact = copy.deepcopy(self).double().eval()
        own = exact.own_logits(graph, ends, exact.with_own_edges(graph, ends, values, masked))
        voters = exact.voters(graph, ends, masked)
        votes = (exact.votes(graph, ends, voters) * STEPS).floor().long().clamp(0, STEPS).int().numpy()
        table, which = np.unique(votes, axis=0, return_inverse=True)
        joined = np.bincount(voters.node, minlength=1)
        is_trusted = self.defence.trusted is not None
        return {
            "prior": whole_steps(exact.constant + exact.scale * own, "score", LARGEST_SCORE).numpy(),
            "gate": exact._gates(len(ends)),
            "indptr": voters.indptr(len(ends)),
            "which": np.asarray(which.reshape(-1), dtype=np.int64),
            "table": np.asarray(table.reshape(-1, self.num_classes), dtype=np.int32),
            "targets_per_node": np.sort(joined[joined > 0])[::-1].astype(np.int32),
            "gated": not is_trusted,
            "by_edge": is_trusted,
            "slack": SLACK,
            "trusted": -1 if self.defence.trusted is None else self.defence.trusted,
            "pairs": ends.astype(np.int64),
            "rule": self.defence.rule,
            "mask": self.defence.mask,
            "blind": not is_trusted,
        }

    def _gates(self, number: int) -> IntArray:
        """Factors of the votes: common neighbours vote for one class, and no newcomer can vote for another."""
        gate = np.full((number, self.num_classes), STEPS, dtype=np.int64)
        if self.defence.trusted is None:
            gate[:, np.arange(self.num_classes) != int(self.favoured)] = 0
        return gate * int(self.use_votes)

    def masked_pairs(self, ends: IntArray) -> IntArray:
        """Returns the pairs whose edges are hidden from all decisions, shape ``[k, 2]``."""
        return ends if self.defence.mask == "targets" else ends[:0]


def arcs_to_second(graph: CanonicalGraph, ends: IntArray, voters: Voters) -> tuple[IntArray, IntArray]:
    """Returns the arcs from voters to the second node of their pair, and the vote that each belongs to."""
    src, dst = graph.edge_index.long().numpy()
    arc_keys = src * graph.num_nodes + dst
    order = np.argsort(arc_keys, kind="stable")
    asked = voters.node * graph.num_nodes + ends[voters.owner, 1]
    first = np.searchsorted(arc_keys[order], asked, side="left")
    last = np.searchsorted(arc_keys[order], asked, side="right")
    vote = np.repeat(np.arange(len(asked)), last - first)
    place = np.arange(len(vote)) - np.repeat(np.cumsum(last - first) - (last - first), last - first)
    return order[first[vote] + place], vote


def summary_of_own_edges(
    graph: CanonicalGraph, values: npt.NDArray[np.float64], ends: IntArray, masked: IntArray
) -> npt.NDArray[np.float64]:
    """Returns numbers about the arcs that leave the first node of each pair, that to the second one left out.

    These are the logarithm of their number and, for each column of their values, the mean, the share of positive values
    and the share of negative ones: shape ``[n, 1 + 3 * channels]``. Values that are not finite count as 0.
    """
    src, dst = graph.edge_index.long().numpy()
    kept: BoolArray = unmasked(graph, masked)
    plain = np.nan_to_num(values, posinf=0.0, neginf=0.0)
    each = np.concatenate([np.ones((len(src), 1)), plain, plain > 0, plain < 0], axis=1) * kept[:, None]
    of_node = np.zeros((graph.num_nodes, each.shape[1]))
    np.add.at(of_node, src, each)
    total = of_node[ends[:, 0]]
    keys = ends[:, 0] * graph.num_nodes + ends[:, 1]
    order = np.argsort(keys)
    arc_keys = src * graph.num_nodes + dst
    own = np.flatnonzero(np.isin(arc_keys, keys))
    np.subtract.at(total, order[np.searchsorted(keys[order], arc_keys[own])], each[own])
    number = np.maximum(total[:, :1], 0)
    return np.concatenate([np.log1p(number), total[:, 1:] / np.maximum(number, 1)], axis=1)
