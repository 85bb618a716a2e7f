"""``StackedModel``: a classifier that adds a bounded vote of each neighbour to a score of the target's own features.

The score of class k for node v is

    own_k(x_v) + sum over the neighbours j of v of vote_k(x_j)        ``combine="sum"``

or, with a pseudo-count, a mean of the votes (``combine="mean"``). A vote is a vector of non-negative numbers whose sum
is at most 1. It may also read the values of the edge that joins j and v. So one neighbour that comes, goes or changes
moves a score by a known amount, and a certificate follows from the scores without any subgraph (``stacked.evidence``).
With ``levels=2`` the vote of j also depends on the votes of j's neighbours.

Certificates count in whole numbers: :meth:`StackedModel.counted` evaluates the networks in float64 and rounds to steps
of ``1 / STEPS``. In evaluation mode the model predicts with these numbers, too: what is certified is what predicts.

A vote that would not be a finite number abstains. An injected node could otherwise turn the scores of its neighbours
into NaN.
"""

import copy
import inspect
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from agnncert.addons import config_of
from agnncert.as_built import NOTED_LATER, OF_EVERY_MODULE, OwnModel, unexpected_attributes
from agnncert.errors import ModelContractError, SettingsError
from agnncert.stacked.record import LARGEST_GATE, LARGEST_SCORE, LARGEST_SECOND, STEPS
from agnncert.stacked.rounding import whole_steps
from agnncert.stacked.settings import StackedSettings

NAME = "stacked-votes"
LOWEST = -8.0  # smallest log-probability: how sure a model without edges can be
ROWS_AT_ONCE = 2**14


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


