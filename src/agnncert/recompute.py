"""Checks a certificate against the graph and the model that it speaks about, whatever the defence."""

from dataclasses import replace
from typing import Any

import torch

from agnncert.addons import ADD_ON_KINDS, addon
from agnncert.agreement import wrong_targets
from agnncert.certificates.file import Contents
from agnncert.certificates.threshold_record import ThresholdRecord
from agnncert.datasets.taught import teaching_of_model
from agnncert.datasets.teaching_record import is_teaching_note
from agnncert.defence import Defence, Findings, OperatingPoint, RecomputeOptions, as_defence
from agnncert.engine.arguments import require_model
from agnncert.errors import DatasetError, SettingsError
from agnncert.evaluation_mode import evaluating
from agnncert.graphs.in_parts import GraphInParts
from agnncert.graphs.targets import CanonicalData, prepared
from agnncert.graphs.task import infer_task
from agnncert.proving.certificate import certificate_of
from agnncert.threshold_choice import counted_rows


@torch.no_grad()
def check_against_graph(
    contents: Contents, data: Any, model: Any, options: RecomputeOptions, defence: Any = None
) -> Findings:
    """Checks what a file says, given the graph, or graph and model; arguments as in ``verify``."""
    if model is not None:
        require_model(model)
        if isinstance(defence, OperatingPoint):
            defence.require_model(model)
    if isinstance(data, GraphInParts):
        return _check_against_parts(contents, data, model, options, defence)
    misfit = _misfit(contents, data)
    if misfit is not None:
        return Findings([misfit])
    rows = None if contents.claim.task == "pair" else contents.arrays["row"]  # rows of pairs are no nodes
    canonical_data = prepared(data, rows, compact=True)
    try:
        named = as_defence(defence) if defence is not None else defence_of_file(contents, model)
    except SettingsError as error:
        return _without_defence(contents, canonical_data, model, error)
    if named.kind_of_evidence != contents.kind:
        return Findings([f"{named} does not make certificates with evidence of the kind {contents.kind}"])
    notes = tuple(note for note in contents.claim.notes if not is_teaching_note(note))
    plain = replace(contents, claim=replace(contents.claim, notes=notes))
    with evaluating(model):
        findings = named.recompute(plain, canonical_data, model, options)
        if contents.claim.threshold is not None and not findings.wrong:
            certified = named.as_certified(certificate_of(contents))
            _compare_threshold(contents.claim.threshold, certified, canonical_data.data, model, findings)
    if model is not None:
        _compare_teaching(contents, model, findings)
    elif notes != contents.claim.notes:  # only the model knows its teacher
        findings.notes_compared = False
    return findings


def _check_against_parts(
    contents: Contents, data: GraphInParts, model: Any, options: RecomputeOptions, defence: Any
) -> Findings:
    """Checks what a file says, given a graph in parts; arguments as in :func:`check_against_graph`."""
    named: Any = as_defence(defence) if defence is not None else defence_of_file(contents, model)
    division = getattr(named, "division", None)
    if division is None or contents.kind != "votes":
        return Findings([f"{named} is no division by whose groups a graph is stored"])
    notes = tuple(note for note in contents.claim.notes if not is_teaching_note(note))
    plain = replace(contents, claim=replace(contents.claim, notes=notes))
    with evaluating(model):
        findings = data.recompute(plain, model, division, options)
    if model is not None:
        _compare_teaching(contents, model, findings)
    elif notes != contents.claim.notes:
        findings.notes_compared = False
    return findings


def _compare_teaching(contents: Contents, model: Any, findings: Findings) -> None:
    """Compares what the notes of a claim say about a teacher with what the model says."""
    stated = [note for note in contents.claim.notes if is_teaching_note(note)]
    teaching = teaching_of_model(model)
    if teaching is None:
        if stated:
            findings.notes_compared = False
            findings.not_checked.append("what the claim says about a teacher: the model has no record of its training")
        return
    if stated != [teaching.note]:
        findings.wrong.append("the model learnt from a teacher, and the claim does not say so, or not in these words")
        return
    findings.checked.append("what the claim says about the teacher")
    findings.notes_compared = findings.notes_compared or contents.claim.notes == (teaching.note,)


def _compare_threshold(record: ThresholdRecord, named: Defence, data: Any, model: Any, findings: Findings) -> None:
    """Counts again how many of the targets that the threshold was chosen on get the positive label."""
    part = "kept for the threshold" if record.is_guaranteed else "in the validation part"
    try:
        rows = counted_rows(data, record)
    except DatasetError as error:
        findings.not_checked.append(f"the targets that the threshold was chosen on: {error}")
        return
    if len(rows) != record.counted:
        findings.wrong.append(f"{len(rows):,} targets of the data are {part}, the claim says {record.counted:,}")
    elif model is None:
        findings.not_checked.append(f"how many of the targets {part} get the positive label: pass model")
    else:
        flagged = int((named.labels(model, data, rows) == record.positive).sum())
        if flagged > record.flagged:
            findings.wrong.append(
                f"{flagged:,} targets {part} get the positive label, the claim says {record.flagged:,}"
            )
        else:
            findings.checked.append(f"how many of {record.counted:,} targets {part} get the positive label")
    if record.is_guaranteed:
        findings.not_checked.append("that the targets kept for the threshold were used for nothing else")


def _without_defence(contents: Contents, data: CanonicalData, model: Any, error: SettingsError) -> Findings:
    """Compares what can be compared if nobody knows the defence that a file names."""
    reason = f"{error} Pass the defence itself: defence=."
    if model is not None:  # the caller asked about the votes, and silence would pass for a yes
        return Findings([f"votes cannot be computed again: {reason}"])
    wrong = [*wrong_targets(contents, data.targets(contents.arrays["row"]))]
    return Findings(wrong, not_checked=[f"the subgraphs: {reason}"])


def _misfit(contents: Contents, data: Any) -> str | None:
    """Returns why the data cannot be what a file is about, or None."""
    task = contents.claim.task
    rows = contents.arrays["row"]
    if infer_task(data) != ("node" if task == "pair" else task):  # pairs are of the nodes of one graph
        return f"the certificate is about {task} classification, the data is for the other task"
    if task == "pair":
        return None
    if task == "graph" and not len(rows):
        return "the certificate is about no graph at all"
    total = len(data) if task == "graph" else data.num_nodes
    if rows.max(initial=-1) >= total:
        return f"the certificate names row {rows.max()}, the data has {total}: it belongs to another graph"
    return None


def defence_of_file(contents: Contents, model: Any) -> Defence:
    """Returns the defence that a certificate file is about.

    Args:
        contents: What the file says.
        model: The certified model, which may carry settings that the file does not have; ``None`` if it is not at hand.

    Raises:
        SettingsError: The file names a division or defence that is not known here: its owner has to pass it.
        MissingPackage: The add-on package with this kind of defence is not installed.
    """
    package, purpose = ADD_ON_KINDS.get(contents.kind, ("agnncert", "a certificate of this kind"))
    kind: type[Defence] = addon("agnncert.defences", contents.kind, package, purpose)
    return kind.from_file(contents, model)
