"""A model that kills the first worker that runs it; the driver, and every later worker, finds it well-behaved."""

import os
import signal
from pathlib import Path

import torch
from torch import Tensor
from torch_geometric.nn import GCNConv


class Mortal(torch.nn.Module):
    """A GCN layer. ``flag`` is written by the worker that dies, so that only one does."""

    def __init__(self, features: int, classes: int, flag: str | None = None) -> None:
        super().__init__()
        self.layer = GCNConv(features, classes)
        self.driver, self.flag = os.getpid(), flag

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        if self.flag is not None and os.getpid() != self.driver:
            try:
                Path(self.flag).touch(exist_ok=False)
            except FileExistsError:
                pass
            else:
                os.kill(os.getpid(), signal.SIGKILL)
        return self.layer(x, edge_index)
