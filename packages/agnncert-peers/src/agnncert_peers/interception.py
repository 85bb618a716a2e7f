"""Message-interception smoothing (Scholten et al., NeurIPS 2022), against other features of existing nodes.

Unlike the released code: every target counts in certified accuracy, also one with fewer nodes in reach than the size of
the attack; the paths are counted for the number of hops that the defence states and the model is probed for; ablated
features are zeros instead of a learned vector; there is no connection that skips the noise.
"""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch

from agnncert.auditing.model_audit import AuditReport
from agnncert.certificates.votes import IntArray
from agnncert.engine.adapter import ModelAdapter
from agnncert.engine.union import CHUNK_ROWS
from agnncert.engine.votes import EngineName
from agnncert.errors import ModelContractError, SettingsError
from agnncert.graphs.graph import CanonicalGraph
from agnncert_peers.noise import InterceptionNoise, Sources
from agnncert_peers.sampling import BatchedCalls, runs, successes
from agnncert_peers.smoothing import Smoothing

_BATCH_WORK = 4_000_000  # coins of one batch: a few dozen megabytes of working memory
_LARGEST_BATCH = 1000
_MOST_PATHS = 5_000_000  # that are followed at once, and that may lead to one target
_PROBED = 16  # targets whose prediction is probed for features from farther away


