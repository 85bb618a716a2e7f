"""Message-interception smoothing (Scholten et al., NeurIPS 2022), against other features of existing nodes.

Unlike the released code: every target counts in certified accuracy, also one with fewer nodes in reach than the size of
the attack; the paths are counted for the number of hops that the defence states and the model is probed for; ablated
features are zeros instead of a learned vector; there is no connection that skips the noise.
"""

from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np
import torch

from agnncert.auditing.model_audit import AuditReport
from agnncert.certificates.votes import BoolArray, IntArray
from agnncert.engine.adapter import ModelAdapter
from agnncert.engine.union import CHUNK_ROWS
from agnncert.engine.votes import EngineName
from agnncert.errors import ModelContractError, SettingsError
from agnncert.graphs.graph import CanonicalGraph
from agnncert_peers.draws import successes
from agnncert_peers.interception_noise import InterceptionNoise, Sources
from agnncert_peers.noisy_union import NoisyUnion
from agnncert_peers.paths import find_sources
from agnncert_peers.smoothing import Smoothing

_BATCH_WORK = 4_000_000  # coins of one batch: a few dozen megabytes of working memory
_LARGEST_BATCH = 1000
_PROBED = 16  # targets whose prediction is probed for features from farther away


class InterceptionSampler:
    """Deletes edges and features of nodes, and counts the predictions of the target nodes.

    Args:
        bound_model: The model, bound to the graph.
        graph: A canonical graph.
        rows: Rows of the target nodes.
        noise: Probabilities of deletion.
        naive: Run the model on one noisy graph at a time.
    """

    def __init__(
        self,
        bound_model: ModelAdapter,
        graph: CanonicalGraph,
        rows: IntArray,
        noise: InterceptionNoise,
        naive: bool = False,
    ) -> None:
        self.graph = graph
        self.rows = rows
        self.noise = noise
        self.num_targets = len(rows)
        self.num_classes = bound_model.num_classes
        self.batch = int(np.clip(_BATCH_WORK / (graph.num_nodes + graph.num_edges), 1, _LARGEST_BATCH))
        self._union = NoisyUnion(bound_model, graph)
        self._step = 1 if naive else max(1, CHUNK_ROWS // graph.num_nodes)
        self._own_logits = self._union.logits_without_edges() if noise.skip else None

    def counts(self, rng: np.random.Generator, first: int, last: int) -> IntArray:
        """Counts the classes of the samples ``first`` to ``last - 1`` of one batch."""
        intercepted = _draw(rng, self.graph, self.noise, self.batch)
        counts = np.zeros((self.num_targets, self.num_classes), dtype=np.int64)
        for begin in range(first, last, self._step):
            chunk = slice(begin, min(begin + self._step, last))
            label = self._labels(intercepted.kept[chunk], intercepted.hidden[chunk])
            target = np.tile(np.arange(self.num_targets), len(label))
            np.add.at(counts, (target, label.ravel()), 1)
        return counts

    def _labels(self, kept: BoolArray, hidden: BoolArray) -> IntArray:
        """Predicts for each target in some samples, shape ``[samples, targets]``."""
        num_nodes = self.graph.num_nodes
        copies = len(hidden)
        copy, arc = kept.nonzero()
        node = np.tile(np.arange(num_nodes), copies)
        ends = self._union.edge_index[:, arc] + copy * num_nodes
        own = None if self._own_logits is None else self._own_logits.repeat(copies, 1)
        values = self._union.values(arc)
        label = self._union.labels(node, ends, values, hidden=hidden.ravel(), added=own)
        return label.reshape(-1, num_nodes)[:, self.rows]


class Intercepted(NamedTuple):
    """What noise deletes in some samples.

    Attributes:
        kept: Which edges are kept, shape ``[samples, num_edges]``.
        hidden: Which nodes lose their features, shape ``[samples, num_nodes]``.
    """

    kept: BoolArray
    hidden: BoolArray


def _draw(rng: np.random.Generator, graph: CanonicalGraph, noise: InterceptionNoise, samples: int) -> Intercepted:
    kept = np.ones((samples, graph.num_edges), dtype=bool)
    hidden = np.zeros((samples, graph.num_nodes), dtype=bool)
    kept.reshape(-1)[successes(rng, kept.size, noise.p_delete)] = False
    hidden.reshape(-1)[successes(rng, hidden.size, noise.p_ablate)] = True
    return Intercepted(kept, hidden)


@dataclass(frozen=True)
class Interception(Smoothing):
    """Votes over graphs in which directed edges and the features of nodes are deleted.

    Node classification only. Covers any features of some existing nodes (``Budget(change_features=…)``, and
    ``target_features`` for the target's own), and nothing else: the attacker adds no edge and no node.

    Attributes:
        p_delete: Probability that a directed edge is deleted.
        p_ablate: Probability that the features of a node are deleted: they become zeros.
        hops: A prediction depends on features of nodes at most this many edges away; the number of message-passing
            layers of most models. The model is probed for it.
        skip: Whether the logits of the model without edges and noise are added to those of each noisy graph, in
            training too: the paper's skip connection. A target then sees its own features, which are not covered.

    Example:
        >>> Interception(p_ablate=0.9).noise(1).unit
        'other node with changed features'
    """

    method: ClassVar[str] = "interception"

    p_delete: float = 0.3
    p_ablate: float = 0.85
    hops: int = 3
    skip: bool = field(default=False, repr=False)  # files of certificates without it stay as they were

    def noise(self, num_features: int) -> InterceptionNoise:
        """Returns the noise. The number of features does not matter to it."""
        return InterceptionNoise(self.p_delete, self.p_ablate, self.hops, self.skip)

    @property
    def adds_own_logits(self) -> bool:
        """Whether there is a skip connection."""
        return self.skip

    def drawn(self) -> dict[str, float]:
        """Returns the settings that samples depend on. Paths are counted apart from them."""
        settings: dict[str, float] = {"p_delete": self.p_delete, "p_ablate": self.p_ablate}
        if self.skip:
            settings["skip"] = True
        return settings

    def sources(self, graph: CanonicalGraph, rows: IntArray) -> Sources:
        """Finds the nodes that reach each target, with their paths."""
        return find_sources(graph, rows, self.noise(1))

    def _noisy_parts(self, graph: CanonicalGraph, rng: np.random.Generator) -> dict[str, torch.Tensor | None]:
        intercepted = _draw(rng, graph, self.noise(1), 1)
        arc = np.flatnonzero(intercepted.kept[0])
        part = graph.with_edges(torch.from_numpy(arc))
        hidden = torch.from_numpy(intercepted.hidden[0])
        x = graph.x.masked_fill(hidden[:, None], 0)
        return {"edge_index": part.edge_index, "x": x, **part.edge_values}

    def _sampler(
        self, bound_model: ModelAdapter, graph: CanonicalGraph, rows: IntArray, naive: bool
    ) -> InterceptionSampler:
        self._require_nodes(graph)
        return InterceptionSampler(bound_model, graph, rows, self.noise(1), naive)

    def _require_nodes(self, graph: CanonicalGraph) -> None:
        """Refuses graph classification."""
        if graph.task == "graph":
            raise SettingsError(
                "Interception is for node classification: every node of a graph takes part in its readout. "
                "Pass one graph and target nodes."
            )

    def _check_model(self, report: AuditReport, engine: EngineName) -> None:
        if "nodes" not in report.fit_for:  # features must reach the target along edges, and in no other way
            raise ModelContractError(str(report))

    def _probe(self, bound_model: ModelAdapter, graph: CanonicalGraph, rows: IntArray) -> None:
        """Probes whether features of nodes that are farther away than ``hops`` edges change a prediction."""
        self._require_nodes(graph)
        x = graph.x.to(bound_model.dtype)
        values = bound_model.edge_values(graph)
        clean = bound_model(x, graph.edge_index, values)
        probed = np.random.default_rng(0).permutation(rows)[:_PROBED]
        for row in probed.tolist():
            far = ~self._within_hops(graph, row)
            corrupt = x.masked_fill(far[:, None], torch.nan)
            if not torch.equal(bound_model(corrupt, graph.edge_index, values)[row], clean[row]):
                raise ModelContractError(
                    f"the prediction in row {row} depends on features of nodes more than {self.hops} edges away: "
                    f"state the number of hops of the model, Interception(hops=…)."
                )

    def _within_hops(self, graph: CanonicalGraph, row: int) -> torch.Tensor:
        """Returns which nodes reach a node over at most ``hops`` edges, shape ``[num_nodes]``."""
        source, head = graph.edge_index
        near = torch.zeros(graph.num_nodes, dtype=torch.bool)
        near[row] = True
        for _ in range(self.hops):
            near = near.index_fill(0, source[near[head]], True)
        return near
