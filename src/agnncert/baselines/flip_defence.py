"""What the defences by flips, RS and sparsity-aware RS, have in common."""

from abc import abstractmethod

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from agnncert.baselines.defence import Smoothing
from agnncert.baselines.flip_sampler import FlipSampler, check_flippable
from agnncert.baselines.flips import Flippable
from agnncert.contract import AuditReport
from agnncert.engines import EngineName
from agnncert.engines.call import Caller
from agnncert.errors import ModelContractError
from agnncert.graph import EDGE_VALUES
from agnncert.smoothing import FlipNoise
from agnncert.votes import IntArray


class FlipDefence(Smoothing):
    """A defence that votes over graphs with flipped edges and features."""

    def _noisy_parts(self, graph: Data, rng: np.random.Generator) -> dict[str, Tensor | None]:
        flippable = Flippable(graph, self.noise(int(graph.x.size(1))))
        adds = flippable.noise.p_add > 0
        check_flippable(flippable)
        flips = flippable.draw(rng, 1)
        ends, arc = flippable.edges(flips, 1)
        parts: dict[str, Tensor | None] = {"edge_index": torch.from_numpy(ends)}
        for name in [name for name in EDGE_VALUES if name in graph]:
            # Added edges have no values, so nobody's values are shown.
            parts[name] = None if adds else graph[name][torch.from_numpy(arc)]
        if flippable.noise.on_features:
            parts["x"] = flippable.features(flips, 1, graph.x.dtype)
        return parts

    @abstractmethod
    def noise(self, num_features: int) -> FlipNoise:
        """The noise, for nodes with so many features."""

    def _sampler(self, call: Caller, graph: Data, rows: IntArray, naive: bool) -> FlipSampler:
        return FlipSampler(call, graph, rows, self.noise(int(graph.x.size(1))), naive)

    def _check_model(self, report: AuditReport, engine: EngineName) -> None:
        # Nothing is asked of the model but to be a function of the graph. Evaluating many graphs at once
        # asks for more.
        if "edges" not in report.fit_for:
            raise ModelContractError(str(report))
        if engine == "fast" and not report.ok:
            raise ModelContractError(
                f"{report}\nThis defence can do without, if noisy graphs are evaluated one by one: "
                'engine="naive".'
            )
