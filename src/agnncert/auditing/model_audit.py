"""``audit``: may this module be certified, and against which attacks?

The proofs need a model that is deterministic and looks at a node only through the edges that lead to it. ``audit``
names layers that are known to be at fault, and probes the behaviour of every model on the user's own graph
(``probes``). Probes can refute a model; they do not prove it fit. That is known only of models made of layers that were
read (``known_layers``).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch_geometric.nn import MessagePassing

from agnncert.auditing.known_layers import by_construction
from agnncert.auditing.probes import ALL_ATTACKS, Finding, Probes
from agnncert.divisions.base import Division, require_division
from agnncert.engine.adapter import ModelAdapter
from agnncert.engine.arguments import require_order
from agnncert.errors import ModelContractError, SettingsError
from agnncert.graphs.graph import Task, infer_task

Locality = Literal["construction", "test"]


@dataclass(frozen=True)
class AuditReport:
    """The result of ``audit``.

    Attributes:
        task: "node" or "graph".
        division: The division it was asked about, as printed.
        findings: Everything that breaks the guarantee; empty when the model is fit.
        deviation: Largest relative difference seen between two ways of computing the same logits.
        tolerance: What ``certify`` always allows for such differences, 32 units of rounding; it watches each vote for
            larger ones.
        locality: How it is known that the model looks no further than it may: ``"construction"`` if all its modules are
            of classes that were read and are local as they are set (``known_layers``), ``"test"`` if it withstood
            the probes, which can refute but not prove.
    """

    task: Task
    division: str
    findings: tuple[Finding, ...]
    deviation: float
    tolerance: float
    locality: Locality = "test"

    @property
    def ok(self) -> bool:
        """Whether the model is fit for every kind of attack."""
        return not self.findings

    @property
    def needs_naive(self) -> bool:
        """Whether subgraphs must be evaluated one at a time."""
        return any(finding.alone for finding in self.findings)

    @property
    def fit_for(self) -> tuple[str, ...]:
        """Kinds of attack ("edges", "nodes", "features") that a certificate for this model may speak about."""
        serious = [f for f in self.findings if not f.alone]
        return tuple(a for a in ALL_ATTACKS if all(a in f.leaves for f in serious))

    def require_fit(self, edges_only: bool = False, one_at_a_time: bool = False) -> None:
        """Raises ModelContractError if the model breaks an assumption of what is to be proved.

        Args:
            edges_only: Whether only changes of edges are covered.
            one_at_a_time: Whether subgraphs are evaluated one at a time, as they always are with ``edges_only``.
        """
        needed = {"edges"} if edges_only else {*ALL_ATTACKS}
        if not needed <= {*self.fit_for} or (self.needs_naive and not (one_at_a_time or edges_only)):
            raise ModelContractError(str(self))

    def tolerance_from(self, given: float | None) -> float:
        """The tolerance to certify with: that of the audit, or a larger one that was given."""
        if given is not None and given < self.tolerance:
            raise SettingsError(
                f"tolerance={given:g}: two computations of one score may lie {self.tolerance:.3g} of the largest "
                "apart, and a certificate that assumes less would not be verified. Leave it out, or give more."
            )
        return self.tolerance if given is None else given

    def __str__(self) -> str:
        if self.ok:
            what = "changes of edges, nodes and features"
            return f"fit for certification ({self.task} task, {self.division}) against {what}."
        count = len(self.findings)
        head = f"cannot certify this model, {count} {'thing breaks' if count == 1 else 'things break'} the guarantee:"
        first, second = (max(len(getattr(f, name)) for f in self.findings) for name in ("where", "what"))
        lines = [f"  {f.where:<{first}}  {f.what:<{second}}  {f.why}" for f in self.findings]
        remedies = dict.fromkeys(f.remedy for f in self.findings)
        if self.fit_for == ("edges",):
            remedies["As it is, it is fit only for attacks on: edges (EdgeCentric(..., edges_only=True))."] = None
        return "\n".join([head, *lines, *remedies])


def audit(model: Any, data: Any = None, division: Division | None = None, *, task: Task | None = None) -> AuditReport:
    """Checks whether a model keeps the contract that certificates rest on. ``certify`` runs this check first.

    Args:
        model: The module.
        data: A graph (or list of graphs) like those to be certified. Without data, probes run on generated graphs, and
            the number of features is taken from the module's first layer.
        division: The division that is going to be used; ``None`` checks the requirements of every division.
        task: "node" or "graph". Defaults to the task of ``data``, or to "node" without data.

    Raises:
        ModelContractError: ``model`` is not a model, or cannot be called as documented.
        GraphError: ``data`` is not a graph or list of graphs.
        DivisionError: ``division`` is not a division.
        SettingsError: ``task`` is unknown, or is not the task of ``data``.
    """
    require_order(model, data, division)
    if task not in (None, "node", "graph"):
        raise SettingsError(f'task={task!r:.60}: expected "node" or "graph".')
    if isinstance(data, str) and data in ("node", "graph"):
        raise SettingsError(f'data="{data}" is a task: pass it by name, audit(model, data, division, task="{data}").')
    if data is not None and task not in (None, infer_task(data)):
        raise SettingsError(f'task="{task}", but the data is that of the {infer_task(data)} task: leave task= out.')
    task = task or ("node" if data is None else infer_task(data))
    if division is not None:
        require_division(division)
    return audited(model, data, division, task)[0]


@torch.no_grad()
def audited(model: Any, data: Any, division: Division | None, task: Task) -> tuple[AuditReport, ModelAdapter | None]:
    """As ``audit``, of arguments that were checked, and the model as it was called, unless it could not be."""
    findings = [*_inspect(model, task, division), *_counts_of_edges(data)]
    deviation, rounding, call = 0.0, torch.finfo(torch.float32).eps, None
    known = not findings and by_construction(model)
    if all(finding.leaves for finding in findings):  # else no attack is left that a certificate could speak about
        try:
            probe = Probes(model, task, data, division, brief=known)
            probed = []
            if not (known and probe.is_as_expected()):
                probe = Probes(model, task, data, division) if known else probe
                probed = list(probe.findings())
        except ModelContractError as error:
            if not findings and data is None:
                raise ModelContractError(
                    f"{error} (The number of features was guessed from the first layer: pass data= if it is another.)"
                ) from error
            if not findings:  # else a layer that inspection has named explains why the model cannot be run
                raise
        else:
            # A failed probe that allows the same attacks as a layer named by inspection says nothing new.
            findings += [f for f in probed if f.leaves not in [named.leaves for named in findings]]
            deviation, rounding, call = probe.deviation, torch.finfo(probe.call.dtype).eps, probe.call
    locality: Locality = "construction" if known and not findings else "test"
    asked = "every division" if division is None else str(division)
    return AuditReport(task, asked, tuple(findings), deviation, 32 * rounding, locality), call


_MIXING_NORMS = {"PairNorm", "GraphNorm", "InstanceNorm", "InstanceNorm1d", "GraphSizeNorm", "MeanSubtractionNorm"}
_MIXING_LAYERS = {"GPSConv", "PerformerAttention", "PolynormerAttention", "SGFormerAttention"}
_BOTH_WAYS = {"DirGNNConv", "ChebConv", "HypergraphConv"}


def _inspect(model: Any, task: Task, division: Division | None) -> Iterator[Finding]:
    if not isinstance(model, torch.nn.Module):
        return
    edge_centric = division is not None and division.family == "edge-centric"
    leaves = ("edges",) if edge_centric else ()
    for name, layer in model.named_modules():
        kind, place = type(layer).__name__, name or "model"
        batch_norm = isinstance(layer, torch.nn.modules.batchnorm._BatchNorm)
        if getattr(layer, "cached", False) is True:
            why = "every subgraph would reuse the first subgraph's edges"
            yield Finding(place, f"{kind}(cached=True)", why, f"Build {kind} with cached=False.")
        if layer.training and _drops(layer):
            yield Finding(place, f"{kind} in training mode", "drops inputs at random", "Call model.eval() first.")
        if batch_norm and layer.training:
            yield Finding(place, f"{kind} in training mode", "normalises over all nodes", "Call model.eval() first.")
        if task == "graph":
            continue  # a subgraph that no change touches is the very same graph, so the model may mix its nodes
        if batch_norm and not layer.track_running_stats:
            what, remedy = f"{kind}(track_running_stats=False)", f"Build {kind} with track_running_stats=True."
            yield Finding(place, what, "normalises over all nodes", remedy, leaves)
        mixes = "mixes all nodes, so one change can alter every vote"
        if kind in _MIXING_NORMS:
            yield Finding(place, kind, mixes, f"Replace {kind} (BatchNorm in eval mode is fine).", leaves)
        if kind == "LayerNorm" and getattr(layer, "mode", None) == "graph":
            yield Finding(place, 'LayerNorm(mode="graph")', mixes, 'Use LayerNorm(mode="node").', leaves)
        if kind in _MIXING_LAYERS or "quantized.dynamic" in type(layer).__module__:
            remedy = f"Replace {kind} by layers that pass messages along edges."
            yield Finding(place, kind, "lets every node influence every other", remedy, leaves)
        backwards = isinstance(layer, MessagePassing) and layer.flow == "target_to_source"
        if not edge_centric and (kind in _BOTH_WAYS or backwards):
            why = "also reads edges that leave a node, so one node can alter many votes"
            yield Finding(place, kind, why, f"Use EdgeCentric, or replace {kind}.")


_LEAST_STEPS, _LOOKED_AT = 5, 24


def _counts_of_edges(data: Any) -> Iterator[Finding]:
    """Columns of features that follow the number of a node's edges, or the sum of their values, however scaled."""
    x, edge_index = getattr(data, "x", None), getattr(data, "edge_index", None)
    if not isinstance(x, torch.Tensor) or not isinstance(edge_index, torch.Tensor) or not edge_index.numel():
        return
    if x.layout != torch.strided or x.dim() != 2 or len(x) < _LOOKED_AT:
        return
    values = [torch.ones(edge_index.size(1))]
    for name in ("edge_weight", "edge_attr"):
        given = getattr(data, name, None)
        if isinstance(given, torch.Tensor) and given.is_floating_point() and len(given) == edge_index.size(1):
            values += list(given.detach().reshape(len(given), -1).T)
    named = set()
    for number, value in enumerate(values):
        sums = [torch.zeros(len(x), dtype=torch.float64).index_add(0, end, value.double()) for end in edge_index.cpu()]
        totals = [*sums, sums[0] + sums[1]]
        orders = torch.stack([torch.argsort(total) for total in totals])
        few = orders[:, torch.linspace(0, len(x) - 1, _LOOKED_AT).long()]
        for which, column in _following(x[few]).tolist():  # columns that pass on a few nodes are compared on all
            order = orders[which]
            if column not in named and len(_following(x[order, column : column + 1], totals[which][order])):
                named.add(column)
                what = "number of edges" if not number else "sum of the values of edges"
                why = f"follows the {what} of each node, so whoever adds an edge changes it"
                yield Finding("data.x", f"column {column}", why, "Leave the column out; edges can vote instead.")


def _following(rows: torch.Tensor, total: torch.Tensor | None = None) -> torch.Tensor:
    """Columns with several values that only rise, or only fall, from row to row, and never within a total."""
    rows = rows.double()
    steps, slack = rows.diff(dim=-2), 1e-6 * rows.abs().amax(dim=-2, keepdim=True)
    follows = (steps >= -slack).all(dim=-2) | (steps <= slack).all(dim=-2)
    if total is not None:
        follows &= (steps[total.diff() == 0].abs() <= slack).all(dim=-2)
    return (follows & ((steps.abs() > slack).sum(dim=-2) >= _LEAST_STEPS - 1)).nonzero()


def _drops(layer: torch.nn.Module) -> bool:
    if isinstance(layer, torch.nn.modules.dropout._DropoutNd):
        return layer.p > 0
    rate = getattr(layer, "dropout", 0.0)
    return isinstance(rate, float) and rate > 0
