"""The code that PyTorch Geometric generates for a class of layers, generated once more from the class.

``MessagePassing`` writes ``propagate`` and ``edge_updater`` of each class of layers from a template, into a module of
its own. There is no file to compare that code with, so the templates, which were read (``known_layers``), are filled in
again.
"""

import types
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from torch import nn
from torch_geometric.nn import MessagePassing
from torch_geometric.nn.conv import message_passing

TEMPLATES = ("propagate", "edge_updater")


def generated_modules(classes: Iterable[type]) -> dict[str, tuple[type, str]]:
    """Returns the class and the template by the name of the module that PyG generates of them."""
    modules = {}
    for cls in classes:
        for template in TEMPLATES:
            modules[f"{cls.__module__}_{cls.__name__}_{template}"] = (cls, template)
    return modules


def generated_code(cls: Any, template: str) -> types.CodeType:
    """Returns the compiled text that a template gives for a class of layers.

    Args:
        cls: A class that inherits from ``MessagePassing``.
        template: One of ``TEMPLATES``.
    """
    layer = cls.__new__(cls)
    nn.Module.__init__(layer)
    MessagePassing.__init__(layer)
    arguments = _propagate_arguments(layer) if template == "propagate" else _edge_updater_arguments(layer)
    text = _environment().get_template(f"{template}.jinja").render(modules=layer.inspector._modules, **arguments)
    return compile(text, template, "exec", dont_inherit=True)


def _propagate_arguments(layer: MessagePassing) -> dict[str, Any]:
    inspector = layer.inspector
    arguments = {
        "collect_name": "collect",
        "signature": layer._get_propagate_signature(),
        "collect_param_dict": inspector.get_flat_param_dict(["message", "aggregate", "update"]),
        "fuse": layer.fuse,
    }
    for method in ("message", "aggregate", "message_and_aggregate", "update"):
        arguments[f"{method}_args"] = inspector.get_param_names(method)
    return arguments


def _edge_updater_arguments(layer: MessagePassing) -> dict[str, Any]:
    return {
        "collect_name": "edge_collect",
        "signature": layer._get_edge_updater_signature(),
        "collect_param_dict": layer.inspector.get_param_dict("edge_update"),
    }


@cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(loader=jinja2.FileSystemLoader(Path(message_passing.__file__).parent))
