"""What all smoothing defences share: from a model and data to evidence and a certificate."""

import copy
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
import torch
from torch_geometric.data import Data

from agnncert.agreement import Comparison
from agnncert.auditing.model_audit import AuditReport, audit
from agnncert.certificates.file import Contents
from agnncert.certificates.votes import IntArray
from agnncert.defence import CertifyOptions, Defence, FitOptions, Task
from agnncert.divisions.base import RandomDefence
from agnncert.divisions.edge import EdgeCentric
from agnncert.engine.adapter import ModelAdapter, bind
from agnncert.engine.votes import ENGINES, EngineName
from agnncert.errors import CertificateError, SettingsError, did_you_mean
from agnncert.graphs.graph import CanonicalGraph, edge_values_of
from agnncert.graphs.targets import Targets, prepared
from agnncert.graphs.task import infer_task
from agnncert.models.digest import model_digest
from agnncert.proving.certificate import Certificate
from agnncert.training.loop import train
from agnncert_peers.draws import TRAINING, stream
from agnncert_peers.interception_noise import Sources
from agnncert_peers.noise import Noise
from agnncert_peers.sample_counts import Sampler, check_samples, collect
from agnncert_peers.samples import EACH, SampleEvidence, check_alpha, sample_claim

OPEN_WITHOUT_SAMPLES = "that the samples were drawn from this model and noise: have them drawn again"


