"""``build_model``: builds an untrained model from a name and the data."""

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from agnncert.addons import addons, config_of
from agnncert.errors import GraphError, SettingsError, did_you_mean, suggests_arguments
from agnncert.graphs.checks import require_tensors
from agnncert.graphs.in_parts import GraphInParts
from agnncert.graphs.labels import class_numbers, graph_classes
from agnncert.graphs.task import infer_task, most_columns
from agnncert.models import gnn
from agnncert.models import wrappers as fallback
from agnncert.models.gnn import ARCHITECTURES, GNN, ModelConfig
from agnncert.models.wrappers import SCALES, Fallback, Scaling, training_rows

MODELS = {name: architecture.about for name, architecture in ARCHITECTURES.items()}


@suggests_arguments
def build_model(  # noqa: PLR0913 - every setting is a keyword
    name: str,
    data: Data | Sequence[Data] | GraphInParts,
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
        num_layers: Number of message-passing layers, hence of hops. Defaults to 3, or 6 for ``"resgcn"``.
        dropout: Dropout after every hidden layer while training.
        act: Activation: ``"relu"``, ``"elu"``, ``"gelu"``, ``"leaky_relu"`` or ``"tanh"``.
        norm: ``None``, ``"batch_norm"`` (frozen in eval mode) or ``"layer_norm"`` (per node).
        jk: Jumping knowledge: ``None``, ``"last"``, ``"cat"`` or ``"max"`` of all layers' outputs, and a linear head.
        heads: Attention heads of ``"gat"``.
        readout: ``"mean"``, ``"sum"`` or ``"max"`` over the nodes of a graph.
        scale: ``None``, or ``"standard"``: features get mean 0 and deviation 1 on the training rows of ``data``. Means
            and deviations are stored in the model, like weights.
        task: ``"node"`` or ``"graph"``. Defaults to the task of ``data``.
        out_channels: Number of classes. Defaults to that of ``data``.
        seed: Seed of the initial weights. Torch's global random state is not changed.

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
    if isinstance(data, GraphInParts):
        data = data.sample()
    _one_of("model", name, MODELS)
    if isinstance(data, Data):
        require_tensors(data, "the graph")
    architecture = ARCHITECTURES[name]
    model = _assemble(
        ModelConfig(
            name=name,
            task=task or infer_task(data),
            in_channels=_num_features(data),
            out_channels=count_classes(data) if out_channels is None else out_channels,
            hidden_channels=hidden_channels,
            num_layers=architecture.num_layers if num_layers is None else num_layers,
            dropout=dropout,
            act=act,
            norm=norm,
            jk=jk,
            heads=heads,
            readout=readout,
            seed=seed,
            scale=scale,
            edge_channels=_num_edge_channels(data) if architecture.reads == "attr" else None,
        )
    )
    if scale is not None:
        model.scaling = Scaling.of(training_rows(data))
    return model


def build_constant(data: Data | Sequence[Data], label: int, num_classes: int) -> GNN:
    """Builds a model that always votes for ``label``, as a control.

    Args:
        data: Graphs that the model accepts.
        label: The class of every vote.
        num_classes: Number of classes.
    """
    model = build_model("mlp", data, hidden_channels=1, num_layers=1, readout="sum", out_channels=num_classes)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        last = model.lin if model.lin is not None else model.convs[-1]
        last.bias[label] = 1.0  # type: ignore[operator]
    return model.eval()


def build_from_config(config: Mapping[str, Any]) -> torch.nn.Module:
    """Builds the untrained model that ``config`` describes, a dictionary like ``model.config``.

    Raises:
        SettingsError: Something in it is missing, unknown or not valid.
    """
    if config.get("name") == fallback.NAME:
        return _fallback_from_config(config)
    name = config.get("name")
    if isinstance(name, str) and name in addons("agnncert.models"):
        build = addons("agnncert.models")[name].load()
        built: torch.nn.Module = build(config, build_from_config)
        return built
    valid = [field.name for field in fields(ModelConfig)]
    for key in config:
        if key not in valid:
            raise SettingsError(f'a model has no setting "{key}": {did_you_mean(key, valid)}')
    missing = [key for key in ("name", "task", "in_channels", "out_channels") if key not in config]
    if missing:
        raise SettingsError(f"the description of the model lacks {', '.join(missing)}.")
    return _assemble(ModelConfig(**config))


def _fallback_from_config(config: Mapping[str, Any]) -> Fallback:
    model = config.get("model")
    without_edges = config.get("without_edges")
    if len(config) != 3 or not isinstance(model, Mapping) or not isinstance(without_edges, Mapping):
        raise SettingsError(f"a fallback is described by its model and without_edges, not by {dict(config)}.")
    return Fallback(build_from_config(model), build_from_config(without_edges))


def _assemble(settings: ModelConfig) -> GNN:
    _check(settings)
    cls = gnn.CLASSES[settings.task, ARCHITECTURES[settings.name].reads]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        return cls(settings)


def _check(settings: ModelConfig) -> None:
    """Raises SettingsError if a setting is not valid."""
    _one_of("model", settings.name, MODELS)
    _one_of("task", settings.task, ("node", "graph"))
    _one_of("act", settings.act, gnn.ACTIVATIONS)
    _one_of("readout", settings.readout, gnn.READOUTS)
    _one_of("norm", settings.norm, gnn.NORMS, optional=True)
    _one_of("scale", settings.scale, SCALES, optional=True)
    _one_of("jk", settings.jk, gnn.JUMPS, optional=True)
    for key in ("in_channels", "hidden_channels", "num_layers", "heads"):
        _at_least_one(key, getattr(settings, key))
    if ARCHITECTURES[settings.name].reads == "attr":
        _at_least_one("edge_channels", settings.edge_channels)
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
    if optional and value is None:
        return
    if value not in list(valid):
        raise SettingsError(f'no {what} is called "{value}": {did_you_mean(str(value), valid)}')


def _at_least_one(key: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise SettingsError(f"{key} is {value!r}: expected a whole number of at least 1.")


def _first_graph(data: Data | Sequence[Data]) -> Data:
    return data if isinstance(data, Data) else data[0]


def _num_features(data: Data | Sequence[Data]) -> int:
    width = most_columns([data] if isinstance(data, Data) else data, "x")
    if width is None:
        raise GraphError("the graph has no node features x: give every node a feature row, if only of ones.")
    return width


def _num_edge_channels(data: Data | Sequence[Data]) -> int:
    graphs = [data] if isinstance(data, Data) else data
    floats = [
        graph
        for graph in graphs
        if getattr(graph, "edge_attr", None) is not None and graph.edge_attr.is_floating_point()
    ]
    width = most_columns(floats, "edge_attr")
    if width is None:
        raise GraphError(
            "rgcn reads edge_attr, a float matrix with a row for each edge, which the graph does not have: one column "
            "per relation, 1 where the edge is of that relation. ac.from_hetero makes it of a HeteroData."
        )
    return width


def fresh_copy(model: nn.Module, seed: int) -> nn.Module:
    """Returns a built-in model with the initial weights of another seed, or a copy of any other module."""
    config = config_of(model)
    if config is None:
        return copy.deepcopy(model)
    fresh = build_from_config({**config, "seed": seed})
    if getattr(model, "scaling", None) is not None:
        fresh.scaling = copy.deepcopy(model.scaling)
    return fresh


def count_classes(data: Data | Sequence[Data]) -> int:
    """Returns the number of classes: ``data.num_classes``, or one more than the largest label.

    Raises:
        SettingsError: There are no labels.
        GraphError: Most numbers below the largest label are no class.
    """
    stated = getattr(data, "num_classes", None)
    if stated:
        return int(stated)
    y = _classes(data)
    if y is None or not len(y) or int(y.max()) < 0:
        raise SettingsError("the data has no labels y: pass out_channels, the number of classes.")
    _require_dense_classes(y)
    return int(y.max()) + 1


def _require_dense_classes(y: Tensor) -> None:
    """Refuses labels such as 5 and 9, which would give a model eight classes that nothing belongs to."""
    found = torch.unique(y[y >= 0])
    num_missing = int(found[-1]) + 1 - len(found)
    if num_missing <= len(found):
        return
    listed = ", ".join(str(int(label)) for label in found[:8]) + (", …" if len(found) > 8 else "")
    raise GraphError(
        f"labels y are {listed}: classes are numbered from 0 on, and {num_missing} of the {int(found[-1]) + 1} numbers "
        "up to the largest are no class. Number them anew, data.y = torch.unique(data.y, return_inverse=True)[1], or "
        "pass out_channels."
    )


def _classes(data: Data | Sequence[Data]) -> Tensor | None:
    if not isinstance(data, Data):
        return graph_classes(data)
    if data.y is None:
        return None
    return class_numbers(data.y, int(data.num_nodes or 0))
