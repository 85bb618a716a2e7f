"""``audit``: may this module be certified, and against which attacks?

The proofs need a model that is deterministic and looks at a node only through the edges that lead to it. ``audit``
names layers that are known to be at fault (``inspection``), and probes the behaviour of every model on the user's own
graph (``probes``). Probes can refute a model; they do not prove it fit. That is known only of models made of layers
that were read (``known_layers``).
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from agnncert.auditing.degree_features import inspect_features
from agnncert.auditing.edge_features import inspect_edge_features, reason_not_inspected
from agnncert.auditing.findings import ALL_ATTACKS, Finding
from agnncert.auditing.inspection import explained_by_ties, inspect_layers
from agnncert.auditing.known_layers import by_construction
from agnncert.auditing.outside_world import inspect_outside_world
from agnncert.auditing.probes import Probes
from agnncert.certificates.theorem_facts import division_words
from agnncert.divisions.base import Division, require_division
from agnncert.engine.adapter import ModelAdapter
from agnncert.engine.arguments import require_order
from agnncert.errors import ModelContractError, SettingsError
from agnncert.graphs.graph import Task
from agnncert.graphs.task import infer_task
from agnncert.notebook import framed, paragraph, table

log = logging.getLogger(__name__)
Locality = Literal["construction", "test"]
COARSE = 0.01  # tolerance from which on many votes are too close to a tie: that of float16 and bfloat16
_WHAT_A_TEST_CANNOT_FIND = (
    "This was tested, not proved: a test cannot find a model that waits for a number that no probe has, or that hides "
    "what it asks."
)
UNITS_OF_ROUNDING = 32  # that ``certify`` always allows between two ways of computing the same logits


@dataclass(frozen=True)
class AuditReport:
    """The result of ``audit``.

    Attributes:
        task: "node" or "graph".
        division: The division it was asked about, as printed.
        findings: Everything that breaks the guarantee, or empty when the model is fit.
        deviation: Largest relative difference seen between two ways of computing the same logits.
        tolerance: What ``certify`` always allows for such differences, 32 units of rounding. It watches each vote for
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
        serious = [finding for finding in self.findings if not finding.alone]
        return tuple(attack for attack in ALL_ATTACKS if all(attack in finding.leaves for finding in serious))

    def require_fit(self, edges_only: bool = False, one_at_a_time: bool = False) -> None:
        """Raises ModelContractError if the model breaks an assumption of what is to be proved.

        Args:
            edges_only: Whether only changes of edges are covered.
            one_at_a_time: Whether subgraphs are evaluated one at a time, as they always are with ``edges_only``.
        """
        needed = {"edges"} if edges_only else {*ALL_ATTACKS}
        is_alone = one_at_a_time or edges_only
        if not needed <= {*self.fit_for} or (self.needs_naive and not is_alone):
            raise ModelContractError(str(self))

    def tolerance_from(self, tolerance: float | None) -> float:
        """Returns the tolerance to certify with.

        Args:
            tolerance: A larger tolerance than that of the audit, or ``None`` for that of the audit.

        Raises:
            SettingsError: It is smaller than that of the audit.
        """
        if tolerance is None:
            return self.tolerance
        if tolerance < self.tolerance:
            raise SettingsError(
                f"tolerance={tolerance:g}: two computations of one score may lie {self.tolerance:.3g} of the largest "
                "apart, and a certificate that assumes less would not be verified. Leave it out, or give more."
            )
        return tolerance

    def __str__(self) -> str:
        if self.ok:
            attacks = "changes of edges, nodes and features"
            verdict = f"fit for certification ({self.task} task, {division_words(self.division)}) against {attacks}."
            return "\n".join([verdict, *self._reservations()])
        count = len(self.findings)
        head = f"cannot certify this model, {count} {'thing breaks' if count == 1 else 'things break'} the guarantee:"
        width = max(len(finding.where) for finding in self.findings)
        second_width = max(len(finding.what) for finding in self.findings)
        lines = [f"  {one.where:<{width}}  {one.what:<{second_width}}  {one.why}" for one in self.findings]
        remedies = [*dict.fromkeys(finding.remedy for finding in self.findings)]
        if self.fit_for == ("edges",):
            remedies.append("As it is, it is fit only for attacks on: edges (EdgeCentric(..., edges_only=True)).")
        return "\n".join([head, *lines, *remedies])

    def _reservations(self) -> Iterator[str]:
        """Yields what somebody who reads that a model is fit has to know besides."""
        if self.locality == "test":
            yield _WHAT_A_TEST_CANNOT_FIND
        if self.tolerance >= COARSE:
            yield (
                f"In the model's precision two computations of one score may lie {self.tolerance:.2g} of the largest "
                "apart: votes that are closer do not count, so that little or nothing will be certified. Use "
                "model.float()."
            )

    def _repr_html_(self) -> str:
        """Returns what a notebook shows."""
        if self.ok:
            return framed(paragraph(str(self)))
        head, *_ = str(self).split("\n")
        rows = [(each.where, each.what, each.why, each.remedy) for each in self.findings]
        return framed(paragraph(head) + table(["where", "what", "why", "remedy"], rows))


