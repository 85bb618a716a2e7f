"""What all smoothing defences share: from a model and data to evidence and a certificate."""

import copy
import os
from abc import abstractmethod
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from agnncert.auditing.model_audit import AuditReport, audit
from agnncert.certificates.votes import IntArray
from agnncert.divisions.base import RandomDefence
from agnncert.divisions.edge import EdgeCentric
from agnncert.engine.call import ModelAdapter, bind
from agnncert.engine.casting import ENGINES, EngineName
from agnncert.engine.workers import Workers
from agnncert.errors import SettingsError, did_you_mean
from agnncert.graphs.graph import CanonicalGraph, edge_values_of, infer_task
from agnncert.graphs.targets import prepared
from agnncert.models.digest import model_digest
from agnncert.progress import OnProgress
from agnncert.proving.certificate import Certificate
from agnncert_peers.noise import Noise, Sources
from agnncert_peers.samples import EACH, SampleEvidence, check_alpha, sample_claim
from agnncert_peers.sampling import TRAINING, Sampler, check_samples, collect, stream


@dataclass(frozen=True, kw_only=True)
class Smoothing(RandomDefence):
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
        """The noise, for nodes with ``num_features`` features; it also knows what a vote under it withstands."""

    def noisy(self, data: Any, generator: torch.Generator | None = None) -> Any:
        """One noisy version of ``data``, to train on: a defence is only as good as its model is under noise.

        Args:
            data: A graph, or a list of graphs.
            generator: Source of randomness; torch's global one when not given.

        Returns:
            A graph, or a list of graphs, with other edges (and features, if those are noisy) and everything else as it
            was. If the noise adds edges, which have no weights and attributes, these are left out.
        """
        if not isinstance(data, CanonicalGraph) and infer_task(data) == "graph":
            return [self.noisy(graph, generator) for graph in data]
        rng = np.random.default_rng(int(torch.randint(2**62, (1,), generator=generator)))
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
        """What noise changes in a graph, by name; ``None`` for what must be left out."""

    @abstractmethod
    def _sampler(self, call: ModelAdapter, graph: CanonicalGraph, rows: IntArray, naive: bool) -> Sampler: ...

    @abstractmethod
    def _check_model(self, report: AuditReport, engine: EngineName) -> None: ...

    def _probe(self, call: ModelAdapter, graph: CanonicalGraph, rows: IntArray) -> None:
        """Raises ModelContractError if the model does on this graph what the defence does not allow."""

    def sources(self, graph: CanonicalGraph, rows: IntArray) -> Sources | None:
        """The nodes that reach each target, if the defence needs to know them."""
        return None

    @torch.no_grad()
    def count(self, call: ModelAdapter, graph: CanonicalGraph, rows: IntArray, samples: int, seed: int) -> IntArray:
        """How often each class is predicted for each target on some noisy graphs; used in training, proves nothing.

        Args:
            call: The model, bound to the graph.
            graph: A canonical graph; in the graph task the joined targets.
            rows: Node task: rows of the targets. Graph task: all graphs, in order.
            samples: Number of noisy graphs.
            seed: Seed of the noise, which is not the noise of any certificate.

        Returns:
            Counts of shape ``[num_targets, num_classes]``.
        """
        sampler = self._sampler(call, graph, rows, naive=False)
        counts = np.zeros((sampler.num_targets, sampler.num_classes), dtype=np.int64)
        for batch, first in enumerate(range(0, samples, sampler.batch)):
            last = min(sampler.batch, samples - first)
            counts += sampler.counts(stream(seed, TRAINING, batch), 0, last)
        return counts

    def drawn(self) -> dict[str, Any]:
        """The settings that samples depend on; counts drawn with others must not be mixed with these."""
        return {setting.name: getattr(self, setting.name) for setting in fields(self) if not setting.kw_only}

    @torch.no_grad()
    def certify(
        self,
        model: Any,
        data: Any,
        targets: Any = None,
        *,
        engine: EngineName = "fast",
        checkpoint: str | os.PathLike[str] | None = None,
        workers: Workers | None = None,
        progress: OnProgress | None = None,
    ) -> Certificate:
        """What the vote of ``model`` under this noise withstands, with probability ``1 - alpha``.

        Args:
            model: A trained module, best trained on :meth:`noisy` data.
            data: A graph (node task) or a list of graphs (graph task).
            targets: Mask or row numbers of nodes or graphs; all when not given.
            engine: "fast", or "naive": the model runs on one whole noisy graph at a time.
            checkpoint: File that keeps the counts. An interrupted run, called again, goes on from it to the
                same counts; larger ``samples`` or ``selection`` add samples.
            workers: Who draws the samples, such as ``ac.Ray()``; this process when not given. The counts are the same.
            progress: Called after each batch of samples.

        Returns:
            A certificate. Its radius is -1 where the samples do not decide.

        Raises:
            SettingsError: ``checkpoint`` belongs to another run.
            ModelContractError: The model does not fit the defence.
            GraphError: The data cannot be used as it is.
        """
        if engine not in ENGINES:
            raise SettingsError(f'unknown engine "{engine}": {did_you_mean(str(engine), ENGINES)}')
        ready = prepared(data, targets)
        chosen = ready.targets(targets)
        self._check_model(audit(model, ready.data, EdgeCentric(1)), engine)
        call = bind(model, chosen.graph, chosen.task)
        sampler = self._sampler(call, chosen.graph, chosen.places, engine == "naive")
        self._probe(call, chosen.graph, chosen.places)
        digests = {"graph": chosen.digest, "model": model_digest(model)}
        key = {"method": self.method, "noise": self.drawn(), "targets": chosen.rows.tolist(), **digests}
        counts = collect(sampler, self.selection, self.samples, self.seed, key, checkpoint, progress, workers)
        noise = self.noise(int(chosen.graph.x.size(1)))
        evidence = SampleEvidence(
            self.method,
            noise,
            counts.selection,
            counts.estimation,
            float(self.alpha),
            self.scope,
            int(self.seed),
            chosen.task,
            self.sources(chosen.graph, chosen.places),
        )
        claim = sample_claim(evidence, chosen.id_kind, digests, (str(self),))
        return Certificate(claim, evidence, chosen.ids, chosen.rows, chosen.truth, chosen.degree)


def _plain(data: Data | CanonicalGraph) -> CanonicalGraph:
    """The graph that noise acts on. It is neither checked nor sorted, because training needs it at every step."""
    graph = CanonicalGraph(data.x, data.edge_index, torch.arange(data.num_nodes), **edge_values_of(data))
    return graph.without_self_loops()  # certificates leave self-loops out, so training does too
