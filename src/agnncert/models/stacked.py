"""``StackedModel``: a classifier that adds a bounded vote of each neighbour to a score of the target's own features.

The score of class k for node v is

    own_k(x_v) + sum over the neighbours j of v of vote_k(x_j)        ``combine="sum"``

or, with a pseudo-count, a mean of the votes (``combine="mean"``). A vote is a vector of non-negative numbers whose sum
is at most 1. It may also read the values of the edge that joins j and v. So one neighbour that comes, goes or changes
moves a score by a known amount, and a certificate follows from the scores without any subgraph (``proving.stacked``).
With ``levels=2`` the vote of j also depends on the votes of j's neighbours.

Certificates count in whole numbers: :meth:`StackedModel.counted` evaluates the networks in float64 and rounds to steps
of ``1 / STEPS``.
"""

import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from agnncert.certificates.stacked import LARGEST_GATE, LARGEST_SCORE, LARGEST_SECOND, STEPS
from agnncert.errors import ModelContractError, SettingsError
from agnncert.graphs.targets import Targets

NAME = "stacked-votes"
LOWEST = -8.0  # smallest log-probability: how sure a model without edges can be
ROWS_AT_ONCE = 2**14
MANY_ROWS = 2000


@dataclass(frozen=True)
class StackedVotes:
    """Stacked votes as a defence: how votes are combined, and how ``fit`` trains them.

    Attributes:
        size: Target perturbation size: how many changes training prepares for.
        levels: 1, or 2 if the vote of a neighbour depends on its neighbours. Two levels certify edges like one level,
            but injected and deleted nodes less.
        combine: ``"sum"`` or ``"mean"`` of the votes. A mean suits graphs whose degrees differ much.
        gated: Whether votes for a class that the target's own features exclude count less. This helps against
            additions only.
        edge_values: Whether votes read ``edge_weight`` and ``edge_attr``, and the direction of the edge.
        trusted: Column of ``edge_attr`` that is positive for edges which no attacker can change; None if there is none.
        folds: Number of models without edges. Each is trained without one part of the training nodes.
        hidden: Width of the small networks.
        refine: Whether a small network corrects the score of the target's own features. Defaults to True from 2,000
            training nodes on.
        epochs: Epochs of the small networks.
        weight_decay: Weight decay of the small networks. Defaults to 1e-4 from 2,000 training nodes on, else to 5e-3.
    """

    size: float = 1
    levels: Literal[1, 2] = 1
    combine: Literal["sum", "mean"] = "sum"
    gated: bool = False
    edge_values: bool = False
    trusted: int | None = None
    folds: int = 5
    hidden: int = 32
    refine: bool | None = None
    epochs: int = 220
    weight_decay: float | None = None

    def __post_init__(self) -> None:
        if self.levels not in (1, 2) or self.combine not in ("sum", "mean"):
            raise SettingsError(f"{self!r}: levels is 1 or 2, combine is 'sum' or 'mean'.")
        if self.levels == 2 and (self.combine != "sum" or self.gated or self.edge_values or self.trusted is not None):
            # The vote along a trusted edge would follow the neighbours' neighbours, whom an attacker changes.
            raise SettingsError("levels=2 goes with combine='sum', without gates, edge values and trusted edges.")
        if self.gated and (self.combine != "sum" or self.edge_values):
            raise SettingsError("gated=True goes with combine='sum' and without edge values.")
        for name, least in (("size", 0), ("folds", 2), ("hidden", 1), ("epochs", 1), ("weight_decay", 0)):
            value, whole = getattr(self, name), name in ("folds", "hidden", "epochs")
            if value is not None and not (isinstance(value, int if whole else int | float) and value >= least):
                kind = "a whole number of " if whole else ""
                raise SettingsError(f"StackedVotes({name}={value!r}): expected {kind}at least {least}.")
        for name in ("gated", "edge_values", "refine"):
            if getattr(self, name) not in (True, False, None):
                raise SettingsError(f"StackedVotes({name}={getattr(self, name)!r}): expected true or false.")

    def for_rows(self, number: int) -> "StackedVotes":
        """The same with the defaults for this number of training nodes filled in."""
        many = number >= MANY_ROWS
        decay = (1e-4 if many else 5e-3) if self.weight_decay is None else self.weight_decay
        return replace(self, refine=many if self.refine is None else self.refine, weight_decay=decay)

    def __str__(self) -> str:
        kinds = [f"levels={self.levels}", self.combine]
        kinds += ["gated"] if self.gated else []
        kinds += ["edge values"] if self.edge_values else []
        kinds += [] if self.trusted is None else [f"edges trusted by column {self.trusted}"]
        return f"stacked-votes({', '.join(kinds)})"


