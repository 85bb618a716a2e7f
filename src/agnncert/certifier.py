"""``audit``, ``certify``, ``choose_threshold``, ``explain``: the entry points that ask the defence."""

import os
from dataclasses import replace
from typing import Any

from agnncert.agreement import require_model_of_point
from agnncert.auditing.model_audit import AuditReport
from agnncert.auditing.model_audit import audit as audit_for_division
from agnncert.certificates.class_names import names_in_data
from agnncert.datasets.edge_words import in_words_of_the_table
from agnncert.datasets.taught import require_true_labels, teaching_of_model
from agnncert.defence import CertifyOptions, Engine, GraphData, Model, OperatingPoint, TargetChoice, Task, as_defence
from agnncert.engine.arguments import require_order
from agnncert.engine.workers import Workers
from agnncert.errors import SettingsError, suggests_arguments
from agnncert.explanation import VoteExplanation
from agnncert.graphs.targets import require_some
from agnncert.progress import OnProgress
from agnncert.proving.certificate import Certificate


@suggests_arguments
def certify(
    model: Model,
    data: GraphData,
    defence: Any,
    targets: TargetChoice = None,
    *,
    voting_rule: Any = None,
    engine: Engine | None = None,
    tolerance: float | None = None,
    memory_limit: int | str | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    workers: Workers | None = None,
    progress: OnProgress | None = None,
) -> Certificate:
    """Proves how much of a graph an attacker may change without changing the labels that a defence gives.

    Args:
        model: A trained module, in eval mode. Node task: ``model(x, edge_index) -> [num_nodes, classes]``;
            graph task: ``model(x, edge_index, batch) -> [num_graphs, classes]``. ``edge_weight`` and
            ``edge_attr`` are passed on when the data has them and ``forward`` takes them.
        data: A ``Data`` (node classification) or a list of ``Data`` (graph classification), ideally with ``node_id``.
        defence: A division (``EdgeCentric``, ``NodeCentric``, a division of ``ac.baselines`` or your own),
            ``StackedVotes``, a smoothing defence such as ``ac.baselines.BiRS(samples=10_000)``, any other ``Defence``,
            or the result of ``choose_voting_rule`` or ``choose_threshold``.
        targets: Mask or row numbers of the nodes (graphs) to certify. Defaults to all.
        voting_rule: What empty groups of a division vote for, and the prior: a
            ``VotingRule``, or the result of ``choose_voting_rule`` for the same division. Defaults to ``VotingRule()``.
        engine: "fast" or "naive". The votes are the same. Defaults to "fast".
        tolerance: Bound on the difference between two computations of a logit, relative to the largest. Defaults to the
            tolerance of the audit, and must not be smaller.
        memory_limit: About how many bytes one chunk of work may take: a number, or text such as "4GB".
        checkpoint: Where an interrupted run continues from. Divisions keep votes in a folder, which is emptied when all
            of them are computed. Smoothing defences keep counts in a file.
        workers: Who does the work, such as ``ac.Ray(address="auto")``. Defaults to this process. The certificate is
            the same.
        progress: Called as the work progresses.

    Returns:
        The certificate, with labels, radii and everything needed to answer other budgets. Classes have the names of
        ``data.class_names``, if there are as many as classes.

    Raises:
        ModelContractError: The model breaks an assumption of the proof.
        GraphError: The graph cannot be certified as it is.
        DatasetError: A target has a label that a teacher gave it (``teach``): certify the data as it was before.
        SettingsError: A setting makes no sense, or the defence does not have it.
    """
    require_order(model, data, defence)
    require_some(targets)
    options = CertifyOptions(voting_rule, engine, tolerance, memory_limit, checkpoint, workers, progress)
    require_model_of_point(defence, model)
    chosen_defence = as_defence(defence)
    chosen_defence.require_options(options)
    require_true_labels(data, targets)
    certificate = chosen_defence.certify(model, data, targets, options)
    certificate = certificate.with_class_names(names_in_data(data, certificate.num_classes))
    return with_teaching_note(certificate, model)


def with_teaching_note(certificate: Certificate, model: Model) -> Certificate:
    """Returns the certificate with a note in its claim if the model learnt from a teacher (``teach``)."""
    teaching = teaching_of_model(model)
    if teaching is None or teaching.note in certificate.claim.notes:
        return certificate
    return replace(certificate, claim=replace(certificate.claim, notes=(*certificate.claim.notes, teaching.note)))


