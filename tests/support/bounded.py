"""Random models and graphs on which bounds on rounding are tried."""

import copy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric import nn as pyg
from torch_geometric.data import Data

from agnncert.engine.bounded_model import BoundedModel, NotBoundedError
from agnncert.engine.bounded_rows import BoundedRows
from agnncert.engine.error_bounds import DOUBLE, SINGLE, Precision
from agnncert.models.build import build_model

OWN = ("gcn", "sage", "gin", "gat", "resgcn", "mlp", "rgcn")
STACKS = {"GCN": pyg.GCN, "GraphSAGE": pyg.GraphSAGE, "GIN": pyg.GIN, "GAT": pyg.GAT}
NAMES = (*OWN, *STACKS)
ACTIVATIONS = {"relu": nn.ReLU, "elu": nn.ELU, "leaky_relu": nn.LeakyReLU, "tanh": nn.Tanh, "gelu": nn.GELU}


@dataclass(frozen=True)
class Case:
    """A model and a graph.

    Attributes:
        name: Name of the model.
        model: The model in float32.
        x: Features.
        edge_index: Edges.
        values: What they carry.
        batch: Graph of each node, or ``None``.
    """

    name: str
    model: Any
    x: Tensor
    edge_index: Tensor
    values: dict[str, Tensor]
    batch: Tensor | None

    def bounded(self, precision: Precision) -> BoundedRows | None:
        """Logits with bounds; ``None`` if there are none in this precision."""
        model = copy.deepcopy(self.model).to(precision.dtype)
        values = {name: value.to(precision.dtype) for name, value in self.values.items()}
        try:
            return BoundedModel(model, precision)(self.x.to(precision.dtype), self.edge_index, values, self.batch)
        except NotBoundedError:
            return None

    @torch.no_grad()
    def of_module(self, dtype: torch.dtype) -> Tensor:
        """Logits of the module itself."""
        values = {name: value.to(dtype) for name, value in self.values.items()}
        batch = () if self.batch is None else (self.batch,)
        return copy.deepcopy(self.model).to(dtype)(self.x.to(dtype), self.edge_index, *batch, **values)


@torch.no_grad()
def random_case(seed: int, largest: int = 150) -> Case:
    """A random model with random weights on a random graph: a star, a sparse or a dense one, with or without loops."""
    random = torch.Generator().manual_seed(seed)

    def number(low: int, high: int) -> int:
        return int(torch.randint(low, high, (1,), generator=random))

    num_nodes = number(2, largest)
    width = number(1, 120)
    edge_index = _random_edges(num_nodes, number(0, 3), random)
    x = torch.randn(num_nodes, width, generator=random) * 10.0 ** number(-6, 7)
    if number(0, 2):
        x = (x > 0).float()
    if number(0, 4) == 0:
        x[:, : width // 2] += 1e4
    name = NAMES[number(0, len(NAMES))]
    values = {}
    if name in ("gcn", "resgcn") and number(0, 2):
        values["edge_weight"] = 9 * torch.rand(edge_index.size(1), generator=random)
    if name == "rgcn":
        values["edge_attr"] = torch.randn(edge_index.size(1), 3, generator=random)
    num_classes = number(2, 8)
    options = {
        "hidden_channels": (8, 64)[number(0, 2)],
        "num_layers": number(1, 5),
        "act": [*ACTIVATIONS][number(0, len(ACTIVATIONS))],
        "norm": (None, "layer_norm", "batch_norm")[number(0, 3)],
        "jk": (None, "cat", "max")[number(0, 3)],
    }
    on_graphs = name in OWN and number(0, 3) == 0
    torch.manual_seed(seed)
    if name in OWN:
        data = Data(x=x, edge_index=edge_index, y=torch.arange(num_nodes) % num_classes, **values)
        if on_graphs:
            options |= {"task": "graph", "readout": ("mean", "sum", "max")[number(0, 3)]}
        if number(0, 4) == 0:
            options["scale"] = "standard"
        model = build_model(name, data, out_channels=num_classes, seed=seed, **options)
    else:
        model = _stack(name, width, num_classes, options)
    _shake_weights(model.eval(), number, random)
    batch = None
    if on_graphs:
        numbers = torch.sort(torch.randint(0, number(1, 6), (num_nodes,), generator=random)).values
        batch = torch.unique(numbers, return_inverse=True)[1]
        is_kept = batch[edge_index[0]] == batch[edge_index[1]]
        edge_index = edge_index[:, is_kept]
        values = {key: value[is_kept] for key, value in values.items()}
    return Case(name, model, x, edge_index, values, batch)


def _random_edges(num_nodes: int, kind: int, random: torch.Generator) -> Tensor:
    if kind == 0:
        leaves = torch.arange(1, num_nodes)
        star = torch.stack([leaves, torch.zeros_like(leaves)])
        edges = torch.cat([star, star.flip(0)], dim=1)
    else:
        most = num_nodes * (2 if kind == 1 else 20)
        edges = torch.randint(0, num_nodes, (2, int(torch.randint(0, most, (1,), generator=random))), generator=random)
        edges = torch.unique(edges, dim=1)
    return edges[:, torch.randperm(edges.size(1), generator=random)]


def _stack(name: str, width: int, num_classes: int, options: dict[str, Any]) -> Any:
    extra = {"heads": 2} if name == "GAT" else {}
    if options["norm"] == "layer_norm":
        extra["norm_kwargs"] = {"mode": "node"}
    return STACKS[name](
        width,
        options["hidden_channels"],
        options["num_layers"],
        num_classes,
        act=ACTIVATIONS[options["act"]](),
        norm=options["norm"],
        jk=options["jk"],
        **extra,
    )


def _shake_weights(model: Any, number: Any, random: torch.Generator) -> None:
    for parameter in model.parameters():
        parameter.mul_(10.0 ** (number(-2, 3) / 2))
        parameter.add_(torch.randn(parameter.shape, generator=random) * 0.1 * number(0, 2))
    for name, buffer in model.named_buffers():
        if buffer.is_floating_point() and not name.endswith(".eps"):
            buffer.copy_(torch.rand(buffer.shape, generator=random) + 0.1)


@torch.no_grad()
def largest_ratio(seed: int) -> float:
    """The largest error of a logit, as a share of its bound: in float32, and in float64 against the module itself.

    The truth lies within the bound of float64 around what float64 computes. That is allowed for.
    """
    case = random_case(seed)
    double = case.bounded(DOUBLE)
    assert double is not None
    slack = double.bounds.error
    of_module = (case.of_module(torch.float64) - double.values).abs().amax(dim=1)
    ratios = [_ratio(of_module, 2 * slack)]  # both may be wrong
    single = case.bounded(SINGLE)
    if single is not None:
        error = (single.values.double() - double.values).abs().amax(dim=1)
        ratios.append(_ratio((error - slack).clamp(min=0), single.bounds.error))
    return max(ratios)


def _ratio(error: Tensor, bound: Tensor) -> float:
    is_bounded = torch.isfinite(bound) & torch.isfinite(error)
    if not bool(is_bounded.any()):
        return 0.0
    return float((error / bound.clamp(min=1e-300))[is_bounded].max())