@dataclass(frozen=True, kw_only=True)
class Smoothing(RandomDefence, Defence):
    """A defence that votes over random changes of the input. Subclasses are frozen dataclasses.

    Attributes:
        samples: Number of samples that bound the probability of the label. Fix it before looking at results: stopping
            when the results please voids ``alpha``.
        selection: Number of samples that choose the label.
        alpha: Error probability of the certificate.
        scope: ``"each target"``: every statement about one target is wrong with probability at most ``alpha``.
            ``"all targets together"``: all statements together are right with probability at least ``1 - alpha``.
        seed: Seed of all samples.
    """

    kind: ClassVar[str] = "samples"
    open_without_model: ClassVar[str] = OPEN_WITHOUT_SAMPLES
    certify_options: ClassVar[frozenset[str]] = frozenset({"engine", "checkpoint", "workers", "progress"})
    cannot: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "explain": "its votes are those of random graphs, and no edge or node carries one of them",
            "live": "all its samples have to be drawn again after every change of the graph",
            "subgraphs": "it votes on random graphs: fit draws new ones in every step",
            "threshold": "its bounds are about the most frequent class of the samples",
            "voting_rule": "it adds up no votes of subgraphs",
        }
    )

    samples: int = field(default=10_000, repr=False)
    selection: int = field(default=100, repr=False)
    alpha: float = field(default=0.01, repr=False)
    scope: str = field(default=EACH, repr=False)
    seed: int = field(default=0, repr=False)

    def __post_init__(self) -> None:
        check_samples(self.selection, self.samples, self.seed)
        check_alpha(self.alpha, self.scope)
        self.noise(1)

    @abstractmethod
    def noise(self, num_features: int) -> Noise:
        """Returns the noise, for nodes with ``num_features`` features. It knows what a vote under it withstands."""

    def noisy(self, data: Any, generator: torch.Generator | None = None) -> Any:
        """Draws one noisy version of ``data``, to train on: a defence is only as good as its model is under noise.

        Args:
            data: A graph, or a list of graphs.
            generator: Source of randomness. Defaults to torch's global one.

        Returns:
            A graph, or a list of graphs, with other edges (and features, if those are noisy) and everything else as it
            was. If the noise adds edges, which have no weights and attributes, these are left out.
        """
        if not isinstance(data, CanonicalGraph) and infer_task(data) == "graph":
            return [self.noisy(graph, generator) for graph in data]
        seed = int(torch.randint(2**62, (1,), generator=generator))
        rng = np.random.default_rng(seed)
        parts: dict[str, Any] = self._noisy_parts(_plain(data), rng)
        if isinstance(data, CanonicalGraph):
            return replace(data, **parts)
        result = copy.copy(data)
        for name, value in parts.items():
            if value is None:
                del result[name]
            else:
                result[name] = value
        return result

    @abstractmethod
    def _noisy_parts(self, graph: CanonicalGraph, rng: np.random.Generator) -> dict[str, torch.Tensor | None]:
        """Draws what noise changes in a graph, by name; ``None`` for what must be left out."""

    @abstractmethod
    def _sampler(self, bound_model: ModelAdapter, graph: CanonicalGraph, rows: IntArray, naive: bool) -> Sampler:
        """Makes what draws noisy graphs and counts predictions; ``naive``: on one noisy graph at a time."""

    @abstractmethod
    def _check_model(self, report: AuditReport, engine: EngineName) -> None:
        """Raises ModelContractError if the audit found what this noise does not allow."""

    def _probe(self, bound_model: ModelAdapter, graph: CanonicalGraph, rows: IntArray) -> None:
        """Raises ModelContractError if the model does on this graph what the defence does not allow."""

    def sources(self, graph: CanonicalGraph, rows: IntArray) -> Sources | None:
        """Returns the nodes that reach each target, if the defence needs to know them."""
        return None

    @torch.no_grad()
    def count(
        self, bound_model: ModelAdapter, graph: CanonicalGraph, rows: IntArray, samples: int, seed: int
    ) -> IntArray:
        """Counts how often each class is predicted for each target on some noisy graphs.

        The counts are used in training and prove nothing.

        Args:
            bound_model: The model, bound to the graph.
            graph: A canonical graph; in the graph task the joined targets.
            rows: Node task: rows of the targets. Graph task: all graphs, in order.
            samples: Number of noisy graphs.
            seed: Seed of the noise, which is not the noise of any certificate.

        Returns:
            Counts of shape ``[num_targets, num_classes]``.
        """
        sampler = self._sampler(bound_model, graph, rows, naive=False)
        counts = np.zeros((sampler.num_targets, sampler.num_classes), dtype=np.int64)
        for batch, first in enumerate(range(0, samples, sampler.batch)):
            last = min(sampler.batch, samples - first)
            counts += sampler.counts(stream(seed, TRAINING, batch), 0, last)
        return counts

    def drawn(self) -> dict[str, Any]:
        """Returns the settings that samples depend on. Counts drawn with others must not be mixed with these."""
        return {setting.name: getattr(self, setting.name) for setting in fields(self) if not setting.kw_only}

    def fit(self, model: Any, data: Any, options: FitOptions) -> Any:
        """Trains a model in place under the noise, which is drawn anew for each step."""
        return train(model, data, self, options)

    def audit(self, model: Any, data: Any, task: Task | None = None) -> AuditReport:
        """Checks whether the model gives the same answer each time and looks along edges only."""
        return audit(model, data, EdgeCentric(1), task=task)

    def compare_graph(self, comparison: Comparison) -> None:
        """Compares noise and paths with those of the graph."""
        from agnncert_peers.recheck import compare_noise  # which imports the defences themselves

        compare_noise(comparison)

    def compare_model(self, comparison: Comparison, model: Any) -> None:
        """Draws all samples again if ``recheck`` is not 0, which costs as much as certifying."""
        from agnncert_peers.recheck import compare_samples  # which imports the defences themselves

        compare_samples(comparison, model)

    @classmethod
    def from_file(cls, contents: Contents, model: Any) -> Any:
        """Returns the defence whose noise the evidence of a file names."""
        from agnncert_peers.recheck import defence_of  # which imports the defences themselves

        try:
            return defence_of(SampleEvidence.load(contents.evidence, contents.settings))
        except SettingsError as error:
            raise CertificateError(f"no defence of this library has such noise: {error}") from error

    @classmethod
    def from_settings(cls, name: str, task: Task, settings: Mapping[str, Any]) -> Any:
        """Returns the defence with these settings."""
        valid = [each.name for each in fields(cls)]
        for key in settings:
            if key not in valid:
                raise SettingsError(f'{name} has no setting "{key}": {did_you_mean(key, valid)}')
        return cls(**settings)

    def seeded(self, seed: int, **settings: Any) -> "Smoothing":
        """Returns the same noise with another seed and other numbers of samples."""
        return replace(self, seed=seed, **settings)

    def short_name(self) -> str:
        """Returns the method with the settings of its noise that are not zero."""
        shown = {name: value for name, value in self.drawn().items() if value}
        test = getattr(self, "test", "B2")
        if test != "B2":
            shown["test"] = test
        return f"{self.method}({', '.join(f'{name}={value}' for name, value in shown.items())})"

    def random_settings(self) -> dict[str, Any]:
        """Returns the settings of sampling, by name."""
        return {name: getattr(self, name) for name in ("samples", "selection", "alpha", "scope", "seed")}

    @torch.no_grad()
    def certify(self, model: Any, data: Any, targets: Any, options: CertifyOptions) -> Certificate:
        """Returns what the vote of ``model`` under this noise withstands, with probability ``1 - alpha``.

        Args:
            model: A trained module, best trained on :meth:`noisy` data.
            data: A graph (node task) or a list of graphs (graph task).
            targets: Mask or row numbers of nodes or graphs; ``None`` for all.
            options: The engine ("naive" runs the model on one whole noisy graph at a time), a checkpoint file that
                keeps the counts, workers and progress. An interrupted run goes on from its checkpoint to the same
                counts, and larger ``samples`` or ``selection`` add samples.

        Returns:
            A certificate. Its radius is -1 where the samples do not decide.

        Raises:
            SettingsError: The checkpoint belongs to another run.
            ModelContractError: The model does not fit the defence.
            GraphError: The data cannot be used as it is.
        """
        engine = options.engine or "fast"
        if engine not in ENGINES:
            raise SettingsError(f'unknown engine "{engine}": {did_you_mean(str(engine), ENGINES)}')
        self.require_model(model)
        canonical_data = prepared(data, targets)
        selected = canonical_data.targets(targets)
        self._check_model(audit(model, canonical_data.data, EdgeCentric(1)), engine)
        self._probe(bind(model, selected.graph, selected.task), selected.graph, selected.positions)
        digests = {"graph": selected.digest, "model": model_digest(model)}
        evidence = self._drawn_evidence(model, selected, digests, options)
        claim = sample_claim(evidence, selected.id_kind, digests, (str(self),))
        return Certificate(claim, evidence, selected.ids, selected.rows, selected.truth, selected.degree)

    def scores(self, model: Any, data: Any, targets: Any = None) -> IntArray:
        """Returns how many samples have each class, shape ``[n, num_classes]``."""
        return self.labels_and_scores(model, data, targets)[1]

    @torch.no_grad()
    def labels_and_scores(self, model: Any, data: Any, targets: Any = None) -> tuple[IntArray, IntArray]:
        """Returns the label of each target, which other samples choose, and how many samples have each class.

        The model is not audited for it.
        """
        self.require_model(model)
        selected = prepared(data, targets).targets(targets)
        evidence = self._drawn_evidence(model, selected, {}, CertifyOptions())
        return evidence.bounds.label.astype(np.int64), evidence.counts

    def _drawn_evidence(
        self, model: Any, selected: Targets, digests: Mapping[str, str], options: CertifyOptions
    ) -> SampleEvidence:
        """Draws all samples; ``digests`` name what a checkpoint must agree with."""
        bound_model = bind(model, selected.graph, selected.task)
        sampler = self._sampler(bound_model, selected.graph, selected.positions, options.engine == "naive")
        key = {"method": self.method, "noise": self.drawn(), "targets": selected.rows.tolist(), **digests}
        counts = collect(
            sampler,
            self.selection,
            self.samples,
            self.seed,
            key,
            checkpoint=options.checkpoint,
            progress=options.progress,
            workers=options.workers,
        )
        return SampleEvidence(
            method=self.method,
            noise=self.noise(int(selected.graph.x.size(1))),
            selection=counts.selection,
            estimation=counts.estimation,
            alpha=float(self.alpha),
            scope=self.scope,
            seed=int(self.seed),
            task=selected.task,
            sources=self.sources(selected.graph, selected.positions),
        )


def _plain(data: Data | CanonicalGraph) -> CanonicalGraph:
    """Returns the graph that noise acts on, neither checked nor sorted, because training needs it at every step."""
    graph = CanonicalGraph(data.x, data.edge_index, torch.arange(data.num_nodes), **edge_values_of(data))
    return graph.without_self_loops()  # certificates leave self-loops out, so training does too
