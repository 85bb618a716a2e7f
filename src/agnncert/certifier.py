"""``audit``, ``certify``, ``choose_threshold``, ``explain``: the entry points that ask the defence."""

import logging
import os
from dataclasses import replace
from typing import Any

from agnncert.auditing.computed_edges import warn_of_computed_edges
from agnncert.auditing.model_audit import AuditReport
from agnncert.auditing.model_audit import audit as audit_for_division
from agnncert.certificates.class_names import names_in_data, stated_names
from agnncert.certificates.ids import Id
from agnncert.certificates.threshold_record import ThresholdRecord
from agnncert.certificates.votes import IntArray
from agnncert.certificates.voting_rule import VotingRule
from agnncert.datasets.edge_words import in_words_of_the_table
from agnncert.datasets.taught import require_true_labels, teaching_of_model
from agnncert.defence import (
    AsDefence,
    CertifyOptions,
    Engine,
    GraphData,
    Model,
    OperatingPoint,
    TargetChoice,
    Task,
    as_defence,
)
from agnncert.engine.arguments import require_order
from agnncert.engine.workers import Workers
from agnncert.errors import SettingsError, suggests_arguments
from agnncert.evaluation_mode import evaluating
from agnncert.explanation import VoteExplanation
from agnncert.graphs.in_parts import GraphInParts
from agnncert.graphs.targets import require_some
from agnncert.models.digest import model_digest
from agnncert.progress import OnProgress
from agnncert.proving.certificate import Certificate
from agnncert.threshold_choice import Request, require_kept_in_training

log = logging.getLogger(__name__)

LABEL_EVIDENCE = "labels"  # the kind of certificates about training labels only