def find_sources(graph: CanonicalGraph, rows: IntArray, noise: InterceptionNoise) -> Sources:
    """The nodes that reach each target most often, with their paths: see ``Sources``.

    Args:
        graph: A canonical graph; every copy of an edge can be deleted on its own.
        rows: Rows of the targets.
        noise: Says how far paths lead, and which nodes it intercepts least.

    Raises:
        SettingsError: There are more than five million paths to one target.
    """
    source, head = graph.edge_index.numpy()
    order = np.argsort(head, kind="stable")
    into, first = source[order], np.searchsorted(head[order], np.arange(graph.num_nodes + 1))
    lists: list[IntArray] = []
    at_once, begin = len(rows), 0
    while begin < len(rows):
        counts = _count_paths(into, first, rows[begin : begin + at_once], noise.hops)
        if counts is None:
            if at_once == 1:
                raise SettingsError(
                    f"more than {_MOST_PATHS:,} paths of up to {noise.hops} edges lead to the node in row "
                    f"{rows[begin]}: leave it out of the targets, or take a model with fewer hops."
                )
            at_once = max(1, at_once // 8)
            continue
        lists += [_most_dangerous(paths, noise) for paths in counts]
        begin += at_once
    start = np.cumsum([0, *map(len, lists)], dtype=np.int64)
    return Sources(start, np.concatenate([np.empty((0, noise.hops), dtype=np.int64), *lists]))


def _count_paths(into: IntArray, first: IntArray, rows: IntArray, hops: int) -> list[IntArray] | None:
    """Paths of each length from each node that reaches a target, for each target; ``None`` if they are too many.

    Args:
        into: Nodes that edges come from, grouped by the node that they lead to.
        first: Edges to node ``u`` are ``first[u]:first[u + 1]``.
        rows: Rows of the targets.
        hops: Length of the longest paths.
    """
    followed = rows[:, None]  # one path in each line, backwards from its target
    target = np.arange(len(rows))
    ends = []
    for length in range(hops):
        degree = first[followed[:, -1] + 1] - first[followed[:, -1]]
        if degree.sum() > _MOST_PATHS:
            return None
        onward = into[runs(first[followed[:, -1]], degree)]
        target, followed = np.repeat(target, degree), np.repeat(followed, degree, axis=0)
        new = (followed != onward[:, None]).all(axis=1)  # no path passes a node twice
        target, followed = target[new], np.column_stack([followed, onward])[new]
        ends.append(np.stack([target, followed[:, -1], np.full(len(target), length)]))
    where, node, length = np.concatenate(ends, axis=1)
    pairs, place = np.unique(np.stack([where, node]), axis=1, return_inverse=True)
    paths = np.zeros((pairs.shape[1], hops), dtype=np.int64)
    np.add.at(paths, (place.reshape(-1), length), 1)
    return np.split(paths, np.searchsorted(pairs[0], np.arange(1, len(rows))))


def _most_dangerous(paths: IntArray, noise: InterceptionNoise) -> IntArray:
    """The lines that matter for one target: see ``Sources``."""
    silences = noise.silences(paths)
    order = np.lexsort([*paths.T, silences])
    enough = int((np.cumprod(silences[order]) > 0.5).sum()) + 1
    return paths[order[:enough]]


class InterceptionSampler:
    """Deletes edges and features of nodes, and counts the predictions of the target nodes.

    Args:
        call: The model, bound to the graph.
        graph: A canonical graph.
        rows: Rows of the target nodes.
        noise: Probabilities of deletion.
        naive: Run the model on one noisy graph at a time.
    """

    def __init__(
        self, call: ModelAdapter, graph: CanonicalGraph, rows: IntArray, noise: InterceptionNoise, naive: bool = False
    ) -> None:
        self.graph, self.rows, self.noise = graph, rows, noise
        self.num_targets, self.num_classes = len(rows), call.num_classes
        self.batch = int(np.clip(_BATCH_WORK / (graph.num_nodes + graph.num_edges), 1, _LARGEST_BATCH))
        self._calls = BatchedCalls(call, graph)
        self._step = 1 if naive else max(1, CHUNK_ROWS // graph.num_nodes)
        self._own = self._calls.logits_without_edges() if noise.skip else None

    def counts(self, rng: np.random.Generator, first: int, last: int) -> IntArray:
        """Class counts of the samples ``first`` to ``last - 1`` of one batch."""
        kept, hidden = _draw(rng, self.graph, self.noise, self.batch)
        counts = np.zeros((self.num_targets, self.num_classes), dtype=np.int64)
        for begin in range(first, last, self._step):
            here = slice(begin, min(begin + self._step, last))
            copy, arc = kept[here].nonzero()
            node = np.tile(np.arange(self.graph.num_nodes), len(hidden[here]))
            ends = self._calls.edge_index[:, arc] + copy * self.graph.num_nodes
            own = None if self._own is None else self._own.repeat(len(hidden[here]), 1)
            label = self._calls.labels(node, ends, self._calls.values(arc), hidden=hidden[here].ravel(), added=own)
            label = label.reshape(-1, self.graph.num_nodes)[:, self.rows]
            np.add.at(counts, (np.tile(np.arange(self.num_targets), len(label)), label.ravel()), 1)
        return counts


def _draw(rng: np.random.Generator, graph: CanonicalGraph, noise: InterceptionNoise, samples: int) -> Any:
    """Which edges are kept, ``[samples, num_edges]``, and which nodes lose their features, ``[samples, num_nodes]``."""
    kept = np.ones((samples, graph.num_edges), dtype=bool)
    hidden = np.zeros((samples, graph.num_nodes), dtype=bool)
    kept.reshape(-1)[successes(rng, kept.size, noise.p_delete)] = False
    hidden.reshape(-1)[successes(rng, hidden.size, noise.p_ablate)] = True
    return kept, hidden


@dataclass(frozen=True)
class Interception(Smoothing):
    """Votes over graphs in which directed edges and the features of nodes are deleted.

    Node classification only. Covers any features of some existing nodes (``Budget(change_features=…)``, and
    ``target_features`` for the target's own), and nothing else: the attacker adds no edge and no node.

    Attributes:
        p_delete: Probability that a directed edge is deleted.
        p_ablate: Probability that the features of a node are deleted: they become zeros.
        hops: A prediction depends on features of nodes at most so many edges away; the number of message-passing layers
            of most models. The model is probed for it.
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
        """The noise; the number of features does not matter to it."""
        return InterceptionNoise(self.p_delete, self.p_ablate, self.hops, self.skip)

    @property
    def adds_own_logits(self) -> bool:
        """Whether there is a skip connection."""
        return self.skip

    def drawn(self) -> dict[str, float]:
        """The settings that samples depend on; paths are counted apart from them."""
        return {"p_delete": self.p_delete, "p_ablate": self.p_ablate} | ({"skip": True} if self.skip else {})

    def sources(self, graph: CanonicalGraph, rows: IntArray) -> Sources:
        """The nodes that reach each target, with their paths."""
        return find_sources(graph, rows, self.noise(1))

    def _noisy_parts(self, graph: CanonicalGraph, rng: np.random.Generator) -> dict[str, torch.Tensor | None]:
        kept, hidden = _draw(rng, graph, self.noise(1), 1)
        part = graph.with_edges(torch.from_numpy(kept[0].nonzero()[0]))
        x = graph.x.masked_fill(torch.from_numpy(hidden[0])[:, None], 0)
        return {"edge_index": part.edge_index, "x": x, **part.edge_values}

    def _sampler(self, call: ModelAdapter, graph: CanonicalGraph, rows: IntArray, naive: bool) -> InterceptionSampler:
        self._require_nodes(graph)
        return InterceptionSampler(call, graph, rows, self.noise(1), naive)

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

    def _probe(self, call: ModelAdapter, graph: CanonicalGraph, rows: IntArray) -> None:
        """Probes whether features of nodes that are farther away than ``hops`` edges change a prediction."""
        self._require_nodes(graph)
        source, head = graph.edge_index
        x, values = graph.x.to(call.dtype), call.edge_values(graph)
        clean = call(x, graph.edge_index, values)
        few = np.random.default_rng(0).permutation(rows)[:_PROBED]
        for row in few.tolist():
            near = torch.zeros(graph.num_nodes, dtype=torch.bool)
            near[row] = True
            for _ in range(self.hops):
                near = near.index_fill(0, source[near[head]], True)
            corrupt = x.masked_fill(~near[:, None], torch.nan)
            if not torch.equal(call(corrupt, graph.edge_index, values)[row], clean[row]):
                raise ModelContractError(
                    f"the prediction in row {row} depends on features of nodes more than {self.hops} edges away: "
                    f"state the number of hops of the model, Interception(hops=…)."
                )
