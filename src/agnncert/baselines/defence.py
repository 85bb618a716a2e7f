"""What all smoothing defences share: from a model and data to evidence and a certificate."""

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch_geometric.data import Data

from agnncert.baselines.counts import Progress, Sampler, check_samples, collect
from agnncert.contract import AuditReport, audit
from agnncert.division import EdgeCentric
from agnncert.engines import ENGINES, EngineName
from agnncert.engines.call import Caller, bind
from agnncert.errors import SettingsError, did_you_mean
from agnncert.graph import Task, canonical, canonical_set, graph_digest, infer_task, target_rows
from agnncert.smoothing.evidence import EACH, SampleEvidence, check_alpha
from agnncert.smoothing.noise import Noise
from agnncert.votes import IntArray


@dataclass(frozen=True)
class Words:
    """What a defence adds to the claim; see :class:`~agnncert.claim.Claim`."""

    covers: tuple[str, ...]
    assumes: tuple[str, ...]
    not_proved: tuple[str, ...]


class Smoothing(ABC):
    """A defence that votes over random changes of the input. Subclasses are frozen dataclasses.

    Attributes:
        method: Name of the defence.
    """

    method: ClassVar[str]

    @abstractmethod
    def noise(self, num_features: int) -> Noise:
        """The noise, for nodes with so many features; it also knows what a vote under it withstands."""

    def noisy(self, data: Any, generator: torch.Generator | None = None) -> Any:
        """One noisy version of ``data``, to train on: a defence is only as good as its model is under noise.

        Args:
            data: A graph, or a list of graphs.
            generator: Where randomness comes from; torch's own when not given.

        Returns:
            A graph, or a list of graphs, with other edges (and features, if those are noisy) and everything
            else as it was. Values of edges are left out where noise adds edges, which have none.
        """
        if infer_task(data) == "graph":
            return [self.noisy(graph, generator) for graph in data]
        graph = canonical(data)
        rng = np.random.default_rng(int(torch.randint(2**62, (1,), generator=generator)))
        result = data.clone()
        for name, value in self._noisy_parts(graph, rng).items():
            if value is None:
                del result[name]
            else:
                result[name] = value
        return result

    @abstractmethod
    def _noisy_parts(self, graph: Data, rng: np.random.Generator) -> dict[str, torch.Tensor | None]:
        """What noise changes in a canonical graph, by name; ``None`` for what must be left out."""

    @abstractmethod
    def _sampler(self, call: Caller, graph: Data, rows: IntArray, naive: bool) -> Sampler: ...

    @abstractmethod
    def _check_model(self, report: AuditReport, engine: EngineName) -> None: ...

    @abstractmethod
    def _words(self, task: Task) -> Words: ...

    def drawn(self) -> dict[str, Any]:
        """The settings that samples depend on; counts drawn with others must not be mixed with these."""
        return asdict(self)  # type: ignore[call-overload, no-any-return]

    def sample(
        self,
        model: Any,
        data: Data | Sequence[Data],
        targets: Any = None,
        *,
        n0: int = 100,
        n: int = 10_000,
        alpha: float = 0.01,
        scope: str = EACH,
        seed: int = 0,
        engine: EngineName = "fast",
        checkpoint: str | os.PathLike[str] | None = None,
        progress: Progress | None = None,
    ) -> SampleEvidence:
        """The evidence of a certificate; see :meth:`certify`."""
        check_samples(n0, n, seed)
        check_alpha(alpha, scope)
        if engine not in ENGINES:
            raise SettingsError(f'unknown engine "{engine}": {did_you_mean(str(engine), ENGINES)}')
        graph, rows = self._graph_and_rows(data, targets)
        self._check_model(audit(model, division=EdgeCentric(1), data=data), engine)
        sampler = self._sampler(bind(model, graph, graph.task), graph, rows, engine == "naive")
        key = self._key(model, graph, rows)
        counts = collect(sampler, n0, n, seed, key, checkpoint, progress)
        noise = self.noise(int(graph.x.size(1)))
        return SampleEvidence(
            self.method, noise, counts.selection, counts.estimation, float(alpha), scope, int(seed)
        )

    def _graph_and_rows(self, data: Data | Sequence[Data], targets: Any) -> tuple[Data, IntArray]:
        """The canonical graph and the rows of the targets; in the graph task only targets are in it."""
        if infer_task(data) == "node":
            graph = canonical(data)  # type: ignore[arg-type]
            return graph, target_rows(targets, int(graph.num_nodes))
        chosen = target_rows(targets, len(data))
        if len(chosen) == 0:
            raise SettingsError("no targets are given: name at least one graph, or None for all.")
        return canonical_set([data[int(k)] for k in chosen]), np.arange(len(chosen))

    def _key(self, model: Any, graph: Data, rows: IntArray) -> dict[str, Any]:
        """Everything that a sample depends on, besides the seed."""
        return {
            "method": self.method,
            "noise": self.drawn(),
            "graph": graph_digest(graph),
            "model": model_digest(model),
            "targets": hashlib.sha256(rows.tobytes()).hexdigest(),
        }


def model_digest(model: Any) -> str:
    """sha256 of a module's printed form and weights; of its name alone for other callables."""
    if not isinstance(model, torch.nn.Module):
        return hashlib.sha256(repr(getattr(model, "__qualname__", type(model))).encode()).hexdigest()
    digest = hashlib.sha256(repr(model).encode())
    for name, value in model.state_dict().items():
        digest.update(f"{name}:{value.dtype}:{tuple(value.shape)};".encode())
        digest.update(np.ascontiguousarray(value.detach().cpu().numpy()).tobytes())
    return digest.hexdigest()
