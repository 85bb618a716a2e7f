"""``build_model``: builds an untrained model from a name and the data."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, Literal

import torch
from torch_geometric.data import Data

from agnncert.errors import GraphError, SettingsError, did_you_mean
from agnncert.graphs.graph import infer_task
from agnncert.graphs.targets import class_numbers, graph_classes
from agnncert.models import gnn, stacked
from agnncert.models import wrappers as fallback
from agnncert.models.gnn import GNN, ModelConfig
from agnncert.models.wrappers import SCALES, Fallback, Scaling, training_rows

MODELS = {
    "gcn": "graph convolutional network",
    "sage": "GraphSAGE with mean aggregation",
    "gat": "graph attention network",
    "gin": "graph isomorphism network",
    "resgcn": "residual GCN, 6 layers",
    "rgcn": "relational GCN: a linear map for each column of edge_attr",
    "mlp": "no graph: each node by itself (a bag of nodes for graphs)",
}


def build_model(
    name: str,
    data: Data | Sequence[Data],
    *,
    hidden_channels: int = 64,
    num_layers: int | None = None,
    dropout: float = 0.0,
    act: str = "relu",
    norm: str | None = None,
    jk: str | None = None,
    heads: int = 4,
    readout: str = "mean",
    scale: str | None = None,
    task: Literal["node", "graph"] | None = None,
    out_channels: int | None = None,
    seed: int = 0,
) -> GNN:
    """Builds an untrained model that fits the data.

    Args:
        name: ``"gcn"``, ``"sage"``, ``"gat"``, ``"gin"``, ``"resgcn"``, ``"rgcn"`` or ``"mlp"``.
        data: A ``Data`` for node classification, or a list of ``Data`` for graph classification.
        hidden_channels: Width of the hidden layers.
        num_layers: Number of message-passing layers, hence of hops; 3, or 6 for ``"resgcn"``.
        dropout: Dropout after every hidden layer while training.
        act: Activation: ``"relu"``, ``"elu"``, ``"gelu"``, ``"leaky_relu"`` or ``"tanh"``.
        norm: ``None``, ``"batch_norm"`` (frozen in eval mode) or ``"layer_norm"`` (per node).
        jk: Jumping knowledge: ``None``, ``"last"``, ``"cat"`` or ``"max"`` of all layers' outputs, and a linear head.
        heads: Attention heads of ``"gat"``.
        readout: ``"mean"``, ``"sum"`` or ``"max"`` over the nodes of a graph.
        scale: ``None``, or ``"standard"``: features get mean 0 and deviation 1 on the training rows of ``data``; these
            numbers are stored in the model, like weights.
        task: ``"node"`` or ``"graph"``. Defaults to the task of ``data``.
        out_channels: Number of classes. Defaults to that of ``data``.
        seed: Seed of the initial weights; torch's global random state is not changed.

    Returns:
        A module called as ``model(x, edge_index)`` or ``model(x, edge_index, batch)``, in training mode.

    Raises:
        SettingsError: A name or value is not valid.

    Example:
        >>> edges = torch.tensor([[0, 1], [1, 0]])
        >>> data = Data(x=torch.rand(4, 5), edge_index=edges, y=torch.tensor([0, 2, 1, 0]))
        >>> model = build_model("gcn", data, hidden_channels=8, num_layers=2)
        >>> model(data.x, data.edge_index).shape
        torch.Size([4, 3])
    """
    task = task or infer_task(data)
    depth = num_layers if num_layers is not None else 6 if name == "resgcn" else 3
    model = _assemble(
        ModelConfig(
            name=name, task=task, in_channels=_num_features(data), hidden_channels=hidden_channels, num_layers=depth,
            out_channels=count_classes(data) if out_channels is None else out_channels, dropout=dropout, act=act,
            norm=norm, jk=jk, heads=heads, readout=readout, seed=seed, scale=scale,
            edge_channels=_edge_channels(data) if name == "rgcn" else None,
        )
    )  # fmt: skip
    if scale is not None:
        model.scaling = Scaling.of(training_rows(data))
    return model


def build_constant(data: Data | Sequence[Data], label: int, num_classes: int) -> GNN:
    """Builds a model that always votes for ``label``: a control whose vote depends on the size only."""
    model = build_model("mlp", data, hidden_channels=1, num_layers=1, readout="sum", out_channels=num_classes)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        last = model.lin if model.lin is not None else model.convs[-1]
        last.bias[label] = 1.0  # type: ignore[operator]
    return model.eval()


def build_from_config(config: Mapping[str, Any]) -> GNN | Fallback | stacked.StackedModel:
    """Builds the untrained model that ``config`` describes, a dictionary like ``model.config``."""
    if config.get("name") == fallback.NAME:
        parts = [config.get(name) for name in ("model", "without_edges")]
        if len(config) != 3 or not all(isinstance(part, Mapping) for part in parts):
            raise SettingsError(f"a fallback is described by its model and without_edges, not by {dict(config)}.")
        return Fallback(*(build_from_config(part) for part in parts if part is not None))
    if config.get("name") == stacked.NAME:
        return stacked.StackedModel.from_config(config, build_from_config)
    valid = [field.name for field in fields(ModelConfig)]
    for key in config:
        if key not in valid:
            raise SettingsError(f'a model has no setting "{key}": {did_you_mean(key, valid)}')
    missing = [key for key in ("name", "task", "in_channels", "out_channels") if key not in config]
    if missing:
        raise SettingsError(f"the description of the model lacks {', '.join(missing)}.")
    return _assemble(ModelConfig(**config))


def _assemble(settings: ModelConfig) -> GNN:
    _check(settings)
    reads = "attr" if settings.name == "rgcn" else "weight" if settings.name in gnn.WEIGHTED else ""
    cls = gnn.CLASSES[settings.task, reads]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        return cls(settings)


def _check(settings: ModelConfig) -> None:
    _one_of("model", settings.name, MODELS)
    _one_of("task", settings.task, ("node", "graph"))
    _one_of("act", settings.act, gnn.ACTIVATIONS)
    _one_of("readout", settings.readout, gnn.READOUTS)
    _one_of("norm", settings.norm, gnn.NORMS, optional=True)
    _one_of("scale", settings.scale, SCALES, optional=True)
    _one_of("jk", settings.jk, gnn.JUMPS, optional=True)
    counts = ("in_channels", "hidden_channels", "num_layers", "heads", *["edge_channels"] * (settings.name == "rgcn"))
    for key in counts:
        value = getattr(settings, key)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise SettingsError(f"{key} is {value!r}: expected a whole number of at least 1.")
    if settings.out_channels < 2:
        raise SettingsError(f"there are {settings.out_channels} class(es): a classifier needs at least two.")
    if not (isinstance(settings.dropout, int | float) and 0 <= settings.dropout < 1):
        raise SettingsError(f"dropout is {settings.dropout!r}: expected a number from 0 to below 1.")
    if settings.name == "gat" and settings.hidden_channels % settings.heads:
        raise SettingsError(
            f"hidden_channels={settings.hidden_channels} cannot be shared by heads={settings.heads}: "
            "choose a multiple of the number of heads."
        )


def _one_of(what: str, value: object, valid: Iterable[str], optional: bool = False) -> None:
    if value not in list(valid) and not (optional and value is None):
        raise SettingsError(f'no {what} is called "{value}": {did_you_mean(str(value), valid)}')


def _num_features(data: Data | Sequence[Data]) -> int:
    graph = data if isinstance(data, Data) else data[0]
    if graph.x is None:
        raise GraphError("the graph has no node features x: give every node a feature row, if only of ones.")
    return int(graph.x.size(1))


def _edge_channels(data: Data | Sequence[Data]) -> int:
    graph = data if isinstance(data, Data) else data[0]
    given = getattr(graph, "edge_attr", None)
    if given is None or given.dim() != 2 or not given.is_floating_point():
        raise GraphError(
            "rgcn reads edge_attr, a float matrix with a row for each edge, which the graph does not have: one column "
            "per relation, 1 where the edge is of that relation. ac.from_hetero makes it of a HeteroData."
        )
    return int(given.size(1))


def count_classes(data: Data | Sequence[Data]) -> int:
    """Number of classes: ``data.num_classes``, or one more than the largest label."""
    stated = getattr(data, "num_classes", None)
    if stated:
        return int(stated)
    y = class_numbers(data.y, int(data.num_nodes or 0)) if isinstance(data, Data) and data.y is not None else None
    y = y if isinstance(data, Data) else graph_classes(data)
    if y is None or not len(y) or int(y.max()) < 0:
        raise SettingsError("the data has no labels y: pass out_channels, the number of classes.")
    return int(y.max()) + 1
