"""Attacks on message-interception smoothing with exact probabilities: no certified radius may be contradicted.

    python -m experiments.benchmarks.interception [--attacks 100000]

draws tiny graphs, random networks and noise. All outcomes of the noise are enumerated, so the probability of every class
is exact before and after an attack, and what ``InterceptionNoise`` certifies is tried without any sampling error.
Attackers give random features, of any scale, to random nodes. Writes experiments/results/interception.json.
"""

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GCNConv, SAGEConv

from agnncert.graphs.canonical import canonical
from agnncert.graphs.graph import CanonicalGraph
from agnncert_peers.bounds import ClassBounds
from agnncert_peers.interception_noise import InterceptionNoise
from agnncert_peers.paths import find_sources

FILE = Path(__file__).parent.parent / "results" / "interception.json"
CLASSES, FEATURES = 3, 3
MOST_COINS = 12  # edges and nodes of a graph: every one doubles the number of outcomes
ATTACKS_PER_WORLD = 400


class Network(nn.Module):
    """Two random layers."""

    def __init__(self, layer: type[nn.Module]) -> None:
        super().__init__()
        self.first, self.second = layer(FEATURES, 8), layer(8, CLASSES)
        for parameter in self.parameters():
            nn.init.normal_(parameter, std=1.0)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.second(self.first(x, edge_index).tanh(), edge_index)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class World:
    """A tiny graph, a network, noise, and all outcomes of the noise.

    Attributes:
        graph: The graph.
        model: The network, of two hops.
        noise: The noise.
        chance: Probability of each outcome, shape ``[outcomes]``.
        visible: Whether each node keeps its features, shape ``[outcomes, num_nodes]``.
        edge_index: Edges of the union of all outcomes.
    """

    graph: CanonicalGraph
    model: Network
    noise: InterceptionNoise
    chance: npt.NDArray[np.float64]
    visible: Tensor
    edge_index: Tensor

    @classmethod
    def draw(cls, seed: int) -> "World":
        """A random world."""
        rng = np.random.default_rng(seed)
        torch.manual_seed(seed)
        size = int(rng.integers(3, 6))
        edges = [(u, v) for u in range(size) for v in range(size) if u != v]
        some = rng.permutation(len(edges))[: int(rng.integers(2, min(len(edges), MOST_COINS - size) + 1))]
        x = torch.from_numpy(rng.normal(size=(size, FEATURES))).float()
        graph = canonical(Data(x=x, edge_index=torch.tensor([edges[k] for k in some]).t()))
        noise = InterceptionNoise(float(rng.choice([0.0, 0.2, 0.5, 0.8])), float(rng.choice([0.3, 0.6, 0.8, 0.9])), 2)
        num_edges = graph.num_edges
        coins = (np.arange(2 ** (num_edges + size))[:, None] >> np.arange(num_edges + size)) & 1  # 1: deleted
        rates = np.concatenate([np.full(num_edges, noise.p_delete), np.full(size, noise.p_ablate)])
        chance = np.where(coins == 1, rates, 1 - rates).prod(axis=1)
        coins, chance = coins[chance > 0], chance[chance > 0]
        outcome, edge = (coins[:, :num_edges] == 0).nonzero()
        union = graph.edge_index[:, edge] + torch.from_numpy(outcome) * size
        visible = torch.from_numpy(coins[:, num_edges:] == 0)
        layer = (GCNConv, SAGEConv, GATConv)[seed % 3]
        return cls(graph, Network(layer).eval(), noise, chance, visible, union)

    @torch.no_grad()
    def probabilities(self, x: Tensor) -> npt.NDArray[np.float64]:
        """Exact probability of every class at every node, shape ``[num_nodes, classes]``."""
        rows = (self.visible[:, :, None] * x).reshape(-1, FEATURES)
        label = self.model(rows, self.edge_index).argmax(1).reshape(len(self.chance), -1)
        found = torch.nn.functional.one_hot(label, CLASSES).numpy()
        return np.asarray(np.einsum("o,onc->nc", self.chance, found))

    def bounds(self) -> ClassBounds:
        """Exact probabilities of the most probable and the next class at every node, as a certificate uses them."""
        found = self.probabilities(self.graph.x)
        ordered = np.sort(found, axis=1)
        rows = np.arange(self.graph.num_nodes)
        silent = self.noise.silent(find_sources(self.graph, rows, self.noise))
        return ClassBounds(found.argmax(axis=1), ordered[:, -1], ordered[:, -2], silent)

    def attacks(self, rng: np.random.Generator) -> Iterator[tuple[npt.NDArray[np.int64], Tensor]]:
        """Attacked nodes, and the features of all nodes after the attack."""
        size = self.graph.num_nodes
        while True:
            nodes = rng.permutation(size)[: int(rng.integers(1, size + 1))]
            x = self.graph.x.clone()
            x[nodes] = torch.from_numpy(rng.normal(size=(len(nodes), FEATURES)) * rng.choice([1, 10, 1000])).float()
            yield nodes, x


def attack(world: World, count: int, seed: int) -> Counter[str]:
    """How many of some attacks were certified against, how many changed a label, and how many did both."""
    rng, found = np.random.default_rng(seed), Counter[str]()
    bounds, clean = world.bounds(), world.probabilities(world.graph.x)
    for (nodes, x), _ in zip(world.attacks(rng), range(count), strict=False):
        after = world.probabilities(x)
        own = np.isin(np.arange(len(after)), nodes)
        others = len(nodes) - own.astype(float)
        holds = np.where(
            own, world.noise.withstands(others, True, bounds), world.noise.withstands(others, False, bounds)
        )
        changed = after.argmax(axis=1) != bounds.label
        assert bounds.silent is not None
        column = np.minimum(others, bounds.silent.shape[1] - 1).astype(int)
        listed = others < bounds.silent.shape[1]  # of more nodes the list says nothing, and nothing is certified
        loud = 1 - bounds.silent[np.arange(len(after)), column] * np.where(own, world.noise.p_ablate, 1.0)
        moved = np.abs(after - clean).max(axis=1)
        beyond = listed & (moved > loud + 1e-9) & (loud < 0.5)
        found["attacked while certified"] += int(holds.sum())
        found["of them with other probabilities"] += int((holds & (moved > 0)).sum())
        found["of them with another label"] += int((holds & changed).sum())
        found["attacked beyond"] += int((~holds).sum())
        found["of those with another label"] += int((~holds & changed).sum())
        found["probabilities that moved farther than proved"] += int(beyond.sum())
    return found


def main() -> None:
    """Attacks until enough were tried against what is certified, and writes the record."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--attacks", type=int, default=100_000, help="attacks within what is certified that change a probability"
    )
    parser.add_argument("--out", type=Path, default=FILE)
    options = parser.parse_args()
    torch.set_num_threads(1)
    total, worlds, started = Counter[str](), 0, time.perf_counter()
    while total["of them with other probabilities"] < options.attacks:
        total += attack(World.draw(worlds), ATTACKS_PER_WORLD, worlds)
        worlds += 1
    names = (
        "attacked while certified",
        "of them with other probabilities",
        "of them with another label",
        "attacked beyond",
        "of those with another label",
    )
    names += ("probabilities that moved farther than proved",)
    record = {"command": "python -m experiments.benchmarks.interception", "graphs": worlds}
    record |= {name: total[name] for name in names} | {"seconds": round(time.perf_counter() - started)}
    options.out.write_text(json.dumps(record, indent=1) + "\n")
    print(json.dumps(record, indent=1))


if __name__ == "__main__":
    main()