def audit(
    model: nn.Module | Callable[..., Tensor],
    data: Data | Sequence[Data] | None = None,
    division: Division | None = None,
    *,
    task: Task | None = None,
) -> AuditReport:
    """Checks whether a model keeps the contract that certificates rest on. ``certify`` runs this check first.

    Args:
        model: The module, or a function that is called like one.
        data: A graph (or list of graphs) like those to be certified. Without data, probes run on generated graphs, and
            the number of features is taken from the module's first layer.
        division: The division that is going to be used. ``None`` checks the requirements of every division.
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
    if data is not None:
        task_of_data = infer_task(data)
        if task not in (None, task_of_data):
            raise SettingsError(f'task="{task}", but the data is that of the {task_of_data} task: leave task= out.')
        task = task_of_data
    if division is not None:
        require_division(division)
    return audited(model, data, division, task or "node")[0]


@torch.no_grad()
def audited(
    model: nn.Module | Callable[..., Tensor],
    data: Data | Sequence[Data] | None,
    division: Division | None,
    task: Task,
    probed_on: Sequence[Data] | None = None,
    faults_of_data: Sequence[Finding] | None = None,
) -> tuple[AuditReport, ModelAdapter | None]:
    """Audits a model with arguments that were checked.

    Args:
        model: The model.
        data: A graph, or list of graphs.
        division: The division; ``None`` for every division.
        task: "node" or "graph".
        probed_on: The graphs on which the model is called. Defaults to ``data``.
        faults_of_data: What ``inspect_data`` finds, if the caller has asked before.

    Returns:
        The report, and the model as it was called, or ``None`` if no probe could call it.
    """
    of_data = inspect_data(data) if faults_of_data is None else faults_of_data
    findings = [*inspect_layers(model, task, division), *of_data]
    is_known = not findings and by_construction(model)
    deviation = 0.0
    dtype = torch.float32
    adapter = None
    if all(finding.leaves for finding in findings):  # else no attack is left that a certificate could speak about
        try:
            probes, new_findings = _probed(model, task, data if probed_on is None else probed_on, division, is_known)
        except ModelContractError as error:
            if not findings and data is None:
                raise ModelContractError(
                    f"{error} (The number of features was guessed from the first layer: pass data= if it is another.)"
                ) from error
            if not findings:  # else a layer that inspection has named explains why the model cannot be run
                raise
        else:
            # A failed probe that allows the same attacks as a layer named by inspection says nothing new.
            explained = [finding.leaves for finding in findings]
            new_findings = [explained_by_ties(model, finding) for finding in new_findings]
            findings += [finding for finding in new_findings if finding.leaves not in explained]
            deviation = probes.deviation
            dtype = probes.adapter.dtype
            adapter = probes.adapter
    if not is_known and all(finding.leaves for finding in findings):
        findings += inspect_outside_world(model)
    locality: Locality = "construction" if is_known and not findings else "test"
    asked_about = "every division" if division is None else str(division)
    tolerance = UNITS_OF_ROUNDING * torch.finfo(dtype).eps
    return AuditReport(task, asked_about, tuple(findings), deviation, tolerance, locality), adapter


def inspect_data(data: object) -> list[Finding]:
    """Returns which features were computed from edges; a graph that is too large to look at is logged."""
    skipped = reason_not_inspected(data)
    if skipped is not None:
        log.warning("whether features were computed from edges was not looked at: %s", skipped)
    return [*inspect_features(data), *inspect_edge_features(data)]


def _probed(
    model: nn.Module | Callable[..., Tensor],
    task: Task,
    data: Data | Sequence[Data] | None,
    division: Division | None,
    is_known: bool,
) -> tuple[Probes, list[Finding]]:
    """Returns the probes that were run, and what they found. A known model that is as expected gets a brief look."""
    if is_known:
        probes = Probes(model, task, data, division, brief=True)
        if probes.is_as_expected():
            return probes, []
    probes = Probes(model, task, data, division)
    return probes, list(probes.findings())