def choose_threshold(
    model: Model,
    data: GraphData,
    defence: Any,
    *,
    false_positive_rate: float | None = None,
    alerts: int | None = None,
    days: int | None = None,
    positive: int | str | None = None,
    **settings: Any,
) -> OperatingPoint:
    """Picks the threshold between two classes for a false positive rate, or for a number of alerts.

    The threshold is a part of what is certified: ``certify(point.model, data, point)``. It is chosen on the validation
    part. On other data the limit is an estimate, and no bound. ``certificate.measures`` says what holds for targets
    with a known class.

    Args:
        model: A trained module for two classes.
        data: A ``Data`` with ``y`` and ``val_mask``, or a ``GraphSet`` with ``val``.
        defence: A division, or stacked votes.
        false_positive_rate: Share of the validation targets of the other class that get the positive label, at most.
        alerts: Validation targets that get the positive label, at most. Give this or the rate.
        days: How many days of work the validation part stands for, so that ``alerts`` is a number for each day.
            Defaults to None, which means that ``alerts`` is the number for all of it.
        positive: The class to be found, by its number or by its name in ``data.class_names``. Defaults to the rarer one
            of the validation part.
        settings: For divisions: ``size``, the perturbation size at which as much recall as possible should be
            certified, and ``protocol`` as for ``choose_voting_rule``.

    Raises:
        SettingsError: A setting makes no sense, there are not two classes, or the defence has no threshold.
        ModelContractError: The model cannot be certified.
        DatasetError: Labels or splits are missing.

    Example: ``point = ac.choose_threshold(model, data, division, false_positive_rate=0.01)``, then
    ``ac.certify(point.model, data, point)``.
    """
    require_order(model, data, defence)
    names = names_in_data(data, 2)
    point = as_defence(defence).choose_threshold(
        model,
        data,
        false_positive_rate=false_positive_rate,
        alerts=alerts_in_all(alerts, days),
        positive=_class_number(positive, names),
        **settings,
    )
    return replace(point, class_names=names)


def alerts_in_all(alerts: int | None, days: int | None) -> int | None:
    """Returns the number of alerts among all validation targets.

    Args:
        alerts: The number of alerts, for each day if ``days`` is given.
        days: How many days of work the validation part stands for.

    Raises:
        SettingsError: ``days`` is no whole number from 1 on, or comes without ``alerts``.
    """
    if days is None:
        return alerts
    if isinstance(days, bool) or not isinstance(days, int) or days < 1:
        raise SettingsError(f"days={days!r:.60}: expected a whole number from 1 on.")
    if alerts is None:
        raise SettingsError("days= says for how many days alerts= counts: pass alerts too.")
    return alerts * days


def _class_number(positive: int | str | None, names: tuple[str, ...]) -> int | None:
    """Returns a class by its number."""
    if not isinstance(positive, str):
        return positive
    if positive in names:
        return names.index(positive)
    known = ", ".join(names) or "0 and 1: data.class_names gives two classes names"
    raise SettingsError(f"positive={positive!r:.60}: the classes are {known}.")


@suggests_arguments
def explain(model: Model, data: GraphData, defence: Any, target: Any) -> VoteExplanation:
    """Explains one decision: which neighbours or edges carried which votes, and what would change the label.

    The numbers are whole and the same on every run. They add up to the counts that a certificate states, and the edges
    that are named as enough to change the label were taken away once, and all votes computed again.

    Args:
        model: The trained module.
        data: A ``Data``, or a list of ``Data``.
        defence: The defence that it is certified with, as for ``certify``.
        target: Id of the node, or number of the graph.

    Returns:
        The explanation. ``print`` shows a table, ``to_json`` returns everything, ``to_pyg(data)`` PyG's
        ``Explanation``. Values of edges are said in words if ``data.edge_names`` names the columns of ``edge_attr``.

    Raises:
        IdError: There is no such target.
        SettingsError: This kind of defence cannot explain a decision.
        ModelContractError: The model cannot be called.

    Example: ``print(ac.explain(model, data, ac.NodeCentric(60), "user-002"))``
    """
    require_order(model, data, defence)
    return in_words_of_the_table(as_defence(defence).explain(model, data, target), data)


def audit(model: Model, data: GraphData | None = None, defence: Any = None, *, task: Task | None = None) -> AuditReport:
    """Checks whether a model keeps the contract that certificates rest on. ``certify`` runs this check first.

    Args:
        model: The module.
        data: A graph (or list of graphs) like those to be certified. Without data, probes run on generated graphs, and
            the number of features is taken from the module's first layer.
        defence: The defence that is going to be used. ``None`` checks the requirements of every division.
        task: "node" or "graph". Defaults to the task of ``data``, or to "node" without data.

    Raises:
        ModelContractError: ``model`` is not a model, or cannot be called as documented.
        GraphError: ``data`` is not a graph or list of graphs.
        SettingsError: ``defence`` is no defence, or ``task`` is unknown or not the task of ``data``.
    """
    require_order(model, data, defence)
    if defence is None:
        return audit_for_division(model, data, task=task)
    return as_defence(defence).audit(model, data, task)
