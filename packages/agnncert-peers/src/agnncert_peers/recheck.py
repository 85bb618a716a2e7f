"""Draws the samples of a certificate again, to compare it with the graph and the model that it speaks about."""

from typing import Any

import numpy as np

from agnncert.agreement import other_classes, other_model, wrong_targets
from agnncert.certificates.file import Contents
from agnncert.defence import CertifyOptions, Findings, RecomputeOptions
from agnncert.engine.adapter import bind
from agnncert.engine.votes import EngineName
from agnncert.errors import CertificateError, ModelContractError, SettingsError
from agnncert.graphs.targets import CanonicalData
from agnncert.proving.certificate import Certificate
from agnncert_peers.deletion_noise import DeletionNoise
from agnncert_peers.deletions import BiRS
from agnncert_peers.flip_noise import FlipNoise
from agnncert_peers.flips import RS, SparseRS
from agnncert_peers.interception import Interception
from agnncert_peers.interception_noise import InterceptionNoise
from agnncert_peers.samples import SampleEvidence
from agnncert_peers.smoothing import Smoothing


def defence_of(evidence: SampleEvidence) -> Smoothing:
    """The defence with whose noise some evidence was drawn.

    Raises:
        CertificateError: No defence of this library has that noise.
    """
    noise, method = evidence.noise, evidence.method
    how: dict[str, Any] = {"alpha": evidence.alpha, "scope": evidence.scope, "seed": evidence.seed}
    if evidence.num_targets:
        how |= {"selection": int(evidence.selection[0].sum()), "samples": int(evidence.estimation[0].sum())}
    if method == BiRS.method and isinstance(noise, DeletionNoise):
        return BiRS(noise.p_edge, noise.p_node, noise.test, noise.edges_per_injected, **how)
    if method == SparseRS.method and isinstance(noise, FlipNoise):
        return SparseRS(noise.p_add, noise.p_delete, noise.p_add_feature, noise.p_delete_feature, **how)
    if method == RS.method and isinstance(noise, FlipNoise):
        return RS(1 - noise.p_add, noise.where, **how)
    if method == Interception.method and isinstance(noise, InterceptionNoise):
        return Interception(noise.p_delete, noise.p_ablate, noise.hops, noise.skip, **how)
    raise CertificateError(f'no defence called "{method}" has {noise.kind} noise: its samples cannot be drawn again.')


def redraw(evidence: SampleEvidence, model: Any, data: Any, targets: Any, engine: EngineName = "fast") -> Certificate:
    """Draws samples again: same seed, same graph, same model, hence the same counts and the same certificate.

    Costs as much as certifying. Other versions of numpy may draw other random numbers from the same seed; the
    counts then differ although nothing is wrong, so compare under the version that made them.

    Args:
        evidence: The evidence of a certificate from random samples, about one target at least.
        model: The module.
        data: The graph, or the whole list of graphs, that it was made from.
        targets: Rows of the targets.
        engine: The engine it was made with.
    """
    return defence_of(evidence).certify(model, data, targets, CertifyOptions(engine=engine))


def check_samples(contents: Contents, data: CanonicalData, model: Any, options: RecomputeOptions) -> Findings:
    """Compares a certificate from random samples with a graph and, unless it is ``None``, with a model."""
    found = Findings(notes_compared=True)
    evidence = SampleEvidence.load(contents.evidence, contents.settings)
    chosen = data.targets(contents.arrays["row"])
    found.wrong += wrong_targets(contents, chosen)
    try:
        defence = defence_of(evidence)
    except SettingsError as error:
        found.wrong.append(f"no defence of this library has such noise: {error}")
        return found
    if defence.noise(int(chosen.graph.x.size(1))) != evidence.noise:
        found.wrong.append(f"the noise is not that of {defence} on this graph")
    if contents.claim.notes != (str(defence),):
        found.wrong.append(f"the claim does not name the defence as it is, {defence}")
    paths = None if found.wrong else defence.sources(chosen.graph, chosen.positions)
    if paths is not None and not paths.equals(evidence.sources):
        found.wrong.append("the paths to the targets are not those of this graph")
    also = ", and the paths to the targets" if paths is not None else ""
    found.checked.append(f"the graph, the targets with their ids, and the noise{also}")
    found.compared.append("data")
    found.not_checked.append("that the seed was fixed before any count was seen")
    if model is not None and not found.wrong:
        found.wrong += other_model(contents, model)
        found.wrong += other_classes(evidence.estimation.shape[1], bind(model, chosen.graph, chosen.task))
    if model is None or not options.recheck or not evidence.num_targets:
        found.not_checked.append("that the samples were drawn from this model and noise: have them drawn again")
        return found
    if found.wrong:
        return found
    drawn = _drawn_again(evidence, model, data, contents.arrays["row"])
    for name, counts in drawn.evidence.tensors().items():
        if not np.array_equal(evidence.tensors()[name], counts):
            found.wrong.append(f"the {name} counts are not those of seed {evidence.seed}")
    if drawn.evidence.settings() != contents.settings:
        found.wrong.append("the settings of the samples are not those that were drawn")
    found.checked.append("all samples, drawn again")
    found.compared.append("model")
    return found


def _drawn_again(evidence: SampleEvidence, model: Any, ready: Any, rows: Any) -> Certificate:
    try:
        return redraw(evidence, model, ready, rows)
    except ModelContractError:  # the model mixes what is evaluated together: it was certified one graph at a time
        return redraw(evidence, model, ready, rows, engine="naive")
