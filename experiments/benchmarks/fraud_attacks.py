"""Attacks on stacked votes: the worst neighbours that the data knows come, the best ones go, and the model is asked again.

The target and its neighbours are cut out with their features and edge values, changed, and classified by the model
itself. With one level nothing else in the graph matters. The bounds of the certificate are not used to find attacks.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from agnncert.stacked.model import StackedModel, pairs_of

POOL = 3_000  # edges, or nodes, whose features and values an attacker may copy
MOST = 10


@torch.no_grad()
def label_of(model: StackedModel, x: Tensor, attr: Tensor | None, back: Tensor | None) -> int:
    """Label of a node (row 0) whose neighbours are all other rows; ``attr`` leads to it and ``back`` away from it."""
    others, hub = torch.arange(1, len(x)), torch.zeros(len(x) - 1, dtype=torch.int64)
    edge_index = torch.cat([torch.stack([others, hub]), torch.stack([hub, others])], dim=1)
    values = {} if attr is None or back is None else {"edge_attr": torch.cat([attr, back]).double()}
    return int(model(x.double(), edge_index, **values)[0].argmax())


@torch.no_grad()
def helpfulness(model: StackedModel, x: Tensor, attr: Tensor | None, back: Tensor | None, label: int) -> Tensor:
    """By how much the vote of each neighbour (all rows but the first) favours a label of two."""
    others, hub = torch.arange(1, len(x)), torch.zeros(len(x) - 1, dtype=torch.int64)
    edge_index = torch.cat([torch.stack([others, hub]), torch.stack([hub, others])], dim=1)
    table = None if attr is None or back is None else torch.cat([attr, back]).double()
    pairs = pairs_of(edge_index, torch.zeros(1, dtype=torch.int64), len(x))
    votes = model.votes(model.own_logits(x.double()), pairs, edge_index, table)
    return votes[:, label] - votes[:, 1 - label]


def attacks(model: StackedModel, data: Any, certificate: Any, number: int = 60, seed: int = 0) -> dict[str, int]:
    """Attacks targets at their radius and one beyond it; how many were tried, and how many flipped."""
    exact, random = model.double().eval(), np.random.default_rng(seed)
    radius = certificate.structure_radius
    chosen = random.permutation(np.flatnonzero(certificate.degree > 0))
    chosen = np.concatenate([chosen[(radius[chosen] > 0) & (radius[chosen] <= MOST)], chosen])[:number]
    into, away = _sorted_arcs(data.edge_index), _sorted_arcs(data.edge_index.flip(0))
    pool = random.choice(data.edge_index.size(1), min(POOL, data.edge_index.size(1)), replace=False)
    pool_nodes = into[0][pool]
    found = {"within": 0, "flipped within": 0, "beyond": 0, "flipped beyond": 0}
    for place in dict.fromkeys(chosen.tolist()):
        target, label = int(certificate.row[place]), int(certificate.label[place])
        span = slice(*np.searchsorted(into[1], [target, target + 1]))
        near = torch.from_numpy(into[0][span])
        attr = back = new_attr = new_back = None
        if exact.edge_channels:  # edges come in both directions, so both lists have the same neighbours
            assert np.array_equal(into[0][span], away[0][span])
            attr, back = data.edge_attr[into[2][span]], data.edge_attr[away[2][span]]
            new_attr, new_back = data.edge_attr[into[2][pool]], data.edge_attr[away[2][pool]]
        own = data.x[target : target + 1]
        helps = helpfulness(exact, torch.cat([own, data.x[near]]), attr, back, label)
        worst = int(helpfulness(exact, torch.cat([own, data.x[pool_nodes]]), new_attr, new_back, label).argmin())
        order = torch.argsort(helps)  # the most helpful neighbours last
        sure = min(int(radius[place]), MOST)
        for size in (sure, sure + 1):
            flipped = False
            for gone in range(min(size, len(near)) + 1):
                kept = order[: len(near) - gone]
                copies = [worst] * (size - gone)
                x = torch.cat([own, data.x[near[kept]], data.x[pool_nodes[copies]]])
                some = attr is None or torch.cat([attr[kept], new_attr[copies]])  # type: ignore[index]
                more = back is None or torch.cat([back[kept], new_back[copies]])  # type: ignore[index]
                flipped |= label_of(exact, x, None if attr is None else some, None if back is None else more) != label
            where = "within" if size <= int(radius[place]) else "beyond"
            found[where] += 1
            found[f"flipped {where}"] += flipped
    model.float()
    return found


def _sorted_arcs(edge_index: Tensor) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sources, heads and numbers of all arcs, by head and then source."""
    source, head = edge_index.numpy()
    order = np.lexsort((source, head))
    return source[order], head[order], order