class GraphFree(nn.Module):
    """A model that is always called without edges, so that each row is classified by its features alone."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self.takes_edges = len(inspect.signature(model.forward).parameters) > 1

    def forward(self, x: Tensor, edge_index: Tensor | None = None) -> Tensor:
        """Logits of every row, shape ``[num_nodes, num_classes]``; ``edge_index`` is ignored."""
        none = torch.zeros((2, 0), dtype=torch.int64, device=x.device)
        logits: Tensor = self.model(x, none) if self.takes_edges else self.model(x)
        return logits


class Pairs(NamedTuple):
    """The neighbours of some nodes: every node that shares an edge with them, in either direction, once.

    Attributes:
        indptr: Neighbours of node number k are ``indptr[k]:indptr[k + 1]``, shape ``[n + 1]``.
        owner: Number of the node, shape ``[m]``.
        neighbour: Row of the neighbour, ascending for each node, shape ``[m]``.
        arc: Directed edges between the two nodes, pair by pair, shape ``[a]``.
        leaves: Whether that edge leaves the node, shape ``[a]``.
        pair: Position of the pair of each such edge among the ``m``, shape ``[a]``.
        trusted: Whether no attacker can change the pair; its other edges are then left out, shape ``[m]``.
    """

    indptr: Tensor
    owner: Tensor
    neighbour: Tensor
    arc: Tensor
    leaves: Tensor
    pair: Tensor
    trusted: Tensor

    @property
    def degree(self) -> Tensor:
        """Number of neighbours of each node, shape ``[n]``."""
        return self.indptr.diff()

    def part(self, chosen: Tensor) -> "Pairs":
        """Only the chosen pairs, a mask of shape ``[m]``; edges are left out."""
        owner = self.owner[chosen]
        ends = torch.cumsum(torch.bincount(owner, minlength=len(self.indptr) - 1), 0)
        none = self.arc[:0]
        return Pairs(F.pad(ends, (1, 0)), owner, self.neighbour[chosen], none, none.bool(), none, self.trusted[chosen])


def pairs_of(edge_index: Tensor, rows: Tensor, num_nodes: int, trusted: Tensor | None = None) -> Pairs:
    """The neighbours of the nodes in ``rows``; self-loops are not neighbours.

    Args:
        edge_index: All edges, shape ``[2, num_edges]``.
        rows: The nodes whose neighbours are wanted.
        num_nodes: Number of nodes.
        trusted: Which edges no attacker can change, shape ``[num_edges]``; None for no edge.
    """
    number = torch.full((num_nodes,), -1, dtype=torch.int64)
    number[rows] = torch.arange(len(rows))
    # Each edge twice: as one that enters its second node, then as one that leaves its first.
    other, end = torch.cat([edge_index, edge_index.flip(0)], dim=1).long()
    arc = ((number[end] >= 0) & (end != other)).nonzero().view(-1)
    key, leaves = number[end[arc]] * num_nodes + other[arc], arc >= edge_index.size(1)
    arc = arc - edge_index.size(1) * leaves
    order = torch.argsort(2 * key + leaves, stable=True)
    distinct, pair = torch.unique_consecutive(key[order], return_inverse=True)
    safe = torch.zeros(len(distinct), dtype=torch.bool)
    if trusted is not None:
        marked = trusted[arc[order]]
        safe[pair[marked]] = True
        kept = marked | ~safe[pair]
        order, pair = order[kept], pair[kept]
    owner, neighbour = torch.div(distinct, num_nodes, rounding_mode="floor"), distinct % num_nodes
    indptr = F.pad(torch.cumsum(torch.bincount(owner, minlength=len(rows)), 0), (1, 0))
    return Pairs(indptr, owner, neighbour, arc[order], leaves[order], pair, safe)


class StackedModel(nn.Module):
    """A sum, or a mean, of a score of the node's own features and of one vote for each neighbour.

    ``fit(model, data, ac.StackedVotes(...))`` builds and trains it.

    Args:
        own: Models without edges, whose log-probabilities are averaged; an empty list if features say nothing.
        num_classes: Number of classes C.
        edge_channels: Number of values of an edge that a vote reads; 0 for none.
        defence: How votes are combined.
    """

    def __init__(self, own: Sequence[nn.Module], num_classes: int, edge_channels: int, defence: StackedVotes) -> None:
        super().__init__()
        self.own = nn.ModuleList(model if isinstance(model, GraphFree) else GraphFree(model) for model in own)
        self.num_classes, self.edge_channels, self.defence = num_classes, edge_channels, defence
        known, hidden = num_classes if len(self.own) else 0, defence.hidden
        if not known and not edge_channels:
            raise SettingsError("votes read nothing: pass a model on features, or StackedVotes(edge_values=True).")
        self.own_scale = nn.Parameter(torch.zeros(()))
        self.constant = nn.Parameter(torch.zeros(num_classes))
        self.own_net = _network(known, hidden, num_classes) if known and defence.refine else None
        self.vote_scale = nn.Parameter(torch.ones(()))
        self.abstain = nn.Parameter(torch.tensor(-1.0))
        width = known + (edge_channels + 1 if edge_channels else 0)
        self.vote_net = _network(width, hidden, num_classes + 1)
        self.gate_net = _network(known, hidden, num_classes) if defence.gated else None
        if self.gate_net is not None:
            nn.init.constant_(self.gate_net[-1].bias, 2.0)  # type: ignore[arg-type]
        self.trusted_scale = nn.Parameter(torch.zeros(()))
        self.mean_scale = nn.Parameter(torch.tensor(2.0))  # of the mean of all votes, as a logarithm
        self.pseudo = nn.Parameter(torch.zeros(()))  # number of votes that are always there, as a logarithm
        self.pseudo_votes = nn.Parameter(torch.zeros(num_classes))
        self.second = nn.Parameter(torch.tensor(-1.0))
        self.first_scale = nn.Parameter(torch.ones(()))
        self.use_votes: Tensor
        self.edge_center: Tensor
        self.edge_spread: Tensor
        self.register_buffer("use_votes", torch.ones(()))  # 0 for a model without edges
        self.register_buffer("edge_center", torch.zeros(edge_channels))
        self.register_buffer("edge_spread", torch.ones(edge_channels))
        configs = [getattr(model.model, "config", None) for model in self.own]
        if all(configs):
            how = {f.name: getattr(defence, f.name) for f in fields(defence)}
            self.config: dict[str, Any] = {
                "name": NAME, "own": configs, "num_classes": num_classes, "edge_channels": edge_channels, "defence": how
            }  # fmt: skip

    @classmethod
    def from_config(cls, config: Mapping[str, Any], build: Callable[[Mapping[str, Any]], nn.Module]) -> "StackedModel":
        """The untrained model that ``config`` describes.

        Raises:
            SettingsError: The description is not one of stacked votes.
        """
        try:
            own = [build(part) for part in config["own"]]
            return cls(own, int(config["num_classes"]), int(config["edge_channels"]), StackedVotes(**config["defence"]))
        except (KeyError, TypeError) as error:
            raise SettingsError(f"the description of stacked votes is incomplete: {error}.") from error

    def own_logits(self, x: Tensor) -> Tensor:
        """Mean log-probability of the models without edges, shape ``[num_nodes, C]``, or ``[num_nodes, 0]``."""
        if not len(self.own):
            return x.new_zeros((x.size(0), 0))
        parts = [
            torch.stack([F.log_softmax(model(rows), dim=1) for model in self.own]).mean(dim=0)
            for rows in torch.split(x, ROWS_AT_ONCE)
        ]
        return torch.cat(parts).clamp(min=LOWEST)

    def prior(self, logits: Tensor) -> Tensor:
        """Score of a node's own features from its logits, shape ``[n, C]``."""
        score = self.constant.expand(logits.size(0), -1)
        if logits.size(1):
            score = score + self.own_scale.exp() * logits
        return score if self.own_net is None else score + self.own_net(logits)

    def gate(self, logits: Tensor) -> Tensor:
        """Factor of the votes for each class, shape ``[n, C]``."""
        if self.gate_net is not None:
            return self.use_votes * torch.sigmoid(self.gate_net(logits))
        factor = self.use_votes.expand(logits.size(0), self.num_classes)
        return factor * self.mean_scale.exp().clamp(max=2.0**8) if self.defence.combine == "mean" else factor

    def scores(self, logits: Tensor, edge_values: Tensor | None = None) -> Tensor:
        """Votes before softmax, the last column for abstaining, shape ``[m, C + 1]``.

        Args:
            logits: Own logits of the neighbour that votes, shape ``[m, C]``, or ``[m, 0]``.
            edge_values: Values of the edge and whether it leaves the target, shape ``[m, edge_channels + 1]``.
        """
        given = logits if edge_values is None else torch.cat([logits, edge_values], dim=1)
        score: Tensor = self.vote_net(given)
        if logits.size(1):
            abstain = self.abstain.expand(logits.size(0), 1)
            score = score + torch.cat([self.vote_scale * logits, abstain], dim=1)
        return score

    @property
    def weight_of_second(self) -> Tensor:
        """Factor of the neighbours' neighbours, from 0 to ``LARGEST_SECOND`` steps."""
        return torch.sigmoid(self.second) * ((LARGEST_SECOND - 2) / STEPS)

    def edge_rows(self, values: Tensor, leaves: Tensor) -> Tensor:
        """Values of edges as the networks read them: scaled, with the direction as last column."""
        scaled = (values - self.edge_center) / self.edge_spread
        return torch.cat([scaled, leaves[:, None].to(scaled.dtype)], dim=1)

    def votes(self, logits: Tensor, pairs: Pairs, edge_index: Tensor, edge_values: Tensor | None = None) -> Tensor:
        """The vote of each neighbour in ``pairs``, shape ``[m, C]``.

        The vote of a pair with several edges is the mean of both directions, each the mean of its copies.
        """
        if not self.edge_channels:
            return self.node_votes(logits, edge_index).index_select(0, pairs.neighbour)
        assert edge_values is not None
        rows = self.edge_rows(edge_values[pairs.arc], pairs.leaves)
        score = self.scores(logits.index_select(0, pairs.neighbour[pairs.pair]), rows)
        return _mean_by_pair(torch.softmax(score, dim=1)[:, :-1], pairs)

    def node_votes(self, logits: Tensor, edge_index: Tensor) -> Tensor:
        """The vote of every node for its neighbours where votes read no edge values, shape ``[num_nodes, C]``."""
        score = self.scores(logits)
        if self.defence.levels == 2:
            near = pairs_of(edge_index, torch.arange(logits.size(0)), logits.size(0))
            first = torch.softmax(self.first_scale * logits, dim=1)
            total = torch.zeros_like(first).index_add(0, near.owner, first[near.neighbour])
            score = torch.cat([score[:, :-1] + self.weight_of_second * total, score[:, -1:]], dim=1)
        return torch.softmax(score, dim=1)[:, :-1]

    def parts(self, own: Tensor, votes: Tensor, pairs: Pairs) -> tuple[Tensor, Tensor, Tensor]:
        """Everything that scores are made of: what no attacker moves, the sum of votes, and the divisor of that sum.

        Args:
            own: Own logits of the nodes, shape ``[n, C]``, or ``[n, 0]``.
            votes: Votes of their neighbours, shape ``[m, C]``.
            pairs: Who the neighbours are.

        Returns:
            Shapes ``[n, C]``, ``[n, C]`` and ``[n, 1]``; the score is ``prior + gate * votes / divisor``.
        """
        prior, zero = self.prior(own), own.new_zeros((own.size(0), self.num_classes))
        free: Any = slice(None) if self.defence.trusted is None else ~pairs.trusted
        total = zero.index_add(0, pairs.owner[free], votes[free])
        if self.defence.trusted is not None:
            safe = zero.index_add(0, pairs.owner[pairs.trusted], votes[pairs.trusted])
            prior = prior + self.trusted_scale.exp() * safe
        if self.defence.combine == "sum":
            return prior, total, torch.ones_like(total[:, :1])
        number = torch.bincount(pairs.owner[free], minlength=own.size(0)).to(total.dtype)[:, None]
        kappa = self.pseudo.exp()
        return prior, total + kappa * torch.softmax(self.pseudo_votes, dim=0), kappa + number

    def forward(
        self, x: Tensor, edge_index: Tensor, edge_weight: Tensor | None = None, edge_attr: Tensor | None = None
    ) -> Tensor:
        """Scores of every node, shape ``[num_nodes, C]``; ``edge_weight`` and ``edge_attr`` as the data has them."""
        table, trusted = self.edge_table({"edge_weight": edge_weight, "edge_attr": edge_attr})
        logits, pairs = self.own_logits(x), pairs_of(edge_index, torch.arange(x.size(0)), x.size(0), trusted)
        prior, total, divisor = self.parts(logits, self.votes(logits, pairs, edge_index, table), pairs)
        return prior + self.gate(logits) * total / divisor

    def edge_table(self, values: dict[str, Tensor | None]) -> tuple[Tensor | None, Tensor | None]:
        """Values of all edges that votes read, shape ``[num_edges, edge_channels]``, and which edges are trusted."""
        attr = values.get("edge_attr")
        attr = attr[:, None] if attr is not None and attr.dim() == 1 else attr
        column, trusted = self.defence.trusted, None
        if column is not None:
            if attr is None or not 0 <= column < attr.size(1):
                raise SettingsError(f"StackedVotes(trusted={column}): edge_attr has no such column.")
            trusted = attr[:, column] > 0
            attr = torch.cat([attr[:, :column], attr[:, column + 1 :]], dim=1)
        if not self.defence.edge_values:
            return None, trusted
        weight = values.get("edge_weight")
        columns = [part for part in (None if weight is None else weight.reshape(-1, 1), attr) if part is not None]
        table = torch.cat(columns, dim=1) if columns else None
        if table is None or table.size(1) != self.edge_channels:
            found = 0 if table is None else table.size(1)
            raise SettingsError(f"the votes read {self.edge_channels} values of an edge, the data has {found}.")
        return table, trusted

    @torch.no_grad()
    def counted(
        self, x: Tensor, edge_index: Tensor, values: dict[str, Tensor | None], rows: Tensor
    ) -> tuple[dict[str, Tensor], Pairs]:
        """What a certificate counts for the nodes in ``rows``, in whole steps, and the neighbours that may change.

        Names are those of :class:`agnncert.certificates.stacked.StackedCounts`.
        """
        exact = copy.deepcopy(self).double().eval()
        table, trusted = exact.edge_table({n: None if v is None else v.double() for n, v in values.items()})
        logits, pairs = exact.own_logits(x.double()), pairs_of(edge_index, rows, x.size(0), trusted)
        votes = exact.votes(logits, pairs, edge_index, table)
        prior = exact.parts(logits[rows], votes, pairs)[0]
        free = pairs.part(~pairs.trusted)
        if self.edge_channels:
            distinct, which = votes[~pairs.trusted], torch.arange(len(free.neighbour))
        else:
            known, which = torch.unique(free.neighbour, return_inverse=True)
            distinct = exact.node_votes(logits, edge_index)[known]
        gate = (exact.gate(logits[rows]) * STEPS).round().long()
        # Rounded down, so that the sum of a vote stays within one.
        table = (distinct * STEPS).floor().long().clamp(0, STEPS)
        return {"prior": (prior * STEPS).round().long(), "gate": gate, "table": table.int(), "which": which}, free

    @property
    def pseudo_counts(self) -> tuple[int, tuple[int, ...]]:
        """With ``combine="mean"``: the pseudo-count, and how its votes are shared out, in steps; else 0 and nothing."""
        if self.defence.combine == "sum":
            return 0, ()
        kappa = max(1, round(float(self.pseudo.detach().double().exp()) * STEPS))
        share = torch.softmax(self.pseudo_votes.detach().double(), dim=0)
        return kappa, tuple(int(part) for part in (share * kappa).floor().long())


