"""Other certified defences, under the same certificate: GNNCert, RS, sparsity-aware RS, Bi-RS, interception.

``ac.certify`` takes each of them. GNNCert-E, -N and -EN are divisions, and deterministic. The others *smooth*: they
vote over random changes of the graph, called noise, and their certificates hold with a stated probability.

- ``smoothing``: what the smoothing defences share: sampling, certificate, noisy training data
- ``flips``: RS and sparsity-aware RS
- ``deletions``: Bi-RS
- ``interception``: message-interception smoothing
- ``sampling``: random draws, a model run on many noisy graphs at once, counts that can be interrupted and resumed

This file has all defences by name, and draws the samples of a certificate again.
"""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from agnncert.baselines.deletions import BiRS as BiRS
from agnncert.baselines.flips import RS as RS
from agnncert.baselines.flips import SparseRS as SparseRS
from agnncert.baselines.interception import Interception as Interception
from agnncert.baselines.smoothing import Smoothing
from agnncert.divisions.gnncert import GNNCertE as GNNCertE
from agnncert.divisions.gnncert import GNNCertEN as GNNCertEN
from agnncert.divisions.gnncert import GNNCertN as GNNCertN
from agnncert.divisions.named import DIVISIONS
from agnncert.engine.casting import EngineName
from agnncert.errors import CertificateError, SettingsError, did_you_mean
from agnncert.proving.certificate import Certificate
from agnncert.proving.noise import DeletionNoise, FlipNoise, InterceptionNoise
from agnncert.proving.samples import SampleEvidence

SMOOTHING: dict[str, type[Any]] = {defence.method: defence for defence in (RS, SparseRS, BiRS, Interception)}


def defence_named(name: str, task: str, settings: Mapping[str, Any]) -> Any:
    """The defence that a name and settings stand for: a division, or one that smooths.

    Args:
        name: One of ``agnncert.divisions.DIVISIONS`` or of ``SMOOTHING``.
        task: ``"node"`` or ``"graph"``, which decides how many groups a division has if the settings do not say it.
        settings: Arguments of the defence, by name.

    Raises:
        SettingsError: No defence has this name, or it has no such setting.

    Example:
        >>> defence_named("bi-rs", "node", {"p_edge": 0.7})
        BiRS(p_edge=0.7, p_node=0.9, test='B2', edges_per_injected=5)
    """
    if name not in DIVISIONS and name not in SMOOTHING:
        raise SettingsError(f'no defence is called "{name}": {did_you_mean(name, [*DIVISIONS, *SMOOTHING])}')
    division = DIVISIONS.get(name)
    cls = SMOOTHING[name] if division is None else division.load()
    valid = [field.name for field in fields(cls)]
    for key in settings:
        if key not in valid:
            raise SettingsError(f'{name} has no setting "{key}": {did_you_mean(key, valid)}')
    return cls(**settings) if division is None else division.build(task, settings)


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
    return defence_of(evidence).certify(model, data, targets, engine=engine)
