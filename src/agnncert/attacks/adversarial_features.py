"""Features that push a node's neighbours to a class: what an attacker gives to the nodes he injects or changes."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from agnncert.attacks.problem import Problem
from agnncert.proof.ballots import IntArray
from agnncert.voting.call import no_edges

SAMPLE = 32  # nodes that feature rows are tried on
SCALES = (1.0, 10.0, 100.0)
STEPS = 20
ENOUGH = 5.0  # larger leads, in logits, count as this one


@dataclass(frozen=True)
class AdversarialFeatures:
    """Feature rows that an attacker would inject, and existing nodes that he would join to a target.

    Attributes:
        features: All rows, shape ``[num_rows, num_features]``.
        lists: The same rows as lists, shared by all perturbations that use them.
        best: For every class the rows that push to it most often, best first.
        strong: For every class all nodes, sorted by how clearly each predicts it by itself, the clearest first.
    """

    features: Tensor
    lists: Sequence[list[float]]
    best: list[list[int]]
    strong: list[IntArray]

    def best_for(self, rivals: Sequence[int], count: int | None = None) -> list[int]:
        """The rows that push to one of these classes most often, ``count`` for each."""
        return [row for rival in rivals for row in self.best[rival][:count]]

    @classmethod
    def of(cls, problem: Problem, seed: int = 0, keep: int = 3) -> "AdversarialFeatures":
        """Tries copies of real nodes, as they are and magnified, and features found by gradient ascent.

        Args:
            problem: The model and its data.
            seed: Seed of the sample of nodes that feature rows are tried on.
            keep: Rows to keep for each class.
        """
        random = np.random.default_rng(seed)
        x = problem.graph.x.to(problem.call.dtype)
        sample = x[torch.from_numpy(random.choice(len(x), min(SAMPLE, len(x)), replace=False))]
        with torch.no_grad():  # every node by itself
            batch = torch.arange(len(x)) if problem.task == "graph" else None
            lead = _lead(problem.call(x, *no_edges(problem.graph, problem.call.takes), batch))
        strong = [np.argsort(-lead[:, k].numpy(), kind="stable") for k in range(problem.call.num_classes)]
        copies = [torch.unique(x[torch.from_numpy(nodes[:8].copy())], dim=0)[:3] for nodes in strong]
        ascended = _ascend(problem, sample, torch.stack([real.mean(0) for real in copies]))
        rows: list[Tensor] = []
        best: list[list[int]] = []
        for k, real in enumerate(copies):
            tried = torch.cat([scale * torch.cat([real, ascended[k : k + 1]]) for scale in SCALES])
            tried = tried[torch.isfinite(tried).all(1)]
            share, mean = _pushed(problem, sample, tried, k)
            order = np.lexsort([-mean, -share])[:keep]
            best.append(list(range(len(rows), len(rows) + len(order))))
            rows += [tried[int(r)] for r in order]
        features = torch.stack(rows).to(problem.graph.x.dtype)
        return cls(features, features.tolist(), best, strong)


def _ascend(problem: Problem, sample: Tensor, start: Tensor) -> Tensor:
    """For every class features that raise its score for the sampled nodes when joined to them, shape as ``start``."""
    label = torch.arange(len(start)).repeat_interleave(len(sample))
    length = start.norm(dim=1, keepdim=True)
    length = torch.where(length > 0, length, torch.ones_like(length))
    features = start.clone()
    for _ in range(STEPS):
        features = features.detach().requires_grad_(True)
        with torch.enable_grad():
            lead = _lead(_joined(problem, sample.repeat(len(start), 1), features[label]))
            won = lead.gather(1, label[:, None]).clamp(max=ENOUGH)
            slope = torch.autograd.grad(won.sum(), features, allow_unused=True)[0] if won.requires_grad else None
        if slope is None or not bool(torch.isfinite(slope).all()):
            break
        norm = slope.norm(dim=1, keepdim=True)
        features = features + torch.where(norm > 0, 0.5 * length * slope / norm, 0.0)
    return features.detach()


def _pushed(
    problem: Problem, sample: Tensor, tried: Tensor, label: int
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """How often each row pushes a sampled node to ``label``, and by how much."""
    others = tried.repeat_interleave(len(sample), dim=0)
    with torch.no_grad():
        lead = _lead(_joined(problem, sample.repeat(len(tried), 1), others))[:, label].view(len(tried), -1)
    return (lead > 0).float().mean(1).numpy(), lead.clamp(-ENOUGH, ENOUGH).mean(1).float().numpy()


def _joined(problem: Problem, targets: Tensor, others: Tensor) -> Tensor:
    """Logits of targets that have one neighbour each; in the graph task, of graphs that consist of the two."""
    count = len(targets)
    here = torch.arange(count)
    values = {
        name: torch.ones(2 * count, *problem.graph[name].shape[1:], dtype=problem.graph[name].dtype)
        for name in problem.call.takes
    }
    if problem.task == "graph":
        both = torch.stack([targets, others], dim=1).reshape(2 * count, -1)
        pairs = torch.stack([2 * here, 2 * here + 1])
        return problem.call(both, torch.cat([pairs, pairs.flip(0)], dim=1), values, torch.arange(2 * count) // 2)
    pairs = torch.stack([here + count, here])
    return problem.call(torch.cat([targets, others]), torch.cat([pairs, pairs.flip(0)], dim=1), values)[:count]


def _lead(logits: Tensor) -> Tensor:
    """By how much each class is ahead of the best other one, shape as ``logits``."""
    top = logits.topk(2, dim=1).values
    is_top = logits == top[:, :1]
    return logits - torch.where(is_top, top[:, 1:], top[:, :1])
