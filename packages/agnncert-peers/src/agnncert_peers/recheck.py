"""Draws the samples of a certificate again, to compare it with the graph and the model that it speaks about."""

from typing import Any

import numpy as np

from agnncert.agreement import Comparison, other_classes, wrong_notes, wrong_targets
from agnncert.certificates.file import Contents
from agnncert.certificates.votes import IntArray
from agnncert.defence import CertifyOptions, Findings, GraphData, Model, TargetChoice
from agnncert.engine.adapter import bind
from agnncert.engine.votes import EngineName
from agnncert.errors import CertificateError, ModelContractError, SettingsError
from agnncert.graphs.targets import CanonicalData, Targets
from agnncert.proving.certificate import Certificate
from agnncert_peers.deletion_noise import DeletionNoise
from agnncert_peers.deletions import BiRS
from agnncert_peers.flip_noise import FlipNoise
from agnncert_peers.flips import RS, SparseRS
from agnncert_peers.interception import Interception
from agnncert_peers.interception_noise import InterceptionNoise
from agnncert_peers.samples import SampleEvidence
from agnncert_peers.smoothing import OPEN_WITHOUT_SAMPLES, Smoothing


def defence_of(evidence: SampleEvidence) -> Smoothing:
    """Returns the defence with whose noise some evidence was drawn.

    Raises:
        CertificateError: No defence of this library has that noise.
    """
    noise = evidence.noise
    method = evidence.method
    settings: dict[str, Any] = {"alpha": evidence.alpha, "scope": evidence.scope, "seed": evidence.seed}
    if evidence.num_targets:
        settings["selection"] = int(evidence.selection[0].sum())
        settings["samples"] = int(evidence.estimation[0].sum())
    if method == BiRS.method and isinstance(noise, DeletionNoise):
        return BiRS(noise.p_edge, noise.p_node, noise.test, noise.edges_per_injected, **settings)
    if method == SparseRS.method and isinstance(noise, FlipNoise):
        return SparseRS(noise.p_add, noise.p_delete, noise.p_add_feature, noise.p_delete_feature, **settings)
    if method == RS.method and isinstance(noise, FlipNoise):
        return RS(1 - noise.p_add, noise.where, **settings)
    if method == Interception.method and isinstance(noise, InterceptionNoise):
        return Interception(noise.p_delete, noise.p_ablate, noise.hops, noise.skip, **settings)
    raise CertificateError(f'no defence called "{method}" has {noise.kind} noise: its samples cannot be drawn again.')


def redraw(
    evidence: SampleEvidence, model: Model, data: GraphData, targets: TargetChoice, engine: EngineName = "fast"
) -> Certificate:
    """Draws samples again: same seed, same graph, same model, hence the same counts and the same certificate.

    This costs as much as certifying. Other versions of numpy may draw other random numbers from the same seed; the
    counts then differ although nothing is wrong, so compare under the version that made them.

    Args:
        evidence: The evidence of a certificate from random samples, about one target at least.
        model: The module.
        data: The graph, or the whole list of graphs, that it was made from.
        targets: Rows of the targets.
        engine: The engine it was made with.
    """
    return defence_of(evidence).certify(model, data, targets, CertifyOptions(engine=engine))


def compare_noise(comparison: Comparison) -> None:
    """Compares a certificate from random samples with a graph: its targets, the noise and the paths to the targets."""
    contents, findings = comparison.contents, comparison.findings
    findings.notes_compared = True
    evidence = SampleEvidence.load(contents.evidence, contents.settings)
    targets = comparison.targets()
    findings.wrong += wrong_targets(contents, targets)
    try:
        defence = defence_of(evidence)
    except SettingsError as error:
        findings.wrong.append(f"no defence of this library has such noise: {error}")
        return
    _compare_with_graph(contents, evidence, defence, targets, findings)


def compare_samples(comparison: Comparison, model: Any) -> None:
    """Compares a certificate from random samples with a model: draws them again, if the caller wants it."""
    contents, findings = comparison.contents, comparison.findings
    evidence = SampleEvidence.load(contents.evidence, contents.settings)
    targets = comparison.targets()
    findings.wrong += other_classes(evidence.estimation.shape[1], bind(model, targets.graph, targets.task))
    if not comparison.options.recheck or not evidence.num_targets:
        findings.not_checked.append(OPEN_WITHOUT_SAMPLES)
    elif not findings.wrong:
        _compare_with_model(contents, evidence, comparison.data, model, findings)


def _compare_with_graph(
    contents: Contents, evidence: SampleEvidence, defence: Smoothing, targets: Targets, findings: Findings
) -> None:
    """Adds to the findings whether noise and paths are those of the graph."""
    if defence.noise(int(targets.graph.x.size(1))) != evidence.noise:
        findings.wrong.append(f"the noise is not that of {defence} on this graph")
    findings.wrong += wrong_notes(contents, defence)
    checked = "the graph, the targets with their ids, and the noise"
    paths = None
    if not findings.wrong:
        paths = defence.sources(targets.graph, targets.positions)
    if paths is not None:
        checked += ", and the paths to the targets"
        if not paths.equals(evidence.sources):
            findings.wrong.append("the paths to the targets are not those of this graph")
    findings.checked.append(checked)
    findings.compared.append("data")
    findings.not_checked.append("that the seed was fixed before any count was seen")


def _compare_with_model(
    contents: Contents, evidence: SampleEvidence, data: CanonicalData, model: Any, findings: Findings
) -> None:
    """Draws all samples again and adds to the findings whether their counts are the same."""
    drawn = _drawn_again(evidence, model, data, contents.arrays["row"])
    stored = evidence.tensors()
    for name, counts in drawn.evidence.tensors().items():
        if not np.array_equal(stored[name], counts):
            findings.wrong.append(f"the {name} counts are not those of seed {evidence.seed}")
    if drawn.evidence.settings() != contents.settings:
        findings.wrong.append("the settings of the samples are not those that were drawn")
    findings.checked.append("all samples, drawn again")
    findings.compared.append("model")


def _drawn_again(evidence: SampleEvidence, model: Any, data: CanonicalData, rows: IntArray) -> Certificate:
    try:
        return redraw(evidence, model, data, rows)
    except ModelContractError:  # the model mixes what is evaluated together: it was certified one graph at a time
        return redraw(evidence, model, data, rows, engine="naive")