def _network(inputs: int, hidden: int, outputs: int) -> nn.Sequential:
    """Two layers, the second of which is zero at first."""
    last = nn.Linear(hidden, outputs)
    nn.init.zeros_(last.weight)
    nn.init.zeros_(last.bias)
    return nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), last)


def _mean_by_pair(each: Tensor, pairs: Pairs) -> Tensor:
    """The vote of each pair: the mean over its directions of the mean over the edges in that direction."""
    number = len(pairs.neighbour)
    place = 2 * pairs.pair + pairs.leaves
    copies = torch.bincount(place, minlength=2 * number)
    mean = each.new_zeros((2 * number, each.size(1))).index_add(0, place, each) / copies.clamp(min=1)[:, None]
    ways = (copies.view(-1, 2) > 0).sum(dim=1, keepdim=True)
    return mean.view(number, 2, each.size(1)).sum(dim=1) / ways


# What is counted on a graph: one pass over the nodes and one sum over the edges, in whole numbers

SLACK = 1  # steps; networks run in float64, so that only a value at the edge of a step may be rounded differently


def stacked_counts(model: StackedModel, chosen: Targets) -> dict[str, Any]:
    """The fields of ``StackedCounts`` for some targets, counted again from the graph and the model."""
    graph, rows = chosen.graph, torch.from_numpy(chosen.places)
    values = {"edge_weight": graph.edge_weight, "edge_attr": graph.edge_attr}
    counted, pairs = model.counted(graph.x, graph.edge_index, values, rows)
    prior, gate = counted["prior"], counted["gate"]
    if prior.abs().max() > LARGEST_SCORE or gate.max() > LARGEST_GATE:
        raise ModelContractError(
            f"a score of {float(prior.abs().max()) / STEPS:g} votes is beyond {LARGEST_SCORE // STEPS}: train "
            "the model again with more weight decay."
        )
    second = round(float(model.weight_of_second.detach()) * STEPS) + SLACK if model.defence.levels == 2 else 0
    pseudo, pseudo_votes = model.pseudo_counts
    joined = np.bincount(pairs.neighbour.numpy(), minlength=1)
    return {
        **{name: part.numpy() for name, part in counted.items()},
        "indptr": pairs.indptr.numpy(),
        "targets_per_node": np.sort(joined[joined > 0])[::-1].astype(np.int32),
        "gated": model.defence.gated or model.defence.combine == "mean",
        "by_edge": bool(model.edge_channels),
        "pseudo": pseudo,
        "pseudo_votes": pseudo_votes,
        "second": second,
        "slack": SLACK,
        "trusted": -1 if model.defence.trusted is None else model.defence.trusted,
        "ids": chosen.id_kind,
    }


def require_stacked(model: Any, defence: StackedVotes) -> None:
    """Refuses a model that is not made of stacked votes in the way that the defence says.

    Raises:
        ModelContractError: It is another kind of model, or was altered.
    """
    if type(model) is not StackedModel:
        raise ModelContractError(
            f"StackedVotes certifies models that fit(model, data, StackedVotes(…)) returns, got {type(model).__name__}."
        )
    if str(model.defence) != str(defence):
        raise ModelContractError(f"the model was made for {model.defence}, got {defence}: pass model.defence.")
    if model.training:
        raise ModelContractError("the model is in training mode: call model.eval() first.")