@suggests_arguments
def certify(
    model: Model,
    data: GraphData,
    defence: AsDefence,
    targets: TargetChoice = None,
    *,
    voting_rule: VotingRule | AsDefence | None = None,
    engine: Engine | None = None,
    tolerance: float | None = None,
    memory_limit: int | str | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    workers: Workers | None = None,
    progress: OnProgress | None = None,
) -> Certificate:
    """Proves how much of a graph an attacker may change without changing the labels that a defence gives.

    Args:
        model: A trained module. It is evaluated in evaluation mode, and gets back the mode that it
            had. Node task: ``model(x, edge_index) -> [num_nodes, classes]``;
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
    chosen_defence = as_defence(defence)
    if isinstance(defence, OperatingPoint):
        defence.require_model(model)
    threshold = threshold_of(model, defence, voting_rule)
    chosen_defence.require_options(options)
    require_true_labels(data, targets)
    with evaluating(model):
        chosen_defence.require_model(model)
        certificate = chosen_defence.certify(model, data, targets, options)
    # Of a graph in parts only its owner knows; evidence of labels trusts all edges and features.
    if not isinstance(data, GraphInParts) and certificate.evidence.kind != LABEL_EVIDENCE:
        warn_of_computed_edges(data)
    certificate = certificate.with_class_names(names_in_data(data, certificate.num_classes))
    return with_threshold(with_teaching_note(certificate, model), threshold)


def threshold_of(
    model: Model, defence: AsDefence, voting_rule: VotingRule | AsDefence | None = None
) -> ThresholdRecord | None:
    """Returns how the threshold was chosen by which labels are decided; ``None`` if nothing says so.

    Args:
        model: The model that is certified.
        defence: What was passed as the defence: an operating point says so.
        voting_rule: What was passed as the voting rule, which may be an operating point instead.

    Raises:
        SettingsError: The threshold has a guarantee, and it is about another model or defence.
    """
    point = defence if voting_rule is None else voting_rule
    if not isinstance(point, OperatingPoint) or point.threshold is None:
        return None
    given = as_defence(defence)
    if voting_rule is not None:
        given = given.with_voting_rule(voting_rule)
    if given == point.defence and model_digest(model) == model_digest(point.model):
        return point.threshold
    if point.threshold.is_guaranteed:
        raise SettingsError(
            "the threshold, and the rate that it guarantees, were chosen for another model or defence: pass "
            "point.model and the point itself, or choose a threshold for this model."
        )
    return None


def with_threshold(certificate: Certificate, threshold: ThresholdRecord | None) -> Certificate:
    """Returns the certificate with what was requested of its threshold, if that is known."""
    return replace(certificate, claim=certificate.claim.with_threshold(threshold))


@suggests_arguments
def labels_of(model: Model, data: GraphData, defence: AsDefence, targets: TargetChoice = None) -> IntArray:
    """Returns the label that a defence gives each target, without a proof.

    This is the label that :func:`certify` would state. It is faster, and can be asked for on any graph that the model
    can read, such as an attacked one: ``(ac.labels_of(model, attacked, defence, rows) != certificate.label)``.

    Args:
        model: A trained module, as for :func:`certify`. It is evaluated in evaluation mode.
        data: A ``Data``, or a list of ``Data`` for graph classification.
        defence: A division, any other defence, the result of ``choose_voting_rule`` or ``choose_threshold``, or
            ``ac.Undefended()`` for the model's own label.
        targets: Mask or row numbers of the nodes (graphs). Defaults to all.

    Returns:
        The classes by number, shape ``[n]``.

    Raises:
        ModelContractError: The model does not belong to the defence, or failed.
        SettingsError: The defence makes no sense here.
    """
    require_order(model, data, defence)
    require_some(targets)
    with evaluating(model):
        return as_defence(defence).labels(model, data, targets)


def with_teaching_note(certificate: Certificate, model: Model) -> Certificate:
    """Returns the certificate with a note in its claim if the model learnt from a teacher (``teach``)."""
    teaching = teaching_of_model(model)
    if teaching is None or teaching.note in certificate.claim.notes:
        return certificate
    if teaching.num_others and certificate.num_targets > teaching.num_targets:
        log.warning(
            "this model learnt what a teacher said about %s test nodes: only %s were hidden from it, and labels of "
            "others repeat the teacher. Certify the nodes that were passed as teach(targets=…)",
            f"{teaching.num_others:,}",
            f"{teaching.num_targets:,}",
        )
    return replace(certificate, claim=replace(certificate.claim, notes=(*certificate.claim.notes, teaching.note)))


def choose_threshold(
    model: Model,
    data: GraphData,
    defence: AsDefence,
    *,
    false_positive_rate: float | None = None,
    confidence: float | None = None,
    alerts: int | None = None,
    days: int | None = None,
    positive: int | str | None = None,
    as_of: str | None = None,
    **settings: Any,
) -> OperatingPoint:
    """Picks the threshold of one class for a false positive rate, or for a number of alerts.

    The threshold is a part of what is certified: ``certify(point.model, data, point)``. Without ``confidence`` it is
    chosen on the validation part, and the rate is an estimate for other data. With ``confidence`` it is chosen on
    targets that were kept for nothing else (``keep_for_threshold``), and the rate is guaranteed: with this probability,
    at most this share of the targets of other classes gets the label, as long as they are like those that were kept. A
    split by time, or behaviour that changes, breaks that.

    Args:
        model: A trained module.
        data: A ``Data`` with ``y`` and ``val_mask``, or a ``GraphSet`` with ``val``. With ``confidence``, as
            ``keep_for_threshold`` returned it before training.
        defence: A division, or stacked votes.
        false_positive_rate: Share of the targets of other classes that get the positive label, at most.
        confidence: With which probability that is to hold for targets to come, such as 0.95. Defaults to None.
        alerts: Validation targets that get the positive label, at most. Give this or the rate.
        days: How many days of work the validation part stands for, so that ``alerts`` is a number for each day.
            Defaults to None, which means that ``alerts`` is the number for all of it.
        positive: The class to be found, by its number or by its name in ``data.class_names``. Defaults to the rarest
            one of the validation part.
        as_of: Date of the data, which certificates state with the request. Defaults to None.
        settings: For divisions: ``size``, the perturbation size at which as much recall as possible should be
            certified, and ``protocol`` as for ``choose_voting_rule``.

    Raises:
        SettingsError: A setting makes no sense, too few targets were kept for the confidence, or the defence has no
            threshold.
        ModelContractError: The model cannot be certified.
        DatasetError: Labels or splits are missing, or the model was trained without keeping targets.

    Example: ``point = ac.choose_threshold(model, data, division, false_positive_rate=0.01, confidence=0.95)``, then
    ``ac.certify(point.model, data, point)``.
    """
    require_order(model, data, defence)
    named = as_defence(defence)
    request = Request(false_positive_rate, alerts_in_all(alerts, days), confidence, positive, as_of)
    if "threshold" in named.cannot:
        raise named.refusal("threshold")
    limit = request.limit(data)
    if limit.kept is not None:
        require_kept_in_training(model, data)
    with evaluating(model):
        named.require_model(model)
        point = named.choose_threshold(model, data, limit, **settings)
    names = stated_names(data)
    return replace(point, class_names=names, threshold=request.record(data, limit, point))


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


@suggests_arguments
def explain(model: Model, data: GraphData, defence: AsDefence, target: Id) -> VoteExplanation:
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
    named = as_defence(defence)
    with evaluating(model):
        named.require_model(model)
        explained = named.explain(model, data, target)
    return in_words_of_the_table(explained, data)


@suggests_arguments
def audit(
    model: Model, data: GraphData | None = None, defence: AsDefence | None = None, *, task: Task | None = None
) -> AuditReport:
    """Checks whether a model keeps the contract that certificates rest on. ``certify`` runs this check first.

    The model is called in evaluation mode, as ``certify`` calls it, and gets its mode back.

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
    with evaluating(model):
        if defence is None:
            return audit_for_division(model, data, task=task)
        return as_defence(defence).audit(model, data, task)