class StackedModel(OwnModel):
    """A sum, or a mean, of a score of the node's own features and of one vote for each neighbour.

    ``fit(model, data, ac.StackedVotes(...))`` builds and trains it.

    Args:
        own: Models without edges, whose log-probabilities are averaged; an empty list if features say nothing.
        num_classes: Number of classes C.
        edge_channels: Number of values of an edge that a vote reads; 0 for none.
        defence: How votes are combined.
    """

    anybodys: ClassVar[frozenset[str]] = frozenset({"own"})
    _is_frozen = False

    def __init__(
        self, own: Sequence[nn.Module], num_classes: int, edge_channels: int, defence: StackedSettings
    ) -> None:
        super().__init__()
        self.own = nn.ModuleList(model if isinstance(model, GraphFree) else GraphFree(model) for model in own)
        self.num_classes = num_classes
        self.edge_channels = edge_channels
        self.defence = defence
        known = num_classes if len(self.own) else 0
        hidden = defence.hidden
        if not known and not edge_channels:
            raise SettingsError("votes read nothing: pass a model on features, or StackedSettings(edge_values=True).")
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
        self._register_buffers()
        self._describe()

    def _register_buffers(self) -> None:
        self.use_votes: Tensor
        self.edge_center: Tensor
        self.edge_spread: Tensor
        self.register_buffer("use_votes", torch.ones(()))  # 0 for a model without edges
        self.register_buffer("edge_center", torch.zeros(self.edge_channels))
        self.register_buffer("edge_spread", torch.ones(self.edge_channels))

    def _describe(self) -> None:
        """Sets ``config``, from which the model can be built again, if that is known of all models without edges."""
        configs = [config_of(model.model) for model in self.own]
        if not all(configs):
            return
        self.config: dict[str, Any] = {
            "name": NAME,
            "own": configs,
            "num_classes": self.num_classes,
            "edge_channels": self.edge_channels,
            "defence": self.defence.described(),
        }

    def anew(self) -> Self:
        """Returns new votes of the same settings, around the same models without edges."""
        return type(self)(list(self.own), self.num_classes, self.edge_channels, self.defence)

    def strange_parts(self) -> Iterator[str]:
        """Yields what is wrong with how models without edges are called, and with the numbers of the votes."""
        if type(self.own) is not nn.ModuleList:
            yield f"own is a {type(self.own).__name__}, expected ModuleList"
            return
        for name, own in self.own.named_children():
            if type(own) is not GraphFree:
                yield f"own.{name} is a {type(own).__name__}, expected GraphFree"
            else:
                expected = {*OF_EVERY_MODULE, *NOTED_LATER, "takes_edges"}
                yield from unexpected_attributes(f"own.{name}", own, expected)
        for name, weight in (*self.named_parameters(), *self.named_buffers()):
            if not name.startswith("own.") and not weight.is_floating_point():
                yield f"{name} is not a number of floating point"
        if float(self.use_votes) not in (0.0, 1.0):
            yield f"use_votes is {float(self.use_votes):g}, expected 0 or 1"

    def own_logits(self, x: Tensor) -> Tensor:
        """Mean log-probability of the models without edges, shape ``[num_nodes, C]``, or ``[num_nodes, 0]``.

        A row for which a model gives numbers that are not finite is NaN: it has no vote and no score.
        """
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
        scaled = (values.to(self.edge_center.dtype) - self.edge_center) / self.edge_spread
        return torch.cat([scaled, leaves[:, None].to(scaled.dtype)], dim=1)

    def votes(self, logits: Tensor, pairs: Pairs, edge_index: Tensor, edge_values: Tensor | None = None) -> Tensor:
        """The vote of each neighbour in ``pairs``, shape ``[m, C]``.

        The vote of a pair with several edges is the mean of both directions, each the mean of its copies. An edge whose
        values, or whose other end, give numbers that are not finite abstains.
        """
        if not self.edge_channels:
            return self.node_votes(logits, edge_index).index_select(0, pairs.neighbour)
        assert edge_values is not None
        rows = self.edge_rows(edge_values[pairs.arc], pairs.leaves)
        logits_of_other_end = logits.index_select(0, pairs.neighbour[pairs.pair])
        known = _are_finite(logits_of_other_end) & _are_finite(rows)
        score = self.scores(torch.where(known, logits_of_other_end, 0.0), torch.where(known, rows, 0.0))
        return _mean_by_pair(_bounded(score, known), pairs)

    def node_votes(self, logits: Tensor, edge_index: Tensor) -> Tensor:
        """The vote of every node for its neighbours where votes read no edge values, shape ``[num_nodes, C]``.

        A node whose logits are not finite abstains, also where its vote would reach neighbours of neighbours.
        """
        known = _are_finite(logits)
        logits = torch.where(known, logits, 0.0)
        score = self.scores(logits)
        if self.defence.levels == 2:
            near = pairs_of(edge_index, torch.arange(logits.size(0)), logits.size(0))
            first = torch.softmax(self.first_scale * logits, dim=1) * known
            total = torch.zeros_like(first).index_add(0, near.owner, first[near.neighbour])
            score = torch.cat([score[:, :-1] + self.weight_of_second * total, score[:, -1:]], dim=1)
        return _bounded(score, known)

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
        """Scores of every node, shape ``[num_nodes, C]``; ``edge_weight`` and ``edge_attr`` as the data has them.

        In evaluation mode these are the scores that certificates count, in float64; gradients are those of the scores
        before rounding. A node whose own features give no finite score has NaN for all classes.

        Raises:
            ModelContractError: A score is beyond what certificates count with.
        """
        values = {"edge_weight": edge_weight, "edge_attr": edge_attr}
        if self.training:
            return self.smooth_scores(x, edge_index, values)
        scores = self.counted_scores(x, edge_index, values)
        if not torch.is_grad_enabled():
            return scores
        smooth = self.smooth_scores(x, edge_index, values)
        if not smooth.requires_grad:
            return scores
        return scores + (smooth - smooth.detach()).nan_to_num()  # adds 0, and the gradient

    def smooth_scores(self, x: Tensor, edge_index: Tensor, values: dict[str, Tensor | None]) -> Tensor:
        """Scores of every node before they are rounded, in the model's own precision; differentiable."""
        table, trusted = self.edge_table(values)
        logits = self.own_logits(x)
        pairs = pairs_of(edge_index, torch.arange(x.size(0)), x.size(0), trusted)
        prior, total, divisor = self.parts(logits, self.votes(logits, pairs, edge_index, table), pairs)
        return prior + self.gate(logits) * total / divisor

    @torch.no_grad()
    def counted_scores(self, x: Tensor, edge_index: Tensor, values: dict[str, Tensor | None]) -> Tensor:
        """Scores of every node as certificates count them, shape ``[num_nodes, C]``, in float64."""
        exact = self._in_float64()
        logits = exact.own_logits(x.double())
        rows = _are_finite(logits).view(-1).nonzero().view(-1)
        counted, pairs = exact._count(logits, edge_index, values, rows)
        votes = counted["table"].long()[counted["which"]]
        total = torch.zeros_like(counted["prior"]).index_add(0, pairs.owner, votes)
        pseudo, pseudo_votes = exact.pseudo_counts
        divisor = torch.full((len(rows), 1), STEPS)
        if pseudo:
            divisor = pseudo + STEPS * pairs.degree[:, None]
            total = total + torch.tensor(pseudo_votes)
        numerator = counted["prior"] * divisor + counted["gate"] * total
        scores = torch.full((len(x), self.num_classes), torch.nan, dtype=torch.float64)
        scores[rows] = numerator.double() / (divisor * STEPS)
        return scores

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

        Names are those of :class:`agnncert.stacked.record.StackedRecord`.
        """
        exact = self._in_float64()
        return exact._count(exact.own_logits(x.double()), edge_index, values, rows)

    def frozen(self) -> "StackedModel":
        """Returns a copy for many counts in a row: it counts as this model does, and is not copied for each of them.

        It does not follow this model, so hold it only beside a model that stays as it is. A model with code of a user,
        which may note something in itself when it is called, is copied for each count all the same.
        """
        frozen = self._in_float64()
        frozen._is_frozen = all(config_of(model.model) for model in self.own)
        return frozen

    def _in_float64(self) -> "StackedModel":
        return self if self._is_frozen else copy.deepcopy(self).double().eval()

    def _count(
        self, logits: Tensor, edge_index: Tensor, values: dict[str, Tensor | None], rows: Tensor
    ) -> tuple[dict[str, Tensor], Pairs]:
        """As :meth:`counted`, of a model in float64 and its logits of all nodes."""
        table, trusted = self.edge_table({n: None if v is None else v.double() for n, v in values.items()})
        pairs = pairs_of(edge_index, rows, len(logits), trusted)
        votes = self.votes(logits, pairs, edge_index, table)
        prior = self.parts(logits[rows], votes, pairs)[0]
        free = pairs.part(~pairs.trusted)
        if self.edge_channels:
            distinct, which = votes[~pairs.trusted], torch.arange(len(free.neighbour))
        else:
            known, which = torch.unique(free.neighbour, return_inverse=True)
            distinct = self.node_votes(logits, edge_index)[known]
        counted = {
            "prior": whole_steps(prior, "score", LARGEST_SCORE),
            "gate": whole_steps(self.gate(logits[rows]), "factor", LARGEST_GATE),
            # Rounded down, so that the sum of a vote stays within one.
            "table": (distinct * STEPS).floor().long().clamp(0, STEPS).int(),
            "which": which,
        }
        return counted, free

    @property
    def pseudo_counts(self) -> tuple[int, tuple[int, ...]]:
        """With ``combine="mean"``: the pseudo-count, and how its votes are shared out, in steps; else 0 and nothing."""
        if self.defence.combine == "sum":
            return 0, ()
        kappa = max(1, int(whole_steps(self.pseudo.detach().double().exp(), "pseudo-count", LARGEST_SCORE)))
        share = torch.softmax(self.pseudo_votes.detach().double(), dim=0)
        if not share.isfinite().all():
            raise ModelContractError("the votes of the pseudo-count are not finite: train the model again.")
        return kappa, tuple(int(part) for part in (share * kappa).floor().long())

    @property
    def steps_of_second(self) -> int:
        """The factor of the neighbours' neighbours in whole steps; 0 if their votes do not matter."""
        if self.defence.levels == 1:
            return 0
        return int(whole_steps(self.weight_of_second, "factor of the second level", LARGEST_SECOND))


def _are_finite(rows: Tensor) -> Tensor:
    """Whether all numbers of each row are finite, shape ``[n, 1]``."""
    return rows.isfinite().all(dim=1, keepdim=True)


def _bounded(score: Tensor, known: Tensor) -> Tensor:
    """Votes from their scores, the last of which is for abstaining, shape ``[m, C]``.

    Args:
        score: Scores, shape ``[m, C + 1]``.
        known: Which rows have a vote, shape ``[m, 1]``. The others abstain, and so do those that are not finite.
    """
    votes = torch.softmax(score, dim=1)[:, :-1]
    return torch.where(known & _are_finite(votes), votes, 0.0)


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
